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
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    stage.type_text("understood");
    stage.presses(KeyCode::Tab, 3);
    assert_eq!(decisions(stage.press(KeyCode::Enter)).len(), 1);
    stage
}

fn reply(stage: &mut TestConsole, reply: OperatorReply) -> Vec<ConsoleRequest> {
    let gate = onboarding().id;
    stage.message(ConsoleMessage::Decided(gate, reply))
}

#[test]
fn an_accepted_decision_closes_the_dialog_with_a_message() {
    let mut stage = writing();
    let done = decided("c-119", "14:02:32", HeldOutcome::Passed, Some("op-1@ops"));
    reply(&mut stage, OperatorReply::Decided(done));
    assert_eq!(stage.app.layers.len(), 0);
    stage.shows("c-119 PASSED and recorded 14:02:32");
}

#[test]
fn invalid() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    fill(&mut stage);
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::PageDown);
    stage.type_text(&ticket_delete().request_hash.short(4));
    stage.presses(KeyCode::Tab, 2);
    stage.press(KeyCode::Enter);
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
    stage.message(ConsoleMessage::Decided(
        ticket_delete().id,
        OperatorReply::Invalid(invalid),
    ));
    stage.shows("attempt 2");
    assert_snapshot!(stage.picture());
}

#[test]
fn a_refusal_is_shown_and_the_answers_stay() {
    let mut stage = writing();
    let why = DecisionRefusal::Unavailable("disk full".to_owned());
    reply(&mut stage, OperatorReply::Refused(why));
    stage.shows("not recorded, so without effect: disk full");
    stage.shows("understood");
    let mut stage = writing();
    reply(
        &mut stage,
        OperatorReply::Refused(DecisionRefusal::AtlasChanged),
    );
    stage.shows("you can only deny it");
    stage.press(KeyCode::Tab);
    stage.shows("Pass is disabled: Atlas changed");
}

#[test]
fn a_late_decision_names_the_operator_who_decided_first() {
    let mut stage = writing();
    let first = decided("c-119", "14:02:30", HeldOutcome::Denied, Some("o2@ops"));
    reply(
        &mut stage,
        OperatorReply::Refused(DecisionRefusal::AlreadySettled(Box::new(first))),
    );
    stage.shows("DENIED by o2@ops at 14:02:30");
    stage.hides("[ Pass ]");
}

#[test]
fn settled_elsewhere() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    fill(&mut stage);
    let mut next = busy();
    next.held.retain(|held| held.id.as_str() != "c-121");
    let gone = decided("c-121", "14:05:21", HeldOutcome::Expired, None);
    next.decided.insert(0, Arc::new(gone));
    stage.snapshot(next);
    stage.hides("[ Pass ]");
    assert_eq!(stage.presses(KeyCode::Enter, 3), []);
    assert_snapshot!(stage.picture());
    stage.press(KeyCode::Esc);
    assert_eq!(stage.app.layers.len(), 0);
}

#[test]
fn nothing_is_decided_after_the_deadline() {
    let mut stage = TestConsole::new(snapshot([onboarding()]), WIDE);
    stage.open();
    stage.type_text("understood");
    stage.presses(KeyCode::Tab, 3);
    stage.wait(Duration::from_mins(10));
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.shows("cannot pass: time is up");
}

#[test]
fn ctrl_c_goes_back_and_twice_quits() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open();
    assert_eq!(stage.ctrl('c'), []);
    assert_eq!(stage.app.layers.len(), 0);
    stage.wait(Duration::from_secs(2));
    assert_eq!(stage.ctrl('c'), []);
    assert_eq!(stage.ctrl('c'), [ConsoleRequest::Quit]);
}
