//! Keys and pastes that decide nothing: focus moves, text, and scrolling or searching the request.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::GateDialog;
use super::context::{End, Found, Search};
use super::form::{Towards, next};
use super::pick::Widened;
use super::scroll::Scroll;
use super::step::{DenySpot, Pane, Proof, Review, ReviewSpot, Step};
use super::text::{edit, edit_line, paste, paste_line};
use crate::base::clock::Timestamp;
use crate::console::keymap::{Action, Motion, Scope, lookup};
use crate::console::layer::{Change, Handled};

impl GateDialog {
    /// Goes one level back.
    pub(crate) fn back(&mut self) -> Handled {
        if self.pane != Pane::Form {
            self.pane = Pane::Form;
            return Handled::quietly();
        }
        match self.step {
            Step::Claimed(_) => {
                self.leave_claimed();
                Handled::quietly()
            }
            Step::Reviewing(_) | Step::Denying(_) => {
                self.step = Step::Editing;
                Handled::quietly()
            }
            Step::Writing(_) => Handled::quietly(),
            Step::Editing => match self
                .form
                .focused()
                .map_or(Widened::No, super::field::Field::back)
            {
                Widened::Yes => Handled::quietly(),
                Widened::No => Handled::with(Change::Close),
            },
            Step::Changed(_) | Step::Settled(_) => Handled::with(Change::Close),
        }
    }

    pub(super) fn move_focus(&mut self, towards: Towards) {
        if self.pane != Pane::Form {
            self.pane = Pane::Form;
            return;
        }
        match &mut self.step {
            Step::Editing => self.form.step(towards),
            Step::Reviewing(review) => review.spot = next(&review.spots(), review.spot, towards),
            Step::Denying(spot) => {
                let spots = [DenySpot::Reason, DenySpot::Back, DenySpot::DenyNow];
                *spot = next(&spots, *spot, towards);
            }
            Step::Claimed(over) => over.step(),
            Step::Writing(_) | Step::Changed(_) | Step::Settled(_) => {}
        }
    }

    /// Returns the sheet that receives the scroll keys, if the step has one.
    pub(super) fn sheet(&mut self) -> Option<&mut Scroll> {
        match &mut self.step {
            Step::Reviewing(review) if self.pane == Pane::Form => Some(&mut review.sheet),
            Step::Changed(changed) if self.pane == Pane::Form => Some(&mut changed.sheet),
            Step::Editing
            | Step::Reviewing(_)
            | Step::Denying(_)
            | Step::Claimed(_)
            | Step::Writing(_)
            | Step::Changed(_)
            | Step::Settled(_) => None,
        }
    }

    /// Returns true if all records that would be written were on screen.
    pub(super) fn is_sheet_seen(&self) -> bool {
        matches!(&self.step, Step::Reviewing(review) if review.sheet.is_whole())
    }

    /// Scrolls the active sheet by a page, or the request if no sheet is active.
    pub(super) fn turn_page(&mut self, towards: Towards) {
        if let Some(sheet) = self.sheet() {
            sheet.turn(towards);
            return;
        }
        // One row less than a page, so that the reader keeps their place.
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        let rows = match towards {
            Towards::Next => page,
            Towards::Previous => -page,
        };
        self.context.scroll(rows, self.height);
    }

    /// Scrolls with the wheel: the request or the sheet of a step. The focus does not move.
    pub(crate) fn wheel(&mut self, motion: Motion) {
        let rows = if motion == Motion::Up { -1 } else { 1 };
        match self.sheet() {
            Some(sheet) => sheet.by(rows),
            None => self.context.scroll(rows, self.height),
        }
    }

    /// Handles a key that is not a command: text, or a move within the focused part.
    pub(super) fn type_key(&mut self, key: KeyEvent) {
        if self.pane != Pane::Form {
            self.look_through(key);
            return;
        }
        let sideways = match key.code {
            KeyCode::Left => Some(Towards::Previous),
            KeyCode::Right => Some(Towards::Next),
            _ => None,
        };
        match &mut self.step {
            Step::Editing => match self.form.focused() {
                Some(field) => self.notice = field.on_key(key).map(str::to_owned),
                None => self.slide(sideways),
            },
            Step::Reviewing(review) => match (review.spot, key.code) {
                (ReviewSpot::Proof(Proof::Why), _) => edit(&mut self.form.why, key),
                (_, KeyCode::Up) => review.sheet.by(-1),
                (_, KeyCode::Down) => review.sheet.by(1),
                (ReviewSpot::Proof(Proof::Hash), _) => edit_line(&mut review.hash, key),
                (ReviewSpot::Proof(Proof::Action), _) => edit_line(&mut review.action, key),
                (ReviewSpot::Back | ReviewSpot::PassNow, _) => self.slide(sideways),
            },
            Step::Denying(DenySpot::Reason) => edit(&mut self.form.reason, key),
            Step::Denying(_) | Step::Claimed(_) => self.slide(sideways),
            Step::Changed(changed) => match key.code {
                KeyCode::Up => changed.sheet.by(-1),
                KeyCode::Down => changed.sheet.by(1),
                _ => {}
            },
            Step::Writing(_) | Step::Settled(_) => {}
        }
    }

    fn slide(&mut self, sideways: Option<Towards>) {
        if let Some(towards) = sideways {
            self.move_focus(towards);
        }
    }

    /// Handles a key while the request has the focus.
    fn look_through(&mut self, key: KeyEvent) {
        match lookup(Scope::Request, key) {
            Some(Action::Up) => self.context.scroll(-1, self.height),
            Some(Action::Down) => self.context.scroll(1, self.height),
            Some(Action::First) => self.context.jump(End::First, self.height),
            Some(Action::Last) => self.context.jump(End::Last, self.height),
            Some(Action::SearchRequest) => self.pane = Pane::Search,
            Some(Action::NextMatch) => self.find(Search::Next),
            Some(Action::PreviousMatch) => self.find(Search::Previous),
            Some(_) | None => {}
        }
    }

    /// Handles a key while the search text is typed.
    pub(super) fn type_search(&mut self, key: KeyEvent) -> Handled {
        let held = key.modifiers.difference(KeyModifiers::SHIFT);
        let mut query = self.context.query().to_owned();
        match key.code {
            KeyCode::Enter | KeyCode::Esc | KeyCode::F(6) | KeyCode::Tab => {
                self.pane = Pane::Context;
                return Handled::quietly();
            }
            KeyCode::Char(c) if held.is_empty() => query.push(c),
            KeyCode::Char('u') if held == KeyModifiers::CONTROL => query.clear(),
            KeyCode::Backspace => {
                query.pop();
            }
            _ => return Handled::quietly(),
        }
        self.seek(&query);
        Handled::quietly()
    }

    fn seek(&mut self, query: &str) {
        self.context.set_query(query);
        self.find(Search::Here);
    }

    fn find(&mut self, search: Search) {
        self.notice = match self.context.find(search, self.height) {
            Found::Place => None,
            Found::Nothing => match search {
                Search::Here => None,
                Search::Next | Search::Previous => {
                    Some("nothing to look for yet: / asks".to_owned())
                }
            },
            Found::Unready => Some("request still being laid out".to_owned()),
            Found::Around => Some("around the end of the request".to_owned()),
            Found::Nowhere => {
                let query = self.context.query();
                Some(format!("`{query}` is nowhere in the request"))
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
            Pane::Context => return,
            Pane::Search => {
                let query = format!("{}{text}", self.context.query());
                self.seek(&query);
                return;
            }
            Pane::Form => {}
        }
        match &mut self.step {
            Step::Editing => {
                if let Some(field) = self.form.focused() {
                    field.on_paste(text);
                }
            }
            Step::Reviewing(Review {
                spot: ReviewSpot::Proof(proof),
                hash,
                action,
                ..
            }) => match proof {
                Proof::Why => paste(&mut self.form.why, text),
                Proof::Hash => paste_line(hash, text),
                Proof::Action => paste_line(action, text),
            },
            Step::Denying(DenySpot::Reason) => paste(&mut self.form.reason, text),
            Step::Reviewing(_)
            | Step::Denying(_)
            | Step::Claimed(_)
            | Step::Writing(_)
            | Step::Changed(_)
            | Step::Settled(_) => {}
        }
    }
}
