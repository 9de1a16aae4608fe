//! Ends of the decision dialog: replies of the runtime, and changes by other processes.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, decided, onboarding, snapshot, ticket_delete};
use super::gate::fill;
use super::test_console::{TestConsole, decisions};
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::engine::command::{
    AnswerProblem, DecisionRefusal, HeldOutcome, InvalidAnswers, OperatorReply,
};

const WIDE: (u16, u16) = (120, 36);

/// A stage on which the decision about the low request is being written.
fn writing() -> TestConsole {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
    console.type_text("understood");
    console.presses(KeyCode::Tab, 3);
    assert_eq!(decisions(console.press(KeyCode::Enter)).len(), 1);
    console
}

fn reply(console: &mut TestConsole, reply: OperatorReply) -> Vec<ConsoleRequest> {
    let gate = onboarding().id;
    console.message(ConsoleMessage::Decided(gate, reply))
}

#[test]
fn an_accepted_decision_closes_the_dialog_with_a_message() {
    let mut console = writing();
    let done = decided("c-119", "14:02:32", HeldOutcome::Passed, Some("op-1@ops"));
    reply(&mut console, OperatorReply::Decided(done));
    assert_eq!(console.app.layers.len(), 0);
    console.shows("c-119 PASSED and recorded 14:02:32");
}

#[test]
fn invalid() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    fill(&mut console);
    console.press(KeyCode::Enter);
    console.press(KeyCode::PageDown);
    console.type_text(&ticket_delete().request_hash.short(4));
    console.presses(KeyCode::Tab, 2);
    console.press(KeyCode::Enter);
    let mut item = ticket_delete();
    item.invalid_attempts = 1;
    let invalid = InvalidAnswers {
        held: Box::new(item),
        problems: vec![AnswerProblem {
            gate: 0,
            question: "justify-risk".to_owned(),
            rules: vec!["must end with a period".to_owned()],
        }],
    };
    console.message(ConsoleMessage::Decided(
        ticket_delete().id,
        OperatorReply::Invalid(invalid),
    ));
    console.shows("attempt 2");
    assert_snapshot!(console.picture());
}

#[test]
fn a_refusal_is_shown_and_the_answers_stay() {
    let mut console = writing();
    let reason = DecisionRefusal::Unavailable("disk full".to_owned());
    reply(&mut console, OperatorReply::Refused(reason));
    console.shows("not recorded, so without effect: disk full");
    console.shows("understood");
    let mut console = writing();
    reply(
        &mut console,
        OperatorReply::Refused(DecisionRefusal::AtlasChanged),
    );
    console.shows("you can only deny it");
    console.press(KeyCode::Tab);
    console.shows("Pass is disabled: Atlas changed");
}

#[test]
fn a_late_decision_names_the_operator_who_decided_first() {
    let mut console = writing();
    let first = decided("c-119", "14:02:30", HeldOutcome::Denied, Some("o2@ops"));
    reply(
        &mut console,
        OperatorReply::Refused(DecisionRefusal::AlreadySettled(Box::new(first))),
    );
    console.shows("DENIED by o2@ops at 14:02:30");
    console.hides("[ Pass ]");
}

#[test]
fn settled_elsewhere() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    fill(&mut console);
    let mut next = busy();
    next.held.retain(|held| held.id.as_str() != "c-121");
    let gone = decided("c-121", "14:05:21", HeldOutcome::Expired, None);
    next.decided.insert(0, Arc::new(gone));
    console.snapshot(next);
    console.hides("[ Pass ]");
    assert_eq!(console.presses(KeyCode::Enter, 3), []);
    assert_snapshot!(console.picture());
    console.press(KeyCode::Esc);
    assert_eq!(console.app.layers.len(), 0);
}

#[test]
fn nothing_is_decided_after_the_deadline() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.open();
    console.type_text("understood");
    console.presses(KeyCode::Tab, 3);
    console.wait(Duration::from_mins(10));
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("cannot pass: time is up");
}

#[test]
fn ctrl_c_goes_back_and_twice_quits() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open();
    assert_eq!(console.ctrl('c'), []);
    assert_eq!(console.app.layers.len(), 0);
    console.wait(Duration::from_secs(2));
    assert_eq!(console.ctrl('c'), []);
    assert_eq!(console.ctrl('c'), [ConsoleRequest::Quit]);
}
