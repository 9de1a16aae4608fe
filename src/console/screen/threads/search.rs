//! Looking for a conversation.

use ratatui::crossterm::event::KeyEvent;

use super::{Threads, find};
use crate::console::keymap::{Action, Motion, Scope, lookup};
use crate::console::line::{LineEdit, Typed};
use crate::memento::{Name, Shape, Thread, ThreadMemento};
use crate::runtime::snapshot::Snapshot;

/// What is looked for.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// In lower case; nothing is looked for while it is empty.
    text: String,
    typing: Option<Typing>,
}

/// What is being typed.
#[derive(Debug)]
struct Typing {
    line: LineEdit,
    /// What was looked for before, and what was chosen.
    before: (String, Option<Name>),
}

impl Threads {
    /// Begins typing.
    pub(crate) fn ask_search(&mut self) {
        self.search.typing = Some(Typing {
            line: LineEdit::default(),
            before: (self.search.text.clone(), self.selected.clone()),
        });
    }

    /// Whether keys are typed into a line.
    pub(crate) fn is_typing(&self) -> bool {
        self.search.typing.is_some()
    }

    /// What is typed, while something is.
    pub(super) fn typed_search(&self) -> Option<&str> {
        let typing = self.search.typing.as_ref();
        typing.map(|typing| typing.line.text())
    }

    /// What is looked for; empty when nothing is.
    pub(super) fn searched(&self) -> &str {
        &self.search.text
    }

    /// A key while something is typed. What is found is chosen at once.
    pub(crate) fn type_key(&mut self, key: KeyEvent, snapshot: &Snapshot) {
        let Some(mut typing) = self.search.typing.take() else {
            return;
        };
        let action = lookup(Scope::Prompt, key);
        if action == Some(Action::Press) {
            return;
        }
        if action == Some(Action::Back) {
            let (text, selected) = typing.before;
            self.search.text = text;
            self.choose(selected);
            return;
        }
        if action.is_none() && typing.line.on_key(key) == Typed::Changed {
            self.try_typed(&typing, snapshot);
        }
        self.search.typing = Some(typing);
    }

    /// A pasted text while something is typed.
    pub(crate) fn paste(&mut self, text: &str, snapshot: &Snapshot) {
        if let Some(mut typing) = self.search.typing.take() {
            typing.line.paste(text);
            self.try_typed(&typing, snapshot);
            self.search.typing = Some(typing);
        }
    }

    fn try_typed(&mut self, typing: &Typing, snapshot: &Snapshot) {
        self.search.text = typing.line.text().trim().to_lowercase();
        self.choose(typing.before.1.clone());
        self.find_from(0, Motion::Down, snapshot);
    }

    /// Nothing is looked for any more. Tells whether something was.
    pub(super) fn stop_search(&mut self) -> bool {
        !std::mem::take(&mut self.search.text).is_empty()
    }

    /// To the next conversation that matches, or the one before, around the end. Tells whether there is one.
    pub(crate) fn find_next(&mut self, way: Motion, snapshot: &Snapshot) -> bool {
        self.find_from(1, way, snapshot)
    }

    fn find_from(&mut self, skip: usize, way: Motion, snapshot: &Snapshot) -> bool {
        let count = self.order.len();
        if self.search.text.is_empty() || count == 0 {
            return false;
        }
        let at = self.place();
        let hit = (skip..count + skip).find_map(|step| {
            let to = match way {
                Motion::Up => at + count - step % count,
                Motion::Down | Motion::First | Motion::Last | Motion::PageUp | Motion::PageDown => {
                    at + step
                }
            };
            let name = self.order.get(to % count)?;
            let thread = find(snapshot, name)?;
            self.is_hit(thread).then(|| name.clone())
        });
        let found = hit.is_some();
        if found {
            self.choose(hit);
        }
        found
    }

    /// How many match.
    pub(super) fn hits(&self, snapshot: &Snapshot) -> usize {
        let all = self.order.iter().filter_map(|name| find(snapshot, name));
        all.filter(|thread| self.is_hit(thread)).count()
    }

    fn is_hit(&self, thread: &Thread) -> bool {
        let wanted = self.search.text.as_str();
        let has = |text: &str| text.to_lowercase().contains(wanted);
        let in_shape = |shape: &Shape| {
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
            || thread.held_back.iter().any(|it| in_shape(&it.proposed))
    }
}
