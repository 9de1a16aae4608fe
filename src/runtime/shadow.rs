//! Shadow Atlases: they observe commands, and decide nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::atlas::Atlas;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{DIFFERENCES_KEPT, EVIDENCE_CHARS};
use crate::engine::Engine;
use crate::engine::command::EngineCommand;
use crate::engine::explanation::ExplainedVerdict;
use crate::engine::shadow::ShadowEngine;

/// Summary of shadow Atlases.
#[derive(Clone, Debug)]
pub struct ShadowSummary {
    /// Digest of all of them.
    pub hash: Digest,
    /// Time of their start.
    pub since: Timestamp,
    /// Number of commands they saw.
    pub evaluated: u64,
    /// Number of commands with another verdict.
    pub different: u64,
    /// The newest differences, newest first.
    pub newest: Vec<Arc<ShadowDifference>>,
}

/// A command on which the shadow Atlases differ from the loaded ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowDifference {
    /// Time of the command.
    pub at: Timestamp,
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: String,
    /// Description of the request.
    pub subject: String,
    /// Verdict of the loaded Atlases.
    pub live: String,
    /// Verdict of the shadow Atlases.
    pub shadow: String,
}

/// Running shadow Atlases.
#[derive(Debug)]
pub(super) struct ShadowAtlases {
    shade: ShadowEngine,
    since: Timestamp,
    looked: u64,
    differ: u64,
    kept: VecDeque<Arc<ShadowDifference>>,
    shown: Option<Arc<ShadowSummary>>,
}

impl ShadowAtlases {
    pub(super) fn new(engine: &Engine, atlases: Arc<[Atlas]>, now: Timestamp) -> Self {
        Self {
            shade: engine.shadow(atlases),
            since: now,
            looked: 0,
            differ: 0,
            kept: VecDeque::new(),
            shown: None,
        }
    }

    /// Evaluates a command before the engine executes it. Returns true if the summary changed.
    pub(super) fn evaluate(
        &mut self,
        engine: &Engine,
        command: &EngineCommand,
        now: Timestamp,
    ) -> bool {
        let Some((session, agent, live)) = engine.preview(command, now) else {
            return false;
        };
        let Some((_, _, shadow)) = self.shade.preview(engine, command, now) else {
            return false;
        };
        self.looked += 1;
        self.shown = None;
        if !has_same_outcome(&live.verdict, &shadow.verdict) {
            self.differ += 1;
            let cut = |text: String| text.chars().take(EVIDENCE_CHARS).collect();
            self.kept.push_front(Arc::new(ShadowDifference {
                at: now,
                session,
                agent,
                subject: cut(live.subject),
                live: cut(describe_verdict(&live.verdict)),
                shadow: cut(describe_verdict(&shadow.verdict)),
            }));
            self.kept.truncate(DIFFERENCES_KEPT);
        }
        true
    }

    /// Returns the summary for the screen.
    pub(super) fn summary(&mut self) -> Arc<ShadowSummary> {
        let made = || {
            Arc::new(ShadowSummary {
                hash: self.shade.hash(),
                since: self.since,
                evaluated: self.looked,
                different: self.differ,
                newest: self.kept.iter().cloned().collect(),
            })
        };
        Arc::clone(self.shown.get_or_insert_with(made))
    }
}

/// Returns true if two verdicts mean one thing for the caller and for the operator.
fn has_same_outcome(one: &ExplainedVerdict, other: &ExplainedVerdict) -> bool {
    match (one, other) {
        (ExplainedVerdict::Denied(one), ExplainedVerdict::Denied(other)) => one.code == other.code,
        (one, other) => one == other,
    }
}

fn describe_verdict(verdict: &ExplainedVerdict) -> String {
    match verdict {
        ExplainedVerdict::Allowed => "passes".to_owned(),
        ExplainedVerdict::Held { gates } => format!("held at {}", gates.join(", ")),
        ExplainedVerdict::Denied(denied) => format!("denied: {}", denied.reason),
    }
}
