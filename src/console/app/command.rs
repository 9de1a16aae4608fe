//! Commands of the palette.

use super::{App, Tab};
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::base::text::one_line;
use crate::console::dialog::gate::Entry;
use crate::console::dialog::palette::Command;
use crate::console::keymap::Action;
use crate::console::request::Request;
use crate::console::screen::queue::overrules;
use crate::console::theme::Meaning;

impl App {
    /// Runs a command of the palette. None of them decides a request.
    pub(super) fn run(&mut self, command: Command, now: Timestamp) -> Vec<Request> {
        match command {
            Command::Act(action) => self.act(action, now),
            Command::Quit => self.act(Action::Quit, now),
            Command::Override(gate) => self.overrule(&gate),
            Command::AckOverride => self.know_overruled(),
            Command::AckBrokenChain => self.know_trouble(),
            Command::Operator(name) => self.take_seat(&name),
            Command::Seek(number) => {
                self.tab = Tab::Trace;
                match self.trace.seek(number) {
                    Ok(requests) => requests,
                    Err(problem) => {
                        self.say(Meaning::Error, problem);
                        self.trace.reload()
                    }
                }
            }
            Command::HandOver(session) => self.hand_over_thread(session),
            Command::Snapshot(path) => self.open_snapshot(&path),
            Command::Filter(text) => {
                self.tab = Tab::Queue;
                if let Err(problem) = self.queue.filter_by(&text) {
                    self.say(Meaning::Error, format!("`{text}`: {problem}"));
                }
                self.ask_last()
            }
        }
    }

    /// Opens a request so that the operator can override the denial behind it.
    fn overrule(&mut self, gate: &GateId) -> Vec<Request> {
        let Some(held) = self.queue.get(gate).cloned() else {
            self.say(Meaning::Error, format!("{gate} is not held"));
            return Vec::new();
        };
        if !overrules(&held) {
            let text = format!("{gate} overrules nothing: Enter in the queue opens it");
            self.say(Meaning::Error, text);
            return Vec::new();
        }
        self.open_held(&held, Entry::Override)
    }

    /// Shows a text when the console opens.
    pub(in crate::console) fn greet(&mut self, text: &str) {
        self.say(Meaning::Text, one_line(text));
    }

    pub(super) fn say(&mut self, meaning: Meaning, text: String) {
        self.notice = Some((meaning, text));
    }
}
