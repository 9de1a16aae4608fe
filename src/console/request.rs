//! Requests of the app, and the messages that answer them. The driver executes the requests.

use std::path::PathBuf;

use serde_json::Value;

use super::atlas_study::{Study, StudyResult};
use super::dialog::gate::{LayoutJob, RequestLayout};
use super::dialog::snapshot::{SnapshotRequest, SnapshotResponse};
use super::screen::atlas::{FileCheck, FileCheckResult, FolderCheck, FolderListing};
use super::screen::trace::{TraceRead, TraceReadResult};
use crate::base::id::{EventId, HeldRequestId, SessionId};
use crate::engine::command::{DecisionRefusal, DecisionRequest, OperatorAction, OperatorReply};
use crate::engine::explanation::{ExplainQuestion, FullExplanation};
use crate::memento::ExternalName;
use crate::runtime::{AtlasLoad, LoadRefusal, RecordedSession, ThreadAction, WatchSetting};
use crate::trace::event::Event;
use crate::trace::verification::{VerificationProgress, VerificationReport};

/// Request of the app to the driver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConsoleRequest {
    /// Decide a held request.
    Decide(DecisionRequest),
    /// Perform an operator action that passes nothing.
    Operate(OperatorAction),
    /// Keep the draft of a held request; `None` discards it.
    KeepDraft(HeldRequestId, Option<Value>),
    /// Keep the draft of a thread's summary; `None` discards it.
    KeepThreadDraft(ExternalName, Option<Value>),
    /// Read the list of sessions on record.
    LoadSessions,
    /// Read events of a session for the dialog of a held request.
    LoadTrail {
        /// The held request.
        gate: HeldRequestId,
        /// Session of the request.
        session: SessionId,
        /// First sequence number to read.
        from: u64,
        /// Maximum number of events.
        limit: usize,
        /// Purpose of the events.
        purpose: TrailPurpose,
    },
    /// Open a text in the operator's editor.
    Edit(TextEdit),
    /// Open the summary of a thread in the operator's editor.
    EditThread(Box<ThreadEdit>),
    /// Perform an action on a thread. It passes nothing.
    ActOnThread(ExternalName, ThreadAction),
    /// Read or write a snapshot file.
    Snapshot(Ticket, SnapshotRequest),
    /// Find an event of a session.
    FindEvent(SessionId, EventId),
    /// Read data for the TRACE screen.
    Read(TraceRead),
    /// Copy a text to the clipboard.
    Copy(String),
    /// Break a long request into rows.
    LayOut(LayoutJob),
    /// Check every chain, until the operator stops it.
    Verify(VerificationProgress),
    /// Explain these questions. This has no effect on agents or records.
    Explain(Ticket, Vec<ExplainQuestion>),
    /// Start or stop watching evaluations.
    Watch(WatchSetting),
    /// Start or stop shadow evaluation with these Atlases; the loaded ones still decide.
    Shadow(Option<AtlasLoad>),
    /// Check the Atlas files for changes.
    CheckFiles(Vec<FileCheck>),
    /// Check the Atlas folder for changes.
    CheckFolder(FolderCheck),
    /// Load other Atlases.
    Load(AtlasLoad),
    /// Run a study about Atlases.
    Study(Ticket, Study),
    /// Open a file in the steward's editor, at this line.
    EditFile(PathBuf, usize),
    /// Notify the operator, who may be looking elsewhere.
    Notify(TerminalNotice),
    /// Capture the mouse, or leave it to the terminal.
    Mouse(MouseOwner),
    /// Repaint everything.
    Redraw,
    /// Suspend the process until the shell resumes it.
    Suspend,
    /// End the console.
    Quit,
}

/// Dialog number and request counter. Responses with an older counter are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) u64, pub(crate) u64);

/// Purpose of requested events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrailPurpose {
    /// Show what led to the request.
    Context,
    /// Show the records on disk of a decision that could not be recorded.
    ReadBack,
    /// Show the last event in the queue.
    LatestEvents,
}

/// A text for the external editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEdit {
    /// The held request that the text belongs to.
    pub(crate) gate: HeldRequestId,
    /// Format of the text.
    pub(crate) kind: EditKind,
    /// The text.
    pub(crate) text: String,
}

/// The summary of a thread, for the external editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadEdit {
    /// The thread.
    pub(crate) thread: ExternalName,
    /// Entity tag of the memento that was read.
    pub(crate) etag: String,
    /// The text.
    pub(crate) text: String,
}

/// Format of a text for the editor. It determines the extension of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditKind {
    /// Prose.
    Text,
    /// JSON.
    Json,
}

/// Notification through the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TerminalNotice {
    /// Bell: rings or stays silent.
    pub(crate) bell: Bell,
    /// The window's title.
    pub(crate) title: String,
    /// Text of the desktop notification, safe to show.
    pub(crate) toast: Option<String>,
}

/// Owner of the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MouseOwner {
    /// The terminal, which selects text with it.
    #[default]
    Terminal,
    /// The console.
    Console,
}

/// State of the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bell {
    /// Rings: something arrived.
    Ring,
    /// Stays silent: something left.
    Silent,
}

/// Response to a [`ConsoleRequest`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConsoleMessage {
    /// Result of a decision.
    Decided(HeldRequestId, OperatorReply),
    /// Result of an operator action other than a decision.
    Operated(OperatorAction, Result<(), DecisionRefusal>),
    /// The sessions on record, newest first.
    Sessions(Result<Vec<RecordedSession>, String>),
    /// Events of a session, for the dialog of a held request.
    Trail(HeldRequestId, TrailPurpose, Result<Vec<Event>, String>),
    /// A text from the external editor, or why there is none.
    Edited(HeldRequestId, Result<String, String>),
    /// The summary of a thread from the external editor, or why there is none.
    ThreadEdited(Box<ThreadEdit>, Result<String, String>),
    /// Result of an operator's action on a thread.
    ThreadActed(ExternalName, ThreadAction, Result<(), DecisionRefusal>),
    /// Response about a snapshot file.
    Snapshot(Ticket, SnapshotResponse),
    /// Sequence number of the requested event, if its session has it.
    EventFound(SessionId, Result<Option<u64>, String>),
    /// Data for the TRACE screen.
    Read(TraceReadResult),
    /// Rows of a long request.
    LaidOut(RequestLayout),
    /// Result of the check of all chains. A stopped check sends no message.
    Verified(Result<VerificationReport, String>),
    /// Explanations, one per question.
    Explained(Ticket, Vec<Result<Box<FullExplanation>, String>>),
    /// State of the Atlas files.
    FilesChecked(Vec<FileCheckResult>),
    /// State of the Atlas folder.
    FolderChecked(FolderListing),
    /// Result of a load.
    Loaded(Result<(), LoadRefusal>),
    /// Result of a study.
    Studied(Ticket, Result<StudyResult, String>),
    /// The editor of a file ended, or did not start.
    FileEdited(Result<(), String>),
}
