//! The state of the store, as pictures show it.

/// State of the store: it takes records, hangs, or has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreState {
    /// The store takes records.
    Ready,
    /// A write takes too long, or there is no room: nothing is recorded until that ends, and nothing is allowed.
    Stalled {
        /// The reason, for people.
        what: String,
    },
    /// A write failed: nothing more is recorded, and nothing is allowed.
    Poisoned {
        /// The failure, for people.
        what: String,
    },
}

impl StoreState {
    /// The reason why nothing is recorded, if there is one.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Ready => None,
            Self::Stalled { what } | Self::Poisoned { what } => Some(what),
        }
    }

    /// State in a picture that takes the place of one with the state `last`. A stall stays until the watch over the
    /// store ends it, and begins where there is no room.
    pub(super) fn after(&self, last: &Self, shortage: Option<&str>) -> Self {
        match (self, last, shortage) {
            (Self::Poisoned { .. }, ..) => self.clone(),
            (_, Self::Stalled { .. }, _) => last.clone(),
            (_, Self::Ready | Self::Poisoned { .. }, Some(what)) => Self::Stalled {
                what: what.to_owned(),
            },
            (_, Self::Ready | Self::Poisoned { .. }, None) => Self::Ready,
        }
    }

    /// The reason why nothing is recorded, where that can end without a restart.
    #[must_use]
    pub fn stall(&self) -> Option<&str> {
        match self {
            Self::Stalled { what } => Some(what),
            Self::Ready | Self::Poisoned { .. } => None,
        }
    }
}
