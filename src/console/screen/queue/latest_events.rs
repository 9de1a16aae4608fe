//! Latest events of the selected request's session. They are read once per request, and again when there are
//! more. Only one read runs at a time, however fast the selection moves.

use super::QueueScreen;
use crate::base::id::HeldRequestId;
use crate::base::text::one_line;
use crate::console::names::event_words;
use crate::console::request::{ConsoleRequest, TrailPurpose};
use crate::runtime::snapshot::SessionList;
use crate::trace::event::Event;

/// Number of events shown.
const LAST: u64 = 3;

/// Latest events of the selected request's session.
#[derive(Debug, Default)]
pub(super) struct LatestEvents {
    /// Request that the events belong to, and the event count of its session.
    shown_for: Option<(HeldRequestId, u64)>,
    /// Descriptions of the events, newest first.
    texts: Vec<String>,
    /// True while a read is running.
    reading: bool,
}

impl QueueScreen {
    /// Requests the latest events of the selected request's session if they are not known.
    pub(crate) fn request_latest(&mut self, sessions: &SessionList) -> Option<ConsoleRequest> {
        let held = self.selected()?;
        let session = held.session.clone();
        let gate = held.id.clone();
        let mut sessions = sessions.iter();
        let events = sessions
            .find(|summary| summary.id == session)
            .map(|summary| summary.events)?;
        let wanted = Some((gate.clone(), events));
        if self.latest_events.reading || self.latest_events.shown_for == wanted {
            return None;
        }
        if self.latest_events.shown_for.as_ref().map(|(gate, _)| gate) != Some(&gate) {
            self.latest_events.texts.clear();
        }
        self.latest_events.shown_for = wanted;
        self.latest_events.reading = true;
        Some(ConsoleRequest::LoadTrail {
            gate,
            session,
            from: events.saturating_sub(LAST),
            limit: usize::try_from(LAST).unwrap_or_default(),
            purpose: TrailPurpose::LatestEvents,
        })
    }

    /// Takes in the events, or the error of reading them.
    pub(crate) fn on_latest_events(
        &mut self,
        gate: &HeldRequestId,
        events: &Result<Vec<Event>, String>,
    ) {
        self.latest_events.reading = false;
        if self.latest_events.shown_for.as_ref().map(|(gate, _)| gate) != Some(gate) {
            return;
        }
        self.latest_events.texts = match events {
            Ok(events) => {
                let texts = events
                    .iter()
                    .rev()
                    .map(|event| (event.sequence, event_words(&event.event_type)))
                    .map(|(sequence, words)| format!("{sequence} {}", one_line(&words)));
                texts.collect()
            }
            Err(problem) => vec![format!("cannot read the record: {}", one_line(problem))],
        };
    }

    /// Returns the latest events of a request's session in one line, if they are known.
    pub(super) fn latest_text(&self, gate: &HeldRequestId) -> Option<String> {
        let is_shown = self
            .latest_events
            .shown_for
            .as_ref()
            .is_some_and(|(shown_for, _)| shown_for == gate);
        (is_shown && !self.latest_events.texts.is_empty())
            .then(|| self.latest_events.texts.join(" < "))
    }
}
