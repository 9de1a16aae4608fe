//! Tests of the queue: order, selection, arrivals.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, held, idle, onboarding, snapshot, ticket_delete, user_ban};
use super::test_console::TestConsole;
use crate::atlas::document::RiskTier;
use crate::console::request::{Bell, ConsoleRequest, TerminalNotice};
use crate::console::theme::{Appearance, ColourMode, Glyphs};

const WIDE: (u16, u16) = (120, 36);
const SMALL: (u16, u16) = (80, 24);

fn selected(console: &TestConsole) -> String {
    let held = console.app.screens.queue.selected();
    held.map(|held| held.id.to_string()).unwrap_or_default()
}

#[test]
fn wide() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Down);
    assert_snapshot!(console.picture());
}

#[test]
fn at_80_by_24() {
    let mut console = TestConsole::new(busy(), SMALL);
    console.press(KeyCode::Down);
    assert_snapshot!(console.picture());
}

#[test]
fn one_pane_at_60_by_18() {
    assert_snapshot!(TestConsole::new(busy(), (60, 18)).text());
}

#[test]
fn empty() {
    assert_snapshot!(TestConsole::new(idle(), WIDE).text());
}

#[test]
fn empty_at_80_by_24() {
    assert_snapshot!(TestConsole::new(idle(), SMALL).text());
}

#[test]
fn plain_characters_without_colour() {
    let appearance = Appearance {
        glyphs: Glyphs::Ascii,
        colour: ColourMode::Plain,
        ..Appearance::default()
    };
    let console = TestConsole::with_look(busy(), SMALL, appearance);
    assert!(console.text().is_ascii(), "{}", console.text());
    assert_snapshot!(console.picture());
}

#[test]
fn requests_are_sorted_by_risk_and_then_by_deadline() {
    let console = TestConsole::new(busy(), WIDE);
    let text = console.text();
    let places: Vec<usize> = ["c-118", "c-121", "c-122", "c-124", "c-119"]
        .iter()
        .map(|id| text.find(id).unwrap())
        .collect();
    assert!(places.is_sorted(), "{text}");
    assert_eq!(selected(&console), "c-118");
}

#[test]
fn an_arrival_that_would_push_the_selected_row_waits_below() {
    let mut console = TestConsole::new(snapshot([ticket_delete(), onboarding()]), WIDE);
    console.press(KeyCode::Down);
    let before = console.text();
    let line_of = |text: &str| text.lines().position(|line| line.contains("> c-119"));
    let requests = console.snapshot(snapshot([ticket_delete(), onboarding(), user_ban()]));
    assert_eq!(line_of(&before), line_of(&console.text()));
    assert_eq!(
        requests,
        [ConsoleRequest::Notify(TerminalNotice {
            bell: Bell::Ring,
            title: "cra: 3 held".to_owned(),
            toast: Some("cra: c-118 CRIT! user.ban by billing-bot".to_owned()),
        })]
    );
    console.shows("CRITICAL c-118 not shown: press u");
    assert_eq!(console.app.layers.len(), 0, "nothing opens by itself");
    assert_snapshot!(console.text());
    console.press(KeyCode::Char('u'));
    console.hides("held back");
    console.hides("new (u)");
    assert_eq!(
        selected(&console),
        "c-119",
        "the selection stays with its request"
    );
}

#[test]
fn an_arrival_that_moves_nothing_appears_at_once() {
    let mut console = TestConsole::new(idle(), WIDE);
    console.snapshot(snapshot([ticket_delete()]));
    assert_eq!(selected(&console), "c-121");
    console.snapshot(snapshot([ticket_delete(), onboarding()]));
    console.shows("c-119");
    console.hides("held back");
    console.hides("new (u)");
}

#[test]
fn when_a_selected_request_is_settled_its_neighbour_is_selected() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Down);
    let mut next = busy();
    next.held.retain(|held| held.id.as_str() != "c-121");
    let requests = console.snapshot(next);
    assert_eq!(selected(&console), "c-122");
    assert_eq!(
        requests,
        [ConsoleRequest::Notify(TerminalNotice {
            bell: Bell::Silent,
            title: "cra: 4 held".to_owned(),
            toast: None,
        })]
    );
}

#[test]
fn agent_text_cannot_break_the_table() {
    let mut hostile = held("c-9", "rm\u{1b}[2J\u{202e}x", RiskTier::High, 1, 60);
    hostile.agent = "日本語エージェント\u{301}の名前はとても長い\n\u{7}".to_owned();
    hostile.session = "s-1".parse().unwrap();
    let console = TestConsole::new(snapshot([hostile]), WIDE);
    console.shows("rm\\u{1b}[2J");
    for row in console.text().lines().filter(|row| row.starts_with('│')) {
        assert!(row.ends_with('│'), "{row}");
    }
}
