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
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    stage.type_text("dup");
    let requests = stage.ctrl('e');
    let [ConsoleRequest::Edit(edit)] = &requests[..] else {
        panic!("{requests:?}");
    };
    assert_eq!((edit.text.as_str(), edit.kind), ("dup", EditKind::Text));
    let gate = ticket_delete().id;
    let text = "dup of 4398\nreason: customer\u{202e} asked".to_owned();
    let kept = stage.message(ConsoleMessage::Edited(gate.clone(), Ok(text)));
    assert!(
        matches!(kept[..], [ConsoleRequest::KeepDraft(_, Some(_))]),
        "{kept:?}"
    );
    stage.shows("reason: customer asked");
    stage.shows("1 character removed (hidden or too many)");
    stage.shows("DENIED  WAIT");
    assert_eq!(stage.presses(KeyCode::Tab, 5), [], "keys are dropped again");
    stage.wait(DIALOG_ARMING_TIME);
    stage.shows("> Q1");
    let why = "the editor `nope` ($EDITOR) was not found; the text is unchanged".to_owned();
    assert_eq!(stage.message(ConsoleMessage::Edited(gate, Err(why))), []);
    stage.shows("! the editor `nope` ($EDITOR) was not found");
    stage.shows("reason: customer asked");
    stage.wait(DIALOG_ARMING_TIME);
    stage.press(KeyCode::Tab);
    assert_eq!(stage.ctrl('e'), []);
    stage.shows("the editor opens only text answers");
}

#[test]
fn a_sensitive_answer_never_goes_to_an_editor() {
    let mut item = held("c-1", "x.write", RiskTier::Low, 1, 60);
    let secret = json!({"question_id": "pin", "question": "PIN", "sensitive": true});
    let secret = question(secret);
    item.gates = vec![gate("g", "action_pre", "it writes", vec![secret])];
    let mut stage = TestConsole::new(snapshot([item]), WIDE);
    stage.open();
    stage.type_text("1234");
    assert_eq!(stage.ctrl('e'), []);
    stage.shows("a sensitive answer is never written to a file");
}

#[test]
fn the_session_history_is_shown_below_the_request() {
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.press(KeyCode::Home);
    stage.press(KeyCode::Down);
    let asked = stage.press(KeyCode::Enter);
    let [ConsoleRequest::LoadTrail { gate, from, .. }] = &asked[..] else {
        panic!("{asked:?}");
    };
    assert_eq!((gate.as_str(), *from), ("c-121", 9));
    stage.wait(DIALOG_ARMING_TIME);
    let trail = events("s-12", 9, 3);
    stage.message(ConsoleMessage::Trail(
        ticket_delete().id,
        TrailPurpose::Context,
        Ok(trail),
    ));
    stage.presses(KeyCode::PageDown, 5);
    stage.shows("TRAIL");
    stage.shows("11 action completed:");
}

#[test]
fn guidance_is_rendered_as_markdown_if_its_format_says_markdown() {
    let mut item = ticket_delete();
    let content = "## Before\n- read **all** of it\n- see [rules](https://acme.example/r)";
    let guidance = json!({ "content": content, "format": "markdown" });
    item.gates[0].guidance = serde_json::from_value(guidance).unwrap();
    let mut stage = TestConsole::new(snapshot([item]), WIDE);
    stage.open();
    stage.shows("· read all of it");
    stage.shows("· see rules <https://acme.example/r>");
    stage.hides("## Before");
}

#[test]
fn the_search_result_is_shown_in_the_one_pane_layout() {
    let mut stage = TestConsole::new(busy(), SMALLEST);
    stage.open_gate("c-121");
    stage.press(KeyCode::F(6));
    stage.press(KeyCode::Char('n'));
    stage.shows("nothing to search");
    stage.press(KeyCode::Char('/'));
    stage.type_text("zz");
    stage.shows("/ zz");
    stage.shows("`zz` is not in");
    stage.presses(KeyCode::Backspace, 2);
    stage.type_text("CASCADE");
    stage.hides("is not in");
    stage.press(KeyCode::Esc);
    stage.shows("/ CASCADE");
    assert_eq!(stage.app.layers.len(), 1, "Esc ends the search alone");
}

#[test]
fn a_large_request_is_searchable_and_jumping_does_not_count_as_reading() {
    let rows: Vec<String> = (0..200_000)
        .map(|n| format!("row {n} of the export, padded"))
        .collect();
    let item = with_params(held("c-1", "x.write", RiskTier::Low, 1, 60), json!(rows));
    let mut stage = TestConsole::new(snapshot([item]), WIDE);
    stage.open();
    stage.press(KeyCode::Left);
    stage.press(KeyCode::F(6));
    stage.press(KeyCode::Char('/'));
    stage.type_text("ROW 150000 ");
    stage.shows("\"row 150000 of the export");
    stage.press(KeyCode::Enter);
    stage.shows("seen 0 %");
    stage.press(KeyCode::Char('n'));
    stage.shows("search wrapped around");
    stage.press(KeyCode::End);
    stage.shows("-- end of request --");
    stage.press(KeyCode::F(6));
    stage.presses(KeyCode::Tab, 3);
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
    stage.shows("cannot pass: request not fully seen");
    stage.press(KeyCode::F(6));
    stage.press(KeyCode::Char('/'));
    stage.event(&Event::Paste("nowhere\r\n".to_owned()));
    stage.shows("is not in the request");
    // The cost of a frame depends on the visible rows, not on the length of the request.
    let frames = 200;
    let began = std::time::Instant::now();
    for _ in 0..frames {
        stage.press(KeyCode::PageDown);
    }
    assert!(
        began.elapsed() < Duration::from_millis(50) * frames,
        "{:?}",
        began.elapsed()
    );
}
