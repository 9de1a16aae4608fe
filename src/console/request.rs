//! What the screen asks for, and what comes back. The driver stands between the two.

use serde_json::Value;

use super::screen::trace::{Ask, Told};
use crate::base::id::GateId;
use crate::engine::command::{Decide, Reply};
use crate::runtime::RecordedSession;
use crate::trace::verify::Report;

/// Something the screen wants done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// Decide about a held request.
    Decide(Decide),
    /// Keep what was typed at a held request, or throw it away.
    KeepDraft(GateId, Option<Value>),
    /// Read the list of sessions on record.
    LoadSessions,
    /// Read something for the screen of the record.
    Read(Ask),
    /// Put a text where the terminal pastes from.
    Copy(String),
    /// Check every chain.
    Verify,
    /// Tell the operator, who may be looking elsewhere.
    Notify(Notice),
    /// Paint everything anew.
    Redraw,
    /// Stop until the shell brings it back.
    Suspend,
    /// End the console.
    Quit,
}

/// What the operator's terminal is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Whether the bell rings.
    pub(crate) bell: Bell,
    /// The window's title.
    pub(crate) title: String,
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
    /// The sessions on record, newest first.
    Sessions(Result<Vec<RecordedSession>, String>),
    /// Something for the screen of the record.
    Read(Told),
    /// What every chain proves.
    Verified(Result<Report, String>),
}
