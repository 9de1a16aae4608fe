//! The record.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;

use super::fixture::{busy, events, idle, sessions};
use super::stage::Stage;
use crate::console::request::{Message, Request};
use crate::trace::verify::{Checked, Proven, Report, Verdict};

fn load(session: &str, from: u64) -> Request {
    Request::LoadEvents {
        session: session.parse().unwrap(),
        from,
        limit: 100,
    }
}

fn arrive(stage: &mut Stage, session: &str, from: u64, count: u64) -> Vec<Request> {
    stage.message(Message::Events {
        session: session.parse().unwrap(),
        from,
        events: Ok(events(session, from, count)),
    })
}

/// The record with its second session chosen and read.
fn opened(size: (u16, u16)) -> Stage {
    let mut stage = Stage::new(busy(), size);
    assert_eq!(stage.press(KeyCode::Char('2')), [Request::LoadSessions]);
    assert_eq!(
        stage.message(Message::Sessions(Ok(sessions()))),
        [load("s-15", 0)]
    );
    assert_eq!(stage.press(KeyCode::Down), [load("s-12", 0)]);
    assert_eq!(arrive(&mut stage, "s-12", 0, 6), []);
    stage
}

#[test]
fn wide() {
    let mut stage = opened((120, 36));
    stage.press(KeyCode::Tab);
    stage.presses(KeyCode::Down, 5);
    stage.shows("a\\u001b[2Jb");
    assert_snapshot!(stage.picture());
}

#[test]
fn at_80_by_24() {
    let mut stage = opened((80, 24));
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::Down);
    assert_snapshot!(stage.picture());
}

#[test]
fn empty() {
    let mut stage = Stage::new(idle(), (80, 24));
    stage.press(KeyCode::Char('2'));
    stage.message(Message::Sessions(Ok(vec![])));
    assert_snapshot!(stage.text());
}

#[test]
fn a_long_chain_is_read_in_pages_around_the_view() {
    let mut stage = opened((120, 36));
    assert_eq!(stage.press(KeyCode::Down), [load("s-09", 0)]);
    arrive(&mut stage, "s-09", 0, 100);
    stage.press(KeyCode::Tab);
    assert_eq!(stage.press(KeyCode::End), [load("s-09", 12_300)]);
    stage.shows("reading...");
    arrive(&mut stage, "s-09", 12_300, 45);
    stage.shows("> 12344");
}

/// What a check of the chosen session found.
fn checked(verdict: Verdict, pruned: u64) -> Message {
    let chains = vec![Checked {
        session: "s-12".parse().unwrap(),
        events: 6,
        pruned,
        verdict,
    }];
    Message::Verified(Ok(Report { log: None, chains }))
}

#[test]
fn verifying_says_what_it_found_and_a_break_is_loud_everywhere() {
    let mut stage = opened((120, 36));
    stage.shows("not verified yet: v verifies");
    assert_eq!(stage.press(KeyCode::Char('v')), [Request::Verify]);
    assert_eq!(stage.press(KeyCode::Char('v')), [], "one check at a time");
    let sealed = Proven {
        witnessed: 0,
        sealed: 5,
        count: 5,
    };
    stage.message(checked(Verdict::Holds(sealed), 0));
    stage.shows("SEALED 0..4, 1 newer not verified yet");
    let broken = Verdict::Broken {
        sequence: 3,
        what: "the hash differs".to_owned(),
    };
    stage.message(checked(broken, 0));
    stage.press(KeyCode::Char('1'));
    stage.shows("! CHAIN BROKEN in s-12: BROKEN at 3: the hash differs");
}

/// The rows of the events' panel, without its borders, as one text.
fn panel(stage: &Stage) -> String {
    let text = stage.text();
    let rows = text.lines().filter_map(|row| row.split("││").nth(1));
    let rows = rows.map(|row| row.trim_end_matches('│').trim());
    rows.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_verdict_is_whole_at_80_by_24() {
    let mut stage = opened((80, 24));
    let sealed = |sealed, count| {
        Verdict::Holds(Proven {
            witnessed: 0,
            sealed,
            count,
        })
    };
    stage.message(checked(sealed(6, 6), 0));
    stage.shows("╰ SEALED 0..5 ─");
    stage.message(checked(sealed(5, 6), 0));
    stage.shows("╰ SEALED 0..4, UNSEALED tail 1 ─");
    stage.message(checked(sealed(3, 5), 2));
    assert_snapshot!(stage.picture());
    let diverged = Verdict::Diverged {
        sequence: 2,
        what: "its hash is not the one that the log has, which is signed".to_owned(),
    };
    let words = diverged.to_string();
    stage.message(checked(diverged, 0));
    assert!(panel(&stage).contains(&words), "{}", stage.text());
}

#[test]
fn new_records_are_read_once_at_a_time() {
    let mut stage = opened((120, 36));
    let mut next = busy();
    next.chain.events += 1;
    assert_eq!(stage.snapshot(next.clone()), [Request::LoadSessions]);
    next.chain.events += 1;
    assert_eq!(stage.snapshot(next), [], "one is on its way");
    let mut grown = sessions();
    grown[1].events += 1;
    assert_eq!(
        stage.message(Message::Sessions(Ok(grown))),
        [load("s-12", 0), Request::LoadSessions]
    );
}
