//! Drafts of answers: kept when the dialog closes and when the console ends.

use std::sync::Arc;

use ratatui::crossterm::event::{Event, KeyCode};
use serde_json::{Value, json};

use super::fixture::{busy, gate, held, onboarding, question, snapshot, ticket_delete};
use super::gate::{REASON, fill};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::base::digest::Digest;
use crate::console::request::ConsoleRequest;
use crate::engine::held::Held;
use crate::runtime::snapshot::{ConsoleAccess, Drafts, RuntimeSnapshot};

const WIDE: (u16, u16) = (120, 36);

/// Returns the drafts among requests.
fn told(requests: Vec<ConsoleRequest>) -> Vec<Option<Value>> {
    let draft = |request| match request {
        ConsoleRequest::KeepDraft(_, draft) => Some(draft),
        _ => None,
    };
    requests.into_iter().filter_map(draft).collect()
}

/// A snapshot in which a draft of this request is on disk.
pub(super) fn with_draft(mut picture: RuntimeSnapshot, id: &str, draft: Value) -> RuntimeSnapshot {
    let drafts = Drafts::from([(id.parse().unwrap(), draft)]);
    picture.drafts = Arc::new(drafts);
    picture
}

/// Draft of `c-121` with every question answered and a reason to deny begun.
pub(super) fn full_draft() -> Value {
    let item = ticket_delete();
    json!({
        "request_hash": item.request_hash.to_string(),
        "atlas_hash": item.atlas_hash.to_string(),
        "answered": 0,
        "answers": [
            { "gate": 0, "question": "justify-risk", "raw": REASON },
            { "gate": 0, "question": "irreversible", "raw": "understood" },
            { "gate": 1, "question": "confirm", "raw": true },
        ],
        "reason": "wrong\ntenant",
    })
}

/// A console that was just started with this draft on disk.
fn restarted(draft: Value) -> TestConsole {
    TestConsole::new(with_draft(busy(), "c-121", draft), WIDE)
}

/// Returns true if the queue shows a draft of `c-121`.
fn is_marked(stage: &TestConsole) -> bool {
    let text = stage.text();
    let row = text.lines().find(|row| row.contains("c-121  "));
    row.unwrap().contains("draft")
}

/// A request with one sensitive and one ordinary question. The record stores only a hash of a sensitive
/// answer, so a draft on disk must not contain the answer.
fn with_secret() -> Held {
    let secret = question(json!({
        "question_id": "pin",
        "question": "Your PIN",
        "response_type": "text",
        "sensitive": true,
    }));
    let plain = question(json!({
        "question_id": "why",
        "question": "Why?",
        "response_type": "text",
    }));
    let mut item = held("c-1", "x.write", RiskTier::Low, 1, 60);
    item.gates = vec![gate("g", "action_pre", "it writes", vec![secret, plain])];
    item
}

#[test]
fn every_change_of_an_answer_sends_one_draft() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    let answer = |text: &str| {
        let item = onboarding();
        Some(json!({
            "request_hash": item.request_hash.to_string(),
            "atlas_hash": item.atlas_hash.to_string(),
            "answered": 0,
            "answers": [{ "gate": 0, "question": "irreversible", "raw": text }],
            "reason": "",
        }))
    };
    assert_eq!(told(stage.type_text("un")), [answer("u"), answer("un")]);
    for code in [KeyCode::Left, KeyCode::Tab, KeyCode::BackTab, KeyCode::F(6)] {
        assert_eq!(stage.press(code), [], "{code:?} types nothing");
    }
    stage.press(KeyCode::F(6));
    stage.press(KeyCode::End);
    let paste = Event::Paste("der".to_owned());
    assert_eq!(told(stage.event(&paste)), [answer("under")]);
    let gone = told(stage.presses(KeyCode::Backspace, 6));
    assert_eq!(gone.len(), 5, "{gone:?}");
    assert_eq!(gone[4], None, "nothing is worth keeping any more");
}

#[test]
fn the_whole_form_is_saved_and_restored_after_a_restart() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    fill(&mut stage);
    stage.press(KeyCode::BackTab);
    stage.press(KeyCode::Enter);
    stage.type_text("wrong");
    stage.press(KeyCode::Enter);
    let requests = stage.type_text("tenant");
    assert_eq!(told(requests).pop(), Some(Some(full_draft())));

    let mut stage = restarted(full_draft());
    assert!(is_marked(&stage));
    stage.open_gate("c-121");
    stage.shows(REASON);
    stage.shows("understood");
    stage.shows("(•) yes");
    stage.shows("Answer · draft saved");
    stage.shows("> Q1");
    stage.press(KeyCode::Esc);
    stage.press(KeyCode::Char('d'));
    stage.wait(crate::base::limits::DIALOG_ARMING_TIME);
    stage.shows("wrong");
    stage.shows("tenant");
}

#[test]
fn restoring_a_draft_decides_nothing_and_repeats_every_check() {
    let mut stage = restarted(full_draft());
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.shows("DENIED  WAIT");
    for code in [KeyCode::Tab, KeyCode::Enter, KeyCode::Enter] {
        assert_eq!(stage.presses(code, 3), [], "keys are dropped while arming");
    }
    stage.wait(crate::base::limits::DIALOG_ARMING_TIME);
    stage.hides("Review: what will be written");
    stage.presses(KeyCode::PageDown, 4);
    stage.presses(KeyCode::BackTab, 1);
    assert_eq!(stage.press(KeyCode::Enter), [], "Pass opens the review");
    stage.shows("Review: what will be written");
    stage.presses(KeyCode::PageDown, 2);
    stage.presses(KeyCode::Tab, 2);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.shows("cannot pass: type the hash first");
}

#[test]
fn a_draft_never_contains_the_typed_hash() {
    let mut stage = restarted(full_draft());
    stage.open_gate("c-121");
    stage.presses(KeyCode::PageDown, 4);
    stage.ctrl('s');
    stage.shows("Review: what will be written");
    let hash = ticket_delete().request_hash.short(4);
    assert_eq!(stage.type_text(&hash), []);
    assert_eq!(stage.event(&Event::Paste(hash)), []);
}

#[test]
fn a_draft_of_another_request_is_not_restored() {
    let other = Digest::of("another").to_string();
    for (name, value) in [
        ("request_hash", json!(other)),
        ("atlas_hash", json!(other)),
        ("answered", json!(1)),
    ] {
        let mut draft = full_draft();
        draft[name] = value;
        let mut stage = restarted(draft);
        assert!(!is_marked(&stage), "{name}");
        stage.open_gate("c-121");
        stage.shows("3 answers missing");
        stage.hides("draft saved");
        let forgotten = told(stage.press(KeyCode::Esc));
        assert_eq!(forgotten, [None], "{name}: it is of no use to anyone");
    }
}

#[test]
fn an_unreadable_draft_is_ignored() {
    let changed = |pointer: &str, value: Value| {
        let mut draft = full_draft();
        *draft.pointer_mut(pointer).unwrap() = value;
        draft
    };
    let mut more = full_draft();
    more["passed"] = json!(true);
    for draft in [
        json!(null),
        json!("understood"),
        json!({}),
        more,
        changed("/request_hash", json!("x")),
        changed("/answers/0/question", json!("another")),
        changed("/answers/0/gate", json!(7)),
        changed("/answers/0/raw", json!(true)),
        changed("/answers/2/raw", json!("yes")),
        changed("/reason", json!(null)),
    ] {
        let mut stage = restarted(draft.clone());
        assert!(!is_marked(&stage), "{draft}");
        stage.open_gate("c-121");
        stage.shows("3 answers missing");
    }
}

#[test]
fn characters_that_cannot_be_typed_are_removed_from_a_draft() {
    let mut draft = full_draft();
    draft["answers"][0]["raw"] = json!("a\u{202e}b\u{1b}[2Jc");
    draft["answers"][1]["raw"] = json!("understood\nand more");
    let mut stage = restarted(draft);
    stage.open_gate("c-121");
    stage.shows("ab[2Jc");
    stage.hides("and more");
}

#[test]
fn sensitive_answers_are_never_written_to_a_draft() {
    let mut stage = TestConsole::new(snapshot([with_secret()]), WIDE);
    stage.open();
    stage.shows("text, required, sensitive: only a hash is kept");
    assert_eq!(stage.type_text("1234"), [], "nothing of it leaves");
    stage.press(KeyCode::Tab);
    let kept = told(stage.type_text("moved")).pop().unwrap().unwrap();
    assert_eq!(
        kept["answers"],
        json!([{ "gate": 0, "question": "why", "raw": "moved" }])
    );
    stage.snapshot(with_draft(snapshot([with_secret()]), "c-1", kept.clone()));
    stage.shows("draft saved without sensitive answers");
    assert_eq!(stage.press(KeyCode::Esc), []);
    stage.open();
    stage.shows("1234");
    let mut stage = TestConsole::new(with_draft(snapshot([with_secret()]), "c-1", kept), WIDE);
    stage.open();
    stage.shows("moved");
    stage.shows("1 answer missing");
}

#[test]
fn a_draft_is_shown_as_kept_only_when_it_is_on_disk() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    let half = told(stage.type_text("underst")).pop().unwrap().unwrap();
    stage.hides("draft saved");
    stage.snapshot(with_draft(snapshot([onboarding()]), "c-119", half));
    stage.shows("Answer · draft saved");
    stage.type_text("o");
    stage.hides("draft saved");
}

#[test]
fn a_discarded_draft_stays_discarded_while_the_disk_lags() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    let draft = told(stage.type_text("x")).pop().unwrap().unwrap();
    stage.snapshot(with_draft(snapshot([onboarding()]), "c-119", draft));
    assert_eq!(told(stage.press(KeyCode::Backspace)), [None]);
    stage.press(KeyCode::Esc);
    stage.hides("draft");
    stage.open();
    stage.shows("1 answer missing");
    stage.hides("draft saved");
}

#[test]
fn a_read_only_console_keeps_no_drafts() {
    let mut picture = with_draft(busy(), "c-121", json!({}));
    picture.access = ConsoleAccess::ReadOnly;
    let mut stage = TestConsole::new(picture, WIDE);
    stage.open_gate("c-121");
    assert_eq!(stage.type_text("half an answer"), []);
    assert_eq!(stage.event(&Event::Paste("more".to_owned())), []);
    stage.presses(KeyCode::Backspace, 30);
    assert_eq!(stage.press(KeyCode::Esc), []);
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
}
