//! What is known of a session, gathered from what is recorded and kept: for a snapshot file.
//!
//! Contract: of requests only what TRACE has of them is used. What a steward wants left out of the record is
//! not in it, and so it is not in the file. What a conversation's memento says is no record: it is left out
//! of that by the same rules, whatever action they are about.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::atlas::Atlas;
use crate::atlas::redact::Redactor;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::limits::MAX_ACCOUNT_DECISIONS;
use crate::engine::held::{Held, Subject};
use crate::memento::{SignalItem, SignalKind, Summarised, Thread, ThreadMemento};
use crate::reconstruct::{Account, AccountDecision, AccountHeld, Waits};
use crate::trace::details::Details;
use crate::trace::event::{Event, canonical_type};
use crate::trace::replay::{Holds, State};
use crate::trace::source::{Source, each};
use crate::trace::tell::sentence;

/// What is known of a session beside its record.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'k> {
    /// Its conversation.
    pub thread: Option<&'k Thread>,
    /// What is held, of whatever session; nothing where only the record of this one is known.
    pub held: Option<&'k [Arc<Held>]>,
    /// The Atlases whose rules say what is left out.
    pub atlases: &'k [Atlas],
}

/// The account of a session, from its whole record and what is known beside.
///
/// # Errors
/// When the record cannot be read.
pub fn account_of<S: Source>(
    source: &S,
    session: &SessionId,
    beside: Beside<'_>,
    now: Timestamp,
) -> Result<Account, S::Error> {
    let mut gathering = Gathering::default();
    let end = source.end(session)?;
    each(source, session, (0, end), |event| {
        gathering.apply(&event);
        Ok::<_, S::Error>(())
    })?;
    let held = beside.held.map(|held| {
        let own = held.iter().filter(|held| held.session == *session);
        own.map(AsRef::as_ref).collect()
    });
    let thread = beside.thread.map(|thread| (thread, beside.atlases));
    Ok(gathering.finish(thread, held, now))
}

/// An account in the making: the events of a session go in, in their order.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    state: State,
    decided: VecDeque<AccountDecision>,
    events: BTreeMap<String, u64>,
    last_activity: Option<String>,
}

/// What only begins something, or stands beside it: nobody who goes on can say that it was done.
const BEGINNINGS: [&str; 6] = [
    "session_started",
    "action_attempted",
    "policy_checked",
    "checkpoint_triggered",
    "request_claimed",
    "breakpoint_decided",
];

impl Gathering {
    /// Takes the next event in.
    pub fn apply(&mut self, event: &Event) {
        let kind = canonical_type(&event.event_type);
        if let Some(decision) = self.decision(kind, event) {
            self.decide(decision);
        }
        *self.events.entry(kind.to_owned()).or_default() += 1;
        if !BEGINNINGS.contains(&kind) {
            self.last_activity = Some(sentence(event));
        }
        self.state.apply(event);
    }

    /// The account. `held` is what is held of the session; nothing where only its record is known. Of the
    /// thread is left out what the Atlases say.
    #[must_use]
    pub fn finish(
        self,
        thread: Option<(&Thread, &[Atlas])>,
        held: Option<Vec<&Held>>,
        now: Timestamp,
    ) -> Account {
        let held = match held {
            Some(held) => held.into_iter().flat_map(gates).collect(),
            None => recorded_gates(&self.state),
        };
        let mut atlases = self.state.agent.atlases.clone();
        atlases.sort();
        atlases.dedup();
        let session = self.state.session.as_ref();
        let contexts = self.state.contexts.keys();
        let account = Account {
            session: session.map(ToString::to_string).unwrap_or_default(),
            agent: self.state.agent.name.clone(),
            intent: self.state.agent.intent.clone(),
            written_at: now.to_string(),
            ended: self.state.ended.is_some(),
            atlases,
            held,
            guidance: contexts
                .map(|id| format!("minding the context {id}"))
                .collect(),
            decided: self.decided.into(),
            last_activity: self
                .last_activity
                .or_else(|| Some("taking up the session".to_owned())),
            events: self.events.into_iter().collect(),
            ..Account::default()
        };
        match thread {
            Some((thread, atlases)) => with_thread(account, thread, atlases),
            None => account,
        }
    }

    /// What was decided, if the event says that something was.
    fn decision(&self, kind: &str, event: &Event) -> Option<AccountDecision> {
        let details = Details::of(event);
        let named = |name: &str| details.text(name).map(str::to_owned);
        let (gate, action, outcome, by, reason) = match kind {
            "checkpoint_passed" => (
                named("checkpoint_id"),
                self.held_action(event),
                "passed".to_owned(),
                approvers(details).or_else(|| named("passed_by")),
                named("justification"),
            ),
            "checkpoint_blocked" => (
                named("checkpoint_id"),
                named("blocked_action").or_else(|| self.held_action(event)),
                details.owned("outcome"),
                named("decided_by"),
                named("reason"),
            ),
            "policy_override" => (
                named("policy_id"),
                named("action_type"),
                "passed".to_owned(),
                approvers(details).or_else(|| named("approver")),
                named("justification"),
            ),
            "risk_verified" => (
                Some(format!("risk {}", details.owned("risk_tier"))),
                named("action_type"),
                "passed".to_owned(),
                approvers(details).or_else(|| named("verified_by")),
                named("verification_method"),
            ),
            _ => return None,
        };
        Some(AccountDecision {
            gate: gate.unwrap_or_default(),
            action: action.unwrap_or_else(|| "the session".to_owned()),
            outcome,
            by,
            reason,
        })
    }

    /// A gate that is passed under a policy is told by two events, and is one decision.
    fn decide(&mut self, decision: AccountDecision) {
        let same = |it: &&mut AccountDecision| {
            let key = |it: &AccountDecision| (it.gate.clone(), it.action.clone());
            key(it) == key(&decision) && it.outcome == decision.outcome && it.by == decision.by
        };
        if let Some(told) = self.decided.back_mut().filter(same) {
            told.reason = told.reason.take().or(decision.reason);
            return;
        }
        if self.decided.len() >= MAX_ACCOUNT_DECISIONS {
            self.decided.pop_front();
        }
        self.decided.push_back(decision);
    }

    /// What waits at the gate that an event hangs under.
    fn held_action(&self, event: &Event) -> Option<String> {
        let gate = event.parent_span_id.as_ref()?;
        let mut held = self.state.held.iter();
        let found = held.find(|held| held.gates.iter().any(|it| it.span_id == *gate));
        found.map(|held| held.what.clone())
    }
}

/// Both who approved, where it took two.
fn approvers(details: Details<'_>) -> Option<String> {
    let both: Vec<_> = details.texts("approvers").collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// The gates of a held request, with what they ask.
fn gates(held: &Held) -> impl Iterator<Item = AccountHeld> {
    held.gates.iter().map(|gate| {
        let questions = gate.questions.iter();
        AccountHeld {
            gate: gate.name(),
            waits: match &held.subject {
                Subject::SessionStart => Waits::Start,
                Subject::Action(call) => Waits::Action(call.action.clone()),
                Subject::Moment(moment) => Waits::Session(moment.label.clone()),
            },
            asked: questions.map(|it| it.text().to_owned()).collect(),
        }
    })
}

/// The gates that nobody passed, as far as the events tell.
fn recorded_gates(state: &State) -> Vec<AccountHeld> {
    if state.ended.is_some() {
        return Vec::new();
    }
    let gates = state.held.iter().flat_map(|held| {
        held.gates.iter().map(|gate| AccountHeld {
            gate: gate.checkpoint.clone(),
            waits: match held.holds {
                Holds::Start => Waits::Start,
                Holds::Action => Waits::Action(held.what.clone()),
                Holds::Session => Waits::Session(held.what.clone()),
            },
            asked: vec![gate.why.clone()],
        })
    });
    gates.collect()
}

fn with_thread(account: Account, thread: &Thread, atlases: &[Atlas]) -> Account {
    let Some(latest) = &thread.latest else {
        return account;
    };
    let mut redactor = Redactor::of_all(atlases);
    let mut told = |text: &str| redactor.text("memento", text);
    let shape = latest.shape();
    let mut list = |texts: &[String]| texts.iter().map(|it| told(it)).collect::<Vec<_>>();
    let (active, parked) = (list(&shape.active), list(&shape.parked));
    let (decisions, next) = (list(&shape.decisions), list(&shape.next));
    let pivots = pivots(thread).into_iter();
    let pivots = pivots.map(|(from, to, why)| (told(&from), told(&to), told(&why)));
    let pivots = pivots.collect();
    Account {
        // A thread that nobody summarised has a dash for an arc.
        arc: Some(told(&shape.arc)).filter(|arc| arc != "-"),
        active,
        parked,
        decisions,
        next,
        pivots,
        ..account
    }
}

/// Changes of direction: turns that decided, changed the scope or the topic, and the arc with it.
fn pivots(thread: &Thread) -> Vec<(String, String, String)> {
    let mut mementos = thread.mementos().rev();
    let Some(mut before) = mementos.next() else {
        return Vec::new();
    };
    let mut pivots = Vec::new();
    for memento in mementos {
        if let Some(turns) = turning(memento).filter(|_| memento.arc != before.arc) {
            let insight = turns.summary.as_ref().map(Summarised::as_str);
            let insight = insight.filter(|it| !it.trim().is_empty());
            let insight = insight.unwrap_or(turns.kind.description()).to_owned();
            pivots.push((before.arc.to_string(), memento.arc.to_string(), insight));
        }
        before = memento;
    }
    pivots
}

/// The signal of a change of direction in the turn that a memento was made in.
fn turning(memento: &ThreadMemento) -> Option<&SignalItem> {
    let signals = memento.signals.as_ref()?;
    // An edited memento has the signals of the one before it.
    if signals.updated_at != memento.created_ts {
        return None;
    }
    let mut items = signals.items.iter();
    items.find(|it| match it.kind {
        SignalKind::Pivot | SignalKind::ScopeChanged | SignalKind::DecisionMade => true,
        SignalKind::AnswerProvided
        | SignalKind::AckOnly
        | SignalKind::OpenLoopCreated
        | SignalKind::OpenLoopResolved
        | SignalKind::RiskOrConflict => false,
    })
}

/// The thread that a session's turns are in: its own, else the one it took a turn in last.
#[must_use]
pub fn thread_of<'t, T: AsRef<Thread>>(session: &str, threads: &'t [T]) -> Option<&'t Thread> {
    let all = || threads.iter().map(AsRef::as_ref);
    let owns = |thread: &&Thread| {
        let owner = thread.owner.as_ref();
        owner.is_some_and(|owner| owner.session.as_str() == session)
    };
    // A name alone proves nothing: another session may have begun a thread of that name.
    let own = all().find(|thread: &&Thread| thread.id.as_str() == session && owns(thread));
    let took = |it: &&Thread| it.turns.iter().any(|turn| turn.session.as_str() == session);
    own.or_else(|| all().find(took))
}
