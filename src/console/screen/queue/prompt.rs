//! Typing of filters and searches for the list.

use ratatui::crossterm::event::KeyEvent;

use super::QueueScreen;
use super::filter::{QueueFilter, QueueFilterError};
use crate::console::keymap::{KeyAction, KeyScope, find_action};
use crate::console::line_edit::{InputChange, LineEdit};

/// State of the line being typed.
#[derive(Debug)]
pub(crate) struct QueuePrompt {
    pub(super) purpose: QueuePromptPurpose,
    pub(super) line: LineEdit,
    /// Parse error. While there is one, the typed text is not applied.
    pub(super) problem: Option<QueueFilterError>,
    /// Filter or search that was active before.
    before: QueueFilter,
    /// Row that was selected before.
    from: usize,
}

/// Purpose of the line being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePromptPurpose {
    /// Hides requests that do not match.
    Filter,
    /// Selects requests that match.
    Search,
}

/// Search direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListDirection {
    /// Downwards.
    Next,
    /// Upwards.
    Previous,
}

impl QueueScreen {
    /// Starts typing.
    pub(crate) fn open_prompt(&mut self, purpose: QueuePromptPurpose) {
        let before = match purpose {
            QueuePromptPurpose::Filter => self.filter.clone(),
            QueuePromptPurpose::Search => self.search.clone(),
        };
        let text = match purpose {
            QueuePromptPurpose::Filter => before.text().to_owned(),
            QueuePromptPurpose::Search => String::new(),
        };
        self.prompt = Some(QueuePrompt {
            purpose,
            line: LineEdit::of(&text),
            problem: None,
            before,
            from: self.at,
        });
    }

    /// Returns true if keys go into a line.
    pub(crate) fn is_typing(&self) -> bool {
        self.prompt.is_some()
    }

    /// Handles a key while a line is typed.
    pub(crate) fn type_key(&mut self, key: KeyEvent) {
        let Some(mut prompt) = self.prompt.take() else {
            return;
        };
        match find_action(KeyScope::Prompt, key) {
            // A text with a parse error stays open for correction.
            Some(KeyAction::Press) if prompt.problem.is_none() => return,
            Some(KeyAction::Back) => {
                let before = prompt.before;
                match prompt.purpose {
                    QueuePromptPurpose::Filter => self.set_filter(before),
                    QueuePromptPurpose::Search => {
                        self.search = before;
                        self.select_row(prompt.from);
                    }
                }
                return;
            }
            Some(_) => {}
            None => {
                if prompt.line.on_key(key) == InputChange::Changed {
                    self.apply_typed_text(&mut prompt);
                }
            }
        }
        self.prompt = Some(prompt);
    }

    /// Handles pasted text while a line is typed.
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(mut prompt) = self.prompt.take() {
            prompt.line.paste(text);
            self.apply_typed_text(&mut prompt);
            self.prompt = Some(prompt);
        }
    }

    /// Applies the typed text as soon as it parses.
    fn apply_typed_text(&mut self, prompt: &mut QueuePrompt) {
        match (QueueFilter::parse(prompt.line.text()), prompt.purpose) {
            (Err(problem), _) => prompt.problem = Some(problem),
            (Ok(filter), QueuePromptPurpose::Filter) => {
                prompt.problem = None;
                self.set_filter(filter);
            }
            (Ok(search), QueuePromptPurpose::Search) => {
                prompt.problem = None;
                self.search = search;
                self.at = prompt.from;
                self.select_match_from(0, ListDirection::Next);
            }
        }
    }

    /// Filters the list by a text.
    ///
    /// # Errors
    /// The parse error of the text.
    pub(crate) fn filter_by(&mut self, text: &str) -> Result<(), QueueFilterError> {
        self.set_filter(QueueFilter::parse(text)?);
        Ok(())
    }

    fn set_filter(&mut self, filter: QueueFilter) {
        self.filter = filter;
        let mut all = std::mem::take(&mut self.rows);
        all.append(&mut self.hidden);
        let (rows, hidden) = all
            .into_iter()
            .partition(|held| self.filter.matches(held, self.state(held)));
        self.rows = rows;
        self.hidden = hidden;
        self.count_hidden_critical();
        self.sort_rows();
    }

    /// Goes one level back: clears the search, then the filter, then the marks.
    pub(crate) fn go_back(&mut self) {
        if !self.search.is_empty() {
            self.search = QueueFilter::default();
        } else if !self.filter.is_empty() {
            self.set_filter(QueueFilter::default());
        } else {
            self.marked.clear();
        }
    }

    /// Selects the next matching row, and continues at the other end of the list.
    pub(crate) fn select_match(&mut self, direction: ListDirection) {
        self.select_match_from(1, direction);
    }

    fn select_match_from(&mut self, skip: usize, direction: ListDirection) {
        if self.search.is_empty() {
            return;
        }
        let count = self.rows.len();
        let hit = (skip..count + skip)
            .map(|step| match direction {
                ListDirection::Next => (self.at + step) % count.max(1),
                ListDirection::Previous => {
                    (self.at + count.saturating_sub(step % count.max(1))) % count.max(1)
                }
            })
            .find(|at| {
                let row = self.rows.get(*at);
                row.is_some_and(|held| self.search.matches(held, self.state(held)))
            });
        if let Some(at) = hit {
            self.select_row(at);
        }
    }
}
