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
    of: Option<(HeldRequestId, u64)>,
    /// Descriptions of the events, newest first.
    texts: Vec<String>,
    /// True while a read is running.
    reading: bool,
}

impl QueueScreen {
    /// Requests the latest events of the selected request's session if they are not known.
    pub(crate) fn ask_last(&mut self, sessions: &SessionList) -> Option<ConsoleRequest> {
        let held = self.selected()?;
        let session = held.session.clone();
        let gate = held.id.clone();
        let mut sessions = sessions.iter();
        let events = sessions
            .find(|summary| summary.id == session)
            .map(|summary| summary.events)?;
        let wanted = Some((gate.clone(), events));
        if self.glance.reading || self.glance.of == wanted {
            return None;
        }
        if self.glance.of.as_ref().map(|(gate, _)| gate) != Some(&gate) {
            self.glance.texts.clear();
        }
        self.glance.of = wanted;
        self.glance.reading = true;
        Some(ConsoleRequest::LoadTrail {
            gate,
            session,
            from: events.saturating_sub(LAST),
            limit: usize::try_from(LAST).unwrap_or_default(),
            purpose: TrailPurpose::Glance,
        })
    }

    /// Takes in the events, or the error of reading them.
    pub(crate) fn on_last(&mut self, gate: &HeldRequestId, events: &Result<Vec<Event>, String>) {
        self.glance.reading = false;
        if self.glance.of.as_ref().map(|(gate, _)| gate) != Some(gate) {
            return;
        }
        self.glance.texts = match events {
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
    pub(super) fn last(&self, gate: &HeldRequestId) -> Option<String> {
        let is_its = self.glance.of.as_ref().is_some_and(|(of, _)| of == gate);
        (is_its && !self.glance.texts.is_empty()).then(|| self.glance.texts.join(" < "))
    }
}
