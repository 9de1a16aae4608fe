//! Snapshots of the screens at three sizes in rare states: light background, batch, palette, read-only,
//! broken chain.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::batch::{open_batch, review_batch, three};
use super::fixture::busy;
use super::steward::in_force;
use super::test_console::TestConsole;
use crate::base::digest::Digest;
use crate::console::theme::{Appearance, Background};
use crate::runtime::snapshot::{ChainVerdict, ConsoleAccess, RuntimeSnapshot};

const SIZES: [(u16, u16); 3] = [(120, 36), (80, 24), (60, 18)];

fn at_every_size(name: &str, snapshot: &RuntimeSnapshot, act: impl Fn(&mut TestConsole)) {
    for size in SIZES {
        let mut console = TestConsole::new(snapshot.clone(), size);
        act(&mut console);
        assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), console.text());
    }
}

/// Colours matter here: the snapshot includes their names.
#[test]
fn the_screens_on_a_light_background() {
    for size in SIZES {
        let appearance = Appearance {
            background: Background::Light,
            ..Appearance::default()
        };
        let mut console = TestConsole::with_look(busy(), size, appearance);
        let name = format!("light_{}x{}", size.0, size.1);
        assert_snapshot!(format!("{name}_queue"), console.picture());
        console.open_gate("c-121");
        assert_snapshot!(format!("{name}_dialog"), console.picture());
    }
}

#[test]
fn the_batch_dialog() {
    at_every_size("batch", &three(), |console| open_batch(console, 3));
    at_every_size("batch_review", &three(), |console| {
        open_batch(console, 3);
        // In the one-pane layout the request is the other pane.
        console.press(KeyCode::F(6));
        console.presses(KeyCode::PageDown, 20);
        console.press(KeyCode::F(6));
        review_batch(console);
        console.shows("BATCH     3 requests");
    });
}

#[test]
fn the_palette() {
    at_every_size("palette", &busy(), |console| {
        console.press(KeyCode::Char(':'));
    });
    at_every_size("palette_typed", &busy(), |console| {
        console.press(KeyCode::Char(':'));
        console.type_text("cl");
    });
}

#[test]
fn the_screens_in_read_only_mode() {
    let mut picture = in_force(busy());
    picture.access = ConsoleAccess::ReadOnly;
    at_every_size("read_only_queue", &picture, |_| {});
    at_every_size("read_only_dialog", &picture, |console| {
        console.open_gate("c-121");
    });
    at_every_size("read_only_atlas", &picture, |console| {
        console.press(KeyCode::Char('4'));
    });
}

#[test]
fn the_screens_with_a_broken_chain() {
    let mut picture = in_force(busy());
    picture.chain.verdict = ChainVerdict::Broken {
        session: "s-09".parse().unwrap(),
        what: "event 3: the hash differs".to_owned(),
        mark: Digest::of("fault"),
    };
    at_every_size("broken_queue", &picture, |_| {});
    at_every_size("broken_dialog", &picture, |console| {
        console.open_gate("c-121");
    });
    at_every_size("broken_atlas", &picture, |console| {
        console.press(KeyCode::Char('4'));
    });
}
