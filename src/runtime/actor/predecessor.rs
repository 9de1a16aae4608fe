//! Ends of earlier sessions, read from the record for a session that goes on with their conversation.

use super::Actor;
use crate::engine::command::EngineCommand;
use crate::store::{Store, StoreError};
use crate::trace::event::{Payload, SessionEnded};
use crate::trace::verification::ChainHead;

/// Records that are read at once. The end of a session is its last record, or near it.
const PAGE: u64 = 32;

impl Actor {
    /// Tells the engine how the session ended whose conversation a new one goes on with. A session that the record has
    /// without its end, or with an end whose content was pruned, is only named: the engine then refuses the new one.
    pub(super) async fn look_up_predecessor(
        &mut self,
        command: &EngineCommand,
    ) -> Result<(), StoreError> {
        let EngineCommand::StartSession(_, start) = command else {
            return Ok(());
        };
        let mut absent = Vec::new();
        while let Some(earlier) = self.engine.unknown_predecessor(&start.session, &absent) {
            let Some(head) = self.store.head(earlier.clone()).await? else {
                absent.push(earlier);
                continue;
            };
            self.engine.mark_ended(earlier.clone());
            if let Some(ended) = recorded_end(self.store.as_ref(), &head).await? {
                self.engine.note_end(earlier, ended);
            }
            break;
        }
        Ok(())
    }
}

/// The end of a session as it is on record, if it is there and can be read.
async fn recorded_end(
    store: &dyn Store,
    head: &ChainHead,
) -> Result<Option<SessionEnded>, StoreError> {
    let mut until = head.count;
    while until > 0 {
        let from = until.saturating_sub(PAGE);
        let limit = usize::try_from(until - from).unwrap_or_default();
        let session = head.session.clone();
        let page = store.session_records(session, from, limit).await?;
        if let Some(end) = page.iter().rev().find(|record| record.ends_session) {
            let event = end.event_of().ok();
            let payload =
                event.and_then(|event| Payload::read(&event.event_type, event.payload).ok());
            return Ok(match payload {
                Some(Payload::SessionEnded(ended)) => Some(ended),
                Some(_) | None => None,
            });
        }
        until = from;
    }
    Ok(None)
}
