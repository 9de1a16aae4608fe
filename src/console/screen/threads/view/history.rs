//! List of the turns of a conversation.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::console::screen::queue::highlighted;
use crate::console::text_cells::{clip, fit, width};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::console::thread_text::phase_and_intensity_text;
use crate::memento::{AffectPhase, Intensity, KeptReason, ProcessedTurn, SummaryResult, Thread};

/// Paints the turns. `at` is the index of the selected one.
pub(super) fn draw(
    thread: &Thread,
    (at, focus): (usize, Focus),
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let bullet = appearance.mark(Mark::Bullet);
    let title = Line::from(vec![
        Span::styled(" Breakpoint history ", appearance.style(Meaning::Title)),
        Span::styled(
            format!("{bullet} Enter to open the event in Trace "),
            appearance.style(Meaning::Dim),
        ),
    ]);
    let block = appearance.panel(focus).title(title);
    let inner = block.inner(area);
    let cells = usize::from(inner.width);
    let visible = usize::from(inner.height).max(1);
    let first = (at + 1).saturating_sub(visible);
    let turns = thread.turns.iter().enumerate();
    let lines: Vec<Line> = turns
        .skip(first)
        .take(visible)
        .map(|(place, turn)| {
            let before = thread.turns.get(place + 1);
            let line = row(turn, before, cells, appearance);
            match focus {
                Focus::Here if place == at => highlighted(line, appearance),
                Focus::Here | Focus::Elsewhere => line,
            }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn summary_style(summary: &SummaryResult) -> Meaning {
    match summary {
        SummaryResult::Updated => Meaning::Passed,
        SummaryResult::Kept(KeptReason::AtPeak) => Meaning::Frozen,
        SummaryResult::Kept(KeptReason::Invalid(_) | KeptReason::BeforeEdit) => Meaning::Warning,
        SummaryResult::Kept(KeptReason::NothingProposed | KeptReason::OnlyAcknowledged) => {
            Meaning::Dim
        }
    }
}

/// Returns the cause of a decision: the signals or the rule.
fn cause_text(turn: &ProcessedTurn) -> String {
    let signals: Vec<_> = turn
        .signals
        .iter()
        .map(|signal| signal.as_str().replace('_', " "))
        .collect();
    if signals.is_empty() {
        return turn.decided.rule.description().to_owned();
    }
    signals.join(", ")
}

fn row(
    turn: &ProcessedTurn,
    before: Option<&ProcessedTurn>,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let arrow = appearance.mark(Mark::Arrow);
    let heat = |words: fn((AffectPhase, Intensity)) -> String| {
        let (from, to) = (words(turn.before), words(turn.after));
        if from == to {
            return to;
        }
        format!("{from} {arrow} {to}")
    };
    let heat = if cells >= 100 {
        heat(phase_and_intensity_text)
    } else {
        heat(|(phase, _)| phase.as_str().to_owned())
    };
    let version = match before.map_or(0, |before| before.version) {
        old if old == turn.version => format!("v{old}"),
        old => format!("v{old} {arrow} v{}", turn.version),
    };
    let word = turn.summary.label();
    let place = record_location(turn, appearance);
    let fixed = 9 + 8 + 12;
    let (heat_cells, place_cells, version_cells) = match cells {
        100.. => (28, 24, 12),
        70.. => (20, 0, 9),
        _ => (0, 0, 0),
    };
    let room = cells.saturating_sub(fixed + heat_cells + place_cells + version_cells);
    let column = |text: &str, cells: usize| {
        let mut text = fit(text, cells.saturating_sub(1), appearance);
        if width(&text) < cells {
            text.push(' ');
        }
        Span::raw(text)
    };
    let gap = 12_usize.saturating_sub(word.len() + 2);
    let mut spans = vec![
        column(&turn.at.time_of_day(), 9),
        column(turn.decided.decision.as_str(), 8),
        column(&cause_text(turn), room),
        column(&heat, heat_cells),
        Span::styled(
            format!(" {word} "),
            appearance.style(summary_style(&turn.summary)),
        ),
        Span::raw(" ".repeat(gap)),
    ];
    spans.push(column(&place, place_cells));
    spans.push(column(&version, version_cells));
    Line::from(spans)
}

/// Returns the location in the record: the session and the sequence number.
fn record_location(turn: &ProcessedTurn, appearance: Appearance) -> String {
    // The start of a long session name is enough: the operator searches by the number.
    let session = clip(turn.session.as_str(), 14, appearance);
    match turn.sequence {
        Some(sequence) => format!("{session}#{sequence}"),
        None => session,
    }
}

/// Returns the last turns in one line.
pub(super) fn latest_turns_line(
    thread: &Thread,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let mut spans = vec![Span::raw("  ")];
    let mut room = cells;
    for turn in &thread.turns {
        let time: String = turn.at.time_of_day().chars().take(5).collect();
        let head = format!("{time} {} ", turn.decided.decision.as_str());
        let word = match turn.summary {
            SummaryResult::Updated => format!("{} v{}", turn.summary.label(), turn.version),
            SummaryResult::Kept(_) => turn.summary.label().to_owned(),
        };
        let needs = width(&head) + width(&word) + 3;
        if needs > room {
            break;
        }
        room -= needs;
        let meaning = summary_style(&turn.summary);
        spans.push(Span::styled(head, appearance.style(Meaning::Dim)));
        spans.push(Span::styled(word, appearance.style(meaning)));
        spans.push(Span::raw("   "));
    }
    if thread.turns.is_empty() {
        spans.push(Span::styled(
            clip("no turn yet", cells, appearance),
            appearance.style(Meaning::Dim),
        ));
    }
    Line::from(spans)
}
