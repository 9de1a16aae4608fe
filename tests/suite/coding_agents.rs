//! The shipped Atlas for coding agents: what must fire, and what must not. Over-blocking is a defect
//! as well.

use std::collections::{BTreeMap, BTreeSet};

use cra_core::atlas::load_str;
use cra_core::engine::explanation::{
    ExplainedVerdict, HypotheticalRequest, HypotheticalSession, explain_under,
};
use serde_json::{Value, json};

const ATLAS: &str = include_str!("../../assets/atlas/coding-agents.yaml");
const CASES: &str = include_str!("../data/coding-agents.json");

#[test]
fn coding_agents_atlas_loads_without_warnings() {
    let loaded = load_str("coding-agents.yaml", ATLAS).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn each_case_fires_exactly_its_expected_checkpoints() {
    let atlases = [load_str("coding-agents.yaml", ATLAS).unwrap().atlas];
    let cases: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(CASES).unwrap();
    let now = "2026-01-01T00:00:00.000000Z".parse().unwrap();
    let mut wrong = Vec::new();
    let mut shown = BTreeSet::new();
    for (action, gates) in &cases {
        let parameter = if action == "shell.run" {
            "command"
        } else {
            "path"
        };
        for (gate, texts) in gates {
            for text in texts {
                let what_if = HypotheticalRequest {
                    action: action.clone(),
                    params: json!({ parameter: text }),
                    session: HypotheticalSession::default(),
                };
                let held = match explain_under(&atlases, &what_if, now).verdict {
                    ExplainedVerdict::Held { gates } => gates,
                    ExplainedVerdict::Allowed => Vec::new(),
                    ExplainedVerdict::Denied(denied) => panic!("{text}: {denied:?}"),
                };
                let fine = if gate.is_empty() {
                    held.is_empty()
                } else {
                    held.contains(gate)
                };
                if !fine {
                    wrong.push(format!(
                        "{action} `{text}`: wanted [{gate}], actual {held:?}"
                    ));
                }
            }
            shown.insert(gate.clone());
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for checkpoint in &atlases[0].checkpoints {
        assert!(
            shown.contains(&checkpoint.id),
            "no case shows `{}`",
            checkpoint.id
        );
    }
}

#[test]
fn command_that_is_not_a_string_is_still_gated() {
    let atlases = [load_str("coding-agents.yaml", ATLAS).unwrap().atlas];
    for params in [
        json!({"command": ["rm", "-rf", "/"]}),
        json!({"command": 7}),
        Value::Null,
    ] {
        let what_if = HypotheticalRequest {
            action: "shell.run".to_owned(),
            params: params.clone(),
            session: HypotheticalSession::default(),
        };
        let now = "2026-01-01T00:00:00.000000Z".parse().unwrap();
        let verdict = explain_under(&atlases, &what_if, now).verdict;
        assert!(!matches!(verdict, ExplainedVerdict::Allowed), "{params}");
    }
}

#[test]
fn credentials_are_not_recorded_and_redaction_hides_no_other_text() {
    let atlas = cra_core::atlas::load_str("coding-agents.yaml", ATLAS)
        .unwrap()
        .atlas;
    let atlases = [atlas];
    let kept = |params: serde_json::Value| {
        let mut redactor = cra_core::atlas::redaction::Redactor::new(&atlases, Some("shell.run"));
        redactor.redact_params("p", &params).to_string()
    };
    let secrets = [
        "curl -H 'Authorization: Bearer abcdef123456' x",
        "export AWS=AKIAABCDEFGHIJKLMNOP",
        "git clone https://me:hunter2x@example.com/r.git",
        "deploy --token=hunter2x --user me",
        "PGPASSWORD=hunter2x psql",
        "echo ghp_abcdefghijklmnopqrst",
    ];
    for command in secrets {
        let recorded = kept(serde_json::json!({"command": command}));
        assert!(recorded.contains("[redacted]"), "{recorded}");
        for secret in ["abcdef123456", "AKIA", "hunter2x", "ghp_"] {
            assert!(!recorded.contains(secret), "{recorded}");
        }
    }
    let tricks = [
        "password=$(rm${IFS}-rf${IFS}/)",
        "secret=`rm -rf /`",
        "token=abcd;rm -rf /",
        "echo '-----BEGIN PRIVATE KEY-----'; rm -rf /; echo '-----END PRIVATE KEY-----'",
        "x://a:$(rm -rf /)@b",
    ];
    for command in tricks {
        let recorded = kept(serde_json::json!({"command": command}));
        assert!(recorded.contains("rm"), "{command} became {recorded}");
    }
    let named = kept(serde_json::json!({"db_password": "x", "http": {"Authorization": "y"}}));
    assert_eq!(
        named,
        r#"{"db_password":"[redacted]","http":{"Authorization":"[redacted]"}}"#
    );
}
