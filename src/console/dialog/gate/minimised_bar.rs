//! One-line bar of a minimised dialog.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::GateDialog;
use super::step::{Arming, DecisionStep};
use crate::base::clock::Timestamp;
use crate::console::screen::queue::risk_text;
use crate::console::text_cells::{fit, span, width};
use crate::console::theme::{Appearance, Mark, Meaning, of_tier};

/// Remaining time from which the countdown is shown as urgent.
pub(super) const URGENT: Duration = Duration::from_mins(1);

impl GateDialog {
    /// Restarts the arming time, as if the dialog had just been opened.
    pub(crate) fn on_restored(&mut self) {
        self.arming = Arming::Undrawn;
    }

    /// Returns the remaining time as text, and its urgency.
    pub(super) fn countdown(&self, appearance: Appearance, now: Timestamp) -> (String, Meaning) {
        let left = self.held.deadline.since(now);
        match &self.step {
            DecisionStep::Settled(_) => ("closed".to_owned(), Meaning::Dim),
            DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_) => {
                let arrow = appearance.mark(Mark::Arrow);
                let meaning = if left <= URGENT {
                    Meaning::Critical
                } else {
                    Meaning::High
                };
                (format!("{} left {arrow} DENIED", span(left)), meaning)
            }
        }
    }

    /// Renders the bar.
    pub(crate) fn bar(
        &self,
        cells: usize,
        appearance: Appearance,
        now: Timestamp,
    ) -> Line<'static> {
        let (clock, meaning) = self.countdown(appearance, now);
        let state = match &self.step {
            DecisionStep::Settled(Some(decided)) => decided.outcome.as_str().to_uppercase(),
            DecisionStep::Settled(None) => "no longer held".to_owned(),
            DecisionStep::Changed(_) => "the request changed".to_owned(),
            DecisionStep::Denying(_) => "denying".to_owned(),
            DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_) => {
                let lacks = self.form.missing_text();
                lacks.unwrap_or_else(|| "ready, NOT SENT".to_owned())
            }
        };
        let risk = risk_text(&self.held);
        let key = " F3 back ";
        let right = width(&clock) + 1;
        let room = cells.saturating_sub(width(key) + width(&risk) + right + 5);
        let heading = format!("{}  {state}", self.heading());
        Line::from(vec![
            Span::styled(key, appearance.style(Meaning::TabActive)),
            Span::raw(" "),
            Span::styled(risk, appearance.style(of_tier(self.held.tier()))),
            Span::raw("  "),
            Span::styled(
                fit(&heading, room, appearance),
                appearance.style(Meaning::Strong),
            ),
            Span::raw("  "),
            Span::styled(clock, appearance.style(meaning)),
        ])
    }
}
