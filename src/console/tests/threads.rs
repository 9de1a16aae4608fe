//! Tests of the conversations screen, and of conversations on other screens.

use insta::assert_snapshot;
use ratatui::crossterm::event::{Event, KeyCode};
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};

use super::fixture;
use super::linear::LineConsoleTester;
use super::sample_threads::{calm, frozen, hostile, take, two, with};
use super::test_console::TestConsole;
use crate::base::text::is_deceptive;
use crate::console::request::{ConsoleMessage, ConsoleRequest, ThreadEdit};
use crate::console::screen::ScreenId;
use crate::console::theme::{Appearance, Glyphs};
use crate::engine::command::DecisionRefusal;
use crate::memento::{SignalKind, SummaryShape};
use crate::runtime::ThreadAction;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

const WIDE: (u16, u16) = (120, 36);
const SIZES: [(u16, u16); 3] = [WIDE, (80, 24), (60, 18)];

/// Shows the conversations screen.
fn shown(snapshot: RuntimeSnapshot, size: (u16, u16)) -> TestConsole {
    let mut console = TestConsole::new(snapshot, size);
    console.press(KeyCode::Char('3'));
    console
}

fn key(console: &mut TestConsole, key: char) -> Vec<ConsoleRequest> {
    console.press(KeyCode::Char(key))
}

fn sized(name: &str, (width, height): (u16, u16)) -> String {
    format!("{name}_{width}x{height}")
}

// covers D10, D16
#[test]
fn a_frozen_thread_shows_the_time_the_cause_and_the_proposals_held_back() {
    for size in SIZES {
        let console = shown(two(), size);
        for text in ["SUMMARY FROZEN", "since 13:59:10", " for later"] {
            console.shows(text);
        }
        console.shows("(TRUE or TRUE) and TRUE = TRUE");
        console.shows("a must signal, or phase and intensity drop");
        assert_snapshot!(sized("threads_frozen", size), console.text());
    }
    let console = shown(two(), WIDE);
    console.shows("1 thread frozen");
    console.shows("2 saved for later");
    console.shows("+ ARC       purge all ACME duplicates now");
    console.shows("- ARC       dedupe ACME tickets before Friday's export");
    console.shows("reason: phase=peak, intensity=high, decision=should");
    console.shows("rule 3: a signal in the SHOULD set");
    assert_snapshot!("threads_frozen_styled", console.picture());
    let appearance = Appearance {
        glyphs: Glyphs::Ascii,
        ..Appearance::default()
    };
    let mut console = TestConsole::with_look(two(), WIDE, appearance);
    key(&mut console, '3');
    console.shows(".-###");
    assert!(console.text().is_ascii(), "{}", console.text());
}

#[test]
fn the_frozen_mark_is_cyan_reversed_and_has_a_word() {
    let console = shown(two(), WIDE);
    let text = console.text();
    let (row, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains("*** SUMMARY FROZEN ***"))
        .unwrap();
    let column = line.chars().take_while(|c| *c != '*').count();
    let place = (u16::try_from(column).unwrap(), u16::try_from(row).unwrap());
    let cell = &console.buffer()[place];
    assert_eq!(cell.fg, Color::Cyan);
    assert!(cell.modifier.contains(Modifier::REVERSED));
}

// covers D6
#[test]
fn a_calm_thread_shows_that_its_summary_follows_the_turns() {
    for size in SIZES {
        let console = shown(with(fixture::idle(), [calm()]), size);
        console.shows("not frozen");
        console.hides("SUMMARY FROZEN");
        assert_snapshot!(sized("threads_calm", size), console.text());
    }
    let console = shown(with(fixture::idle(), [calm()]), WIDE);
    console.shows("context pressure no  drift no  ack-only YES  summary changed no");
    console.shows("(FALSE or FALSE) and TRUE = FALSE");
}

#[test]
fn the_empty_screen_explains_how_conversations_start() {
    for size in SIZES {
        let console = shown(fixture::idle(), size);
        console.shows("No threads yet.");
        console.shows("cra turn FILE");
        assert_snapshot!(sized("threads_empty", size), console.text());
    }
}

#[test]
fn hostile_agent_text_in_a_thread_moves_and_hides_nothing() {
    for size in SIZES {
        let mut console = shown(with(fixture::busy(), [hostile()]), size);
        let check = |console: &TestConsole| {
            for cell in console.buffer().content() {
                assert!(
                    !cell.symbol().chars().any(is_deceptive),
                    "{}",
                    console.text()
                );
            }
        };
        console.shows("\\u{202e}");
        check(&console);
        assert_snapshot!(sized("threads_hostile", size), console.text());
        key(&mut console, '=');
        check(&console);
        key(&mut console, 'b');
        check(&console);
        key(&mut console, 'w');
        check(&console);
        console.press(KeyCode::Esc);
        key(&mut console, '1');
        console.open_gate("c-119");
        check(&console);
    }
    let mut console = shown(with(fixture::idle(), [hostile()]), WIDE);
    console.press(KeyCode::Tab);
    console.press(KeyCode::End);
    console.shows("hidden characters");
    console.shows("drift flagged by op\\u{202e}-1");
}

// covers D16
#[test]
fn the_difference_compares_every_proposal_with_the_stored_summary() {
    for size in SIZES {
        let mut console = shown(two(), size);
        key(&mut console, '=');
        console.shows(" 2 saved for later ");
        console.shows(" 2 saved for later  FROZEN ");
        console.shows("NOT APPLIED, saved for later by the peak guardrail");
        assert_snapshot!(sized("threads_diff", size), console.text());
        console.press(KeyCode::End);
        console.hides("more below");
        console.shows("next chance");
        console.press(KeyCode::Esc);
        console.shows("Memento v1");
    }
    // The summary thaws while the operator looks at it.
    let mut console = shown(two(), WIDE);
    key(&mut console, '=');
    let mut thawed = two();
    let thaw = |thread: &std::sync::Arc<crate::memento::Thread>| {
        let mut thread = (**thread).clone();
        thread.held_back.clear();
        std::sync::Arc::new(thread)
    };
    thawed.threads = thawed.threads.iter().map(thaw).collect();
    thawed.revision += 1;
    console.snapshot(thawed);
    console.shows("No proposal is saved for later.");
    let mut console = shown(with(fixture::idle(), [calm()]), WIDE);
    key(&mut console, '=');
    console.shows("no proposal is saved for later");
    console.shows("Memento v1");
}

#[test]
fn lines_that_an_accepted_proposal_keeps_are_not_shown_as_different() {
    let silent = json!({"proposed": {"arc": "purge"}});
    let mut console = shown(with(fixture::idle(), [take(&frozen(), 1, 6, silent)]), WIDE);
    key(&mut console, '=');
    console.shows("- ACTIVE    confirm export window");
    console.hides("- NEXT");
    console.hides("- DECISIONS");
}

#[test]
fn enter_in_the_history_shows_the_event_of_a_turn() {
    for size in SIZES {
        let mut console = shown(two(), size);
        key(&mut console, 'b');
        console.press(KeyCode::Down);
        assert_snapshot!(sized("threads_history", size), console.text());
        let asked = console.press(KeyCode::Enter);
        let (session, event) = ("s-12".parse().unwrap(), "event-4".parse().unwrap());
        assert_eq!(asked, [ConsoleRequest::FindEvent(session, event)]);
        assert_eq!(console.app.screen, ScreenId::Threads);
    }
    let mut console = shown(two(), WIDE);
    key(&mut console, 'b');
    console.press(KeyCode::Enter);
    console.message(ConsoleMessage::Sessions(Ok(fixture::sessions())));
    let found = ConsoleMessage::EventFound("s-12".parse().unwrap(), Ok(Some(4)));
    let requests = console.message(found);
    assert_eq!(console.app.screen, ScreenId::Trace);
    assert!(
        requests
            .iter()
            .any(|request| matches!(request, ConsoleRequest::Read(_)))
    );
    console.shows(">    4 ");
}

#[test]
fn a_late_event_does_not_switch_the_screen() {
    let found = |found| ConsoleMessage::EventFound("s-12".parse().unwrap(), found);
    let mut console = shown(two(), WIDE);
    key(&mut console, '1');
    console.message(found(Ok(Some(4))));
    assert_eq!(console.app.screen, ScreenId::Queue);
    key(&mut console, '3');
    key(&mut console, 'w');
    console.message(found(Ok(Some(4))));
    assert_eq!(console.app.screen, ScreenId::Threads);
    console.press(KeyCode::Esc);
    console.message(found(Ok(None)));
    console.shows("the event is not in the record of s-12");
    console.message(found(Err("disk\u{202e}".to_owned())));
    console.shows("cannot read the record: disk\\u{202e}");
}

#[test]
fn the_selected_turn_stays_selected_while_turns_arrive() {
    let mut console = shown(two(), WIDE);
    key(&mut console, 'b');
    console.press(KeyCode::Down);
    let more = take(&frozen(), 1, 6, json!({}));
    console.snapshot(with(fixture::idle(), [more, calm()]));
    let asked = console.press(KeyCode::Enter);
    let event = "event-4".parse().unwrap();
    assert_eq!(
        asked,
        [ConsoleRequest::FindEvent("s-12".parse().unwrap(), event)]
    );
}

#[test]
fn rows_of_the_list_keep_their_places() {
    let mut console = shown(two(), WIDE);
    let rows = |console: &TestConsole| {
        let text = console.text();
        (text.find("t-31").unwrap(), text.find("t-29").unwrap())
    };
    let before = rows(&console);
    // The other conversation has the newest turn now.
    console.snapshot(with(fixture::idle(), [calm(), frozen()]));
    assert_eq!(rows(&console), before);
    console.shows("> t-31");
    // Leaving the screen and returning shows the newest first.
    key(&mut console, '1');
    key(&mut console, '3');
    assert_ne!(rows(&console), before);
    console.shows("> t-31");
    // The row of a removed thread is used by another one.
    console.snapshot(with(fixture::idle(), [calm()]));
    console.shows("> t-29");
}

#[test]
fn keys_select_the_next_thread_and_show_it_in_the_record() {
    let mut console = shown(two(), (80, 24));
    console.shows("1 of 2 (< >)");
    key(&mut console, '>');
    console.shows("2 of 2 (< >)");
    console.shows("invoices");
    key(&mut console, '>');
    console.shows("2 of 2 (< >)");
    key(&mut console, '<');
    console.shows("1 of 2 (< >)");
    let asked = key(&mut console, 't');
    assert_eq!(console.app.screen, ScreenId::Trace);
    assert_eq!(asked, [ConsoleRequest::LoadSessions]);
}

#[test]
fn the_search_covers_all_texts_of_a_thread_and_its_keys_trigger_no_action() {
    for size in SIZES {
        let mut console = shown(two(), size);
        key(&mut console, '/');
        assert_eq!(console.type_text("INVOIC"), []);
        console.shows("search> INVOIC");
        console.shows("1 of 2 match");
        console.shows("answer questions about invoices");
        assert_snapshot!(sized("threads_search", size), console.text());
        console.press(KeyCode::Esc);
        console.hides("search>");
        console.shows("dedupe ACME tickets");
        // The search covers proposals held back, the session and the name.
        for text in ["190 duplicates", "s-12", "t-31"] {
            key(&mut console, '>');
            console.shows("answer questions about invoices");
            key(&mut console, '/');
            console.type_text(text);
            console.press(KeyCode::Enter);
            console.hides("search>");
            console.shows("dedupe ACME tickets");
        }
    }
    let mut console = shown(two(), WIDE);
    assert_eq!(key(&mut console, 'n'), []);
    console.shows("no match; / searches threads");
    key(&mut console, '/');
    // Both match: next, around the end, and back.
    console.event(&Event::Paste("t-\u{202e}\nx".to_owned()));
    console.shows("2 of 2 match");
    console.press(KeyCode::Enter);
    console.shows("/t- ");
    for (pressed, wanted) in [('n', "> t-29"), ('n', "> t-31"), ('N', "> t-29")] {
        key(&mut console, pressed);
        console.shows(wanted);
    }
    console.press(KeyCode::Esc);
    console.hides("/t- ");
    key(&mut console, '/');
    console.type_text("nowhere");
    console.shows("0 of 2 match");
    console.shows("> t-29");
}

#[test]
fn the_memento_is_copied_unchanged() {
    let mut console = shown(two(), WIDE);
    let Some(ConsoleRequest::Copy(text)) = key(&mut console, 'y').pop() else {
        panic!("nothing was copied");
    };
    let copied: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(copied, serde_json::to_value(frozen().latest).unwrap());
}

// covers D3
#[test]
fn the_legend_explains_every_term() {
    let mut console = shown(fixture::idle(), WIDE);
    key(&mut console, 'p');
    assert_snapshot!("threads_legend", console.text());
    let first = console.text();
    console.press(KeyCode::End);
    let both = first + &console.text();
    for kind in SignalKind::ALL {
        let name = kind.as_str().replace('_', " ");
        let words = format!("{name:<20}{} (", kind.description());
        assert!(both.contains(&words), "{words}");
    }
    for size in &SIZES[1..] {
        console.resize(size.0, size.1);
        console.press(KeyCode::Home);
        assert_snapshot!(sized("threads_legend", *size), console.text());
    }
    console.press(KeyCode::Esc);
    console.shows("No threads yet.");
}

#[test]
fn drift_is_flagged_only_after_a_confirmation_that_defaults_to_cancel() {
    let mut console = shown(two(), WIDE);
    assert_eq!(key(&mut console, 'w'), []);
    console.shows("Flag drift in t-31?");
    assert_eq!(console.press(KeyCode::Enter), []);
    console.hides("drifts?");
    key(&mut console, 'w');
    console.press(KeyCode::Tab);
    let asked = console.press(KeyCode::Enter);
    let thread = || "t-31".parse().unwrap();
    let act = || ThreadAction::FlagDrift;
    assert_eq!(asked, [ConsoleRequest::ActOnThread(thread(), act())]);
    console.message(ConsoleMessage::ThreadActed(thread(), act(), Ok(())));
    console.shows("drift in t-31 flagged and recorded");
    let refused = Err(DecisionRefusal::Unavailable("full disk".to_owned()));
    console.message(ConsoleMessage::ThreadActed(thread(), act(), refused));
    console.shows("not recorded");
}

#[test]
fn a_read_only_console_neither_edits_nor_flags() {
    let mut snapshot = two();
    snapshot.access = ConsoleAccess::ReadOnly;
    let mut console = shown(snapshot, WIDE);
    for pressed in ['e', 'w'] {
        assert_eq!(key(&mut console, pressed), []);
        console.shows("this console is read-only");
        assert!(console.app.layers.is_empty());
    }
    let act = ConsoleRequest::ActOnThread("t-31".parse().unwrap(), ThreadAction::FlagDrift);
    assert!(!console.app.may_send(&act));
}

/// Returns the edit that is sent to the editor.
fn editing(console: &mut TestConsole) -> ThreadEdit {
    let Some(ConsoleRequest::EditThread(edit)) = key(console, 'e').pop() else {
        panic!("no editor");
    };
    *edit
}

// covers D20
#[test]
fn an_edit_names_the_state_it_is_based_on_and_a_rejected_text_is_kept() {
    let mut console = shown(two(), WIDE);
    let thread = || "t-31".parse().unwrap();
    let edit = editing(&mut console);
    assert_eq!(Some(edit.etag.clone()), frozen().etag());
    let edited = |edit: &ThreadEdit, text: &str| {
        ConsoleMessage::ThreadEdited(Box::new(edit.clone()), Ok(text.to_owned()))
    };
    assert_eq!(console.message(edited(&edit, &edit.text)), []);
    console.shows("no changes");

    let broken = edit.text.replace("dedupe", "de\"dupe");
    let kept = console.message(edited(&edit, &broken));
    let reason = "expected `,` or `}` at line 4 column 14";
    let draft = Some(json!({"text": broken, "why": reason}));
    assert_eq!(kept, [ConsoleRequest::KeepThreadDraft(thread(), draft)]);
    console.shows("e reopens your text");
    console.shows("rejected edit: e");
    let again = editing(&mut console);
    assert!(again.text.contains("de\"dupe"), "{}", again.text);
    assert!(again.text.contains("was rejected"), "{}", again.text);

    let mine = again.text.replace("de\"dupe", "mine");
    let asked = console.message(edited(&again, &mine));
    let shape = SummaryShape {
        arc: "mine ACME tickets before Friday's export".to_owned(),
        ..frozen().latest.unwrap().shape()
    };
    let act = ThreadAction::Edit {
        shape,
        if_match: edit.etag.clone(),
    };
    let draft = Some(json!({"text": mine, "why": "cra did not reply"}));
    let kept = ConsoleRequest::KeepThreadDraft(thread(), draft);
    assert_eq!(
        asked,
        [kept, ConsoleRequest::ActOnThread(thread(), act.clone())]
    );

    // Another turn came first: the operator is told, and gets the typed text back together with the stored
    // summary.
    let newer = take(&frozen(), 1, 6, json!({"signals": [], "message": "and on"}));
    console.snapshot(with(fixture::idle(), [newer.clone(), calm()]));
    let refused = Err(DecisionRefusal::Unavailable(
        "the memento has changed".to_owned(),
    ));
    console.message(ConsoleMessage::ThreadActed(thread(), act.clone(), refused));
    console.shows("e shows both texts");
    let once_more = editing(&mut console);
    assert_eq!(Some(once_more.etag), newer.etag());
    assert!(once_more.text.contains("\"mine ACME"), "{}", once_more.text);
    assert!(once_more.text.contains("the memento has changed"));
    assert!(once_more.text.contains("#     \"arc\": \"dedupe ACME"));

    let done = console.message(ConsoleMessage::ThreadActed(thread(), act, Ok(())));
    assert_eq!(done, [ConsoleRequest::KeepThreadDraft(thread(), None)]);
    console.shows("next turn must use it");
    console.hides("rejected edit");
    assert!(!editing(&mut console).text.contains("mine"));
    let failed = ConsoleMessage::ThreadEdited(Box::new(edit), Err("no editor".to_owned()));
    assert_eq!(console.message(failed), []);
    console.shows("no editor");
}

#[test]
fn an_edited_or_drifting_thread_is_marked() {
    let edited = frozen();
    let etag = edited.etag().unwrap();
    let shape = SummaryShape {
        arc: "mine".to_owned(),
        ..SummaryShape::default()
    };
    let edited = edited.edit(&shape, &etag, "mm-9".parse().unwrap(), fixture::now());
    let edited = edited.unwrap().flag_drift("op-2");
    let mut console = shown(with(fixture::idle(), [edited]), WIDE);
    console.shows(" EDITED ");
    console.press(KeyCode::Tab);
    console.press(KeyCode::End);
    console.shows("edited by an operator: the next turn");
    console.shows("drift flagged by op-2");
}

// covers D10
#[test]
fn a_request_of_a_frozen_thread_is_marked_wherever_it_is_shown() {
    let snapshot = || with(fixture::busy(), [frozen(), calm()]);
    let mut console = TestConsole::new(snapshot(), WIDE);
    let text = console.text();
    let row = text.lines().find(|line| line.contains("c-121")).unwrap();
    assert!(row.contains("FROZEN"), "{row}");
    let other = text.lines().find(|line| line.contains("c-119")).unwrap();
    assert!(!other.contains("FROZEN"), "{other}");
    console.shows("3 Threads !1");
    console.press(KeyCode::Down);
    console.shows("summary FROZEN since 13:59:10, 2 updates saved for later");
    assert_snapshot!("threads_in_the_queue", console.text());
    console.open_gate("c-121");
    console.press(KeyCode::F(6));
    console.press(KeyCode::End);
    console.shows("arc: dedupe ACME tickets");
    assert_snapshot!("threads_in_the_dialog", console.text());
    // The summary thaws while the dialog is open.
    console.snapshot(with(fixture::busy(), [calm()]));
    console.hides("dedupe ACME tickets");
    let (output, _) = LineConsoleTester::new(snapshot()).types(&["show c-121"]);
    let wanted = "summary FROZEN since 13:59:10, 2 updates saved for later.";
    assert!(output.contains(wanted), "{output}");
}
