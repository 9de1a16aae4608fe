//! Actions of keys that no dialog consumes.

use super::{App, Tab};
use crate::base::clock::Timestamp;
use crate::console::dialog::gate::Entry;
use crate::console::dialog::help::HelpDialog;
use crate::console::dialog::palette::PaletteDialog;
use crate::console::dialog::quit::QuitDialog;
use crate::console::keymap::Action;
use crate::console::layer::Layer;
use crate::console::request::Request;

impl App {
    pub(super) fn act(&mut self, action: Action, now: Timestamp) -> Vec<Request> {
        match action {
            Action::ShowQueue => return self.show(Tab::Queue, now),
            Action::ShowTrace => return self.show(Tab::Trace, now),
            Action::ShowThreads => return self.show(Tab::Threads, now),
            Action::ShowAtlas => return self.show(Tab::Atlas, now),
            Action::Explain => return self.explain(),
            Action::WhatIf => return self.what_if(""),
            Action::Help => {
                let help = HelpDialog::new(self.tab.scope());
                self.layers.push(Layer::Help(help));
            }
            Action::Quit => return self.quit(),
            Action::Open if self.tab == Tab::Queue => return self.open(Entry::Answer),
            Action::Deny => return self.open(Entry::Deny),
            Action::Restore => self.bring_back(),
            Action::Cancel => return self.cancel(now),
            Action::Redraw => return vec![Request::Redraw],
            Action::Suspend => return vec![Request::Suspend],
            Action::Merge => self.queue.merge(),
            Action::Queue(key) => return self.act_queue(key),
            Action::Steward(key) => return self.act_steward(key, now),
            Action::Thread(key) => return self.act_thread(key),
            Action::Palette => {
                let palette = PaletteDialog::new(self.tab.scope());
                self.layers.push(Layer::Palette(palette));
            }
            Action::Mouse => return self.toggle_mouse(),
            Action::KnowAlarms => self.know_alarms(),
            Action::Back
            | Action::Up
            | Action::Down
            | Action::First
            | Action::Last
            | Action::PageUp
            | Action::PageDown
            | Action::Next
            | Action::Previous
            | Action::Open
            | Action::Verify
            | Action::Reload
            | Action::Review
            | Action::SwitchPane
            | Action::Choose
            | Action::Undo
            | Action::Redo
            | Action::EditOutside
            | Action::Skeleton
            | Action::Minimise
            | Action::SearchRequest
            | Action::NextMatch
            | Action::PreviousMatch
            | Action::Browse(_)
            | Action::NextProblem
            | Action::PreviousProblem
            | Action::NextSession
            | Action::PreviousSession
            | Action::Snapshot(_)
            | Action::Press => match self.tab {
                Tab::Queue => return self.move_in_queue(action),
                Tab::Trace => return self.trace.act(action, now),
                Tab::Threads => return self.move_in_threads(action),
                Tab::Atlas => return self.atlases.act(action, &self.snapshot, now),
            },
        }
        Vec::new()
    }

    /// Quits, or asks for confirmation if requests are held.
    fn quit(&mut self) -> Vec<Request> {
        let held = self.snapshot.held.len();
        if held == 0 {
            return vec![Request::Quit];
        }
        self.layers.push(Layer::Quit(QuitDialog::new(held)));
        Vec::new()
    }

    fn move_in_queue(&mut self, action: Action) -> Vec<Request> {
        if action == Action::Back {
            self.queue.back();
        }
        match action.motion() {
            Some(motion) => {
                self.queue.go(motion);
                self.ask_last()
            }
            None => Vec::new(),
        }
    }
}
