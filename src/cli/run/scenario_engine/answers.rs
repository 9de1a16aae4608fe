//! Answers of the operator in a scenario.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::StepFault;
use crate::atlas::document::ResponseType;
use crate::atlas::model::CompiledQuestion;
use crate::base::limits::MAX_ANSWER_CHARS;
use crate::cli::run::scenario::OperatorAnswers;
use crate::engine::answer::judge_answer;
use crate::engine::held::{Gate, Held};

/// Finds an answer to a question that no gate asks: a mistake of the script, not of the operator.
pub(super) fn stray_answer(held: &Held, answers: &OperatorAnswers) -> Option<StepFault> {
    let OperatorAnswers::Explicit(answers) = answers else {
        return None;
    };
    let gates = held.gates.iter();
    let asked = gates.flat_map(|gate| {
        let questions = gate.questions.iter();
        questions.map(|question| question_name(held, gate, question))
    });
    let asked: Vec<_> = asked.collect();
    let stray = answers.keys().find(|name| !asked.contains(name))?;
    Some(StepFault {
        what: "no such question",
        wanted: format!("question {stray}"),
        actual: format!("questions [{}]", asked.join(", ")),
    })
}

/// Name under which a question is answered. If two Atlases have a gate of the same name, one answer
/// must not count for both; then the name is `atlas/checkpoint/question`.
fn question_name(held: &Held, gate: &Gate, question: &CompiledQuestion) -> String {
    let id = gate.origin.id();
    let alone = held
        .gates
        .iter()
        .filter(|other| other.origin.id() == id)
        .count()
        == 1;
    if alone {
        question.id().to_owned()
    } else {
        format!("{}/{}", gate.origin.full_name(), question.id())
    }
}

/// One map of answers per gate, in the order of the gates.
pub(super) fn answers_for(held: &Held, answers: &OperatorAnswers) -> Vec<BTreeMap<String, Value>> {
    let answer = |gate: &Gate, question: &CompiledQuestion| match answers {
        OperatorAnswers::Generated => Some(good_answer(question)),
        OperatorAnswers::Explicit(injected) => {
            injected.get(&question_name(held, gate, question)).cloned()
        }
    };
    let of_gate = |gate: &Gate| {
        let named = |question: &CompiledQuestion| {
            answer(gate, question).map(|answer| (question.id().to_owned(), answer))
        };
        gate.questions.iter().filter_map(named).collect()
    };
    held.gates.iter().map(of_gate).collect()
}

/// Generates an answer that follows the rules, as far as possible: a pattern or a schema cannot be
/// guessed, and then the engine names the broken rule.
fn good_answer(question: &CompiledQuestion) -> Value {
    let candidates: Vec<Value> = match question.response_type() {
        ResponseType::Boolean => vec![json!(true), json!(false)],
        ResponseType::Acknowledgment => vec![json!("understood")],
        ResponseType::Choice => question
            .options()
            .iter()
            .map(|option| json!(option))
            .collect(),
        ResponseType::Number => {
            let (least, most) = question.bounds();
            let bounds = [least, most].into_iter().flatten();
            bounds.chain([0.0]).map(|number| json!(number)).collect()
        }
        ResponseType::Json => vec![json!({}), json!([])],
        ResponseType::Text => vec![json!(good_text(question))],
    };
    let first = candidates.first().cloned().unwrap_or_default();
    let mut kept = candidates.into_iter();
    kept.find(|answer| judge_answer(question, answer).is_valid())
        .unwrap_or(first)
}

fn good_text(question: &CompiledQuestion) -> String {
    let rules = question.validation();
    let parts = rules.must_contain.iter().map(String::as_str);
    let words: Vec<_> = parts.chain(["confirmed by the operator"]).collect();
    let mut text = words.join(" ");
    let least = rules.min_length.unwrap_or(0).min(MAX_ANSWER_CHARS);
    let missing = least.saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n('.', missing));
    let most = rules.max_length.unwrap_or(MAX_ANSWER_CHARS);
    text.chars().take(most).collect()
}
