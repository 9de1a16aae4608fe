//! Connected agents whose hooks or socket are tampered with while the console runs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use serde_json::{Value, json};

use super::workspace::{WIDE, Workspace};

#[test]
fn connect_shows_a_change_and_writes_it_only_after_confirmation() {
    let workspace = Workspace::new("gates.yaml");
    let file = workspace.path("home/.cursor/hooks.json");
    for (typed, code) in [
        ("\r", "Nothing was written."),
        ("n\r", "Nothing was written."),
        ("y\r", "was written."),
    ] {
        assert!(!file.exists());
        let mut terminal = workspace.run_interactive(&["connect", "cursor", "--scope", "project"]);
        terminal.wait_for("Write this? [y/N]");
        assert!(
            terminal.text().contains("\"failClosed\": true"),
            "{}",
            terminal.text()
        );
        terminal.keys(typed);
        terminal.wait_for(code);
        assert_eq!(terminal.wait_exit(), 0);
    }
    assert!(file.exists());
}

#[test]
fn a_hook_that_is_edited_or_removed_while_the_console_runs_raises_an_alarm() {
    let workspace = Workspace::new("gates.yaml");
    let connected = workspace.cra(&["connect", "cursor", "--scope", "user", "--yes"]);
    assert!(connected.status.success(), "{connected:?}");
    let file = workspace.path("home/.cursor/hooks.json");
    let good = fs::read_to_string(&file).unwrap();
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    fs::write(
        &file,
        good.replace("\"failClosed\": true", "\"failClosed\": false"),
    )
    .unwrap();
    terminal.wait_for("ALARM cursor: beforeSubmitPrompt was edited, and 1 more");
    fs::remove_file(&file).unwrap();
    terminal.wait_for("ALARM cursor: its hooks were removed");
    terminal.keys("2");
    terminal.wait_for("ALARM cursor: its hooks were removed");
    fs::write(&file, good).unwrap();
    terminal.wait_without("ALARM");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
}

#[test]
fn another_process_listening_at_the_console_socket_raises_an_alarm() {
    let workspace = Workspace::new("gates.yaml");
    let terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    let socket = workspace.path("data/run/console.sock");
    fs::remove_file(&socket).unwrap();
    terminal.wait_for("is gone: agents cannot");
    let _impostor = UnixListener::bind(&socket).unwrap();
    terminal.wait_for("ALARM ANOTHER PROCESS listens at");
}

#[test]
fn answer_from_another_process_denies_the_agent_raises_an_alarm_and_is_recorded() {
    let workspace = Workspace::new("gates.yaml").written(
        "atlas_version: '1.0'\natlas_id: test\nversion: '1'\nname: Test\ndefault_decision: allow\n\
         actions: [{action_id: file.read, name: Read, risk_tier: low}]\n",
    );
    let connected = workspace.cra(&["connect", "cursor", "--scope", "user", "--yes"]);
    assert!(connected.status.success(), "{connected:?}");
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    let socket = workspace.path("data/run/console.sock");
    // For a moment only: the console's own socket is back before anyone looks.
    let away = workspace.path("data/run/away.sock");
    fs::rename(&socket, &away).unwrap();
    let impostor = allow_everything(UnixListener::bind(&socket).unwrap());
    let denied = ask_as_agent(&workspace);
    fs::rename(&away, &socket).unwrap();
    assert_eq!(denied["permission"], "deny", "{denied}");
    assert!(impostor.join().unwrap() > 0, "it was asked");
    terminal.wait_for("ALARM ANOTHER PROCESS gave an answer at");
    terminal.wait_for("see cra doctor");
    // The same entry, with the console behind its socket again.
    let allowed = ask_as_agent(&workspace);
    assert_eq!(allowed["permission"], "allow", "{allowed}");
    let recorded = workspace.path("data/rejected-answers/recorded");
    while fs::read_dir(&recorded).map_or(0, Iterator::count) == 0 {
        std::thread::yield_now();
    }
    let doctor = workspace.cra(&["doctor", "cursor"]);
    let output = String::from_utf8(doctor.stdout).unwrap();
    assert!(
        output.contains("PROBLEM  ANOTHER PROCESS gave an answer"),
        "{output}"
    );
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    let exported = fs::read_to_string(workspace.export()).unwrap();
    let events = exported
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let recorded: Vec<Value> = events
        .filter(|event: &Value| event["event_type"] == "answer_rejected")
        .collect();
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    let payload = &recorded[0]["payload"];
    assert_eq!(payload["by"], "cra hook cursor");
    assert_eq!(payload["asking_session"], "cursor.c-1");
    assert_eq!(payload["reason"], "the answer has no proof");
    workspace.assert_sound();
}

/// Answers one connection as a console would that allows everything; returns the number of requests.
fn allow_everything(listener: UnixListener) -> std::thread::JoinHandle<usize> {
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut out = stream.try_clone().unwrap();
        let mut requests = 0;
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            requests += 1;
            let request: Value = serde_json::from_str(&line).unwrap();
            let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result":
                {"session": "cursor.c-1", "key": "k", "held": [], "execution": "x-1"}});
            if writeln!(out, "{answer}").is_err() {
                break;
            }
        }
        requests
    })
}

/// Runs the hook of the connected agent, as its settings say.
fn ask_as_agent(workspace: &Workspace) -> Value {
    let settings = fs::read_to_string(workspace.path("home/.cursor/hooks.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    let line = settings["hooks"]["preToolUse"][0]["command"]
        .as_str()
        .unwrap();
    let payload = workspace.path("payload.json");
    let reply = json!({"conversation_id": "c-1", "generation_id": "g", "hook_event_name": "preToolUse",
        "tool_name": "Read", "tool_input": {"file_path": "/src/a.rs"}, "tool_use_id": "u-1", "cwd": "/src"});
    fs::write(&payload, reply.to_string()).unwrap();
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", line])
        .stdin(fs::File::open(payload).unwrap())
        .output()
        .unwrap();
    let answer = serde_json::from_slice(&output.stdout);
    answer.unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn agent_that_disconnects_while_held_raises_an_alarm_until_it_asks_again() {
    let workspace = Workspace::new("gates.yaml");
    let terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    let mut agent = Agent::new(&workspace);
    let key =
        agent.call("session.start", &json!({"agent": "bot", "session": "s-1"}))["key"].clone();
    let delete =
        json!({"session": "s-1", "key": key, "action": "ticket.delete", "params": {"id": 1}});
    agent.send("action.request", &delete);
    terminal.wait_for("1 Queue 1");
    drop(agent);
    terminal.wait_for("ALARM s-1 disconnected while c-1 was waiting");
    let mut again = Agent::new(&workspace);
    again.send("action.request", &delete);
    terminal.wait_without("ALARM");
    drop(again);
    terminal.wait_for("ALARM s-1 disconnected while c-1 was waiting");
    workspace.assert_undecided();
}

/// An agent at the socket.
pub(crate) struct Agent {
    stream: BufReader<UnixStream>,
}

impl Agent {
    pub(crate) fn new(workspace: &Workspace) -> Self {
        let stream = UnixStream::connect(workspace.path("data/run/console.sock")).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    pub(crate) fn send(&mut self, method: &str, params: &Value) {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.stream.get_mut(), "{line}").unwrap();
    }

    /// Everything that is said until the connection is closed.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.stream.read_to_string(&mut rest).unwrap();
        rest
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, params);
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer.get("error"), None, "{line}");
        answer["result"].clone()
    }
}
