//! Handling of one command: the state it changes and the effects it collects.

use std::collections::BTreeSet;

use crate::atlas::model::Checkpoint;
use crate::base::clock::Timestamp;
use crate::base::id::{EventId, SessionId, SpanId, TraceId};
use crate::trace::event::{Draft, Durability, Payload, RiskTierInfo};

use super::command::{
    AgentReply, DenialReply, DenyCode, Effect, Injected, OperatorReply, ReplyId, StateChange,
    StateKind,
};
use super::evaluation::{EvaluationCase, NOTHING_OVERRIDDEN};
use super::extensions::custom_triggers::CustomTriggers;
use super::extensions::suspension::ExtensionAnswers;
use super::gates::held::ActionCall;
use super::injection::delivery::{defer_injected, deliver_injected, retract_undelivered_records};
use super::injection::withholding::WithheldInjection;
use super::records::action_records::atlas_ref;
use super::sessions::lifecycle::session_position;
use super::sessions::session::Session;
use super::{Engine, State};

/// Effects of one call of `Engine::handle`. Changes of state apply at once; nothing is rolled back.
pub(crate) struct Transaction<'a> {
    pub(crate) engine: &'a mut Engine,
    pub(crate) now: Timestamp,
    effects: Vec<Effect>,
    changed_sessions: BTreeSet<SessionId>,
    /// Bytes of context that this command injected, for the budget.
    pub(crate) injected_bytes: u64,
    /// Answers of extensions to the command that is executed.
    pub(crate) answers: ExtensionAnswers,
    /// Injections that wait for a gate of the same command; `None` while there is no such gate.
    pub(crate) withheld_for_gate: Option<Vec<WithheldInjection>>,
}

/// Position of a record in the span tree.
#[derive(Clone, Debug)]
pub(crate) struct SpanPosition {
    pub(crate) session: SessionId,
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: SpanId,
    pub(crate) parent: Option<SpanId>,
}

impl SpanPosition {
    /// Returns a child position with its own span.
    pub(crate) fn child(&self, span_id: SpanId) -> Self {
        Self {
            session: self.session.clone(),
            trace_id: self.trace_id.clone(),
            span_id,
            parent: Some(self.span_id.clone()),
        }
    }
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(engine: &'a mut Engine, now: Timestamp) -> Self {
        Self {
            engine,
            now,
            effects: Vec::new(),
            changed_sessions: BTreeSet::new(),
            injected_bytes: 0,
            answers: ExtensionAnswers::default(),
            withheld_for_gate: None,
        }
    }

    /// Returns the session, if it exists and has not ended.
    pub(crate) fn live_session(&self, session: &SessionId) -> Option<&Session> {
        self.engine.state.sessions.get(session)
    }

    /// Returns the evaluator for custom triggers, with the answers so far.
    pub(crate) fn custom_triggers(&self) -> CustomTriggers<'_> {
        CustomTriggers {
            extensions: &self.engine.extensions,
            answers: &self.answers,
        }
    }

    /// Returns the inputs for evaluating an action of a session.
    pub(crate) fn evaluation_case<'s>(
        &'s self,
        session: &'s Session,
        call: &'s ActionCall,
    ) -> EvaluationCase<'s, 's> {
        EvaluationCase {
            atlases: &self.engine.atlases,
            usage: &self.engine.state.usage,
            custom_triggers: self.custom_triggers(),
            overridden: NOTHING_OVERRIDDEN,
            session,
            call: call.view(),
            now: self.now,
        }
    }

    /// Returns the effects. Changed sessions are stored before the first reply, so that no reply leaves without them.
    pub(crate) fn finish(mut self) -> Vec<Effect> {
        retract_undelivered_records(&mut self);
        let touched = std::mem::take(&mut self.changed_sessions);
        for id in &touched {
            if let Some(session) = self.engine.state.sessions.get_mut(id) {
                session.last_at = Some(self.now);
            }
        }
        let sessions = &self.engine.state.sessions;
        let changes: Vec<_> = touched
            .iter()
            // An ended session is in the record; the engine drops it.
            .map(|id| state_change(StateKind::Session, id.as_str(), sessions.get(id)))
            .collect();
        let at = self
            .effects
            .iter()
            .position(|effect| matches!(effect, Effect::Reply(..)));
        let at = at.unwrap_or(self.effects.len());
        self.effects.splice(at..at, changes);
        self.effects
    }

    pub(crate) fn state(&mut self) -> &mut State {
        &mut self.engine.state
    }

    pub(crate) fn new_span(&mut self) -> SpanId {
        self.engine.ids.next().into()
    }

    pub(crate) fn new_trace(&mut self) -> TraceId {
        self.engine.ids.next().into()
    }

    /// Records an event at `place` itself.
    pub(crate) fn record(&mut self, position: &SpanPosition, payload: impl Into<Payload>) {
        self.record_as(position, payload, Durability::Async);
    }

    /// Records an event at `place` itself, with at least the given durability.
    pub(crate) fn record_as(
        &mut self,
        position: &SpanPosition,
        payload: impl Into<Payload>,
        durability: Durability,
    ) -> EventId {
        let mut payload = payload.into();
        payload.list_large_numbers();
        if let Some(under) = payload.judged_under_mut()
            && under.is_empty()
        {
            *under = self.engine.atlases.iter().map(atlas_ref).collect();
        }
        let durability = self.durability(&payload).max(durability);
        let event_id: EventId = self.engine.ids.next().into();
        let stored = durability == Durability::Sync
            || payload.is_essential()
            || self.engine.level.stores(payload.event_type());
        if !stored {
            return event_id;
        }
        if let Some(session) = self.engine.state.sessions.get_mut(&position.session) {
            session.events = session.events.saturating_add(1);
        }
        self.mark_changed(&position.session);
        self.effects.push(Effect::Record(Draft {
            session_id: position.session.clone(),
            event_id: event_id.clone(),
            trace_id: position.trace_id.clone(),
            span_id: position.span_id.clone(),
            parent_span_id: position.parent.clone(),
            timestamp: self.now,
            payload,
            durability,
        }));
        event_id
    }

    /// Adds the initially injected contexts to the record of a session's start.
    pub(crate) fn name_initial_contexts(&mut self, injected: &Injected) {
        let started = self.effects.iter_mut().find_map(|effect| match effect {
            Effect::Record(Draft {
                payload: Payload::SessionStarted(started),
                ..
            }) => Some(started),
            _ => None,
        });
        if let Some(started) = started {
            let contexts = injected.contexts.iter();
            started.initial_contexts = contexts
                .map(|injected| injected.context_id.clone())
                .collect();
        }
    }

    /// Returns the required durability of a record: the mandatory one, raised by the stewards' rules.
    fn durability(&self, payload: &Payload) -> Durability {
        let (event_type, tier) = (payload.event_type(), payload.tier());
        let tier = tier.map(RiskTierInfo::as_str);
        let rules = self.engine.atlases.iter();
        let mut rules = rules.flat_map(|atlas| &atlas.recording.sync);
        if rules.any(|rule| rule.applies(event_type, tier)) {
            return Durability::Sync;
        }
        payload.mandatory_durability()
    }

    /// Records an event in a new span below `place`.
    pub(crate) fn record_below(&mut self, position: &SpanPosition, payload: impl Into<Payload>) {
        let span = self.new_span();
        self.record(&position.child(span), payload);
    }

    /// Returns the span position for a new operation of a session: in the trace of the last input, or in a
    /// new trace.
    pub(crate) fn new_position(&mut self, session: &SessionId) -> Option<SpanPosition> {
        let session_state = self.engine.state.sessions.get(session)?;
        let (root, operation) = (
            session_position(session_state),
            session_state.operation.clone(),
        );
        Some(SpanPosition {
            trace_id: operation.unwrap_or_else(|| self.new_trace()),
            ..root.child(self.new_span())
        })
    }

    /// Marks a session as changed, so that it is stored.
    pub(crate) fn mark_changed(&mut self, session: &SessionId) {
        if !self.changed_sessions.contains(session) {
            self.changed_sessions.insert(session.clone());
        }
    }

    /// Sends a reply to an agent. The contexts that it carries are recorded as injected.
    pub(crate) fn reply_to_agent(&mut self, reply_id: ReplyId, mut reply: AgentReply) {
        let deferred = self.engine.state.deferred_replies.remove(&reply_id);
        if let Some(injected) = reply.injected_mut() {
            match deferred {
                Some(session) => defer_injected(self, &session, std::mem::take(injected)),
                None => deliver_injected(self, injected),
            }
        }
        self.effects.push(Effect::Reply(reply_id, reply.into()));
    }

    /// Sends a reply to an operator.
    pub(crate) fn reply_to_operator(&mut self, reply_id: ReplyId, reply: OperatorReply) {
        self.effects.push(Effect::Reply(reply_id, reply.into()));
    }

    pub(crate) fn deny(&mut self, reply_id: ReplyId, code: DenyCode, reason: impl Into<String>) {
        let denied = DenialReply {
            code,
            reason: reason.into(),
            help: None,
            gate: None,
        };
        self.reply_to_agent(reply_id, AgentReply::Denied(denied));
    }

    /// Changes a record of this command before it is written.
    pub(crate) fn amend(&mut self, event: &EventId, amend: impl FnOnce(&mut Payload)) {
        let mut effects = self.effects.iter_mut().rev();
        let payload = effects.find_map(|effect| match effect {
            Effect::Record(draft) if draft.event_id == *event => Some(&mut draft.payload),
            _ => None,
        });
        if let Some(payload) = payload {
            amend(payload);
        }
    }

    /// Changes records of this command before they are written.
    pub(crate) fn amend_where(&mut self, mut amend: impl FnMut(&mut Draft)) {
        for effect in &mut self.effects {
            if let Effect::Record(draft) = effect {
                amend(draft);
            }
        }
    }

    /// Tells whether a record is one of this command's.
    pub(crate) fn has_recorded(&self, event: &EventId) -> bool {
        let mut effects = self.effects.iter();
        effects.any(|effect| matches!(effect, Effect::Record(draft) if draft.event_id == *event))
    }

    /// Retracts a record of this command.
    pub(crate) fn unrecord(&mut self, event: &EventId) {
        let is_record =
            |effect: &Effect| matches!(effect, Effect::Record(draft) if draft.event_id == *event);
        let Some(at) = self.effects.iter().position(is_record) else {
            return;
        };
        if let Effect::Record(draft) = self.effects.remove(at)
            && let Some(session) = self.state().sessions.get_mut(&draft.session_id)
        {
            session.events = session.events.saturating_sub(1);
        }
    }

    /// Returns the sessions that this command changed.
    pub(crate) fn changed_sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.changed_sessions.iter()
    }

    /// Returns the effects of this command so far.
    pub(crate) fn effects(&self) -> &[Effect] {
        &self.effects
    }

    pub(crate) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn persist<T: serde::Serialize>(
        &mut self,
        kind: StateKind,
        key: &str,
        body: Option<&T>,
    ) {
        self.effects.push(state_change(kind, key, body));
    }
}

/// Returns the effects of passing a checkpoint.
pub(crate) fn pass_effects(checkpoint: &Checkpoint) -> super::gates::held::PassEffects {
    super::gates::held::PassEffects {
        unlock: checkpoint.unlock_capabilities.clone(),
        lock: checkpoint.lock_capabilities.clone(),
        lift: std::collections::BTreeSet::new(),
        inject: checkpoint.inject_contexts.clone(),
        allow: checkpoint.allow_actions.clone(),
        deny: checkpoint.deny_actions.clone(),
    }
}

pub(crate) fn state_change<T: serde::Serialize>(
    kind: StateKind,
    key: &str,
    body: Option<&T>,
) -> Effect {
    Effect::Persist(changed_state(kind, key, body))
}

/// Serialises a piece of state for the store.
pub(crate) fn changed_state<T: serde::Serialize>(
    kind: StateKind,
    key: &str,
    body: Option<&T>,
) -> StateChange {
    StateChange {
        kind,
        key: key.to_owned(),
        // INVARIANT: all state is plain data with string keys, so it always becomes JSON.
        body: body.map(|body| serde_json::to_string(body).unwrap_or_default()),
    }
}
