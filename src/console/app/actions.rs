//! Actions of keys that no dialog consumes, and the check of every request before it leaves the console.

use super::App;
use crate::base::clock::Timestamp;
use crate::console::dialog::Layer;
use crate::console::dialog::help::HelpDialog;
use crate::console::dialog::palette::PaletteDialog;
use crate::console::dialog::quit_confirmation::QuitDialog;
use crate::console::keymap::{KeyAction, KeyScope};
use crate::console::request::ConsoleRequest;
use crate::runtime::snapshot::ConsoleAccess;

impl App {
    /// Carries out an action that has the same meaning on all screens, or passes it to the current screen.
    pub(super) fn act(&mut self, action: KeyAction, now: Timestamp) -> Vec<ConsoleRequest> {
        let scope = KeyScope::Screen(self.screen);
        match action {
            KeyAction::Show(screen) => return self.switch_screen(screen, now),
            KeyAction::Help => self.layers.push(Layer::new(HelpDialog::new(scope))),
            KeyAction::Palette => self.layers.push(Layer::new(PaletteDialog::new(scope))),
            KeyAction::Quit => return self.quit(),
            KeyAction::Restore => self.restore_dialog(),
            KeyAction::Cancel => return self.cancel(now),
            KeyAction::Redraw => return vec![ConsoleRequest::Redraw],
            KeyAction::Suspend => return vec![ConsoleRequest::Suspend],
            KeyAction::Mouse => return self.toggle_mouse(),
            KeyAction::KnowAlarms => self.acknowledge_alarms(),
            action => {
                let ((), requests) =
                    self.call_screen(|screen, context| screen.handle_action(action, now, context));
                return requests;
            }
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

    /// Last check before a request leaves. A read-only console, or one too small to show the question,
    /// never decides, no matter which dialog sent the request.
    pub(in crate::console) fn may_send(&self, request: &ConsoleRequest) -> bool {
        match request {
            ConsoleRequest::Decide(_) | ConsoleRequest::Load(_) => {
                let sound = self.decision_context().trouble.is_none();
                self.snapshot.access == ConsoleAccess::Write && sound && !self.is_too_small()
            }
            ConsoleRequest::Edit(_) | ConsoleRequest::EditFile(..) => !self.is_too_small(),
            ConsoleRequest::EditThread(_) | ConsoleRequest::ActOnThread(..) => {
                self.snapshot.access == ConsoleAccess::Write && !self.is_too_small()
            }
            ConsoleRequest::KeepDraft(..)
            | ConsoleRequest::KeepThreadDraft(..)
            | ConsoleRequest::Operate(_) => self.snapshot.access == ConsoleAccess::Write,
            ConsoleRequest::LoadSessions
            | ConsoleRequest::LoadTrail { .. }
            | ConsoleRequest::Read(_)
            | ConsoleRequest::Snapshot(..)
            | ConsoleRequest::FindEvent(..)
            | ConsoleRequest::LayOut(_)
            | ConsoleRequest::Verify(_)
            | ConsoleRequest::Explain(..)
            | ConsoleRequest::Watch(_)
            | ConsoleRequest::Shadow(_)
            | ConsoleRequest::CheckFiles(_)
            | ConsoleRequest::CheckFolder(_)
            | ConsoleRequest::Study(..)
            | ConsoleRequest::Notify(_)
            | ConsoleRequest::Copy(_)
            | ConsoleRequest::Mouse(_)
            | ConsoleRequest::Redraw
            | ConsoleRequest::Suspend
            | ConsoleRequest::Quit => true,
        }
    }
}
