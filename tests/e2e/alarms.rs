//! Agents that are connected, and somebody who meddles with it while the console runs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use serde_json::{Value, json};

use super::place::{Place, WIDE};

#[test]
fn a_change_is_shown_and_written_only_after_a_yes() {
    let place = Place::new("gates.yaml");
    let file = place.path("home/.cursor/hooks.json");
    for (typed, code) in [
        ("\r", "Nothing was written."),
        ("n\r", "Nothing was written."),
        ("y\r", "was written."),
    ] {
        assert!(!file.exists());
        let mut terminal = place.asked(&["connect", "cursor"]);
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
    let place = Place::new("gates.yaml");
    let connected = place.cra(&["connect", "cursor", "--scope", "user", "--yes"]);
    assert!(connected.status.success(), "{connected:?}");
    let file = place.path("home/.cursor/hooks.json");
    let good = fs::read_to_string(&file).unwrap();
    let mut terminal = place.console(WIDE);
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
fn somebody_who_listens_in_the_consoles_place_raises_an_alarm() {
    let place = Place::new("gates.yaml");
    let terminal = place.console(WIDE);
    terminal.wait_for("1 Queue");
    let socket = place.path("data/run/console.sock");
    fs::remove_file(&socket).unwrap();
    terminal.wait_for("is gone: agents cannot ask");
    let _impostor = UnixListener::bind(&socket).unwrap();
    terminal.wait_for("ALARM SOMEBODY ELSE listens at");
}

#[test]
fn an_agent_that_leaves_while_it_is_held_raises_an_alarm_until_it_asks_again() {
    let place = Place::new("gates.yaml");
    let terminal = place.console(WIDE);
    terminal.wait_for("1 Queue");
    let mut agent = Agent::new(&place);
    let key =
        agent.call("session.start", &json!({"agent": "bot", "session": "s-1"}))["key"].clone();
    let delete =
        json!({"session": "s-1", "key": key, "action": "ticket.delete", "params": {"id": 1}});
    agent.say("action.request", &delete);
    terminal.wait_for("1 Queue 1");
    drop(agent);
    terminal.wait_for("ALARM c-1: s-1 left while it was held");
    let mut again = Agent::new(&place);
    again.say("action.request", &delete);
    terminal.wait_without("ALARM");
    drop(again);
    terminal.wait_for("ALARM c-1: s-1 left while it was held");
    place.assert_undecided();
}

/// An agent at the socket.
pub(crate) struct Agent {
    stream: BufReader<UnixStream>,
}

impl Agent {
    pub(crate) fn new(place: &Place) -> Self {
        let stream = UnixStream::connect(place.path("data/run/console.sock")).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    fn say(&mut self, method: &str, params: &Value) {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.stream.get_mut(), "{line}").unwrap();
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.say(method, params);
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer.get("error"), None, "{line}");
        answer["result"].clone()
    }
}
