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
use super::held::{Claim, Held};
use crate::engine::command::{
    AcknowledgedSubject, CallerId, ClaimChange, ClaimChangeKind, DecisionRefusal, Effect,
    OperatorAcknowledgement, OperatorAction, OperatorChange, OperatorReply, OverruledDenial,
    RecordFault, StateKind,
};
use crate::engine::transaction::Transaction;

/// Key of the acknowledged fault in the store.
const FAULT_KEY: &str = "record";

impl Transaction<'_> {
    pub(crate) fn apply_operator_action(&mut self, ask: CallerId, operate: &OperatorAction) {
        let done = match operate {
            OperatorAction::Claim(claiming) => self.claim(claiming),
            OperatorAction::Acknowledge(acknowledge) => self.acknowledge(acknowledge),
            OperatorAction::ChangeOperator(seat) => self.change_operator(seat),
        };
        let reply = done.map_or_else(OperatorReply::Refused, |()| OperatorReply::Acted);
        self.reply_to_operator(ask, reply);
    }

    /// Changes the claim on a held request, if the claim is still as the operator saw it.
    fn claim(&mut self, claiming: &ClaimChange) -> Result<(), DecisionRefusal> {
        self.deadline_reached(&claiming.gate);
        let Some(waiting) = self.engine.state.held.get(&claiming.gate) else {
            return Err(DecisionRefusal::NotHeld(claiming.gate.clone()));
        };
        let held = Arc::clone(&waiting.held);
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
        self.record_below(&self.held_position(&held), record);
        let at = self.now;
        let claim = || Claim {
            by: claiming.operator.clone(),
            at,
        };
        let claim = (claiming.wish == ClaimChangeKind::Take).then(claim);
        self.store_held(Held {
            claim,
            ..(*held).clone()
        });
        Ok(())
    }

    fn acknowledge(
        &mut self,
        acknowledge: &OperatorAcknowledgement,
    ) -> Result<(), DecisionRefusal> {
        match &acknowledge.of {
            AcknowledgedSubject::Fault(fault) => {
                self.push(Effect::AppendToLog(
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
                self.set_acknowledged_fault(Some(fault.clone()));
                Ok(())
            }
            AcknowledgedSubject::Overruled(gates) => {
                let state = self.state();
                let known: Vec<_> = gates
                    .iter()
                    .filter_map(|gate| state.overruled.remove(gate))
                    .take(MAX_ACKNOWLEDGED)
                    .collect();
                if known.is_empty() {
                    return Err(DecisionRefusal::NothingToAcknowledge);
                }
                for overruled in known {
                    self.forget_overruled(&acknowledge.operator, &overruled);
                }
                Ok(())
            }
        }
    }

    fn forget_overruled(&mut self, operator: &str, overruled: &OverruledDenial) {
        self.persist::<()>(StateKind::Overruled, overruled.gate.as_str(), None);
        let what = format!("{} overruled by {}", overruled.action, overruled.by);
        self.push(Effect::AppendToLog(
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

    fn set_acknowledged_fault(&mut self, fault: Option<RecordFault>) {
        self.persist(StateKind::Fault, FAULT_KEY, fault.as_ref());
        self.state().acknowledged_fault = fault;
    }

    /// Forgets the acknowledged fault, because every chain is intact. The next fault is a new one, even with
    /// the same text.
    pub(crate) fn record_intact(&mut self) {
        if self.state().acknowledged_fault.is_some() {
            self.set_acknowledged_fault(None);
        }
    }

    fn change_operator(&mut self, seat: &OperatorChange) -> Result<(), DecisionRefusal> {
        let operator = parse_operator_name(&seat.operator);
        let operator = operator.map_err(|fault| DecisionRefusal::BadName(fault.to_string()))?;
        self.push(Effect::AppendToLog(
            OperatorChanged {
                operator: operator.clone(),
                before: seat.before.clone(),
                by: None,
            }
            .into(),
        ));
        self.push(Effect::SetOperator(operator));
        Ok(())
    }

    /// Stores an overruled denial until an operator acknowledges it.
    pub(crate) fn store_overruled(&mut self, held: &Held, by: &str) {
        if overruled_denials(held).is_empty() {
            return;
        }
        let overruled = OverruledDenial {
            gate: held.id.clone(),
            session: held.session.clone(),
            action: held.action().to_owned(),
            by: by.to_owned(),
            at: self.now,
        };
        self.persist(StateKind::Overruled, held.id.as_str(), Some(&overruled));
        let gate = held.id.clone();
        self.state().overruled.insert(gate, overruled);
    }
}
