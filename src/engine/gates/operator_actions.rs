//! Operator actions other than decisions: claims, acknowledgements, the current operator.
//!
//! Contract: nothing passes by any of them, and all of them are recorded.

use std::sync::Arc;

use crate::base::limits::MAX_ACKNOWLEDGED;
use crate::base::operator::{is_same_operator, parse_operator_name};
use crate::trace::event::{
    Acknowledged, ClaimWord, OperatorAcknowledged, OperatorChanged, RequestClaimed,
};

use super::decision::overruled_denials;
use super::dual_approval::store_held;
use super::held::{Claim, Held};
use super::settlement::{expire_held, held_position};
use crate::engine::command::{
    AcknowledgedSubject, ClaimChange, ClaimChangeKind, DecisionRefusal, Effect,
    OperatorAcknowledgement, OperatorAction, OperatorChange, OperatorReply, OverruledDenial,
    RecordFault, ReplyId, StateKind,
};
use crate::engine::transaction::Transaction;

/// Key of the acknowledged fault in the store.
const FAULT_KEY: &str = "record";

pub(crate) fn apply_operator_action(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    operate: &OperatorAction,
) {
    let done = match operate {
        OperatorAction::Claim(claiming) => change_claim(tx, claiming),
        OperatorAction::Acknowledge(subject) => acknowledge(tx, subject),
        OperatorAction::ChangeOperator(seat) => change_operator(tx, seat),
    };
    let reply = done.map_or_else(OperatorReply::Refused, |()| OperatorReply::Acted);
    tx.reply_to_operator(reply_id, reply);
}

/// Changes the claim on a held request, if the claim is still as the operator saw it.
fn change_claim(tx: &mut Transaction<'_>, claiming: &ClaimChange) -> Result<(), DecisionRefusal> {
    expire_held(tx, &claiming.gate);
    let Some(entry) = tx.engine.state.held.get(&claiming.gate) else {
        return Err(DecisionRefusal::NotHeld(claiming.gate.clone()));
    };
    let held = Arc::clone(&entry.held);
    let before = held.claim.as_ref().map(|claim| claim.by.clone());
    if before != claiming.seen {
        return Err(DecisionRefusal::ClaimChanged(before));
    }
    let own = before
        .as_ref()
        .is_some_and(|by| is_same_operator(by, &claiming.operator));
    let word = match (claiming.wish, &before) {
        (ClaimChangeKind::Take, None) => ClaimWord::Taken,
        (ClaimChangeKind::Take, Some(_)) if !own => ClaimWord::TakenOver,
        (ClaimChangeKind::Release, Some(_)) if own => ClaimWord::Released,
        // The operator already has the claim, or wants to release a claim of another operator.
        (ClaimChangeKind::Take | ClaimChangeKind::Release, _) => {
            return Err(DecisionRefusal::ClaimChanged(before));
        }
    };
    let record = RequestClaimed {
        gate_id: held.id.to_string(),
        claim: word,
        by: claiming.operator.clone(),
        before: before.filter(|_| word == ClaimWord::TakenOver),
    };
    tx.record_below(&held_position(tx, &held), record);
    let at = tx.now;
    let claim = || Claim {
        by: claiming.operator.clone(),
        at,
    };
    let claim = (claiming.wish == ClaimChangeKind::Take).then(claim);
    store_held(
        tx,
        Held {
            claim,
            ..(*held).clone()
        },
    );
    Ok(())
}

fn acknowledge(
    tx: &mut Transaction<'_>,
    acknowledge: &OperatorAcknowledgement,
) -> Result<(), DecisionRefusal> {
    match &acknowledge.of {
        AcknowledgedSubject::Fault(fault) => {
            tx.push(Effect::AppendToLog(
                OperatorAcknowledged {
                    operator: acknowledge.operator.clone(),
                    about: Acknowledged::BrokenChain,
                    what: fault.what.clone(),
                    session: fault.session.as_ref().map(ToString::to_string),
                    gate_id: None,
                    fault_hash: Some(fault.mark.to_string()),
                    by: None,
                }
                .into(),
            ));
            set_acknowledged_fault(tx, Some(fault.clone()));
            Ok(())
        }
        AcknowledgedSubject::Overruled(gates) => {
            let state = tx.state();
            let known: Vec<_> = gates
                .iter()
                .filter_map(|gate| state.overruled.remove(gate))
                .take(MAX_ACKNOWLEDGED)
                .collect();
            if known.is_empty() {
                return Err(DecisionRefusal::NothingToAcknowledge);
            }
            for overruled in known {
                forget_overruled(tx, &acknowledge.operator, &overruled);
            }
            Ok(())
        }
    }
}

fn forget_overruled(tx: &mut Transaction<'_>, operator: &str, overruled: &OverruledDenial) {
    tx.persist::<()>(StateKind::Overruled, overruled.gate.as_str(), None);
    let what = format!("{} overruled by {}", overruled.action, overruled.by);
    tx.push(Effect::AppendToLog(
        OperatorAcknowledged {
            operator: operator.to_owned(),
            about: Acknowledged::Override,
            what,
            session: Some(overruled.session.to_string()),
            gate_id: Some(overruled.gate.to_string()),
            fault_hash: None,
            by: None,
        }
        .into(),
    ));
}

fn set_acknowledged_fault(tx: &mut Transaction<'_>, fault: Option<RecordFault>) {
    tx.persist(StateKind::Fault, FAULT_KEY, fault.as_ref());
    tx.state().acknowledged_fault = fault;
}

/// Forgets the acknowledged fault, because every chain is intact. The next fault is a new one, even with
/// the same text.
pub(crate) fn clear_acknowledged_fault(tx: &mut Transaction<'_>) {
    if tx.state().acknowledged_fault.is_some() {
        set_acknowledged_fault(tx, None);
    }
}

fn change_operator(tx: &mut Transaction<'_>, seat: &OperatorChange) -> Result<(), DecisionRefusal> {
    let operator = parse_operator_name(&seat.operator);
    let operator = operator.map_err(|fault| DecisionRefusal::BadName(fault.to_string()))?;
    tx.push(Effect::AppendToLog(
        OperatorChanged {
            operator: operator.clone(),
            before: seat.before.clone(),
            by: None,
        }
        .into(),
    ));
    tx.push(Effect::SetOperator(operator));
    Ok(())
}

/// Stores an overruled denial until an operator acknowledges it.
pub(crate) fn store_overruled(tx: &mut Transaction<'_>, held: &Held, by: &str) {
    if overruled_denials(held).is_empty() {
        return;
    }
    let overruled = OverruledDenial {
        gate: held.id.clone(),
        session: held.session.clone(),
        action: held.action().to_owned(),
        by: by.to_owned(),
        at: tx.now,
    };
    tx.persist(StateKind::Overruled, held.id.as_str(), Some(&overruled));
    let gate = held.id.clone();
    tx.state().overruled.insert(gate, overruled);
}
