//! Rows of the event list: all events, those that no fold hides, or those that match a filter.

use super::scan::SessionScan;

/// Rows of the event list.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventRows<'o> {
    /// All events.
    All(u64),
    /// Events that no fold hides, followed by the events that are not in the outline yet.
    Folded {
        shown: &'o [u32],
        read: u64,
        total: u64,
    },
    /// Events that match a filter.
    Found(&'o SessionScan),
}

impl EventRows<'_> {
    /// Returns the number of rows.
    pub(super) fn len(self) -> u64 {
        match self {
            Self::All(total) => total,
            Self::Folded { shown, read, total } => shown.len() as u64 + (total - read),
            Self::Found(scan) => scan.len() as u64,
        }
    }

    /// Returns the sequence number of a row's event.
    pub(super) fn get(self, row: u64) -> Option<u64> {
        let place = usize::try_from(row).ok()?;
        match self {
            Self::All(total) => (row < total).then_some(row),
            Self::Folded { shown, read, total } => match shown.get(place) {
                Some(sequence) => Some(u64::from(*sequence)),
                None => Some(row - shown.len() as u64 + read).filter(|at| *at < total),
            },
            Self::Found(scan) => scan.get(place),
        }
    }

    /// Returns the row of an event. For a hidden event, returns the row that hides it.
    pub(super) fn row_of(self, sequence: u64) -> u64 {
        let last = self.len().saturating_sub(1);
        let row = match self {
            Self::All(_) => sequence,
            Self::Folded { shown, read, .. } if sequence < read => {
                let before = shown.partition_point(|at| u64::from(*at) <= sequence);
                before.saturating_sub(1) as u64
            }
            Self::Folded { shown, read, .. } => shown.len() as u64 + (sequence - read),
            Self::Found(scan) => scan.rank(sequence) as u64,
        };
        row.min(last)
    }
}
