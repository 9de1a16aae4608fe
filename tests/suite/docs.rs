//! The README and the book say what is true now: generated pages are fresh, examples load, links lead to files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cra_core::atlas::load_str;
use cra_core::base::limits;
use cra_core::engine::extensions::{
    CallId, CallQuestion, CallResult, CheckpointContext, ExtensionCall, RequestedAction,
    SessionState,
};
use cra_core::runtime::extension::Registry;
use serde_json::{Value, json};

use super::support::{files, root};

mod atlas_schema;
mod event_types;

/// Longest paragraph of the README, in words.
const MAX_README_PARAGRAPH: usize = 80;

/// Pages of the book, and the README.
fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs/src"), "md");
    pages.push(root().join("README.md"));
    pages
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The fenced blocks of a page with this tag.
fn blocks(text: &str, tag: &str) -> Vec<String> {
    let fence = format!("```{tag}\n");
    let blocks = text.split(&fence).skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0.to_owned())
        .collect()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// Compares a generated page with its fresh text, or writes it.
fn check_fresh(name: &str, fresh: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(name), fresh).unwrap();
    } else {
        assert!(
            page(name) == fresh,
            "{name} is not fresh: run the tests with UPDATE_DOCS=1"
        );
    }
}

#[test]
fn key_page_matches_the_key_table_of_the_console() {
    let table = cra_core::console::key_table();
    let fresh = format!(
        "# Keys\n\nPress `?` in the console for the keys of the focused screen.\n\n{table}"
    );
    check_fresh("docs/src/reference/keys.md", &fresh);
}

#[test]
fn command_page_matches_the_help_of_the_program() {
    check_fresh(
        "docs/src/reference/cli.md",
        &cra_core::cli::command_reference(),
    );
}

#[test]
fn every_atlas_in_the_documentation_loads() {
    let mut count = 0;
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        let mut atlases = blocks(&text, "yaml atlas");
        if path.ends_with("README.md") {
            atlases.extend(blocks(&text, "yaml"));
        }
        for atlas in atlases {
            let loaded = load_str(&shown(&path), &atlas);
            assert!(loaded.is_ok(), "{}", loaded.err().unwrap());
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

/// A fragment as a part of an Atlas: an item alone belongs to the checkpoints, keys of a checkpoint to one of them.
fn whole_part(fragment: &str) -> String {
    if fragment.starts_with("  - ") {
        return format!("checkpoints:\n{fragment}");
    }
    let first = fragment.split(':').next().unwrap_or_default();
    if !matches!(first, "when" | "trigger" | "questions" | "guidance") {
        return fragment.to_owned();
    }
    let trigger = match first {
        "trigger" => "",
        _ => "    trigger: { type: action_pre, patterns: [\"*\"] }\n",
    };
    let lines = fragment.lines().map(|line| format!("    {line}\n"));
    let lines: String = lines.collect();
    let head = "checkpoints:\n  - checkpoint_id: c\n    name: C\n    mode: blocking\n";
    format!("{head}{trigger}{lines}")
}

#[test]
fn every_fragment_of_an_atlas_in_the_documentation_loads() {
    let mut count = 0;
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        for fragment in blocks(&text, "yaml fragment") {
            let fragment = whole_part(&fragment);
            let head = [
                ("atlas_version", "atlas_version: \"1.0\"\n"),
                ("atlas_id", "atlas_id: a\n"),
                ("version", "version: \"1\"\n"),
                ("name", "name: A\n"),
                ("default_decision", "default_decision: allow\n"),
            ];
            let missing = head.iter().filter(|(key, _)| {
                !fragment
                    .lines()
                    .any(|line| line.starts_with(&format!("{key}:")))
            });
            let head: String = missing.map(|(_, line)| *line).collect();
            let loaded = load_str(&shown(&path), &format!("{head}{fragment}"));
            assert!(
                loaded.is_ok(),
                "{}\n{fragment}\n{}",
                shown(&path),
                loaded.err().unwrap()
            );
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn every_link_in_the_documentation_leads_to_a_file() {
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let file = path.parent().unwrap().join(target);
            assert!(file.exists(), "{}: {target}", shown(&path));
        }
    }
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let summary = page("docs/src/SUMMARY.md");
    for path in files(&root().join("docs/src"), "md") {
        let name = path.strip_prefix(root().join("docs/src")).unwrap();
        let name = name.display().to_string();
        let listed = name == "SUMMARY.md" || summary.contains(&format!("({name})"));
        assert!(listed, "{name}");
    }
}

#[test]
fn extension_list_in_the_documentation_loads() {
    let text = page("docs/src/atlas/extensions.md");
    let [list] = &blocks(&text, "yaml extensions")[..] else {
        panic!("one block is wanted");
    };
    let folder = tempfile::tempdir().unwrap();
    let module = root().join("assets/extensions/shouting.wasm");
    fs::copy(module, folder.path().join("shouting.wasm")).unwrap();
    let file = folder.path().join("extensions.yaml");
    let list = list.replace("/usr/local/bin/change-freeze", "/bin/sh");
    fs::write(&file, list).unwrap();
    let table = Registry::load(&file).unwrap().table();
    let names = [table.triggers, table.validators, table.handlers];
    assert_eq!(
        names.map(|names| names.into_iter().collect::<Vec<_>>()),
        [["shouting"], ["ticket-desk"], ["change-freeze"]]
    );
}

#[test]
fn documented_extension_request_matches_the_engine() {
    let text = page("docs/src/atlas/extensions.md");
    let question = &blocks(&text, "json")[0];
    let call = ExtensionCall {
        id: CallId(1),
        name: "change-freeze".to_owned(),
        question: CallQuestion::Handler,
        context: CheckpointContext {
            checkpoint_type: "action_pre".to_owned(),
            checkpoint_id: "change-freeze".to_owned(),
            trigger: "`database.drop` matches the rule `database.*`".to_owned(),
            input: None,
            action: Some(RequestedAction {
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
}

#[test]
fn handler_response_keys_match_the_documentation() {
    let text = page("docs/src/atlas/extensions.md");
    let answer = json!({
        "continue": false,
        "block_reason": "frozen",
        "inject_context": ["handbook"],
        "modified_input": "x",
        "policy_decision": {"decision": "deny", "reason": "frozen"},
        "trace_events": [{"event_type": "risk_score", "payload": {}}],
        "cache_invalidate": [],
        "cache_clear": false,
    });
    for key in answer.as_object().unwrap().keys() {
        assert!(text.contains(&format!("`{key}`")), "{key}");
    }
    let returned = CallResult {
        outcome: Ok(answer),
        duration: Duration::ZERO,
    };
    returned.result().unwrap();
}

#[test]
fn documented_limits_match_the_constants() {
    let extensions = page("docs/src/atlas/extensions.md");
    let text = page("docs/src/reference/limits.md");
    let millions = format!("{} million", limits::DEFAULT_WASM_FUEL / 1_000_000);
    assert!(text.contains(&millions) && extensions.contains(&millions));
    let memory = format!("{} MiB", limits::DEFAULT_WASM_MEMORY_BYTES / 1024 / 1024);
    assert!(text.contains(&memory) && extensions.contains(&memory));
    let timeout = limits::EXTENSION_TIMEOUT.as_millis();
    assert!(extensions.contains(&format!("| {timeout} |")), "{timeout}");
    for (number, row) in [
        (limits::MAX_SESSIONS, "| open sessions |"),
        (
            limits::MAX_SESSIONS_PER_PEER,
            "| open sessions of one terminal or service |",
        ),
        (limits::MAX_CONNECTIONS, "| connections at the socket |"),
    ] {
        let line = text.lines().find(|line| line.starts_with(row)).unwrap();
        let digits: String = line.split('|').nth(2).unwrap().replace(',', "");
        let first = digits.trim().split([' ', ';']).next().unwrap();
        assert_eq!(first, number.to_string(), "{row}");
    }
}

#[test]
fn command_page_names_every_command_of_the_readme() {
    let commands = page("docs/src/reference/cli.md");
    let text = page("README.md");
    let named: BTreeSet<_> = text
        .split("`cra ")
        .skip(1)
        .map(|rest| rest.split('`').next().unwrap().replace('\n', " "))
        .collect();
    assert!(named.len() > 5, "{named:?}");
    for command in named {
        let words = command
            .split(' ')
            .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        let words: Vec<_> = words.collect();
        let title = format!("## cra {}\n", words.join(" "));
        assert!(commands.contains(&title), "{command}");
    }
}

#[test]
fn paragraphs_of_the_readme_are_short() {
    let text = page("README.md");
    let mut is_code = false;
    let mut words = 0;
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let is_prose = !is_code && !line.is_empty() && !line.starts_with(['|', '#', '`', '!']);
        words = match is_prose {
            true if line.starts_with("- ") => line.split_whitespace().count(),
            true => words + line.split_whitespace().count(),
            false => 0,
        };
        assert!(words <= MAX_README_PARAGRAPH, "{words} words: {line}");
    }
    assert!(text.lines().count() <= 180, "the README is a shop window");
}
