//! Snapshots of the screens in very rare states, at three sizes, one below the other.

use std::sync::Arc;

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::archive::Archive;
use super::batch::{open_batch, three};
use super::drafts::{full_draft, with_draft};
use super::fixture::{busy, decided, idle, now, snapshot, user_ban};
use super::rules::denied;
use super::sample_threads::two;
use super::states::expired;
use super::steward::{found, in_force};
use super::test_console::TestConsole;
use super::trace::grow;
use crate::base::digest::Digest;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::screen::atlas::FileState;
use crate::console::theme::{Appearance, Background};
use crate::engine::command::{HeldOutcome, OverruledDenial};
use crate::engine::held::Held;
use crate::runtime::snapshot::{ChainVerdict, ConsoleAccess, RuntimeSnapshot};

const SIZES: [(u16, u16); 3] = [(120, 36), (80, 24), (60, 18)];

/// A state at each size.
fn at_every_size(picture: &RuntimeSnapshot, act: impl Fn(&mut TestConsole)) -> String {
    let screens = SIZES.map(|size| {
        let mut console = TestConsole::new(picture.clone(), size);
        act(&mut console);
        console.text()
    });
    screens.join("\n\n")
}

/// A state of the record screen at each size, with the sample archive.
fn in_trace(session: &str, act: impl Fn(&Archive, &mut TestConsole)) -> String {
    let archive = Archive::sample();
    at_every_size(&busy(), |console| {
        archive.open(console, session);
        act(&archive, console);
    })
}

/// Returns the first rows, which all screens share.
fn head(text: &str) -> String {
    let rows = text.split("\n\n").map(|screen| {
        let rows: Vec<&str> = screen.lines().take(3).collect();
        rows.join("\n")
    });
    rows.collect::<Vec<_>>().join("\n\n")
}

fn without(mut picture: RuntimeSnapshot, how: HeldOutcome, by: Option<&str>) -> RuntimeSnapshot {
    picture.held.retain(|held| held.id.as_str() != "c-121");
    let gone = decided("c-121", "14:02:40", how, by);
    picture.decided.insert(0, Arc::new(gone));
    picture
}

#[test]
fn the_override_of_a_denial() {
    let overrule = |console: &mut TestConsole| {
        console.press(KeyCode::Char(':'));
        console.type_text("override c-9");
        console.press(KeyCode::Enter);
        console.wait(DIALOG_ARMING_TIME);
    };
    let picture = snapshot([denied()]);
    assert_snapshot!("override", at_every_size(&picture, overrule));
    let mut picture = idle();
    picture.operator_acts.overruled = vec![OverruledDenial {
        gate: "c-9".parse().unwrap(),
        session: "s-1".parse().unwrap(),
        action: "ticket.delete".to_owned(),
        by: "op-2@ops".to_owned(),
        at: now(),
    }];
    let text = at_every_size(&picture, |console| console.shows("OVERRIDE c-9"));
    assert_snapshot!("override_banner", head(&text));
}

#[test]
fn a_dialog_that_is_arming_and_one_with_a_kept_draft() {
    let arming = |console: &mut TestConsole| {
        console.press(KeyCode::Enter);
        console.shows("DENIED  WAIT");
    };
    assert_snapshot!("arming", at_every_size(&busy(), arming));
    let picture = with_draft(busy(), "c-121", full_draft());
    let kept = |console: &mut TestConsole| {
        console.open_gate("c-121");
        console.shows("draft saved");
    };
    assert_snapshot!("draft_kept", at_every_size(&picture, kept));
    let mut picture = busy();
    let mine = decided("c-117", "14:01:00", HeldOutcome::Passed, Some("op-1@ops"));
    picture.decided = vec![Arc::new(mine)];
    let paced = |console: &mut TestConsole| {
        console.open_gate("c-121");
        console.shows("you passed 1 in 10 min");
    };
    assert_snapshot!("pace", at_every_size(&picture, paced));
}

#[test]
fn a_request_that_ended_while_its_dialog_was_open() {
    let end = |next: RuntimeSnapshot| {
        at_every_size(&busy(), |console| {
            console.open_gate("c-121");
            console.snapshot(next.clone());
            console.shows("CLOSED");
        })
    };
    let by = Some("o2@ops");
    assert_snapshot!(
        "settled_by_another",
        end(without(busy(), HeldOutcome::Denied, by))
    );
    let withdrawn = end(without(busy(), HeldOutcome::Withdrawn, None));
    assert_snapshot!("settled_withdrawn", withdrawn);
    assert!(end(expired()).contains("→ DENIED: no answer"));
}

/// Types all proofs. The focus ends on the button that passes.
fn sign(console: &mut TestConsole, held: &Held) {
    console.press(KeyCode::F(6));
    console.presses(KeyCode::PageDown, 9);
    console.press(KeyCode::F(6));
    console.type_text("a good reason, with words");
    console.presses(KeyCode::Tab, 3);
    console.press(KeyCode::Enter);
    console.presses(KeyCode::PageDown, 9);
    console.type_text(&held.request_hash.short(4));
    console.press(KeyCode::Tab);
    console.type_text(held.action());
    console.presses(KeyCode::Tab, 2);
    console.hides("is disabled");
}

#[test]
fn the_proofs_of_a_critical_request() {
    let picture = snapshot([user_ban()]);
    let signed = |console: &mut TestConsole| {
        console.open();
        sign(console, &user_ban());
    };
    assert_snapshot!("critical_signing", at_every_size(&picture, signed));
}

#[test]
fn the_header_for_each_state_of_the_record() {
    let verdict = |verdict: ChainVerdict| {
        let mut picture = busy();
        picture.chain.verdict = verdict;
        picture.chain.head.covered = 0;
        picture
    };
    let unreadable = verdict(ChainVerdict::Unreadable {
        what: "disk I/O error".to_owned(),
    });
    let broken = verdict(ChainVerdict::Broken {
        session: "s-09".parse().unwrap(),
        what: "event 3: the hash differs".to_owned(),
        mark: Digest::of("fault"),
    });
    let mut known = broken.clone();
    known.operator_acts.acknowledged_fault = known.chain.verdict.fault();
    let unsealed = verdict(ChainVerdict::Verified {
        events: 225,
        unsealed: 12,
    });
    let heads = [unreadable, known, unsealed].map(|picture| head(&at_every_size(&picture, |_| {})));
    assert_snapshot!("verdicts", heads.join("\n\n"));
    let mut picture = two();
    picture.chain.verdict = broken.chain.verdict;
    let threads = |console: &mut TestConsole| {
        console.press(KeyCode::Char('3'));
        console.shows("CHAIN BROKEN in s-09");
    };
    assert_snapshot!("broken_threads", at_every_size(&picture, threads));
}

#[test]
fn the_record_screen_in_rare_states() {
    let following = |archive: &Archive, console: &mut TestConsole| {
        archive.keys(console, "F");
        console.shows("FOLLOW on");
    };
    assert_snapshot!("follow", in_trace("s-12", following));
    let behind = |console: &mut TestConsole| {
        let mut archive = Archive::default();
        (0..12).for_each(|at| grow(&mut archive, at));
        archive.open(console, "s-1");
        (12..21).for_each(|at| grow(&mut archive, at));
        let requests = console.message(ConsoleMessage::Sessions(Ok(archive.sessions())));
        archive.serve(console, requests);
        console.shows("+9 new below");
    };
    assert_snapshot!("new_below", at_every_size(&busy(), behind));
    let playing = |archive: &Archive, console: &mut TestConsole| {
        archive.keys(console, " ");
        console.shows("PLAYING at 0 of 14");
    };
    assert_snapshot!("playing", in_trace("s-09", playing));
    let verifying = |archive: &Archive, console: &mut TestConsole| {
        let asked = archive.press(console, KeyCode::Char('v'));
        assert!(matches!(asked.as_slice(), [ConsoleRequest::Verify(_)]));
        console.shows("VERIFYING");
    };
    assert_snapshot!("verifying", in_trace("s-09", verifying));
}

#[test]
fn the_queue_in_rare_states() {
    let marked = |console: &mut TestConsole| {
        open_batch(console, 2);
        console.press(KeyCode::Esc);
        console.shows("2 marked, B to open");
    };
    assert_snapshot!("marked", at_every_size(&three(), marked));
    let searching = |console: &mut TestConsole| {
        console.press(KeyCode::Char('/'));
        console.type_text("refund");
        console.shows("search> refund");
    };
    assert_snapshot!("searching", at_every_size(&busy(), searching));
    let sorted = |console: &mut TestConsole| {
        console.press(KeyCode::Char('o'));
        console.hides("sort: risk");
    };
    assert_snapshot!("sorted", at_every_size(&busy(), sorted));
    let mut empty = TestConsole::new(idle(), SIZES[2]);
    empty.paint();
    assert_snapshot!("empty_60x18", empty.text());
}

#[test]
fn the_atlas_screen_with_unchanged_files() {
    let same = |console: &mut TestConsole| {
        console.press(KeyCode::Char('4'));
        console.presses(KeyCode::End, 1);
        found(console, FileState::Same);
    };
    let text = at_every_size(&in_force(busy()), same);
    assert!(text.contains("LIVE = FILE"), "{text}");
    assert_snapshot!("live_is_file", text);
}

#[test]
fn the_read_only_console() {
    let archive = Archive::sample();
    let mut picture = two();
    picture.access = ConsoleAccess::ReadOnly;
    let trace = |console: &mut TestConsole| {
        archive.open(console, "s-09");
        console.shows("READ-ONLY");
    };
    assert_snapshot!("read_only_trace", at_every_size(&picture, trace));
    let threads = |console: &mut TestConsole| {
        console.press(KeyCode::Char('3'));
        console.shows("READ-ONLY");
    };
    assert_snapshot!("read_only_threads", at_every_size(&picture, threads));
}

/// Colours matter here: the snapshot includes their names.
#[test]
fn rare_screens_on_a_light_background() {
    let appearance = Appearance {
        background: Background::Light,
        ..Appearance::default()
    };
    let archive = Archive::sample();
    let mut console = TestConsole::with_look(busy(), SIZES[1], appearance);
    archive.open(&mut console, "s-09");
    console.message(archive.checked(2));
    assert_snapshot!("light_trace", console.picture());
    let mut console = TestConsole::with_look(two(), SIZES[1], appearance);
    console.press(KeyCode::Char('3'));
    assert_snapshot!("light_threads", console.picture());
    let mut console = TestConsole::with_look(in_force(busy()), SIZES[1], appearance);
    console.press(KeyCode::Char('4'));
    assert_snapshot!("light_atlas", console.picture());
}
