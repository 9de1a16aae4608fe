//! Session events other than action requests: input, results, errors, context requests, intervals.
//!
//! A gate that fires at such an event blocks the whole session: until it is passed, no request of the session
//! is judged. A gate that is not passed stays required, and is held again when the session wants to act.
//! Only the gate of refused input is dropped, because that input was not accepted.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use crate::atlas::index::KeywordMatches;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, SessionId};
use crate::base::limits::{MAX_ERRORS_PER_SESSION, MAX_TEXT_BYTES};
use crate::trace::event::{Durability, ErrorOccurred, InputReceived};

use super::attempt::queue_overload;
use crate::engine::admission::access::deny_unknown_session;
use crate::engine::command::{
    AcceptedEvent, AgentReply, DenyCode, ErrorReport, Injected, InputReport, OnDisconnect, ReplyId,
};
use crate::engine::evaluation::fired_checkpoint::OwnedFiredCheckpoint;
use crate::engine::evaluation::{self, TriggerEvent};
use crate::engine::extensions::handler_effects::{
    HandledCommandKind, apply_handler_outcomes, apply_handler_outcomes_for, record_skipped,
};
use crate::engine::extensions::handler_outcomes::within_budget;
use crate::engine::extensions::required_calls::{
    CallSubject, HandledCheckpoints, require_handler_answers, require_trigger_answers,
};
use crate::engine::gates::held::{ActionCall, HeldSubject, HeldText, SessionEvent, request_hash};
use crate::engine::gates::holding::{
    GrantTiming, HoldRequest, apply_in_order, apply_non_blocking, hold_request,
};
use crate::engine::gates::intervals::{
    DueCause, due_with_event, fire_due_intervals, sort_by_priority, store_interval_firings,
};
use crate::engine::gates::session_gates::{
    ask_parked, pass_start_gate, release_parked, release_parked_input,
};
use crate::engine::injection::automatic_contexts::{InjectionCause, inject_automatic_contexts};
use crate::engine::injection::contexts::{expire_guidance, record_keyword_request};
use crate::engine::injection::delivery::amend_error;
use crate::engine::injection::withholding::{inject_withheld, take_pending_injections};
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::records::redaction::{new_redactor, redaction_list};
use crate::engine::sessions::lifecycle::{add_pending_injections, adopt_loaded_atlases};
use crate::engine::sessions::session::{ReportedError, Session, StartState, UnpassedGates};
use crate::engine::transaction::{SpanPosition, Transaction};

/// Result of a run, as checkpoints see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunResult {
    /// The agent reported no error.
    Succeeded,
    /// The agent reported an error.
    Failed,
}

/// Handles input that an agent received.
pub(crate) fn receive_input(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    input: &InputReport,
) -> StageResult {
    if tx.live_session(&input.session).is_none() {
        deny_unknown_session(tx, reply_id, &input.session);
        return Ok(());
    }
    if input.waits_for_start {
        pass_start_gate(tx, reply_id, input)?;
    }
    if let Some((code, reason)) = process_input(tx, Some(reply_id), input)? {
        tx.deny(reply_id, code, reason);
    }
    Ok(())
}

/// Processes input. Returns the reason if the input is refused at once.
pub(crate) fn process_input(
    tx: &mut Transaction<'_>,
    reply_id: Option<ReplyId>,
    input: &InputReport,
) -> StageResult<Option<(DenyCode, String)>> {
    adopt_loaded_atlases(tx, &input.session)?;
    fire_due_intervals(tx, &input.session, None)?;
    let hash = Digest::of(&input.text);
    let seen = find_keywords(tx, hash, &input.text);
    let (mut handled, dropped) = evaluate_input(tx, input, &seen)?;
    // A due interval belongs to no input, so the budget of inputs does not count it.
    let due = due_with_event(tx, &input.session, DueCause::OnInput);
    let Some(position) = begin_operation(tx, &input.session) else {
        return Ok(None);
    };
    let record = InputReceived {
        input_hash: hash.to_string(),
        input_size_bytes: input.text.len() as u64,
        source: input.source,
        checkpoints_triggered: handled
            .fired
            .iter()
            .chain(&due)
            .map(|fired| fired.checkpoint.id.clone())
            .collect(),
    };
    tx.record(&position, record);
    for dropped in &dropped {
        record_skipped(
            tx,
            &position,
            dropped,
            "limit reached: max_checkpoints_per_input",
        );
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
    let effects = apply_handler_outcomes(
        tx,
        &position,
        &subject,
        &mut handled,
        HandledCommandKind::Input,
    );
    if let Some(stop) = effects.stop {
        // Refused input injects nothing.
        return Ok(Some((DenyCode::Extension, stop.reason)));
    }
    let mut fired = handled.fired;
    if fired.iter().any(OwnedFiredCheckpoint::is_gate)
        && let Some(reason) = queue_overload(tx, &input.session)
    {
        return Ok(Some((DenyCode::Overload, reason)));
    }
    fired.extend(due);
    sort_by_priority(&mut fired);
    store_interval_firings(tx, &input.session, &fired);
    record_keyword_request(tx, &position, &seen.injecting_keywords());
    let injected = inject_automatic_contexts(tx, &position, InjectionCause::Input(&seen));
    add_pending_injections(tx, &input.session, injected);
    add_pending_injections(tx, &input.session, effects.injected);
    let rewritten = effects.input;
    hold_or_accept_event(
        tx,
        (reply_id, input.deadline),
        &position,
        moment,
        &fired,
        rewritten,
    );
    Ok(None)
}

/// Evaluates input. Returns the checkpoints that fire and those that exceed the budget, or fails with the
/// extension calls that are missing.
fn evaluate_input(
    tx: &Transaction<'_>,
    input: &InputReport,
    seen: &KeywordMatches,
) -> StageResult<(HandledCheckpoints, Vec<OwnedFiredCheckpoint>)> {
    let Some(session) = tx.live_session(&input.session) else {
        return Err(StageExit::Finished);
    };
    let subject = CallSubject {
        input: Some((&input.text, input.source.as_str())),
        ..CallSubject::of_session(session)
    };
    let text = &input.text;
    let fired = fired_on_session_event(tx, &input.session, TriggerEvent::Input { text, seen });
    require_trigger_answers(tx, &fired, subject)?;
    let (fired, dropped) = within_budget(tx, fired, |fired| &fired.checkpoint);
    let handled = require_handler_answers(tx, fired, subject)?;
    Ok((handled, dropped))
}

/// Evaluates an event other than input. Fails with the extension calls that are missing.
pub(crate) fn evaluate_event(
    tx: &Transaction<'_>,
    session: &SessionId,
    occasion: TriggerEvent<'_>,
) -> StageResult<HandledCheckpoints> {
    let Some(session_state) = tx.live_session(session) else {
        return Err(StageExit::Finished);
    };
    let fired = fired_on_session_event(tx, session, occasion);
    require_handler_answers(tx, fired, CallSubject::of_session(session_state))
}

/// Runs the checkpoints and handlers of an event that has already happened. If a handler stops it, it is
/// held for an operator.
///
/// `call` is the action that the handlers received, if any.
pub(crate) fn run_event_handlers(
    tx: &mut Transaction<'_>,
    reply_id: Option<ReplyId>,
    position: &SpanPosition,
    moment: SessionEvent,
    call: Option<&ActionCall>,
    mut handled: HandledCheckpoints,
) {
    let subject = HeldSubject::Moment(moment.clone());
    let effects = apply_handler_outcomes_for(
        tx,
        position,
        (&subject, call),
        &mut handled,
        HandledCommandKind::Event,
    );
    add_pending_injections(tx, &position.session, effects.injected);
    hold_or_accept_event(tx, (reply_id, None), position, moment, &handled.fired, None);
}

/// Handles an error that an agent reports.
pub(crate) fn report_error(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    report: &ErrorReport,
) -> StageResult {
    adopt_atlases_at_event(tx, reply_id, &report.session)?;
    let texts = [Some(&report.message), Some(&report.error_type)];
    let texts = texts
        .into_iter()
        .chain([report.error_code.as_ref(), report.stack_trace.as_ref()]);
    if texts.flatten().any(|text| text.len() > MAX_TEXT_BYTES) {
        let reason = format!("an error report must have at most {MAX_TEXT_BYTES} bytes");
        tx.deny(reply_id, DenyCode::BadRequest, reason);
        return Ok(());
    }
    let handled = evaluate_event(tx, &report.session, TriggerEvent::ErrorReported)?;
    let Some(position) = tx.new_position(&report.session) else {
        return Ok(());
    };
    let record = error_record(tx, report);
    let event = tx.record_as(&position, record, Durability::Async);
    store_error(tx, &position, &event);
    expire_guidance(tx, &report.session, &["error_occurred"]);
    let moment = SessionEvent {
        kind: "error_occurred".to_owned(),
        label: "error".to_owned(),
        data: json!({ "error_type": report.error_type }),
        event: Some(event),
        text: Some(HeldText::new(&report.message)),
        reached_agent: false,
    };
    run_event_handlers(tx, Some(reply_id), &position, moment, None, handled);
    Ok(())
}

/// Handles the end of an action. A failed action also fires the error checkpoints.
pub(crate) fn run_action_post_checkpoints(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    action: &str,
    run: RunResult,
    handled: HandledCheckpoints,
) {
    let over: &[&str] = match run {
        RunResult::Succeeded => &["action_post"],
        RunResult::Failed => &["action_post", "error_occurred"],
    };
    expire_guidance(tx, &position.session, over);
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
    run_event_handlers(tx, None, position, moment, None, handled);
}

/// Fires the checkpoints of a session's end. They cannot hold it any more. Returns the last injections.
pub(crate) fn run_end_checkpoints(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    mut handled: HandledCheckpoints,
) -> Injected {
    let subject = HeldSubject::Moment(SessionEvent {
        kind: "session_end".to_owned(),
        label: "session_end".to_owned(),
        data: json!({}),
        event: None,
        text: None,
        reached_agent: false,
    });
    let effects = apply_handler_outcomes(
        tx,
        position,
        &subject,
        &mut handled,
        HandledCommandKind::End,
    );
    // A handler cannot stop the end of a session. If it tries to, its injections are dropped.
    let mut injected = effects.injected;
    for fired in handled.fired {
        injected.extend(apply_non_blocking(
            tx,
            position,
            &fired,
            &subject,
            GrantTiming::Now,
        ));
    }
    injected
}

/// Runs the checkpoints of an event: applies the non-blocking ones and holds the others.
///
/// The caller gets its reply at once, or when the gates are decided or it stops waiting.
pub(crate) fn hold_or_accept_event(
    tx: &mut Transaction<'_>,
    (reply_id, deadline): (Option<ReplyId>, Option<Timestamp>),
    position: &SpanPosition,
    moment: SessionEvent,
    fired: &[OwnedFiredCheckpoint],
    modified_input: Option<String>,
) {
    let subject = HeldSubject::Moment(moment.clone());
    let grants = withhold_if_gated(tx, fired);
    let (mut injected, new_gates) = apply_in_order(tx, position, &subject, fired, grants);
    let advice = fired
        .iter()
        .filter(|fired| fired.certain && fired.is_advisory());
    let advice = advice.map(OwnedFiredCheckpoint::advisory_effects).collect();
    let withheld = tx.withheld_for_gate.take().unwrap_or_default();
    if new_gates.is_empty() {
        injected.extend(inject_withheld(tx, position, withheld));
        reply_accepted_with(
            tx,
            reply_id,
            &position.session,
            injected,
            modified_input,
            moment.event,
        );
        return;
    }
    let checkpoints: BTreeSet<_> = new_gates
        .iter()
        .map(|new_gate| new_gate.gate.origin.id().to_owned())
        .collect();
    let hash = request_hash(&position.session, &moment.label, &moment.data);
    let request = HoldRequest {
        subject,
        hash,
        position: position.clone(),
        deadline,
        same_call: None,
        on_disconnect: OnDisconnect::Kept,
        withheld,
        advice,
        modified_input,
    };
    let gate = match queue_overload(tx, &position.session) {
        None => hold_request(tx, reply_id, request, new_gates),
        Some(reason) => {
            if let Some(reply_id) = reply_id {
                tx.deny(reply_id, DenyCode::Overload, reason);
            }
            None
        }
    };
    if let Some(session) = tx.state().sessions.get_mut(&position.session) {
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
    tx.mark_changed(&position.session);
}

/// Returns whether a gate is among fired checkpoints. If so, injections are withheld from now on.
fn withhold_if_gated(tx: &mut Transaction<'_>, fired: &[OwnedFiredCheckpoint]) -> GrantTiming {
    if !fired.iter().any(OwnedFiredCheckpoint::is_gate) {
        return GrantTiming::Now;
    }
    tx.withheld_for_gate.get_or_insert_default();
    GrantTiming::AfterGate
}

/// Replies that the event was accepted, with the session's pending injections.
pub(crate) fn reply_accepted(
    tx: &mut Transaction<'_>,
    reply_id: Option<ReplyId>,
    session: &SessionId,
    injected: Injected,
) {
    reply_accepted_with(tx, reply_id, session, injected, None, None);
}

/// Replies that the event was accepted, with the rewritten input or the event of the error.
pub(crate) fn reply_accepted_with(
    tx: &mut Transaction<'_>,
    reply_id: Option<ReplyId>,
    session: &SessionId,
    injected: Injected,
    modified_input: Option<String>,
    error: Option<EventId>,
) {
    add_pending_injections(tx, session, injected);
    let Some(reply_id) = reply_id else { return };
    let injected = take_pending_injections(tx, session);
    amend_error(tx, error.as_ref(), &injected);
    tx.mark_changed(session);
    let held = tx.live_session(session).map(Session::blocking_gates);
    let accepted = AcceptedEvent {
        injected,
        modified_input,
        error,
        held: held.unwrap_or_default(),
        ..AcceptedEvent::default()
    };
    tx.reply_to_agent(reply_id, AgentReply::Accepted(accepted));
}

/// Continues with parked requests when no gate blocks the session any more, and with parked input when its start
/// gate is passed.
pub(crate) fn resume_parked(tx: &mut Transaction<'_>, session: &SessionId) {
    let session_state = tx.engine.state.sessions.get(session);
    let passed = session_state.map(|session_state| {
        let started = session_state.entry == StartState::Open;
        (started, session_state.pending.is_empty())
    });
    match passed {
        Some((true, true)) => release_parked(tx, session),
        Some((true, false)) => {
            release_parked_input(tx, session);
            ask_parked(tx, session);
        }
        Some((false, _)) | None => ask_parked(tx, session),
    }
}

pub(crate) fn fired_on_session_event(
    tx: &Transaction<'_>,
    session: &SessionId,
    occasion: TriggerEvent<'_>,
) -> Vec<OwnedFiredCheckpoint> {
    let Some(session_state) = tx.engine.state.sessions.get(session) else {
        return Vec::new();
    };
    let customs = tx.custom_triggers();
    let fired =
        evaluation::fired_on_event(&tx.engine.atlases, session_state, occasion, customs, tx.now);
    fired.into_iter().map(Into::into).collect()
}

/// Returns the keywords found in an input, from the cache if possible.
pub(crate) fn find_keywords(
    tx: &mut Transaction<'_>,
    input: Digest,
    text: &str,
) -> Arc<KeywordMatches> {
    let now = tx.now;
    if let Some(seen) = tx.engine.state.caches.keywords(input, now) {
        return Arc::clone(seen);
    }
    let seen = Arc::new(KeywordMatches::of(&tx.engine.atlases, text));
    let until = now.plus(tx.engine.cache_ttl(|cache| cache.keyword_ttl_seconds));
    let kept = Arc::clone(&seen);
    tx.state().caches.keep_keywords(input, kept, until);
    seen
}

/// Moves the session of an event to the loaded Atlases. Denies the event of an unknown session.
pub(crate) fn adopt_atlases_at_event(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    session: &SessionId,
) -> StageResult {
    if tx.live_session(session).is_none() {
        deny_unknown_session(tx, reply_id, session);
        return Err(StageExit::Finished);
    }
    adopt_loaded_atlases(tx, session)?;
    Ok(())
}

/// Returns the span position for input. Later actions of the session belong to the same trace.
fn begin_operation(tx: &mut Transaction<'_>, session: &SessionId) -> Option<SpanPosition> {
    tx.live_session(session)?;
    let operation = tx.new_trace();
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        session_state.operation = Some(operation);
    }
    tx.mark_changed(session);
    tx.new_position(session)
}

fn error_record(tx: &Transaction<'_>, report: &ErrorReport) -> ErrorOccurred {
    let mut redactor = new_redactor(tx, None);
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
fn store_error(tx: &mut Transaction<'_>, position: &SpanPosition, event: &EventId) {
    if let Some(session) = tx.state().sessions.get_mut(&position.session) {
        while session.errors.len() >= MAX_ERRORS_PER_SESSION {
            // Event identifiers are ordered by time.
            session.errors.pop_first();
        }
        let reported = ReportedError {
            trace_id: position.trace_id.clone(),
            span_id: position.span_id.clone(),
        };
        session.errors.insert(event.clone(), reported);
    }
    tx.mark_changed(&position.session);
}
