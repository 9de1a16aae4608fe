//! Fixed replies and rows of state: durability, denials while nothing can be recorded.

use crate::engine::command::{
    Command, Denied, DenyCode, RecordFault, Refused, Reply, StateChange, StateKind,
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
pub(in crate::runtime) fn row(change: StateChange) -> StateRow {
    StateRow {
        kind: change.kind.as_str().to_owned(),
        key: change.key,
        body: change.body,
    }
}

pub(super) fn unavailable(command: &Command, what: &str) -> Reply {
    match command {
        Command::Decide(..) | Command::Operate(..) => {
            Reply::Refused(Refused::Unavailable(what.to_owned()))
        }
        Command::StartSession(..)
        | Command::EndSession(..)
        | Command::RequestAction(..)
        | Command::CompleteAction(..)
        | Command::Input(..)
        | Command::ReportError(..)
        | Command::RequestContext(..)
        | Command::Report(..)
        | Command::Answer(..)
        | Command::Resolve(..)
        | Command::Consult(..)
        | Command::AskerLeft(_)
        | Command::Note(..)
        | Command::RecordSound
        | Command::ClockMoved(_)
        | Command::DeadlineReached(_)
        | Command::Returned(..) => Reply::Denied(denied(what)),
    }
}

/// Wraps a denial in the reply type that the command's caller expects.
pub(super) fn refusal_of(command: &Command, denied: Denied) -> Reply {
    match unavailable(command, &denied.reason) {
        Reply::Denied(_) => Reply::Denied(denied),
        refused => refused,
    }
}

/// Returns the denial while nothing can be recorded, if that can end without a restart.
pub(in super::super) fn stalled(what: &str) -> Denied {
    Denied {
        code: DenyCode::Unavailable,
        reason: format!("nothing can be recorded now, so nothing is allowed: {what}"),
        help: Some("the operator sees this too; ask again when that has changed".to_owned()),
        gate: None,
    }
}

/// Returns the denial while the record is faulty and no operator has acknowledged it.
pub(super) fn barred(fault: &RecordFault) -> Denied {
    Denied {
        code: DenyCode::Unavailable,
        reason: format!(
            "the record does not hold, so nothing is allowed: {}",
            fault.what
        ),
        help: Some("the operator sees this too, and can go on once they know of it".to_owned()),
        gate: None,
    }
}

/// Returns true if a command permits nothing: it reports what happened, or is about the console.
pub(super) fn only_reports(command: &Command) -> bool {
    match command {
        Command::Operate(..)
        | Command::EndSession(..)
        | Command::CompleteAction(..)
        | Command::ReportError(..)
        | Command::Report(..)
        | Command::AskerLeft(_)
        | Command::Note(..)
        | Command::RecordSound
        | Command::ClockMoved(_)
        | Command::DeadlineReached(_) => true,
        Command::StartSession(..)
        | Command::RequestAction(..)
        | Command::Input(..)
        | Command::RequestContext(..)
        | Command::Answer(..)
        | Command::Resolve(..)
        | Command::Consult(..)
        | Command::Decide(..)
        | Command::Returned(..) => false,
    }
}

pub(super) fn denied(what: &str) -> Denied {
    Denied {
        code: DenyCode::Unavailable,
        reason: format!("nothing can be recorded, so nothing is allowed: {what}"),
        help: Some("the operator sees this too, and has to restart cra".to_owned()),
        gate: None,
    }
}
