//! Operator actions other than decisions, and the replies to them. The console sends each to the runtime; the screen
//! shows it once it is recorded.

use super::App;
use crate::base::operator::parse_operator_name;
use crate::base::text::one_line;
use crate::console::request::ConsoleRequest;
use crate::console::text_cells::counted;
use crate::console::theme::Meaning;
use crate::engine::command::{
    AcknowledgedSubject, ClaimChangeKind, DecisionRefusal, OperatorAcknowledgement, OperatorAction,
    OperatorChange,
};
use crate::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};

impl App {
    /// Acknowledges the fault in the record.
    pub(super) fn acknowledge_broken_chain(&mut self) -> Vec<ConsoleRequest> {
        let Some(fault) = self.chain_fault() else {
            self.show_notice(Meaning::Text, "no chain is broken".to_owned());
            return Vec::new();
        };
        self.acknowledge(AcknowledgedSubject::Fault(fault))
    }

    /// Acknowledges the overridden denials that the header shows.
    pub(super) fn acknowledge_overrides(&mut self) -> Vec<ConsoleRequest> {
        let overruled = self.snapshot.operator_acts.overruled.iter();
        let gates: Vec<_> = overruled.map(|denial| denial.gate.clone()).collect();
        if gates.is_empty() {
            self.show_notice(Meaning::Text, "no denial was overruled".to_owned());
            return Vec::new();
        }
        self.acknowledge(AcknowledgedSubject::Overruled(gates))
    }

    fn acknowledge(&mut self, of: AcknowledgedSubject) -> Vec<ConsoleRequest> {
        if self.warn_if_read_only() {
            return Vec::new();
        }
        let operator = self.snapshot.operator.clone();
        let acknowledge = OperatorAcknowledgement { operator, of };
        vec![ConsoleRequest::Operate(OperatorAction::Acknowledge(
            acknowledge,
        ))]
    }

    /// Changes the operator of this console.
    pub(super) fn change_operator(&mut self, name: &str) -> Vec<ConsoleRequest> {
        let before = self.snapshot.operator.clone();
        match parse_operator_name(name) {
            Err(fault) => self.show_notice(Meaning::Error, fault.to_string()),
            Ok(name) if name == before => {
                self.show_notice(
                    Meaning::Text,
                    format!("operator is already {}", one_line(&name)),
                );
            }
            Ok(_) if self.warn_if_read_only() => {}
            Ok(operator) => {
                let change = OperatorChange { operator, before };
                return vec![ConsoleRequest::Operate(OperatorAction::ChangeOperator(
                    change,
                ))];
            }
        }
        Vec::new()
    }

    /// Returns true if this console is read-only, and shows a notice in that case.
    pub(super) fn warn_if_read_only(&mut self) -> bool {
        let read_only = self.snapshot.access == ConsoleAccess::ReadOnly;
        if read_only {
            self.show_notice(Meaning::Warning, "this console is read-only".to_owned());
        }
        read_only
    }

    /// Shows the result of an operator action.
    pub(super) fn on_operated(
        &mut self,
        operate: &OperatorAction,
        acted: &Result<(), DecisionRefusal>,
    ) {
        match acted {
            Ok(()) => self.show_notice(Meaning::Passed, success_text(operate)),
            Err(refused) => self.show_notice(Meaning::Error, format!("not recorded: {refused}")),
        }
    }

    /// Closes all dialogs if the operator changed: they belonged to the operator before. Drafts are
    /// kept.
    pub(super) fn close_dialogs_of_previous_operator(
        &mut self,
        before: &RuntimeSnapshot,
    ) -> Vec<ConsoleRequest> {
        if before.operator == self.snapshot.operator {
            return Vec::new();
        }
        let mut requests: Vec<ConsoleRequest> = self.close_minimised_dialog().into_iter().collect();
        while !self.layers.is_empty() {
            requests.extend(self.close());
        }
        requests
    }
}

fn success_text(operate: &OperatorAction) -> String {
    match operate {
        OperatorAction::Claim(claiming) => {
            let word = match claiming.wish {
                ClaimChangeKind::Take => "claimed",
                ClaimChangeKind::Release => "released",
            };
            format!("{} {word} and recorded", claiming.gate)
        }
        OperatorAction::Acknowledge(OperatorAcknowledgement { of, .. }) => match of {
            AcknowledgedSubject::Fault(_) => {
                "acknowledged and recorded: deciding is possible again".to_owned()
            }
            AcknowledgedSubject::Overruled(gates) => {
                format!(
                    "{} acknowledged and recorded",
                    counted(gates.len(), "override")
                )
            }
        },
        OperatorAction::ChangeOperator(change) => {
            let name = one_line(&change.operator);
            format!("operator is now {name} (not verified)")
        }
    }
}
