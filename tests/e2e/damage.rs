//! Damage to the files of a store under the real program: content overwritten in place, keys and heads that are gone.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use serde_json::Value;

use super::faults::{
    BROAD, assert_not_recording, closed_store, held_at_linear_console, leave, text, type_line,
    workspace_with_gates,
};
use super::workspace::{WIDE, Workspace};

/// Writes these bytes over a part of a file, and leaves its length.
fn overwrite(workspace: &Workspace, name: &str, from: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(workspace.path(name));
    file.unwrap().write_all_at(bytes, from).unwrap();
}

fn length(workspace: &Workspace, name: &str) -> u64 {
    fs::metadata(workspace.path(name)).unwrap().len()
}

fn cut(workspace: &Workspace, name: &str, length: u64) {
    let file = OpenOptions::new().write(true).open(workspace.path(name));
    file.unwrap().set_len(length).unwrap();
}

/// A place whose database file has everything that was recorded so far.
fn checkpointed_store() -> Workspace {
    let workspace = workspace_with_gates();
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    workspace
}

#[test]
fn a_write_ahead_log_emptied_or_zeroed_in_place_blocks_every_agent_and_is_announced() {
    let wal = "data/cra.db-wal";
    let empty = |workspace: &Workspace| cut(workspace, wal, 0);
    let zero = |workspace: &Workspace| {
        let length = usize::try_from(length(workspace, wal)).unwrap();
        overwrite(workspace, wal, 0, &vec![0; length]);
    };
    for damage in [&empty as &dyn Fn(&Workspace), &zero] {
        let workspace = checkpointed_store();
        let (terminal, agent) = held_at_linear_console(&workspace);
        damage(&workspace);
        assert_not_recording(&workspace, terminal, agent);
    }
}

#[test]
fn a_database_cut_or_overwritten_in_place_blocks_every_agent_and_is_announced() {
    let database = "data/cra.db";
    let half = |workspace: &Workspace| cut(workspace, database, length(workspace, database) / 2);
    let noise = |workspace: &Workspace| {
        let length = usize::try_from(length(workspace, database)).unwrap();
        overwrite(workspace, database, 8192, &vec![0xa5; length - 8192]);
    };
    for damage in [&half as &dyn Fn(&Workspace), &noise] {
        let workspace = checkpointed_store();
        let (terminal, agent) = held_at_linear_console(&workspace);
        damage(&workspace);
        assert_not_recording(&workspace, terminal, agent);
    }
}

#[test]
fn record_edited_under_the_console_blocks_agents_until_an_operator_acknowledges() {
    let workspace = checkpointed_store();
    let (mut terminal, mut agent) = held_at_linear_console(&workspace);
    let other = rusqlite::Connection::open(workspace.path("data/cra.db")).unwrap();
    // The first entry of the log is signed since the last run.
    let edit = "UPDATE events SET records = replace(records, 'log_started', 'log_startet')
                WHERE position = 0";
    assert_eq!(other.execute(edit, []), Ok(1));
    terminal.wait_for("CHAIN BROKEN");
    let refused = agent.ask();
    let output = refused["error"]["message"].to_string();
    assert!(output.contains("CHAIN BROKEN"), "{refused}");
    let doctor = workspace.cra(&["doctor", "--json"]);
    let seen: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(seen["well"], false, "{seen}");
    let problem = seen["console"]["problem"].to_string();
    assert!(problem.contains("CHAIN BROKEN"), "{seen}");
    type_line(&mut terminal, "pass c-1");
    terminal.wait_for("Deciding is disabled");
    type_line(&mut terminal, "ack-broken-chain");
    terminal.wait_for("Acknowledged and recorded.");
    let allowed = agent.ask();
    assert!(allowed.get("result").is_some(), "{allowed}");
    type_line(&mut terminal, "quit");
    assert_eq!(terminal.wait_exit(), 0);
}

#[test]
fn a_key_removed_under_the_console_raises_an_alarm_and_doctor_names_it() {
    let workspace = workspace_with_gates();
    let (terminal, mut agent) = held_at_linear_console(&workspace);
    let key = fs::read(workspace.path("data/cra.key")).unwrap();
    fs::remove_file(workspace.path("data/cra.key")).unwrap();
    terminal.wait_for("cra.key");
    terminal.wait_for("this console still records and signs");
    // The console has the key in memory.
    let allowed = agent.ask();
    assert!(allowed.get("result").is_some(), "{allowed}");
    let doctor = text(&workspace.cra(&["doctor"]));
    assert!(doctor.contains("cra.key` is missing"), "{doctor}");
    assert!(doctor.contains("backup"), "{doctor}");
    // Another key in its place is as bad.
    let other = closed_store();
    fs::copy(other.path("data/cra.key"), workspace.path("data/cra.key")).unwrap();
    terminal.wait_for("was replaced");
    fs::write(workspace.path("data/cra.key"), key).unwrap();
}

#[test]
fn doctor_names_a_missing_data_folder_and_a_store_that_was_never_created() {
    let workspace = workspace_with_gates();
    let output = text(&workspace.cra(&["doctor"]));
    assert!(output.contains("no console has used"), "{output}");
    let mut terminal = workspace.linear_console(BROAD);
    terminal.wait_for("No requests are held.");
    for name in ["cra.db", "cra.key"] {
        fs::remove_file(workspace.path("data").join(name)).unwrap();
    }
    let output = text(&workspace.cra(&["doctor"]));
    assert!(!output.contains("no console has used"), "{output}");
    assert!(output.contains("cra.key` is missing"), "{output}");
    fs::remove_dir_all(workspace.path("data")).unwrap();
    let output = text(&workspace.cra(&["doctor"]));
    assert!(output.contains("data` does not exist"), "{output}");
    assert!(output.contains("or it was removed"), "{output}");
    terminal.kill9();
}

#[test]
fn missing_head_file_raises_an_alarm_that_explains_the_consequence() {
    let workspace = closed_store();
    fs::remove_file(workspace.path("data/cra.head")).unwrap();
    let mut terminal = workspace.linear_console(BROAD);
    terminal.wait_for("could not detect an older copy of the store");
    type_line(&mut terminal, "quit");
    assert_eq!(terminal.wait_exit(), 0);
    // The head is kept again, so the next start has nothing to say.
    let mut terminal = workspace.console(WIDE);
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
fn new_key_with_a_held_request(workspace: &Workspace, lose: bool) -> String {
    let mut terminal = workspace.held_delete();
    leave(&mut terminal);
    assert_eq!(terminal.wait_exit(), 0);
    if lose {
        fs::remove_file(workspace.path("data/cra.key")).unwrap();
    }
    let changed = workspace.cra(&["trace", "key", "--new"]);
    assert!(changed.status.success(), "{}", text(&changed));
    text(&changed)
}

#[test]
fn new_key_keeps_held_requests_that_the_old_key_endorses() {
    let workspace = Workspace::new("gates.yaml");
    let output = new_key_with_a_held_request(&workspace, false);
    assert!(!output.contains("held"), "{output}");
    let mut terminal = workspace.linear_console(BROAD);
    terminal.wait_for("1 request is held.");
    type_line(&mut terminal, "quit");
    assert_eq!(terminal.wait_exit(), 0);
    let shown = terminal.text();
    assert!(!shown.contains("was changed while"), "{shown}");
}

#[test]
fn new_key_without_the_old_one_reports_dropped_state_and_the_reason() {
    let workspace = Workspace::new("gates.yaml");
    let output = new_key_with_a_held_request(&workspace, true);
    assert!(output.contains("1 held request"), "{output}");
    let terminal = workspace.linear_console(BROAD);
    terminal.wait_for("No requests are held.");
    terminal.wait_for("the key was replaced without the old one");
    let shown = terminal.text();
    assert!(!shown.contains("was changed while"), "{shown}");
}
