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
        return "Nobody checked this chain when the report was made.";
    };
    match &checked.verdict {
        VerificationVerdict::Holds(proven) if proven.imported_from.is_some() => {
            "Every event follows from the one before, and every hash fits its content. The imported range came \
             from elsewhere: this log proves that it did not change since the import, and nothing about the \
             time before."
        }
        VerificationVerdict::Holds(proven)
            if proven.unproven_count() == 0 && proven.witnessed >= proven.count =>
        {
            "Every event follows from the one before, and a head of the log that was kept elsewhere \
             covers all of them. So none was changed, moved, added or taken out since that head was \
             made."
        }
        VerificationVerdict::Holds(proven) if proven.unproven_count() == 0 => {
            "Every event follows from the one before, and a signed head of the log covers all of them. So \
             none was changed, moved, added or taken out by anybody who does not have the key. Whether \
             more events were cut off at the end, with all heads that cover them, only a head that was \
             kept elsewhere can tell."
        }
        VerificationVerdict::Holds(_) => {
            "Every event follows from the one before, and every hash fits its content. The range that is \
             called sealed or witnessed is proven by a head; the tail behind it is not, or not yet."
        }
        VerificationVerdict::Diverged { .. } => {
            "The events fit together, but they are not the ones that were sealed: the record was \
             rewritten."
        }
        VerificationVerdict::Truncated { .. } => {
            "What is there fits together, but more events were there once than are there now: the end is \
             missing."
        }
        VerificationVerdict::Broken { .. } => {
            "From that event on the record is not what was written: something was changed, moved, added \
             or taken out. What comes before it still fits together."
        }
    }
}
