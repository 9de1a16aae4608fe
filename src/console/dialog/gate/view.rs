//! How the dialog looks: a strip that never scrolls, the request, and the answers.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::context::{Part, hidden_words};
use super::step::{Pane, Step, Verb};
use super::{DenySpot, GateDialog, ReviewSpot, Spot};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::cells::{clip, coordinate, fit, span, width, wrap_within};
use crate::console::json;
use crate::console::screen::queue::risk_word;
use crate::console::theme::{Focus, Look, Mark, Meaning, of_outcome, of_tier};

mod form;
mod sheet;

/// From this width on both panes stand side by side.
const SIDE_BY_SIDE: u16 = 100;
/// From this width on both panes stand one above the other; below, only one is shown.
const STACKED: u16 = 80;
/// From here on the countdown is shown as urgent.
const URGENT: Duration = Duration::from_mins(1);

/// Whether a button can be pressed.
#[derive(Clone, Copy)]
enum Power {
    Enabled,
    Disabled,
}

impl Power {
    /// What a button with this bar can do.
    fn of(bar: Option<&String>) -> Self {
        match bar {
            None => Self::Enabled,
            Some(_) => Self::Disabled,
        }
    }
}

struct Panes {
    strip: Rect,
    context: Rect,
    form: Rect,
}

fn panes(dialog: &GateDialog, area: Rect) -> Panes {
    let [strip, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let (context, form) = if area.width >= SIDE_BY_SIDE {
        let [context, form] =
            Layout::horizontal([Constraint::Percentage(44), Constraint::Fill(1)]).areas(body);
        (context, form)
    } else if area.width >= STACKED {
        let context = match dialog.pane {
            Pane::Context => Constraint::Percentage(62),
            Pane::Form => Constraint::Percentage(30),
        };
        let [context, form] = Layout::vertical([context, Constraint::Fill(1)]).areas(body);
        (context, form)
    } else {
        match dialog.pane {
            Pane::Context => (body, Rect::ZERO),
            Pane::Form => (Rect::ZERO, body),
        }
    };
    Panes {
        strip,
        context,
        form,
    }
}

/// Where the rows of the request go.
pub(super) fn context_area(dialog: &GateDialog, area: Rect) -> Rect {
    let pane = panes(dialog, area).context;
    Look::default().panel(Focus::Elsewhere).inner(pane)
}

impl GateDialog {
    /// Paints it over the whole of `area`.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, look: Look, now: Timestamp) {
        let panes = panes(self, area);
        frame.render_widget(
            self.strip(usize::from(panes.strip.width), look, now),
            panes.strip,
        );
        if !panes.context.is_empty() {
            self.draw_context(frame, panes.context, look);
        }
        if !panes.form.is_empty() {
            self.draw_form(frame, panes.form, look, now);
        }
    }

    fn strip(&self, cells: usize, look: Look, now: Timestamp) -> Line<'static> {
        let left = self.held.deadline.since(now);
        let (clock, meaning) = match &self.step {
            Step::Settled(_) => ("over".to_owned(), Meaning::Dim),
            Step::Editing | Step::Reviewing(_) | Step::Denying(_) | Step::Writing(_) => {
                let arrow = look.mark(Mark::Arrow);
                let meaning = if left <= URGENT {
                    Meaning::Critical
                } else {
                    Meaning::High
                };
                (format!("{} left {arrow} DENIED", span(left)), meaning)
            }
        };
        let (word, word_meaning) = self.state_word(now);
        let right = width(&clock) + 2 + width(word) + 1;
        let risk = risk_word(&self.held);
        let hash = format!("hash {}", self.held.request_hash.short(4));
        let who = format!("{}/{}", one_line(&self.held.agent), self.held.session);
        let room = cells.saturating_sub(right + width(&risk) + 6);
        let mut heading = self.heading();
        for more in [hash, who] {
            if width(&heading) + 2 + width(&more) <= room {
                heading = format!("{heading}  {more}");
            }
        }
        Line::from(vec![
            Span::raw(" "),
            Span::styled(risk, look.style(of_tier(self.held.tier()))),
            Span::raw("  "),
            Span::styled(fit(&heading, room + 1, look), look.style(Meaning::Strong)),
            Span::raw("  "),
            Span::styled(clock, look.style(meaning)),
            Span::raw("  "),
            Span::styled(word, look.style(word_meaning)),
        ])
    }

    fn state_word(&self, now: Timestamp) -> (&'static str, Meaning) {
        match &self.step {
            Step::Settled(_) => ("CLOSED", Meaning::Dim),
            Step::Writing(_) => ("WRITING", Meaning::Waiting),
            Step::Editing | Step::Reviewing(_) | Step::Denying(_) => {
                if self.is_ready(now) {
                    ("READY", Meaning::Passed)
                } else {
                    ("ARMING", Meaning::Waiting)
                }
            }
        }
    }

    fn draw_context(&self, frame: &mut Frame, area: Rect, look: Look) {
        let focus = Focus::from(self.pane == Pane::Context);
        let seen = self.context.percent();
        let meaning = if self.context.is_seen() {
            Meaning::Passed
        } else {
            Meaning::Warning
        };
        let title = Line::from(vec![
            Span::styled(" Request ", look.style(Meaning::Title)),
            Span::styled("exactly as it will run ", look.style(Meaning::Dim)),
        ]);
        let mut block = look
            .panel(focus)
            .title(title)
            .title(Line::styled(format!(" seen {seen} % "), look.style(meaning)).right_aligned());
        let inner = block.inner(area);
        let height = usize::from(inner.height);
        if self.context.hidden() > 0 {
            let words = format!(" {} ", hidden_words(self.context.hidden()));
            block = block.title_bottom(Line::styled(words, look.style(Meaning::Warning)));
        }
        if self.context.has_more(height) {
            let more = Line::styled(" PgDn: more ", look.style(Meaning::Key)).right_aligned();
            block = block.title_bottom(more);
        }
        let rows = self.context.window(height).iter().map(|row| {
            let style = look.style(row.meaning);
            match row.part {
                Part::Request(line) if line > 0 => json::line(&row.text, look),
                Part::Request(_) | Part::Remark => Line::styled(row.text.clone(), style),
                Part::Continued(_) => Line::from(vec![
                    Span::styled(look.mark(Mark::Continued), look.style(Meaning::Dim)),
                    Span::styled(row.text.clone(), style),
                ]),
            }
        });
        frame.render_widget(Paragraph::new(rows.collect::<Vec<_>>()).block(block), area);
    }

    fn draw_form(&self, frame: &mut Frame, area: Rect, look: Look, now: Timestamp) {
        let focus = Focus::from(self.pane == Pane::Form);
        let title = match &self.step {
            Step::Editing => " Answer ",
            Step::Reviewing(_) => " Review: what will be written ",
            Step::Denying(_) => " Deny ",
            Step::Writing(_) => " Writing... ",
            Step::Settled(_) => " No longer held ",
        };
        let mut title = vec![Span::styled(title, look.style(Meaning::Title))];
        if let (Step::Editing | Step::Denying(_), Some(words)) = (&self.step, self.draft_words()) {
            let words = format!("{} {words} ", look.mark(Mark::Bullet));
            title.push(Span::styled(words, look.style(Meaning::Dim)));
        }
        let mut block = look.panel(focus).title(Line::from(title));
        if self.held.invalid_attempts > 0 {
            let attempts = format!(" attempt {} ", self.held.invalid_attempts + 1);
            let attempts = Line::styled(attempts, look.style(Meaning::Warning));
            block = block.title(attempts.right_aligned());
        }
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let words = self.status(usize::from(inner.width), look, now);
        let [content, status, buttons] = Layout::vertical([
            Constraint::Fill(1),
            Constraint::Length(coordinate(words.len().max(1))),
            Constraint::Length(1),
        ])
        .areas(inner);
        let unseen = match &self.step {
            Step::Editing => form::draw(self, frame, content, look),
            Step::Reviewing(review) => sheet::draw_review(self, review, frame, content, look),
            Step::Denying(spot) => sheet::draw_deny(self, *spot, frame, content, look),
            Step::Writing(verb) => {
                sheet::draw_writing(*verb, frame, content, look);
                ""
            }
            Step::Settled(decided) => {
                sheet::draw_settled(self, decided.as_deref(), frame, content, look);
                ""
            }
        };
        let note = Line::styled(unseen, look.style(Meaning::Dim)).right_aligned();
        frame.render_widget(note, status);
        for (line, row) in words.into_iter().zip(status.rows()) {
            frame.render_widget(line, row);
        }
        frame.render_widget(self.buttons(look, now), buttons);
    }

    /// What the last key came to, or what Pass still waits for.
    fn status(&self, cells: usize, look: Look, now: Timestamp) -> Vec<Line<'static>> {
        if let Some(notice) = &self.notice {
            let text = format!("! {}", one_line(notice));
            let rows = wrap_within(&text, cells, 2, look).into_iter();
            return rows
                .map(|row| Line::styled(row, look.style(Meaning::Error)))
                .collect();
        }
        let bar = match &self.step {
            Step::Editing => self.bars_pass(now).map(|why| ("Pass", why)),
            Step::Reviewing(_) => self.bars_pass_now(now).map(|why| ("Pass now", why)),
            Step::Denying(_) => self.bars_deny(now).map(|why| ("Deny now", why)),
            Step::Writing(_) | Step::Settled(_) => None,
        };
        let Some((button, why)) = bar else {
            return Vec::new();
        };
        let text = clip(&format!("{button} is disabled: {why}"), cells, look);
        vec![Line::styled(text, look.style(Meaning::Warning))]
    }

    fn buttons(&self, look: Look, now: Timestamp) -> Line<'static> {
        let all = Power::of(self.bars_all(now).as_ref());
        let pass = Power::of(self.bars_pass(now).as_ref());
        let pass_now = Power::of(self.bars_pass_now(now).as_ref());
        let deny_now = Power::of(self.bars_deny(now).as_ref());
        let back = Power::Enabled;
        let buttons: Vec<(&str, Focus, Power)> = match &self.step {
            Step::Editing => {
                let at = |spot| Focus::from(self.form.focus == spot);
                vec![
                    ("Back", at(Spot::Back), back),
                    ("Deny...", at(Spot::Deny), all),
                    ("Pass", at(Spot::Pass), pass),
                ]
            }
            Step::Reviewing(review) => {
                let at = |spot| Focus::from(review.spot == spot);
                vec![
                    ("Back", at(ReviewSpot::Back), back),
                    ("Pass now", at(ReviewSpot::PassNow), pass_now),
                ]
            }
            Step::Denying(spot) => {
                let at = |wanted| Focus::from(*spot == wanted);
                vec![
                    ("Back", at(DenySpot::Back), back),
                    ("Deny now", at(DenySpot::DenyNow), deny_now),
                ]
            }
            Step::Writing(_) => return Line::styled("locked", look.style(Meaning::Dim)),
            Step::Settled(_) => {
                return Line::styled("Esc closes", look.style(Meaning::Dim));
            }
        };
        let mut spans = Vec::new();
        for (name, focus, power) in buttons {
            let meaning = match (focus, power) {
                (Focus::Here, Power::Enabled) => Meaning::ButtonFocused,
                (Focus::Here, Power::Disabled) => Meaning::ButtonBarred,
                (Focus::Elsewhere, Power::Enabled) => Meaning::Button,
                (Focus::Elsewhere, Power::Disabled) => Meaning::ButtonDisabled,
            };
            spans.push(Span::styled(format!("[ {name} ]"), look.style(meaning)));
            spans.push(Span::raw("  "));
        }
        Line::from(spans)
    }
}

/// The words for what is being written.
fn verb_words(verb: Verb) -> &'static str {
    match verb {
        Verb::Pass => "the pass and its records",
        Verb::Deny => "the refusal and its reason",
    }
}

/// How an outcome is shown.
fn outcome_style(outcome: crate::engine::command::Outcome, look: Look) -> ratatui::style::Style {
    look.style(of_outcome(outcome))
}
