//! Ends of the program: held requests stay held, and the terminal is restored.

use serde_json::json;

use super::alarms::Agent;
use super::operator::{challenge, leave, open};
use super::terminal::Terminal;
use super::workspace::{WIDE, Workspace, delete_script};

#[test]
fn killed_console_leaves_a_valid_record_the_gate_and_the_draft() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    terminal.keys("underst");
    terminal.wait_for("underst");
    // What is said to be kept is on disk: from here on nothing can take it away.
    terminal.wait_for("draft saved");
    let before = workspace.held_on_disk();
    assert_eq!(before.len(), 1);
    terminal.kill9();
    workspace.assert_undecided();
    workspace.assert_sound();

    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    let shown = format!("c-1 · hash {:.4} ", before[0].1);
    terminal.wait_for(&shown);
    assert_eq!(workspace.held_on_disk(), before);
    terminal.wait_until("the mark of a draft", |view| {
        let text = view.text();
        let row = text.lines().find(|row| row.contains("> [ ]  c-1 "));
        row.is_some_and(|row| row.contains(" draft "))
    });
    open(&mut terminal);
    terminal.wait_for("underst");
    terminal.wait_for("2 answers missing, 1 invalid");
    workspace.assert_undecided();
    // Typing goes on where it was cut off, and every step to a pass is still to be taken.
    terminal.keys("ood\tthe customer confirmed it in writing\tduplicates of T-0");
    terminal.wait_without("Pass is disabled");
    terminal.tabs(3);
    terminal.enter();
    let hash = challenge(&mut terminal);
    terminal.keys(&hash);
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("c-1 PASSED and recorded");
    assert_eq!(workspace.held_on_disk(), []);
    assert_eq!(workspace.kept_on_disk("draft").len(), 0);
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    assert_eq!(
        workspace.payloads("checkpoint_response")[0]["answers"],
        json!({ "confirm-delete": "acknowledged" })
    );
    assert_eq!(workspace.payloads("risk_verified").len(), 1);
    workspace.assert_sound();
}

#[test]
fn draft_survives_quitting_the_console_while_typing() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    // All at once: nothing was painted since, and the console is asked to quit.
    terminal.keys("underst\x03\x03");
    assert_eq!(terminal.wait_exit(), 0);
    workspace.assert_undecided();
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    open(&mut terminal);
    terminal.wait_for("underst");
    terminal.backspace(7);
    terminal.wait_for("3 answers missing");
    terminal.esc();
    terminal.wait_for("> [ ]  c-1 ");
    leave(&mut terminal);
    assert_eq!(workspace.kept_on_disk("draft").len(), 0);
    workspace.assert_undecided();
    workspace.assert_sound();
}

#[test]
fn trace_screen_lists_sessions_and_the_log_and_verifies_them() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    leave(&mut terminal);
    let count = workspace.events().len();
    // The next start finds everything sealed.
    let mut terminal = workspace.console((80, 24));
    terminal.wait_for("chain SEALED ");
    terminal.keys("2");
    terminal.wait_for("triage-bot");
    terminal.wait_for("cra, governance");
    terminal.keys("v");
    terminal.wait_for("log over all sessions, signed: SEALED");
    terminal.enter();
    terminal.wait_for(&format!(" SEALED 0..{} ", count - 1));
    workspace.assert_sound();
}

#[test]
fn second_console_is_refused_and_the_first_keeps_running() {
    let workspace = Workspace::new("gates.yaml");
    let mut first = workspace.held_delete();
    let mut second = workspace.console(WIDE);
    assert_eq!(second.wait_exit(), 1);
    second.assert_restored();
    let output = String::from_utf8(second.raw()).unwrap();
    let holder = format!(
        "is in use by another console (process {})",
        first.process_id()
    );
    assert!(output.contains(&holder), "{output}");
    assert!(output.contains("--data-dir"), "{output}");

    open(&mut first);
    workspace.assert_undecided();
    first.esc();
    first.wait_for("> [ ]  c-1 ");
    leave(&mut first);
    workspace.assert_sound();
}

#[test]
fn sigterm_restores_the_terminal_and_keeps_the_gate() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    let before = workspace.held_on_disk();
    terminal.signal("TERM");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();
    workspace.assert_undecided();
    assert_eq!(workspace.held_on_disk(), before);
    workspace.assert_sound();

    let terminal = workspace.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    terminal.wait_for("ticket.delete");
    workspace.assert_undecided();
}

#[test]
fn ctrl_c_twice_quits_and_held_requests_stay_held() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    terminal.ctrl('c');
    terminal.wait_for("press Ctrl-C again to quit");
    terminal.keys("\x03\x03");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();
    workspace.assert_undecided();
    assert_eq!(workspace.held_on_disk().len(), 1);
    workspace.assert_sound();
}

/// An agent whose request is held at this console.
fn held_agent(workspace: &Workspace, terminal: &Terminal, shown: &str) -> Agent {
    let mut agent = Agent::new(workspace);
    let start = json!({"agent": "bot", "session": "s-1"});
    let key = agent.call("session.start", &start)["key"].clone();
    let delete =
        json!({"session": "s-1", "key": key, "action": "ticket.delete", "params": {"id": 1}});
    agent.send("action.request", &delete);
    terminal.wait_for(shown);
    agent
}

/// A console whose terminal was closed left everything as one that was left with `q`.
fn assert_shut_down_cleanly(workspace: &Workspace, agent: &mut Agent) {
    assert_eq!(agent.rest(), "", "nothing that allows anything");
    assert!(!workspace.path("data/run/console.sock").exists());
    workspace.assert_undecided();
    assert_eq!(workspace.held_on_disk().len(), 1);
    workspace.assert_sound();
}

#[test]
fn closing_the_terminal_shuts_the_screen_console_down_cleanly() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 Queue");
    let mut agent = held_agent(&workspace, &terminal, "1 Queue 1");
    let code = terminal.close(|terminal| terminal.resize((100, 30)));
    assert_eq!(code, 0);
    assert_shut_down_cleanly(&workspace, &mut agent);
    let terminal = workspace.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
}

#[test]
fn closing_the_terminal_shuts_the_linear_console_down_cleanly() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.linear_console(WIDE);
    terminal.wait_for("> ");
    let mut agent = held_agent(&workspace, &terminal, "New: c-1: ");
    let code = terminal.close(Terminal::enter);
    assert_eq!(code, 0);
    assert_shut_down_cleanly(&workspace, &mut agent);
}

#[test]
fn closing_the_terminal_shuts_a_demo_down_cleanly() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    let code = terminal.close(|terminal| terminal.resize((100, 30)));
    assert_eq!(code, 0);
    workspace.assert_undecided();
    assert_eq!(workspace.held_on_disk().len(), 1);
    workspace.assert_sound();
}

#[test]
fn closing_the_terminal_shuts_a_linear_demo_down_cleanly() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.linear_demo(&delete_script(), WIDE);
    terminal.wait_for("c-1: ");
    assert_eq!(terminal.close(Terminal::enter), 0);
    workspace.assert_undecided();
    assert_eq!(workspace.held_on_disk().len(), 1);
    workspace.assert_sound();
}
