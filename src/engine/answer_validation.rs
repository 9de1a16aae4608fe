//! Validation of the answers to all gates of a held request: by the questions' rules, then by extensions.

use serde_json::{Map, Value};

use crate::atlas::document::InvalidAnswerAction;
use crate::atlas::model::CompiledQuestion;

use super::agent_answers::ByQuestion;
use super::answer::judge_answer;
use super::command::{AnswerProblem, DecisionRequest, Ruling};
use super::extension::{CallQuestion, CheckpointContext, RequestedAction};
use super::held::{Gate, Held, HeldSubject};
use super::suspension::{CallKey, CallPurpose, ExtensionAnswers, RequiredCall};
use super::transaction::Transaction;

/// Judged answers to all gates.
pub(super) struct JudgedAnswers {
    /// Judged answers per gate. `None` for a gate that is not answered now.
    pub(super) gates: Vec<Option<JudgedGate>>,
    /// Problems that keep the request held.
    pub(super) retry: Vec<AnswerProblem>,
    /// Problems that refuse the request at once.
    pub(super) block: Vec<AnswerProblem>,
    /// Broken rules of accepted answers. The operator and the agent are warned of them.
    pub(super) warnings: Vec<String>,
}

/// Judged answers to one gate.
#[derive(Default)]
pub(super) struct JudgedGate {
    pub(super) answers: Map<String, Value>,
    pub(super) problems: Vec<String>,
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
}

/// Treatment of a gate that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnansweredTreatment {
    /// The gate is judged: required answers are missing.
    Judged,
    /// The gate stays open for another respondent.
    LeftOpen,
    /// The gate is skipped, and so are unanswered questions at other gates.
    Skipped,
}

/// Judges the answers to the gates of a held request. Earlier answers of an agent stay valid unless they are
/// given again.
pub(super) fn judge_gates<'a>(
    turn: &Transaction<'_>,
    held: &Held,
    unanswered: UnansweredTreatment,
    answers: impl Fn(usize, &Gate) -> Option<&'a ByQuestion>,
) -> JudgedAnswers {
    let mut all = JudgedAnswers {
        gates: Vec::new(),
        retry: Vec::new(),
        block: Vec::new(),
        warnings: Vec::new(),
    };
    for (index, gate) in held.gates.iter().enumerate() {
        let given = answers(index, gate);
        let stands =
            unanswered != UnansweredTreatment::Judged || held.answered.contains_key(&index);
        if stands && given.is_none_or(ByQuestion::is_empty) {
            all.gates.push(None);
            continue;
        }
        let mut judged_gate = JudgedGate::default();
        for question in &gate.questions {
            let raw = given.and_then(|given| given.get(question.id()));
            if raw.is_none() && unanswered == UnansweredTreatment::Skipped {
                continue;
            }
            judge_question(
                turn,
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
    turn: &Transaction<'_>,
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
            match opinion(turn, gate, question) {
                ValidatorOpinion::Good => {}
                ValidatorOpinion::Bad(rule) => rules.push(rule),
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
    let told = format!("{}: {}", question.id(), rules.join(", "));
    judged_gate.problems.push(told);
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
            let told = format!("`{at}`: an invalid answer to `{asked}` was accepted: {rules}");
            all.warnings.push(told);
        }
        // Recorded with the response, without any other effect.
        InvalidAnswerConsequence::Continue => {}
    }
}

/// Consequence of an invalid answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InvalidAnswerConsequence {
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
pub(super) fn consequence(question: &CompiledQuestion, unheard: bool) -> InvalidAnswerConsequence {
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

fn opinion(turn: &Transaction<'_>, gate: &Gate, question: &CompiledQuestion) -> ValidatorOpinion {
    let Some(name) = &question.validation().custom_validator else {
        return ValidatorOpinion::Good;
    };
    if !turn.engine.extensions.validators.contains(name) {
        return ValidatorOpinion::Failed(format!("validator `{name}` is not available"));
    }
    let Some(returned) = turn.answers.get(&key(gate, question, name)) else {
        return ValidatorOpinion::Failed(format!("validator `{name}` was not called"));
    };
    match returned.yes_no() {
        Ok(said) if said.yes => ValidatorOpinion::Good,
        Ok(said) => {
            let reason = said.reason.unwrap_or_else(|| "not accepted".to_owned());
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

impl Transaction<'_> {
    /// Returns the extension calls that validate an operator's answers.
    pub(super) fn calls_for_decision(
        &self,
        decide: &DecisionRequest,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        let Ruling::Pass { answers: given } = &decide.ruling else {
            return Vec::new();
        };
        let Some(waiting) = self.engine.state.held.get(&decide.gate) else {
            return Vec::new();
        };
        self.validator_calls(&waiting.held, answers, |index, _| given.get(index))
    }

    /// Returns the extension calls that validate answers which keep every other rule.
    pub(super) fn validator_calls<'a>(
        &self,
        held: &Held,
        answers: &ExtensionAnswers,
        given: impl Fn(usize, &Gate) -> Option<&'a ByQuestion>,
    ) -> Vec<RequiredCall> {
        let mut needed = Vec::new();
        for (index, gate) in held.gates.iter().enumerate() {
            let Some(given) = given(index, gate) else {
                continue;
            };
            for question in &gate.questions {
                let Some(name) = &question.validation().custom_validator else {
                    continue;
                };
                let judged =
                    judge_answer(question, given.get(question.id()).unwrap_or(&Value::Null));
                let key = key(gate, question, name);
                let there = self.engine.extensions.validators.contains(name);
                if let (true, true, Some(answer), None) =
                    (there, judged.is_valid(), judged.answer, answers.get(&key))
                {
                    needed.extend(self.validation(held, gate, question, answer).map(
                        |(question, context)| RequiredCall {
                            key,
                            question,
                            context,
                        },
                    ));
                }
            }
        }
        needed
    }

    fn validation(
        &self,
        held: &Held,
        gate: &Gate,
        question: &CompiledQuestion,
        answer: Value,
    ) -> Option<(CallQuestion, CheckpointContext)> {
        let session = self.live_session(&held.session)?;
        let action = match &held.subject {
            HeldSubject::Action(call) => Some(RequestedAction::of(call)),
            HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
        };
        let asked = CallQuestion::Validator {
            question: question.id().to_owned(),
            answer,
        };
        let context = CheckpointContext {
            checkpoint_type: gate.origin.kind().to_owned(),
            checkpoint_id: gate.origin.id().to_owned(),
            trigger: gate.why.clone(),
            input: None,
            action,
            session: self.session_state(session),
            cache: session.context_ids(),
        };
        Some((asked, context))
    }
}
