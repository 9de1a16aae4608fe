//! Notices to stewards, as the operator sees them.

use std::sync::Arc;

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, idle, now};
use super::sample_atlases::studied;
use super::test_console::TestConsole;
use crate::console::linear::line_console::LineConsole;
use crate::runtime::notices::{AtlasNoticeSummary, NoticeSummary, NoticesOff};
use crate::runtime::snapshot::{RuntimeSnapshot, UndeliveredCounts};

fn with_notices(notices: NoticeSummary, picture: RuntimeSnapshot) -> RuntimeSnapshot {
    RuntimeSnapshot {
        notices: Arc::new(notices),
        ..picture
    }
}

/// The notices of the example Atlas, with a hostile error text.
fn notices(waiting: usize, failed: usize) -> NoticeSummary {
    let error = Some("it returned status 500\u{1b}[2J".to_owned());
    let own = AtlasNoticeSummary {
        waiting,
        failed,
        error: error.clone(),
    };
    NoticeSummary {
        waiting,
        failed,
        error,
        by_atlas: [("com.acme.support".to_owned(), own)].into(),
        ..NoticeSummary::default()
    }
}

// covers B16
#[test]
fn the_header_shows_undelivered_notices() {
    let dropped = UndeliveredCounts {
        advice: 3,
        hooks: 0,
        answers: 1,
    };
    for (size, words) in [
        ((120, 36), "12 notices unsent "),
        ((80, 24), "unsent 12 "),
        ((60, 18), "unsent 12 "),
    ] {
        let mut console = TestConsole::new(with_notices(notices(3, 0), busy()), size);
        console.hides("unsent");
        let mut full = notices(3, 10);
        full.over_limit = 2;
        console.snapshot(with_notices(full.clone(), busy()));
        for tab in ['1', '2', '3', '4'] {
            console.press(KeyCode::Char(tab));
            console.shows(words);
            console.shows("14:02:31Z");
        }
        // The warning stays visible next to other warnings, and so does the time.
        console.snapshot(with_notices(
            full,
            RuntimeSnapshot {
                undelivered: dropped,
                ..busy()
            },
        ));
        console.shows(words);
        console.shows("14:02:31Z");
    }
}

// covers B16
#[test]
fn the_atlas_screen_shows_the_notice_address_and_delivery_state() {
    for (size, name) in [((120, 36), "wide"), ((80, 24), "small")] {
        let mut console = TestConsole::new(with_notices(notices(2, 1), studied(idle())), size);
        console.press(KeyCode::Char('4'));
        console.press(KeyCode::Home);
        console.shows("https://acme.example/cra-events");
        assert_snapshot!(format!("notices_{name}"), console.text());
    }
    let mut console = TestConsole::new(studied(idle()), (120, 36));
    console.press(KeyCode::Char('4'));
    console.press(KeyCode::Home);
    console.shows("none waiting");
    for (off, words) in [
        (NoticesOff::Demo, "off in the demo"),
        (NoticesOff::Setting, "off: config.yaml has `webhooks: off`"),
    ] {
        let quiet = NoticeSummary {
            off: Some(off),
            ..notices(1, 0)
        };
        console.snapshot(with_notices(quiet, studied(idle())));
        console.shows(words);
        console.hides("1 waiting");
    }
}

// covers B16
#[test]
fn the_line_console_announces_undelivered_notices_once() {
    let mut line_console = LineConsole::new(Arc::new(with_notices(notices(1, 0), idle())), now());
    assert!(!line_console.take_output().contains("notice"));
    let two = Arc::new(with_notices(notices(0, 2), idle()));
    line_console.on_snapshot(Arc::clone(&two), now());
    assert_eq!(
        line_console.take_output(),
        "\u{7}\n2 notices to stewards not delivered: it returned status 500\\u{1b}[2J. \
         Run cra notices to list them.\n> "
    );
    line_console.on_snapshot(two, now());
    assert_eq!(line_console.take_output(), "");
    let mut line_console = LineConsole::new(Arc::new(with_notices(notices(0, 1), idle())), now());
    assert!(
        line_console
            .take_output()
            .contains("1 notice to stewards not delivered")
    );
}
