//! Snapshot files: opened from the threads screen or the palette, and written from there.

use std::path::PathBuf;

use super::App;
use crate::base::id::SessionId;
use crate::console::dialog::snapshot::{SnapshotDialog, SnapshotFollowUp, SnapshotResponse};
use crate::console::layer::Layer;
use crate::console::request::{ConsoleRequest, Ticket};
use crate::console::theme::Meaning;
use crate::memento::ExternalName;

impl App {
    /// Opens a snapshot file, or asks for its path.
    pub(super) fn open_snapshot(&mut self, path: &str) -> Vec<ConsoleRequest> {
        self.last_dialog_number += 1;
        let mut dialog = SnapshotDialog::new(self.last_dialog_number, self.chosen_session());
        let path = path.trim();
        let asked = (!path.is_empty()).then(|| dialog.open(PathBuf::from(path)));
        self.layers.push(Layer::new(dialog));
        asked.into_iter().collect()
    }

    /// Asks for the path to write a snapshot of the selected thread's session to.
    pub(super) fn write_snapshot(&mut self) {
        let Some(of) = self.chosen_session() else {
            self.show_notice(Meaning::Hint, "no thread to write".to_owned());
            return;
        };
        self.last_dialog_number += 1;
        let dialog = SnapshotDialog::to_write(self.last_dialog_number, of);
        self.layers.push(Layer::new(dialog));
    }

    fn chosen_session(&self) -> Option<(ExternalName, SessionId)> {
        let thread = self.threads.chosen(&self.snapshot)?;
        Some((thread.id.clone(), thread.session.clone()))
    }

    /// Passes a response about a snapshot file to its dialog. A response that comes too late is
    /// dropped.
    pub(super) fn on_snapshot_response(
        &mut self,
        ticket: Ticket,
        response: SnapshotResponse,
    ) -> Vec<ConsoleRequest> {
        let top = self.layers.len().saturating_sub(1);
        let mut layers = self.layers.iter_mut().enumerate();
        let found = layers.find_map(|(at, layer)| {
            let dialog = layer.get_mut::<SnapshotDialog>()?;
            dialog.waits_for(ticket).then_some((at, dialog))
        });
        let Some((at, dialog)) = found else {
            return Vec::new();
        };
        match dialog.on_response(response) {
            SnapshotFollowUp::Open(request) => return vec![request],
            // No dialog opens over another one that the operator is looking at.
            SnapshotFollowUp::Ask(question) if at == top => {
                self.layers.push(Layer::new(*question));
            }
            SnapshotFollowUp::Ask(_) | SnapshotFollowUp::Nothing => {}
        }
        Vec::new()
    }
}
