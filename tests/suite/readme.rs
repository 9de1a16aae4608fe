//! The README says what is true now.

use std::fs;
use std::time::Duration;

use cra_core::atlas::load_str;
use cra_core::base::limits;
use cra_core::engine::extension::{
    Action, Call, CallId, CallQuestion, CheckpointContext, Returned, SessionState,
};
use cra_core::runtime::extension::Registry;
use serde_json::{Value, json};

use super::support::root;

/// The blocks of code of the section on extensions, in this language.
fn blocks(language: &str) -> Vec<String> {
    blocks_of("Extensions", language)
}

fn blocks_of(section: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, section) = text.split_once(&format!("## {section}\n")).unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let fence = format!("```{language}\n");
    let blocks = section.split(&fence).skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0.to_owned())
        .collect()
}

#[test]
fn what_the_readme_says_of_the_record_can_be_loaded() {
    let [fragment] = &blocks_of("The record", "yaml")[..] else {
        panic!("one block is wanted");
    };
    let head = "atlas_version: '1.0'\natlas_id: a\nversion: '1'\nname: A\n";
    let loaded = load_str("readme", &format!("{head}{fragment}")).unwrap();
    let retention = cra_core::atlas::recording::retention(&[loaded.atlas]);
    assert_eq!(retention.days_for("session_ended"), Some(365));
    assert_eq!(retention.days_for("input_received"), Some(90));
}

#[test]
fn the_atlas_and_the_list_of_the_readme_can_be_loaded() {
    let [fragment, list] = &blocks("yaml")[..] else {
        panic!("two blocks are wanted");
    };
    let head =
        "atlas_version: '1.0'\natlas_id: a\nversion: '1'\nname: A\ndefault_decision: allow\n";
    let atlas = load_str("readme", &format!("{head}{fragment}")).unwrap();
    assert_eq!(atlas.atlas.checkpoints.len(), 1);

    let folder = tempfile::tempdir().unwrap();
    let module = root().join("assets/extensions/shouting.wasm");
    fs::copy(module, folder.path().join("shouting.wasm")).unwrap();
    let file = folder.path().join("extensions.yaml");
    fs::write(
        &file,
        list.replace("/usr/local/bin/change-freeze", "/bin/sh"),
    )
    .unwrap();
    let table = Registry::load(&file).unwrap().table();
    let names = [table.triggers, table.validators, table.handlers];
    assert_eq!(
        names.map(|names| names.into_iter().collect::<Vec<_>>()),
        [["shouting"], ["ticket-desk"], ["change-freeze"]]
    );
}

#[test]
fn the_question_and_the_answer_of_the_readme_are_those_of_the_engine() {
    let [question, answer] = &blocks("json")[..] else {
        panic!("two blocks are wanted");
    };
    let call = Call {
        id: CallId(1),
        name: "change-freeze".to_owned(),
        question: CallQuestion::Handler,
        context: CheckpointContext {
            checkpoint_type: "action_pre".to_owned(),
            checkpoint_id: "change-freeze".to_owned(),
            trigger: "action_pre: `database.drop` matches `database.*`".to_owned(),
            input: None,
            action: Some(Action {
                action_type: "database.drop".to_owned(),
                params: json!({}),
                risk_tier: "critical".to_owned(),
            }),
            session: SessionState {
                id: "s-1".parse().unwrap(),
                agent: "bot".to_owned(),
                intent: None,
                actions: 3,
                atlas_ids: vec!["org.example".to_owned()],
            },
            cache: ["handbook".to_owned()].into(),
        },
    };
    let question: Value = serde_json::from_str(question).unwrap();
    assert_eq!(question, call.to_json());

    let returned = Returned {
        outcome: Ok(serde_json::from_str(answer).unwrap()),
        took: Duration::ZERO,
    };
    let read = returned.result().unwrap();
    let written: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), written);
}

#[test]
fn the_limits_of_the_readme_are_those_that_hold() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let mib = |bytes: u64| bytes / 1024 / 1024;
    let rows = [
        format!(
            "| {} s | {} s |",
            limits::EXTENSION_TIMEOUT.as_secs(),
            limits::MAX_EXTENSION_TIMEOUT.as_secs()
        ),
        format!("| {} million |", limits::WASM_FUEL / 1_000_000),
        format!("| {} MiB | 1 GiB |", mib(limits::WASM_MEMORY_BYTES)),
        format!(
            "| size of a module | | {} MiB |",
            mib(limits::MAX_WASM_BYTES)
        ),
        format!("answer | | {} KiB |", limits::MAX_EXTENSION_BYTES / 1024),
        format!("at once | | {} |", limits::MAX_CALLS_OUT),
    ];
    for row in rows {
        assert!(text.contains(&row), "{row}");
    }
    for lifetime in [limits::RESOLUTION_LIFETIME, limits::PERMIT_LIFETIME] {
        assert_eq!(
            lifetime,
            Duration::from_mins(5),
            "the README says five minutes"
        );
    }
}

#[test]
fn the_key_table_in_the_readme_is_the_one_the_console_uses() {
    let path = root().join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- keys -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- /keys -->").unwrap();
    let table = cra_core::console::key_table();
    let fresh = format!("{before}<!-- keys -->\n{table}<!-- /keys -->{after}");
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(&path, &fresh).unwrap();
    } else {
        assert_eq!(text, fresh, "run the tests with UPDATE_README=1");
    }
}

#[test]
fn the_readme_names_every_command() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    for command in [
        "demo",
        "atlas lint",
        "atlas explain",
        "atlas types",
        "run",
        "trace list",
        "trace show",
        "trace verify",
        "trace export",
    ] {
        assert!(text.contains(&format!("`cra {command}")), "{command}");
    }
}
