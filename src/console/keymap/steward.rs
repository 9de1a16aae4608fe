//! What a key of the steward does.

/// What a key of the steward does, beside what keys do in other lists too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StewardKey {
    /// Loads the files, after a question.
    Load,
    /// Goes back to what was in force before, after a question.
    Undo,
    /// Opens the file in an editor.
    Edit,
    /// Runs the tests beside the files.
    Test,
    /// Judges the past by the files.
    Rehearse,
    /// Has the files look on beside what is loaded; or shows what they would have done otherwise.
    Shadow,
    /// Stops that.
    Unshadow,
    /// Shows how the files differ from what is loaded.
    Differ,
}
