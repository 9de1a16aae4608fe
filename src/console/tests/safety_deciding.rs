//! The safety rules 9 to 18: what a decision is, what it applies to, and what it records.

use std::time::Duration;

use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::live_console::{LiveConsole, RULES};
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::engine::command::{DecisionRefusal, DecisionRequest, DenyCode, OperatorReply, Ruling};
use crate::engine::held::Held;

fn field<'v>(values: &'v [Value], name: &str) -> Vec<&'v str> {
    values
        .iter()
        .map(|value| value[name].as_str().unwrap())
        .collect()
}

fn deny(held: &Held, operator: &str) -> DecisionRequest {
    DecisionRequest {
        gate: held.id.clone(),
        operator: operator.to_owned(),
        method: "console".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling: Ruling::Deny {
            reason: "not today".to_owned(),
        },
    }
}

#[test]
fn rule_09_a_batch_decides_each_reviewed_request_separately() {
    let mut live = LiveConsole::new();
    let mut asked: Vec<_> = (1..=3)
        .map(|n| live.ask("ticket.update", json!({ "id": n }), n))
        .collect();
    let high = live.ask("ticket.delete", json!({}), 4);
    live.select("c-4");
    live.press(KeyCode::Char(' '));
    live.console.shows("c-4 cannot be marked: its risk is high");
    for id in ["c-1", "c-3"] {
        live.select(id);
        live.press(KeyCode::Char(' '));
    }
    live.press(KeyCode::Char('B'));
    live.wait(DIALOG_ARMING_TIME);
    live.types("understood");
    live.presses(KeyCode::Tab, 3);
    live.press(KeyCode::Enter);
    live.console
        .shows("2 requests, decided and recorded one by one");
    live.console.shows("c-1  hash");
    live.console.hides("c-2  hash");
    live.console.shows("c-3  hash");
    live.presses(KeyCode::Tab, 1);
    live.press(KeyCode::Enter);
    live.console.shows("2 requests decided and recorded");
    assert_eq!(live.held_on_disk(), ["c-2", "c-4"]);
    assert_eq!(live.on_disk("checkpoint_passed").len(), 2, "one each");
    assert_eq!(live.on_disk("checkpoint_response").len(), 2, "one each");
    let third = asked.pop().unwrap();
    let second = asked.pop().unwrap();
    let first = asked.pop().unwrap();
    for mut released in [first, third] {
        assert!(live.agent_reply(&mut released).unwrap().is_ok());
    }
    assert!(live.waits(&second) && live.waits(&high));
}

#[test]
fn rule_10_expiry_denial_and_withdrawal_have_different_records_and_words() {
    let mut live = LiveConsole::new();
    let mut expired = live.ask("note.add", json!({"n": 1}), 1);
    live.wait(Duration::from_mins(5));
    live.catch_up(|snapshot| snapshot.held.is_empty());
    let mut refused = live.ask("note.add", json!({"n": 2}), 1);
    live.select("c-2");
    live.press(KeyCode::Char('d'));
    live.wait(DIALOG_ARMING_TIME);
    live.types("wrong note");
    live.presses(KeyCode::Tab, 2);
    live.press(KeyCode::Enter);
    let mut withdrawn = live.ask("note.add", json!({"n": 3}), 1);
    live.end_session();
    live.catch_up(|snapshot| snapshot.held.is_empty());
    let blocked = live.on_disk("checkpoint_blocked");
    assert_eq!(
        field(&blocked, "outcome"),
        ["expired", "denied", "withdrawn"]
    );
    assert_eq!(blocked[0]["decided_by"], Value::Null, "nobody decided it");
    assert_eq!(blocked[1]["decided_by"], json!("op-1"));
    assert_eq!(blocked[2]["decided_by"], Value::Null);
    for (asked, code) in [
        (&mut expired, DenyCode::Expired),
        (&mut refused, DenyCode::Refused),
        (&mut withdrawn, DenyCode::Withdrawn),
    ] {
        assert_eq!(live.agent_reply(asked).unwrap().unwrap_err().code, code);
    }
    for words in ["EXPIRED", "DENIED", "WITHDRAWN"] {
        live.console.shows(words);
    }
    assert_eq!(live.on_disk("checkpoint_passed"), [] as [Value; 0]);
}

#[test]
fn rule_11_the_countdown_runs_while_typing_and_the_draft_survives() {
    let mut live = LiveConsole::new();
    live.ask("ticket.delete", json!({}), 1);
    live.open("c-1");
    live.types("the customer asked");
    live.console.shows("04:59 left");
    live.wait(Duration::from_mins(1));
    live.console.shows("03:59 left");
    live.press(KeyCode::Esc);
    live.open("c-1");
    live.console.shows("the customer asked");
    live.again(|_| {});
    assert_eq!(live.held_on_disk(), ["c-1"]);
    live.open("c-1");
    live.console.shows("the customer asked");
    live.wait(Duration::from_mins(5));
    live.catch_up(|snapshot| snapshot.held.is_empty());
    live.console.shows("the customer asked");
    let blocked = live.on_disk("checkpoint_blocked");
    assert_eq!(field(&blocked, "outcome"), ["expired"]);
}

#[test]
fn rule_12_a_settled_request_loses_its_controls_at_once() {
    let mut live = LiveConsole::new();
    live.ask("note.add", json!({}), 1);
    live.open("c-1");
    live.fill("c-1", "understood");
    let held = live.held("c-1");
    let reply = live.decide(deny(&held, "op-2"));
    assert!(matches!(reply, OperatorReply::Decided(_)));
    live.console.shows("the request is no longer held");
    live.console.shows("op-2");
    live.console.hides("[ Pass ]");
    for key in [KeyCode::Enter, KeyCode::Tab, KeyCode::Enter] {
        live.press(key);
    }
    assert_eq!(live.on_disk("checkpoint_passed"), [] as [Value; 0]);
    let blocked = live.on_disk("checkpoint_blocked");
    assert_eq!(field(&blocked, "decided_by"), ["op-2"], "once, and first");
}

#[test]
fn rule_13_a_decision_applies_once_to_one_request_under_one_atlas() {
    let mut live = LiveConsole::new();
    let asked = live.ask("note.add", json!({"n": 1}), 1);
    live.ask("note.add", json!({"n": 2}), 2);
    let (one, two) = (live.held("c-1"), live.held("c-2"));
    let reply = live.decide(DecisionRequest {
        request_hash: two.request_hash,
        ..deny(&one, "op-1")
    });
    assert_eq!(
        reply,
        OperatorReply::Refused(DecisionRefusal::RequestChanged)
    );
    live.undecided(&["c-1", "c-2"]);
    assert!(live.waits(&asked));
    live.decide(deny(&two, "op-2"));
    let reply = live.decide(deny(&two, "op-1"));
    let OperatorReply::Refused(DecisionRefusal::AlreadySettled(decided)) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(decided.by.as_deref(), Some("op-2"), "who was first is told");
    // Under another Atlas the request can only be denied.
    let other = RULES.replace("Looked at it?", "Looked at it closely?");
    live.again(|restart| restart.atlas(&other));
    live.open("c-1");
    live.fill("c-1", "understood");
    live.press(KeyCode::Enter);
    live.console.shows("Atlas changed");
    assert_eq!(live.held_on_disk(), ["c-1"]);
    assert_eq!(live.on_disk("checkpoint_passed"), [] as [Value; 0]);
}

#[test]
fn rule_14_the_record_is_on_disk_before_the_agent_continues() {
    let mut live = LiveConsole::new();
    let mut asked = live.ask("ticket.delete", json!({"id": 7}), 1);
    let held = live.rehearsal.held_on_disk();
    assert_eq!(held.len(), 1, "held, and on disk");
    live.pass("c-1", "as agreed with the customer");
    // Another process reads the file at the moment the agent gets its reply.
    let passed = live.on_disk("checkpoint_passed");
    assert!(live.agent_reply(&mut asked).unwrap().is_ok());
    assert_eq!(field(&passed, "passed_by"), ["op-1"]);
    assert!(live.rehearsal.is_sound());
    // After a restart the held request is back unchanged, under its id.
    live.ask("ticket.delete", json!({"id": 8}), 1);
    let before = live.held("c-2");
    live.again(|_| {});
    assert_eq!(live.held("c-2"), before);
    live.console.shows("c-2");
}

#[test]
fn rule_15_the_asking_agent_never_approves() {
    let mut live = LiveConsole::new();
    let asked = live.ask("note.add", json!({}), 1);
    // An operator with the agent's name finds the button disabled.
    live.command("operator Bot");
    live.console.shows("│ Bot │");
    live.open("c-1");
    live.fill("c-1", "understood");
    live.console
        .shows("Pass is disabled: `Bot` made this request");
    live.press(KeyCode::Enter);
    live.console.shows("cannot pass: `Bot` made this request");
    live.undecided(&["c-1"]);
    // The engine refuses a decision that bypasses the button.
    let held = live.held("c-1");
    for name in ["bot", "BOT ", "agent bot", "s-1"] {
        let reply = live.decide(DecisionRequest {
            operator: name.to_owned(),
            ruling: Ruling::Pass {
                answers: vec![[("ack".to_owned(), json!("understood"))].into()],
            },
            ..deny(&held, name)
        });
        assert_eq!(
            reply,
            OperatorReply::Refused(DecisionRefusal::Requester(name.to_owned()))
        );
    }
    live.undecided(&["c-1"]);
    assert_eq!(live.on_disk("checkpoint_response"), [] as [Value; 0]);
    assert!(live.waits(&asked));
    // An operator cannot use a name that the record reserves for agents.
    live.press(KeyCode::Esc);
    live.command("operator agent bot");
    live.console.shows("is reserved for agents in the record");
    assert_eq!(live.rehearsal.snapshot().operator, "Bot");
}

#[test]
fn rule_16_no_approval_is_permanent() {
    let mut live = LiveConsole::new();
    for action in ["note.add", "ticket.delete", "note.add", "ticket.delete"] {
        let mut asked = live.ask(action, json!({"same": true}), 1);
        let id = live.held_on_disk().pop().unwrap();
        live.open(&id);
        let screen = live.console.text().to_lowercase();
        for word in ["always", "remember", "don't ask"] {
            assert!(!screen.contains(word), "{word}:\n{screen}");
        }
        let answer = if action == "note.add" {
            "understood"
        } else {
            "as agreed"
        };
        live.fill(&id, answer);
        live.press(KeyCode::Enter);
        assert!(live.agent_reply(&mut asked).unwrap().is_ok());
        // An agent can get its reply before the snapshot shows it.
        live.catch_up(|snapshot| snapshot.held.is_empty());
    }
    // Each request was asked separately, and each has its own record.
    assert_eq!(live.on_disk("checkpoint_triggered").len(), 4);
    assert_eq!(live.on_disk("checkpoint_passed").len(), 4);
}

#[test]
fn rule_17_a_denied_request_asks_no_operator_and_a_retry_joins_the_held_request() {
    let mut live = LiveConsole::new();
    let denied = live.ask_told("unknown.action", json!({}));
    assert_eq!(denied.unwrap_err().code, DenyCode::UnknownAction);
    live.console.shows("No requests are held");
    assert_eq!(live.held_on_disk(), [] as [&str; 0]);
    let gone = live.ask("note.add", json!({"n": 1}), 1);
    gone.abort();
    assert!(!live.waits(&gone));
    let mut retry = live.ask("note.add", json!({"n": 1}), 1);
    live.catch_up(|snapshot| snapshot.held.iter().any(|held| held.joined == 1));
    live.console.shows("open x2");
    assert_eq!(live.held_on_disk(), ["c-1"]);
    // An identical request while the retry waits is a separate request.
    let other = live.ask("note.add", json!({"n": 1}), 2);
    live.pass("c-1", "understood");
    assert_eq!(live.on_disk("checkpoint_passed").len(), 1, "one decision");
    assert!(live.agent_reply(&mut retry).unwrap().is_ok(), "one run");
    assert!(live.waits(&other));
}

#[test]
fn rule_18_a_denial_carries_its_reason_and_needs_fewer_keys_than_a_pass() {
    let mut live = LiveConsole::new();
    let mut asked = live.ask("ticket.update", json!({}), 1);
    let mut denying = 0;
    live.select("c-1");
    live.press(KeyCode::Char('d'));
    live.wait(DIALOG_ARMING_TIME);
    live.types("not this ticket");
    for key in [KeyCode::Tab, KeyCode::Tab, KeyCode::Enter] {
        denying += 1;
        live.press(key);
    }
    let denied = live.agent_reply(&mut asked).unwrap().unwrap_err();
    assert_eq!(denied.reason, "denied by op-1: not this ticket");
    let blocked = live.on_disk("checkpoint_blocked");
    assert_eq!(
        field(&blocked, "reason"),
        ["denied by op-1: not this ticket"]
    );
    live.console.shows("c-1 DENIED and recorded");
    // Passing the same request takes more keys.
    let mut asked = live.ask("ticket.update", json!({}), 1);
    live.open("c-2");
    live.types("understood");
    let mut passing = 0;
    while live.waits(&asked) {
        passing += 1;
        let in_review = live.console.text().contains("Review: what");
        live.press(match passing {
            1..=3 => KeyCode::Tab,
            4 => KeyCode::Enter,
            _ if in_review && passing == 5 => KeyCode::Tab,
            _ => KeyCode::Enter,
        });
        assert!(passing < 20, "{}", live.console.text());
    }
    assert!(live.agent_reply(&mut asked).unwrap().is_ok());
    assert!(
        denying < passing,
        "{denying} keys to deny, {passing} to pass"
    );
    // A request cannot be denied without a reason.
    live.ask("ticket.update", json!({"n": 3}), 1);
    live.select("c-3");
    live.press(KeyCode::Char('d'));
    live.wait(DIALOG_ARMING_TIME);
    live.presses(KeyCode::Tab, 2);
    live.press(KeyCode::Enter);
    live.console.shows("cannot deny: enter a reason");
    assert_eq!(live.held_on_disk(), ["c-3"]);
}
