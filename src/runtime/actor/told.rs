//! What is written and told in fixed words: rows of state, and that nothing can be recorded.

use crate::engine::command::{Command, Denied, DenyCode, Refused, Reply, StateChange, StateKind};
use crate::store::StateRow;
use crate::trace::event::Durability;

/// What a restart must not lose is waited for; a session's counters are not among it.
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

/// A piece of the engine's state as a row.
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

pub(super) fn denied(what: &str) -> Denied {
    Denied {
        code: DenyCode::Unavailable,
        reason: format!("nothing can be recorded, so nothing is allowed: {what}"),
        help: Some("the operator sees this too, and has to restart cra".to_owned()),
        gate: None,
    }
}
