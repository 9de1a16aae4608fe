use serde_json::json;

use super::*;
use crate::atlas::load_str;

fn atlas(rules: &str) -> Atlas {
    let text = format!(
        "atlas_version: '1.0'\natlas_id: a\nversion: '1'\nname: A\ntrace_config: {{redact: {rules}}}\n"
    );
    match load_str("test.yaml", &text) {
        Ok(loaded) => loaded.atlas,
        Err(error) => panic!("{error}"),
    }
}

fn left_out(rule: &str, paths: &[&str], count: u64) -> (String, RedactionSummary) {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    (rule.to_owned(), RedactionSummary { paths, count })
}

#[test]
fn parameter_paths_are_redacted_in_any_case_and_at_any_depth() {
    let atlases = [atlas(
        "[{params: [password, '*.token', headers.authorization, 'items.*.pin']}]",
    )];
    let params = json!({
        "Password": {"old": "hunter2", "new": ["correct horse"]},
        "token": "top-level",
        "a": {"b": {"TOKEN": 5}},
        "headers": {"Authorization": "Bearer x", "Accept": "*/*"},
        "items": [{"pin": 1234, "n": 1}],
        "note": "[redacted]",
    });
    let mut redactor = Redactor::new(&atlases, Some("x"));
    let kept = redactor.redact_params("action_params", &params);
    assert_eq!(
        kept,
        json!({
            "Password": MARKER,
            "token": "top-level",
            "a": {"b": {"TOKEN": MARKER}},
            "headers": {"Authorization": MARKER, "Accept": "*/*"},
            "items": [{"pin": MARKER, "n": 1}],
            "note": "[redacted]",
        })
    );
    // Text that only looks like the marker is not in the list.
    let expected = left_out(
        "a/redact[0]",
        &[
            "action_params.Password",
            "action_params.a.b.TOKEN",
            "action_params.headers.Authorization",
            "action_params.items.0.pin",
        ],
        4,
    );
    assert_eq!(redactor.into_redactions(), Redactions::from([expected]));
}

#[test]
fn value_patterns_are_redacted_in_texts_and_keys() {
    let atlases = [atlas("[{values: ['sk-[a-z0-9]+', '(?i)bearer \\S+']}]")];
    let mut redactor = Redactor::new(&atlases, Some("x"));
    let kept = redactor.redact_params(
        "p",
        &json!({"cmd": "curl -H 'Bearer sk-abc' sk-9", "sk-1": 1, "sk-2": 2, "n": 7}),
    );
    assert_eq!(kept["cmd"], json!("curl -H '[redacted] [redacted]"));
    assert_eq!(kept["n"], json!(7));
    let text = kept.to_string();
    assert!(!text.contains("sk-"), "{text}");
    assert_eq!(kept.as_object().unwrap().len(), 4, "{text}");
    let redactions = redactor.into_redactions();
    assert!(!format!("{redactions:?}").contains("sk-"), "{redactions:?}");
}

#[test]
fn redaction_rule_applies_only_to_its_actions() {
    let atlases = [atlas("[{actions: ['db.*'], params: [pin]}]")];
    let params = json!({"pin": "hunter2"});
    let kept = |action| Redactor::new(&atlases, action).redact_params("p", &params);
    assert_eq!(kept(Some("db.login")), json!({"pin": MARKER}));
    assert_eq!(kept(Some("web.login")), params);
    assert_eq!(kept(None), params);
}

#[test]
fn secrets_of_parameters_are_redacted_from_other_texts() {
    let atlases = [atlas("[{params: ['*.key', pin, password]}]")];
    let mut redactor = Redactor::new(&atlases, Some("x"));
    let params = json!({"a": {"key": "hunter2"}, "pin": 42, "password": "say \"x\"\n"});
    redactor.learn_secrets(&params);
    assert_eq!(
        redactor.redact_text("reason", "hunter2 is not 42 of 142; hunter22"),
        "[redacted] is not [redacted] of 142; [redacted]2"
    );
    assert_eq!(
        redactor.redact_text("reason", "say \"x\" or \"say \\\"x\\\"\""),
        "[redacted] or \"[redacted]\""
    );
    assert_eq!(
        redactor.redact_data("data", &json!({"hunter2": [42, 43, "ok"], "b": true})),
        json!({"[redacted] 1": [MARKER, 43, "ok"], "b": true})
    );
    let redactions = redactor.into_redactions();
    assert_eq!(redactions["a/redact[0]"].paths[0], "reason");
    assert!(!format!("{redactions:?}").contains("hunter2"));
}

#[test]
fn texts_beyond_the_limits_are_redacted_as_a_whole() {
    let atlases = [atlas("[{values: [a], params: ['*.token']}]")];
    let mut redactor = Redactor::new(&atlases, Some("x"));
    let text = "ab".repeat(1000);
    let tokens: Vec<_> = (0..5000)
        .map(|n| json!({"token": format!("t{n}x")}))
        .collect();
    let long = "k".repeat(MAX_REDACT_PATH + 1);
    let kept = redactor.redact_params(
        "p",
        &json!({"s": text, "t": tokens, long.clone(): "hunter2"}),
    );
    assert_eq!(kept["s"], json!(MARKER));
    assert_eq!(kept[&long], json!(MARKER));
    assert!(
        kept["t"]
            .as_array()
            .unwrap()
            .iter()
            .all(|item| item["token"] == MARKER)
    );
    // More secrets than can be searched for: a later text might contain any of them.
    assert_eq!(redactor.redact_text("reason", "whatever"), MARKER);
    let redactions = redactor.into_redactions();
    assert_eq!(redactions["a/redact[0]"].paths.len(), MAX_REDACTED_PATHS);
    assert!(redactions["a/redact[0]"].count > 5000);
}

#[test]
fn redaction_works_at_the_maximum_nesting_depth() {
    let atlases = [atlas("[{params: ['*.token'], values: [zzz]}]")];
    let mut value = json!({"token": "zzz"});
    for _ in 0..62 {
        value = json!({"n": [value]});
    }
    let mut redactor = Redactor::new(&atlases, Some("x"));
    assert!(
        !redactor
            .redact_params("p", &value)
            .to_string()
            .contains("zzz")
    );
}

/// One case of `tests/data/secret-forms.json`.
#[derive(serde::Deserialize)]
struct SecretCase {
    #[serde(default)]
    form: String,
    text: String,
    kept: String,
}

#[derive(serde::Deserialize)]
struct SecretCases {
    secrets: Vec<SecretCase>,
    harmless: Vec<String>,
    no_command_hides: Vec<SecretCase>,
}

fn secret_cases() -> SecretCases {
    let text = include_str!("../../../tests/data/secret-forms.json");
    serde_json::from_str(text).unwrap()
}

#[test]
fn common_secrets_are_redacted_without_any_rule() {
    let cases = secret_cases();
    for case in &cases.secrets {
        let mut redactor = Redactor::of_all(&[]);
        assert_eq!(
            redactor.redact_text("text", &case.text),
            case.kept,
            "{}",
            case.form
        );
        let rule = format!("built-in/{}", case.form);
        let left_out = redactor.into_redactions();
        assert!(left_out.contains_key(&rule), "{}: {left_out:?}", case.text);
    }
    for form in secret_forms::FORMS {
        let shown = cases.secrets.iter().any(|case| case.form == form.name);
        let tested = [
            "google_token",
            "npm_token",
            "hugging_face_token",
            "secret_field",
        ];
        assert!(
            shown || tested.contains(&form.name),
            "no case for {}",
            form.name
        );
    }
}

#[test]
fn harmless_texts_that_look_like_secrets_are_kept() {
    for text in secret_cases().harmless {
        let mut redactor = Redactor::of_all(&[]);
        assert_eq!(redactor.redact_text("text", &text), text);
    }
}

#[test]
fn commands_next_to_a_secret_stay_readable() {
    for case in secret_cases().no_command_hides {
        let mut redactor = Redactor::of_all(&[]);
        assert_eq!(redactor.redact_text("text", &case.text), case.kept);
    }
}

#[test]
fn text_parameters_named_like_secrets_are_redacted_and_numbers_are_not() {
    let mut redactor = Redactor::of_all(&[]);
    let params = json!({"password": "swordfish", "db": {"Client-Secret": "swordfish"},
        "tokens": 3, "token_count": 12, "note": "use swordfish", "password_hint": "a fish"});
    let kept = redactor.redact_params("p", &params);
    assert_eq!(
        kept,
        json!({"password": MARKER, "db": {"Client-Secret": MARKER}, "tokens": 3, "token_count": 12,
            "note": "use swordfish", "password_hint": "a fish"})
    );
    // Redacted secrets are known from then on.
    assert_eq!(
        redactor.redact_text("t", "it was swordfish"),
        "it was [redacted]"
    );
}
