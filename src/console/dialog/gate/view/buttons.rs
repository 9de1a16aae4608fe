//! Buttons, and the line above them that says why a button is disabled.

use ratatui::text::{Line, Span};

use super::super::bars::Bar;
use super::super::claimed::ClaimSpot;
use super::super::step::{Step, Verb};
use super::super::{DenySpot, GateDialog, ReviewSpot, Spot};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::cells::wrap_within;
use crate::console::theme::{Focus, Look, Meaning};

/// State of a button.
#[derive(Clone, Copy)]
enum Power {
    Enabled,
    Disabled,
}

impl Power {
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
    pub(super) fn status(&self, cells: usize, look: Look, now: Timestamp) -> Vec<Line<'static>> {
        if let Some(notice) = &self.notice {
            let text = format!("! {}", one_line(notice));
            let rows = wrap_within(&text, cells, 2, look).into_iter();
            return rows
                .map(|row| Line::styled(row, look.style(Meaning::Error)))
                .collect();
        }
        if let Some(refusal) = &self.refusal {
            let mut rows = wrap_within(&format!("! {}", one_line(&refusal.why)), cells, 2, look);
            rows.extend(wrap_within(
                &format!("! {}", refusal.words()),
                cells,
                2,
                look,
            ));
            let rows = rows.into_iter();
            return rows
                .map(|row| Line::styled(row, look.style(Meaning::Error)))
                .collect();
        }
        let bar = match &self.step {
            Step::Editing => self.bars_pass(now).map(|why| (self.pass_word(), why)),
            Step::Reviewing(_) => {
                let bar = self.bars_pass_now(now);
                bar.map(|why| (self.pass_now_word(), why))
            }
            Step::Denying(_) => {
                let bar = self.bars_deny(now);
                bar.map(|why| (format!("Deny{} now", self.all_words()), why))
            }
            Step::Claimed(_) | Step::Writing(_) | Step::Changed(_) | Step::Settled(_) => None,
        };
        let Some((button, why)) = bar else {
            return Vec::new();
        };
        let what = match self.barred(now) {
            // A reason that blocks both decisions must not read as if it blocked only a pass. Arming
            // ends soon.
            Some(Bar::ReadOnly | Bar::Trouble(_) | Bar::TimeUp) => "Deciding".to_owned(),
            Some(Bar::Arming) | None => button,
        };
        let rows = wrap_within(&format!("{what} is disabled: {why}"), cells, 2, look);
        let rows = rows.into_iter();
        rows.map(|row| Line::styled(row, look.style(Meaning::Warning)))
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

    pub(super) fn buttons(&self, look: Look, now: Timestamp) -> Line<'static> {
        let all = Power::of(self.bars_all(now).as_ref());
        let pass = Power::of(self.bars_pass(now).as_ref());
        let pass_now = Power::of(self.bars_pass_now(now).as_ref());
        let deny_now = Power::of(self.bars_deny(now).as_ref());
        let back = Power::Enabled;
        let all_of = self.all_words();
        let named = |name: &str| name.to_owned();
        let buttons: Vec<(String, Focus, Power)> = match &self.step {
            Step::Editing => {
                let at = |spot| Focus::from(self.form.focus == spot);
                vec![
                    (named("Back"), at(Spot::Back), back),
                    (format!("Deny{all_of}..."), at(Spot::Deny), all),
                    (self.pass_word(), at(Spot::Pass), pass),
                ]
            }
            Step::Reviewing(review) => {
                let at = |spot| Focus::from(review.spot == spot);
                vec![
                    (named("Back"), at(ReviewSpot::Back), back),
                    (self.pass_now_word(), at(ReviewSpot::PassNow), pass_now),
                ]
            }
            Step::Denying(spot) => {
                let at = |wanted| Focus::from(*spot == wanted);
                vec![
                    (named("Back"), at(DenySpot::Back), back),
                    (format!("Deny{all_of} now"), at(DenySpot::DenyNow), deny_now),
                ]
            }
            Step::Claimed(over) => {
                let at = |spot| Focus::from(over.spot == spot);
                let name = match over.verb {
                    Verb::Pass => "Pass all the same",
                    Verb::Deny => "Deny all the same",
                };
                vec![
                    (named("Back"), at(ClaimSpot::Back), back),
                    (named(name), at(ClaimSpot::GoOn), all),
                ]
            }
            Step::Changed(_) => vec![(named("Look at it anew"), Focus::Here, Power::Enabled)],
            Step::Writing(_) => {
                let text = "keys are locked until it is written";
                return Line::styled(text, look.style(Meaning::Dim));
            }
            Step::Settled(_) => {
                return Line::styled(
                    "Esc closes; nothing can be decided here any more",
                    look.style(Meaning::Dim),
                );
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
