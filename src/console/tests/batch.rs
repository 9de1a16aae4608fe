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
use crate::engine::command::{
    DecisionRefusal, DecisionRequest, InvalidAnswers, OperatorReply, Ruling,
};
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
pub(super) fn open_batch(console: &mut TestConsole, rows: usize) {
    console.press(KeyCode::Home);
    for _ in 0..rows {
        console.press(KeyCode::Char(' '));
        console.press(KeyCode::Down);
    }
    assert_eq!(decisions(console.press(KeyCode::Char('B'))), []);
    console.wait(DIALOG_ARMING_TIME);
}

/// Answers yes and goes to the review.
pub(super) fn review_batch(console: &mut TestConsole) {
    console.press(KeyCode::Left);
    console.presses(KeyCode::PageDown, 4);
    console.presses(KeyCode::Tab, 3);
    assert_eq!(console.press(KeyCode::Enter), []);
}

// Rule 9.
#[test]
fn a_batch_decides_exactly_the_reviewed_requests_one_by_one() {
    let mut console = TestConsole::new(three(), WIDE);
    open_batch(&mut console, 3);
    console.shows("batch of 3: c-1 c-2 c-3");
    console.shows("[ Deny all 3... ]  [ Pass all 3 ]");
    assert_snapshot!("batch", console.picture());
    review_batch(&mut console);
    console.shows("3 requests, decided and recorded one by one");
    console.shows("0 s on these 3");
    console.shows("[ Pass all 3 now ]");
    assert_snapshot!("batch_review", console.picture());
    assert_eq!(
        console.press(KeyCode::Enter),
        [],
        "the focus starts on Back"
    );
    review_batch_again(&mut console);
    console.press(KeyCode::Tab);
    let sent = decisions(console.press(KeyCode::Enter));
    let names: Vec<&str> = sent.iter().map(|decide| decide.gate.as_str()).collect();
    assert_eq!(names, ["c-1", "c-2", "c-3"]);
    for decide in &sent {
        let of = update(decide.gate.as_str());
        assert_eq!(decide.request_hash, of.request_hash);
        assert_eq!(decide.atlas_hash, of.atlas_hash);
        assert_eq!(decide.method, "console+batch");
        assert!(matches!(decide.ruling, Ruling::Pass { .. }));
    }
    answer(&mut console, &sent[..2]);
    console.shows("Writing");
    answer(&mut console, &sent[2..]);
    assert_eq!(console.app.layers.len(), 0);
    console.shows("3 requests decided and recorded");
    console.hides("marked");
}

/// Goes from the answers back to the review.
fn review_batch_again(console: &mut TestConsole) {
    assert_eq!(console.press(KeyCode::Enter), []);
}

#[test]
fn a_batch_passes_only_after_every_request_was_on_screen() {
    let long = |id: &str| with_params(update(id), json!({ "list": (0..80).collect::<Vec<_>>() }));
    let mut console = TestConsole::new(snapshot([long("c-1"), long("c-2")]), WIDE);
    open_batch(&mut console, 2);
    console.press(KeyCode::Left);
    console.presses(KeyCode::Tab, 3);
    console.shows("Pass all 2 is disabled: request not fully seen (PgDn)");
    console.presses(KeyCode::PageDown, 12);
    console.shows("seen 100 %");
    console.hides("is disabled");
}

#[test]
fn a_request_that_changes_leaves_the_open_batch_with_a_message() {
    let mut console = TestConsole::new(three(), WIDE);
    open_batch(&mut console, 3);
    review_batch(&mut console);
    let changed = with_params(update("c-1"), json!({ "other": true }));
    console.snapshot(snapshot([changed, update("c-3")]));
    console.shows("removed: c-1 changed, c-2 is no longer held");
    console.shows("batch of 1: c-3");
    // The operator has to review the remaining requests again. The focus is on a harmless button.
    assert_eq!(decisions(console.press(KeyCode::Enter)), []);
    assert_eq!(console.app.layers.len(), 0);
}

#[test]
fn a_partly_accepted_batch_lists_the_rejected_requests() {
    let mut console = TestConsole::new(three(), WIDE);
    open_batch(&mut console, 3);
    review_batch(&mut console);
    console.press(KeyCode::Tab);
    let sent = decisions(console.press(KeyCode::Enter));
    assert_eq!(sent.len(), 3, "{}", console.text());
    answer(&mut console, &sent[..2]);
    let gate = sent[2].gate.clone();
    console.message(ConsoleMessage::Decided(
        gate,
        OperatorReply::Refused(DecisionRefusal::RequestChanged),
    ));
    console.shows("2 requests decided; failed: c-3:");
    console.shows("batch of 1: c-3");
}

/// A request of medium risk whose one answer has a rule.
fn ruled(id: &str) -> Held {
    let mut item = update(id);
    item.gates = vec![gate("g", "action_pre", "why", vec![acknowledgment()])];
    item
}

#[test]
fn an_answer_to_a_batch_that_breaks_its_rule_is_recorded_for_each_request() {
    let mut console = TestConsole::new(snapshot([ruled("c-1"), ruled("c-2")]), WIDE);
    open_batch(&mut console, 2);
    console.type_text("not understood");
    console.presses(KeyCode::PageDown, 4);
    console.presses(KeyCode::Tab, 3);
    let sent = decisions(console.press(KeyCode::Enter));
    let names: Vec<&str> = sent.iter().map(|decide| decide.gate.as_str()).collect();
    assert_eq!(names, ["c-1", "c-2"], "{}", console.text());
    for decide in &sent {
        assert!(matches!(decide.ruling, Ruling::Invalid { .. }));
        assert_eq!(decide.method, "console+batch");
        let invalid = InvalidAnswers {
            held: Box::new(ruled(decide.gate.as_str())),
            problems: Vec::new(),
        };
        console.message(ConsoleMessage::Decided(
            decide.gate.clone(),
            OperatorReply::Invalid(invalid),
        ));
    }
    console.shows("0 requests decided; failed: c-1: the answers were rejected");
}

#[test]
fn a_batch_is_denied_with_one_reason_and_each_has_its_own_record() {
    let mut console = TestConsole::new(three(), WIDE);
    open_batch(&mut console, 2);
    console.presses(KeyCode::Tab, 2);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.presses(KeyCode::Tab, 2);
    assert_eq!(console.press(KeyCode::Enter), []);
    console.shows("enter a reason");
    console.shows("[ Deny all 2 now ]");
    console.press(KeyCode::Tab);
    console.type_text("not now");
    console.presses(KeyCode::Tab, 2);
    let sent = decisions(console.press(KeyCode::Enter));
    assert_eq!(sent.len(), 2, "{}", console.text());
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
    let mut console = TestConsole::new(snapshot(all), WIDE);
    console.press(KeyCode::Char('B'));
    console.shows("no request is marked: press Space");
    let mut output = Vec::new();
    for id in ["c-201", "c-205", "c-206", "c-9", "c-118", "c-121"] {
        console.press(KeyCode::Char('/'));
        console.type_text(id);
        console.press(KeyCode::Enter);
        console.press(KeyCode::Char(' '));
        let row = console.text().lines().nth(1).unwrap().to_owned();
        let reason = row.split_once("cannot be marked: ");
        output.push(reason.map_or(String::new(), |(_, reason)| reason.trim().to_owned()));
    }
    assert_eq!(
        output,
        [
            "",
            "its Atlas differs from c-201",
            "its checkpoints differ from c-201",
            "a batch cannot overrule a denial",
            "its risk is critical; decide it separately",
            "its risk is high; decide it separately",
        ]
    );
    console.shows("1 marked, B to open");
}

// Rule 22.
#[test]
fn a_read_only_console_never_sends_a_decision() {
    let mut picture = three();
    picture.access = ConsoleAccess::ReadOnly;
    let mut console = TestConsole::new(picture, WIDE);
    open_batch(&mut console, 3);
    console.shows("Deciding is disabled: read-only");
    review_batch(&mut console);
    assert_eq!(decisions(console.presses(KeyCode::Enter, 3)), []);
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
    assert!(!console.app.may_send(&ConsoleRequest::Decide(decide)));
}
