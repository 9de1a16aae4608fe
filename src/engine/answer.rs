//! From what was typed to an answer that counts, or to every rule it breaks.
//!
//! Pure, and the same for the engine, which decides by it, and for the dialog, which shows it while
//! the operator types.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atlas::compiled::Question;
use crate::atlas::document::{Expect, ResponseType};
use crate::base::limits::{MAX_ANSWER_CHARS, MAX_PARAMS_DEPTH};

use super::action::is_deeper;

/// What a question's answer came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The answer as it is recorded; absent when nothing was answered, or nothing readable.
    pub answer: Option<Value>,
    /// Every rule of the question, kept or not, in a fixed order.
    pub rules: Vec<Rule>,
}

impl Judged {
    /// Whether every rule is kept.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.rules.iter().all(|rule| rule.kept)
    }

    /// The rules that are not kept, in words.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let broken = self.rules.iter().filter(|rule| !rule.kept);
        broken.map(|rule| rule.text.clone()).collect()
    }
}

/// One rule, and whether an answer keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What it wants and what it got: `at least 20 characters (7 now)`.
    pub text: String,
    /// Whether the answer keeps it.
    pub kept: bool,
}

/// Words that acknowledge. Nothing else does: "not understood" is not "understood".
const ACKNOWLEDGMENTS: [&str; 3] = ["understood", "acknowledged", "i understand"];

/// What is recorded for any of them.
const ACKNOWLEDGED: &str = "acknowledged";

/// Judges `raw`, which is what was typed (a string) or what an agent sent (any value), against
/// `question`. `Null` and blank text are no answer.
#[must_use]
pub fn judge(question: &Question, raw: &Value) -> Judged {
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

fn unanswered(question: &Question) -> Judged {
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
        (true, ResponseType::Number | ResponseType::Json) => {
            vec![rule("an answer is required", false)]
        }
    };
    Judged {
        answer: None,
        rules,
    }
}

fn judge_text(question: &Question, raw: &Value) -> Judged {
    let Value::String(text) = raw else {
        return unreadable("text is wanted");
    };
    let text = text.trim();
    let mut rules = text_rules(question, text);
    if rules.is_empty() {
        rules.push(rule("answered", true));
    }
    // What is longer than any answer may be is not kept either.
    let most = question.validation().max_length.unwrap_or_default();
    let kept = text.chars().count() <= most.max(MAX_ANSWER_CHARS);
    Judged {
        answer: kept.then(|| Value::from(text)),
        rules,
    }
}

fn text_rules(question: &Question, text: &str) -> Vec<Rule> {
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
        rules.push(rule(&format!("contains `{part}`"), holds(part)));
    }
    for part in &wanted.must_not_contain {
        rules.push(rule(&format!("does not contain `{part}`"), !holds(part)));
    }
    if let Some(pattern) = question.pattern() {
        let kept = pattern.is_match(text);
        rules.push(rule(&format!("matches `{}`", pattern.as_str()), kept));
    }
    rules
}

fn judge_boolean(question: &Question, raw: &Value) -> Judged {
    let said = match raw {
        Value::Bool(said) => Some(*said),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "y" => Some(true),
            "false" | "no" | "n" => Some(false),
            _ => None,
        },
        _ => None,
    };
    let Some(said) = said else {
        return unreadable("yes or no is wanted");
    };
    let kept = match question.expect() {
        Expect::True => said,
        Expect::False => !said,
        Expect::Any => true,
    };
    Judged {
        answer: Some(Value::Bool(said)),
        rules: vec![rule(&wanted(question.expect()), kept)],
    }
}

fn wanted(expect: Expect) -> String {
    match expect {
        Expect::True => "passes only when answered yes".to_owned(),
        Expect::False => "passes only when answered no".to_owned(),
        Expect::Any => "yes or no".to_owned(),
    }
}

fn judge_acknowledgment(raw: &Value) -> Judged {
    let Value::String(text) = raw else {
        return unreadable("type `understood`");
    };
    let said = text.trim().to_lowercase();
    let said = said
        .trim_end_matches(|c: char| c.is_ascii_punctuation())
        .trim_end();
    let kept = ACKNOWLEDGMENTS.contains(&said);
    Judged {
        answer: kept.then(|| Value::from(ACKNOWLEDGED)),
        rules: vec![rule("type `understood`", kept)],
    }
}

fn judge_choice(question: &Question, raw: &Value) -> Judged {
    let Value::String(text) = raw else {
        return unreadable(&one_of(question));
    };
    // An agent may send the option as JSON: the same text, in quotes.
    let said = serde_json::from_str::<String>(text).unwrap_or_else(|_| text.clone());
    let said = said.trim().to_lowercase();
    let mut options = question.options().iter();
    let chosen = options.find(|option| option.to_lowercase() == said);
    Judged {
        answer: chosen.map(|option| Value::from(option.as_str())),
        rules: vec![rule(&one_of(question), chosen.is_some())],
    }
}

fn one_of(question: &Question) -> String {
    format!("one of: {}", question.options().join(", "))
}

fn judge_number(question: &Question, raw: &Value) -> Judged {
    let number = match raw {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => serde_json::from_str(text.trim()).ok(),
        _ => None,
    };
    let Some((number, value)) =
        number.and_then(|n: serde_json::Number| Some((n.clone(), n.as_f64()?)))
    else {
        return unreadable("a number is wanted, such as 12 or -0.5");
    };
    let (min, max) = question.bounds();
    let mut rules = Vec::new();
    if let Some(min) = min {
        rules.push(rule(&format!("at least {min}"), value >= min));
    }
    if let Some(max) = max {
        rules.push(rule(&format!("at most {max}"), value <= max));
    }
    if rules.is_empty() {
        rules.push(rule("a number", true));
    }
    Judged {
        answer: Some(Value::Number(number)),
        rules,
    }
}

fn judge_json(question: &Question, raw: &Value) -> Judged {
    let value = match raw {
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(value) => value,
            Err(error) => return unreadable(&format!("valid JSON ({error})")),
        },
        other => other.clone(),
    };
    // What goes into the record must come out of it again.
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
        rules.push(match schema.fault(&value) {
            None => rule("keeps the schema", true),
            Some(fault) => rule(&format!("keeps the schema ({fault})"), false),
        });
    }
    Judged {
        answer: Some(value),
        rules,
    }
}

fn unreadable(text: &str) -> Judged {
    Judged {
        answer: None,
        rules: vec![rule(text, false)],
    }
}

fn rule(text: &str, kept: bool) -> Rule {
    Rule {
        text: text.to_owned(),
        kept,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::atlas::document::{AnswerValidation, CheckpointQuestion};

    fn question(fields: &Value) -> Question {
        let mut whole = json!({"question_id": "q", "question": "?"});
        for (name, field) in fields.as_object().unwrap() {
            whole[name] = field.clone();
        }
        let definition: CheckpointQuestion = serde_json::from_value(whole).unwrap();
        Question::try_from(definition).unwrap()
    }

    fn passes(question: &Question, raw: &Value) -> bool {
        judge(question, raw).is_valid()
    }

    // covers B8
    #[test]
    fn no_does_not_pass_a_yes_or_no_gate() {
        let asked = question(&json!({"response_type": "boolean"}));
        assert!(passes(&asked, &json!(true)));
        assert!(passes(&asked, &json!("yes")));
        for raw in [
            json!(false),
            json!("false"),
            json!("maybe"),
            json!(1),
            json!(""),
            json!(null),
        ] {
            assert!(!passes(&asked, &raw), "{raw}");
        }
        let reversed = question(&json!({"response_type": "boolean", "expect": "false"}));
        assert!(passes(&reversed, &json!(false)));
        assert!(!passes(&reversed, &json!(true)));
        let either = question(&json!({"response_type": "boolean", "expect": "any"}));
        assert!(passes(&either, &json!(false)));
    }

    // covers B8
    #[test]
    fn only_understood_acknowledges() {
        let asked = question(&json!({"response_type": "acknowledgment"}));
        for raw in [
            "understood",
            " Understood. ",
            "ACKNOWLEDGED!",
            "i understand",
        ] {
            let judged = judge(&asked, &json!(raw));
            assert_eq!(judged.answer, Some(json!("acknowledged")), "{raw}");
            assert!(judged.is_valid());
        }
        for raw in [
            "not understood",
            "understood not",
            "ok",
            "true",
            "under stood",
        ] {
            assert!(!passes(&asked, &json!(raw)), "{raw}");
        }
        assert!(!passes(&asked, &json!(true)));
    }

    #[test]
    fn every_rule_of_a_text_is_checked_and_every_failure_listed() {
        let asked = question(&json!({"validation": {
            "min_length": 20, "max_length": 60, "must_contain": ["reason"],
            "must_not_contain": ["hack", "bypass"], "pattern": "^[A-Za-z].*\\.$",
        }}));
        assert!(passes(
            &asked,
            &json!("  The REASON is a duplicate ticket. ")
        ));
        let judged = judge(&asked, &json!("7 hacks"));
        assert_eq!(
            judged.failures(),
            [
                "at least 20 characters (7 now)",
                "contains `reason`",
                "does not contain `hack`",
                "matches `^[A-Za-z].*\\.$`",
            ]
        );
        assert!(!passes(
            &asked,
            &json!(format!("Reason {}.", "x".repeat(60)))
        ));
    }

    #[test]
    fn lengths_count_characters_after_trimming() {
        let asked = question(&json!({"validation": {"min_length": 3, "max_length": 3}}));
        assert!(passes(&asked, &json!("  日本語  ")));
        assert!(!passes(&asked, &json!("日本 ")));
    }

    // covers B9
    #[test]
    fn a_required_question_needs_an_answer_and_an_optional_one_does_not() {
        for kind in ["text", "boolean", "acknowledgment"] {
            let required = question(&json!({"response_type": kind}));
            assert!(!passes(&required, &json!("   ")), "{kind}");
            let optional = question(&json!({"response_type": kind, "required": false}));
            assert!(passes(&optional, &json!(null)), "{kind}");
        }
        // Rules that an empty text keeps do not answer a required question.
        let lenient = question(&json!({"validation": {"max_length": 5}}));
        assert!(!passes(&lenient, &json!("")));
    }

    // covers B8
    #[test]
    fn a_choice_is_one_of_its_options_however_it_is_sent() {
        let asked = question(&json!({"response_type": "choice", "options": ["Admin", "user"]}));
        for raw in ["Admin", " admin ", "\"Admin\""] {
            let judged = judge(&asked, &json!(raw));
            assert_eq!(judged.answer, Some(json!("Admin")), "{raw}");
        }
        for raw in [
            json!("adm"),
            json!("admin user"),
            json!(0),
            json!(["Admin"]),
            json!(""),
        ] {
            assert!(!passes(&asked, &raw), "{raw}");
        }
    }

    // covers B8
    #[test]
    fn a_number_keeps_its_bounds() {
        let asked = question(&json!({"response_type": "number", "min": 1, "max": 10.5}));
        for raw in [json!(1), json!("10.5"), json!(" 7 ")] {
            assert!(passes(&asked, &raw), "{raw}");
        }
        for raw in [
            json!(0),
            json!(11),
            json!("ten"),
            json!("1e999"),
            json!(true),
            json!("7 8"),
        ] {
            assert!(!passes(&asked, &raw), "{raw}");
        }
        assert_eq!(judge(&asked, &json!("7")).answer, Some(json!(7)));
        assert_eq!(judge(&asked, &json!("12")).failures(), ["at most 10.5"]);
    }

    // covers B8
    #[test]
    fn a_json_answer_keeps_its_schema_and_errors_name_their_place() {
        let asked = question(&json!({"response_type": "json", "schema": {
            "type": "object", "required": ["ticket"],
            "properties": {"ticket": {"type": "string"}},
        }}));
        assert!(passes(&asked, &json!("{\"ticket\": \"T-1\"}")));
        assert!(passes(&asked, &json!({"ticket": "T-1"})));
        let broken = judge(&asked, &json!("{\"ticket\": \n oops}"));
        assert!(
            broken.failures()[0].contains("line 2 column 2"),
            "{broken:?}"
        );
        let wrong = judge(&asked, &json!({"ticket": 7}));
        assert!(wrong.failures()[0].contains("/ticket"), "{wrong:?}");
        assert!(!passes(&asked, &json!("{}")));
    }

    #[test]
    fn a_pattern_that_does_not_compile_is_no_question() {
        let definition = CheckpointQuestion {
            validation: AnswerValidation {
                pattern: Some("(".to_owned()),
                ..AnswerValidation::default()
            },
            ..CheckpointQuestion::from(question(&json!({})))
        };
        assert!(Question::try_from(definition).is_err());
    }
}
