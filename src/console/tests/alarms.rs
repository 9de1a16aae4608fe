//! Alarms that another process raises while the console runs.

use std::sync::Arc;

use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, now};
use super::test_console::{TestConsole, decisions};
use crate::console::linear::line_console::LineConsole;
use crate::console::request::{Bell, ConsoleRequest};
use crate::console::theme::Meaning;

const REMOVED: &str =
    "claude-code: its hooks were removed (/home/op/.claude/settings.json); see cra doctor";

fn alarms(texts: &[&str]) -> Arc<[String]> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn bells(requests: &[ConsoleRequest]) -> usize {
    let rings = |request: &&ConsoleRequest| matches!(request, ConsoleRequest::Notify(notice) if notice.bell == Bell::Ring);
    requests.iter().filter(rings).count()
}

#[test]
fn an_alarm_is_shown_on_every_screen_until_it_ends_and_rings_once() {
    let mut console = TestConsole::new(busy(), (80, 24));
    let requests = console.app.on_alarms(alarms(&[REMOVED]));
    assert_eq!(bells(&requests), 1);
    for tab in ['1', '2', '3', '4'] {
        console.press(KeyCode::Char(tab));
        console.shows("! ALARM claude-code: its hooks were removed");
    }
    console.press(KeyCode::Char('1'));
    console.open_gate("c-121");
    console.shows("! ALARM claude-code: its hooks were removed");
    // The alarm opened, closed and decided nothing.
    assert_eq!(console.app.layers.len(), 1);
    assert_eq!(decisions(console.app.on_alarms(alarms(&[REMOVED]))), []);
    assert_eq!(bells(&console.app.on_alarms(alarms(&[REMOVED]))), 0);
    console.app.on_alarms(alarms(&[]));
    console.paint();
    console.hides("ALARM");
}

#[test]
fn many_alarms_are_counted_and_each_stays_within_its_line() {
    let mut console = TestConsole::new(busy(), (60, 18));
    let hostile = "x\u{1b}[2J\u{202e}y\nz";
    console.app.on_alarms(alarms(&[hostile, "b", "c", "d"]));
    console.paint();
    console.shows("ALARM x");
    console.shows("ALARM and 3 more: run cra doctor");
    console.hides("\u{202e}");
    let rows = console.app.banners();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.meaning == Meaning::Banner));
    insta::assert_snapshot!(console.text());
}

#[test]
fn the_line_console_announces_an_alarm_once_and_never_during_a_decision() {
    let mut line_console = LineConsole::new(Arc::new(busy()), now());
    line_console.take_output();
    line_console.on_alarms(&alarms(&[REMOVED]));
    assert_eq!(
        line_console.take_output(),
        format!("\u{7}\nALARM {REMOVED}\n> ")
    );
    line_console.on_alarms(&alarms(&[REMOVED]));
    assert_eq!(line_console.take_output(), "");
    line_console.on_line("deny c-121", now());
    line_console.take_output();
    line_console.on_alarms(&alarms(&[REMOVED, "b"]));
    assert_eq!(line_console.take_output(), "");
    line_console.on_line("/back", now());
    assert!(line_console.take_output().contains("ALARM b\n> "));
}

#[test]
fn an_acknowledged_alarm_stays_listed_and_rings_again_when_it_recurs() {
    let mut console = TestConsole::new(busy(), (80, 24));
    console.press(KeyCode::F(8));
    console.shows("no new alarms");
    console.app.on_alarms(alarms(&[REMOVED]));
    console.paint();
    console.shows("see cra doctor. F8: ack");
    assert_eq!(decisions(console.press(KeyCode::F(8))), []);
    console.shows("1 alarm acknowledged");
    console.shows("alarm acknowledged: claude-code: its hooks were removed");
    console.hides("ALARM");
    // A new alarm is shown with a bell although another one is acknowledged.
    assert_eq!(bells(&console.app.on_alarms(alarms(&[REMOVED, "b"]))), 1);
    console.paint();
    console.shows("ALARM b. F8: ack");
    console.shows("alarm acknowledged: claude-code");
    insta::assert_snapshot!(console.text());
    console.app.on_alarms(alarms(&[REMOVED, "b", "c", "d"]));
    console.paint();
    console.shows("ALARM 3 more: run cra doctor. F8: ack");
    console.shows("alarm acknowledged: claude-code");
    // The alarm ended and came back: the acknowledgement does not cover the new one.
    console.app.on_alarms(alarms(&[]));
    assert_eq!(bells(&console.app.on_alarms(alarms(&[REMOVED]))), 1);
    console.paint();
    console.shows("! ALARM claude-code: its hooks were removed");
    console.hides("alarm acknowledged:");
}
