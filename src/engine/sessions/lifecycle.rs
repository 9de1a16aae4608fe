//! Session lifecycle: start, start gates, parked requests, and end.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::atlas::document::{CheckpointMode, Respondent};
use crate::atlas::model::{Checkpoint, Trigger};
use crate::base::clock::Timestamp;
use crate::base::id::{HeldRequestId, SessionId};
use crate::base::limits::{MAX_NAME_LEN, MAX_TEXT_BYTES};
use crate::base::text::one_line;
use crate::trace::event::{Environment, SessionEnded, SessionStarted as StartedRecord};

use super::session::{Session, StartState};
use super::successor::{ended_record, predecessor, take_over_predecessor};
use crate::engine::admission::access::{
    admission_denial, deny_unknown_session, foreign_session_denial,
};
use crate::engine::admission::misuse::{ShownSecret, forget_misuse, record_takeover_attempt};
use crate::engine::admission::session_limits::make_room;
use crate::engine::command::{
    AgentQuestions, AgentReply, DeliveryTime, DenyCode, EndSession, HeldOutcome, Injected,
    OnDisconnect, ReplyId, StartSession, StartedSession, StateKind,
};
use crate::engine::evaluation;
use crate::engine::evaluation::TriggerEvent;
use crate::engine::evaluation::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use crate::engine::extensions::handler_effects::{HandledCommandKind, apply_handler_outcomes};
use crate::engine::extensions::handler_outcomes::{HandlerStop, handlers_of};
use crate::engine::extensions::handler_records::record_loaded_plugins;
use crate::engine::extensions::required_calls::{
    CallSubject, HandledCheckpoints, require_handler_answers,
};
use crate::engine::gates::agent_answers::agent_questions;
use crate::engine::gates::held::{HeldSubject, request_hash};
use crate::engine::gates::holding::{
    GrantTiming, HoldRequest, NewGate, SESSION_START, apply_in_order, build_checkpoint_gate,
    hold_request, start_params,
};
use crate::engine::gates::session_gates::refuse_parked;
use crate::engine::gates::settlement::withdraw_held;
use crate::engine::injection::automatic_contexts::{InjectionCause, inject_automatic_contexts};
use crate::engine::injection::delivery::deliver_injected;
use crate::engine::injection::withholding::{
    deliver_withheld, take_pending_injections, withhold_from_session,
};
use crate::engine::pipeline::StageResult;
use crate::engine::records::redaction::{new_redactor, redaction_list};
use crate::engine::requests::events::{evaluate_event, run_end_checkpoints};
use crate::engine::transaction::{SpanPosition, Transaction};

/// Reason for which a gate is voided.
pub(crate) const ATLAS_CHANGED: &str = "the Atlas changed; cra checks the request again";

pub(crate) fn start_session(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    start: &StartSession,
) -> StageResult {
    if let Some(session_state) = tx.engine.state.sessions.get(&start.session) {
        let reply = if !session_state.belongs_to(start) {
            let from = start.owner.as_ref().and_then(|owner| owner.from.as_ref());
            record_takeover_attempt(tx, &start.session, from, ShownSecret::Wrong);
            AgentReply::Denied(foreign_session_denial(&start.session))
        } else if let Some(denied) = admission_denial(tx, start) {
            AgentReply::Denied(denied)
        } else {
            resume_session(tx, start)?
        };
        tx.reply_to_agent(reply_id, reply);
        return Ok(());
    }
    if let Some(denied) = admission_denial(tx, start) {
        tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
        return Ok(());
    }
    if tx.engine.state.ended.contains(&start.session) {
        deny_unknown_session(tx, reply_id, &start.session);
        return Ok(());
    }
    if let Some(fault) = start_fault(start) {
        tx.deny(reply_id, DenyCode::BadRequest, fault);
        return Ok(());
    }
    if let Err(denied) = make_room(tx, start) {
        tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
        return Ok(());
    }
    let predecessor = match predecessor(tx, &start.session) {
        Ok(predecessor) => predecessor,
        Err(denied) => {
            tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
            return Ok(());
        }
    };
    let record = started_record(tx, start);
    let handled = evaluate_first_start(tx, start, &record.agent_type, predecessor.as_ref())?;
    let spans = (tx.new_trace(), tx.new_span());
    let mut session = Session::new(
        start.session.clone(),
        record.agent_type.clone(),
        start.intent.clone(),
        spans,
        tx.engine.atlas_hash,
        tx.now,
    );
    if let (Some(intent), Some(kept)) = (&mut session.intent, &record.intent) {
        intent.recorded.clone_from(kept);
    }
    session.set_owner(start);
    if let Some(predecessor) = predecessor {
        take_over_predecessor(tx, &mut session, predecessor);
    }
    let position = session_position(&session);
    let mut record = started_record(tx, start);
    record.continues.clone_from(&session.continues);
    tx.state().add_session(session);
    tx.record(&position, record);
    record_loaded_plugins(tx, &position);
    let mut injected = enter_first(tx, &start.session, &position, handled);
    if start.delivery == DeliveryTime::Later {
        add_pending_injections(tx, &start.session, std::mem::take(&mut injected));
    }
    tx.name_initial_contexts(&injected);
    let started = started_reply(tx, &start.session, injected);
    tx.reply_to_agent(reply_id, started);
    Ok(())
}

/// Resumes a started session: the agent, or this process, came back.
fn resume_session(tx: &mut Transaction<'_>, start: &StartSession) -> StageResult<AgentReply> {
    let session = &start.session;
    let before = tx.live_session(session).cloned();
    adopt_loaded_atlases(tx, session)?;
    reopen_start_gate(tx, session);
    if let Some(position) = tx.live_session(session).map(session_position) {
        record_loaded_plugins(tx, &position);
    }
    let injected = match start.delivery {
        DeliveryTime::Now => take_pending_injections(tx, session),
        DeliveryTime::Later => Injected::default(),
    };
    // Agents that start one process per question resume the session with each of them.
    if tx.live_session(session) != before.as_ref() {
        tx.mark_changed(session);
    }
    Ok(started_reply(tx, session, injected))
}

/// Builds the reply to a started session: its gate, and the questions for the agent.
fn started_reply(tx: &Transaction<'_>, session: &SessionId, injected: Injected) -> AgentReply {
    let gate = start_gate(tx, session);
    let waiting = gate
        .as_ref()
        .and_then(|gate| tx.engine.state.held.get(gate));
    let asked = waiting.and_then(|waiting| agent_questions(tx, &waiting.held));
    let session_state = tx.live_session(session);
    AgentReply::Started(StartedSession {
        wrapper_reported: session_state.is_some_and(|session_state| session_state.wrapper_reported),
        asked: asked.into_iter().collect(),
        held: gate.into_iter().collect(),
        injected,
    })
}

/// Evaluates the start of a new session, with the checkpoints that its conversation owes. A conversation
/// that was refused has no start.
fn evaluate_first_start(
    tx: &Transaction<'_>,
    start: &StartSession,
    agent: &str,
    predecessor: Option<&(SessionId, Arc<SessionEnded>)>,
) -> StageResult<HandledCheckpoints> {
    let mut session = Session::hypothetical(
        start.session.clone(),
        agent.to_owned(),
        start.intent.clone(),
        tx.engine.atlas_hash,
        tx.now,
    );
    if let Some((predecessor, ended)) = predecessor {
        session.take_over(predecessor.clone(), ended, tx.now);
    }
    match &session.entry {
        StartState::Refused { .. } => Ok(HandledCheckpoints::default()),
        StartState::Lapsed { owed } => evaluate_start(tx, &session, owed),
        StartState::Open | StartState::Held(_) => evaluate_start(tx, &session, &BTreeSet::new()),
    }
}

/// Evaluates the start of a session, and of the checkpoints that it owes. Fails with the extension calls
/// that are missing.
fn evaluate_start(
    tx: &Transaction<'_>,
    session: &Session,
    owed: &BTreeSet<String>,
) -> StageResult<HandledCheckpoints> {
    let fired = start_checkpoints(tx, session, owed);
    require_handler_answers(tx, fired, CallSubject::of_session(session))
}

/// Runs the checkpoints of a new session's start. A conversation that was refused stays so.
fn enter_first(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    position: &SpanPosition,
    handled: HandledCheckpoints,
) -> Injected {
    match tx
        .live_session(session)
        .map(|session_state| &session_state.entry)
    {
        None | Some(StartState::Refused { .. }) => Injected::default(),
        Some(StartState::Lapsed { .. } | StartState::Open | StartState::Held(_)) => {
            run_start_checkpoints(tx, session, position, handled)
        }
    }
}

/// Runs the checkpoints of a session's start. Where a gate stands there, everything else that they give
/// is withheld.
fn run_start_checkpoints(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    position: &SpanPosition,
    mut handled: HandledCheckpoints,
) -> Injected {
    let closed = StartState::Lapsed {
        owed: BTreeSet::new(),
    };
    let gated = handled.are_gated();
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        // The session is closed until its gate is held. The gate replaces this state below.
        session_state.entry = if gated { closed } else { StartState::Open };
    }
    let mut injected = inject_automatic_contexts(tx, position, InjectionCause::Start);
    let subject = HeldSubject::SessionStart;
    let effects = apply_handler_outcomes(
        tx,
        position,
        &subject,
        &mut handled,
        HandledCommandKind::Start,
    );
    injected.extend(effects.injected);
    if let Some(stop) = effects.stop {
        tx.withheld_for_gate = None;
        refuse_session(tx, session, stop.reason);
        return Injected::default();
    }
    let (more, new_gates) =
        apply_in_order(tx, position, &subject, &handled.fired, GrantTiming::Now);
    injected.extend(more);
    for withheld in tx.withheld_for_gate.take().unwrap_or_default() {
        withhold_from_session(tx, position, withheld);
    }
    hold_start(tx, session, position, new_gates);
    deliver_withheld(tx, session);
    injected
}

/// Moves a session to the loaded Atlases. Returns whether the Atlases had changed.
///
/// Decisions under other Atlases do not count: the session starts anew, and loses what gates granted it.
/// Restrictions by gates, and a refusal, stay.
pub(crate) fn adopt_loaded_atlases(
    tx: &mut Transaction<'_>,
    session: &SessionId,
) -> StageResult<bool> {
    if let Some(gate) = start_gate(tx, session)
        && !tx.engine.state.held.contains(&gate)
    {
        // No operator can answer a gate that is not in the queue.
        mark_start_lapsed(tx, session);
    }
    let atlas_hash = tx.engine.atlas_hash;
    let session_state = tx.engine.state.sessions.get(session);
    let Some(session_state) =
        session_state.filter(|session_state| session_state.atlas_hash != atlas_hash)
    else {
        return Ok(false);
    };
    let handled = match session_state.entry {
        StartState::Refused { .. } => None,
        StartState::Open | StartState::Held(_) | StartState::Lapsed { .. } => {
            Some(evaluate_start(tx, session_state, &BTreeSet::new())?)
        }
    };
    let pending = session_state.pending.clone();
    for gate in start_gate(tx, session).into_iter().chain(pending) {
        withdraw_held(tx, &gate, HeldOutcome::Voided, ATLAS_CHANGED);
    }
    let Some(session_state) = tx.state().sessions.get_mut(session) else {
        return Ok(false);
    };
    session_state.atlas_hash = atlas_hash;
    session_state.unlocked.clear();
    session_state.passed.clear();
    session_state.allowed.clear();
    session_state.withheld.clear();
    let position = session_position(session_state);
    tx.mark_changed(session);
    if let Some(handled) = handled {
        let injected = run_start_checkpoints(tx, session, &position, handled);
        add_pending_injections(tx, session, injected);
    }
    Ok(true)
}

fn refuse_session(tx: &mut Transaction<'_>, session: &SessionId, reason: String) {
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        session_state.refuse(reason);
    }
    tx.mark_changed(session);
}

/// Stores injections of a session until a reply can carry them.
pub(crate) fn add_pending_injections(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    injected: Injected,
) {
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        session_state.pending_injections.extend(injected);
    }
    tx.mark_changed(session);
}

fn mark_start_lapsed(tx: &mut Transaction<'_>, session: &SessionId) {
    // It is not known any more which of them had fired, so all of them are required.
    let checkpoints = tx
        .engine
        .atlases
        .iter()
        .flat_map(|atlas| &atlas.checkpoints);
    let starts =
        checkpoints.filter(|checkpoint| matches!(checkpoint.trigger, Trigger::SessionStart));
    let owed = starts.map(|checkpoint| checkpoint.id.clone()).collect();
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        session_state.entry = StartState::Lapsed { owed };
    }
    tx.mark_changed(session);
}

/// Holds the start gate of a session again if the first one was not answered. Returns the questions for
/// the agent.
pub(crate) fn reopen_start_gate(
    tx: &mut Transaction<'_>,
    session: &SessionId,
) -> Option<AgentQuestions> {
    let session_state = tx.engine.state.sessions.get(session)?;
    let StartState::Lapsed { owed } = session_state.entry.clone() else {
        return None;
    };
    let position = session_position(session_state);
    let mut fired = start_checkpoints(tx, session_state, &owed);
    fired.retain(|fired| fired.checkpoint.mode == CheckpointMode::Blocking);
    let new_gates = fired
        .iter()
        .map(|fired| build_checkpoint_gate(tx, fired))
        .collect();
    hold_start(tx, session, &position, new_gates);
    let gate = start_gate(tx, session)?;
    agent_questions(tx, &tx.engine.state.held.get(&gate)?.held)
}

/// Returns the start checkpoints that fire now, and those that are still required.
fn start_checkpoints(
    tx: &Transaction<'_>,
    session: &Session,
    owed: &BTreeSet<String>,
) -> Vec<OwnedFiredCheckpoint> {
    let fired = evaluation::fired_at_start(
        &tx.engine.atlases,
        (session, &tx.engine.extensions),
        owed,
        tx.now,
    );
    let mut fired: Vec<OwnedFiredCheckpoint> = fired.into_iter().map(Into::into).collect();
    for fired in &mut fired {
        // A gate that was not passed stays a gate.
        if owed.contains(&fired.checkpoint.id) {
            restore_gate(tx, &mut fired.checkpoint);
        }
    }
    fired
}

/// Makes an unpassed checkpoint a gate again. If it has handlers, only an operator may answer, because
/// the handlers' earlier answers are not known any more.
pub(crate) fn restore_gate(tx: &Transaction<'_>, checkpoint: &mut Checkpoint) {
    checkpoint.mode = CheckpointMode::Blocking;
    if !handlers_of(&tx.engine.extensions, checkpoint).is_empty() {
        checkpoint.respondent = Respondent::Operator;
    }
}

fn hold_start(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    position: &SpanPosition,
    new_gates: Vec<NewGate>,
) {
    let Some(session_state) = tx.engine.state.sessions.get(session) else {
        return;
    };
    let owed = new_gates
        .iter()
        .map(|new_gate| new_gate.gate.origin.id().to_owned())
        .collect();
    let entry = if new_gates.is_empty() {
        StartState::Open
    } else {
        let intent = session_state
            .intent
            .as_ref()
            .map(|intent| intent.original.as_str());
        let params = start_params(&session_state.agent, intent);
        let request = HoldRequest {
            subject: HeldSubject::SessionStart,
            hash: request_hash(session, SESSION_START, &params),
            position: position.clone(),
            deadline: None,
            same_call: None,
            on_disconnect: OnDisconnect::Kept,
            withheld: Vec::new(),
            advice: Vec::new(),
            modified_input: None,
        };
        // If it cannot be held (the queue is full), no operator can be asked, and the session stays
        // closed.
        let held = hold_request(tx, None, request, new_gates);
        held.map_or(StartState::Lapsed { owed }, StartState::Held)
    };
    if let Some(session_state) = tx.state().sessions.get_mut(session) {
        session_state.entry = entry;
    }
    tx.mark_changed(session);
}

fn start_gate(tx: &Transaction<'_>, session: &SessionId) -> Option<HeldRequestId> {
    match &tx.engine.state.sessions.get(session)?.entry {
        StartState::Held(gate) => Some(gate.clone()),
        StartState::Open | StartState::Lapsed { .. } | StartState::Refused { .. } => None,
    }
}

pub(crate) fn end_session(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    end: &EndSession,
) -> StageResult {
    if tx.live_session(&end.session).is_none() {
        deny_unknown_session(tx, reply_id, &end.session);
        return Ok(());
    }
    if end
        .summary
        .as_ref()
        .is_some_and(|text| text.len() > MAX_TEXT_BYTES)
    {
        let reason = format!("the summary of a session must have at most {MAX_TEXT_BYTES} bytes");
        tx.deny(reply_id, DenyCode::BadRequest, reason);
        return Ok(());
    }
    let handled = evaluate_event(tx, &end.session, TriggerEvent::SessionEnd)?;
    let injected = finish_session(tx, end, handled);
    tx.reply_to_agent(reply_id, AgentReply::Ended(injected));
    Ok(())
}

/// Ends a session and all its waiting requests. Returns the injections for the reply.
pub(crate) fn finish_session(
    tx: &mut Transaction<'_>,
    end: &EndSession,
    handled: HandledCheckpoints,
) -> Injected {
    let held = tx.engine.state.held.of_session(&end.session);
    let held: Vec<_> = held.cloned().collect();
    for gate in held {
        withdraw_held(tx, &gate, HeldOutcome::Withdrawn, "the session ended");
    }
    refuse_parked(tx, &end.session, DenyCode::Withdrawn, "the session ended");
    let permits = &mut tx.engine.state.permits;
    for gate in permits.remove_where(|permit| permit.session == end.session) {
        tx.persist::<()>(StateKind::Permit, gate.as_str(), None);
    }
    let ended = &end.session;
    tx.state()
        .resolutions
        .retain(|issued| issued.session != *ended);
    tx.state()
        .pending_attempts
        .retain(|_, begun| !begun.is_of(ended));
    let Some(session) = tx.engine.state.sessions.get(&end.session) else {
        return Injected::default();
    };
    let root = session_position(session);
    let injected = take_final_injections(tx, &root, handled, end.delivery);
    let Some(session) = tx.engine.state.sessions.get(&end.session) else {
        return injected;
    };
    let record = ended_record(tx, session, end.status, end.summary.as_deref());
    let ended = Arc::new(record.clone());
    tx.record_below(&root, record);
    tx.state().remove_session(&end.session);
    forget_misuse(tx, &end.session);
    for key in tx.state().usage.forget(&end.session) {
        tx.persist::<()>(StateKind::Usage, &key, None);
    }
    tx.state().ended.insert_end(end.session.clone(), ended);
    injected
}

/// Fires the checkpoints of a session's end, and delivers all pending injections. Without an agent to
/// receive them, delivers nothing.
fn take_final_injections(
    tx: &mut Transaction<'_>,
    root: &SpanPosition,
    handled: HandledCheckpoints,
    delivery: DeliveryTime,
) -> Injected {
    if delivery == DeliveryTime::Later {
        tx.withheld_for_gate = Some(Vec::new());
        run_end_checkpoints(tx, root, handled);
        tx.withheld_for_gate = None;
        return Injected::default();
    }
    let last = run_end_checkpoints(tx, root, handled);
    tx.withheld_for_gate = None;
    let mut injected = take_pending_injections(tx, &root.session);
    injected.extend(last);
    deliver_injected(tx, &mut injected);
    injected
}

/// Makes the checkpoint whose handler stops the agent a gate.
pub(crate) fn apply_handler_stop(fired: &mut [OwnedFiredCheckpoint], stop: HandlerStop) {
    if let Some(fired) = fired.get_mut(stop.index) {
        make_operator_gate(&mut fired.checkpoint);
        fired.why = stop.reason;
        fired.quotes_request = true;
    }
}

/// Makes the checkpoints whose handlers require an approval gates.
pub(crate) fn require_approvals(
    fired: &mut [OwnedFiredCheckpoint],
    approvals: &[(usize, OwnedRequiredApproval)],
) {
    for (index, approval) in approvals {
        if let Some(fired) = fired.get_mut(*index) {
            make_operator_gate(&mut fired.checkpoint);
            fired.why = format!("{}: {}", approval.why, one_line(&approval.reason));
            fired.quotes_request = true;
        }
    }
}

/// Makes a checkpoint a gate that only an operator may pass.
fn make_operator_gate(checkpoint: &mut Checkpoint) {
    checkpoint.mode = CheckpointMode::Blocking;
    checkpoint.respondent = Respondent::Operator;
}

fn start_fault(start: &StartSession) -> Option<String> {
    if start.session.is_log() {
        let log = SessionId::LOG_PREFIX;
        return Some(format!(
            "a session name must not begin with `{log}` (reserved for logs)"
        ));
    }
    let names = [Some(&start.agent), start.agent_version.as_ref()];
    if names
        .into_iter()
        .flatten()
        .any(|name| name.len() > MAX_NAME_LEN)
    {
        return Some(format!(
            "an agent's name and version must have at most {MAX_NAME_LEN} bytes"
        ));
    }
    let intent = start.intent.as_ref()?;
    (intent.len() > MAX_TEXT_BYTES)
        .then(|| format!("the intent of a session must have at most {MAX_TEXT_BYTES} bytes"))
}

/// Returns the root of a session's span tree.
pub(crate) fn session_position(session: &Session) -> SpanPosition {
    SpanPosition {
        session: session.id.clone(),
        trace_id: session.trace_id.clone(),
        span_id: session.span_id.clone(),
        parent: None,
    }
}

/// Builds the record of a session's start. The initial contexts are added later.
fn started_record(tx: &Transaction<'_>, start: &StartSession) -> StartedRecord {
    let atlases = tx.engine.atlases.iter();
    let mut redactor = new_redactor(tx, None);
    let mut told = |field: &str, text: &Option<String>| {
        let text = text.as_ref()?;
        Some(redactor.redact_text(field, text))
    };
    let intent = told("intent", &start.intent);
    let agent_version = told("agent_version", &start.agent_version);
    let agent_type = redactor.redact_text("agent_type", &start.agent);
    StartedRecord {
        agent_type,
        agent_version,
        wrapper_version: env!("CARGO_PKG_VERSION").to_owned(),
        atlas_ids: atlases.map(|atlas| atlas.id.clone()).collect(),
        initial_contexts: Vec::new(),
        intent,
        environment: Environment {
            platform: std::env::consts::OS.to_owned(),
            runtime: None,
        },
        continues: None,
        judged_under: Vec::new(),
        redacted: redaction_list(redactor.into_redactions()),
    }
}

/// Returns the whole milliseconds from `earlier` to `later`.
pub(crate) fn millis(later: Timestamp, earlier: Timestamp) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}
