//! Reads of a long session: window sizes, and late responses.

use ratatui::crossterm::event::{
    Event, KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use serde_json::json;

use super::archive::{Archive, asks};
use super::fixture::{busy, idle};
use super::test_console::TestConsole;
use crate::console::driver::record_reader::{QuitFlag, QuittableRecords, read};
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::screen::trace::{TraceRead, TraceReadResult};
use crate::trace::export::ExportFormatArg;

/// A session of 12,000 events, every hundredth of them a gate.
fn long() -> Archive {
    let mut archive = Archive::default();
    archive.add(
        "s-2",
        "other-bot",
        &[(0, "session_started", None, json!({}))],
    );
    let events: Vec<_> = (0..12_000)
        .map(|at| match at {
            0 => (0, "session_started", None, json!({ "agent_type": "bot" })),
            at if at % 100 == 0 => (
                at,
                "checkpoint_triggered",
                Some(0),
                json!({ "mode": "blocking", "checkpoint_id": format!("g-{at}") }),
            ),
            at => (at, "input_received", Some(0), json!({ "source": "user" })),
        })
        .collect();
    archive.add("s-1", "bot", &events);
    archive
}

/// The long session, open, with no read answered yet.
fn opened(archive: &Archive) -> (TestConsole, Vec<ConsoleRequest>) {
    let mut console = TestConsole::new(busy(), (120, 36));
    archive.press(&mut console, KeyCode::Char('2'));
    console.press(KeyCode::End);
    let asked = console.press(KeyCode::Enter);
    (console, asked)
}

fn answer(archive: &Archive, console: &mut TestConsole, ask: TraceRead) -> Vec<ConsoleRequest> {
    console.message(ConsoleMessage::Read(read(archive, ask)))
}

/// Returns the kind of a read and its start.
fn shape(ask: &TraceRead) -> (&'static str, u64) {
    match ask {
        TraceRead::Rows { from, .. } => ("rows", *from),
        TraceRead::Event { sequence, .. } => ("event", *sequence),
        TraceRead::Outline { from, .. } => ("outline", *from),
        TraceRead::Fold { from, .. } => ("fold", *from),
        TraceRead::Scan { from, .. } => ("scan", *from),
        TraceRead::Compare { .. } => ("compare", 0),
        TraceRead::Export { .. } => ("export", 0),
    }
}

fn shapes(requests: Vec<ConsoleRequest>) -> Vec<(&'static str, u64)> {
    asks(requests).iter().map(shape).collect()
}

#[test]
fn a_session_is_read_in_windows_requested_one_by_one() {
    let archive = long();
    let (mut console, asked) = opened(&archive);
    let mut asked = asks(asked);
    let kinds: Vec<_> = asked.iter().map(shape).collect();
    assert_eq!(kinds, [("rows", 0), ("event", 0), ("outline", 0)]);
    let outline = asked.remove(2);
    assert_eq!(
        shapes(console.press(KeyCode::Down)),
        [("event", 1)],
        "one window at a time"
    );
    let next = asks(answer(&archive, &mut console, outline));
    assert_eq!(
        next.iter().map(shape).collect::<Vec<_>>(),
        [("outline", 4000), ("fold", 0)]
    );
    console.shows("reading 33 %, Esc: stop");
    console.press(KeyCode::Esc);
    console.shows("stopped; r to resume");
    let late = answer(&archive, &mut console, next[0].clone());
    assert_eq!(shapes(late), [], "nothing more is asked for");
    console.press(KeyCode::Down);
    console.shows("read to 66 %, r: resume");
    let asked = shapes(console.press(KeyCode::Char('r')));
    assert!(asked.contains(&("outline", 8000)), "{asked:?}");
}

#[test]
fn rows_show_their_type_before_they_are_read() {
    let archive = long();
    let (mut console, asked) = opened(&archive);
    let asked = asks(asked);
    answer(&archive, &mut console, asked[2].clone());
    console.shows("session started");
    console.hides("session started bot");
    answer(&archive, &mut console, asked[0].clone());
    console.shows("session started bot");
}

#[test]
fn the_end_of_a_session_is_shown_without_reading_the_events_before_it() {
    let archive = long();
    let (mut console, _) = opened(&archive);
    let asked = shapes(console.press(KeyCode::End));
    assert_eq!(asked, [("rows", 11_900), ("event", 11_999)]);
}

#[test]
fn a_filter_scans_in_windows_shows_partial_results_and_can_be_stopped() {
    let archive = long();
    let (mut console, asked) = opened(&archive);
    archive.serve(&mut console, asked);
    console.press(KeyCode::Char('f'));
    console.type_text("type:checkpoint");
    let asked = asks(console.press(KeyCode::Enter));
    assert_eq!(asked.iter().map(shape).collect::<Vec<_>>(), [("scan", 0)]);
    console.shows("searching...");
    console.shows("0 so far, 0 %");
    let first = asks(answer(&archive, &mut console, asked[0].clone()));
    console.shows("79 so far, 66 %");
    console.shows(">   100     ");
    console.press(KeyCode::Esc);
    console.shows("stopped; r to resume");
    console.press(KeyCode::Down);
    console.shows("79 in 66 %, stopped");
    let scan = first
        .into_iter()
        .find(|ask| shape(ask).0 == "scan")
        .unwrap();
    answer(&archive, &mut console, scan);
    console.shows("79 in 66 %, stopped");
    let again = console.press(KeyCode::Char('r'));
    archive.serve(&mut console, again);
    console.shows("119/12000");
    archive.press(&mut console, KeyCode::End);
    console.shows("checkpoint fired g-1");
    console.shows("> 11900");
}

#[test]
fn a_search_starts_at_the_cursor_and_shows_a_match_before_it_is_done() {
    let archive = long();
    let (mut console, asked) = opened(&archive);
    archive.serve(&mut console, asked);
    archive.enter(&mut console, ':', "seek 11050");
    console.press(KeyCode::Char('/'));
    console.type_text("G-1");
    let asked = asks(console.press(KeyCode::Enter));
    assert_eq!(
        asked.iter().map(shape).collect::<Vec<_>>(),
        [("scan", 11_050)]
    );
    let next = answer(&archive, &mut console, asked[0].clone());
    console.shows("> 11100");
    console.shows("1/9 so far");
    archive.serve(&mut console, next);
    console.shows("23/31");
}

#[test]
fn late_responses_for_another_filter_or_session_are_dropped() {
    let archive = long();
    let (mut console, asked) = opened(&archive);
    archive.serve(&mut console, asked);
    console.press(KeyCode::Char('f'));
    console.type_text("type:checkpoint");
    let old = asks(console.press(KeyCode::Enter));
    console.press(KeyCode::Char('f'));
    console.ctrl('u');
    console.type_text("type:session");
    let new = console.press(KeyCode::Enter);
    assert_eq!(shapes(answer(&archive, &mut console, old[0].clone())), []);
    console.shows("0 so far, 0 %");
    archive.serve(&mut console, new);
    console.shows("1/12000");
    assert_eq!(shapes(answer(&archive, &mut console, old[0].clone())), []);
    console.shows("1/12000");
    archive.press(&mut console, KeyCode::Esc);
    archive.press(&mut console, KeyCode::Esc);
    archive.open(&mut console, "s-2");
    assert_eq!(shapes(answer(&archive, &mut console, old[0].clone())), []);
    console.shows("1 event");
}

#[test]
fn a_read_error_is_shown_and_retried_on_demand() {
    let archive = long();
    let (mut console, asked) = opened(&archive);
    let broken = Archive::default();
    for ask in asks(asked) {
        answer(&broken, &mut console, ask);
    }
    console.shows("! no such session");
    console.shows("r: resume");
    let again = console.press(KeyCode::Char('r'));
    archive.serve(&mut console, again);
    console.shows("session started bot");
    console.hides("! no such session");
}

#[test]
fn the_cursor_waits_for_a_filter_to_reach_it() {
    let archive = long();
    let (mut console, asked) = opened(&archive);
    archive.serve(&mut console, asked);
    archive.enter(&mut console, ':', "seek 9950");
    console.press(KeyCode::Char('f'));
    console.type_text("type:checkpoint");
    let asked = asks(console.press(KeyCode::Enter));
    let next = answer(&archive, &mut console, asked[0].clone());
    console.shows("Event 9950");
    archive.serve(&mut console, next);
    console.shows("> 10000");
}

#[test]
fn quitting_the_console_ends_reads_and_leaves_no_partial_file() {
    let archive = long();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let left = QuitFlag::default();
    left.set();
    let until = QuittableRecords {
        records: &archive,
        quit_flag: left,
    };
    let session = "s-1".parse().unwrap();
    let output = read(
        &until,
        TraceRead::Export {
            session,
            format: ExportFormatArg::Jsonl,
            path: path.clone(),
        },
    );
    let bytes = Err("the console quit".to_owned());
    assert_eq!(output, TraceReadResult::Exported { path, bytes });
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_click_focuses_a_pane_and_selects_a_row_but_opens_nothing() {
    let click = |archive: &Archive, console: &mut TestConsole, column: u16, row: u16| {
        let event = Event::Mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column,
            row,
            modifiers: KeyModifiers::NONE,
        });
        let requests = console.event(&event);
        archive.serve(console, requests);
    };
    // The row of the screen that has a text.
    let row_of = |console: &TestConsole, text: &str| {
        let rows: Vec<_> = console.text().lines().map(str::to_owned).collect();
        let row = rows.iter().position(|row| row.contains(text));
        u16::try_from(row.unwrap_or_else(|| panic!("{text}"))).unwrap()
    };
    let archive = Archive::sample();
    let mut console = TestConsole::new(idle(), (120, 36));
    let requests = console.press(KeyCode::Char('2'));
    archive.serve(&mut console, requests);
    let row = row_of(&console, "s-09");
    click(&archive, &mut console, 10, row);
    assert_eq!(row_of(&console, "> "), row_of(&console, "s-09"));
    console.hides(" Spans ");
    archive.press(&mut console, KeyCode::Enter);
    let row = row_of(&console, "risk verified");
    click(&archive, &mut console, 10, row);
    assert_eq!(row_of(&console, "> "), row);
    let before = console.picture();
    click(&archive, &mut console, 100, 10);
    assert_ne!(console.picture(), before, "the event has the keys");
    click(&archive, &mut console, 10, row);
    assert_eq!(console.picture(), before);
    // The column heads are not a row.
    let head = row_of(&console, " SEQ ");
    click(&archive, &mut console, 10, head);
    assert_eq!(console.picture(), before);
}
