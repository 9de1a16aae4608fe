//! An operator's edit of a summary, and the sessions that have read it.

use super::shape::SummaryShape;
use super::text::ExternalName;
use super::thread::{Thread, shaped};
use super::turn::TurnRefusal;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::limits::MAX_EDIT_READERS;

impl Thread {
    /// Replaces the summary with an operator's version. The next turn must follow it.
    ///
    /// # Errors
    /// Fails when there is no memento, or the writer has read another one.
    pub fn edit(
        &self,
        shape: &SummaryShape,
        if_match: &str,
        memento: ExternalName,
        now: Timestamp,
    ) -> Result<Self, TurnRefusal> {
        let latest = self.latest.as_ref().ok_or(TurnRefusal::NoMemento)?;
        self.check_etag(Some(if_match))?;
        let mut next = self.clone();
        next.version += 1;
        next.edited = true;
        next.edit_sent_to = Some(Vec::new());
        next.edit_memento = Some(memento.clone());
        let edited = shaped(latest, shape, memento, now);
        next.replace(edited);
        Ok(next)
    }

    /// Returns true if an operator's edit is unread, and no response has sent it to this session.
    #[must_use]
    pub(super) fn has_unread_edit(&self, session: &SessionId) -> bool {
        match &self.edit_sent_to {
            Some(sent_to) => !sent_to.contains(session),
            // A thread that was stored before sessions were recorded.
            None => self.edited,
        }
    }

    /// Returns true if a memento is older than an operator's last edit. A memento that is no longer stored counts
    /// as older.
    #[must_use]
    pub(super) fn is_before_edit(&self, memento: &ExternalName) -> bool {
        let Some(edit) = &self.edit_memento else {
            return false;
        };
        let mut since_edit = self.mementos();
        for kept in since_edit.by_ref() {
            if kept.memento_id == *memento {
                return false;
            }
            if kept.memento_id == *edit {
                break;
            }
        }
        true
    }

    /// Records that the response to a turn sends the newest memento to a session.
    pub(super) fn note_edit_sent(&mut self, session: &SessionId) {
        let edited = self.edited.then(Vec::new);
        if let Some(mut sent_to) = self.edit_sent_to.take().or(edited) {
            sent_to.retain(|earlier| earlier != session);
            sent_to.insert(0, session.clone());
            sent_to.truncate(MAX_EDIT_READERS);
            self.edit_sent_to = Some(sent_to);
        }
    }
}
