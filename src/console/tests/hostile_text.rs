//! Hostile text in every displayed field, on every screen and dialog, at every size. No sequence that a
//! terminal would obey, hide or reorder reaches the terminal, and no border breaks.

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::archive::Archive;
use super::fixture::{busy, question};
use super::sample_atlases::{account, studied};
use super::test_console::TestConsole;
use crate::atlas::Atlas;
use crate::base::text::is_deceptive;
use crate::console::atlas_study::Study;
use crate::console::driver::study::{differences, test_result};
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::screen::atlas::{ChangedFile, FileCheckResult, FileState};
use crate::console::{FailedScenarioStep, ScenarioReport};
use crate::engine::held::{GateOrigin, Held, HeldSubject};
use crate::runtime::snapshot::{
    ChainVerdict, EvaluationOutcome, HeadCopyState, RuntimeSnapshot, SessionSummary, StoreState,
    WatchedEvaluation,
};

/// Sequences that a terminal would obey (clipboard, title, whole screen), hide or reorder; and characters
/// that take two cells or none.
const HOSTILE: &str = "\u{1b}]52;c;cm0gLXJm\u{7}\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}evil\u{200b}\u{feff}\
    \u{e000}\r\n\t\u{8}日本語e\u{301}\u{fe0f}🙂";

const SIZES: [(u16, u16); 3] = [(120, 36), (80, 24), (60, 18)];

/// A field, and the function that puts a text into it.
type HostileField = (&'static str, fn(&mut RuntimeSnapshot, &str));

const FIELDS: &[HostileField] = &[
    ("operator", |snapshot, text| {
        text.clone_into(&mut snapshot.operator);
    }),
    ("agent", |snapshot, text| {
        each(snapshot, |held| text.clone_into(&mut held.agent));
    }),
    ("goal", |snapshot, text| {
        each(snapshot, |held| held.intent = Some(text.to_owned()));
    }),
    ("action", |snapshot, text| {
        call(snapshot, |action, _| text.clone_into(action));
    }),
    ("parameters", |snapshot, text| {
        call(snapshot, |_, params| {
            *params = json!({ text: [text, { "a": text }] });
        });
    }),
    ("checkpoint", |snapshot, text| {
        origin(snapshot, |id, _| text.clone_into(id));
    }),
    ("checkpoint name", |snapshot, text| {
        origin(snapshot, |_, name| text.clone_into(name));
    }),
    ("why", |snapshot, text| {
        gates(snapshot, |gate| text.clone_into(&mut gate.why));
    }),
    ("question", |snapshot, text| {
        ask(
            snapshot,
            &json!({ "question_id": "q", "question": text, "response_type": "text" }),
        );
    }),
    ("question id and hint", |snapshot, text| {
        ask(
            snapshot,
            &json!({ "question_id": text, "question": "q", "response_type": "text", "hint": text }),
        );
    }),
    ("options", |snapshot, text| {
        ask(
            snapshot,
            &json!({ "question_id": "q", "question": "q", "response_type": "choice", "options": [text, "b"] }),
        );
    }),
    ("rules", |snapshot, text| {
        ask(
            snapshot,
            &json!({ "question_id": "q", "question": "q", "response_type": "text",
            "validation": { "must_contain": [text], "must_not_contain": [text] } }),
        );
    }),
    ("guidance", |snapshot, text| {
        gates(snapshot, |gate| {
            gate.guidance = serde_json::from_value(json!({ "content": text })).ok();
        });
    }),
    ("guidance in markdown", |snapshot, text| {
        let content = format!("# {text}\n- {text}\n`{text}` [{text}]({text})");
        gates(snapshot, |gate| {
            gate.guidance =
                serde_json::from_value(json!({ "content": content, "format": "markdown" })).ok();
        });
    }),
    ("effects", |snapshot, text| {
        gates(snapshot, |gate| gate.effects.inject = vec![text.to_owned()]);
    }),
    ("approval", |snapshot, text| {
        gates(snapshot, |gate| {
            gate.origin = GateOrigin::Approval {
                atlas_id: text.to_owned(),
                policy_id: text.to_owned(),
                reason: text.to_owned(),
            }
        });
    }),
    ("decisions", |snapshot, text| {
        for decided in &mut snapshot.decided {
            let decided = Arc::make_mut(decided);
            decided.by = Some(text.to_owned());
            text.clone_into(&mut decided.detail);
            text.clone_into(&mut decided.agent);
            text.clone_into(&mut decided.action);
        }
    }),
    ("sessions", |snapshot, text| {
        let sessions = snapshot.sessions.iter().cloned().map(|mut one| {
            session(&mut one, text);
            one
        });
        snapshot.sessions = sessions.collect();
    }),
    ("broken chain", |snapshot, text| {
        snapshot.chain.verdict = ChainVerdict::Broken {
            session: "s-07".parse().unwrap(),
            what: text.to_owned(),
            mark: crate::base::digest::Digest::of("break"),
        };
    }),
    ("unreadable record", |snapshot, text| {
        snapshot.chain.verdict = ChainVerdict::Unreadable {
            what: text.to_owned(),
        }
    }),
    ("poisoned store", |snapshot, text| {
        snapshot.store = StoreState::Poisoned {
            what: text.to_owned(),
        }
    }),
    ("head elsewhere", |snapshot, text| {
        snapshot.chain.head.copy = HeadCopyState::Failed {
            what: text.to_owned(),
        }
    }),
    ("drafts", |snapshot, text| {
        let drafts = snapshot
            .held
            .iter()
            .map(|held| (held.id.clone(), json!({ "reason": text, "fields": text })));
        snapshot.drafts = Arc::new(drafts.collect());
    }),
    ("Atlases", |snapshot, text| {
        snapshot.loaded = snapshot.loaded.iter().map(|one| atlas(one, text)).collect();
    }),
    ("evaluations", |snapshot, text| {
        snapshot.watched.evaluations = snapshot
            .watched
            .evaluations
            .iter()
            .map(|one| evaluation(one, text))
            .collect();
    }),
];

fn each(snapshot: &mut RuntimeSnapshot, mut change: impl FnMut(&mut Held)) {
    for held in &mut snapshot.held {
        change(Arc::make_mut(held));
    }
}

fn call(
    snapshot: &mut RuntimeSnapshot,
    mut change: impl FnMut(&mut String, &mut serde_json::Value),
) {
    each(snapshot, |held| {
        if let HeldSubject::Action(call) = &mut held.subject {
            change(&mut call.action, &mut call.params);
        }
    });
}

fn gates(snapshot: &mut RuntimeSnapshot, mut change: impl FnMut(&mut crate::engine::held::Gate)) {
    each(snapshot, |held| held.gates.iter_mut().for_each(&mut change));
}

fn origin(snapshot: &mut RuntimeSnapshot, mut change: impl FnMut(&mut String, &mut String)) {
    gates(snapshot, |gate| {
        if let GateOrigin::Checkpoint {
            checkpoint_id,
            name,
            ..
        } = &mut gate.origin
        {
            change(checkpoint_id, name);
        }
    });
}

fn ask(snapshot: &mut RuntimeSnapshot, wanted: &serde_json::Value) {
    gates(snapshot, |gate| {
        gate.questions = vec![question(wanted.clone())];
    });
}

fn session(one: &mut SessionSummary, text: &str) {
    text.clone_into(&mut one.agent);
    one.intent = Some(text.to_owned());
    for list in [
        &mut one.unlocked,
        &mut one.locked,
        &mut one.allowed,
        &mut one.denied,
        &mut one.contexts,
        &mut one.guidance,
    ] {
        *list = vec![text.to_owned()];
    }
}

fn atlas(one: &Atlas, text: &str) -> Atlas {
    let mut atlas = one.clone();
    for field in [
        &mut atlas.id,
        &mut atlas.version,
        &mut atlas.name,
        &mut atlas.description,
    ] {
        text.clone_into(field);
    }
    for checkpoint in &mut atlas.checkpoints {
        text.clone_into(&mut checkpoint.id);
        text.clone_into(&mut checkpoint.name);
    }
    for policy in &mut atlas.policies {
        text.clone_into(&mut policy.id);
        text.clone_into(&mut policy.reason);
    }
    let mut origin = (*atlas.origin).clone();
    text.clone_into(&mut origin.name);
    origin.file = Some(PathBuf::from(text));
    for warning in &mut origin.warnings {
        text.clone_into(&mut warning.file);
        text.clone_into(&mut warning.message);
        warning.help = Some(text.to_owned());
        text.clone_into(&mut warning.path);
    }
    atlas.origin = Arc::new(origin);
    atlas.text = format!("{text}\n").repeat(40).into();
    atlas
}

fn evaluation(one: &Arc<WatchedEvaluation>, text: &str) -> Arc<WatchedEvaluation> {
    let mut one = (**one).clone();
    text.clone_into(&mut one.agent);
    text.clone_into(&mut one.account.subject);
    one.outcome = EvaluationOutcome::Denied(text.to_owned());
    Arc::new(one)
}

/// Asserts that no text on the screen is obeyed, hidden or reordered, and that every row that starts with a
/// border ends with one.
#[track_caller]
fn is_harmless(console: &TestConsole, what: &str) {
    for cell in &console.buffer().content {
        let bad = cell.symbol().chars().any(is_deceptive);
        assert!(!bad, "{what}: {:?} in\n{}", cell.symbol(), console.text());
    }
    let area = console.buffer().area;
    for y in area.top()..area.bottom() {
        let symbol = |x: u16| console.buffer()[(x, y)].symbol();
        let last = (area.left()..area.right()).rev().map(symbol);
        let last = last
            .into_iter()
            .find(|cell| *cell != " ")
            .unwrap_or_default();
        let begins = matches!(symbol(area.left()), "│" | "╭" | "╰");
        let ends = !begins || matches!(last, "│" | "╮" | "╯");
        assert!(ends, "{what}: row {y} of\n{}", console.text());
    }
}

/// Presses a key, and checks the screen and the requests.
#[track_caller]
fn press(console: &mut TestConsole, code: KeyCode, what: &str) -> Vec<ConsoleRequest> {
    let requests = console.press(code);
    for request in &requests {
        match request {
            ConsoleRequest::Copy(_) => panic!("{what}: copied by {code}"),
            ConsoleRequest::Notify(notice) => {
                let output = format!(
                    "{}{}",
                    notice.title,
                    notice.toast.as_deref().unwrap_or_default()
                );
                assert!(!output.chars().any(is_deceptive), "{what}: {output:?}");
            }
            _ => {}
        }
    }
    is_harmless(console, what);
    requests
}

/// Checks every screen and dialog.
fn look_around(snapshot: RuntimeSnapshot, size: (u16, u16), what: &str) {
    let mut console = TestConsole::new(snapshot, size);
    is_harmless(&console, what);
    for _ in 0..2 {
        press(&mut console, KeyCode::Down, what);
        press(&mut console, KeyCode::Enter, what);
        console.wait(crate::base::limits::DIALOG_ARMING_TIME);
        for code in [
            KeyCode::Tab,
            KeyCode::Tab,
            KeyCode::F(6),
            KeyCode::PageDown,
            KeyCode::F(6),
            KeyCode::F(7),
        ] {
            press(&mut console, code, what);
        }
        console.app.layers.clear();
        console.paint();
    }
    press(&mut console, KeyCode::Char('d'), what);
    console.app.layers.clear();
    for code in ['?', ':'] {
        press(&mut console, KeyCode::Char(code), what);
        press(&mut console, KeyCode::Esc, what);
    }
    press(&mut console, KeyCode::Char('4'), what);
    for _ in 0..4 {
        for code in [
            KeyCode::Down,
            KeyCode::Down,
            KeyCode::Enter,
            KeyCode::PageDown,
            KeyCode::Esc,
        ] {
            press(&mut console, code, what);
        }
        press(&mut console, KeyCode::Tab, what);
    }
    press(&mut console, KeyCode::Char('x'), what);
    console.app.layers.clear();
    press(&mut console, KeyCode::Char('i'), what);
    console.app.layers.clear();
    press(&mut console, KeyCode::Char('2'), what);
}

#[test]
fn hostile_text_in_any_field_breaks_nothing_anywhere() {
    for (name, put) in FIELDS {
        for size in SIZES {
            let mut snapshot = studied(busy());
            put(&mut snapshot, HOSTILE);
            look_around(snapshot, size, &format!("{name} at {size:?}"));
        }
    }
}

#[test]
fn a_megabyte_in_one_field_breaks_nothing_either() {
    let long = "日本\u{202e}x".repeat(100_000);
    for (name, put) in FIELDS
        .iter()
        .filter(|(name, _)| matches!(*name, "agent" | "parameters"))
    {
        let mut snapshot = studied(busy());
        put(&mut snapshot, &long);
        let mut console = TestConsole::new(snapshot, (80, 24));
        is_harmless(&console, name);
        console.open();
        is_harmless(&console, name);
        press(&mut console, KeyCode::PageDown, name);
    }
}

#[test]
fn hostile_files_tests_and_explanations_break_nothing() {
    for size in SIZES {
        let mut snapshot = studied(busy());
        snapshot.loaded = snapshot
            .loaded
            .iter()
            .map(|one| atlas(one, HOSTILE))
            .collect();
        snapshot.load_info.hash = Some(crate::engine::reload::hash_of_atlases(&snapshot.loaded));
        let (newer, against) = (
            snapshot.loaded[1].clone(),
            Arc::clone(&snapshot.loaded[1].text),
        );
        let mut console = TestConsole::new(snapshot, size);
        let mut changed = newer;
        changed.hash = crate::base::digest::Digest::of("other");
        changed.version = format!("2{HOSTILE}");
        changed.policies.clear();
        changed.checkpoints.clear();
        for atlas in [None, Some(Arc::new(changed))] {
            let problems = console.app.snapshot.loaded[0].origin.warnings.clone();
            let looked = FileCheckResult {
                atlas: 1,
                stamp: None,
                against: Arc::clone(&against),
                state: FileState::Newer(ChangedFile {
                    text: HOSTILE.into(),
                    problems,
                    atlas,
                }),
            };
            console.message(ConsoleMessage::FilesChecked(vec![looked]));
            for code in ['4', ']', ']', 'L'] {
                press(&mut console, KeyCode::Char(code), "file");
            }
        }
        assert_eq!(console.app.layers.len(), 1, "it asks");
        press(&mut console, KeyCode::Esc, "load");
        console.app.layers.clear();
        let asked = press(&mut console, KeyCode::Char('='), "difference");
        let [ConsoleRequest::Study(ticket, Study::Differ(texts))] = asked.as_slice() else {
            panic!("{asked:?}")
        };
        console.message(ConsoleMessage::Studied(*ticket, Ok(differences(texts))));
        is_harmless(&console, "difference");
        let failed = FailedScenarioStep {
            line: None,
            mismatch: HOSTILE.to_owned(),
        };
        let trial = ScenarioReport {
            file: HOSTILE.into(),
            steps: 1,
            failed: vec![failed],
        };
        console.message(ConsoleMessage::Studied(*ticket, test_result(&[trial])));
        is_harmless(&console, "tests");
        console.message(ConsoleMessage::Studied(*ticket, Err(HOSTILE.to_owned())));
        is_harmless(&console, "failed");
        explain(&mut console);
    }
}

/// Explains the selected request with hostile text.
fn explain(console: &mut TestConsole) {
    console.app.layers.clear();
    press(console, KeyCode::Char('1'), "queue");
    let asked = press(console, KeyCode::Char('x'), "why");
    let [ConsoleRequest::Explain(ticket, _)] = asked.as_slice() else {
        panic!("{asked:?}")
    };
    let mut output = account();
    HOSTILE.clone_into(&mut output.subject);
    console.message(ConsoleMessage::Explained(
        *ticket,
        vec![Ok(Box::new(output)), Err(HOSTILE.to_owned())],
    ));
    is_harmless(console, "why");
}

#[test]
fn hostile_events_break_nothing_in_the_record() {
    for size in SIZES {
        let mut archive = Archive::default();
        let output = |kind: &'static str| {
            (
                1,
                kind,
                None,
                json!({
                    "agent_type": HOSTILE, "intent": HOSTILE, "action_type": HOSTILE, "reason": HOSTILE,
                    "checkpoint_id": HOSTILE, "policy_id": HOSTILE, "verified_by": HOSTILE, HOSTILE: HOSTILE,
                    "action_params": { HOSTILE: [HOSTILE] },
                }),
            )
        };
        let kinds = [
            "session_started",
            "action_attempted",
            "checkpoint_triggered",
            "checkpoint_blocked",
            "action_blocked",
            "policy_override",
            "risk_verified",
            "error_occurred",
            "atlas_loaded",
        ];
        archive.add("s-12", HOSTILE, &kinds.map(output));
        let mut console = TestConsole::new(busy(), size);
        archive.open(&mut console, "s-12");
        is_harmless(&console, "sessions");
        for _ in 0..kinds.len() {
            for code in [
                KeyCode::Char('.'),
                KeyCode::Enter,
                KeyCode::PageDown,
                KeyCode::Esc,
            ] {
                archive.press(&mut console, code);
                is_harmless(&console, "record");
            }
        }
    }
}
