//! Actions of the queue screen. None of them decides: `Decide` opens the dialog.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::{Position, Rect};

use super::{
    ListDirection, QueueKey, QueuePromptPurpose, QueueScreen, QueueTarget, place_of, view,
};
use crate::base::clock::Timestamp;
use crate::base::operator::is_same_operator;
use crate::base::text::one_line;
use crate::console::dialog::confirmation::ConfirmDialog;
use crate::console::dialog::gate::DialogEntry;
use crate::console::keymap::{KeyAction, KeyScope};
use crate::console::request::ConsoleRequest;
use crate::console::screen::trace::HELD_NOTE;
use crate::console::screen::{InputResult, Screen, ScreenChange, ScreenContext, Visibility};
use crate::console::theme::{Appearance, Meaning};
use crate::engine::command::{ClaimChange, ClaimChangeKind, OperatorAction};
use crate::engine::explanation::ExplainQuestion;
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;

impl Screen for QueueScreen {
    fn draw(
        &self,
        snapshot: &RuntimeSnapshot,
        frame: &mut Frame,
        area: Rect,
        appearance: Appearance,
        now: Timestamp,
    ) {
        view::draw(self, snapshot, frame, area, appearance, now);
    }

    fn handle_action(&mut self, action: KeyAction, _now: Timestamp, context: &mut ScreenContext) {
        match action {
            KeyAction::Open => self.open_selected(DialogEntry::Answer, context),
            KeyAction::Deny => self.open_selected(DialogEntry::Deny, context),
            KeyAction::Explain => self.explain_selected(context),
            KeyAction::Merge => self.merge(),
            KeyAction::Back => self.go_back(),
            KeyAction::Queue(key) => self.run_command(key, context),
            other => {
                if let Some(motion) = other.motion() {
                    self.move_selection(motion);
                    self.request_latest_events(context);
                }
            }
        }
    }

    fn is_enabled(&self, action: KeyAction, snapshot: &RuntimeSnapshot) -> bool {
        self.can(action, snapshot.access)
    }

    fn tab_note(&self, snapshot: &RuntimeSnapshot) -> Option<String> {
        Some(snapshot.held.len().to_string())
    }

    fn keeps_tab_title(&self) -> bool {
        true
    }

    fn input_scope(&self) -> Option<KeyScope> {
        self.is_typing().then_some(KeyScope::Prompt)
    }

    fn on_input_key(&mut self, key: KeyEvent, context: &mut ScreenContext) -> InputResult {
        if !self.is_typing() {
            return InputResult::Ignored;
        }
        self.type_key(key);
        self.request_latest_events(context);
        InputResult::Consumed
    }

    fn on_paste(&mut self, text: &str, _snapshot: &RuntimeSnapshot) {
        self.paste(text);
    }

    fn on_click(&mut self, area: Rect, at: Position, context: &mut ScreenContext) {
        if self.is_typing() {
            return;
        }
        if let Some(QueueTarget::Row(row)) = place_of(self, area, Some(at)) {
            self.select_row(row);
            self.request_latest_events(context);
        }
    }

    /// Ctrl-C clears no filter and no marks.
    fn cancel(&mut self, _now: Timestamp, _context: &mut ScreenContext) {}

    fn on_start(&mut self, context: &mut ScreenContext) {
        self.request_latest_events(context);
    }

    fn on_snapshot(&mut self, before: Option<&RuntimeSnapshot>, context: &mut ScreenContext) {
        let known = before.map_or(&[][..], |before| &before.held);
        let arrivals = self.sync(known, &context.snapshot.held);
        let Some(before) = before else {
            return;
        };
        if !arrivals.is_empty() || before.held.len() != context.snapshot.held.len() {
            context.apply(ScreenChange::NotifyArrivals(arrivals));
        }
        self.request_latest_events(context);
    }

    fn on_drawn(&mut self, area: Rect) {
        if let Some(QueueTarget::Rows(height)) = place_of(self, area, None) {
            self.set_height(height);
        }
    }
}

impl QueueScreen {
    fn run_command(&mut self, key: QueueKey, context: &mut ScreenContext) {
        match key {
            QueueKey::Mark => {
                if let Err(reason) = self.mark() {
                    context.show_notice(Meaning::Warning, reason);
                }
            }
            QueueKey::Claim => return self.claim(context),
            QueueKey::Batch => return self.open_batch(context),
            QueueKey::InTrace => {
                if let Some(held) = self.selected() {
                    context.apply(ScreenChange::ShowEvent(held.session.clone(), 0));
                    return;
                }
            }
            QueueKey::Sort => self.cycle_sort(),
            QueueKey::NextDue => self.select_next_due(),
            QueueKey::Filter => self.open_prompt(QueuePromptPurpose::Filter),
            QueueKey::Search => self.open_prompt(QueuePromptPurpose::Search),
            QueueKey::NextMatch => self.select_match(ListDirection::Next),
            QueueKey::PreviousMatch => self.select_match(ListDirection::Previous),
            QueueKey::Copy => return self.copy(context, |held| held.id.to_string()),
            QueueKey::CopyHash => return self.copy(context, |held| held.request_hash.to_string()),
        }
        self.request_latest_events(context);
    }

    fn open_selected(&self, entry: DialogEntry, context: &mut ScreenContext) {
        if let Some(held) = self.selected() {
            context.apply(ScreenChange::Decide(Arc::clone(held), entry));
        }
    }

    fn explain_selected(&self, context: &mut ScreenContext) {
        if let Some(held) = self.selected() {
            let title = format!("{} {}", held.id, one_line(held.action()));
            context.explain(ExplainQuestion::Held(held.id.clone()), &title, HELD_NOTE);
        }
    }

    /// Opens the marked requests together as a batch.
    fn open_batch(&self, context: &mut ScreenContext) {
        match self.marked() {
            Ok(members) => context.apply(ScreenChange::DecideBatch(members)),
            Err(reason) => context.show_notice(Meaning::Warning, reason),
        }
    }

    /// Claims the selected request, releases it, or asks whether to take it over from another operator.
    fn claim(&self, context: &mut ScreenContext) {
        let Some(held) = self.selected() else {
            return;
        };
        let operator = context.snapshot.operator.clone();
        let seen = held.claim.as_ref().map(|claim| claim.by.clone());
        let own = seen
            .as_ref()
            .is_some_and(|by| is_same_operator(by, &operator));
        let change = ClaimChange {
            gate: held.id.clone(),
            operator,
            wish: if own {
                ClaimChangeKind::Release
            } else {
                ClaimChangeKind::Take
            },
            seen,
        };
        if context.warn_if_read_only() {
            return;
        }
        if change.seen.is_some() && !own {
            context.open(ConfirmDialog::new(change));
            return;
        }
        context.send([ConsoleRequest::Operate(OperatorAction::Claim(change))]);
    }

    fn copy(&self, context: &mut ScreenContext, part: impl Fn(&Held) -> String) {
        let Some(text) = self.selected().map(|held| part(held)) else {
            return;
        };
        context.show_notice(Meaning::Text, format!("copied {text}"));
        context.send([ConsoleRequest::Copy(text)]);
    }

    /// Requests the latest events of the selected request's session, for the detail pane.
    pub(crate) fn request_latest_events(&mut self, context: &mut ScreenContext) {
        if context.visibility == Visibility::Shown {
            context.send(self.request_latest(&context.snapshot.sessions));
        }
    }
}
