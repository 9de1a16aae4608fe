//! Choice of one option from a list: browsed with the arrows, filtered by typing, chosen by its own
//! key.
//!
//! Moving the cursor chooses nothing. The answer is always one of the options, and the list shows
//! which.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use serde_json::Value;

use crate::console::keymap::{KeyAction, KeyScope, find_action};
use crate::console::line_edit::{InputChange, LineEdit};

/// State of a list to choose from. The question owns the options.
#[derive(Clone, Debug, Default)]
pub(crate) struct OptionPicker {
    /// Text that an option must contain to be listed.
    filter: LineEdit,
    /// Row of the cursor in the filtered list.
    at: usize,
    /// Index of the chosen option in the whole list.
    chosen: Option<usize>,
}

impl OptionPicker {
    /// Handles a key that is not bound in the dialog.
    pub(crate) fn on_key(&mut self, key: KeyEvent, options: &[String]) {
        let last = self.listed(options).len().saturating_sub(1);
        let action = find_action(KeyScope::Pick, key);
        if action == Some(KeyAction::Choose) {
            self.choose(key, options);
            return;
        }
        match key.code {
            KeyCode::Up => self.at = self.at.saturating_sub(1),
            KeyCode::Down => self.at = (self.at + 1).min(last),
            _ => {
                if self.filter.on_key(key) == InputChange::Changed {
                    self.at = 0;
                }
            }
        }
    }

    /// Chooses the option under the cursor, or the option of the number that was pressed. While a filter is
    /// typed, digits and spaces go to the filter.
    fn choose(&mut self, key: KeyEvent, options: &[String]) {
        match key.code {
            KeyCode::Char(c) if !self.filter.text().is_empty() => {
                self.extend_filter(&c.to_string());
            }
            KeyCode::Char(c) if c.is_ascii_digit() => {
                let number = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                let at = number.and_then(|number| number.checked_sub(1));
                if let Some(at) = at.filter(|at| *at < options.len()) {
                    self.chosen = Some(at);
                    self.at = at;
                }
            }
            _ => self.chosen = self.listed(options).get(self.at).copied().or(self.chosen),
        }
    }

    /// Adds text to the filter.
    pub(crate) fn extend_filter(&mut self, text: &str) {
        self.filter.paste(text);
        self.at = 0;
    }

    /// Clears the filter. Returns whether there was one.
    pub(crate) fn clear_filter(&mut self) -> FilterCleared {
        self.at = 0;
        if self.filter.text().is_empty() {
            return FilterCleared::No;
        }
        self.filter = LineEdit::default();
        FilterCleared::Yes
    }

    /// Returns the listed options, as indexes in the whole list.
    pub(crate) fn listed(&self, options: &[String]) -> Vec<usize> {
        let filter = self.filter.text().to_lowercase();
        let all = options.iter().enumerate();
        all.filter(|(_, option)| option.to_lowercase().contains(&filter))
            .map(|(at, _)| at)
            .collect()
    }

    /// Returns the filter text.
    pub(crate) fn filter(&self) -> &str {
        self.filter.text()
    }

    /// Returns the row of the cursor.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the index of the chosen option.
    pub(crate) fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    /// Returns the answer, exactly as the option is written.
    pub(crate) fn raw(&self, options: &[String]) -> Value {
        let chosen = self.chosen.and_then(|at| options.get(at));
        chosen.map_or(Value::Null, |option| Value::from(option.as_str()))
    }

    /// Restores a stored answer. A text that matches none of the options becomes the filter.
    pub(crate) fn resume(&mut self, text: &str, options: &[String]) {
        let exactly = options.iter().position(|option| option == text);
        let wanted = text.trim().to_lowercase();
        let nearly = || {
            options
                .iter()
                .position(|option| option.to_lowercase() == wanted)
        };
        match exactly.or_else(nearly) {
            Some(at) => {
                self.chosen = Some(at);
                self.at = at;
            }
            None => self.extend_filter(text),
        }
    }
}

/// Result of clearing a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterCleared {
    /// A filter was cleared.
    Yes,
    /// There was no filter.
    No,
}
