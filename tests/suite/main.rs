//! One fast test binary, with a module per area.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that is surprised should stop"
)]

mod acknowledgements;
mod acp;
mod adapters;
mod agent_payloads;
mod answers;
mod atlas_reload;
mod atlases;
mod attacks;
mod cli;
mod clocks;
mod coding_agents;
mod commands;
mod conformance;
mod connect;
mod connections;
mod conversations;
mod damage;
mod docs;
mod drafts;
mod events;
mod example_plugin;
mod examples;
mod explain;
mod extensions;
mod faults;
mod features;
mod governance;
mod handover;
mod hooks;
mod http;
mod impostor;
mod lint;
mod logs;
mod mcp;
mod missing_parameters;
mod notices;
mod numbers;
mod power_cuts;
mod reconstruct;
mod record_maintenance;
mod replay;
mod runtime;
mod scenarios;
mod simulation;
mod socket;
mod sqlite;
mod store;
mod style;
mod support;
mod thousand_agents;
mod turns;
