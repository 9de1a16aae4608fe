//! Prompt line for a filter, a search, a command or a file name.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::event_condition::{TypeCompletion, complete_type};
use crate::base::text::is_deceptive;
use crate::console::keymap::{KeyAction, KeyScope, find_action};

/// Maximum length of the typed text.
const MOST_CHARS: usize = 400;

/// Number of texts remembered for each purpose.
const MOST_REMEMBERED: usize = 20;

/// Purpose of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TracePromptPurpose {
    Filter,
    Search,
    Export,
}

impl TracePromptPurpose {
    /// Returns the label before the text.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Filter => "filter> ",
            Self::Search => "search> ",
            Self::Export => "export to> ",
        }
    }
}

/// State of the prompt.
#[derive(Debug)]
pub(super) struct TracePrompt {
    pub(super) purpose: TracePromptPurpose,
    text: String,
    /// Number of graphemes before the cursor.
    cursor: usize,
    /// Index of the recalled text in the history.
    back: Option<usize>,
    /// Error in the typed text.
    pub(super) problem: Option<String>,
}

/// Result of handling a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptResult {
    Stays,
    Closed,
    Done(String),
}

impl TracePrompt {
    pub(super) fn new(purpose: TracePromptPurpose, text: &str) -> Self {
        let mut prompt = Self {
            purpose,
            text: String::new(),
            cursor: 0,
            back: None,
            problem: None,
        };
        prompt.set(text);
        prompt
    }

    pub(super) fn on_key(&mut self, key: KeyEvent, past: &[String]) -> PromptResult {
        match find_action(KeyScope::Line, key) {
            Some(KeyAction::Back) => return PromptResult::Closed,
            Some(KeyAction::Press) => return PromptResult::Done(self.text.clone()),
            Some(KeyAction::Up) => {
                let back = self.back.map_or(0, |back| back + 1);
                self.recall(back.min(past.len().saturating_sub(1)), past);
                return PromptResult::Stays;
            }
            Some(KeyAction::Down) => {
                match self.back.and_then(|back| back.checked_sub(1)) {
                    Some(back) => self.recall(back, past),
                    None => self.set(""),
                }
                return PromptResult::Stays;
            }
            Some(KeyAction::Next) => {
                if let Some(found) = self.completion() {
                    let after = self.parts().1.to_owned();
                    let cursor = found.completed.graphemes(true).count();
                    self.set(&format!("{}{after}", found.completed));
                    self.cursor = cursor;
                }
                return PromptResult::Stays;
            }
            Some(_) | None => {}
        }
        self.edit(key);
        PromptResult::Stays
    }

    /// Returns the completion of the event type before the cursor, if a filter is typed.
    pub(super) fn completion(&self) -> Option<TypeCompletion> {
        match self.purpose {
            TracePromptPurpose::Filter => complete_type(self.parts().0),
            TracePromptPurpose::Search | TracePromptPurpose::Export => None,
        }
    }

    fn recall(&mut self, back: usize, past: &[String]) {
        if let Some(text) = past.get(back) {
            self.set(text);
            self.back = Some(back);
        }
    }

    fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = text.graphemes(true).count();
        self.back = None;
        self.problem = None;
    }

    fn edit(&mut self, key: KeyEvent) {
        let held = key.modifiers.difference(KeyModifiers::SHIFT);
        let length = self.text.graphemes(true).count();
        match key.code {
            KeyCode::Char('u') if held == KeyModifiers::CONTROL => self.set(""),
            KeyCode::Char(c) if held.is_empty() => self.insert(&c.to_string()),
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.remove();
            }
            KeyCode::Delete => self.remove(),
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(length),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = length,
            _ => {}
        }
    }

    /// Inserts a text, without characters that are not displayed as themselves.
    pub(super) fn insert(&mut self, text: &str) {
        let room = MOST_CHARS.saturating_sub(self.text.chars().count());
        let clean: String = text
            .chars()
            .filter(|&c| !is_deceptive(c))
            .take(room)
            .collect();
        let (before, after) = self.parts();
        let (before, text) = (
            format!("{before}{clean}"),
            format!("{before}{clean}{after}"),
        );
        self.cursor = before.graphemes(true).count();
        self.text = text;
        self.back = None;
        self.problem = None;
    }

    fn remove(&mut self) {
        let (before, after) = self.parts();
        let rest: String = after.graphemes(true).skip(1).collect();
        self.text = format!("{before}{rest}");
        self.back = None;
        self.problem = None;
    }

    /// Returns the text before and after the cursor.
    pub(super) fn parts(&self) -> (&str, &str) {
        let mut places = self.text.grapheme_indices(true);
        let at = places
            .nth(self.cursor)
            .map_or(self.text.len(), |(at, _)| at);
        self.text.split_at(at)
    }
}

/// History of typed texts, the latest first.
#[derive(Debug, Default)]
pub(super) struct PromptHistory {
    filters: Vec<String>,
    searches: Vec<String>,
}

impl PromptHistory {
    pub(super) fn of(&self, purpose: TracePromptPurpose) -> &[String] {
        match purpose {
            TracePromptPurpose::Filter => &self.filters,
            TracePromptPurpose::Search => &self.searches,
            TracePromptPurpose::Export => &[],
        }
    }

    pub(super) fn remember(&mut self, purpose: TracePromptPurpose, text: &str) {
        let texts = match purpose {
            TracePromptPurpose::Filter => &mut self.filters,
            TracePromptPurpose::Search => &mut self.searches,
            TracePromptPurpose::Export => return,
        };
        texts.retain(|known| known != text);
        texts.insert(0, text.to_owned());
        texts.truncate(MOST_REMEMBERED);
    }
}
