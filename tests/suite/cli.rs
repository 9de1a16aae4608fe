//! The command line without a terminal: exit codes, messages, and files that are left alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use cra_core::store::Store;
use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, HEAD_FILE_NAME, SqliteReader, SqliteStore};
use cra_core::trace::head::LogHead;
use cra_core::trace::note::Signer;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{Bench, SPLIT_ROWS, clock, request, root};

/// Result of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CommandOutput {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("not JSON: {}", self.out))
    }

    /// Asserts the exit code, and that the message has all of these.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in:\n{}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }

    #[track_caller]
    pub(crate) fn succeeds(&self) {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
    }
}

/// The program in an environment that has nothing of ours.
pub(crate) fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
    command.env_clear().env("HOME", home).stdin(Stdio::null());
    command
}

pub(crate) fn command_output(output: Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A store of its own, closed and in one file.
pub(crate) struct TestHome(pub(crate) TempDir);

impl TestHome {
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With the record of one session: one gate passed, one action allowed.
    pub(crate) fn recorded() -> Self {
        Self::of(|store| async move {
            let bench = Bench::start(store, clock()).await;
            bench.begin("s-1").await;
            let snapshot = bench.wait_until(|s| s.held.len() == 1).await;
            bench.pass(&snapshot.held[0]).await;
            let get = request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
            bench
                .runtime
                .agent_handle()
                .request_action(get)
                .await
                .unwrap();
            bench.runtime.stop().await;
        })
    }

    /// With the record of what happens in `life`.
    pub(crate) fn of<L: Future<Output = ()>>(life: impl FnOnce(Arc<dyn Store>) -> L) -> Self {
        let home = Self::empty();
        let work = tempfile::tempdir().unwrap();
        let threads = tokio::runtime::Runtime::new().unwrap();
        threads.block_on(life(Arc::new(SqliteStore::open(work.path()).unwrap())));
        // A copy: the writer's own file is written to until its thread has ended.
        let copy = home.file();
        Connection::open(work.path().join(FILE_NAME))
            .unwrap()
            .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
            .unwrap();
        let log = SqliteReader::open(&copy).unwrap().log().unwrap();
        if let Some(seal) = log.seal {
            fs::write(home.0.path().join(HEAD_FILE_NAME), seal.note).unwrap();
        }
        let signer = Signer::new(&LogHead::origin(&log.log), &[7; 32]).unwrap();
        let key = home.0.path().join(cra_core::store::key::FILE_NAME);
        fs::write(&key, signer.secret()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        home
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join(FILE_NAME)
    }

    pub(crate) fn sql(&self, sql: &str) {
        let connection = Connection::open(self.file()).unwrap();
        if sql.contains("UPDATE events") {
            connection.execute_batch(SPLIT_ROWS).unwrap();
        }
        connection.execute_batch(sql).unwrap();
    }

    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        let mut command = command(self.0.path());
        command.args(args).arg("--data-dir").arg(self.0.path());
        command_output(command.output().unwrap())
    }

    /// Asserts that neither listing nor verifying takes this file, that both say why, and that the
    /// file stays as it is.
    #[track_caller]
    fn is_refused(&self, words: &[&str]) {
        let before = fs::read(self.file()).unwrap();
        for args in [["trace", "list"], ["trace", "verify"], ["trace", "export"]] {
            self.run(&args).fails(1, words);
            assert_eq!(fs::read(self.file()).unwrap(), before, "{args:?}");
        }
    }
}

fn invalid(name: &str) -> String {
    let path = root().join("tests/data/atlas/invalid").join(name);
    path.to_str().unwrap().to_owned()
}

fn example() -> String {
    let path = root().join("assets/atlas/acme-support.yaml");
    path.to_str().unwrap().to_owned()
}

#[test]
fn console_without_a_terminal_names_the_commands_that_need_none() {
    let headless = [
        "no terminal",
        "cra trace list",
        "cra trace show",
        "cra trace verify",
        "cra trace replay",
        "cra trace export",
        "cra atlas lint",
    ];
    for args in [&[][..], &["demo"], &["--read-only"]] {
        let home = TestHome::empty();
        let output = home.run(args);
        output.fails(2, &headless);
        assert_eq!(output.out, "");
        assert!(!home.file().exists(), "nothing was made");
    }
}

#[test]
fn invalid_atlas_starts_nothing_and_is_reported_with_its_location() {
    let home = TestHome::empty();
    let file = invalid("misspelt-keys.yaml");
    let linted = home.run(&["atlas", "lint", &file]);
    assert_eq!(linted.code, 3, "{}", linted.err);
    let place = linted
        .out
        .split_whitespace()
        .find(|word| word.starts_with(&file))
        .unwrap_or_else(|| panic!("no place in:\n{}", linted.out))
        .to_owned();
    let numbers: Vec<_> = place.rsplit(':').take(2).collect();
    assert!(
        place.matches(':').count() == 2
            && numbers.iter().all(|number| number.parse::<u32>().is_ok()),
        "{place} is not file:line:col"
    );
    for args in [&["--atlas", &file][..], &["demo", "--atlas", &file]] {
        home.run(args).fails(3, &[&place]);
        assert!(!home.file().exists(), "nothing was made");
    }
}

#[test]
fn every_invalid_atlas_is_refused_by_lint_and_by_the_console() {
    let home = TestHome::empty();
    let folder = root().join("tests/data/atlas/invalid");
    for path in super::support::files(&folder, "yaml") {
        let file = path.to_str().unwrap();
        let linted = home.run(&["atlas", "lint", file, "--json"]);
        let opened = home.run(&["--atlas", file]);
        let report = &linted.json()[0];
        assert_eq!(report["file"], file);
        let ok = linted.code == 0;
        assert_eq!(report["ok"], ok, "{file}");
        assert_eq!(linted.code, if ok { 0 } else { 3 }, "{file}");
        // One with warnings only gets as far as looking for a terminal.
        assert_eq!(
            opened.code,
            if ok { 2 } else { 3 },
            "{file}: {}",
            opened.err
        );
        assert!(!report["diagnostics"].as_array().unwrap().is_empty());
    }
}

#[test]
fn lint_prints_location_and_problem_as_json() {
    let home = TestHome::empty();
    let bad = invalid("misspelt-keys.yaml");
    let output = home.run(&["atlas", "lint", "--json", &bad]);
    assert_eq!((output.code, output.err.as_str()), (3, ""));
    let report = &output.json()[0];
    assert_eq!(
        (&report["file"], &report["ok"]),
        (&json!(bad), &json!(false))
    );
    let first = &report["diagnostics"][0];
    assert_eq!(first["severity"], "error");
    assert_eq!(first["code"], "E012");
    assert_eq!(first["message"], "unknown key `polices`");
    let place = (&first["span"]["line"], &first["span"]["column"]);
    assert_eq!(place, (&json!(5), &json!(1)));
}

#[test]
fn valid_atlas_after_an_invalid_one_is_reported_as_valid() {
    let home = TestHome::empty();
    let bad = invalid("misspelt-keys.yaml");
    let output = home.run(&["atlas", "lint", "--json", &bad, &example()]);
    assert_eq!(output.code, 3);
    let reports = output.json();
    let result_at = |at: usize| (reports[at]["file"].clone(), reports[at]["ok"].clone());
    assert_eq!(result_at(0), (json!(bad), json!(false)));
    assert_eq!(result_at(1), (json!(example()), json!(true)));
}

#[test]
fn lint_of_a_valid_atlas_succeeds() {
    let home = TestHome::empty();
    let plain = root().join("tests/data/e2e/gates.yaml");
    let output = home.run(&["atlas", "lint", plain.to_str().unwrap()]);
    output.succeeds();
    assert_eq!(output.out, format!("{}: no problems\n", plain.display()));
    // Warnings are told, and are no errors.
    let output = home.run(&["atlas", "lint", &example()]);
    output.succeeds();
    assert!(output.out.contains("warning[W003]"), "{}", output.out);
    assert!(!output.out.contains("error["), "{}", output.out);
    home.run(&["atlas", "lint", "/nowhere/atlas.yaml"])
        .fails(1, &["/nowhere/atlas.yaml"]);
}

#[test]
fn missing_store_is_reported_and_not_created() {
    let home = TestHome::empty();
    for args in [
        &["trace", "list"][..],
        &["trace", "verify"],
        &["trace", "show", "s-1"],
    ] {
        home.run(args)
            .fails(1, &["no record yet", FILE_NAME, "--data-dir"]);
        assert!(!home.file().exists());
    }
}

#[test]
fn store_of_another_version_is_named_and_left_unchanged() {
    let home = TestHome::recorded();
    home.sql("PRAGMA user_version = 99");
    home.is_refused(&["store format 99", "reads format 3", "nothing was changed"]);
}

#[test]
fn file_that_is_not_a_store_is_named_and_left_unchanged() {
    let home = TestHome::empty();
    fs::write(home.file(), "this is my shopping list\n".repeat(100)).unwrap();
    home.is_refused(&["is not a cra store", "nothing was changed"]);
    let other = TestHome::empty();
    other.sql("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)");
    other.is_refused(&["is not a cra store", "another program"]);
    let nothing = TestHome::empty();
    fs::write(nothing.file(), "").unwrap();
    nothing.is_refused(&["is not a cra store", "the file is empty"]);
}

#[test]
fn truncated_store_is_reported_as_damaged_and_not_as_foreign() {
    let whole = TestHome::recorded();
    let bytes = fs::read(whole.file()).unwrap();
    for keep in [60, 3000, 4096, bytes.len() / 2, bytes.len() - 4096] {
        let home = TestHome::empty();
        fs::write(home.file(), &bytes[..keep]).unwrap();
        home.is_refused(&[
            "error: the store is damaged",
            "nothing was changed",
            "restore a backup",
        ]);
    }
}

#[test]
fn tampered_store_is_detected() {
    let home = TestHome::recorded();
    let sound = home.run(&["trace", "verify", "--json"]);
    sound.succeeds();
    assert_eq!(sound.json()["sound"], true);
    home.sql("UPDATE events SET records = replace(records, 'op-1', 'op-2')");
    let output = home.run(&["trace", "verify"]);
    assert_eq!(output.code, 6);
    assert!(output.out.contains("BROKEN at 2"), "{}", output.out);
    assert!(
        output.out.contains("1 of 1 chains FAILED verification"),
        "{}",
        output.out
    );
    let output = home.run(&["trace", "verify", "s-1", "--json"]);
    assert_eq!((output.code, &output.json()["sound"]), (6, &json!(false)));
}

#[test]
fn an_export_verifies_until_it_is_changed() {
    let home = TestHome::recorded();
    let exported = home.run(&["trace", "export"]);
    exported.succeeds();
    let file = home.0.path().join("export.jsonl");
    let name = file.to_str().unwrap();
    home.run(&["trace", "export", "--output", name]).succeeds();
    assert_eq!(fs::read_to_string(&file).unwrap(), exported.out);
    // What exists is not written over.
    home.run(&["trace", "export", "--output", name])
        .fails(1, &[name, "exists"]);

    home.run(&["trace", "verify", "--file", name]).succeeds();
    let changes = [
        exported.out.replace("op-1", "op-2"),
        exported.out.split_once('\n').unwrap().1.to_owned(),
        format!("{}not an event\n", exported.out),
    ];
    for changed in changes {
        fs::write(&file, changed).unwrap();
        let output = home.run(&["trace", "verify", "--file", name, "--json"]);
        assert_eq!((output.code, &output.json()["sound"]), (6, &json!(false)));
        assert_eq!(home.run(&["trace", "verify", "--file", name]).code, 6);
    }
    // The same values in another form hold, and are said to be in another form.
    fs::write(&file, exported.out.replacen('{', "{ ", 1)).unwrap();
    let output = home.run(&["trace", "verify", "--file", name, "--json"]);
    assert_eq!((output.code, &output.json()["sound"]), (0, &json!(true)));
    home.run(&["trace", "verify", "--file", "/nowhere/at.all"])
        .fails(1, &["/nowhere/at.all"]);
}

#[test]
fn unknown_session_is_named() {
    let home = TestHome::recorded();
    for command in ["show", "verify", "export"] {
        home.run(&["trace", command, "s-\u{1b}[31m2"]).fails(
            1,
            &[
                "session `s-\\u{1b}[31m2` is not on record",
                "cra trace list",
            ],
        );
    }
    let shown = home.run(&[
        "trace", "show", "s-1", "--json", "--from", "1", "--limit", "2",
    ]);
    shown.succeeds();
    let sequences: Vec<Value> = shown
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["sequence"].take())
        .collect();
    assert_eq!(sequences, [json!(1), json!(2)]);
}

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let home = TestHome::empty();
    let help = |args: &[&str]| {
        let output = command_output(command(home.0.path()).args(args).output().unwrap());
        output.succeeds();
        output.out
    };
    let cases: [(&[&str], &[&str]); 3] = [
        (
            &["--help"],
            &["demo", "run", "trace", "atlas", "--data-dir", "Exit codes"],
        ),
        (
            &["trace", "--help"],
            &["list", "show", "verify", "replay", "diff", "export"],
        ),
        (&["atlas", "--help"], &["lint"]),
    ];
    for (args, names) in cases {
        let text = help(args);
        for name in names {
            assert!(text.contains(name), "`{name}` is not in:\n{text}");
        }
    }
    let version = help(&["--version"]);
    assert_eq!(version, format!("cra {}\n", env!("CARGO_PKG_VERSION")));
    home.run(&["trace", "frobnicate"])
        .fails(2, &["frobnicate", "Usage"]);
}

/// Runs a command with a closed output pipe.
fn run_with_closed_pipe(home: &TestHome, args: &[&str]) -> CommandOutput {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(home.0.path());
    command.args(args).arg("--data-dir").arg(home.0.path());
    command_output(command.stdout(writer).output().unwrap())
}

#[test]
fn closed_pipe_is_not_an_error() {
    let home = TestHome::recorded();
    let good = example();
    let commands: [&[&str]; 14] = [
        &["trace", "replay", "s-1"],
        &["trace", "replay", "s-1", "--at", "3"],
        &["trace", "diff", "s-1", "s-1"],
        &["trace", "export", "--format", "csv"],
        &["trace", "export", "--format", "html"],
        &["trace", "export", "--format", "otlp"],
        &["trace", "list"],
        &["trace", "list", "--json"],
        &["trace", "show", "s-1"],
        &["trace", "show", "s-1", "--json"],
        &["trace", "verify"],
        &["trace", "export"],
        &["atlas", "lint", &good],
        &["--help"],
    ];
    for args in commands {
        let output = run_with_closed_pipe(&home, args);
        assert_eq!((output.code, output.err.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn closed_pipe_does_not_change_the_exit_code_of_a_verdict() {
    let home = TestHome::recorded();
    home.sql("UPDATE events SET records = replace(records, 'op-1', 'op-2')");
    let bad = invalid("misspelt-keys.yaml");
    let commands: [(&[&str], i32); 6] = [
        (&["trace", "replay", "s-1"], 6),
        (&["trace", "diff", "s-1", "s-1"], 6),
        (&["trace", "verify"], 6),
        (&["trace", "verify", "--json"], 6),
        (&["atlas", "lint", &bad], 3),
        (&["atlas", "lint", "--json", &bad], 3),
    ];
    for (args, code) in commands {
        let output = run_with_closed_pipe(&home, args);
        assert_eq!((output.code, output.err.as_str()), (code, ""), "{args:?}");
    }
}
