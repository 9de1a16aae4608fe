//! Answers that break rules, in the dialog and in line mode: each question defines the consequence.

use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::fixture::{decided, snapshot, ticket_delete};
use super::inputs::asking;
use super::linear::LineConsoleTester;
use super::live_console::WIDE;
use super::test_console::{TestConsole, decisions};
use crate::console::linear::line_console::LineEffect;
use crate::engine::command::{
    AnswerProblem, Confirmation, DecisionRequest, HeldOutcome, InvalidAnswers, OperatorReply,
    Ruling,
};
use crate::engine::held::Held;

fn question(on_invalid: &str, more: &Value) -> Value {
    let mut question = json!({
        "question_id": "terms", "question": "Do you understand?",
        "response_type": "acknowledgment", "on_invalid": on_invalid,
    });
    let fields = question.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    question
}

/// The reply to one more invalid answer of a request.
fn again(held: &Held) -> OperatorReply {
    let mut held = held.clone();
    held.invalid_attempts += 1;
    OperatorReply::Invalid(InvalidAnswers {
        held: Box::new(held),
        problems: vec![AnswerProblem {
            gate: 0,
            question: "terms".to_owned(),
            rules: vec!["type `understood`".to_owned()],
        }],
    })
}

#[track_caller]
fn sent(effects: &[LineEffect]) -> DecisionRequest {
    match effects {
        [LineEffect::Decide(decide)] => (**decide).clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_broken(decide: &DecisionRequest, answer: &str) {
    let Ruling::Invalid { answers } = &decide.ruling else {
        panic!("{:?}", decide.ruling)
    };
    assert_eq!(answers[0].get("terms"), Some(&json!(answer)));
}

// covers B11
#[test]
fn an_invalid_dialog_answer_is_sent_to_be_counted_or_to_refuse_the_request() {
    for (on_invalid, output) in [
        ("retry", "Pass is disabled: 1 answer invalid"),
        ("block", "Enter denies the request"),
    ] {
        let held = asking([question(on_invalid, &json!({}))]);
        let mut console = TestConsole::new(snapshot([held.clone()]), WIDE);
        console.open();
        console.type_text("not understood");
        console.shows(output);
        console.presses(KeyCode::PageDown, 3);
        console.presses(KeyCode::Tab, 3);
        let mut sent = decisions(console.press(KeyCode::Enter));
        assert_eq!(sent.len(), 1, "{}", console.text());
        assert_broken(&sent.remove(0), "not understood");
        let reply = match on_invalid {
            "retry" => again(&held),
            _ => OperatorReply::Decided(decided(
                held.id.as_str(),
                "14:02:32",
                HeldOutcome::Denied,
                None,
            )),
        };
        console.message(crate::console::request::ConsoleMessage::Decided(
            held.id.clone(),
            reply,
        ));
        match on_invalid {
            "retry" => console.shows("answers rejected (attempt 1); still held"),
            _ => console.shows("DENIED"),
        }
    }
}

// covers B11
#[test]
fn a_blank_answer_is_never_sent() {
    let held = asking([question("block", &json!({}))]);
    let mut console = TestConsole::new(snapshot([held]), WIDE);
    console.open();
    console.presses(KeyCode::PageDown, 3);
    console.presses(KeyCode::Tab, 3);
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.shows("1 answer missing");
}

// covers B11
#[test]
fn a_tolerated_invalid_answer_shows_a_warning_and_is_marked_in_the_review() {
    let held = asking([question("warn_and_continue", &json!({}))]);
    let mut console = TestConsole::new(snapshot([held]), WIDE);
    console.open();
    console.type_text("understod");
    console.presses(KeyCode::PageDown, 3);
    console.presses(KeyCode::Tab, 3);
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.shows("`terms` is invalid but accepted: type `understood`");
    console.shows("invalid");
}

// covers B11
#[test]
fn the_line_console_handles_an_invalid_answer_as_its_question_defines() {
    // Retry: the answer is counted, and the question is asked again.
    let held = asking([question("retry", &json!({}))]);
    let mut listener = LineConsoleTester::new(snapshot([held.clone()]));
    let pass = format!("pass {}", held.id);
    let (output, effects) = listener.types(&[&pass, "not understood"]);
    assert!(output.contains("Not met: type `understood`"), "{output}");
    assert_broken(&sent(&effects), "not understood");
    listener
        .line_console
        .on_reply(&held.id, &again(&held), listener.now);
    let output = listener.line_console.take_output();
    assert!(output.contains("Recorded as invalid answer 1."), "{output}");
    assert!(output.contains("Question 1 of 1"), "{output}");
    // Block: the request is refused at once.
    let held = asking([question("block", &json!({}))]);
    let mut listener = LineConsoleTester::new(snapshot([held.clone()]));
    let (_, effects) = listener.types(&[&pass, "not understood"]);
    assert_broken(&sent(&effects), "not understood");
    let denied = decided(held.id.as_str(), "14:02:32", HeldOutcome::Denied, None);
    listener
        .line_console
        .on_reply(&held.id, &OperatorReply::Decided(denied), listener.now);
    assert!(listener.line_console.take_output().contains("Recorded."));
    // Continue: the answer is accepted, with or without a warning, and the review marks it as invalid.
    for (on_invalid, warned) in [("warn_and_continue", true), ("log_and_continue", false)] {
        let held = asking([question(on_invalid, &json!({}))]);
        let mut listener = LineConsoleTester::new(snapshot([held]));
        let (output, effects) = listener.types(&[&pass, "understod"]);
        assert_eq!(effects, [], "{output}");
        assert_eq!(
            output.contains("Warning: accepted, but"),
            warned,
            "{output}"
        );
        assert!(output.contains("validation: \"invalid\""), "{output}");
        assert!(output.contains("understod"), "{output}");
    }
}

// covers B10, B11
#[test]
fn the_review_gives_no_verdict_on_an_answer_that_an_extension_validates() {
    let held = asking([json!({
        "question_id": "ticket", "question": "Which ticket?", "response_type": "text",
        "validation": {"custom_validator": "ticket-desk"},
    })]);
    let mut listener = LineConsoleTester::new(snapshot([held.clone()]));
    let (output, _) = listener.types(&[&format!("pass {}", held.id), "T-1"]);
    assert!(
        output.contains("known after `ticket-desk` checks it"),
        "{output}"
    );
    assert!(!output.contains("\"valid\""), "{output}");
}

// covers B19
#[test]
fn a_wrong_confirmation_in_the_dialog_is_sent_to_be_recorded_and_passes_nothing() {
    let mut console = TestConsole::new(super::fixture::busy(), WIDE);
    console.open_gate("c-121");
    super::gate::fill(&mut console);
    console.press(KeyCode::Enter);
    console.press(KeyCode::PageDown);
    console.type_text("zzzz");
    console.presses(KeyCode::Tab, 2);
    let sent = decisions(console.press(KeyCode::Enter));
    let wrong = Ruling::WrongConfirmation {
        wanted: Confirmation::RequestHash,
        typed_text: "zzzz".to_owned(),
    };
    assert_eq!(sent.len(), 1, "{}", console.text());
    assert_eq!(sent[0].ruling, wrong);
    console.message(crate::console::request::ConsoleMessage::Decided(
        ticket_delete().id,
        OperatorReply::Acted,
    ));
    console.shows("type the hash first");
}

// covers B2
#[test]
fn the_line_console_reports_a_changed_atlas_before_it_asks_a_question() {
    let held = ticket_delete();
    let mut picture = snapshot([held.clone()]);
    picture.load_info.hash = Some(crate::base::digest::Digest::of("another Atlas"));
    let mut listener = LineConsoleTester::new(picture);
    let (output, _) = listener.types(&[&format!("pass {}", held.id)]);
    assert!(output.contains("The Atlas changed after"), "{output}");
    assert!(!output.contains("Question 1"), "{output}");
}
