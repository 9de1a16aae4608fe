//! Account of a session, collected from its record and stored state, for a snapshot file.
//!
//! Contract: requests are taken only from TRACE. Values that a steward redacts are not in the record, so
//! they are not in the file. A conversation's memento is not a record: its text is redacted by the rules of
//! all actions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::atlas::Atlas;
use crate::atlas::redaction::Redactor;
use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, SpanId};
use crate::base::limits::MAX_ACCOUNT_DECISIONS;
use crate::engine::held::{Held, HeldSubject};
use crate::memento::{SignalItem, SignalKind, SignalSummary, Thread, ThreadMemento};
use crate::reconstruct::{
    AccountDecision, AccountFreeze, AccountHeld, SessionAccount, WaitingSubject,
};
use crate::trace::details::Details;
use crate::trace::event::{Event, canonical_type};
use crate::trace::export::import_mark;
use crate::trace::replay::{HoldScope, ReplayState};
use crate::trace::source::{EventSource, for_each_event};

/// Knowledge about a session apart from its record.
#[derive(Clone, Copy, Debug)]
pub struct AccountSources<'k> {
    /// Conversation of the session.
    pub thread: Option<&'k Thread>,
    /// Held requests of all sessions; `None` if only the record of this session is known.
    pub held: Option<&'k [Arc<Held>]>,
    /// Atlases with the redaction rules.
    pub atlases: &'k [Atlas],
}

/// Builds the account of a session from its whole record and from other knowledge.
///
/// # Errors
/// Fails when the record cannot be read.
pub fn account_of<S: EventSource>(
    source: &S,
    session: &SessionId,
    beside: AccountSources<'_>,
    now: Timestamp,
) -> Result<SessionAccount, S::Error> {
    let mut gathering = AccountBuilder::default();
    let end = source.end(session)?;
    for_each_event(source, session, (0, end), |event| {
        gathering.add_event(&event);
        Ok::<_, S::Error>(())
    })?;
    let held = beside.held.map(|held| {
        let own = held.iter().filter(|held| held.session == *session);
        own.map(AsRef::as_ref).collect()
    });
    let thread = beside.thread.map(|thread| (thread, beside.atlases));
    Ok(SessionAccount {
        imported: import_mark(&source.imports(session)?),
        ..gathering.finish(thread, held, now)
    })
}

/// An account under construction. It takes the events of a session in order.
#[derive(Clone, Debug, Default)]
pub struct AccountBuilder {
    state: ReplayState,
    decided: VecDeque<GateDecision>,
    /// Reasons in answers to undecided gates, by the span of the gate.
    answered: BTreeMap<SpanId, String>,
    events: BTreeMap<String, u64>,
    last_activity: Option<String>,
}

/// A decision with the span of its gate.
#[derive(Clone, Debug)]
struct GateDecision {
    gate: Option<SpanId>,
    decision: AccountDecision,
}

impl AccountBuilder {
    /// Adds the next event.
    pub fn add_event(&mut self, event: &Event) {
        let kind = canonical_type(&event.event_type);
        if kind == "checkpoint_response" {
            self.note_answer(event);
        }
        if let Some(decision) = self.decision(kind, event) {
            self.add_decision(event.parent_span_id.clone(), decision);
        }
        *self.events.entry(kind.to_owned()).or_default() += 1;
        if let Some(activity) = activity(kind, event) {
            self.last_activity = Some(activity);
        }
        self.state.apply(event);
    }

    /// Completes the account. `held` has the held requests of the session; `None` if only its record is
    /// known. The thread's text is redacted by the Atlases.
    #[must_use]
    pub fn finish(
        self,
        thread: Option<(&Thread, &[Atlas])>,
        held: Option<Vec<&Held>>,
        now: Timestamp,
    ) -> SessionAccount {
        let held = match held {
            Some(held) => held.into_iter().flat_map(held_gates).collect(),
            None => recorded_gates(&self.state),
        };
        let mut atlases = self.state.agent.atlases.clone();
        atlases.sort();
        atlases.dedup();
        let session = self.state.session.as_ref();
        let contexts = self.state.contexts.keys();
        let account = SessionAccount {
            session: session.map(ToString::to_string).unwrap_or_default(),
            agent: self.state.agent.name.clone(),
            intent: self.state.agent.intent.clone(),
            written_at: now.to_string(),
            ended: self.state.ended.is_some(),
            final_status: self.state.ended.as_ref().map(|ended| ended.status.clone()),
            atlases,
            held,
            contexts: contexts.cloned().collect(),
            decided: self
                .decided
                .into_iter()
                .map(|decided| decided.decision)
                .collect(),
            last_activity: self.last_activity,
            events: self.events.into_iter().collect(),
            ..SessionAccount::default()
        };
        match thread {
            Some((thread, atlases)) => with_thread(account, thread, atlases),
            None => account,
        }
    }

    /// Keeps the reason in an accepted answer.
    fn note_answer(&mut self, event: &Event) {
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

    /// Returns the decision in an event, if the event has one.
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
                details.text_or_empty("outcome"),
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
                Some(format!("risk {}", details.text_or_empty("risk_tier"))),
                named("action_type"),
                "passed".to_owned(),
                approvers(details).or_else(|| named("verified_by")),
                details.justification(),
            ),
            _ => return None,
        };
        // A refusal's reason names the operator who refused; the account has that in another field.
        let reason = reason.map(|reason| {
            // Earlier versions of cra wrote `refused by`.
            let prefixes = ["denied", "refused"];
            let bare = by.as_deref().and_then(|by| {
                let mut prefixes = prefixes.iter().map(|word| format!("{word} by {by}: "));
                prefixes.find_map(|prefix| reason.strip_prefix(&prefix))
            });
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

    /// Adds a decision once: up to three events below the gate's span report one passed gate.
    fn add_decision(&mut self, gate: Option<SpanId>, decision: AccountDecision) {
        let answered = gate.as_ref().and_then(|gate| self.answered.remove(gate));
        let same = |earlier: &&mut GateDecision| {
            let before = &earlier.decision;
            // Records of older versions may lack spans.
            let same_span = gate.is_some() && earlier.gate == gate;
            same_span || gate.is_none() && earlier.gate.is_none() && before.gate == decision.gate
        };
        let same_outcome = |earlier: &&mut GateDecision| {
            let before = &earlier.decision;
            before.outcome == decision.outcome && before.by == decision.by
        };
        let mut earlier = self.decided.iter_mut().rev();
        if let Some(earlier) = earlier.find(|earlier| same(earlier) && same_outcome(earlier)) {
            let earlier = &mut earlier.decision;
            earlier.reason = earlier.reason.take().or(answered).or(decision.reason);
            if earlier.action.is_empty() {
                earlier.action = decision.action;
            }
            // The checkpoint is the gate; the risk tier is only its cause.
            earlier.gate = decision.gate;
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

    /// Returns the action that waits at the gate of an event; `None` if the session waits there.
    fn held_action(&self, event: &Event) -> Option<String> {
        let gate = event.parent_span_id.as_ref()?;
        let mut held = self.state.held.iter();
        let found = held.find(|held| held.gates.iter().any(|open| open.span_id == *gate))?;
        match found.holds {
            HoldScope::Action => Some(found.what.clone()),
            HoldScope::Start | HoldScope::Session => None,
        }
    }
}

/// Returns the reason in the answers to a gate: their texts. A sensitive answer is recorded as a hash,
/// which is not a reason. An acknowledgment gives no reason either.
fn reason(details: Details<'_>) -> Option<String> {
    let answers = details.value("answers")?.as_object()?;
    let texts = answers.values().filter_map(|answer| answer.as_str());
    let texts = texts.filter(|text| !text.starts_with("sha256:") && *text != "acknowledged");
    let texts: Vec<_> = texts.filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Describes an event that the next agent should know. Names are in backticks.
fn activity(kind: &str, event: &Event) -> Option<String> {
    let details = Details::of(event);
    let text = |name: &str| details.text(name).unwrap_or("?").to_owned();
    let because = |name: &str| {
        let reason = details.text(name).filter(|text| !text.trim().is_empty());
        reason
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default()
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
        "error_recovered" => format!("an error was resolved{}", because("recovery_method")),
        _ => return None,
    })
}

/// Returns the approvers, if two were needed.
fn approvers(details: Details<'_>) -> Option<String> {
    let both: Vec<_> = details.texts("approvers").collect();
    (!both.is_empty()).then(|| both.join(", "))
}

/// Returns the gates of a held request, with their questions.
fn held_gates(held: &Held) -> impl Iterator<Item = AccountHeld> {
    held.gates.iter().map(|gate| {
        let questions = gate.questions.iter();
        AccountHeld {
            gate: gate.name(),
            waits: match &held.subject {
                HeldSubject::SessionStart => WaitingSubject::Start,
                HeldSubject::Action(call) => WaitingSubject::Action(call.action.clone()),
                HeldSubject::Moment(moment) => WaitingSubject::Session(moment.label.clone()),
            },
            asked: questions
                .map(|question| question.text().to_owned())
                .collect(),
        }
    })
}

/// Returns the gates that are still open by the recorded events.
fn recorded_gates(state: &ReplayState) -> Vec<AccountHeld> {
    if state.ended.is_some() {
        return Vec::new();
    }
    let gates = state.held.iter().flat_map(|held| {
        held.gates.iter().map(|gate| AccountHeld {
            gate: gate.checkpoint.clone(),
            waits: match held.holds {
                HoldScope::Start => WaitingSubject::Start,
                HoldScope::Action => WaitingSubject::Action(held.what.clone()),
                HoldScope::Session => WaitingSubject::Session(held.what.clone()),
            },
            asked: vec![gate.why.clone()],
        })
    });
    gates.collect()
}

fn with_thread(account: SessionAccount, thread: &Thread, atlases: &[Atlas]) -> SessionAccount {
    let Some(latest) = &thread.latest else {
        return account;
    };
    let mut redactor = Redactor::of_all(atlases);
    let mut redacted = |text: &str| redactor.redact_text("memento", text);
    let shape = latest.shape();
    let mut list = |texts: &[String]| texts.iter().map(|text| redacted(text)).collect::<Vec<_>>();
    let (active, parked) = (list(&shape.active), list(&shape.parked));
    let (decisions, next) = (list(&shape.decisions), list(&shape.next));
    let pivots = pivots(thread).into_iter();
    let pivots = pivots.map(|(from, to, why)| (redacted(&from), redacted(&to), redacted(&why)));
    let pivots = pivots.collect();
    let held_back = thread.held_back.iter();
    let held_back = held_back.map(|turn| redacted(&turn.proposed.arc)).collect();
    let thawed_by = thread
        .thaw_condition()
        .map(|reason| reason.description().to_owned());
    let frozen = thread.frozen_since.map(|since| AccountFreeze {
        since: since.to_string(),
        until: thawed_by,
    });
    SessionAccount {
        // A thread without a summary has a dash as its arc.
        arc: Some(redacted(&shape.arc)).filter(|arc| arc != "-"),
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

/// Returns changes of direction: turns that decided or changed scope or topic, and changed the arc.
fn pivots(thread: &Thread) -> Vec<(String, String, String)> {
    let mut mementos = thread.mementos().rev();
    let Some(mut before) = mementos.next() else {
        return Vec::new();
    };
    let mut pivots = Vec::new();
    for memento in mementos {
        if let Some(turns) = pivot_signal(memento).filter(|_| memento.arc != before.arc) {
            let insight = turns.summary.as_ref().map(SignalSummary::as_str);
            let insight = insight.filter(|text| !text.trim().is_empty());
            let insight = insight.unwrap_or(turns.kind.description()).to_owned();
            pivots.push((before.arc.to_string(), memento.arc.to_string(), insight));
        }
        before = memento;
    }
    pivots
}

/// Returns the signal of a change of direction in the turn that created a memento.
fn pivot_signal(memento: &ThreadMemento) -> Option<&SignalItem> {
    let signals = memento.signals.as_ref()?;
    // An edited memento has the signals of its predecessor.
    if signals.updated_at != memento.created_ts {
        return None;
    }
    let mut items = signals.items.iter();
    items.find(|item| match item.kind {
        SignalKind::Pivot | SignalKind::ScopeChanged | SignalKind::DecisionMade => true,
        SignalKind::AnswerProvided
        | SignalKind::AckOnly
        | SignalKind::OpenLoopCreated
        | SignalKind::OpenLoopResolved
        | SignalKind::RiskOrConflict => false,
    })
}

/// Returns the thread of a session's turns: its own, or else the one of its last turn.
#[must_use]
pub fn thread_of<'t, T: AsRef<Thread>>(session: &str, threads: &'t [T]) -> Option<&'t Thread> {
    let all = || threads.iter().map(AsRef::as_ref);
    let owns = |thread: &&Thread| {
        let owner = thread.owner.as_ref();
        owner.is_some_and(|owner| owner.session.as_str() == session)
    };
    // A matching name proves nothing: another session may have started a thread with that name.
    let own = all().find(|thread: &&Thread| thread.id.as_str() == session && owns(thread));
    let took = |thread: &&Thread| {
        thread
            .turns
            .iter()
            .any(|turn| turn.session.as_str() == session)
    };
    own.or_else(|| all().find(took))
}
