//! Session lifecycle: start, start gates, parked requests, and end.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::atlas::document::{CheckpointMode, Respondent};
use crate::atlas::model::{Checkpoint, Trigger};
use crate::base::clock::Timestamp;
use crate::base::id::{GateId, SessionId};
use crate::base::limits::{MAX_NAME_LEN, MAX_TEXT_BYTES};
use crate::base::text::one_line;
use crate::trace::event::{Environment, SessionStarted as StartedRecord};

use super::access::foreign_session_denial;
use super::command::{
    AgentQuestions, CallerId, DeliveryTime, DenyCode, EndSession, HeldOutcome, Injected, Reply,
    StartSession, StartedSession, StateKind,
};
use super::context_injection::InjectionCause;
use super::evaluation;
use super::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use super::gate::{GatePresence, HoldRequest, RaisedGate, SESSION_START, start_params};
use super::handler_effects::HandledCommandKind;
use super::handler_outcomes::{HandlerStop, collect_outcomes, handlers_of};
use super::held::{HeldSubject, request_hash};
use super::misuse::ShownSecret;
use super::redacted_records::redaction_list;
use super::session::{Session, StartState};
use super::transaction::{SpanPosition, Transaction};

/// Reason for which a gate is voided.
pub(super) const ATLAS_CHANGED: &str = "the Atlas changed; cra checks the request again";

impl Transaction<'_> {
    pub(super) fn start_session(&mut self, ask: CallerId, start: &StartSession) {
        if let Some(known) = self.engine.state.sessions.get(&start.session) {
            let reply = if !known.belongs_to(start) {
                let from = start.owner.as_ref().and_then(|owner| owner.from.as_ref());
                self.record_takeover_attempt(&start.session, from, ShownSecret::Wrong);
                Reply::Denied(foreign_session_denial(&start.session))
            } else if let Some(denied) = self.admission_denial(start) {
                Reply::Denied(denied)
            } else {
                self.resume_session(&start.session)
            };
            self.reply(ask, reply);
            return;
        }
        if let Some(denied) = self.admission_denial(start) {
            self.reply(ask, Reply::Denied(denied));
            return;
        }
        if self.engine.state.ended.contains(&start.session) {
            self.deny_unknown_session(ask, &start.session);
            return;
        }
        if let Some(fault) = start_fault(start) {
            self.deny(ask, DenyCode::BadRequest, fault);
            return;
        }
        if let Err(denied) = self.make_room(start) {
            self.reply(ask, Reply::Denied(denied));
            return;
        }
        let predecessor = match self.predecessor(&start.session) {
            Ok(predecessor) => predecessor,
            Err(denied) => {
                self.reply(ask, Reply::Denied(denied));
                return;
            }
        };
        let spans = (self.new_trace(), self.new_span());
        let record = self.started_record(start);
        let mut session = Session::new(
            start.session.clone(),
            record.agent_type.clone(),
            start.intent.clone(),
            spans,
            self.engine.atlas_hash,
            self.now,
        );
        if let (Some(intent), Some(kept)) = (&mut session.intent, &record.intent) {
            intent.kept.clone_from(kept);
        }
        session.set_owner(start);
        if let Some(predecessor) = predecessor {
            self.succeed(&mut session, predecessor);
        }
        let place = session_position(&session);
        let mut record = self.started_record(start);
        record.continues.clone_from(&session.continues);
        self.state().add_session(session);
        self.record(&place, record);
        self.record_loaded_plugins(&place);
        let given = self.enter_first(&start.session, &place);
        self.name_initial_contexts(&given);
        let started = self.started_reply(&start.session, given);
        self.reply(ask, started);
    }

    /// Resumes a started session: the agent, or this process, came back.
    fn resume_session(&mut self, session: &SessionId) -> Reply {
        let before = self.live_session(session).cloned();
        self.adopt_loaded_atlases(session);
        self.reenter(session);
        if let Some(place) = self.live_session(session).map(session_position) {
            self.record_loaded_plugins(&place);
        }
        let given = self.take_pending_injections(session);
        // Agents that start one process per question resume the session with each of them.
        if self.live_session(session) != before.as_ref() {
            self.mark_changed(session);
        }
        self.started_reply(session, given)
    }

    /// Builds the reply to a started session: its gate, and the questions for the agent.
    fn started_reply(&self, session: &SessionId, given: Injected) -> Reply {
        let gate = self.start_gate(session);
        let waiting = gate
            .as_ref()
            .and_then(|gate| self.engine.state.held.get(gate));
        let asked = waiting.and_then(|waiting| self.agent_questions(&waiting.held));
        let known = self.live_session(session);
        Reply::Started(StartedSession {
            wrapper_reported: known.is_some_and(|known| known.wrapper_reported),
            asked: asked.into_iter().collect(),
            held: gate.into_iter().collect(),
            given,
        })
    }

    /// Runs the checkpoints of a new session's start, with those that its conversation owes. A conversation that was
    /// refused stays so.
    fn enter_first(&mut self, session: &SessionId, place: &SpanPosition) -> Injected {
        match self.live_session(session).map(|known| known.entry.clone()) {
            None | Some(StartState::Refused { .. }) => Injected::default(),
            Some(StartState::Lapsed { owed }) => self.run_start_checkpoints(session, place, &owed),
            Some(StartState::Open | StartState::Held(_)) => {
                self.run_start_checkpoints(session, place, &BTreeSet::new())
            }
        }
    }

    /// Tells whether a gate stands at a session's start, by its checkpoints or by what their handlers say.
    fn starts_gated(&self, session: &SessionId, owed: &BTreeSet<String>) -> bool {
        let fired = self.start_checkpoints(session, owed);
        let checkpoints = fired.iter();
        let checkpoints = checkpoints.map(|fired| (fired.atlas_id.as_str(), &fired.checkpoint));
        let heard = collect_outcomes(self, &self.answers, checkpoints);
        heard.restricts() || fired.iter().any(OwnedFiredCheckpoint::is_gate)
    }

    /// Runs the checkpoints of a session's start, and those that are owed. Where a gate stands there, everything else
    /// that they give is withheld.
    fn run_start_checkpoints(
        &mut self,
        session: &SessionId,
        place: &SpanPosition,
        owed: &BTreeSet<String>,
    ) -> Injected {
        let closed = StartState::Lapsed {
            owed: BTreeSet::new(),
        };
        let gated = self.starts_gated(session, owed);
        if let Some(known) = self.state().sessions.get_mut(session) {
            // The session is closed until its gate is held. The gate replaces this state below.
            known.entry = if gated { closed } else { StartState::Open };
        }
        let mut given = self.give_on(place, InjectionCause::Start);
        let mut fired = self.start_checkpoints(session, owed);
        let subject = HeldSubject::SessionStart;
        let handled =
            self.apply_handler_outcomes(place, &subject, &mut fired, HandledCommandKind::Start);
        given.extend(handled.injected);
        if let Some(stop) = handled.stop {
            self.withheld_for_gate = None;
            self.refuse_session(session, stop.reason);
            return Injected::default();
        }
        let (more, raised) = self.apply_in_order(place, &subject, &fired, GatePresence::NoGate);
        given.extend(more);
        for withheld in self.withheld_for_gate.take().unwrap_or_default() {
            self.withhold_from_session(place, withheld);
        }
        self.hold_start(session, place, raised);
        self.deliver_withheld(session);
        given
    }

    /// Moves a session to the loaded Atlases. Returns whether the Atlases had changed.
    ///
    /// Decisions under other Atlases do not count: the session starts anew, and loses what gates granted it.
    /// Restrictions by gates, and a refusal, stay.
    pub(super) fn adopt_loaded_atlases(&mut self, session: &SessionId) -> bool {
        if let Some(gate) = self.start_gate(session)
            && !self.engine.state.held.contains(&gate)
        {
            // No operator can answer a gate that is not in the queue.
            self.mark_start_lapsed(session);
        }
        let atlas_hash = self.engine.atlas_hash;
        let known = self.engine.state.sessions.get(session);
        if known.is_none_or(|known| known.atlas_hash == atlas_hash) {
            return false;
        }
        let pending = known.map(|known| known.pending.clone()).unwrap_or_default();
        for gate in self.start_gate(session).into_iter().chain(pending) {
            self.withdraw(&gate, HeldOutcome::Voided, ATLAS_CHANGED);
        }
        let Some(known) = self.state().sessions.get_mut(session) else {
            return false;
        };
        known.atlas_hash = atlas_hash;
        known.unlocked.clear();
        known.passed.clear();
        known.allowed.clear();
        known.withheld.clear();
        let place = session_position(known);
        let refused = matches!(known.entry, StartState::Refused { .. });
        self.mark_changed(session);
        if !refused {
            let given = self.run_start_checkpoints(session, &place, &BTreeSet::new());
            self.add_pending_injections(session, given);
        }
        true
    }

    fn refuse_session(&mut self, session: &SessionId, reason: String) {
        if let Some(known) = self.state().sessions.get_mut(session) {
            known.refuse(reason);
        }
        self.mark_changed(session);
    }

    /// Stores injections of a session until a reply can carry them.
    pub(super) fn add_pending_injections(&mut self, session: &SessionId, given: Injected) {
        if let Some(known) = self.state().sessions.get_mut(session) {
            known.owed.extend(given);
        }
        self.mark_changed(session);
    }

    fn mark_start_lapsed(&mut self, session: &SessionId) {
        // It is not known any more which of them had fired, so all of them are required.
        let checkpoints = self
            .engine
            .atlases
            .iter()
            .flat_map(|atlas| &atlas.checkpoints);
        let starts =
            checkpoints.filter(|checkpoint| matches!(checkpoint.trigger, Trigger::SessionStart));
        let owed = starts.map(|checkpoint| checkpoint.id.clone()).collect();
        if let Some(known) = self.state().sessions.get_mut(session) {
            known.entry = StartState::Lapsed { owed };
        }
        self.mark_changed(session);
    }

    /// Raises the start gate of a session again if the first one was not answered. Returns the questions for
    /// the agent.
    pub(super) fn reenter(&mut self, session: &SessionId) -> Option<AgentQuestions> {
        let known = self.engine.state.sessions.get(session)?;
        let StartState::Lapsed { owed } = known.entry.clone() else {
            return None;
        };
        let place = session_position(known);
        let mut fired = self.start_checkpoints(session, &owed);
        fired.retain(|fired| fired.checkpoint.mode == CheckpointMode::Blocking);
        let raised = fired
            .iter()
            .map(|fired| self.raise_checkpoint_gate(fired))
            .collect();
        self.hold_start(session, &place, raised);
        let gate = self.start_gate(session)?;
        self.agent_questions(&self.engine.state.held.get(&gate)?.held)
    }

    /// Returns the start checkpoints that fire now, and those that are still required.
    fn start_checkpoints(
        &self,
        session: &SessionId,
        owed: &BTreeSet<String>,
    ) -> Vec<OwnedFiredCheckpoint> {
        let Some(known) = self.engine.state.sessions.get(session) else {
            return Vec::new();
        };
        let fired = evaluation::fired_at_start(
            &self.engine.atlases,
            (known, &self.engine.extensions),
            owed,
            self.now,
        );
        let mut fired: Vec<OwnedFiredCheckpoint> = fired.into_iter().map(Into::into).collect();
        for fired in &mut fired {
            // A gate that was not passed stays a gate.
            if owed.contains(&fired.checkpoint.id) {
                self.restore_gate(&mut fired.checkpoint);
            }
        }
        fired
    }

    /// Makes an unpassed checkpoint a gate again. If it has handlers, only an operator may answer, because
    /// the handlers' earlier answers are not known any more.
    pub(super) fn restore_gate(&self, checkpoint: &mut Checkpoint) {
        checkpoint.mode = CheckpointMode::Blocking;
        if !handlers_of(&self.engine.extensions, checkpoint).is_empty() {
            checkpoint.respondent = Respondent::Operator;
        }
    }

    fn hold_start(&mut self, session: &SessionId, place: &SpanPosition, raised: Vec<RaisedGate>) {
        let Some(known) = self.engine.state.sessions.get(session) else {
            return;
        };
        let owed = raised
            .iter()
            .map(|raised| raised.gate.origin.id().to_owned())
            .collect();
        let entry = if raised.is_empty() {
            StartState::Open
        } else {
            let intent = known.intent.as_ref().map(|intent| intent.said.as_str());
            let params = start_params(&known.agent, intent);
            let request = HoldRequest {
                subject: HeldSubject::SessionStart,
                hash: request_hash(session, SESSION_START, &params),
                place: place.clone(),
                deadline: None,
                same_call: None,
                withheld: Vec::new(),
                advice: Vec::new(),
                modified_input: None,
            };
            // If it cannot be held (the queue is full), no operator can be asked, and the session stays
            // closed.
            let held = self.hold_request(None, request, raised);
            held.map_or(StartState::Lapsed { owed }, StartState::Held)
        };
        if let Some(known) = self.state().sessions.get_mut(session) {
            known.entry = entry;
        }
        self.mark_changed(session);
    }

    fn start_gate(&self, session: &SessionId) -> Option<GateId> {
        match &self.engine.state.sessions.get(session)?.entry {
            StartState::Held(gate) => Some(gate.clone()),
            StartState::Open | StartState::Lapsed { .. } | StartState::Refused { .. } => None,
        }
    }

    pub(super) fn end_session(&mut self, ask: CallerId, end: EndSession) {
        if self.live_session(&end.session).is_none() {
            self.deny_unknown_session(ask, &end.session);
            return;
        }
        if end
            .summary
            .as_ref()
            .is_some_and(|text| text.len() > MAX_TEXT_BYTES)
        {
            let reason =
                format!("the summary of a session must have at most {MAX_TEXT_BYTES} bytes");
            self.deny(ask, DenyCode::BadRequest, reason);
            return;
        }
        let given = self.finish_session(end);
        self.reply(ask, Reply::Ended(given));
    }

    /// Ends a session and all its waiting requests. Returns the injections for the reply.
    pub(super) fn finish_session(&mut self, end: EndSession) -> Injected {
        let held = self.engine.state.held.of_session(&end.session);
        let held: Vec<_> = held.cloned().collect();
        for gate in held {
            self.withdraw(&gate, HeldOutcome::Withdrawn, "the session ended");
        }
        self.refuse_parked(&end.session, DenyCode::Withdrawn, "the session ended");
        let permits = &mut self.engine.state.permits;
        for gate in permits.remove_where(|permit| permit.session == end.session) {
            self.persist::<()>(StateKind::Permit, gate.as_str(), None);
        }
        let ended = &end.session;
        self.state()
            .resolutions
            .retain(|issued| issued.session != *ended);
        self.state()
            .pending_attempts
            .retain(|_, begun| !begun.is_of(ended));
        let Some(session) = self.engine.state.sessions.get(&end.session) else {
            return Injected::default();
        };
        let root = session_position(session);
        let given = self.take_final_injections(&end.session, &root, end.delivery);
        let Some(session) = self.engine.state.sessions.get(&end.session) else {
            return given;
        };
        let record = self.ended_record(session, end.status, end.summary.as_deref());
        let ended = Arc::new(record.clone());
        self.record_below(&root, record);
        self.state().remove_session(&end.session);
        self.forget_misuse(&end.session);
        for key in self.state().usage.forget(&end.session) {
            self.persist::<()>(StateKind::Usage, &key, None);
        }
        self.state().ended.insert_end(end.session, ended);
        given
    }

    /// Fires the checkpoints of a session's end, and delivers all pending injections. Without an agent to
    /// receive them, delivers nothing.
    fn take_final_injections(
        &mut self,
        session: &SessionId,
        root: &SpanPosition,
        delivery: DeliveryTime,
    ) -> Injected {
        if delivery == DeliveryTime::Later {
            self.withheld_for_gate = Some(Vec::new());
            self.run_end_checkpoints(session, root);
            self.withheld_for_gate = None;
            return Injected::default();
        }
        let last = self.run_end_checkpoints(session, root);
        self.withheld_for_gate = None;
        let mut given = self.take_pending_injections(session);
        given.extend(last);
        self.deliver(&mut given);
        given
    }

    /// Returns the session, if it exists and has not ended.
    pub(super) fn live_session(&self, session: &SessionId) -> Option<&Session> {
        self.engine.state.sessions.get(session)
    }
}

/// Makes the checkpoint whose handler stops the agent a gate.
pub(super) fn raise_stop(fired: &mut [OwnedFiredCheckpoint], stop: HandlerStop) {
    if let Some(fired) = fired.get_mut(stop.index) {
        make_operator_gate(&mut fired.checkpoint);
        fired.why = stop.reason;
        fired.quotes_request = true;
    }
}

/// Makes the checkpoints whose handlers require an approval gates.
pub(super) fn raise_approvals(
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
pub(super) fn session_position(session: &Session) -> SpanPosition {
    SpanPosition {
        session: session.id.clone(),
        trace_id: session.trace_id.clone(),
        span_id: session.span_id.clone(),
        parent: None,
    }
}

impl Transaction<'_> {
    /// Builds the record of a session's start. The initial contexts are added later.
    fn started_record(&self, start: &StartSession) -> StartedRecord {
        let atlases = self.engine.atlases.iter();
        let mut redactor = self.redactor(None);
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
}

/// Returns the whole milliseconds from `earlier` to `later`.
pub(super) fn millis(later: Timestamp, earlier: Timestamp) -> u64 {
    u64::try_from(later.since(earlier).as_millis()).unwrap_or(u64::MAX)
}
