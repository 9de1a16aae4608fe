//! A conversation over its turns.

use serde::{Deserialize, Serialize};

use super::affect::{
    Affect, AffectPhase, AffectPoint, AffectRollup, Intensity, rollup, within_window,
};
use super::baseline::{Baseline, BaselineSource};
use super::contract::{SignalList, ThreadMemento};
use super::decision::{DecisionInputs, TurnClassification, classify_turn};
use super::freeze::{Freeze, ThawCondition};
use super::owner::{RefusedWrites, ThreadOwner};
use super::retry::TurnResponse;
use super::shape::SummaryShape;
use super::signal::SignalKind;
use super::text::{BoundedText, Datetime, ExternalName};
use super::turn::{
    ContextPressure, KeptReason, MessageAuthor, SummaryResult, Turn, TurnOutcome, TurnRefusal,
};
use super::{SignalItem, TurnDecision};
use crate::base::clock::Timestamp;
use crate::base::id::{EventId, SessionId};
use crate::base::limits::{MAX_HELD_BACK, MAX_MEMENTOS, MAX_SIGNALS, MAX_TURNS};

/// A conversation: its newest memento and its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thread {
    /// Id of the thread.
    pub id: ExternalName,
    /// Session of the last turn.
    pub session: SessionId,
    /// Owner; `None` for a stored thread that several sessions wrote to before threads had owners.
    #[serde(default)]
    pub owner: Option<ThreadOwner>,
    /// Session of the first turn; `None` for a thread that was stored before this was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_by: Option<SessionId>,
    /// Session that the thread was handed over to, until its first turn.
    #[serde(default)]
    pub offered_to: Option<SessionId>,
    /// True if another process may have changed the thread while no console was open. Cleared by the first turn
    /// after an operator hands it over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
    /// Rejected writes of other sessions.
    #[serde(default)]
    pub refused: Option<RefusedWrites>,
    /// The newest memento.
    pub latest: Option<ThreadMemento>,
    /// Older mementos, newest first, up to a limit.
    earlier: Vec<ThreadMemento>,
    /// Number of accepted summaries.
    pub version: u64,
    /// Points that count, each with its time.
    points: Vec<(AffectPoint, Timestamp)>,
    /// Start of the freeze, if the summary is frozen.
    pub frozen_since: Option<Timestamp>,
    /// Proposals held back, newest first, up to a limit.
    pub held_back: Vec<HeldProposal>,
    /// Total number of proposals held back.
    pub held_back_count: u64,
    /// Turns, newest first, up to a limit.
    pub turns: Vec<ProcessedTurn>,
    /// True if the memento was edited since the last turn.
    pub edited: bool,
    /// Memento created by an operator's last edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edit_memento: Option<ExternalName>,
    /// Sessions that received an operator's edit with a response, newest first; `None` when no edit is unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) edit_sent_to: Option<Vec<SessionId>>,
    /// Name of the operator who reported drift since the last turn.
    pub drift_flagged: Option<String>,
}

/// A proposal that was held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldProposal {
    /// Time of the proposal.
    pub at: Timestamp,
    /// Id of the message.
    pub message_id: ExternalName,
    /// Proposed shape.
    pub proposed: SummaryShape,
    /// Reason why the proposal was held back.
    pub why: KeptReason,
}

/// A processed turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessedTurn {
    /// Time of the turn.
    pub at: Timestamp,
    /// Id of the message.
    pub message_id: ExternalName,
    /// Author of the message.
    pub author: MessageAuthor,
    /// Classification, with its rule.
    pub decided: TurnClassification,
    /// Signals of the turn.
    pub signals: Vec<SignalKind>,
    /// Other inputs of the decision.
    pub given: DecisionFlags,
    /// Evaluation of the peak guardrail.
    pub freeze: Freeze,
    /// Intensity of the conversation before the turn.
    pub before: (AffectPhase, Intensity),
    /// Intensity of the conversation after the turn.
    pub after: (AffectPhase, Intensity),
    /// Intensity of the message, if reported.
    pub intensity: Option<f64>,
    /// Origin of the baseline.
    pub source: BaselineSource,
    /// Result for the summary.
    pub summary: SummaryResult,
    /// Number of accepted summaries at that time.
    pub version: u64,
    /// Session that records the turn.
    pub session: SessionId,
    /// Id of the turn's record, once it exists.
    pub event: Option<EventId>,
    /// Index of the record in the session's chain, if known.
    #[serde(default)]
    pub sequence: Option<u64>,
    /// Parts of the response that are not stored elsewhere; `None` for a turn stored before they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<TurnResponse>,
}

/// The inputs of a decision other than message and signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionFlags {
    /// True if the context window was nearly full.
    pub context_pressure: bool,
    /// True if the agent or an operator reported that the conversation drifts.
    pub drift_risk: bool,
    /// True if the memento had been edited.
    pub summary_changed: bool,
}

/// The identifiers for a turn and its memento.
#[derive(Clone, Debug)]
pub struct TurnIds {
    /// Session that records the turn, with its secret.
    pub by: ThreadOwner,
    /// Id of the resulting memento.
    pub memento: ExternalName,
}

impl Thread {
    /// Creates a thread without turns.
    #[must_use]
    pub fn new(id: ExternalName, session: SessionId) -> Self {
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

    /// Processes a turn; returns the updated thread and the outcome.
    ///
    /// # Errors
    /// Fails when the thread belongs to another session, or the caller has read another memento than the newest.
    pub fn process_turn(
        &self,
        turn: &Turn,
        named: TurnIds,
        now: Timestamp,
    ) -> Result<(Self, TurnOutcome), TurnRefusal> {
        if !self.admits(&named.by) {
            return Err(TurnRefusal::NotOwner);
        }
        self.check_etag(turn.if_match.as_deref())?;
        let (baseline, mut notes) = Baseline::of(self, turn, &named.by.session, now);
        let signals: Vec<_> = baseline.signals.iter().map(|item| item.kind).collect();
        let given = DecisionFlags {
            context_pressure: turn.pressure.is_some_and(ContextPressure::is_high),
            drift_risk: turn.drift || self.drift_flagged.is_some(),
            summary_changed: self.edited,
        };
        let decided = classify_turn(&DecisionInputs {
            message: &turn.message,
            signals: &signals,
            context_pressure: given.context_pressure,
            drift_risk: given.drift_risk,
            summary_changed: given.summary_changed,
        });
        let before = affect_state(&baseline.memento);
        let freeze = Freeze::of(Some(&baseline.memento.affect.rollup), decided.decision);
        let mut next = self.clone();
        let session = next.pass_to(named.by);
        let (shape, summary) = next.summarise(turn, &baseline, decided, freeze, now);
        let intensity = next.add_affect(turn, &baseline.memento, now, &mut notes);
        let memento = next.create_memento(&baseline, &shape, named.memento, now);
        next.frozen_since = freeze.is_frozen().then(|| self.frozen_since.unwrap_or(now));
        // An agent that has not read the edit must still follow it.
        next.edited = baseline.is_before_edit;
        next.note_edit_sent(&session);
        next.drift_flagged = None;
        next.store_turn(ProcessedTurn {
            at: now,
            message_id: turn.message_id.clone(),
            author: turn.author,
            decided,
            signals,
            given,
            freeze,
            before,
            after: affect_state(&memento),
            intensity,
            source: baseline.source,
            summary: summary.clone(),
            version: next.version,
            session,
            event: None,
            sequence: None,
            answer: None,
        });
        let outcome = TurnOutcome {
            decided,
            freeze,
            source: baseline.source,
            summary,
            etag: memento.etag(),
            version: next.version,
            closed: baseline.signals.iter().filter_map(closed_topic).collect(),
            memento,
            notes,
        };
        next.store_response(turn, &outcome);
        Ok((next, outcome))
    }

    /// Sets the record of the last turn and its index in the chain.
    pub fn set_record(&mut self, event: EventId, sequence: u64) {
        if let Some(turned) = self.turns.first_mut() {
            turned.event = Some(event);
            turned.sequence = Some(sequence);
        }
    }

    /// Sets the drift flag on behalf of `by`.
    #[must_use]
    pub fn flag_drift(&self, by: &str) -> Self {
        Self {
            drift_flagged: Some(by.to_owned()),
            ..self.clone()
        }
    }

    /// Returns a stored memento by its id.
    #[must_use]
    pub fn memento(&self, id: &ExternalName) -> Option<&ThreadMemento> {
        self.mementos().find(|memento| memento.memento_id == *id)
    }

    /// Returns the stored mementos, newest first.
    #[must_use]
    pub fn mementos(&self) -> impl DoubleEndedIterator<Item = &ThreadMemento> {
        self.latest.iter().chain(&self.earlier)
    }

    /// Returns the tag of the newest memento.
    #[must_use]
    pub fn etag(&self) -> Option<String> {
        self.latest.as_ref().map(ThreadMemento::etag)
    }

    /// Returns true if the summary is frozen.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen_since.is_some()
    }

    /// Returns the condition that ends the freeze, if the summary is frozen.
    #[must_use]
    pub fn thaw_condition(&self) -> Option<ThawCondition> {
        let freeze = self.turns.first().map(|turned| turned.freeze)?;
        if !freeze.is_frozen() {
            return None;
        }
        let (phase, intensity) = self.turns.first().map(|turned| turned.after)?;
        Some(
            match (phase == AffectPhase::Peak, intensity == Intensity::High) {
                (true, true) => ThawCondition::MustOrLeavingBoth,
                (true, false) => ThawCondition::MustOrLeavingPeak,
                (false, _) => ThawCondition::MustOrLeavingHigh,
            },
        )
    }

    /// Makes the session of a turn the owner, and returns its id.
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

    pub(super) fn check_etag(&self, etag: Option<&str>) -> Result<(), TurnRefusal> {
        let current = self.etag().unwrap_or_default();
        match etag {
            Some(etag) if etag != current => Err(TurnRefusal::Stale { current }),
            Some(_) | None => Ok(()),
        }
    }

    /// Decides about the proposal of a turn; returns the new shape and the result.
    fn summarise(
        &mut self,
        turn: &Turn,
        baseline: &Baseline,
        decided: TurnClassification,
        freeze: Freeze,
        now: Timestamp,
    ) -> (SummaryShape, SummaryResult) {
        let shape = baseline.memento.shape();
        let Some(proposed) = &turn.proposed else {
            return (shape, SummaryResult::Kept(KeptReason::NothingProposed));
        };
        let proposed = match SummaryShape::read_proposal(proposed) {
            Ok(proposed) => proposed,
            Err(error) => {
                return (
                    shape,
                    SummaryResult::Kept(KeptReason::Invalid(error.to_string())),
                );
            }
        };
        let skips = decided.decision == TurnDecision::Skip && !turn.skip_updates;
        let why = if baseline.is_before_edit {
            KeptReason::BeforeEdit
        } else if freeze.is_frozen() {
            KeptReason::AtPeak
        } else if skips {
            KeptReason::OnlyAcknowledged
        } else {
            self.version += 1;
            self.held_back.clear();
            self.held_back_count = 0;
            self.edit_sent_to = None;
            return (shape.updated_with(&proposed), SummaryResult::Updated);
        };
        let held = HeldProposal {
            at: now,
            message_id: turn.message_id.clone(),
            proposed,
            why: why.clone(),
        };
        self.held_back.insert(0, held);
        self.held_back.truncate(MAX_HELD_BACK);
        self.held_back_count += 1;
        (shape, SummaryResult::Kept(why))
    }

    /// Adds the intensity of the message, if a person wrote it.
    fn add_affect(
        &mut self,
        turn: &Turn,
        baseline: &ThreadMemento,
        now: Timestamp,
        notes: &mut Vec<String>,
    ) -> Option<f64> {
        let seen = baseline.affect.rollup.updated_at.at();
        let known = |point: &AffectPoint| {
            let same =
                |entry: &&(AffectPoint, Timestamp)| entry.0.end_message_id == point.end_message_id;
            self.points.iter().find(same).map_or(seen, |(_, at)| *at)
        };
        let points = baseline.affect.points.iter();
        let mut points: Vec<_> = points.map(|point| (point.clone(), known(point))).collect();
        let felt = turn
            .affect
            .as_ref()
            .filter(|_| turn.author == MessageAuthor::User);
        if turn.affect.is_some() && felt.is_none() {
            notes.push("the affect of the agent's own message is ignored".to_owned());
        }
        points.extend(felt.map(|felt| {
            let point = AffectPoint {
                end_message_id: turn.message_id.clone(),
                label: felt.label.clone(),
                intensity: felt.intensity,
                confidence: felt.confidence,
                source: felt.source,
            };
            (point, now)
        }));
        self.points = within_window(&points, now);
        felt.map(|signal| signal.intensity)
    }

    /// Creates the memento after a turn.
    fn create_memento(
        &mut self,
        baseline: &Baseline,
        shape: &SummaryShape,
        id: ExternalName,
        now: Timestamp,
    ) -> ThreadMemento {
        let intensities: Vec<_> = self.points.iter().map(|(p, _)| p.intensity).collect();
        let (phase, intensity_bucket) = rollup(&intensities);
        let items: Vec<_> = baseline.signals.iter().take(MAX_SIGNALS).cloned().collect();
        let memento = ThreadMemento {
            affect: Affect {
                points: self.points.iter().map(|(point, _)| point.clone()).collect(),
                rollup: AffectRollup {
                    phase,
                    intensity_bucket,
                    updated_at: Datetime::from(now),
                },
            },
            signals: (!items.is_empty()).then(|| SignalList {
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

    fn store_turn(&mut self, turned: ProcessedTurn) {
        self.turns.insert(0, turned);
        self.turns.truncate(MAX_TURNS);
    }
}

/// Returns the phase and intensity of a memento.
fn affect_state(memento: &ThreadMemento) -> (AffectPhase, Intensity) {
    let rollup = &memento.affect.rollup;
    (rollup.phase, rollup.intensity_bucket)
}

/// Returns a memento with another summary.
pub(super) fn shaped(
    from: &ThreadMemento,
    shape: &SummaryShape,
    id: ExternalName,
    now: Timestamp,
) -> ThreadMemento {
    // A shape is already within the limits: nothing is cut here.
    let items = |list: &[String]| {
        list.iter()
            .filter_map(|item| BoundedText::cut(item))
            .collect()
    };
    ThreadMemento {
        memento_id: id,
        created_ts: Datetime::from(now),
        arc: BoundedText::cut(&shape.arc).unwrap_or_else(|| from.arc.clone()),
        active: items(&shape.active),
        parked: items(&shape.parked),
        decisions: items(&shape.decisions),
        next: items(&shape.next),
        ..from.clone()
    }
}

/// Returns the message to the agent about a closed topic.
fn closed_topic(item: &SignalItem) -> Option<String> {
    if !item.kind.closes() {
        return None;
    }
    let words = item
        .summary
        .as_ref()
        .map(super::contract::SignalSummary::as_str);
    let words = words.filter(|text| !text.trim().is_empty());
    let words = words.unwrap_or(item.kind.description());
    Some(format!("{}: {words}", item.kind.as_str()))
}
