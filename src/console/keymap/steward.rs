//! Commands for the steward's files.

/// Steward command that other lists do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StewardKey {
    /// Loads the files after confirmation.
    Load,
    /// Restores the Atlases that were loaded before, after confirmation.
    Undo,
    /// Opens the file in an editor.
    Edit,
    /// Runs the tests that are stored next to the files.
    Test,
    /// Evaluates past requests with the files.
    Rehearse,
    /// Starts evaluating the files in shadow of the loaded Atlases, or shows where their results would
    /// differ.
    Shadow,
    /// Stops the shadow evaluation.
    Unshadow,
    /// Shows the differences between the files and the loaded Atlases.
    Differ,
}
