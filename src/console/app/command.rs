//! Commands of the palette.

use super::App;
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::base::text::one_line;
use crate::console::dialog::gate::DialogEntry;
use crate::console::dialog::palette::PaletteCommand;
use crate::console::keymap::KeyAction;
use crate::console::request::ConsoleRequest;
use crate::console::screen::ScreenId;
use crate::console::screen::queue::overrules;
use crate::console::theme::Meaning;

impl App {
    /// Runs a command of the palette. None of them decides a request.
    pub(super) fn run_command(
        &mut self,
        command: PaletteCommand,
        now: Timestamp,
    ) -> Vec<ConsoleRequest> {
        match command {
            PaletteCommand::Act(action) => self.act(action, now),
            PaletteCommand::Quit => self.act(KeyAction::Quit, now),
            PaletteCommand::Override(gate) => self.open_override(&gate),
            PaletteCommand::AckOverride => self.acknowledge_overrides(),
            PaletteCommand::AckBrokenChain => self.acknowledge_broken_chain(),
            PaletteCommand::Operator(name) => self.change_operator(&name),
            PaletteCommand::Seek(number) => {
                self.screen = ScreenId::Trace;
                match self.screens.trace.seek(number) {
                    Ok(requests) => requests,
                    Err(problem) => {
                        self.show_notice(Meaning::Error, problem);
                        self.screens.trace.reload()
                    }
                }
            }
            PaletteCommand::HandOver(session) => self.hand_over_thread(session),
            PaletteCommand::Snapshot(path) => {
                let ((), requests) =
                    self.call_with_context(ScreenId::Threads, |screens, context| {
                        screens.threads.open_snapshot(&path, context);
                    });
                requests
            }
            PaletteCommand::Filter(text) => {
                self.screen = ScreenId::Queue;
                if let Err(problem) = self.screens.queue.filter_by(&text) {
                    self.show_notice(Meaning::Error, format!("`{text}`: {problem}"));
                }
                self.request_latest_events()
            }
        }
    }

    /// Opens a request so that the operator can override the denial behind it.
    fn open_override(&mut self, gate: &HeldRequestId) -> Vec<ConsoleRequest> {
        let Some(held) = self.screens.queue.get(gate).cloned() else {
            self.show_notice(Meaning::Error, format!("{gate} is not held"));
            return Vec::new();
        };
        if !overrules(&held) {
            let text = format!("no policy denies {gate}: press Enter in the queue");
            self.show_notice(Meaning::Error, text);
            return Vec::new();
        }
        self.open_held(&held, DialogEntry::Override)
    }

    /// Shows a text when the console opens.
    pub(in crate::console) fn show_greeting(&mut self, text: &str) {
        self.show_notice(Meaning::Text, one_line(text));
    }

    pub(super) fn show_notice(&mut self, meaning: Meaning, text: String) {
        self.notice = Some((meaning, text));
    }
}
