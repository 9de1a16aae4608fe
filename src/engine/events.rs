//! Session events other than action requests: input, results, errors, context requests, intervals.
//!
//! A gate that fires at such an event blocks the whole session: until it is passed, no request of the session
//! is judged. A gate that is not passed stays required, and is raised again when the session wants to act.
//! Only the gate of refused input is dropped, because that input was not accepted.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use crate::atlas::index::KeywordMatches;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::base::limits::{MAX_ERRORS_PER_SESSION, MAX_TEXT_BYTES};
use crate::trace::event::{Durability, ErrorOccurred, InputReceived};

use super::command::{
    AcceptedEvent, CallerId, DenyCode, ErrorReport, Injected, InputReport, Reply,
};
use super::context_injection::InjectionCause;
use super::evaluation::{self, TriggerEvent};
use super::fired_checkpoint::OwnedFiredCheckpoint;
use super::gate::{GatePresence, HoldRequest};
use super::handler_effects::HandledCommandKind;
use super::held::{ActionCall, HeldSubject, HeldText, SessionEvent, request_hash};
use super::interval::{DueCause, sort_by_priority};
use super::redacted_records::redaction_list;
use super::session::{ReportedError, Session, StartState, UnpassedGates};
use super::transaction::{SpanPosition, Transaction};

/// Result of a run, as checkpoints see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunResult {
    /// The agent reported no error.
    Succeeded,
    /// The agent reported an error.
    Failed,
}

impl Transaction<'_> {
    /// Handles input that an agent received.
    pub(super) fn input(&mut self, ask: CallerId, input: &InputReport) {
        if self.live_session(&input.session).is_none() {
            self.deny_unknown_session(ask, &input.session);
            return;
        }
        if let Some((code, reason)) = self.process_input(Some(ask), input) {
            self.deny(ask, code, reason);
        }
    }

    /// Processes input. Returns the reason if the input is refused at once.
    pub(super) fn process_input(
        &mut self,
        ask: Option<CallerId>,
        input: &InputReport,
    ) -> Option<(DenyCode, String)> {
        let place = self.begin_operation(&input.session)?;
        self.raise_due_intervals(&input.session, None);
        let hash = Digest::of(&input.text);
        let seen = self.sightings(hash, &input.text);
        let occasion = TriggerEvent::Input {
            text: &input.text,
            seen: &seen,
        };
        let fired = self.fired_on(&input.session, occasion);
        let (mut fired, dropped) = self.within_budget(fired, |fired| &fired.checkpoint);
        // A due interval belongs to no input, so the budget of inputs does not count it.
        let due = self.due_with_event(&input.session, DueCause::OnInput);
        let record = InputReceived {
            input_hash: hash.to_string(),
            input_size_bytes: input.text.len() as u64,
            source: input.source,
            checkpoints_triggered: fired
                .iter()
                .chain(&due)
                .map(|fired| fired.checkpoint.id.clone())
                .collect(),
        };
        self.record(&place, record);
        for dropped in &dropped {
            self.record_skipped(&place, dropped, "limit reached: max_checkpoints_per_input");
        }
        let moment = SessionEvent {
            kind: "keyword_match".to_owned(),
            label: "input".to_owned(),
            data: json!({ "input_hash": hash.to_string() }),
            event: None,
            text: Some(HeldText::new(&input.text)),
            reached_agent: input.reaches_asked_agent,
        };
        let subject = HeldSubject::Moment(moment.clone());
        let handled =
            self.apply_handler_outcomes(&place, &subject, &mut fired, HandledCommandKind::Input);
        if let Some(stop) = handled.stop {
            // Refused input injects nothing.
            return Some((DenyCode::Extension, stop.reason));
        }
        if fired.iter().any(OwnedFiredCheckpoint::is_gate)
            && let Some(reason) = self.overload(&input.session)
        {
            return Some((DenyCode::Overload, reason));
        }
        fired.extend(due);
        sort_by_priority(&mut fired);
        self.store_interval_firings(&input.session, &fired);
        self.record_keyword_request(&place, &seen.injecting_keywords());
        let given = self.give_on(&place, InjectionCause::Input(&seen));
        self.add_pending_injections(&input.session, given);
        self.add_pending_injections(&input.session, handled.injected);
        self.happen(ask, &place, moment, &fired, handled.input);
        None
    }

    /// Runs the checkpoints and handlers of an event that has already happened. If a handler stops it, it is
    /// held for an operator.
    ///
    /// `call` is the action that the handlers received, if any.
    pub(super) fn run_event_handlers(
        &mut self,
        ask: Option<CallerId>,
        place: &SpanPosition,
        moment: SessionEvent,
        call: Option<&ActionCall>,
        mut fired: Vec<OwnedFiredCheckpoint>,
    ) {
        let subject = HeldSubject::Moment(moment.clone());
        let handled = self.apply_handler_outcomes_for(
            place,
            (&subject, call),
            &mut fired,
            HandledCommandKind::Event,
        );
        self.add_pending_injections(&place.session, handled.injected);
        self.happen(ask, place, moment, &fired, None);
    }

    /// Handles an error that an agent reports.
    pub(super) fn report_error(&mut self, ask: CallerId, report: &ErrorReport) {
        let Some(place) = self.event_position(ask, &report.session) else {
            return;
        };
        let texts = [Some(&report.message), Some(&report.error_type)];
        let texts = texts
            .into_iter()
            .chain([report.error_code.as_ref(), report.stack_trace.as_ref()]);
        if texts.flatten().any(|text| text.len() > MAX_TEXT_BYTES) {
            let reason = format!("an error report must have at most {MAX_TEXT_BYTES} bytes");
            self.deny(ask, DenyCode::BadRequest, reason);
            return;
        }
        let record = self.error_record(report);
        let event = self.record_as(&place, record, Durability::Async);
        self.store_error(&place, &event);
        self.expire_guidance(&report.session, &["error_occurred"]);
        let fired = self.fired_on(&report.session, TriggerEvent::ErrorReported);
        let moment = SessionEvent {
            kind: "error_occurred".to_owned(),
            label: "error".to_owned(),
            data: json!({ "error_type": report.error_type }),
            event: Some(event),
            text: Some(HeldText::new(&report.message)),
            reached_agent: false,
        };
        self.run_event_handlers(Some(ask), &place, moment, None, fired);
    }

    /// Handles the end of an action. A failed action also fires the error checkpoints.
    pub(super) fn run_action_post_checkpoints(
        &mut self,
        place: &SpanPosition,
        action: &str,
        run: RunResult,
    ) {
        let (occasion, over): (_, &[&str]) = match run {
            RunResult::Succeeded => (TriggerEvent::ActionSucceeded(action), &["action_post"]),
            RunResult::Failed => (
                TriggerEvent::ActionFailed(action),
                &["action_post", "error_occurred"],
            ),
        };
        self.expire_guidance(&place.session, over);
        let fired = self.fired_on(&place.session, occasion);
        let moment = SessionEvent {
            kind: "action_post".to_owned(),
            label: format!("after {action}"),
            data: match run {
                RunResult::Succeeded => json!({ "action_id": action }),
                RunResult::Failed => json!({ "action_id": action, "success": false }),
            },
            event: None,
            text: None,
            reached_agent: false,
        };
        self.run_event_handlers(None, place, moment, None, fired);
    }

    /// Fires the checkpoints of a session's end. They cannot hold it any more. Returns the last injections.
    pub(super) fn run_end_checkpoints(
        &mut self,
        session: &SessionId,
        place: &SpanPosition,
    ) -> Injected {
        let subject = HeldSubject::Moment(SessionEvent {
            kind: "session_end".to_owned(),
            label: "session_end".to_owned(),
            data: json!({}),
            event: None,
            text: None,
            reached_agent: false,
        });
        let mut fired = self.fired_on(session, TriggerEvent::SessionEnd);
        let handled =
            self.apply_handler_outcomes(place, &subject, &mut fired, HandledCommandKind::End);
        // A handler cannot stop the end of a session. If it tries to, its injections are dropped.
        let mut given = handled.injected;
        for fired in fired {
            given.extend(self.apply_non_blocking(place, &fired, &subject, GatePresence::NoGate));
        }
        given
    }

    /// Runs the checkpoints of an event: applies the non-blocking ones and holds the others.
    ///
    /// The caller gets its reply at once, or when the gates are decided.
    pub(super) fn happen(
        &mut self,
        ask: Option<CallerId>,
        place: &SpanPosition,
        moment: SessionEvent,
        fired: &[OwnedFiredCheckpoint],
        modified_input: Option<String>,
    ) {
        let subject = HeldSubject::Moment(moment.clone());
        let beside = self.withhold_if_gated(fired);
        let (mut given, raised) = self.apply_in_order(place, &subject, fired, beside);
        let advice = fired
            .iter()
            .filter(|fired| fired.certain && fired.is_advisory());
        let advice = advice.map(OwnedFiredCheckpoint::advisory_effects).collect();
        let withheld = self.withheld_for_gate.take().unwrap_or_default();
        if raised.is_empty() {
            given.extend(self.inject_withheld(place, withheld));
            self.reply_accepted_with(ask, &place.session, given, modified_input, moment.event);
            return;
        }
        let checkpoints: BTreeSet<_> = raised
            .iter()
            .map(|raised| raised.gate.origin.id().to_owned())
            .collect();
        let hash = request_hash(&place.session, &moment.label, &moment.data);
        let request = HoldRequest {
            subject,
            hash,
            place: place.clone(),
            deadline: None,
            same_call: None,
            withheld,
            advice,
            modified_input,
        };
        let gate = match self.overload(&place.session) {
            None => self.hold_request(ask, request, raised),
            Some(reason) => {
                if let Some(ask) = ask {
                    self.deny(ask, DenyCode::Overload, reason);
                }
                None
            }
        };
        if let Some(session) = self.state().sessions.get_mut(&place.session) {
            match gate {
                Some(gate) => drop(session.pending.insert(gate)),
                // Too many requests are held: the gate stays required, so the session stays closed. One entry
                // is enough.
                None if session.requires(&checkpoints) => {}
                None => session.unpassed.push(UnpassedGates {
                    moment: moment.without_text(),
                    checkpoints,
                }),
            }
        }
        self.mark_changed(&place.session);
    }

    /// Returns whether a gate is among fired checkpoints. If so, injections are withheld from now on.
    fn withhold_if_gated(&mut self, fired: &[OwnedFiredCheckpoint]) -> GatePresence {
        if !fired.iter().any(OwnedFiredCheckpoint::is_gate) {
            return GatePresence::NoGate;
        }
        self.withheld_for_gate.get_or_insert_default();
        GatePresence::Gate
    }

    /// Replies that the event was accepted, with the session's pending injections.
    pub(super) fn reply_accepted(
        &mut self,
        ask: Option<CallerId>,
        session: &SessionId,
        given: Injected,
    ) {
        self.reply_accepted_with(ask, session, given, None, None);
    }

    /// Replies that the event was accepted, with the rewritten input or the event of the error.
    pub(super) fn reply_accepted_with(
        &mut self,
        ask: Option<CallerId>,
        session: &SessionId,
        given: Injected,
        modified_input: Option<String>,
        error: Option<EventId>,
    ) {
        self.add_pending_injections(session, given);
        let Some(ask) = ask else { return };
        let given = self.take_pending_injections(session);
        self.amend_error(error.as_ref(), &given);
        self.mark_changed(session);
        let held = self.live_session(session).map(Session::blocking_gates);
        let accepted = AcceptedEvent {
            given,
            modified_input,
            error,
            held: held.unwrap_or_default(),
            ..AcceptedEvent::default()
        };
        self.reply(ask, Reply::Accepted(accepted));
    }

    /// Continues with parked requests when no gate blocks the session any more.
    pub(super) fn resume_parked(&mut self, session: &SessionId) {
        let known = self.engine.state.sessions.get(session);
        if known.is_some_and(|known| known.entry == StartState::Open && known.pending.is_empty()) {
            self.release_parked(session);
        } else {
            self.ask_parked(session);
        }
    }

    pub(super) fn fired_on(
        &self,
        session: &SessionId,
        occasion: TriggerEvent<'_>,
    ) -> Vec<OwnedFiredCheckpoint> {
        let Some(known) = self.engine.state.sessions.get(session) else {
            return Vec::new();
        };
        let customs = self.custom_triggers(&self.answers);
        let fired =
            evaluation::fired_on_event(&self.engine.atlases, known, occasion, customs, self.now);
        fired.into_iter().map(Into::into).collect()
    }

    /// Returns the keywords found in an input, from the cache if possible.
    pub(super) fn sightings(&mut self, input: Digest, text: &str) -> Arc<KeywordMatches> {
        let now = self.now;
        if let Some(seen) = self.engine.state.caches.keywords(input, now) {
            return Arc::clone(seen);
        }
        let seen = Arc::new(KeywordMatches::of(&self.engine.atlases, text));
        let until = now.plus(self.engine.cache_ttl(|cache| cache.keyword_ttl_seconds));
        let kept = Arc::clone(&seen);
        self.state().caches.keep_keywords(input, kept, until);
        seen
    }

    /// Returns the span position for the records of an event. `None`, after a denial, if the session does not
    /// exist.
    pub(super) fn event_position(
        &mut self,
        ask: CallerId,
        session: &SessionId,
    ) -> Option<SpanPosition> {
        if self.live_session(session).is_none() {
            self.deny_unknown_session(ask, session);
        }
        self.place_in(session)
    }

    fn place_in(&mut self, session: &SessionId) -> Option<SpanPosition> {
        self.live_session(session)?;
        self.adopt_loaded_atlases(session);
        self.new_position(session)
    }

    /// Returns the span position for input. Later actions of the session belong to the same trace.
    fn begin_operation(&mut self, session: &SessionId) -> Option<SpanPosition> {
        self.live_session(session)?;
        self.adopt_loaded_atlases(session);
        let operation = self.new_trace();
        if let Some(known) = self.state().sessions.get_mut(session) {
            known.operation = Some(operation);
        }
        self.mark_changed(session);
        self.new_position(session)
    }

    fn error_record(&self, report: &ErrorReport) -> ErrorOccurred {
        let mut redactor = self.redactor(None);
        let mut option = |field: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| redactor.redact_text(field, text))
        };
        let error_code = option("error_code", &report.error_code);
        let stack_trace = option("stack_trace", &report.stack_trace);
        ErrorOccurred {
            error_type: redactor.redact_text("error_type", &report.error_type),
            error_code,
            message: redactor.redact_text("message", &report.message),
            recoverable: report.recoverable,
            context_provided: None,
            stack_trace,
            redacted: redaction_list(redactor.into_redactions()),
        }
    }

    /// Stores an error, so that the agent can report its recovery.
    fn store_error(&mut self, place: &SpanPosition, event: &EventId) {
        if let Some(session) = self.state().sessions.get_mut(&place.session) {
            while session.errors.len() >= MAX_ERRORS_PER_SESSION {
                // Event identifiers are ordered by time.
                session.errors.pop_first();
            }
            let reported = ReportedError {
                trace_id: place.trace_id.clone(),
                span_id: place.span_id.clone(),
            };
            session.errors.insert(event.clone(), reported);
        }
        self.mark_changed(&place.session);
    }
}
