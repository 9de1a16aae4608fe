//! Acknowledgement mode of a console, stored for the next start.
//!
//! By default an agent is answered after its events are on disk, so a crash loses nothing that the agent
//! was told. If all loaded Atlases say `acknowledge: early`, agents are answered before that; then at most
//! [`MAX_EARLY_EVENTS`] acknowledged events are not on disk at any time. The store keeps the mode while a
//! console runs. After a crash the next console records what may be missing.

use serde::{Deserialize, Serialize};

use crate::atlas::document::AcknowledgeMode;
use crate::base::canonical_json::canonical;
use crate::base::json;
use crate::base::limits::MAX_EARLY_EVENTS;
use crate::store::StateRow;

/// State kind of the stored mode.
pub(super) const ACKNOWLEDGEMENT: &str = "acknowledgement";

/// Acknowledgement mode of one console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Acknowledgement {
    mode: AcknowledgeMode,
    /// Acknowledged events that may be missing after a crash.
    may_lose: u64,
    /// True while the console runs; an orderly stop clears it.
    running: bool,
}

impl Acknowledgement {
    /// Returns the value for a running console.
    pub(super) fn running(mode: AcknowledgeMode) -> Self {
        Self {
            mode,
            may_lose: match mode {
                AcknowledgeMode::Early => MAX_EARLY_EVENTS,
                AcknowledgeMode::Durable => 0,
            },
            running: true,
        }
    }

    /// Marks the console as stopped: after an orderly stop, or once a crash is on record.
    pub(super) fn stopped(self) -> Self {
        Self {
            running: false,
            ..self
        }
    }

    /// Finds the stored value among rows of state.
    pub(super) fn find(rows: &[StateRow]) -> Option<Self> {
        let row = rows.iter().find(|row| row.kind == ACKNOWLEDGEMENT)?;
        Self::read(row)
    }

    /// Reads the value that the last console stored.
    pub(super) fn read(row: &StateRow) -> Option<Self> {
        json::read(row.body.as_deref()?.as_bytes()).ok()
    }

    /// Returns the row of state that stores the value.
    pub(super) fn row(self) -> StateRow {
        let body = serde_json::to_value(self).unwrap_or_default();
        StateRow {
            kind: ACKNOWLEDGEMENT.to_owned(),
            key: "mode".to_owned(),
            body: Some(canonical(&body)),
        }
    }
}

/// Returns the sentence about acknowledged events for the record of a recovery.
///
/// `dropped` is true if the store dropped an unfinished write when it was opened.
pub(super) fn loss_after(before: Option<Acknowledgement>, dropped: bool) -> Option<String> {
    match before {
        Some(before) if before.running && before.may_lose > 0 => Some(format!(
            "the last run of cra did not stop cleanly, and its Atlases allow early answers to agents: up to {} \
             acknowledged events may be missing",
            before.may_lose
        )),
        Some(_) => dropped.then(|| "no agent got an answer for an event in that write".to_owned()),
        None => dropped.then(|| {
            "an older version of cra wrote it, so agents may have got answers for events in that write"
                .to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_acknowledgement_mode_reads_back_as_stored() {
        for mode in [AcknowledgeMode::Early, AcknowledgeMode::Durable] {
            for kept in [
                Acknowledgement::running(mode),
                Acknowledgement::running(mode).stopped(),
            ] {
                assert_eq!(Acknowledgement::read(&kept.row()), Some(kept));
            }
        }
    }

    #[test]
    fn only_a_console_that_answered_early_and_crashed_may_have_lost_acknowledged_events() {
        let early = Acknowledgement::running(AcknowledgeMode::Early);
        let loss = loss_after(Some(early), false).unwrap();
        assert!(loss.contains("up to 256 acknowledged events"), "{loss}");
        let in_order = [
            Acknowledgement::running(AcknowledgeMode::Early).stopped(),
            Acknowledgement::running(AcknowledgeMode::Durable).stopped(),
            Acknowledgement::running(AcknowledgeMode::Durable),
        ];
        for before in in_order {
            assert_eq!(loss_after(Some(before), false), None);
            let mended = loss_after(Some(before), true).unwrap();
            assert_eq!(mended, "no agent got an answer for an event in that write");
        }
        assert_eq!(loss_after(None, false), None);
        assert!(loss_after(None, true).unwrap().contains("older version"));
    }
}
