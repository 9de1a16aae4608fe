//! Alarms: what somebody else looks after while the console runs.

use std::sync::Arc;

use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, now};
use super::stage::{Stage, decisions};
use crate::console::linear::talk::Talk;
use crate::console::request::{Bell, Request};
use crate::console::theme::Meaning;

const REMOVED: &str =
    "claude-code: its hooks were removed (/home/op/.claude/settings.json); see cra doctor";

fn alarms(texts: &[&str]) -> Arc<[String]> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

fn bells(requests: &[Request]) -> usize {
    let rings = |it: &&Request| matches!(it, Request::Notify(notice) if notice.bell == Bell::Ring);
    requests.iter().filter(rings).count()
}

#[test]
fn an_alarm_stands_on_every_screen_until_it_is_over_and_rings_once() {
    let mut stage = Stage::new(busy(), (80, 24));
    let requests = stage.app.on_alarms(alarms(&[REMOVED]));
    assert_eq!(bells(&requests), 1);
    for tab in ['1', '2', '3', '4'] {
        stage.press(KeyCode::Char(tab));
        stage.shows("! ALARM claude-code: its hooks were removed");
    }
    stage.press(KeyCode::Char('1'));
    stage.open_gate("c-121");
    stage.shows("! ALARM claude-code: its hooks were removed");
    // Nothing was opened, closed or decided by it.
    assert_eq!(stage.app.layers.len(), 1);
    assert_eq!(decisions(stage.app.on_alarms(alarms(&[REMOVED]))), []);
    assert_eq!(bells(&stage.app.on_alarms(alarms(&[REMOVED]))), 0);
    stage.app.on_alarms(alarms(&[]));
    stage.paint();
    stage.hides("ALARM");
}

#[test]
fn many_alarms_leave_room_and_are_counted_and_none_paints_outside_its_line() {
    let mut stage = Stage::new(busy(), (60, 18));
    let hostile = "x\u{1b}[2J\u{202e}y\nz";
    stage.app.on_alarms(alarms(&[hostile, "b", "c", "d"]));
    stage.paint();
    stage.shows("ALARM x");
    stage.shows("ALARM and 3 more: cra doctor lists them");
    stage.hides("\u{202e}");
    let rows = stage.app.banners();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|it| it.meaning == Meaning::Banner));
    insta::assert_snapshot!(stage.text());
}

#[test]
fn line_by_line_an_alarm_is_told_once_and_never_amid_a_decision() {
    let mut talk = Talk::new(Arc::new(busy()), now());
    talk.take();
    talk.on_alarms(&alarms(&[REMOVED]));
    assert_eq!(talk.take(), format!("\u{7}\nALARM {REMOVED}\n> "));
    talk.on_alarms(&alarms(&[REMOVED]));
    assert_eq!(talk.take(), "");
    talk.on_line("deny c-121", now());
    talk.take();
    talk.on_alarms(&alarms(&[REMOVED, "b"]));
    assert_eq!(talk.take(), "");
    talk.on_line("/back", now());
    assert!(talk.take().contains("ALARM b\n> "));
}

#[test]
fn an_alarm_that_is_acknowledged_stays_listed_and_comes_back_when_it_happens_anew() {
    let mut stage = Stage::new(busy(), (80, 24));
    stage.press(KeyCode::F(8));
    stage.shows("no alarm is new");
    stage.app.on_alarms(alarms(&[REMOVED]));
    stage.paint();
    stage.shows("see cra doctor. F8: ack");
    assert_eq!(decisions(stage.press(KeyCode::F(8))), []);
    stage.shows("1 alarm acknowledged");
    stage.shows("alarm acknowledged: claude-code: its hooks were removed");
    stage.hides("ALARM");
    // What is new beside it is told, and rings.
    assert_eq!(bells(&stage.app.on_alarms(alarms(&[REMOVED, "b"]))), 1);
    stage.paint();
    stage.shows("ALARM b. F8: ack");
    stage.shows("alarm acknowledged: claude-code");
    insta::assert_snapshot!(stage.text());
    stage.app.on_alarms(alarms(&[REMOVED, "b", "c", "d"]));
    stage.paint();
    stage.shows("ALARM 3 more: cra doctor lists them. F8: ack");
    stage.shows("alarm acknowledged: claude-code");
    // Over, and there again: nobody knows of that one.
    stage.app.on_alarms(alarms(&[]));
    assert_eq!(bells(&stage.app.on_alarms(alarms(&[REMOVED]))), 1);
    stage.paint();
    stage.shows("! ALARM claude-code: its hooks were removed");
    stage.hides("alarm acknowledged:");
}
