//! Fixed replies and rows of state: durability, denials while nothing can be recorded.

use crate::engine::command::{
    DenialReply, DenyCode, EngineCommand, RecordFault, StateChange, StateKind,
};
use crate::store::StateRow;
use crate::trace::event::Durability;

/// Returns the durability of a kind of state. The actor waits for state that a restart must not lose;
/// session counters are not part of it.
pub(super) fn durability_of(kind: StateKind) -> Durability {
    match kind {
        StateKind::Held
        | StateKind::Permit
        | StateKind::Counter
        | StateKind::Overruled
        | StateKind::Fault => Durability::Sync,
        StateKind::Session | StateKind::Usage => Durability::Async,
    }
}

/// Converts a change of the engine's state into a row.
pub(in crate::runtime) fn state_row(change: StateChange) -> StateRow {
    StateRow {
        kind: change.kind.as_str().to_owned(),
        key: change.key,
        body: change.body,
    }
}

/// Returns the denial while nothing can be recorded, if that can end without a restart.
pub(in super::super) fn stall_denial(what: &str) -> DenialReply {
    DenialReply {
        code: DenyCode::Unavailable,
        reason: format!("nothing can be recorded now, so nothing is allowed: {what}"),
        help: Some("the operator sees this, too; try again later".to_owned()),
        gate: None,
    }
}

/// Returns the denial while the record is faulty and no operator has acknowledged it.
pub(super) fn faulty_record_denial(fault: &RecordFault) -> DenialReply {
    DenialReply {
        code: DenyCode::Unavailable,
        reason: format!(
            "the record is damaged, so nothing is allowed: {}",
            fault.what
        ),
        help: Some("the operator sees this, too, and must acknowledge it first".to_owned()),
        gate: None,
    }
}

/// Returns true if a command permits nothing: it reports what happened, or is about the console.
pub(super) fn only_reports(command: &EngineCommand) -> bool {
    match command {
        EngineCommand::Operate(..)
        | EngineCommand::EndSession(..)
        | EngineCommand::CompleteAction(..)
        | EngineCommand::ReportError(..)
        | EngineCommand::Report(..)
        | EngineCommand::CallerDisconnected(_)
        | EngineCommand::RecordFinding(..)
        | EngineCommand::RecordIntact
        | EngineCommand::ClockMoved(_)
        | EngineCommand::DeadlineReached(_) => true,
        EngineCommand::StartSession(..)
        | EngineCommand::RequestAction(..)
        | EngineCommand::Input(..)
        | EngineCommand::RequestContext(..)
        | EngineCommand::Answer(..)
        | EngineCommand::Resolve(..)
        | EngineCommand::Consult(..)
        | EngineCommand::Decide(..)
        | EngineCommand::ExtensionReturned(..) => false,
    }
}

pub(super) fn unavailable_denial(what: &str) -> DenialReply {
    DenialReply {
        code: DenyCode::Unavailable,
        reason: format!("nothing can be recorded, so nothing is allowed: {what}"),
        help: Some("the operator sees this, too, and must restart cra".to_owned()),
        gate: None,
    }
}
