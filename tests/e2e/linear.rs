//! The console line by line, in a real terminal and on a real store.

use super::terminal::Terminal;
use super::workspace::{OPERATOR, WIDE, Workspace, delete_script};

fn type_line(terminal: &mut Terminal, line: &str, wanted: &str) {
    terminal.keys(line);
    terminal.enter();
    terminal.wait_for(wanted);
}

#[test]
fn request_is_passed_at_the_linear_console() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.linear_demo(&delete_script(), WIDE);
    terminal.wait_for("New: c-1: high risk, ticket.delete");
    type_line(&mut terminal, "pass c-1", "Question 1 of 3");
    type_line(&mut terminal, "understood", "Question 2 of 3");
    type_line(
        &mut terminal,
        "too short",
        "Not met: at least 20 characters",
    );
    terminal.wait_for("Recorded as invalid answer 1. The request is still held.");
    type_line(
        &mut terminal,
        "the customer confirmed it in writing",
        "Question 3 of 3",
    );
    type_line(
        &mut terminal,
        "duplicates of T-0",
        "characters of the request's hash: ",
    );
    let hash = terminal.wait("the hash", |view| {
        let text = view.text();
        let spelt = text.rsplit("request's hash: ").next()?;
        Some(spelt.lines().next()?.replace(' ', ""))
    });
    type_line(&mut terminal, &hash, "Type pass to let c-1 pass.");
    workspace.assert_undecided();
    type_line(&mut terminal, "pass", "Recorded. c-1");
    // The agent reports its run after the decision; a console that quits first never gets the report.
    workspace.wait_for_event("action_completed");
    type_line(&mut terminal, "quit", "The demo's record is in");
    assert_eq!(terminal.wait_exit(), 0);
    let verified = workspace.payloads("risk_verified");
    assert_eq!(verified[0]["verified_by"], OPERATOR);
    workspace.assert_sound();
}

#[test]
fn request_is_denied_at_the_linear_console_and_killing_it_decides_nothing() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.linear_demo(&delete_script(), WIDE);
    terminal.wait_for("New: c-1: ");
    type_line(
        &mut terminal,
        "deny c-1",
        "Enter the reason for denying c-1.",
    );
    type_line(&mut terminal, "wrong tenant", "Type deny to deny c-1.");
    terminal.kill9();
    workspace.assert_undecided();
    let mut terminal = workspace.linear_demo(&delete_script(), WIDE);
    terminal.wait_for("c-1: high risk");
    type_line(
        &mut terminal,
        "deny c-1",
        "Enter the reason for denying c-1.",
    );
    type_line(&mut terminal, "wrong tenant", "Type deny to deny c-1.");
    type_line(&mut terminal, "deny", "Recorded. c-1");
    terminal.wait_for("ticket.delete was denied by");
}
