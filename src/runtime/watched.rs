//! Recent evaluations of checkpoints, for a console that watches them.
//!
//! Nothing is evaluated while no console watches. Contract: watching changes no decision and no record. The
//! number of kept evaluations and the size of each are limited.

use std::collections::VecDeque;
use std::sync::Arc;

use super::shadow::Shadow;
use super::snapshot::{Came, Evaluated, Watched};
use crate::base::clock::Timestamp;
use crate::base::limits::{EVALUATIONS_KEPT, EVIDENCE_CHARS, EVIDENCE_KEPT};
use crate::engine::Engine;
use crate::engine::command::{AskId, Command, Effect, Reply};

/// Tells whether a console watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watch {
    /// No console watches.
    #[default]
    Off,
    /// A console watches.
    On,
}

/// Kept evaluations.
#[derive(Debug, Default)]
pub(super) struct Watching {
    watch: Watch,
    kept: VecDeque<Arc<Evaluated>>,
    total: u64,
    /// Shadow Atlases.
    pub(super) shadow: Option<Shadow>,
    /// The newest list for snapshots, built on demand.
    shown: Option<Arc<[Arc<Evaluated>]>>,
}

impl Watching {
    /// Starts or stops watching. Kept evaluations stay, so that watching can continue later. Returns true
    /// if the setting changed.
    pub(super) fn set(&mut self, watch: Watch) -> bool {
        std::mem::replace(&mut self.watch, watch) != watch
    }

    /// Evaluates a command before it is executed, if a console watches.
    pub(super) fn before(
        &self,
        engine: &Engine,
        command: &Command,
        now: Timestamp,
    ) -> Option<Evaluated> {
        if self.watch == Watch::Off {
            return None;
        }
        let (session, agent, account) = engine.looked(command, now)?;
        Some(Evaluated {
            number: self.total + 1,
            at: now,
            session,
            agent,
            counts: account.counts(),
            account: account.bounded(EVIDENCE_KEPT, EVIDENCE_CHARS),
            came: Came::Waits,
        })
    }

    /// Stores an evaluation with its outcome.
    pub(super) fn after(&mut self, seen: Option<Evaluated>, ask: AskId, effects: &[Effect]) {
        let Some(mut seen) = seen else {
            return;
        };
        seen.came = came(ask, effects);
        self.total += 1;
        self.kept.push_front(Arc::new(seen));
        self.kept.truncate(EVALUATIONS_KEPT);
        self.shown = None;
    }

    /// Returns the content for the screen.
    pub(super) fn picture(&mut self, engine: &Engine, now: Timestamp) -> Watched {
        let limits = match self.watch {
            Watch::On => Arc::new(engine.limits(now)),
            Watch::Off => Arc::default(),
        };
        let kept = &self.kept;
        let shown = self
            .shown
            .get_or_insert_with(|| kept.iter().cloned().collect());
        Watched {
            watch: self.watch,
            total: self.total,
            evaluations: Arc::clone(shown),
            limits,
            shadow: self.shadow.as_mut().map(Shadow::picture),
        }
    }
}

/// Returns the immediate outcome of a command.
fn came(ask: AskId, effects: &[Effect]) -> Came {
    let held = effects.iter().filter_map(|effect| match effect {
        Effect::Held(gate) => Some(gate.clone()),
        Effect::Record(_)
        | Effect::Enter(_)
        | Effect::Seat(_)
        | Effect::Persist(_)
        | Effect::Reply(..)
        | Effect::SetDeadline(..)
        | Effect::CallOut(_)
        | Effect::Settled(_)
        | Effect::Notify(_) => None,
    });
    let held: Vec<_> = held.collect();
    if !held.is_empty() {
        return Came::Held(held);
    }
    let reply = effects.iter().find_map(|effect| match effect {
        Effect::Reply(to, reply) if *to == ask => Some(reply),
        Effect::Reply(..)
        | Effect::Record(_)
        | Effect::Enter(_)
        | Effect::Seat(_)
        | Effect::Persist(_)
        | Effect::SetDeadline(..)
        | Effect::CallOut(_)
        | Effect::Held(_)
        | Effect::Settled(_)
        | Effect::Notify(_) => None,
    });
    match reply {
        Some(Reply::Denied(denied)) => {
            let reason = denied.reason.chars().take(EVIDENCE_CHARS).collect();
            Came::Denied(reason)
        }
        Some(
            Reply::Started(_)
            | Reply::Ended(_)
            | Reply::Accepted(_)
            | Reply::Allowed(_)
            | Reply::Asked(_)
            | Reply::Resolved(_)
            | Reply::Consulted(_)
            | Reply::Completed(_)
            | Reply::Noted(_)
            | Reply::Decided(_)
            | Reply::Approved(_)
            | Reply::Acted
            | Reply::Invalid(_)
            | Reply::Refused(_),
        ) => Came::Allowed,
        None => Came::Waits,
    }
}
