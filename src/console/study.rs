//! What is worked out about Atlases beside the screen, and what comes of it: pages of lines.

use std::path::PathBuf;
use std::sync::Arc;

use super::theme::Meaning;
use crate::runtime::Load;

/// Something to work out. It changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Study {
    /// How texts differ: their name, what is in force, and what the file says.
    Differ(Vec<(String, Arc<str>, Arc<str>)>),
    /// What the tests beside these Atlas files say.
    Test(Vec<PathBuf>),
    /// Which of the last recorded actions would be judged otherwise, if this were loaded.
    Rehearse(Load),
}

/// What was worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Studied {
    /// What is shown of it.
    pub(crate) lines: Vec<PageLine>,
    /// What it comes to.
    pub(crate) sum: Option<Sum>,
}

/// What something that was worked out comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// So many tests hold, of so many.
    Tests(usize, usize),
    /// So many verdicts would change, of so many.
    Past(usize, usize),
}

/// A line of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLine {
    /// How much it weighs.
    pub(crate) meaning: Meaning,
    /// What it says. It is made safe to show where it is shown.
    pub(crate) text: String,
}

impl PageLine {
    /// A line.
    pub(crate) fn new(meaning: Meaning, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { meaning, text }
    }
}
