//! What the screen asks for, and what comes back. The driver stands between the two.

use std::path::PathBuf;

use serde_json::Value;

use super::dialog::gate::{LaidOut, LayOut};
use super::dialog::snapshot::{SnapshotAsk, SnapshotTold};
use super::screen::atlas::{Glance, Listed, Listing, Looked};
use super::screen::trace::{Ask, Told};
use super::study::{Studied, Study};
use crate::base::id::{EventId, GateId, SessionId};
use crate::engine::command::{Decide, Operate, Refused, Reply};
use crate::engine::explain::{Account, Question};
use crate::memento::Name;
use crate::runtime::{Load, LoadRefused, RecordedSession, ThreadAct, Watch};
use crate::trace::event::Event;
use crate::trace::verify::{Progress, Report};

/// Something the screen wants done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// Decide about a held request.
    Decide(Decide),
    /// Do something by which nothing passes.
    Operate(Operate),
    /// Keep what was typed at a held request, or throw it away.
    KeepDraft(GateId, Option<Value>),
    /// Keep what was typed for the summary of a conversation, or throw it away.
    KeepThreadDraft(Name, Option<Value>),
    /// Read the list of sessions on record.
    LoadSessions,
    /// Read events of a session for the dialog of a held request.
    LoadTrail {
        /// The held request.
        gate: GateId,
        /// Its session.
        session: SessionId,
        /// The first sequence number wanted.
        from: u64,
        /// How many at most.
        limit: usize,
        /// What for.
        purpose: Purpose,
    },
    /// Let the operator change a text in an editor.
    Edit(Edit),
    /// Let the operator change the summary of a conversation in an editor.
    EditThread(Box<ThreadEdit>),
    /// Do something to a conversation. Nothing passes by it.
    ActOnThread(Name, ThreadAct),
    /// Do something with a snapshot file.
    Snapshot(Ticket, SnapshotAsk),
    /// Look for an event of a session.
    FindEvent(SessionId, EventId),
    /// Read something for the screen of the record.
    Read(Ask),
    /// Put a text where the terminal pastes from.
    Copy(String),
    /// Break a long request into rows.
    LayOut(LayOut),
    /// Check every chain, until nobody wants it any more.
    Verify(Progress),
    /// Explain these. Nothing comes of it.
    Explain(Ticket, Vec<Question>),
    /// Begin to watch evaluations, or stop.
    Watch(Watch),
    /// Has Atlases look on in the shadow of those in force, or stops that.
    Shadow(Option<Load>),
    /// Look at the files of Atlases.
    Glance(Vec<Glance>),
    /// Look at the folder of Atlases.
    List(Listing),
    /// Have other Atlases come into force.
    Load(Load),
    /// Work something out about Atlases.
    Study(Ticket, Study),
    /// Let the steward change a file of theirs, from that line on.
    EditFile(PathBuf, usize),
    /// Tell the operator, who may be looking elsewhere.
    Notify(Notice),
    /// Take the mouse, or leave it to the terminal.
    Mouse(Mouse),
    /// Paint everything anew.
    Redraw,
    /// Stop until the shell brings it back.
    Suspend,
    /// End the console.
    Quit,
}

/// Which dialog asked, and for the how manieth time: what comes late is told from what is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) u64, pub(crate) u64);

/// What a dialog wants events for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To show what led to the request.
    Context,
    /// To tell what is on disk of a decision that could not be recorded.
    ReadBack,
    /// To tell in the queue what happened last.
    Glance,
}

/// A text for an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The held request it is typed for.
    pub(crate) gate: GateId,
    /// What kind of text it is.
    pub(crate) kind: EditKind,
    /// The text.
    pub(crate) text: String,
}

/// The summary of a conversation, for an editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadEdit {
    /// The conversation.
    pub(crate) thread: Name,
    /// What told the memento that was read from others.
    pub(crate) etag: String,
    /// The text.
    pub(crate) text: String,
}

/// What kind of text an editor gets: it goes by the name of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditKind {
    /// Prose.
    Text,
    /// JSON.
    Json,
}

/// What the operator's terminal is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Whether the bell rings.
    pub(crate) bell: Bell,
    /// The window's title.
    pub(crate) title: String,
    /// What the desktop shows, in words that are safe to show.
    pub(crate) toast: Option<String>,
}

/// Who has the mouse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mouse {
    /// The terminal: it selects text.
    #[default]
    Terminal,
    /// The console.
    Console,
}

/// Whether the bell rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bell {
    /// Something arrived.
    Ring,
    /// Something left.
    Silent,
}

/// What came of a [`Request`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// What became of a decision.
    Decided(GateId, Reply),
    /// What became of what an operator did beside deciding.
    Operated(Operate, Result<(), Refused>),
    /// The sessions on record, newest first.
    Sessions(Result<Vec<RecordedSession>, String>),
    /// Events of a session, for the dialog of a held request.
    Trail(GateId, Purpose, Result<Vec<Event>, String>),
    /// A text as an editor left it, or why there was no editor.
    Edited(GateId, Result<String, String>),
    /// The summary of a conversation as an editor left it, or why there was no editor.
    ThreadEdited(Box<ThreadEdit>, Result<String, String>),
    /// What became of what an operator did to a conversation.
    ThreadActed(Name, ThreadAct, Result<(), Refused>),
    /// What became of it.
    Snapshot(Ticket, SnapshotTold),
    /// The number of an event that was looked for, if its session has it.
    EventFound(SessionId, Result<Option<u64>, String>),
    /// Something for the screen of the record.
    Read(Told),
    /// A long request in rows.
    LaidOut(LaidOut),
    /// What every chain proves. Nothing comes of a check that was stopped.
    Verified(Result<Report, String>),
    /// What was explained, one by one.
    Explained(Ticket, Vec<Result<Box<Account>, String>>),
    /// What files of Atlases have become.
    Glanced(Vec<Looked>),
    /// What the folder of Atlases has become.
    Listed(Listed),
    /// Whether other Atlases are in force.
    Loaded(Result<(), LoadRefused>),
    /// What was worked out about Atlases.
    Studied(Ticket, Result<Studied, String>),
    /// The editor of a file ended, or did not start.
    FileEdited(Result<(), String>),
}
