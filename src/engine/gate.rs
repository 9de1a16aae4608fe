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
use crate::base::id::GateId;
use crate::base::limits::{DEFAULT_GATE_TIMEOUT, MAX_HELD, MIN_OVERRIDE_REASON};
use crate::base::pattern::Patterns;
use crate::trace::event::{
    ActionTaken, CheckpointCompleted, CheckpointTriggered, Durability, InjectTrigger,
};

use super::approval::{self, JUSTIFICATION};
use super::command::{CallerId, DenyCode, Effect, Injected, Reply, StateKind};
use super::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use super::held::{Gate, GateOrigin, Held, HeldSubject, PassEffects};
use super::inject::{BudgetRule, Injection};
use super::redacted_records::RedactedText;
use super::transaction::{SpanPosition, Transaction, pass_effects};
use super::withholding::WithheldInjection;
use super::{AdvisoryEffects, HeldEntry};

/// A gate that is about to be raised, with its timeout.
pub(super) struct RaisedGate {
    pub(super) gate: Gate,
    pub(super) timeout: Duration,
    priority: i64,
    pub(super) mode: CheckpointMode,
    /// True when the gate's reason contains text of an extension, which may quote the request.
    quotes_request: bool,
    /// Keywords that made it fire, with their positions.
    matches: Vec<KeywordMatch>,
    /// True when it is on record that the checkpoint fired.
    recorded: bool,
}

/// A request that is about to be held.
pub(super) struct HoldRequest {
    pub(super) subject: HeldSubject,
    pub(super) hash: Digest,
    pub(super) place: SpanPosition,
    /// Time at which the caller stops waiting, if it does.
    pub(super) deadline: Option<Timestamp>,
    /// The agent's own identifier of the call.
    pub(super) same_call: Option<String>,
    pub(super) withheld: Vec<WithheldInjection>,
    pub(super) advice: Vec<AdvisoryEffects>,
    /// The input as an extension rewrote it, if one did.
    pub(super) modified_input: Option<String>,
}

/// Presence of a gate among the checkpoints that fired together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatePresence {
    /// No gate fired.
    NoGate,
    /// A gate fired: grants wait until it is passed, restrictions do not.
    Gate,
}

impl Transaction<'_> {
    /// Builds a gate from a blocking checkpoint.
    pub(super) fn raise_checkpoint_gate(&mut self, fired: &OwnedFiredCheckpoint) -> RaisedGate {
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
            shared_name: self.is_shared_name(&checkpoint.id),
            atlas_hash: self.atlas_hash_of(&fired.atlas_id),
            span_id: fired
                .recorded_span
                .clone()
                .unwrap_or_else(|| self.new_span()),
        };
        RaisedGate {
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
    pub(super) fn raise_approval_gate(&mut self, approval: &OwnedRequiredApproval) -> RaisedGate {
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
            shared_name: self.is_shared_name(&approval.policy_id),
            atlas_hash: self.atlas_hash_of(&approval.atlas_id),
            span_id: self.new_span(),
        };
        RaisedGate {
            gate,
            timeout: DEFAULT_GATE_TIMEOUT,
            priority: 0,
            mode: CheckpointMode::Blocking,
            quotes_request: false,
            matches: Vec::new(),
            recorded: false,
        }
    }

    /// Applies fired checkpoints, highest priority first: raises gates and applies the others, and records
    /// both in that order.
    ///
    /// If too many requests are held for another gate, no gate is recorded.
    pub(super) fn apply_in_order(
        &mut self,
        place: &SpanPosition,
        subject: &HeldSubject,
        fired: &[OwnedFiredCheckpoint],
        beside: GatePresence,
    ) -> (Injected, Vec<RaisedGate>) {
        let room = self.overload(&place.session).is_none();
        let mut given = Injected::default();
        let mut raised = Vec::new();
        for fired in fired {
            if fired.is_gate() {
                let mut gate = self.raise_checkpoint_gate(fired);
                if room && !gate.recorded {
                    self.record_triggered(place, &gate, subject);
                    gate.recorded = true;
                }
                raised.push(gate);
            } else {
                given.extend(self.apply_non_blocking(place, fired, subject, beside));
            }
        }
        (given, raised)
    }

    /// Applies and records a checkpoint that does not stop the agent.
    pub(super) fn apply_non_blocking(
        &mut self,
        place: &SpanPosition,
        fired: &OwnedFiredCheckpoint,
        subject: &HeldSubject,
        beside: GatePresence,
    ) -> Injected {
        let raised = RaisedGate {
            mode: fired.checkpoint.mode,
            ..self.raise_checkpoint_gate(fired)
        };
        let here = place.child(raised.gate.span_id.clone());
        if !raised.recorded {
            self.record_triggered(place, &raised, subject);
        }
        self.expire_guidance(
            &place.session,
            &[&fired.checkpoint.id, fired.checkpoint.kind],
        );
        let mut given = Injected::default();
        if fired.checkpoint.mode == CheckpointMode::Advisory {
            let mut effects = raised.gate.effects.clone();
            let inject = std::mem::take(&mut effects.inject);
            if beside == GatePresence::Gate || !fired.certain {
                effects.unlock.clear();
                effects.allow = Patterns::default();
            }
            self.apply_effects(place, &fired.atlas_id, &fired.checkpoint.id, &effects);
            given = self.inject(
                place,
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
                self.state().caches.new_generation();
            }
        }
        let completed = CheckpointCompleted {
            checkpoint_id: fired.checkpoint.id.clone(),
            checkpoint_type: fired.checkpoint.kind.to_owned(),
            duration_ms: fired.took_ms(),
            contexts_injected: given
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
            judged_under: approval::judged_under(&raised.gate),
            redacted: Vec::new(),
        };
        self.record_below(&here, completed);
        given
    }

    /// Holds a request. `ask` waits for the answer; with `None`, no caller waits.
    pub(super) fn hold_request(
        &mut self,
        ask: Option<CallerId>,
        request: HoldRequest,
        raised: Vec<RaisedGate>,
    ) -> Option<GateId> {
        if self.state().held.len() >= MAX_HELD {
            if let Some(ask) = ask {
                let reason = format!("{MAX_HELD} requests are already held");
                self.deny(ask, DenyCode::Overload, reason);
            }
            return None;
        }
        let id = self.next_gate_id();
        for raised in raised.iter().filter(|raised| !raised.recorded) {
            self.record_triggered(&request.place, raised, &request.subject);
        }
        let patience = raised.iter().map(|raised| raised.timeout).min();
        let own = self.now.plus(patience.unwrap_or(DEFAULT_GATE_TIMEOUT));
        let session = self.engine.state.sessions.get(&request.place.session);
        let mut held = Held {
            id: id.clone(),
            session: request.place.session.clone(),
            agent: session
                .map(|session| session.agent.clone())
                .unwrap_or_default(),
            intent: session.and_then(|session| Some(session.intent.as_ref()?.kept.clone())),
            subject: request.subject,
            request_hash: request.hash,
            atlas_hash: self.engine.atlas_hash,
            gates: raised.into_iter().map(|raised| raised.gate).collect(),
            opened_at: self.now,
            deadline: own,
            invalid_attempts: 0,
            agent_attempts: 0,
            joined: 0,
            answered: BTreeMap::new(),
            approval: None,
            claim: None,
            trace_id: request.place.trace_id,
            span_id: request.place.span_id,
        };
        // An agent that is asked questions has its reply, and comes back with the answers.
        let asked = self.agent_questions(&held).map(Reply::Asked);
        let asked = asked.or_else(|| self.later_questions_denial(&held).map(Reply::Denied));
        let asked = ask.zip(asked);
        let askers = ask.filter(|_| asked.is_none());
        // The caller's deadline counts while it waits. A caller that has its reply may answer later.
        let until = request.deadline.filter(|_| asked.is_none());
        held.deadline = until.map_or(own, |until| own.min(until));
        let deadline = held.deadline;
        let waiting = HeldEntry {
            held: Arc::new(held),
            given: Injected::default(),
            withheld: request.withheld,
            call: request.same_call,
            advice: request.advice,
            modified_input: request.modified_input,
            askers: askers.into_iter().collect(),
            bytes: 0,
        };
        self.persist(StateKind::Held, id.as_str(), Some(&waiting));
        self.state().held.insert(waiting);
        self.push(Effect::SetDeadline(id.clone(), deadline));
        self.push(Effect::RequestHeld(id.clone()));
        if let Some((ask, asked)) = asked {
            self.reply(ask, asked);
        }
        Some(id)
    }

    fn next_gate_id(&mut self) -> GateId {
        let state = self.state();
        state.gates_opened += 1;
        let number = state.gates_opened;
        self.persist(StateKind::Counter, "gates_opened", Some(&number));
        GateId::from_number(number)
    }

    /// Returns whether several Atlases have a checkpoint or policy of this name.
    fn is_shared_name(&self, name: &str) -> bool {
        let having = self.engine.atlases.iter().filter(|atlas| {
            let mut checkpoints = atlas.checkpoints.iter();
            let mut policies = atlas.policies.iter();
            checkpoints.any(|checkpoint| checkpoint.id == name)
                || policies.any(|policy| policy.id == name)
        });
        having.count() > 1
    }

    /// Returns the digest of a loaded Atlas.
    fn atlas_hash_of(&self, atlas_id: &str) -> Option<Digest> {
        let mut atlases = self.engine.atlases.iter();
        let atlas = atlases.find(|atlas| atlas.id == atlas_id)?;
        Some(atlas.hash)
    }

    pub(super) fn record_triggered(
        &mut self,
        place: &SpanPosition,
        raised: &RaisedGate,
        subject: &HeldSubject,
    ) {
        let gate = &raised.gate;
        let durability = if gate.force_sync {
            Durability::Sync
        } else {
            Durability::Async
        };
        let here = place.child(gate.span_id.clone());
        let (call, input_hash) = match subject {
            HeldSubject::SessionStart => (None, None),
            HeldSubject::Action(call) => (Some(call), None),
            HeldSubject::Moment(moment) => (None, moment.data.get("input_hash")),
        };
        let input_hash = input_hash.and_then(Value::as_str).map(str::to_owned);
        let told = if raised.quotes_request {
            self.redact_reason(call, "trigger_condition", &gate.why)
        } else {
            RedactedText::plain(&gate.why)
        };
        let record = CheckpointTriggered {
            checkpoint_id: gate.origin.id().to_owned(),
            checkpoint_type: gate.origin.kind().to_owned(),
            mode: raised.mode.as_str().to_owned(),
            trigger_condition: told.text,
            trigger_data: with_matches(trigger_data(subject), &raised.matches),
            priority: raised.priority,
            input_hash,
            judged_under: approval::judged_under(gate),
            numbers_as_text: Vec::new(),
            redacted: told.redacted,
        };
        self.record_as(&here, record, durability);
    }
}

/// Returns the recorded trigger for contexts of a checkpoint of this type.
pub(super) fn injection_trigger(kind: &str) -> InjectTrigger {
    match kind {
        "session_start" => InjectTrigger::Always,
        "keyword_match" | "action_pre" | "action_post" | "custom" => InjectTrigger::OnMatch,
        "risk_threshold" => InjectTrigger::RiskBased,
        _ => InjectTrigger::OnDemand,
    }
}

/// Builds the question of a gate for which the steward wrote none.
pub(super) fn implicit_acknowledgment(name: &str, id: &str) -> Option<CompiledQuestion> {
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
pub(super) const SESSION_START: &str = "session_start";

/// Returns the parameters by which the start of a session is judged.
pub(super) fn start_params(agent: &str, intent: Option<&str>) -> Value {
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
