//! Rows of the list.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::super::{QueueScreen, RequestState, risk_text};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::names::action_words;
use crate::console::text_cells::{asker_text, fit, span, width};
use crate::console::theme::{Appearance, Focus, Meaning, of_tier};
use crate::console::thread_text;
use crate::engine::held::Held;
use crate::memento::Thread;
use crate::runtime::snapshot::RuntimeSnapshot;

/// Time left below which a countdown is shown as urgent.
const URGENT: Duration = Duration::from_mins(1);
/// Time left below which a countdown is shown as near.
const NEAR: Duration = Duration::from_mins(3);

const ID: usize = 9;
const MARK: usize = 5;
const TIME: usize = 7;
const RISK: usize = 7;
const QUESTIONS: usize = 4;
const STATE: usize = 12;
/// Width of the state column in cells if there is room for a name.
const WIDE_STATE: usize = 15;

/// Visible columns, and the widths of the flexible ones.
pub(super) struct QueueColumns {
    all: bool,
    checkpoint: usize,
    action: usize,
    agent: usize,
}

impl QueueColumns {
    pub(super) fn of(cells: usize) -> Self {
        // The columns ID, LEFT, RISK, ACTION and STATE are never dropped.
        let fixed = 2 + ID + TIME + RISK + STATE;
        if cells >= 96 {
            let rest = cells - fixed - MARK - TIME - QUESTIONS - (WIDE_STATE - STATE);
            let (checkpoint, agent) = (rest * 3 / 10, rest * 4 / 10);
            Self {
                all: true,
                checkpoint,
                action: rest - checkpoint - agent,
                agent,
            }
        } else {
            let rest = cells.saturating_sub(fixed);
            let checkpoint = if rest >= 34 { rest / 2 } else { 0 };
            Self {
                all: false,
                checkpoint,
                action: rest - checkpoint,
                agent: 0,
            }
        }
    }

    /// Returns the agent, and a mark if the summary of its conversation is frozen.
    fn agent_cell(
        &self,
        snapshot: &RuntimeSnapshot,
        held: &Held,
        appearance: Appearance,
    ) -> Vec<Span<'static>> {
        const FROZEN: &str = "FROZEN";
        let asker = asker_text(&held.agent, &held.session);
        let thread = thread_text::thread_of_session(snapshot, &held.session);
        // Two spaces, because the number after it belongs to another column.
        let room = self.agent.saturating_sub(FROZEN.len() + 2);
        if room < 12 || !thread.is_some_and(Thread::is_frozen) {
            return vec![Span::raw(column(&asker, self.agent, appearance))];
        }
        vec![
            Span::raw(column(&asker, room, appearance)),
            Span::styled(FROZEN, appearance.style(Meaning::Frozen)),
            Span::raw("  "),
        ]
    }

    fn state(&self) -> usize {
        if self.all { WIDE_STATE } else { STATE }
    }

    /// Returns the state, the operators involved, and the number of duplicate requests.
    fn state_word(&self, state: RequestState, held: &Held) -> (String, Meaning) {
        let (word, meaning) = match state {
            RequestState::Open | RequestState::Draft if !held.approvers().is_one() => {
                (format!("{} 0 of 2", state.word()), Meaning::Text)
            }
            RequestState::Open => (state.word().to_owned(), Meaning::Text),
            RequestState::Draft => (state.word().to_owned(), Meaning::Waiting),
            RequestState::Attempt(count) => (format!("attempt {}", count + 1), Meaning::Warning),
            RequestState::Changed => (state.word().to_owned(), Meaning::Error),
            RequestState::Approved => {
                let (words, by) = held.approval_progress().unwrap_or_default();
                let by = by.filter(|_| self.all).map(short_name);
                let by = by.map(|by| format!(" ({by})")).unwrap_or_default();
                (format!("{words}{by}"), Meaning::Waiting)
            }
            RequestState::Claimed => {
                let by = held.claim.as_ref().map(|claim| short_name(&claim.by));
                let by = by.unwrap_or_default();
                let word = if self.all { "claimed: " } else { "by " };
                (format!("{word}{by}"), Meaning::Waiting)
            }
        };
        match held.joined {
            0 => (word, meaning),
            joined => (format!("{word} x{}", joined + 1), meaning),
        }
    }

    pub(super) fn heading(&self, appearance: Appearance) -> Line<'static> {
        let all = |cells| if self.all { cells } else { 0 };
        let columns = [
            ("", 2),
            ("MARK", all(MARK)),
            ("ID", ID),
            ("AGE", all(TIME)),
            ("LEFT", TIME),
            ("RISK", RISK),
            ("CHECKPOINT", self.checkpoint),
            ("ACTION", self.action),
            ("AGENT/SESSION", self.agent),
            ("Q", all(QUESTIONS)),
            ("STATE", self.state()),
        ];
        let text: String = columns
            .into_iter()
            .map(|(name, cells)| fit(name, cells, appearance))
            .collect();
        Line::styled(text, appearance.style(Meaning::Dim))
    }

    pub(super) fn row(
        &self,
        (queue, snapshot): (&QueueScreen, &RuntimeSnapshot),
        held: &Held,
        appearance: Appearance,
        now: Timestamp,
    ) -> Line<'static> {
        let chosen = Focus::from(queue.selected.as_ref() == Some(&held.id));
        let marked = queue.marked.contains(&held.id);
        let pointer = match chosen {
            Focus::Here => ">",
            Focus::Elsewhere => " ",
        };
        let plain = |text: &str, cells: usize| Span::raw(column(text, cells, appearance));
        let mut spans = vec![Span::raw(pointer)];
        if self.all {
            let mark = if marked { " [x]  " } else { " [ ]  " };
            spans.push(Span::raw(mark));
        } else {
            spans.push(Span::raw(if marked { "*" } else { " " }));
        }
        spans.push(plain(held.id.as_str(), ID));
        if self.all {
            spans.push(plain(&span(now.since(held.opened_at)), TIME));
        }
        let left = held.deadline.since(now);
        spans.push(Span::styled(
            fit(&span(left), TIME, appearance),
            appearance.style(deadline_meaning(left)),
        ));
        spans.push(Span::styled(
            fit(&risk_text(held), RISK, appearance),
            appearance.style(of_tier(held.tier())),
        ));
        if self.checkpoint > 0 {
            spans.push(plain(&gates_text(held), self.checkpoint));
        }
        spans.push(plain(&action_words(held), self.action));
        if self.all {
            spans.extend(self.agent_cell(snapshot, held, appearance));
            let questions: usize = held.gates.iter().map(|gate| gate.questions.len()).sum();
            spans.push(plain(&questions.to_string(), QUESTIONS));
        }
        let (state, meaning) = self.state_word(queue.state(held), held);
        let state = fit(&state, self.state(), appearance);
        spans.push(Span::styled(state, appearance.style(meaning)));
        let line = Line::from(spans);
        match chosen {
            Focus::Here => highlighted(line, appearance),
            Focus::Elsewhere => line,
        }
    }
}

fn deadline_meaning(left: Duration) -> Meaning {
    if left <= URGENT {
        Meaning::Critical
    } else if left <= NEAR {
        Meaning::High
    } else {
        Meaning::Text
    }
}

/// Gives a row one style. The words of the row carry the meaning that its colours had.
pub(crate) fn highlighted(line: Line<'static>, appearance: Appearance) -> Line<'static> {
    let spans = line.spans.into_iter();
    let plain = spans
        .map(|span| Span::raw(span.content))
        .collect::<Vec<_>>();
    Line::from(plain).style(appearance.style(Meaning::Selected))
}

/// Fits a text into its column, with a gap before the next one.
pub(in super::super) fn column(text: &str, cells: usize, appearance: Appearance) -> String {
    let mut fitted = fit(text, cells.saturating_sub(1), appearance);
    if width(&fitted) < cells {
        fitted.push(' ');
    }
    fitted
}

fn gates_text(held: &Held) -> String {
    let first = held.gates.first().map(|gate| one_line(&gate.name()));
    let more = held.gates.len().saturating_sub(1);
    let first = first.unwrap_or_default();
    if more == 0 {
        first
    } else {
        format!("{first} +{more}")
    }
}

/// Returns a name without its host. The dialog shows the full name.
fn short_name(name: &str) -> String {
    one_line(name.split('@').next().unwrap_or(name))
}
