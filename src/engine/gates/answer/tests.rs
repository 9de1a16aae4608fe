//! Tests of valid and invalid answers.

use serde_json::json;

use super::*;
use crate::atlas::document::{AnswerValidation, CheckpointQuestion};

fn question(fields: &Value) -> CompiledQuestion {
    let mut whole = json!({"question_id": "q", "question": "?"});
    for (name, field) in fields.as_object().unwrap() {
        whole[name] = field.clone();
    }
    let definition: CheckpointQuestion = serde_json::from_value(whole).unwrap();
    CompiledQuestion::try_from(definition).unwrap()
}

fn passes(question: &CompiledQuestion, raw: &Value) -> bool {
    judge_answer(question, raw).is_valid()
}

// covers B8
#[test]
fn answer_no_does_not_pass_a_boolean_question() {
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
fn only_known_texts_count_as_acknowledgment() {
    let asked = question(&json!({"response_type": "acknowledgment"}));
    for raw in [
        "understood",
        " Understood. ",
        "ACKNOWLEDGED!",
        "i understand",
    ] {
        let judged = judge_answer(&asked, &json!(raw));
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
    let judged = judge_answer(&asked, &json!("7 hacks"));
    assert_eq!(
        judged.failures(),
        [
            "at least 20 characters (7 now)",
            "must contain `reason`",
            "must not contain `hack`",
            "must match `^[A-Za-z].*\\.$`",
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
fn a_choice_accepts_its_options_in_any_case_and_in_quotes() {
    let asked = question(&json!({"response_type": "choice", "options": ["Admin", "user"]}));
    for raw in ["Admin", " admin ", "\"Admin\""] {
        let judged = judge_answer(&asked, &json!(raw));
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
fn a_number_outside_its_bounds_is_invalid() {
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
    assert_eq!(judge_answer(&asked, &json!("7")).answer, Some(json!(7)));
    assert_eq!(
        judge_answer(&asked, &json!("12")).failures(),
        ["at most 10.5"]
    );
}

// covers B8
#[test]
fn json_answers_must_match_their_schema_and_errors_name_the_location() {
    let asked = question(&json!({"response_type": "json", "schema": {
        "type": "object", "required": ["ticket"],
        "properties": {"ticket": {"type": "string"}},
    }}));
    assert!(passes(&asked, &json!("{\"ticket\": \"T-1\"}")));
    assert!(passes(&asked, &json!({"ticket": "T-1"})));
    let broken = judge_answer(&asked, &json!("{\"ticket\": \n oops}"));
    assert!(
        broken.failures()[0].contains("line 2 column 2"),
        "{broken:?}"
    );
    let wrong = judge_answer(&asked, &json!({"ticket": 7}));
    assert!(wrong.failures()[0].contains("/ticket"), "{wrong:?}");
    assert!(!passes(&asked, &json!("{}")));
}

#[test]
fn a_question_with_an_invalid_pattern_is_rejected() {
    let definition = CheckpointQuestion {
        validation: AnswerValidation {
            pattern: Some("(".to_owned()),
            ..AnswerValidation::default()
        },
        ..CheckpointQuestion::from(question(&json!({})))
    };
    assert!(CompiledQuestion::try_from(definition).is_err());
}

// covers B8
#[test]
fn an_exact_match_of_an_option_takes_precedence() {
    let asked = question(&json!({
        "response_type": "choice", "options": ["Admin", "admin", "\"admin\""],
    }));
    for option in ["Admin", "admin", "\"admin\""] {
        let judged = judge_answer(&asked, &json!(option));
        assert_eq!(judged.answer, Some(json!(option)));
    }
}

#[test]
fn all_rules_of_a_number_are_listed_when_the_answer_is_not_a_number() {
    let asked = question(&json!({"response_type": "number", "min": 1, "max": 10}));
    for raw in [json!(null), json!("-")] {
        let rules = judge_answer(&asked, &raw).rules;
        let told: Vec<_> = rules.iter().map(|rule| rule.text.as_str()).collect();
        assert_eq!(
            told,
            ["a number, such as 12 or -0.5", "at least 1", "at most 10"]
        );
        assert!(rules.iter().all(|rule| !rule.kept));
    }
}

#[test]
fn every_violation_of_a_schema_is_listed_up_to_a_limit() {
    let fields: serde_json::Map<_, _> = (0..9)
        .map(|n| (format!("f{n}"), json!({"type": "string"})))
        .collect();
    let asked = question(&json!({"response_type": "json", "schema": {"properties": fields}}));
    let wrong = judge_answer(&asked, &json!({"f1": 1, "f3": 3}));
    assert_eq!(wrong.failures().len(), 2);
    assert!(wrong.failures()[0].contains("at /f1"), "{wrong:?}");
    assert!(wrong.failures()[1].contains("at /f3"), "{wrong:?}");
    let all: serde_json::Map<_, _> = (0..9).map(|n| (format!("f{n}"), json!(n))).collect();
    assert_eq!(
        judge_answer(&asked, &Value::Object(all)).failures().len(),
        MAX_SCHEMA_ERRORS
    );
}

#[test]
fn a_number_is_compared_with_its_bounds_exactly() {
    let most = json!({"response_type": "number", "max": 9_007_199_254_740_992_u64});
    let asked = question(&most);
    assert!(passes(&asked, &json!(9_007_199_254_740_992_u64)));
    assert!(!passes(&asked, &json!(9_007_199_254_740_993_u64)));
    assert!(!passes(&asked, &json!("9007199254740993")));
}

#[test]
fn a_typed_number_without_an_exact_value_is_rejected() {
    let asked = question(&json!({"response_type": "number"}));
    for text in [
        "123456789012345678901234567890",
        "1e400",
        "0.1000000000000000000001",
    ] {
        let judged = judge_answer(&asked, &json!(text));
        assert_eq!(judged.answer, None, "{text}");
        assert!(!judged.is_valid(), "{text}");
    }
    assert!(passes(&asked, &json!("18446744073709551615")));
}

#[test]
fn typed_json_with_a_duplicate_key_or_inexact_number_is_rejected() {
    let asked = question(&json!({"response_type": "json"}));
    for text in [r#"{"a":1,"a":2}"#, r#"{"a":[18446744073709551616]}"#] {
        let judged = judge_answer(&asked, &json!(text));
        assert_eq!(judged.answer, None, "{text}");
        let told = judged.failures().join(" ");
        assert!(told.contains("`a"), "{told}");
    }
}
