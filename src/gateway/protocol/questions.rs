//! Checkpoint questions as text, for agents whose protocol carries only text.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::wording::{injected_in, injected_text, join_texts};
use crate::atlas::document::{ExpectedAnswer, ResponseType};
use crate::atlas::model::CompiledQuestion;
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::engine::command::{AgentGate, AgentQuestions};
use crate::gateway::protocol::call::CallError;

/// Returns the questions to the agent, if they are the reason why a call has no result.
pub(in crate::gateway) fn agent_questions(error: &CallError) -> Option<AgentQuestions> {
    match error {
        CallError::Fault(fault) => fault.agent_questions(),
        CallError::Unreachable(_)
        | CallError::Disconnected
        | CallError::TimedOut
        | CallError::Unreadable(_)
        | CallError::Unproven { .. }
        | CallError::Refused(_)
        | CallError::NoKey(_)
        | CallError::Unwritable(_)
        | CallError::NoChallenge(_) => None,
    }
}

/// Describes all questions with type, options, hint and rules, after the steward's guidance.
pub(in crate::gateway) fn describe(asked: &AgentQuestions) -> String {
    let mut text = String::new();
    for gate in &asked.gates {
        describe_gate(&mut text, gate);
    }
    let _ = write!(
        text,
        "Without an answer, the request is denied at {} UTC.",
        asked.deadline.time_of_day()
    );
    if asked.operator {
        text.push_str(" An operator must answer, too.");
    }
    text
}

fn describe_gate(text: &mut String, gate: &AgentGate) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "Checkpoint `{}` asks:", one_line(&gate.checkpoint_id));
    if let Some(guidance) = &gate.guidance {
        let _ = writeln!(text, "  Guidance: {}", one_line(&guidance.content));
    }
    for question in &gate.questions {
        let _ = writeln!(text, "{}", describe_question(question));
    }
}

fn describe_question(question: &CompiledQuestion) -> String {
    let kind = question.response_type().as_str();
    let needed = if question.required() {
        "required"
    } else {
        "optional"
    };
    let mut line = format!(
        "- `{}` ({kind}, {needed}): {}",
        one_line(question.id()),
        one_line(question.text())
    );
    if !question.options().is_empty() {
        let options: Vec<_> = question
            .options()
            .iter()
            .map(|option| one_line(option))
            .collect();
        let _ = write!(line, " Options: {}.", options.join(" | "));
    }
    if let Some(hint) = question.hint() {
        let _ = write!(line, " Hint: {}.", one_line(hint));
    }
    let rules = rules(question);
    if !rules.is_empty() {
        let _ = write!(line, " Rules: {}.", rules.join("; "));
    }
    line
}

/// Returns the rules for an answer.
fn rules(question: &CompiledQuestion) -> Vec<String> {
    let validation = question.validation();
    let (min, max) = question.bounds();
    let quoted = |texts: &[String]| {
        let texts = texts.iter().map(|text| format!("`{}`", one_line(text)));
        texts.collect::<Vec<_>>().join(", ")
    };
    let mut rules = Vec::new();
    if question.response_type() == ResponseType::Boolean {
        rules.extend(match question.expect() {
            ExpectedAnswer::True => Some("must be true to pass".to_owned()),
            ExpectedAnswer::False => Some("must be false to pass".to_owned()),
            ExpectedAnswer::Any => None,
        });
    }
    rules.extend(
        validation
            .min_length
            .map(|n| format!("at least {n} characters")),
    );
    rules.extend(
        validation
            .max_length
            .map(|n| format!("at most {n} characters")),
    );
    rules.extend(min.map(|n| format!("at least {n}")));
    rules.extend(max.map(|n| format!("at most {n}")));
    if let Some(pattern) = &validation.pattern {
        rules.push(format!("matches `{}`", one_line(pattern)));
    }
    if !validation.must_contain.is_empty() {
        rules.push(format!("contains {}", quoted(&validation.must_contain)));
    }
    if !validation.must_not_contain.is_empty() {
        let texts = quoted(&validation.must_not_contain);
        rules.push(format!("does not contain {texts}"));
    }
    if let Some(name) = &validation.custom_validator {
        rules.push(format!("checked by `{}`", one_line(name)));
    }
    if let Some(schema) = question.written_schema() {
        rules.push(format!("JSON Schema {schema}"));
    }
    rules
}

/// Returns a template for answers, by checkpoint and question.
pub(in crate::gateway) fn template(asked: &AgentQuestions) -> Value {
    let gates = asked.gates.iter().map(|gate| {
        let questions = gate.questions.iter();
        let answers = questions.map(|question| (question.id().to_owned(), placeholder(question)));
        (
            gate.checkpoint_id.clone(),
            answers.collect::<Map<_, _>>().into(),
        )
    });
    Value::Object(gates.collect())
}

fn placeholder(question: &CompiledQuestion) -> Value {
    match question.response_type() {
        ResponseType::Acknowledgment => json!("understood"),
        ResponseType::Boolean => json!("true or false, without quotes"),
        ResponseType::Number => json!("a number, without quotes"),
        ResponseType::Choice => json!("one of the options"),
        ResponseType::Json => json!("a JSON value"),
        ResponseType::Text => json!("your answer"),
    }
}

/// Describes the rules that answers broke, by question; `None` if the call failed for another reason.
pub(in crate::gateway) fn broken_rules(error: &CallError) -> Option<String> {
    let CallError::Fault(fault) = error else {
        return None;
    };
    let problems = fault.data.as_ref()?.get("problems")?.as_array()?;
    let lines = problems.iter().map(|problem| {
        let word = |name: &str| one_line(problem.get(name).and_then(Value::as_str).unwrap_or(""));
        let rules = problem.get("rules").and_then(Value::as_array);
        let rules = rules.into_iter().flatten().filter_map(Value::as_str);
        let rules: Vec<_> = rules.map(one_line).collect();
        let rules = rules.join("; ");
        format!(
            "- `{}` of `{}`: {rules}",
            word("question"),
            word("checkpoint")
        )
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Describes accepted answers to the agent: the next step, and injected texts. The agent has to repeat the
/// held call.
pub(in crate::gateway) fn describe_accepted(gate: &str, result: &Value) -> String {
    let until = result.get("permit_until").and_then(Value::as_str);
    let until = until.and_then(|text| text.parse::<Timestamp>().ok());
    let next = match (until, result.get("needs_operator")) {
        (Some(until), _) => format!(
            "Repeat the same tool call unchanged: it is allowed once, until {} UTC.",
            until.time_of_day()
        ),
        (None, Some(Value::Bool(true))) => {
            "An operator must answer, too: repeat the same tool call unchanged; it waits for the operator."
                .to_owned()
        }
        (None, _) => "Now repeat the tool call that was denied.".to_owned(),
    };
    let handed = injected_text(&injected_in(result));
    let texts = [format!("cra: your answers at {gate} were accepted. {next}")];
    join_texts(texts.into_iter().chain(handed).collect()).unwrap_or_default()
}
