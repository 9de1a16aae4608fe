//! Calls of screens, and the changes that they request.

use std::sync::Arc;

use super::App;
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::base::text::one_line;
use crate::console::dialog::gate::GateDialog;
use crate::console::dialog::{ExplainResult, Layer};
use crate::console::request::{ConsoleRequest, Ticket};
use crate::console::screen::trace::HELD_NOTE;
use crate::console::screen::{Screen, ScreenChange, ScreenContext, ScreenId, Screens};
use crate::engine::explanation::ExplainQuestion;

impl App {
    /// Calls the current screen and applies the changes that it requests.
    pub(super) fn call_screen<R>(
        &mut self,
        call: impl FnOnce(&mut dyn Screen, &mut ScreenContext) -> R,
    ) -> (R, Vec<ConsoleRequest>) {
        let current = self.screen;
        self.call_with_context(current, |screens, context| {
            call(screens.get_mut(current), context)
        })
    }

    /// Calls a function with the screens, in the context of one of them, and applies the requested changes.
    pub(super) fn call_with_context<R>(
        &mut self,
        called: ScreenId,
        call: impl FnOnce(&mut Screens, &mut ScreenContext) -> R,
    ) -> (R, Vec<ConsoleRequest>) {
        let (result, changes) = self.collect_changes(called, call);
        (result, self.apply_screen_changes(changes))
    }

    /// Calls every screen, and returns the changes that they request.
    pub(super) fn call_screens(
        &mut self,
        mut call: impl FnMut(&mut dyn Screen, &mut ScreenContext),
    ) -> Vec<ScreenChange> {
        let mut changes = Vec::new();
        for id in ScreenId::ALL {
            let ((), requested) = self.collect_changes(*id, |screens, context| {
                call(screens.get_mut(*id), context);
            });
            changes.extend(requested);
        }
        changes
    }

    fn collect_changes<R>(
        &mut self,
        called: ScreenId,
        call: impl FnOnce(&mut Screens, &mut ScreenContext) -> R,
    ) -> (R, Vec<ScreenChange>) {
        let snapshot = Arc::clone(&self.snapshot);
        let visibility = self.visibility(called);
        let trouble = self.unacknowledged_trouble();
        let numbers = &mut self.last_dialog_number;
        let mut context = ScreenContext::new(&snapshot, visibility, trouble, numbers);
        let result = call(&mut self.screens, &mut context);
        (result, context.into_changes())
    }

    /// Applies the changes that screens requested, in order.
    pub(super) fn apply_screen_changes(
        &mut self,
        changes: Vec<ScreenChange>,
    ) -> Vec<ConsoleRequest> {
        let mut requests = Vec::new();
        for change in changes {
            match change {
                ScreenChange::Send(request) => requests.push(request),
                ScreenChange::ShowNotice(meaning, text) => self.show_notice(meaning, text),
                ScreenChange::Open(layer) => self.layers.push(layer),
                ScreenChange::Decide(held, entry) => requests.extend(self.open_held(&held, entry)),
                ScreenChange::DecideBatch(members) => {
                    requests.extend(self.close_minimised_dialog());
                    let dialog = GateDialog::batch(members, self.decision_context());
                    self.layers.extend(dialog.map(Layer::new));
                }
                ScreenChange::ShowEvent(session, sequence) => {
                    self.screen = ScreenId::Trace;
                    requests.extend(self.screens.trace.show_event(&session, sequence));
                }
                ScreenChange::NotifyArrivals(arrivals) => {
                    requests.push(self.notify_arrivals(&arrivals));
                }
            }
        }
        requests
    }

    /// Switches to a screen.
    pub(super) fn switch_screen(&mut self, to: ScreenId, now: Timestamp) -> Vec<ConsoleRequest> {
        let left = std::mem::replace(&mut self.screen, to);
        let mut requests = Vec::new();
        if left != to {
            let ((), sent) = self.call_with_context(left, |screens, context| {
                screens.get_mut(left).on_leave(context);
            });
            requests.extend(sent);
        }
        let ((), sent) = self.call_screen(|screen, context| screen.on_enter(now, context));
        requests.extend(sent);
        requests
    }

    /// Requests the latest events of the request that the queue selects, if the queue is shown.
    pub(super) fn request_latest_events(&mut self) -> Vec<ConsoleRequest> {
        let ((), requests) = self.call_with_context(ScreenId::Queue, |screens, context| {
            screens.queue.request_latest_events(context);
        });
        requests
    }

    /// Explains a held request.
    pub(super) fn explain_held(&mut self, gate: &HeldRequestId) -> Vec<ConsoleRequest> {
        let mut held = self.snapshot.held.iter();
        let action = held.find(|held| held.id == *gate).map(|held| held.action());
        let title = format!("{gate} {}", one_line(action.unwrap_or_default()));
        let question = ExplainQuestion::Held(gate.clone());
        let ((), requests) =
            self.call_screen(|_, context| context.explain(question, &title, HELD_NOTE));
        requests
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
