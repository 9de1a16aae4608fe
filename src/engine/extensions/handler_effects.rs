//! Effects of the handlers of checkpoints: contexts, approvals, recorded events, rewritten input.

use crate::trace::event::{CheckpointSkipped, InjectTrigger};

use super::handler_outcomes::{HandlerOutcome, HandlerOutcomes, HandlerStop, can_restrict};
use super::handler_records::record_handler_outcome;
use super::required_calls::HandledCheckpoints;
use super::{CheckpointResult, PolicyDecisionKind};
use crate::engine::command::{Injected, InjectedContext};
use crate::engine::evaluation::fired_checkpoint::{
    OwnedFiredCheckpoint, OwnedRequiredApproval, record_fired, record_handler_completion,
};
use crate::engine::gates::held::{ActionCall, HeldSubject};
use crate::engine::injection::contexts::{BudgetRule, Injection, inject_contexts};
use crate::engine::injection::withholding::inject_texts;
use crate::engine::records::action_records::atlas_refs;
use crate::engine::records::redaction::redact_reason;
use crate::engine::sessions::lifecycle::{apply_handler_stop, require_approvals};
use crate::engine::transaction::{SpanPosition, Transaction};

/// Combined result of the handlers of fired checkpoints.
#[derive(Default)]
pub(crate) struct HandlerEffects {
    /// Contexts for the agent.
    pub(crate) injected: Injected,
    /// Reason why the agent may not go on.
    pub(crate) stop: Option<HandlerStop>,
    /// Required approvals that no checkpoint covers.
    pub(crate) approvals: Vec<OwnedRequiredApproval>,
    /// The rewritten input.
    pub(crate) input: Option<String>,
}

/// The kind of command whose checkpoints have handlers. It determines the effect of their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandledCommandKind {
    /// An action. A denial refuses it; an approval is a separate gate.
    Action,
    /// Input. A denial refuses it; a required approval makes the checkpoint a gate.
    Input,
    /// The start of a session. A denial refuses it; a handler that failed to answer makes its checkpoint a
    /// gate.
    Start,
    /// An event that has already happened. A denial makes the checkpoint a gate, too.
    Event,
    /// The end of a session, which cannot be stopped.
    End,
}

impl HandledCommandKind {
    /// Returns whether a stop refuses the command. Otherwise its checkpoint becomes a gate.
    fn refuses(self, stop: &HandlerStop) -> bool {
        match self {
            Self::Action | Self::Input | Self::End => true,
            Self::Start => stop.denied,
            Self::Event => false,
        }
    }
}

/// Applies the answers of the handlers of fired checkpoints, and drops the checkpoints that exceeded the
/// time budget.
///
/// Nothing is injected when a handler stops the agent.
pub(crate) fn apply_handler_outcomes(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    subject: &HeldSubject,
    handled: &mut HandledCheckpoints,
    handling: HandledCommandKind,
) -> HandlerEffects {
    let call = match subject {
        HeldSubject::Action(call) => Some(call),
        HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
    };
    apply_handler_outcomes_for(tx, position, (subject, call), handled, handling)
}

/// Applies the answers of handlers that received an action which is not the subject of their checkpoints.
///
/// The action's parameters are recorded only after redaction.
pub(crate) fn apply_handler_outcomes_for(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    (subject, call): (&HeldSubject, Option<&ActionCall>),
    checkpoints: &mut HandledCheckpoints,
    handling: HandledCommandKind,
) -> HandlerEffects {
    let gated = checkpoints.are_gated();
    let mut outcomes = std::mem::take(&mut checkpoints.outcomes);
    let fired = &mut checkpoints.fired;
    for fired in fired.iter_mut() {
        fired.extension_time = tx
            .answers
            .trigger_took(&fired.atlas_id, &fired.checkpoint.id);
    }
    if gated && tx.withheld_for_gate.is_none() {
        tx.withheld_for_gate = Some(Vec::new());
    }
    let mut handled = HandlerEffects {
        input: outcomes.input.take(),
        ..HandlerEffects::default()
    };
    let mut approvals = Vec::new();
    for outcome in &outcomes.outcomes {
        if let Some(fired) = fired.get_mut(outcome.index) {
            fired.modified |= modifies(outcome);
            fired.extension_time += outcome.duration;
            let wanted = outcome.result.as_ref().ok();
            let wanted = wanted.and_then(|result| required_approval(fired, outcome, result));
            approvals.extend(wanted.map(|approval| (outcome.index, approval)));
        }
    }
    match handling {
        HandledCommandKind::Action => {
            handled.approvals = approvals.into_iter().map(|(_, wanted)| wanted).collect();
        }
        HandledCommandKind::Input | HandledCommandKind::Start | HandledCommandKind::Event => {
            require_approvals(fired, &approvals);
        }
        HandledCommandKind::End => {}
    }
    let stop = outcomes.take_stop();
    let stopped = stop.is_some();
    let refusal = stop.and_then(|stop| {
        if handling.refuses(&stop) {
            return Some(stop);
        }
        apply_handler_stop(fired, stop);
        None
    });
    record_handler_outcomes(
        tx,
        position,
        (subject, call),
        fired,
        (&outcomes, refusal.as_ref()),
    );
    if !stopped {
        for outcome in &outcomes.outcomes {
            if let (Some(fired), Ok(result)) = (fired.get(outcome.index), &outcome.result) {
                let injected =
                    inject_handler_contexts(tx, position, fired, &outcome.handler, result);
                handled.injected.extend(injected);
            }
        }
    }
    drop_late_checkpoints(tx, position, fired, &outcomes);
    handled.stop = refusal.map(|stop| HandlerStop {
        index: outcomes.kept_index(stop.index),
        ..stop
    });
    handled
}

/// Records that checkpoints fired, then the answers of their handlers, in the order of priorities.
///
/// If a handler refuses the command, only the checkpoints whose handlers were called are recorded, and
/// they are completed.
fn record_handler_outcomes(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    (subject, call): (&HeldSubject, Option<&ActionCall>),
    fired: &mut [OwnedFiredCheckpoint],
    (outcomes, refusal): (&HandlerOutcomes, Option<&HandlerStop>),
) {
    let asked = outcomes.outcomes.iter().map(|outcome| outcome.index);
    let Some(last) = asked.chain(refusal.map(|stop| stop.index)).max() else {
        return;
    };
    for (index, fired) in fired.iter_mut().enumerate().take(last + 1) {
        let own_outcomes: Vec<_> = outcomes
            .outcomes
            .iter()
            .filter(|outcome| outcome.index == index)
            .collect();
        let stops = refusal.filter(|stop| stop.index == index);
        let concerned = !own_outcomes.is_empty() || stops.is_some();
        if outcomes.skipped.contains(&index) || (refusal.is_some() && !concerned) {
            continue;
        }
        record_fired(tx, position, fired, subject);
        for outcome in own_outcomes {
            record_handler_outcome(tx, position, call, fired, outcome);
            if let Ok(result) = &outcome.result {
                invalidate_caches(tx, position, result);
            }
        }
        if refusal.is_some() {
            let reason = stops.map(|stop| redact_reason(tx, call, "block_reason", &stop.reason));
            record_handler_completion(tx, position, fired, reason);
        }
    }
}

/// Removes the cache entries that a handler invalidates.
fn invalidate_caches(tx: &mut Transaction<'_>, position: &SpanPosition, result: &CheckpointResult) {
    if result.cache_clear {
        tx.state().caches.clear();
    }
    for id in &result.cache_invalidate {
        tx.state().caches.forget_context(id);
    }
    if let Some(session) = tx.state().sessions.get_mut(&position.session) {
        if result.cache_clear {
            session.forget_context(None);
        }
        for id in &result.cache_invalidate {
            session.forget_context(Some(id));
        }
    }
    tx.mark_changed(&position.session);
}

/// Injects the contexts that a handler names. An entry that names no context is injected as plain text.
fn inject_handler_contexts(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    fired: &OwnedFiredCheckpoint,
    handler: &str,
    result: &CheckpointResult,
) -> Injected {
    let known = |id: &&String| {
        let mut atlases = tx.engine.atlases.iter();
        atlases.any(|atlas| atlas.contexts.contains_key(*id))
    };
    let (named, texts): (Vec<_>, Vec<_>) = result.inject_context.iter().partition(known);
    let named: Vec<String> = named.into_iter().cloned().collect();
    let mut injected = inject_contexts(
        tx,
        position,
        &Injection {
            atlas: None,
            from: &fired.checkpoint.id,
            kind: fired.checkpoint.kind,
            trigger: InjectTrigger::OnDemand,
            contexts: &named,
            guidance: None,
            size: BudgetRule::Budgeted,
        },
    );
    let texts = texts.into_iter().enumerate();
    let texts = texts.map(|(index, text)| InjectedContext {
        context_id: format!("{handler}.{}", index + 1),
        content: text.clone(),
    });
    let (from, kind) = (&fired.checkpoint.id, fired.checkpoint.kind);
    injected.extend(inject_texts(tx, position, from, kind, texts.collect()));
    injected
}

/// Drops the checkpoints that exceeded the time budget. They only inject something.
fn drop_late_checkpoints(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    fired: &mut Vec<OwnedFiredCheckpoint>,
    outcomes: &HandlerOutcomes,
) {
    for index in outcomes.skipped.iter().rev() {
        if *index >= fired.len() {
            continue;
        }
        let dropped = fired.remove(*index);
        debug_assert!(!can_restrict(&tx.engine.extensions, &dropped.checkpoint));
        record_skipped(
            tx,
            position,
            &dropped,
            "limit reached: max_checkpoint_time_ms",
        );
    }
}

/// Records that a checkpoint was skipped.
pub(crate) fn record_skipped(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    dropped: &OwnedFiredCheckpoint,
    reason: &str,
) {
    let record = CheckpointSkipped {
        checkpoint_id: dropped.checkpoint.id.clone(),
        checkpoint_type: dropped.checkpoint.kind.to_owned(),
        reason: reason.to_owned(),
        dropped_contexts: dropped.checkpoint.inject_contexts.clone(),
        judged_under: atlas_refs(tx, Some(&dropped.atlas_id)),
    };
    tx.record_below(position, record);
}

fn modifies(outcome: &HandlerOutcome) -> bool {
    let result = outcome.result.as_ref().ok();
    result.is_some_and(|result| result.modified_input.is_some())
}

/// Returns the approval that a handler requires.
fn required_approval(
    fired: &OwnedFiredCheckpoint,
    outcome: &HandlerOutcome,
    result: &CheckpointResult,
) -> Option<OwnedRequiredApproval> {
    let policy = result.policy_decision.as_ref()?;
    (policy.decision == PolicyDecisionKind::RequireApproval).then(|| OwnedRequiredApproval {
        atlas_id: fired.atlas_id.clone(),
        policy_id: outcome.handler.clone(),
        reason: policy.reason.clone(),
        why: format!("extension `{}` requires approval", outcome.handler),
        overrides: false,
    })
}
