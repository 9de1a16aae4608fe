//! Holding a request: from fired checkpoints and approvals to a held request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::atlas::document::{
    Approvers, CheckpointMode, CheckpointQuestion, Respondent, ResponseType,
};
use crate::atlas::keyword::KeywordMatch;
use crate::atlas::model::CompiledQuestion;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::HeldRequestId;
use crate::base::limits::{DEFAULT_GATE_TIMEOUT, MAX_HELD, MIN_OVERRIDE_REASON};
use crate::base::pattern::Patterns;
use crate::trace::event::{
    ActionTaken, CheckpointCompleted, CheckpointTriggered, Durability, InjectTrigger,
};

use super::agent_answers::{agent_questions, later_questions_denial};
use super::approval::{self, JUSTIFICATION};
use super::held::{Gate, GateOrigin, Held, HeldSubject, PassEffects};
use super::queue::{AdvisoryEffects, HeldEntry};
use crate::engine::command::{
    AgentReply, DenyCode, Effect, Injected, OnDisconnect, ReplyId, StateKind,
};
use crate::engine::evaluation::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use crate::engine::injection::contexts::{BudgetRule, Injection, expire_guidance, inject_contexts};
use crate::engine::injection::withholding::{WithheldInjection, apply_effects};
use crate::engine::records::redaction::{RedactedText, redact_reason};
use crate::engine::requests::attempt::queue_overload;
use crate::engine::transaction::{SpanPosition, Transaction, pass_effects};

/// A gate that is about to be held, with its timeout.
pub(crate) struct NewGate {
    pub(crate) gate: Gate,
    pub(crate) timeout: Duration,
    priority: i64,
    pub(crate) mode: CheckpointMode,
    /// True when the gate's reason contains text of an extension, which may quote the request.
    quotes_request: bool,
    /// Keywords that made it fire, with their positions.
    matches: Vec<KeywordMatch>,
    /// True when it is on record that the checkpoint fired.
    recorded: bool,
}

/// A request that is about to be held.
pub(crate) struct HoldRequest {
    pub(crate) subject: HeldSubject,
    pub(crate) hash: Digest,
    pub(crate) position: SpanPosition,
    /// Time at which the caller stops waiting, if it does.
    pub(crate) deadline: Option<Timestamp>,
    /// The agent's own identifier of the call.
    pub(crate) same_call: Option<String>,
    /// End of the request when the caller that waits for it disconnects.
    pub(crate) on_disconnect: OnDisconnect,
    pub(crate) withheld: Vec<WithheldInjection>,
    pub(crate) advice: Vec<AdvisoryEffects>,
    /// The input as an extension rewrote it, if one did.
    pub(crate) modified_input: Option<String>,
}

/// Time at which the grants of fired checkpoints apply. Restrictions always apply now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantTiming {
    /// Now: no gate is in the way, or a permit opens all of them.
    Now,
    /// After: the operator has to pass the gate that fired with them.
    AfterGate,
}

/// Builds a gate from a blocking checkpoint.
pub(crate) fn build_checkpoint_gate(
    tx: &mut Transaction<'_>,
    fired: &OwnedFiredCheckpoint,
) -> NewGate {
    let checkpoint = &fired.checkpoint;
    let questions = if checkpoint.questions.is_empty() {
        implicit_acknowledgment(&checkpoint.name, &checkpoint.id)
            .into_iter()
            .collect()
    } else {
        checkpoint.questions.clone()
    };
    let gate = Gate {
        origin: GateOrigin::Checkpoint {
            atlas_id: fired.atlas_id.clone(),
            checkpoint_id: checkpoint.id.clone(),
            name: checkpoint.name.clone(),
            kind: checkpoint.kind.to_owned(),
            priority: checkpoint.priority,
        },
        why: fired.why.clone(),
        questions,
        guidance: checkpoint.guidance.clone(),
        effects: pass_effects(checkpoint),
        // An agent may not decide about an uncertain checkpoint.
        respondent: if fired.certain {
            checkpoint.respondent
        } else {
            Respondent::Operator
        },
        approvers: checkpoint.approvers,
        force_sync: checkpoint.force_sync_trace,
        shared_name: is_shared_name(tx, &checkpoint.id),
        atlas_hash: atlas_hash_of(tx, &fired.atlas_id),
        span_id: fired.recorded_span.clone().unwrap_or_else(|| tx.new_span()),
    };
    NewGate {
        gate,
        timeout: Duration::from_secs(checkpoint.timeout_seconds),
        priority: checkpoint.priority,
        mode: CheckpointMode::Blocking,
        quotes_request: fired.quotes_request,
        matches: fired.matches.clone(),
        recorded: fired.recorded_span.is_some(),
    }
}

/// Builds a gate from a policy that requires approval.
pub(crate) fn build_approval_gate(
    tx: &mut Transaction<'_>,
    approval: &OwnedRequiredApproval,
) -> NewGate {
    let (atlas_id, policy_id) = (approval.atlas_id.clone(), approval.policy_id.clone());
    let reason = approval.reason.clone();
    let (origin, question) = if approval.overrides {
        let origin = GateOrigin::Override {
            atlas_id,
            policy_id,
            reason,
        };
        (origin, override_justification())
    } else {
        let origin = GateOrigin::Approval {
            atlas_id,
            policy_id,
            reason,
        };
        (origin, approval_justification())
    };
    let gate = Gate {
        origin,
        why: approval.why.clone(),
        questions: question.into_iter().collect(),
        guidance: None,
        effects: PassEffects::default(),
        // An approver is never the agent.
        respondent: Respondent::Operator,
        approvers: Approvers::One,
        force_sync: true,
        shared_name: is_shared_name(tx, &approval.policy_id),
        atlas_hash: atlas_hash_of(tx, &approval.atlas_id),
        span_id: tx.new_span(),
    };
    NewGate {
        gate,
        timeout: DEFAULT_GATE_TIMEOUT,
        priority: 0,
        mode: CheckpointMode::Blocking,
        quotes_request: false,
        matches: Vec::new(),
        recorded: false,
    }
}

/// Applies fired checkpoints, highest priority first: builds the gates, applies the others, and records
/// both in that order.
///
/// If too many requests are held for another gate, no gate is recorded.
pub(crate) fn apply_in_order(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    subject: &HeldSubject,
    fired: &[OwnedFiredCheckpoint],
    grants: GrantTiming,
) -> (Injected, Vec<NewGate>) {
    let room = queue_overload(tx, &position.session).is_none();
    let mut injected = Injected::default();
    let mut new_gates = Vec::new();
    for fired in fired {
        if fired.is_gate() {
            let mut gate = build_checkpoint_gate(tx, fired);
            if room && !gate.recorded {
                record_triggered(tx, position, &gate, subject);
                gate.recorded = true;
            }
            new_gates.push(gate);
        } else {
            injected.extend(apply_non_blocking(tx, position, fired, subject, grants));
        }
    }
    (injected, new_gates)
}

/// Applies and records a checkpoint that does not stop the agent.
pub(crate) fn apply_non_blocking(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    fired: &OwnedFiredCheckpoint,
    subject: &HeldSubject,
    grants: GrantTiming,
) -> Injected {
    let new_gate = NewGate {
        mode: fired.checkpoint.mode,
        ..build_checkpoint_gate(tx, fired)
    };
    let gate_position = position.child(new_gate.gate.span_id.clone());
    if !new_gate.recorded {
        record_triggered(tx, position, &new_gate, subject);
    }
    expire_guidance(
        tx,
        &position.session,
        &[&fired.checkpoint.id, fired.checkpoint.kind],
    );
    let mut injected = Injected::default();
    if fired.checkpoint.mode == CheckpointMode::Advisory {
        let mut effects = new_gate.gate.effects.clone();
        let inject = std::mem::take(&mut effects.inject);
        if grants == GrantTiming::AfterGate || !fired.certain {
            effects.unlock.clear();
            effects.allow = Patterns::default();
        }
        apply_effects(
            tx,
            position,
            &fired.atlas_id,
            &fired.checkpoint.id,
            &effects,
        );
        injected = inject_contexts(
            tx,
            position,
            &Injection {
                atlas: Some(&fired.atlas_id),
                from: &fired.checkpoint.id,
                kind: fired.checkpoint.kind,
                trigger: injection_trigger(fired.checkpoint.kind),
                contexts: &inject,
                guidance: fired.checkpoint.guidance.as_ref(),
                size: BudgetRule::Budgeted,
            },
        );
        if effects.change_rights() {
            tx.state().caches.new_generation();
        }
    }
    let completed = CheckpointCompleted {
        checkpoint_id: fired.checkpoint.id.clone(),
        checkpoint_type: fired.checkpoint.kind.to_owned(),
        duration_ms: fired.took_ms(),
        contexts_injected: injected
            .contexts
            .iter()
            .map(|c| c.context_id.clone())
            .collect(),
        action_taken: Some(if fired.modified {
            ActionTaken::Modify
        } else {
            ActionTaken::Continue
        }),
        block_reason: None,
        judged_under: approval::judged_under(&new_gate.gate),
        redacted: Vec::new(),
    };
    tx.record_below(&gate_position, completed);
    injected
}

/// Holds a request. `ask` waits for the answer; with `None`, no caller waits.
pub(crate) fn hold_request(
    tx: &mut Transaction<'_>,
    reply_id: Option<ReplyId>,
    request: HoldRequest,
    new_gates: Vec<NewGate>,
) -> Option<HeldRequestId> {
    if tx.state().held.len() >= MAX_HELD {
        if let Some(reply_id) = reply_id {
            let reason = format!("{MAX_HELD} requests are already held");
            tx.deny(reply_id, DenyCode::Overload, reason);
        }
        return None;
    }
    let id = next_gate_id(tx);
    for new_gate in new_gates.iter().filter(|new_gate| !new_gate.recorded) {
        record_triggered(tx, &request.position, new_gate, &request.subject);
    }
    let patience = new_gates.iter().map(|new_gate| new_gate.timeout).min();
    let own = tx.now.plus(patience.unwrap_or(DEFAULT_GATE_TIMEOUT));
    let session = tx.engine.state.sessions.get(&request.position.session);
    let mut held = Held {
        id: id.clone(),
        session: request.position.session.clone(),
        agent: session
            .map(|session| session.agent.clone())
            .unwrap_or_default(),
        intent: session.and_then(|session| Some(session.intent.as_ref()?.recorded.clone())),
        subject: request.subject,
        request_hash: request.hash,
        atlas_hash: tx.engine.atlas_hash,
        gates: new_gates
            .into_iter()
            .map(|new_gate| new_gate.gate)
            .collect(),
        opened_at: tx.now,
        deadline: own,
        invalid_attempts: 0,
        agent_attempts: 0,
        joined: 0,
        answered: BTreeMap::new(),
        approval: None,
        claim: None,
        trace_id: request.position.trace_id,
        span_id: request.position.span_id,
    };
    // An agent that is asked questions has its reply, and comes back with the answers.
    let asked = agent_questions(tx, &held).map(AgentReply::Asked);
    let asked = asked.or_else(|| later_questions_denial(tx, &held).map(AgentReply::Denied));
    let asked = reply_id.zip(asked);
    let reply_ids = reply_id.filter(|_| asked.is_none());
    // The caller's deadline counts while it waits. A caller that has its reply may answer later.
    let until = request.deadline.filter(|_| asked.is_none());
    held.deadline = until.map_or(own, |until| own.min(until));
    let deadline = held.deadline;
    let entry = HeldEntry {
        held: Arc::new(held),
        injected: Injected::default(),
        withheld: request.withheld,
        call: request.same_call,
        on_disconnect: match reply_ids {
            Some(_) => request.on_disconnect,
            // The agent has its reply, and comes back with the answers.
            None => OnDisconnect::Kept,
        },
        advice: request.advice,
        modified_input: request.modified_input,
        reply_ids: reply_ids.into_iter().collect(),
        bytes: 0,
    };
    tx.persist(StateKind::Held, id.as_str(), Some(&entry));
    tx.state().held.insert(entry);
    tx.push(Effect::SetDeadline(id.clone(), deadline));
    tx.push(Effect::RequestHeld(id.clone()));
    if let Some((reply_id, asked)) = asked {
        tx.reply_to_agent(reply_id, asked);
    }
    Some(id)
}

fn next_gate_id(tx: &mut Transaction<'_>) -> HeldRequestId {
    let state = tx.state();
    state.gates_opened += 1;
    let number = state.gates_opened;
    tx.persist(StateKind::Counter, "gates_opened", Some(&number));
    HeldRequestId::from_number(number)
}

/// Returns whether several Atlases have a checkpoint or policy of this name.
fn is_shared_name(tx: &Transaction<'_>, name: &str) -> bool {
    let having = tx.engine.atlases.iter().filter(|atlas| {
        let mut checkpoints = atlas.checkpoints.iter();
        let mut policies = atlas.policies.iter();
        checkpoints.any(|checkpoint| checkpoint.id == name)
            || policies.any(|policy| policy.id == name)
    });
    having.count() > 1
}

/// Returns the digest of a loaded Atlas.
fn atlas_hash_of(tx: &Transaction<'_>, atlas_id: &str) -> Option<Digest> {
    let mut atlases = tx.engine.atlases.iter();
    let atlas = atlases.find(|atlas| atlas.id == atlas_id)?;
    Some(atlas.hash)
}

pub(crate) fn record_triggered(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    new_gate: &NewGate,
    subject: &HeldSubject,
) {
    let gate = &new_gate.gate;
    let durability = if gate.force_sync {
        Durability::Sync
    } else {
        Durability::Async
    };
    let gate_position = position.child(gate.span_id.clone());
    let (call, input_hash) = match subject {
        HeldSubject::SessionStart => (None, None),
        HeldSubject::Action(call) => (Some(call), None),
        HeldSubject::Moment(moment) => (None, moment.data.get("input_hash")),
    };
    let input_hash = input_hash.and_then(Value::as_str).map(str::to_owned);
    let trigger_condition = if new_gate.quotes_request {
        redact_reason(tx, call, "trigger_condition", &gate.why)
    } else {
        RedactedText::plain(&gate.why)
    };
    let record = CheckpointTriggered {
        checkpoint_id: gate.origin.id().to_owned(),
        checkpoint_type: gate.origin.kind().to_owned(),
        mode: new_gate.mode.as_str().to_owned(),
        trigger_condition: trigger_condition.text,
        trigger_data: with_matches(trigger_data(subject), &new_gate.matches),
        priority: new_gate.priority,
        input_hash,
        judged_under: approval::judged_under(gate),
        numbers_as_text: Vec::new(),
        redacted: trigger_condition.redacted,
    };
    tx.record_as(&gate_position, record, durability);
}

/// Returns the recorded trigger for contexts of a checkpoint of this type.
pub(crate) fn injection_trigger(kind: &str) -> InjectTrigger {
    match kind {
        "session_start" => InjectTrigger::Always,
        "keyword_match" | "action_pre" | "action_post" | "custom" => InjectTrigger::OnMatch,
        "risk_threshold" => InjectTrigger::RiskBased,
        _ => InjectTrigger::OnDemand,
    }
}

/// Builds the question of a gate for which the steward wrote none.
pub(crate) fn implicit_acknowledgment(name: &str, id: &str) -> Option<CompiledQuestion> {
    let name = if name.is_empty() { id } else { name };
    question(
        "acknowledge",
        format!("I have reviewed this request: {name}"),
        ResponseType::Acknowledgment,
    )
}

/// Question of a policy that wants an approval.
fn approval_justification() -> Option<CompiledQuestion> {
    question(JUSTIFICATION, WHY.to_owned(), ResponseType::Text)
}

/// Question of a denial that may be overruled: its reason has a least length at every interface.
fn override_justification() -> Option<CompiledQuestion> {
    let mut asked = CheckpointQuestion::of_type(ResponseType::Text, JUSTIFICATION, WHY.to_owned());
    asked.validation.min_length = Some(MIN_OVERRIDE_REASON);
    compiled(asked)
}

/// Text of the question that asks for a justification.
const WHY: &str = "Reason for approving";

fn question(id: &str, text: String, response_type: ResponseType) -> Option<CompiledQuestion> {
    compiled(CheckpointQuestion::of_type(response_type, id, text))
}

fn compiled(question: CheckpointQuestion) -> Option<CompiledQuestion> {
    // INVARIANT: a question without a pattern or schema always compiles.
    CompiledQuestion::try_from(question).ok()
}

/// Action name that stands for the start of a session.
pub(crate) const SESSION_START: &str = "session_start";

/// Returns the parameters by which the start of a session is judged.
pub(crate) fn start_params(agent: &str, intent: Option<&str>) -> Value {
    json!({ "agent": agent, "intent": intent })
}

/// Returns the data that a checkpoint fired on, for the record.
fn trigger_data(subject: &HeldSubject) -> Value {
    match subject {
        HeldSubject::SessionStart => json!({}),
        HeldSubject::Moment(moment) => moment.data.clone(),
        HeldSubject::Action(call) => json!({ "action_id": call.action }),
    }
}

/// Adds the matched keywords, each with the position of its first character.
fn with_matches(mut data: Value, matches: &[KeywordMatch]) -> Value {
    if let (Value::Object(fields), false) = (&mut data, matches.is_empty()) {
        fields.insert("matches".to_owned(), json!(matches));
    }
    data
}
