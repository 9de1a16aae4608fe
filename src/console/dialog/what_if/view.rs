//! View of the form for a hypothetical request, and of its result.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};
use ratatui_textarea::TextArea;

use super::{WhatIfAnswerState, WhatIfDialog, WhatIfField};
use crate::base::text::one_line;
use crate::console::text_cells::{clip, wrap_within};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};

/// Width of a label, in cells.
const LABEL: u16 = 8;

/// Splits the area into form and answer, side by side if there is room.
fn split_area(area: Rect) -> (Rect, Rect) {
    let [form, answer] = if area.width >= 100 {
        Layout::horizontal([Constraint::Length(46), Constraint::Fill(1)]).areas(area)
    } else {
        let form = if area.height >= 20 { 11 } else { 9 };
        Layout::vertical([Constraint::Length(form), Constraint::Fill(1)]).areas(area)
    };
    (form, answer)
}

/// Returns the area of the answer.
pub(super) fn answer_area(area: Rect) -> Rect {
    split_area(area).1
}

impl WhatIfDialog {
    /// Paints the dialog over the whole area.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        frame.render_widget(Clear, area);
        let (form, answer) = split_area(area);
        self.draw_form(frame, form, appearance);
        self.draw_answer(frame, answer, appearance);
    }

    fn draw_form(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let title = Line::styled(" What if ", appearance.style(Meaning::Title));
        let block = appearance.panel(Focus::Here).title(title);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let tall = inner.height >= 16;
        let (params, input) = if tall { (7, 4) } else { (3, 2) };
        let agent = u16::from(self.asker.is_none());
        let [asker, agent, action, params, problem, input, note] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(agent),
            Constraint::Length(1),
            Constraint::Length(params),
            Constraint::Length(if tall { 2 } else { 1 }),
            Constraint::Length(input),
            Constraint::Fill(1),
        ])
        .areas(inner);
        self.draw_asker(frame, asker, appearance);
        if agent.height > 0 {
            self.draw_field(
                frame,
                agent,
                (WhatIfField::Agent, "agent"),
                &self.agent,
                appearance,
            );
        }
        self.draw_field(
            frame,
            action,
            (WhatIfField::Action, "action"),
            &self.action,
            appearance,
        );
        self.draw_field(
            frame,
            params,
            (WhatIfField::Params, "params"),
            &self.params,
            appearance,
        );
        self.draw_problem(frame, problem, appearance);
        self.draw_field(
            frame,
            input,
            (WhatIfField::Input, "input"),
            &self.input,
            appearance,
        );
        if note.height > 1 {
            let words = "Tab: next field. PgDn: scroll the result. Nothing is sent.";
            let rows = wrap_within(
                words,
                usize::from(note.width),
                usize::from(note.height) - 1,
                appearance,
            );
            let mut lines = vec![Line::default()];
            lines.extend(
                rows.into_iter()
                    .map(|row| Line::styled(row, appearance.style(Meaning::Dim))),
            );
            frame.render_widget(Paragraph::new(lines), note);
        }
    }

    fn draw_asker(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let asker = match self.asker.and_then(|at| self.sessions.get(at)) {
            Some((id, agent)) => format!("{} {id}, current state", one_line(agent)),
            None => "simulated, start gates passed".to_owned(),
        };
        let here = self.field == WhatIfField::Who;
        let meaning = if here {
            Meaning::Selected
        } else {
            Meaning::Text
        };
        let room = usize::from(area.width.saturating_sub(LABEL)).saturating_sub(4);
        let asker = format!("< {} >", clip(&asker, room, appearance));
        let line = Line::from(vec![
            label("who", here, appearance),
            Span::styled(asker, appearance.style(meaning)),
        ]);
        frame.render_widget(line, area);
    }

    fn draw_field(
        &self,
        frame: &mut Frame,
        area: Rect,
        (field, name): (WhatIfField, &str),
        text: &TextArea<'static>,
        appearance: Appearance,
    ) {
        let here = self.field == field;
        let [left, right] =
            Layout::horizontal([Constraint::Length(LABEL), Constraint::Fill(1)]).areas(area);
        frame.render_widget(Line::from(label(name, here, appearance)), left);
        if here {
            frame.render_widget(text, right);
        } else {
            let mut still = text.clone();
            still.set_cursor_style(Style::new());
            frame.render_widget(&still, right);
        }
    }

    fn draw_problem(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        if let Some(problem) = &self.problem {
            let text = format!("params: {}", one_line(problem));
            let rows = wrap_within(
                &text,
                usize::from(area.width),
                usize::from(area.height),
                appearance,
            );
            let rows = rows.into_iter();
            let lines: Vec<Line> = rows
                .map(|row| Line::styled(row, appearance.style(Meaning::Error)))
                .collect();
            frame.render_widget(Paragraph::new(lines), area);
        }
    }

    fn draw_answer(&self, frame: &mut Frame, area: Rect, appearance: Appearance) {
        let visible = usize::from(area.height).saturating_sub(2);
        let below = self.lines.len().saturating_sub(self.top + visible);
        let state = match (self.asking, &self.problem) {
            (_, Some(_)) => " invalid JSON: showing the last result ",
            (WhatIfAnswerState::Asked | WhatIfAnswerState::Outdated, None) => " evaluating ",
            (WhatIfAnswerState::Done, None) => "",
        };
        let more = match below {
            0 => String::new(),
            below => format!(" {} {below} more below ", appearance.mark(Mark::Ellipsis)),
        };
        let title = Line::from(vec![
            Span::styled(" Result ", appearance.style(Meaning::Title)),
            Span::styled(state, appearance.style(Meaning::Warning)),
        ]);
        let more = Line::styled(more, appearance.style(Meaning::Waiting)).right_aligned();
        let block = appearance
            .panel(Focus::Elsewhere)
            .title(title)
            .title_bottom(more);
        let shown: Vec<Line> = self
            .lines
            .iter()
            .skip(self.top)
            .take(visible)
            .cloned()
            .collect();
        frame.render_widget(Paragraph::new(shown).block(block), area);
    }
}

fn label(name: &str, here: bool, appearance: Appearance) -> Span<'static> {
    let (mark, meaning) = if here {
        (">", Meaning::Key)
    } else {
        (" ", Meaning::Label)
    };
    Span::styled(format!("{mark}{name:7}"), appearance.style(meaning))
}
