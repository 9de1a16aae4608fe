//! Form for a hypothetical request or input, and the explanation of its result. Nothing typed here
//! reaches an agent or a record.
//!
//! Contract: only one question is in progress at a time. The answer shown belongs to the current
//! fields, or the view says that it does not.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui_textarea::TextArea;
use serde_json::{Value, json};

use super::super::dialog::{Dialog, ExplainResult, KeyResult, LayerChange};
use super::super::explanation_lines;
use super::super::keymap::{KeyAction, KeyScope, find_action};
use super::super::request::{ConsoleRequest, Ticket};
use super::super::text_cells::wrap;
use super::super::theme::{Appearance, Meaning};
use super::gate::text_editing::{
    edit, edit_line, editor, numbered_editor, paste, paste_line, replace, text_of,
};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::json;
use crate::engine::explanation::{
    ExplainQuestion, ExplainedSession, FullExplanation, HypotheticalSession,
};
use crate::runtime::snapshot::SessionList;

mod view;

/// Dialog for a hypothetical request.
#[derive(Debug)]
pub(crate) struct WhatIfDialog {
    ticket: Ticket,
    /// Existing sessions that could ask. The hypothetical session comes before them.
    sessions: Vec<(SessionId, String)>,
    /// Index of the asking session; `None` for the hypothetical one.
    asker: Option<usize>,
    agent: TextArea<'static>,
    action: TextArea<'static>,
    params: TextArea<'static>,
    input: TextArea<'static>,
    field: WhatIfField,
    /// Problem of the parameters.
    problem: Option<String>,
    asking: WhatIfAnswerState,
    results: Vec<Result<Box<FullExplanation>, String>>,
    lines: Vec<Line<'static>>,
    place: Rect,
    top: usize,
}

/// A field of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhatIfField {
    Who,
    Agent,
    Action,
    Params,
    Input,
}

/// State of the answer compared with the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhatIfAnswerState {
    /// The answer belongs to the current fields.
    Done,
    /// The answer was requested.
    Asked,
    /// The answer was requested, and the fields changed since.
    Outdated,
}

impl WhatIfDialog {
    /// Creates an empty form. `session` asks, if it is given.
    pub(crate) fn new(
        number: u64,
        sessions: &SessionList,
        session: Option<&SessionId>,
        action: &str,
    ) -> Self {
        let sessions: Vec<_> = sessions
            .iter()
            .map(|summary| (summary.id.clone(), summary.agent.clone()))
            .collect();
        let mut dialog = Self {
            ticket: Ticket(number, 0),
            asker: sessions.iter().position(|(id, _)| Some(id) == session),
            sessions,
            agent: editor(),
            action: editor(),
            params: numbered_editor(),
            input: editor(),
            field: WhatIfField::Action,
            problem: None,
            asking: WhatIfAnswerState::Done,
            results: Vec::new(),
            lines: Vec::new(),
            place: Rect::ZERO,
            top: 0,
        };
        replace(&mut dialog.agent, "agent");
        replace(&mut dialog.action, action);
        replace(&mut dialog.params, "{}");
        dialog
    }

    /// Requests the result for the current fields, unless a request is in progress.
    pub(crate) fn ask(&mut self) -> Option<ConsoleRequest> {
        self.place = Rect::ZERO;
        if self.asking != WhatIfAnswerState::Done {
            self.asking = WhatIfAnswerState::Outdated;
            return None;
        }
        let questions = self.questions();
        if questions.is_empty() {
            self.results.clear();
            return None;
        }
        self.ticket.1 += 1;
        self.asking = WhatIfAnswerState::Asked;
        Some(ConsoleRequest::Explain(self.ticket, questions))
    }

    fn questions(&mut self) -> Vec<ExplainQuestion> {
        let asker = match self.asker.and_then(|at| self.sessions.get(at)) {
            Some((id, _)) => ExplainedSession::Session(id.clone()),
            None => ExplainedSession::Imagined(HypotheticalSession {
                agent: Some(text_of(&self.agent)),
                ..HypotheticalSession::default()
            }),
        };
        let (action, input) = (text_of(&self.action), text_of(&self.input));
        let mut questions = Vec::new();
        let params = self.params();
        self.problem = params.as_ref().err().cloned();
        if let (false, Ok(params)) = (action.trim().is_empty(), params) {
            questions.push(ExplainQuestion::Action {
                action: action.trim().to_owned(),
                params,
                asker: asker.clone(),
            });
        }
        if !input.trim().is_empty() {
            questions.push(ExplainQuestion::Input { text: input, asker });
        }
        questions
    }

    /// Parses the parameters. The error gives the problem and its position.
    fn params(&self) -> Result<Value, String> {
        let text = text_of(&self.params);
        if text.trim().is_empty() {
            return Ok(json!({}));
        }
        json::read(text.as_bytes()).map_err(|error| {
            let (line, column) = error.place(text.as_bytes());
            format!("line {line}, column {column}: {}", error.message())
        })
    }

    /// Takes over the answer. Asks again if the fields changed meanwhile.
    pub(crate) fn on_explained(
        &mut self,
        ticket: Ticket,
        results: &[Result<Box<FullExplanation>, String>],
    ) -> Option<ConsoleRequest> {
        if ticket != self.ticket {
            return None;
        }
        let outdated = self.asking == WhatIfAnswerState::Outdated;
        self.asking = WhatIfAnswerState::Done;
        self.results = results.to_vec();
        self.place = Rect::ZERO;
        if outdated { self.ask() } else { None }
    }

    /// Handles a key press.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        match find_action(KeyScope::WhatIf, key) {
            Some(KeyAction::Back) => return KeyResult::with(LayerChange::Close),
            Some(KeyAction::Help) => return KeyResult::with(LayerChange::Help(KeyScope::WhatIf)),
            Some(KeyAction::Next) => self.cycle_focus(1),
            Some(KeyAction::Previous) => self.cycle_focus(self.fields().len() - 1),
            Some(KeyAction::PageDown) => self.top = (self.top + 5).min(self.max_scroll()),
            Some(KeyAction::PageUp) => self.top = self.top.saturating_sub(5),
            Some(_) | None => return self.type_key(key),
        }
        KeyResult::quietly()
    }

    fn type_key(&mut self, key: KeyEvent) -> KeyResult {
        let before = self.field_values();
        match self.field {
            WhatIfField::Who => match key.code {
                KeyCode::Right | KeyCode::Char(' ') => self.select_asker(1),
                KeyCode::Left => self.select_asker(self.sessions.len()),
                _ => {}
            },
            WhatIfField::Agent => edit_line(&mut self.agent, key),
            WhatIfField::Action => edit_line(&mut self.action, key),
            WhatIfField::Params => edit(&mut self.params, key),
            WhatIfField::Input => edit(&mut self.input, key),
        }
        self.ask_if_changed(&before)
    }

    /// Handles a pasted text: it goes into the focused field.
    pub(crate) fn on_paste(&mut self, text: &str) -> Option<ConsoleRequest> {
        let before = self.field_values();
        match self.field {
            WhatIfField::Who => {}
            WhatIfField::Agent => paste_line(&mut self.agent, text),
            WhatIfField::Action => paste_line(&mut self.action, text),
            WhatIfField::Params => paste(&mut self.params, text),
            WhatIfField::Input => paste(&mut self.input, text),
        }
        if self.field_values() == before {
            None
        } else {
            self.ask()
        }
    }

    fn ask_if_changed(&mut self, before: &(Option<usize>, [String; 4])) -> KeyResult {
        if self.field_values() == *before {
            return KeyResult::quietly();
        }
        self.top = 0;
        match self.ask() {
            Some(request) => KeyResult::with(LayerChange::Send(request)),
            None => KeyResult::quietly(),
        }
    }

    fn field_values(&self) -> (Option<usize>, [String; 4]) {
        let texts = [&self.agent, &self.action, &self.params, &self.input].map(text_of);
        (self.asker, texts)
    }

    /// Selects the next asker: the hypothetical session, then each existing one, then from the start.
    fn select_asker(&mut self, steps: usize) {
        let at = self.asker.map_or(0, |at| at + 1);
        let next = (at + steps) % (self.sessions.len() + 1);
        self.asker = next.checked_sub(1);
    }

    /// Lists the fields in use: only a hypothetical session needs an agent name.
    fn fields(&self) -> Vec<WhatIfField> {
        let mut fields = vec![
            WhatIfField::Who,
            WhatIfField::Agent,
            WhatIfField::Action,
            WhatIfField::Params,
            WhatIfField::Input,
        ];
        if self.asker.is_some() {
            fields.retain(|field| *field != WhatIfField::Agent);
        }
        fields
    }

    fn cycle_focus(&mut self, steps: usize) {
        let fields = self.fields();
        let at = fields
            .iter()
            .position(|field| *field == self.field)
            .unwrap_or(0);
        if let Some(field) = fields.get((at + steps) % fields.len()) {
            self.field = *field;
        }
    }

    /// Lays out the answer for the area it will be painted in.
    pub(crate) fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        let place = view::answer_area(area);
        if self.place == place {
            return;
        }
        self.place = place;
        let cells = usize::from(place.width).saturating_sub(4);
        let mut lines: Vec<Line> = Vec::new();
        let mut say = |text: &str, meaning: Meaning| {
            let rows = wrap(text, cells).into_iter();
            lines.extend(rows.map(|row| Line::styled(row, appearance.style(meaning))));
        };
        if self.results.is_empty() {
            let text = match self.asking {
                WhatIfAnswerState::Done => {
                    "Type an action or an input. The result with the loaded Atlases appears here, \
                    with what each checkpoint expected and found. Nothing is sent, recorded or \
                    counted."
                }
                WhatIfAnswerState::Asked | WhatIfAnswerState::Outdated => "evaluating ...",
            };
            say(text, Meaning::Dim);
        }
        for (at, result) in self.results.iter().enumerate() {
            if at > 0 {
                lines.push(Line::default());
            }
            lines.extend(explanation_lines::render_result(result, cells, appearance));
        }
        self.lines = lines;
        self.top = self.top.min(self.max_scroll());
    }

    fn max_scroll(&self) -> usize {
        let visible = usize::from(self.place.height).saturating_sub(2);
        self.lines.len().saturating_sub(visible)
    }
}

impl Dialog for WhatIfDialog {
    fn scope(&self) -> KeyScope {
        KeyScope::WhatIf
    }

    fn on_key(&mut self, key: KeyEvent, _now: Timestamp) -> KeyResult {
        Self::on_key(self, key)
    }

    fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance, _now: Timestamp) {
        Self::draw(self, frame, area, appearance);
    }

    fn on_paste(&mut self, text: &str, _now: Timestamp) -> Vec<ConsoleRequest> {
        Self::on_paste(self, text).into_iter().collect()
    }

    fn lay_out(&mut self, area: Rect, appearance: Appearance) {
        Self::lay_out(self, area, appearance);
    }

    fn on_explained(&mut self, ticket: Ticket, results: &[ExplainResult]) -> Vec<ConsoleRequest> {
        Self::on_explained(self, ticket, results)
            .into_iter()
            .collect()
    }
}
