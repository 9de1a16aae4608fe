//! Reasons why a caller has no result of its call.

use std::path::PathBuf;

use super::CallFault;
use crate::gateway::protocol::proof::ProofError;

/// Reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No process listens on the socket.
    #[error("no console listens at `{}`", .0.display())]
    Unreachable(PathBuf),
    /// The console closed the connection.
    #[error("the console closed the connection")]
    Disconnected,
    /// The console did not answer in time.
    #[error("the console did not answer in time")]
    TimedOut,
    /// The answer is malformed.
    #[error("the console's answer cannot be read: {0}")]
    Unreadable(String),
    /// The console answered with a fault.
    #[error("{}", .0.message)]
    Fault(CallFault),
    /// The answer was not given by the console with the expected key.
    #[error("the answer at `{}` did not come from the console: {reason}", socket.display())]
    Unproven {
        /// Socket that the answer came from.
        socket: PathBuf,
        /// Fault of the proof.
        reason: ProofError,
    },
    /// The connection was refused before the request was read, with this code. The refusal is unverified.
    #[error("the console accepts no requests now (code {0})")]
    Refused(i64),
    /// No key was given, so no answer can be verified.
    #[error("no valid `--key`: {0}")]
    NoKey(String),
    /// The request cannot be written as JSON.
    #[error("the request cannot be serialized: {0}")]
    Unwritable(String),
    /// The system has no randomness for a challenge.
    #[error("cra could not create a challenge: {0}")]
    NoChallenge(getrandom::Error),
}
