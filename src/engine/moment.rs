//! Session events other than action requests: input, results, errors, context requests, intervals.
//!
//! A gate that fires at such an event blocks the whole session: until it is passed, no request of the session
//! is judged. A gate that is not passed stays required, and is raised again when the session wants to act.
//! Only the gate of refused input is dropped, because that input was not accepted.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use crate::atlas::index::Sightings;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::base::limits::{MAX_ERRORS_PER_SESSION, MAX_TEXT_BYTES};
use crate::trace::event::{Durability, ErrorOccurred, InputReceived};

use super::command::{Accepted, AskId, DenyCode, ErrorReport, Given, Input, Reply};
use super::context::Cause;
use super::evaluate::{self, Occasion};
use super::fired::OwnedFired;
use super::gate::{Beside, Request};
use super::handle::Handling;
use super::held::{ActionCall, HeldText, Moment, Subject, request_hash};
use super::interval::{Due, in_priority_order};
use super::recorded::listed;
use super::session::{Entry, Reported, Session, Unpassed};
use super::turn::{Place, Turn};

/// Result of a run, as checkpoints see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunResult {
    /// The agent reported no error.
    Succeeded,
    /// The agent reported an error.
    Failed,
}

impl Turn<'_> {
    /// Handles input that an agent received.
    pub(super) fn input(&mut self, ask: AskId, input: &Input) {
        if self.live(&input.session).is_none() {
            self.deny_session(ask, &input.session);
            return;
        }
        if let Some((code, reason)) = self.hear_input(Some(ask), input) {
            self.deny(ask, code, reason);
        }
    }

    /// Processes input. Returns the reason if the input is refused at once.
    pub(super) fn hear_input(
        &mut self,
        ask: Option<AskId>,
        input: &Input,
    ) -> Option<(DenyCode, String)> {
        let place = self.begin_operation(&input.session)?;
        self.raise_due(&input.session, None);
        let hash = Digest::of(&input.text);
        let seen = self.sightings(hash, &input.text);
        let occasion = Occasion::Input {
            text: &input.text,
            seen: &seen,
        };
        let fired = self.fired_on(&input.session, occasion);
        let (mut fired, dropped) = self.within_budget(fired, |fired| &fired.checkpoint);
        // A due interval belongs to no input, so the budget of inputs does not count it.
        let due = self.due_along(&input.session, Due::OnInput);
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
            self.record_skipped(&place, dropped, "max_checkpoints_per_input is used up");
        }
        let moment = Moment {
            kind: "keyword_match".to_owned(),
            label: "input".to_owned(),
            data: json!({ "input_hash": hash.to_string() }),
            event: None,
            text: Some(HeldText::new(&input.text)),
            reached_agent: input.reaches_asked_agent,
        };
        let subject = Subject::Moment(moment.clone());
        let handled = self.handle_fired(&place, &subject, &mut fired, Handling::Input);
        if let Some(stop) = handled.stop {
            // Refused input injects nothing.
            return Some((DenyCode::Extension, stop.reason));
        }
        if fired.iter().any(OwnedFired::is_gate)
            && let Some(reason) = self.overload(&input.session)
        {
            return Some((DenyCode::Overload, reason));
        }
        fired.extend(due);
        in_priority_order(&mut fired);
        self.note_beats(&input.session, &fired);
        self.record_calling(&place, &seen.calling());
        let given = self.give_on(&place, Cause::Input(&seen));
        self.owe(&input.session, given);
        self.owe(&input.session, handled.given);
        self.happen(ask, &place, moment, &fired, handled.input);
        None
    }

    /// Runs the checkpoints and handlers of an event that has already happened. If a handler stops it, it is
    /// held for an operator.
    ///
    /// `call` is the action that the handlers received, if any.
    pub(super) fn occur(
        &mut self,
        ask: Option<AskId>,
        place: &Place,
        moment: Moment,
        call: Option<&ActionCall>,
        mut fired: Vec<OwnedFired>,
    ) {
        let subject = Subject::Moment(moment.clone());
        let handled = self.handle_fired_for(place, (&subject, call), &mut fired, Handling::Moment);
        self.owe(&place.session, handled.given);
        self.happen(ask, place, moment, &fired, None);
    }

    /// Handles an error that an agent reports.
    pub(super) fn report_error(&mut self, ask: AskId, report: &ErrorReport) {
        let Some(place) = self.moment_place(ask, &report.session) else {
            return;
        };
        let texts = [Some(&report.message), Some(&report.error_type)];
        let texts = texts
            .into_iter()
            .chain([report.error_code.as_ref(), report.stack_trace.as_ref()]);
        if texts.flatten().any(|text| text.len() > MAX_TEXT_BYTES) {
            let reason = format!("an error is reported in at most {MAX_TEXT_BYTES} bytes");
            self.deny(ask, DenyCode::BadRequest, reason);
            return;
        }
        let record = self.error_record(report);
        let event = self.record_as(&place, record, Durability::Async);
        self.remember_error(&place, &event);
        self.expire_guidance(&report.session, &["error_occurred"]);
        let fired = self.fired_on(&report.session, Occasion::Error);
        let moment = Moment {
            kind: "error_occurred".to_owned(),
            label: "error".to_owned(),
            data: json!({ "error_type": report.error_type }),
            event: Some(event),
            text: Some(HeldText::new(&report.message)),
            reached_agent: false,
        };
        self.occur(Some(ask), &place, moment, None, fired);
    }

    /// Handles the end of an action. A failed action also fires the error checkpoints.
    pub(super) fn after_action(&mut self, place: &Place, action: &str, run: RunResult) {
        let (occasion, over): (_, &[&str]) = match run {
            RunResult::Succeeded => (Occasion::Done(action), &["action_post"]),
            RunResult::Failed => (Occasion::Failed(action), &["action_post", "error_occurred"]),
        };
        self.expire_guidance(&place.session, over);
        let fired = self.fired_on(&place.session, occasion);
        let moment = Moment {
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
        self.occur(None, place, moment, None, fired);
    }

    /// Fires the checkpoints of a session's end. They cannot hold it any more. Returns the last injections.
    pub(super) fn before_end(&mut self, session: &SessionId, place: &Place) -> Given {
        let subject = Subject::Moment(Moment {
            kind: "session_end".to_owned(),
            label: "session_end".to_owned(),
            data: json!({}),
            event: None,
            text: None,
            reached_agent: false,
        });
        let mut fired = self.fired_on(session, Occasion::SessionEnd);
        let handled = self.handle_fired(place, &subject, &mut fired, Handling::End);
        // A handler cannot stop the end of a session. If it tries to, its injections are dropped.
        let mut given = handled.given;
        for fired in fired {
            given.extend(self.apply_passing(place, &fired, &subject, Beside::Nothing));
        }
        given
    }

    /// Runs the checkpoints of an event: applies the non-blocking ones and holds the others.
    ///
    /// The caller gets its reply at once, or when the gates are decided.
    pub(super) fn happen(
        &mut self,
        ask: Option<AskId>,
        place: &Place,
        moment: Moment,
        fired: &[OwnedFired],
        modified_input: Option<String>,
    ) {
        let subject = Subject::Moment(moment.clone());
        let beside = self.beside_gates(fired);
        let (mut given, raised) = self.fire_in_order(place, &subject, fired, beside);
        let advice = fired
            .iter()
            .filter(|fired| fired.certain && fired.is_advice());
        let advice = advice.map(OwnedFired::advice).collect();
        let withheld = self.beside_gate.take().unwrap_or_default();
        if raised.is_empty() {
            given.extend(self.give_withheld(place, withheld));
            self.accept_modified(ask, &place.session, given, modified_input, moment.event);
            return;
        }
        let checkpoints: BTreeSet<_> = raised
            .iter()
            .map(|raised| raised.gate.origin.id().to_owned())
            .collect();
        let hash = request_hash(&place.session, &moment.label, &moment.data);
        let request = Request {
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
            None => self.hold(ask, request, raised),
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
                None if session.owes(&checkpoints) => {}
                None => session.unpassed.push(Unpassed {
                    moment: moment.without_text(),
                    checkpoints,
                }),
            }
        }
        self.touch(&place.session);
    }

    /// Returns whether a gate is among fired checkpoints. If so, injections are withheld from now on.
    fn beside_gates(&mut self, fired: &[OwnedFired]) -> Beside {
        if !fired.iter().any(OwnedFired::is_gate) {
            return Beside::Nothing;
        }
        self.beside_gate.get_or_insert_default();
        Beside::Gate
    }

    /// Replies that the event was accepted, with the session's pending injections.
    pub(super) fn accept(&mut self, ask: Option<AskId>, session: &SessionId, given: Given) {
        self.accept_modified(ask, session, given, None, None);
    }

    /// Replies that the event was accepted, with the rewritten input or the event of the error.
    pub(super) fn accept_modified(
        &mut self,
        ask: Option<AskId>,
        session: &SessionId,
        given: Given,
        modified_input: Option<String>,
        error: Option<EventId>,
    ) {
        self.owe(session, given);
        let Some(ask) = ask else { return };
        let given = self.take_owed(session);
        self.amend_error(error.as_ref(), &given);
        self.touch(session);
        let held = self.live(session).map(Session::closed_by);
        let accepted = Accepted {
            given,
            modified_input,
            error,
            held: held.unwrap_or_default(),
            ..Accepted::default()
        };
        self.reply(ask, Reply::Accepted(accepted));
    }

    /// Continues with parked requests when no gate blocks the session any more.
    pub(super) fn go_on(&mut self, session: &SessionId) {
        let known = self.engine.state.sessions.get(session);
        if known.is_some_and(|known| known.entry == Entry::Open && known.pending.is_empty()) {
            self.release_parked(session);
        } else {
            self.ask_parked(session);
        }
    }

    pub(super) fn fired_on(&self, session: &SessionId, occasion: Occasion<'_>) -> Vec<OwnedFired> {
        let Some(known) = self.engine.state.sessions.get(session) else {
            return Vec::new();
        };
        let customs = self.customs(&self.answers);
        let fired = evaluate::on(&self.engine.atlases, known, occasion, customs, self.now);
        fired.into_iter().map(Into::into).collect()
    }

    /// Returns the keywords found in an input, from the cache if possible.
    pub(super) fn sightings(&mut self, input: Digest, text: &str) -> Arc<Sightings> {
        let now = self.now;
        if let Some(seen) = self.engine.state.caches.keywords(input, now) {
            return Arc::clone(seen);
        }
        let seen = Arc::new(Sightings::of(&self.engine.atlases, text));
        let until = now.plus(self.engine.cache_ttl(|cache| cache.keyword_ttl_seconds));
        let kept = Arc::clone(&seen);
        self.state().caches.keep_keywords(input, kept, until);
        seen
    }

    /// Returns the span position for the records of an event. `None`, after a denial, if the session does not
    /// exist.
    pub(super) fn moment_place(&mut self, ask: AskId, session: &SessionId) -> Option<Place> {
        if self.live(session).is_none() {
            self.deny_session(ask, session);
        }
        self.place_in(session)
    }

    fn place_in(&mut self, session: &SessionId) -> Option<Place> {
        self.live(session)?;
        self.renew(session);
        self.new_place(session)
    }

    /// Returns the span position for input. Later actions of the session belong to the same trace.
    fn begin_operation(&mut self, session: &SessionId) -> Option<Place> {
        self.live(session)?;
        self.renew(session);
        let operation = self.new_trace();
        if let Some(known) = self.state().sessions.get_mut(session) {
            known.operation = Some(operation);
        }
        self.touch(session);
        self.new_place(session)
    }

    fn error_record(&self, report: &ErrorReport) -> ErrorOccurred {
        let mut redactor = self.redactor(None);
        let mut option = |field: &str, text: &Option<String>| {
            let text = text.as_ref();
            text.map(|text| redactor.text(field, text))
        };
        let error_code = option("error_code", &report.error_code);
        let stack_trace = option("stack_trace", &report.stack_trace);
        ErrorOccurred {
            error_type: redactor.text("error_type", &report.error_type),
            error_code,
            message: redactor.text("message", &report.message),
            recoverable: report.recoverable,
            context_provided: None,
            stack_trace,
            redacted: listed(redactor.left_out()),
        }
    }

    /// Stores an error, so that the agent can report its recovery.
    fn remember_error(&mut self, place: &Place, event: &EventId) {
        if let Some(session) = self.state().sessions.get_mut(&place.session) {
            while session.errors.len() >= MAX_ERRORS_PER_SESSION {
                // Event identifiers are ordered by time.
                session.errors.pop_first();
            }
            let reported = Reported {
                trace_id: place.trace_id.clone(),
                span_id: place.span_id.clone(),
            };
            session.errors.insert(event.clone(), reported);
        }
        self.touch(&place.session);
    }
}
