//! Connecting agents: real settings files in homes of their own, changed by the real program.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use cra_core::gateway::agents::CodingAgent;
use cra_core::gateway::connect::{
    self, ConnectScope, Folders, HookConfig, SettingsState, event_names, settings_file,
};
use cra_core::gateway::hook::{HookEvent, OfflineBehavior};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cli::{CommandOutput, command, command_output};
use super::impostor::{Impostor, Trick, another_key};
use super::socket::TestConsole;

fn agent(name: &str) -> CodingAgent {
    CodingAgent::from_name(name).unwrap()
}

/// A home, and a project in it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir(home.project()).unwrap();
        home
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn project(&self) -> PathBuf {
        self.path().join("project")
    }

    fn folders(&self) -> Folders {
        Folders {
            project: self.project(),
            home: self.path(),
            moved: std::collections::BTreeMap::new(),
        }
    }

    fn file(&self, host: CodingAgent, scope: ConnectScope) -> PathBuf {
        settings_file(host, scope, &self.folders())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(&self.path());
        command.args(words).current_dir(self.project());
        command
    }

    fn cra(&self, words: &[&str]) -> CommandOutput {
        command_output(self.command(words).output().unwrap())
    }

    /// The key of the console on this home's store, as hooks pin it.
    fn key(&self) -> String {
        let output = self.cra(&["trace", "key", "--answers"]);
        output.succeeds();
        output.out.trim().to_owned()
    }

    /// Gives this home's store the key of a console that runs elsewhere, so that its answers are believed.
    fn adopt_key(&self, console: &TestConsole) {
        let folder = self.path().join(".local/share/cra");
        fs::create_dir_all(&folder).unwrap();
        fs::copy(console.folder().join("cra.key"), folder.join("cra.key")).unwrap();
    }

    /// Writes settings, and the folder they are in.
    fn settings(&self, host: CodingAgent, scope: ConnectScope, text: &str) -> PathBuf {
        let file = self.file(host, scope);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    fn list(&self) -> Value {
        let file = self.path().join(".local/share/cra/connections.json");
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
    }
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

fn parse(file: &Path) -> Value {
    serde_json::from_str(&read(file)).unwrap()
}

fn backups(file: &Path) -> Vec<String> {
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut found: Vec<_> = fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|value| value.unwrap().file_name().into_string().unwrap())
        .filter(|item| item.starts_with(name) && item != name)
        .collect();
    found.sort();
    found
}

/// The only handler of an event, whether or not it is in a group.
fn handler(settings: &Value, event: &str) -> Value {
    let entry = &settings["hooks"][event][0];
    match entry.get("hooks") {
        Some(group) => group[0].clone(),
        None => entry.clone(),
    }
}

/// Unit of an agent's timeouts: the key, and units per second.
fn unit(host: CodingAgent) -> (&'static str, u64) {
    match host.as_str() {
        "claude-code" | "codex" | "cursor" => ("timeout", 1),
        "gemini" | "qwen" => ("timeout", 1000),
        "copilot" => ("timeoutSec", 1),
        other => panic!("no case for {other}"),
    }
}

const CLAUDE: (CodingAgent, ConnectScope) = (CodingAgent::ALL[0], ConnectScope::Project);

/// A user's settings, formatted differently from ours.
const THEIRS: &str = "{\n\t\"zebra\": 1.50, \"model\":\"opus\",\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t\
    { \"matcher\": \"Bash\", \"hooks\": [ { \"type\": \"command\", \"command\": \"echo \\u00e9\" } ] }\n\t\t],\n\t\t\
    \"Stop\": [ ]\n\t},\n\t\"a\": [1,2 , 3]\n}";

#[test]
fn every_agent_is_connected_and_disconnected_in_both_scopes() {
    for host in CodingAgent::ALL {
        for scope in ConnectScope::ALL {
            let home = Home::new();
            let (agent, wide) = (host.as_str(), scope.as_str());
            let words = [
                "connect",
                agent,
                "--scope",
                wide,
                "--timeout",
                "77",
                "--yes",
            ];
            home.cra(&words).succeeds();
            let file = home.file(host, scope);
            let is_generated = agent == "opencode";
            if is_generated {
                let words = ["hook", "opencode", "--timer", "77", "--offline", "deny"];
                let words = words.map(|word| format!("\"{word}\"")).join(",");
                let text = read(&file);
                assert!(text.contains(&words), "{text}");
            }
            let settings = if is_generated {
                Value::Null
            } else {
                parse(&file)
            };
            for event in event_names(host).filter(|_| !is_generated) {
                let (name, per_second) = unit(host);
                let handler = handler(&settings, event);
                let line = handler.get("command").or(handler.get("bash")).unwrap();
                let line = line.as_str().unwrap();
                let seconds = handler[name].as_u64().unwrap() / per_second;
                let reply = format!(
                    "{} hook {agent} --timer {seconds} --offline deny",
                    env!("CARGO_BIN_EXE_cra")
                );
                assert!(line.starts_with(&reply), "{agent} {event}: {line}");
            }
            assert_eq!(home.list()["connections"][0]["agent"], agent);
            let again = home.cra(&words);
            again.succeeds();
            assert!(again.out.starts_with("Nothing to do"), "{}", again.out);
            assert_eq!(backups(&file), [""; 0]);
            let words = ["disconnect", agent, "--scope", wide, "--yes"];
            home.cra(&words).succeeds();
            assert!(!file.exists(), "{agent} {wide}: {}", read(&file));
            let list = home.list();
            assert_eq!(list["connections"], json!([]));
            // A running console detects changed settings with it.
            let gone = list["disconnected"].as_array().unwrap().last().unwrap();
            assert_eq!(gone["agent"], agent);
            let again = home.cra(&words);
            again.succeeds();
            assert!(again.out.starts_with("Nothing to do"), "{}", again.out);
        }
    }
}

/// The files as each agent gets them, to be read.
#[test]
fn settings_written_for_each_agent_match_the_snapshots() {
    for host in CodingAgent::ALL {
        let home = Home::new();
        home.cra(&["connect", host.as_str(), "--scope", "project", "--yes"])
            .succeeds();
        let written = read(&home.file(host, ConnectScope::Project));
        let written = written
            .replace(env!("CARGO_BIN_EXE_cra"), "/usr/bin/cra")
            .replace(home.path().to_str().unwrap(), "/home/me")
            .replace(&home.key(), "ed25519:KEY");
        insta::assert_snapshot!(format!("connect_{}", host.as_str()), written);
    }
}

/// A gate waits for the configured time, and a hook that cannot run stops the agent where its format allows it.
#[test]
fn gates_are_pinned_and_fail_closed() {
    let gates = [
        (agent("claude-code"), ["UserPromptSubmit", "PreToolUse"]),
        (agent("codex"), ["UserPromptSubmit", "PreToolUse"]),
        (agent("gemini"), ["BeforeAgent", "BeforeTool"]),
        (agent("cursor"), ["beforeSubmitPrompt", "preToolUse"]),
        (agent("qwen"), ["UserPromptSubmit", "PreToolUse"]),
        (agent("copilot"), ["userPromptSubmitted", "preToolUse"]),
    ];
    for (host, gates) in gates {
        let home = Home::new();
        home.cra(&[
            "connect",
            host.as_str(),
            "--scope",
            "project",
            "--timeout",
            "900",
            "--offline",
            "ask",
            "--yes",
        ])
        .succeeds();
        let settings = parse(&home.file(host, ConnectScope::Project));
        let (name, per_second) = unit(host);
        for event in event_names(host) {
            let handler = handler(&settings, event);
            let is_gate = gates.contains(&event);
            assert_eq!(handler[name] == 900 * per_second, is_gate, "{event}");
            let line = handler.get("command").or(handler.get("bash")).unwrap();
            let line = line.as_str().unwrap();
            assert!(line.contains("--offline ask"), "{line}");
            let closed = match host.as_str() {
                "claude-code" | "codex" | "gemini" | "qwen" => line.ends_with("; exit 2; }"),
                "cursor" => handler["failClosed"] == true,
                // Copilot itself denies when a gate hook fails.
                "copilot" => is_gate,
                other => panic!("no case for {other}"),
            };
            let refusable = is_gate || event == "ConfigChange";
            assert_eq!(closed, refusable, "{} {event}: {line}", host.as_str());
        }
        assert_eq!(settings["hooks"].get("beforeShellExecution"), None);
    }
}

/// Nothing is written down that its hook would not understand.
#[test]
fn every_event_in_written_settings_is_known_to_its_hook() {
    for host in [
        agent("claude-code"),
        agent("codex"),
        agent("gemini"),
        agent("cursor"),
        agent("qwen"),
    ] {
        for event in event_names(host) {
            let payload = json!({
                "session_id": "s", "hook_event_name": event, "prompt": "p", "tool_name": "Bash",
                "tool_input": {"command": "ls"}, "last_assistant_message": "m", "prompt_response": "m",
                "text": "m", "error": "e",
            });
            let reply = HookEvent::read(host, payload.to_string().as_bytes()).unwrap();
            assert_ne!(format!("{:?}", reply.kind), "Other", "{event}");
        }
    }
}

#[test]
fn other_content_of_a_settings_file_is_unchanged() {
    let home = Home::new();
    let file = home.settings(CLAUDE.0, CLAUDE.1, THEIRS);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    home.cra(&["connect", "claude-code", "--scope", "project", "--yes"])
        .succeeds();
    let with = read(&file);
    for line in THEIRS
        .lines()
        .filter(|item| !item.contains("Stop") && !item.contains("Bash"))
    {
        assert!(with.contains(line), "{line:?} is not in\n{with}");
    }
    let matcher = "{ \"matcher\": \"Bash\", \"hooks\": [ { \"type\": \"command\", \"command\": \"echo \\u00e9\" } ] },\n";
    assert!(with.contains(matcher), "{with}");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(backups(&file), ["settings.local.json.cra-backup"]);
    assert_eq!(read(&file.with_extension("json.cra-backup")), THEIRS);
    home.cra(&["disconnect", "claude-code", "--scope", "project", "--yes"])
        .succeeds();
    // A list that was empty before is written as every empty one is.
    assert_eq!(read(&file), THEIRS.replace("[ ]", "[]"));
    assert_eq!(backups(&file).len(), 2);
    assert_eq!(read(&file.with_extension("json.cra-backup")), THEIRS);
}

#[test]
fn disconnect_restores_settings_files_byte_for_byte() {
    let texts = [
        "{}",
        "{}\n",
        "{\n  \"a\": 1\n}\n",
        "{\r\n    \"a\": 1\r\n}\r\n",
        "{\"a\":1,\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]}}",
        "{\n  \"hooks\": {}\n}\n",
        "\u{feff}{\n  \"hooks\": {\n    \"Stop\": []\n  }\n}",
    ];
    for text in texts {
        let home = Home::new();
        let file = home.settings(CLAUDE.0, CLAUDE.1, text);
        home.cra(&["connect", "claude-code", "--scope", "project", "--yes"])
            .succeeds();
        assert_ne!(read(&file), text);
        home.cra(&[
            "connect",
            "claude-code",
            "--scope",
            "project",
            "--timeout",
            "50",
            "--yes",
        ])
        .succeeds();
        home.cra(&["disconnect", "claude-code", "--scope", "project", "--yes"])
            .succeeds();
        assert_eq!(read(&file), text);
    }
}

#[test]
fn another_timeout_changes_only_our_entries() {
    let home = Home::new();
    let file = home.settings(CLAUDE.0, CLAUDE.1, THEIRS);
    home.cra(&["connect", "claude-code", "--scope", "project", "--yes"])
        .succeeds();
    let before = read(&file);
    home.cra(&[
        "connect",
        "claude-code",
        "--scope",
        "project",
        "--timeout",
        "60",
        "--yes",
    ])
    .succeeds();
    let after = read(&file);
    assert_eq!(before.replace("1800", "60"), after);
}

/// An entry that was narrowed, duplicated or merged with another hook is repaired.
#[test]
fn our_entries_are_recognized_in_every_spelling() {
    let ours = "/opt/old place/cra";
    let entries = [
        json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": format!("'{ours}' hook claude-code")}]}]),
        json!([{"hooks": [{"type": "command", "command": ours, "args": ["--data-dir", "/x", "hook", "claude-code"]}]}]),
        json!([{"hooks": [{"type": "command", "command": "cra hook claude-code"}]},
               {"hooks": [{"type": "command", "command": "env A=1 /x/cra hook claude-code --timer 5"}]}]),
    ];
    for entry in entries {
        let home = Home::new();
        let text = json!({"hooks": {"PreToolUse": entry}}).to_string();
        let file = home.settings(CLAUDE.0, CLAUDE.1, &text);
        home.cra(&["connect", "claude-code", "--scope", "project", "--yes"])
            .succeeds();
        let list = parse(&file)["hooks"]["PreToolUse"].clone();
        assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
        assert_eq!(list[0]["matcher"], Value::Null);
        assert_eq!(list[0]["hooks"][0]["timeout"], 1800);
        home.cra(&["disconnect", "claude-code", "--scope", "project", "--yes"])
            .succeeds();
        // The list was there before, so it stays.
        assert_eq!(parse(&file)["hooks"]["PreToolUse"], json!([]));
    }
    // Others that only look alike are left alone.
    let home = Home::new();
    let others = json!({"hooks": {"PreToolUse": [{"hooks": [
        {"type": "command", "command": "/x/cra hook codex"},
        {"type": "command", "command": "/x/notcra hook claude-code"},
        {"type": "command", "command": "echo; cra hook claude-code"},
    ]}]}});
    let file = home.settings(CLAUDE.0, CLAUDE.1, &others.to_string());
    home.cra(&["disconnect", "claude-code", "--scope", "project", "--yes"])
        .succeeds();
    assert_eq!(read(&file), others.to_string());
    // Next to another hook: only ours is removed.
    let with_other_hook = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "x"}, {"type": "command", "command": "cra hook claude-code"},
    ]}]}});
    let file = home.settings(CLAUDE.0, CLAUDE.1, &with_other_hook.to_string());
    home.cra(&["disconnect", "claude-code", "--scope", "project", "--yes"])
        .succeeds();
    let rest = json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}]);
    assert_eq!(parse(&file)["hooks"]["PreToolUse"], rest);
}

/// Settings in the way that people write them for Gemini.
const COMMENTED: [&str; 9] = [
    "{\n  // mine\n  \"theme\": \"dark\", // after\n  /* block */\n}\n",
    "{\n  \"theme\": \"dark\" // no comma\n}\n",
    "{\n  \"theme\": \"dark\",\n}\n",
    "{ // nothing else\n}\n",
    "// before\n{}\n// behind\n",
    "{\r\n\t\"theme\": \"dark\", // crlf\r\n}\r\n",
    "{\n  \"hooks\": {\n    // none yet\n  },\n}\n",
    "{\n  \"hooks\": {\n    \"BeforeTool\": [\n      { \"hooks\": [{ \"command\": \"x\", }], }, // theirs\n    ],\n  },\n}\n",
    "{\"a\": [1, 2, /* three */], \"b\": \"// no comment\",}",
];

#[test]
fn comments_and_trailing_commas_of_gemini_are_kept_and_come_back_byte_for_byte() {
    let gemini = agent("gemini");
    for text in COMMENTED {
        let home = Home::new();
        let file = home.settings(gemini, ConnectScope::Project, text);
        home.cra(&["connect", "gemini", "--scope", "project", "--yes"])
            .succeeds();
        let with = read(&file);
        for comment in [
            "mine",
            "after",
            "block",
            "no comma",
            "nothing else",
            "crlf",
            "theirs",
        ] {
            assert_eq!(
                text.contains(comment),
                with.contains(comment),
                "{comment}: {with}"
            );
        }
        assert!(with.contains(" hook gemini "), "{with}");
        let said = home.cra(&["connect", "gemini", "--scope", "project", "--yes"]);
        said.succeeds();
        assert_eq!(read(&file), with, "a second time changes nothing");
        home.cra(&[
            "connect",
            "gemini",
            "--scope",
            "project",
            "--timeout",
            "50",
            "--yes",
        ])
        .succeeds();
        home.cra(&["disconnect", "gemini", "--scope", "project", "--yes"])
            .succeeds();
        assert_eq!(read(&file), text);
    }
}

/// A user may write around our entries, and disconnects later.
#[test]
fn comments_that_a_user_adds_around_our_entries_stay() {
    let gemini = agent("gemini");
    let wiring = HookConfig {
        program: "/usr/bin/cra".into(),
        timeout: 60,
        offline: OfflineBehavior::Deny,
        place: Vec::new(),
        key: None,
    };
    let first = connect::connect("{\n  \"a\": 1\n}\n", gemini, &wiring).unwrap();
    let edits = [
        ("\"hooks\": {", "// one\n  \"hooks\": { // two"),
        ("\"BeforeTool\": [", "/* three */ \"BeforeTool\": [ // four"),
        ("\n}\n", ", // five\n  \"b\": 2, // six\n}\n"),
    ];
    let mut text = first.text;
    for (old, new) in edits {
        assert!(text.contains(old), "{text}");
        text = text.replacen(old, new, 1);
    }
    let without = connect::disconnect(&text, gemini, Some(&first.created)).unwrap();
    for comment in [
        "// one",
        "// two",
        "/* three */",
        "// four",
        "// five",
        "// six",
    ] {
        assert!(without.contains(comment), "{comment} is not in\n{without}");
    }
    assert!(!without.contains("cra"), "{without}");
    // What is left is read by the agent, and connects again.
    let again = connect::connect(&without, gemini, &wiring).unwrap();
    let state = connect::inspect(&again.text, gemini, &wiring).unwrap();
    assert_eq!(state, SettingsState::Intact);
}

#[test]
fn a_commented_file_with_a_key_twice_or_a_broken_value_is_refused() {
    let gemini = agent("gemini");
    for (text, place) in [
        ("{\n  \"a\": 1, // one\n  \"\\u0061\": 2,\n}\n", "line 3"),
        ("{\n  // c\n  'a': 1\n}\n", "line 3"),
        ("{\n  \"a\": 0x10\n}\n", "line 2"),
        ("{\n  \"a\": 1 \"b\": 2\n}\n", "line 2"),
        ("{ /* never closed\n}\n", "line 1"),
        ("{,}", "line 1"),
    ] {
        let home = Home::new();
        let file = home.settings(gemini, ConnectScope::Project, text);
        home.cra(&["connect", "gemini", "--scope", "project", "--yes"])
            .fails(1, &[place, "help: "]);
        assert_eq!(read(&file), text);
    }
}

#[test]
fn settings_that_cannot_be_preserved_are_refused_with_the_location() {
    let refused = [
        ("{\n  // mine\n  \"a\": 1\n}", "line 2, column 3"),
        ("{\n  \"a\": 1,\n}", "line 3, column 1"),
        ("[1]", "line 1: `the file` must be an object"),
        ("{\n\"hooks\": []}", "line 2: `hooks` must be an object"),
        (
            "{\"hooks\": {\n\n\"Stop\": {}}}",
            "line 3: `Stop` must be a list",
        ),
        (
            "{\"hooks\": {},\n \"hooks\": {}}",
            "line 2: `hooks` occurs twice",
        ),
    ];
    for (text, place) in refused {
        let home = Home::new();
        let file = home.settings(CLAUDE.0, CLAUDE.1, text);
        let output = home.cra(&["connect", "claude-code", "--scope", "project", "--yes"]);
        output.fails(1, &[place, "help: "]);
        assert_eq!(read(&file), text);
        assert_eq!(backups(&file), [""; 0]);
    }
}

#[test]
fn settings_are_not_written_without_confirmation() {
    let home = Home::new();
    let file = home.file(CLAUDE.0, CLAUDE.1);
    let output = home.cra(&["connect", "claude-code", "--scope", "project"]);
    output.fails(2, &["cannot ask for confirmation", "--yes"]);
    assert!(output.out.contains("+  \"hooks\": {"), "{}", output.out);
    home.cra(&["connect", "claude-code", "--scope", "project", "--json"])
        .fails(2, &["--yes"]);
    let dry = home.cra(&["connect", "claude-code", "--scope", "project", "--dry-run"]);
    dry.succeeds();
    assert!(dry.out.contains("Nothing was written."), "{}", dry.out);
    let reply = home
        .cra(&[
            "connect",
            "claude-code",
            "--scope",
            "project",
            "--dry-run",
            "--json",
        ])
        .json();
    assert_eq!(
        (&reply["changes"], &reply["written"]),
        (&json!(true), &json!(false))
    );
    assert!(!file.exists() && !home.path().join(".local").exists());
    let reply = home
        .cra(&[
            "connect",
            "claude-code",
            "--scope",
            "project",
            "--yes",
            "--json",
        ])
        .json();
    assert_eq!(
        (&reply["written"], &reply["backup"]),
        (&json!(true), &Value::Null)
    );
    assert!(file.exists());
}

#[test]
fn symlink_is_written_through_and_a_dangling_one_is_refused() {
    let home = Home::new();
    let real = home.path().join("dotfiles.json");
    fs::write(&real, "{}\n").unwrap();
    let file = home.file(agent("cursor"), ConnectScope::User);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    symlink(&real, &file).unwrap();
    home.cra(&["connect", "cursor", "--scope", "user", "--yes"])
        .succeeds();
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(parse(&real)["version"], 1);
    home.cra(&["disconnect", "cursor", "--scope", "user", "--yes"])
        .succeeds();
    assert_eq!(read(&real), "{}\n");
    fs::remove_file(&real).unwrap();
    home.cra(&["connect", "cursor", "--scope", "user", "--yes"])
        .fails(1, &["cannot change"]);
    assert!(!real.exists());
}

/// A console that was named is named to the hooks too, and a path that the shell would take apart is kept whole.
#[test]
fn connected_hooks_ask_the_named_console() {
    let home = Home::new();
    let data = home.path().join("my data");
    let words = [
        "connect",
        "codex",
        "--scope",
        "project",
        "--yes",
        "--data-dir",
        data.to_str().unwrap(),
    ];
    home.cra(&words).succeeds();
    let settings = parse(&home.file(agent("codex"), ConnectScope::Project));
    let line = handler(&settings, "PreToolUse")["command"].clone();
    let reply = format!("--data-dir '{}' --socket ", data.display());
    assert!(line.as_str().unwrap().contains(&reply), "{line}");
    // The shell comes to the same: the hook that is not connected to anything says no, with 2 at worst.
    let shell = Command::new("/bin/sh")
        .arg("-c")
        .arg(line.as_str().unwrap())
        .output()
        .unwrap();
    assert_eq!(shell.status.code(), Some(2), "{shell:?}");
    assert!(data.join("connections.json").exists());
}

/// A program that is gone stops the agent: the shell says 2 in its place.
#[test]
fn hook_that_cannot_run_denies() {
    let home = Home::new();
    home.cra(&["connect", "gemini", "--scope", "project", "--yes"])
        .succeeds();
    let settings = parse(&home.file(agent("gemini"), ConnectScope::Project));
    let line = handler(&settings, "BeforeTool")["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let line = line.replace(env!("CARGO_BIN_EXE_cra"), "/nowhere/cra");
    let shell = Command::new("/bin/sh")
        .arg("-c")
        .arg(line)
        .output()
        .unwrap();
    assert_eq!(shell.status.code(), Some(2));
    assert!(!shell.stderr.is_empty());
}

/// Problems that the doctor reports about the only connection.
fn problems(output: &CommandOutput) -> Vec<String> {
    let reply = output.json();
    let found = reply["connections"][0]["problems"].as_array().unwrap();
    found
        .iter()
        .map(|entry| entry.as_str().unwrap().to_owned())
        .collect()
}

// A console that answers is needed for a good report, so this one has a socket of its own.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_problems_and_accepts_correct_settings() {
    let console = TestConsole::new().await;
    let home = Home::new();
    home.adopt_key(&console);
    let socket = console.path();
    let socket = socket.to_str().unwrap();
    let doctor = |more: &[&str]| {
        let words = ["doctor", "--json", "--socket", socket];
        let words: Vec<_> = words.into_iter().chain(more.iter().copied()).collect();
        home.cra(&words)
    };
    // No agent is connected.
    let unconnected = doctor(&[]);
    assert_eq!(
        (unconnected.code, &unconnected.json()["console"]["answers"]),
        (1, &json!(true))
    );
    home.cra(&[
        "connect", "cursor", "--scope", "project", "--yes", "--socket", socket,
    ])
    .succeeds();
    let well = doctor(&[]);
    assert_eq!((well.code, problems(&well)), (0, Vec::new()));
    assert_eq!(doctor(&["cursor"]).code, 0);
    assert_eq!(doctor(&["cursor", "gemini"]).code, 1);
    let text = home.cra(&["doctor", "--socket", socket]);
    assert_eq!(text.code, 0, "{}", text.out);
    for words in [
        "ok       the console answers at",
        "ok       cursor",
        "No problems found.",
        "HOOK LATE",
    ] {
        assert!(text.out.contains(words), "{words} is not in\n{}", text.out);
    }
    let file = home.file(agent("cursor"), ConnectScope::Project);
    let good = read(&file);
    let edits = [
        (
            "\"timeout\": 1800",
            "\"timeout\": 60",
            "preToolUse was edited: the agent waits 60 s and the hook 1800 s",
        ),
        (
            "\"failClosed\": true",
            "\"failClosed\": false",
            "preToolUse was edited",
        ),
        (
            "\"preToolUse\"",
            "\"afterMCPExecution\"",
            "preToolUse is missing",
        ),
        ("--offline deny", "--offline ask", "preToolUse was edited"),
    ];
    for (from, to, words) in edits {
        fs::write(&file, good.replace(from, to)).unwrap();
        let output = doctor(&[]);
        let found = problems(&output);
        assert_eq!(output.code, 1);
        assert!(
            found.iter().any(|entry| entry == words),
            "{words}: {found:?}"
        );
    }
    fs::write(&file, "{}").unwrap();
    assert_eq!(problems(&doctor(&[])), ["the hooks were removed"]);
    fs::write(&file, &good).unwrap();
    // Another console than the one that was asked about.
    let other = home.path().join("run/other.sock");
    let output = home.cra(&["doctor", "--json", "--socket", other.to_str().unwrap()]);
    assert_eq!(
        (output.code, &output.json()["console"]["answers"]),
        (1, &json!(false))
    );
    assert!(
        problems(&output)[0].starts_with("the hooks use another console"),
        "{}",
        output.out
    );
    assert_eq!(doctor(&[]).code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_missing_or_other_programs_and_the_trust_state_of_codex() {
    let console = TestConsole::new().await;
    let home = Home::new();
    home.adopt_key(&console);
    let socket = console.path();
    let socket = socket.to_str().unwrap();
    home.cra(&[
        "connect", "codex", "--scope", "project", "--yes", "--socket", socket,
    ])
    .succeeds();
    let doctor = || home.cra(&["doctor", "codex", "--json", "--socket", socket]);
    assert!(problems(&doctor())[0].contains("does not trust the hooks yet"));
    let file = home.file(agent("codex"), ConnectScope::Project);
    let trusted = format!(
        "[hooks.state.\"{}:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:0\"\n",
        file.display()
    );
    fs::create_dir_all(home.path().join(".codex")).unwrap();
    fs::write(home.path().join(".codex/config.toml"), trusted).unwrap();
    assert_eq!((doctor().code, problems(&doctor())), (0, Vec::new()));
    // The list goes, so that the entries themselves say how they are wired.
    fs::remove_file(home.path().join(".local/share/cra/connections.json")).unwrap();
    assert_eq!(doctor().code, 0);
    let program = home.path().join("cra");
    let text = read(&file).replace(env!("CARGO_BIN_EXE_cra"), program.to_str().unwrap());
    fs::write(&file, text).unwrap();
    assert!(problems(&doctor())[0].ends_with("of the hooks is missing"));
    fs::write(&program, "#!/bin/sh\necho cra 0.0.1\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(problems(&doctor())[0].contains("is cra 0.0.1, but this is cra "));
    assert_eq!(doctor().code, 1);
}

/// A setting that disables hooks is found in every file that the agent reads.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_checks_every_file_that_can_disable_hooks() {
    let console = TestConsole::new().await;
    let home = Home::new();
    home.adopt_key(&console);
    let socket = console.path();
    let socket = socket.to_str().unwrap();
    for agent in ["claude-code", "gemini"] {
        home.cra(&[
            "connect", agent, "--scope", "project", "--yes", "--socket", socket,
        ])
        .succeeds();
    }
    let doctor = |agent| home.cra(&["doctor", agent, "--json", "--socket", socket]);
    let off = json!({"disableAllHooks": true}).to_string();
    let shared = home.project().join(".claude/settings.json");
    let users = home.file(agent("claude-code"), ConnectScope::User);
    for other in [shared, users] {
        assert_eq!(doctor("claude-code").code, 0);
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::write(&other, &off).unwrap();
        let output = doctor("claude-code");
        assert_eq!(output.code, 1);
        let words = format!(
            "hooks are switched off by `disableAllHooks` in {}",
            other.display()
        );
        assert_eq!(problems(&output), [words]);
        fs::remove_file(other).unwrap();
    }
    // By its name.
    let trusted = json!({home.project().to_str().unwrap(): "TRUST_FOLDER"});
    let list = home.path().join(".gemini/trustedFolders.json");
    fs::create_dir_all(list.parent().unwrap()).unwrap();
    fs::write(list, trusted.to_string()).unwrap();
    assert_eq!(doctor("gemini").code, 0);
    let users = home.path().join(".gemini/settings.json");
    fs::write(&users, r#"{"hooksConfig": {"disabled": ["cra"]}}"#).unwrap();
    let found = problems(&doctor("gemini"));
    assert!(
        found[0].starts_with("hooks are switched off by `hooksConfig.disabled` in"),
        "{found:?}"
    );
    fs::remove_file(users).unwrap();
    // Two that differ are both run.
    home.cra(&[
        "connect",
        "gemini",
        "--yes",
        "--scope",
        "user",
        "--timeout",
        "77",
        "--socket",
        socket,
    ])
    .succeeds();
    let found = problems(&doctor("gemini"));
    assert!(found[0].contains("each step is asked twice"), "{found:?}");
}

/// Puts another key into an entry of a home's only connection, as if it had been written under that one.
fn pin(file: &Path, list: &Path, from: &str, to: Option<&str>) {
    for file in [file, list] {
        let text = match to {
            Some(to) => read(file).replace(from, to),
            None => read(file).replace(&format!(" --key {from}"), ""),
        };
        fs::write(file, text).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_hooks_that_pin_no_key_or_another_key() {
    let console = TestConsole::new().await;
    let home = Home::new();
    home.adopt_key(&console);
    let socket = console.path();
    let socket = socket.to_str().unwrap();
    let words = [
        "connect", "cursor", "--scope", "project", "--yes", "--socket", socket,
    ];
    home.cra(&words).succeeds();
    let doctor = || home.cra(&["doctor", "cursor", "--json", "--socket", socket]);
    assert_eq!((doctor().code, problems(&doctor())), (0, Vec::new()));
    assert_eq!(doctor().json()["console"]["key"], console.key());
    let file = home.file(agent("cursor"), ConnectScope::Project);
    let list = home.path().join(".local/share/cra/connections.json");
    let other = another_key();
    pin(&file, &list, &console.key(), Some(&other));
    let reply = "its hooks have another key than this console, so every step is denied; run cra connect cursor";
    assert_eq!(
        (doctor().code, problems(&doctor())),
        (1, vec![reply.to_owned()])
    );
    let text = home.cra(&["doctor", "cursor", "--socket", socket]);
    assert!(
        text.out.contains("fix it: cra connect cursor"),
        "{}",
        text.out
    );
    home.cra(&words).succeeds();
    assert_eq!(doctor().code, 0);
    // As an earlier version wrote it, and as its list has it.
    let mut known = home.list();
    known["connections"][0]["wiring"]
        .as_object_mut()
        .unwrap()
        .remove("key");
    fs::write(&list, known.to_string()).unwrap();
    pin(&file, &list, &console.key(), None);
    let reply =
        "its hooks have no key of the console, so every step is denied; run cra connect cursor";
    assert_eq!(problems(&doctor()), [reply]);
    home.cra(&words).succeeds();
    assert_eq!(doctor().code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_rejects_answers_of_other_processes_and_reports_rejected_answers() {
    let console = TestConsole::new().await;
    let home = Home::new();
    home.adopt_key(&console);
    let socket = console.path();
    let socket = socket.to_str().unwrap();
    home.cra(&[
        "connect",
        "claude-code",
        "--scope",
        "project",
        "--yes",
        "--socket",
        socket,
    ])
    .succeeds();
    let doctor = || home.cra(&["doctor", "claude-code", "--json", "--socket", socket]);
    assert_eq!(doctor().code, 0);
    let _impostor = Impostor::at(&console.path(), Trick::Allow);
    let output = doctor();
    assert_eq!(
        (output.code, &output.json()["console"]["answers"]),
        (1, &json!(false))
    );
    let reply = output.json()["console"]["problem"].to_string();
    assert!(reply.contains("did not come from the console"), "{reply}");
    assert_eq!(output.json()["rejected_answers"], Value::Null);
    // The entry itself, as the agent runs it.
    let settings = parse(&home.file(agent("claude-code"), ConnectScope::Project));
    let line = handler(&settings, "PreToolUse")["command"].clone();
    let payload = json!({"session_id": "s", "cwd": "/src", "hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "git push --force"}, "tool_use_id": "t"});
    let shell = Command::new("/bin/sh")
        .args(["-c", line.as_str().unwrap()])
        .stdin(file_with(&home.path().join("payload"), &payload))
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&shell.stdout).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
    let output = doctor();
    let reply = output.json()["rejected_answers"]["problem"].to_string();
    assert!(reply.contains("ANOTHER PROCESS gave an answer"), "{reply}");
    assert!(reply.contains("cra hook claude-code"), "{reply}");
    let text = home.cra(&["doctor", "claude-code", "--socket", socket]);
    assert!(
        text.out.contains("PROBLEM  ANOTHER PROCESS gave an answer"),
        "{}",
        text.out
    );
}

fn file_with(path: &Path, value: &Value) -> fs::File {
    fs::write(path, value.to_string()).unwrap();
    fs::File::open(path).unwrap()
}

#[test]
fn key_rotation_lists_every_agent_that_pins_the_old_key() {
    let home = Home::new();
    home.cra(&["connect", "gemini", "--scope", "project", "--yes"])
        .succeeds();
    let old = home.key();
    let file = home.file(agent("gemini"), ConnectScope::Project);
    assert!(
        read(&file).contains(&format!("--key {old}")),
        "{}",
        read(&file)
    );
    for change in ["--rotate", "--new"] {
        let output = home.cra(&["trace", "key", change]);
        assert_eq!(output.code, 0, "{}", output.err);
        let way = "still have the old key: run cra connect gemini --scope project";
        assert!(output.err.contains(way), "{}", output.err);
        let new = home.key();
        assert_ne!(new, old, "{change}");
        let found = problems(&home.cra(&["doctor", "gemini", "--json"]));
        assert!(
            found[0].contains("have another key than this console"),
            "{found:?}"
        );
    }
    home.cra(&["connect", "gemini", "--scope", "project", "--yes"])
        .succeeds();
    assert!(read(&file).contains(&home.key()));
    home.cra(&["disconnect", "gemini", "--scope", "project", "--yes"])
        .succeeds();
    assert!(!file.exists());
}

/// Any JSON, with names among it that mean something to agents.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        Just("hooks".to_owned()),
        Just("Stop".to_owned()),
        Just("PreToolUse".to_owned()),
        ".{0,6}",
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5)
                .prop_map(|value| value.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    /// Any settings in any format: they are refused, or they are all still there, and
    /// exactly the same after disconnecting.
    #[test]
    fn connect_and_disconnect_preserve_all_other_settings(settings in any_json(), pretty in any::<bool>(), at in 0..6_usize) {
        let host = CodingAgent::ALL[at];
        let settings = match settings {
            Value::Object(_) => settings,
            Value::Array(lists) => json!({"a": 1, "hooks": {"Stop": lists, "x": 2}}),
            other => json!({"a": other}),
        };
        let text = if pretty {
            serde_json::to_string_pretty(&settings).unwrap()
        } else {
            settings.to_string()
        };
        let wiring = |timeout| HookConfig {
            program: "/opt/the tools/cra".into(),
            timeout,
            offline: OfflineBehavior::Deny,
            place: Vec::new(),
            key: Some("ed25519:a/b+c=".to_owned()),
        };
        let Ok(first) = connect::connect(&text, host, &wiring(60)) else {
            return Ok(());
        };
        prop_assert_eq!(connect::inspect(&first.text, host, &wiring(60)).unwrap(), SettingsState::Intact);
        prop_assert_eq!(connect::read_hook_config(&first.text, host), Some(wiring(60)));
        let again = connect::connect(&first.text, host, &wiring(60)).unwrap();
        prop_assert_eq!(&again.text, &first.text);
        let other = connect::connect(&first.text, host, &wiring(90)).unwrap();
        let without = connect::disconnect(&other.text, host, Some(&first.created)).unwrap();
        prop_assert_eq!(without, text);
    }
}

#[test]
fn settings_with_a_duplicate_key_are_not_changed() {
    let home = Home::new();
    let text = "{\n  \"env\": {\n    \"A\": \"1\",\n    \"\\u0041\": \"2\"\n  }\n}\n";
    let file = home.settings(CLAUDE.0, CLAUDE.1, text);
    let reply = home.cra(&["connect", "claude-code", "--scope", "project", "--yes"]);
    assert_ne!(reply.code, 0, "{}", reply.out);
    assert!(reply.err.contains("line 4"), "{}", reply.err);
    assert!(reply.err.contains("`env.A`"), "{}", reply.err);
    assert_eq!(read(&file), text);
    // Numbers are the owner's own: they stay as they are written.
    let odd = "{\n  \"n\": 123456789012345678901234567890,\n  \"m\": 1.0e2\n}\n";
    fs::write(&file, odd).unwrap();
    home.cra(&["connect", "claude-code", "--scope", "project", "--yes"])
        .succeeds();
    let changed = read(&file);
    assert!(
        changed.contains("\"n\": 123456789012345678901234567890"),
        "{changed}"
    );
    assert!(changed.contains("\"m\": 1.0e2"), "{changed}");
}

/// The doctor's problems about an agent in this project. No console runs, which the doctor reports apart.
fn agent_problems(home: &Home, agent: &str) -> Vec<String> {
    let report = home.cra(&["doctor", agent, "--json"]).json();
    let connections = report["connections"].as_array().unwrap().iter();
    let problems = connections.flat_map(|one| one["problems"].as_array().unwrap().clone());
    problems
        .map(|problem| problem.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn plugin_of_opencode_is_removed_as_a_whole_and_an_edit_is_a_problem() {
    let home = Home::new();
    let opencode = agent("opencode");
    home.cra(&["connect", "opencode", "--yes"]).succeeds();
    let file = home.path().join(".config/opencode/plugin/cra.js");
    assert_eq!(file, home.file(opencode, ConnectScope::User));
    let text = read(&file);
    assert!(!text.contains('@'), "{text}");
    let wiring = connect::read_hook_config(&text, opencode).unwrap();
    let state = connect::inspect(&text, opencode, &wiring).unwrap();
    assert_eq!(state, SettingsState::Intact);
    assert_eq!(agent_problems(&home, "opencode"), [""; 0]);
    let edited = text.replace("throw new Error", "return new Error");
    fs::write(&file, &edited).unwrap();
    assert_eq!(agent_problems(&home, "opencode"), ["the file was edited"]);
    home.cra(&["connect", "opencode", "--yes"]).succeeds();
    assert_eq!(read(&file), text);
    assert_eq!(backups(&file), ["cra.js.cra-backup"]);
    assert_eq!(read(&file.with_extension("js.cra-backup")), edited);
    // Without an edit there is nothing to keep.
    home.cra(&["connect", "opencode", "--timeout", "60", "--yes"])
        .succeeds();
    home.cra(&["disconnect", "opencode", "--yes"]).succeeds();
    assert!(!file.exists());
    assert_eq!(backups(&file), ["cra.js.cra-backup"]);
    // A file of another kind is not ours to remove.
    fs::write(&file, "export const Mine = 1\n").unwrap();
    home.cra(&["disconnect", "opencode", "--yes"]).succeeds();
    assert_eq!(read(&file), "export const Mine = 1\n");
}

#[test]
fn opencode_runs_plugins_of_user_and_project_so_both_are_a_problem() {
    let home = Home::new();
    home.cra(&["connect", "opencode", "--yes"]).succeeds();
    home.cra(&["connect", "opencode", "--scope", "project", "--yes"])
        .succeeds();
    assert_eq!(
        agent_problems(&home, "opencode"),
        ["also connected for the user: each step is asked twice"]
    );
}

#[test]
fn gemini_is_connected_as_an_extension_that_replaces_entries_in_its_settings() {
    let home = Home::new();
    let gemini = agent("gemini");
    let settings = home.path().join(".gemini/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let wiring = HookConfig {
        program: env!("CARGO_BIN_EXE_cra").into(),
        timeout: 60,
        offline: OfflineBehavior::Deny,
        place: Vec::new(),
        key: None,
    };
    let theirs = "{\n  \"theme\": \"dark\"\n}\n";
    let former = connect::connect(theirs, gemini, &wiring).unwrap().text;
    fs::write(&settings, &former).unwrap();
    let problems = agent_problems(&home, "gemini");
    assert!(
        problems
            .iter()
            .any(|problem| problem.starts_with("its hooks belong in")),
        "{problems:?}"
    );
    let shown = home.cra(&["connect", "gemini", "--dry-run"]);
    for name in ["hooks/hooks.json", "gemini-extension.json", "settings.json"] {
        assert!(shown.out.contains(name), "{}", shown.out);
    }
    assert_eq!(read(&settings), former);
    home.cra(&["connect", "gemini", "--yes"]).succeeds();
    assert_eq!(read(&settings), theirs);
    let extension = home.path().join(".gemini/extensions/cra");
    let manifest = extension.join("gemini-extension.json");
    assert_eq!(parse(&manifest)["name"], "cra");
    assert_eq!(agent_problems(&home, "gemini"), [""; 0]);
    let enablement = home
        .path()
        .join(".gemini/extensions/extension-enablement.json");
    fs::write(&enablement, "{\"cra\": {\"overrides\": [\"!/home/*\"]}}").unwrap();
    assert!(agent_problems(&home, "gemini")[0].contains("is disabled in Gemini"));
    fs::remove_file(enablement).unwrap();
    fs::remove_file(&manifest).unwrap();
    assert!(agent_problems(&home, "gemini")[0].ends_with("is missing"));
    home.cra(&["connect", "gemini", "--yes"]).succeeds();
    home.cra(&["disconnect", "gemini", "--yes"]).succeeds();
    assert!(!extension.exists());
    assert_eq!(read(&settings), theirs);
}

#[test]
fn no_backup_stays_of_a_file_that_had_only_our_hooks() {
    for agent in CodingAgent::ALL {
        let home = Home::new();
        let words = ["connect", agent.as_str(), "--scope", "project", "--yes"];
        home.cra(&words).succeeds();
        home.cra(&[&words[..], &["--timeout", "60"]].concat())
            .succeeds();
        home.cra(&["disconnect", agent.as_str(), "--scope", "project", "--yes"])
            .succeeds();
        let file = home.file(agent, ConnectScope::Project);
        assert!(!file.exists(), "{agent:?}");
        assert_eq!(backups(&file), [""; 0], "{agent:?}");
    }
}

#[test]
fn projects_with_other_timers_are_no_problem() {
    let home = Home::new();
    let other = home.path().join("other");
    fs::create_dir(&other).unwrap();
    let other = other.to_str().unwrap();
    let words = ["connect", "cursor", "--scope", "project", "--yes"];
    home.cra(&words).succeeds();
    home.cra(&[&words[..], &["--dir", other, "--timeout", "60"]].concat())
        .succeeds();
    assert_eq!(agent_problems(&home, "cursor"), [""; 0]);
    home.cra(&["connect", "cursor", "--timeout", "70", "--yes"])
        .succeeds();
    let twice = "also connected for the user: each step is asked twice";
    assert_eq!(agent_problems(&home, "cursor"), [twice, twice]);
}

#[test]
fn doctor_reports_projects_that_gemini_and_copilot_do_not_trust() {
    for (agent, list) in [
        ("gemini", ".gemini/trustedFolders.json"),
        ("copilot", ".copilot/config.json"),
    ] {
        let home = Home::new();
        home.cra(&["connect", agent, "--scope", "project", "--yes"])
            .succeeds();
        let problems = agent_problems(&home, agent);
        assert!(
            problems[0].contains("does not trust this folder"),
            "{problems:?}"
        );
        let project = home.project();
        let trusted = match agent {
            "gemini" => json!({project.to_str().unwrap(): "TRUST_FOLDER"}).to_string(),
            _ => format!(
                "// written by copilot\n{}",
                json!({"trustedFolders": [project]})
            ),
        };
        let list = home.path().join(list);
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        fs::write(list, trusted).unwrap();
        assert_eq!(agent_problems(&home, agent), [""; 0], "{agent}");
        // Entries of the user need no trust.
        home.cra(&["disconnect", agent, "--scope", "project", "--yes"])
            .succeeds();
        fs::remove_dir_all(home.path().join(list_folder(agent))).unwrap();
        home.cra(&["connect", agent, "--yes"]).succeeds();
        assert_eq!(agent_problems(&home, agent), [""; 0], "{agent}");
    }
}

fn list_folder(agent: &str) -> &'static str {
    if agent == "gemini" {
        ".gemini"
    } else {
        ".copilot"
    }
}
