//! Held input: the operator reads the text that the decision is about.

use serde_json::json;

use super::fixture::{onboarding, snapshot};
use super::linear::LineConsoleTester;
use super::test_console::TestConsole;
use crate::engine::held::{Held, HeldSubject, HeldText, SessionEvent};

/// An input with this text that waits at a gate.
fn input(text: &str) -> Held {
    let mut held = onboarding();
    held.subject = HeldSubject::Moment(SessionEvent {
        kind: "keyword_match".to_owned(),
        label: "input".to_owned(),
        data: json!({"input_hash": "70810b"}),
        event: None,
        text: Some(HeldText {
            text: text.to_owned(),
            size_bytes: text.len() as u64 + 7,
        }),
        reached_agent: false,
    });
    held
}

const TEXT: &str = "refund order 7\nat \u{202e}once\u{1b}[2J\nEnd of the request.";

#[test]
fn the_dialog_shows_the_text_of_held_input_and_obeys_none_of_it() {
    let held = input(TEXT);
    let mut console = TestConsole::new(snapshot([held.clone()]), (120, 36));
    console.shows("to continue: input: refund order 7");
    console.open_gate(held.id.as_str());
    console.shows("refund order 7");
    console.shows("at \\u{202e}once");
    console.shows("! 7 more bytes are not shown");
    assert!(!console.text().contains(['\u{202e}', '\u{1b}']));
}

#[test]
fn the_line_console_prints_the_text_of_held_input_and_obeys_none_of_it() {
    let held = input(TEXT);
    let mut listener = LineConsoleTester::new(snapshot([held.clone()]));
    let shown = format!("show {}", held.id);
    let (output, _) = listener.types(&[&shown]);
    assert!(output.contains("| refund order 7\n"), "{output}");
    // A line of the text cannot be mistaken for a line of the console.
    assert!(output.contains("\n| End of the request.\n"), "{output}");
    assert_eq!(
        output.matches("\nEnd of the request.").count(),
        1,
        "{output}"
    );
    assert!(output.contains("! 7 more bytes are not shown"), "{output}");
    assert!(output.contains("hidden characters written out"), "{output}");
    assert!(!output.contains(['\u{202e}', '\u{1b}']), "{output}");
}
