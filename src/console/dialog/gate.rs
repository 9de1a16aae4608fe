//! The dialog in which a held request is looked at and decided.
//!
//! It owns the answers typed so far, how much of the request was on screen, and how far the decision
//! has come. Contracts:
//! - A decision comes from Enter on a focused, enabled button of this dialog and from nothing else.
//! - Keys that arrive before it was painted, or within the arming time after, are dropped.
//! - Pass is enabled only when the whole request was on screen and every answer keeps its rules.
//! - The moment the request is settled, by whomever, the controls are gone.
//!
//! It does not know whether the decision was taken until it is told: while writing, it waits.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use serde_json::Value;

use self::context::Context;
use self::field::{edit, edit_line, paste, paste_line};
use self::form::{Form, Spot, Towards, next};
use self::step::{Arming, Care, DenySpot, Pane, ReviewSpot, care};
use super::super::keymap::{Action, Scope, lookup};
use super::super::layer::{Change, Handled, Repaint};
use super::super::screen::queue;
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::base::limits::ARMING;
use crate::base::text::one_line;
use crate::engine::command::Problem;
use crate::engine::held::Held;
use crate::runtime::snapshot::{SessionSummary, Snapshot};

mod bars;
mod context;
mod draft;
mod field;
mod form;
mod press;
mod reply;
mod step;
mod view;

pub(crate) use self::form::Form as Draft;
pub(crate) use self::reply::After;
pub(crate) use self::step::{Around, Entry, Step, Trouble, Verb};

/// The dialog.
#[derive(Debug)]
pub(crate) struct GateDialog {
    /// The request as it was when the dialog opened.
    held: Arc<Held>,
    form: Form,
    context: Context,
    pane: Pane,
    step: Step,
    arming: Arming,
    around: Around,
    /// Why the last decision was not taken, or a key had no effect.
    notice: Option<String>,
    /// Why this request can no longer be passed.
    stale: Option<String>,
    /// What was wrong with the answers sent last.
    problems: Vec<Problem>,
    /// Rows of the context pane when it was last painted.
    height: usize,
    /// What was last told to be kept.
    told: Option<Value>,
    /// What is kept on disk.
    kept: Option<Value>,
}

impl GateDialog {
    /// Opens a request, with the draft that was kept for it and what is known of its session.
    pub(crate) fn new(
        held: Arc<Held>,
        session: Option<&SessionSummary>,
        draft: Option<Form>,
        entry: Entry,
        around: Around,
    ) -> Self {
        let form = draft
            .filter(|draft| draft.is_for(&held))
            .unwrap_or_else(|| Form::new(&held));
        let step = match entry {
            Entry::Answer => Step::Editing,
            Entry::Deny => Step::Denying(DenySpot::Reason),
        };
        Self {
            context: Context::new(&held, session),
            pane: Pane::Form,
            step,
            arming: Arming::Undrawn,
            around,
            notice: None,
            stale: None,
            problems: Vec::new(),
            height: 0,
            told: form.kept(),
            kept: None,
            form,
            held,
        }
    }

    /// The request it is about.
    pub(crate) fn gate(&self) -> &GateId {
        &self.held.id
    }

    /// It was painted: from now on the arming time runs, and these rows were on screen.
    pub(crate) fn on_drawn(&mut self, area: Rect, now: Timestamp) -> Repaint {
        let before = self.context.percent();
        if self.arming == Arming::Undrawn {
            self.arming = Arming::Until(now.plus(ARMING));
        }
        self.lay_out(area);
        if self.height > 0 {
            self.context.painted(self.height);
        }
        if self.context.percent() == before {
            Repaint::No
        } else {
            Repaint::Yes
        }
    }

    /// Prepares the request for the place it will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect) {
        let inner = view::context_area(self, area);
        self.height = usize::from(inner.height);
        if inner.width > 0 {
            self.context.reflow(usize::from(inner.width));
        }
    }

    /// When the arming time ends, while it runs.
    pub(crate) fn arms_at(&self, now: Timestamp) -> Option<Timestamp> {
        match self.arming {
            Arming::Until(moment) if moment > now => Some(moment),
            Arming::Until(_) | Arming::Undrawn => None,
        }
    }

    fn is_ready(&self, now: Timestamp) -> bool {
        match self.arming {
            Arming::Undrawn => false,
            Arming::Until(moment) => moment <= now,
        }
    }

    /// Whether an action has any effect in this step.
    pub(crate) fn can(&self, action: Action) -> bool {
        match self.step {
            Step::Editing => true,
            Step::Reviewing(_) | Step::Denying(_) => action != Action::Review,
            Step::Writing(_) => false,
            Step::Settled(_) => {
                matches!(action, Action::Back | Action::SwitchPane | Action::PageDown)
            }
        }
    }

    /// What stands around it changed.
    pub(crate) fn on_around(&mut self, around: Around) {
        self.around = around;
    }

    /// A key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> Handled {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if alt || !self.is_ready(now) || matches!(self.step, Step::Writing(_)) {
            return Handled::quietly();
        }
        self.notice = None;
        let Some(action) = lookup(Scope::Gate, key) else {
            self.type_key(key);
            return Handled::quietly();
        };
        match action {
            Action::Help => return Handled::with(Change::Help(Scope::Gate)),
            Action::SwitchPane => {
                self.pane = match self.pane {
                    Pane::Context => Pane::Form,
                    Pane::Form => Pane::Context,
                };
            }
            Action::PageDown => self.context.scroll(self.page(), self.height),
            Action::PageUp => self.context.scroll(-self.page(), self.height),
            Action::Back => return self.back(),
            Action::Next => self.move_focus(Towards::Next),
            Action::Previous => self.move_focus(Towards::Previous),
            Action::Review => self.review(now),
            Action::Press => return self.press(key, now),
            Action::ShowQueue
            | Action::ShowTrace
            | Action::Quit
            | Action::Cancel
            | Action::Redraw
            | Action::Suspend
            | Action::Up
            | Action::Down
            | Action::First
            | Action::Last
            | Action::Open
            | Action::Deny
            | Action::Merge
            | Action::Verify
            | Action::Reload
            | Action::Browse(_)
            | Action::Choose => {}
        }
        Handled::quietly()
    }

    /// One row less than a page, so that the eye keeps its place.
    fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// One level back.
    pub(crate) fn back(&mut self) -> Handled {
        if self.pane == Pane::Context {
            self.pane = Pane::Form;
            return Handled::quietly();
        }
        match self.step {
            Step::Reviewing(_) | Step::Denying(_) => {
                self.step = Step::Editing;
                Handled::quietly()
            }
            Step::Writing(_) => Handled::quietly(),
            Step::Editing | Step::Settled(_) => Handled::with(Change::Close),
        }
    }

    fn move_focus(&mut self, towards: Towards) {
        if self.pane == Pane::Context {
            self.pane = Pane::Form;
            return;
        }
        let care = care(&self.held);
        match &mut self.step {
            Step::Editing => self.form.step(towards),
            Step::Reviewing(review) => {
                let spots: &[ReviewSpot] = match care {
                    Care::Challenged => {
                        &[ReviewSpot::Challenge, ReviewSpot::Back, ReviewSpot::PassNow]
                    }
                    Care::Direct | Care::Reviewed => &[ReviewSpot::Back, ReviewSpot::PassNow],
                };
                review.spot = next(spots, review.spot, towards);
            }
            Step::Denying(spot) => {
                let spots = [DenySpot::Reason, DenySpot::Back, DenySpot::DenyNow];
                *spot = next(&spots, *spot, towards);
            }
            Step::Writing(_) | Step::Settled(_) => {}
        }
    }

    /// A key that is no command: text, or a move within the focused part.
    fn type_key(&mut self, key: KeyEvent) {
        if self.pane == Pane::Context {
            match key.code {
                KeyCode::Up => self.context.scroll(-1, self.height),
                KeyCode::Down => self.context.scroll(1, self.height),
                _ => {}
            }
            return;
        }
        let sideways = match key.code {
            KeyCode::Left => Some(Towards::Previous),
            KeyCode::Right => Some(Towards::Next),
            _ => None,
        };
        match &mut self.step {
            Step::Editing => match self.form.focused() {
                Some(field) => field.on_key(key),
                None => self.slide(sideways),
            },
            Step::Reviewing(review) if review.spot == ReviewSpot::Challenge => {
                edit_line(&mut review.typed, key);
            }
            Step::Denying(DenySpot::Reason) => edit(&mut self.form.reason, key),
            Step::Reviewing(_) | Step::Denying(_) => self.slide(sideways),
            Step::Writing(_) | Step::Settled(_) => {}
        }
    }

    fn slide(&mut self, sideways: Option<Towards>) {
        if let Some(towards) = sideways {
            self.move_focus(towards);
        }
    }

    /// A pasted text: into the focused field, or nowhere. It never presses anything.
    pub(crate) fn on_paste(&mut self, text: &str, now: Timestamp) {
        if !self.is_ready(now) || self.pane == Pane::Context {
            return;
        }
        match &mut self.step {
            Step::Editing => {
                if let Some(field) = self.form.focused() {
                    field.on_paste(text);
                }
            }
            Step::Reviewing(review) if review.spot == ReviewSpot::Challenge => {
                paste_line(&mut review.typed, text);
            }
            Step::Denying(DenySpot::Reason) => paste(&mut self.form.reason, text),
            Step::Reviewing(_) | Step::Denying(_) | Step::Writing(_) | Step::Settled(_) => {}
        }
    }

    /// Takes in what is true now: the request may be settled, or another one.
    pub(crate) fn on_snapshot(&mut self, snapshot: &Snapshot) {
        self.kept = snapshot.drafts.get(&self.held.id).cloned();
        if matches!(self.step, Step::Settled(_)) {
            return;
        }
        match queue::find(&snapshot.held, &self.held.id) {
            Some(held) if self.form.is_for(held) => self.held = Arc::clone(held),
            Some(_) => self.stale = Some("the request changed: close and open it again".to_owned()),
            // What was sent gets its own answer; until then it is not known who was first.
            None if matches!(self.step, Step::Writing(_)) => {}
            None => {
                let mut decided = snapshot.decided.iter();
                let decided = decided.find(|decided| decided.gate == self.held.id);
                self.step = Step::Settled(decided.cloned());
            }
        }
    }

    /// A heading for people: identifier and action.
    fn heading(&self) -> String {
        format!("{}  {}", self.held.id, one_line(self.held.action()))
    }
}
