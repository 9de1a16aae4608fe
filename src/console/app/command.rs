//! Commands of the palette.

use super::{App, Tab};
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::base::text::one_line;
use crate::console::dialog::gate::DialogEntry;
use crate::console::dialog::palette::PaletteCommand;
use crate::console::keymap::KeyAction;
use crate::console::request::ConsoleRequest;
use crate::console::screen::queue::overrules;
use crate::console::theme::Meaning;

impl App {
    /// Runs a command of the palette. None of them decides a request.
    pub(super) fn run(&mut self, command: PaletteCommand, now: Timestamp) -> Vec<ConsoleRequest> {
        match command {
            PaletteCommand::Act(action) => self.act(action, now),
            PaletteCommand::Quit => self.act(KeyAction::Quit, now),
            PaletteCommand::Override(gate) => self.overrule(&gate),
            PaletteCommand::AckOverride => self.know_overruled(),
            PaletteCommand::AckBrokenChain => self.acknowledge_broken_chain(),
            PaletteCommand::Operator(name) => self.take_seat(&name),
            PaletteCommand::Seek(number) => {
                self.tab = Tab::Trace;
                match self.trace.seek(number) {
                    Ok(requests) => requests,
                    Err(problem) => {
                        self.say(Meaning::Error, problem);
                        self.trace.reload()
                    }
                }
            }
            PaletteCommand::HandOver(session) => self.hand_over_thread(session),
            PaletteCommand::Snapshot(path) => self.open_snapshot(&path),
            PaletteCommand::Filter(text) => {
                self.tab = Tab::Queue;
                if let Err(problem) = self.queue.filter_by(&text) {
                    self.say(Meaning::Error, format!("`{text}`: {problem}"));
                }
                self.ask_last()
            }
        }
    }

    /// Opens a request so that the operator can override the denial behind it.
    fn overrule(&mut self, gate: &GateId) -> Vec<ConsoleRequest> {
        let Some(held) = self.queue.get(gate).cloned() else {
            self.say(Meaning::Error, format!("{gate} is not held"));
            return Vec::new();
        };
        if !overrules(&held) {
            let text = format!("{gate} overrules nothing: Enter in the queue opens it");
            self.say(Meaning::Error, text);
            return Vec::new();
        }
        self.open_held(&held, DialogEntry::Override)
    }

    /// Shows a text when the console opens.
    pub(in crate::console) fn greet(&mut self, text: &str) {
        self.say(Meaning::Text, one_line(text));
    }

    pub(super) fn say(&mut self, meaning: Meaning, text: String) {
        self.notice = Some((meaning, text));
    }
}
