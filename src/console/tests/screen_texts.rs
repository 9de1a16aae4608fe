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
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.open_gate("c-121");
    stage.shows("Request (exact)");
    stage.shows("seen 100 %");
    stage.snapshot(with_other(&other_request()));
    stage.shows("Request (previous)");
    stage.hides("(exact)");
    stage.hides("seen");
    let (before, now) = (ticket_delete().request_hash, other_request().request_hash);
    stage.shows(&format!("hash {} → {}", before.short(4), now.short(4)));
    stage.wait(DIALOG_ARMING_TIME);
    stage.press(KeyCode::Enter);
    stage.shows("Request (exact)");
    stage.shows(&format!("hash {}  ", now.short(4)));
    stage.snapshot(expired());
    stage.shows("Request (as requested)");
    stage.hides("seen");
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
    for (picture, word, why) in [
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
            let mut stage = TestConsole::new(picture.clone(), size);
            stage.open_gate("c-121");
            stage.shows(word);
            stage.hides("READY");
            stage.shows(&format!("Deciding is disabled: {why}"));
            stage.presses(KeyCode::Tab, 4);
            stage.press(KeyCode::Enter);
            stage.shows(&format!("cannot deny: {why}"));
        }
    }
    // The way out is shown in full, even on a narrow screen.
    let mut stage = TestConsole::new(broken(busy()), TINY);
    stage.open_gate("c-121");
    stage.shows(":ack-broken-chain       ");
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.press(KeyCode::Enter);
    stage.shows("DENIED  WAIT");
    stage.shows("Pass is disabled: just opened, wait a moment");
}

#[test]
fn a_hint_about_the_files_disappears_when_it_is_outdated() {
    let mut stage = TestConsole::new(in_force(busy()), WIDE);
    stage.press(KeyCode::Char('4'));
    found(&mut stage, newer(&faulty()));
    stage.press(KeyCode::Char('L'));
    stage.shows("fix the errors first");
    found(&mut stage, newer(&faulty()));
    stage.shows("fix the errors first");
    found(&mut stage, newer(&tighter()));
    stage.hides("fix the errors first");
    stage.shows("next due in");
}

#[test]
fn pass_now_decides_nothing_before_the_whole_review_was_on_screen() {
    for size in SIZES {
        let mut stage = TestConsole::new(busy(), size);
        stage.open_gate("c-121");
        reviewing(&mut stage);
        // Everything else that a pass needs is complete.
        stage.type_text(&ticket_delete().request_hash.short(4));
        stage.presses(KeyCode::Tab, 2);
        for _ in 0..3 {
            assert_eq!(decisions(stage.press(KeyCode::Enter)), [], "{size:?}");
        }
        // Pages that were never painted do not count as seen.
        for _ in 0..9 {
            stage.key(KeyCode::PageDown);
        }
        if size == TINY {
            assert_eq!(decisions(stage.press(KeyCode::Enter)), [], "{size:?}");
        }
        stage.presses(KeyCode::PageUp, 9);
        stage.presses(KeyCode::PageDown, 9);
        assert_eq!(decisions(stage.press(KeyCode::Enter)).len(), 1, "{size:?}");
    }
}

#[test]
fn page_down_shows_the_rest_of_the_review_and_of_a_changed_request() {
    for size in SIZES {
        let mut stage = TestConsole::new(busy(), size);
        stage.open_gate("c-121");
        reviewing(&mut stage);
        stage.shows("PgDn: more below");
        stage.shows("Pass now is disabled: scroll down first (PgDn)");
        stage.press(KeyCode::PageDown);
        stage.shows("PgUp");
        stage.presses(KeyCode::PageDown, 9);
        stage.shows("gate answered");
        stage.shows("PgUp: more above");
        stage.shows("Pass now is disabled: type the hash first");
        stage.presses(KeyCode::PageUp, 9);
        stage.shows("PASS      ticket.delete");
    }
    // Two pages at once without painting in between: the skipped content does not count as seen.
    let mut stage = TestConsole::new(busy(), TINY);
    stage.open_gate("c-121");
    reviewing(&mut stage);
    for _ in 0..9 {
        stage.key(KeyCode::PageDown);
    }
    stage.paint();
    stage.shows("scroll up first (PgUp)");
    stage.presses(KeyCode::PageUp, 9);
    stage.presses(KeyCode::PageDown, 9);
    stage.shows("type the hash first");
    let mut stage = TestConsole::new(busy(), TINY);
    stage.open_gate("c-121");
    answered(&mut stage);
    stage.snapshot(with_other(&other_request()));
    stage.wait(DIALOG_ARMING_TIME);
    stage.presses(KeyCode::PageDown, 9);
    stage.shows("your input, not sent");
    let end = stage.text();
    // Typed lines count as lines too: no key press is lost at the end.
    stage.presses(KeyCode::Down, 9);
    assert_eq!(stage.text(), end);
    stage.press(KeyCode::Up);
    assert_ne!(stage.text(), end);
}

// One more condition before a batch passes.
#[test]
fn a_batch_passes_only_after_all_planned_records_were_on_screen() {
    let mut stage = TestConsole::new(three(), TINY);
    open_batch(&mut stage, 3);
    stage.press(KeyCode::F(6));
    stage.presses(KeyCode::PageDown, 20);
    stage.press(KeyCode::F(6));
    review_batch(&mut stage);
    stage.press(KeyCode::Tab);
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
    stage.shows("cannot pass: scroll down first (PgDn)");
    // The request covers the review, so the review does not count as seen meanwhile.
    stage.press(KeyCode::F(6));
    stage.presses(KeyCode::PageDown, 9);
    stage.press(KeyCode::F(6));
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
    stage.presses(KeyCode::PageDown, 4);
    stage.shows("gate answered");
    assert_eq!(decisions(stage.press(KeyCode::Enter)).len(), 3);
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
        let mut stage = TestConsole::new(picture.clone(), size);
        stage.app.on_queued(1234);
        stage.paint();
        stage.shows("READ-ONLY  14:02:31Z");
        stage.shows("SEALED");
        let (name, of) = (format!("header_{}", size.0), stage.text());
        assert_snapshot!(name, of.lines().take(2).collect::<Vec<_>>().join("\n"));
        picture.store = StoreState::Poisoned {
            what: "the disk is full".to_owned(),
        };
        stage.snapshot(picture);
        stage.shows("NOT RECORDING");
        stage.shows("  14:02:31Z");
        stage.shows("a-ve");
    }
}

#[test]
fn the_help_scrolls_up_at_once_from_its_end() {
    for size in SIZES {
        let mut stage = TestConsole::new(busy(), size);
        stage.press(KeyCode::Char('?'));
        stage.presses(KeyCode::PageDown, 90);
        let end = stage.text();
        stage.press(KeyCode::Up);
        assert_ne!(stage.text(), end, "{end}");
        stage.press(KeyCode::Down);
        assert_eq!(stage.text(), end);
    }
}

#[test]
fn a_filter_counts_unlisted_facets_and_leaves_room_for_the_rest() {
    let archive = Archive::sample();
    let mut stage = TestConsole::new(busy(), (100, 36));
    archive.open(&mut stage, "s-15");
    stage.shows("FOLLOW");
    let mut stage = TestConsole::new(busy(), WIDE);
    archive.open(&mut stage, "s-09");
    archive.enter(&mut stage, 'f', "type:checkpoint|risk actor:o2");
    stage.shows("3 types: gate answered 2, gate passed 1, +1");
}

#[test]
fn the_reload_state_is_hidden_if_there_are_no_files() {
    for size in [SMALL, TINY] {
        let mut stage = TestConsole::new(super::sample_atlases::studied(busy()), size);
        stage.press(KeyCode::Char('4'));
        stage.hides("RELOAD");
        stage.hides("not checked yet");
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

    let mut stage = TestConsole::new(busy(), TINY);
    stage.open_gate("c-121");
    stage.shows("F6 request");
    stage.press(KeyCode::F(6));
    for shown in ["F6 answers", "Esc back", "PgDn scroll", "/ search"] {
        stage.shows(shown);
    }
    stage.hides("next match");
    let mut stage = TestConsole::new(in_force(busy()), SMALL);
    stage.press(KeyCode::Char('4'));
    // There is nothing to load yet.
    stage.shows("e editor");
    stage.hides("L load");
    found(&mut stage, newer(&tighter()));
    stage.shows("L load");
}

#[test]
fn the_footer_shows_the_back_key_below_the_top_level() {
    let archive = Archive::sample();
    for size in SIZES {
        let mut stage = TestConsole::new(busy(), size);
        archive.press(&mut stage, KeyCode::Char('2'));
        stage.hides("Esc back");
        archive.press(&mut stage, KeyCode::Enter);
        stage.shows("Esc back");
        stage.shows("? help");
        archive.press(&mut stage, KeyCode::Enter);
        stage.shows("Esc back");
    }
}

#[test]
fn records_of_one_decision_count_once_and_proof_letters_are_explained() {
    let archive = Archive::sample();
    let mut stage = TestConsole::new(busy(), WIDE);
    archive.open(&mut stage, "s-09");
    stage.shows("1 checkpoint · 1 signed · 1 denied · 0 expired/withdrawn · 0 missing");
    stage.hides("S sealed");
    stage.message(archive.checked(2));
    stage.shows("W witnessed  S sealed  ? not proven  X wrong");
    archive.enter(&mut stage, ':', "seek 7");
    stage.shows("working · held: ticket.delete");
}

#[test]
fn a_broken_chain_names_its_session_at_every_width() {
    for size in SIZES {
        let stage = TestConsole::new(broken(busy()), size);
        stage.shows("! CHAIN BROKEN in s-09: event");
        stage.shows(":ack-broken-chain");
    }
}

#[test]
fn the_palette_lists_harmless_commands_first() {
    let mut stage = TestConsole::new(broken(busy()), SMALL);
    stage.press(KeyCode::Char(':'));
    stage.shows("> filter TEXT");
    assert_eq!(stage.presses(KeyCode::Enter, 2), []);
    let mut stage = TestConsole::new(busy(), WIDE);
    stage.press(KeyCode::Char(':'));
    let text = stage.text();
    let place = |name: &str| text.find(name).unwrap();
    assert!(place("override ID") > place("ack-broken-chain"));
    assert!(place("ack-override") > place("quit"));
}
