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

use super::support::{APART, Bench, clock, request, root};

/// What a command came to.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
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

pub(crate) fn said(output: Output) -> Said {
    Said {
        code: output.status.code().expect("an exit code"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A store of its own, closed and in one file.
pub(crate) struct Desk(pub(crate) TempDir);

impl Desk {
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With the record of one session: one gate passed, one action allowed.
    pub(crate) fn recorded() -> Self {
        Self::of(|store| async move {
            let bench = Bench::start(store, clock()).await;
            bench.begin("s-1").await;
            let snapshot = bench.until(|s| s.held.len() == 1).await;
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
        let desk = Self::empty();
        let work = tempfile::tempdir().unwrap();
        let threads = tokio::runtime::Runtime::new().unwrap();
        threads.block_on(life(Arc::new(SqliteStore::open(work.path()).unwrap())));
        // A copy: the writer's own file is written to until its thread has ended.
        let copy = desk.file();
        Connection::open(work.path().join(FILE_NAME))
            .unwrap()
            .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
            .unwrap();
        let log = SqliteReader::open(&copy).unwrap().log().unwrap();
        if let Some(seal) = log.seal {
            fs::write(desk.0.path().join(HEAD_FILE_NAME), seal.note).unwrap();
        }
        let signer = Signer::new(&LogHead::origin(&log.log), &[7; 32]).unwrap();
        let key = desk.0.path().join(cra_core::store::key::FILE_NAME);
        fs::write(&key, signer.secret()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        desk
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join(FILE_NAME)
    }

    pub(crate) fn sql(&self, sql: &str) {
        let connection = Connection::open(self.file()).unwrap();
        if sql.contains("UPDATE events") {
            connection.execute_batch(APART).unwrap();
        }
        connection.execute_batch(sql).unwrap();
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        let mut command = command(self.0.path());
        command.args(args).arg("--data-dir").arg(self.0.path());
        said(command.output().unwrap())
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
fn without_a_terminal_the_console_names_what_works_there() {
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
        let desk = Desk::empty();
        let said = desk.run(args);
        said.fails(2, &headless);
        assert_eq!(said.out, "");
        assert!(!desk.file().exists(), "nothing was made");
    }
}

#[test]
fn a_broken_atlas_opens_nothing_and_is_told_with_its_place() {
    let desk = Desk::empty();
    let file = invalid("misspelt-keys.yaml");
    let linted = desk.run(&["atlas", "lint", &file]);
    assert_eq!(linted.code, 3, "{}", linted.err);
    let place = linted
        .out
        .split_whitespace()
        .find(|word| word.starts_with(&file))
        .unwrap_or_else(|| panic!("no place in:\n{}", linted.out))
        .to_owned();
    let numbers: Vec<_> = place.rsplit(':').take(2).collect();
    assert!(
        place.matches(':').count() == 2 && numbers.iter().all(|it| it.parse::<u32>().is_ok()),
        "{place} is not file:line:col"
    );
    for args in [&["--atlas", &file][..], &["demo", "--atlas", &file]] {
        desk.run(args).fails(3, &[&place]);
        assert!(!desk.file().exists(), "nothing was made");
    }
}

#[test]
fn every_invalid_atlas_is_refused_by_lint_and_by_the_console_alike() {
    let desk = Desk::empty();
    let folder = root().join("tests/data/atlas/invalid");
    for path in super::support::files(&folder, "yaml") {
        let file = path.to_str().unwrap();
        let linted = desk.run(&["atlas", "lint", file, "--json"]);
        let opened = desk.run(&["--atlas", file]);
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
fn lint_tells_machines_where_and_what() {
    let desk = Desk::empty();
    let bad = invalid("misspelt-keys.yaml");
    let said = desk.run(&["atlas", "lint", "--json", &bad]);
    assert_eq!((said.code, said.err.as_str()), (3, ""));
    let report = &said.json()[0];
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
fn a_good_atlas_is_not_called_bad_because_the_one_before_it_was() {
    let desk = Desk::empty();
    let bad = invalid("misspelt-keys.yaml");
    let said = desk.run(&["atlas", "lint", "--json", &bad, &example()]);
    assert_eq!(said.code, 3);
    let reports = said.json();
    let told = |at: usize| (reports[at]["file"].clone(), reports[at]["ok"].clone());
    assert_eq!(told(0), (json!(bad), json!(false)));
    assert_eq!(told(1), (json!(example()), json!(true)));
}

#[test]
fn an_atlas_without_errors_is_fine() {
    let desk = Desk::empty();
    let plain = root().join("tests/data/e2e/gates.yaml");
    let said = desk.run(&["atlas", "lint", plain.to_str().unwrap()]);
    said.succeeds();
    assert_eq!(said.out, format!("{}: no problems\n", plain.display()));
    // Warnings are told, and are no errors.
    let said = desk.run(&["atlas", "lint", &example()]);
    said.succeeds();
    assert!(said.out.contains("warning[W003]"), "{}", said.out);
    assert!(!said.out.contains("error["), "{}", said.out);
    desk.run(&["atlas", "lint", "/nowhere/atlas.yaml"])
        .fails(1, &["/nowhere/atlas.yaml"]);
}

#[test]
fn no_store_yet_is_said_and_none_is_made() {
    let desk = Desk::empty();
    for args in [
        &["trace", "list"][..],
        &["trace", "verify"],
        &["trace", "show", "s-1"],
    ] {
        desk.run(args)
            .fails(1, &["no record yet", FILE_NAME, "--data-dir"]);
        assert!(!desk.file().exists());
    }
}

#[test]
fn a_store_of_another_version_is_named_and_left_alone() {
    let desk = Desk::recorded();
    desk.sql("PRAGMA user_version = 99");
    desk.is_refused(&["store format 99", "reads format 3", "nothing was changed"]);
}

#[test]
fn a_file_that_is_no_store_is_named_and_left_alone() {
    let desk = Desk::empty();
    fs::write(desk.file(), "this is my shopping list\n".repeat(100)).unwrap();
    desk.is_refused(&["is not a cra store", "nothing was changed"]);
    let other = Desk::empty();
    other.sql("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)");
    other.is_refused(&["is not a cra store", "another program"]);
    let nothing = Desk::empty();
    fs::write(nothing.file(), "").unwrap();
    nothing.is_refused(&["is not a cra store", "the file is empty"]);
}

#[test]
fn a_cut_store_is_called_damaged_and_not_somebody_elses() {
    let whole = Desk::recorded();
    let bytes = fs::read(whole.file()).unwrap();
    for keep in [60, 3000, 4096, bytes.len() / 2, bytes.len() - 4096] {
        let desk = Desk::empty();
        fs::write(desk.file(), &bytes[..keep]).unwrap();
        desk.is_refused(&[
            "error: the store is damaged",
            "nothing was changed",
            "restore a backup",
        ]);
    }
}

#[test]
fn a_store_that_was_tampered_with_is_found_out() {
    let desk = Desk::recorded();
    let sound = desk.run(&["trace", "verify", "--json"]);
    sound.succeeds();
    assert_eq!(sound.json()["sound"], true);
    desk.sql("UPDATE events SET records = replace(records, 'op-1', 'op-2')");
    let said = desk.run(&["trace", "verify"]);
    assert_eq!(said.code, 6);
    assert!(said.out.contains("BROKEN at 2"), "{}", said.out);
    assert!(
        said.out.contains("1 of 1 chains FAILED verification"),
        "{}",
        said.out
    );
    let said = desk.run(&["trace", "verify", "s-1", "--json"]);
    assert_eq!((said.code, &said.json()["sound"]), (6, &json!(false)));
}

#[test]
fn an_export_verifies_until_it_is_changed() {
    let desk = Desk::recorded();
    let exported = desk.run(&["trace", "export"]);
    exported.succeeds();
    let file = desk.0.path().join("export.jsonl");
    let name = file.to_str().unwrap();
    desk.run(&["trace", "export", "--output", name]).succeeds();
    assert_eq!(fs::read_to_string(&file).unwrap(), exported.out);
    // What exists is not written over.
    desk.run(&["trace", "export", "--output", name])
        .fails(1, &[name, "exists"]);

    desk.run(&["trace", "verify", "--file", name]).succeeds();
    let changes = [
        exported.out.replace("op-1", "op-2"),
        exported.out.split_once('\n').unwrap().1.to_owned(),
        format!("{}not an event\n", exported.out),
    ];
    for changed in changes {
        fs::write(&file, changed).unwrap();
        let said = desk.run(&["trace", "verify", "--file", name, "--json"]);
        assert_eq!((said.code, &said.json()["sound"]), (6, &json!(false)));
        assert_eq!(desk.run(&["trace", "verify", "--file", name]).code, 6);
    }
    // The same values in another form hold, and are said to be in another form.
    fs::write(&file, exported.out.replacen('{', "{ ", 1)).unwrap();
    let said = desk.run(&["trace", "verify", "--file", name, "--json"]);
    assert_eq!((said.code, &said.json()["sound"]), (0, &json!(true)));
    desk.run(&["trace", "verify", "--file", "/nowhere/at.all"])
        .fails(1, &["/nowhere/at.all"]);
}

#[test]
fn a_session_that_is_not_on_record_is_named() {
    let desk = Desk::recorded();
    for command in ["show", "verify", "export"] {
        desk.run(&["trace", command, "s-\u{1b}[31m2"]).fails(
            1,
            &[
                "session `s-\\u{1b}[31m2` is not on record",
                "cra trace list",
            ],
        );
    }
    let shown = desk.run(&[
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
    let desk = Desk::empty();
    let help = |args: &[&str]| {
        let said = said(command(desk.0.path()).args(args).output().unwrap());
        said.succeeds();
        said.out
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
    desk.run(&["trace", "frobnicate"])
        .fails(2, &["frobnicate", "Usage"]);
}

/// Runs a command whose output nobody reads.
fn run_unread(desk: &Desk, args: &[&str]) -> Said {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(desk.0.path());
    command.args(args).arg("--data-dir").arg(desk.0.path());
    said(command.stdout(writer).output().unwrap())
}

#[test]
fn a_reader_that_stops_reading_is_nobodys_error() {
    let desk = Desk::recorded();
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
        let said = run_unread(&desk, args);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn a_verdict_stands_when_nobody_reads_it_to_the_end() {
    let desk = Desk::recorded();
    desk.sql("UPDATE events SET records = replace(records, 'op-1', 'op-2')");
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
        let said = run_unread(&desk, args);
        assert_eq!((said.code, said.err.as_str()), (code, ""), "{args:?}");
    }
}
