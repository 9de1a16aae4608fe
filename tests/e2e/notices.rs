//! Notices that the real program sends to stewards, also when it is killed.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::alarms::Agent;
use super::workspace::{WIDE, Workspace, script};

/// Longest wait, on the slowest machine.
const DEADLINE: Duration = Duration::from_mins(1);

fn atlas(listener: &TcpListener) -> String {
    let address = listener.local_addr().unwrap();
    format!(
        "atlas_version: '1.0'\natlas_id: own\nversion: '1'\nname: Own\ndefault_decision: allow\n\
         steward:\n  id: s\n  notifications:\n    channels: {{ webhook: 'http://{address}/told' }}\n    \
         triggers: [policy_override, high_risk_action]\n\
         actions: [{{ action_id: ticket.delete, risk_tier: high }}]\n"
    )
}

/// Takes what is sent: its identifier, its body, and where the answer goes.
fn accept(listener: &TcpListener) -> (String, Value, TcpStream) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !is_whole(&text) {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let id = head
        .lines()
        .find_map(|line| line.strip_prefix("webhook-id: "));
    let id = id.unwrap_or_else(|| panic!("{head}")).to_owned();
    (id, serde_json::from_str(body).unwrap(), stream)
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|value| value.strip_prefix("content-length: "));
    body.len() >= length.unwrap().parse().unwrap()
}

fn assert_no_connection(listener: &TcpListener) {
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "a notice arrived");
}

fn delete(workspace: &Workspace) {
    let mut agent = Agent::new(workspace);
    let key =
        agent.call("session.start", &json!({"agent": "bot", "session": "s-1"}))["key"].clone();
    let delete = json!({"session": "s-1", "key": key, "action": "ticket.delete", "params": {}});
    agent.call("action.request", &delete);
}

// covers B16
#[test]
fn undelivered_notices_of_a_killed_console_are_sent_after_the_next_start() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let workspace = Workspace::new("gates.yaml").written(&atlas(&listener));
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    delete(&workspace);
    let (id, body, unanswered) = accept(&listener);
    assert_eq!(body["type"], "high_risk_action");
    terminal.kill9();
    drop(unanswered);
    assert_eq!(workspace.kept_on_disk("notice")[0]["id"], id);
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    let (again, same, mut stream) = accept(&listener);
    assert_eq!((again, same), (id, body));
    terminal.keys("4");
    terminal.wait_for("NOTICES  1 waiting");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .unwrap();
    terminal.wait_for("NOTICES  none waiting");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    assert_eq!(workspace.kept_on_disk("notice"), Vec::<Value>::new());
    assert!(workspace.path("data/webhook.secret").exists());
    assert_no_connection(&listener);
    workspace.assert_sound();
}

// covers B16
#[test]
fn demo_and_a_console_without_notices_call_no_webhook() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let workspace = Workspace::new("gates.yaml").written(&atlas(&listener));
    let mut terminal = workspace.demo(&script("bot", json!({})), WIDE);
    // The agent came, and its session is over.
    terminal.wait_for("chains 1");
    terminal.wait_for("agents 0");
    terminal.keys("4");
    terminal.wait_for("NOTICES  off in the demo");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    assert_eq!(workspace.payloads("action_attempted").len(), 1);
    assert_eq!(workspace.kept_on_disk("notice"), Vec::<Value>::new());

    let quiet = Workspace::new("gates.yaml").written(&atlas(&listener));
    let config = quiet.path("home/.config/cra");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.yaml"), "webhooks: off\n").unwrap();
    let mut terminal = quiet.console(WIDE);
    terminal.wait_for("1 Queue");
    delete(&quiet);
    terminal.keys("4");
    terminal.wait_for("NOTICES  off: config.yaml has `webhooks: off`");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    assert_eq!(quiet.kept_on_disk("notice"), Vec::<Value>::new());
    assert!(!quiet.path("data/webhook.secret").exists());
    assert_no_connection(&listener);
}
