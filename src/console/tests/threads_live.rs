//! Conversations with a real runtime and a real store: operator commands are on disk, and edits of an
//! outdated state are not.

use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::fixture;
use super::live_console::LiveConsole;
use super::sample_threads::{calm, with};
use super::test_console::TestConsole;
use crate::console::request::{ConsoleMessage, ConsoleRequest, ThreadEdit};
use crate::console::screen::ScreenId;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

fn turn(number: u32, arc: &str) -> Value {
    json!({
        "message_id": format!("m-{number}"),
        "message": "go on",
        "affect": {"label": "tense", "intensity": 0.9, "confidence": "high", "source": "model"},
        "proposed": {"arc": arc},
    })
}

/// Opens the summary in an editor that replaces a text, and carries out the result.
fn edit(live: &mut LiveConsole, edit: ThreadEdit, from: &str, to: &str) {
    assert!(edit.text.contains(from), "{}", edit.text);
    let text = edit.text.replace(from, to);
    let message = ConsoleMessage::ThreadEdited(Box::new(edit), Ok(text));
    let requests = live.console.message(message);
    live.carry_out(requests);
}

fn editing(live: &mut LiveConsole) -> ThreadEdit {
    match live.console.press(KeyCode::Char('e')).pop() {
        Some(ConsoleRequest::EditThread(edit)) => *edit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_governance_log_is_listed_on_the_trace_screen_and_opens() {
    let mut live = LiveConsole::new();
    live.press(KeyCode::Char('2'));
    live.console.shows("cra, governance log");
    live.press(KeyCode::End);
    live.press(KeyCode::Enter);
    live.console.shows("Spans cra, governance log");
}

#[test]
fn an_imported_session_is_marked_on_the_trace_screen() {
    let mut console = TestConsole::new(fixture::busy(), (120, 36));
    console.press(KeyCode::Char('2'));
    let mut sessions = fixture::sessions();
    sessions[1]
        .imports
        .push(crate::trace::verification::ImportEntry {
            by: Some("mallory".to_owned()),
            at: "2026-01-01T00:00:00.000000Z".to_owned(),
            events: 6,
            source: "forged.jsonl".to_owned(),
            file_hash: None,
        });
    console.message(ConsoleMessage::Sessions(Ok(sessions)));
    console.paint();
    console.shows("IMPORTED");
}

// covers D2, D20
#[test]
fn operator_commands_on_a_conversation_are_recorded_unless_it_changed() {
    let mut live = LiveConsole::new();
    live.turn(&turn(1, "clean up"));
    live.turn(&turn(2, "purge all"));
    live.press(KeyCode::Char('3'));
    live.console.shows("SUMMARY FROZEN");
    live.console.shows("+ ARC       purge all");

    let stale = editing(&mut live);
    live.turn(&turn(3, "purge more"));
    edit(&mut live, stale, "clean up", "mine");
    live.console.shows("e shows both texts");
    assert_eq!(live.on_disk("memento_edited"), Vec::<Value>::new());

    let fresh = editing(&mut live);
    assert!(
        fresh.text.contains("has changed since it was read"),
        "{}",
        fresh.text
    );
    edit(&mut live, fresh, "\"mine\"", "\"mine, now\"");
    live.console.shows("s-1 edited and recorded");
    live.console.shows("ARC       mine, now");
    let edited = live.on_disk("memento_edited");
    assert_eq!(edited.len(), 1);
    assert_eq!(edited[0]["by"], json!("op-1"));
    assert_eq!(edited[0]["text_now"]["arc"], json!("mine, now"));

    live.press(KeyCode::Char('w'));
    live.press(KeyCode::Tab);
    live.press(KeyCode::Enter);
    live.console.shows("drift in s-1 flagged and recorded");
    assert_eq!(live.on_disk("drift_flagged").len(), 1);

    // The next turn must follow the edit, even at the peak.
    live.turn(&turn(4, "as the operator says"));
    live.console.shows("rule 1: the memento was edited");
    live.console.shows("ARC       as the operator says");
    live.console.hides("SUMMARY FROZEN");
    assert!(live.rehearsal.is_sound());

    // A read-only console does neither, and has the same state after a restart.
    live.again(|restart| restart.access(ConsoleAccess::ReadOnly));
    live.press(KeyCode::Char('3'));
    live.console.shows("ARC       as the operator says");
    for key in ['e', 'w'] {
        live.press(KeyCode::Char(key));
        live.console.shows("this console is read-only");
    }
    assert_eq!(live.on_disk("drift_flagged").len(), 1);
}

#[test]
fn enter_on_a_turn_shows_its_record() {
    let mut live = LiveConsole::new();
    live.turn(&turn(1, "clean up"));
    live.turn(&turn(2, "purge all"));
    live.press(KeyCode::Char('3'));
    live.press(KeyCode::Char('b'));
    live.press(KeyCode::Down);
    let turned = live.rehearsal.snapshot().threads[0].turns[1].clone();
    let wanted = turned.event.unwrap();
    live.press(KeyCode::Enter);
    assert_eq!(live.console.app.screen, ScreenId::Trace);
    let events = live.events_of("s-1");
    let place = events
        .iter()
        .find(|event| event.event_id == wanted)
        .unwrap();
    live.console.shows(&format!("> {:>4} ", place.sequence));
}

#[test]
fn a_rejected_edit_is_restored_after_a_restart_until_it_is_accepted() {
    let mut live = LiveConsole::new();
    live.turn(&turn(1, "clean up"));
    live.press(KeyCode::Char('3'));
    let stale = editing(&mut live);
    live.turn(&turn(2, "purge all"));
    edit(&mut live, stale, "clean up", "mine");
    live.console.shows("rejected edit: e");

    live.again(|_| {});
    live.press(KeyCode::Char('3'));
    live.console.shows("rejected edit: e");
    let fresh = editing(&mut live);
    assert!(fresh.text.contains("\"mine\""), "{}", fresh.text);
    assert!(
        fresh.text.contains("has changed since it was read"),
        "{}",
        fresh.text
    );
    // Text that is not a valid summary is kept as well.
    edit(&mut live, fresh, "\"mine\"", "\"mine");
    live.again(|_| {});
    live.press(KeyCode::Char('3'));
    let mended = editing(&mut live);
    edit(&mut live, mended, "\"mine", "\"mine\"");
    live.console.shows("s-1 edited and recorded");
    live.console.hides("rejected edit");

    live.again(|_| {});
    live.press(KeyCode::Char('3'));
    live.console.shows("ARC       mine");
    live.console.hides("rejected edit");
    assert!(live.rehearsal.snapshot().thread_drafts.is_empty());
}

#[test]
fn the_history_shows_the_sequence_number_of_each_turn() {
    let mut live = LiveConsole::new();
    live.turn(&turn(1, "clean up"));
    let _held = live.ask("ticket.delete", json!({"id": 1}), 1);
    live.turn(&turn(2, "purge all"));
    live.press(KeyCode::Char('3'));
    live.press(KeyCode::Char('b'));
    let events = live.events_of("s-1");
    for turned in &live.rehearsal.snapshot().threads[0].turns {
        let wanted = turned.event.as_ref().unwrap();
        let event = events
            .iter()
            .find(|event| event.event_id == *wanted)
            .unwrap();
        assert_eq!(turned.sequence, Some(event.sequence));
        live.console.shows(&format!("s-1#{} ", event.sequence));
    }
}

// covers D20
#[test]
fn an_operator_hands_a_thread_over_to_another_session() {
    let mut live = LiveConsole::new();
    live.turn(&turn(1, "clean up"));
    live.start_session("s-2");
    live.command("hand-over s-2");
    live.console.shows("choose the thread here");
    assert_eq!(live.on_disk("thread_handed_over"), Vec::<Value>::new());
    live.console.shows("s-1");
    live.command("hand-over s-9");
    live.console.shows("not recorded: ");
    assert_eq!(live.on_disk("thread_handed_over"), Vec::<Value>::new());
    live.command("hand-over s-2");
    live.console.shows("s-1 handed over to s-2 and recorded");
    let handed = live.on_disk("thread_handed_over");
    let wanted = json!({"thread_id": "s-1", "from": "s-1", "to": "s-2", "by": "op-1"});
    assert_eq!(handed, [wanted]);
    live.press(KeyCode::Tab);
    live.press(KeyCode::End);
    live.console.shows("handed over to s-2 at its next turn");

    live.again(|restart| restart.access(ConsoleAccess::ReadOnly));
    live.press(KeyCode::Char('3'));
    live.command("hand-over s-2");
    live.console.shows("this console is read-only");
    assert_eq!(live.on_disk("thread_handed_over").len(), 1);
}

/// The conversations screen of a snapshot.
fn pictured(snapshot: RuntimeSnapshot) -> TestConsole {
    let mut console = TestConsole::new(snapshot, (120, 36));
    console.press(KeyCode::Char('3'));
    console
}

// covers D20
#[test]
fn a_thread_names_its_owner_and_the_writes_that_were_refused() {
    let other = || "s-66".parse().unwrap();
    let thread = calm().with_refused_write(other(), fixture::now());
    let thread = thread.with_refused_write(other(), fixture::now());
    let mut console = pictured(with(fixture::idle(), [thread.clone()]));
    console.shows("s-07");
    console.press(KeyCode::Tab);
    console.press(KeyCode::End);
    console.shows("REFUSED 2 writes from other sessions, last by s-66 at ");
    let mut unowned = thread;
    unowned.owner = None;
    let console = pictured(with(fixture::idle(), [unowned]));
    console.shows("no owner: use `:hand-over SESSION`");
}
