//! View of the dialog: a strip that never scrolls, the request, and the answers.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::GateDialog;
use super::blockers::DecisionBlocker;
use super::scroll::SheetSize;
use super::step::{DecisionStep, GatePane};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::names::action_words;
use crate::console::screen::queue::risk_text;
use crate::console::text_cells::{asker_text, clip, coordinate, fit, width};
use crate::console::theme::{Appearance, Focus, Mark, Meaning, of_tier};

mod buttons;
mod form;
mod question;
mod request;
mod review;
mod step_views;

/// Minimum width for both panes side by side.
const SIDE_BY_SIDE: u16 = 100;
/// Minimum width for two stacked panes; below it, only one pane is shown.
const STACKED: u16 = 80;

struct GateAreas {
    strip: Rect,
    context: Rect,
    form: Rect,
}

fn panes(dialog: &GateDialog, area: Rect) -> GateAreas {
    let [strip, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let (context, form) = if area.width >= SIDE_BY_SIDE {
        let [context, form] =
            Layout::horizontal([Constraint::Percentage(44), Constraint::Fill(1)]).areas(body);
        (context, form)
    } else if area.width >= STACKED && !dialog.needs_whole_area() {
        let context = match dialog.pane {
            GatePane::Context | GatePane::Search => Constraint::Percentage(62),
            GatePane::Form => Constraint::Percentage(30),
        };
        let [context, form] = Layout::vertical([context, Constraint::Fill(1)]).areas(body);
        (context, form)
    } else {
        match dialog.pane {
            GatePane::Context | GatePane::Search => (body, Rect::ZERO),
            GatePane::Form => (Rect::ZERO, body),
        }
    };
    GateAreas {
        strip,
        context,
        form,
    }
}

/// Returns the area for the rows of the request.
pub(super) fn context_area(dialog: &GateDialog, area: Rect) -> Rect {
    let pane = panes(dialog, area).context;
    Appearance::default().panel(Focus::Elsewhere).inner(pane)
}

/// Returns the size of the step's sheet as painted; `None` if the step has none or its pane is hidden.
pub(super) fn sheet(
    dialog: &GateDialog,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) -> Option<SheetSize> {
    let pane = panes(dialog, area).form;
    if pane.is_empty() {
        return None;
    }
    let inner = Appearance::default().panel(Focus::Elsewhere).inner(pane);
    let words = dialog
        .status(usize::from(inner.width), appearance, now)
        .len();
    let below = coordinate(words.max(1) + 1);
    let content = Rect {
        height: inner.height.saturating_sub(below),
        ..inner
    };
    match &dialog.step {
        DecisionStep::Reviewing(review) => {
            Some(review::sheet(dialog, review, content, appearance, now))
        }
        DecisionStep::Changed(changed) => Some(step_views::sheet(changed, content, appearance)),
        DecisionStep::Editing
        | DecisionStep::Denying(_)
        | DecisionStep::Claimed(_)
        | DecisionStep::Writing(_)
        | DecisionStep::Settled(_) => None,
    }
}

impl GateDialog {
    /// Paints the dialog over the whole area.
    pub(crate) fn draw(
        &self,
        frame: &mut Frame,
        area: Rect,
        appearance: Appearance,
        now: Timestamp,
    ) {
        let panes = panes(self, area);
        frame.render_widget(
            self.status_strip(usize::from(panes.strip.width), appearance, now),
            panes.strip,
        );
        if !panes.context.is_empty() {
            self.draw_context(frame, panes.context, appearance);
        }
        if !panes.form.is_empty() {
            self.draw_form(frame, panes.form, appearance, now);
        }
    }

    /// Returns true if a step needs the whole area when panes are stacked. The operator has read the
    /// request by then, and F6 shows it.
    fn needs_whole_area(&self) -> bool {
        match self.step {
            DecisionStep::Reviewing(_) | DecisionStep::Changed(_) => true,
            DecisionStep::Editing
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Settled(_) => false,
        }
    }

    fn status_strip(&self, cells: usize, appearance: Appearance, now: Timestamp) -> Line<'static> {
        let (word, word_meaning) = self.state_word(now);
        let (mut clock, meaning) = self.countdown(appearance, now);
        match self.step {
            // The state word already says that the request is settled.
            DecisionStep::Settled(_) => clock.clear(),
            DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_) => clock.push_str("  "),
        }
        let right = width(&clock) + width(word) + 1;
        let risk = risk_text(&self.held);
        let hash = self.hash_words(appearance);
        let asker = asker_text(&self.held.agent, &self.held.session);
        let room = cells.saturating_sub(right + width(&risk) + 6);
        let mut heading = self.heading();
        let parts = self.approval_and_claim_texts().into_iter().flatten();
        for more in parts.chain([hash, asker]) {
            if !self.is_batch() && width(&heading) + 2 + width(&more) <= room {
                heading = format!("{heading}  {more}");
            }
        }
        Line::from(vec![
            Span::raw(" "),
            Span::styled(risk, appearance.style(of_tier(self.held.tier()))),
            Span::raw("  "),
            Span::styled(
                fit(&heading, room + 1, appearance),
                appearance.style(Meaning::Strong),
            ),
            Span::raw("  "),
            Span::styled(clock, appearance.style(meaning)),
            Span::styled(word, appearance.style(word_meaning)),
        ])
    }

    /// Text with the hash of the request; with both hashes if it was replaced.
    fn hash_words(&self, appearance: Appearance) -> String {
        let before = self.held.request_hash.short(4);
        match &self.step {
            DecisionStep::Changed(changed)
                if changed.now.request_hash != self.held.request_hash =>
            {
                let now = changed.now.request_hash.short(4);
                format!("hash {before} {} {now}", appearance.mark(Mark::Arrow))
            }
            DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_)
            | DecisionStep::Settled(_) => format!("hash {before}"),
        }
    }

    /// Text with the action, the agent and the session.
    fn request_summary(&self) -> String {
        let (action, agent) = (action_words(&self.held), one_line(&self.held.agent));
        format!("{action} for {agent}, session {}", self.held.session)
    }

    /// Texts for the progress of two approvals and for the claim.
    fn approval_and_claim_texts(&self) -> [Option<String>; 2] {
        let approved = self.held.approval_progress().map(|(words, by)| match by {
            Some(by) => format!("{words} ({})", one_line(by)),
            None => words.to_owned(),
        });
        let claim = self.held.claim.as_ref();
        let claimed = claim.map(|claim| format!("claimed: {}", one_line(&claim.by)));
        [approved, claimed]
    }

    fn state_word(&self, now: Timestamp) -> (&'static str, Meaning) {
        match &self.step {
            DecisionStep::Settled(_) => ("CLOSED", Meaning::Dim),
            DecisionStep::Changed(_) => ("CHANGED", Meaning::Error),
            DecisionStep::Writing(_) => ("WRITING", Meaning::Waiting),
            DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_) => match self.decision_blocker(now) {
                None => ("READY", Meaning::Passed),
                Some(DecisionBlocker::ReadOnly) => ("READ-ONLY", Meaning::Warning),
                Some(DecisionBlocker::Trouble(_) | DecisionBlocker::TimeUp) => {
                    ("DISABLED", Meaning::Error)
                }
                Some(DecisionBlocker::Arming) => ("WAIT", Meaning::Waiting),
            },
        }
    }

    fn draw_form(&self, frame: &mut Frame, area: Rect, appearance: Appearance, now: Timestamp) {
        let focus = Focus::from(self.pane == GatePane::Form);
        let title = match &self.step {
            DecisionStep::Editing => " Answer ",
            DecisionStep::Reviewing(_) => " Review: what will be written ",
            DecisionStep::Denying(_) => " Deny ",
            DecisionStep::Claimed(_) => " Already claimed ",
            DecisionStep::Writing(_) => " Writing... ",
            DecisionStep::Changed(_) => " The request changed ",
            DecisionStep::Settled(_) => " No longer held ",
        };
        let mut title = vec![Span::styled(title, appearance.style(Meaning::Title))];
        if let (DecisionStep::Editing | DecisionStep::Denying(_), Some(words)) =
            (&self.step, self.draft_state_text())
        {
            let words = format!("{} {words} ", appearance.mark(Mark::Bullet));
            title.push(Span::styled(words, appearance.style(Meaning::Dim)));
        }
        let mut block = appearance.panel(focus).title(Line::from(title));
        if matches!(
            self.step,
            DecisionStep::Editing | DecisionStep::Reviewing(_)
        ) {
            let meaning = match self.held.invalid_attempts {
                0 => Meaning::Dim,
                _ => Meaning::Warning,
            };
            let attempt = format!(" attempt {} ", self.held.invalid_attempts + 1);
            block = block.title(Line::styled(attempt, appearance.style(meaning)).right_aligned());
        }
        if let (DecisionStep::Editing, Some(pace)) = (&self.step, self.pace_short(now)) {
            let pace = Line::styled(format!(" {pace} "), appearance.style(Meaning::Dim));
            block = block.title_bottom(pace.right_aligned());
        }
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let words = self.status(usize::from(inner.width), appearance, now);
        let [content, status, buttons] = Layout::vertical([
            Constraint::Fill(1),
            Constraint::Length(coordinate(words.len().max(1))),
            Constraint::Length(1),
        ])
        .areas(inner);
        let unseen = match &self.step {
            DecisionStep::Editing => form::draw(self, frame, content, appearance),
            DecisionStep::Reviewing(review) => {
                review::draw(self, review, frame, content, appearance, now)
            }
            DecisionStep::Denying(spot) => {
                step_views::draw_deny(self, *spot, frame, content, appearance)
            }
            DecisionStep::Claimed(over) => {
                step_views::draw_claimed(self, over, frame, content, appearance)
            }
            DecisionStep::Writing(verb) => {
                step_views::draw_writing(*verb, frame, content, appearance)
            }
            DecisionStep::Changed(changed) => {
                step_views::draw_changed(changed, frame, content, appearance)
            }
            DecisionStep::Settled(decided) => {
                step_views::draw_settled(self, decided.as_deref(), frame, content, appearance)
            }
        };
        for (line, row) in words.into_iter().zip(status.rows()) {
            frame.render_widget(line, row);
        }
        let row = self.buttons(appearance, now);
        // The note about hidden rows is shown next to the buttons, if there is room.
        let room = usize::from(buttons.width).saturating_sub(row.width());
        // A separate span, because the style of a line would extend to the buttons.
        let note = Span::styled(
            clip(unseen, room, appearance),
            appearance.style(Meaning::Dim),
        );
        frame.render_widget(Line::from(note).right_aligned(), buttons);
        frame.render_widget(row, buttons);
    }
}
