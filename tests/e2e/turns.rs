//! Turns of a conversation across processes: what one froze the next one finds frozen.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::operator::{leave, open};
use super::terminal::Terminal;
use super::workspace::{WIDE, Workspace};

fn turn(number: u32, fields: &Value) -> Value {
    let mut turn = json!({
        "session": "s-1",
        "message_id": format!("m-{number}"),
        "message": "go on",
        "affect": {"label": "tense", "intensity": 0.9, "confidence": "high", "source": "model"},
        "proposed": {"arc": format!("arc {number}")},
    });
    let fields = fields.as_object().unwrap().clone();
    turn.as_object_mut().unwrap().extend(fields);
    turn
}

fn take(workspace: &Workspace, turns: &Value) -> std::process::Output {
    let file = workspace.path("turns.json");
    fs::write(&file, turns.to_string()).unwrap();
    let (atlas, file) = (workspace.atlas(), file.to_str().unwrap().to_owned());
    workspace.cra(&["turn", &file, "--atlas", atlas.to_str().unwrap(), "--json"])
}

fn shown(workspace: &Workspace) -> Value {
    let output = workspace.cra(&["thread", "show", "s-1", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap()
}

// covers D16, D18
#[test]
fn freeze_survives_every_process_and_ends_with_a_must_turn() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("Queue");
    let refused = take(&workspace, &turn(1, &json!({})));
    assert_eq!(refused.status.code(), Some(1));
    let reply = String::from_utf8(refused.stderr).unwrap();
    assert!(reply.contains("in use by another console"), "{reply}");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);

    let taken = take(
        &workspace,
        &json!([turn(1, &json!({})), turn(2, &json!({}))]),
    );
    assert!(taken.status.success(), "{taken:?}");
    let frozen = shown(&workspace);
    assert_eq!(frozen["frozen"], true);
    assert_eq!(frozen["held_back"][0]["proposed"]["arc"], "arc 2");
    // A console comes and goes in between: the freeze is not its own.
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    assert_eq!(shown(&workspace), frozen, "a console thaws nothing");

    let signal = json!({
        "endMessageId": "m-3", "kind": "pivot", "confidence": "high", "source": "model",
    });
    let must = json!({"signals": [signal], "if_match": frozen["etag"]});
    let taken = take(&workspace, &turn(3, &must));
    assert!(taken.status.success(), "{taken:?}");
    let thawed = shown(&workspace);
    assert_eq!(thawed["frozen"], false);
    assert_eq!(thawed["arc"], "arc 3");
    let decided = workspace.payloads("breakpoint_decided");
    let active = |item: &Value| item["metadata"]["peakGuardrailActive"].as_bool().unwrap();
    let active: Vec<_> = decided.iter().map(active).collect();
    assert_eq!(active, [false, true, false]);
    assert_eq!(decided[2]["summary"], "Breakpoint decision: MUST");
    assert_eq!(decided[2]["thread"]["etag"], thawed["etag"]);
    workspace.assert_sound();
}

/// An agent whose conversation is frozen when it asks to delete a ticket, and thawed by what it does next.
fn heated() -> Value {
    let of = |turn: Value| {
        let mut turn = turn;
        turn.as_object_mut().unwrap().remove("session");
        json!({"turn": turn})
    };
    let pivot = json!({"signals": [{
        "endMessageId": "m-3", "kind": "pivot", "confidence": "high", "source": "model",
        "summary": "keep 4398 after all",
    }]});
    let steps = json!([
        of(turn(1, &json!({}))),
        of(turn(2, &json!({}))),
        {"action": "ticket.delete", "params": {"ticket_ids": ["T-1"]}},
        of(turn(3, &pivot)),
    ]);
    json!({"agents": [{"agent": "triage-bot", "pause_ms": 10, "sessions": 1, "steps": steps}]})
}

/// Denies the request that is held: the agent goes on with its next turn.
fn deny(terminal: &mut Terminal) {
    terminal.keys("1");
    terminal.wait_for("> [ ]  c-1 ");
    terminal.keys("d");
    terminal.wait_for("READY");
    terminal.keys("wrong tenant");
    terminal.wait_without("Deny now is disabled");
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("c-1 DENIED and recorded");
}

// covers D10, D11, D16
#[test]
fn freeze_is_shown_on_every_screen_and_ends_with_a_must_turn() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.demo(&heated(), WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    // On the queue: the row, the tab, and the summary of the request.
    terminal.wait_for("FROZEN");
    terminal.wait_for("3 Threads !1");
    terminal.wait_for("summary FROZEN since ");
    open(&mut terminal);
    terminal.wait_for("arc: arc 1");
    terminal.wait_for("peak/high, summary FROZEN since ");
    terminal.esc();
    terminal.wait_for("> [ ]  c-1 ");

    terminal.keys("3");
    for text in [
        "*** SUMMARY FROZEN ***",
        "(TRUE or TRUE) and TRUE = TRUE",
        "ARC       arc 1",
        "+ ARC       arc 2",
        "1 thread frozen",
    ] {
        terminal.wait_for(text);
    }
    terminal.keys("=");
    terminal.wait_for(" 1 saved for later  FROZEN");
    terminal.wait_for("- ARC       arc 1");
    terminal.esc();
    terminal.wait_without(" 1 saved for later  FROZEN");

    deny(&mut terminal);
    terminal.keys("3");
    terminal.wait_for("not frozen");
    terminal.wait_for("ARC       arc 3");
    terminal.wait_without("SUMMARY FROZEN");
    terminal.wait_without("NOT APPLIED");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();
    let decided = workspace.payloads("breakpoint_decided");
    let updates: Vec<_> = decided
        .iter()
        .map(|decided| &decided["thread"]["update"])
        .collect();
    assert_eq!(updates, ["updated", "kept_at_peak", "updated"]);
    workspace.assert_sound();
}

// covers R1, R16
#[test]
fn session_is_written_to_a_snapshot_file_opened_and_stepped_through() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.demo(&heated(), WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    terminal.keys("3");
    terminal.wait_for("SUMMARY FROZEN");
    terminal.keys("s");
    terminal.wait_for(".snapshot.json");
    terminal.ctrl('u');
    let file = workspace.path("saved.json");
    let path = file.to_str().unwrap();
    terminal.keys(path);
    terminal.wait_for("saved.json");
    terminal.enter();
    terminal.wait_for("Snapshot file: ");
    // What the session did not say is missing, and asked for.
    terminal.wait_for("NOT CLEAR: ");
    for (key, text) in [
        ("2", "Position in the arc"),
        ("3", "[x] Challenge"),
        (
            "4",
            "CRITICAL QUESTION: May triage-bot run `ticket.delete`?",
        ),
        ("5", "TRACE of session s-"),
    ] {
        terminal.keys(key);
        terminal.wait_for(text);
    }
    terminal.enter();
    terminal.wait_for("No content and no path for this artifact.");
    let before = terminal.raw().len();
    terminal.keys("y");
    terminal.wait_for("copied the handover text");
    let copied = terminal.raw().split_off(before);
    let reply = workspace.cra(&["reconstruct", path]);
    assert!(reply.status.success(), "{reply:?}");
    let sequence = format!("\x1b]52;c;{}", STANDARD.encode(&reply.stdout));
    let copied = String::from_utf8_lossy(&copied).into_owned();
    assert!(copied.contains(&sequence), "{copied}");
    terminal.esc();
    terminal.wait_for("> ");
    terminal.esc();
    terminal.wait_without("Snapshot file: ");

    // Again: an existing file is kept, unless the operator asks to overwrite it.
    fs::write(&file, "mine").unwrap();
    terminal.keys(&format!(":snapshot {path}\r"));
    terminal.wait_for("cannot be used for a reconstruction: not a JSON object");
    terminal.keys("s");
    terminal.wait_for(".snapshot.json");
    terminal.ctrl('u');
    terminal.keys(path);
    terminal.enter();
    terminal.wait_for("[ Overwrite ]");
    terminal.enter();
    terminal.wait_without("[ Overwrite ]");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    terminal.enter();
    terminal.wait_for("[ Overwrite ]");
    terminal.tabs(1);
    terminal.enter();
    terminal.wait_for("NOT CLEAR: ");
    terminal.esc();
    terminal.wait_without("Snapshot file: ");
    workspace.assert_undecided();
    leave(&mut terminal);
    terminal.assert_restored();
}
