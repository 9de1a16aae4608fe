//! Effects of the handlers of checkpoints: contexts, approvals, recorded events, rewritten input.

use crate::trace::event::{CheckpointSkipped, InjectTrigger};

use super::command::{Injected, InjectedContext};
use super::extension::{CheckpointResult, PolicyDecisionKind};
use super::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use super::handler_outcomes::{
    HandlerOutcome, HandlerOutcomes, HandlerStop, can_restrict, collect_outcomes,
};
use super::held::{ActionCall, HeldSubject};
use super::inject::{BudgetRule, Injection};
use super::lifecycle::{raise_approvals, raise_stop};
use super::transaction::{SpanPosition, Transaction};

/// Combined result of the handlers of fired checkpoints.
#[derive(Default)]
pub(super) struct HandlerEffects {
    /// Contexts for the agent.
    pub(super) injected: Injected,
    /// Reason why the agent may not go on.
    pub(super) stop: Option<HandlerStop>,
    /// Required approvals that no checkpoint covers.
    pub(super) approvals: Vec<OwnedRequiredApproval>,
    /// The rewritten input.
    pub(super) input: Option<String>,
}

/// The kind of command whose checkpoints have handlers. It determines the effect of their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandledCommandKind {
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

impl Transaction<'_> {
    /// Applies the answers of the handlers of fired checkpoints, and drops the checkpoints that exceeded the
    /// time budget.
    ///
    /// Nothing is injected when a handler stops the agent.
    pub(super) fn apply_handler_outcomes(
        &mut self,
        place: &SpanPosition,
        subject: &HeldSubject,
        fired: &mut Vec<OwnedFiredCheckpoint>,
        handling: HandledCommandKind,
    ) -> HandlerEffects {
        let call = match subject {
            HeldSubject::Action(call) => Some(call),
            HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
        };
        self.apply_handler_outcomes_for(place, (subject, call), fired, handling)
    }

    /// Applies the answers of handlers that received an action which is not the subject of their checkpoints.
    ///
    /// The action's parameters are recorded only after redaction.
    pub(super) fn apply_handler_outcomes_for(
        &mut self,
        place: &SpanPosition,
        (subject, call): (&HeldSubject, Option<&ActionCall>),
        fired: &mut Vec<OwnedFiredCheckpoint>,
        handling: HandledCommandKind,
    ) -> HandlerEffects {
        let answers = std::mem::take(&mut self.answers);
        let checkpoints = fired
            .iter()
            .map(|fired| (fired.atlas_id.as_str(), &fired.checkpoint));
        let mut heard = collect_outcomes(self, &answers, checkpoints);
        for fired in fired.iter_mut() {
            fired.extension_time = answers.trigger_took(&fired.atlas_id, &fired.checkpoint.id);
        }
        self.answers = answers;
        let gated = heard.restricts() || fired.iter().any(OwnedFiredCheckpoint::is_gate);
        if gated && self.withheld_for_gate.is_none() {
            self.withheld_for_gate = Some(Vec::new());
        }
        let mut handled = HandlerEffects {
            input: heard.input.take(),
            ..HandlerEffects::default()
        };
        let mut approvals = Vec::new();
        for said in &heard.outcomes {
            if let Some(fired) = fired.get_mut(said.index) {
                fired.modified |= modifies(said);
                fired.extension_time += said.duration;
                let wanted = said.result.as_ref().ok();
                let wanted = wanted.and_then(|result| required_approval(fired, said, result));
                approvals.extend(wanted.map(|approval| (said.index, approval)));
            }
        }
        match handling {
            HandledCommandKind::Action => {
                handled.approvals = approvals.into_iter().map(|(_, wanted)| wanted).collect();
            }
            HandledCommandKind::Input | HandledCommandKind::Start | HandledCommandKind::Event => {
                raise_approvals(fired, &approvals);
            }
            HandledCommandKind::End => {}
        }
        let stop = heard.take_stop();
        let stopped = stop.is_some();
        let refusal = stop.and_then(|stop| {
            if handling.refuses(&stop) {
                return Some(stop);
            }
            raise_stop(fired, stop);
            None
        });
        self.record_handler_outcomes(place, (subject, call), fired, (&heard, refusal.as_ref()));
        if !stopped {
            for said in &heard.outcomes {
                if let (Some(fired), Ok(result)) = (fired.get(said.index), &said.result) {
                    let given = self.inject_handler_contexts(place, fired, &said.handler, result);
                    handled.injected.extend(given);
                }
            }
        }
        self.drop_late_checkpoints(place, fired, &heard);
        handled.stop = refusal.map(|stop| HandlerStop {
            index: heard.kept_index(stop.index),
            ..stop
        });
        handled
    }

    /// Records that checkpoints fired, then the answers of their handlers, in the order of priorities.
    ///
    /// If a handler refuses the command, only the checkpoints whose handlers were called are recorded, and
    /// they are completed.
    fn record_handler_outcomes(
        &mut self,
        place: &SpanPosition,
        (subject, call): (&HeldSubject, Option<&ActionCall>),
        fired: &mut [OwnedFiredCheckpoint],
        (heard, refusal): (&HandlerOutcomes, Option<&HandlerStop>),
    ) {
        let asked = heard.outcomes.iter().map(|said| said.index);
        let Some(last) = asked.chain(refusal.map(|stop| stop.index)).max() else {
            return;
        };
        for (index, fired) in fired.iter_mut().enumerate().take(last + 1) {
            let said: Vec<_> = heard
                .outcomes
                .iter()
                .filter(|said| said.index == index)
                .collect();
            let stops = refusal.filter(|stop| stop.index == index);
            let concerned = !said.is_empty() || stops.is_some();
            if heard.skipped.contains(&index) || (refusal.is_some() && !concerned) {
                continue;
            }
            self.record_fired(place, fired, subject);
            for said in said {
                self.record_handler_outcome(place, call, fired, said);
                if let Ok(result) = &said.result {
                    self.invalidate_caches(place, result);
                }
            }
            if refusal.is_some() {
                let told = stops.map(|stop| self.redact_reason(call, "block_reason", &stop.reason));
                self.record_handler_completion(place, fired, told);
            }
        }
    }

    /// Removes the cache entries that a handler invalidates.
    fn invalidate_caches(&mut self, place: &SpanPosition, result: &CheckpointResult) {
        if result.cache_clear {
            self.state().caches.clear();
        }
        for id in &result.cache_invalidate {
            self.state().caches.forget_context(id);
        }
        if let Some(session) = self.state().sessions.get_mut(&place.session) {
            if result.cache_clear {
                session.forget_context(None);
            }
            for id in &result.cache_invalidate {
                session.forget_context(Some(id));
            }
        }
        self.mark_changed(&place.session);
    }

    /// Injects the contexts that a handler names. An entry that names no context is injected as plain text.
    fn inject_handler_contexts(
        &mut self,
        place: &SpanPosition,
        fired: &OwnedFiredCheckpoint,
        handler: &str,
        result: &CheckpointResult,
    ) -> Injected {
        let known = |id: &&String| {
            let mut atlases = self.engine.atlases.iter();
            atlases.any(|atlas| atlas.contexts.contains_key(*id))
        };
        let (named, texts): (Vec<_>, Vec<_>) = result.inject_context.iter().partition(known);
        let named: Vec<String> = named.into_iter().cloned().collect();
        let mut given = self.inject(
            place,
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
        given.extend(self.inject_texts(place, from, kind, texts.collect()));
        given
    }

    /// Drops the checkpoints that exceeded the time budget. They only inject something.
    fn drop_late_checkpoints(
        &mut self,
        place: &SpanPosition,
        fired: &mut Vec<OwnedFiredCheckpoint>,
        heard: &HandlerOutcomes,
    ) {
        for index in heard.skipped.iter().rev() {
            if *index >= fired.len() {
                continue;
            }
            let dropped = fired.remove(*index);
            debug_assert!(!can_restrict(&self.engine.extensions, &dropped.checkpoint));
            self.record_skipped(place, &dropped, "limit reached: max_checkpoint_time_ms");
        }
    }

    /// Records that a checkpoint was skipped.
    pub(super) fn record_skipped(
        &mut self,
        place: &SpanPosition,
        dropped: &OwnedFiredCheckpoint,
        reason: &str,
    ) {
        let record = CheckpointSkipped {
            checkpoint_id: dropped.checkpoint.id.clone(),
            checkpoint_type: dropped.checkpoint.kind.to_owned(),
            reason: reason.to_owned(),
            dropped_contexts: dropped.checkpoint.inject_contexts.clone(),
            judged_under: self.atlas_refs(Some(&dropped.atlas_id)),
        };
        self.record_below(place, record);
    }
}

fn modifies(said: &HandlerOutcome) -> bool {
    let result = said.result.as_ref().ok();
    result.is_some_and(|result| result.modified_input.is_some())
}

/// Returns the approval that a handler requires.
fn required_approval(
    fired: &OwnedFiredCheckpoint,
    said: &HandlerOutcome,
    result: &CheckpointResult,
) -> Option<OwnedRequiredApproval> {
    let policy = result.policy_decision.as_ref()?;
    (policy.decision == PolicyDecisionKind::RequireApproval).then(|| OwnedRequiredApproval {
        atlas_id: fired.atlas_id.clone(),
        policy_id: said.handler.clone(),
        reason: policy.reason.clone(),
        why: format!("extension `{}` requires approval", said.handler),
        overrides: false,
    })
}
