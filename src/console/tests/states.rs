//! All states of the decision dialog at all sizes, and the transitions from each.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::fixture::{busy, decided, events, snapshot, ticket_delete, with_params};
use super::gate::fill;
use super::test_console::{TestConsole, decisions};
use crate::base::digest::Digest;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::request::{ConsoleMessage, ConsoleRequest, TrailPurpose};
use crate::console::theme::{Appearance, ColourMode, Glyphs};
use crate::engine::command::{
    DecisionRefusal, DecisionRequest, HeldOutcome, OperatorReply, Ruling,
};
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;

const SIZES: [(u16, u16); 3] = [(120, 36), (80, 24), (60, 18)];

/// The dialog of `c-121` at each size, one below the other.
fn at_every_size(set: impl Fn(&mut TestConsole)) -> String {
    let screens = SIZES.map(|size| {
        let mut console = TestConsole::new(busy(), size);
        console.open_gate("c-121");
        set(&mut console);
        console.text()
    });
    screens.join("\n\n")
}

/// Scrolls through the whole request, at any size, and answers everything.
pub(super) fn answered(console: &mut TestConsole) {
    console.press(KeyCode::F(6));
    console.presses(KeyCode::PageDown, 4);
    console.press(KeyCode::F(6));
    fill(console);
}

pub(super) fn reviewing(console: &mut TestConsole) {
    answered(console);
    assert_eq!(console.press(KeyCode::Enter), []);
}

fn signed(console: &mut TestConsole) {
    reviewing(console);
    console.presses(KeyCode::PageDown, 9);
    console.type_text(&ticket_delete().request_hash.short(4));
    console.presses(KeyCode::Tab, 2);
}

fn writing(console: &mut TestConsole) {
    signed(console);
    assert_eq!(decisions(console.press(KeyCode::Enter)).len(), 1);
}

fn refused(console: &mut TestConsole) {
    writing(console);
    let reason = DecisionRefusal::Unavailable("disk full".to_owned());
    let gate = ticket_delete().id;
    console.message(ConsoleMessage::Decided(
        gate.clone(),
        OperatorReply::Refused(reason),
    ));
    console.message(ConsoleMessage::Trail(
        gate,
        TrailPurpose::ReadBack,
        Ok(Vec::new()),
    ));
}

/// `c-121` with another parameter.
pub(super) fn other_request() -> Held {
    let mut other = ticket_delete();
    let params = json!({ "ticket_ids": [4411, 4412, 4413, 9999], "cascade": true });
    let changed = with_params(other.clone(), params);
    other.subject = changed.subject;
    other.request_hash = changed.request_hash;
    other
}

pub(super) fn with_other(other: &Held) -> RuntimeSnapshot {
    let mut picture = busy();
    for held in &mut picture.held {
        if held.id == other.id {
            *held = Arc::new(other.clone());
        }
    }
    picture
}

pub(super) fn expired() -> RuntimeSnapshot {
    let mut next = busy();
    next.held.retain(|held| held.id.as_str() != "c-121");
    let gone = decided("c-121", "14:05:21", HeldOutcome::Expired, None);
    next.decided.insert(0, Arc::new(gone));
    next
}

#[test]
fn every_dialog_state_is_painted_at_every_size() {
    assert_snapshot!("state_review", at_every_size(reviewing));
    assert_snapshot!("state_signing", at_every_size(signed));
    assert_snapshot!("state_writing", at_every_size(writing));
    assert_snapshot!("state_refused", at_every_size(refused));
    assert_snapshot!(
        "state_expired",
        at_every_size(|console| {
            answered(console);
            console.snapshot(expired());
        })
    );
    assert_snapshot!(
        "state_changed",
        at_every_size(|console| {
            answered(console);
            console.snapshot(with_other(&other_request()));
        })
    );
    assert_snapshot!(
        "state_minimised",
        at_every_size(|console| {
            answered(console);
            console.press(KeyCode::F(3));
        })
    );
    assert_snapshot!(
        "state_denying",
        at_every_size(|console| {
            console.presses(KeyCode::Tab, 4);
            console.press(KeyCode::Enter);
            console.type_text("wrong tenant");
        })
    );
}

#[test]
fn plain_characters_without_colour() {
    let appearance = Appearance {
        glyphs: Glyphs::Ascii,
        colour: ColourMode::Plain,
        ..Appearance::default()
    };
    let mut console = TestConsole::with_look(busy(), SIZES[1], appearance);
    console.open_gate("c-121");
    reviewing(&mut console);
    assert!(console.text().is_ascii(), "{}", console.text());
    assert_snapshot!(console.picture());
}

// A decision is bound to the request that was shown.
#[test]
fn a_changed_request_discards_the_input_and_shows_the_difference() {
    let mut console = TestConsole::new(busy(), SIZES[0]);
    console.open_gate("c-121");
    signed(&mut console);
    console.snapshot(with_other(&other_request()));
    console.shows("CHANGED");
    console.shows("+     9999");
    console.shows("-   \"note\": \"dup\\u{202e} cleanup\",");
    console.hides("Pass now");
    let thrown_away = ConsoleRequest::KeepDraft(ticket_delete().id, None);
    let dropped = console.press(KeyCode::Enter);
    assert_eq!(dropped, [thrown_away], "it is arming again");
    console.wait(DIALOG_ARMING_TIME);
    console.shows("your input, not sent");
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.shows("DENIED  WAIT");
    console.wait(DIALOG_ARMING_TIME);
    console.shows("9999");
    console.shows("Pass is disabled: 3 answers missing");
    console.shows("hash");
    fill(&mut console);
    console.press(KeyCode::Enter);
    console.presses(KeyCode::PageDown, 9);
    console.type_text(&ticket_delete().request_hash.short(4));
    console.presses(KeyCode::Tab, 2);
    let sent = decisions(console.press(KeyCode::Enter));
    let is_wrong = |sent: &DecisionRequest| matches!(sent.ruling, Ruling::WrongConfirmation { .. });
    assert!(sent.iter().all(is_wrong), "the hash of the one before");
    console.shows("cannot pass: type the hash first");
}

#[test]
fn a_changed_atlas_or_an_agents_answer_counts_as_a_changed_request() {
    let mut atlas = ticket_delete();
    atlas.atlas_hash = Digest::of("another");
    let mut answered_one = ticket_delete();
    let answers = json!({"justify-risk": "because I was asked to"});
    let answers = answers.as_object().unwrap().clone();
    answered_one.answered.insert(0, answers);
    for (other, shown) in [
        (atlas, "+ atlas "),
        (answered_one, "+   answered by the agent"),
    ] {
        let mut console = TestConsole::new(busy(), SIZES[0]);
        console.open_gate("c-121");
        signed(&mut console);
        console.snapshot(with_other(&other));
        console.shows(shown);
        console.wait(DIALOG_ARMING_TIME);
        assert_eq!(decisions(console.presses(KeyCode::Enter, 5)), []);
    }
}

#[test]
fn a_change_during_writing_waits_for_the_reply() {
    let mut console = TestConsole::new(busy(), SIZES[0]);
    console.open_gate("c-121");
    writing(&mut console);
    console.snapshot(with_other(&other_request()));
    console.shows("writing...");
    let gate = ticket_delete().id;
    let reply = OperatorReply::Refused(DecisionRefusal::RequestChanged);
    console.message(ConsoleMessage::Decided(gate, reply));
    console.shows("The request changed");
}

// A failed write is never reported as if nothing had happened.
#[test]
fn a_failed_write_reads_back_what_is_on_disk() {
    let mut console = TestConsole::new(busy(), SIZES[0]);
    console.open_gate("c-121");
    writing(&mut console);
    let gate = ticket_delete().id;
    let fail = |console: &mut TestConsole| {
        let reason = DecisionRefusal::Unavailable("disk full".to_owned());
        console.message(ConsoleMessage::Decided(
            ticket_delete().id,
            OperatorReply::Refused(reason),
        ))
    };
    let asked = ConsoleRequest::LoadTrail {
        gate: gate.clone(),
        session: "s-12".parse().unwrap(),
        from: 17,
        limit: 500,
        purpose: TrailPurpose::ReadBack,
    };
    assert_eq!(fail(&mut console), [asked]);
    console.shows("not recorded, so without effect: disk full");
    console.shows("reading back from disk");
    console.press(KeyCode::F(6));
    console.shows("reading back from disk");
    let mut found = events("s-12", 17, 6);
    for event in &mut found {
        event.parent_span_id = Some("span-1".parse().unwrap());
    }
    let others: Vec<_> = found
        .iter()
        .filter(|event| event.event_type == "action_attempted")
        .cloned()
        .collect();
    console.message(ConsoleMessage::Trail(
        gate.clone(),
        TrailPurpose::ReadBack,
        Ok(others),
    ));
    console.shows("read back: this decision is not on disk");
    for (read, shown) in [
        (Ok(found), "is on disk as event"),
        (Err("EIO".to_owned()), "EIO"),
    ] {
        let mut console = TestConsole::new(busy(), SIZES[0]);
        console.open_gate("c-121");
        writing(&mut console);
        fail(&mut console);
        console.message(ConsoleMessage::Trail(
            gate.clone(),
            TrailPurpose::ReadBack,
            read,
        ));
        console.shows(shown);
    }
}

// The rate of passing is shown.
#[test]
fn the_number_of_recent_passes_and_the_time_per_pass_are_shown() {
    let mut picture = busy();
    let mine = |id: &str, time: &str| {
        let mut passed = decided(id, time, HeldOutcome::Passed, Some("op-1@ops"));
        passed.gate = id.parse().unwrap();
        Arc::new(passed)
    };
    picture.decided = vec![
        mine("c-117", "14:01:00"),
        mine("c-116", "13:55:00"),
        mine("c-100", "13:40:00"),
    ];
    let mut console = TestConsole::new(picture.clone(), SIZES[0]);
    console.open_gate("c-121");
    console.wait(Duration::from_millis(40_300));
    console.shows("you passed 2 in 10 min");
    writing(&mut console);
    let done = decided("c-121", "14:03:13", HeldOutcome::Passed, Some("op-1@ops"));
    console.message(ConsoleMessage::Decided(
        ticket_delete().id,
        OperatorReply::Decided(done),
    ));
    picture.held.retain(|held| held.id.as_str() != "c-121");
    picture.decided.insert(0, mine("c-121", "14:03:13"));
    console.snapshot(picture);
    console.open_gate("c-122");
    console.press(KeyCode::Left);
    console.presses(KeyCode::PageDown, 3);
    console.presses(KeyCode::Tab, 3);
    console.press(KeyCode::Enter);
    console.shows("you passed 3 in 10 min (viewed 42 s, ?, ?)");
}

// The countdown is visible during typing, and the typed text survives the deadline.
#[test]
fn answers_of_an_expired_request_return_when_it_is_asked_again() {
    let mut console = TestConsole::new(busy(), SIZES[0]);
    console.open_gate("c-121");
    console.type_text("dup of 4398");
    console.shows("left → DENIED");
    console.wait(Duration::from_mins(3));
    console.shows("Deciding is disabled: time is up");
    console.shows("00:00 left");
    console.snapshot(expired());
    console.shows("EXPIRED at 14:05:21 → DENIED: no answer");
    console.shows("CLOSED");
    console.hides("over ");
    console.shows("dup of 4398");
    assert_eq!(console.type_text("more"), [], "nothing is typed any more");
    console.press(KeyCode::Esc);
    let mut again = ticket_delete();
    again.id = "c-130".parse().unwrap();
    again.deadline = console.now.plus(Duration::from_mins(5));
    console.snapshot(snapshot([again]));
    console.open();
    console.shows("dup of 4398");
}

#[test]
fn a_minimised_dialog_is_restored_unchanged() {
    let mut console = TestConsole::new(busy(), SIZES[0]);
    console.open_gate("c-121");
    answered(&mut console);
    assert_eq!(console.press(KeyCode::F(3)), []);
    console.shows("F3 back  HIGH  c-121  ticket.delete  ready, NOT SENT");
    console.shows("02:49 left");
    console.press(KeyCode::Home);
    console.press(KeyCode::Down);
    console.shows("> ");
    assert_eq!(console.press(KeyCode::F(3)), []);
    console.shows("DENIED  WAIT");
    assert_eq!(
        console.presses(KeyCode::Enter, 3),
        [],
        "keys are dropped again"
    );
    console.wait(DIALOG_ARMING_TIME);
    console.shows("seen 100 %");
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.shows("Review: what will be written");
}

#[test]
fn opening_another_request_keeps_the_minimised_dialog_as_a_draft() {
    let mut console = TestConsole::new(busy(), SIZES[0]);
    console.open_gate("c-121");
    console.type_text("half an ans");
    console.press(KeyCode::F(3));
    console.open_gate("c-118");
    console.hides("F3 back");
    console.press(KeyCode::Esc);
    console.open_gate("c-121");
    console.shows("half an ans");
    console.press(KeyCode::F(3));
    // Enter on the same request restores the dialog.
    console.press(KeyCode::Enter);
    console.shows("half an ans");
    console.wait(DIALOG_ARMING_TIME);
    console.press(KeyCode::F(3));
    console.snapshot(expired());
    console.shows("EXPIRED");
    console.press(KeyCode::F(3));
    console.shows("your input, not sent");
}

#[test]
fn a_dialog_cannot_be_minimised_while_its_decision_is_written() {
    let mut console = TestConsole::new(busy(), SIZES[0]);
    console.open_gate("c-121");
    writing(&mut console);
    assert_eq!(console.press(KeyCode::F(3)), []);
    console.shows("writing...");
}
