//! Actions of keys that no dialog consumes.

use super::{App, Tab};
use crate::base::clock::Timestamp;
use crate::console::dialog::gate::DialogEntry;
use crate::console::dialog::help::HelpDialog;
use crate::console::dialog::palette::PaletteDialog;
use crate::console::dialog::quit_confirmation::QuitDialog;
use crate::console::keymap::KeyAction;
use crate::console::layer::Layer;
use crate::console::request::ConsoleRequest;

impl App {
    pub(super) fn act(&mut self, action: KeyAction, now: Timestamp) -> Vec<ConsoleRequest> {
        match action {
            KeyAction::ShowQueue => return self.switch_tab(Tab::Queue, now),
            KeyAction::ShowTrace => return self.switch_tab(Tab::Trace, now),
            KeyAction::ShowThreads => return self.switch_tab(Tab::Threads, now),
            KeyAction::ShowAtlas => return self.switch_tab(Tab::Atlas, now),
            KeyAction::Explain => return self.explain(),
            KeyAction::WhatIf => return self.open_what_if(""),
            KeyAction::Help => {
                let help = HelpDialog::new(self.tab.scope());
                self.layers.push(Layer::new(help));
            }
            KeyAction::Quit => return self.quit(),
            KeyAction::Open if self.tab == Tab::Queue => {
                return self.open_selected(DialogEntry::Answer);
            }
            KeyAction::Deny => return self.open_selected(DialogEntry::Deny),
            KeyAction::Restore => self.restore_dialog(),
            KeyAction::Cancel => return self.cancel(now),
            KeyAction::Redraw => return vec![ConsoleRequest::Redraw],
            KeyAction::Suspend => return vec![ConsoleRequest::Suspend],
            KeyAction::Merge => self.queue.merge(),
            KeyAction::Queue(key) => return self.act_queue(key),
            KeyAction::Steward(key) => return self.act_steward(key, now),
            KeyAction::Thread(key) => return self.act_thread(key),
            KeyAction::Palette => {
                let palette = PaletteDialog::new(self.tab.scope());
                self.layers.push(Layer::new(palette));
            }
            KeyAction::Mouse => return self.toggle_mouse(),
            KeyAction::KnowAlarms => self.acknowledge_alarms(),
            KeyAction::Back
            | KeyAction::Up
            | KeyAction::Down
            | KeyAction::First
            | KeyAction::Last
            | KeyAction::PageUp
            | KeyAction::PageDown
            | KeyAction::Next
            | KeyAction::Previous
            | KeyAction::Open
            | KeyAction::Verify
            | KeyAction::Reload
            | KeyAction::Review
            | KeyAction::SwitchPane
            | KeyAction::Choose
            | KeyAction::Undo
            | KeyAction::Redo
            | KeyAction::EditOutside
            | KeyAction::Skeleton
            | KeyAction::Minimise
            | KeyAction::SearchRequest
            | KeyAction::NextMatch
            | KeyAction::PreviousMatch
            | KeyAction::Browse(_)
            | KeyAction::NextProblem
            | KeyAction::PreviousProblem
            | KeyAction::NextSession
            | KeyAction::PreviousSession
            | KeyAction::Snapshot(_)
            | KeyAction::Press => match self.tab {
                Tab::Queue => return self.move_in_queue(action),
                Tab::Trace => return self.trace.act(action, now),
                Tab::Threads => return self.move_in_threads(action),
                Tab::Atlas => return self.atlases.handle_action(action, &self.snapshot, now),
            },
        }
        Vec::new()
    }

    /// Quits, or asks for confirmation if requests are held.
    fn quit(&mut self) -> Vec<ConsoleRequest> {
        let held = self.snapshot.held.len();
        if held == 0 {
            return vec![ConsoleRequest::Quit];
        }
        self.layers.push(Layer::new(QuitDialog::new(held)));
        Vec::new()
    }

    fn move_in_queue(&mut self, action: KeyAction) -> Vec<ConsoleRequest> {
        if action == KeyAction::Back {
            self.queue.back();
        }
        match action.motion() {
            Some(motion) => {
                self.queue.go(motion);
                self.request_last_event()
            }
            None => Vec::new(),
        }
    }
}
