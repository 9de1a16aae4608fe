//! Commands of the conversations screen.

/// Conversations command that other lists do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadKey {
    /// Selects the next conversation in the list.
    Next,
    /// Selects the previous conversation in the list.
    Previous,
    /// Shows all differences between the stored summary and the proposed ones.
    Differ,
    /// Moves the focus to the turns of the conversation.
    History,
    /// Shows the conversation's session in the record.
    InTrace,
    /// Copies the conversation's memento.
    Copy,
    /// Opens the conversation's summary in an editor.
    Edit,
    /// Reports that the conversation drifts, after confirmation.
    Drift,
    /// Explains the terms on the screen.
    Legend,
    /// Opens a snapshot file.
    OpenSnapshot,
    /// Writes a snapshot file of the conversation's session.
    WriteSnapshot,
    /// Starts a search for a conversation.
    Search,
    /// Selects the next conversation that matches.
    NextMatch,
    /// Selects the previous conversation that matches.
    PreviousMatch,
}
