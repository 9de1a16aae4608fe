//! Two operators, a claim, and who sits at the console, with the real binary.

use serde_json::{Value, json};

use super::operator::{challenge, open};
use super::terminal::Terminal;
use super::workspace::{OPERATOR, WIDE, Workspace};

/// Gives an approval to the request that is open, by every key that it takes.
fn approve(terminal: &mut Terminal, why: &str) {
    terminal.keys(why);
    terminal.wait_for(why);
    terminal.tabs(3);
    terminal.enter();
    let hash = challenge(terminal);
    terminal.keys(&hash);
    terminal.tabs(1);
    terminal.keys("ticket.delete");
    terminal.tabs(2);
    terminal.enter();
}

#[test]
fn two_operators_pass_a_gate_and_a_kill_between_them_loses_no_approval() {
    let workspace = Workspace::new("two.yaml");
    let mut terminal = workspace.held_delete();
    terminal.wait_for("open 0 of 2");
    terminal.keys("c");
    terminal.wait_for("claimed: ");
    open(&mut terminal);
    approve(&mut terminal, "agreed with legal");
    terminal.wait_for("1 of 2 (");
    // The approval is on disk before it is shown: a kill loses nothing of it and releases no agent.
    terminal.kill9();
    for passing in ["checkpoint_passed", "risk_verified", "action_completed"] {
        assert_eq!(workspace.payloads(passing), [] as [Value; 0], "{passing}");
    }
    let first = workspace.payloads("checkpoint_approved");
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["approved_by"], OPERATOR);
    assert_eq!(first[0]["justification"], "agreed with legal");
    workspace.assert_sound();

    // The same operator comes back: barred. Then a colleague takes the chair.
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("1 of 2 (");
    open(&mut terminal);
    terminal.wait_for("op-1 approved (1 of 2); a second operator");
    terminal.esc();
    terminal.wait_for("> [ ]  c-1 ");
    terminal.keys(":operator op-2@ops");
    terminal.enter();
    terminal.wait_for("operator is now op-2@ops (not verified)");
    terminal.keys("q");
    terminal.wait_for("Quit the console");
    terminal.tabs(1);
    terminal.enter();
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();

    // Or is named at the start.
    let mut terminal = workspace.console_of("op-3@ops", WIDE);
    terminal.wait_for("1 of 2 (");
    let listed: Value =
        serde_json::from_slice(&workspace.cra(&["queue", "--json"]).stdout).unwrap();
    let name = OPERATOR;
    assert_eq!(
        listed[0]["state"],
        format!("1 of 2 ({name}), claimed: {name}")
    );
    open(&mut terminal);
    approve(&mut terminal, "looked at it myself");
    // Another one claims it: that is asked about once more, with the focus on going back.
    terminal.wait_for("Already claimed");
    terminal.enter();
    terminal.wait_for("[ Pass now ]");
    terminal.enter();
    terminal.wait_for("Already claimed");
    terminal.tabs(1);
    terminal.enter();
    terminal.wait_for("c-1 PASSED and recorded");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    let passed = workspace.payloads("checkpoint_passed");
    assert_eq!(passed.len(), 1);
    assert_eq!(passed[0]["approvers"], json!([OPERATOR, "op-3@ops"]));
    let verified = workspace.payloads("risk_verified");
    assert_eq!(verified[0]["approvers"], json!([OPERATOR, "op-3@ops"]));
    assert_eq!(workspace.held_on_disk(), []);
    workspace.assert_sound();
}
