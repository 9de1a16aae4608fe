//! Records that a pass would write, shown before they are written.

use serde_json::{Map, Value};

use crate::atlas::model::CompiledQuestion;
use crate::engine::answer::judge_answer;
use crate::engine::approval::{self, Approver};
use crate::engine::held::Held;
use crate::trace::event::{JustificationSource, Payload};

/// Placeholder for a sensitive answer in the record.
pub(crate) const HASHED_ANSWER: &str = "sha256, salted";

/// A record that will be written, as far as its content is known beforehand.
#[derive(Debug)]
pub(crate) struct PlannedRecord {
    pub(crate) event_type: String,
    pub(crate) fields: Map<String, Value>,
}

impl From<Payload> for PlannedRecord {
    fn from(payload: Payload) -> Self {
        Self {
            event_type: payload.event_type().to_owned(),
            fields: payload.fields(),
        }
    }
}

/// Answers to a gate as they will be recorded.
#[derive(Debug, Default)]
pub(crate) struct PlannedAnswers {
    answers: Map<String, Value>,
    problems: Vec<String>,
    /// Extensions that validate an answer after it is sent.
    validators: Vec<String>,
}

impl PlannedAnswers {
    /// Adds the typed answer to a question.
    pub(crate) fn add(&mut self, question: &CompiledQuestion, raw: &Value) {
        let judged = judge_answer(question, raw);
        let broken = judged.failures();
        if let Some(answer) = judged.recorded_answer(raw) {
            let validator = question.validation().custom_validator.as_ref();
            let asked = validator.filter(|_| broken.is_empty());
            self.validators.extend(asked.cloned());
            let answer = if question.sensitive() {
                Value::from(HASHED_ANSWER)
            } else {
                answer
            };
            self.answers.insert(question.id().to_owned(), answer);
        }
        if !broken.is_empty() {
            let message = format!("{}: {}", question.id(), broken.join(", "));
            self.problems.push(message);
        }
    }

    fn response(&self, gate: &crate::engine::held::Gate, by: Approver<'_>) -> PlannedRecord {
        let (answers, problems) = (self.answers.clone(), self.problems.clone());
        let response = approval::response_record(gate, answers, problems, by);
        let mut planned = PlannedRecord::from(Payload::from(response));
        if !self.validators.is_empty() && self.problems.is_empty() {
            // The result is unknown until the extension has validated the answer.
            let message = format!("known after `{}` checks it", self.validators.join("`, `"));
            let field = "validation_result".to_owned();
            planned.fields.insert(field, Value::from(message));
        }
        planned
    }
}

/// Justifications that the operator's answers become because no reason was typed, each once.
pub(crate) fn justified_by_answers(records: &[PlannedRecord]) -> Vec<&str> {
    let mut texts = Vec::new();
    for PlannedRecord { fields, .. } in records {
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let composed = text("justification_source") == Some(JustificationSource::Answers.as_str());
        let by_agent = text("approval_method") == Some("agent")
            || text("verification_method") == Some("agent");
        if let Some(text) = text("justification").filter(|_| composed && !by_agent)
            && !texts.contains(&text)
        {
            texts.push(text);
        }
    }
    texts
}

/// Every record that passing a request writes about its gates, as the engine makes them. `answers` are
/// those to a gate, by its place.
pub(crate) fn plan_records(
    held: &Held,
    operator: Approver<'_>,
    answers: impl Fn(usize) -> PlannedAnswers,
) -> Vec<PlannedRecord> {
    let planned: Vec<_> = (0..held.gates.len()).map(&answers).collect();
    if !held.approvers().is_one() && held.first_approval().is_none() {
        return plan_first_approval(held, operator, &planned);
    }
    let operator = Approver {
        first_approver: held.first_approval().map(|first| first.by.as_str()),
        ..operator
    };
    let agent = format!("agent {}", held.agent);
    let open = |at: usize| {
        let planned = planned.get(at).filter(|_| !held.answered.contains_key(&at));
        planned.map(|planned| &planned.answers)
    };
    let (mut approvals, mut passes, mut responses) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (gate, planned)) in held.gates.iter().zip(&planned).enumerate() {
        let (by, reason) = if let Some(answered) = held.answered.get(&at) {
            let by = Approver {
                name: &agent,
                method: "agent",
                justification: None,
                first_approver: None,
            };
            (by, approval::agent_justification(gate, Some(answered)))
        } else {
            responses.push(planned.response(gate, operator));
            let own = Some(&planned.answers);
            let reason = approval::justification(held, gate, own, open, operator.justification);
            (operator, reason)
        };
        let approval = approval::approval_record(held, gate, &reason, by);
        approvals.extend(approval.map(PlannedRecord::from));
        let pass = approval::passed_record(held, gate, gate.effects.inject.clone(), &reason, by);
        passes.push(PlannedRecord::from(Payload::from(pass)));
    }
    // The sheet shows the signed records first, regardless of the order in which they are written.
    approvals
        .into_iter()
        .chain(passes)
        .chain(responses)
        .collect()
}

/// Lists the records of the first of two approvals. It passes nothing.
fn plan_first_approval(
    held: &Held,
    by: Approver<'_>,
    planned: &[PlannedAnswers],
) -> Vec<PlannedRecord> {
    let answers = |at: usize| planned.get(at).map(|planned| &planned.answers);
    let open = || {
        let gates = held.gates.iter().zip(planned).enumerate();
        gates.filter(|(at, _)| !held.answered.contains_key(at))
    };
    let approved = open().map(|(_, (gate, planned))| {
        let own = Some(&planned.answers);
        let reason = approval::justification(held, gate, own, answers, by.justification);
        let approved = approval::first_approval_record(held, gate, reason, by);
        PlannedRecord::from(Payload::from(approved))
    });
    let responses = open().map(|(_, (gate, planned))| planned.response(gate, by));
    approved.chain(responses).collect()
}
