//! Recent evaluations of checkpoints, for a console that watches them.
//!
//! Nothing is evaluated while no console watches. Contract: watching changes no decision and no record. The
//! number of kept evaluations and the size of each are limited.

use std::collections::VecDeque;
use std::sync::Arc;

use super::shadow::ShadowAtlases;
use super::snapshot::{EvaluationLog, EvaluationOutcome, WatchedEvaluation};
use crate::base::clock::Timestamp;
use crate::base::limits::{EVALUATIONS_KEPT, EVIDENCE_CHARS, EVIDENCE_KEPT};
use crate::engine::Engine;
use crate::engine::command::{AgentReply, Effect, EngineCommand, Reply, ReplyId};

/// Tells whether a console watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchSetting {
    /// No console watches.
    #[default]
    Off,
    /// A console watches.
    On,
}

/// Kept evaluations.
#[derive(Debug, Default)]
pub(super) struct EvaluationWatch {
    watch: WatchSetting,
    kept: VecDeque<Arc<WatchedEvaluation>>,
    total: u64,
    /// Shadow Atlases.
    pub(super) shadow: Option<ShadowAtlases>,
    /// The newest list for snapshots, built on demand.
    shown: Option<Arc<[Arc<WatchedEvaluation>]>>,
}

impl EvaluationWatch {
    /// Starts or stops watching. Kept evaluations stay, so that watching can continue later. Returns true
    /// if the setting changed.
    pub(super) fn set(&mut self, watch: WatchSetting) -> bool {
        std::mem::replace(&mut self.watch, watch) != watch
    }

    /// Evaluates a command before it is executed, if a console watches.
    pub(super) fn evaluate(
        &self,
        engine: &Engine,
        command: &EngineCommand,
        now: Timestamp,
    ) -> Option<WatchedEvaluation> {
        if self.watch == WatchSetting::Off {
            return None;
        }
        let (session, agent, account) = engine.preview(command, now)?;
        Some(WatchedEvaluation {
            number: self.total + 1,
            at: now,
            session,
            agent,
            counts: account.counts(),
            account: account.bounded(EVIDENCE_KEPT, EVIDENCE_CHARS),
            outcome: EvaluationOutcome::Waiting,
        })
    }

    /// Stores an evaluation with its outcome.
    pub(super) fn store(
        &mut self,
        seen: Option<WatchedEvaluation>,
        reply_id: ReplyId,
        effects: &[Effect],
    ) {
        let Some(mut seen) = seen else {
            return;
        };
        seen.outcome = immediate_outcome(reply_id, effects);
        self.total += 1;
        self.kept.push_front(Arc::new(seen));
        self.kept.truncate(EVALUATIONS_KEPT);
        self.shown = None;
    }

    /// Returns the content for the screen.
    pub(super) fn summary(&mut self, engine: &Engine, now: Timestamp) -> EvaluationLog {
        let limits = match self.watch {
            WatchSetting::On => Arc::new(engine.limit_usage(now)),
            WatchSetting::Off => Arc::default(),
        };
        let kept = &self.kept;
        let shown = self
            .shown
            .get_or_insert_with(|| kept.iter().cloned().collect());
        EvaluationLog {
            watch: self.watch,
            total: self.total,
            evaluations: Arc::clone(shown),
            limits,
            shadow: self.shadow.as_mut().map(ShadowAtlases::summary),
        }
    }
}

/// Returns the immediate outcome of a command.
fn immediate_outcome(reply_id: ReplyId, effects: &[Effect]) -> EvaluationOutcome {
    let held = effects.iter().filter_map(|effect| match effect {
        Effect::RequestHeld(gate) => Some(gate.clone()),
        Effect::Record(_)
        | Effect::AppendToLog(_)
        | Effect::SetOperator(_)
        | Effect::Persist(_)
        | Effect::Reply(..)
        | Effect::SetDeadline(..)
        | Effect::CallExtension(_)
        | Effect::RequestSettled(_)
        | Effect::Notify(_) => None,
    });
    let held: Vec<_> = held.collect();
    if !held.is_empty() {
        return EvaluationOutcome::Held(held);
    }
    let reply = effects.iter().find_map(|effect| match effect {
        Effect::Reply(to, reply) if *to == reply_id => Some(reply),
        Effect::Reply(..)
        | Effect::Record(_)
        | Effect::AppendToLog(_)
        | Effect::SetOperator(_)
        | Effect::Persist(_)
        | Effect::SetDeadline(..)
        | Effect::CallExtension(_)
        | Effect::RequestHeld(_)
        | Effect::RequestSettled(_)
        | Effect::Notify(_) => None,
    });
    match reply {
        Some(Reply::Agent(AgentReply::Denied(denied))) => {
            let reason = denied.reason.chars().take(EVIDENCE_CHARS).collect();
            EvaluationOutcome::Denied(reason)
        }
        Some(
            Reply::Agent(
                AgentReply::Started(_)
                | AgentReply::Ended(_)
                | AgentReply::Accepted(_)
                | AgentReply::Allowed(_)
                | AgentReply::Asked(_)
                | AgentReply::Invalid(_)
                | AgentReply::Resolved(_)
                | AgentReply::Consulted(_)
                | AgentReply::Completed(_)
                | AgentReply::Noted(_),
            )
            | Reply::Operator(_),
        ) => EvaluationOutcome::Allowed,
        None => EvaluationOutcome::Waiting,
    }
}
