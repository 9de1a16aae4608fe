//! Replies to dialogs, and the state that outlives a dialog: the minimised dialog, drafts for requests that ended before they were
//! sent, and the time each dialog was on screen.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::App;
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::console::dialog::Layer;
use crate::console::dialog::gate::{Draft, GateDialog, RecentPass, ReplyEffect, RequestLayout};
use crate::console::dialog::snapshot::{SnapshotDialog, SnapshotFollowUp, SnapshotResponse};
use crate::console::request::{ConsoleRequest, Ticket};
use crate::console::theme::{Meaning, outcome_meaning};
use crate::engine::command::{HeldOutcome, OperatorReply};
use crate::engine::held::Held;

/// Maximum number of kept drafts whose request has ended.
const MAX_LATE_DRAFTS: usize = 16;

/// State that outlives a dialog.
#[derive(Debug, Default)]
pub(crate) struct DialogHistory {
    /// The minimised dialog.
    pub(crate) minimised: Option<Box<GateDialog>>,
    /// Drafts of requests that ended before the decision was sent. If an agent makes the same request
    /// again, the operator continues from the draft.
    late_drafts: VecDeque<Draft>,
    /// Time that the dialog of a request was on screen before the operator passed it.
    viewing_times: BTreeMap<HeldRequestId, Duration>,
}

impl DialogHistory {
    /// Keeps the draft of a request that has ended.
    pub(super) fn keep_late_draft(&mut self, dialog: GateDialog) {
        if let Some(draft) = dialog.into_draft() {
            self.late_drafts.push_front(draft);
            self.late_drafts.truncate(MAX_LATE_DRAFTS);
        }
    }

    /// Returns the kept draft for exactly this request.
    pub(super) fn late_draft(&self, held: &Held) -> Option<Draft> {
        let mut late = self.late_drafts.iter();
        late.find(|draft| draft.is_for(held)).cloned()
    }
}

impl App {
    /// Iterates over all dialogs about a request, open or minimised.
    pub(super) fn dialogs(&mut self) -> impl Iterator<Item = &mut GateDialog> {
        let open = self
            .layers
            .iter_mut()
            .filter_map(Layer::get_mut::<GateDialog>);
        open.chain(self.dialog_history.minimised.as_deref_mut())
    }

    /// Requests the layout of long requests in the background, so that no key press waits for it.
    pub(super) fn request_layouts(&mut self) -> Vec<ConsoleRequest> {
        let wanted = self.dialogs().filter_map(GateDialog::take_layout_job);
        wanted.map(ConsoleRequest::LayOut).collect()
    }

    /// Takes over the layout of a long request.
    pub(super) fn on_laid_out(&mut self, mut laid: RequestLayout) {
        for dialog in self.dialogs() {
            dialog.on_laid_out(&mut laid);
        }
    }

    /// Minimises the topmost dialog. A dialog that waits for the disk takes no key, so it is never
    /// minimised.
    pub(super) fn minimise_dialog(&mut self) {
        let is_gate = |layer: &mut Layer| layer.get::<GateDialog>().is_some();
        if let Some(layer) = self.layers.pop_if(is_gate) {
            self.dialog_history.minimised = layer.into_dialog();
        }
    }

    /// Restores the minimised dialog.
    pub(super) fn restore_dialog(&mut self) {
        if let Some(mut dialog) = self.dialog_history.minimised.take() {
            dialog.on_restored();
            self.layers.push(Layer::new(*dialog));
        }
    }

    /// Returns true if the dialog of this request is minimised.
    pub(super) fn is_minimised(&self, gate: &HeldRequestId) -> bool {
        let minimised = self.dialog_history.minimised.as_ref();
        minimised.is_some_and(|dialog| dialog.gate() == gate)
    }

    /// Closes the minimised dialog and keeps its draft.
    pub(super) fn close_minimised_dialog(&mut self) -> Option<ConsoleRequest> {
        let dialog = self.dialog_history.minimised.take()?;
        self.keep_draft(*dialog)
    }

    /// Lists the recent passes by this console's operator, newest first.
    pub(super) fn recent_passes(&self) -> Vec<RecentPass> {
        let decided = self.snapshot.decided.iter();
        let own = decided.filter(|decided| {
            decided.outcome == HeldOutcome::Passed
                && decided.by.as_deref() == Some(&self.snapshot.operator)
        });
        own.map(|decided| RecentPass {
            at: decided.at,
            viewing_time: self
                .dialog_history
                .viewing_times
                .get(&decided.gate)
                .copied(),
        })
        .collect()
    }

    /// Handles the runtime's reply to a decision.
    pub(super) fn on_reply(
        &mut self,
        gate: &HeldRequestId,
        reply: OperatorReply,
    ) -> Vec<ConsoleRequest> {
        if let OperatorReply::Decided(decided) = &reply {
            let word = decided.outcome.as_str().to_uppercase();
            let text = format!("{gate} {word} and recorded {}", decided.at.time_of_day());
            self.notice = Some((outcome_meaning(decided.outcome), text));
            self.record_viewing_time(gate, decided.at);
        }
        let approved = matches!(reply, OperatorReply::Approved(_));
        if approved {
            let text = format!("{gate} approved, 1 of 2, and recorded: still held");
            self.notice = Some((Meaning::Waiting, text));
        }
        let mut layers = self.layers.iter_mut().enumerate();
        let found = layers.find_map(|(at, layer)| {
            let dialog = layer.get_mut::<GateDialog>()?;
            dialog.is_about(gate).then_some((at, dialog))
        });
        let Some((at, dialog)) = found else {
            return Vec::new();
        };
        match dialog.on_reply(gate, reply) {
            ReplyEffect::KeepOpen => Vec::new(),
            ReplyEffect::Send(request) => vec![request],
            ReplyEffect::Close => {
                let decided = dialog.decided().to_vec();
                if decided.len() > 1 {
                    let text = format!("{} requests decided and recorded", decided.len());
                    self.notice = Some((Meaning::Passed, text));
                }
                self.screens.queue.unmark(&decided);
                self.layers.truncate(at);
                if approved {
                    // The next operator who approves must type their own answers.
                    self.drafts.insert(gate.clone(), None);
                    return vec![ConsoleRequest::KeepDraft(gate.clone(), None)];
                }
                self.drafts.remove(gate);
                Vec::new()
            }
        }
    }

    fn record_viewing_time(&mut self, gate: &HeldRequestId, at: Timestamp) {
        let mut dialogs = self.dialogs();
        let dialog = dialogs.find(|dialog| dialog.gate() == gate);
        let spent = dialog.map(|dialog| dialog.viewing_time(at));
        drop(dialogs);
        let known = |gate: &HeldRequestId| {
            self.snapshot
                .decided
                .iter()
                .any(|decided| decided.gate == *gate)
        };
        self.dialog_history
            .viewing_times
            .retain(|gate, _| known(gate));
        if let Some(spent) = spent {
            self.dialog_history
                .viewing_times
                .insert(gate.clone(), spent);
        }
    }

    /// Takes over the text from an external editor, or the reason why there is none.
    pub(super) fn on_edited(
        &mut self,
        gate: &HeldRequestId,
        edited: Result<String, String>,
    ) -> Vec<ConsoleRequest> {
        let dialog = self.dialogs().find(|dialog| dialog.gate() == gate);
        match (dialog, edited) {
            (Some(dialog), edited) => dialog.on_edited(edited),
            (None, Err(reason)) => self.notice = Some((Meaning::Error, reason)),
            (None, Ok(_)) => {}
        }
        self.save_open_draft()
            .into_iter()
            .filter(|request| self.may_send(request))
            .collect()
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
