//! What a verdict means, for people who have never seen one.

use crate::trace::verify::Checked;

/// How a verdict is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// All of it is proven.
    Proven,
    /// Nothing speaks against it, but not all of it is proven.
    Open,
    /// It does not hold.
    Broken,
}

impl Standing {
    pub(super) fn of(checked: Option<&Checked>) -> Self {
        match checked {
            Some(checked) if !checked.verdict.is_sound() => Self::Broken,
            Some(checked) if word(checked) == "VERIFIED" => Self::Proven,
            Some(_) | None => Self::Open,
        }
    }

    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Proven => "good",
            Self::Open => "care",
            Self::Broken => "stop",
        }
    }
}

/// The first word of a verdict: what it comes to.
pub(super) fn word(checked: &Checked) -> String {
    let said = checked.verdict.to_string();
    let first = said.split([' ', ':']).next();
    first.unwrap_or_default().to_owned()
}

/// What a verdict means.
pub(super) fn meaning(checked: Option<&Checked>) -> &'static str {
    let Some(checked) = checked else {
        return "Nobody checked this chain when the report was made.";
    };
    match word(checked).as_str() {
        "VERIFIED" => {
            "Every event in that range carries the hash of the one before, and every hash fits its \
             content. So none was changed, moved, added or taken out, and the last one is the last that \
             was acknowledged."
        }
        "UNPROVEN" => {
            "Every event in that range carries the hash of the one before, and every hash fits its \
             content. But nothing outside of it says how long the chain was: events may have been cut \
             off at its end."
        }
        "TRUNCATED" => {
            "What is there fits together, but more events were acknowledged than are there: the end is \
             missing."
        }
        "BROKEN" => {
            "From that event on the record is not what was written: something was changed, moved, added \
             or taken out. What comes before it still fits together."
        }
        _ if checked.verdict.is_sound() => {
            "Nothing speaks against this chain. How much of it is proven is what the verdict says."
        }
        _ => "This chain does not hold: do not rely on it.",
    }
}
