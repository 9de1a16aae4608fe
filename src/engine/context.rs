//! Contexts that are handed over without a checkpoint: always, on a match, or when it is risky.

use crate::atlas::compiled::Injection;
use crate::atlas::document::{InjectMode, RiskTier};

use super::command::Given;
use super::held::ActionCall;
use super::turn::{Place, Turn};

/// What a context can match on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause<'c> {
    /// A session begins.
    Start,
    /// Input came.
    Input(&'c str),
    /// An action is let run.
    Run(&'c ActionCall),
}

impl Turn<'_> {
    /// Hands over the contexts that a cause calls for, highest priority first.
    pub(super) fn give_on(&mut self, place: &Place, cause: Cause<'_>) -> Given {
        let mut called: Vec<(i64, String, &'static str)> = Vec::new();
        for atlas in &self.engine.atlases {
            let matching = atlas.injections.iter().filter(|it| calls(it, cause));
            called.extend(matching.map(|it| (it.priority, it.context_id.clone(), it.trigger())));
        }
        // Stable: ties stay in the order of the Atlases, then as written.
        called.sort_by_key(|(priority, ..)| std::cmp::Reverse(*priority));
        let kind = match cause {
            Cause::Start => "session_start",
            Cause::Input(_) => "keyword_match",
            Cause::Run(_) => "action_pre",
        };
        let mut given = Given::default();
        for (_, context, trigger) in called {
            given.extend(self.give_as(place, kind, trigger, &[context], None));
        }
        given
    }
}

fn calls(injection: &Injection, cause: Cause<'_>) -> bool {
    match (injection.mode, cause) {
        (InjectMode::Always, Cause::Start) => true,
        (InjectMode::OnMatch, Cause::Input(text)) => {
            let keywords = injection.keywords.as_ref();
            keywords.is_some_and(|keywords| !keywords.find(text).is_empty())
        }
        (InjectMode::OnMatch, Cause::Run(call)) => injection.actions.matches(&call.action),
        (InjectMode::RiskBased, Cause::Run(call)) => call.tier >= RiskTier::High,
        (
            InjectMode::Always | InjectMode::OnMatch | InjectMode::OnDemand | InjectMode::RiskBased,
            Cause::Start | Cause::Input(_) | Cause::Run(_),
        ) => false,
    }
}
