//! Painting of a comparison of two sessions.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::comparison::SessionComparison;
use super::{centred_top, join_parts, style_selected_row};
use crate::base::text::one_line;
use crate::console::text_cells::{clip, counted, fit, width};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::trace::diff::{SessionDiff, SessionTotals, StepChange, StepKind, StepSummary};

/// Width of the column of step kinds, in cells.
const KIND: usize = 11;

pub(super) fn draw(
    compared: &SessionComparison,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let (a, b) = &compared.sessions;
    let words = format!("{a} {} {b} ", appearance.mark(Mark::Separator));
    let room = usize::from(area.width).saturating_sub(16);
    let block = appearance.panel(Focus::Here).title(Line::from(vec![
        Span::styled(" Compared ", appearance.style(Meaning::Title)),
        Span::styled(
            clip(&words, room, appearance),
            appearance.style(Meaning::Dim),
        ),
    ]));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let cells = usize::from(inner.width);
    match &compared.difference {
        None => {
            let words = "reading both sessions... Esc: close";
            frame.render_widget(
                Line::styled(words, appearance.style(Meaning::Waiting)),
                inner,
            );
        }
        Some(Err(problem)) => {
            let words = clip(&format!("! {}", one_line(problem)), cells, appearance);
            frame.render_widget(Line::styled(words, appearance.style(Meaning::Error)), inner);
        }
        Some(Ok(difference)) => draw_difference(compared, difference, frame, inner, appearance),
    }
}

fn draw_difference(
    compared: &SessionComparison,
    difference: &SessionDiff,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let cells = usize::from(area.width);
    let parts = [
        Constraint::Length(6),
        Constraint::Fill(1),
        Constraint::Length(3),
    ];
    let [top, list, bottom] = Layout::vertical(parts).areas(area);
    frame.render_widget(
        Paragraph::new(first_difference_lines(difference, cells, appearance)),
        top,
    );
    let visible = usize::from(list.height);
    let changes = &difference.changes;
    let from = centred_top(compared.at, changes.len(), visible);
    let rows = changes.iter().enumerate().skip(from).take(visible);
    let rows: Vec<Line> = rows
        .map(|(at, change)| {
            let focus = Focus::from(at == compared.at);
            style_selected_row(
                change_line(change, focus, cells, appearance),
                focus,
                Focus::Here,
                appearance,
            )
        })
        .collect();
    frame.render_widget(Paragraph::new(rows), list);
    frame.render_widget(
        Paragraph::new(totals_lines(difference, cells, appearance)),
        bottom,
    );
}

/// Describes the first difference.
fn first_difference_lines(
    difference: &SessionDiff,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let steps = counted(
        usize::try_from(difference.common).unwrap_or(usize::MAX),
        "step",
    );
    let Some(divergence) = &difference.first else {
        let words = format!("No difference in {steps}.");
        return vec![Line::styled(words, appearance.style(Meaning::Passed))];
    };
    let side = |step: &Option<StepSummary>| match step {
        None => "ends here".to_owned(),
        Some(step) => format!("{} {}", step.sequence, step.summary),
    };
    let part = |label: &'static str, step: &Option<StepSummary>, meaning| {
        let text = clip(&side(step), cells.saturating_sub(3), appearance);
        Line::from(vec![
            Span::styled(label, appearance.style(Meaning::Label)),
            Span::styled(text, appearance.style(meaning)),
        ])
    };
    let differences = counted(
        usize::try_from(difference.changes_found).unwrap_or(usize::MAX),
        "difference",
    );
    let (left, right) = difference.not_aligned;
    let more = if left + right > 0 {
        format!("; {left} and {right} later steps not compared")
    } else {
        String::new()
    };
    let common = match difference.common {
        0 => "The sessions differ from step 1:".to_owned(),
        1 => "The first step is the same. The sessions differ from step 2:".to_owned(),
        _ => format!("The first {steps} are the same. The sessions differ after that:"),
    };
    vec![
        Line::from(common),
        part("A  ", &divergence.a, Meaning::Strong),
        part("B  ", &divergence.b, Meaning::Strong),
        Line::default(),
        Line::styled(
            clip(&format!("{differences}{more}"), cells, appearance),
            appearance.style(Meaning::Waiting),
        ),
        Line::styled(
            columns("  STEP", "A", "B", cells, appearance).concat(),
            appearance.style(Meaning::Dim),
        ),
    ]
}

/// Returns a row of three columns.
fn columns(kind: &str, a: &str, b: &str, cells: usize, appearance: Appearance) -> [String; 3] {
    let bar = format!(" {} ", appearance.mark(Mark::Separator));
    let rest = cells.saturating_sub(KIND + 2 + width(&bar));
    let (left, right) = (rest / 2, rest - rest / 2);
    [
        fit(kind, KIND + 2, appearance),
        fit(a, left, appearance),
        format!("{bar}{}", fit(b, right, appearance)),
    ]
}

fn change_line(
    change: &StepChange,
    focus: Focus,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let mark = match focus {
        Focus::Here => ">",
        Focus::Elsewhere => " ",
    };
    let side = |step: &Option<StepSummary>| match step {
        None => appearance.mark(Mark::Bullet).to_owned(),
        Some(step) => format!("{} {}", step.sequence, step.summary),
    };
    let kind = format!("{mark} {}", step_kind_name(change.kind));
    let [kind, a, b] = columns(&kind, &side(&change.a), &side(&change.b), cells, appearance);
    let meaning = |step: &Option<StepSummary>| match step {
        None => Meaning::Dim,
        Some(_) => Meaning::Text,
    };
    Line::from(vec![
        Span::styled(kind, appearance.style(Meaning::Label)),
        Span::styled(a, appearance.style(meaning(&change.a))),
        Span::styled(b, appearance.style(meaning(&change.b))),
    ])
}

fn step_kind_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Session => "session",
        StepKind::Checkpoint => "checkpoint",
        StepKind::Outcome => "outcome",
        StepKind::Answer => "answer",
        StepKind::Action => "action",
        StepKind::Result => "result",
        StepKind::Policy => "policy",
        StepKind::Exchange => "exchange",
        StepKind::Error => "error",
        StepKind::Other => "other",
    }
}

/// Returns the totals of both sessions.
fn totals_lines(
    difference: &SessionDiff,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let line = |label: &'static str, sum: &SessionTotals| {
        let parts = [
            one_line(&sum.agent),
            format!("{} events", sum.events),
            sum.status.clone().unwrap_or_else(|| "not ended".to_owned()),
            format!(
                "{} tried, {} blocked, {} failed",
                sum.attempted, sum.blocked, sum.failed
            ),
            format!("{} passed, {} not passed", sum.passed, sum.not_passed),
            format!(
                "by {}",
                if sum.decided_by.is_empty() {
                    "no operator".to_owned()
                } else {
                    sum.decided_by.join(", ")
                }
            ),
        ];
        let words = clip(
            &join_parts(&parts, appearance),
            cells.saturating_sub(3),
            appearance,
        );
        Line::from(vec![
            Span::styled(label, appearance.style(Meaning::Label)),
            Span::raw(words),
        ])
    };
    let (a, b) = &difference.sums;
    vec![Line::default(), line("A  ", a), line("B  ", b)]
}
