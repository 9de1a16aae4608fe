//! Validation of typed answers: an accepted answer, or every rule that it breaks.
//!
//! Pure code, shared by the engine, which decides by it, and the dialog, which shows the rules while the
//! operator types.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atlas::document::{ExpectedAnswer, ResponseType};
use crate::atlas::model::CompiledQuestion;
use crate::base::json::{self, StrictJsonError, compare_with};
use crate::base::limits::{MAX_ANSWER_CHARS, MAX_PARAMS_DEPTH, MAX_SCHEMA_ERRORS};

use crate::engine::admission::request_admission::is_deeper;

/// Result of judging the answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedAnswer {
    /// The answer as it is recorded. Absent when the answer is missing or unreadable.
    pub answer: Option<Value>,
    /// Every rule of the question, kept or not, in a fixed order.
    pub rules: Vec<AnswerRule>,
}

impl JudgedAnswer {
    /// Returns whether the answer keeps every rule.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.rules.iter().all(|rule| rule.kept)
    }

    /// Returns the answer as it is recorded. An unreadable answer is recorded as sent, cut to the maximum
    /// length.
    #[must_use]
    pub fn recorded_answer(&self, raw: &Value) -> Option<Value> {
        let as_it_came = || match raw {
            Value::Null => None,
            Value::String(text) if text.trim().is_empty() => None,
            Value::String(text) => Some(Value::from(cut(text.trim()))),
            other => Some(Value::from(cut(&other.to_string()))),
        };
        self.answer.clone().or_else(as_it_came)
    }

    /// Returns the texts of the rules that the answer breaks.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let broken = self.rules.iter().filter(|rule| !rule.kept);
        broken.map(|rule| rule.text.clone()).collect()
    }
}

/// A rule for an answer, and whether the answer keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRule {
    /// The requirement and the actual value: `at least 20 characters (7 now)`.
    pub text: String,
    /// True when the answer keeps the rule.
    pub kept: bool,
}

/// Cuts a text to the maximum length of an answer.
fn cut(text: &str) -> String {
    text.chars().take(MAX_ANSWER_CHARS).collect()
}

/// Texts that count as an acknowledgment. No other text does: "not understood" is not "understood".
const ACKNOWLEDGMENTS: [&str; 3] = ["understood", "acknowledged", "i understand"];

/// Returns the recorded form of the answer.
pub(crate) const ACKNOWLEDGED: &str = "acknowledged";

/// Judges `raw` against `question`. `raw` is typed text (a string) or any value that an agent sent.
///
/// `Null` and blank text count as unanswered.
#[must_use]
pub fn judge_answer(question: &CompiledQuestion, raw: &Value) -> JudgedAnswer {
    let blank = match raw {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        _ => false,
    };
    if blank {
        return unanswered(question);
    }
    match question.response_type() {
        ResponseType::Text => judge_text(question, raw),
        ResponseType::Boolean => judge_boolean(question, raw),
        ResponseType::Acknowledgment => judge_acknowledgment(raw),
        ResponseType::Choice => judge_choice(question, raw),
        ResponseType::Number => judge_number(question, raw),
        ResponseType::Json => judge_json(question, raw),
    }
}

fn unanswered(question: &CompiledQuestion) -> JudgedAnswer {
    let rules = match (question.required(), question.response_type()) {
        (false, _) => vec![],
        (true, ResponseType::Text) => {
            let mut rules = text_rules(question, "");
            if rules.is_empty() {
                rules.push(rule("an answer is required", false));
            }
            // A rule that the empty text keeps must not make an unanswered question valid.
            if rules.iter().all(|rule| rule.kept) {
                rules.insert(0, rule("an answer is required", false));
            }
            rules
        }
        (true, ResponseType::Acknowledgment) => vec![rule("type `understood`", false)],
        (true, ResponseType::Boolean) => vec![rule(&wanted(question.expect()), false)],
        (true, ResponseType::Choice) => vec![rule(&one_of(question), false)],
        (true, ResponseType::Number) => number_rules(question, None),
        (true, ResponseType::Json) => {
            let schema = question
                .schema()
                .map(|_| rule("must match the schema", false));
            let json = rule("valid JSON", false);
            std::iter::once(json).chain(schema).collect()
        }
    };
    JudgedAnswer {
        answer: None,
        rules,
    }
}

fn judge_text(question: &CompiledQuestion, raw: &Value) -> JudgedAnswer {
    let Value::String(text) = raw else {
        return unreadable("must be text");
    };
    let text = text.trim();
    let mut rules = text_rules(question, text);
    if rules.is_empty() {
        rules.push(rule("answered", true));
    }
    // A text that is longer than any answer may be is not recorded either.
    let most = question.validation().max_length.unwrap_or_default();
    let kept = text.chars().count() <= most.max(MAX_ANSWER_CHARS);
    JudgedAnswer {
        answer: kept.then(|| Value::from(text)),
        rules,
    }
}

fn text_rules(question: &CompiledQuestion, text: &str) -> Vec<AnswerRule> {
    let wanted = question.validation();
    let length = text.chars().count();
    let lower = text.to_lowercase();
    let holds = |part: &String| lower.contains(&part.to_lowercase());
    let mut rules = Vec::new();
    if let Some(min) = wanted.min_length {
        let text = format!("at least {min} characters ({length} now)");
        rules.push(rule(&text, length >= min));
    }
    let most = wanted.max_length.unwrap_or(MAX_ANSWER_CHARS);
    if wanted.max_length.is_some() || length > most {
        let text = format!("at most {most} characters ({length} now)");
        rules.push(rule(&text, length <= most));
    }
    for part in &wanted.must_contain {
        rules.push(rule(&format!("must contain `{part}`"), holds(part)));
    }
    for part in &wanted.must_not_contain {
        rules.push(rule(&format!("must not contain `{part}`"), !holds(part)));
    }
    if let Some(pattern) = question.pattern() {
        let kept = pattern.is_match(text);
        rules.push(rule(&format!("must match `{}`", pattern.as_str()), kept));
    }
    rules
}

fn judge_boolean(question: &CompiledQuestion, raw: &Value) -> JudgedAnswer {
    let value = match raw {
        Value::Bool(value) => Some(*value),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "y" => Some(true),
            "false" | "no" | "n" => Some(false),
            _ => None,
        },
        _ => None,
    };
    let Some(value) = value else {
        return unreadable("must be yes or no");
    };
    let is_kept = match question.expect() {
        ExpectedAnswer::True => value,
        ExpectedAnswer::False => !value,
        ExpectedAnswer::Any => true,
    };
    JudgedAnswer {
        answer: Some(Value::Bool(value)),
        rules: vec![rule(&wanted(question.expect()), is_kept)],
    }
}

fn wanted(expect: ExpectedAnswer) -> String {
    match expect {
        ExpectedAnswer::True => "must be \"yes\" to pass".to_owned(),
        ExpectedAnswer::False => "must be \"no\" to pass".to_owned(),
        ExpectedAnswer::Any => "yes or no".to_owned(),
    }
}

fn judge_acknowledgment(raw: &Value) -> JudgedAnswer {
    let Value::String(text) = raw else {
        return unreadable("type `understood`");
    };
    let word = text.trim().to_lowercase();
    let word = word
        .trim_end_matches(|c: char| c.is_ascii_punctuation())
        .trim_end();
    let is_kept = ACKNOWLEDGMENTS.contains(&word);
    JudgedAnswer {
        answer: is_kept.then(|| Value::from(ACKNOWLEDGED)),
        rules: vec![rule("type `understood`", is_kept)],
    }
}

fn judge_choice(question: &CompiledQuestion, raw: &Value) -> JudgedAnswer {
    let Value::String(text) = raw else {
        return unreadable(&one_of(question));
    };
    let chosen = chosen(question.options(), text);
    JudgedAnswer {
        answer: chosen.map(|option| Value::from(option.as_str())),
        rules: vec![rule(&one_of(question), chosen.is_some())],
    }
}

/// Returns the option that a text names. An exact match comes first: options may differ only in case or
/// quotes.
fn chosen<'o>(options: &'o [String], text: &str) -> Option<&'o String> {
    // An agent may send the option as JSON: the text in quotes.
    let unquoted = serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned());
    let lower = unquoted.trim().to_lowercase();
    let exactly = options.iter().find(|option| *option == text);
    exactly.or_else(|| options.iter().find(|option| option.to_lowercase() == lower))
}

fn one_of(question: &CompiledQuestion) -> String {
    format!("one of: {}", question.options().join(", "))
}

fn judge_number(question: &CompiledQuestion, raw: &Value) -> JudgedAnswer {
    let number: Option<serde_json::Number> = match raw {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => match json::read_number(text.trim()) {
            Ok(number) => Some(number),
            Err(StrictJsonError::Ambiguous(fault)) => return unreadable(&fault.reason()),
            Err(_) => None,
        },
        _ => None,
    };
    let rules = number_rules(question, number.as_ref());
    JudgedAnswer {
        answer: number.map(Value::Number),
        rules,
    }
}

/// Returns the rules for a number. Without a number, all of them are broken.
fn number_rules(
    question: &CompiledQuestion,
    value: Option<&serde_json::Number>,
) -> Vec<AnswerRule> {
    let (min, max) = question.bounds();
    let is_number = match value {
        Some(_) => rule("a number", true),
        None => rule("a number, such as 12 or -0.5", false),
    };
    let min = min.map(|min| {
        let order = value.and_then(|value| compare_with(value, min));
        let kept = order.is_some_and(Ordering::is_ge);
        rule(&format!("at least {min}"), kept)
    });
    let max = max.map(|max| {
        let order = value.and_then(|value| compare_with(value, max));
        let kept = order.is_some_and(Ordering::is_le);
        rule(&format!("at most {max}"), kept)
    });
    std::iter::once(is_number).chain(min).chain(max).collect()
}

fn judge_json(question: &CompiledQuestion, raw: &Value) -> JudgedAnswer {
    let value = match raw {
        Value::String(text) => match json::read::<Value>(text.as_bytes()) {
            Ok(value) => value,
            Err(error) => return unreadable(&format!("valid JSON ({})", error.detail())),
        },
        other => other.clone(),
    };
    // Every recorded value must be readable again.
    if is_deeper(&value, MAX_PARAMS_DEPTH) {
        let text = format!("nested at most {MAX_PARAMS_DEPTH} levels deep");
        return unreadable(&text);
    }
    let length = value.to_string().chars().count();
    if length > MAX_ANSWER_CHARS {
        let text = format!("at most {MAX_ANSWER_CHARS} characters ({length} now)");
        return unreadable(&text);
    }
    let mut rules = vec![rule("valid JSON", true)];
    if let Some(schema) = question.schema() {
        let faults = schema.errors(&value, MAX_SCHEMA_ERRORS);
        if faults.is_empty() {
            rules.push(rule("must match the schema", true));
        }
        let faults = faults.into_iter();
        rules.extend(faults.map(|fault| rule(&format!("must match the schema ({fault})"), false)));
    }
    JudgedAnswer {
        answer: Some(value),
        rules,
    }
}

fn unreadable(text: &str) -> JudgedAnswer {
    JudgedAnswer {
        answer: None,
        rules: vec![rule(text, false)],
    }
}

fn rule(text: &str, kept: bool) -> AnswerRule {
    AnswerRule {
        text: text.to_owned(),
        kept,
    }
}

#[cfg(test)]
mod tests;
