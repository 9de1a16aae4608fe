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

use super::place::{Place, WIDE, delete_script};
use super::terminal::Terminal;

/// How long anything may take on the slowest machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Events of a session that takes several commits to import.
const MANY: i64 = 12_000;

/// The widest message fits in one line.
pub(super) const BROAD: (u16, u16) = (400, 60);

pub(super) fn say(terminal: &mut Terminal, line: &str) {
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
    fn connect(place: &Place, session: &'static str) -> Self {
        let socket = place.path("data/run/console.sock");
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
fn replace_database(place: &Place) {
    let other = Place::new("gates.yaml");
    let mut terminal = other.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    fs::rename(other.path("data/cra.db"), place.path("data/cra.db")).unwrap();
}

/// Waits until the console says that it records nothing, asks it everything, and leaves it.
pub(super) fn assert_not_recording(place: &Place, mut terminal: Terminal, mut agent: Agent) {
    terminal.wait_for("NOT RECORDING");
    // An action that no gate stands before is denied too.
    let refused = agent.ask();
    let said = refused["error"]["message"].to_string();
    assert!(said.contains("nothing can be recorded"), "{refused}");
    let doctor = place.cra(&["doctor", "--json"]);
    let seen: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert_eq!(seen["console"]["recording"], false, "{seen}");
    let problem = seen["console"]["problem"].to_string();
    assert!(problem.contains("cannot record"), "{seen}");
    assert_eq!(doctor.status.code(), Some(1));
    let said = text(&place.cra(&["doctor"]));
    assert!(said.contains("PROBLEM  the console at"), "{said}");
    say(&mut terminal, "list");
    terminal.wait_for("their agents were denied");
    say(&mut terminal, "verify");
    terminal.wait_for("NOT RECORDING: this check does not cover");
    assert!(
        !terminal.text().contains("Record verified"),
        "{}",
        terminal.text()
    );
    say(&mut terminal, "pass c-1");
    terminal.wait_for("Deciding is disabled");
    say(&mut terminal, "quit");
    terminal.wait_for("error: nothing was recorded");
    assert_ne!(terminal.wait_exit(), 0);
}

/// A place under an Atlas that holds deletes and allows reads.
pub(super) fn governed() -> Place {
    let place = Place::new("gates.yaml");
    let atlas = fs::read_to_string(place.atlas()).unwrap();
    let read = "  - { action_id: ticket.get, name: Read a ticket, risk_tier: low }\n";
    place.written(&format!("{atlas}{read}"))
}

/// Leaves a console on the whole screen while a request is held.
pub(super) fn leave(terminal: &mut Terminal) {
    terminal.keys("q");
    terminal.wait_for("Quit the console");
    terminal.tabs(1);
    terminal.enter();
}

pub(super) fn held_at_linear_console(place: &Place) -> (Terminal, Agent) {
    let terminal = place.linear_console(BROAD);
    terminal.wait_for("No requests are held.");
    let mut waiting = Agent::connect(place, "s-2");
    let delete = json!({ "action": "ticket.delete", "params": { "id": 1 } });
    waiting.send("action.request", &delete);
    terminal.wait_for("New: c-1");
    // It goes on waiting for as long as the test runs.
    std::mem::forget(waiting);
    let agent = Agent::connect(place, "s-1");
    (terminal, agent)
}

#[test]
fn a_database_deleted_under_the_console_blocks_every_agent_and_is_announced() {
    let place = governed();
    let (terminal, agent) = held_at_linear_console(&place);
    fs::remove_file(place.path("data/cra.db")).unwrap();
    assert_not_recording(&place, terminal, agent);
}

#[test]
fn a_write_ahead_log_deleted_under_the_console_blocks_every_agent_and_is_announced() {
    let place = governed();
    let (terminal, agent) = held_at_linear_console(&place);
    fs::remove_file(place.path("data/cra.db-wal")).unwrap();
    assert_not_recording(&place, terminal, agent);
}

#[test]
fn a_database_replaced_under_the_console_blocks_every_agent_and_is_announced() {
    let place = governed();
    let (terminal, agent) = held_at_linear_console(&place);
    replace_database(&place);
    assert_not_recording(&place, terminal, agent);
}

#[test]
fn a_database_overwritten_in_place_blocks_every_agent_and_is_announced() {
    let place = governed();
    // Once opened and closed, so that the database file has all of it.
    let mut terminal = place.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    terminal.wait_exit();
    let (terminal, agent) = held_at_linear_console(&place);
    let other = Place::new("gates.yaml");
    let mut stranger = other.console(WIDE);
    stranger.wait_for("1 Queue");
    stranger.keys("q");
    stranger.wait_exit();
    let bytes = fs::read(other.path("data/cra.db")).unwrap();
    fs::write(place.path("data/cra.db"), bytes).unwrap();
    assert_not_recording(&place, terminal, agent);
}

#[test]
fn a_data_folder_deleted_under_the_console_is_said_on_every_screen_and_by_the_exit_code() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    fs::remove_dir_all(place.path("data")).unwrap();
    for screen in ["1", "2", "3", "4"] {
        terminal.keys(screen);
        terminal.wait_for("NOT RECORDING");
    }
    terminal.keys("1");
    leave(&mut terminal);
    terminal.wait_for("error: nothing was recorded");
    assert_ne!(terminal.wait_exit(), 0);
    assert!(!place.path("data/cra.db").exists(), "a new store was made");
}

/// A store that was opened, closed, and has a key.
pub(super) fn closed_store() -> Place {
    let place = Place::new("gates.yaml");
    let mut terminal = place.console(WIDE);
    terminal.wait_for("1 Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    place
}

fn refusal(place: &Place) -> String {
    let mut terminal = place.linear_console(BROAD);
    let code = terminal.wait_exit();
    let said = terminal.text();
    assert_ne!(code, 0, "{said}");
    said
}

#[test]
fn a_missing_database_beside_its_key_is_not_taken_for_a_new_record() {
    let place = closed_store();
    let (database, key) = (place.path("data/cra.db"), place.path("data/cra.key"));
    let before = fs::read(&key).unwrap();
    let good = fs::read(&database).unwrap();
    for missing in [true, false] {
        if missing {
            fs::remove_file(&database).unwrap();
        } else {
            fs::write(&database, "").unwrap();
        }
        let said = refusal(&place);
        assert!(
            said.contains("cra.db` is missing") || said.contains("cra.db` is empty"),
            "{said}"
        );
        assert!(
            said.contains("cra.key") && said.contains("restore"),
            "{said}"
        );
        for args in [
            &["trace", "verify"][..],
            &["trace", "key", "--new"],
            &["trace", "list"],
        ] {
            let refused = place.cra(args);
            assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
            let said = text(&refused);
            assert!(
                said.contains("is missing") || said.contains("is empty"),
                "{said}"
            );
        }
        assert_eq!(database.exists(), !missing, "a new store was made");
        assert_eq!(fs::read(&key).unwrap(), before, "the key was changed");
    }
    fs::write(&database, good).unwrap();
    let verified = place.cra(&["trace", "verify"]);
    assert!(verified.status.success(), "{}", text(&verified));
}

#[test]
fn a_new_key_keeps_the_old_one_under_its_id() {
    let place = closed_store();
    let key = place.path("data/cra.key");
    for change in ["--new", "--rotate"] {
        let old = fs::read_to_string(&key).unwrap();
        let changed = place.cra(&["trace", "key", change]);
        assert!(changed.status.success(), "{}", text(&changed));
        assert_ne!(fs::read_to_string(&key).unwrap(), old);
        let kept = kept_keys(&place.path("data"));
        let same = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text == old);
        let kept = kept
            .iter()
            .find(|path| same(path))
            .expect("the old key is gone");
        let mode = fs::metadata(kept).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let verified = place.cra(&["trace", "verify"]);
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
fn a_write_ahead_log_lost_behind_a_signed_head_is_found_without_a_head_file() {
    let place = closed_store();
    let file = place.path("data").join(FILE_NAME);
    let before = newest_seal(&file).size;
    let mut terminal = place.held_delete();
    // The head that covers the held request is signed within a second, and kept beside the store.
    let covered = || {
        let seal = newest_seal(&file);
        let kept = fs::read_to_string(place.path("data/cra.head"));
        seal.size > before && kept.is_ok_and(|kept| kept == seal.note)
    };
    let deadline = Instant::now() + DEADLINE;
    while !covered() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    terminal.kill9();
    let wal = fs::read(place.path("data/cra.db-wal")).unwrap();
    fs::remove_file(place.path("data/cra.db-wal")).unwrap();
    let verified = place.cra(&["trace", "verify"]);
    assert_eq!(verified.status.code(), Some(6), "{}", text(&verified));
    assert!(text(&verified).contains("TRUNCATED"), "{}", text(&verified));
    let said = refusal(&place);
    assert!(
        said.contains("cra.head") && said.contains("cra.db-wal"),
        "{said}"
    );
    fs::write(place.path("data/cra.db-wal"), wal).unwrap();
    let verified = place.cra(&["trace", "verify"]);
    assert!(verified.status.success(), "{}", text(&verified));
    // A store without the file, as an earlier version leaves it, opens, and says so on record.
    fs::remove_file(place.path("data/cra.head")).unwrap();
    let mut terminal = place.console(WIDE);
    terminal.wait_for("1 Queue");
    leave(&mut terminal);
    assert_eq!(terminal.wait_exit(), 0);
    let export = fs::read_to_string(place.export()).unwrap();
    assert!(export.contains("`cra.head` was missing"), "{export}");
    assert!(place.path("data/cra.head").exists());
}

#[test]
fn a_read_only_console_shows_the_store_of_a_running_one() {
    let place = governed();
    let (mut terminal, mut agent) = held_at_linear_console(&place);
    let mut viewer = place.linear_viewer(BROAD);
    viewer.wait_for("1 request is held.");
    viewer.wait_for("c-1: high risk");
    say(&mut viewer, "deny c-1");
    viewer.wait_for("This console is read-only");
    say(&mut viewer, "verify");
    viewer.wait_for("Record verified");
    let allowed = agent.ask();
    assert!(allowed.get("result").is_some(), "{allowed}");
    say(&mut terminal, "deny c-1");
    terminal.wait_for("Enter the reason for denying c-1.");
    say(&mut terminal, "wrong tenant");
    terminal.wait_for("Type deny to deny c-1.");
    say(&mut terminal, "deny");
    terminal.wait_for("Recorded. c-1");
    // What the other console does is seen here.
    let deadline = Instant::now() + DEADLINE;
    for asked in 1.. {
        say(&mut viewer, "list");
        viewer.wait_until("the list", |view| view.written("held.") > asked);
        if viewer.text().contains("No requests are held.") {
            break;
        }
        assert!(Instant::now() < deadline, "{}", viewer.text());
    }
    say(&mut viewer, "quit");
    assert_eq!(viewer.wait_exit(), 0);
    say(&mut terminal, "quit");
    assert_eq!(terminal.wait_exit(), 0);
    place.assert_lock_is_free();
}

#[test]
fn the_programs_own_log_is_for_its_owner_alone() {
    let place = Place::new("gates.yaml");
    fs::create_dir(place.path("data")).unwrap();
    fs::write(place.path("data/cra.log"), "from before\n").unwrap();
    let loose = fs::Permissions::from_mode(0o644);
    fs::set_permissions(place.path("data/cra.log"), loose).unwrap();
    let mut terminal = place.demo(&delete_script(), WIDE);
    terminal.wait_for("1 Queue");
    let mode = fs::metadata(place.path("data/cra.log"))
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
    let place = closed_store();
    let file = place.path("far.jsonl");
    write_export(&file);
    let mut import = Command::new(env!("CARGO_BIN_EXE_cra"))
        .env_clear()
        .env("HOME", place.path("home"))
        .args(["trace", "import"])
        .arg(&file)
        .arg("--data-dir")
        .arg(place.path("data"))
        .spawn()
        .unwrap();
    let database = place.path("data").join(FILE_NAME);
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
    let verified = place.cra(&["trace", "verify"]);
    let said = text(&verified);
    assert_eq!(verified.status.code(), Some(6), "{said}");
    assert!(
        said.contains(&format!("TRUNCATED: {found} of {MANY} events found")),
        "{said}"
    );
    assert!(said.contains("import its file again"), "{said}");
    let again = place.cra(&["trace", "import", file.to_str().unwrap()]);
    assert!(again.status.success(), "{}", text(&again));
    let verified = place.cra(&["trace", "verify"]);
    assert!(verified.status.success(), "{}", text(&verified));
}
