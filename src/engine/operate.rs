//! Operator actions other than decisions: claims, acknowledgements, the current operator.
//!
//! Contract: nothing passes by any of them, and all of them are recorded.

use std::sync::Arc;

use crate::base::limits::MAX_ACKNOWLEDGED;
use crate::base::operator::{operator_name, same_name};
use crate::trace::event::{
    Acknowledged, ClaimWord, OperatorAcknowledged, OperatorChanged, RequestClaimed,
};

use super::command::{
    Acknowledge, AskId, ClaimWish, Claiming, Effect, Known, Operate, Overruled, RecordFault,
    Refused, Reply, StateKind, TakeSeat,
};
use super::decide::overridden_by;
use super::held::{Claim, Held};
use super::turn::Turn;

/// Key of the acknowledged fault in the store.
const RECORD: &str = "record";

impl Turn<'_> {
    pub(super) fn operate(&mut self, ask: AskId, operate: Operate) {
        let done = match operate {
            Operate::Claim(claiming) => self.claim(&claiming),
            Operate::Acknowledge(acknowledge) => self.acknowledge(&acknowledge),
            Operate::TakeSeat(seat) => self.take_seat(&seat),
        };
        let reply = done.map_or_else(Reply::Refused, |()| Reply::Acted);
        self.reply(ask, reply);
    }

    /// Changes the claim on a held request, if the claim is still as the operator saw it.
    fn claim(&mut self, claiming: &Claiming) -> Result<(), Refused> {
        self.deadline_reached(&claiming.gate);
        let Some(waiting) = self.engine.state.held.get(&claiming.gate) else {
            return Err(Refused::NotHeld(claiming.gate.clone()));
        };
        let held = Arc::clone(&waiting.held);
        let before = held.claim.as_ref().map(|claim| claim.by.clone());
        if before != claiming.seen {
            return Err(Refused::ClaimChanged(before));
        }
        let own = before
            .as_ref()
            .is_some_and(|by| same_name(by, &claiming.operator));
        let word = match (claiming.wish, &before) {
            (ClaimWish::Take, None) => ClaimWord::Taken,
            (ClaimWish::Take, Some(_)) if !own => ClaimWord::TakenOver,
            (ClaimWish::Release, Some(_)) if own => ClaimWord::Released,
            // The operator already has the claim, or wants to release a claim of another operator.
            (ClaimWish::Take | ClaimWish::Release, _) => return Err(Refused::ClaimChanged(before)),
        };
        let record = RequestClaimed {
            gate_id: held.id.to_string(),
            claim: word,
            by: claiming.operator.clone(),
            before: before.filter(|_| word == ClaimWord::TakenOver),
        };
        self.record_below(&self.held_place(&held), record);
        let at = self.now;
        let claim = || Claim {
            by: claiming.operator.clone(),
            at,
        };
        let claim = (claiming.wish == ClaimWish::Take).then(claim);
        self.keep_held(Held {
            claim,
            ..(*held).clone()
        });
        Ok(())
    }

    fn acknowledge(&mut self, acknowledge: &Acknowledge) -> Result<(), Refused> {
        match &acknowledge.of {
            Known::Fault(fault) => {
                self.push(Effect::Enter(
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
                self.know_fault(Some(fault.clone()));
                Ok(())
            }
            Known::Overruled(gates) => {
                let state = self.state();
                let known: Vec<_> = gates
                    .iter()
                    .filter_map(|gate| state.overruled.remove(gate))
                    .take(MAX_ACKNOWLEDGED)
                    .collect();
                if known.is_empty() {
                    return Err(Refused::NothingToAcknowledge);
                }
                for overruled in known {
                    self.forget_overruled(&acknowledge.operator, &overruled);
                }
                Ok(())
            }
        }
    }

    fn forget_overruled(&mut self, operator: &str, overruled: &Overruled) {
        self.persist::<()>(StateKind::Overruled, overruled.gate.as_str(), None);
        let what = format!("{} overruled by {}", overruled.action, overruled.by);
        self.push(Effect::Enter(
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

    fn know_fault(&mut self, fault: Option<RecordFault>) {
        self.persist(StateKind::Fault, RECORD, fault.as_ref());
        self.state().fault = fault;
    }

    /// Forgets the acknowledged fault, because every chain is intact. The next fault is a new one, even with
    /// the same text.
    pub(super) fn record_sound(&mut self) {
        if self.state().fault.is_some() {
            self.know_fault(None);
        }
    }

    fn take_seat(&mut self, seat: &TakeSeat) -> Result<(), Refused> {
        let operator = operator_name(&seat.operator);
        let operator = operator.map_err(|fault| Refused::BadName(fault.to_string()))?;
        self.push(Effect::Enter(
            OperatorChanged {
                operator: operator.clone(),
                before: seat.before.clone(),
                by: None,
            }
            .into(),
        ));
        self.push(Effect::Seat(operator));
        Ok(())
    }

    /// Stores an overruled denial until an operator acknowledges it.
    pub(super) fn note_overruled(&mut self, held: &Held, by: &str) {
        if overridden_by(held).is_empty() {
            return;
        }
        let overruled = Overruled {
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
