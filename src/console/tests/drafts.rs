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
fn agent_reply(requests: Vec<ConsoleRequest>) -> Vec<Option<Value>> {
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
fn is_marked(console: &TestConsole) -> bool {
    let text = console.text();
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
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
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
    assert_eq!(
        agent_reply(console.type_text("un")),
        [answer("u"), answer("un")]
    );
    for code in [KeyCode::Left, KeyCode::Tab, KeyCode::BackTab, KeyCode::F(6)] {
        assert_eq!(console.press(code), [], "{code:?} types nothing");
    }
    console.press(KeyCode::F(6));
    console.press(KeyCode::End);
    let paste = Event::Paste("der".to_owned());
    assert_eq!(agent_reply(console.event(&paste)), [answer("under")]);
    let gone = agent_reply(console.presses(KeyCode::Backspace, 6));
    assert_eq!(gone.len(), 5, "{gone:?}");
    assert_eq!(gone[4], None, "nothing is worth keeping any more");
}

#[test]
fn the_whole_form_is_saved_and_restored_after_a_restart() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    fill(&mut console);
    console.press(KeyCode::BackTab);
    console.press(KeyCode::Enter);
    console.type_text("wrong");
    console.press(KeyCode::Enter);
    let requests = console.type_text("tenant");
    assert_eq!(agent_reply(requests).pop(), Some(Some(full_draft())));

    let mut console = restarted(full_draft());
    assert!(is_marked(&console));
    console.open_gate("c-121");
    console.shows(REASON);
    console.shows("understood");
    console.shows("(•) yes");
    console.shows("Answer · draft saved");
    console.shows("> Q1");
    console.press(KeyCode::Esc);
    console.press(KeyCode::Char('d'));
    console.wait(crate::base::limits::DIALOG_ARMING_TIME);
    console.shows("wrong");
    console.shows("tenant");
}

#[test]
fn restoring_a_draft_decides_nothing_and_repeats_every_check() {
    let mut console = restarted(full_draft());
    console.press(KeyCode::Down);
    console.press(KeyCode::Enter);
    console.shows("DENIED  WAIT");
    for code in [KeyCode::Tab, KeyCode::Enter, KeyCode::Enter] {
        assert_eq!(
            console.presses(code, 3),
            [],
            "keys are dropped while arming"
        );
    }
    console.wait(crate::base::limits::DIALOG_ARMING_TIME);
    console.hides("Review: what will be written");
    console.presses(KeyCode::PageDown, 4);
    console.presses(KeyCode::BackTab, 1);
    assert_eq!(console.press(KeyCode::Enter), [], "Pass opens the review");
    console.shows("Review: what will be written");
    console.presses(KeyCode::PageDown, 2);
    console.presses(KeyCode::Tab, 2);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("cannot pass: type the hash first");
}

#[test]
fn a_draft_never_contains_the_typed_hash() {
    let mut console = restarted(full_draft());
    console.open_gate("c-121");
    console.presses(KeyCode::PageDown, 4);
    console.ctrl('s');
    console.shows("Review: what will be written");
    let hash = ticket_delete().request_hash.short(4);
    assert_eq!(console.type_text(&hash), []);
    assert_eq!(console.event(&Event::Paste(hash)), []);
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
        let mut console = restarted(draft);
        assert!(!is_marked(&console), "{name}");
        console.open_gate("c-121");
        console.shows("3 answers missing");
        console.hides("draft saved");
        let forgotten = agent_reply(console.press(KeyCode::Esc));
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
        let mut console = restarted(draft.clone());
        assert!(!is_marked(&console), "{draft}");
        console.open_gate("c-121");
        console.shows("3 answers missing");
    }
}

#[test]
fn characters_that_cannot_be_typed_are_removed_from_a_draft() {
    let mut draft = full_draft();
    draft["answers"][0]["raw"] = json!("a\u{202e}b\u{1b}[2Jc");
    draft["answers"][1]["raw"] = json!("understood\nand more");
    let mut console = restarted(draft);
    console.open_gate("c-121");
    console.shows("ab[2Jc");
    console.hides("and more");
}

#[test]
fn sensitive_answers_are_never_written_to_a_draft() {
    let mut console = TestConsole::new(snapshot([with_secret()]), WIDE);
    console.open();
    console.shows("text, required, sensitive: only a hash is kept");
    assert_eq!(console.type_text("1234"), [], "nothing of it leaves");
    console.press(KeyCode::Tab);
    let kept = agent_reply(console.type_text("moved"))
        .pop()
        .unwrap()
        .unwrap();
    assert_eq!(
        kept["answers"],
        json!([{ "gate": 0, "question": "why", "raw": "moved" }])
    );
    console.snapshot(with_draft(snapshot([with_secret()]), "c-1", kept.clone()));
    console.shows("draft saved without sensitive answers");
    assert_eq!(console.press(KeyCode::Esc), []);
    console.open();
    console.shows("1234");
    let mut console = TestConsole::new(with_draft(snapshot([with_secret()]), "c-1", kept), WIDE);
    console.open();
    console.shows("moved");
    console.shows("1 answer missing");
}

#[test]
fn a_draft_is_shown_as_kept_only_when_it_is_on_disk() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
    let half = agent_reply(console.type_text("underst"))
        .pop()
        .unwrap()
        .unwrap();
    console.hides("draft saved");
    console.snapshot(with_draft(snapshot([onboarding()]), "c-119", half));
    console.shows("Answer · draft saved");
    console.type_text("o");
    console.hides("draft saved");
}

#[test]
fn a_discarded_draft_stays_discarded_while_the_disk_lags() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
    let draft = agent_reply(console.type_text("x")).pop().unwrap().unwrap();
    console.snapshot(with_draft(snapshot([onboarding()]), "c-119", draft));
    assert_eq!(agent_reply(console.press(KeyCode::Backspace)), [None]);
    console.press(KeyCode::Esc);
    console.hides("draft");
    console.open();
    console.shows("1 answer missing");
    console.hides("draft saved");
}

#[test]
fn a_read_only_console_keeps_no_drafts() {
    let mut picture = with_draft(busy(), "c-121", json!({}));
    picture.access = ConsoleAccess::ReadOnly;
    let mut console = TestConsole::new(picture, WIDE);
    console.open_gate("c-121");
    assert_eq!(console.type_text("half an answer"), []);
    assert_eq!(console.event(&Event::Paste("more".to_owned())), []);
    console.presses(KeyCode::Backspace, 30);
    assert_eq!(console.press(KeyCode::Esc), []);
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
}
