//! Writing: changes of messages that came together go to the store in one batch, and replies go out when it is durable.
//!
//! Contract: batches are handed over in the order of their records. Everything that appends to the store on its own
//! calls [`Actor::flush`] first.

use std::sync::Arc;

use super::super::notices::KeptNotice;
use super::super::snapshot::Snapshot;
use super::Actor;
use super::sealing::Entered;
use super::told::denied;
use crate::atlas::document::Acknowledge;
use crate::base::limits::MAX_EARLY_EVENTS;
use crate::engine::command::{AskId, Refused, Reply};
use crate::engine::extension::Call;
use crate::store::{Batch, StoreError};
use crate::trace::event::Durability;
use crate::trace::record::Record;

/// Changes that are handed over to the store in one batch: those of all messages that were in the inbox together.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) batch: Batch,
    /// Replies that wait for the batch to be durable.
    pub(super) replies: Vec<(AskId, Reply)>,
    /// Replies that go out as soon as the batch is handed over, and the number of their events.
    pub(super) early_replies: Vec<(AskId, Reply)>,
    pub(super) early: u64,
    /// Questions to extensions that wait for the batch to be durable.
    pub(super) calls: Vec<Call>,
}

/// A batch that was written, or not, with what waited for it.
pub(super) struct Written {
    pub(super) outcome: Result<(), StoreError>,
    pub(super) replies: Vec<(AskId, Reply)>,
    pub(super) calls: Vec<Call>,
    /// Events of it that agents were told of before.
    pub(super) early: u64,
    pub(super) picture: Option<Arc<Snapshot>>,
    /// The records, where hooks want to hear of them.
    pub(super) records: Vec<Record>,
    /// The entry of the log among them that waits to be signed.
    pub(super) entered: Option<Entered>,
    /// Notices among it, which may be sent then.
    pub(super) notices: Vec<KeptNotice>,
}

impl Actor {
    /// Adds a batch to what is handed over to the store next, with the replies that wait for it.
    pub(super) fn write(
        &mut self,
        batch: Batch,
        replies: Vec<(AskId, Reply)>,
        durability: Durability,
    ) {
        let events = batch.records.len() as u64;
        let early = match durability {
            Durability::Sync => 0,
            Durability::Async => self.early_room(events),
        };
        if early > 0 {
            self.early_events += early;
            self.pending.early += early;
            self.pending.early_replies.extend(replies);
        } else {
            self.pending.replies.extend(replies);
        }
        self.pending.batch.append(batch);
    }

    /// Hands everything pending over to the store, in one batch.
    pub(super) async fn flush(&mut self) {
        if self.pending.batch.is_empty() {
            return;
        }
        let Pending {
            mut batch,
            replies,
            early_replies,
            early,
            calls,
        } = std::mem::take(&mut self.pending);
        let records = if self.hooks.listen() {
            batch.records.clone()
        } else {
            Vec::new()
        };
        let entered = self.enter_if_full(&mut batch);
        self.state_seal.stamp(&mut batch, &self.ledger);
        let notices = self.outbox.take_drafted();
        let ack = match self.store.append(batch).await {
            Ok(ack) => ack,
            Err(error) => {
                self.poisoned(&error, [early_replies, replies].concat());
                return;
            }
        };
        self.tell(early_replies);
        let picture = (!self.picture_pending).then(|| self.picture());
        self.picture_pending |= picture.is_some();
        self.writes.push_back(Box::pin(async move {
            Written {
                outcome: ack.await,
                replies,
                calls,
                early,
                picture,
                records,
                entered,
                notices,
            }
        }));
    }

    /// The number of events that may be acknowledged before they are durable: all of a batch, or none.
    fn early_room(&self, events: u64) -> u64 {
        let wanted = self.acknowledge == Acknowledge::Early;
        let fits = self.early_events.saturating_add(events) <= MAX_EARLY_EVENTS;
        if wanted && fits { events } else { 0 }
    }

    pub(super) fn written(&mut self, written: Written) {
        self.early_events = self.early_events.saturating_sub(written.early);
        if written.picture.is_some() {
            self.picture_pending = false;
        }
        match written.outcome {
            Ok(()) => {
                // A picture from before a failed write would hide the failure.
                let picture = written.picture.filter(|_| self.poison.is_none());
                if let Some(picture) = picture {
                    self.publish(picture);
                }
                self.show_shortage();
                self.tell(written.replies);
                for call in written.calls {
                    self.outside.ask(call);
                }
                let missed = self.hooks.after(&written.records);
                self.dropped.hooks += missed;
                self.changed |= missed > 0;
                self.sealing
                    .entered(written.entered, &self.store, &self.ledger);
                self.changed |= !written.notices.is_empty();
                self.outbox.written(written.notices, self.clock.now());
                self.show();
            }
            Err(error) => self.poisoned(&error, written.replies),
        }
    }

    /// A write failed. Nothing more is allowed, and everyone who waits is told.
    pub(super) fn poisoned(&mut self, error: &StoreError, mut replies: Vec<(AskId, Reply)>) {
        let what = error.to_string();
        tracing::error!(%what, "the store is poisoned");
        self.poison.get_or_insert_with(|| what.clone());
        // Nothing of what was not handed over is on disk, and none of it was told.
        let pending = std::mem::take(&mut self.pending);
        replies.extend(pending.early_replies);
        replies.extend(pending.replies);
        for (ask, reply) in replies {
            let refusal = match reply {
                Reply::Decided(_)
                | Reply::Approved(_)
                | Reply::Acted
                | Reply::Invalid(_)
                | Reply::Refused(_) => Reply::Refused(Refused::Unavailable(what.clone())),
                Reply::Started(_)
                | Reply::Ended(_)
                | Reply::Accepted(_)
                | Reply::Allowed(_)
                | Reply::Denied(_)
                | Reply::Asked(_)
                | Reply::Resolved(_)
                | Reply::Consulted(_)
                | Reply::Completed(_)
                | Reply::Noted(_) => Reply::Denied(denied(&what)),
            };
            self.tell(vec![(ask, refusal)]);
        }
        let rest: Vec<_> = self.waiting.drain().collect();
        for (_, reply) in rest {
            let _ = reply.send(Reply::Denied(denied(&what)));
        }
        let picture = self.picture();
        self.publish(picture);
    }
}
