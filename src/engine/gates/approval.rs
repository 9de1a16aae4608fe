//! Records of a passed gate. One place makes these records: the engine writes them, and the
//! dialog shows them before the operator signs, so that both can never say different things.
//!
//! Contract: every approval carries a justification. Where no reason was typed, the answers to the gate are the
//! justification, and the record says so.

use serde_json::{Map, Value};

use crate::atlas::document::ResponseType;
use crate::base::canonical_json::canonical;
use crate::base::limits::MAX_ANSWER_CHARS;
use crate::base::operator::is_same_operator;
use crate::base::text::one_line;
use crate::trace::event::{
    AtlasRef, CheckpointApproved, CheckpointPassed, CheckpointResponse, JustificationSource,
    Payload, PolicyOverride, RiskVerified, Validity,
};

use super::answer::ACKNOWLEDGED;
use super::held::{Gate, GateOrigin, Held};
use crate::engine::command::DecisionRefusal;
use crate::engine::records::action_records::recorded_tier;

/// Id of the question whose answer justifies an approval.
pub const JUSTIFICATION: &str = "justification";

/// Justification of a gate all of whose questions may stay open, and did.
const NO_ANSWERS: &str = "no answer was given; none was required";

/// Approver of a gate, and the method of the approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approver<'a> {
    /// The approver's name.
    pub name: &'a str,
    /// The approval method, such as `console+challenge`.
    pub method: &'a str,
    /// The justification, if no question asked for it.
    pub justification: Option<&'a str>,
    /// The first approver, where two operators must approve.
    pub first_approver: Option<&'a str>,
}

impl Approver<'_> {
    /// Returns both approvers in the order they approved, where two had to.
    fn both_approvers(self) -> Vec<String> {
        let first = self.first_approver.into_iter();
        let both = first.flat_map(|first| [first.to_owned(), self.name.to_owned()]);
        both.collect()
    }
}

/// Returns the reason why this operator can never let the request pass, regardless of the answers.
#[must_use]
pub fn bars(held: &Held, operator: &str) -> Option<DecisionRefusal> {
    let agent = format!("agent {}", held.agent);
    let askers = [held.agent.as_str(), &agent, held.session.as_str()];
    if askers.iter().any(|asker| is_same_operator(asker, operator)) {
        return Some(DecisionRefusal::Requester(operator.to_owned()));
    }
    let first = held.first_approval()?;
    is_same_operator(&first.by, operator).then(|| DecisionRefusal::SameOperator(first.by.clone()))
}

/// Returns the justification of an approval: the first text among the answers, or `why`. `answers` maps a
/// gate's index to its answers.
pub fn approval_text<'a>(
    held: &'a Held,
    answers: impl Fn(usize) -> Option<&'a Map<String, Value>>,
    why: Option<&'a str>,
) -> Option<&'a str> {
    let gates = held.gates.iter().enumerate();
    let mut texts = gates.filter_map(|(at, gate)| readable_text(gate, answers(at)?));
    texts.next().or(why)
}

/// Reason for passing a gate, as records carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Justification {
    /// The reason.
    pub text: String,
    /// Source of the justification.
    pub source: JustificationSource,
}

impl Justification {
    fn typed(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            source: JustificationSource::Operator,
        }
    }
}

/// Reason of an operator for passing one gate: a policy's own text, or why the request may pass; then a text at this
/// or another gate of the request; then the answers to this gate.
pub fn justification<'a>(
    held: &'a Held,
    gate: &'a Gate,
    own: Option<&'a Map<String, Value>>,
    answers: impl Fn(usize) -> Option<&'a Map<String, Value>>,
    why: Option<&'a str>,
) -> Justification {
    let text = own.and_then(|own| readable_text(gate, own));
    let first = match &gate.origin {
        GateOrigin::Checkpoint { .. } => why.or(text),
        GateOrigin::Approval { .. } | GateOrigin::Override { .. } => text.or(why),
    };
    let typed = first.or_else(|| approval_text(held, answers, why));
    typed.map_or_else(|| composed(gate, own), Justification::typed)
}

/// Reason of an agent at a gate that the agent answered: its first text, or its answers.
#[must_use]
pub fn agent_justification(gate: &Gate, own: Option<&Map<String, Value>>) -> Justification {
    let text = own.and_then(|own| readable_text(gate, own));
    text.map_or_else(
        || composed(gate, own),
        |text| Justification {
            source: JustificationSource::Agent,
            ..Justification::typed(text)
        },
    )
}

/// Reason of an operator for a whole request: what was typed, or the answers to every open gate.
pub fn request_justification<'a>(
    held: &'a Held,
    answers: impl Fn(usize) -> Option<&'a Map<String, Value>>,
    why: Option<&'a str>,
) -> String {
    if let Some(text) = approval_text(held, &answers, why) {
        return text.to_owned();
    }
    let gates = held.gates.iter().enumerate();
    let open = gates.filter_map(|(at, gate)| Some((gate, answers(at)?)));
    let composed = open.map(|(gate, own)| composed(gate, Some(own)).text);
    cut(&composed.collect::<Vec<_>>().join("; "))
}

/// The answers to a gate in one line, in the order of its questions. Of a sensitive answer it says only that there
/// is one, so it reads the same before and after the answer is hashed.
fn composed(gate: &Gate, own: Option<&Map<String, Value>>) -> Justification {
    let answered = gate.questions.iter().filter_map(|question| {
        let answer = own?.get(question.id())?;
        let asked = one_line(question.text());
        let asked = asked.trim();
        if question.sensitive() {
            return Some(format!("{asked}: (sensitive, hashed)"));
        }
        Some(match (question.response_type(), answer) {
            (ResponseType::Acknowledgment, Value::String(text)) if text == ACKNOWLEDGED => {
                format!("{ACKNOWLEDGED}: {asked}")
            }
            (_, Value::Bool(true)) => format!("{asked}: yes"),
            (_, Value::Bool(false)) => format!("{asked}: no"),
            (_, Value::String(text)) => format!("{asked}: {}", one_line(text).trim()),
            (_, other) => format!("{asked}: {}", canonical(other)),
        })
    });
    let answered = answered.collect::<Vec<_>>().join("; ");
    let text = if answered.is_empty() {
        NO_ANSWERS.to_owned()
    } else {
        cut(&answered)
    };
    Justification {
        text,
        source: JustificationSource::Answers,
    }
}

/// A text, cut to the length of an answer.
fn cut(text: &str) -> String {
    text.chars().take(MAX_ANSWER_CHARS).collect()
}

/// Returns the first text among the answers to a gate that is recorded in readable form.
fn readable_text<'a>(gate: &Gate, answers: &'a Map<String, Value>) -> Option<&'a str> {
    let mut texts = gate
        .questions
        .iter()
        .filter(|question| !question.sensitive() && question.response_type() == ResponseType::Text);
    texts.find_map(|question| answers.get(question.id())?.as_str())
}

/// Returns the Atlas of a gate, as records name it.
#[must_use]
pub fn judged_under(gate: &Gate) -> Vec<AtlasRef> {
    let hash = gate.atlas_hash.as_ref();
    let reference = hash.map(|hash| AtlasRef {
        atlas_id: gate.origin.atlas_id().to_owned(),
        atlas_hash: hash.to_string(),
    });
    reference.into_iter().collect()
}

/// Builds the record of the answers to a gate, with the rules that they break.
#[must_use]
pub fn response_record(
    gate: &Gate,
    answers: Map<String, Value>,
    problems: Vec<String>,
    by: Approver<'_>,
) -> CheckpointResponse {
    CheckpointResponse {
        checkpoint_id: gate.origin.id().to_owned(),
        answers,
        validation_result: if problems.is_empty() {
            Validity::Valid
        } else {
            Validity::Invalid
        },
        problems,
        answered_by: by.name.to_owned(),
        judged_under: judged_under(gate),
        numbers_as_text: Vec::new(),
        redacted: Vec::new(),
    }
}

/// Builds the record that only some gates need: a verified risk, or an overruled policy.
#[must_use]
pub fn approval_record(
    held: &Held,
    gate: &Gate,
    why: &Justification,
    by: Approver<'_>,
) -> Option<Payload> {
    let justification = Some(why.text.clone());
    let justification_source = Some(why.source);
    let request_hash = Some(held.request_hash.to_string());
    match &gate.origin {
        GateOrigin::Checkpoint { kind, .. } if kind == "risk_threshold" => {
            let verified = RiskVerified {
                risk_tier: recorded_tier(held.tier()),
                verification_method: by.method.to_owned(),
                verified_by: Some(by.name.to_owned()),
                action_type: held.action().to_owned(),
                justification,
                justification_source,
                approvers: by.both_approvers(),
                request_hash,
                judged_under: judged_under(gate),
            };
            Some(verified.into())
        }
        GateOrigin::Checkpoint { .. } => None,
        GateOrigin::Approval { policy_id, .. } | GateOrigin::Override { policy_id, .. } => {
            let overruled = PolicyOverride {
                policy_id: policy_id.clone(),
                action_type: held.action().to_owned(),
                approver: by.name.to_owned(),
                approval_method: by.method.to_owned(),
                justification,
                justification_source,
                approvers: by.both_approvers(),
                request_hash,
                judged_under: judged_under(gate),
            };
            Some(overruled.into())
        }
    }
}

/// Builds the record of a passed gate, with the contexts that were injected.
#[must_use]
pub fn passed_record(
    held: &Held,
    gate: &Gate,
    contexts: Vec<String>,
    why: &Justification,
    by: Approver<'_>,
) -> CheckpointPassed {
    CheckpointPassed {
        checkpoint_id: gate.origin.id().to_owned(),
        unlocked_capabilities: gate.effects.unlock.iter().cloned().collect(),
        injected_contexts: contexts,
        passed_by: by.name.to_owned(),
        approval_method: Some(by.method.to_owned()),
        justification: Some(why.text.clone()),
        justification_source: Some(why.source),
        approvers: by.both_approvers(),
        request_hash: Some(held.request_hash.to_string()),
        judged_under: judged_under(gate),
    }
}

/// Builds the record of the first of two approvals, with its justification.
#[must_use]
pub fn first_approval_record(
    held: &Held,
    gate: &Gate,
    why: Justification,
    by: Approver<'_>,
) -> CheckpointApproved {
    CheckpointApproved {
        checkpoint_id: gate.origin.id().to_owned(),
        gate_id: held.id.to_string(),
        approved_by: by.name.to_owned(),
        approval_method: by.method.to_owned(),
        justification: Some(why.text),
        justification_source: Some(why.source),
        needed: held.approvers().count(),
        request_hash: held.request_hash.to_string(),
        judged_under: judged_under(gate),
    }
}
