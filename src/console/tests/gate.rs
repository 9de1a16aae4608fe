//! Tests of the decision dialog: from the empty form to the decision.

use std::collections::BTreeMap;
use std::time::Duration;

use insta::assert_snapshot;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::json;

use super::fixture::{busy, detected, held, onboarding, snapshot, ticket_delete, with_params};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::engine::command::{DecisionRequest, Ruling};
use crate::runtime::snapshot::{ChainVerdict, ConsoleAccess, StoreState};

const WIDE: (u16, u16) = (120, 36);
const SMALL: (u16, u16) = (80, 24);

pub(super) const REASON: &str = "dup of 4398, reason: customer asked";

/// Answers all three questions of `c-121`. The focus ends on Pass.
pub(super) fn fill(console: &mut TestConsole) {
    console.type_text(REASON);
    console.press(KeyCode::Tab);
    console.type_text("understood");
    console.press(KeyCode::Tab);
    console.press(KeyCode::Left);
    console.presses(KeyCode::PageDown, 4);
    console.presses(KeyCode::Tab, 3);
}

#[test]
fn fresh() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    console.shows("READY");
    console.shows("Pass is disabled: 3 answers missing");
    assert_snapshot!(console.picture());
}

#[test]
fn fresh_at_80_by_24() {
    let mut console = TestConsole::new(busy(), SMALL);
    console.open_gate("c-121");
    assert_snapshot!(console.picture());
}

#[test]
fn request_pane_at_80_by_24() {
    let mut console = TestConsole::new(busy(), SMALL);
    console.open_gate("c-121");
    console.press(KeyCode::F(6));
    assert_snapshot!(console.text());
}

#[test]
fn one_pane_at_60_by_18() {
    let mut console = TestConsole::new(busy(), (60, 18));
    console.open_gate("c-121");
    let form = console.text();
    console.press(KeyCode::F(6));
    assert_snapshot!(format!("{form}\n\n{}", console.text()));
}

// covers B30
#[test]
fn the_four_aspects_of_the_session_are_shown_below_the_request() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    console.presses(KeyCode::PageDown, 4);
    for (heading, text) in [
        (
            "PERMISSIONS",
            "allowed by gates: none; denied by gates: public.*",
        ),
        (
            "CAPABILITIES",
            "unlocked: basic-support; locked: admin-support",
        ),
        ("CONTEXT", "given: intro-context; guidance: onboarding"),
        ("AUDIT", "3 actions run; 17 events recorded"),
    ] {
        console.shows(heading);
        console.shows(text);
    }
}

#[test]
fn the_agents_answers_are_shown_and_not_asked_again() {
    let mut held = ticket_delete();
    let answers = serde_json::json!({"justification": "because I was asked to"});
    held.answered
        .insert(0, answers.as_object().unwrap().clone());
    let left = held.gates[1].questions.len();
    let mut console = TestConsole::new(snapshot([held]), WIDE);
    console.open();
    console.presses(KeyCode::PageDown, 1);
    console.shows("AGENT'S ANSWERS high-risk-gate");
    console.shows("because I was asked to");
    let wanted = if left == 1 {
        "1 answer missing"
    } else {
        "answers missing"
    };
    console.shows(wanted);
    console.hides("Provide justification");
}

// covers B9
#[test]
fn filled() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    fill(&mut console);
    console.shows("seen 100 %");
    console.hides("is disabled");
    assert_snapshot!(console.picture());
}

#[test]
fn review_at_80_by_24() {
    let mut console = TestConsole::new(busy(), SMALL);
    console.open_gate("c-121");
    fill(&mut console);
    console.press(KeyCode::Enter);
    assert_snapshot!(console.picture());
}

#[test]
fn signing() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    fill(&mut console);
    console.press(KeyCode::Enter);
    console.press(KeyCode::Tab);
    console.type_text("ab");
    console.press(KeyCode::Tab);
    assert_eq!(
        console.press(KeyCode::Enter),
        [],
        "a wrong hash passes nothing"
    );
    assert_snapshot!(console.picture());
}

#[test]
fn denying() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Down);
    console.press(KeyCode::Char('d'));
    console.shows("DENIED  WAIT");
    console.wait(DIALOG_ARMING_TIME);
    assert_snapshot!(console.picture());
}

#[test]
fn a_high_risk_request_passes_by_review_hash_and_enter() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    fill(&mut console);
    assert_eq!(console.press(KeyCode::Enter), [], "Pass opens the review");
    console.shows("risk verified");
    console.shows("gate passed");
    console.press(KeyCode::PageDown);
    let item = ticket_delete();
    console.type_text(&item.request_hash.short(4));
    console.presses(KeyCode::Tab, 2);
    let requests = console.press(KeyCode::Enter);
    let answers = vec![
        BTreeMap::from([
            ("irreversible".to_owned(), json!("understood")),
            ("justify-risk".to_owned(), json!(REASON)),
        ]),
        BTreeMap::from([("confirm".to_owned(), json!(true))]),
    ];
    let expected = DecisionRequest {
        gate: item.id.clone(),
        operator: "op-1@ops".to_owned(),
        method: "console+challenge".to_owned(),
        request_hash: item.request_hash,
        atlas_hash: item.atlas_hash,
        justification: None,
        ruling: Ruling::Pass { answers },
    };
    assert_eq!(decisions(requests), [expected]);
    console.shows("writing...");
    assert_eq!(
        console.presses(KeyCode::Enter, 3),
        [],
        "locked while writing"
    );
}

#[test]
fn the_review_starts_on_a_harmless_button() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    fill(&mut console);
    assert_eq!(console.presses(KeyCode::Enter, 9), []);
}

#[test]
fn a_low_risk_request_passes_with_one_button() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
    console.type_text("understood");
    console.presses(KeyCode::Tab, 3);
    let decided = decisions(console.press(KeyCode::Enter));
    assert_eq!(decided.len(), 1);
    assert_eq!(decided[0].method, "console");
}

#[test]
fn a_detected_tier_is_never_passed_directly() {
    let item = detected(held("c-1", "x.read", RiskTier::Low, 1, 60));
    let mut console = TestConsole::new(snapshot([item]), WIDE);
    console.open();
    console.press(KeyCode::Left);
    console.presses(KeyCode::Tab, 3);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("Review: what will be written");
    console.press(KeyCode::Tab);
    assert_eq!(decisions(console.press(KeyCode::Enter)).len(), 1);
}

#[test]
fn denying_needs_a_reason_and_its_own_button() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    console.presses(KeyCode::Tab, 4);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.presses(KeyCode::Tab, 2);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("cannot deny: enter a reason");
    console.press(KeyCode::Tab);
    console.type_text("wrong");
    console.press(KeyCode::Enter);
    console.type_text("tenant");
    console.presses(KeyCode::Tab, 2);
    let decided = decisions(console.press(KeyCode::Enter));
    let reason = "wrong\ntenant".to_owned();
    assert_eq!(decided[0].ruling, Ruling::Deny { reason });
    assert_eq!(decided[0].method, "console");
}

#[test]
fn keys_within_the_arming_time_are_dropped_not_queued() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.press(KeyCode::Enter);
    console.shows("DENIED  WAIT");
    console.type_text("understood");
    console.wait(
        DIALOG_ARMING_TIME
            .checked_sub(Duration::from_millis(1))
            .unwrap(),
    );
    console.press(KeyCode::Tab);
    console.shows("DENIED  WAIT");
    console.wait(Duration::from_millis(1));
    console.shows("READY");
    console.shows("1 answer missing");
    console.shows("> Q1");
}

#[test]
fn the_arming_time_starts_at_the_first_painting() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    let enter = Event::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
    console.app.on_event(&enter, console.now);
    console.now = console.now.plus(Duration::from_secs(5));
    console
        .app
        .on_event(&Event::Key(KeyCode::Char('x').into()), console.now);
    console.paint();
    console.shows("DENIED  WAIT");
    console.wait(DIALOG_ARMING_TIME);
    console.shows("1 answer missing");
}

#[test]
fn pass_waits_until_the_whole_request_was_on_screen() {
    let lines: Vec<u32> = (0..200).collect();
    let item = with_params(held("c-1", "x.write", RiskTier::Low, 1, 60), json!(lines));
    let mut console = TestConsole::new(snapshot([item]), WIDE);
    console.open();
    console.press(KeyCode::Left);
    console.shows("request not fully seen");
    console.presses(KeyCode::Tab, 3);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.presses(KeyCode::PageDown, 9);
    console.shows("seen 100 %");
    assert_eq!(decisions(console.press(KeyCode::Enter)).len(), 1);
}

#[test]
fn hidden_characters_are_escaped_and_counted() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    console.shows("dup\\u{202e} cleanup");
    console.shows("! 1 hidden character written out");
}

#[test]
fn a_paste_never_submits() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
    let paste = Event::Paste("understood\r\n\r\n\t\r\n".to_owned());
    assert_eq!(decisions(console.event(&paste)), []);
    console.presses(KeyCode::Tab, 3);
    assert_eq!(console.event(&paste), []);
    assert_eq!(console.app.layers.len(), 1);
}

#[test]
fn only_key_presses_count_and_alt_keys_do_nothing() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
    console.type_text("understood");
    console.presses(KeyCode::Tab, 3);
    for kind in [KeyEventKind::Release, KeyEventKind::Repeat] {
        let key = KeyEvent::new_with_kind(KeyCode::Enter, KeyModifiers::NONE, kind);
        assert_eq!(console.event(&Event::Key(key)), []);
    }
    let alt = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
    assert_eq!(console.event(&Event::Key(alt)), []);
}

#[test]
fn ctrl_s_opens_the_review_and_decides_nothing() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
    assert_eq!(console.ctrl('s'), []);
    console.shows("cannot review: 1 answer missing");
    console.type_text("understood");
    assert_eq!(console.ctrl('s'), []);
    console.shows("Review: what will be written");
    assert_eq!(console.ctrl('s'), []);
}

#[test]
fn esc_keeps_the_draft() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    console.type_text("half an ans");
    console.press(KeyCode::Esc);
    console.shows("draft");
    console.open();
    console.shows("half an ans");
}

#[test]
fn a_read_only_dialog_decides_nothing() {
    let mut picture = snapshot([onboarding()]);
    picture.access = ConsoleAccess::ReadOnly;
    let mut console = TestConsole::new(picture, WIDE);
    console.open();
    console.type_text("understood");
    console.shows("Deciding is disabled: read-only");
    for code in [KeyCode::Tab, KeyCode::Enter, KeyCode::Tab, KeyCode::Right] {
        console.presses(code, 1);
        assert_eq!(decisions(console.presses(KeyCode::Enter, 2)), []);
    }
}

#[test]
fn a_broken_record_shows_a_warning_and_disables_pass() {
    let mut picture = busy();
    picture.chain.verdict = ChainVerdict::Broken {
        session: "s-09".parse().unwrap(),
        what: "hash of 1841 differs".to_owned(),
        mark: crate::base::digest::Digest::of("break"),
    };
    let mut console = TestConsole::new(picture, WIDE);
    console.shows("! CHAIN BROKEN in s-09: hash of 1841 differs");
    console.open_gate("c-121");
    console.shows("! CHAIN BROKEN in s-09");
    console.shows("Deciding is disabled: chain broken");
    let mut poisoned = busy();
    poisoned.store = StoreState::Poisoned {
        what: "disk full".to_owned(),
    };
    console.snapshot(poisoned);
    console.shows("! RECORDING STOPPED: disk full");
    console.shows("Deciding is disabled: cannot write records");
}
