//! Recent decisions, and earlier decisions about the same action.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::view::column;
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::text_cells::{clip, fit};
use crate::console::theme::{Appearance, Focus, Mark, Meaning, outcome_meaning};
use crate::engine::command::{HeldOutcome, SettledRequest};
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;

/// Age up to which a decision counts as recent.
const RECENT_WINDOW: Duration = Duration::from_mins(15);
/// Maximum number of decisions searched for similar ones.
const MAX_SEARCHED_DECISIONS: usize = 1000;

/// Paints the recent decisions.
pub(super) fn draw(
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) {
    let title = Line::from(vec![
        Span::styled(" Decided ", appearance.style(Meaning::Title)),
        Span::styled(
            format!("{} last 15 min ", appearance.mark(Mark::Bullet)),
            appearance.style(Meaning::Dim),
        ),
    ]);
    let block = appearance.panel(Focus::Elsewhere).title(title);
    let inner = block.inner(area);
    let cells = usize::from(inner.width);
    let recent = recent_decisions(snapshot, now).take(usize::from(inner.height));
    let mut lines: Vec<Line> = recent
        .map(|decided| line(decided, cells, appearance))
        .collect();
    if lines.is_empty() {
        let text = match snapshot.decided.first() {
            Some(last) => format!(
                "none; the last was {} at {}",
                last.gate,
                last.at.time_of_day()
            ),
            None => "none yet".to_owned(),
        };
        lines.push(Line::styled(text, appearance.style(Meaning::Dim)));
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Returns the recent decisions, newest first.
pub(super) fn recent_decisions(
    snapshot: &RuntimeSnapshot,
    now: Timestamp,
) -> impl Iterator<Item = &Arc<SettledRequest>> {
    let decided = snapshot.decided.iter();
    decided.take_while(move |decided| now.since(decided.at) <= RECENT_WINDOW)
}

/// Describes a decision in one line. An outcome without an operator must not read like an operator's
/// decision.
pub(super) fn line(
    decided: &SettledRequest,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let arrow = appearance.mark(Mark::Arrow);
    let by = match (&decided.by, decided.outcome) {
        (Some(by), _) => format!("by {}", one_line(by)),
        (None, HeldOutcome::Expired) => format!("no answer {arrow} denied"),
        (None, HeldOutcome::Withdrawn) => "the agent withdrew".to_owned(),
        (None, HeldOutcome::Voided) => "the Atlas changed".to_owned(),
        (None, HeldOutcome::Passed | HeldOutcome::Denied) => "no operator".to_owned(),
    };
    let by_cells = if cells >= 96 { 27 } else { 20 };
    let rest = cells.saturating_sub(10 + 9 + 11 + by_cells);
    let detail = match decided.outcome {
        HeldOutcome::Expired => "not by an operator".to_owned(),
        HeldOutcome::Passed
        | HeldOutcome::Denied
        | HeldOutcome::Withdrawn
        | HeldOutcome::Voided => match one_line(&decided.detail) {
            detail if detail.is_empty() => detail,
            detail => format!("'{detail}'"),
        },
    };
    let about = format!(
        "{}  {}  {detail}",
        decided.session,
        one_line(&decided.action)
    );
    Line::from(vec![
        Span::styled(
            fit(&decided.at.time_of_day(), 10, appearance),
            appearance.style(Meaning::Dim),
        ),
        Span::raw(column(decided.gate.as_str(), 9, appearance)),
        Span::styled(
            fit(&decided.outcome.as_str().to_uppercase(), 11, appearance),
            appearance.style(outcome_meaning(decided.outcome)),
        ),
        Span::raw(column(&by, by_cells, appearance)),
        Span::styled(
            clip(about.trim_end(), rest, appearance),
            appearance.style(Meaning::Dim),
        ),
    ])
}

/// Summarises today's decisions about the same action, as in `2 denied, 1 passed (o2@ops)`.
pub(super) fn similar_decisions(snapshot: &RuntimeSnapshot, held: &Held, now: Timestamp) -> String {
    let midnight = now.micros() - now.micros().rem_euclid(86_400_000_000);
    let mut counts: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    for decided in snapshot.decided.iter().take(MAX_SEARCHED_DECISIONS) {
        if decided.at.micros() < midnight {
            break;
        }
        if decided.action != held.action() {
            continue;
        }
        let (count, operators) = counts.entry(decided.outcome.as_str()).or_default();
        *count += 1;
        let by = decided.by.as_deref().map(one_line);
        operators.extend(by.filter(|by| !operators.contains(by)));
    }
    if counts.is_empty() {
        return "no decision on this action today".to_owned();
    }
    let words = counts.into_iter().map(|(outcome, (count, operators))| {
        if operators.is_empty() {
            format!("{count} {outcome}")
        } else {
            format!("{count} {outcome} ({})", operators.join(", "))
        }
    });
    let words: Vec<String> = words.collect();
    format!("today {}", words.join(", "))
}
