//! Operator actions other than decisions: claims, acknowledgments, change of operator. The console
//! sends each to the runtime; the screen shows it once it is recorded.

use super::App;
use crate::base::operator::{operator_name, same_name};
use crate::base::text::one_line;
use crate::console::dialog::confirm::ConfirmDialog;
use crate::console::layer::Layer;
use crate::console::request::Request;
use crate::console::theme::Meaning;
use crate::engine::command::{Acknowledge, ClaimWish, Claiming, Known, Operate, Refused, TakeSeat};
use crate::runtime::snapshot::{Access, Snapshot};

impl App {
    /// Claims the selected request, releases it, or asks whether to take it over from another
    /// operator.
    pub(super) fn claim(&mut self) -> Vec<Request> {
        let Some(held) = self.queue.selected() else {
            return Vec::new();
        };
        let seen = held.claim.as_ref().map(|claim| claim.by.clone());
        let own = seen
            .as_ref()
            .is_some_and(|by| same_name(by, &self.snapshot.operator));
        let claiming = Claiming {
            gate: held.id.clone(),
            operator: self.snapshot.operator.clone(),
            wish: if own {
                ClaimWish::Release
            } else {
                ClaimWish::Take
            },
            seen,
        };
        if self.only_looks() {
            return Vec::new();
        }
        if claiming.seen.is_some() && !own {
            let dialog = ConfirmDialog::new(claiming);
            self.layers.push(Layer::Confirm(dialog));
            return Vec::new();
        }
        vec![Request::Operate(Operate::Claim(claiming))]
    }

    /// Acknowledges the fault in the record.
    pub(super) fn know_trouble(&mut self) -> Vec<Request> {
        let Some(fault) = self.broken_record() else {
            self.say(Meaning::Text, "no chain is broken".to_owned());
            return Vec::new();
        };
        self.acknowledge(Known::Fault(fault))
    }

    /// Acknowledges the overridden denials that the header shows.
    pub(super) fn know_overruled(&mut self) -> Vec<Request> {
        let overruled = self.snapshot.acts.overruled.iter();
        let gates: Vec<_> = overruled.map(|denial| denial.gate.clone()).collect();
        if gates.is_empty() {
            self.say(Meaning::Text, "no denial was overruled".to_owned());
            return Vec::new();
        }
        self.acknowledge(Known::Overruled(gates))
    }

    fn acknowledge(&mut self, of: Known) -> Vec<Request> {
        if self.only_looks() {
            return Vec::new();
        }
        let operator = self.snapshot.operator.clone();
        let acknowledge = Acknowledge { operator, of };
        vec![Request::Operate(Operate::Acknowledge(acknowledge))]
    }

    /// Changes the operator of this console.
    pub(super) fn take_seat(&mut self, name: &str) -> Vec<Request> {
        let before = self.snapshot.operator.clone();
        match operator_name(name) {
            Err(fault) => self.say(Meaning::Error, fault.to_string()),
            Ok(name) if name == before => {
                self.say(
                    Meaning::Text,
                    format!("{} sits here already", one_line(&name)),
                );
            }
            Ok(_) if self.only_looks() => {}
            Ok(operator) => {
                let seat = TakeSeat { operator, before };
                return vec![Request::Operate(Operate::TakeSeat(seat))];
            }
        }
        Vec::new()
    }

    /// Returns true if this console is read-only, and shows a notice in that case.
    pub(super) fn only_looks(&mut self) -> bool {
        let looks = self.snapshot.access == Access::ReadOnly;
        if looks {
            self.say(Meaning::Warning, "this console is read-only".to_owned());
        }
        looks
    }

    /// Shows the result of an operator action.
    pub(super) fn on_operated(&mut self, operate: &Operate, acted: &Result<(), Refused>) {
        match acted {
            Ok(()) => self.say(Meaning::Passed, done(operate)),
            Err(refused) => self.say(Meaning::Error, format!("not recorded: {refused}")),
        }
    }

    /// Closes all dialogs if the operator changed: they belonged to the operator before. Drafts are
    /// kept.
    pub(super) fn leave_to(&mut self, before: &Snapshot) -> Vec<Request> {
        if before.operator == self.snapshot.operator {
            return Vec::new();
        }
        let mut requests: Vec<Request> = self.dismiss().into_iter().collect();
        while !self.layers.is_empty() {
            requests.extend(self.close());
        }
        requests
    }
}

fn done(operate: &Operate) -> String {
    match operate {
        Operate::Claim(claiming) => {
            let word = match claiming.wish {
                ClaimWish::Take => "claimed",
                ClaimWish::Release => "no longer claimed",
            };
            format!("{} {word}, and recorded", claiming.gate)
        }
        Operate::Acknowledge(Acknowledge { of, .. }) => match of {
            Known::Fault(_) => "acknowledged and recorded: deciding is possible again".to_owned(),
            Known::Overruled(gates) => format!("{} acknowledged and recorded", gates.len()),
        },
        Operate::TakeSeat(seat) => {
            let name = one_line(&seat.operator);
            format!("{name} sits here now, by their own word")
        }
    }
}
