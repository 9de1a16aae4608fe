//! Tests of the queue: sorting, filtering, searching, and the summary of the selected request.

use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use ratatui::crossterm::event::{Event, KeyCode};

use super::fixture::{
    busy, decided, events, held, onboarding, snapshot, ticket_delete, user_ban, with_params,
};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::console::request::{ConsoleMessage, ConsoleRequest, TrailPurpose};
use crate::console::screen::ScreenId;
use crate::engine::command::HeldOutcome;
use crate::engine::held::Held;

const WIDE: (u16, u16) = (120, 36);
const SMALL: (u16, u16) = (80, 24);

fn selected(console: &TestConsole) -> String {
    let held = console.app.screens.queue.selected();
    held.map(|held| held.id.to_string()).unwrap_or_default()
}

/// Returns the identifiers in the list, from the top on.
fn listed(console: &TestConsole) -> Vec<String> {
    let text = console.text();
    let list = text.split("WHY").next().unwrap();
    let rows = list.lines().filter(|row| row.starts_with('│'));
    let id = |row: &str| {
        let word = row.split([' ', '*']).find(|word| word.starts_with("c-"));
        word.map(str::to_owned)
    };
    rows.filter_map(id).collect()
}

#[test]
fn the_sort_key_cycles_through_the_orders_and_shows_them() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Down);
    console.shows("sort: risk, deadline");
    let mut orders = Vec::new();
    for words in ["sort: deadline", "sort: age", "sort: agent", "sort: risk"] {
        console.press(KeyCode::Char('o'));
        console.shows(words);
        assert_eq!(
            selected(&console),
            "c-121",
            "the selection stays with its request"
        );
        orders.push(listed(&console).join(" "));
    }
    assert_eq!(
        orders,
        [
            "c-121 c-122 c-119 c-118 c-124",
            "c-119 c-124 c-122 c-121 c-118",
            "c-118 c-119 c-121 c-122 c-124",
            "c-118 c-121 c-122 c-124 c-119",
        ]
    );
}

#[test]
fn a_filter_narrows_while_it_is_typed_and_esc_clears_it() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Char('f'));
    console.type_text("risk>=high agent:triage");
    console.shows("filter> risk>=high agent:triage");
    console.shows("2 of 5 match");
    assert_snapshot!(console.picture());
    assert_eq!(listed(&console), ["c-121", "c-122"]);
    console.press(KeyCode::Enter);
    console.hides("filter>");
    console.shows("filter: risk>=high agent:triage (2 of 5)");
    console.shows("CRITICAL: 1 request hidden by the filter");
    assert_eq!(
        console.app.layers.len(),
        0,
        "Enter kept the filter and opened nothing"
    );
    console.press(KeyCode::Esc);
    assert_eq!(listed(&console).len(), 5);
    console.hides("filter:");
}

#[test]
fn a_filter_that_hides_all_requests_shows_a_message() {
    let mut console = TestConsole::new(snapshot([onboarding()]), SMALL);
    console.press(KeyCode::Char('f'));
    console.type_text("risk>=high");
    console.press(KeyCode::Enter);
    console.shows("0 of 1 match `risk>=high`. Esc to clear.");
    assert_snapshot!(console.text());
    assert_eq!(console.press(KeyCode::Enter), [], "nothing is selected");
    assert_eq!(console.app.layers.len(), 0);
    console.press(KeyCode::Esc);
    assert_eq!(listed(&console), ["c-119"]);
}

#[test]
fn an_invalid_filter_shows_the_column_and_changes_nothing() {
    let mut console = TestConsole::new(busy(), SMALL);
    console.press(KeyCode::Char('f'));
    console.type_text("a risk>=hgih");
    console.shows("column 9: unknown risk `hgih`");
    console.press(KeyCode::Enter);
    console.shows("filter> a risk>=hgih");
    console.press(KeyCode::Esc);
    console.hides("filter>");
    assert_eq!(listed(&console).len(), 5, "as it was before");
}

#[test]
fn letters_typed_into_a_filter_trigger_no_action() {
    let mut console = TestConsole::new(busy(), SMALL);
    console.press(KeyCode::Char('f'));
    assert_eq!(console.type_text("q12du?: "), []);
    console.event(&Event::Paste("pasted\nrest".to_owned()));
    console.shows("filter> q12du?: pasted");
    assert_eq!(console.app.layers.len(), 0);
    assert_eq!(console.app.screen, ScreenId::Queue);
}

#[test]
fn arrivals_respect_the_filter_and_a_hidden_critical_request_shows_a_warning() {
    let mut console = TestConsole::new(snapshot([onboarding()]), WIDE);
    console.press(KeyCode::Char('f'));
    console.type_text("agent:docs");
    console.press(KeyCode::Enter);
    console.snapshot(snapshot([onboarding(), user_ban()]));
    assert_eq!(listed(&console), ["c-119"]);
    console.shows("CRITICAL: 1 request hidden by the filter: Esc to clear");
    console.shows("filter: agent:docs (1 of 2)");
}

#[test]
fn a_search_selects_a_match_and_n_selects_the_next() {
    let mut console = TestConsole::new(busy(), SMALL);
    console.press(KeyCode::Char('/'));
    console.type_text("ticket");
    console.shows("search> ticket");
    assert_eq!(selected(&console), "c-121");
    console.press(KeyCode::Enter);
    console.press(KeyCode::Char('n'));
    assert_eq!(selected(&console), "c-124");
    console.press(KeyCode::Char('n'));
    assert_eq!(selected(&console), "c-121", "around the end");
    console.press(KeyCode::Char('N'));
    assert_eq!(selected(&console), "c-124");
    console.press(KeyCode::Esc);
    console.press(KeyCode::Char('n'));
    assert_eq!(
        selected(&console),
        "c-124",
        "nothing is looked for any more"
    );
}

#[test]
fn a_key_selects_the_request_with_the_next_deadline() {
    let mut console = TestConsole::new(busy(), SMALL);
    let mut visited = Vec::new();
    for _ in 0..5 {
        console.press(KeyCode::Char('J'));
        visited.push(selected(&console));
    }
    assert_eq!(visited, ["c-124", "c-121", "c-122", "c-119", "c-118"]);
}

#[test]
fn a_key_shows_the_session_of_a_request_in_the_record() {
    let mut console = TestConsole::new(busy(), WIDE);
    let requests = console.press(KeyCode::Char('t'));
    assert_eq!(requests, [ConsoleRequest::LoadSessions]);
    assert_eq!(console.app.screen, ScreenId::Trace);
    let mut sessions = super::fixture::sessions();
    sessions[2].session = "s-07".parse().unwrap();
    sessions[2].agent = "billing-bot".to_owned();
    let requests = console.message(ConsoleMessage::Sessions(Ok(sessions)));
    assert!(
        matches!(&requests[..], [ConsoleRequest::Read(_), ..]),
        "{requests:?}"
    );
}

#[test]
fn the_latest_events_are_read_once_per_request() {
    let mut console = TestConsole::new(busy(), WIDE);
    let gate = |id: &str| id.parse().unwrap();
    // The first read is pending since the console started.
    assert_eq!(console.press(KeyCode::Down), []);
    let requests = console.message(ConsoleMessage::Trail(
        gate("c-118"),
        TrailPurpose::LatestEvents,
        Ok(vec![]),
    ));
    assert_eq!(
        requests,
        [ConsoleRequest::LoadTrail {
            gate: gate("c-121"),
            session: "s-12".parse().unwrap(),
            from: 14,
            limit: 3,
            purpose: TrailPurpose::LatestEvents,
        }]
    );
    let output = ConsoleMessage::Trail(
        gate("c-121"),
        TrailPurpose::LatestEvents,
        Ok(events("s-12", 14, 3)),
    );
    assert_eq!(console.message(output), []);
    console.shows("LAST       16 gate passed < 15 risk verified < 14 checkpoint fired");
    assert_eq!(console.press(KeyCode::Char('o')), []);
}

#[test]
fn similar_decisions_of_today_are_counted_by_outcome() {
    let mut picture = snapshot([held("c-1", "payment.refund", RiskTier::High, 1, 60)]);
    picture.decided.push(Arc::new(decided(
        "c-2",
        "00:10:00",
        HeldOutcome::Denied,
        Some("o2@ops"),
    )));
    let mut yesterday = decided("c-3", "10:00:00", HeldOutcome::Denied, Some("o3@ops"));
    yesterday.at = "2026-09-22T23:59:59.000000Z".parse().unwrap();
    picture.decided.push(Arc::new(yesterday));
    let console = TestConsole::new(picture, WIDE);
    console.shows("SIMILAR    today 2 denied (op-1@ops, o2@ops), 1 expired, 1 passed (o2@ops)");
}

#[test]
fn expired_and_withdrawn_requests_are_not_shown_as_human_denials() {
    let mut picture = busy();
    let ended = |id, outcome| Arc::new(decided(id, "14:02:00", outcome, None));
    picture
        .decided
        .insert(0, ended("c-90", HeldOutcome::Withdrawn));
    picture.decided.truncate(2);
    picture.decided.push(ended("c-91", HeldOutcome::Expired));
    let mut console = TestConsole::new(picture, WIDE);
    console.shows("c-90     WITHDRAWN  the agent withdrew");
    console.shows("c-91     EXPIRED    no answer → denied");
    console.shows("not by an operator");
    console.wait(Duration::from_mins(16));
    console.hides("c-91");
    console.shows("none; the last was c-90 at 14:02:00");
}

#[test]
fn joined_requests_are_one_row_with_a_count() {
    let mut joined = held("c-1", "a.b", RiskTier::Low, 1, 60);
    joined.joined = 2;
    let console = TestConsole::new(snapshot([joined]), SMALL);
    assert_eq!(listed(&console), ["c-1"]);
    console.shows("open x3");
}

#[test]
fn a_changed_request_is_marked_until_it_is_opened() {
    let before = held("c-1", "a.b", RiskTier::Low, 1, 60);
    let after = with_params(before.clone(), serde_json::json!({ "other": 1 }));
    let mut console = TestConsole::new(snapshot([before]), SMALL);
    console.snapshot(snapshot([after]));
    console.shows("changed");
    console.open();
    console.press(KeyCode::Esc);
    console.hides("changed");
    console.shows("open");
}

#[test]
fn an_identifier_or_a_hash_is_copied() {
    let mut console = TestConsole::new(snapshot([ticket_delete()]), SMALL);
    let copied = console.press(KeyCode::Char('y'));
    assert_eq!(copied, [ConsoleRequest::Copy("c-121".to_owned())]);
    console.shows("copied c-121");
    let hash = ticket_delete().request_hash.to_string();
    assert_eq!(
        console.press(KeyCode::Char('Y')),
        [ConsoleRequest::Copy(hash)]
    );
}

fn many(count: u64) -> Vec<Held> {
    let of = |at: u64| {
        held(
            &format!("c-{at}"),
            "a.b",
            RiskTier::Medium,
            500 - at,
            600 + at,
        )
    };
    (0..count).map(of).collect()
}

#[test]
fn a_long_list_scrolls_and_keeps_the_selected_row_on_its_line() {
    let mut console = TestConsole::new(snapshot(many(100)), SMALL);
    console.presses(KeyCode::Down, 30);
    console.presses(KeyCode::Up, 2);
    let line = |console: &TestConsole| console.text().lines().position(|row| row.contains('>'));
    let before = line(&console);
    assert_eq!(selected(&console), "c-28");
    let mut fewer = many(100);
    fewer.drain(3..8);
    console.snapshot(snapshot(fewer));
    assert_eq!(selected(&console), "c-28");
    assert_eq!(
        line(&console),
        before,
        "rows that left above did not move it"
    );
    console.press(KeyCode::End);
    assert_eq!(selected(&console), "c-99");
    console.press(KeyCode::Home);
    assert_eq!(selected(&console), "c-0");
}

// A request arrives while the operator is about to press Enter. Enter opens the highlighted request.
#[test]
fn enter_opens_the_highlighted_request_despite_arrivals() {
    let mut console = TestConsole::new(snapshot([ticket_delete(), onboarding()]), SMALL);
    console.press(KeyCode::Down);
    console.app.on_snapshot(Arc::new(snapshot([
        ticket_delete(),
        onboarding(),
        user_ban(),
    ])));
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.shows("c-119  session start");
}
