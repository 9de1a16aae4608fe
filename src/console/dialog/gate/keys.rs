//! Keys and pastes that decide nothing: focus moves, text, and scrolling or searching the request.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::GateDialog;
use super::context::{JumpTarget, SearchDirection, SearchResult};
use super::form::{MoveDirection, neighbour};
use super::picker::FilterCleared;
use super::scroll::ScrollState;
use super::step::{DecisionStep, DenyFocus, GatePane, PassProof, Review, ReviewFocus};
use super::text_editing::{edit, edit_line, paste, paste_line};
use crate::base::clock::Timestamp;
use crate::console::dialog::{KeyResult, LayerChange};
use crate::console::keymap::{KeyAction, KeyScope, Motion, find_action};

impl GateDialog {
    /// Goes one level back.
    pub(crate) fn back(&mut self) -> KeyResult {
        if self.pane != GatePane::Form {
            self.pane = GatePane::Form;
            return KeyResult::quietly();
        }
        match self.step {
            DecisionStep::Claimed(_) => {
                self.leave_claimed();
                KeyResult::quietly()
            }
            DecisionStep::Reviewing(_) | DecisionStep::Denying(_) => {
                self.step = DecisionStep::Editing;
                KeyResult::quietly()
            }
            DecisionStep::Writing(_) => KeyResult::quietly(),
            DecisionStep::Editing => match self
                .form
                .focused()
                .map_or(FilterCleared::No, super::field::AnswerField::back)
            {
                FilterCleared::Yes => KeyResult::quietly(),
                FilterCleared::No => KeyResult::with(LayerChange::Close),
            },
            DecisionStep::Changed(_) | DecisionStep::Settled(_) => {
                KeyResult::with(LayerChange::Close)
            }
        }
    }

    pub(super) fn move_focus(&mut self, towards: MoveDirection) {
        if self.pane != GatePane::Form {
            self.pane = GatePane::Form;
            return;
        }
        match &mut self.step {
            DecisionStep::Editing => self.form.move_focus_by_one(towards),
            DecisionStep::Reviewing(review) => {
                review.focus = neighbour(&review.focus_order(), review.focus, towards);
            }
            DecisionStep::Denying(spot) => {
                let spots = [DenyFocus::Reason, DenyFocus::Back, DenyFocus::DenyNow];
                *spot = neighbour(&spots, *spot, towards);
            }
            DecisionStep::Claimed(over) => over.move_focus_by_one(),
            DecisionStep::Writing(_) | DecisionStep::Changed(_) | DecisionStep::Settled(_) => {}
        }
    }

    /// Returns the sheet that receives the scroll keys, if the step has one.
    pub(super) fn sheet(&mut self) -> Option<&mut ScrollState> {
        match &mut self.step {
            DecisionStep::Reviewing(review) if self.pane == GatePane::Form => {
                Some(&mut review.sheet)
            }
            DecisionStep::Changed(changed) if self.pane == GatePane::Form => {
                Some(&mut changed.sheet)
            }
            DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_)
            | DecisionStep::Settled(_) => None,
        }
    }

    /// Returns true if all records that would be written were on screen.
    pub(super) fn is_sheet_seen(&self) -> bool {
        matches!(&self.step, DecisionStep::Reviewing(review) if review.sheet.is_fully_seen())
    }

    /// Scrolls the active sheet by a page, or the request if no sheet is active.
    pub(super) fn turn_page(&mut self, towards: MoveDirection) {
        if let Some(sheet) = self.sheet() {
            sheet.scroll_page(towards);
            return;
        }
        // One row less than a page, so that the reader keeps their place.
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        let rows = match towards {
            MoveDirection::Next => page,
            MoveDirection::Previous => -page,
        };
        self.context.scroll(rows, self.height);
    }

    /// Scrolls with the wheel: the request or the sheet of a step. The focus does not move.
    pub(crate) fn wheel(&mut self, motion: Motion) {
        let rows = if motion == Motion::Up { -1 } else { 1 };
        match self.sheet() {
            Some(sheet) => sheet.scroll_by(rows),
            None => self.context.scroll(rows, self.height),
        }
    }

    /// Handles a key that is not a command: text, or a move within the focused part.
    pub(super) fn type_key(&mut self, key: KeyEvent) {
        if self.pane != GatePane::Form {
            self.browse_request(key);
            return;
        }
        let sideways = match key.code {
            KeyCode::Left => Some(MoveDirection::Previous),
            KeyCode::Right => Some(MoveDirection::Next),
            _ => None,
        };
        match &mut self.step {
            DecisionStep::Editing => match self.form.focused() {
                Some(field) => self.notice = field.on_key(key).map(str::to_owned),
                None => self.move_focus_sideways(sideways),
            },
            DecisionStep::Reviewing(review) => match (review.focus, key.code) {
                (ReviewFocus::Proof(PassProof::Why), _) => edit(&mut self.form.justification, key),
                (_, KeyCode::Up) => review.sheet.scroll_by(-1),
                (_, KeyCode::Down) => review.sheet.scroll_by(1),
                (ReviewFocus::Proof(PassProof::Hash), _) => edit_line(&mut review.hash, key),
                (ReviewFocus::Proof(PassProof::Action), _) => edit_line(&mut review.action, key),
                (ReviewFocus::Back | ReviewFocus::PassNow, _) => self.move_focus_sideways(sideways),
            },
            DecisionStep::Denying(DenyFocus::Reason) => edit(&mut self.form.reason, key),
            DecisionStep::Denying(_) | DecisionStep::Claimed(_) => {
                self.move_focus_sideways(sideways);
            }
            DecisionStep::Changed(changed) => match key.code {
                KeyCode::Up => changed.sheet.scroll_by(-1),
                KeyCode::Down => changed.sheet.scroll_by(1),
                _ => {}
            },
            DecisionStep::Writing(_) | DecisionStep::Settled(_) => {}
        }
    }

    fn move_focus_sideways(&mut self, sideways: Option<MoveDirection>) {
        if let Some(towards) = sideways {
            self.move_focus(towards);
        }
    }

    /// Handles a key while the request has the focus.
    fn browse_request(&mut self, key: KeyEvent) {
        match find_action(KeyScope::Request, key) {
            Some(KeyAction::Up) => self.context.scroll(-1, self.height),
            Some(KeyAction::Down) => self.context.scroll(1, self.height),
            Some(KeyAction::First) => self.context.jump(JumpTarget::First, self.height),
            Some(KeyAction::Last) => self.context.jump(JumpTarget::Last, self.height),
            Some(KeyAction::SearchRequest) => self.pane = GatePane::Search,
            Some(KeyAction::NextMatch) => self.find(SearchDirection::Next),
            Some(KeyAction::PreviousMatch) => self.find(SearchDirection::Previous),
            Some(_) | None => {}
        }
    }

    /// Handles a key while the search text is typed.
    pub(super) fn type_search(&mut self, key: KeyEvent) -> KeyResult {
        let held = key.modifiers.difference(KeyModifiers::SHIFT);
        let mut query = self.context.query().to_owned();
        match key.code {
            KeyCode::Enter | KeyCode::Esc | KeyCode::F(6) | KeyCode::Tab => {
                self.pane = GatePane::Context;
                return KeyResult::quietly();
            }
            KeyCode::Char(c) if held.is_empty() => query.push(c),
            KeyCode::Char('u') if held == KeyModifiers::CONTROL => query.clear(),
            KeyCode::Backspace => {
                query.pop();
            }
            _ => return KeyResult::quietly(),
        }
        self.seek(&query);
        KeyResult::quietly()
    }

    fn seek(&mut self, query: &str) {
        self.context.set_query(query);
        self.find(SearchDirection::Here);
    }

    fn find(&mut self, search: SearchDirection) {
        self.notice = match self.context.find(search, self.height) {
            SearchResult::Match => None,
            SearchResult::NoQuery => match search {
                SearchDirection::Here => None,
                SearchDirection::Next | SearchDirection::Previous => {
                    Some("nothing to search: press /".to_owned())
                }
            },
            SearchResult::NoLayout => Some("request is still loading".to_owned()),
            SearchResult::WrappedMatch => Some("search wrapped around".to_owned()),
            SearchResult::NoMatch => {
                let query = self.context.query();
                Some(format!("`{query}` is not in the request"))
            }
        };
    }

    /// Handles a pasted text: it goes into the focused field, if there is one. It never presses
    /// anything.
    pub(crate) fn on_paste(&mut self, text: &str, now: Timestamp) {
        if !self.is_ready(now) {
            return;
        }
        match self.pane {
            GatePane::Context => return,
            GatePane::Search => {
                let query = format!("{}{text}", self.context.query());
                self.seek(&query);
                return;
            }
            GatePane::Form => {}
        }
        match &mut self.step {
            DecisionStep::Editing => {
                if let Some(field) = self.form.focused() {
                    field.on_paste(text);
                }
            }
            DecisionStep::Reviewing(Review {
                focus: ReviewFocus::Proof(proof),
                hash,
                action,
                ..
            }) => match proof {
                PassProof::Why => paste(&mut self.form.justification, text),
                PassProof::Hash => paste_line(hash, text),
                PassProof::Action => paste_line(action, text),
            },
            DecisionStep::Denying(DenyFocus::Reason) => paste(&mut self.form.reason, text),
            DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_)
            | DecisionStep::Settled(_) => {}
        }
    }
}
