//! Responses about snapshot files.

use super::App;
use crate::console::dialog::snapshot::{SnapshotDialog, SnapshotFollowUp, SnapshotResponse};
use crate::console::layer::Layer;
use crate::console::request::{ConsoleRequest, Ticket};

impl App {
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
