//! Studies of Atlases, computed in the background, and their results as pages of lines.

use std::path::PathBuf;
use std::sync::Arc;

use super::theme::Meaning;
use crate::runtime::AtlasLoad;

/// A study to compute. It changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Study {
    /// Difference of texts: name, loaded text, and text of the file.
    Differ(Vec<(String, Arc<str>, Arc<str>)>),
    /// Results of the tests next to these Atlas files.
    Test(Vec<PathBuf>),
    /// Recorded actions that would be judged differently if this were loaded.
    Rehearse(AtlasLoad),
}

/// Result of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StudyResult {
    /// Lines to show.
    pub(crate) lines: Vec<PageLine>,
    /// Summary of the result.
    pub(crate) summary: Option<StudySummary>,
}

/// Summary of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StudySummary {
    /// Number of tests that hold, and number of all tests.
    Tests(usize, usize),
    /// Number of verdicts that would change, and number of all verdicts.
    Rehearsal(usize, usize),
}

/// A line of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageLine {
    /// Meaning, which selects the style.
    pub(crate) meaning: Meaning,
    /// Text. The page that shows it makes it safe to show.
    pub(crate) text: String,
}

impl PageLine {
    /// Creates a line.
    pub(crate) fn new(meaning: Meaning, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { meaning, text }
    }
}
