//! Tests of operator actions other than decisions: they are recorded and stored, and let nothing pass.

use super::restarts::restart;
use super::*;

fn claim(
    bench: &mut EngineBench,
    operator: &str,
    seen: Option<&str>,
    wish: ClaimChangeKind,
) -> Reply {
    let claiming = ClaimChange {
        gate: "c-2".parse().unwrap(),
        operator: operator.to_owned(),
        seen: seen.map(str::to_owned),
        wish,
    };
    let reply_id = bench
        .reply_id(|reply_id| EngineCommand::Operate(reply_id, OperatorAction::Claim(claiming)));
    bench.reply(reply_id).clone()
}

fn held() -> (EngineBench, ReplyId) {
    let mut bench = EngineBench::in_acme("s-1");
    let reply_id = bench.request("s-1", "ticket.delete", json!({"id": 1}));
    assert_eq!(bench.held_ids(), ["c-2"]);
    (bench, reply_id)
}

fn claimant(bench: &EngineBench) -> Option<String> {
    bench.held("c-2").claim.map(|claim| claim.by)
}

/// Returns the entries of the log.
fn entries(bench: &EngineBench) -> Vec<Value> {
    let entries = bench.effects.iter().filter_map(|effect| match effect {
        Effect::AppendToLog(payload) => Some(payload.fields().into()),
        _ => None,
    });
    entries.collect()
}

#[test]
fn a_claim_can_be_taken_released_and_taken_over_and_decides_nothing() {
    let (mut bench, reply_id) = held();
    assert_eq!(
        claim(&mut bench, "op-1", None, ClaimChangeKind::Take),
        Reply::Operator(OperatorReply::Acted)
    );
    assert_eq!(claimant(&bench).as_deref(), Some("op-1"));
    let over = claim(&mut bench, "op-2", Some("op-1"), ClaimChangeKind::Take);
    assert_eq!(over, Reply::Operator(OperatorReply::Acted));
    assert_eq!(claimant(&bench).as_deref(), Some("op-2"));
    let let_go = claim(&mut bench, "op-2", Some("op-2"), ClaimChangeKind::Release);
    assert_eq!(let_go, Reply::Operator(OperatorReply::Acted));
    assert_eq!(claimant(&bench), None);
    assert_eq!(
        bench.payloads("request_claimed"),
        [
            json!({"gate_id": "c-2", "claim": "taken", "by": "op-1"}),
            json!({"gate_id": "c-2", "claim": "taken_over", "by": "op-2", "before": "op-1"}),
            json!({"gate_id": "c-2", "claim": "released", "by": "op-2"}),
        ]
    );
    assert!(bench.waits(reply_id));
    assert_eq!(bench.held_ids(), ["c-2"]);
}

#[test]
fn a_claim_that_changed_since_it_was_seen_is_not_modified() {
    let (mut bench, _) = held();
    claim(&mut bench, "op-1", None, ClaimChangeKind::Take);
    let refused = || {
        Reply::Operator(OperatorReply::Refused(DecisionRefusal::ClaimChanged(Some(
            "op-1".to_owned(),
        ))))
    };
    assert_eq!(
        claim(&mut bench, "op-2", None, ClaimChangeKind::Take),
        refused()
    );
    let stale = claim(&mut bench, "op-2", Some("op-3"), ClaimChangeKind::Take);
    assert_eq!(stale, refused());
    let other = claim(&mut bench, "op-2", Some("op-1"), ClaimChangeKind::Release);
    assert_eq!(
        other,
        refused(),
        "another's claim is taken over, not dropped"
    );
    assert_eq!(claimant(&bench).as_deref(), Some("op-1"));
    assert_eq!(bench.payloads("request_claimed").len(), 1);
}

#[test]
fn a_claim_survives_a_restart_blocks_no_operator_and_ends_with_the_gate() {
    let (mut bench, _) = held();
    claim(&mut bench, "op-2", None, ClaimChangeKind::Take);
    let mut next = restart(&bench, &[ACME]);
    assert_eq!(claimant(&next).as_deref(), Some("op-2"));
    let decided = next.pass("c-2");
    assert_eq!(next.outcome(decided), HeldOutcome::Passed);
    let gone = claim(&mut next, "op-2", Some("op-2"), ClaimChangeKind::Release);
    let gate = "c-2".parse().unwrap();
    assert_eq!(
        gone,
        Reply::Operator(OperatorReply::Refused(DecisionRefusal::NotHeld(gate)))
    );
}

#[test]
fn an_override_stays_listed_until_acknowledged_also_after_a_restart() {
    let body = "actions: [{action_id: pay, risk_tier: low}]\npolicies:\n  \
                - {policy_id: no-pay, type: deny, actions: [pay], reason: closed, override: true}\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench.request("s-1", "pay", json!({}));
    assert_eq!(bench.engine.overruled_denials(), []);
    bench.pass("c-1");
    let mut next = restart(&bench, &[&atlas(body)]);
    let overruled = next.engine.overruled_denials();
    assert_eq!(overruled.len(), 1);
    assert_eq!(overruled[0].by, "op-1");
    let acknowledge = |gates: Vec<HeldRequestId>| {
        OperatorAction::Acknowledge(OperatorAcknowledgement {
            operator: "op-2".to_owned(),
            of: AcknowledgedSubject::Overruled(gates),
        })
    };
    let gates = vec![overruled[0].gate.clone()];
    let reply_id =
        next.reply_id(|reply_id| EngineCommand::Operate(reply_id, acknowledge(gates.clone())));
    assert_eq!(next.reply(reply_id), &Reply::Operator(OperatorReply::Acted));
    assert_eq!(
        entries(&next),
        [json!({
            "operator": "op-2", "about": "override", "what": "pay overruled by op-1",
            "session": "s-1", "gate_id": "c-1",
        })]
    );
    let mut last = restart(&next, &[&atlas(body)]);
    assert_eq!(last.engine.overruled_denials(), [], "it does not come back");
    let reply_id = last.reply_id(|reply_id| EngineCommand::Operate(reply_id, acknowledge(gates)));
    let nothing = Reply::Operator(OperatorReply::Refused(
        DecisionRefusal::NothingToAcknowledge,
    ));
    assert_eq!(last.reply(reply_id), &nothing);
}

#[test]
fn an_acknowledged_fault_is_kept_until_the_record_is_intact() {
    let (mut bench, _) = held();
    let fault = RecordFault {
        mark: Digest::of("break"),
        session: Some("s-9".parse().unwrap()),
        what: "CHAIN BROKEN in s-9".to_owned(),
    };
    let acknowledge = OperatorAcknowledgement {
        operator: "op-1".to_owned(),
        of: AcknowledgedSubject::Fault(fault.clone()),
    };
    bench.reply_id(|reply_id| {
        EngineCommand::Operate(reply_id, OperatorAction::Acknowledge(acknowledge))
    });
    assert_eq!(entries(&bench)[0]["about"], json!("broken_chain"));
    assert_eq!(
        entries(&bench)[0]["fault_hash"],
        json!(fault.mark.to_string())
    );
    let mut next = restart(&bench, &[ACME]);
    assert_eq!(next.engine.acknowledged_fault(), Some(&fault));
    next.handle(EngineCommand::RecordIntact);
    assert_eq!(next.engine.acknowledged_fault(), None);
    let last = restart(&next, &[ACME]);
    assert_eq!(last.engine.acknowledged_fault(), None);
}

#[test]
fn a_change_of_operator_is_recorded_and_needs_a_valid_name() {
    let (mut bench, _) = held();
    let seat = |operator: &str| {
        OperatorAction::ChangeOperator(OperatorChange {
            operator: operator.to_owned(),
            before: "op-1".to_owned(),
        })
    };
    let reply_id = bench.reply_id(|reply_id| EngineCommand::Operate(reply_id, seat(" op-2 ")));
    assert_eq!(
        bench.reply(reply_id),
        &Reply::Operator(OperatorReply::Acted)
    );
    let entry = json!({"operator": "op-2", "before": "op-1"});
    assert_eq!(entries(&bench), [entry]);
    assert!(
        bench
            .effects
            .contains(&Effect::SetOperator("op-2".to_owned()))
    );
    for name in ["", "a\u{202e}b", "agent bot"] {
        let reply_id = bench.reply_id(|reply_id| EngineCommand::Operate(reply_id, seat(name)));
        let refused = matches!(
            bench.reply(reply_id),
            Reply::Operator(OperatorReply::Refused(DecisionRefusal::BadName(_)))
        );
        assert!(refused, "{name:?}");
    }
    assert_eq!(entries(&bench).len(), 1);
}
