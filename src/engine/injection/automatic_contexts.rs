//! Contexts that are injected without a checkpoint: always, on a match, or by risk.

use std::cmp::Reverse;

use crate::atlas::document::{InjectMode, RiskTier};
use crate::atlas::index::{ActionMatches, KeywordMatches};
use crate::atlas::model::Atlas;
use crate::base::id::SessionId;
use crate::trace::event::InjectTrigger;

use super::contexts::{BudgetRule, Injection, find_context, inject_contexts};
use crate::engine::command::Injected;
use crate::engine::gates::held::ActionCall;
use crate::engine::transaction::{SpanPosition, Transaction};

/// Cause that a context can match.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InjectionCause<'c> {
    /// A session starts.
    Start,
    /// Input arrived, with these keyword matches.
    Input(&'c KeywordMatches),
    /// An action is allowed to run.
    Run(&'c ActionCall),
}

/// Returns whether the keyword matches select a context that the session does not have.
pub(crate) fn selects_new_context(
    tx: &Transaction<'_>,
    session: &SessionId,
    seen: &KeywordMatches,
) -> bool {
    let mut called = selected_contexts(&tx.engine.atlases, InjectionCause::Input(seen)).into_iter();
    called.any(|called| {
        let id = &called.injection.context_id;
        let injection = Injection {
            atlas: Some(called.atlas_id),
            from: id,
            kind: "keyword_match",
            trigger: trigger(called.injection.mode),
            contexts: std::slice::from_ref(id),
            guidance: None,
            size: BudgetRule::Budgeted,
        };
        find_context(tx, session, &injection, id).is_some()
    })
}

/// Injects the contexts that a cause selects, highest priority first.
pub(crate) fn inject_automatic_contexts(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    cause: InjectionCause<'_>,
) -> Injected {
    let mut called = selected_contexts(&tx.engine.atlases, cause);
    // Ties stay in the order of the Atlases, then as written.
    called.sort_by_key(|called| (Reverse(called.injection.priority), called.index));
    let called: Vec<_> = called
        .into_iter()
        .map(|called| {
            let id = called.injection.context_id.clone();
            (
                called.atlas_id.to_owned(),
                id,
                trigger(called.injection.mode),
            )
        })
        .collect();
    let kind = match cause {
        InjectionCause::Start => "session_start",
        InjectionCause::Input(_) => "keyword_match",
        InjectionCause::Run(_) => "action_pre",
    };
    let mut injected = Injected::default();
    for (atlas_id, context, trigger) in called {
        let injection = Injection {
            atlas: Some(&atlas_id),
            from: &context,
            kind,
            trigger,
            contexts: std::slice::from_ref(&context),
            guidance: None,
            size: BudgetRule::Budgeted,
        };
        injected.extend(inject_contexts(tx, position, &injection));
    }
    injected
}

/// Returns the recorded trigger for contexts of this mode.
fn trigger(mode: InjectMode) -> InjectTrigger {
    match mode {
        InjectMode::Always => InjectTrigger::Always,
        InjectMode::OnMatch => InjectTrigger::OnMatch,
        InjectMode::OnDemand => InjectTrigger::OnDemand,
        InjectMode::RiskBased => InjectTrigger::RiskBased,
    }
}

/// A context that a cause selects.
struct SelectedContext<'a> {
    /// Index of its Atlas, and its index in that Atlas.
    index: (usize, usize),
    atlas_id: &'a str,
    injection: &'a crate::atlas::model::InjectionRule,
}

fn selected_contexts<'a>(
    atlases: &'a [Atlas],
    cause: InjectionCause<'_>,
) -> Vec<SelectedContext<'a>> {
    let mut all = Vec::new();
    for (number, atlas) in atlases.iter().enumerate() {
        let called = |(position, injection)| SelectedContext {
            index: (number, position),
            atlas_id: &atlas.id,
            injection,
        };
        match cause {
            InjectionCause::Start => all.extend(atlas.injections_always().map(called)),
            InjectionCause::Input(seen) => all.extend(seen.injections(number, atlas).map(called)),
            InjectionCause::Run(call) => {
                let matches = ActionMatches::of(std::slice::from_ref(atlas), &call.action);
                let matching = matches.injections();
                all.extend(
                    matching
                        .map(|matched| (matched.place, matched.item))
                        .map(called),
                );
                if call.tier >= RiskTier::High {
                    all.extend(atlas.injections_by_risk().map(called));
                }
            }
        }
    }
    all
}
