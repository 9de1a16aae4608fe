//! A request of many megabytes: every key is answered at once, and nothing counts as read before it
//! could be.

use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::fixture::{held, snapshot, ticket_delete, with_params};
use super::stage::{Stage, decisions};
use crate::atlas::document::RiskTier;
use crate::base::limits::ARMING;
use crate::console::dialog::gate::LayOut;
use crate::console::request::{Message, Request};
use crate::engine::held::Held;

const WIDE: (u16, u16) = (120, 36);
const UNREADY: &str = "request still being laid out";

fn long() -> Held {
    let lines: Vec<String> = (0..3_000).map(|at| format!("line {at} of many")).collect();
    let low = held("c-7", "file.write", RiskTier::Low, 10, 500);
    with_params(
        low,
        json!({ "lines": lines, "tail": "the very \u{202e}end" }),
    )
}

/// What is to be laid out, among requests.
fn wanted(requests: Vec<Request>) -> Vec<LayOut> {
    let lay_out = |request| match request {
        Request::LayOut(wanted) => Some(wanted),
        _ => None,
    };
    requests.into_iter().filter_map(lay_out).collect()
}

/// The request, opened, with all that is asked beside the screen.
fn opened(stage: &mut Stage) -> LayOut {
    let mut asked = wanted(stage.press(KeyCode::Enter));
    stage.wait(ARMING);
    assert_eq!(asked.len(), 1, "it is laid out once, and not here");
    asked.remove(0)
}

/// Answers the one question, and comes to Pass.
fn answer(stage: &mut Stage) {
    stage.press(KeyCode::Left);
    stage.presses(KeyCode::Tab, 3);
}

#[test]
fn keys_are_answered_before_a_long_request_is_laid_out_and_nothing_passes_meanwhile() {
    let mut stage = Stage::new(snapshot([long()]), WIDE);
    let asked = opened(&mut stage);
    stage.shows("it is being laid out");
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

    assert_eq!(wanted(stage.message(Message::LaidOut(asked.run()))), []);
    stage.hides("it is being laid out");
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
fn another_width_is_laid_out_anew_and_what_was_read_stays_read() {
    let mut stage = Stage::new(snapshot([long()]), WIDE);
    let first = opened(&mut stage);
    stage.message(Message::LaidOut(first.clone().run()));
    stage.presses(KeyCode::PageDown, 120);
    answer(&mut stage);
    stage.shows("seen 100 %");

    let asked = wanted(stage.resize(100, 36));
    assert_eq!(asked.len(), 1);
    stage.shows("seen 0 %");
    stage.shows(&format!("Pass is disabled: {UNREADY}"));
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
    // What comes back for the width before would be cut at the edge.
    stage.message(Message::LaidOut(first.run()));
    stage.shows("it is being laid out");
    stage.shows(UNREADY);
    for lay_out in asked {
        stage.message(Message::LaidOut(lay_out.run()));
    }
    stage.shows("seen 100 %");
    stage.hides("is disabled");
}

#[test]
fn rows_of_the_request_before_are_no_rows_of_the_one_now() {
    let mut stage = Stage::new(snapshot([long()]), WIDE);
    let before = opened(&mut stage);
    let now = with_params(long(), json!({ "lines": ["x".repeat(300_000)] }));
    let asked = wanted(stage.snapshot(snapshot([now])));
    stage.shows("too long to compare line by line");
    stage.wait(ARMING);
    let asked = asked.into_iter().chain(wanted(stage.press(KeyCode::Enter)));
    let asked: Vec<LayOut> = asked.collect();
    stage.wait(ARMING);
    stage.message(Message::LaidOut(before.run()));
    stage.shows("it is being laid out");
    for lay_out in asked {
        stage.message(Message::LaidOut(lay_out.run()));
    }
    stage.shows("xxxxxxxx");
}

#[test]
fn a_short_request_is_laid_out_at_once() {
    let mut stage = Stage::new(snapshot([ticket_delete()]), WIDE);
    assert_eq!(wanted(stage.press(KeyCode::Enter)), []);
    stage.shows("\"cascade\": true");
}
