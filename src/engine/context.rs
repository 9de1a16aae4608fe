//! Contexts that are handed over without a checkpoint: always, on a match, or when it is risky.

use crate::atlas::compiled::Injection;
use crate::atlas::document::{InjectMode, RiskTier};

use super::command::Given;
use super::give::{Gift, Size};
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
        let mut called: Vec<Called> = Vec::new();
        for atlas in &self.engine.atlases {
            let matching = atlas.injections.iter().filter(|it| calls(it, cause));
            called.extend(matching.map(|it| Called {
                priority: it.priority,
                atlas_id: atlas.id.clone(),
                context_id: it.context_id.clone(),
                trigger: it.trigger(),
            }));
        }
        // Stable: ties stay in the order of the Atlases, then as written.
        called.sort_by_key(|called| std::cmp::Reverse(called.priority));
        let kind = match cause {
            Cause::Start => "session_start",
            Cause::Input(_) => "keyword_match",
            Cause::Run(_) => "action_pre",
        };
        let mut given = Given::default();
        for called in called {
            let gift = Gift {
                atlas: Some(&called.atlas_id),
                from: &called.context_id,
                kind,
                trigger: called.trigger,
                contexts: std::slice::from_ref(&called.context_id),
                guidance: None,
                size: Size::Budgeted,
            };
            given.extend(self.give(place, &gift));
        }
        given
    }

    /// The contexts that every session is handed when it begins.
    pub(super) fn always_given(&self) -> Vec<String> {
        let injections = self
            .engine
            .atlases
            .iter()
            .flat_map(|atlas| &atlas.injections);
        let always = injections.filter(|it| it.mode == InjectMode::Always);
        always.map(|it| it.context_id.clone()).collect()
    }
}

/// A context that is called for.
struct Called {
    priority: i64,
    atlas_id: String,
    context_id: String,
    trigger: &'static str,
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
