//! The safety rules in the line console.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::fixture::{
    busy, confirmation, gate, held, snapshot, ticket_delete, user_ban, with_params,
};
use super::linear::{LineConsoleTester, answers};
use super::rules::denied;
use crate::atlas::document::{Approvers, RiskTier};
use crate::base::digest::Digest;
use crate::console::linear::line_console::LineEffect;
use crate::engine::command::{
    AcknowledgedSubject, ClaimChange, ClaimChangeKind, Confirmation, DecisionRefusal,
    DecisionRequest, InvalidAnswers, OperatorAcknowledgement, OperatorAction, OperatorChange,
    OperatorReply, OverruledDenial, Ruling,
};
use crate::engine::held::{Claim, FirstApproval, Held};
use crate::runtime::snapshot::{ChainVerdict, ConsoleAccess, RuntimeSnapshot};

/// Returns the only decision.
#[track_caller]
fn decision(effects: &[LineEffect]) -> DecisionRequest {
    match effects {
        [LineEffect::Decide(decide)] => (**decide).clone(),
        other => panic!("{other:?}"),
    }
}

fn operated(effects: &[LineEffect]) -> OperatorAction {
    match effects {
        [LineEffect::Operate(operate)] => (**operate).clone(),
        other => panic!("{other:?}"),
    }
}

/// A line console that waits for the word that passes `ticket_delete`.
fn at_deciding_word(picture: RuntimeSnapshot) -> LineConsoleTester {
    let mut listener = LineConsoleTester::new(picture);
    let lines = answers(&ticket_delete());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    listener.hears(&lines, &["Type pass "]);
    listener
}

#[test]
fn an_override_needs_its_own_command_twenty_characters_of_reason_and_every_proof() {
    let held = denied();
    let mut listener = LineConsoleTester::new(snapshot([held.clone()]));
    listener.hears(
        &["pass c-9"],
        &["A policy denies c-9. To overrule the denial, type override c-9."],
    );
    listener.hears(&["override c-9"], &["Question 1 of 1"]);
    listener.hears(&[""], &["Question 1 of 1"]);
    for thin in ["because", "nineteen characters"] {
        let (output, effects) = listener.types(&[thin]);
        assert!(
            output.contains("Not met: at least 20 characters"),
            "{output}"
        );
        let ruling = decision(&effects).ruling;
        assert!(
            matches!(&ruling, Ruling::Invalid { answers } if answers[0]["justification"] == json!(thin)),
            "{ruling:?}"
        );
        let invalid = InvalidAnswers {
            held: Box::new(held.clone()),
            problems: Vec::new(),
        };
        let reply = OperatorReply::Invalid(invalid);
        listener
            .line_console
            .on_reply(&held.id, &reply, listener.now);
        assert!(
            listener
                .line_console
                .take_output()
                .contains("Question 1 of 1")
        );
    }
    listener.hears(&["twenty characters, ok"], &["hash: "]);
    listener.hears(
        &[&held.request_hash.short(4)],
        &["Type the name of the action"],
    );
    listener.hears(&["ticket.delete"], &["policy override", "Type pass "]);
    // The word that starts an override does not confirm it.
    let mut other = LineConsoleTester::new(snapshot([held.clone()]));
    other.types(&["override c-9", "twenty characters, ok"]);
    other.types(&[&held.request_hash.short(4), "ticket.delete"]);
    other.leaves_held("override");
    let decide = decision(&listener.types(&["pass"]).1);
    assert_eq!(decide.method, "console+challenge+action");
    assert_eq!(decide.request_hash, held.request_hash);
    // A request that no policy denies cannot be overridden.
    let mut listener = LineConsoleTester::new(busy());
    listener.hears(
        &["override c-121"],
        &["No policy denies c-121. Type pass c-121."],
    );
    listener.hears(&["pass"], &["Name a request"]);
}

#[test]
fn a_deciding_word_typed_too_early_never_decides() {
    let early = Duration::from_millis(699);
    // Pass.
    let lines = answers(&ticket_delete());
    let (last, first) = lines.split_last().unwrap();
    let mut listener = LineConsoleTester::new(busy());
    listener.types(&first.iter().map(String::as_str).collect::<Vec<_>>());
    listener.line_console.on_line(last, listener.now);
    let asked_at = listener.now;
    for _ in 0..3 {
        assert_eq!(
            listener.line_console.on_line("pass", asked_at.plus(early)),
            []
        );
        assert!(
            listener
                .line_console
                .take_output()
                .contains("Ignored: typed too early.")
        );
    }
    assert!(
        listener.line_console.next_change().is_some(),
        "it still arms"
    );
    let after = asked_at.plus(Duration::from_millis(700));
    listener.line_console.on_tick(after);
    assert!(listener.line_console.take_output().contains("Type pass "));
    assert_eq!(listener.line_console.on_line("pass", after).len(), 1);
    // Deny.
    let mut listener = LineConsoleTester::new(busy());
    listener.types(&["deny c-121"]);
    listener.line_console.on_line("wrong tenant", listener.now);
    let asked_at = listener.now;
    assert_eq!(
        listener.line_console.on_line("deny", asked_at.plus(early)),
        []
    );
    assert!(
        listener
            .line_console
            .take_output()
            .contains("Ignored: typed too early.")
    );
    // Lines sent all at once decide nothing: no time passes between them.
    let mut listener = LineConsoleTester::new(busy());
    let lines = answers(&ticket_delete());
    let all = lines.iter().map(String::as_str).chain(["pass", "pass"]);
    for line in all {
        assert_eq!(
            listener.line_console.on_line(line, listener.now),
            [],
            "{line}"
        );
    }
}

/// Types a wrong confirmation. The console asks again, and records the input unless it is empty.
#[track_caller]
fn unconfirmed(listener: &mut LineConsoleTester, wrong: &str, asked: &str) {
    let (output, effects) = listener.types(&[wrong]);
    assert!(output.contains("That does not match"), "{output}");
    assert!(output.contains(asked), "{output}");
    if wrong.is_empty() {
        assert_eq!(effects, []);
        return;
    }
    let ruling = decision(&effects).ruling;
    assert!(
        matches!(&ruling, Ruling::WrongConfirmation { typed_text, .. } if typed_text == wrong),
        "{ruling:?}"
    );
}

#[test]
fn the_proofs_need_the_requests_own_hash_and_the_full_action_name() {
    let (held, other) = (user_ban(), ticket_delete());
    assert_ne!(held.request_hash.short(4), other.request_hash.short(4));
    let hash = held.request_hash.short(4);
    let mut listener = LineConsoleTester::new(busy());
    listener.hears(
        &["pass c-118", "a long enough justification, reason: abuse."],
        &["Type the first 4 characters"],
    );
    let long = held.request_hash.short(5);
    let short = held.request_hash.short(3);
    let others = other.request_hash.short(4);
    for wrong in ["", "pass", &others, &long, &short] {
        unconfirmed(&mut listener, wrong, "Type the first 4 characters");
    }
    // The hash is read aloud with spaces. It may be typed with spaces and in upper or lower case.
    let spelt: Vec<_> = hash.chars().map(|c| c.to_uppercase().to_string()).collect();
    listener.hears(
        &[&spelt.join(" ")],
        &["Type the name of the action in full: user.ban"],
    );
    for wrong in [
        "",
        "user.ba",
        "user.bann",
        "USER.BAN",
        "c-118",
        "yes",
        "pass",
    ] {
        unconfirmed(&mut listener, wrong, "Type the name of the action");
    }
    listener.hears(&["user.ban"], &["policy override", "Type pass "]);
    let decide = decision(&listener.types(&["pass"]).1);
    assert_eq!(decide.request_hash, held.request_hash);
}

#[test]
fn a_request_that_was_not_printed_whole_cannot_pass() {
    let lines: Vec<_> = (0..200).map(|n| format!("line {n}")).collect();
    let held = with_params(ticket_delete(), json!({ "lines": lines }));
    let mut listener = LineConsoleTester::new(snapshot([held.clone()]));
    let (output, _) = listener.types(&["pass c-121"]);
    assert!(
        output.contains("more lines. Press Enter to print them"),
        "{output}"
    );
    assert!(!output.contains("End of the request."));
    // Input is not yet an answer, a proof or the deciding word: it only prints the next page.
    let hash = held.request_hash.short(4);
    let mut typed = vec!["understood", "yes", "pass", hash.as_str()]
        .into_iter()
        .cycle();
    let mut printed = output;
    let mut pages = 0;
    while !printed.contains("End of the request.") {
        let line = typed.next().unwrap();
        let (more, effects) = listener.types(&[line]);
        assert_eq!(effects, [], "{line}");
        printed += &more;
        pages += 1;
        assert!(pages < 20);
    }
    assert!(pages > 3);
    for n in 0..200 {
        assert!(
            printed.contains(&format!("\"line {n}\"")),
            "line {n} was not printed"
        );
    }
    // No input was accepted as an answer: the first question is still open.
    assert!(printed.contains("Question 1 of 3"), "{printed}");
    assert!(!printed.contains("Question 2 of 3"));
    // Leaving the request and coming back starts again.
    listener.hears(&["/back"], &["The request stays held."]);
    listener.hears(&["pass c-121"], &["more lines. Press Enter to print them"]);
}

#[test]
fn a_change_before_the_deciding_word_cancels_the_decision() {
    let changes: [fn(Held) -> Held; 3] = [
        |held| with_params(held, json!({"ticket_ids": [1]})),
        |mut held| {
            held.atlas_hash = Digest::of("another Atlas");
            held
        },
        |mut held| {
            held.answered.insert(1, serde_json::Map::new());
            held
        },
    ];
    for change in changes {
        let mut listener = at_deciding_word(snapshot([ticket_delete()]));
        let other = change(ticket_delete());
        listener
            .line_console
            .on_snapshot(Arc::new(snapshot([other.clone()])), listener.now);
        let output = listener.line_console.take_output();
        assert!(output.contains("c-121 has changed. Your input was discarded."));
        listener.hears(&["pass"], &["Name a request"]);
        // Started again, the decision is about the current request.
        listener.hears(&["deny c-121", "not like this"], &["Type deny "]);
        let decide = decision(&listener.types(&["deny"]).1);
        assert_eq!(decide.request_hash, other.request_hash);
        assert_eq!(decide.atlas_hash, other.atlas_hash);
    }
    // The arrival of another request cancels nothing.
    let mut listener = at_deciding_word(snapshot([ticket_delete()]));
    let more = snapshot([ticket_delete(), user_ban()]);
    listener
        .line_console
        .on_snapshot(Arc::new(more), listener.now);
    assert!(matches!(
        decision(&listener.types(&["pass"]).1).ruling,
        Ruling::Pass { .. }
    ));
}

fn claimed(by: &str) -> Held {
    let mut held = ticket_delete();
    held.claim = Some(Claim {
        by: by.to_owned(),
        at: held.opened_at,
    });
    held
}

#[test]
fn deciding_a_request_claimed_by_another_operator_needs_their_name() {
    let picture = || snapshot([claimed("o2@ops")]);
    let mut listener = at_deciding_word(picture());
    listener.leaves_held("pass");
    let mut listener = at_deciding_word(picture());
    assert_eq!(
        decision(&listener.types(&["pass over o2@ops"]).1)
            .gate
            .as_str(),
        "c-121"
    );
    let mut listener = LineConsoleTester::new(picture());
    listener.hears(
        &["deny c-121", "wrong tenant"],
        &["c-121 is claimed by o2@ops. Type deny over o2@ops to deny c-121."],
    );
    listener.leaves_held("deny");
    listener.types(&["deny c-121", "wrong tenant"]);
    decision(&listener.types(&["deny over o2@ops"]).1);
    // The operator's own claim changes nothing. A claim that another operator made meanwhile counts.
    let mut listener = at_deciding_word(snapshot([claimed("op-1@ops")]));
    decision(&listener.types(&["pass"]).1);
    let mut listener = at_deciding_word(snapshot([ticket_delete()]));
    listener
        .line_console
        .on_snapshot(Arc::new(picture()), listener.now);
    listener.leaves_held("pass");
}

#[test]
fn claims_are_made_released_and_taken_over_by_name() {
    let mut listener = LineConsoleTester::new(snapshot([ticket_delete()]));
    let claiming = |seen: Option<&str>, wish| {
        OperatorAction::Claim(ClaimChange {
            gate: "c-121".parse().unwrap(),
            operator: "op-1@ops".to_owned(),
            seen: seen.map(str::to_owned),
            wish,
        })
    };
    let effects = listener.types(&["claim c-121"]).1;
    assert_eq!(operated(&effects), claiming(None, ClaimChangeKind::Take));
    let done = operated(&effects);
    listener.line_console.on_operated(&done, &Ok(()));
    assert!(
        listener
            .line_console
            .take_output()
            .contains("Recorded. You claimed c-121.")
    );
    let mut listener = LineConsoleTester::new(snapshot([claimed("o2@ops")]));
    let output = listener.line_console.take_output();
    assert!(output.contains("claimed by o2@ops"), "{output}");
    listener.hears(
        &["claim c-121"],
        &["Type claim c-121 over o2@ops to take over."],
    );
    listener.hears(&["claim c-121 over o3"], &["Type claim c-121 over o2@ops"]);
    let effects = listener.types(&["claim c-121 over o2@ops"]).1;
    assert_eq!(
        operated(&effects),
        claiming(Some("o2@ops"), ClaimChangeKind::Take)
    );
    let refused = Err(DecisionRefusal::ClaimChanged(None));
    listener
        .line_console
        .on_operated(&operated(&effects), &refused);
    assert!(
        listener
            .line_console
            .take_output()
            .contains("Not recorded: the claim was released")
    );
}

#[test]
fn the_first_of_two_approvals_is_reported_and_the_same_operator_cannot_give_the_second() {
    let mut held = ticket_delete();
    held.gates[0].approvers = Approvers::Two;
    let mut listener = LineConsoleTester::new(snapshot([held.clone()]));
    assert!(
        listener
            .line_console
            .take_output()
            .contains("0 of 2 approvals")
    );
    let lines = answers(&held);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    listener.hears(
        &lines,
        &[
            "This is the first of two approvals. The request stays held",
            "first approval",
        ],
    );
    let decide = decision(&listener.types(&["pass"]).1);
    held.approval = Some(FirstApproval {
        by: "op-1@ops".to_owned(),
        method: "console+challenge".to_owned(),
        justification: None,
        at: listener.now,
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
    });
    let approved = OperatorReply::Approved(Box::new(held.clone()));
    listener
        .line_console
        .on_reply(&decide.gate, &approved, listener.now);
    let output = listener.line_console.take_output();
    assert!(
        output.contains("has 1 of 2 approvals and is still held"),
        "{output}"
    );
    let mut listener = LineConsoleTester::new(snapshot([held.clone()]));
    assert!(
        listener
            .line_console
            .take_output()
            .contains("1 of 2 approvals, by op-1@ops")
    );
    listener.hears(
        &["pass c-121"],
        &["c-121 cannot pass: op-1@ops approved (1 of 2)"],
    );
    let mut picture = snapshot([held]);
    picture.operator = "op-2@ops".to_owned();
    let mut listener = LineConsoleTester::new(picture);
    listener.hears(
        &lines,
        &["second of two approvals, after op-1@ops", "gate passed"],
    );
    assert_eq!(decision(&listener.types(&["pass"]).1).operator, "op-2@ops");
}

#[test]
fn a_change_of_operator_is_recorded_and_cancels_the_open_question() {
    let mut listener = LineConsoleTester::new(snapshot([ticket_delete()]));
    let effects = listener.types(&["operator op-2@ops"]).1;
    let seat = OperatorChange {
        operator: "op-2@ops".to_owned(),
        before: "op-1@ops".to_owned(),
    };
    assert_eq!(operated(&effects), OperatorAction::ChangeOperator(seat));
    for name in ["", "agent x", "a\u{202e}b"] {
        listener.hears(&[&format!("operator {name}")], &["Operator not changed"]);
    }
    let mut listener = at_deciding_word(snapshot([ticket_delete()]));
    let mut other = snapshot([ticket_delete()]);
    other.operator = "op-2@ops".to_owned();
    listener
        .line_console
        .on_snapshot(Arc::new(other), listener.now);
    assert!(
        listener
            .line_console
            .take_output()
            .contains("The operator changed.")
    );
    listener.hears(&["pass"], &["Name a request"]);
}

#[test]
fn acknowledgements_are_recorded_and_required_before_deciding() {
    let mut picture = snapshot([ticket_delete()]);
    picture.chain.verdict = ChainVerdict::Broken {
        session: "s-9".parse().unwrap(),
        what: "event 3: the hash differs".to_owned(),
        mark: Digest::of("break"),
    };
    let fault = picture.chain.verdict.fault().unwrap();
    let mut listener = LineConsoleTester::new(picture.clone());
    for line in ["pass c-121", "deny c-121"] {
        listener.hears(&[line], &["Deciding is disabled.", "ack-broken-chain"]);
    }
    let effects = listener.types(&["ack-broken-chain"]).1;
    let operator = "op-1@ops".to_owned();
    let of = AcknowledgedSubject::Fault(fault.clone());
    assert_eq!(
        operated(&effects),
        OperatorAction::Acknowledge(OperatorAcknowledgement { operator, of })
    );
    listener.hears(&["pass c-121"], &["Deciding is disabled."]);
    picture.operator_acts.acknowledged_fault = Some(fault);
    listener
        .line_console
        .on_snapshot(Arc::new(picture.clone()), listener.now);
    listener.hears(&["pass c-121"], &["Question 1 of 3"]);
    // An override is announced until an operator acknowledges it.
    let mut picture = snapshot([]);
    listener = LineConsoleTester::new(picture.clone());
    listener.hears(&["ack-override"], &["No denial was overruled."]);
    picture.operator_acts.overruled = vec![OverruledDenial {
        gate: "c-9".parse().unwrap(),
        session: "s-1".parse().unwrap(),
        action: "pay".to_owned(),
        by: "op-2".to_owned(),
        at: listener.now,
    }];
    listener = LineConsoleTester::new(picture.clone());
    assert!(
        listener
            .line_console
            .take_output()
            .contains("the denial of c-9 was overruled by op-2")
    );
    let effects = listener.types(&["ack-override"]).1;
    assert!(matches!(operated(&effects), OperatorAction::Acknowledge(_)));
    picture.access = ConsoleAccess::ReadOnly;
    LineConsoleTester::new(picture).hears(&["ack-override"], &["This console is read-only"]);
}

#[test]
fn a_wrong_word_to_deny_is_recorded_and_denies_nothing() {
    let mut listener = LineConsoleTester::new(busy());
    listener.types(&["deny c-121", "wrong tenant"]);
    let (output, effects) = listener.types(&["yes"]);
    assert!(output.contains("The request stays held."), "{output}");
    let expected = Ruling::WrongConfirmation {
        wanted: Confirmation::DenyWord,
        typed_text: "yes".to_owned(),
    };
    assert_eq!(decision(&effects).ruling, expected);
}

#[test]
fn answers_become_the_justification_that_is_told_before_the_word_is_asked_for() {
    let mut item = held("c-1", "ticket.update", RiskTier::Medium, 10, 600);
    item.gates = vec![gate("g", "action_pre", "why", vec![confirmation()])];
    let mut listener = LineConsoleTester::new(snapshot([item]));
    let output = [
        "Justification (your answers): Was the customer asked?: yes",
        "justification source: \"answers\"",
        "Type pass ",
    ];
    listener.hears(&["pass c-1", "yes"], &output);
}
