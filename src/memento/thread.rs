//! A conversation over its turns.

use serde::{Deserialize, Serialize};

use super::affect::{Affect, Intensity, Phase, Point, Rollup, rollup, within_window};
use super::baseline::{Baseline, BaselineSource};
use super::contract::{Signals, ThreadMemento};
use super::decision::{Decided, Inputs, decide};
use super::freeze::{Freeze, ThawedBy};
use super::owner::{RefusedWrites, ThreadOwner};
use super::retry::TurnAnswer;
use super::shape::Shape;
use super::signal::SignalKind;
use super::text::{Datetime, Name, Text};
use super::turn::{Author, Kept, Outcome, Pressure, Refusal, Summary, Turn};
use super::{Decision, SignalItem};
use crate::base::clock::Timestamp;
use crate::base::id::{EventId, SessionId};
use crate::base::limits::{MAX_HELD_BACK, MAX_MEMENTOS, MAX_SIGNALS, MAX_TURNS};

/// A conversation: its newest memento, and how it came to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    /// Its name.
    pub id: Name,
    /// The session whose agent took the last turn.
    pub session: SessionId,
    /// The owner; `None` for a stored thread that was written by several sessions before threads had owners.
    #[serde(default)]
    pub owner: Option<ThreadOwner>,
    /// Session that took the first turn; `None` for a thread that was stored before it was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_by: Option<SessionId>,
    /// Session that the thread was handed over to, until its first turn.
    #[serde(default)]
    pub offered_to: Option<SessionId>,
    /// True if another process may have changed the thread while no console was open, until a session takes it up
    /// that an operator handed it to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
    /// Writes of other sessions that were refused.
    #[serde(default)]
    pub refused: Option<RefusedWrites>,
    /// The newest memento.
    pub latest: Option<ThreadMemento>,
    /// Those before it, newest first, as far as they are kept.
    earlier: Vec<ThreadMemento>,
    /// Summaries that were accepted.
    pub version: u64,
    /// Points that count, with when they were seen.
    points: Vec<(Point, Timestamp)>,
    /// Since when the summary is frozen.
    pub frozen_since: Option<Timestamp>,
    /// What was proposed meanwhile and did not come, newest first, as far as it is kept.
    pub held_back: Vec<HeldBack>,
    /// How many there were.
    pub held_back_count: u64,
    /// Turns, newest first, as far as they are kept.
    pub turns: Vec<Turned>,
    /// Whether the memento was edited since the last turn.
    pub edited: bool,
    /// The memento that an operator's last edit made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edit_memento: Option<Name>,
    /// Sessions that got an operator's edit with an answer, newest first; `None` when no edit waits to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edit_sent_to: Option<Vec<SessionId>>,
    /// Who says that the conversation drifts, since the last turn.
    pub drift_flagged: Option<String>,
}

/// A proposal that was held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldBack {
    /// When.
    pub at: Timestamp,
    /// The message.
    pub message_id: Name,
    /// What was proposed.
    pub proposed: Shape,
    /// Why it did not come.
    pub why: Kept,
}

/// A turn that was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turned {
    /// When.
    pub at: Timestamp,
    /// The message.
    pub message_id: Name,
    /// Who wrote it.
    pub author: Author,
    /// What it was worth, and why.
    pub decided: Decided,
    /// What happened in it.
    pub signals: Vec<SignalKind>,
    /// What it went by beside.
    pub given: Given,
    /// The guardrail.
    pub freeze: Freeze,
    /// How heated the conversation was before and behind it.
    pub before: (Phase, Intensity),
    /// See `before`.
    pub after: (Phase, Intensity),
    /// The intensity of the message, if somebody told it.
    pub intensity: Option<f64>,
    /// Where its baseline came from.
    pub source: BaselineSource,
    /// What became of the summary.
    pub summary: Summary,
    /// Summaries that were accepted by then.
    pub version: u64,
    /// The session it is recorded in.
    pub session: SessionId,
    /// Its record, once there is one.
    pub event: Option<EventId>,
    /// Its place in the chain of that session, where it is known.
    #[serde(default)]
    pub sequence: Option<u64>,
    /// Parts of its answer that nothing else keeps; `None` for a turn that was stored before they were noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<TurnAnswer>,
}

/// What a decision went by beside message and signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// Whether the context window was nearly full.
    pub context_pressure: bool,
    /// Whether somebody said that the conversation drifts.
    pub drift_risk: bool,
    /// Whether the memento had been edited.
    pub summary_changed: bool,
}

/// What a turn and its memento are named by.
#[derive(Clone, Debug)]
pub struct Named {
    /// The session it is recorded in, with its secret.
    pub by: ThreadOwner,
    /// The memento that comes of it.
    pub memento: Name,
}

impl Thread {
    /// A thread in which nothing happened yet.
    #[must_use]
    pub fn new(id: Name, session: SessionId) -> Self {
        Self {
            id,
            owner: Some(ThreadOwner {
                session: session.clone(),
                secret: None,
                process: None,
            }),
            begun_by: Some(session.clone()),
            offered_to: None,
            unverified: false,
            refused: None,
            session,
            latest: None,
            earlier: Vec::new(),
            version: 0,
            points: Vec::new(),
            frozen_since: None,
            held_back: Vec::new(),
            held_back_count: 0,
            turns: Vec::new(),
            edited: false,
            edit_memento: None,
            edit_sent_to: None,
            drift_flagged: None,
        }
    }

    /// Takes a turn: the thread behind it, and what came of it.
    ///
    /// # Errors
    /// When the thread belongs to another session, or the caller has read another memento than the newest.
    pub fn take(
        &self,
        turn: &Turn,
        named: Named,
        now: Timestamp,
    ) -> Result<(Self, Outcome), Refusal> {
        if !self.admits(&named.by) {
            return Err(Refusal::NotOwner);
        }
        self.expect(turn.if_match.as_deref())?;
        let (baseline, mut notes) = Baseline::of(self, turn, &named.by.session, now);
        let signals: Vec<_> = baseline.signals.iter().map(|item| item.kind).collect();
        let given = Given {
            context_pressure: turn.pressure.is_some_and(Pressure::is_high),
            drift_risk: turn.drift || self.drift_flagged.is_some(),
            summary_changed: self.edited,
        };
        let decided = decide(&Inputs {
            message: &turn.message,
            signals: &signals,
            context_pressure: given.context_pressure,
            drift_risk: given.drift_risk,
            summary_changed: given.summary_changed,
        });
        let before = heat(&baseline.memento);
        let freeze = Freeze::of(Some(&baseline.memento.affect.rollup), decided.decision);
        let mut next = self.clone();
        let session = next.pass_to(named.by);
        let (shape, summary) = next.summarise(turn, &baseline, decided, freeze, now);
        let intensity = next.feel(turn, &baseline.memento, now, &mut notes);
        let memento = next.write(&baseline, &shape, named.memento, now);
        next.frozen_since = freeze.holds().then(|| self.frozen_since.unwrap_or(now));
        // An agent that has not read the edit still has to follow it.
        next.edited = baseline.is_before_edit;
        next.note_edit_sent(&session);
        next.drift_flagged = None;
        next.remember(Turned {
            at: now,
            message_id: turn.message_id.clone(),
            author: turn.author,
            decided,
            signals,
            given,
            freeze,
            before,
            after: heat(&memento),
            intensity,
            source: baseline.source,
            summary: summary.clone(),
            version: next.version,
            session,
            event: None,
            sequence: None,
            answer: None,
        });
        let outcome = Outcome {
            decided,
            freeze,
            source: baseline.source,
            summary,
            etag: memento.etag(),
            version: next.version,
            closed: baseline.signals.iter().filter_map(closed).collect(),
            memento,
            notes,
        };
        next.note_answer(turn, &outcome);
        Ok((next, outcome))
    }

    /// Notes the record of the last turn, and its place in the chain.
    pub fn recorded(&mut self, event: EventId, sequence: u64) {
        if let Some(turned) = self.turns.first_mut() {
            turned.event = Some(event);
            turned.sequence = Some(sequence);
        }
    }

    /// Notes that somebody says the conversation drifts.
    #[must_use]
    pub fn flag_drift(&self, by: &str) -> Self {
        Self {
            drift_flagged: Some(by.to_owned()),
            ..self.clone()
        }
    }

    /// A memento that is kept, by its name.
    #[must_use]
    pub fn memento(&self, id: &Name) -> Option<&ThreadMemento> {
        self.mementos().find(|it| it.memento_id == *id)
    }

    /// The mementos that are kept, newest first.
    #[must_use]
    pub fn mementos(&self) -> impl DoubleEndedIterator<Item = &ThreadMemento> {
        self.latest.iter().chain(&self.earlier)
    }

    /// What tells the newest memento from others.
    #[must_use]
    pub fn etag(&self) -> Option<String> {
        self.latest.as_ref().map(ThreadMemento::etag)
    }

    /// Whether the summary is frozen.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen_since.is_some()
    }

    /// What would end the freeze, while there is one.
    #[must_use]
    pub fn thawed_by(&self) -> Option<ThawedBy> {
        let freeze = self.turns.first().map(|it| it.freeze)?;
        if !freeze.holds() {
            return None;
        }
        let (phase, intensity) = self.turns.first().map(|it| it.after)?;
        Some(match (phase == Phase::Peak, intensity == Intensity::High) {
            (true, true) => ThawedBy::MustOrLeavingBoth,
            (true, false) => ThawedBy::MustOrLeavingPeak,
            (false, _) => ThawedBy::MustOrLeavingHigh,
        })
    }

    /// Makes the session that takes a turn the owner, and returns its name.
    fn pass_to(&mut self, by: ThreadOwner) -> SessionId {
        if self.offered_to.as_ref() == Some(&by.session) {
            self.offered_to = None;
            self.unverified = false;
        }
        let session = by.session.clone();
        let before = self.owner.take().filter(|owner| owner.session == session);
        let (secret, process) = before.map_or((None, None), |owner| (owner.secret, owner.process));
        self.owner = Some(ThreadOwner {
            secret: by.secret.or(secret),
            process: by.process.or(process),
            ..by
        });
        self.session = session.clone();
        session
    }

    pub(super) fn expect(&self, etag: Option<&str>) -> Result<(), Refusal> {
        let current = self.etag().unwrap_or_default();
        match etag {
            Some(etag) if etag != current => Err(Refusal::Stale { current }),
            Some(_) | None => Ok(()),
        }
    }

    /// The shape behind a turn.
    fn summarise(
        &mut self,
        turn: &Turn,
        baseline: &Baseline,
        decided: Decided,
        freeze: Freeze,
        now: Timestamp,
    ) -> (Shape, Summary) {
        let kept = baseline.memento.shape();
        let Some(proposed) = &turn.proposed else {
            return (kept, Summary::Kept(Kept::NothingProposed));
        };
        let proposed = match Shape::proposed(proposed) {
            Ok(proposed) => proposed,
            Err(error) => return (kept, Summary::Kept(Kept::Invalid(error.to_string()))),
        };
        let skips = decided.decision == Decision::Skip && !turn.skip_updates;
        let why = if baseline.is_before_edit {
            Kept::BeforeEdit
        } else if freeze.holds() {
            Kept::AtPeak
        } else if skips {
            Kept::OnlyAcknowledged
        } else {
            self.version += 1;
            self.held_back.clear();
            self.held_back_count = 0;
            self.edit_sent_to = None;
            return (kept.followed_by(&proposed), Summary::Updated);
        };
        let held = HeldBack {
            at: now,
            message_id: turn.message_id.clone(),
            proposed,
            why: why.clone(),
        };
        self.held_back.insert(0, held);
        self.held_back.truncate(MAX_HELD_BACK);
        self.held_back_count += 1;
        (kept, Summary::Kept(why))
    }

    /// Takes in how heated the message is, if a person wrote it.
    fn feel(
        &mut self,
        turn: &Turn,
        baseline: &ThreadMemento,
        now: Timestamp,
        notes: &mut Vec<String>,
    ) -> Option<f64> {
        let seen = baseline.affect.rollup.updated_at.at();
        let known = |point: &Point| {
            let same = |it: &&(Point, Timestamp)| it.0.end_message_id == point.end_message_id;
            self.points.iter().find(same).map_or(seen, |it| it.1)
        };
        let points = baseline.affect.points.iter();
        let mut points: Vec<_> = points.map(|it| (it.clone(), known(it))).collect();
        let felt = turn.affect.as_ref().filter(|_| turn.author == Author::User);
        if turn.affect.is_some() && felt.is_none() {
            notes.push("how heated the agent's own message is does not count".to_owned());
        }
        points.extend(felt.map(|felt| {
            let point = Point {
                end_message_id: turn.message_id.clone(),
                label: felt.label.clone(),
                intensity: felt.intensity,
                confidence: felt.confidence,
                source: felt.source,
            };
            (point, now)
        }));
        self.points = within_window(&points, now);
        felt.map(|it| it.intensity)
    }

    /// The memento behind a turn.
    fn write(
        &mut self,
        baseline: &Baseline,
        shape: &Shape,
        id: Name,
        now: Timestamp,
    ) -> ThreadMemento {
        let intensities: Vec<_> = self.points.iter().map(|it| it.0.intensity).collect();
        let (phase, intensity_bucket) = rollup(&intensities);
        let items: Vec<_> = baseline.signals.iter().take(MAX_SIGNALS).cloned().collect();
        let memento = ThreadMemento {
            affect: Affect {
                points: self.points.iter().map(|it| it.0.clone()).collect(),
                rollup: Rollup {
                    phase,
                    intensity_bucket,
                    updated_at: Datetime::from(now),
                },
            },
            signals: (!items.is_empty()).then(|| Signals {
                updated_at: Datetime::from(now),
                items,
            }),
            ..shaped(&baseline.memento, shape, id, now)
        };
        self.replace(memento.clone());
        memento
    }

    pub(super) fn replace(&mut self, memento: ThreadMemento) {
        if let Some(before) = self.latest.replace(memento) {
            self.earlier.insert(0, before);
            self.earlier.truncate(MAX_MEMENTOS);
        }
    }

    fn remember(&mut self, turned: Turned) {
        self.turns.insert(0, turned);
        self.turns.truncate(MAX_TURNS);
    }
}

/// Heat of the conversation that a memento is of.
fn heat(memento: &ThreadMemento) -> (Phase, Intensity) {
    let rollup = &memento.affect.rollup;
    (rollup.phase, rollup.intensity_bucket)
}

/// A memento with another summary.
pub(super) fn shaped(
    from: &ThreadMemento,
    shape: &Shape,
    id: Name,
    now: Timestamp,
) -> ThreadMemento {
    // A shape is within the bounds already: what is cut here is nothing.
    let items = |list: &[String]| list.iter().filter_map(|it| Text::cut(it)).collect();
    ThreadMemento {
        memento_id: id,
        created_ts: Datetime::from(now),
        arc: Text::cut(&shape.arc).unwrap_or_else(|| from.arc.clone()),
        active: items(&shape.active),
        parked: items(&shape.parked),
        decisions: items(&shape.decisions),
        next: items(&shape.next),
        ..from.clone()
    }
}

/// What an agent is told of something that is closed.
fn closed(item: &SignalItem) -> Option<String> {
    if !item.kind.closes() {
        return None;
    }
    let words = item
        .summary
        .as_ref()
        .map(super::contract::Summarised::as_str);
    let words = words.filter(|it| !it.trim().is_empty());
    let words = words.unwrap_or(item.kind.description());
    Some(format!("{}: {words}", item.kind.as_str()))
}
