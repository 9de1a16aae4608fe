//! A request passed, denied, and left alone.

use std::fs;

use serde_json::{Value, json};

use super::operator::{catch_up, challenge, open};
use super::terminal::Terminal;
use super::workspace::{OPERATOR, WIDE, Workspace, delete_script, types, verify_py};

const LETTERS_AND_DIGITS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The questions of `gates.yaml`, answered.
const ANSWERS: &str = "understood\tthe customer confirmed it in writing\tduplicates of T-0";

fn all_but(keys: &str) -> String {
    LETTERS_AND_DIGITS
        .chars()
        .filter(|key| !keys.contains(*key))
        .collect()
}

/// Types every letter and digit wherever the queue, the Atlases and the record take keys.
fn type_every_key_in_queue(terminal: &mut Terminal) {
    terminal.keys(&all_but("dq234xft"));
    catch_up(terminal);
    terminal.keys("f");
    terminal.wait_for("filter> ");
    terminal.keys(LETTERS_AND_DIGITS);
    terminal.wait_for("0 of 1 match");
    terminal.esc();
    terminal.wait_without("filter> ");
    terminal.keys("t");
    terminal.wait_for(" Spans ");
    terminal.keys("1");
    terminal.wait_for("> [ ]  c-1 ");
    terminal.keys("x");
    terminal.wait_for("Why: c-1");
    terminal.keys(&all_but("x"));
    terminal.esc();
    terminal.wait_without("Why: c-1");
    terminal.keys("3");
    terminal.wait_for("No threads yet.");
    terminal.keys(&all_but("q124po"));
    catch_up(terminal);
    terminal.keys("o");
    terminal.wait_for("open> ");
    terminal.keys(LETTERS_AND_DIGITS);
    terminal.esc();
    terminal.wait_without("open> ");
    terminal.keys("4");
    terminal.wait_for(" Evaluations");
    // `e` gives the terminal to an editor, which takes letters for itself.
    terminal.keys(&all_but("q123xieT"));
    catch_up(terminal);
    terminal.keys("T");
    terminal.wait_for("next to the files");
    terminal.keys(&all_but("x"));
    terminal.esc();
    terminal.wait_without("next to the files");
    terminal.keys("i");
    terminal.wait_for(" What if ");
    terminal.keys(LETTERS_AND_DIGITS);
    terminal.esc();
    terminal.wait_without(" What if ");
    terminal.keys("1");
    terminal.wait_for("> [ ]  c-1 ");
    terminal.keys("q");
    terminal.wait_for("Quit the console");
    terminal.keys(LETTERS_AND_DIGITS);
    terminal.esc();
    terminal.wait_without("Quit the console");
    terminal.keys("2");
    // Its list is read from the disk, and keys mean something else before it is there.
    terminal.wait_for(" live ");
    terminal.keys(&all_but("q1"));
    // One of them opened a line that took the rest.
    terminal.wait_for("filter> ");
    terminal.esc();
    terminal.wait_without("filter> ");
    catch_up(terminal);
    terminal.keys("1");
    terminal.wait_for("> [ ]  c-1 ");
    terminal.keys("d");
    terminal.wait_for("READY");
    terminal.keys(LETTERS_AND_DIGITS);
    terminal.wait_without("Deny now is disabled");
    terminal.tabs(1);
    terminal.keys(LETTERS_AND_DIGITS);
    terminal.tabs(1);
    terminal.keys(LETTERS_AND_DIGITS);
    catch_up(terminal);
    terminal.wait_for("[ Deny now ]");
    terminal.esc();
    terminal.wait_for("[ Deny... ]");
    terminal.esc();
    terminal.wait_for("> [ ]  c-1 ");
}

/// Types every letter and digit into a field of the dialog and at each of its buttons.
fn type_every_key_in_dialog(terminal: &mut Terminal) {
    terminal.keys(LETTERS_AND_DIGITS);
    terminal.wait_for("2 answers missing, 1 invalid");
    terminal.backspace(LETTERS_AND_DIGITS.len());
    terminal.wait_for("3 answers missing");
    terminal.tabs(2);
    for _button in ["Back", "Deny...", "Pass"] {
        terminal.tabs(1);
        terminal.keys(LETTERS_AND_DIGITS);
        catch_up(terminal);
    }
    terminal.wait_for("3 answers missing");
    terminal.tabs(1);
}

/// An approval without what binds it: the whole hash of the request that was shown, and the Atlas.
fn approval_for_hash(approval: &Value, hash: &str) -> Value {
    let mut fields = approval.as_object().unwrap().clone();
    let bound = fields.remove("request_hash").unwrap();
    assert!(bound.as_str().unwrap().starts_with(hash), "{bound}");
    let atlases = fields.remove("judged_under").unwrap();
    assert_eq!(atlases.as_array().unwrap().len(), 1, "{atlases}");
    fields.into()
}

// covers T14, T18
#[test]
fn letters_never_decide_and_completing_every_step_passes_the_request() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    type_every_key_in_queue(&mut terminal);
    workspace.assert_undecided();
    open(&mut terminal);
    type_every_key_in_dialog(&mut terminal);
    workspace.assert_undecided();

    terminal.keys(ANSWERS);
    terminal.wait_without("Pass is disabled");
    terminal.tabs(3);
    terminal.enter();
    let hash = challenge(&mut terminal);
    // What is not the hash opens nothing, and neither does Enter.
    terminal.keys("abcdef");
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("cannot pass: type the hash first");
    workspace.assert_undecided();
    terminal.tabs(1);
    terminal.backspace(6);
    terminal.keys(&hash);
    terminal.wait_without("Pass now is disabled");
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("c-1 PASSED and recorded");
    // The agent went on and has ended its session.
    terminal.wait_for("agents 0  held 0");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();

    // The wrong code is on record, and decided nothing.
    let mut refused = workspace.payloads("checkpoint_response");
    refused.retain(|response| response["validation_result"] == "invalid");
    assert_eq!(refused.len(), 1);
    let problems = refused[0]["problems"].to_string();
    assert!(problems.contains("abcdef"), "{problems}");

    let overrides = workspace.payloads("policy_override");
    let approved = json!({
        "policy_id": "deletes-need-approval",
        "action_type": "ticket.delete",
        "approver": OPERATOR,
        "approval_method": "console+challenge",
        "justification": "duplicates of T-0",
        "justification_source": "operator",
    });
    assert_eq!(overrides.len(), 1);
    assert_eq!(approval_for_hash(&overrides[0], &hash), approved);
    let verified = workspace.payloads("risk_verified");
    let risk = json!({
        "risk_tier": "high",
        "verification_method": "console+challenge",
        "verified_by": OPERATOR,
        "action_type": "ticket.delete",
        "justification": "the customer confirmed it in writing",
        "justification_source": "operator",
    });
    assert_eq!(verified.len(), 1);
    assert_eq!(approval_for_hash(&verified[0], &hash), risk);
    assert_eq!(workspace.payloads("action_completed")[0]["success"], true);
    let order = types(&workspace.events());
    let at = |name| order.iter().position(|found| found == name).unwrap();
    assert!(at("policy_override").max(at("risk_verified")) < at("action_completed"));
    workspace.assert_sound();
}

// covers T12
#[test]
fn denied_request_returns_the_reason_and_never_runs() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    terminal.tabs(4);
    terminal.enter();
    terminal.wait_for("Deny now is disabled: enter a reason");
    // Without a reason the button does nothing.
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("cannot deny: enter a reason");
    terminal.tabs(1);
    terminal.keys("wrong tenant");
    terminal.wait_without("Deny now is disabled");
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("c-1 DENIED and recorded");
    terminal.wait_for("agents 0  held 0");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();

    let blocked = workspace.payloads("checkpoint_blocked");
    assert!(!blocked.is_empty());
    assert!(
        blocked.iter().all(|item| item["outcome"] == "denied"),
        "{blocked:?}"
    );
    let action = workspace.payloads("action_blocked");
    assert_eq!(action.len(), 1);
    assert_eq!(action[0]["action_type"], "ticket.delete");
    assert_eq!(
        action[0]["action_params"],
        json!({ "ticket_ids": ["T-1", "T-2"], "cascade": true })
    );
    let reason = action[0]["reason"].as_str().unwrap();
    assert!(reason.contains("wrong tenant"), "{reason}");
    assert!(action[0]["policy_id"].is_string());
    assert!(action[0]["override_available"].is_boolean());
    assert_eq!(
        workspace.payloads("action_completed"),
        Vec::<serde_json::Value>::new()
    );
    workspace.assert_sound();
}

#[test]
fn unanswered_request_expires_and_is_denied() {
    let workspace = Workspace::new("impatient.yaml");
    let mut terminal = workspace.demo(&delete_script(), WIDE);
    terminal.wait_for("EXPIRED");
    terminal.wait_for("agents 0  held 0");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    let blocked = workspace.payloads("checkpoint_blocked");
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0]["outcome"], "expired");
    assert_eq!(workspace.payloads("action_blocked").len(), 1);
    let types = types(&workspace.events());
    assert!(
        !types.iter().any(|name| name == "action_completed"),
        "{types:?}"
    );
    workspace.assert_sound();
}

#[test]
fn independent_verifier_finds_changed_events() {
    let workspace = Workspace::new("impatient.yaml");
    let terminal = workspace.demo(&delete_script(), WIDE);
    terminal.wait_for("EXPIRED");
    terminal.wait_for("agents 0  held 0");
    let exported = workspace.export();
    let text = fs::read_to_string(&exported).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let cases = [
        (
            text.replace("ticket.delete", "ticket.select"),
            "does not have the hash it claims\n",
        ),
        (
            rest.to_owned(),
            "line 1 does not follow the event before it\n",
        ),
        (
            text.replacen("{\"event_id\"", "{ \"event_id\"", 1),
            "line 1 is not in canonical form\n",
        ),
        (
            text.replacen("{\"event_id\"", "{\"aa\":1,\"event_id\"", 1),
            "line 1 has other fields than an envelope\n",
        ),
        (
            format!("{first}\n{text}"),
            "line 2 does not follow the event before it\n",
        ),
    ];
    for (changed, expected) in cases {
        fs::write(&exported, changed).unwrap();
        let (sound, output) = verify_py(&exported);
        assert!(!sound && output.ends_with(expected), "{expected}: {output}");
    }
}
