//! One of several options: looked through, filtered by typing, chosen by a key of its own.
//!
//! Moving about chooses nothing. What is chosen is an option and nothing else, and stays visible as such.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use serde_json::Value;

use crate::console::keymap::{Action, Scope, lookup};
use crate::console::line::{LineEdit, Typed};

/// A list to choose from. The options themselves are the question's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picker {
    /// What an option must contain to be listed.
    filter: LineEdit,
    /// The row the cursor is on, among those listed.
    at: usize,
    /// The chosen option, by its place in the whole list.
    chosen: Option<usize>,
}

impl Picker {
    /// A key that no binding of the dialog took.
    pub(crate) fn on_key(&mut self, key: KeyEvent, options: &[String]) {
        let last = self.listed(options).len().saturating_sub(1);
        let action = lookup(Scope::Pick, key);
        if action == Some(Action::Choose) {
            self.choose(key, options);
            return;
        }
        match key.code {
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(last),
            _ => {
                if self.filter.on_key(key) == Typed::Changed {
                    self.at = 0;
                }
            }
        }
    }

    /// Chooses the option under the cursor, or the one whose number was pressed. While a filter is
    /// typed, numbers and spaces belong to it.
    fn choose(&mut self, key: KeyEvent, options: &[String]) {
        match key.code {
            KeyCode::Char(c) if !self.filter.text().is_empty() => self.narrow(&c.to_string()),
            KeyCode::Char(c) if c.is_ascii_digit() => {
                let number = c.to_digit(10).and_then(|it| usize::try_from(it).ok());
                let at = number.and_then(|number| number.checked_sub(1));
                if let Some(at) = at.filter(|at| *at < options.len()) {
                    self.chosen = Some(at);
                    self.at = at;
                }
            }
            _ => self.chosen = self.listed(options).get(self.at).copied().or(self.chosen),
        }
    }

    /// Filters by more.
    pub(crate) fn narrow(&mut self, text: &str) {
        self.filter.paste(text);
        self.at = 0;
    }

    /// Lists everything again; tells whether that changed anything.
    pub(crate) fn widen(&mut self) -> Widened {
        self.at = 0;
        if self.filter.text().is_empty() {
            return Widened::No;
        }
        self.filter = LineEdit::default();
        Widened::Yes
    }

    /// The options that are listed, by their place in the whole list.
    pub(crate) fn listed(&self, options: &[String]) -> Vec<usize> {
        let filter = self.filter.text().to_lowercase();
        let all = options.iter().enumerate();
        all.filter(|(_, option)| option.to_lowercase().contains(&filter))
            .map(|(at, _)| at)
            .collect()
    }

    /// What is filtered by.
    pub(crate) fn filter(&self) -> &str {
        self.filter.text()
    }

    /// The row the cursor is on.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The chosen option.
    pub(crate) fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    /// What was answered, exactly as the option is written.
    pub(crate) fn raw(&self, options: &[String]) -> Value {
        let chosen = self.chosen.and_then(|at| options.get(at));
        chosen.map_or(Value::Null, |option| Value::from(option.as_str()))
    }

    /// Takes up what was kept. A text that is no option was typed where options could be typed: it
    /// filters.
    pub(crate) fn resume(&mut self, text: &str, options: &[String]) {
        let exactly = options.iter().position(|option| option == text);
        let said = text.trim().to_lowercase();
        let nearly = || options.iter().position(|it| it.to_lowercase() == said);
        match exactly.or_else(nearly) {
            Some(at) => {
                self.chosen = Some(at);
                self.at = at;
            }
            None => self.narrow(text),
        }
    }
}

/// Whether a filter was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Widened {
    /// It was.
    Yes,
    /// There was none.
    No,
}
