//! Painting of the record screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::open_session::{FollowMode, OpenSession};
use super::{LetterCommand, TracePane, TracePrompt, TraceScreen, VerificationState};
use crate::base::text::one_line;
use crate::console::names::event_words;
use crate::console::screen::queue::highlighted;
use crate::console::text_cells::{clip, coordinate, counted, width, wrap_within};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::runtime::snapshot::RuntimeSnapshot;
use crate::trace::verification::VerificationProgress;

mod click;
mod comparison_view;
mod event;
mod event_tree;
mod minimap;
mod replay;
mod sessions;
mod time;
mod verdict;

/// Minimum size at which the event is painted to the right of the list, and the lower panels have their own
/// area.
const WIDE: (u16, u16) = (100, 26);
/// Minimum size at which the event is painted below the list.
const STACKED: (u16, u16) = (72, 18);
/// Width of the event to the right of the list, in cells.
const EVENT_CELLS: u16 = 42;
/// Rows of the event below the list.
const EVENT_ROWS: u16 = 6;
/// Maximum rows for the error of a typed line.
const PROBLEM_ROWS: usize = 3;

/// Areas of the panels.
struct TraceAreas {
    bar: Rect,
    spans: Rect,
    event: Rect,
    replay: Rect,
    verdict: Rect,
    shape: TraceLayout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceLayout {
    Wide,
    Stacked,
    Single,
}

fn areas(trace: &TraceScreen, area: Rect) -> TraceAreas {
    let shape = if area.width >= WIDE.0 && area.height >= WIDE.1 {
        TraceLayout::Wide
    } else if area.width >= STACKED.0 && area.height >= STACKED.1 {
        TraceLayout::Stacked
    } else {
        TraceLayout::Single
    };
    let (below, proof) = match shape {
        TraceLayout::Wide => (5, 4),
        TraceLayout::Stacked => (1, 2),
        TraceLayout::Single => (1, 1),
    };
    let [bar, main, replay, verdict] = Layout::vertical([
        Constraint::Length(bar_rows(trace, area)),
        Constraint::Fill(1),
        Constraint::Length(below),
        Constraint::Length(proof),
    ])
    .areas(area);
    let (spans, event) = match (shape, trace.pane) {
        (TraceLayout::Wide, _) => {
            let parts = [Constraint::Fill(1), Constraint::Length(EVENT_CELLS)];
            let [spans, event] = Layout::horizontal(parts).areas(main);
            (spans, event)
        }
        (TraceLayout::Stacked | TraceLayout::Single, TracePane::Event) => (Rect::ZERO, main),
        (TraceLayout::Stacked, _) => {
            let parts = [Constraint::Fill(1), Constraint::Length(EVENT_ROWS)];
            let [spans, event] = Layout::vertical(parts).areas(main);
            (spans, event)
        }
        (TraceLayout::Single, _) => (main, Rect::ZERO),
    };
    TraceAreas {
        bar,
        spans,
        event,
        replay,
        verdict,
        shape,
    }
}

/// Returns the number of events and the number of cells of one event that fit.
pub(super) fn room(trace: &TraceScreen, area: Rect) -> (u64, usize) {
    let areas = areas(trace, area);
    let rows = areas.spans.height.saturating_sub(3);
    let cells = areas.event.width.saturating_sub(4);
    (u64::from(rows), usize::from(cells))
}

/// Paints the record screen.
pub(crate) fn draw(
    trace: &TraceScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let all = areas(trace, area);
    let rest = Rect::new(
        area.x,
        area.y + all.bar.height,
        area.width,
        area.height.saturating_sub(all.bar.height),
    );
    draw_bar(trace, frame, all.bar, appearance);
    match (trace.pane, &trace.opened, &trace.compared) {
        (TracePane::Compared, _, Some(compared)) => {
            comparison_view::draw(compared, frame, rest, appearance);
        }
        (TracePane::Spans | TracePane::Event, Some(opened), _) => {
            if !all.spans.is_empty() {
                event_tree::draw(trace, opened, frame, all.spans, appearance);
            }
            if !all.event.is_empty() {
                event::draw(trace, opened, frame, all.event, appearance);
            }
            replay::draw(trace, opened, frame, all.replay, all.shape, appearance);
            verdict::draw(
                trace,
                snapshot,
                opened,
                frame,
                all.verdict,
                all.shape,
                appearance,
            );
        }
        (TracePane::Sessions | TracePane::Spans | TracePane::Event | TracePane::Compared, _, _) => {
            sessions::draw(trace, frame, rest, appearance);
        }
    }
}

fn bar_rows(trace: &TraceScreen, area: Rect) -> u16 {
    let problem = trace
        .prompt
        .as_ref()
        .and_then(|prompt| prompt.problem.as_ref());
    let cells = usize::from(area.width).saturating_sub(2);
    let rows = problem.map_or(0, |problem| {
        wrap_within(problem, cells, PROBLEM_ROWS, Appearance::default()).len()
    });
    1 + coordinate(rows)
}

/// Paints the top line: the prompt, the last message, or the active filter and search.
fn draw_bar(trace: &TraceScreen, frame: &mut Frame, area: Rect, appearance: Appearance) {
    let cells = usize::from(area.width);
    let mut lines = vec![match (&trace.prompt, trace.letter) {
        (Some(prompt), _) => prompt_line(prompt, cells, appearance),
        (None, Some(letter)) => {
            let words = match letter {
                LetterCommand::Mark => " mark with which letter?",
                LetterCommand::Jump => " jump to which letter?",
            };
            Line::styled(words, appearance.style(Meaning::Key))
        }
        (None, None) => status(trace, cells, appearance),
    }];
    if let Some(problem) = trace
        .prompt
        .as_ref()
        .and_then(|prompt| prompt.problem.as_ref())
    {
        let rows = wrap_within(problem, cells.saturating_sub(2), PROBLEM_ROWS, appearance);
        let style = appearance.style(Meaning::Error);
        lines.extend(
            rows.into_iter()
                .map(|row| Line::styled(format!(" {row}"), style)),
        );
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn prompt_line(prompt: &TracePrompt, cells: usize, appearance: Appearance) -> Line<'static> {
    let (before, after) = prompt.parts();
    let label = format!(" {}", prompt.purpose.label());
    let room = cells.saturating_sub(width(&label) + 2);
    // A long text shows its end: the cursor is there.
    let mut start = before;
    while width(start) > room {
        let mut chars = start.chars();
        chars.next();
        start = chars.as_str();
    }
    let (under, rest) = match after.chars().next() {
        Some(c) => {
            let rest = after.strip_prefix(c).unwrap_or_default();
            (c.to_string(), rest.to_owned())
        }
        None => (" ".to_owned(), String::new()),
    };
    let rest = clip(&rest, room.saturating_sub(width(start)), appearance);
    let hint = prompt
        .completion()
        .map(|found| format!("   Tab: {}", found.words));
    let used = width(&label) + width(start) + width(&under) + width(&rest);
    let hint = clip(
        &hint.unwrap_or_default(),
        cells.saturating_sub(used),
        appearance,
    );
    Line::from(vec![
        Span::styled(label, appearance.style(Meaning::Key)),
        Span::styled(start.to_owned(), appearance.style(Meaning::Strong)),
        Span::styled(under, appearance.style(Meaning::Selected)),
        Span::styled(rest, appearance.style(Meaning::Strong)),
        Span::styled(hint, appearance.style(Meaning::Hint)),
    ])
}

fn status(trace: &TraceScreen, cells: usize, appearance: Appearance) -> Line<'static> {
    if let Some((meaning, words)) = &trace.message {
        let words = format!(" {}", clip(words, cells.saturating_sub(2), appearance));
        return Line::styled(words, appearance.style(*meaning));
    }
    let opened = trace
        .opened
        .as_ref()
        .filter(|_| matches!(trace.pane, TracePane::Spans | TracePane::Event));
    let Some(opened) = opened else {
        return match &trace.comparing {
            Some(first) => {
                let words =
                    format!(" compare {first} with which session? Enter: choose, Esc: cancel");
                Line::styled(
                    clip(&words, cells, appearance),
                    appearance.style(Meaning::Key),
                )
            }
            None => Line::default(),
        };
    };
    let right = follow_text(opened, cells);
    let mut spans = vec![Span::raw(" ")];
    // The follow mode is always visible.
    let room = cells.saturating_sub(width(&right.0) + 3);
    spans.extend(clip_spans(
        search_status(opened, cells, appearance),
        room,
        appearance,
    ));
    let used: usize = spans.iter().map(|span| width(&span.content)).sum();
    let gap = cells.saturating_sub(used + width(&right.0) + 1).max(1);
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(Span::styled(right.0, appearance.style(right.1)));
    Line::from(spans)
}

/// Clips spans to a number of cells.
fn clip_spans(
    spans: Vec<Span<'static>>,
    cells: usize,
    appearance: Appearance,
) -> Vec<Span<'static>> {
    let mut room = cells;
    let mut kept = Vec::new();
    for span in spans {
        let text = clip(&span.content, room, appearance);
        room -= width(&text).min(room);
        kept.push(Span::styled(text, span.style));
    }
    kept
}

/// Returns the matches of the filter and the search so far.
fn search_status(opened: &OpenSession, cells: usize, appearance: Appearance) -> Vec<Span<'static>> {
    let total = opened.total();
    let both = opened.filter.is_some() && opened.search.is_some();
    let room = if both { cells / 4 } else { cells / 2 };
    let mut spans = Vec::new();
    let labelled = |label: &'static str| Span::styled(label, appearance.style(Meaning::Key));
    if let Some(scan) = &opened.filter {
        spans.push(labelled("filter "));
        let text = clip(&one_line(&scan.text), room, appearance);
        spans.push(Span::styled(text, appearance.style(Meaning::Strong)));
        let (found, seen) = (scan.len(), scan.seen());
        let words = if scan.is_running(total) {
            format!("  {found} so far, {}", percent(seen, total))
        } else if scan.is_stopped() {
            format!("  {found} in {}, stopped", percent(seen, total))
        } else {
            format!("  {found}/{total}")
        };
        spans.push(Span::styled(words, appearance.style(Meaning::Text)));
        if cells >= 100 && found > 0 {
            spans.push(Span::styled(facets(opened), appearance.style(Meaning::Dim)));
        }
    }
    if let Some(scan) = &opened.search {
        let gap = if spans.is_empty() { "" } else { "  " };
        spans.push(Span::raw(gap));
        spans.push(labelled("/"));
        let text = clip(&one_line(&scan.text), room, appearance);
        spans.push(Span::styled(text, appearance.style(Meaning::Strong)));
        let at = if scan.has(opened.place) {
            scan.rank(opened.place) + 1
        } else {
            0
        };
        let mut words = format!("  {at}/{}", scan.len());
        if scan.is_running(total) {
            words = format!("{words} so far, {}", percent(scan.seen(), total));
        } else if scan.len() == 0 {
            words = format!("{words} no match");
        }
        spans.push(Span::styled(words, appearance.style(Meaning::Text)));
    }
    if spans.is_empty() {
        let words = "no filter (f: filter, /: search)";
        spans.push(Span::styled(words, appearance.style(Meaning::Dim)));
    }
    spans
}

fn facets(opened: &OpenSession) -> String {
    let (types, actors) = opened
        .filter
        .as_ref()
        .map(super::scan::SessionScan::facets)
        .unwrap_or_default();
    let named = |list: &[(&str, u64)]| {
        let first = list.iter().take(2);
        let first: Vec<_> = first
            .map(|(name, n)| format!("{} {n}", one_line(name)))
            .collect();
        match list.len().saturating_sub(first.len()) {
            0 => first.join(", "),
            more => format!("{}, +{more}", first.join(", ")),
        }
    };
    let words = types
        .iter()
        .map(|(name, count)| (event_words(name), *count));
    let words: Vec<_> = words.collect();
    let types: Vec<_> = words
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    let mut text = format!("   {}: {}", counted(types.len(), "type"), named(&types));
    if !actors.is_empty() {
        text = format!(
            "{text}   {}: {}",
            counted(actors.len(), "actor"),
            named(&actors)
        );
    }
    text
}

/// Returns the follow mode, and the number of new events while it is off.
fn follow_text(opened: &OpenSession, cells: usize) -> (String, Meaning) {
    let total = opened.total();
    if opened.is_reading() && !opened.outline.is_empty() {
        let part = percent(opened.outline.len(), total);
        return (format!("reading {part}, Esc: stop "), Meaning::Waiting);
    }
    if opened.reading == super::open_session::OutlineReading::Stopped {
        let part = percent(opened.outline.len(), total);
        return (format!("read to {part}, r: resume "), Meaning::Warning);
    }
    match opened.follow {
        FollowMode::Tail => ("FOLLOW on ".to_owned(), Meaning::Passed),
        FollowMode::Still(seen) if total > seen => {
            let new = total - seen;
            let words = if cells >= 100 {
                format!("FOLLOW off (F)  +{new} new below, G: newest ")
            } else {
                format!("FOLLOW off  +{new} new below ")
            };
            (words, Meaning::Waiting)
        }
        FollowMode::Still(_) if opened.session.ended => (String::new(), Meaning::Dim),
        FollowMode::Still(_) => ("FOLLOW off (F) ".to_owned(), Meaning::Dim),
    }
}

fn percent(part: u64, full_event: u64) -> String {
    format!("{} %", part.saturating_mul(100) / full_event.max(1))
}

/// Returns the first visible row, so that `place` is in the middle if there are enough rows.
fn centred_top(place: usize, count: usize, visible: usize) -> usize {
    place
        .saturating_sub(visible / 2)
        .min(count.saturating_sub(visible))
}

/// Styles the selected row of a list.
fn style_selected_row(
    line: Line<'static>,
    focus: Focus,
    pane: Focus,
    appearance: Appearance,
) -> Line<'static> {
    match (focus, pane) {
        (Focus::Here, Focus::Here) => highlighted(line, appearance),
        (Focus::Here, Focus::Elsewhere) => line.style(appearance.style(Meaning::SelectedIdle)),
        (Focus::Elsewhere, _) => line,
    }
}

/// Joins texts with a separator.
fn join_parts(parts: &[String], appearance: Appearance) -> String {
    parts.join(&format!(" {} ", appearance.mark(Mark::Bullet)))
}

/// Returns true if a check is running.
fn is_verifying(trace: &TraceScreen) -> bool {
    verifying(trace).is_some()
}

/// Returns the progress of the running check.
fn verifying(trace: &TraceScreen) -> Option<&VerificationProgress> {
    match &trace.verifying {
        VerificationState::Running(progress) => Some(progress),
        VerificationState::Idle => None,
    }
}
