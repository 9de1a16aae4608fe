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
    let mut stage = TestConsole::new(snapshot([user_ban()]), WIDE);
    stage.open();
    stage.type_text("a good reason, with words");
    stage.presses(KeyCode::Tab, 3);
    assert_eq!(stage.press(KeyCode::Enter), []);
    // The hash, the name, Back, Pass now: in this order, and only the last one decides.
    stage.press(KeyCode::BackTab);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.shows("cannot pass: type the hash first");
    stage.press(KeyCode::Tab);
    stage.type_text(&user_ban().request_hash.short(4));
    stage.press(KeyCode::Tab);
    stage.type_text("user.ba");
    stage.presses(KeyCode::Tab, 2);
    // A wrong name is sent to be recorded, and passes nothing.
    let wrong = decisions(stage.press(KeyCode::Enter));
    assert_eq!(wrong.len(), 1);
    assert!(matches!(wrong[0].ruling, Ruling::WrongConfirmation { .. }));
    stage.message(ConsoleMessage::Decided(user_ban().id, OperatorReply::Acted));
    stage.shows("cannot pass: type the action's name first");
    stage.presses(KeyCode::BackTab, 2);
    stage.type_text("n");
    stage.presses(KeyCode::Tab, 2);
    let decided = decisions(stage.press(KeyCode::Enter));
    assert_eq!(decided.len(), 1, "{}", stage.text());
    assert_eq!(decided[0].method, "console+challenge+action");
}

#[test]
fn a_high_risk_request_without_a_reason_asks_for_one() {
    let mut item = held("c-1", "x.delete", RiskTier::High, 1, 60);
    item.gates = vec![gate("g", "action_pre", "deletes", vec![confirmation()])];
    let hash = item.request_hash.short(4);
    let mut stage = TestConsole::new(snapshot([item]), WIDE);
    stage.open();
    stage.press(KeyCode::Left);
    stage.presses(KeyCode::Tab, 3);
    stage.press(KeyCode::Enter);
    stage.shows("Justification  (required)");
    stage.press(KeyCode::Tab);
    stage.type_text(&hash);
    stage.presses(KeyCode::Tab, 2);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.shows("cannot pass: enter a justification");
    stage.press(KeyCode::Tab);
    let kept = stage.type_text("asked for by mail");
    assert!(matches!(
        kept.last(),
        Some(ConsoleRequest::KeepDraft(_, Some(_)))
    ));
    stage.shows("justification         \"asked for by mail\"");
    stage.presses(KeyCode::Tab, 3);
    let decided = decisions(stage.press(KeyCode::Enter));
    let why = decided[0].justification.as_deref();
    assert_eq!(why, Some("asked for by mail"));
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
    let mut stage = TestConsole::new(snapshot([item.clone()]), WIDE);
    stage.press(KeyCode::Char(':'));
    stage.type_text("override c-118");
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
    stage.wait(DIALOG_ARMING_TIME);
    stage.type_text("because I say so");
    stage.shows("at least 20 characters (16 now)");
    stage.presses(KeyCode::Tab, 3);
    // A reason that is too short is sent to be recorded, and overrules nothing.
    let thin = decisions(stage.press(KeyCode::Enter));
    assert_eq!(thin.len(), 1, "{}", stage.text());
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
    stage.message(ConsoleMessage::Decided(
        item.id.clone(),
        OperatorReply::Invalid(invalid),
    ));
    stage.type_text(", as agreed");
    stage.presses(KeyCode::Tab, 3);
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
    stage.shows("policy override");
    stage.shows("\"because I say so, as agreed\"");
    stage.shows("with hash and action");
}
