//! Explanations, and the Atlas screen.

use super::{App, Tab};
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::base::text::one_line;
use crate::console::dialog::explanation::ExplainDialog;
use crate::console::dialog::what_if::WhatIfDialog;
use crate::console::layer::{ExplainResult, Layer};
use crate::console::request::{ConsoleRequest, Ticket};
use crate::console::screen::trace::HELD_NOTE;
use crate::console::theme::Meaning;
use crate::engine::explanation::ExplainQuestion;
use crate::runtime::WatchSetting;

impl App {
    /// Switches to a screen. Evaluations are watched only while the Atlas screen is shown.
    pub(super) fn switch_tab(&mut self, tab: Tab, now: Timestamp) -> Vec<ConsoleRequest> {
        let left = std::mem::replace(&mut self.tab, tab);
        let mut requests = Vec::new();
        if left == Tab::Atlas && tab != Tab::Atlas {
            requests.push(ConsoleRequest::Watch(WatchSetting::Off));
        }
        match tab {
            Tab::Queue => {}
            Tab::Threads => self.threads.enter(&self.snapshot),
            Tab::Trace => requests.extend(self.trace.reload()),
            Tab::Atlas => requests.extend(self.atlases.enter(&self.snapshot, now)),
        }
        requests
    }

    /// Passes a newer snapshot to the Atlas screen. Two watch requests may overtake each other, so the
    /// request is repeated until the snapshot agrees with it.
    pub(super) fn sync_atlases(&mut self) -> Vec<ConsoleRequest> {
        self.atlases.sync(&self.snapshot);
        let wanted = match self.tab {
            Tab::Queue | Tab::Trace | Tab::Threads => WatchSetting::Off,
            Tab::Atlas => WatchSetting::On,
        };
        if self.snapshot.watched.watch == wanted {
            Vec::new()
        } else {
            vec![ConsoleRequest::Watch(wanted)]
        }
    }

    /// Explains the selected item of the screen.
    pub(super) fn explain(&mut self) -> Vec<ConsoleRequest> {
        match self.tab {
            Tab::Queue => {
                let held = self.queue.selected();
                let gate = held.map(|held| held.id.clone());
                gate.map(|gate| self.explain_held(&gate))
                    .unwrap_or_default()
            }
            Tab::Trace => match self.trace.why(&self.snapshot) {
                Ok(why) => self.ask_why(why.question, &why.title, &why.note),
                Err(what) => {
                    self.notice = Some((Meaning::Hint, what));
                    Vec::new()
                }
            },
            Tab::Threads => Vec::new(),
            Tab::Atlas => {
                if let Some(action) = self.atlases.selected_action(&self.snapshot) {
                    let action = action.to_owned();
                    return self.open_what_if(&action);
                }
                if let Some(seen) = self.atlases.selected_evaluation(&self.snapshot) {
                    let title = format!("{} {}", seen.at.time_of_day(), seen.account.subject);
                    let note = format!("{}, session {}, at that time", seen.agent, seen.session);
                    let dialog = ExplainDialog::of(seen.account.clone(), &title, &note);
                    self.layers.push(Layer::new(dialog));
                }
                Vec::new()
            }
        }
    }

    /// Explains a held request.
    pub(super) fn explain_held(&mut self, gate: &HeldRequestId) -> Vec<ConsoleRequest> {
        let mut held = self.snapshot.held.iter();
        let action = held.find(|held| held.id == *gate).map(|held| held.action());
        let title = format!("{gate} {}", one_line(action.unwrap_or_default()));
        self.ask_why(ExplainQuestion::Held(gate.clone()), &title, HELD_NOTE)
    }

    fn ask_why(
        &mut self,
        question: ExplainQuestion,
        title: &str,
        note: &str,
    ) -> Vec<ConsoleRequest> {
        self.last_dialog_number += 1;
        let dialog = ExplainDialog::new(self.last_dialog_number, title, note);
        let ticket = dialog.ticket();
        self.layers.push(Layer::new(dialog));
        vec![ConsoleRequest::Explain(ticket, vec![question])]
    }

    /// Opens the form that evaluates a hypothetical request.
    pub(super) fn open_what_if(&mut self, action: &str) -> Vec<ConsoleRequest> {
        self.last_dialog_number += 1;
        let sessions = &self.snapshot.sessions;
        let session = self.atlases.selected_session();
        let mut dialog = WhatIfDialog::new(self.last_dialog_number, sessions, session, action);
        let request = dialog.ask();
        self.layers.push(Layer::new(dialog));
        request.into_iter().collect()
    }

    /// Passes an explanation to the dialog that asked for it.
    pub(super) fn on_explained(
        &mut self,
        ticket: Ticket,
        explained: &[ExplainResult],
    ) -> Vec<ConsoleRequest> {
        let layers = self.layers.iter_mut();
        layers
            .flat_map(|layer| layer.on_explained(ticket, explained))
            .collect()
    }
}
