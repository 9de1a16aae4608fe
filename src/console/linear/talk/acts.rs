//! Operator commands other than decisions: claims, acknowledgements, change of operator.

use super::{Deed, Talk};
use crate::base::operator::{operator_name, same_name};
use crate::base::text::one_line;
use crate::console::app::record::trouble_of;
use crate::console::dialog::gate::Trouble;
use crate::engine::command::{Acknowledge, ClaimWish, Claiming, Known, Operate, Refused, TakeSeat};
use crate::runtime::snapshot::Access;

impl Talk {
    /// Handles `claim c-1`, `claim c-1 over o2` and `unclaim c-1`.
    pub(super) fn claim(&mut self, wish: ClaimWish, rest: &str) -> Vec<Deed> {
        let (gate, over) = match rest.split_once(" over ") {
            Some((gate, over)) => (gate.trim(), Some(over.trim())),
            None => (rest, None),
        };
        let Some(held) = self.find(gate) else {
            return Vec::new();
        };
        let operator = self.snapshot.operator.clone();
        let seen = held.claim.as_ref().map(|claim| claim.by.clone());
        if let (ClaimWish::Take, Some(by)) = (wish, held.claimed_by_other(&operator))
            && over.is_none_or(|over| !same_name(over, by))
        {
            let by = one_line(by);
            let told =
                format!("{gate} is claimed by {by}. Type claim {gate} over {by} to take it.");
            self.say(&told);
            return Vec::new();
        }
        self.operate(Operate::Claim(Claiming {
            gate: held.id.clone(),
            operator,
            seen,
            wish,
        }))
    }

    /// Handles `ack-broken-chain`.
    pub(super) fn know_fault(&mut self) -> Vec<Deed> {
        match trouble_of(&self.snapshot, self.found.as_ref()) {
            Some(Trouble::Chain(fault)) => self.acknowledge(Known::Fault(fault)),
            Some(Trouble::Store(_)) | None => {
                self.say("No chain is broken.");
                Vec::new()
            }
        }
    }

    /// Handles `ack-override`.
    pub(super) fn know_overruled(&mut self) -> Vec<Deed> {
        let overruled = self.snapshot.acts.overruled.iter();
        let gates: Vec<_> = overruled.map(|overruled| overruled.gate.clone()).collect();
        if gates.is_empty() {
            self.say("No denial was overruled.");
            return Vec::new();
        }
        self.acknowledge(Known::Overruled(gates))
    }

    fn acknowledge(&mut self, of: Known) -> Vec<Deed> {
        let operator = self.snapshot.operator.clone();
        self.operate(Operate::Acknowledge(Acknowledge { operator, of }))
    }

    /// Handles `operator ann@ops`.
    pub(super) fn take_seat(&mut self, name: &str) -> Vec<Deed> {
        match operator_name(name) {
            Ok(operator) => {
                let before = self.snapshot.operator.clone();
                self.operate(Operate::TakeSeat(TakeSeat { operator, before }))
            }
            Err(fault) => {
                self.say(&format!("Nobody sits down: {fault}."));
                Vec::new()
            }
        }
    }

    fn operate(&mut self, operate: Operate) -> Vec<Deed> {
        if self.snapshot.access == Access::ReadOnly {
            self.say(super::ONLY_LOOKS);
            return Vec::new();
        }
        vec![Deed::Operate(Box::new(operate))]
    }

    /// Reports the result of an operator command.
    pub(in crate::console) fn on_operated(
        &mut self,
        operate: &Operate,
        done: &Result<(), Refused>,
    ) -> Vec<Deed> {
        let told = match (done, operate) {
            (Ok(()), Operate::Claim(claiming)) => match claiming.wish {
                ClaimWish::Take => format!("Recorded. You claim {}.", claiming.gate),
                ClaimWish::Release => format!("Recorded. Nobody claims {}.", claiming.gate),
            },
            (Ok(()), Operate::Acknowledge(_)) => "Recorded as acknowledged.".to_owned(),
            (Ok(()), Operate::TakeSeat(seat)) => format!(
                "Recorded. {} sits here now, by their own word.",
                one_line(&seat.operator)
            ),
            (Err(refused), _) => format!("Not recorded: {refused}"),
        };
        self.out.push('\n');
        self.say(&one_line(&told));
        self.ask_again();
        Vec::new()
    }

    /// Prints the overridden denials that no operator has acknowledged.
    pub(super) fn tell_overruled(&mut self) {
        for overruled in self.snapshot.acts.overruled.clone() {
            let told = format!(
                "Override: the denial of {} was overruled by {}. Type ack-override when you know.",
                overruled.gate,
                one_line(&overruled.by)
            );
            self.say(&told);
        }
    }
}
