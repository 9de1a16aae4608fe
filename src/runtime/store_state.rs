//! State of the store, as snapshots show it.

/// State of the store: it accepts records, hangs, or has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreState {
    /// The store accepts records.
    Ready,
    /// A write takes too long, or the disk is full: until that ends nothing is recorded, and nothing is
    /// allowed.
    Stalled {
        /// Reason, for people.
        what: String,
    },
    /// A write failed: nothing more is recorded, and nothing is allowed.
    Poisoned {
        /// Failure, for people.
        what: String,
    },
}

impl StoreState {
    /// Returns the reason why nothing is recorded, if there is one.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::Stalled { what } | Self::Poisoned { what } => Some(what),
        }
    }

    /// Returns the state for a snapshot that replaces one with the state `last`. A stall stays until the
    /// watchdog of the store ends it, and begins when the disk is full.
    pub(super) fn after_last(&self, last: &Self, shortage: Option<&str>) -> Self {
        match (self, last, shortage) {
            (Self::Poisoned { .. }, ..) => self.clone(),
            (_, Self::Stalled { .. }, _) => last.clone(),
            (_, Self::Ready | Self::Poisoned { .. }, Some(what)) => Self::Stalled {
                what: what.to_owned(),
            },
            (_, Self::Ready | Self::Poisoned { .. }, None) => Self::Ready,
        }
    }

    /// Returns the reason why nothing is recorded, if that can end without a restart.
    #[must_use]
    pub fn stall(&self) -> Option<&str> {
        match self {
            Self::Stalled { what } => Some(what),
            Self::Ready | Self::Poisoned { .. } => None,
        }
    }
}
