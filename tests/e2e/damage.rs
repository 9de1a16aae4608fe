//! Damage to the files of a store under the real program: content overwritten in place, keys and heads that are gone.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use serde_json::Value;

use super::faults::{
    BROAD, assert_not_recording, closed_store, governed, held_at_linear_console, leave, say, text,
};
use super::place::{Place, WIDE};

/// Writes these bytes over a part of a file, and leaves its length.
fn overwrite(place: &Place, name: &str, from: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(place.path(name));
    file.unwrap().write_all_at(bytes, from).unwrap();
}

fn length(place: &Place, name: &str) -> u64 {
    fs::metadata(place.path(name)).unwrap().len()
}

fn cut(place: &Place, name: &str, length: u64) {
    let file = OpenOptions::new().write(true).open(place.path(name));
    file.unwrap().set_len(length).unwrap();
}

/// A place whose database file has everything that was recorded so far.
fn folded() -> Place {
    let place = governed();
    let mut terminal = place.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    place
}

#[test]
fn a_write_ahead_log_emptied_or_zeroed_in_place_blocks_every_agent_and_is_announced() {
    let wal = "data/cra.db-wal";
    let empty = |place: &Place| cut(place, wal, 0);
    let zero = |place: &Place| {
        let length = usize::try_from(length(place, wal)).unwrap();
        overwrite(place, wal, 0, &vec![0; length]);
    };
    for damage in [&empty as &dyn Fn(&Place), &zero] {
        let place = folded();
        let (terminal, agent) = held_at_linear_console(&place);
        damage(&place);
        assert_not_recording(&place, terminal, agent);
    }
}

#[test]
fn a_database_cut_or_overwritten_in_place_blocks_every_agent_and_is_announced() {
    let database = "data/cra.db";
    let half = |place: &Place| cut(place, database, length(place, database) / 2);
    let noise = |place: &Place| {
        let length = usize::try_from(length(place, database)).unwrap();
        overwrite(place, database, 8192, &vec![0xa5; length - 8192]);
    };
    for damage in [&half as &dyn Fn(&Place), &noise] {
        let place = folded();
        let (terminal, agent) = held_at_linear_console(&place);
        damage(&place);
        assert_not_recording(&place, terminal, agent);
    }
}

#[test]
fn a_record_edited_under_the_console_blocks_agents_until_an_operator_knows_of_it() {
    let place = folded();
    let (mut terminal, mut agent) = held_at_linear_console(&place);
    let other = rusqlite::Connection::open(place.path("data/cra.db")).unwrap();
    // The first entry of the log is signed since the last run.
    let edit = "UPDATE events SET records = replace(records, 'log_started', 'log_startet')
                WHERE position = 0";
    assert_eq!(other.execute(edit, []), Ok(1));
    terminal.wait_for("CHAIN BROKEN");
    let refused = agent.ask();
    let said = refused["error"]["message"].to_string();
    assert!(said.contains("CHAIN BROKEN"), "{refused}");
    let doctor = place.cra(&["doctor", "--json"]);
    let seen: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(seen["well"], false, "{seen}");
    let problem = seen["console"]["problem"].to_string();
    assert!(problem.contains("CHAIN BROKEN"), "{seen}");
    say(&mut terminal, "pass c-1");
    terminal.wait_for("Deciding is disabled");
    say(&mut terminal, "ack-broken-chain");
    terminal.wait_for("Recorded");
    let allowed = agent.ask();
    assert!(allowed.get("result").is_some(), "{allowed}");
    say(&mut terminal, "quit");
    assert_eq!(terminal.wait_exit(), 0);
}

#[test]
fn a_key_removed_under_the_console_raises_an_alarm_and_doctor_names_it() {
    let place = governed();
    let (terminal, mut agent) = held_at_linear_console(&place);
    let key = fs::read(place.path("data/cra.key")).unwrap();
    fs::remove_file(place.path("data/cra.key")).unwrap();
    terminal.wait_for("cra.key");
    terminal.wait_for("this console still records and signs");
    // The console has the key in memory.
    let allowed = agent.ask();
    assert!(allowed.get("result").is_some(), "{allowed}");
    let doctor = text(&place.cra(&["doctor"]));
    assert!(doctor.contains("cra.key` is missing"), "{doctor}");
    assert!(doctor.contains("backup"), "{doctor}");
    // Another key in its place is as bad.
    let other = closed_store();
    fs::copy(other.path("data/cra.key"), place.path("data/cra.key")).unwrap();
    terminal.wait_for("was replaced");
    fs::write(place.path("data/cra.key"), key).unwrap();
}

#[test]
fn doctor_names_a_data_folder_that_is_gone_and_a_store_that_never_was() {
    let place = governed();
    let said = text(&place.cra(&["doctor"]));
    assert!(said.contains("no console has used"), "{said}");
    let mut terminal = place.linear_console(BROAD);
    terminal.wait_for("No requests are held.");
    for name in ["cra.db", "cra.key"] {
        fs::remove_file(place.path("data").join(name)).unwrap();
    }
    let said = text(&place.cra(&["doctor"]));
    assert!(!said.contains("no console has used"), "{said}");
    assert!(said.contains("cra.key` is missing"), "{said}");
    fs::remove_dir_all(place.path("data")).unwrap();
    let said = text(&place.cra(&["doctor"]));
    assert!(said.contains("data` does not exist"), "{said}");
    assert!(said.contains("or it was removed"), "{said}");
    terminal.kill9();
}

#[test]
fn a_missing_head_is_an_alarm_with_what_it_means() {
    let place = closed_store();
    fs::remove_file(place.path("data/cra.head")).unwrap();
    let mut terminal = place.linear_console(BROAD);
    terminal.wait_for("could not detect an older copy of the store");
    say(&mut terminal, "quit");
    assert_eq!(terminal.wait_exit(), 0);
    // The head is kept again, so the next start has nothing to say.
    let mut terminal = place.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    assert!(
        !terminal.text().contains("older copy"),
        "{}",
        terminal.text()
    );
}

/// Leaves a console with a held request, and says what `cra trace key` answers to these words then.
fn new_key_with_a_held_request(place: &Place, lose: bool) -> String {
    let mut terminal = place.held_delete();
    leave(&mut terminal);
    assert_eq!(terminal.wait_exit(), 0);
    if lose {
        fs::remove_file(place.path("data/cra.key")).unwrap();
    }
    let changed = place.cra(&["trace", "key", "--new"]);
    assert!(changed.status.success(), "{}", text(&changed));
    text(&changed)
}

#[test]
fn a_new_key_keeps_what_is_held_where_the_old_key_backs_it() {
    let place = Place::new("gates.yaml");
    let said = new_key_with_a_held_request(&place, false);
    assert!(!said.contains("held"), "{said}");
    let mut terminal = place.linear_console(BROAD);
    terminal.wait_for("1 request is held.");
    say(&mut terminal, "quit");
    assert_eq!(terminal.wait_exit(), 0);
    let shown = terminal.text();
    assert!(!shown.contains("was changed while"), "{shown}");
}

#[test]
fn a_new_key_without_the_old_one_says_what_is_dropped_and_why() {
    let place = Place::new("gates.yaml");
    let said = new_key_with_a_held_request(&place, true);
    assert!(said.contains("1 held request"), "{said}");
    let terminal = place.linear_console(BROAD);
    terminal.wait_for("No requests are held.");
    terminal.wait_for("the key was changed without the old one");
    let shown = terminal.text();
    assert!(!shown.contains("was changed while"), "{shown}");
}
