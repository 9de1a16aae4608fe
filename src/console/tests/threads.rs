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
    let mut stage = TestConsole::new(snapshot, size);
    stage.press(KeyCode::Char('3'));
    stage
}

fn key(stage: &mut TestConsole, key: char) -> Vec<ConsoleRequest> {
    stage.press(KeyCode::Char(key))
}

fn sized(name: &str, (width, height): (u16, u16)) -> String {
    format!("{name}_{width}x{height}")
}

// covers D10, D16
#[test]
fn a_frozen_thread_shows_the_time_the_cause_and_the_proposals_held_back() {
    for size in SIZES {
        let stage = shown(two(), size);
        for text in ["SUMMARY FROZEN", "since 13:59:10", " for later"] {
            stage.shows(text);
        }
        stage.shows("(TRUE or TRUE) and TRUE = TRUE");
        stage.shows("a must signal, or phase and intensity drop");
        assert_snapshot!(sized("threads_frozen", size), stage.text());
    }
    let stage = shown(two(), WIDE);
    stage.shows("1 thread frozen");
    stage.shows("2 saved for later");
    stage.shows("+ ARC       purge all ACME duplicates now");
    stage.shows("- ARC       dedupe ACME tickets before Friday's export");
    stage.shows("reason: phase=peak, intensity=high, decision=should");
    stage.shows("rule 3: a signal in the SHOULD set");
    assert_snapshot!("threads_frozen_styled", stage.picture());
    let look = Appearance {
        glyphs: Glyphs::Ascii,
        ..Appearance::default()
    };
    let mut stage = TestConsole::with_look(two(), WIDE, look);
    key(&mut stage, '3');
    stage.shows(".-###");
    assert!(stage.text().is_ascii(), "{}", stage.text());
}

#[test]
fn the_frozen_mark_is_cyan_reversed_and_has_a_word() {
    let stage = shown(two(), WIDE);
    let text = stage.text();
    let (row, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.contains("*** SUMMARY FROZEN ***"))
        .unwrap();
    let column = line.chars().take_while(|c| *c != '*').count();
    let place = (u16::try_from(column).unwrap(), u16::try_from(row).unwrap());
    let cell = &stage.buffer()[place];
    assert_eq!(cell.fg, Color::Cyan);
    assert!(cell.modifier.contains(Modifier::REVERSED));
}

// covers D6
#[test]
fn a_calm_thread_shows_that_its_summary_follows_the_turns() {
    for size in SIZES {
        let stage = shown(with(fixture::idle(), [calm()]), size);
        stage.shows("not frozen");
        stage.hides("SUMMARY FROZEN");
        assert_snapshot!(sized("threads_calm", size), stage.text());
    }
    let stage = shown(with(fixture::idle(), [calm()]), WIDE);
    stage.shows("context pressure no  drift no  ack-only YES  summary changed no");
    stage.shows("(FALSE or FALSE) and TRUE = FALSE");
}

#[test]
fn the_empty_screen_explains_how_conversations_start() {
    for size in SIZES {
        let stage = shown(fixture::idle(), size);
        stage.shows("No threads yet.");
        stage.shows("cra turn FILE");
        assert_snapshot!(sized("threads_empty", size), stage.text());
    }
}

#[test]
fn hostile_agent_text_in_a_thread_moves_and_hides_nothing() {
    for size in SIZES {
        let mut stage = shown(with(fixture::busy(), [hostile()]), size);
        let check = |stage: &TestConsole| {
            for cell in stage.buffer().content() {
                assert!(!cell.symbol().chars().any(is_deceptive), "{}", stage.text());
            }
        };
        stage.shows("\\u{202e}");
        check(&stage);
        assert_snapshot!(sized("threads_hostile", size), stage.text());
        key(&mut stage, '=');
        check(&stage);
        key(&mut stage, 'b');
        check(&stage);
        key(&mut stage, 'w');
        check(&stage);
        stage.press(KeyCode::Esc);
        key(&mut stage, '1');
        stage.open_gate("c-119");
        check(&stage);
    }
    let mut stage = shown(with(fixture::idle(), [hostile()]), WIDE);
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::End);
    stage.shows("hidden characters");
    stage.shows("drift flagged by op\\u{202e}-1");
}

// covers D16
#[test]
fn the_difference_compares_every_proposal_with_the_stored_summary() {
    for size in SIZES {
        let mut stage = shown(two(), size);
        key(&mut stage, '=');
        stage.shows(" 2 saved for later ");
        stage.shows(" 2 saved for later  FROZEN ");
        stage.shows("NOT APPLIED, saved for later by the peak guardrail");
        assert_snapshot!(sized("threads_diff", size), stage.text());
        stage.press(KeyCode::End);
        stage.hides("more below");
        stage.shows("next chance");
        stage.press(KeyCode::Esc);
        stage.shows("Memento v1");
    }
    // The summary thaws while the operator looks at it.
    let mut stage = shown(two(), WIDE);
    key(&mut stage, '=');
    let mut thawed = two();
    let thaw = |thread: &std::sync::Arc<crate::memento::Thread>| {
        let mut thread = (**thread).clone();
        thread.held_back.clear();
        std::sync::Arc::new(thread)
    };
    thawed.threads = thawed.threads.iter().map(thaw).collect();
    thawed.revision += 1;
    stage.snapshot(thawed);
    stage.shows("No proposal is saved for later.");
    let mut stage = shown(with(fixture::idle(), [calm()]), WIDE);
    key(&mut stage, '=');
    stage.shows("no proposal is saved for later");
    stage.shows("Memento v1");
}

#[test]
fn lines_that_an_accepted_proposal_keeps_are_not_shown_as_different() {
    let silent = json!({"proposed": {"arc": "purge"}});
    let mut stage = shown(with(fixture::idle(), [take(&frozen(), 1, 6, silent)]), WIDE);
    key(&mut stage, '=');
    stage.shows("- ACTIVE    confirm export window");
    stage.hides("- NEXT");
    stage.hides("- DECISIONS");
}

#[test]
fn enter_in_the_history_shows_the_event_of_a_turn() {
    for size in SIZES {
        let mut stage = shown(two(), size);
        key(&mut stage, 'b');
        stage.press(KeyCode::Down);
        assert_snapshot!(sized("threads_history", size), stage.text());
        let asked = stage.press(KeyCode::Enter);
        let (session, event) = ("s-12".parse().unwrap(), "event-4".parse().unwrap());
        assert_eq!(asked, [ConsoleRequest::FindEvent(session, event)]);
        assert_eq!(stage.app.screen, ScreenId::Threads);
    }
    let mut stage = shown(two(), WIDE);
    key(&mut stage, 'b');
    stage.press(KeyCode::Enter);
    stage.message(ConsoleMessage::Sessions(Ok(fixture::sessions())));
    let found = ConsoleMessage::EventFound("s-12".parse().unwrap(), Ok(Some(4)));
    let requests = stage.message(found);
    assert_eq!(stage.app.screen, ScreenId::Trace);
    assert!(
        requests
            .iter()
            .any(|request| matches!(request, ConsoleRequest::Read(_)))
    );
    stage.shows(">    4 ");
}

#[test]
fn a_late_event_does_not_switch_the_screen() {
    let found = |found| ConsoleMessage::EventFound("s-12".parse().unwrap(), found);
    let mut stage = shown(two(), WIDE);
    key(&mut stage, '1');
    stage.message(found(Ok(Some(4))));
    assert_eq!(stage.app.screen, ScreenId::Queue);
    key(&mut stage, '3');
    key(&mut stage, 'w');
    stage.message(found(Ok(Some(4))));
    assert_eq!(stage.app.screen, ScreenId::Threads);
    stage.press(KeyCode::Esc);
    stage.message(found(Ok(None)));
    stage.shows("the event is not in the record of s-12");
    stage.message(found(Err("disk\u{202e}".to_owned())));
    stage.shows("cannot read the record: disk\\u{202e}");
}

#[test]
fn the_selected_turn_stays_selected_while_turns_arrive() {
    let mut stage = shown(two(), WIDE);
    key(&mut stage, 'b');
    stage.press(KeyCode::Down);
    let more = take(&frozen(), 1, 6, json!({}));
    stage.snapshot(with(fixture::idle(), [more, calm()]));
    let asked = stage.press(KeyCode::Enter);
    let event = "event-4".parse().unwrap();
    assert_eq!(
        asked,
        [ConsoleRequest::FindEvent("s-12".parse().unwrap(), event)]
    );
}

#[test]
fn rows_of_the_list_keep_their_places() {
    let mut stage = shown(two(), WIDE);
    let rows = |stage: &TestConsole| {
        let text = stage.text();
        (text.find("t-31").unwrap(), text.find("t-29").unwrap())
    };
    let before = rows(&stage);
    // The other conversation has the newest turn now.
    stage.snapshot(with(fixture::idle(), [calm(), frozen()]));
    assert_eq!(rows(&stage), before);
    stage.shows("> t-31");
    // Leaving the screen and returning shows the newest first.
    key(&mut stage, '1');
    key(&mut stage, '3');
    assert_ne!(rows(&stage), before);
    stage.shows("> t-31");
    // The row of a removed thread is used by another one.
    stage.snapshot(with(fixture::idle(), [calm()]));
    stage.shows("> t-29");
}

#[test]
fn keys_select_the_next_thread_and_show_it_in_the_record() {
    let mut stage = shown(two(), (80, 24));
    stage.shows("1 of 2 (< >)");
    key(&mut stage, '>');
    stage.shows("2 of 2 (< >)");
    stage.shows("invoices");
    key(&mut stage, '>');
    stage.shows("2 of 2 (< >)");
    key(&mut stage, '<');
    stage.shows("1 of 2 (< >)");
    let asked = key(&mut stage, 't');
    assert_eq!(stage.app.screen, ScreenId::Trace);
    assert_eq!(asked, [ConsoleRequest::LoadSessions]);
}

#[test]
fn the_search_covers_all_texts_of_a_thread_and_its_keys_trigger_no_action() {
    for size in SIZES {
        let mut stage = shown(two(), size);
        key(&mut stage, '/');
        assert_eq!(stage.type_text("INVOIC"), []);
        stage.shows("search> INVOIC");
        stage.shows("1 of 2 match");
        stage.shows("answer questions about invoices");
        assert_snapshot!(sized("threads_search", size), stage.text());
        stage.press(KeyCode::Esc);
        stage.hides("search>");
        stage.shows("dedupe ACME tickets");
        // The search covers proposals held back, the session and the name.
        for text in ["190 duplicates", "s-12", "t-31"] {
            key(&mut stage, '>');
            stage.shows("answer questions about invoices");
            key(&mut stage, '/');
            stage.type_text(text);
            stage.press(KeyCode::Enter);
            stage.hides("search>");
            stage.shows("dedupe ACME tickets");
        }
    }
    let mut stage = shown(two(), WIDE);
    assert_eq!(key(&mut stage, 'n'), []);
    stage.shows("no match; / searches threads");
    key(&mut stage, '/');
    // Both match: next, around the end, and back.
    stage.event(&Event::Paste("t-\u{202e}\nx".to_owned()));
    stage.shows("2 of 2 match");
    stage.press(KeyCode::Enter);
    stage.shows("/t- ");
    for (pressed, wanted) in [('n', "> t-29"), ('n', "> t-31"), ('N', "> t-29")] {
        key(&mut stage, pressed);
        stage.shows(wanted);
    }
    stage.press(KeyCode::Esc);
    stage.hides("/t- ");
    key(&mut stage, '/');
    stage.type_text("nowhere");
    stage.shows("0 of 2 match");
    stage.shows("> t-29");
}

#[test]
fn the_memento_is_copied_unchanged() {
    let mut stage = shown(two(), WIDE);
    let Some(ConsoleRequest::Copy(text)) = key(&mut stage, 'y').pop() else {
        panic!("nothing was copied");
    };
    let copied: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(copied, serde_json::to_value(frozen().latest).unwrap());
}

// covers D3
#[test]
fn the_legend_explains_every_term() {
    let mut stage = shown(fixture::idle(), WIDE);
    key(&mut stage, 'p');
    assert_snapshot!("threads_legend", stage.text());
    let first = stage.text();
    stage.press(KeyCode::End);
    let both = first + &stage.text();
    for kind in SignalKind::ALL {
        let name = kind.as_str().replace('_', " ");
        let words = format!("{name:<20}{} (", kind.description());
        assert!(both.contains(&words), "{words}");
    }
    for size in &SIZES[1..] {
        stage.resize(size.0, size.1);
        stage.press(KeyCode::Home);
        assert_snapshot!(sized("threads_legend", *size), stage.text());
    }
    stage.press(KeyCode::Esc);
    stage.shows("No threads yet.");
}

#[test]
fn drift_is_flagged_only_after_a_confirmation_that_defaults_to_cancel() {
    let mut stage = shown(two(), WIDE);
    assert_eq!(key(&mut stage, 'w'), []);
    stage.shows("Flag drift in t-31?");
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.hides("drifts?");
    key(&mut stage, 'w');
    stage.press(KeyCode::Tab);
    let asked = stage.press(KeyCode::Enter);
    let thread = || "t-31".parse().unwrap();
    let act = || ThreadAction::FlagDrift;
    assert_eq!(asked, [ConsoleRequest::ActOnThread(thread(), act())]);
    stage.message(ConsoleMessage::ThreadActed(thread(), act(), Ok(())));
    stage.shows("drift in t-31 flagged and recorded");
    let refused = Err(DecisionRefusal::Unavailable("full disk".to_owned()));
    stage.message(ConsoleMessage::ThreadActed(thread(), act(), refused));
    stage.shows("not recorded");
}

#[test]
fn a_read_only_console_neither_edits_nor_flags() {
    let mut snapshot = two();
    snapshot.access = ConsoleAccess::ReadOnly;
    let mut stage = shown(snapshot, WIDE);
    for pressed in ['e', 'w'] {
        assert_eq!(key(&mut stage, pressed), []);
        stage.shows("this console is read-only");
        assert!(stage.app.layers.is_empty());
    }
    let act = ConsoleRequest::ActOnThread("t-31".parse().unwrap(), ThreadAction::FlagDrift);
    assert!(!stage.app.may_send(&act));
}

/// Returns the edit that is sent to the editor.
fn editing(stage: &mut TestConsole) -> ThreadEdit {
    let Some(ConsoleRequest::EditThread(edit)) = key(stage, 'e').pop() else {
        panic!("no editor");
    };
    *edit
}

// covers D20
#[test]
fn an_edit_names_the_state_it_is_based_on_and_a_rejected_text_is_kept() {
    let mut stage = shown(two(), WIDE);
    let thread = || "t-31".parse().unwrap();
    let edit = editing(&mut stage);
    assert_eq!(Some(edit.etag.clone()), frozen().etag());
    let edited = |edit: &ThreadEdit, text: &str| {
        ConsoleMessage::ThreadEdited(Box::new(edit.clone()), Ok(text.to_owned()))
    };
    assert_eq!(stage.message(edited(&edit, &edit.text)), []);
    stage.shows("no changes");

    let broken = edit.text.replace("dedupe", "de\"dupe");
    let kept = stage.message(edited(&edit, &broken));
    let why = "expected `,` or `}` at line 4 column 14";
    let draft = Some(json!({"text": broken, "why": why}));
    assert_eq!(kept, [ConsoleRequest::KeepThreadDraft(thread(), draft)]);
    stage.shows("e reopens your text");
    stage.shows("rejected edit: e");
    let again = editing(&mut stage);
    assert!(again.text.contains("de\"dupe"), "{}", again.text);
    assert!(again.text.contains("was rejected"), "{}", again.text);

    let mine = again.text.replace("de\"dupe", "mine");
    let asked = stage.message(edited(&again, &mine));
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
    stage.snapshot(with(fixture::idle(), [newer.clone(), calm()]));
    let refused = Err(DecisionRefusal::Unavailable(
        "the memento has changed".to_owned(),
    ));
    stage.message(ConsoleMessage::ThreadActed(thread(), act.clone(), refused));
    stage.shows("e shows both texts");
    let once_more = editing(&mut stage);
    assert_eq!(Some(once_more.etag), newer.etag());
    assert!(once_more.text.contains("\"mine ACME"), "{}", once_more.text);
    assert!(once_more.text.contains("the memento has changed"));
    assert!(once_more.text.contains("#     \"arc\": \"dedupe ACME"));

    let done = stage.message(ConsoleMessage::ThreadActed(thread(), act, Ok(())));
    assert_eq!(done, [ConsoleRequest::KeepThreadDraft(thread(), None)]);
    stage.shows("next turn must use it");
    stage.hides("rejected edit");
    assert!(!editing(&mut stage).text.contains("mine"));
    let failed = ConsoleMessage::ThreadEdited(Box::new(edit), Err("no editor".to_owned()));
    assert_eq!(stage.message(failed), []);
    stage.shows("no editor");
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
    let mut stage = shown(with(fixture::idle(), [edited]), WIDE);
    stage.shows(" EDITED ");
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::End);
    stage.shows("edited by an operator: the next turn");
    stage.shows("drift flagged by op-2");
}

// covers D10
#[test]
fn a_request_of_a_frozen_thread_is_marked_wherever_it_is_shown() {
    let snapshot = || with(fixture::busy(), [frozen(), calm()]);
    let mut stage = TestConsole::new(snapshot(), WIDE);
    let text = stage.text();
    let row = text.lines().find(|line| line.contains("c-121")).unwrap();
    assert!(row.contains("FROZEN"), "{row}");
    let other = text.lines().find(|line| line.contains("c-119")).unwrap();
    assert!(!other.contains("FROZEN"), "{other}");
    stage.shows("3 Threads !1");
    stage.press(KeyCode::Down);
    stage.shows("summary FROZEN since 13:59:10, 2 updates saved for later");
    assert_snapshot!("threads_in_the_queue", stage.text());
    stage.open_gate("c-121");
    stage.press(KeyCode::F(6));
    stage.press(KeyCode::End);
    stage.shows("arc: dedupe ACME tickets");
    assert_snapshot!("threads_in_the_dialog", stage.text());
    // The summary thaws while the dialog is open.
    stage.snapshot(with(fixture::busy(), [calm()]));
    stage.hides("dedupe ACME tickets");
    let (told, _) = LineConsoleTester::new(snapshot()).types(&["show c-121"]);
    let wanted = "summary FROZEN since 13:59:10, 2 updates saved for later.";
    assert!(told.contains(wanted), "{told}");
}
