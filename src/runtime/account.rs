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
use crate::base::id::{SessionId, SpanId};
use crate::base::limits::MAX_ACCOUNT_DECISIONS;
use crate::engine::held::{Held, Subject};
use crate::memento::{SignalItem, SignalKind, Summarised, Thread, ThreadMemento};
use crate::reconstruct::{Account, AccountDecision, AccountFreeze, AccountHeld, Waits};
use crate::trace::details::Details;
use crate::trace::event::{Event, canonical_type};
use crate::trace::export::import_mark;
use crate::trace::replay::{Holds, State};
use crate::trace::source::{Source, each};

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
    Ok(Account {
        imported: import_mark(&source.imports(session)?),
        ..gathering.finish(thread, held, now)
    })
}

/// An account in the making: the events of a session go in, in their order.
#[derive(Clone, Debug, Default)]
pub struct Gathering {
    state: State,
    decided: VecDeque<GateDecision>,
    /// Reasons in answers to gates that are not decided yet, by the span of the gate.
    answered: BTreeMap<SpanId, String>,
    events: BTreeMap<String, u64>,
    last_activity: Option<String>,
}

/// A decision, with the span of the gate it was made at.
#[derive(Clone, Debug)]
struct GateDecision {
    gate: Option<SpanId>,
    decision: AccountDecision,
}

impl Gathering {
    /// Takes the next event in.
    pub fn apply(&mut self, event: &Event) {
        let kind = canonical_type(&event.event_type);
        if kind == "checkpoint_response" {
            self.answer(event);
        }
        if let Some(decision) = self.decision(kind, event) {
            self.decide(event.parent_span_id.clone(), decision);
        }
        *self.events.entry(kind.to_owned()).or_default() += 1;
        if let Some(activity) = activity(kind, event) {
            self.last_activity = Some(activity);
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
            final_status: self.state.ended.as_ref().map(|it| it.status.clone()),
            atlases,
            held,
            contexts: contexts.cloned().collect(),
            decided: self.decided.into_iter().map(|it| it.decision).collect(),
            last_activity: self.last_activity,
            events: self.events.into_iter().collect(),
            ..Account::default()
        };
        match thread {
            Some((thread, atlases)) => with_thread(account, thread, atlases),
            None => account,
        }
    }

    /// Keeps the reason that an accepted answer gives.
    fn answer(&mut self, event: &Event) {
        let details = Details::of(event);
        let gate = event.parent_span_id.clone();
        let accepted = details.text("validation_result") == Some("valid");
        if let (Some(gate), Some(reason)) = (gate.filter(|_| accepted), reason(details)) {
            let before = self.answered.remove(&gate);
            let both = before.filter(|before| *before != reason);
            let all = both.into_iter().chain([reason]).collect::<Vec<_>>();
            self.answered.insert(gate, all.join("; "));
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
                details.justification(),
            ),
            "checkpoint_blocked" => (
                named("checkpoint_id"),
                self.held_action(event),
                details.owned("outcome"),
                named("decided_by"),
                named("reason"),
            ),
            "policy_override" => (
                named("policy_id"),
                named("action_type"),
                "passed".to_owned(),
                approvers(details).or_else(|| named("approver")),
                details.justification(),
            ),
            "risk_verified" => (
                Some(format!("risk {}", details.owned("risk_tier"))),
                named("action_type"),
                "passed".to_owned(),
                approvers(details).or_else(|| named("verified_by")),
                details.justification(),
            ),
            _ => return None,
        };
        // A refusal names who refused; the account says it apart.
        let refused = by.as_deref().map(|by| format!("refused by {by}: "));
        let reason = reason.map(|reason| {
            let bare = refused.and_then(|before| reason.strip_prefix(&before));
            bare.unwrap_or(&reason).to_owned()
        });
        Some(AccountDecision {
            gate: gate.unwrap_or_default(),
            action: action.unwrap_or_default(),
            outcome,
            by,
            reason: reason.filter(|reason| !reason.trim().is_empty()),
        })
    }

    /// Notes a decision once: a gate that is passed is told by up to three events, which hang under its span.
    fn decide(&mut self, gate: Option<SpanId>, decision: AccountDecision) {
        let answered = gate.as_ref().and_then(|gate| self.answered.remove(gate));
        let same = |told: &&mut GateDecision| {
            let before = &told.decision;
            // A record of an older version may lack spans.
            let same_span = gate.is_some() && told.gate == gate;
            same_span || gate.is_none() && told.gate.is_none() && before.gate == decision.gate
        };
        let same_outcome = |told: &&mut GateDecision| {
            let before = &told.decision;
            before.outcome == decision.outcome && before.by == decision.by
        };
        let mut told = self.decided.iter_mut().rev();
        if let Some(told) = told.find(|told| same(told) && same_outcome(told)) {
            let told = &mut told.decision;
            told.reason = told.reason.take().or(answered).or(decision.reason);
            if told.action.is_empty() {
                told.action = decision.action;
            }
            // The checkpoint is the gate; its risk is why it is one.
            told.gate = decision.gate;
            return;
        }
        let decision = AccountDecision {
            reason: answered.or(decision.reason),
            ..decision
        };
        if self.decided.len() >= MAX_ACCOUNT_DECISIONS {
            self.decided.pop_front();
        }
        self.decided.push_back(GateDecision { gate, decision });
    }

    /// The action that waits at the gate that an event hangs under; nothing where the session itself does.
    fn held_action(&self, event: &Event) -> Option<String> {
        let gate = event.parent_span_id.as_ref()?;
        let mut held = self.state.held.iter();
        let found = held.find(|held| held.gates.iter().any(|it| it.span_id == *gate))?;
        match found.holds {
            Holds::Action => Some(found.what.clone()),
            Holds::Start | Holds::Session => None,
        }
    }
}

/// The reason in the answers to a gate: its texts. Of a sensitive answer the record has a hash, which is none, and an
/// acknowledgment gives no reason.
fn reason(details: Details<'_>) -> Option<String> {
    let answers = details.value("answers")?.as_object()?;
    let texts = answers.values().filter_map(|answer| answer.as_str());
    let texts = texts.filter(|text| !text.starts_with("sha256:") && *text != "acknowledged");
    let texts: Vec<_> = texts.filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// What an event did, where it did something that a successor should know. Names stand between backticks.
fn activity(kind: &str, event: &Event) -> Option<String> {
    let details = Details::of(event);
    let text = |name: &str| details.text(name).unwrap_or("?").to_owned();
    let because = |name: &str| {
        let reason = details.text(name).filter(|it| !it.trim().is_empty());
        reason.map(|it| format!(": {it}")).unwrap_or_default()
    };
    Some(match kind {
        "session_ended" => format!("the session ended ({})", text("final_status")),
        "action_completed" => {
            let action = text("action_type");
            match details.flag("success") {
                Some(true) => format!("`{action}` ran{}", because("result_summary")),
                Some(false) | None => format!("`{action}` failed"),
            }
        }
        "action_blocked" => {
            let (action, by) = (text("action_type"), text("policy_id"));
            format!("`{action}` was blocked by `{by}`{}", because("reason"))
        }
        "policy_override" => {
            let (action, by) = (text("action_type"), text("approver"));
            format!(
                "`{action}` was approved by {by}{}",
                because("justification")
            )
        }
        "checkpoint_passed" => {
            let (gate, by) = (text("checkpoint_id"), text("passed_by"));
            format!("gate `{gate}` was passed by {by}")
        }
        "checkpoint_blocked" => {
            let (gate, outcome) = (text("checkpoint_id"), text("outcome"));
            format!(
                "gate `{gate}` was not passed ({outcome}){}",
                because("reason")
            )
        }
        "error_occurred" => format!("an error occurred{}", because("message")),
        "error_recovered" => format!("an error was dealt with{}", because("recovery_method")),
        _ => return None,
    })
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
    let held_back = thread.held_back.iter();
    let held_back = held_back.map(|it| told(&it.proposed.arc)).collect();
    let thawed_by = thread.thawed_by().map(|it| it.words().to_owned());
    let frozen = thread.frozen_since.map(|since| AccountFreeze {
        since: since.to_string(),
        until: thawed_by,
    });
    Account {
        // A thread that nobody summarised has a dash for an arc.
        arc: Some(told(&shape.arc)).filter(|arc| arc != "-"),
        active,
        parked,
        decisions,
        next,
        pivots,
        frozen,
        held_back,
        held_back_count: thread.held_back_count,
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
