//! Validation of the answers to all gates of a held request: by the questions' rules, then by extensions.

use serde_json::{Map, Value};

use crate::atlas::document::InvalidAnswerAction;
use crate::atlas::model::CompiledQuestion;

use super::agent_answers::ByQuestion;
use super::answer::judge_answer;
use super::held::{Gate, Held, HeldSubject};
use crate::engine::command::AnswerProblem;
use crate::engine::extensions::required_calls::session_state;
use crate::engine::extensions::suspension::{CallKey, CallPurpose, RequiredCall};
use crate::engine::extensions::{CallQuestion, CheckpointContext, RequestedAction};
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::transaction::Transaction;

/// Judged answers to all gates.
pub(crate) struct JudgedAnswers {
    /// Judged answers per gate. `None` for a gate that is not answered now.
    pub(crate) gates: Vec<Option<JudgedGate>>,
    /// Problems that keep the request held.
    pub(crate) retry: Vec<AnswerProblem>,
    /// Problems that refuse the request at once.
    pub(crate) block: Vec<AnswerProblem>,
    /// Broken rules of accepted answers. The operator and the agent are warned of them.
    pub(crate) warnings: Vec<String>,
    /// Validators that have to judge an answer and were not called.
    missing: Vec<RequiredCall>,
}

impl JudgedAnswers {
    /// Fails with the calls to validators that have not answered yet.
    pub(crate) fn require_validators(mut self) -> StageResult<Self> {
        let missing = std::mem::take(&mut self.missing);
        if missing.is_empty() {
            Ok(self)
        } else {
            Err(StageExit::Suspended(missing))
        }
    }
}

/// Judged answers to one gate.
#[derive(Default)]
pub(crate) struct JudgedGate {
    pub(crate) answers: Map<String, Value>,
    pub(crate) problems: Vec<String>,
}

/// Opinion of a validator extension about an answer.
enum ValidatorOpinion {
    /// No validator is named, or it accepts the answer.
    Good,
    /// The validator rejects the answer.
    Bad(String),
    /// The validator failed to answer: the answer is not accepted, regardless of the question's rule for
    /// invalid answers.
    Failed(String),
    /// The validator with this name was not called.
    Unasked(String),
}

/// Treatment of a gate that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnansweredTreatment {
    /// The gate is judged: required answers are missing.
    Judged,
    /// The gate stays open for another respondent.
    LeftOpen,
    /// The gate is skipped, and so are unanswered questions at other gates.
    Skipped,
}

/// Judges the answers to the gates of a held request. Earlier answers of an agent stay valid unless they are
/// given again.
pub(crate) fn judge_gates<'a>(
    tx: &Transaction<'_>,
    held: &Held,
    unanswered: UnansweredTreatment,
    answers: impl Fn(usize, &Gate) -> Option<&'a ByQuestion>,
) -> JudgedAnswers {
    let mut all = JudgedAnswers {
        gates: Vec::new(),
        retry: Vec::new(),
        block: Vec::new(),
        warnings: Vec::new(),
        missing: Vec::new(),
    };
    for (index, gate) in held.gates.iter().enumerate() {
        let gate_answers = answers(index, gate);
        let stands =
            unanswered != UnansweredTreatment::Judged || held.answered.contains_key(&index);
        if stands && gate_answers.is_none_or(ByQuestion::is_empty) {
            all.gates.push(None);
            continue;
        }
        let mut judged_gate = JudgedGate::default();
        for question in &gate.questions {
            let raw = gate_answers.and_then(|gate_answers| gate_answers.get(question.id()));
            if raw.is_none() && unanswered == UnansweredTreatment::Skipped {
                continue;
            }
            judge_question(
                tx,
                held,
                (index, gate),
                question,
                raw,
                &mut judged_gate,
                &mut all,
            );
        }
        all.gates.push(Some(judged_gate));
    }
    all
}

fn judge_question(
    tx: &Transaction<'_>,
    held: &Held,
    (index, gate): (usize, &Gate),
    question: &CompiledQuestion,
    raw: Option<&Value>,
    judged_gate: &mut JudgedGate,
    all: &mut JudgedAnswers,
) {
    let raw = raw.unwrap_or(&Value::Null);
    let judged = judge_answer(question, raw);
    let mut rules = judged.failures();
    let mut unheard = false;
    if let Some(answer) = judged.recorded_answer(raw) {
        if rules.is_empty() {
            match opinion(tx, gate, question) {
                ValidatorOpinion::Good => {}
                ValidatorOpinion::Bad(rule) => rules.push(rule),
                ValidatorOpinion::Unasked(name) => {
                    let call =
                        validator_call(tx, held, gate, question, &name, judged.answer.as_ref());
                    all.missing.extend(call);
                    unheard = true;
                    rules.push(format!("validator `{name}` was not called"));
                }
                ValidatorOpinion::Failed(rule) => {
                    unheard = true;
                    rules.push(rule);
                }
            }
        }
        judged_gate.answers.insert(question.id().to_owned(), answer);
    }
    if rules.is_empty() {
        return;
    }
    let problem = format!("{}: {}", question.id(), rules.join(", "));
    judged_gate.problems.push(problem);
    let problem = AnswerProblem {
        gate: index,
        question: question.id().to_owned(),
        rules,
    };
    match consequence(question, unheard) {
        InvalidAnswerConsequence::Block => all.block.push(problem),
        InvalidAnswerConsequence::Retry => all.retry.push(problem),
        InvalidAnswerConsequence::Warn => {
            let (at, asked) = (gate.origin.id(), question.id());
            let rules = problem.rules.join(", ");
            let warning = format!("`{at}`: an invalid answer to `{asked}` was accepted: {rules}");
            all.warnings.push(warning);
        }
        // Recorded with the response, without any other effect.
        InvalidAnswerConsequence::Continue => {}
    }
}

/// Consequence of an invalid answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InvalidAnswerConsequence {
    /// The gate is passed anyway.
    Continue,
    /// The gate is passed, and the operator and the agent are warned.
    Warn,
    /// The question is asked again.
    Retry,
    /// The gate is refused.
    Block,
}

/// Returns the consequence of an invalid answer. An answer that its validator could not judge is never
/// accepted.
pub(crate) fn consequence(question: &CompiledQuestion, unheard: bool) -> InvalidAnswerConsequence {
    match question.on_invalid() {
        InvalidAnswerAction::Block => InvalidAnswerConsequence::Block,
        InvalidAnswerAction::Retry => InvalidAnswerConsequence::Retry,
        InvalidAnswerAction::WarnAndContinue | InvalidAnswerAction::LogAndContinue if unheard => {
            InvalidAnswerConsequence::Retry
        }
        InvalidAnswerAction::WarnAndContinue => InvalidAnswerConsequence::Warn,
        InvalidAnswerAction::LogAndContinue => InvalidAnswerConsequence::Continue,
    }
}

fn opinion(tx: &Transaction<'_>, gate: &Gate, question: &CompiledQuestion) -> ValidatorOpinion {
    let Some(name) = &question.validation().custom_validator else {
        return ValidatorOpinion::Good;
    };
    if !tx.engine.extensions.validators.contains(name) {
        return ValidatorOpinion::Failed(format!("validator `{name}` is not available"));
    }
    let Some(returned) = tx.answers.get(&key(gate, question, name)) else {
        return ValidatorOpinion::Unasked(name.clone());
    };
    match returned.yes_no() {
        Ok(opinion) if opinion.yes => ValidatorOpinion::Good,
        Ok(opinion) => {
            let reason = opinion.reason.unwrap_or_else(|| "not accepted".to_owned());
            let reason = crate::base::text::one_line(&reason);
            ValidatorOpinion::Bad(format!("{reason} (validator `{name}`)"))
        }
        Err(fault) => ValidatorOpinion::Failed(format!("validator `{name}` failed: {fault}")),
    }
}

fn key(gate: &Gate, question: &CompiledQuestion, name: &str) -> CallKey {
    CallKey {
        atlas_id: gate.origin.atlas_id().to_owned(),
        checkpoint_id: gate.origin.id().to_owned(),
        extension: name.to_owned(),
        about: CallPurpose::Answer(question.id().to_owned()),
    }
}

/// Returns the call that validates an answer which keeps every other rule.
fn validator_call(
    tx: &Transaction<'_>,
    held: &Held,
    gate: &Gate,
    question: &CompiledQuestion,
    name: &str,
    answer: Option<&Value>,
) -> Option<RequiredCall> {
    let session = tx.live_session(&held.session)?;
    let action = match &held.subject {
        HeldSubject::Action(call) => Some(RequestedAction::of(call)),
        HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
    };
    Some(RequiredCall {
        key: key(gate, question, name),
        question: CallQuestion::Validator {
            question: question.id().to_owned(),
            answer: answer?.clone(),
        },
        context: CheckpointContext {
            checkpoint_type: gate.origin.kind().to_owned(),
            checkpoint_id: gate.origin.id().to_owned(),
            trigger: gate.why.clone(),
            input: None,
            action,
            session: session_state(tx, session),
            cache: session.context_ids(),
        },
    })
}
