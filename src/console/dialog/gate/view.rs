//! View of the dialog: a strip that never scrolls, the request, and the answers.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::GateDialog;
use super::bars::Bar;
use super::scroll::Sheet;
use super::step::{Pane, Step};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::cells::{asker, clip, coordinate, fit, width};
use crate::console::screen::queue::risk_word;
use crate::console::theme::{Focus, Look, Mark, Meaning, of_tier};

mod buttons;
mod ending;
mod form;
mod question;
mod request;
mod review;

/// Minimum width for both panes side by side.
const SIDE_BY_SIDE: u16 = 100;
/// Minimum width for two stacked panes; below it, only one pane is shown.
const STACKED: u16 = 80;

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
    } else if area.width >= STACKED && !dialog.needs_all() {
        let context = match dialog.pane {
            Pane::Context | Pane::Search => Constraint::Percentage(62),
            Pane::Form => Constraint::Percentage(30),
        };
        let [context, form] = Layout::vertical([context, Constraint::Fill(1)]).areas(body);
        (context, form)
    } else {
        match dialog.pane {
            Pane::Context | Pane::Search => (body, Rect::ZERO),
            Pane::Form => (Rect::ZERO, body),
        }
    };
    Panes {
        strip,
        context,
        form,
    }
}

/// Returns the area for the rows of the request.
pub(super) fn context_area(dialog: &GateDialog, area: Rect) -> Rect {
    let pane = panes(dialog, area).context;
    Look::default().panel(Focus::Elsewhere).inner(pane)
}

/// Returns the size of the step's sheet as painted; `None` if the step has none or its pane is hidden.
pub(super) fn sheet(dialog: &GateDialog, area: Rect, look: Look, now: Timestamp) -> Option<Sheet> {
    let pane = panes(dialog, area).form;
    if pane.is_empty() {
        return None;
    }
    let inner = Look::default().panel(Focus::Elsewhere).inner(pane);
    let words = dialog.status(usize::from(inner.width), look, now).len();
    let below = coordinate(words.max(1) + 1);
    let content = Rect {
        height: inner.height.saturating_sub(below),
        ..inner
    };
    match &dialog.step {
        Step::Reviewing(review) => Some(review::sheet(dialog, review, content, look, now)),
        Step::Changed(changed) => Some(ending::sheet(changed, content, look)),
        Step::Editing
        | Step::Denying(_)
        | Step::Claimed(_)
        | Step::Writing(_)
        | Step::Settled(_) => None,
    }
}

impl GateDialog {
    /// Paints the dialog over the whole area.
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

    /// Returns true if a step needs the whole area when panes are stacked. The operator has read the
    /// request by then, and F6 shows it.
    fn needs_all(&self) -> bool {
        match self.step {
            Step::Reviewing(_) | Step::Changed(_) => true,
            Step::Editing
            | Step::Denying(_)
            | Step::Claimed(_)
            | Step::Writing(_)
            | Step::Settled(_) => false,
        }
    }

    fn strip(&self, cells: usize, look: Look, now: Timestamp) -> Line<'static> {
        let (word, word_meaning) = self.state_word(now);
        let (mut clock, meaning) = self.countdown(look, now);
        match self.step {
            // The state word already says that the request is settled.
            Step::Settled(_) => clock.clear(),
            Step::Editing
            | Step::Reviewing(_)
            | Step::Denying(_)
            | Step::Claimed(_)
            | Step::Writing(_)
            | Step::Changed(_) => clock.push_str("  "),
        }
        let right = width(&clock) + width(word) + 1;
        let risk = risk_word(&self.held);
        let hash = self.hash_words(look);
        let who = asker(&self.held.agent, &self.held.session);
        let room = cells.saturating_sub(right + width(&risk) + 6);
        let mut heading = self.heading();
        let parts = self.part_words().into_iter().flatten();
        for more in parts.chain([hash, who]) {
            if !self.is_batch() && width(&heading) + 2 + width(&more) <= room {
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
            Span::styled(word, look.style(word_meaning)),
        ])
    }

    /// Text with the hash of the request; with both hashes if it was replaced.
    fn hash_words(&self, look: Look) -> String {
        let before = self.held.request_hash.short(4);
        match &self.step {
            Step::Changed(changed) if changed.now.request_hash != self.held.request_hash => {
                let now = changed.now.request_hash.short(4);
                format!("hash {before} {} {now}", look.mark(Mark::Arrow))
            }
            Step::Editing
            | Step::Reviewing(_)
            | Step::Denying(_)
            | Step::Claimed(_)
            | Step::Writing(_)
            | Step::Changed(_)
            | Step::Settled(_) => format!("hash {before}"),
        }
    }

    /// Text with the action, the agent and the session.
    fn what_for_whom(&self) -> String {
        let (action, agent) = (one_line(self.held.action()), one_line(&self.held.agent));
        format!("{action} for {agent}, session {}", self.held.session)
    }

    /// Texts for the progress of two approvals and for the claim.
    fn part_words(&self) -> [Option<String>; 2] {
        let approved = self.held.progress().map(|(words, by)| match by {
            Some(by) => format!("{words} ({})", one_line(by)),
            None => words.to_owned(),
        });
        let claim = self.held.claim.as_ref();
        let claimed = claim.map(|claim| format!("claimed: {}", one_line(&claim.by)));
        [approved, claimed]
    }

    fn state_word(&self, now: Timestamp) -> (&'static str, Meaning) {
        match &self.step {
            Step::Settled(_) => ("CLOSED", Meaning::Dim),
            Step::Changed(_) => ("CHANGED", Meaning::Error),
            Step::Writing(_) => ("WRITING", Meaning::Waiting),
            Step::Editing | Step::Reviewing(_) | Step::Denying(_) | Step::Claimed(_) => {
                match self.barred(now) {
                    None => ("READY", Meaning::Passed),
                    Some(Bar::ReadOnly) => ("READ-ONLY", Meaning::Warning),
                    Some(Bar::Trouble(_) | Bar::TimeUp) => ("BARRED", Meaning::Error),
                    Some(Bar::Arming) => ("ARMING", Meaning::Waiting),
                }
            }
        }
    }

    fn draw_form(&self, frame: &mut Frame, area: Rect, look: Look, now: Timestamp) {
        let focus = Focus::from(self.pane == Pane::Form);
        let title = match &self.step {
            Step::Editing => " Answer ",
            Step::Reviewing(_) => " Review: what will be written ",
            Step::Denying(_) => " Deny ",
            Step::Claimed(_) => " Claimed by somebody else ",
            Step::Writing(_) => " Writing... ",
            Step::Changed(_) => " The request changed ",
            Step::Settled(_) => " No longer held ",
        };
        let mut title = vec![Span::styled(title, look.style(Meaning::Title))];
        if let (Step::Editing | Step::Denying(_), Some(words)) = (&self.step, self.draft_words()) {
            let words = format!("{} {words} ", look.mark(Mark::Bullet));
            title.push(Span::styled(words, look.style(Meaning::Dim)));
        }
        let mut block = look.panel(focus).title(Line::from(title));
        if matches!(self.step, Step::Editing | Step::Reviewing(_)) {
            let meaning = match self.held.invalid_attempts {
                0 => Meaning::Dim,
                _ => Meaning::Warning,
            };
            let attempt = format!(" attempt {} ", self.held.invalid_attempts + 1);
            block = block.title(Line::styled(attempt, look.style(meaning)).right_aligned());
        }
        if let (Step::Editing, Some(pace)) = (&self.step, self.pace_short(now)) {
            let pace = Line::styled(format!(" {pace} "), look.style(Meaning::Dim));
            block = block.title_bottom(pace.right_aligned());
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
            Step::Reviewing(review) => review::draw(self, review, frame, content, look, now),
            Step::Denying(spot) => ending::draw_deny(self, *spot, frame, content, look),
            Step::Claimed(over) => ending::draw_claimed(self, over, frame, content, look),
            Step::Writing(verb) => ending::draw_writing(*verb, frame, content, look),
            Step::Changed(changed) => ending::draw_changed(changed, frame, content, look),
            Step::Settled(decided) => {
                ending::draw_settled(self, decided.as_deref(), frame, content, look)
            }
        };
        for (line, row) in words.into_iter().zip(status.rows()) {
            frame.render_widget(line, row);
        }
        let row = self.buttons(look, now);
        // The note about hidden rows is shown next to the buttons, if there is room.
        let room = usize::from(buttons.width).saturating_sub(row.width());
        // A separate span, because the style of a line would extend to the buttons.
        let note = Span::styled(clip(unseen, room, look), look.style(Meaning::Dim));
        frame.render_widget(Line::from(note).right_aligned(), buttons);
        frame.render_widget(row, buttons);
    }
}
