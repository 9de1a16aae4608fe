//! Header, help, quitting, and terminals that are too small.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, idle};
use super::test_console::TestConsole;
use crate::console::request::ConsoleRequest;
use crate::runtime::snapshot::{
    ChainVerdict, HeadCopyState, RuntimeSnapshot, StoreState, UndeliveredCounts,
};

#[test]
fn help() {
    let mut console = TestConsole::new(busy(), (120, 36));
    console.press(KeyCode::Char('?'));
    assert_snapshot!(console.picture());
}

#[test]
fn help_is_searched_by_typing() {
    let mut console = TestConsole::new(busy(), (80, 24));
    console.press(KeyCode::Char('?'));
    console.type_text("reason");
    assert_snapshot!(console.text());
    console.press(KeyCode::Esc);
    assert_eq!(console.app.layers.len(), 0);
}

#[test]
fn too_small() {
    let mut console = TestConsole::new(busy(), (50, 12));
    assert_snapshot!(console.picture());
    assert_eq!(console.press(KeyCode::Enter), []);
    assert_eq!(console.app.layers.len(), 0);
    assert_eq!(console.press(KeyCode::Char('q')), [ConsoleRequest::Quit]);
}

#[test]
fn a_dialog_ignores_keys_while_the_terminal_is_too_small() {
    let mut console = TestConsole::new(busy(), (120, 36));
    console.open();
    console.resize(50, 12);
    console.shows("needs 60x18, is 50x12");
    assert_eq!(console.type_text("q"), []);
    console.press(KeyCode::Tab);
    console.resize(120, 36);
    console.shows("> Q1");
}

#[test]
fn quitting_asks_for_confirmation_while_requests_are_held() {
    let mut console = TestConsole::new(busy(), (80, 24));
    assert_eq!(console.press(KeyCode::Char('q')), []);
    assert_snapshot!(console.text());
    assert_eq!(
        console.press(KeyCode::Enter),
        [],
        "the focus starts on Stay"
    );
    assert_eq!(console.app.layers.len(), 0);
    console.press(KeyCode::Char('q'));
    console.press(KeyCode::Right);
    assert_eq!(console.press(KeyCode::Enter), [ConsoleRequest::Quit]);
}

#[test]
fn quitting_is_immediate_while_no_request_is_held() {
    let mut console = TestConsole::new(idle(), (80, 24));
    assert_eq!(console.press(KeyCode::Esc), [], "Esc never leaves");
    assert_eq!(console.press(KeyCode::Char('q')), [ConsoleRequest::Quit]);
}

/// A snapshot whose last check found `unsealed` events after the last signed head.
fn unsealed(unsealed: u64) -> RuntimeSnapshot {
    let mut picture = busy();
    picture.chain.head.covered = 0;
    picture.chain.verdict = ChainVerdict::Verified {
        events: 225,
        unsealed,
    };
    picture
}

#[test]
fn the_header_shows_sealed_and_unsealed_events() {
    for (size, sealed, open) in [
        ((120, 36), "chains 7 SEALED ", "chains 7 UNSEALED 104 "),
        ((80, 24), "chain SEALED ", "chain UNSEALED 104 "),
    ] {
        let mut picture = unsealed(0);
        picture.chain.events = 225;
        TestConsole::new(picture.clone(), size).shows(sealed);
        // Nine events arrived since, and some had no signature when they were read.
        picture = unsealed(95);
        picture.chain.events = 234;
        TestConsole::new(picture.clone(), size).shows(open);
        // The events were read back and signed.
        picture.chain.head.covered = 234;
        TestConsole::new(picture, size).shows(sealed);
    }
    let mut console = TestConsole::new(unsealed(0), (80, 24));
    console.shows("chain UNSEALED 9 ");
    let mut picture = busy();
    picture.chain.verdict = ChainVerdict::Unchecked;
    console.snapshot(picture);
    console.shows("chain not verified ");
    console.hides("SEALED");
}

#[test]
fn a_head_without_an_external_copy_is_only_a_warning() {
    let mut picture = busy();
    picture.chain.head.copy = HeadCopyState::Failed {
        what: "`/mnt/usb/head`: No such file or directory (os error 2)".to_owned(),
    };
    let mut console = TestConsole::new(picture.clone(), (80, 24));
    assert_snapshot!(console.picture());
    console.open_gate("c-121");
    console.shows("! HEAD COPY FAILED: `/mnt/usb/head`");
    console.shows("Pass is disabled: 3 answers missing");
    picture.store = StoreState::Poisoned {
        what: "disk full".to_owned(),
    };
    console.snapshot(picture.clone());
    console.shows("! RECORDING STOPPED: disk full");
    console.hides("HEAD COPY FAILED");
    picture.store = StoreState::Stalled {
        what: "the disk hangs".to_owned(),
    };
    console.snapshot(picture);
    console.shows("! RECORDING PAUSED: the disk hangs");
    console.shows("NOT RECORDING");
    console.hides("HEAD COPY FAILED");
    console.snapshot(busy());
    console.hides("HEAD COPY FAILED");
}

#[test]
fn the_header_counts_dropped_messages() {
    let dropped = UndeliveredCounts {
        advice: 3,
        hooks: 0,
        answers: 1,
    };
    for (size, words) in [
        ((120, 36), "dropped 3 advice, 1 to agents "),
        ((80, 24), "dropped 4 "),
        ((60, 18), "drop 4 "),
    ] {
        let mut console = TestConsole::new(busy(), size);
        console.hides("drop");
        console.snapshot(RuntimeSnapshot {
            undelivered: dropped,
            ..busy()
        });
        console.shows(words);
        console.shows("14:02:31Z");
        for tab in ['2', '3', '4'] {
            console.press(KeyCode::Char(tab));
            console.shows(words);
        }
    }
}

#[test]
fn the_header_shows_that_recording_stopped_and_the_waiting_requests() {
    for (width, height) in [(120, 36), (80, 24), (60, 18)] {
        let mut console = TestConsole::new(busy(), (width, height));
        console.hides("queued");
        console.app.on_queued(3);
        console.paint();
        console.shows("queued 3");
        let mut poisoned = busy();
        poisoned.store = StoreState::Poisoned {
            what: "the disk is full".to_owned(),
        };
        console.app.on_queued(0);
        console.snapshot(poisoned);
        console.shows("NOT RECORDING");
        console.shows("NO WRITES  14:02:31Z");
        console.shows("restart cra");
        console.hides("SEALED");
        console.shows("RECORDING STOPPED: the disk is ");
        assert_snapshot!(format!("poisoned_{width}"), console.text());
    }
}
