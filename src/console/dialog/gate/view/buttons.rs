//! Buttons, and the line above them that says why a button is disabled.

use ratatui::text::{Line, Span};

use super::super::blockers::DecisionBlocker;
use super::super::claim_question::ClaimFocus;
use super::super::step::{DecisionKind, DecisionStep};
use super::super::{DenyFocus, FormFocus, GateDialog, ReviewFocus};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::text_cells::wrap_within;
use crate::console::theme::{Appearance, Focus, Meaning};

/// State of a button.
#[derive(Clone, Copy)]
enum ButtonState {
    Enabled,
    Disabled,
}

impl ButtonState {
    /// Returns the state of a button with this blocking reason.
    fn of(bar: Option<&String>) -> Self {
        match bar {
            None => Self::Enabled,
            Some(_) => Self::Disabled,
        }
    }
}

impl GateDialog {
    /// Returns the result of the last key, or why the pass button is disabled.
    pub(super) fn status(
        &self,
        cells: usize,
        appearance: Appearance,
        now: Timestamp,
    ) -> Vec<Line<'static>> {
        if let Some(notice) = &self.notice {
            let text = format!("! {}", one_line(notice));
            let rows = wrap_within(&text, cells, 2, appearance).into_iter();
            return rows
                .map(|row| Line::styled(row, appearance.style(Meaning::Error)))
                .collect();
        }
        if let Some(refusal) = &self.failed_recording {
            let mut rows = wrap_within(
                &format!("! {}", one_line(&refusal.reason)),
                cells,
                2,
                appearance,
            );
            rows.extend(wrap_within(
                &format!("! {}", refusal.words()),
                cells,
                2,
                appearance,
            ));
            let rows = rows.into_iter();
            return rows
                .map(|row| Line::styled(row, appearance.style(Meaning::Error)))
                .collect();
        }
        let bar = match &self.step {
            DecisionStep::Editing => self
                .pass_blocker(now)
                .map(|reason| (self.pass_word(), reason)),
            DecisionStep::Reviewing(_) => {
                let bar = self.final_pass_blocker(now);
                bar.map(|reason| (self.pass_now_word(), reason))
            }
            DecisionStep::Denying(_) => {
                let bar = self.deny_blocker(now);
                bar.map(|reason| (format!("Deny{} now", self.all_words()), reason))
            }
            DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Changed(_)
            | DecisionStep::Settled(_) => None,
        };
        let Some((button, reason)) = bar else {
            return Vec::new();
        };
        let what = match self.decision_blocker(now) {
            // A reason that blocks both decisions must not read as if it blocked only a pass. Arming
            // ends soon.
            Some(
                DecisionBlocker::ReadOnly | DecisionBlocker::Trouble(_) | DecisionBlocker::TimeUp,
            ) => "Deciding".to_owned(),
            Some(DecisionBlocker::Arming) | None => button,
        };
        let rows = wrap_within(
            &format!("{what} is disabled: {reason}"),
            cells,
            2,
            appearance,
        );
        let rows = rows.into_iter();
        rows.map(|row| Line::styled(row, appearance.style(Meaning::Warning)))
            .collect()
    }

    /// Label of the button that passes, or gives the first of two approvals.
    fn pass_word(&self) -> String {
        if self.is_first_approval() {
            "Approve 1 of 2".to_owned()
        } else {
            format!("Pass{}", self.all_words())
        }
    }

    fn pass_now_word(&self) -> String {
        if self.is_first_approval() {
            "Approve now, 1 of 2".to_owned()
        } else {
            format!("Pass{} now", self.all_words())
        }
    }

    /// Text with the number of requests decided at once, if there are several.
    fn all_words(&self) -> String {
        match self.members().len() {
            0 => String::new(),
            count => format!(" all {count}"),
        }
    }

    pub(super) fn buttons(&self, appearance: Appearance, now: Timestamp) -> Line<'static> {
        let all = ButtonState::of(self.blocker_of_all_decisions(now).as_ref());
        let pass = ButtonState::of(self.pass_blocker(now).as_ref());
        let pass_now = ButtonState::of(self.final_pass_blocker(now).as_ref());
        let deny_now = ButtonState::of(self.deny_blocker(now).as_ref());
        let back = ButtonState::Enabled;
        let all_of = self.all_words();
        let named = |name: &str| name.to_owned();
        let buttons: Vec<(String, Focus, ButtonState)> = match &self.step {
            DecisionStep::Editing => {
                let at = |spot| Focus::from(self.form.focus == spot);
                vec![
                    (named("Back"), at(FormFocus::Back), back),
                    (format!("Deny{all_of}..."), at(FormFocus::Deny), all),
                    (self.pass_word(), at(FormFocus::Pass), pass),
                ]
            }
            DecisionStep::Reviewing(review) => {
                let at = |spot| Focus::from(review.focus == spot);
                vec![
                    (named("Back"), at(ReviewFocus::Back), back),
                    (self.pass_now_word(), at(ReviewFocus::PassNow), pass_now),
                ]
            }
            DecisionStep::Denying(spot) => {
                let at = |wanted| Focus::from(*spot == wanted);
                vec![
                    (named("Back"), at(DenyFocus::Back), back),
                    (
                        format!("Deny{all_of} now"),
                        at(DenyFocus::DenyNow),
                        deny_now,
                    ),
                ]
            }
            DecisionStep::Claimed(over) => {
                let at = |spot| Focus::from(over.focus == spot);
                let name = match over.verb {
                    DecisionKind::Pass => "Pass anyway",
                    DecisionKind::Deny => "Deny anyway",
                };
                vec![
                    (named("Back"), at(ClaimFocus::Back), back),
                    (named(name), at(ClaimFocus::Continue), all),
                ]
            }
            DecisionStep::Changed(_) => {
                vec![(named("Review again"), Focus::Here, ButtonState::Enabled)]
            }
            DecisionStep::Writing(_) => {
                let text = "keys are locked until saved";
                return Line::styled(text, appearance.style(Meaning::Dim));
            }
            DecisionStep::Settled(_) => {
                return Line::styled(
                    "Esc closes; the request is no longer held",
                    appearance.style(Meaning::Dim),
                );
            }
        };
        button_line(&buttons, appearance)
    }
}

/// Renders buttons next to each other.
fn button_line(buttons: &[(String, Focus, ButtonState)], appearance: Appearance) -> Line<'static> {
    let mut spans = Vec::new();
    for (name, focus, state) in buttons {
        let meaning = match (focus, state) {
            (Focus::Here, ButtonState::Enabled) => Meaning::ButtonFocused,
            (Focus::Here, ButtonState::Disabled) => Meaning::ButtonFocusedDisabled,
            (Focus::Elsewhere, ButtonState::Enabled) => Meaning::Button,
            (Focus::Elsewhere, ButtonState::Disabled) => Meaning::ButtonDisabled,
        };
        spans.push(Span::styled(
            format!("[ {name} ]"),
            appearance.style(meaning),
        ));
        spans.push(Span::raw("  "));
    }
    Line::from(spans)
}
