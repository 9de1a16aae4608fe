//! Snapshots of the record screen in every state, at three sizes.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::archive::Archive;
use super::fixture::{busy, idle};
use super::test_console::TestConsole;
use crate::console::request::ConsoleMessage;
use crate::console::theme::{Appearance, ColourMode, Glyphs};
use crate::trace::verification::{ChainVerification, VerificationReport, VerificationVerdict};

const SIZES: [(u16, u16); 3] = [(120, 36), (80, 24), (60, 18)];

/// Takes a snapshot of one state at every size.
fn at_every_size(name: &str, session: Option<&str>, act: impl Fn(&Archive, &mut TestConsole)) {
    let archive = Archive::sample();
    for size in SIZES {
        let mut console = TestConsole::new(busy(), size);
        match session {
            Some(session) => archive.open(&mut console, session),
            None => _ = archive.press(&mut console, KeyCode::Char('2')),
        }
        act(&archive, &mut console);
        assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), console.text());
    }
}

#[test]
fn sessions() {
    at_every_size("sessions", None, |archive, console| {
        console.message(archive.checked(1));
    });
}

#[test]
fn a_session_as_a_tree_over_time() {
    at_every_size("spans", Some("s-09"), |archive, console| {
        console.message(archive.checked(2));
        archive.keys(console, "jjjjjjjjj");
        console.shows("Esc back");
    });
}

#[test]
fn styles() {
    let archive = Archive::sample();
    let mut console = TestConsole::new(busy(), (120, 36));
    archive.open(&mut console, "s-09");
    console.message(archive.checked(2));
    archive.keys(&mut console, "jjjjjjjjj");
    assert_snapshot!(console.picture());
}

#[test]
fn folded_to_a_level() {
    at_every_size("folded", Some("s-09"), |archive, console| {
        archive.keys(console, "z");
    });
}

#[test]
fn an_event_with_a_fold_open() {
    at_every_size("event", Some("s-09"), |archive, console| {
        archive.keys(console, "jjjjjjjjjmb");
        archive.press(console, KeyCode::Enter);
        archive.press(console, KeyCode::End);
        archive.keys(console, "kkk");
        archive.press(console, KeyCode::Enter);
        archive.keys(console, "jj");
    });
}

#[test]
fn a_filter() {
    at_every_size("filter", Some("s-09"), |archive, console| {
        archive.enter(console, 'f', "type:checkpoint|risk actor:o2");
    });
}

#[test]
fn a_filter_that_hides_everything() {
    at_every_size("filter_none", Some("s-09"), |archive, console| {
        archive.enter(console, 'f', "actor:nobody");
    });
}

#[test]
fn an_invalid_filter() {
    at_every_size("filter_wrong", Some("s-09"), |archive, console| {
        archive.enter(console, 'f', "type:action colour:red");
    });
}

#[test]
fn a_search() {
    at_every_size("search", Some("s-09"), |archive, console| {
        archive.enter(console, '/', "HIGH-RISK");
        archive.keys(console, "n");
    });
}

#[test]
fn two_sessions_compared() {
    at_every_size("compared", Some("s-09"), |archive, console| {
        archive.keys(console, "D");
        archive.press(console, KeyCode::Home);
        archive.press(console, KeyCode::Enter);
    });
}

#[test]
fn a_broken_chain() {
    let sound = Archive::sample();
    let mut archive = Archive::sample();
    archive.spoil("s-09", |chain| {
        chain[6].text = chain[6].text.replace("tier high", "tier low");
    });
    for size in SIZES {
        let mut console = TestConsole::new(busy(), size);
        sound.open(&mut console, "s-09");
        sound.enter(&mut console, ':', "seek 6");
        // The record changes on disk without the console, and the check finds it.
        let requests = console.message(broken_at(6));
        archive.serve(&mut console, requests);
        assert_snapshot!(format!("broken_{}x{}", size.0, size.1), console.text());
        console.hides(" OK");
        if size.0 < 80 {
            // Enter opens the event. Its hashes are below its names.
            archive.press(&mut console, KeyCode::Enter);
            archive.keys(&mut console, "jjjjjjj");
            console.hides(" OK");
            continue;
        }
        console.shows("WRONG");
        archive.keys(&mut console, ".");
        console.hides(" OK");
        console.shows("unproven");
        archive.keys(&mut console, ",,");
        console.shows(" OK");
    }
}

/// Result of a check that finds the chain of `s-09` broken at this event.
fn broken_at(sequence: u64) -> ConsoleMessage {
    let chains = vec![ChainVerification {
        session: "s-09".parse().unwrap(),
        events: 15,
        pruned: 0,
        not_canonical: 0,
        imports: Vec::new(),
        verdict: VerificationVerdict::Broken {
            sequence,
            what: "hash does not match the content".to_owned(),
        },
    }];
    ConsoleMessage::Verified(Ok(VerificationReport { log: None, chains }))
}

#[test]
fn hostile_text() {
    at_every_size("hostile", Some("s-12"), |archive, console| {
        archive.keys(console, "j");
        archive.press(console, KeyCode::Enter);
        archive.press(console, KeyCode::End);
        archive.keys(console, "kk");
        archive.press(console, KeyCode::Enter);
        archive.press(console, KeyCode::End);
    });
}

#[test]
fn a_removed_event() {
    let mut archive = Archive::sample();
    archive.spoil("s-09", |chain| _ = chain.remove(5));
    for size in SIZES {
        let mut console = TestConsole::new(busy(), size);
        archive.open(&mut console, "s-09");
        archive.keys(&mut console, "jjjjj");
        console.shows("1 event MISSING: v to verify");
        assert_snapshot!(format!("gone_{}x{}", size.0, size.1), console.text());
    }
}

#[test]
fn an_empty_record_and_an_unreadable_record() {
    for size in SIZES {
        let mut console = TestConsole::new(idle(), size);
        console.press(KeyCode::Char('2'));
        console.shows("reading the record...");
        console.message(ConsoleMessage::Sessions(Ok(vec![])));
        assert_snapshot!(format!("empty_{}x{}", size.0, size.1), console.text());
        console.press(KeyCode::Char('r'));
        console.message(ConsoleMessage::Sessions(Err("disk I/O error".to_owned())));
        assert_snapshot!(format!("error_{}x{}", size.0, size.1), console.text());
    }
}

#[test]
fn plain_characters_and_no_colour() {
    let archive = Archive::sample();
    let appearance = Appearance {
        glyphs: Glyphs::Ascii,
        colour: ColourMode::Plain,
        ..Appearance::default()
    };
    for size in SIZES {
        let mut console = TestConsole::with_look(busy(), size, appearance);
        archive.open(&mut console, "s-09");
        console.message(archive.checked(2));
        archive.keys(&mut console, "jjjj");
        assert!(console.text().is_ascii(), "{}", console.text());
        assert_snapshot!(format!("ascii_{}x{}", size.0, size.1), console.text());
    }
}
