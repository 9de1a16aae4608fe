//! Explanations of verdicts for readers new to them.

use crate::trace::verification::{ChainVerification, VerificationVerdict};

/// Colour class of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerdictClass {
    /// The whole chain is proven.
    Proven,
    /// No fault was found, but a part is not proven.
    Open,
    /// The session was imported, so the time before the import is not proven.
    Imported,
    /// Verification failed.
    Broken,
}

impl VerdictClass {
    pub(super) fn of(checked: Option<&ChainVerification>) -> Self {
        match checked {
            Some(checked) => match &checked.verdict {
                VerificationVerdict::Holds(proven) if proven.imported_from.is_some() => {
                    Self::Imported
                }
                VerificationVerdict::Holds(proven) if proven.unproven_count() == 0 => Self::Proven,
                VerificationVerdict::Holds(_) => Self::Open,
                VerificationVerdict::Diverged { .. }
                | VerificationVerdict::Truncated { .. }
                | VerificationVerdict::Broken { .. } => Self::Broken,
            },
            None => Self::Open,
        }
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Proven => "good",
            Self::Open | Self::Imported => "care",
            Self::Broken => "stop",
        }
    }
}

/// Explanation of a verdict in plain language.
pub(super) fn meaning(checked: Option<&ChainVerification>) -> &'static str {
    let Some(checked) = checked else {
        return "This chain was not checked when cra made the report.";
    };
    match &checked.verdict {
        VerificationVerdict::Holds(proven) if proven.imported_from.is_some() => {
            "Every event links to the previous one, and every hash matches its content. The imported range \
             came from another store: this log proves that it did not change since the import. It proves \
             nothing about the time before the import."
        }
        VerificationVerdict::Holds(proven)
            if proven.unproven_count() == 0 && proven.witnessed >= proven.count =>
        {
            "Every event links to the previous one, and a witness (a head of the log that is kept \
             elsewhere) covers all events. No event was changed, moved, added or removed since that head \
             was made."
        }
        VerificationVerdict::Holds(proven) if proven.unproven_count() == 0 => {
            "Every event links to the previous one, and a signed head of the log covers all events. \
             Without the key, no event can have been changed, moved, added or removed. Only a witness (a \
             head of the log that is kept elsewhere) can show whether later events were removed together \
             with the heads that covered them."
        }
        VerificationVerdict::Holds(_) => {
            "Every event links to the previous one, and every hash matches its content. A head proves the \
             sealed or witnessed range. The events after this range are not proven."
        }
        VerificationVerdict::Diverged { .. } => {
            "The events are consistent, but they are not the sealed events: the record was rewritten."
        }
        VerificationVerdict::Truncated { .. } => {
            "The events found are consistent, but events are missing at the end."
        }
        VerificationVerdict::Broken { .. } => {
            "From this event on, the record differs from what cra wrote: an event was changed, moved, \
             added or removed. The events before it are consistent."
        }
    }
}
