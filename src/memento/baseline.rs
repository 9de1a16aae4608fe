//! The memento that a turn begins with.

use serde::{Deserialize, Serialize};

use super::contract::{ThreadMemento, Version};
use super::text::{Datetime, Name, Text};
use super::thread::Thread;
use super::turn::Turn;
use super::{Affect, Intensity, Phase, Rollup};
use crate::base::clock::Timestamp;
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

/// A baseline and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// The memento.
    pub memento: ThreadMemento,
    /// Where it comes from.
    pub source: BaselineSource,
}

impl Baseline {
    /// The baseline of a turn: the first that there is, and what was passed over on the way, in words.
    #[must_use]
    pub fn of(thread: &Thread, turn: &Turn, now: Timestamp) -> (Self, Vec<String>) {
        let mut notes = Vec::new();
        if let Some(wanted) = turn.memento_ref() {
            if let Some(found) = thread.memento(wanted) {
                let memento = found.clone();
                let source = BaselineSource::RequestRef;
                return (Self { memento, source }, notes);
            }
            let wanted = one_line(wanted.as_str());
            notes.push(format!(
                "the memento `{wanted}` is not kept here: passed over"
            ));
        }
        if let Some(brought) = turn.memento() {
            if brought.thread_id == thread.id {
                let memento = brought.clone();
                let source = BaselineSource::Request;
                return (Self { memento, source }, notes);
            }
            let other = one_line(brought.thread_id.as_str());
            notes.push(format!("the memento is of the thread `{other}`: ignored"));
        }
        if let Some(latest) = &thread.latest {
            let memento = latest.clone();
            let source = BaselineSource::StoredLatest;
            return (Self { memento, source }, notes);
        }
        let memento = seed(&thread.id, &turn.message, now);
        let source = BaselineSource::EmptySeed;
        (Self { memento, source }, notes)
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
