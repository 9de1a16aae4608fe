//! The console line by line, in a real terminal and on a real store.

use super::place::{OPERATOR, Place, WIDE, delete_script};
use super::terminal::Terminal;

fn say(terminal: &mut Terminal, line: &str, wanted: &str) {
    terminal.keys(line);
    terminal.enter();
    terminal.wait_for(wanted);
}

#[test]
fn a_request_is_passed_line_by_line() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.linear_demo(&delete_script(), WIDE);
    terminal.wait_for("New: c-1: high risk, ticket.delete");
    say(&mut terminal, "pass c-1", "Question 1 of 3");
    say(&mut terminal, "understood", "Question 2 of 3");
    say(
        &mut terminal,
        "too short",
        "Not met: at least 20 characters",
    );
    terminal.wait_for("Recorded as invalid answer 1. The request is still held.");
    say(
        &mut terminal,
        "the customer confirmed it in writing",
        "Question 3 of 3",
    );
    say(
        &mut terminal,
        "duplicates of T-0",
        "characters of the request's hash: ",
    );
    let hash = terminal.wait("the hash", |view| {
        let text = view.text();
        let spelt = text.rsplit("request's hash: ").next()?;
        Some(spelt.lines().next()?.replace(' ', ""))
    });
    say(&mut terminal, &hash, "Type pass to let c-1 pass.");
    place.assert_undecided();
    say(&mut terminal, "pass", "Recorded. c-1");
    // The agent reports its run after the decision; a console that quits first never gets the report.
    place.wait_for_event("action_completed");
    say(&mut terminal, "quit", "The demo's record is in");
    assert_eq!(terminal.wait_exit(), 0);
    let verified = place.payloads("risk_verified");
    assert_eq!(verified[0]["verified_by"], OPERATOR);
    place.assert_sound();
}

#[test]
fn a_request_is_denied_line_by_line_and_killing_it_decides_nothing() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.linear_demo(&delete_script(), WIDE);
    terminal.wait_for("New: c-1: ");
    say(
        &mut terminal,
        "deny c-1",
        "Enter the reason for denying c-1.",
    );
    say(&mut terminal, "wrong tenant", "Type deny to deny c-1.");
    terminal.kill9();
    place.assert_undecided();
    let mut terminal = place.linear_demo(&delete_script(), WIDE);
    terminal.wait_for("c-1: high risk");
    say(
        &mut terminal,
        "deny c-1",
        "Enter the reason for denying c-1.",
    );
    say(&mut terminal, "wrong tenant", "Type deny to deny c-1.");
    say(&mut terminal, "deny", "Recorded. c-1");
    terminal.wait_for("ticket.delete was denied by");
}
