//! The safety rules that concern more than one dialog.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use ratatui::crossterm::event::{
    Event, KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use serde_json::json;

use super::fixture::{
    busy, decided, gate, held, idle, onboarding, question, snapshot, ticket_delete, user_ban,
};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::keymap::{KeyScope, all_bindings};
use crate::console::request::{Bell, ConsoleMessage, ConsoleRequest};
use crate::console::screen::ScreenId;
use crate::engine::command::{
    AcknowledgedSubject, DecisionRequest, HeldOutcome, OperatorAcknowledgement, OperatorAction,
    OperatorReply, OverruledDenial,
};
use crate::engine::held::{GateOrigin, Held};
use crate::runtime::snapshot::{ChainVerdict, RuntimeSnapshot, StoreState};

const WIDE: (u16, u16) = (120, 36);
const SMALL: (u16, u16) = (80, 24);

fn palette(console: &mut TestConsole, text: &str) -> Vec<ConsoleRequest> {
    console.press(KeyCode::Char(':'));
    console.type_text(text);
    console.press(KeyCode::Enter)
}

/// `c-9`: a denial that can be overridden.
pub(super) fn denied() -> Held {
    let mut item = held("c-9", "ticket.delete", RiskTier::High, 1, 600);
    let reason = question(json!({
        "question_id": "justification",
        "question": "Why?",
        "response_type": "text",
        "validation": { "min_length": 20 },
    }));
    let mut gate = gate("x", "x", "policy no-deletes denies it", vec![reason]);
    gate.origin = GateOrigin::Override {
        atlas_id: "com.acme.support".to_owned(),
        policy_id: "no-deletes".to_owned(),
        reason: "never".to_owned(),
    };
    item.gates = vec![gate];
    item
}

pub(super) fn answer(console: &mut TestConsole, sent: &[DecisionRequest]) {
    for decide in sent {
        let outcome = decided(
            decide.gate.as_str(),
            "14:02:32",
            HeldOutcome::Passed,
            Some("op-1@ops"),
        );
        console.message(ConsoleMessage::Decided(
            decide.gate.clone(),
            OperatorReply::Decided(outcome),
        ));
    }
}

// Rule 1.
#[test]
fn an_arrival_opens_nothing_for_any_key_pressed_with_it() {
    let mut console = TestConsole::new(idle(), SMALL);
    let requests = console.app.on_snapshot(Arc::new(snapshot([onboarding()])));
    assert!(
        matches!(&requests[..], [ConsoleRequest::Notify(notice), ..] if notice.bell == Bell::Ring
            && notice.toast.as_deref() == Some("cra: c-119 low session start by docs-bot")),
        "{requests:?}"
    );
    assert_eq!(console.app.layers.len(), 0);
    console.paint();
    // Enter opens the dialog. All keys after it fall within the arming time.
    console.press(KeyCode::Enter);
    assert_eq!(decisions(console.presses(KeyCode::Enter, 5)), []);
    assert_eq!(decisions(console.type_text("understood")), []);
}

#[test]
fn agent_text_in_a_notification_is_escaped_and_bounded() {
    let mut hostile = held("c-1", &"x".repeat(500), RiskTier::Low, 1, 60);
    hostile.agent = "a\u{7}\u{1b}]0;b".to_owned();
    let mut console = TestConsole::new(idle(), SMALL);
    let requests = console.snapshot(snapshot([hostile]));
    let Some(ConsoleRequest::Notify(notice)) = requests.first() else {
        panic!("{requests:?}");
    };
    let toast = notice.toast.clone().unwrap();
    assert!(
        toast.chars().count() <= 120 && !toast.contains(['\u{7}', '\u{1b}']),
        "{toast}"
    );
}

// Rule 5.
#[test]
fn the_key_that_opens_a_request_never_confirms_it() {
    let mut console = TestConsole::new(snapshot([ticket_delete()]), WIDE);
    console.open();
    for _ in 0..20 {
        assert_eq!(
            decisions(console.press(KeyCode::Enter)),
            [],
            "Enter alone goes nowhere"
        );
        console.now = console.now.plus(DIALOG_ARMING_TIME);
    }
    // Each request asks for its own hash.
    let hashes = [ticket_delete(), user_ban()].map(|held| held.request_hash.short(4));
    assert_ne!(hashes[0], hashes[1]);
}

// Rule 8 is covered by the tests of the queue. This test covers the warning.
#[test]
fn waiting_critical_requests_are_named_despite_many_other_arrivals() {
    let mut all: Vec<Held> = (20..60)
        .map(|at| held(&format!("c-{at}"), "a.b", RiskTier::High, 1, 60))
        .collect();
    let mut console = TestConsole::new(snapshot([onboarding()]), SMALL);
    console.snapshot(snapshot([vec![onboarding()], all.clone()].concat()));
    console.shows("40 new requests: press u to show");
    console.hides("CRITICAL");
    all.push(user_ban());
    console.snapshot(snapshot([vec![onboarding()], all].concat()));
    console.shows("CRITICAL c-118 and 40 more not shown: press u");
    console.shows("+41 (u)  due 01:00");
    assert_snapshot!(console.picture());
}

// Rule 16.
#[test]
fn there_is_no_always_allow_and_the_help_says_so() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Char('?'));
    console.type_text("always");
    console.shows("\"allow always\" does not exist");
    for binding in all_bindings() {
        let label = binding.label.to_lowercase();
        assert!(
            !label.contains("always") && !label.contains("trust"),
            "{label}"
        );
    }
    console.press(KeyCode::Esc);
    console.press(KeyCode::Char(':'));
    console.type_text("always");
    console.shows("No command matches `always`");
}

// Rule 17.
#[test]
fn identical_requests_are_one_row_and_one_decision() {
    let mut joined = onboarding();
    joined.joined = 4;
    let mut console = TestConsole::new(snapshot([joined]), SMALL);
    console.shows("open x5");
    console.open();
    console.type_text("understood");
    console.presses(KeyCode::Tab, 3);
    assert_eq!(
        decisions(console.press(KeyCode::Enter)).len(),
        1,
        "{}",
        console.text()
    );
}

// Rule 19.
#[test]
fn a_denial_is_overridden_only_through_the_palette() {
    let mut console = TestConsole::new(snapshot([denied()]), WIDE);
    console.open();
    console.type_text("the customer asked for it in writing, twice");
    console.presses(KeyCode::PageDown, 4);
    console.shows("Pass is disabled: use :override c-9");
    console.presses(KeyCode::Tab, 3);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.press(KeyCode::Esc);
    assert_eq!(decisions(palette(&mut console, "override c-9")), []);
    console.wait(DIALOG_ARMING_TIME);
    console.hides("use :override");
    console.presses(KeyCode::PageDown, 4);
    console.presses(KeyCode::Tab, 3);
    assert_eq!(console.press(KeyCode::Enter), [], "on to the review");
    console.presses(KeyCode::PageDown, 4);
    console.type_text(&denied().request_hash.short(4));
    console.press(KeyCode::Tab);
    console.type_text("ticket.delete");
    console.presses(KeyCode::Tab, 2);
    let sent = decisions(console.press(KeyCode::Enter));
    assert_eq!(sent.len(), 1, "{}", console.text());
    answer(&mut console, &sent);
    let mut overruled = snapshot([]);
    overruled.operator_acts.overruled = vec![OverruledDenial {
        gate: "c-9".parse().unwrap(),
        session: "s-12".parse().unwrap(),
        action: "ticket.delete".to_owned(),
        by: "op-1@ops".to_owned(),
        at: console.now,
    }];
    console.snapshot(overruled);
    console.shows("! OVERRIDE c-9: op-1@ops overruled a denial. :ack-override");
    console.press(KeyCode::Char('2'));
    console.shows("! OVERRIDE c-9");
    let asked = palette(&mut console, "ack-override");
    assert_eq!(
        asked,
        [ConsoleRequest::Operate(OperatorAction::Acknowledge(
            OperatorAcknowledgement {
                operator: "op-1@ops".to_owned(),
                of: AcknowledgedSubject::Overruled(vec!["c-9".parse().unwrap()]),
            }
        ))]
    );
    console.shows("! OVERRIDE c-9");
    console.snapshot(snapshot([]));
    console.hides("OVERRIDE");
}

#[test]
fn only_a_held_denial_can_be_overridden() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    palette(&mut console, "override c-77");
    console.shows("c-77 is not held");
    palette(&mut console, "override c-119");
    console.shows("no policy denies c-119");
    palette(&mut console, "override");
    console.shows("enter a request, such as `override c-12`");
}

fn broken() -> RuntimeSnapshot {
    let mut picture = snapshot([onboarding()]);
    picture.chain.verdict = ChainVerdict::Broken {
        session: "s-09".parse().unwrap(),
        what: "hash of 1841 differs".to_owned(),
        mark: crate::base::digest::Digest::of("break"),
    };
    picture
}

// Rule 23.
#[test]
fn a_broken_chain_blocks_decisions_until_it_is_acknowledged() {
    let mut console = TestConsole::new(broken(), WIDE);
    console.open();
    console.type_text("understood");
    console.shows("Deciding is disabled: chain broken; Esc, then :ack-broken-chain");
    for _ in 0..4 {
        console.press(KeyCode::Tab);
        assert_eq!(decisions(console.press(KeyCode::Enter)), []);
        console.press(KeyCode::Esc);
        console.open();
    }
    console.press(KeyCode::Esc);
    console.press(KeyCode::Char('2'));
    console.shows("! CHAIN BROKEN in s-09: hash of 1841 differs. Deciding is disabled");
    console.press(KeyCode::Char('1'));
    let fault = broken().chain.verdict.fault().unwrap();
    let asked = palette(&mut console, "ack-broken-chain");
    assert_eq!(
        asked,
        [ConsoleRequest::Operate(OperatorAction::Acknowledge(
            OperatorAcknowledgement {
                operator: "op-1@ops".to_owned(),
                of: AcknowledgedSubject::Fault(fault.clone()),
            }
        ))]
    );
    // The acknowledgement counts only after it is recorded.
    console.shows("Deciding is disabled");
    let mut known = broken();
    known.operator_acts.acknowledged_fault = Some(fault.clone());
    console.snapshot(known);
    console.shows("(acknowledged: deciding is possible)");
    console.shows("BROKEN");
    console.open();
    console.hides("is disabled");
    // Another break needs another acknowledgement.
    let mut worse = broken();
    worse.operator_acts.acknowledged_fault = Some(fault);
    worse.chain.verdict = ChainVerdict::Unreadable {
        what: "disk".to_owned(),
    };
    console.snapshot(worse);
    console.shows("Deciding is disabled: chain broken; Esc, then :ack-broken-chain");
}

#[test]
fn a_broken_chain_blocks_denials_too() {
    let mut console = TestConsole::new(broken(), WIDE);
    console.press(KeyCode::Char('d'));
    console.wait(DIALOG_ARMING_TIME);
    console.type_text("no");
    console.presses(KeyCode::Tab, 2);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("cannot deny: chain broken");
}

#[test]
fn a_stopped_recording_cannot_be_acknowledged() {
    let mut picture = snapshot([onboarding()]);
    picture.store = StoreState::Poisoned {
        what: "disk full".to_owned(),
    };
    let mut console = TestConsole::new(picture, WIDE);
    palette(&mut console, "ack-broken-chain");
    console.shows("no chain is broken");
    console.open();
    console.type_text("understood");
    console.shows("Deciding is disabled: cannot write records");
}

#[test]
fn the_palette_finds_commands_and_decides_nothing() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Char(':'));
    assert_snapshot!("palette", console.picture());
    console.type_text("srt");
    console.shows("> sort");
    console.press(KeyCode::Enter);
    console.shows("sort: deadline");
    palette(&mut console, "filter risk>=high");
    console.shows("filter: risk>=high (3 of 5)");
    palette(&mut console, "filter nope:x");
    console.shows("`nope:x`: column 1: unknown field `nope`");
    palette(&mut console, "filter");
    console.hides("filter:");
    // An incomplete command is completed, not run.
    console.press(KeyCode::Char(':'));
    console.type_text("ackbro");
    console.press(KeyCode::Enter);
    console.shows(":ack-broken-chain");
    console.press(KeyCode::Esc);
    assert_eq!(
        palette(&mut console, "quit"),
        [],
        "asks while requests are held"
    );
    console.shows("Quit the console");
}

#[test]
fn the_palette_at_60_by_18() {
    let mut console = TestConsole::new(busy(), (60, 18));
    console.press(KeyCode::Char(':'));
    console.type_text("over");
    assert_snapshot!(console.text());
}

#[test]
fn the_seek_command_shows_the_event_in_the_record() {
    let mut console = TestConsole::new(busy(), WIDE);
    let requests = palette(&mut console, "seek 120");
    assert!(
        requests.contains(&ConsoleRequest::LoadSessions),
        "{requests:?}"
    );
    console.press(KeyCode::Char(':'));
    console.type_text("seek x");
    console.press(KeyCode::Enter);
    console.shows("enter an event number, such as `seek 120`");
}

fn click(console: &mut TestConsole, column: u16, row: u16) -> Vec<ConsoleRequest> {
    mouse(
        console,
        MouseEventKind::Down(MouseButton::Left),
        column,
        row,
    )
}

fn mouse(
    console: &mut TestConsole,
    kind: MouseEventKind,
    column: u16,
    row: u16,
) -> Vec<ConsoleRequest> {
    console.event(&Event::Mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    }))
}

#[test]
fn the_mouse_selects_and_scrolls_and_never_decides() {
    let mut console = TestConsole::new(busy(), SMALL);
    assert_eq!(
        console.press(KeyCode::F(2)),
        [ConsoleRequest::Mouse(
            crate::console::request::MouseOwner::Console
        )]
    );
    click(&mut console, 10, 6);
    let selected =
        |console: &TestConsole| console.app.screens.queue.selected().unwrap().id.to_string();
    assert_eq!(selected(&console), "c-122");
    mouse(&mut console, MouseEventKind::ScrollUp, 10, 6);
    assert_eq!(selected(&console), "c-118");
    click(&mut console, 16, 1);
    console.shows("Sessions");
    click(&mut console, 3, 1);
    // A click on every cell of an open dialog, with everything answered.
    let mut console = TestConsole::new(snapshot([onboarding()]), SMALL);
    console.open();
    console.type_text("understood");
    console.presses(KeyCode::Tab, 3);
    for row in 0..24 {
        for column in 0..80 {
            assert_eq!(click(&mut console, column, row), []);
        }
        assert_eq!(mouse(&mut console, MouseEventKind::ScrollDown, 5, row), []);
    }
    console.wait(Duration::from_secs(1));
    assert_eq!(console.app.layers.len(), 1);
}

#[test]
fn every_key_of_the_queue_is_safe_on_an_empty_list() {
    for binding in all_bindings() {
        if !matches!(
            binding.scope,
            KeyScope::Screen(ScreenId::Queue) | KeyScope::Global
        ) {
            continue;
        }
        for key in binding.keys {
            let mut console = TestConsole::new(idle(), SMALL);
            let event = Event::Key(key.event());
            assert_eq!(
                decisions(console.event(&event)),
                [],
                "{}",
                key.display_name()
            );
        }
    }
}
