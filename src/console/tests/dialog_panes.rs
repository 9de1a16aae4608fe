//! The decision dialog next to the answers: the operator's editor, the session's history, and the request.

use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyCode};
use serde_json::json;

use super::fixture::{busy, events, gate, held, question, snapshot, ticket_delete, with_params};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::request::{ConsoleMessage, ConsoleRequest, EditKind, TrailPurpose};

const WIDE: (u16, u16) = (120, 36);
const SMALLEST: (u16, u16) = (60, 18);

#[test]
fn editing_an_answer_in_the_editor_decides_nothing() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    console.type_text("dup");
    let requests = console.ctrl('e');
    let [ConsoleRequest::Edit(edit)] = &requests[..] else {
        panic!("{requests:?}");
    };
    assert_eq!((edit.text.as_str(), edit.kind), ("dup", EditKind::Text));
    let gate = ticket_delete().id;
    let text = "dup of 4398\nreason: customer\u{202e} asked".to_owned();
    let kept = console.message(ConsoleMessage::Edited(gate.clone(), Ok(text)));
    assert!(
        matches!(kept[..], [ConsoleRequest::KeepDraft(_, Some(_))]),
        "{kept:?}"
    );
    console.shows("reason: customer asked");
    console.shows("1 character removed (hidden or too many)");
    console.shows("DENIED  WAIT");
    assert_eq!(
        console.presses(KeyCode::Tab, 5),
        [],
        "keys are dropped again"
    );
    console.wait(DIALOG_ARMING_TIME);
    console.shows("> Q1");
    let reason = "the editor `nope` ($EDITOR) was not found; the text is unchanged".to_owned();
    assert_eq!(
        console.message(ConsoleMessage::Edited(gate, Err(reason))),
        []
    );
    console.shows("! the editor `nope` ($EDITOR) was not found");
    console.shows("reason: customer asked");
    console.wait(DIALOG_ARMING_TIME);
    console.press(KeyCode::Tab);
    assert_eq!(console.ctrl('e'), []);
    console.shows("the editor opens only text answers");
}

#[test]
fn a_sensitive_answer_never_goes_to_an_editor() {
    let mut item = held("c-1", "x.write", RiskTier::Low, 1, 60);
    let secret = json!({"question_id": "pin", "question": "PIN", "sensitive": true});
    let secret = question(secret);
    item.gates = vec![gate("g", "action_pre", "it writes", vec![secret])];
    let mut console = TestConsole::new(snapshot([item]), WIDE);
    console.open();
    console.type_text("1234");
    assert_eq!(console.ctrl('e'), []);
    console.shows("a sensitive answer is never written to a file");
}

#[test]
fn the_session_history_is_shown_below_the_request() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Home);
    console.press(KeyCode::Down);
    let asked = console.press(KeyCode::Enter);
    let [ConsoleRequest::LoadTrail { gate, from, .. }] = &asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!((gate.as_str(), *from), ("c-121", 9));
    console.wait(DIALOG_ARMING_TIME);
    let trail = events("s-12", 9, 3);
    console.message(ConsoleMessage::Trail(
        ticket_delete().id,
        TrailPurpose::Context,
        Ok(trail),
    ));
    console.presses(KeyCode::PageDown, 5);
    console.shows("TRAIL");
    console.shows("11 action completed:");
}

#[test]
fn guidance_is_rendered_as_markdown_if_its_format_says_markdown() {
    let mut item = ticket_delete();
    let content = "## Before\n- read **all** of it\n- see [rules](https://acme.example/r)";
    let guidance = json!({ "content": content, "format": "markdown" });
    item.gates[0].guidance = serde_json::from_value(guidance).unwrap();
    let mut console = TestConsole::new(snapshot([item]), WIDE);
    console.open();
    console.shows("· read all of it");
    console.shows("· see rules <https://acme.example/r>");
    console.hides("## Before");
}

#[test]
fn the_search_result_is_shown_in_the_one_pane_layout() {
    let mut console = TestConsole::new(busy(), SMALLEST);
    console.open_gate("c-121");
    console.press(KeyCode::F(6));
    console.press(KeyCode::Char('n'));
    console.shows("nothing to search");
    console.press(KeyCode::Char('/'));
    console.type_text("zz");
    console.shows("/ zz");
    console.shows("`zz` is not in");
    console.presses(KeyCode::Backspace, 2);
    console.type_text("CASCADE");
    console.hides("is not in");
    console.press(KeyCode::Esc);
    console.shows("/ CASCADE");
    assert_eq!(console.app.layers.len(), 1, "Esc ends the search alone");
}

#[test]
fn a_large_request_is_searchable_and_jumping_does_not_count_as_reading() {
    let rows: Vec<String> = (0..200_000)
        .map(|n| format!("row {n} of the export, padded"))
        .collect();
    let item = with_params(held("c-1", "x.write", RiskTier::Low, 1, 60), json!(rows));
    let mut console = TestConsole::new(snapshot([item]), WIDE);
    console.open();
    console.press(KeyCode::Left);
    console.press(KeyCode::F(6));
    console.press(KeyCode::Char('/'));
    console.type_text("ROW 150000 ");
    console.shows("\"row 150000 of the export");
    console.press(KeyCode::Enter);
    console.shows("seen 0 %");
    console.press(KeyCode::Char('n'));
    console.shows("search wrapped around");
    console.press(KeyCode::End);
    console.shows("-- end of request --");
    console.press(KeyCode::F(6));
    console.presses(KeyCode::Tab, 3);
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.shows("cannot pass: request not fully seen");
    console.press(KeyCode::F(6));
    console.press(KeyCode::Char('/'));
    console.event(&Event::Paste("nowhere\r\n".to_owned()));
    console.shows("is not in the request");
    // The cost of a frame depends on the visible rows, not on the length of the request.
    let frames = 200;
    let began = std::time::Instant::now();
    for _ in 0..frames {
        console.press(KeyCode::PageDown);
    }
    assert!(
        began.elapsed() < Duration::from_millis(50) * frames,
        "{:?}",
        began.elapsed()
    );
}
