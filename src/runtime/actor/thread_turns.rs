//! Turns of conversations, hand-overs of threads, and operators' actions on threads.

use super::super::message::{HandOverRequest, ReplySender, ThreadActionRequest, TurnRequest};
use super::super::threads::{self, LiveSessions};
use super::Actor;
use super::replies::unavailable_denial;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::engine::command::{
    AgentReply, DecisionRefusal, DenialReply, DenyCode, Effect, EngineCommand, OperatorReply,
    Reply, ReplyId, ReportReceipt, RuntimeFinding,
};
use crate::memento::ExternalName;
use crate::store::Batch;
use crate::trace::chain::Chain;
use crate::trace::event::Durability;

impl Actor {
    /// Takes a turn. The reply is sent when its record and the thread are durable.
    pub(super) async fn take_turn(&mut self, mut asked: TurnRequest) {
        if let Some(what) = &self.store_failure {
            let _ = asked
                .reply
                .send(AgentReply::Denied(unavailable_denial(what)));
            return;
        }
        if let Some(denied) = self.bar_all() {
            let _ = asked.reply.send(AgentReply::Denied(denied));
            return;
        }
        if let Err(error) = self.look_up_session(Some(&asked.take.session)).await {
            let _ = asked
                .reply
                .send(AgentReply::Denied(unavailable_denial(&error.to_string())));
            return;
        }
        let now = self.clock.now();
        asked.take.redact(self.engine.atlases());
        let live = LiveSessions(&self.engine);
        let taken = match self.threads.earlier_answer(&asked.take, live) {
            Ok(Some(outcome)) => {
                let _ = asked.outcome.send(outcome);
                let _ = asked
                    .reply
                    .send(AgentReply::Noted(ReportReceipt::default()));
                return;
            }
            Ok(None) => self.threads.classify_turn(&asked.take, live, now),
            Err(refused) => Err(refused),
        };
        let thread = asked.take.thread();
        let message = asked.take.turn.message.clone();
        let (reply_id, session) = (asked.reply_id, asked.take.session);
        self.pending_replies
            .insert(reply_id, ReplySender::Agent(asked.reply));
        let taken = match taken {
            Ok(taken) => taken,
            Err(refused) => {
                self.changed |= refused == threads::ThreadRefusal::Full;
                self.reply_thread_refusal(reply_id, &session, thread, &refused);
                return;
            }
        };
        let finding = RuntimeFinding::Turn {
            event: taken.payload.clone(),
            message,
        };
        let Some(mut effects) = self.record_event(reply_id, &session, finding) else {
            return;
        };
        // The first record of the turn is the next one of its chain.
        let chain = self.ledger.chains().get(&session);
        let sequence = chain.map_or(0, Chain::count);
        let event = effects.iter().find_map(|effect| match effect {
            Effect::Record(draft) => Some((draft.event_id.clone(), sequence)),
            Effect::Reply(..)
            | Effect::AppendToLog(_)
            | Effect::SetOperator(_)
            | Effect::Persist(_)
            | Effect::SetDeadline(..)
            | Effect::CallExtension(_)
            | Effect::RequestHeld(_)
            | Effect::RequestSettled(_)
            | Effect::Notify(_) => None,
        });
        // The caller gets the reply when the rest is durable.
        let _ = asked.outcome.send(taken.outcome.clone());
        let (rows, entry) = self.threads.store_turn(taken, event);
        effects.extend(entry.map(Effect::AppendToLog));
        self.execute_with_state(effects, rows);
    }

    /// Hands a thread over for its owner. The reply is sent when the record is durable.
    pub(super) fn hand_over(&mut self, asked: HandOverRequest) {
        if let Some(what) = &self.store_failure {
            let _ = asked
                .reply
                .send(AgentReply::Denied(unavailable_denial(what)));
            return;
        }
        if let Some(denied) = self.bar_all() {
            let _ = asked.reply.send(AgentReply::Denied(denied));
            return;
        }
        let (reply_id, hand_over) = (asked.reply_id, asked.hand_over);
        let live = LiveSessions(&self.engine);
        let handed = self.threads.hand_over(&hand_over, live);
        self.pending_replies
            .insert(reply_id, ReplySender::Agent(asked.reply));
        let (payload, thread) = match handed {
            Ok(handed) => handed,
            Err(refused) => {
                let thread = hand_over.thread();
                self.reply_thread_refusal(reply_id, &hand_over.session, thread, &refused);
                return;
            }
        };
        let finding = RuntimeFinding::Event(payload);
        let Some(effects) = self.record_event(reply_id, &hand_over.session, finding) else {
            return;
        };
        let row = self.threads.store_thread(thread);
        self.execute_with_state(effects, vec![row]);
    }

    /// Has the engine record an event of a session. Returns the effects, unless the session may not record
    /// it.
    fn record_event(
        &mut self,
        reply_id: ReplyId,
        session: &SessionId,
        finding: RuntimeFinding,
    ) -> Option<Vec<Effect>> {
        let note = EngineCommand::RecordFinding(reply_id, session.clone(), Box::new(finding));
        let effects = self.engine.handle(note, self.clock.now());
        let noted = |effect: &Effect| {
            matches!(effect, Effect::Reply(_, Reply::Agent(AgentReply::Noted(_))))
        };
        if effects.iter().any(noted) {
            return Some(effects);
        }
        self.execute(effects);
        None
    }

    /// Replies to a refused call about a thread. An attempt without a right is recorded in the session's
    /// chain, and counted at the thread.
    fn reply_thread_refusal(
        &mut self,
        reply_id: ReplyId,
        session: &SessionId,
        thread: Option<ExternalName>,
        refused: &threads::ThreadRefusal,
    ) {
        let denied = thread_denial(refused);
        if !matches!(denied.code, DenyCode::Thread | DenyCode::Limit) {
            self.send_replies(vec![(reply_id, Reply::Agent(AgentReply::Denied(denied)))]);
            return;
        }
        let now = self.clock.now();
        let name = thread.as_ref().map_or("", ExternalName::as_str);
        let what = format!(
            "the thread `{}` was denied to this session: {refused}",
            one_line(name)
        );
        let is_foreign = denied.code == DenyCode::Thread;
        let finding = Box::new(RuntimeFinding::ThreadRefused { what, denied });
        let note = EngineCommand::RecordFinding(reply_id, session.clone(), finding);
        let effects = self.engine.handle(note, now);
        let counted = thread.filter(|_| is_foreign && self.engine.session(session).is_some());
        let row = counted.and_then(|thread| self.threads.count_refused(&thread, session, now));
        // The count is written together with the record, and only as often as that.
        let recorded = |effect: &Effect| matches!(effect, Effect::Record(_));
        let row = row.filter(|_| effects.iter().any(recorded));
        self.execute_with_state(effects, row.into_iter().collect());
    }

    /// Executes an operator's action on a conversation. The reply is sent when the action is durable.
    pub(super) fn thread_act(&mut self, asked: ThreadActionRequest) {
        let refused = |what: String| OperatorReply::Refused(DecisionRefusal::Unavailable(what));
        if let Some(what) = &self.store_failure {
            let _ = asked.reply.send(refused(what.clone()));
            return;
        }
        let now = self.clock.now();
        let by = self.console_operator.operator.clone();
        let live = LiveSessions(&self.engine);
        let done = self
            .threads
            .apply_action(&asked.thread, &asked.act, (&by, live), now);
        let (payload, row) = match done {
            Ok(done) => done,
            Err(error) => {
                let _ = asked.reply.send(refused(error.to_string()));
                return;
            }
        };
        self.pending_replies
            .insert(asked.reply_id, ReplySender::Operator(asked.reply));
        let batch = Batch {
            records: vec![self.ledger.entry(payload, now)],
            state: vec![row],
            ..Batch::default()
        };
        self.changed = true;
        let replies = vec![(asked.reply_id, Reply::Operator(OperatorReply::Acted))];
        self.add_to_batch(batch, replies, Durability::Sync);
    }
}

/// Returns the denial of a call about a thread, with advice for the agent.
fn thread_denial(refused: &threads::ThreadRefusal) -> DenialReply {
    use crate::memento::TurnRefusal;
    use threads::ThreadRefusal::{
        Foreign, Full, NoSession, NoThread, OwnLimit, ProcessLimit, Turn, Unreadable, Unverified,
    };
    let (code, help) = match refused {
        Foreign | Turn(TurnRefusal::NotOwner) => (
            DenyCode::Thread,
            "use a thread of this session, or have the owner hand the thread over with thread.hand_over; \
             the operator can hand it over, too",
        ),
        Unverified => (
            DenyCode::Thread,
            "use a new thread, or wait until the operator hands this one over to your session",
        ),
        Unreadable => (
            DenyCode::BadRequest,
            "use another thread; `cra thread list` shows why this one cannot be read",
        ),
        OwnLimit => (
            DenyCode::Limit,
            "continue in an existing thread; cra can drop a thread when its summary is not frozen and no \
             proposal is saved for later",
        ),
        ProcessLimit => (
            DenyCode::Limit,
            "continue in an existing thread, or end a session with session.end: cra can then drop its \
             threads, if nothing in them is frozen or saved for later",
        ),
        Full => (
            DenyCode::Limit,
            "continue in an existing thread; cra drops threads of ended sessions a day after their last turn",
        ),
        NoSession(_) => (
            DenyCode::BadRequest,
            "start the other session first, and use its name from session.start",
        ),
        NoThread => (
            DenyCode::BadRequest,
            "a thread starts with its first turn; use the name of an existing thread",
        ),
        Turn(TurnRefusal::MessageIdReused(_) | TurnRefusal::ResponseExpired(_)) => (
            DenyCode::BadRequest,
            "use a new id for every message; a retry sends the same message again",
        ),
        Turn(TurnRefusal::Stale { .. } | TurnRefusal::NoMemento) => (
            DenyCode::BadRequest,
            "read the memento again, and send the turn with its etag",
        ),
    };
    DenialReply {
        code,
        reason: refused.to_string(),
        help: Some(help.to_owned()),
        gate: None,
    }
}
