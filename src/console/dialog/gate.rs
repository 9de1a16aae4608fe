//! Dialog in which an operator reads and decides a held request.
//!
//! The dialog owns the answers typed so far, the rows of the request that were on screen, and the
//! progress of the decision. Contracts:
//! - A decision comes only from Enter on a focused, enabled button of this dialog.
//! - Keys that arrive before the dialog was painted, or within the arming time after, are dropped.
//! - Pass is enabled only after the whole request was on screen and if every answer is valid.
//! - As soon as the request is settled, here or elsewhere, the controls disappear.
//!
//! The dialog learns the result of a decision only from the runtime's reply: until then, it waits.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use serde_json::Value;

use self::batch::Together;
use self::context::Context;
use self::form::{Form, Spot, Towards};
use self::refusal::Refusal;
use self::step::{Arming, DenySpot, Pane, ReviewSpot};
use super::super::keymap::{Action, Scope, lookup};
use super::super::layer::{Change, Handled, Repaint};
use super::super::screen::queue::overrules;
use super::super::theme::Look;
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::base::limits::ARMING;
use crate::base::text::one_line;
use crate::engine::command::Problem;
use crate::engine::held::Held;
use crate::runtime::snapshot::SessionSummary;

mod bar;
mod bars;
mod batch;
mod changed;
mod claimed;
mod context;
mod draft;
mod field;
mod form;
mod keys;
mod markdown;
mod outside;
mod pace;
mod pick;
mod press;
mod records;
mod refusal;
mod reply;
mod scroll;
mod skeleton;
mod step;
pub(super) mod text;
mod view;

pub(crate) use self::context::{LaidOut, LayOut, hidden_words, request_text};
pub(crate) use self::form::Form as Draft;
pub(crate) use self::pace::Pass;
pub(crate) use self::records::{PlannedAnswers, justified_by_answers, records_of};
pub(crate) use self::reply::After;
pub(crate) use self::step::{
    Around, CHALLENGE, Care, Entry, Proof, Step, Trouble, Verb, answers_challenge, care,
    shown_action,
};

/// Dialog of a held request.
#[derive(Debug)]
pub(crate) struct GateDialog {
    /// The request as it was when the dialog opened.
    held: Arc<Held>,
    form: Form,
    context: Context,
    pane: Pane,
    step: Step,
    /// Entry point by which the operator opened the dialog.
    entry: Entry,
    arming: Arming,
    around: Around,
    /// Reason why the last decision was not accepted, or why a key had no effect.
    notice: Option<String>,
    /// Reason why this request can no longer be passed.
    stale: Option<String>,
    /// A decision that could not be recorded, and the part of it that is on disk.
    refusal: Option<Refusal>,
    /// Problems of the answers sent last.
    problems: Vec<Problem>,
    /// The newer version of the request, while a decision about the version before is being recorded.
    newer: Option<Arc<Held>>,
    /// Summary of the request's session.
    session: Option<SessionSummary>,
    /// Number of recorded events of the session.
    events: u64,
    /// Sequence number of the first record of the decision in progress.
    written_from: u64,
    /// Time of the first paint.
    shown_at: Option<Timestamp>,
    /// Height of the context pane at the last paint, in rows.
    height: usize,
    /// Draft that was last sent to be kept.
    told: Option<Value>,
    /// Draft that is kept on disk.
    kept: Option<Value>,
    /// Requests that are decided together with this one.
    together: Together,
    /// Operators, as text, whose claims this press ignores.
    over_claim: Option<String>,
}

impl GateDialog {
    /// Opens a request, with its kept draft and the summary of its session.
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
            Entry::Answer | Entry::Override => Step::Editing,
            Entry::Deny => Step::Denying(DenySpot::Reason),
        };
        Self {
            context: Context::new(&held, session),
            pane: Pane::Form,
            step,
            entry,
            arming: Arming::Undrawn,
            around,
            notice: None,
            stale: None,
            refusal: None,
            problems: Vec::new(),
            newer: None,
            session: session.cloned(),
            events: session.map_or(0, |session| session.events),
            written_from: 0,
            shown_at: None,
            height: 0,
            told: form.kept(),
            kept: None,
            together: Together::default(),
            over_claim: None,
            form,
            held,
        }
    }

    /// Identifier of the request.
    pub(crate) fn gate(&self) -> &GateId {
        &self.held.id
    }

    /// Changes the entry point when the dialog is opened again.
    pub(crate) fn enter_by(&mut self, entry: Entry) {
        self.entry = entry;
        if entry == Entry::Deny && matches!(self.step, Step::Editing) {
            self.step = Step::Denying(DenySpot::Reason);
        }
    }

    /// Returns true if passing the request overrides a denial.
    pub(crate) fn overrules(&self) -> bool {
        overrules(&self.held)
    }

    /// Notes that the dialog was painted: the arming time starts, and the visible rows count as seen.
    pub(crate) fn on_drawn(&mut self, area: Rect, look: Look, now: Timestamp) -> Repaint {
        let before = (self.context.percent(), self.is_sheet_seen());
        self.shown_at.get_or_insert(now);
        if self.arming == Arming::Undrawn {
            self.arming = Arming::Until(now.plus(ARMING));
        }
        self.lay_out(area, look);
        let sheet = view::sheet(self, area, look, now);
        if let (Some(scroll), Some(sheet)) = (self.sheet(), sheet) {
            scroll.painted(sheet);
        }
        if self.height > 0 {
            self.context.painted(self.height);
        }
        if (self.context.percent(), self.is_sheet_seen()) == before {
            Repaint::No
        } else {
            Repaint::Yes
        }
    }

    /// Lays out the request for the area it will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, look: Look) {
        let inner = view::context_area(self, area);
        self.height = usize::from(inner.height);
        if inner.width > 0 {
            self.context.reflow(usize::from(inner.width), look);
        }
    }

    /// Returns the part of the request to lay out in the background.
    pub(crate) fn wants_rows(&mut self) -> Option<LayOut> {
        self.context.wants(&self.held.id)
    }

    /// Takes over the layout of the request.
    pub(crate) fn on_laid_out(&mut self, laid: &mut LaidOut) {
        let waited = !self.context.is_laid_out();
        self.context.on_laid_out(laid);
        if waited && self.context.is_laid_out() {
            // The notice may say that there is nothing to search yet.
            self.notice = None;
        }
    }

    /// Returns the end of the arming time, while it runs.
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

    /// Returns true if an action has an effect in this step.
    pub(crate) fn can(&self, action: Action) -> bool {
        if action == Action::NextMatch && self.context.query().is_empty() {
            return false;
        }
        // The request pane has no buttons; F6 leads to them.
        if self.pane != Pane::Form && matches!(action, Action::Press | Action::Next) {
            return false;
        }
        match self.step {
            Step::Editing => true,
            Step::Reviewing(_) | Step::Denying(_) | Step::Claimed(_) => action != Action::Review,
            Step::Changed(_) => !matches!(action, Action::Review | Action::EditOutside),
            Step::Writing(_) => false,
            Step::Settled(_) => matches!(
                action,
                Action::Back | Action::SwitchPane | Action::PageDown | Action::Minimise
            ),
        }
    }

    /// Label of an action in this state, if it differs from the key table.
    pub(crate) fn label(&self, action: Action) -> Option<&'static str> {
        let elsewhere = self.pane != Pane::Form;
        let answers = action == Action::SwitchPane && elsewhere;
        let widens = action == Action::Back && !elsewhere && self.is_narrowed();
        answers
            .then_some("answers")
            .or(widens.then_some("list all"))
    }

    /// Returns true if the focused field lists only some of its options.
    fn is_narrowed(&self) -> bool {
        let Spot::Field(at) = self.form.focus else {
            return false;
        };
        let field = self.form.fields.get(at);
        matches!(self.step, Step::Editing) && field.is_some_and(field::Field::is_narrowed)
    }

    /// Scope for the keys of the focused part, in addition to the dialog's own.
    pub(crate) fn inner_scope(&self) -> Option<Scope> {
        match (self.pane, &self.step) {
            (Pane::Context | Pane::Search, _) => Some(Scope::Request),
            (Pane::Form, Step::Editing) => match self.form.focus {
                Spot::Field(at) => self.form.fields.get(at)?.scope(),
                Spot::Back | Spot::Deny | Spot::Pass => None,
            },
            (Pane::Form, _) => None,
        }
    }

    /// Takes over changed console state: operator, access, faults, recent passes.
    pub(crate) fn on_around(&mut self, around: Around) {
        self.around = around;
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> Handled {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if alt || !self.is_ready(now) || matches!(self.step, Step::Writing(_)) {
            return Handled::quietly();
        }
        self.notice = None;
        if self.pane == Pane::Search {
            return self.type_search(key);
        }
        let why = lookup(Scope::Request, key).filter(|action| *action == Action::Explain);
        let action = why.filter(|_| self.pane == Pane::Context);
        let Some(action) = action.or_else(|| lookup(Scope::Gate, key)) else {
            self.type_key(key);
            return Handled::quietly();
        };
        match action {
            Action::Help => return Handled::with(Change::Help(Scope::Gate)),
            Action::SwitchPane => self.switch_pane(),
            Action::PageDown => self.turn_page(Towards::Next),
            Action::PageUp => self.turn_page(Towards::Previous),
            Action::Back => return self.back(),
            Action::Next => self.move_focus(Towards::Next),
            Action::Previous => self.move_focus(Towards::Previous),
            Action::Review => self.review(now),
            Action::Press => return self.press(key, now),
            Action::EditOutside => return self.edit_outside(),
            Action::Explain => return Handled::with(Change::Explain(self.held.id.clone())),
            Action::Minimise => return Handled::with(Change::Minimise),
            Action::ShowQueue
            | Action::ShowTrace
            | Action::ShowThreads
            | Action::ShowAtlas
            | Action::WhatIf
            | Action::NextProblem
            | Action::PreviousProblem
            | Action::NextSession
            | Action::PreviousSession
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
            | Action::Undo
            | Action::Redo
            | Action::Skeleton
            | Action::Restore
            | Action::SearchRequest
            | Action::NextMatch
            | Action::PreviousMatch
            | Action::Browse(_)
            | Action::Queue(_)
            | Action::Steward(_)
            | Action::Thread(_)
            | Action::Snapshot(_)
            | Action::Palette
            | Action::Mouse
            | Action::KnowAlarms
            | Action::Choose => {}
        }
        Handled::quietly()
    }

    fn switch_pane(&mut self) {
        self.pane = match self.pane {
            Pane::Context | Pane::Search => Pane::Form,
            Pane::Form => Pane::Context,
        };
    }

    /// Heading for the operator: identifier and action.
    fn heading(&self) -> String {
        if self.is_batch() {
            return format!("batch of {}: {}", self.members().len(), self.ids());
        }
        format!("{}  {}", self.held.id, one_line(self.held.action()))
    }
}
