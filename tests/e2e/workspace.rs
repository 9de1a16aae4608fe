//! A place of its own for each test: home, store, Atlas, agents; and readers of what is on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use portable_pty::CommandBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::terminal::{DEADLINE, Size, Terminal};

/// The size that most tests work in.
pub(crate) const WIDE: Size = (120, 36);

/// Operator at the terminal.
pub(crate) const OPERATOR: &str = "op-1";

/// The program.
const CRA: &str = env!("CARGO_BIN_EXE_cra");

/// A folder with everything that one run of the program sees.
pub(crate) struct Workspace {
    folder: TempDir,
    atlas: PathBuf,
    editor: Option<String>,
}

impl Workspace {
    /// A workspace that uses this Atlas of the test data.
    pub(crate) fn new(atlas: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let atlas = data().join("e2e").join(atlas);
        Self {
            folder,
            atlas,
            editor: None,
        }
    }

    /// Uses another Atlas of the test data.
    pub(crate) fn under(self, atlas: &str) -> Self {
        Self {
            atlas: data().join("e2e").join(atlas),
            ..self
        }
    }

    /// Uses an Atlas with this text.
    pub(crate) fn written(self, text: &str) -> Self {
        let atlas = self.path("atlas.yaml");
        fs::write(&atlas, text).unwrap();
        Self { atlas, ..self }
    }

    /// Uses this command line as the operator's editor.
    pub(crate) fn with_editor(mut self, line: &str) -> Self {
        self.editor = Some(line.to_owned());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The Atlas in force.
    pub(crate) fn atlas(&self) -> &Path {
        &self.atlas
    }

    /// The console with one simulated agent that asks to delete two tickets, at the held request.
    pub(crate) fn held_delete(&self) -> Terminal {
        let terminal = self.demo(&delete_script(), WIDE);
        terminal.wait_for("> [ ]  c-1 ");
        terminal
    }

    /// The console with simulated agents.
    pub(crate) fn demo(&self, script: &Value, size: Size) -> Terminal {
        let file = self.path("script.json");
        fs::write(&file, script.to_string()).unwrap();
        let mut command = self.builder();
        command.arg("demo");
        command.arg("--script");
        command.arg(file);
        self.start(command, size)
    }

    /// Starts the linear demo.
    pub(crate) fn linear_demo(&self, script: &Value, size: Size) -> Terminal {
        let file = self.path("script.json");
        fs::write(&file, script.to_string()).unwrap();
        let mut command = self.builder();
        command.args(["demo", "--linear", "--script"]);
        command.arg(file);
        self.start(command, size)
    }

    /// A command that may ask something.
    pub(crate) fn run_interactive(&self, words: &[&str]) -> Terminal {
        let mut command = self.builder();
        command.args(words);
        command.arg("--data-dir");
        command.arg(self.path("data"));
        Terminal::start(command, (120, 60))
    }

    /// The console without agents.
    pub(crate) fn console(&self, size: Size) -> Terminal {
        self.start(self.builder(), size)
    }

    /// The console without agents, line by line.
    pub(crate) fn linear_console(&self, size: Size) -> Terminal {
        let mut command = self.builder();
        command.arg("--linear");
        self.start(command, size)
    }

    /// Starts the linear console read-only.
    pub(crate) fn linear_viewer(&self, size: Size) -> Terminal {
        let mut command = self.builder();
        command.args(["--linear", "--read-only"]);
        self.start(command, size)
    }

    /// Asserts that no process holds the store.
    #[track_caller]
    pub(crate) fn assert_lock_is_free(&self) {
        let lock = fs::File::open(self.path("data/cra.lock")).unwrap();
        lock.try_lock().unwrap();
    }

    /// Starts the console of another operator.
    pub(crate) fn console_of(&self, operator: &str, size: Size) -> Terminal {
        self.start_as(operator, self.builder(), size)
    }

    fn start(&self, command: CommandBuilder, size: Size) -> Terminal {
        self.start_as(OPERATOR, command, size)
    }

    fn start_as(&self, operator: &str, mut command: CommandBuilder, size: Size) -> Terminal {
        command.arg("--atlas");
        command.arg(&self.atlas);
        command.arg("--data-dir");
        command.arg(self.path("data"));
        command.args(["--operator", operator]);
        Terminal::start(command, size)
    }

    /// The program in an environment that has nothing of ours.
    fn builder(&self) -> CommandBuilder {
        let mut command = CommandBuilder::new(CRA);
        command.env_clear();
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        command.env("HOME", self.path("home"));
        command.env("TMPDIR", self.folder.path());
        if let Some(editor) = &self.editor {
            command.env("EDITOR", editor);
        }
        command.cwd(self.path("home"));
        command
    }

    /// A command without a screen, on the same store.
    pub(crate) fn cra(&self, args: &[&str]) -> Output {
        Command::new(CRA)
            .env_clear()
            .env("HOME", self.path("home"))
            .args(args)
            .arg("--data-dir")
            .arg(self.path("data"))
            .output()
            .unwrap()
    }

    /// The events of the only session, as `cra trace show --json` tells them.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let listed: Value =
            serde_json::from_str(&stdout_of(&self.cra(&["trace", "list", "--json"])))
                .expect("a list of sessions");
        let sessions = listed.as_array().unwrap();
        assert_eq!(sessions.len(), 1, "{listed}");
        let session = sessions[0]["session"].as_str().unwrap();
        stdout_of(&self.cra(&["trace", "show", session, "--json"]))
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The payloads of one type of event.
    #[track_caller]
    pub(crate) fn payloads(&self, event_type: &str) -> Vec<Value> {
        let mut events = self.events();
        events.retain(|event| event["event_type"] == event_type);
        events
            .into_iter()
            .map(|mut event| event["payload"].take())
            .collect()
    }

    /// Waits until an event of this type is on disk, while the program runs.
    #[track_caller]
    pub(crate) fn wait_for_event(&self, event_type: &str) {
        let deadline = Instant::now() + DEADLINE;
        while self.payloads(event_type).is_empty() {
            let found = types(&self.events());
            assert!(
                Instant::now() < deadline,
                "never `{event_type}`, only {found:?}"
            );
        }
    }

    /// Asserts that no decision was made: the request is held unchanged.
    #[track_caller]
    pub(crate) fn assert_undecided(&self) {
        let decisions = [
            "checkpoint_passed",
            "checkpoint_blocked",
            "checkpoint_response",
            "policy_override",
            "risk_verified",
            "action_blocked",
            "action_completed",
        ];
        // An answer or a confirmation that was not taken is on record, and decides nothing.
        let taken = |event: &Value| event["payload"]["validation_result"] != "invalid";
        let events: Vec<_> = self.events().into_iter().filter(taken).collect();
        let types = types(&events);
        assert!(types.iter().any(|name| name == "checkpoint_triggered"));
        let taken = types
            .iter()
            .filter(|name| decisions.contains(&name.as_str()));
        assert_eq!(taken.collect::<Vec<_>>(), Vec::<&String>::new());
    }

    /// Asserts that the record holds, by the program's own word and by an independent reader's.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let verified = self.cra(&["trace", "verify", "--json"]);
        let report: Value = serde_json::from_str(&stdout_of(&verified)).unwrap();
        assert_eq!(report["sound"], true, "{report}");
        let lines = fs::read_to_string(self.export()).unwrap().lines().count();
        let (sound, output) = verify_py(&self.path("export.jsonl"));
        let ok = output.starts_with(&format!("ok {lines}\ncra/log-"));
        assert!(sound && ok && lines > self.events().len(), "{output}");
    }

    /// Exports everything to a new file.
    pub(crate) fn export(&self) -> PathBuf {
        let file = self.path("export.jsonl");
        let _ = fs::remove_file(&file);
        stdout_of(&self.cra(&["trace", "export", "-o", file.to_str().unwrap()]));
        file
    }

    /// Held requests in the store: identifier and hash.
    pub(crate) fn held_on_disk(&self) -> Vec<(String, String)> {
        let text = |kept: &Value, name: &str| kept["held"][name].as_str().unwrap().to_owned();
        let kept = self.kept_on_disk("held").into_iter();
        kept.map(|kept| (text(&kept, "id"), text(&kept, "request_hash")))
            .collect()
    }

    /// State rows of one kind in the store.
    pub(crate) fn kept_on_disk(&self, kind: &str) -> Vec<Value> {
        let store = self.path("data").join("cra.db");
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let store = rusqlite::Connection::open_with_flags(store, flags).unwrap();
        let mut rows = store
            .prepare("SELECT body FROM state WHERE kind = ?1 ORDER BY key")
            .unwrap();
        let bodies = rows
            .query_map([kind], |row| row.get::<_, String>(0))
            .unwrap();
        bodies
            .map(|body| serde_json::from_str(&body.unwrap()).unwrap())
            .collect()
    }
}

/// The types of events, in order.
pub(crate) fn types(events: &[Value]) -> Vec<String> {
    let name = |event: &Value| event["event_type"].as_str().unwrap().to_owned();
    events.iter().map(name).collect()
}

/// One agent that asks for one thing.
pub(crate) fn delete_script() -> Value {
    let params = json!({ "ticket_ids": ["T-1", "T-2"], "cascade": true });
    script("triage-bot", params)
}

/// One agent of that name that asks once to delete a ticket.
pub(crate) fn script(agent: &str, params: Value) -> Value {
    let mut step = json!({ "action": "ticket.delete" });
    step["params"] = params;
    json!({ "agents": [{ "agent": agent, "pause_ms": 10, "sessions": 1, "steps": [step] }] })
}

/// Runs the independent verifier on exported events; returns its verdict and its output.
pub(crate) fn verify_py(exported: &Path) -> (bool, String) {
    let output = Command::new("python3")
        .arg(data().join("verify.py"))
        .arg(exported)
        .output()
        .expect("these tests need `python3` on the PATH: it reads the record independently");
    let reply = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(reply).unwrap())
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Standard output of a command that succeeded.
#[track_caller]
fn stdout_of(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}
