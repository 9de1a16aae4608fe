//! A request of many megabytes: the console answers every key at once, and no row counts as read before it
//! was shown.

use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::fixture::{held, snapshot, ticket_delete, with_params};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::dialog::gate::LayoutJob;
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::engine::held::Held;

const WIDE: (u16, u16) = (120, 36);
const UNREADY: &str = "request is still loading";

fn long() -> Held {
    let lines: Vec<String> = (0..3_000).map(|at| format!("line {at} of many")).collect();
    let low = held("c-7", "file.write", RiskTier::Low, 10, 500);
    with_params(
        low,
        json!({ "lines": lines, "tail": "the very \u{202e}end" }),
    )
}

/// Returns the layout jobs among requests.
fn wanted(requests: Vec<ConsoleRequest>) -> Vec<LayoutJob> {
    let lay_out = |request| match request {
        ConsoleRequest::LayOut(wanted) => Some(wanted),
        _ => None,
    };
    requests.into_iter().filter_map(lay_out).collect()
}

/// Opens the request and returns its layout job.
fn opened(console: &mut TestConsole) -> LayoutJob {
    let mut asked = wanted(console.press(KeyCode::Enter));
    console.wait(DIALOG_ARMING_TIME);
    assert_eq!(asked.len(), 1, "it is laid out once, and not here");
    asked.remove(0)
}

/// Answers the only question and moves the focus to Pass.
fn answer(console: &mut TestConsole) {
    console.press(KeyCode::Left);
    console.presses(KeyCode::Tab, 3);
}

#[test]
fn keys_work_during_the_layout_of_a_long_request_and_nothing_passes() {
    let mut console = TestConsole::new(snapshot([long()]), WIDE);
    let asked = opened(&mut console);
    console.shows("This long request");
    console.shows("seen 0 %");
    console.presses(KeyCode::PageDown, 3);
    console.press(KeyCode::F(6));
    console.press(KeyCode::End);
    console.press(KeyCode::Char('/'));
    console.type_text("very");
    console.shows(UNREADY);
    console.press(KeyCode::Enter);
    console.press(KeyCode::F(6));
    answer(&mut console);
    console.shows(&format!("Pass is disabled: {UNREADY}"));
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);

    assert_eq!(
        wanted(console.message(ConsoleMessage::LaidOut(asked.run()))),
        []
    );
    console.hides("This long request");
    console.shows("file.write");
    console.shows("seen 0 %");
    console.shows("Pass is disabled: request not fully seen (PgDn)");
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);

    console.press(KeyCode::F(6));
    console.press(KeyCode::Char('n'));
    console.shows("the very \\u{202e}end");
    console.press(KeyCode::F(6));
    console.shows("Pass is disabled: request not fully seen (PgDn)");
    console.press(KeyCode::F(6));
    console.press(KeyCode::Home);
    console.presses(KeyCode::PageDown, 120);
    console.press(KeyCode::F(6));
    console.shows("seen 100 %");
    console.hides("is disabled");
    assert_eq!(decisions(console.press(KeyCode::Enter)).len(), 1);
}

#[test]
fn a_new_width_repeats_the_layout_and_read_rows_stay_read() {
    let mut console = TestConsole::new(snapshot([long()]), WIDE);
    let first = opened(&mut console);
    console.message(ConsoleMessage::LaidOut(first.clone().run()));
    console.presses(KeyCode::PageDown, 120);
    answer(&mut console);
    console.shows("seen 100 %");

    let asked = wanted(console.resize(100, 36));
    assert_eq!(asked.len(), 1);
    console.shows("seen 0 %");
    console.shows(&format!("Pass is disabled: {UNREADY}"));
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    // The result for the previous width would be cut at the edge.
    console.message(ConsoleMessage::LaidOut(first.run()));
    console.shows("This long request");
    console.shows(UNREADY);
    for lay_out in asked {
        console.message(ConsoleMessage::LaidOut(lay_out.run()));
    }
    console.shows("seen 100 %");
    console.hides("is disabled");
}

#[test]
fn a_layout_of_the_previous_request_is_dropped() {
    let mut console = TestConsole::new(snapshot([long()]), WIDE);
    let before = opened(&mut console);
    let now = with_params(long(), json!({ "lines": ["x".repeat(300_000)] }));
    let asked = wanted(console.snapshot(snapshot([now])));
    console.shows("too long to compare by line");
    console.wait(DIALOG_ARMING_TIME);
    let asked = asked
        .into_iter()
        .chain(wanted(console.press(KeyCode::Enter)));
    let asked: Vec<LayoutJob> = asked.collect();
    console.wait(DIALOG_ARMING_TIME);
    console.message(ConsoleMessage::LaidOut(before.run()));
    console.shows("This long request");
    for lay_out in asked {
        console.message(ConsoleMessage::LaidOut(lay_out.run()));
    }
    console.shows("xxxxxxxx");
}

#[test]
fn a_short_request_is_laid_out_at_once() {
    let mut console = TestConsole::new(snapshot([ticket_delete()]), WIDE);
    assert_eq!(wanted(console.press(KeyCode::Enter)), []);
    console.shows("\"cascade\": true");
}
