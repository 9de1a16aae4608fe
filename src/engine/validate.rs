//! Answers to all the gates of a held request, judged: by their own rules, then by extensions.

use serde_json::{Map, Value};

use crate::atlas::compiled::Question;
use crate::atlas::document::OnInvalid;

use super::answer::judge;
use super::command::{Decide, Problem, Ruling};
use super::extension::{Action, CallQuestion, CheckpointContext};
use super::held::{Gate, Held, Subject};
use super::respond::ByQuestion;
use super::suspend::{About, Answers, CallKey, Needed};
use super::turn::Turn;

/// Answers to all gates, judged.
pub(super) struct JudgedAnswers {
    /// Per gate: answers by question, and what is wrong with them. `None` for a gate that is not
    /// answered now.
    pub(super) gates: Vec<Option<JudgedGate>>,
    /// What keeps the request held.
    pub(super) retry: Vec<Problem>,
    /// What refuses it at once.
    pub(super) block: Vec<Problem>,
    /// Answers that break a rule and are taken, of which the operator and the agent are warned.
    pub(super) warnings: Vec<String>,
}

/// Answers to one gate, judged.
#[derive(Default)]
pub(super) struct JudgedGate {
    pub(super) answers: Map<String, Value>,
    pub(super) problems: Vec<String>,
}

/// What an extension makes of an answer.
enum Opinion {
    /// There is none to ask, or it is content.
    Good,
    /// It says no.
    Bad(String),
    /// It cannot be heard: whatever the question says about invalid answers, this one is not taken.
    Unheard(String),
}

/// What becomes of a gate that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// It is judged: what is required is missing.
    Judged,
    /// It stays open for somebody else.
    LeftOpen,
    /// Nothing is said about it, nor about questions without an answer at other gates.
    Skipped,
}

/// Judges the answers to the gates of a held request. What an agent has answered before stands, unless
/// it is answered again.
pub(super) fn judge_gates<'a>(
    turn: &Turn<'_>,
    held: &Held,
    unanswered: Unanswered,
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
        let stands = unanswered != Unanswered::Judged || held.answered.contains_key(&index);
        if stands && given.is_none_or(ByQuestion::is_empty) {
            all.gates.push(None);
            continue;
        }
        let mut judged_gate = JudgedGate::default();
        for question in &gate.questions {
            let raw = given.and_then(|given| given.get(question.id()));
            if raw.is_none() && unanswered == Unanswered::Skipped {
                continue;
            }
            judge_one(
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

fn judge_one(
    turn: &Turn<'_>,
    (index, gate): (usize, &Gate),
    question: &Question,
    raw: Option<&Value>,
    judged_gate: &mut JudgedGate,
    all: &mut JudgedAnswers,
) {
    let raw = raw.unwrap_or(&Value::Null);
    let judged = judge(question, raw);
    let mut rules = judged.failures();
    let mut unheard = false;
    if let Some(answer) = judged.recorded(raw) {
        if rules.is_empty() {
            match opinion(turn, gate, question) {
                Opinion::Good => {}
                Opinion::Bad(rule) => rules.push(rule),
                Opinion::Unheard(rule) => {
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
    let problem = Problem {
        gate: index,
        question: question.id().to_owned(),
        rules,
    };
    match consequence(question, unheard) {
        Consequence::Block => all.block.push(problem),
        Consequence::Retry => all.retry.push(problem),
        Consequence::Warn => {
            let (at, asked) = (gate.origin.id(), question.id());
            let rules = problem.rules.join(", ");
            let told = format!("`{at}`: the answer to `{asked}` was taken although: {rules}");
            all.warnings.push(told);
        }
        // Recorded with the response, and that is all.
        Consequence::Continue => {}
    }
}

/// What an answer that is not good leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Consequence {
    /// The gate is passed all the same.
    Continue,
    /// The gate is passed, and the operator and the agent are warned.
    Warn,
    /// The question is asked again.
    Retry,
    /// The gate is refused.
    Block,
}

/// Consequence of an answer that is not good. One that its validator could not judge is never taken.
pub(super) fn consequence(question: &Question, unheard: bool) -> Consequence {
    match question.on_invalid() {
        OnInvalid::Block => Consequence::Block,
        OnInvalid::Retry => Consequence::Retry,
        OnInvalid::WarnAndContinue | OnInvalid::LogAndContinue if unheard => Consequence::Retry,
        OnInvalid::WarnAndContinue => Consequence::Warn,
        OnInvalid::LogAndContinue => Consequence::Continue,
    }
}

fn opinion(turn: &Turn<'_>, gate: &Gate, question: &Question) -> Opinion {
    let Some(name) = &question.validation().custom_validator else {
        return Opinion::Good;
    };
    if !turn.engine.extensions.validators.contains(name) {
        return Opinion::Unheard(format!("validator `{name}` is not there to judge it"));
    }
    let Some(returned) = turn.answers.get(&key(gate, question, name)) else {
        return Opinion::Unheard(format!("validator `{name}` was not asked"));
    };
    match returned.yes_no() {
        Ok(said) if said.yes => Opinion::Good,
        Ok(said) => {
            let reason = said.reason.unwrap_or_else(|| "not accepted".to_owned());
            let reason = crate::base::text::one_line(&reason);
            Opinion::Bad(format!("{reason} (validator `{name}`)"))
        }
        Err(fault) => Opinion::Unheard(format!("validator `{name}` could not be heard: {fault}")),
    }
}

fn key(gate: &Gate, question: &Question, name: &str) -> CallKey {
    CallKey {
        atlas_id: gate.origin.atlas_id().to_owned(),
        checkpoint_id: gate.origin.id().to_owned(),
        extension: name.to_owned(),
        about: About::Answer(question.id().to_owned()),
    }
}

impl Turn<'_> {
    /// The extensions that have to judge an operator's answers.
    pub(super) fn needed_for_decision(&self, decide: &Decide, answers: &Answers) -> Vec<Needed> {
        let Ruling::Pass { answers: given } = &decide.ruling else {
            return Vec::new();
        };
        let Some(waiting) = self.engine.state.held.get(&decide.gate) else {
            return Vec::new();
        };
        self.validators(&waiting.held, answers, |index, _| given.get(index))
    }

    /// The extensions that have to judge answers which keep every other rule.
    pub(super) fn validators<'a>(
        &self,
        held: &Held,
        answers: &Answers,
        given: impl Fn(usize, &Gate) -> Option<&'a ByQuestion>,
    ) -> Vec<Needed> {
        let mut needed = Vec::new();
        for (index, gate) in held.gates.iter().enumerate() {
            let Some(given) = given(index, gate) else {
                continue;
            };
            for question in &gate.questions {
                let Some(name) = &question.validation().custom_validator else {
                    continue;
                };
                let judged = judge(question, given.get(question.id()).unwrap_or(&Value::Null));
                let key = key(gate, question, name);
                let there = self.engine.extensions.validators.contains(name);
                if let (true, true, Some(answer), None) =
                    (there, judged.is_valid(), judged.answer, answers.get(&key))
                {
                    needed.extend(self.validation(held, gate, question, answer).map(
                        |(question, context)| Needed {
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
        question: &Question,
        answer: Value,
    ) -> Option<(CallQuestion, CheckpointContext)> {
        let session = self.live(&held.session)?;
        let action = match &held.subject {
            Subject::Action(call) => Some(Action::of(call)),
            Subject::SessionStart | Subject::Moment(_) => None,
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
