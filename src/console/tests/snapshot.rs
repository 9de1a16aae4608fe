//! Snapshot files on screen: opened, browsed, and written.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use insta::assert_snapshot;
use ratatui::crossterm::event::{Event, KeyCode};
use serde_json::{Value, json};

use super::fixture;
use super::live_console::LiveConsole;
use super::sample_threads::{two, with};
use super::test_console::TestConsole;
use crate::base::atomic_file::ExistingFile;
use crate::base::text::is_deceptive;
use crate::console::dialog::snapshot::{
    SnapshotReadFailure, SnapshotRequest, SnapshotResponse, SnapshotWrite, SnapshotWriteFailure,
};
use crate::console::request::{ConsoleMessage, ConsoleRequest, Ticket};
use crate::console::theme::{Appearance, Glyphs};
use crate::reconstruct::Reconstruction;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};
use crate::runtime::snapshot_file::{SnapshotFileError, parse_snapshot};

const WIDE: (u16, u16) = (120, 36);
const SIZES: [(u16, u16); 3] = [WIDE, (80, 24), (60, 18)];

const GOOD: &[u8] = include_bytes!("../../../tests/data/snapshots/structured.json");
const DEGRADED: &[u8] = include_bytes!("../../../tests/data/snapshots/degraded.json");

fn key(console: &mut TestConsole, key: char) -> Vec<ConsoleRequest> {
    console.press(KeyCode::Char(key))
}

fn sized(name: &str, (width, height): (u16, u16)) -> String {
    format!("snapshot_{name}_{width}x{height}")
}

fn threads(snapshot: RuntimeSnapshot, size: (u16, u16)) -> TestConsole {
    let mut console = TestConsole::new(snapshot, size);
    key(&mut console, '3');
    console
}

/// Returns the only request.
#[track_caller]
fn asked(requests: Vec<ConsoleRequest>) -> (Ticket, SnapshotRequest) {
    match <[ConsoleRequest; 1]>::try_from(requests) {
        Ok([ConsoleRequest::Snapshot(ticket, ask)]) => (ticket, ask),
        other => panic!("{other:?}"),
    }
}

/// Returns the result of reading a file with this text.
fn read(path: &str, text: &[u8]) -> SnapshotResponse {
    let file = Path::new(path);
    let read = parse_snapshot(file, text).map_err(SnapshotReadFailure::from);
    let whole = read.map(|snapshot| Arc::new(Reconstruction::from_snapshot(&snapshot)));
    SnapshotResponse::Opened(file.to_owned(), whole)
}

/// The panel with a file of this text.
fn opened(text: &[u8], size: (u16, u16)) -> TestConsole {
    let mut console = threads(two(), size);
    key(&mut console, 'o');
    console.type_text("design.json");
    let (ticket, ask) = asked(console.press(KeyCode::Enter));
    assert_eq!(ask, SnapshotRequest::Open("design.json".into()));
    console.shows("reading `design.json`");
    console.message(ConsoleMessage::Snapshot(ticket, read("design.json", text)));
    console
}

// covers R1, R2, R3, R4, R5, R6, R7, R8
#[test]
fn a_snapshot_file_is_browsed_phase_by_phase_at_every_size() {
    for size in SIZES {
        let mut console = opened(GOOD, size);
        console.shows("The file answers all 6 questions.");
        console.hides("DEGRADED");
        assert_snapshot!(sized("retrieve", size), console.text());
        let mut whole = console.text();
        console.press(KeyCode::End);
        console.hides("more below");
        whole += &console.text();
        assert!(whole.contains("artifacts_created"), "{whole}");
        console.press(KeyCode::Tab);
        console.shows("Position");
        assert_snapshot!(sized("infer", size), console.text());
        console.press(KeyCode::Right);
        console.shows("[x] Position");
        assert_snapshot!(sized("validate", size), console.text());
        console.press(KeyCode::Tab);
        console.shows("Context reconstructed from checkpoint v2.0");
        assert_snapshot!(sized("engage", size), console.text());
        // Forward to the first step again, and back.
        console.presses(KeyCode::Tab, 2);
        console.shows("checkpoint_metadata.version");
        console.press(KeyCode::BackTab);
        console.shows("> contextual_librarian_spec");
        for (page, text) in [
            ('1', "checkpoint_metadata.version"),
            ('4', "Context reconstructed"),
            ('2', "Position"),
            ('5', "> contextual_librarian_spec"),
            ('3', "[x] Position"),
        ] {
            key(&mut console, page);
            console.shows(text);
        }
        console.press(KeyCode::Esc);
        assert!(console.app.layers.is_empty());
    }
    let appearance = Appearance {
        glyphs: Glyphs::Ascii,
        ..Appearance::default()
    };
    let mut console = TestConsole::with_look(two(), WIDE, appearance);
    console.app.layers.clear();
    key(&mut console, ':');
    console.type_text("snapshot a.json");
    let (ticket, _) = asked(console.press(KeyCode::Enter));
    console.message(ConsoleMessage::Snapshot(ticket, read("a.json", GOOD)));
    assert!(console.text().is_ascii(), "{}", console.text());
}

// covers R14, R15
#[test]
fn a_degraded_file_shows_a_warning_and_the_first_question() {
    for size in SIZES {
        let mut console = opened(DEGRADED, size);
        for page in ['1', '2', '3', '4', '5'] {
            key(&mut console, page);
            console.shows("! DEGRADED: the file has version 3.0");
            let unclear = if size.0 == 60 {
                "6 of 6"
            } else {
                "Position, History"
            };
            console.shows(&format!("NOT CLEAR: {unclear}"));
            for cell in console.buffer().content() {
                assert!(
                    !cell.symbol().chars().any(is_deceptive),
                    "{}",
                    console.text()
                );
            }
        }
        key(&mut console, '3');
        console.shows("[ ] Position");
        console.shows("missing: current position > stage");
        assert_snapshot!(sized("degraded", size), console.text());
        let mut seen = console.text();
        for _ in 0..20 {
            console.press(KeyCode::PageDown);
            seen += &console.text();
        }
        assert!(seen.contains("ask: Where are we right now"), "{seen}");
        assert!(seen.contains("next_steps is a text, not a list"), "{seen}");
    }
    let console = opened(DEGRADED, WIDE);
    assert_snapshot!("snapshot_degraded_styled", console.picture());
}

#[test]
fn an_unusable_file_shows_the_error_of_the_command() {
    let broken: [(&[u8], &str); 3] = [
        (b"{\"checkpoint_metadata\": ", "not a JSON object"),
        (b"{}", "`checkpoint_metadata.version` is missing"),
        (
            b"{\"checkpoint_metadata\": {\"version\": \"1.0\"}}",
            "version `1.0` is not supported",
        ),
    ];
    for (text, wanted) in broken {
        let console = opened(text, WIDE);
        let error = parse_snapshot(Path::new("design.json"), text).unwrap_err();
        let text = error.to_string();
        console.shows(text.get(..100).unwrap_or(&text));
        console.shows(wanted);
        console.shows(error.help().unwrap());
    }
    for size in SIZES {
        let mut console = opened(b"{}", size);
        assert_snapshot!(sized("broken", size), console.text());
        // The file cannot be browsed or copied. Another one can be opened.
        assert_eq!(key(&mut console, 'y'), []);
        console.press(KeyCode::Tab);
        console.shows("cannot be used for a");
        key(&mut console, 'o');
        console.shows("open> ");
        console.press(KeyCode::Esc);
        console.shows("cannot be used for a");
        console.press(KeyCode::Esc);
        assert!(console.app.layers.is_empty());
    }
}

// covers R16
#[test]
fn the_engage_text_is_copied_unchanged() {
    let mut console = opened(GOOD, WIDE);
    let text = Reconstruction::from_file(GOOD).unwrap().confirmation;
    let words = format!("copied the handover text: {} bytes", text.len());
    assert_eq!(key(&mut console, 'y'), [ConsoleRequest::Copy(text)]);
    console.shows(&words);
    console.press(KeyCode::Tab);
    console.hides("copied the handover text");
}

// covers R22
#[test]
fn an_artifact_is_loaded_only_for_the_dialog_that_requested_it() {
    let mut file: Value = serde_json::from_slice(GOOD).unwrap();
    let artifact = |id: String| json!({"id": id, "title": "t", "type": "trace", "path": "a.md"});
    let list = (0..40).map(|number| artifact(format!("a-{number}")));
    file["artifacts_created"] = list.collect();
    for size in SIZES {
        let mut console = opened(file.to_string().as_bytes(), size);
        for page in ['2', '3', '4', '5'] {
            assert_eq!(key(&mut console, page), [], "nothing is loaded by itself");
        }
        assert_eq!(console.presses(KeyCode::Down, 30), []);
        console.shows("> a-30");
        console.press(KeyCode::End);
        console.shows("> a-39");
        console.press(KeyCode::Home);
        console.shows("> a-0");
        console.press(KeyCode::Down);
        let (ticket, ask) = asked(console.press(KeyCode::Enter));
        let SnapshotRequest::Load(path, artifact) = ask else {
            panic!("{ask:?}");
        };
        assert_eq!((path, artifact.id.as_str()), ("design.json".into(), "a-1"));
        console.shows("loading ...");
        let hostile = "# one\nsafe\u{202e}\u{1b}[2J\n".to_owned();
        let output = SnapshotResponse::Loaded(artifact.clone(), Ok(Some(hostile)));
        console.message(ConsoleMessage::Snapshot(ticket, output.clone()));
        console.shows("safe\\u{202e}\\u{1b}[2J");
        assert_snapshot!(sized("artifact", size), console.text());
        console.press(KeyCode::Esc);
        console.shows("> a-1");
        // A late response is dropped after the operator went on.
        console.message(ConsoleMessage::Snapshot(ticket, output));
        console.hides("safe");
        let (ticket, _) = asked(console.press(KeyCode::Enter));
        let elsewhere = SnapshotFileError::OutsideFolder(PathBuf::from("../a.md"));
        let output = SnapshotResponse::Loaded(artifact, Err(elsewhere.into()));
        console.message(ConsoleMessage::Snapshot(ticket, output));
        console.shows("is not in the folder of its");
    }
}

/// Opens the panel that asks for the path of a snapshot of `t-31`, and returns its request.
fn writing(console: &mut TestConsole) -> (Ticket, SnapshotWrite) {
    key(console, 's');
    console.shows("write to> s-12.snapshot.json");
    match asked(console.press(KeyCode::Enter)) {
        (ticket, SnapshotRequest::Write(writing)) => (ticket, writing),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_overwritten_only_after_a_confirmation_that_defaults_to_keep() {
    for size in SIZES {
        let mut console = threads(two(), size);
        let (ticket, wanted) = writing(&mut console);
        let first = SnapshotWrite {
            thread: "t-31".parse().unwrap(),
            session: "s-12".parse().unwrap(),
            path: "s-12.snapshot.json".into(),
            if_exists: ExistingFile::Keep,
        };
        assert_eq!(wanted, first);
        let there = |wanted: &SnapshotWrite| {
            SnapshotResponse::Written(wanted.clone(), Err(SnapshotWriteFailure::AlreadyExists))
        };
        console.message(ConsoleMessage::Snapshot(ticket, there(&wanted)));
        console.shows("[ Overwrite ]");
        assert_snapshot!(sized("over", size), console.text());
        assert_eq!(console.press(KeyCode::Enter), []);
        console.shows("already exists");
        console.hides("stays as it is");
        // The same path again, now confirmed.
        let (ticket, ask) = asked(console.press(KeyCode::Enter));
        assert_eq!(ask, SnapshotRequest::Write(first.clone()));
        console.message(ConsoleMessage::Snapshot(ticket, there(&wanted)));
        console.press(KeyCode::Tab);
        let (ticket, ask) = asked(console.press(KeyCode::Enter));
        let over = SnapshotWrite {
            if_exists: ExistingFile::Replace,
            ..first
        };
        assert_eq!(ask, SnapshotRequest::Write(over.clone()));
        let done = SnapshotResponse::Written(over, Ok(()));
        let (ticket, ask) = asked(console.message(ConsoleMessage::Snapshot(ticket, done)));
        assert_eq!(ask, SnapshotRequest::Open("s-12.snapshot.json".into()));
        console.message(ConsoleMessage::Snapshot(
            ticket,
            read("s-12.snapshot.json", GOOD),
        ));
        console.shows("1 RETRIEVE");
    }
}

#[test]
fn a_failed_write_keeps_the_path_for_correction() {
    let mut console = threads(two(), WIDE);
    let (ticket, wanted) = writing(&mut console);
    let reason =
        SnapshotWriteFailure::Failed("cannot write `x\u{202e}`: no such folder".to_owned());
    console.message(ConsoleMessage::Snapshot(
        ticket,
        SnapshotResponse::Written(wanted, Err(reason)),
    ));
    console.shows("cannot write `x\\u{202e}`: no such folder");
    console.ctrl('u');
    console.hides("no such folder");
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("enter the path of a file");
    console.event(&Event::Paste("other\u{202e}.json\nsecond".to_owned()));
    let (_, ask) = asked(console.press(KeyCode::Enter));
    let SnapshotRequest::Write(writing) = ask else {
        panic!("{ask:?}");
    };
    assert_eq!(writing.path, PathBuf::from("other.json"));
}

#[test]
fn a_late_result_opens_nothing_after_the_operator_went_on() {
    let mut console = threads(two(), WIDE);
    let (ticket, wanted) = writing(&mut console);
    let there =
        || SnapshotResponse::Written(wanted.clone(), Err(SnapshotWriteFailure::AlreadyExists));
    key(&mut console, '?');
    console.message(ConsoleMessage::Snapshot(ticket, there()));
    console.hides("[ Overwrite ]");
    console.press(KeyCode::Esc);
    console.shows("already exists");
    console.hides("stays as it is");
    console.press(KeyCode::Esc);
    assert!(console.app.layers.is_empty());
    assert_eq!(
        console.message(ConsoleMessage::Snapshot(ticket, there())),
        []
    );
    assert!(console.app.layers.is_empty(), "it comes too late");
}

#[test]
fn an_outdated_response_never_replaces_a_newer_request() {
    let mut console = threads(two(), WIDE);
    let mut open = |path: &str| {
        key(&mut console, 'o');
        console.type_text(path);
        asked(console.press(KeyCode::Enter)).0
    };
    let (first, second) = (open("first.json"), open("second.json"));
    console.message(ConsoleMessage::Snapshot(first, read("first.json", GOOD)));
    console.shows("reading `second.json`");
    console.message(ConsoleMessage::Snapshot(second, read("second.json", GOOD)));
    console.shows("Snapshot file: second.json");
    console.message(ConsoleMessage::Snapshot(first, read("first.json", GOOD)));
    console.shows("Snapshot file: second.json");
}

#[test]
fn without_a_conversation_a_snapshot_can_be_opened_but_not_written() {
    let mut console = threads(fixture::idle(), WIDE);
    assert_eq!(key(&mut console, 's'), []);
    console.shows("no thread to write");
    key(&mut console, 'o');
    console.type_text("a.json");
    let (ticket, _) = asked(console.press(KeyCode::Enter));
    console.message(ConsoleMessage::Snapshot(ticket, read("a.json", GOOD)));
    assert_eq!(key(&mut console, 's'), []);
    console.hides("write to>");
    let mut console = TestConsole::new(with(fixture::idle(), []), WIDE);
    key(&mut console, ':');
    console.type_text("snapshot");
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("open> ");
}

#[test]
fn a_session_snapshot_is_written_read_back_and_replaced_only_after_confirmation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    let mut live = LiveConsole::new();
    live.turn(&json!({
        "message_id": "m-1", "message": "go", "proposed": {"arc": "clean up", "next": ["look"]},
    }));
    let mut asked = live.ask("ticket.delete", json!({"id": 1}), 1);
    live.press(KeyCode::Char('3'));
    let write = |live: &mut LiveConsole| {
        live.press(KeyCode::Char('s'));
        live.console.ctrl('u');
        live.types(path.to_str().unwrap());
        live.press(KeyCode::Enter);
    };
    write(&mut live);
    live.console.shows("1 RETRIEVE");
    live.console
        .shows("NOT CLEAR: Position, History, User, Confidence. 4 questions to ask first.");
    live.press(KeyCode::Char('4'));
    live.console
        .shows("CRITICAL QUESTION: May bot run `ticket.delete`?");
    let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(written["checkpoint_metadata"]["session_id"], "s-1");
    assert_eq!(written["current_position"]["subject"], "clean up");
    live.press(KeyCode::Esc);

    fs::write(&path, "mine").unwrap();
    write(&mut live);
    live.console.shows("[ Overwrite ]");
    live.press(KeyCode::Enter);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    live.press(KeyCode::Enter);
    live.press(KeyCode::Tab);
    live.press(KeyCode::Enter);
    live.console.shows("1 RETRIEVE");
    assert_ne!(fs::read_to_string(&path).unwrap(), "mine");
    // A path that is not a regular file is never overwritten.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    live.press(KeyCode::Char('o'));
    live.press(KeyCode::Esc);
    live.press(KeyCode::Esc);
    write(&mut live);
    live.press(KeyCode::Tab);
    live.press(KeyCode::Enter);
    live.console.shows("only a regular file can be overwritten");
    assert!(
        live.agent_reply(&mut asked).is_none(),
        "nothing was decided"
    );
    live.undecided(&["c-1"]);
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "nothing half is left");
}

#[test]
fn a_read_only_console_writes_no_record_but_may_write_a_snapshot_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.json");
    let mut live = LiveConsole::new();
    live.turn(&json!({"message_id": "m-1", "message": "go", "proposed": {"arc": "clean up"}}));
    live.end_session();
    live.again(|restart| restart.access(ConsoleAccess::ReadOnly));
    live.press(KeyCode::Char('3'));
    live.press(KeyCode::Char('s'));
    live.console.ctrl('u');
    live.types(path.to_str().unwrap());
    live.press(KeyCode::Enter);
    live.console.shows("1 RETRIEVE");
    let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(
        written["checkpoint_metadata"]["status"],
        "ended (cancelled)"
    );
    live.press(KeyCode::Char('o'));
    live.types(folder.path().to_str().unwrap());
    live.press(KeyCode::Enter);
    live.console.shows("not a regular file");
}
