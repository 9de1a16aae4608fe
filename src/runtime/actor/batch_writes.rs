//! Writes: changes of messages that arrived together are stored in one batch, and replies are sent when it
//! is durable.
//!
//! Contract: batches are handed over in the order of their records. Code that appends to the store directly
//! calls [`Actor::flush`] first.

use std::sync::Arc;

use super::super::notices::StoredNotice;
use super::super::snapshot::RuntimeSnapshot;
use super::Actor;
use super::log_sealing::PendingSeal;
use super::replies::unavailable_denial;
use crate::atlas::document::AcknowledgeMode;
use crate::base::limits::MAX_EARLY_EVENTS;
use crate::engine::command::{AgentReply, DecisionRefusal, OperatorReply, Reply, ReplyId};
use crate::engine::extensions::ExtensionCall;
use crate::store::{Batch, StoreError};
use crate::trace::event::Durability;
use crate::trace::record::Record;

/// Changes for the next batch: those of all messages that were in the inbox together.
#[derive(Default)]
pub(super) struct PendingBatch {
    pub(super) batch: Batch,
    /// Replies that wait for the batch to be durable.
    pub(super) replies: Vec<(ReplyId, Reply)>,
    /// Replies that are sent as soon as the batch is handed over, and the number of their events.
    pub(super) early_replies: Vec<(ReplyId, Reply)>,
    pub(super) early: u64,
    /// Calls of extensions that wait for the batch to be durable.
    pub(super) calls: Vec<ExtensionCall>,
}

/// Result of a batch, with everything that waited for it.
pub(super) struct WrittenBatch {
    pub(super) outcome: Result<(), StoreError>,
    pub(super) replies: Vec<(ReplyId, Reply)>,
    pub(super) calls: Vec<ExtensionCall>,
    /// Number of its events that were acknowledged early.
    pub(super) early: u64,
    pub(super) picture: Option<Arc<RuntimeSnapshot>>,
    /// Its records, if hooks subscribe to them.
    pub(super) records: Vec<Record>,
    /// Its log entry that waits for a signature.
    pub(super) entered: Option<PendingSeal>,
    /// Its notices, which may be sent now.
    pub(super) notices: Vec<StoredNotice>,
}

impl Actor {
    /// Adds changes to the next batch, with the replies that wait for them.
    pub(super) fn add_to_batch(
        &mut self,
        batch: Batch,
        replies: Vec<(ReplyId, Reply)>,
        durability: Durability,
    ) {
        let events = batch.records.len() as u64;
        let early = match durability {
            Durability::Sync => 0,
            Durability::Async => self.early_events_allowed(events),
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

    /// Hands all pending changes to the store, in one batch.
    pub(super) async fn flush(&mut self) {
        if self.pending.batch.is_empty() {
            return;
        }
        let PendingBatch {
            mut batch,
            replies,
            early_replies,
            early,
            calls,
        } = std::mem::take(&mut self.pending);
        let records = if self.hooks.has_listeners() {
            batch.records.clone()
        } else {
            Vec::new()
        };
        let entered = self.add_seal_entry_if_full(&mut batch);
        self.state_seal.add_seal(&mut batch, &self.ledger);
        let notices = self.outbox.take_new_notices();
        let ack = match self.store.append(batch).await {
            Ok(ack) => ack,
            Err(error) => {
                self.on_write_failure(&error, [early_replies, replies].concat());
                return;
            }
        };
        self.send_replies(early_replies);
        let picture = (!self.snapshot_pending).then(|| self.make_snapshot());
        self.snapshot_pending |= picture.is_some();
        self.writes.push_back(Box::pin(async move {
            WrittenBatch {
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

    /// Returns the number of events that may be acknowledged before they are durable: all of a batch, or
    /// none.
    fn early_events_allowed(&self, events: u64) -> u64 {
        let wanted = self.acknowledge == AcknowledgeMode::Early;
        let fits = self.early_events.saturating_add(events) <= MAX_EARLY_EVENTS;
        if wanted && fits { events } else { 0 }
    }

    pub(super) fn on_written(&mut self, written: WrittenBatch) {
        self.early_events = self.early_events.saturating_sub(written.early);
        if written.picture.is_some() {
            self.snapshot_pending = false;
        }
        match written.outcome {
            Ok(()) => {
                // A snapshot from before a failed write would hide the failure.
                let picture = written.picture.filter(|_| self.store_failure.is_none());
                if let Some(picture) = picture {
                    self.publish(picture);
                }
                self.publish_shortage();
                self.send_replies(written.replies);
                for call in written.calls {
                    self.extension_calls.call_extension(call);
                }
                let missed = self.hooks.notify_after(&written.records);
                self.dropped.hooks += missed;
                self.changed |= missed > 0;
                self.sealing
                    .on_entry_durable(written.entered, &self.store, &self.ledger);
                self.changed |= !written.notices.is_empty();
                self.outbox.on_durable(written.notices, self.clock.now());
                self.publish_changes();
            }
            Err(error) => self.on_write_failure(&error, written.replies),
        }
    }

    /// Handles a failed write. Nothing more is allowed, and all waiting callers are told.
    pub(super) fn on_write_failure(
        &mut self,
        error: &StoreError,
        mut replies: Vec<(ReplyId, Reply)>,
    ) {
        let what = error.to_string();
        tracing::error!(%what, "the store is poisoned");
        self.store_failure.get_or_insert_with(|| what.clone());
        // Pending changes are not on disk, and no caller was told of them.
        let pending = std::mem::take(&mut self.pending);
        replies.extend(pending.early_replies);
        replies.extend(pending.replies);
        for (reply_id, reply) in replies {
            let refusal = match reply {
                Reply::Operator(_) => {
                    OperatorReply::Refused(DecisionRefusal::Unavailable(what.clone())).into()
                }
                Reply::Agent(_) => AgentReply::Denied(unavailable_denial(&what)).into(),
            };
            self.send_replies(vec![(reply_id, refusal)]);
        }
        let rest: Vec<_> = self.pending_replies.drain().collect();
        for (_, reply) in rest {
            reply.refuse(unavailable_denial(&what), &what);
        }
        let picture = self.make_snapshot();
        self.publish(picture);
    }
}
