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
        let mut stage = TestConsole::new(picture.clone(), size);
        act(&mut stage);
        stage.text()
    });
    screens.join("\n\n")
}

/// A state of the record screen at each size, with the sample archive.
fn in_trace(session: &str, act: impl Fn(&Archive, &mut TestConsole)) -> String {
    let archive = Archive::sample();
    at_every_size(&busy(), |stage| {
        archive.open(stage, session);
        act(&archive, stage);
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
    let overrule = |stage: &mut TestConsole| {
        stage.press(KeyCode::Char(':'));
        stage.type_text("override c-9");
        stage.press(KeyCode::Enter);
        stage.wait(DIALOG_ARMING_TIME);
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
    let text = at_every_size(&picture, |stage| stage.shows("OVERRIDE c-9"));
    assert_snapshot!("override_banner", head(&text));
}

#[test]
fn a_dialog_that_is_arming_and_one_with_a_kept_draft() {
    let arming = |stage: &mut TestConsole| {
        stage.press(KeyCode::Enter);
        stage.shows("DENIED  WAIT");
    };
    assert_snapshot!("arming", at_every_size(&busy(), arming));
    let picture = with_draft(busy(), "c-121", full_draft());
    let kept = |stage: &mut TestConsole| {
        stage.open_gate("c-121");
        stage.shows("draft saved");
    };
    assert_snapshot!("draft_kept", at_every_size(&picture, kept));
    let mut picture = busy();
    let mine = decided("c-117", "14:01:00", HeldOutcome::Passed, Some("op-1@ops"));
    picture.decided = vec![Arc::new(mine)];
    let paced = |stage: &mut TestConsole| {
        stage.open_gate("c-121");
        stage.shows("you passed 1 in 10 min");
    };
    assert_snapshot!("pace", at_every_size(&picture, paced));
}

#[test]
fn a_request_that_ended_while_its_dialog_was_open() {
    let end = |next: RuntimeSnapshot| {
        at_every_size(&busy(), |stage| {
            stage.open_gate("c-121");
            stage.snapshot(next.clone());
            stage.shows("CLOSED");
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
fn sign(stage: &mut TestConsole, held: &Held) {
    stage.press(KeyCode::F(6));
    stage.presses(KeyCode::PageDown, 9);
    stage.press(KeyCode::F(6));
    stage.type_text("a good reason, with words");
    stage.presses(KeyCode::Tab, 3);
    stage.press(KeyCode::Enter);
    stage.presses(KeyCode::PageDown, 9);
    stage.type_text(&held.request_hash.short(4));
    stage.press(KeyCode::Tab);
    stage.type_text(held.action());
    stage.presses(KeyCode::Tab, 2);
    stage.hides("is disabled");
}

#[test]
fn the_proofs_of_a_critical_request() {
    let picture = snapshot([user_ban()]);
    let signed = |stage: &mut TestConsole| {
        stage.open();
        sign(stage, &user_ban());
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
    let threads = |stage: &mut TestConsole| {
        stage.press(KeyCode::Char('3'));
        stage.shows("CHAIN BROKEN in s-09");
    };
    assert_snapshot!("broken_threads", at_every_size(&picture, threads));
}

#[test]
fn the_record_screen_in_rare_states() {
    let following = |archive: &Archive, stage: &mut TestConsole| {
        archive.keys(stage, "F");
        stage.shows("FOLLOW on");
    };
    assert_snapshot!("follow", in_trace("s-12", following));
    let behind = |stage: &mut TestConsole| {
        let mut archive = Archive::default();
        (0..12).for_each(|at| grow(&mut archive, at));
        archive.open(stage, "s-1");
        (12..21).for_each(|at| grow(&mut archive, at));
        let requests = stage.message(ConsoleMessage::Sessions(Ok(archive.sessions())));
        archive.serve(stage, requests);
        stage.shows("+9 new below");
    };
    assert_snapshot!("new_below", at_every_size(&busy(), behind));
    let playing = |archive: &Archive, stage: &mut TestConsole| {
        archive.keys(stage, " ");
        stage.shows("PLAYING at 0 of 14");
    };
    assert_snapshot!("playing", in_trace("s-09", playing));
    let verifying = |archive: &Archive, stage: &mut TestConsole| {
        let asked = archive.press(stage, KeyCode::Char('v'));
        assert!(matches!(asked.as_slice(), [ConsoleRequest::Verify(_)]));
        stage.shows("VERIFYING");
    };
    assert_snapshot!("verifying", in_trace("s-09", verifying));
}

#[test]
fn the_queue_in_rare_states() {
    let marked = |stage: &mut TestConsole| {
        open_batch(stage, 2);
        stage.press(KeyCode::Esc);
        stage.shows("2 marked, B to open");
    };
    assert_snapshot!("marked", at_every_size(&three(), marked));
    let searching = |stage: &mut TestConsole| {
        stage.press(KeyCode::Char('/'));
        stage.type_text("refund");
        stage.shows("search> refund");
    };
    assert_snapshot!("searching", at_every_size(&busy(), searching));
    let sorted = |stage: &mut TestConsole| {
        stage.press(KeyCode::Char('o'));
        stage.hides("sort: risk");
    };
    assert_snapshot!("sorted", at_every_size(&busy(), sorted));
    let mut empty = TestConsole::new(idle(), SIZES[2]);
    empty.paint();
    assert_snapshot!("empty_60x18", empty.text());
}

#[test]
fn the_atlas_screen_with_unchanged_files() {
    let same = |stage: &mut TestConsole| {
        stage.press(KeyCode::Char('4'));
        stage.presses(KeyCode::End, 1);
        found(stage, FileState::Same);
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
    let trace = |stage: &mut TestConsole| {
        archive.open(stage, "s-09");
        stage.shows("READ-ONLY");
    };
    assert_snapshot!("read_only_trace", at_every_size(&picture, trace));
    let threads = |stage: &mut TestConsole| {
        stage.press(KeyCode::Char('3'));
        stage.shows("READ-ONLY");
    };
    assert_snapshot!("read_only_threads", at_every_size(&picture, threads));
}

/// Colours matter here: the snapshot includes their names.
#[test]
fn rare_screens_on_a_light_background() {
    let look = Appearance {
        background: Background::Light,
        ..Appearance::default()
    };
    let archive = Archive::sample();
    let mut stage = TestConsole::with_look(busy(), SIZES[1], look);
    archive.open(&mut stage, "s-09");
    stage.message(archive.checked(2));
    assert_snapshot!("light_trace", stage.picture());
    let mut stage = TestConsole::with_look(two(), SIZES[1], look);
    stage.press(KeyCode::Char('3'));
    assert_snapshot!("light_threads", stage.picture());
    let mut stage = TestConsole::with_look(in_force(busy()), SIZES[1], look);
    stage.press(KeyCode::Char('4'));
    assert_snapshot!("light_atlas", stage.picture());
}
