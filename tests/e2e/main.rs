//! The real binary in a pseudo-terminal: keys in, the screen and the record on disk out.
//!
//! Nothing here sleeps: every wait is for the screen to show something, or for the program to end.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that is surprised should stop"
)]

mod alarms;
mod damage;
mod decisions;
mod dialog;
mod dual_approval;
mod faults;
mod hostile;
mod keys;
mod kills;
mod linear;
mod notices;
mod operator;
mod shutdown;
mod size;
mod terminal;
mod turns;
mod workspace;
