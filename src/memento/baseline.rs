//! The memento that a turn starts with.

use serde::{Deserialize, Serialize};

use super::contract::{MementoVersion, SignalItem, ThreadMemento};
use super::text::{BoundedText, Datetime, ExternalName};
use super::thread::Thread;
use super::turn::Turn;
use super::{Affect, AffectPhase, AffectRollup, Intensity};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::text::one_line;

/// The origin of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineSource {
    /// The turn referred to a stored memento.
    RequestRef,
    /// The turn included a memento.
    Request,
    /// The newest stored memento.
    StoredLatest,
    /// An empty memento, because there was none.
    EmptySeed,
}

impl BaselineSource {
    /// Returns the source's name in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RequestRef => "request_ref",
            Self::Request => "request",
            Self::StoredLatest => "stored_latest",
            Self::EmptySeed => "empty_seed",
        }
    }
}

/// The memento that a turn starts with, and the additional input of the turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// The memento.
    pub memento: ThreadMemento,
    /// Origin of the memento.
    pub source: BaselineSource,
    /// Signals that count: those of an included memento that is not ignored, then the turn's own.
    pub signals: Vec<SignalItem>,
    /// True if the turn may come from an agent that has not read an operator's edit of the summary.
    ///
    /// The turn either shows an older memento, or proposes a summary without showing that the agent has read the
    /// edit.
    pub is_before_edit: bool,
}

/// The status of the memento that a turn includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IncludedMemento {
    /// The turn includes no memento.
    Nothing,
    /// The memento belongs to another thread.
    Foreign,
    /// Another memento is stored as the newest.
    Outdated,
    /// The memento is the newest, or the thread has none yet.
    Newest,
}

impl IncludedMemento {
    fn of(thread: &Thread, turn: &Turn) -> Self {
        let Some(brought) = turn.memento() else {
            return Self::Nothing;
        };
        if brought.thread_id != thread.id {
            return Self::Foreign;
        }
        match &thread.latest {
            Some(latest) if latest.memento_id != brought.memento_id => Self::Outdated,
            Some(_) | None => Self::Newest,
        }
    }
}

/// The note about a proposal that is held back because the turn does not show that its agent has read an edit.
const UNREAD_EDIT: &str = "an operator edited the summary, and this session may not have read the edit: the proposal \
                           is not used; the answer contains the edited memento";

impl Baseline {
    /// Chooses the baseline of a turn, and returns notes about ignored input.
    ///
    /// Once a memento is stored, it is the baseline. A client can only refer to it. The content that a client sends
    /// is not used; otherwise an old copy would undo an operator's edit, end a freeze and remove affect points. A
    /// client's own memento only counts for a thread without one.
    #[must_use]
    pub fn of(
        thread: &Thread,
        turn: &Turn,
        session: &SessionId,
        now: Timestamp,
    ) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let latest = thread.latest.as_ref();
        let brought = IncludedMemento::of(thread, turn);
        let named = turn.memento_ref();
        let names_newest = named.is_some() && named == latest.map(|latest| &latest.memento_id);
        if let Some(named) = named.filter(|_| !names_newest) {
            notes.push(ignored_reference(thread, named));
        }
        if let Some(memento) = turn.memento() {
            notes.extend(ignored_memento(thread, memento, brought));
        }
        let usable = turn
            .memento()
            .filter(|_| brought == IncludedMemento::Newest);
        let (source, memento) = match (latest, usable) {
            (Some(latest), _) if names_newest => (BaselineSource::RequestRef, latest.clone()),
            (Some(latest), Some(_)) => (BaselineSource::Request, latest.clone()),
            (Some(latest), None) => (BaselineSource::StoredLatest, latest.clone()),
            (None, Some(brought)) => (BaselineSource::Request, brought.clone()),
            (None, None) => {
                let message = turn.kept_message.as_ref().unwrap_or(&turn.message);
                let seed = empty_memento(&thread.id, message, now);
                (BaselineSource::EmptySeed, seed)
            }
        };
        let shows_newest = names_newest || usable.is_some() || turn.if_match.is_some();
        let shows_other = named.is_some() || turn.memento().is_some();
        // A turn that shows no memento may come from an agent that has not read the edit.
        let proposes_blindly = turn.proposed.is_some() && thread.has_unread_edit(session);
        if proposes_blindly && !shows_newest && !shows_other {
            notes.push(UNREAD_EDIT.to_owned());
        }
        let brought = turn.memento().map(|memento| &memento.memento_id);
        let mut shown = named.into_iter().chain(brought);
        let shows_older = shown.any(|memento| thread.is_before_edit(memento));
        let unread = proposes_blindly || shows_older || (thread.edited && shows_other);
        let baseline = Self {
            memento,
            source,
            signals: counted_signals(latest, usable, turn),
            is_before_edit: !shows_newest && unread,
        };
        (baseline, notes)
    }
}

/// Returns the signals of a usable memento, then those of the turn.
///
/// A client sends the stored signals back with the memento. They already counted in the turn that first sent them,
/// so they are left out.
fn counted_signals(
    latest: Option<&ThreadMemento>,
    usable: Option<&ThreadMemento>,
    turn: &Turn,
) -> Vec<SignalItem> {
    let items = |memento: Option<&ThreadMemento>| {
        let signals = memento.and_then(|memento| memento.signals.clone());
        signals.map_or_else(Vec::new, |signals| signals.items)
    };
    let counted = items(latest);
    let brought = items(usable).into_iter();
    let brought = brought.filter(|item| !counted.contains(item));
    brought.chain(turn.signals.iter().cloned()).collect()
}

fn ignored_reference(thread: &Thread, named: &ExternalName) -> String {
    let name = one_line(named.as_str());
    match thread.memento(named) {
        Some(_) => format!("the memento `{name}` is not the newest of this thread: ignored"),
        None => format!("the memento `{name}` is not stored here: ignored"),
    }
}

fn ignored_memento(
    thread: &Thread,
    memento: &ThreadMemento,
    brought: IncludedMemento,
) -> Option<String> {
    let name = one_line(memento.memento_id.as_str());
    match brought {
        IncludedMemento::Nothing => None,
        IncludedMemento::Foreign => {
            let other = one_line(memento.thread_id.as_str());
            Some(format!(
                "the memento belongs to the thread `{other}`: ignored, with its signals"
            ))
        }
        IncludedMemento::Outdated => {
            let edited = if thread.edited {
                ", which an operator has edited"
            } else {
                ""
            };
            Some(format!(
                "the memento `{name}` is not the newest of this thread: ignored, with its signals; \
                 the answer contains the newest{edited}"
            ))
        }
        IncludedMemento::Newest => {
            let latest = thread.latest.as_ref()?;
            let same = latest.shape() == memento.shape() && latest.affect == memento.affect;
            (!same).then(|| {
                format!(
                    "the memento `{name}` differs from the stored one, which is used instead; \
                     send a changed summary in `proposed`"
                )
            })
        }
    }
}

/// Creates the memento of a new thread; the first message sets its arc.
fn empty_memento(thread: &ExternalName, message: &str, now: Timestamp) -> ThreadMemento {
    let first = message.lines().map(str::trim).find(|line| !line.is_empty());
    let arc = first.and_then(BoundedText::cut);
    ThreadMemento {
        memento_id: thread.clone(),
        thread_id: thread.clone(),
        created_ts: Datetime::from(now),
        version: MementoVersion,
        arc: arc.unwrap_or_else(BoundedText::placeholder),
        active: Vec::new(),
        parked: Vec::new(),
        decisions: Vec::new(),
        next: Vec::new(),
        affect: Affect {
            points: Vec::new(),
            rollup: AffectRollup {
                phase: AffectPhase::Settled,
                intensity_bucket: Intensity::Low,
                updated_at: Datetime::from(now),
            },
        },
        signals: None,
    }
}
