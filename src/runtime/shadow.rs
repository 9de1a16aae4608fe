//! Atlases that look on, in the shadow of those in force.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::atlas::Atlas;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{DIFFERENCES_KEPT, EVIDENCE_CHARS};
use crate::engine::Engine;
use crate::engine::command::Command;
use crate::engine::explain::Verdict;
use crate::engine::shade::Shade;

/// What Atlases would have done that only look on.
#[derive(Clone, Debug)]
pub struct Shadowed {
    /// One digest for them.
    pub hash: Digest,
    /// Since when.
    pub since: Timestamp,
    /// What they were asked about.
    pub looked: u64,
    /// Where they would have done something else.
    pub differ: u64,
    /// The newest of those, newest first.
    pub kept: Vec<Arc<Difference>>,
}

/// Something that Atlases in the shadow would have done otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// When.
    pub at: Timestamp,
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: String,
    /// What was asked.
    pub subject: String,
    /// What those in force say.
    pub live: String,
    /// What those in the shadow say.
    pub shadow: String,
}

/// Atlases that look on.
#[derive(Debug)]
pub(super) struct Shadow {
    shade: Shade,
    since: Timestamp,
    looked: u64,
    differ: u64,
    kept: VecDeque<Arc<Difference>>,
    shown: Option<Arc<Shadowed>>,
}

impl Shadow {
    pub(super) fn new(engine: &Engine, atlases: Arc<[Atlas]>, now: Timestamp) -> Self {
        Self {
            shade: engine.shade(atlases),
            since: now,
            looked: 0,
            differ: 0,
            kept: VecDeque::new(),
            shown: None,
        }
    }

    /// Looks at a command before it is carried out by others. Gives whether there is news.
    pub(super) fn look(&mut self, engine: &Engine, command: &Command, now: Timestamp) -> bool {
        let Some((session, agent, live)) = engine.looked(command, now) else {
            return false;
        };
        let Some((_, _, shadow)) = self.shade.looked(engine, command, now) else {
            return false;
        };
        self.looked += 1;
        self.shown = None;
        if !same(&live.verdict, &shadow.verdict) {
            self.differ += 1;
            let cut = |text: String| text.chars().take(EVIDENCE_CHARS).collect();
            self.kept.push_front(Arc::new(Difference {
                at: now,
                session,
                agent,
                subject: cut(live.subject),
                live: cut(words(&live.verdict)),
                shadow: cut(words(&shadow.verdict)),
            }));
            self.kept.truncate(DIFFERENCES_KEPT);
        }
        true
    }

    /// What the screen is shown.
    pub(super) fn picture(&mut self) -> Arc<Shadowed> {
        let made = || {
            Arc::new(Shadowed {
                hash: self.shade.hash(),
                since: self.since,
                looked: self.looked,
                differ: self.differ,
                kept: self.kept.iter().cloned().collect(),
            })
        };
        Arc::clone(self.shown.get_or_insert_with(made))
    }
}

/// Whether two verdicts come to the same for whoever asks, and for who is asked.
fn same(one: &Verdict, other: &Verdict) -> bool {
    match (one, other) {
        (Verdict::Denied(one), Verdict::Denied(other)) => one.code == other.code,
        (one, other) => one == other,
    }
}

fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allowed => "passes".to_owned(),
        Verdict::Held { gates } => format!("held at {}", gates.join(", ")),
        Verdict::Denied(denied) => format!("denied: {}", denied.reason),
    }
}
