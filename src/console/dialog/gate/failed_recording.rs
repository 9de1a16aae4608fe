//! Failed recording of a decision: the error, and the part that is on disk nevertheless.
//!
//! Contract: the console never reports a failed write as if nothing had happened. It reads the record
//! back and shows what it found, or that the record cannot be read.

use super::GateDialog;
use crate::base::text::one_line;
use crate::console::names::event_words;
use crate::console::request::{ConsoleRequest, TrailPurpose};
use crate::console::theme::Appearance;
use crate::trace::event::Event;

/// Number of earlier events that the trail shows.
const TRAIL_EVENTS: u64 = 8;

/// Maximum number of events to read back. A decision about many gates writes some dozens.
const MAX_READ_BACK_EVENTS: usize = 500;

/// A decision that could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedRecording {
    /// The error, as text.
    pub(crate) reason: String,
    /// The part of the decision that is on disk.
    pub(crate) on_disk: DiskState,
}

/// Part of a decision that is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DiskState {
    /// The record is being read.
    Reading,
    /// Nothing is on disk.
    Nothing,
    /// This record is on disk.
    Record {
        /// Type of the event.
        kind: String,
        /// Sequence number of the event.
        sequence: u64,
    },
    /// The record cannot be read.
    Unknown(String),
}

impl FailedRecording {
    /// Text about what is on disk.
    pub(crate) fn words(&self) -> String {
        match &self.on_disk {
            DiskState::Reading => "reading back from disk...".to_owned(),
            DiskState::Nothing => "read back: this decision is not on disk".to_owned(),
            DiskState::Record { kind, sequence } => {
                let kind = event_words(kind);
                format!(
                    "read back: `{kind}` is on disk as event {sequence}, although the write failed"
                )
            }
            DiskState::Unknown(reason) => {
                format!(
                    "read-back failed, disk content unknown: {}",
                    one_line(reason)
                )
            }
        }
    }
}

impl GateDialog {
    /// Requests the last events of the session.
    pub(crate) fn request_trail(&self) -> ConsoleRequest {
        let from = self.events.saturating_sub(TRAIL_EVENTS);
        ConsoleRequest::LoadTrail {
            gate: self.held.id.clone(),
            session: self.held.session.clone(),
            from,
            limit: usize::try_from(TRAIL_EVENTS).unwrap_or(usize::MAX),
            purpose: TrailPurpose::Context,
        }
    }

    /// Requests the records on disk of a decision that could not be recorded.
    pub(super) fn request_read_back(&mut self, reason: String) -> ConsoleRequest {
        self.failed_recording = Some(FailedRecording {
            reason,
            on_disk: DiskState::Reading,
        });
        ConsoleRequest::LoadTrail {
            gate: self.held.id.clone(),
            session: self.held.session.clone(),
            from: self.first_record,
            limit: MAX_READ_BACK_EVENTS,
            purpose: TrailPurpose::ReadBack,
        }
    }

    /// Takes over events of the session.
    pub(crate) fn on_trail(
        &mut self,
        purpose: TrailPurpose,
        events: &Result<Vec<Event>, String>,
        appearance: Appearance,
    ) {
        match purpose {
            TrailPurpose::Context => {
                let events = events.as_deref().unwrap_or_default();
                self.context.on_trail(events, appearance);
            }
            TrailPurpose::ReadBack => self.on_read_back(events),
            // The queue handles this purpose.
            TrailPurpose::LatestEvents => {}
        }
    }

    fn on_read_back(&mut self, events: &Result<Vec<Event>, String>) {
        let on_disk = match events {
            Err(reason) => DiskState::Unknown(reason.clone()),
            Ok(events) => {
                let mut events = events.iter();
                let own_event = events.find(|event| self.is_of_decision(event));
                own_event.map_or(DiskState::Nothing, |event| DiskState::Record {
                    kind: event.event_type.clone(),
                    sequence: event.sequence,
                })
            }
        };
        if let Some(refusal) = &mut self.failed_recording {
            refusal.on_disk = on_disk;
        }
    }

    /// Returns true if an event was recorded because one of these gates was decided.
    fn is_of_decision(&self, event: &Event) -> bool {
        let kinds = [
            "checkpoint_approved",
            "checkpoint_passed",
            "checkpoint_blocked",
            "policy_override",
            "risk_verified",
        ];
        let of_gate = self
            .held
            .gates
            .iter()
            .any(|gate| event.parent_span_id.as_ref() == Some(&gate.span_id));
        of_gate && kinds.contains(&event.event_type.as_str())
    }
}
