//! The memento that a turn begins with.

use serde::{Deserialize, Serialize};

use super::contract::{SignalItem, ThreadMemento, Version};
use super::text::{Datetime, Name, Text};
use super::thread::Thread;
use super::turn::Turn;
use super::{Affect, Intensity, Phase, Rollup};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::text::one_line;

/// Where a baseline comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineSource {
    /// The turn named one that is kept here.
    RequestRef,
    /// The turn brought it.
    Request,
    /// It is the newest one that is kept here.
    StoredLatest,
    /// There was none: an empty one.
    EmptySeed,
}

impl BaselineSource {
    /// Its name, as it is recorded.
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

/// Memento that a turn begins with, and what the turn brought besides.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// The memento.
    pub memento: ThreadMemento,
    /// Where it comes from.
    pub source: BaselineSource,
    /// Signals that count: those of a brought memento that is not ignored, then the turn's own.
    pub signals: Vec<SignalItem>,
    /// True if an operator has edited the summary, and the turn shows that the agent has not read the edit, or
    /// proposes a summary without showing that the agent has.
    pub is_before_edit: bool,
}

/// Standing of the memento that a turn brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brought {
    /// The turn brings no memento.
    Nothing,
    /// It is of another thread.
    Foreign,
    /// Another one is stored as the newest.
    Outdated,
    /// It is the newest, or the thread has none yet.
    Newest,
}

impl Brought {
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

/// The note about a proposal that is held back because nothing shows that its agent has read an edit.
const UNREAD_EDIT: &str = "an operator has edited the summary, and nothing shows that this session has read the \
                           edit: the proposal is held back; the answer has the edited memento";

impl Baseline {
    /// Chooses the baseline of a turn, and says in words what was ignored.
    ///
    /// Once a memento is stored, it is the baseline. A client can only name it; contents that it brings instead are
    /// not taken, or an old copy would undo an operator's edit, end a freeze and remove points of affect. The
    /// client's own memento counts for a thread that has none.
    #[must_use]
    pub fn of(
        thread: &Thread,
        turn: &Turn,
        session: &SessionId,
        now: Timestamp,
    ) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        let latest = thread.latest.as_ref();
        let brought = Brought::of(thread, turn);
        let named = turn.memento_ref();
        let names_newest = named.is_some() && named == latest.map(|latest| &latest.memento_id);
        if let Some(named) = named.filter(|_| !names_newest) {
            notes.push(ignored_reference(thread, named));
        }
        if let Some(memento) = turn.memento() {
            notes.extend(ignored_memento(thread, memento, brought));
        }
        let usable = turn.memento().filter(|_| brought == Brought::Newest);
        let (source, memento) = match (latest, usable) {
            (Some(latest), _) if names_newest => (BaselineSource::RequestRef, latest.clone()),
            (Some(latest), Some(_)) => (BaselineSource::Request, latest.clone()),
            (Some(latest), None) => (BaselineSource::StoredLatest, latest.clone()),
            (None, Some(brought)) => (BaselineSource::Request, brought.clone()),
            (None, None) => {
                let message = turn.kept_message.as_ref().unwrap_or(&turn.message);
                let seed = seed(&thread.id, message, now);
                (BaselineSource::EmptySeed, seed)
            }
        };
        let shows_newest = names_newest || usable.is_some() || turn.if_match.is_some();
        let shows_other = named.is_some() || turn.memento().is_some();
        // A turn that shows no memento may come of an agent that has not read the edit.
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

/// Signals of a usable memento, then those of the turn. A client sends the stored signals back with the memento: they
/// counted in the turn that brought them.
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

fn ignored_reference(thread: &Thread, named: &Name) -> String {
    let name = one_line(named.as_str());
    match thread.memento(named) {
        Some(_) => format!("the memento `{name}` is not the newest of this thread: passed over"),
        None => format!("the memento `{name}` is not kept here: passed over"),
    }
}

fn ignored_memento(thread: &Thread, memento: &ThreadMemento, brought: Brought) -> Option<String> {
    let name = one_line(memento.memento_id.as_str());
    match brought {
        Brought::Nothing => None,
        Brought::Foreign => {
            let other = one_line(memento.thread_id.as_str());
            Some(format!(
                "the memento is of the thread `{other}`: ignored, with its signals"
            ))
        }
        Brought::Outdated => {
            let edited = if thread.edited {
                ", which an operator has edited"
            } else {
                ""
            };
            Some(format!(
                "the memento `{name}` is not the newest of this thread: ignored, with its signals; \
                 the answer has the newest{edited}"
            ))
        }
        Brought::Newest => {
            let latest = thread.latest.as_ref()?;
            let same = latest.shape() == memento.shape() && latest.affect == memento.affect;
            (!same).then(|| {
                format!(
                    "the memento `{name}` was changed since it was sent: its stored contents are used; \
                     `proposed` changes a summary"
                )
            })
        }
    }
}

/// The memento of a thread in which nothing happened yet: it goes where its first message goes.
fn seed(thread: &Name, message: &str, now: Timestamp) -> ThreadMemento {
    let first = message.lines().map(str::trim).find(|it| !it.is_empty());
    let arc = first.and_then(Text::cut);
    ThreadMemento {
        memento_id: thread.clone(),
        thread_id: thread.clone(),
        created_ts: Datetime::from(now),
        version: Version,
        arc: arc.unwrap_or_else(Text::nameless),
        active: Vec::new(),
        parked: Vec::new(),
        decisions: Vec::new(),
        next: Vec::new(),
        affect: Affect {
            points: Vec::new(),
            rollup: Rollup {
                phase: Phase::Settled,
                intensity_bucket: Intensity::Low,
                updated_at: Datetime::from(now),
            },
        },
        signals: None,
    }
}
