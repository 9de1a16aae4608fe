//! One fast test binary, a module per room.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that is surprised should stop"
)]

mod acknowledgements;
mod adapters;
mod answers;
mod atlases;
mod attacks;
mod cli;
mod clocks;
mod coding_agents;
mod conformance;
mod connect;
mod connections;
mod conversations;
mod crowds;
mod damage;
mod docs;
mod drafts;
mod events;
mod examples;
mod explaining;
mod extensions;
mod faults;
mod features;
mod governance;
mod handover;
mod headless;
mod hooks;
mod http;
mod impostor;
mod keeping;
mod lint;
mod logs;
mod mcp;
mod missing_parameters;
mod notices;
mod numbers;
mod own_code;
mod powercuts;
mod reading;
mod reconstruct;
mod reloading;
mod runtime;
mod scenarios;
mod simulation;
mod socket;
mod sqlite;
mod store;
mod style;
mod support;
mod turns;
