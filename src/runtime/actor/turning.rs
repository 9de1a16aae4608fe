//! Turns of conversations, and what operators do to them.

use super::super::message::{ThreadActAsked, TurnAsked};
use super::super::threads;
use super::Actor;
use super::told::denied;
use crate::engine::command::{Command, Denied, DenyCode, Effect, Refused, Reply};
use crate::store::Batch;
use crate::trace::chain::Chain;
use crate::trace::event::Durability;

impl Actor {
    /// Takes a turn. It is answered when its record and the thread behind it are durable.
    pub(super) async fn turn(&mut self, asked: TurnAsked) {
        if let Some(what) = &self.poison {
            let _ = asked.reply.send(Reply::Denied(denied(what)));
            return;
        }
        let now = self.clock.now();
        let taken = match self.threads.take(&asked.take, now) {
            Ok(taken) => taken,
            Err(refused) => {
                let _ = asked.reply.send(Reply::Denied(refusal(&refused)));
                return;
            }
        };
        let (ask, session) = (asked.ask, asked.take.session);
        self.waiting.insert(ask, asked.reply);
        let note = Command::Note(ask, session.clone(), Box::new(taken.payload.clone()));
        let effects = self.engine.handle(note, now);
        let noted = |effect: &Effect| matches!(effect, Effect::Reply(_, Reply::Noted(_)));
        if !effects.iter().any(noted) {
            self.carry_out(effects).await;
            return;
        }
        // The first record of the turn is the next of its chain.
        let chain = self.ledger.chains().get(&session);
        let sequence = chain.map_or(0, Chain::count);
        let event = effects.iter().find_map(|effect| match effect {
            Effect::Record(draft) => Some((draft.event_id.clone(), sequence)),
            Effect::Reply(..)
            | Effect::Enter(_)
            | Effect::Seat(_)
            | Effect::Persist(_)
            | Effect::SetDeadline(..)
            | Effect::CallOut(_)
            | Effect::Held(_)
            | Effect::Settled(_)
            | Effect::Notify(_) => None,
        });
        // Whoever asked hears of it when the rest is durable.
        let _ = asked.outcome.send(taken.outcome.clone());
        let rows = self.threads.keep(taken, event);
        self.carry_out_with(effects, rows).await;
    }

    /// Does what an operator wants with a conversation. It is answered when it is durable.
    pub(super) async fn thread_act(&mut self, asked: ThreadActAsked) {
        let refused = |what: String| Reply::Refused(Refused::Unavailable(what));
        if let Some(what) = &self.poison {
            let _ = asked.reply.send(refused(what.clone()));
            return;
        }
        let now = self.clock.now();
        let by = self.seat.operator.clone();
        let (payload, row) = match self.threads.act(&asked.thread, &asked.act, &by, now) {
            Ok(done) => done,
            Err(error) => {
                let _ = asked.reply.send(refused(error.to_string()));
                return;
            }
        };
        self.waiting.insert(asked.ask, asked.reply);
        let batch = Batch {
            records: vec![self.ledger.entry(payload, now)],
            state: vec![row],
            ..Batch::default()
        };
        self.changed = true;
        let replies = vec![(asked.ask, Reply::Acted)];
        self.write(batch, replies, Durability::Sync).await;
    }
}

fn refusal(refused: &threads::Refused) -> Denied {
    Denied {
        code: DenyCode::BadRequest,
        reason: refused.to_string(),
        help: Some("read the memento again, and send the turn with its etag".to_owned()),
        gate: None,
    }
}
