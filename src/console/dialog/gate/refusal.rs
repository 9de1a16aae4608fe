//! Failed recording of a decision: the error, and the part that is on disk nevertheless.
//!
//! Contract: the console never reports a failed write as if nothing had happened. It reads the record
//! back and shows what it found, or that the record cannot be read.

use super::GateDialog;
use crate::base::text::one_line;
use crate::console::request::{Purpose, Request};
use crate::console::theme::Look;
use crate::trace::event::Event;

/// Number of earlier events that the trail shows.
const TRAIL: u64 = 8;

/// Maximum number of events to read back. A decision about many gates writes some dozens.
const READ_BACK: usize = 500;

/// A decision that could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The error, as text.
    pub(crate) why: String,
    /// The part of the decision that is on disk.
    pub(crate) on_disk: OnDisk,
}

/// Part of a decision that is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnDisk {
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

impl Refusal {
    /// Text about what is on disk.
    pub(crate) fn words(&self) -> String {
        match &self.on_disk {
            OnDisk::Reading => "reading back what is on disk...".to_owned(),
            OnDisk::Nothing => "read back: nothing of this decision is on disk".to_owned(),
            OnDisk::Record { kind, sequence } => {
                format!(
                    "read back: {kind} is on disk as event {sequence}, although the write failed"
                )
            }
            OnDisk::Unknown(why) => {
                format!(
                    "what is on disk is not known, it cannot be read back: {}",
                    one_line(why)
                )
            }
        }
    }
}

impl GateDialog {
    /// Requests the last events of the session.
    pub(crate) fn ask_trail(&self) -> Request {
        let from = self.events.saturating_sub(TRAIL);
        Request::LoadTrail {
            gate: self.held.id.clone(),
            session: self.held.session.clone(),
            from,
            limit: usize::try_from(TRAIL).unwrap_or(usize::MAX),
            purpose: Purpose::Context,
        }
    }

    /// Requests the records on disk of a decision that could not be recorded.
    pub(super) fn read_back(&mut self, why: String) -> Request {
        self.refusal = Some(Refusal {
            why,
            on_disk: OnDisk::Reading,
        });
        Request::LoadTrail {
            gate: self.held.id.clone(),
            session: self.held.session.clone(),
            from: self.written_from,
            limit: READ_BACK,
            purpose: Purpose::ReadBack,
        }
    }

    /// Takes over events of the session.
    pub(crate) fn on_trail(
        &mut self,
        purpose: Purpose,
        events: &Result<Vec<Event>, String>,
        look: Look,
    ) {
        match purpose {
            Purpose::Context => {
                let events = events.as_deref().unwrap_or_default();
                self.context.on_trail(events, look);
            }
            Purpose::ReadBack => self.on_read_back(events),
            // The queue handles this purpose.
            Purpose::Glance => {}
        }
    }

    fn on_read_back(&mut self, events: &Result<Vec<Event>, String>) {
        let on_disk = match events {
            Err(why) => OnDisk::Unknown(why.clone()),
            Ok(events) => {
                let mut events = events.iter();
                let ours = events.find(|event| self.is_of_decision(event));
                ours.map_or(OnDisk::Nothing, |event| OnDisk::Record {
                    kind: event.event_type.clone(),
                    sequence: event.sequence,
                })
            }
        };
        if let Some(refusal) = &mut self.refusal {
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
