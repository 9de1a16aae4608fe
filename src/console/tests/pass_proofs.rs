//! Proofs that an operator must give before a request passes, by risk.

use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::fixture::{confirmation, gate, held, question, snapshot, user_ban};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::engine::command::{AnswerProblem, InvalidAnswers, OperatorReply, Ruling};
use crate::engine::held::{GateOrigin, HeldSubject};

const WIDE: (u16, u16) = (120, 36);

#[test]
fn a_critical_request_needs_the_hash_and_the_action_name() {
    let mut console = TestConsole::new(snapshot([user_ban()]), WIDE);
    console.open();
    console.type_text("a good reason, with words");
    console.presses(KeyCode::Tab, 3);
    assert_eq!(console.press(KeyCode::Enter), []);
    // The hash, the name, Back, Pass now: in this order, and only the last one decides.
    console.press(KeyCode::BackTab);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("cannot pass: type the hash first");
    console.press(KeyCode::Tab);
    console.type_text(&user_ban().request_hash.short(4));
    console.press(KeyCode::Tab);
    console.type_text("user.ba");
    console.presses(KeyCode::Tab, 2);
    // A wrong name is sent to be recorded, and passes nothing.
    let wrong = decisions(console.press(KeyCode::Enter));
    assert_eq!(wrong.len(), 1);
    assert!(matches!(wrong[0].ruling, Ruling::WrongConfirmation { .. }));
    console.message(ConsoleMessage::Decided(user_ban().id, OperatorReply::Acted));
    console.shows("cannot pass: type the action's name first");
    console.presses(KeyCode::BackTab, 2);
    console.type_text("n");
    console.presses(KeyCode::Tab, 2);
    let decided = decisions(console.press(KeyCode::Enter));
    assert_eq!(decided.len(), 1, "{}", console.text());
    assert_eq!(decided[0].method, "console+challenge+action");
}

#[test]
fn a_high_risk_request_without_a_reason_asks_for_one() {
    let mut item = held("c-1", "x.delete", RiskTier::High, 1, 60);
    item.gates = vec![gate("g", "action_pre", "deletes", vec![confirmation()])];
    let hash = item.request_hash.short(4);
    let mut console = TestConsole::new(snapshot([item]), WIDE);
    console.open();
    console.press(KeyCode::Left);
    console.presses(KeyCode::Tab, 3);
    console.press(KeyCode::Enter);
    console.shows("Justification  (required)");
    console.press(KeyCode::Tab);
    console.type_text(&hash);
    console.presses(KeyCode::Tab, 2);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("cannot pass: enter a justification");
    console.press(KeyCode::Tab);
    let kept = console.type_text("asked for by mail");
    assert!(matches!(
        kept.last(),
        Some(ConsoleRequest::KeepDraft(_, Some(_)))
    ));
    console.shows("justification         \"asked for by mail\"");
    console.presses(KeyCode::Tab, 3);
    let decided = decisions(console.press(KeyCode::Enter));
    let reason = decided[0].justification.as_deref();
    assert_eq!(reason, Some("asked for by mail"));
}

#[test]
fn overriding_a_denial_needs_a_longer_reason_and_the_proofs_of_a_critical_request() {
    let mut item = user_ban();
    if let HeldSubject::Action(call) = &mut item.subject {
        call.tier = RiskTier::Low;
    }
    item.gates[0].origin = GateOrigin::Override {
        atlas_id: "com.acme.support".to_owned(),
        policy_id: "no-bans".to_owned(),
        reason: "bans are final".to_owned(),
    };
    item.gates[0].questions = vec![question(json!({
        "question_id": "justification", "question": "Reason for approving", "response_type": "text",
        "validation": {"min_length": 20},
    }))];
    let mut console = TestConsole::new(snapshot([item.clone()]), WIDE);
    console.press(KeyCode::Char(':'));
    console.type_text("override c-118");
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.wait(DIALOG_ARMING_TIME);
    console.type_text("because I say so");
    console.shows("at least 20 characters (16 now)");
    console.presses(KeyCode::Tab, 3);
    // A reason that is too short is sent to be recorded, and overrules nothing.
    let thin = decisions(console.press(KeyCode::Enter));
    assert_eq!(thin.len(), 1, "{}", console.text());
    assert!(matches!(&thin[0].ruling, Ruling::Invalid { answers }
        if answers[0]["justification"] == json!("because I say so")));
    let problem = AnswerProblem {
        gate: 0,
        question: "justification".to_owned(),
        rules: vec!["at least 20 characters (16 now)".to_owned()],
    };
    let invalid = InvalidAnswers {
        held: Box::new(item.clone()),
        problems: vec![problem],
    };
    console.message(ConsoleMessage::Decided(
        item.id.clone(),
        OperatorReply::Invalid(invalid),
    ));
    console.type_text(", as agreed");
    console.presses(KeyCode::Tab, 3);
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    console.shows("policy override");
    console.shows("\"because I say so, as agreed\"");
    console.shows("with hash and action");
}
