//! Commands of the palette, and what is acknowledged by them.

use super::{App, Tab};
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::console::dialog::gate::Entry;
use crate::console::dialog::palette::Command;
use crate::console::keymap::Action;
use crate::console::request::Request;
use crate::console::screen::queue::overrules;
use crate::console::theme::Meaning;

/// What the operator said they know.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The trouble with the record that deciding goes on in spite of.
    pub(super) trouble: Option<String>,
    /// Denials that were overruled here, and not acknowledged.
    pub(super) overruled: Vec<GateId>,
}

impl App {
    /// Does what the palette was asked for. Nothing is decided here.
    pub(super) fn run(&mut self, command: Command, now: Timestamp) -> Vec<Request> {
        match command {
            Command::Act(action) => return self.act(action, now),
            Command::Quit => return self.act(Action::Quit, now),
            Command::Override(gate) => return self.overrule(&gate),
            Command::AckOverride => {
                let count = self.known.overruled.len();
                self.known.overruled.clear();
                self.say(Meaning::Text, format!("{count} acknowledged"));
            }
            Command::AckBrokenChain => self.know_trouble(),
            Command::Seek(number) => {
                self.tab = Tab::Trace;
                return match self.trace.seek(number) {
                    Ok(requests) => requests,
                    Err(problem) => {
                        self.say(Meaning::Error, problem);
                        self.trace.reload()
                    }
                };
            }
            Command::Filter(text) => {
                self.tab = Tab::Queue;
                if let Err(problem) = self.queue.filter_by(&text) {
                    self.say(Meaning::Error, format!("`{text}`: {problem}"));
                }
                return self.ask_last();
            }
        }
        Vec::new()
    }

    /// Opens a request so that the denial behind it can be overruled.
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

    /// The operator knows what is wrong with the record.
    fn know_trouble(&mut self) {
        match self.broken_record() {
            Some(text) => {
                self.known.trouble = Some(text);
                self.say(
                    Meaning::Warning,
                    "acknowledged: deciding is possible again".to_owned(),
                );
                self.tell_around();
            }
            None => self.say(Meaning::Text, "no chain is broken".to_owned()),
        }
    }

    /// Notes that a denial was overruled.
    pub(super) fn note_overruled(&mut self, gate: &GateId) {
        if !self.known.overruled.contains(gate) {
            self.known.overruled.push(gate.clone());
        }
    }

    fn say(&mut self, meaning: Meaning, text: String) {
        self.notice = Some((meaning, text));
    }
}
