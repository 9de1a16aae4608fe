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
pub(super) fn fill(stage: &mut TestConsole) {
    stage.type_text(REASON);
    stage.press(KeyCode::Tab);
    stage.type_text("understood");
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::Left);
    stage.presses(KeyCode::PageDown, 4);
    stage.presses(KeyCode::Tab, 3);
}

#[test]
fn fresh() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    stage.shows("READY");
    stage.shows("Pass is disabled: 3 answers missing");
    assert_snapshot!(stage.picture());
}

#[test]
fn fresh_at_80_by_24() {
    let mut stage = TestConsole::new(busy(), SMALL);
    stage.open_gate("c-121");
    assert_snapshot!(stage.picture());
}

#[test]
fn request_pane_at_80_by_24() {
    let mut stage = TestConsole::new(busy(), SMALL);
    stage.open_gate("c-121");
    stage.press(KeyCode::F(6));
    assert_snapshot!(stage.text());
}

#[test]
fn one_pane_at_60_by_18() {
    let mut stage = TestConsole::new(busy(), (60, 18));
    stage.open_gate("c-121");
    let form = stage.text();
    stage.press(KeyCode::F(6));
    assert_snapshot!(format!("{form}\n\n{}", stage.text()));
}

// covers B30
#[test]
fn the_four_aspects_of_the_session_are_shown_below_the_request() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    stage.presses(KeyCode::PageDown, 4);
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
        stage.shows(heading);
        stage.shows(text);
    }
}

#[test]
fn the_agents_answers_are_shown_and_not_asked_again() {
    let mut held = ticket_delete();
    let answers = serde_json::json!({"justification": "because I was asked to"});
    held.answered
        .insert(0, answers.as_object().unwrap().clone());
    let left = held.gates[1].questions.len();
    let mut stage = TestConsole::new(snapshot([held]), WIDE);
    stage.open();
    stage.presses(KeyCode::PageDown, 1);
    stage.shows("AGENT'S ANSWERS high-risk-gate");
    stage.shows("because I was asked to");
    let wanted = if left == 1 {
        "1 answer missing"
    } else {
        "answers missing"
    };
    stage.shows(wanted);
    stage.hides("Provide justification");
}

// covers B9
#[test]
fn filled() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    fill(&mut stage);
    stage.shows("seen 100 %");
    stage.hides("is disabled");
    assert_snapshot!(stage.picture());
}

#[test]
fn review_at_80_by_24() {
    let mut stage = TestConsole::new(busy(), SMALL);
    stage.open_gate("c-121");
    fill(&mut stage);
    stage.press(KeyCode::Enter);
    assert_snapshot!(stage.picture());
}

#[test]
fn signing() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    fill(&mut stage);
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Tab);
    stage.type_text("ab");
    stage.press(KeyCode::Tab);
    assert_eq!(
        stage.press(KeyCode::Enter),
        [],
        "a wrong hash passes nothing"
    );
    assert_snapshot!(stage.picture());
}

#[test]
fn denying() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Char('d'));
    stage.shows("DENIED  WAIT");
    stage.wait(DIALOG_ARMING_TIME);
    assert_snapshot!(stage.picture());
}

#[test]
fn a_high_risk_request_passes_by_review_hash_and_enter() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    fill(&mut stage);
    assert_eq!(stage.press(KeyCode::Enter), [], "Pass opens the review");
    stage.shows("risk verified");
    stage.shows("gate passed");
    stage.press(KeyCode::PageDown);
    let item = ticket_delete();
    stage.type_text(&item.request_hash.short(4));
    stage.presses(KeyCode::Tab, 2);
    let requests = stage.press(KeyCode::Enter);
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
    stage.shows("writing...");
    assert_eq!(stage.presses(KeyCode::Enter, 3), [], "locked while writing");
}

#[test]
fn the_review_starts_on_a_harmless_button() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    fill(&mut stage);
    assert_eq!(stage.presses(KeyCode::Enter, 9), []);
}

#[test]
fn a_low_risk_request_passes_with_one_button() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    stage.type_text("understood");
    stage.presses(KeyCode::Tab, 3);
    let decided = decisions(stage.press(KeyCode::Enter));
    assert_eq!(decided.len(), 1);
    assert_eq!(decided[0].method, "console");
}

#[test]
fn a_detected_tier_is_never_passed_directly() {
    let item = detected(held("c-1", "x.read", RiskTier::Low, 1, 60));
    let mut stage = TestConsole::new(snapshot([item]), WIDE);
    stage.open();
    stage.press(KeyCode::Left);
    stage.presses(KeyCode::Tab, 3);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.shows("Review: what will be written");
    stage.press(KeyCode::Tab);
    assert_eq!(decisions(stage.press(KeyCode::Enter)).len(), 1);
}

#[test]
fn denying_needs_a_reason_and_its_own_button() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    stage.presses(KeyCode::Tab, 4);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.presses(KeyCode::Tab, 2);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.shows("cannot deny: enter a reason");
    stage.press(KeyCode::Tab);
    stage.type_text("wrong");
    stage.press(KeyCode::Enter);
    stage.type_text("tenant");
    stage.presses(KeyCode::Tab, 2);
    let decided = decisions(stage.press(KeyCode::Enter));
    let reason = "wrong\ntenant".to_owned();
    assert_eq!(decided[0].ruling, Ruling::Deny { reason });
    assert_eq!(decided[0].method, "console");
}

#[test]
fn keys_within_the_arming_time_are_dropped_not_queued() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.press(KeyCode::Enter);
    stage.shows("DENIED  WAIT");
    stage.type_text("understood");
    stage.wait(
        DIALOG_ARMING_TIME
            .checked_sub(Duration::from_millis(1))
            .unwrap(),
    );
    stage.press(KeyCode::Tab);
    stage.shows("DENIED  WAIT");
    stage.wait(Duration::from_millis(1));
    stage.shows("READY");
    stage.shows("1 answer missing");
    stage.shows("> Q1");
}

#[test]
fn the_arming_time_starts_at_the_first_painting() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    let enter = Event::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
    stage.app.on_event(&enter, stage.now);
    stage.now = stage.now.plus(Duration::from_secs(5));
    stage
        .app
        .on_event(&Event::Key(KeyCode::Char('x').into()), stage.now);
    stage.paint();
    stage.shows("DENIED  WAIT");
    stage.wait(DIALOG_ARMING_TIME);
    stage.shows("1 answer missing");
}

#[test]
fn pass_waits_until_the_whole_request_was_on_screen() {
    let lines: Vec<u32> = (0..200).collect();
    let item = with_params(held("c-1", "x.write", RiskTier::Low, 1, 60), json!(lines));
    let mut stage = TestConsole::new(snapshot([item]), WIDE);
    stage.open();
    stage.press(KeyCode::Left);
    stage.shows("request not fully seen");
    stage.presses(KeyCode::Tab, 3);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.presses(KeyCode::PageDown, 9);
    stage.shows("seen 100 %");
    assert_eq!(decisions(stage.press(KeyCode::Enter)).len(), 1);
}

#[test]
fn hidden_characters_are_escaped_and_counted() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    stage.shows("dup\\u{202e} cleanup");
    stage.shows("! 1 hidden character written out");
}

#[test]
fn a_paste_never_submits() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    let paste = Event::Paste("understood\r\n\r\n\t\r\n".to_owned());
    assert_eq!(decisions(stage.event(&paste)), []);
    stage.presses(KeyCode::Tab, 3);
    assert_eq!(stage.event(&paste), []);
    assert_eq!(stage.app.layers.len(), 1);
}

#[test]
fn only_key_presses_count_and_alt_keys_do_nothing() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    stage.type_text("understood");
    stage.presses(KeyCode::Tab, 3);
    for kind in [KeyEventKind::Release, KeyEventKind::Repeat] {
        let key = KeyEvent::new_with_kind(KeyCode::Enter, KeyModifiers::NONE, kind);
        assert_eq!(stage.event(&Event::Key(key)), []);
    }
    let alt = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
    assert_eq!(stage.event(&Event::Key(alt)), []);
}

#[test]
fn ctrl_s_opens_the_review_and_decides_nothing() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    assert_eq!(stage.ctrl('s'), []);
    stage.shows("cannot review: 1 answer missing");
    stage.type_text("understood");
    assert_eq!(stage.ctrl('s'), []);
    stage.shows("Review: what will be written");
    assert_eq!(stage.ctrl('s'), []);
}

#[test]
fn esc_keeps_the_draft() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    stage.type_text("half an ans");
    stage.press(KeyCode::Esc);
    stage.shows("draft");
    stage.open();
    stage.shows("half an ans");
}

#[test]
fn a_read_only_dialog_decides_nothing() {
    let mut picture = snapshot([onboarding()]);
    picture.access = ConsoleAccess::ReadOnly;
    let mut stage = TestConsole::new(picture, WIDE);
    stage.open();
    stage.type_text("understood");
    stage.shows("Deciding is disabled: read-only");
    for code in [KeyCode::Tab, KeyCode::Enter, KeyCode::Tab, KeyCode::Right] {
        stage.presses(code, 1);
        assert_eq!(decisions(stage.presses(KeyCode::Enter, 2)), []);
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
    let mut stage = TestConsole::new(picture, WIDE);
    stage.shows("! CHAIN BROKEN in s-09: hash of 1841 differs");
    stage.open_gate("c-121");
    stage.shows("! CHAIN BROKEN in s-09");
    stage.shows("Deciding is disabled: chain broken");
    let mut poisoned = busy();
    poisoned.store = StoreState::Poisoned {
        what: "disk full".to_owned(),
    };
    stage.snapshot(poisoned);
    stage.shows("! RECORDING STOPPED: disk full");
    stage.shows("Deciding is disabled: cannot write records");
}
