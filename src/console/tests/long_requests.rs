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
fn opened(stage: &mut TestConsole) -> LayoutJob {
    let mut asked = wanted(stage.press(KeyCode::Enter));
    stage.wait(DIALOG_ARMING_TIME);
    assert_eq!(asked.len(), 1, "it is laid out once, and not here");
    asked.remove(0)
}

/// Answers the only question and moves the focus to Pass.
fn answer(stage: &mut TestConsole) {
    stage.press(KeyCode::Left);
    stage.presses(KeyCode::Tab, 3);
}

#[test]
fn keys_work_during_the_layout_of_a_long_request_and_nothing_passes() {
    let mut stage = TestConsole::new(snapshot([long()]), WIDE);
    let asked = opened(&mut stage);
    stage.shows("This long request");
    stage.shows("seen 0 %");
    stage.presses(KeyCode::PageDown, 3);
    stage.press(KeyCode::F(6));
    stage.press(KeyCode::End);
    stage.press(KeyCode::Char('/'));
    stage.type_text("very");
    stage.shows(UNREADY);
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::F(6));
    answer(&mut stage);
    stage.shows(&format!("Pass is disabled: {UNREADY}"));
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);

    assert_eq!(
        wanted(stage.message(ConsoleMessage::LaidOut(asked.run()))),
        []
    );
    stage.hides("This long request");
    stage.shows("file.write");
    stage.shows("seen 0 %");
    stage.shows("Pass is disabled: request not fully seen (PgDn)");
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);

    stage.press(KeyCode::F(6));
    stage.press(KeyCode::Char('n'));
    stage.shows("the very \\u{202e}end");
    stage.press(KeyCode::F(6));
    stage.shows("Pass is disabled: request not fully seen (PgDn)");
    stage.press(KeyCode::F(6));
    stage.press(KeyCode::Home);
    stage.presses(KeyCode::PageDown, 120);
    stage.press(KeyCode::F(6));
    stage.shows("seen 100 %");
    stage.hides("is disabled");
    assert_eq!(decisions(stage.press(KeyCode::Enter)).len(), 1);
}

#[test]
fn a_new_width_repeats_the_layout_and_read_rows_stay_read() {
    let mut stage = TestConsole::new(snapshot([long()]), WIDE);
    let first = opened(&mut stage);
    stage.message(ConsoleMessage::LaidOut(first.clone().run()));
    stage.presses(KeyCode::PageDown, 120);
    answer(&mut stage);
    stage.shows("seen 100 %");

    let asked = wanted(stage.resize(100, 36));
    assert_eq!(asked.len(), 1);
    stage.shows("seen 0 %");
    stage.shows(&format!("Pass is disabled: {UNREADY}"));
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
    // The result for the previous width would be cut at the edge.
    stage.message(ConsoleMessage::LaidOut(first.run()));
    stage.shows("This long request");
    stage.shows(UNREADY);
    for lay_out in asked {
        stage.message(ConsoleMessage::LaidOut(lay_out.run()));
    }
    stage.shows("seen 100 %");
    stage.hides("is disabled");
}

#[test]
fn a_layout_of_the_previous_request_is_dropped() {
    let mut stage = TestConsole::new(snapshot([long()]), WIDE);
    let before = opened(&mut stage);
    let now = with_params(long(), json!({ "lines": ["x".repeat(300_000)] }));
    let asked = wanted(stage.snapshot(snapshot([now])));
    stage.shows("too long to compare by line");
    stage.wait(DIALOG_ARMING_TIME);
    let asked = asked.into_iter().chain(wanted(stage.press(KeyCode::Enter)));
    let asked: Vec<LayoutJob> = asked.collect();
    stage.wait(DIALOG_ARMING_TIME);
    stage.message(ConsoleMessage::LaidOut(before.run()));
    stage.shows("This long request");
    for lay_out in asked {
        stage.message(ConsoleMessage::LaidOut(lay_out.run()));
    }
    stage.shows("xxxxxxxx");
}

#[test]
fn a_short_request_is_laid_out_at_once() {
    let mut stage = TestConsole::new(snapshot([ticket_delete()]), WIDE);
    assert_eq!(wanted(stage.press(KeyCode::Enter)), []);
    stage.shows("\"cascade\": true");
}
