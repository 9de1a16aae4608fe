//! Single-line text input: a search, a filter, a command.
//!
//! Contract: characters that hide or reorder text or move the cursor are never inserted, and the text
//! has a maximum length.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use crate::base::text::is_deceptive;

/// Maximum length of the line.
const MAX_CHARS: usize = 200;

/// Single-line text input with the cursor at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineEdit {
    text: String,
}

/// Effect of a key on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputChange {
    /// The text changed.
    Changed,
    /// The text stayed the same.
    Same,
}

impl LineEdit {
    /// Creates an input with a text.
    pub(crate) fn of(text: &str) -> Self {
        let mut line = Self::default();
        line.paste(text);
        line
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Handles a key that is not a command.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> InputChange {
        let before = self.text.len();
        let held = key.modifiers.difference(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Char('u') if held == KeyModifiers::CONTROL => self.text.clear(),
            KeyCode::Char(c) if held.is_empty() => self.paste(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => {
                let last = self.text.grapheme_indices(true).next_back();
                let end = last.map_or(0, |(at, _)| at);
                self.text.truncate(end);
            }
            _ => {}
        }
        if self.text.len() == before {
            InputChange::Same
        } else {
            InputChange::Changed
        }
    }

    /// Pastes the first line of a text, without deceptive characters.
    pub(crate) fn paste(&mut self, text: &str) {
        let room = MAX_CHARS.saturating_sub(self.text.chars().count());
        let first = text.lines().next().unwrap_or_default();
        let clean = first.chars().filter(|c| !is_deceptive(*c)).take(room);
        self.text.extend(clean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_edit_drops_deceptive_characters_and_stops_at_its_limit() {
        let mut line = LineEdit::default();
        line.paste("a\u{202e}\tb\nsecond line");
        assert_eq!(line.text(), "ab");
        line.paste(&"x".repeat(500));
        assert_eq!(line.text().chars().count(), MAX_CHARS);
        let mut line = LineEdit::of("e\u{301}");
        let key = KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(line.on_key(key), InputChange::Changed);
        assert_eq!(line.text(), "", "a whole character as people see it");
        assert_eq!(line.on_key(key), InputChange::Same);
    }
}
