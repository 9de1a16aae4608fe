//! Faults of the store under the real program: files that vanish, are replaced, or were never whole.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use cra_core::base::clock::Timestamp;
use cra_core::store::Seal;
use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader};
use cra_core::trace::chain::Chain;
use cra_core::trace::event::{Draft, Durability, Payload};
use cra_core::trace::jsonl;
use serde_json::{Value, json};

use super::terminal::Terminal;
use super::workspace::{WIDE, Workspace, delete_script};

/// Longest wait, on the slowest machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Events of a session that takes several commits to import.
const MANY: i64 = 12_000;

/// The widest message fits in one line.
pub(super) const BROAD: (u16, u16) = (400, 60);

pub(super) fn type_line(terminal: &mut Terminal, line: &str) {
    terminal.keys(line);
    terminal.enter();
}

pub(super) fn text(output: &Output) -> String {
    let both = [output.stdout.clone(), output.stderr.clone()].concat();
    String::from_utf8(both).unwrap()
}

/// An agent at the socket of a console.
pub(super) struct Agent {
    stream: BufReader<UnixStream>,
    session: &'static str,
}

impl Agent {
    fn connect(workspace: &Workspace, session: &'static str) -> Self {
        let socket = workspace.path("data/run/console.sock");
        let stream = BufReader::new(UnixStream::connect(socket).unwrap());
        let mut agent = Self { stream, session };
        let started = agent.call("session.start", &json!({ "agent": "bot" }));
        assert!(started.get("result").is_some(), "{started}");
        agent
    }

    fn send(&mut self, method: &str, params: &Value) {
        let mut params = params.clone();
        params["session"] = json!(self.session);
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.stream.get_mut(), "{call}").unwrap();
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, params);
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub(super) fn ask(&mut self) -> Value {
        let params = json!({ "action": "ticket.get", "params": { "id": 1 } });
        self.call("action.request", &params)
    }
}

/// Replaces a console's database by that of another store, as `mv` does.
fn replace_database(workspace: &Workspace) {
    let other = Workspace::new("gates.yaml");
    let mut terminal = other.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    fs::rename(other.path("data/cra.db"), workspace.path("data/cra.db")).unwrap();
}

/// Waits until the console says that it records nothing, asks it everything, and leaves it.
pub(super) fn assert_not_recording(
    workspace: &Workspace,
    mut terminal: Terminal,
    mut agent: Agent,
) {
    terminal.wait_for("NOT RECORDING");
    // An action that no gate stands before is denied too.
    let refused = agent.ask();
    let output = refused["error"]["message"].to_string();
    assert!(output.contains("nothing can be recorded"), "{refused}");
    let doctor = workspace.cra(&["doctor", "--json"]);
    let seen: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(seen["console"]["recording"], false, "{seen}");
    let problem = seen["console"]["problem"].to_string();
    assert!(problem.contains("cannot record"), "{seen}");
    assert_eq!(doctor.status.code(), Some(1));
    let output = text(&workspace.cra(&["doctor"]));
    assert!(output.contains("PROBLEM  the console at"), "{output}");
    type_line(&mut terminal, "list");
    terminal.wait_for("their agents were denied");
    type_line(&mut terminal, "verify");
    terminal.wait_for("NOT RECORDING: this check does not cover");
    assert!(
        !terminal.text().contains("Record verified"),
        "{}",
        terminal.text()
    );
    type_line(&mut terminal, "pass c-1");
    terminal.wait_for("Deciding is disabled");
    type_line(&mut terminal, "quit");
    terminal.wait_for("error: nothing was recorded");
    assert_ne!(terminal.wait_exit(), 0);
}

/// A place under an Atlas that holds deletes and allows reads.
pub(super) fn workspace_with_gates() -> Workspace {
    let workspace = Workspace::new("gates.yaml");
    let atlas = fs::read_to_string(workspace.atlas()).unwrap();
    let read = "  - { action_id: ticket.get, name: Read a ticket, risk_tier: low }\n";
    workspace.written(&format!("{atlas}{read}"))
}

/// Leaves a console on the whole screen while a request is held.
pub(super) fn leave(terminal: &mut Terminal) {
    terminal.keys("q");
    terminal.wait_for("Quit the console");
    terminal.tabs(1);
    terminal.enter();
}

pub(super) fn held_at_linear_console(workspace: &Workspace) -> (Terminal, Agent) {
    let terminal = workspace.linear_console(BROAD);
    terminal.wait_for("No requests are held.");
    let mut waiting = Agent::connect(workspace, "s-2");
    let delete = json!({ "action": "ticket.delete", "params": { "id": 1 } });
    waiting.send("action.request", &delete);
    terminal.wait_for("New: c-1");
    // It goes on waiting for as long as the test runs.
    std::mem::forget(waiting);
    let agent = Agent::connect(workspace, "s-1");
    (terminal, agent)
}

#[test]
fn a_database_deleted_under_the_console_blocks_every_agent_and_is_announced() {
    let workspace = workspace_with_gates();
    let (terminal, agent) = held_at_linear_console(&workspace);
    fs::remove_file(workspace.path("data/cra.db")).unwrap();
    assert_not_recording(&workspace, terminal, agent);
}

#[test]
fn a_write_ahead_log_deleted_under_the_console_blocks_every_agent_and_is_announced() {
    let workspace = workspace_with_gates();
    let (terminal, agent) = held_at_linear_console(&workspace);
    fs::remove_file(workspace.path("data/cra.db-wal")).unwrap();
    assert_not_recording(&workspace, terminal, agent);
}

#[test]
fn a_database_replaced_under_the_console_blocks_every_agent_and_is_announced() {
    let workspace = workspace_with_gates();
    let (terminal, agent) = held_at_linear_console(&workspace);
    replace_database(&workspace);
    assert_not_recording(&workspace, terminal, agent);
}

#[test]
fn a_database_overwritten_in_place_blocks_every_agent_and_is_announced() {
    let workspace = workspace_with_gates();
    // Once opened and closed, so that the database file has all of it.
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    terminal.wait_exit();
    let (terminal, agent) = held_at_linear_console(&workspace);
    let other = Workspace::new("gates.yaml");
    let mut stranger = other.console(WIDE);
    stranger.wait_for("1 Queue");
    stranger.keys("q");
    stranger.wait_exit();
    let bytes = fs::read(other.path("data/cra.db")).unwrap();
    fs::write(workspace.path("data/cra.db"), bytes).unwrap();
    assert_not_recording(&workspace, terminal, agent);
}

#[test]
fn data_folder_deleted_under_the_console_is_reported_on_every_screen_and_by_the_exit_code() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    fs::remove_dir_all(workspace.path("data")).unwrap();
    for screen in ["1", "2", "3", "4"] {
        terminal.keys(screen);
        terminal.wait_for("NOT RECORDING");
    }
    terminal.keys("1");
    leave(&mut terminal);
    terminal.wait_for("error: nothing was recorded");
    assert_ne!(terminal.wait_exit(), 0);
    assert!(
        !workspace.path("data/cra.db").exists(),
        "a new store was made"
    );
}

/// A store that was opened, closed, and has a key.
pub(super) fn closed_store() -> Workspace {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    workspace
}

fn startup_error(workspace: &Workspace) -> String {
    let mut terminal = workspace.linear_console(BROAD);
    let code = terminal.wait_exit();
    let output = terminal.text();
    assert_ne!(code, 0, "{output}");
    output
}

#[test]
fn missing_database_next_to_its_key_is_not_treated_as_a_new_record() {
    let workspace = closed_store();
    let (database, key) = (
        workspace.path("data/cra.db"),
        workspace.path("data/cra.key"),
    );
    let before = fs::read(&key).unwrap();
    let good = fs::read(&database).unwrap();
    for missing in [true, false] {
        if missing {
            fs::remove_file(&database).unwrap();
        } else {
            fs::write(&database, "").unwrap();
        }
        let output = startup_error(&workspace);
        assert!(
            output.contains("cra.db` is missing") || output.contains("cra.db` is empty"),
            "{output}"
        );
        assert!(
            output.contains("cra.key") && output.contains("restore"),
            "{output}"
        );
        for args in [
            &["trace", "verify"][..],
            &["trace", "key", "--new"],
            &["trace", "list"],
        ] {
            let refused = workspace.cra(args);
            assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
            let output = text(&refused);
            assert!(
                output.contains("is missing") || output.contains("is empty"),
                "{output}"
            );
        }
        assert_eq!(database.exists(), !missing, "a new store was made");
        assert_eq!(fs::read(&key).unwrap(), before, "the key was changed");
    }
    fs::write(&database, good).unwrap();
    let verified = workspace.cra(&["trace", "verify"]);
    assert!(verified.status.success(), "{}", text(&verified));
}

#[test]
fn a_new_key_keeps_the_old_one_under_its_id() {
    let workspace = closed_store();
    let key = workspace.path("data/cra.key");
    for change in ["--new", "--rotate"] {
        let old = fs::read_to_string(&key).unwrap();
        let changed = workspace.cra(&["trace", "key", change]);
        assert!(changed.status.success(), "{}", text(&changed));
        assert_ne!(fs::read_to_string(&key).unwrap(), old);
        let kept = kept_keys(&workspace.path("data"));
        let same = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text == old);
        let kept = kept
            .iter()
            .find(|path| same(path))
            .expect("the old key is gone");
        let mode = fs::metadata(kept).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let verified = workspace.cra(&["trace", "verify"]);
        assert!(verified.status.success(), "{}", text(&verified));
    }
}

fn kept_keys(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    paths
        .filter(|path| name(path).starts_with("cra.key."))
        .collect()
}

fn newest_seal(file: &Path) -> Seal {
    let reader = SqliteReader::open(file).unwrap();
    reader.log().unwrap().seal.unwrap()
}

#[test]
fn lost_write_ahead_log_under_a_signed_head_is_detected_without_a_head_file() {
    let workspace = closed_store();
    let file = workspace.path("data").join(FILE_NAME);
    let before = newest_seal(&file).size;
    let mut terminal = workspace.held_delete();
    // The head that covers the held request is signed within a second, and kept next to the store.
    let covered = || {
        let seal = newest_seal(&file);
        let kept = fs::read_to_string(workspace.path("data/cra.head"));
        seal.size > before && kept.is_ok_and(|kept| kept == seal.note)
    };
    let deadline = Instant::now() + DEADLINE;
    while !covered() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    terminal.kill9();
    let wal = fs::read(workspace.path("data/cra.db-wal")).unwrap();
    fs::remove_file(workspace.path("data/cra.db-wal")).unwrap();
    let verified = workspace.cra(&["trace", "verify"]);
    assert_eq!(verified.status.code(), Some(6), "{}", text(&verified));
    assert!(text(&verified).contains("TRUNCATED"), "{}", text(&verified));
    let output = startup_error(&workspace);
    assert!(
        output.contains("cra.head") && output.contains("cra.db-wal"),
        "{output}"
    );
    fs::write(workspace.path("data/cra.db-wal"), wal).unwrap();
    let verified = workspace.cra(&["trace", "verify"]);
    assert!(verified.status.success(), "{}", text(&verified));
    // A store without the file, as an earlier version leaves it, opens, and this is recorded.
    fs::remove_file(workspace.path("data/cra.head")).unwrap();
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    leave(&mut terminal);
    assert_eq!(terminal.wait_exit(), 0);
    let export = fs::read_to_string(workspace.export()).unwrap();
    assert!(export.contains("`cra.head` was missing"), "{export}");
    assert!(workspace.path("data/cra.head").exists());
}

#[test]
fn read_only_console_shows_the_store_of_a_running_console() {
    let workspace = workspace_with_gates();
    let (mut terminal, mut agent) = held_at_linear_console(&workspace);
    let mut viewer = workspace.linear_viewer(BROAD);
    viewer.wait_for("1 request is held.");
    viewer.wait_for("c-1: high risk");
    type_line(&mut viewer, "deny c-1");
    viewer.wait_for("This console is read-only");
    type_line(&mut viewer, "verify");
    viewer.wait_for("Record verified");
    let allowed = agent.ask();
    assert!(allowed.get("result").is_some(), "{allowed}");
    type_line(&mut terminal, "deny c-1");
    terminal.wait_for("Enter the reason for denying c-1.");
    type_line(&mut terminal, "wrong tenant");
    terminal.wait_for("Type deny to deny c-1.");
    type_line(&mut terminal, "deny");
    terminal.wait_for("Recorded. c-1");
    // What the other console does is seen here.
    let deadline = Instant::now() + DEADLINE;
    for pending in 1.. {
        type_line(&mut viewer, "list");
        viewer.wait_until("the list", |view| view.written("held.") > pending);
        if viewer.text().contains("No requests are held.") {
            break;
        }
        assert!(Instant::now() < deadline, "{}", viewer.text());
    }
    type_line(&mut viewer, "quit");
    assert_eq!(viewer.wait_exit(), 0);
    type_line(&mut terminal, "quit");
    assert_eq!(terminal.wait_exit(), 0);
    workspace.assert_lock_is_free();
}

#[test]
fn diagnostic_log_is_readable_by_its_owner_only() {
    let workspace = Workspace::new("gates.yaml");
    fs::create_dir(workspace.path("data")).unwrap();
    fs::write(workspace.path("data/cra.log"), "from before\n").unwrap();
    let loose = fs::Permissions::from_mode(0o644);
    fs::set_permissions(workspace.path("data/cra.log"), loose).unwrap();
    let mut terminal = workspace.demo(&delete_script(), WIDE);
    terminal.wait_for("1 Queue");
    let mode = fs::metadata(workspace.path("data/cra.log"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    terminal.kill9();
}

/// An export of one session with many events.
fn write_export(file: &Path) {
    let fields = json!({"original_error_id": "x", "recovery_method": "r", "success": true});
    let payload = Payload::read("error_recovered", fields.as_object().unwrap().clone()).unwrap();
    let mut chain = Chain::new("far-1".parse().unwrap());
    let mut text = String::new();
    for n in 0..MANY {
        let record = chain.seal(&Draft {
            session_id: "far-1".parse().unwrap(),
            event_id: "e".parse().unwrap(),
            trace_id: "t".parse().unwrap(),
            span_id: "p".parse().unwrap(),
            parent_span_id: None,
            timestamp: Timestamp::from_micros(n),
            payload: payload.clone(),
            durability: Durability::Sync,
        });
        jsonl::write_line(&record.envelope().unwrap(), &record.hash, &mut text);
        text.push('\n');
    }
    fs::write(file, text).unwrap();
}

#[test]
fn an_import_killed_half_way_is_truncated_until_it_is_imported_again() {
    let workspace = closed_store();
    let file = workspace.path("far.jsonl");
    write_export(&file);
    let mut import = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .env("HOME", workspace.path("home"))
        .args(["trace", "import"])
        .arg(&file)
        .arg("--data-dir")
        .arg(workspace.path("data"))
        .spawn()
        .unwrap();
    let database = workspace.path("data").join(FILE_NAME);
    let there = || {
        let heads = SqliteReader::open(&database).and_then(|reader| reader.heads());
        let heads = heads.unwrap_or_default().into_iter();
        let far = heads.filter(|head| head.session.as_str() == "far-1");
        far.map(|head| head.count).sum::<u64>()
    };
    let deadline = Instant::now() + DEADLINE;
    while there() == 0 && Instant::now() < deadline {
        std::thread::yield_now();
    }
    import.kill().unwrap();
    import.wait().unwrap();
    let found = there();
    assert!(
        found > 0 && found < MANY.unsigned_abs(),
        "killed at {found}"
    );
    let verified = workspace.cra(&["trace", "verify"]);
    let output = text(&verified);
    assert_eq!(verified.status.code(), Some(6), "{output}");
    assert!(
        output.contains(&format!("TRUNCATED: {found} of {MANY} events found")),
        "{output}"
    );
    assert!(output.contains("import its file again"), "{output}");
    let again = workspace.cra(&["trace", "import", file.to_str().unwrap()]);
    assert!(again.status.success(), "{}", text(&again));
    let verified = workspace.cra(&["trace", "verify"]);
    assert!(verified.status.success(), "{}", text(&verified));
}
