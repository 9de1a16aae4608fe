//! Batch decisions, and the read-only console.

use insta::assert_snapshot;
use ratatui::crossterm::event::KeyCode;
use serde_json::json;

use super::fixture::{acknowledgment, gate, held, snapshot, ticket_delete, user_ban, with_params};
use super::rules::{answer, denied};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::base::digest::Digest;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::engine::command::{DecisionRefusal, DecisionRequest, InvalidAnswers, Reply, Ruling};
use crate::engine::held::Held;
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

const WIDE: (u16, u16) = (120, 36);

/// A request of medium risk with one question that needs no text.
fn update(id: &str) -> Held {
    held(id, "ticket.update", RiskTier::Medium, 10, 600)
}

pub(super) fn three() -> RuntimeSnapshot {
    snapshot([update("c-1"), update("c-2"), update("c-3")])
}

/// Marks all rows and opens the batch.
pub(super) fn open_batch(stage: &mut TestConsole, rows: usize) {
    stage.press(KeyCode::Home);
    for _ in 0..rows {
        stage.press(KeyCode::Char(' '));
        stage.press(KeyCode::Down);
    }
    assert_eq!(decisions(stage.press(KeyCode::Char('B'))), []);
    stage.wait(DIALOG_ARMING_TIME);
}

/// Answers yes and goes to the review.
pub(super) fn review_batch(stage: &mut TestConsole) {
    stage.press(KeyCode::Left);
    stage.presses(KeyCode::PageDown, 4);
    stage.presses(KeyCode::Tab, 3);
    assert_eq!(stage.press(KeyCode::Enter), []);
}

// Rule 9.
#[test]
fn a_batch_decides_exactly_the_reviewed_requests_one_by_one() {
    let mut stage = TestConsole::new(three(), WIDE);
    open_batch(&mut stage, 3);
    stage.shows("batch of 3: c-1 c-2 c-3");
    stage.shows("[ Deny all 3... ]  [ Pass all 3 ]");
    assert_snapshot!("batch", stage.picture());
    review_batch(&mut stage);
    stage.shows("3 requests, decided and recorded one by one");
    stage.shows("0 s on these 3");
    stage.shows("[ Pass all 3 now ]");
    assert_snapshot!("batch_review", stage.picture());
    assert_eq!(stage.press(KeyCode::Enter), [], "the focus starts on Back");
    review_batch_again(&mut stage);
    stage.press(KeyCode::Tab);
    let sent = decisions(stage.press(KeyCode::Enter));
    let names: Vec<&str> = sent.iter().map(|decide| decide.gate.as_str()).collect();
    assert_eq!(names, ["c-1", "c-2", "c-3"]);
    for decide in &sent {
        let of = update(decide.gate.as_str());
        assert_eq!(decide.request_hash, of.request_hash);
        assert_eq!(decide.atlas_hash, of.atlas_hash);
        assert_eq!(decide.method, "console+batch");
        assert!(matches!(decide.ruling, Ruling::Pass { .. }));
    }
    answer(&mut stage, &sent[..2]);
    stage.shows("Writing");
    answer(&mut stage, &sent[2..]);
    assert_eq!(stage.app.layers.len(), 0);
    stage.shows("3 requests decided and recorded");
    stage.hides("marked");
}

/// Goes from the answers back to the review.
fn review_batch_again(stage: &mut TestConsole) {
    assert_eq!(stage.press(KeyCode::Enter), []);
}

#[test]
fn a_batch_passes_only_after_every_request_was_on_screen() {
    let long = |id: &str| with_params(update(id), json!({ "list": (0..80).collect::<Vec<_>>() }));
    let mut stage = TestConsole::new(snapshot([long("c-1"), long("c-2")]), WIDE);
    open_batch(&mut stage, 2);
    stage.press(KeyCode::Left);
    stage.presses(KeyCode::Tab, 3);
    stage.shows("Pass all 2 is disabled: request not fully seen (PgDn)");
    stage.presses(KeyCode::PageDown, 12);
    stage.shows("seen 100 %");
    stage.hides("is disabled");
}

#[test]
fn a_request_that_changes_leaves_the_open_batch_with_a_message() {
    let mut stage = TestConsole::new(three(), WIDE);
    open_batch(&mut stage, 3);
    review_batch(&mut stage);
    let changed = with_params(update("c-1"), json!({ "other": true }));
    stage.snapshot(snapshot([changed, update("c-3")]));
    stage.shows("removed: c-1 changed, c-2 is no longer held");
    stage.shows("batch of 1: c-3");
    // The operator has to review the remaining requests again. The focus is on a harmless button.
    assert_eq!(decisions(stage.press(KeyCode::Enter)), []);
    assert_eq!(stage.app.layers.len(), 0);
}

#[test]
fn a_partly_accepted_batch_lists_the_rejected_requests() {
    let mut stage = TestConsole::new(three(), WIDE);
    open_batch(&mut stage, 3);
    review_batch(&mut stage);
    stage.press(KeyCode::Tab);
    let sent = decisions(stage.press(KeyCode::Enter));
    assert_eq!(sent.len(), 3, "{}", stage.text());
    answer(&mut stage, &sent[..2]);
    let gate = sent[2].gate.clone();
    stage.message(ConsoleMessage::Decided(
        gate,
        Reply::Refused(DecisionRefusal::RequestChanged),
    ));
    stage.shows("2 requests decided; failed: c-3:");
    stage.shows("batch of 1: c-3");
}

/// A request of medium risk whose one answer has a rule.
fn ruled(id: &str) -> Held {
    let mut item = update(id);
    item.gates = vec![gate("g", "action_pre", "why", vec![acknowledgment()])];
    item
}

#[test]
fn an_answer_to_a_batch_that_breaks_its_rule_is_recorded_for_each_request() {
    let mut stage = TestConsole::new(snapshot([ruled("c-1"), ruled("c-2")]), WIDE);
    open_batch(&mut stage, 2);
    stage.type_text("not understood");
    stage.presses(KeyCode::PageDown, 4);
    stage.presses(KeyCode::Tab, 3);
    let sent = decisions(stage.press(KeyCode::Enter));
    let names: Vec<&str> = sent.iter().map(|decide| decide.gate.as_str()).collect();
    assert_eq!(names, ["c-1", "c-2"], "{}", stage.text());
    for decide in &sent {
        assert!(matches!(decide.ruling, Ruling::Invalid { .. }));
        assert_eq!(decide.method, "console+batch");
        let invalid = InvalidAnswers {
            held: Box::new(ruled(decide.gate.as_str())),
            problems: Vec::new(),
        };
        stage.message(ConsoleMessage::Decided(
            decide.gate.clone(),
            Reply::Invalid(invalid),
        ));
    }
    stage.shows("0 requests decided; failed: c-1: the answers were rejected");
}

#[test]
fn a_batch_is_denied_with_one_reason_and_each_has_its_own_record() {
    let mut stage = TestConsole::new(three(), WIDE);
    open_batch(&mut stage, 2);
    stage.presses(KeyCode::Tab, 2);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.presses(KeyCode::Tab, 2);
    assert_eq!(stage.press(KeyCode::Enter), []);
    stage.shows("enter a reason");
    stage.shows("[ Deny all 2 now ]");
    stage.press(KeyCode::Tab);
    stage.type_text("not now");
    stage.presses(KeyCode::Tab, 2);
    let sent = decisions(stage.press(KeyCode::Enter));
    assert_eq!(sent.len(), 2, "{}", stage.text());
    let deny = Ruling::Deny {
        reason: "not now".to_owned(),
    };
    assert!(sent.iter().all(|decide| decide.ruling == deny));
}

#[test]
fn marking_a_request_that_fits_no_batch_reports_the_reason() {
    let mut other_atlas = update("c-205");
    other_atlas.atlas_hash = Digest::of("another");
    let mut other_gate = update("c-206");
    other_gate.gates = vec![gate("elsewhere", "action_pre", "why", vec![])];
    let all = [
        update("c-201"),
        other_atlas,
        other_gate,
        ticket_delete(),
        user_ban(),
        denied(),
    ];
    let mut stage = TestConsole::new(snapshot(all), WIDE);
    stage.press(KeyCode::Char('B'));
    stage.shows("no request is marked: press Space");
    let mut told = Vec::new();
    for id in ["c-201", "c-205", "c-206", "c-9", "c-118", "c-121"] {
        stage.press(KeyCode::Char('/'));
        stage.type_text(id);
        stage.press(KeyCode::Enter);
        stage.press(KeyCode::Char(' '));
        let row = stage.text().lines().nth(1).unwrap().to_owned();
        let why = row.split_once("cannot be marked: ");
        told.push(why.map_or(String::new(), |(_, why)| why.trim().to_owned()));
    }
    assert_eq!(
        told,
        [
            "",
            "its Atlas differs from c-201",
            "its checkpoints differ from c-201",
            "a batch cannot overrule a denial",
            "its risk is critical; decide it separately",
            "its risk is high; decide it separately",
        ]
    );
    stage.shows("1 marked, B to open");
}

// Rule 22.
#[test]
fn a_read_only_console_never_sends_a_decision() {
    let mut picture = three();
    picture.access = ConsoleAccess::ReadOnly;
    let mut stage = TestConsole::new(picture, WIDE);
    open_batch(&mut stage, 3);
    stage.shows("Deciding is disabled: read-only");
    review_batch(&mut stage);
    assert_eq!(decisions(stage.presses(KeyCode::Enter, 3)), []);
    // The console has no path to write: even a decision that gets this far is not sent.
    let decide = DecisionRequest {
        gate: "c-1".parse().unwrap(),
        operator: "op".to_owned(),
        method: "console".to_owned(),
        request_hash: Digest::of("x"),
        atlas_hash: Digest::of("x"),
        justification: None,
        ruling: Ruling::Deny {
            reason: String::new(),
        },
    };
    assert!(!stage.app.may_send(&ConsoleRequest::Decide(decide)));
}
