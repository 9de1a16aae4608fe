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

use ratatui::Frame;
use ratatui::crossterm::event::{KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use serde_json::Value;

use self::batch::RequestBatch;
use self::context::ContextPane;
use self::failed_recording::FailedRecording;
use self::form::{AnswerForm, FormFocus, MoveDirection};
use self::step::{Arming, DenyFocus, GatePane, ReviewFocus};
use super::super::dialog::{Dialog, KeyResult, LayerChange, Repaint};
use super::super::keymap::{KeyAction, KeyScope, Motion, find_action};
use super::super::names::action_words;
use super::super::request::ConsoleRequest;
use super::super::screen::queue::overrules;
use super::super::theme::Appearance;
use crate::base::clock::Timestamp;
use crate::base::id::HeldRequestId;
use crate::base::limits::DIALOG_ARMING_TIME;
use crate::engine::command::AnswerProblem;
use crate::engine::held::Held;
use crate::runtime::snapshot::SessionSummary;

mod batch;
mod blockers;
mod button_press;
mod changed_request;
mod claim_question;
mod context;
mod draft;
mod external_editor;
mod failed_recording;
mod field;
mod form;
mod keys;
mod markdown;
mod minimised_bar;
mod pace;
mod picker;
mod planned_records;
mod reply;
mod scroll;
mod skeleton;
mod step;
pub(super) mod text_editing;
mod view;

pub(crate) use self::context::{LayoutJob, RequestLayout, hidden_chars_text, request_text};
pub(crate) use self::form::AnswerForm as Draft;
pub(crate) use self::pace::RecentPass;
pub(crate) use self::planned_records::{PlannedAnswers, justified_by_answers, plan_records};
pub(crate) use self::reply::ReplyEffect;
pub(crate) use self::step::{
    CHALLENGE_CHARS, DecisionContext, DecisionKind, DecisionStep, DialogEntry, PassCare, PassProof,
    RecordTrouble, answers_challenge, care_for_request, shown_action,
};

/// Dialog of a held request.
#[derive(Debug)]
pub(crate) struct GateDialog {
    /// The request as it was when the dialog opened.
    held: Arc<Held>,
    form: AnswerForm,
    context: ContextPane,
    pane: GatePane,
    step: DecisionStep,
    /// Entry point by which the operator opened the dialog.
    entry: DialogEntry,
    arming: Arming,
    decision_context: DecisionContext,
    /// Reason why the last decision was not accepted, or why a key had no effect.
    notice: Option<String>,
    /// Reason why this request can no longer be passed.
    stale: Option<String>,
    /// A decision that could not be recorded, and the part of it that is on disk.
    failed_recording: Option<FailedRecording>,
    /// Problems of the answers sent last.
    problems: Vec<AnswerProblem>,
    /// The newer version of the request, while a decision about the version before is being recorded.
    newer: Option<Arc<Held>>,
    /// Summary of the request's session.
    session: Option<SessionSummary>,
    /// Number of recorded events of the session.
    events: u64,
    /// Sequence number of the first record of the decision in progress.
    first_record: u64,
    /// Time of the first paint.
    shown_at: Option<Timestamp>,
    /// Height of the context pane at the last paint, in rows.
    height: usize,
    /// Draft that was last sent to be kept.
    sent_draft: Option<Value>,
    /// Draft that is kept on disk.
    stored_draft: Option<Value>,
    /// Requests that are decided together with this one.
    batch: RequestBatch,
    /// Operators, as text, whose claims this press ignores.
    ignored_claims: Option<String>,
}

impl GateDialog {
    /// Opens a request, with its kept draft and the summary of its session.
    pub(crate) fn new(
        held: Arc<Held>,
        session: Option<&SessionSummary>,
        draft: Option<AnswerForm>,
        entry: DialogEntry,
        decision_context: DecisionContext,
    ) -> Self {
        let form = draft
            .filter(|draft| draft.is_for(&held))
            .unwrap_or_else(|| AnswerForm::new(&held));
        let step = match entry {
            DialogEntry::Answer | DialogEntry::Override => DecisionStep::Editing,
            DialogEntry::Deny => DecisionStep::Denying(DenyFocus::Reason),
        };
        Self {
            context: ContextPane::new(&held, session),
            pane: GatePane::Form,
            step,
            entry,
            arming: Arming::Undrawn,
            decision_context,
            notice: None,
            stale: None,
            failed_recording: None,
            problems: Vec::new(),
            newer: None,
            session: session.cloned(),
            events: session.map_or(0, |session| session.events),
            first_record: 0,
            shown_at: None,
            height: 0,
            sent_draft: form.to_stored(),
            stored_draft: None,
            batch: RequestBatch::default(),
            ignored_claims: None,
            form,
            held,
        }
    }

    /// Identifier of the request.
    pub(crate) fn gate(&self) -> &HeldRequestId {
        &self.held.id
    }

    /// Changes the entry point when the dialog is opened again.
    pub(crate) fn enter_by(&mut self, entry: DialogEntry) {
        self.entry = entry;
        if entry == DialogEntry::Deny && matches!(self.step, DecisionStep::Editing) {
            self.step = DecisionStep::Denying(DenyFocus::Reason);
        }
    }

    /// Returns true if passing the request overrides a denial.
    pub(crate) fn overrules(&self) -> bool {
        overrules(&self.held)
    }

    /// Notes that the dialog was painted: the arming time starts, and the visible rows count as seen.
    pub(crate) fn on_drawn(
        &mut self,
        area: Rect,
        appearance: Appearance,
        now: Timestamp,
    ) -> Repaint {
        let before = (self.context.percent(), self.is_sheet_seen());
        self.shown_at.get_or_insert(now);
        if self.arming == Arming::Undrawn {
            self.arming = Arming::Until(now.plus(DIALOG_ARMING_TIME));
        }
        self.lay_out(area, appearance);
        let sheet = view::sheet(self, area, appearance, now);
        if let (Some(scroll), Some(sheet)) = (self.sheet(), sheet) {
            scroll.mark_painted(sheet);
        }
        if self.height > 0 {
            self.context.mark_painted(self.height);
        }
        if (self.context.percent(), self.is_sheet_seen()) == before {
            Repaint::No
        } else {
            Repaint::Yes
        }
    }

    /// Lays out the request for the area it will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        let inner = view::context_area(self, area);
        self.height = usize::from(inner.height);
        if inner.width > 0 {
            self.context.reflow(usize::from(inner.width), appearance);
        }
    }

    /// Returns the part of the request to lay out in the background.
    pub(crate) fn take_layout_job(&mut self) -> Option<LayoutJob> {
        self.context.take_layout_job(&self.held.id)
    }

    /// Takes over the layout of the request.
    pub(crate) fn on_laid_out(&mut self, laid: &mut RequestLayout) {
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
    pub(crate) fn can(&self, action: KeyAction) -> bool {
        if action == KeyAction::NextMatch && self.context.query().is_empty() {
            return false;
        }
        // The request pane has no buttons; F6 leads to them.
        if self.pane != GatePane::Form && matches!(action, KeyAction::Press | KeyAction::Next) {
            return false;
        }
        match self.step {
            DecisionStep::Editing => true,
            DecisionStep::Reviewing(_) | DecisionStep::Denying(_) | DecisionStep::Claimed(_) => {
                action != KeyAction::Review
            }
            DecisionStep::Changed(_) => {
                !matches!(action, KeyAction::Review | KeyAction::EditOutside)
            }
            DecisionStep::Writing(_) => false,
            DecisionStep::Settled(_) => matches!(
                action,
                KeyAction::Back | KeyAction::SwitchPane | KeyAction::PageDown | KeyAction::Minimise
            ),
        }
    }

    /// Label of an action in this state, if it differs from the key table.
    pub(crate) fn label(&self, action: KeyAction) -> Option<&'static str> {
        let elsewhere = self.pane != GatePane::Form;
        let answers = action == KeyAction::SwitchPane && elsewhere;
        let widens = action == KeyAction::Back && !elsewhere && self.is_narrowed();
        answers
            .then_some("answers")
            .or(widens.then_some("list all"))
    }

    /// Returns true if the focused field lists only some of its options.
    fn is_narrowed(&self) -> bool {
        let FormFocus::Field(at) = self.form.focus else {
            return false;
        };
        let field = self.form.fields.get(at);
        matches!(self.step, DecisionStep::Editing)
            && field.is_some_and(field::AnswerField::is_narrowed)
    }

    /// Scope for the keys of the focused part, in addition to the dialog's own.
    pub(crate) fn inner_scope(&self) -> Option<KeyScope> {
        match (self.pane, &self.step) {
            (GatePane::Context | GatePane::Search, _) => Some(KeyScope::Request),
            (GatePane::Form, DecisionStep::Editing) => match self.form.focus {
                FormFocus::Field(at) => self.form.fields.get(at)?.scope(),
                FormFocus::Back | FormFocus::Deny | FormFocus::Pass => None,
            },
            (GatePane::Form, _) => None,
        }
    }

    /// Takes over changed console state: operator, access, faults, recent passes.
    pub(crate) fn set_decision_context(&mut self, context: DecisionContext) {
        self.decision_context = context;
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if alt || !self.is_ready(now) || matches!(self.step, DecisionStep::Writing(_)) {
            return KeyResult::quietly();
        }
        self.notice = None;
        if self.pane == GatePane::Search {
            return self.type_search(key);
        }
        let reason =
            find_action(KeyScope::Request, key).filter(|action| *action == KeyAction::Explain);
        let action = reason.filter(|_| self.pane == GatePane::Context);
        let Some(action) = action.or_else(|| find_action(KeyScope::Gate, key)) else {
            self.type_key(key);
            return KeyResult::quietly();
        };
        match action {
            KeyAction::Help => return KeyResult::with(LayerChange::Help(KeyScope::Gate)),
            KeyAction::SwitchPane => self.switch_pane(),
            KeyAction::PageDown => self.turn_page(MoveDirection::Next),
            KeyAction::PageUp => self.turn_page(MoveDirection::Previous),
            KeyAction::Back => return self.back(),
            KeyAction::Next => self.move_focus(MoveDirection::Next),
            KeyAction::Previous => self.move_focus(MoveDirection::Previous),
            KeyAction::Review => self.review(now),
            KeyAction::Press => return self.press(key, now),
            KeyAction::EditOutside => return self.open_external_editor(),
            KeyAction::Explain => {
                return KeyResult::with(LayerChange::Explain(self.held.id.clone()));
            }
            KeyAction::Minimise => return KeyResult::with(LayerChange::Minimise),
            // No other action has a key in this scope.
            _ => {}
        }
        KeyResult::quietly()
    }

    fn switch_pane(&mut self) {
        self.pane = match self.pane {
            GatePane::Context | GatePane::Search => GatePane::Form,
            GatePane::Form => GatePane::Context,
        };
    }

    /// Heading for the operator: identifier and action.
    fn heading(&self) -> String {
        if self.is_batch() {
            return format!("batch of {}: {}", self.members().len(), self.ids());
        }
        format!("{}  {}", self.held.id, action_words(&self.held))
    }
}

impl Dialog for GateDialog {
    fn scope(&self) -> KeyScope {
        KeyScope::Gate
    }

    fn on_key(&mut self, key: KeyEvent, now: Timestamp) -> KeyResult {
        Self::on_key(self, key, now)
    }

    fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance, now: Timestamp) {
        Self::draw(self, frame, area, appearance, now);
    }

    fn inner_scope(&self) -> Option<KeyScope> {
        Self::inner_scope(self)
    }

    fn can(&self, action: KeyAction) -> bool {
        Self::can(self, action)
    }

    fn label(&self, action: KeyAction) -> Option<&'static str> {
        Self::label(self, action)
    }

    fn on_paste(&mut self, text: &str, now: Timestamp) -> Vec<ConsoleRequest> {
        Self::on_paste(self, text, now);
        Vec::new()
    }

    fn on_wheel(&mut self, motion: Motion, _now: Timestamp) {
        // Not handled as a key: that would move the focus.
        self.wheel(motion);
    }

    fn cancel(&mut self) -> KeyResult {
        self.back()
    }

    fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        Self::lay_out(self, area, appearance);
    }

    fn on_drawn(&mut self, area: Rect, appearance: Appearance, now: Timestamp) -> Repaint {
        Self::on_drawn(self, area, appearance, now)
    }

    fn arms_at(&self, now: Timestamp) -> Option<Timestamp> {
        Self::arms_at(self, now)
    }
}
