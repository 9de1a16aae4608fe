//! Texts on the screens match the state: for finished requests, for keys, and for content out of view.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::archive::Archive;
use super::batch::{open_batch, review_batch, three};
use super::fixture::{busy, ticket_delete};
use super::states::{answered, expired, other_request, reviewing, with_other};
use super::steward::{faulty, found, in_force, newer, tighter};
use super::test_console::{TestConsole, decisions};
use crate::base::digest::Digest;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::keymap::KeyAction;
use crate::console::screen::queue::QueueKey;
use crate::runtime::snapshot::{
    ChainVerdict, ConsoleAccess, RuntimeSnapshot, StoreState, UndeliveredCounts,
};

const WIDE: (u16, u16) = (120, 36);
const SMALL: (u16, u16) = (80, 24);
const TINY: (u16, u16) = (60, 18);
const SIZES: [(u16, u16); 3] = [WIDE, SMALL, TINY];

#[test]
fn a_finished_or_changed_request_is_not_shown_as_running() {
    let mut console = TestConsole::new(busy(), WIDE);
    console.open_gate("c-121");
    console.shows("Request (exact)");
    console.shows("seen 100 %");
    console.snapshot(with_other(&other_request()));
    console.shows("Request (previous)");
    console.hides("(exact)");
    console.hides("seen");
    let (before, now) = (ticket_delete().request_hash, other_request().request_hash);
    console.shows(&format!("hash {} → {}", before.short(4), now.short(4)));
    console.wait(DIALOG_ARMING_TIME);
    console.press(KeyCode::Enter);
    console.shows("Request (exact)");
    console.shows(&format!("hash {}  ", now.short(4)));
    console.snapshot(expired());
    console.shows("Request (as requested)");
    console.hides("seen");
}

fn broken(mut picture: RuntimeSnapshot) -> RuntimeSnapshot {
    picture.chain.verdict = ChainVerdict::Broken {
        session: "s-09".parse().unwrap(),
        what: "event 3: the hash differs".to_owned(),
        mark: Digest::of("fault"),
    };
    picture
}

#[test]
fn a_reason_that_blocks_both_decisions_is_shown_for_both() {
    let mut read_only = busy();
    read_only.access = ConsoleAccess::ReadOnly;
    let mut poisoned = busy();
    poisoned.store = StoreState::Poisoned {
        what: "disk full".to_owned(),
    };
    let mut stalled = busy();
    stalled.store = StoreState::Stalled {
        what: "the disk hangs".to_owned(),
    };
    for (picture, word, reason) in [
        (stalled, "DENIED  DISABLED", "cannot write records"),
        (read_only, "DENIED  READ-ONLY", "read-only"),
        (
            broken(busy()),
            "DENIED  DISABLED",
            "chain broken; Esc, then",
        ),
        (poisoned, "DENIED  DISABLED", "cannot write records"),
    ] {
        for size in SIZES {
            let mut console = TestConsole::new(picture.clone(), size);
            console.open_gate("c-121");
            console.shows(word);
            console.hides("READY");
            console.shows(&format!("Deciding is disabled: {reason}"));
            console.presses(KeyCode::Tab, 4);
            console.press(KeyCode::Enter);
            console.shows(&format!("cannot deny: {reason}"));
        }
    }
    // The way out is shown in full, even on a narrow screen.
    let mut console = TestConsole::new(broken(busy()), TINY);
    console.open_gate("c-121");
    console.shows(":ack-broken-chain       ");
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Enter);
    console.shows("DENIED  WAIT");
    console.shows("Pass is disabled: just opened, wait a moment");
}

#[test]
fn a_hint_about_the_files_disappears_when_it_is_outdated() {
    let mut console = TestConsole::new(in_force(busy()), WIDE);
    console.press(KeyCode::Char('4'));
    found(&mut console, newer(&faulty()));
    console.press(KeyCode::Char('L'));
    console.shows("fix the errors first");
    found(&mut console, newer(&faulty()));
    console.shows("fix the errors first");
    found(&mut console, newer(&tighter()));
    console.hides("fix the errors first");
    console.shows("next due in");
}

#[test]
fn pass_now_decides_nothing_before_the_whole_review_was_on_screen() {
    for size in SIZES {
        let mut console = TestConsole::new(busy(), size);
        console.open_gate("c-121");
        reviewing(&mut console);
        // Everything else that a pass needs is complete.
        console.type_text(&ticket_delete().request_hash.short(4));
        console.presses(KeyCode::Tab, 2);
        for _ in 0..3 {
            assert_eq!(decisions(console.press(KeyCode::Enter)), [], "{size:?}");
        }
        // Pages that were never painted do not count as seen.
        for _ in 0..9 {
            console.key(KeyCode::PageDown);
        }
        if size == TINY {
            assert_eq!(decisions(console.press(KeyCode::Enter)), [], "{size:?}");
        }
        console.presses(KeyCode::PageUp, 9);
        console.presses(KeyCode::PageDown, 9);
        assert_eq!(
            decisions(console.press(KeyCode::Enter)).len(),
            1,
            "{size:?}"
        );
    }
}

#[test]
fn page_down_shows_the_rest_of_the_review_and_of_a_changed_request() {
    for size in SIZES {
        let mut console = TestConsole::new(busy(), size);
        console.open_gate("c-121");
        reviewing(&mut console);
        console.shows("PgDn: more below");
        console.shows("Pass now is disabled: scroll down first (PgDn)");
        console.press(KeyCode::PageDown);
        console.shows("PgUp");
        console.presses(KeyCode::PageDown, 9);
        console.shows("gate answered");
        console.shows("PgUp: more above");
        console.shows("Pass now is disabled: type the hash first");
        console.presses(KeyCode::PageUp, 9);
        console.shows("PASS      ticket.delete");
    }
    // Two pages at once without painting in between: the skipped content does not count as seen.
    let mut console = TestConsole::new(busy(), TINY);
    console.open_gate("c-121");
    reviewing(&mut console);
    for _ in 0..9 {
        console.key(KeyCode::PageDown);
    }
    console.paint();
    console.shows("scroll up first (PgUp)");
    console.presses(KeyCode::PageUp, 9);
    console.presses(KeyCode::PageDown, 9);
    console.shows("type the hash first");
    let mut console = TestConsole::new(busy(), TINY);
    console.open_gate("c-121");
    answered(&mut console);
    console.snapshot(with_other(&other_request()));
    console.wait(DIALOG_ARMING_TIME);
    console.presses(KeyCode::PageDown, 9);
    console.shows("your input, not sent");
    let end = console.text();
    // Typed lines count as lines too: no key press is lost at the end.
    console.presses(KeyCode::Down, 9);
    assert_eq!(console.text(), end);
    console.press(KeyCode::Up);
    assert_ne!(console.text(), end);
}

// One more condition before a batch passes.
#[test]
fn a_batch_passes_only_after_all_planned_records_were_on_screen() {
    let mut console = TestConsole::new(three(), TINY);
    open_batch(&mut console, 3);
    console.press(KeyCode::F(6));
    console.presses(KeyCode::PageDown, 20);
    console.press(KeyCode::F(6));
    review_batch(&mut console);
    console.press(KeyCode::Tab);
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.shows("cannot pass: scroll down first (PgDn)");
    // The request covers the review, so the review does not count as seen meanwhile.
    console.press(KeyCode::F(6));
    console.presses(KeyCode::PageDown, 9);
    console.press(KeyCode::F(6));
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.presses(KeyCode::PageDown, 4);
    console.shows("gate answered");
    assert_eq!(decisions(console.press(KeyCode::Enter)).len(), 3);
}

#[test]
fn a_long_header_keeps_its_required_parts() {
    let dropped = UndeliveredCounts {
        advice: 12_345,
        hooks: 7,
        answers: 1,
    };
    for size in SIZES {
        let mut picture = RuntimeSnapshot {
            undelivered: dropped,
            ..busy()
        };
        picture.operator = "a-very-long-operator@some.place.example.com".to_owned();
        picture.access = ConsoleAccess::ReadOnly;
        let mut console = TestConsole::new(picture.clone(), size);
        console.app.on_queued(1234);
        console.paint();
        console.shows("READ-ONLY  14:02:31Z");
        console.shows("SEALED");
        let (name, of) = (format!("header_{}", size.0), console.text());
        assert_snapshot!(name, of.lines().take(2).collect::<Vec<_>>().join("\n"));
        picture.store = StoreState::Poisoned {
            what: "the disk is full".to_owned(),
        };
        console.snapshot(picture);
        console.shows("NOT RECORDING");
        console.shows("  14:02:31Z");
        console.shows("a-ve");
    }
}

#[test]
fn the_help_scrolls_up_at_once_from_its_end() {
    for size in SIZES {
        let mut console = TestConsole::new(busy(), size);
        console.press(KeyCode::Char('?'));
        console.presses(KeyCode::PageDown, 90);
        let end = console.text();
        console.press(KeyCode::Up);
        assert_ne!(console.text(), end, "{end}");
        console.press(KeyCode::Down);
        assert_eq!(console.text(), end);
    }
}

#[test]
fn a_filter_counts_unlisted_facets_and_leaves_room_for_the_rest() {
    let archive = Archive::sample();
    let mut console = TestConsole::new(busy(), (100, 36));
    archive.open(&mut console, "s-15");
    console.shows("FOLLOW");
    let mut console = TestConsole::new(busy(), WIDE);
    archive.open(&mut console, "s-09");
    archive.enter(&mut console, 'f', "type:checkpoint|risk actor:o2");
    console.shows("3 types: gate answered 2, gate passed 1, +1");
}

#[test]
fn the_reload_state_is_hidden_if_there_are_no_files() {
    for size in [SMALL, TINY] {
        let mut console = TestConsole::new(super::sample_atlases::studied(busy()), size);
        console.press(KeyCode::Char('4'));
        console.hides("RELOAD");
        console.hides("not checked yet");
    }
}

#[test]
fn keys_that_have_an_effect_are_offered_first() {
    // Nothing can be decided, so keys that decide or lead to a decision are disabled.
    let queue = TestConsole::new(busy(), WIDE).app.screens.queue;
    let writes = [
        KeyAction::Deny,
        KeyAction::Queue(QueueKey::Claim),
        KeyAction::Queue(QueueKey::Batch),
    ];
    for action in writes {
        assert!(!queue.can(action, ConsoleAccess::ReadOnly), "{action:?}");
    }
    assert!(queue.can(KeyAction::Deny, ConsoleAccess::Write));
    assert!(queue.can(KeyAction::Open, ConsoleAccess::ReadOnly));
    // The selected request is critical, and must be decided alone.
    assert!(!queue.can(KeyAction::Queue(QueueKey::Mark), ConsoleAccess::Write));
    let batch = TestConsole::new(three(), WIDE).app.screens.queue;
    assert!(batch.can(KeyAction::Queue(QueueKey::Mark), ConsoleAccess::Write));
    assert!(!batch.can(KeyAction::Queue(QueueKey::Mark), ConsoleAccess::ReadOnly));

    let mut console = TestConsole::new(busy(), TINY);
    console.open_gate("c-121");
    console.shows("F6 request");
    console.press(KeyCode::F(6));
    for shown in ["F6 answers", "Esc back", "PgDn scroll", "/ search"] {
        console.shows(shown);
    }
    console.hides("next match");
    let mut console = TestConsole::new(in_force(busy()), SMALL);
    console.press(KeyCode::Char('4'));
    // There is nothing to load yet.
    console.shows("e editor");
    console.hides("L load");
    found(&mut console, newer(&tighter()));
    console.shows("L load");
}

#[test]
fn the_footer_shows_the_back_key_below_the_top_level() {
    let archive = Archive::sample();
    for size in SIZES {
        let mut console = TestConsole::new(busy(), size);
        archive.press(&mut console, KeyCode::Char('2'));
        console.hides("Esc back");
        archive.press(&mut console, KeyCode::Enter);
        console.shows("Esc back");
        console.shows("? help");
        archive.press(&mut console, KeyCode::Enter);
        console.shows("Esc back");
    }
}

#[test]
fn records_of_one_decision_count_once_and_proof_letters_are_explained() {
    let archive = Archive::sample();
    let mut console = TestConsole::new(busy(), WIDE);
    archive.open(&mut console, "s-09");
    console.shows("1 checkpoint · 1 signed · 1 denied · 0 expired/withdrawn · 0 missing");
    console.hides("S sealed");
    console.message(archive.checked(2));
    console.shows("W witnessed  S sealed  ? not proven  X wrong");
    archive.enter(&mut console, ':', "seek 7");
    console.shows("working · held: ticket.delete");
}

#[test]
fn a_broken_chain_names_its_session_at_every_width() {
    for size in SIZES {
        let console = TestConsole::new(broken(busy()), size);
        console.shows("! CHAIN BROKEN in s-09: event");
        console.shows(":ack-broken-chain");
    }
}

#[test]
fn the_palette_lists_harmless_commands_first() {
    let mut console = TestConsole::new(broken(busy()), SMALL);
    console.press(KeyCode::Char(':'));
    console.shows("> filter TEXT");
    assert_eq!(console.presses(KeyCode::Enter, 2), []);
    let mut console = TestConsole::new(busy(), WIDE);
    console.press(KeyCode::Char(':'));
    let text = console.text();
    let place = |name: &str| text.find(name).unwrap();
    assert!(place("override ID") > place("ack-broken-chain"));
    assert!(place("ack-override") > place("quit"));
}
