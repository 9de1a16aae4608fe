//! What a key of the conversations does.

/// What a key of the conversations does, beside what keys do in other lists too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadKey {
    /// To the conversation below in the list.
    Next,
    /// To the one above.
    Previous,
    /// Shows everything in which the kept summary and the proposed ones differ.
    Differ,
    /// To its turns.
    History,
    /// Shows its session in the record.
    InTrace,
    /// Copies its memento.
    Copy,
    /// Changes its summary in an editor.
    Edit,
    /// Says that it drifts, after a question.
    Drift,
    /// Says what the words on the screen mean.
    Legend,
    /// Opens a snapshot file.
    OpenSnapshot,
    /// Writes one of its session.
    WriteSnapshot,
    /// Looks for a conversation.
    Search,
    /// To the next one that matches.
    NextMatch,
    /// To the one before.
    PreviousMatch,
}
