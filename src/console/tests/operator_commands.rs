//! Operator commands on a held request other than one pass or denial: two approvals, claims, and the change
//! of operator. With a real runtime and a real store.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::live_console::LiveConsole;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::engine::command::{ClaimChange, ClaimChangeKind, OperatorAction};

const WHY: &str = "agreed with legal, see 4711";

fn claim(live: &mut LiveConsole, id: &str, operator: &str) {
    let seen = live.held(id).claim.map(|claim| claim.by);
    live.operate(OperatorAction::Claim(ClaimChange {
        gate: id.parse().unwrap(),
        operator: operator.to_owned(),
        seen,
        wish: ClaimChangeKind::Take,
    }))
    .unwrap();
}

/// Types every proof that the review of `c-1` asks for, and presses its last button.
fn prove(live: &mut LiveConsole) {
    let held = live.held("c-1");
    live.types(&held.request_hash.short(4));
    live.press(KeyCode::Tab);
    live.types("user.ban");
    live.presses(KeyCode::Tab, 2);
    live.press(KeyCode::Enter);
}

fn the_same_operator_is_barred(live: &mut LiveConsole) {
    live.open("c-1");
    live.console.hides(WHY);
    live.types("and again");
    live.console
        .shows("is disabled: op-1 approved (1 of 2); a second operator");
    live.presses(KeyCode::Tab, 3);
    live.press(KeyCode::Enter);
    live.undecided(&["c-1"]);
    while !live.console.app.layers.is_empty() {
        live.press(KeyCode::Esc);
    }

    // The bar holds after a restart, also if the operator's name is spelled differently.
    live.again(|restart| restart.operator("OP-1"));
    live.console.shows("1 of 2 (op-1)");
    live.open("c-1");
    live.console
        .shows("is disabled: op-1 approved (1 of 2); a second operator");
    live.press(KeyCode::Esc);
}

#[test]
fn two_operators_pass_a_gate_one_after_the_other() {
    let mut live = LiveConsole::new();
    let mut asked = live.ask("user.ban", json!({"user": "mallory"}), 1);
    live.console.shows("open 0 of 2");
    live.open("c-1");
    live.types(WHY);
    live.console.shows("[ Approve 1 of 2 ]");
    live.presses(KeyCode::Tab, 3);
    live.press(KeyCode::Enter);
    live.console
        .shows("APPROVAL  1 of 2: recorded; held until a second operator");
    live.console.shows("first approval");
    live.console.hides("gate passed");
    assert_snapshot!("first_of_two", live.picture());
    let held = live.held("c-1");
    live.types(&held.request_hash.short(4));
    live.press(KeyCode::Tab);
    live.types("user.ban");
    live.presses(KeyCode::Tab, 2);
    live.press(KeyCode::Enter);
    live.console
        .shows("c-1 approved, 1 of 2, and recorded: still held");
    live.console.shows("1 of 2 (op-1)");
    assert!(live.waits(&asked), "the agent is not released");
    live.undecided(&["c-1"]);
    let first = live.on_disk("checkpoint_approved");
    assert_eq!(first.len(), 1);
    assert_eq!(first[0]["approved_by"], json!("op-1"));
    assert_eq!(
        first[0]["approval_method"],
        json!("console+challenge+action")
    );
    assert_eq!(first[0]["justification"], json!(WHY));
    let kept = live.rehearsal.held_on_disk();
    assert_eq!(kept[0].first_approval().unwrap().by, "op-1");

    the_same_operator_is_barred(&mut live);
    live.command("operator op-2@ops");
    live.console.shows("│ op-2@ops │");
    live.open("c-1");
    live.console.shows("and again");
    live.presses(KeyCode::Tab, 3);
    live.press(KeyCode::Enter);
    live.console.shows("2 of 2: op-1 already approved");
    assert_snapshot!("second_of_two", live.picture());
    live.presses(KeyCode::PageDown, 4);
    prove(&mut live);
    let passed = live.on_disk("checkpoint_passed");
    assert_eq!(passed.len(), 1, "{}", live.console.text());
    assert_eq!(passed[0]["approvers"], json!(["op-1", "op-2@ops"]));
    let verified = live.on_disk("risk_verified");
    assert_eq!(verified[0]["approvers"], json!(["op-1", "op-2@ops"]));
    // The agent went away with the process that it asked. It asks again, and its action runs.
    assert!(
        live.agent_reply(&mut asked)
            .is_none_or(|output| output.is_err())
    );
    assert!(
        live.ask_told("user.ban", json!({"user": "mallory"}))
            .is_ok()
    );
    assert!(live.rehearsal.is_sound());
}

#[test]
fn the_second_approval_releases_an_agent_that_waits() {
    let mut live = LiveConsole::new();
    let mut asked = live.ask("user.ban", json!({}), 1);
    live.pass("c-1", WHY);
    assert!(live.waits(&asked));
    live.command("operator op-2");
    live.pass("c-1", "looked at it myself");
    assert!(
        live.agent_reply(&mut asked).unwrap().is_ok(),
        "{}",
        live.console.text()
    );
    live.console.shows("c-1 PASSED and recorded");
    let changed = live.on_disk("operator_changed");
    assert_eq!(
        changed,
        [json!({"operator": "op-2", "before": "op-1", "by": "op-2"})]
    );
}

#[test]
fn the_operator_who_approved_first_can_still_deny() {
    let mut live = LiveConsole::new();
    let mut asked = live.ask("user.ban", json!({}), 1);
    live.pass("c-1", WHY);
    live.select("c-1");
    live.press(KeyCode::Char('d'));
    live.wait(DIALOG_ARMING_TIME);
    live.types("on second thoughts, no");
    live.presses(KeyCode::Tab, 2);
    live.press(KeyCode::Enter);
    assert!(live.agent_reply(&mut asked).unwrap().is_err());
    assert_eq!(live.on_disk("checkpoint_passed"), [] as [Value; 0]);
}

#[test]
fn a_claim_is_made_shown_recorded_and_released_by_key() {
    let mut live = LiveConsole::new();
    live.ask("note.add", json!({}), 1);
    live.press(KeyCode::Char('c'));
    live.console.shows("claimed: op-1");
    live.console.shows("c-1 claimed and recorded");
    live.again(|_| {});
    live.console.shows("claimed: op-1");
    let kept = live.rehearsal.held_on_disk();
    assert_eq!(kept[0].claim.as_ref().unwrap().by, "op-1");
    // The operator with the claim decides as usual.
    live.open("c-1");
    live.fill("c-1", "understood");
    live.console.hides("CLAIM");
    while !live.console.app.layers.is_empty() {
        live.press(KeyCode::Esc);
    }
    live.press(KeyCode::Char('c'));
    live.console.hides("claimed: op-1");
    let words = live.on_disk("request_claimed");
    let words: Vec<_> = words.iter().map(|event| event["claim"].as_str()).collect();
    assert_eq!(words, [Some("taken"), Some("released")]);
    live.undecided(&["c-1"]);
}

#[test]
fn taking_over_another_operators_claim_needs_confirmation() {
    let mut live = LiveConsole::new();
    live.ask("note.add", json!({}), 1);
    claim(&mut live, "c-1", "o2@ops");
    live.console.shows("claimed: o2 ");
    live.press(KeyCode::Char('c'));
    live.console.shows("c-1 is claimed by o2@ops.");
    assert_snapshot!("take_over", live.picture());
    // The focus is on the button that leaves the claim unchanged.
    live.press(KeyCode::Enter);
    live.console.shows("claimed: o2");
    assert_eq!(live.on_disk("request_claimed").len(), 1);
    live.press(KeyCode::Char('c'));
    live.press(KeyCode::Tab);
    live.press(KeyCode::Enter);
    live.console.shows("claimed: op-1");
    let over = live.on_disk("request_claimed").pop().unwrap();
    assert_eq!(over["claim"], json!("taken_over"));
    assert_eq!(over["before"], json!("o2@ops"));
    live.undecided(&["c-1"]);
}

#[test]
fn deciding_a_request_claimed_by_another_operator_needs_confirmation_but_is_possible() {
    let mut live = LiveConsole::new();
    let mut low = live.ask("note.add", json!({}), 1);
    let mut medium = live.ask("ticket.update", json!({}), 2);
    claim(&mut live, "c-1", "o2@ops");
    claim(&mut live, "c-2", "o2@ops");
    live.open("c-1");
    live.fill("c-1", "understood");
    live.press(KeyCode::Enter);
    live.console.shows("Already claimed");
    assert_snapshot!("claimed_by_another", live.picture());
    // Repeated Enter leads back, never on.
    live.presses(KeyCode::Enter, 7);
    live.undecided(&["c-1", "c-2"]);
    if !live.console.text().contains("Already claimed") {
        live.press(KeyCode::Enter);
    }
    live.console.shows("Already claimed");
    live.press(KeyCode::Tab);
    live.press(KeyCode::Enter);
    assert!(
        live.agent_reply(&mut low).unwrap().is_ok(),
        "{}",
        live.console.text()
    );

    live.open("c-2");
    live.fill("c-2", "understood");
    live.console
        .shows("o2@ops claimed the request: you must confirm");
    while !live.console.app.layers.is_empty() {
        live.press(KeyCode::Esc);
    }
    live.press(KeyCode::Char('d'));
    live.wait(DIALOG_ARMING_TIME);
    live.types("not this one");
    live.presses(KeyCode::Tab, 2);
    live.press(KeyCode::Enter);
    live.console.shows("[ Deny anyway ]");
    live.press(KeyCode::Esc);
    live.console.shows("[ Deny now ]");
    assert_eq!(live.held_on_disk(), ["c-2"]);
    live.press(KeyCode::Enter);
    live.press(KeyCode::Tab);
    live.press(KeyCode::Enter);
    assert!(live.agent_reply(&mut medium).unwrap().is_err());
    assert_eq!(live.held_on_disk(), [] as [&str; 0]);
}

#[test]
fn a_new_operator_finds_the_dialog_closed_and_the_draft_kept() {
    let mut live = LiveConsole::new();
    live.ask("ticket.delete", json!({}), 1);
    live.open("c-1");
    live.types("half a reason");
    live.press(KeyCode::F(3));
    live.command("operator op-2");
    assert!(live.console.app.dialog_history.minimised.is_none());
    assert!(live.console.app.layers.is_empty());
    live.console.shows("operator is now op-2 (not verified)");
    live.console.shows("│ op-2 │");
    live.open("c-1");
    live.console.shows("half a reason");
    live.presses(KeyCode::Tab, 3);
    live.press(KeyCode::Enter);
    live.console.shows("BY        op-2");
    // An open dialog is closed too when the operator changes through the runtime.
    let seat = crate::engine::command::OperatorChange {
        operator: "op-3".to_owned(),
        before: "op-2".to_owned(),
    };
    live.operate(OperatorAction::ChangeOperator(seat)).unwrap();
    assert!(live.console.app.layers.is_empty());
    live.console.shows("│ op-3 │");
    live.undecided(&["c-1"]);
    for (name, words) in [
        ("", "enter a name, such as `operator ann@ops`"),
        ("op-3", "operator is already op-3"),
    ] {
        live.command(&format!("operator {name}"));
        live.console.shows(words);
        live.press(KeyCode::Esc);
    }
}

#[test]
fn two_approvers_and_claims_on_a_small_screen() {
    let mut live = LiveConsole::sized((80, 24));
    live.ask("user.ban", json!({"user": "mallory"}), 1);
    live.ask("note.add", json!({}), 2);
    claim(&mut live, "c-2", "o2@ops");
    live.pass("c-1", WHY);
    live.console.shows("still held");
    assert_snapshot!("acts_at_80_by_24", live.picture());
    live.open("c-1");
    assert_snapshot!("same_operator_at_80_by_24", live.picture());
}
