//! Operator commands other than decisions: claims, acknowledgements, change of operator.

use super::{LineConsole, LineEffect};
use crate::base::operator::{is_same_operator, parse_operator_name};
use crate::base::text::one_line;
use crate::console::app::record_faults::find_record_trouble;
use crate::console::dialog::gate::RecordTrouble;
use crate::engine::command::{
    AcknowledgedSubject, ClaimChange, ClaimChangeKind, DecisionRefusal, OperatorAcknowledgement,
    OperatorAction, OperatorChange,
};
use crate::runtime::snapshot::ConsoleAccess;

impl LineConsole {
    /// Handles `claim c-1`, `claim c-1 over o2` and `unclaim c-1`.
    pub(super) fn claim(&mut self, wish: ClaimChangeKind, rest: &str) -> Vec<LineEffect> {
        let (gate, over) = match rest.split_once(" over ") {
            Some((gate, over)) => (gate.trim(), Some(over.trim())),
            None => (rest, None),
        };
        let Some(held) = self.find_held(gate) else {
            return Vec::new();
        };
        let operator = self.snapshot.operator.clone();
        let seen = held.claim.as_ref().map(|claim| claim.by.clone());
        if let (ClaimChangeKind::Take, Some(by)) = (wish, held.claimed_by_other(&operator))
            && over.is_none_or(|over| !is_same_operator(over, by))
        {
            let by = one_line(by);
            let message =
                format!("{gate} is claimed by {by}. Type claim {gate} over {by} to take over.");
            self.print_line(&message);
            return Vec::new();
        }
        self.send_operation(OperatorAction::Claim(ClaimChange {
            gate: held.id.clone(),
            operator,
            seen,
            wish,
        }))
    }

    /// Handles `ack-broken-chain`.
    pub(super) fn acknowledge_broken_chain(&mut self) -> Vec<LineEffect> {
        match find_record_trouble(&self.snapshot, self.found.as_ref()) {
            Some(RecordTrouble::Chain(fault)) => {
                self.acknowledge(AcknowledgedSubject::Fault(fault))
            }
            Some(RecordTrouble::Store(_)) | None => {
                self.print_line("No chain is broken.");
                Vec::new()
            }
        }
    }

    /// Handles `ack-override`.
    pub(super) fn acknowledge_overrides(&mut self) -> Vec<LineEffect> {
        let overruled = self.snapshot.operator_acts.overruled.iter();
        let gates: Vec<_> = overruled.map(|overruled| overruled.gate.clone()).collect();
        if gates.is_empty() {
            self.print_line("No denial was overruled.");
            return Vec::new();
        }
        self.acknowledge(AcknowledgedSubject::Overruled(gates))
    }

    fn acknowledge(&mut self, of: AcknowledgedSubject) -> Vec<LineEffect> {
        let operator = self.snapshot.operator.clone();
        self.send_operation(OperatorAction::Acknowledge(OperatorAcknowledgement {
            operator,
            of,
        }))
    }

    /// Handles `operator ann@ops`.
    pub(super) fn change_operator(&mut self, name: &str) -> Vec<LineEffect> {
        match parse_operator_name(name) {
            Ok(operator) => {
                let before = self.snapshot.operator.clone();
                self.send_operation(OperatorAction::ChangeOperator(OperatorChange {
                    operator,
                    before,
                }))
            }
            Err(fault) => {
                self.print_line(&format!("Operator not changed: {fault}."));
                Vec::new()
            }
        }
    }

    fn send_operation(&mut self, operate: OperatorAction) -> Vec<LineEffect> {
        if self.snapshot.access == ConsoleAccess::ReadOnly {
            self.print_line(super::READ_ONLY_MESSAGE);
            return Vec::new();
        }
        vec![LineEffect::Operate(Box::new(operate))]
    }

    /// Reports the result of an operator command.
    pub(in crate::console) fn on_operated(
        &mut self,
        operate: &OperatorAction,
        done: &Result<(), DecisionRefusal>,
    ) -> Vec<LineEffect> {
        let message = match (done, operate) {
            (Ok(()), OperatorAction::Claim(claiming)) => match claiming.wish {
                ClaimChangeKind::Take => format!("Recorded. You claimed {}.", claiming.gate),
                ClaimChangeKind::Release => format!("Recorded. You released {}.", claiming.gate),
            },
            (Ok(()), OperatorAction::Acknowledge(_)) => "Acknowledged and recorded.".to_owned(),
            (Ok(()), OperatorAction::ChangeOperator(seat)) => format!(
                "Recorded. The operator is now {} (name not verified).",
                one_line(&seat.operator)
            ),
            (Err(refused), _) => format!("Not recorded: {refused}"),
        };
        self.out.push('\n');
        self.print_line(&one_line(&message));
        self.reprint_prompt();
        Vec::new()
    }

    /// Prints the overridden denials that no operator has acknowledged.
    pub(super) fn print_overrides(&mut self) {
        for overruled in self.snapshot.operator_acts.overruled.clone() {
            let message = format!(
                "Override: the denial of {} was overruled by {}. Type ack-override to acknowledge.",
                overruled.gate,
                one_line(&overruled.by)
            );
            self.print_line(&message);
        }
    }
}
