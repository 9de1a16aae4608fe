//! Actions of keys that no dialog consumes.

use super::App;
use crate::base::clock::Timestamp;
use crate::console::dialog::help::HelpDialog;
use crate::console::dialog::palette::PaletteDialog;
use crate::console::dialog::quit_confirmation::QuitDialog;
use crate::console::keymap::{KeyAction, KeyScope};
use crate::console::layer::Layer;
use crate::console::request::ConsoleRequest;

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
}
