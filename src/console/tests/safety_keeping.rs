//! The safety rules 19 to 24: overriding, quitting, read-only access, and a broken record.

use std::time::Duration;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};

use super::live_console::LiveConsole;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::request::ConsoleRequest;
use crate::engine::command::{
    AcknowledgedSubject, ClaimChange, ClaimChangeKind, DecisionRefusal, DecisionRequest,
    OperatorAcknowledgement, OperatorAction, OperatorChange, OperatorReply, Ruling,
};
use crate::runtime::snapshot::ConsoleAccess;

const REASON: &str = "the customer asked for it in writing, twice";

#[test]
fn rule_19_a_denial_is_overridden_only_by_id_and_shown_until_acknowledged() {
    let mut live = LiveConsole::new();
    assert!(live.ask_told("pay", json!({"n": 1})).is_err());
    live.catch_up(|snapshot| snapshot.held.len() == 1);
    // Neither Enter nor a batch opens an override.
    live.select("c-1");
    live.press(KeyCode::Char(' '));
    live.console.shows("a batch cannot overrule a denial");
    live.open("c-1");
    live.types(REASON);
    live.presses(KeyCode::Tab, 3);
    live.console.shows("use :override c-1");
    live.press(KeyCode::Enter);
    live.undecided(&["c-1"]);
    while !live.console.app.layers.is_empty() {
        live.press(KeyCode::Esc);
    }
    live.command("override c-1");
    live.wait(DIALOG_ARMING_TIME);
    live.presses(KeyCode::Tab, 3);
    live.press(KeyCode::Enter);
    live.presses(KeyCode::PageDown, 4);
    let held = live.held("c-1");
    live.types(&held.request_hash.short(4));
    live.press(KeyCode::Tab);
    live.types("pay");
    live.presses(KeyCode::Tab, 2);
    live.press(KeyCode::Enter);
    let overruled = live.on_disk("policy_override");
    assert_eq!(overruled.len(), 1, "{}", live.console.text());
    assert_eq!(overruled[0]["justification"], json!(REASON));
    let banner = "! OVERRIDE c-1: op-1 overruled a denial. :ack-override";
    for tab in ['1', '2', '4'] {
        live.press(KeyCode::Char(tab));
        live.console.shows(banner);
    }
    // The next operator after a restart sees the warning too.
    live.again(|restart| restart.operator("op-2"));
    live.console.shows(banner);
    live.command("ack-override");
    live.console.hides("OVERRIDE");
    let known = live.on_disk("operator_acknowledged");
    assert_eq!(known.len(), 1);
    assert_eq!(
        (&known[0]["operator"], &known[0]["gate_id"]),
        (&json!("op-2"), &json!("c-1"))
    );
    live.again(|_| {});
    live.console.hides("OVERRIDE");
    assert!(live.rehearsal.is_sound());
}

#[test]
fn rule_20_every_way_of_quitting_leaves_the_request_held() {
    let mut live = LiveConsole::new();
    let asked = live.ask("note.add", json!({}), 1);
    live.open("c-1");
    live.fill("c-1", "understood");
    live.press(KeyCode::Esc);
    live.undecided(&["c-1"]);
    live.open("c-1");
    live.with(KeyCode::Char('c'), KeyModifiers::CONTROL);
    live.undecided(&["c-1"]);
    let out = live.console.ctrl('c');
    assert!(out.contains(&ConsoleRequest::Quit), "twice leaves");
    live.undecided(&["c-1"]);
    live.wait(Duration::from_secs(2));
    while !live.console.app.layers.is_empty() {
        live.press(KeyCode::Esc);
    }
    live.press(KeyCode::Char('q'));
    live.console.shows("1 request is held");
    live.press(KeyCode::Enter);
    live.undecided(&["c-1"]);
    assert!(live.waits(&asked));
    // The process ends, and another one starts.
    live.again(|_| {});
    live.undecided(&["c-1"]);
    live.console.shows("c-1");
}

#[test]
fn rule_21_only_key_presses_count_and_a_paste_never_submits() {
    let mut live = LiveConsole::new();
    let mut asked = live.ask("note.add", json!({}), 1);
    live.open("c-1");
    let paste = Event::Paste("understood\n\n\n\t\t\t\r\n".to_owned());
    let requests = live.console.event(&paste);
    live.carry_out(requests);
    live.undecided(&["c-1"]);
    live.presses(KeyCode::Tab, 3);
    let requests = live.console.event(&Event::Paste("\r\n\n".to_owned()));
    live.carry_out(requests);
    for kind in [KeyEventKind::Release, KeyEventKind::Repeat] {
        let mut key = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        key.kind = kind;
        let requests = live.console.event(&Event::Key(key));
        live.carry_out(requests);
    }
    live.undecided(&["c-1"]);
    assert!(live.waits(&asked));
    live.press(KeyCode::Enter);
    assert!(
        live.agent_reply(&mut asked).unwrap().is_ok(),
        "{}",
        live.console.text()
    );
}

#[test]
fn rule_22_a_read_only_console_has_no_way_to_write() {
    let mut live = LiveConsole::new();
    live.ask("note.add", json!({}), 1);
    live.again(|restart| restart.access(ConsoleAccess::ReadOnly));
    live.console.shows("READ-ONLY");
    live.open("c-1");
    live.fill("c-1", "understood");
    live.console.shows("Deciding is disabled: read-only");
    live.presses(KeyCode::Enter, 3);
    while !live.console.app.layers.is_empty() {
        live.press(KeyCode::Esc);
    }
    live.press(KeyCode::Char('c'));
    live.console.shows("this console is read-only");
    live.command("operator op-2");
    live.undecided(&["c-1"]);
    // A decision sent directly to the runtime is refused too.
    let held = live.held("c-1");
    let only_looks = DecisionRefusal::Unavailable("this console is read-only".to_owned());
    let refused = OperatorReply::Refused(only_looks.clone());
    let decide = |ruling| DecisionRequest {
        gate: held.id.clone(),
        operator: "op-1".to_owned(),
        method: "console".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling,
    };
    let answers = vec![[("ack".to_owned(), json!("understood"))].into()];
    assert_eq!(live.decide(decide(Ruling::Pass { answers })), refused);
    let reason = "no".to_owned();
    assert_eq!(live.decide(decide(Ruling::Deny { reason })), refused);
    for operate in [
        OperatorAction::Claim(ClaimChange {
            gate: held.id.clone(),
            operator: "op-1".to_owned(),
            seen: None,
            wish: ClaimChangeKind::Take,
        }),
        OperatorAction::Acknowledge(OperatorAcknowledgement {
            operator: "op-1".to_owned(),
            of: AcknowledgedSubject::Overruled(Vec::new()),
        }),
        OperatorAction::ChangeOperator(OperatorChange {
            operator: "op-2".to_owned(),
            before: "op-1".to_owned(),
        }),
    ] {
        assert_eq!(live.operate(operate), Err(only_looks.clone()));
    }
    live.undecided(&["c-1"]);
    for written in [
        "request_claimed",
        "operator_changed",
        "operator_acknowledged",
    ] {
        assert_eq!(live.on_disk(written), [] as [Value; 0]);
    }
    assert_eq!(live.rehearsal.snapshot().drafts.len(), 0);
}

#[test]
fn rule_23_a_broken_chain_is_shown_everywhere_and_blocks_decisions_until_acknowledged() {
    let mut live = LiveConsole::new();
    live.start_session("s-2");
    live.pass_one("note.add", "understood");
    live.ask("note.add", json!({"n": 2}), 1);
    live.again(|restart| {
        restart.tamper("UPDATE events SET records = replace(records, 'passed_by\":\"op-1', 'passed_by\":\"op-9')");
    });
    assert!(!live.rehearsal.is_sound());
    for tab in ['2', '4', '1'] {
        live.press(KeyCode::Char(tab));
        live.console.shows("! CHAIN BROKEN in s-1");
        live.console.shows("BROKEN");
    }
    live.open("c-2");
    live.fill("c-2", "understood");
    live.console
        .shows("Deciding is disabled: chain broken; Esc, then :ack-broken-chain");
    live.presses(KeyCode::Enter, 2);
    assert_eq!(live.held_on_disk(), ["c-2"]);
    live.press(KeyCode::Esc);
    live.command("ack-broken-chain");
    live.console.shows("(acknowledged: deciding is possible)");
    let known = live.on_disk("operator_acknowledged");
    assert_eq!(known.len(), 1, "{}", live.console.text());
    assert_eq!(known[0]["about"], json!("broken_chain"));
    assert_eq!(known[0]["session"], json!("s-1"));
    // After a restart the same break is still acknowledged, and still shown.
    live.again(|_| {});
    live.console.shows("CHAIN BROKEN in s-1");
    live.console.shows("(acknowledged: deciding is possible)");
    live.open("c-2");
    live.console.hides("chain broken");
    live.press(KeyCode::Esc);
    // Another break is not, even if the check still finds the first one first.
    live.again(|restart| {
        restart.tamper(
            "UPDATE events SET records = replace(records, 'bot', 'rot') WHERE session = \
             (SELECT number FROM sessions WHERE session_id = 's-2')",
        );
    });
    live.console.shows("CHAIN BROKEN in s-1");
    live.console
        .shows("Deciding is disabled: :ack-broken-chain");
    live.open("c-2");
    live.fill("c-2", "");
    live.presses(KeyCode::Enter, 2);
    assert_eq!(live.held_on_disk(), ["c-2"]);
    live.press(KeyCode::Esc);
    live.command("ack-broken-chain");
    live.pass("c-2", "");
    assert_eq!(
        live.held_on_disk(),
        [] as [&str; 0],
        "{}",
        live.console.text()
    );
    assert_eq!(live.on_disk("operator_acknowledged").len(), 2);
}

#[test]
fn rule_24_the_number_of_recent_passes_is_shown() {
    let mut live = LiveConsole::new();
    live.pass_one("note.add", "understood");
    live.wait(Duration::from_secs(5));
    live.pass_one("note.add", "understood");
    live.ask("ticket.update", json!({}), 1);
    live.open("c-3");
    live.fill("c-3", "understood");
    live.console.shows("PACE");
    live.console.shows("you passed 2 in 10 min (viewed");
    assert_eq!(live.on_disk("checkpoint_passed").len(), 2);
}
