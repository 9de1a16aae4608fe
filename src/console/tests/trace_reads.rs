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
    let mut stage = TestConsole::new(busy(), (120, 36));
    archive.press(&mut stage, KeyCode::Char('2'));
    stage.press(KeyCode::End);
    let asked = stage.press(KeyCode::Enter);
    (stage, asked)
}

fn answer(archive: &Archive, stage: &mut TestConsole, ask: TraceRead) -> Vec<ConsoleRequest> {
    stage.message(ConsoleMessage::Read(read(archive, ask)))
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
    let (mut stage, asked) = opened(&archive);
    let mut asked = asks(asked);
    let kinds: Vec<_> = asked.iter().map(shape).collect();
    assert_eq!(kinds, [("rows", 0), ("event", 0), ("outline", 0)]);
    let outline = asked.remove(2);
    assert_eq!(
        shapes(stage.press(KeyCode::Down)),
        [("event", 1)],
        "one window at a time"
    );
    let next = asks(answer(&archive, &mut stage, outline));
    assert_eq!(
        next.iter().map(shape).collect::<Vec<_>>(),
        [("outline", 4000), ("fold", 0)]
    );
    stage.shows("reading 33 %, Esc: stop");
    stage.press(KeyCode::Esc);
    stage.shows("stopped; r to resume");
    let late = answer(&archive, &mut stage, next[0].clone());
    assert_eq!(shapes(late), [], "nothing more is asked for");
    stage.press(KeyCode::Down);
    stage.shows("read to 66 %, r: resume");
    let asked = shapes(stage.press(KeyCode::Char('r')));
    assert!(asked.contains(&("outline", 8000)), "{asked:?}");
}

#[test]
fn rows_show_their_type_before_they_are_read() {
    let archive = long();
    let (mut stage, asked) = opened(&archive);
    let asked = asks(asked);
    answer(&archive, &mut stage, asked[2].clone());
    stage.shows("session started");
    stage.hides("session started bot");
    answer(&archive, &mut stage, asked[0].clone());
    stage.shows("session started bot");
}

#[test]
fn the_end_of_a_session_is_shown_without_reading_the_events_before_it() {
    let archive = long();
    let (mut stage, _) = opened(&archive);
    let asked = shapes(stage.press(KeyCode::End));
    assert_eq!(asked, [("rows", 11_900), ("event", 11_999)]);
}

#[test]
fn a_filter_scans_in_windows_shows_partial_results_and_can_be_stopped() {
    let archive = long();
    let (mut stage, asked) = opened(&archive);
    archive.serve(&mut stage, asked);
    stage.press(KeyCode::Char('f'));
    stage.type_text("type:checkpoint");
    let asked = asks(stage.press(KeyCode::Enter));
    assert_eq!(asked.iter().map(shape).collect::<Vec<_>>(), [("scan", 0)]);
    stage.shows("searching...");
    stage.shows("0 so far, 0 %");
    let first = asks(answer(&archive, &mut stage, asked[0].clone()));
    stage.shows("79 so far, 66 %");
    stage.shows(">   100     ");
    stage.press(KeyCode::Esc);
    stage.shows("stopped; r to resume");
    stage.press(KeyCode::Down);
    stage.shows("79 in 66 %, stopped");
    let scan = first
        .into_iter()
        .find(|ask| shape(ask).0 == "scan")
        .unwrap();
    answer(&archive, &mut stage, scan);
    stage.shows("79 in 66 %, stopped");
    let again = stage.press(KeyCode::Char('r'));
    archive.serve(&mut stage, again);
    stage.shows("119/12000");
    archive.press(&mut stage, KeyCode::End);
    stage.shows("checkpoint fired g-1");
    stage.shows("> 11900");
}

#[test]
fn a_search_starts_at_the_cursor_and_shows_a_match_before_it_is_done() {
    let archive = long();
    let (mut stage, asked) = opened(&archive);
    archive.serve(&mut stage, asked);
    archive.enter(&mut stage, ':', "seek 11050");
    stage.press(KeyCode::Char('/'));
    stage.type_text("G-1");
    let asked = asks(stage.press(KeyCode::Enter));
    assert_eq!(
        asked.iter().map(shape).collect::<Vec<_>>(),
        [("scan", 11_050)]
    );
    let next = answer(&archive, &mut stage, asked[0].clone());
    stage.shows("> 11100");
    stage.shows("1/9 so far");
    archive.serve(&mut stage, next);
    stage.shows("23/31");
}

#[test]
fn late_responses_for_another_filter_or_session_are_dropped() {
    let archive = long();
    let (mut stage, asked) = opened(&archive);
    archive.serve(&mut stage, asked);
    stage.press(KeyCode::Char('f'));
    stage.type_text("type:checkpoint");
    let old = asks(stage.press(KeyCode::Enter));
    stage.press(KeyCode::Char('f'));
    stage.ctrl('u');
    stage.type_text("type:session");
    let new = stage.press(KeyCode::Enter);
    assert_eq!(shapes(answer(&archive, &mut stage, old[0].clone())), []);
    stage.shows("0 so far, 0 %");
    archive.serve(&mut stage, new);
    stage.shows("1/12000");
    assert_eq!(shapes(answer(&archive, &mut stage, old[0].clone())), []);
    stage.shows("1/12000");
    archive.press(&mut stage, KeyCode::Esc);
    archive.press(&mut stage, KeyCode::Esc);
    archive.open(&mut stage, "s-2");
    assert_eq!(shapes(answer(&archive, &mut stage, old[0].clone())), []);
    stage.shows("1 event");
}

#[test]
fn a_read_error_is_shown_and_retried_on_demand() {
    let archive = long();
    let (mut stage, asked) = opened(&archive);
    let broken = Archive::default();
    for ask in asks(asked) {
        answer(&broken, &mut stage, ask);
    }
    stage.shows("! no such session");
    stage.shows("r: resume");
    let again = stage.press(KeyCode::Char('r'));
    archive.serve(&mut stage, again);
    stage.shows("session started bot");
    stage.hides("! no such session");
}

#[test]
fn the_cursor_waits_for_a_filter_to_reach_it() {
    let archive = long();
    let (mut stage, asked) = opened(&archive);
    archive.serve(&mut stage, asked);
    archive.enter(&mut stage, ':', "seek 9950");
    stage.press(KeyCode::Char('f'));
    stage.type_text("type:checkpoint");
    let asked = asks(stage.press(KeyCode::Enter));
    let next = answer(&archive, &mut stage, asked[0].clone());
    stage.shows("Event 9950");
    archive.serve(&mut stage, next);
    stage.shows("> 10000");
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
    let told = read(
        &until,
        TraceRead::Export {
            session,
            format: ExportFormatArg::Jsonl,
            path: path.clone(),
        },
    );
    let bytes = Err("the console quit".to_owned());
    assert_eq!(told, TraceReadResult::Exported { path, bytes });
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_click_focuses_a_pane_and_selects_a_row_but_opens_nothing() {
    let click = |archive: &Archive, stage: &mut TestConsole, column: u16, row: u16| {
        let event = Event::Mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column,
            row,
            modifiers: KeyModifiers::NONE,
        });
        let requests = stage.event(&event);
        archive.serve(stage, requests);
    };
    // The row of the screen that has a text.
    let row_of = |stage: &TestConsole, text: &str| {
        let rows: Vec<_> = stage.text().lines().map(str::to_owned).collect();
        let row = rows.iter().position(|row| row.contains(text));
        u16::try_from(row.unwrap_or_else(|| panic!("{text}"))).unwrap()
    };
    let archive = Archive::sample();
    let mut stage = TestConsole::new(idle(), (120, 36));
    let requests = stage.press(KeyCode::Char('2'));
    archive.serve(&mut stage, requests);
    let row = row_of(&stage, "s-09");
    click(&archive, &mut stage, 10, row);
    assert_eq!(row_of(&stage, "> "), row_of(&stage, "s-09"));
    stage.hides(" Spans ");
    archive.press(&mut stage, KeyCode::Enter);
    let row = row_of(&stage, "risk verified");
    click(&archive, &mut stage, 10, row);
    assert_eq!(row_of(&stage, "> "), row);
    let before = stage.picture();
    click(&archive, &mut stage, 100, 10);
    assert_ne!(stage.picture(), before, "the event has the keys");
    click(&archive, &mut stage, 10, row);
    assert_eq!(stage.picture(), before);
    // The column heads are not a row.
    let head = row_of(&stage, " SEQ ");
    click(&archive, &mut stage, 10, head);
    assert_eq!(stage.picture(), before);
}
