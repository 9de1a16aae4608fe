//! Search for a conversation.

use ratatui::crossterm::event::KeyEvent;

use super::{ThreadsScreen, find};
use crate::console::keymap::{KeyAction, KeyScope, Motion, find_action};
use crate::console::line_edit::{InputChange, LineEdit};
use crate::memento::{ExternalName, SummaryShape, Thread, ThreadMemento};
use crate::runtime::snapshot::RuntimeSnapshot;

/// State of the search.
#[derive(Debug, Default)]
pub(super) struct ThreadSearch {
    /// Search text in lower case. Empty if no search is active.
    text: String,
    typing: Option<SearchInput>,
}

/// Line being typed.
#[derive(Debug)]
struct SearchInput {
    line: LineEdit,
    /// Search text and selection from before the typing started.
    before: (String, Option<ExternalName>),
}

impl ThreadsScreen {
    /// Starts typing a search.
    pub(crate) fn open_search(&mut self) {
        self.search.typing = Some(SearchInput {
            line: LineEdit::default(),
            before: (self.search.text.clone(), self.selected.clone()),
        });
    }

    /// Returns true if keys go into a line.
    pub(crate) fn is_typing(&self) -> bool {
        self.search.typing.is_some()
    }

    /// Returns the line being typed, if any.
    pub(super) fn search_input(&self) -> Option<&str> {
        let typing = self.search.typing.as_ref();
        typing.map(|typing| typing.line.text())
    }

    /// Returns the search text. Empty if no search is active.
    pub(super) fn search_text(&self) -> &str {
        &self.search.text
    }

    /// Handles a key while a search is typed. The first match is selected at once.
    pub(crate) fn type_key(&mut self, key: KeyEvent, snapshot: &RuntimeSnapshot) {
        let Some(mut typing) = self.search.typing.take() else {
            return;
        };
        let action = find_action(KeyScope::Prompt, key);
        if action == Some(KeyAction::Press) {
            return;
        }
        if action == Some(KeyAction::Back) {
            let (text, selected) = typing.before;
            self.search.text = text;
            self.select_thread(selected);
            return;
        }
        if action.is_none() && typing.line.on_key(key) == InputChange::Changed {
            self.apply_typed_text(&typing, snapshot);
        }
        self.search.typing = Some(typing);
    }

    /// Handles pasted text while a search is typed.
    pub(crate) fn paste(&mut self, text: &str, snapshot: &RuntimeSnapshot) {
        if let Some(mut typing) = self.search.typing.take() {
            typing.line.paste(text);
            self.apply_typed_text(&typing, snapshot);
            self.search.typing = Some(typing);
        }
    }

    fn apply_typed_text(&mut self, typing: &SearchInput, snapshot: &RuntimeSnapshot) {
        self.search.text = typing.line.text().trim().to_lowercase();
        self.select_thread(typing.before.1.clone());
        self.select_match_from(0, Motion::Down, snapshot);
    }

    /// Ends the search. Returns true if one was active.
    pub(super) fn stop_search(&mut self) -> bool {
        !std::mem::take(&mut self.search.text).is_empty()
    }

    /// Selects the next or previous match, and continues at the other end. Returns true if there is a match.
    pub(crate) fn select_next_match(
        &mut self,
        direction: Motion,
        snapshot: &RuntimeSnapshot,
    ) -> bool {
        self.select_match_from(1, direction, snapshot)
    }

    fn select_match_from(
        &mut self,
        skip: usize,
        direction: Motion,
        snapshot: &RuntimeSnapshot,
    ) -> bool {
        let count = self.order.len();
        if self.search.text.is_empty() || count == 0 {
            return false;
        }
        let at = self.selected_index();
        let hit = (skip..count + skip).find_map(|step| {
            let to = match direction {
                Motion::Up => at + count - step % count,
                Motion::Down | Motion::First | Motion::Last | Motion::PageUp | Motion::PageDown => {
                    at + step
                }
            };
            let name = self.order.get(to % count)?;
            let thread = find(snapshot, name)?;
            self.matches(thread).then(|| name.clone())
        });
        let found = hit.is_some();
        if found {
            self.select_thread(hit);
        }
        found
    }

    /// Returns the number of matches.
    pub(super) fn match_count(&self, snapshot: &RuntimeSnapshot) -> usize {
        let all = self.order.iter().filter_map(|name| find(snapshot, name));
        all.filter(|thread| self.matches(thread)).count()
    }

    fn matches(&self, thread: &Thread) -> bool {
        let wanted = self.search.text.as_str();
        let has = |text: &str| text.to_lowercase().contains(wanted);
        let in_shape = |shape: &SummaryShape| {
            let lists = [&shape.active, &shape.parked, &shape.decisions, &shape.next];
            has(&shape.arc) || lists.into_iter().flatten().any(|item| has(item))
        };
        let kept = thread.latest.as_ref().map(ThreadMemento::shape);
        has(thread.id.as_str())
            || has(thread.session.as_str())
            || thread
                .owner
                .as_ref()
                .is_some_and(|owner| has(owner.session.as_str()))
            || kept.is_some_and(|shape| in_shape(&shape))
            || thread.held_back.iter().any(|held| in_shape(&held.proposed))
    }
}
