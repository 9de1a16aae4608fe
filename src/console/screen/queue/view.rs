//! Painting of the queue.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use self::table::QueueColumns;
use super::prompt::{QueuePrompt, QueuePromptPurpose};
use super::{QueueScreen, recent_decisions, request_summary, risk_text};
use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::console::text_cells::{clip, coordinate, counted, width};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;

mod table;

pub(super) use self::table::column;
pub(crate) use self::table::highlighted;

/// Maximum number of arrivals listed by id. For more, only the count is shown.
const MAX_NAMED_ARRIVALS: usize = 12;

/// Maximum number of critical arrivals listed by id.
const MAX_NAMED_CRITICAL: usize = 3;

struct QueueAreas {
    list: Rect,
    about: Rect,
    past: Rect,
    tall: bool,
}

fn split_area(queue: &QueueScreen, area: Rect) -> QueueAreas {
    let tall = area.height >= 30 && area.width >= 100;
    let (about, past) = match (tall, area.width >= 80) {
        (true, _) => (11, 6),
        (false, true) => (9, 1),
        (false, false) => (0, 1),
    };
    let about = if queue.selected.is_some() { about } else { 0 };
    let [list, about, past] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(about),
        Constraint::Length(past),
    ])
    .areas(area);
    QueueAreas {
        list,
        about,
        past,
        tall,
    }
}

/// Splits the list area into the column heads, the rows and the notes.
fn split_list(queue: &QueueScreen, list: Rect) -> [Rect; 3] {
    let inner = Appearance::default().panel(Focus::Here).inner(list);
    let notes = u16::from(queue.has_waiting())
        + u16::from(queue.hidden_critical > 0)
        + u16::from(queue.prompt.is_some());
    let notes = if notes == 0 { 0 } else { notes + 1 };
    Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(notes),
    ])
    .areas(inner)
}

/// Element of the queue at a screen position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueTarget {
    /// Row of the list, by index.
    Row(usize),
    /// List area, with the number of rows that fit.
    Rows(usize),
}

/// Returns the element at a screen position of a queue that is painted in `area`.
pub(crate) fn place_of(
    queue: &QueueScreen,
    area: Rect,
    at: Option<Position>,
) -> Option<QueueTarget> {
    let [_, rows, _] = split_list(queue, split_area(queue, area).list);
    let height = usize::from(rows.height).max(1);
    let Some(at) = at else {
        return Some(QueueTarget::Rows(height));
    };
    let line = usize::from(at.y.checked_sub(rows.y)?);
    let row = queue.top_for(height) + line;
    (rows.contains(at) && row < queue.rows.len()).then_some(QueueTarget::Row(row))
}

/// Paints the queue.
pub(crate) fn draw(
    queue: &QueueScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) {
    let parts = split_area(queue, area);
    draw_list(queue, snapshot, frame, parts.list, appearance, now);
    if parts.about.height > 0 {
        request_summary::draw(queue, snapshot, frame, parts.about, appearance, now);
    }
    if parts.tall {
        recent_decisions::draw(snapshot, frame, parts.past, appearance, now);
    } else if let Some(last) = recent_decisions::recent_decisions(snapshot, now).next() {
        let mut line = recent_decisions::line(
            last,
            usize::from(parts.past.width).saturating_sub(2),
            appearance,
        );
        line.spans.insert(0, Span::raw("  "));
        frame.render_widget(line, parts.past);
    }
}

fn draw_list(
    queue: &QueueScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) {
    let cells = usize::from(area.width).saturating_sub(4);
    let mut block = appearance
        .panel(Focus::Here)
        .title(title(queue, cells, appearance));
    if !queue.marked.is_empty() {
        let marked = format!(" {} marked, B to open ", queue.marked.len());
        let marked = Line::styled(marked, appearance.style(Meaning::Waiting));
        block = block.title_bottom(marked.right_aligned());
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [head, rows, notes] = split_list(queue, area);
    if queue.rows.is_empty() {
        let body = Rect {
            height: head.height + rows.height,
            ..head
        };
        draw_empty(queue, snapshot, frame, body, appearance);
    } else {
        let columns = QueueColumns::of(usize::from(inner.width));
        frame.render_widget(columns.heading(appearance), head);
        let visible = usize::from(rows.height).max(1);
        let shown = queue.rows.iter().skip(queue.top_for(visible)).take(visible);
        let lines: Vec<Line> = shown
            .map(|held| columns.row((queue, snapshot), held, appearance, now))
            .collect();
        frame.render_widget(Paragraph::new(lines), rows);
    }
    let mut lines = vec![Line::default()];
    let cells = usize::from(notes.width);
    if queue.has_waiting() {
        lines.push(waiting_line(queue, cells, appearance));
    }
    if queue.hidden_critical > 0 {
        let hidden = counted(queue.hidden_critical, "request");
        let text = format!("CRITICAL: {hidden} hidden by the filter: Esc to clear");
        lines.push(Line::styled(
            clip(&text, cells, appearance),
            appearance.style(Meaning::Banner),
        ));
    }
    if let Some(prompt) = &queue.prompt {
        lines.push(prompt_line(queue, prompt, cells, appearance));
    }
    frame.render_widget(Paragraph::new(lines), notes);
}

fn title(queue: &QueueScreen, cells: usize, appearance: Appearance) -> Line<'static> {
    let bullet = appearance.mark(Mark::Bullet);
    let mut text = format!("{bullet} sort: {} ", queue.sort.words());
    let mut narrowed = String::new();
    if !queue.filter.is_empty() {
        let count = format!("{} of {}", queue.rows.len(), queue.index.len());
        narrowed = format!("{bullet} filter: {} ({count}) ", queue.filter.text());
    }
    if !queue.search.is_empty() {
        text = format!("{text}{bullet} n/N: {} ", queue.search.text());
    }
    let name = " Held requests ";
    let room = cells.saturating_sub(width(name) + width(&text));
    Line::from(vec![
        Span::styled(name, appearance.style(Meaning::Title)),
        Span::styled(
            clip(&text, cells, appearance),
            appearance.style(Meaning::Dim),
        ),
        Span::styled(
            clip(&narrowed, room, appearance),
            appearance.style(Meaning::Warning),
        ),
    ])
}

fn draw_empty(
    queue: &QueueScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let lines = if queue.hidden.is_empty() {
        empty_queue_lines(snapshot, appearance)
    } else {
        let text = format!(
            "0 of {} match `{}`. Esc to clear.",
            queue.index.len(),
            queue.filter.text()
        );
        vec![Line::styled(text, appearance.style(Meaning::Strong))]
    };
    let rows = coordinate(lines.len());
    let top = area.height.saturating_sub(rows) / 2;
    let [_, middle] = Layout::vertical([Constraint::Length(top), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Paragraph::new(lines).centered(), middle);
}

fn empty_queue_lines(snapshot: &RuntimeSnapshot, appearance: Appearance) -> Vec<Line<'static>> {
    let last = match snapshot.decided.first() {
        Some(decided) => {
            let time: String = decided.at.time_of_day().chars().take(5).collect();
            format!("Last decision {time} ({}). ", decided.gate)
        }
        None => String::new(),
    };
    let watching = counted(snapshot.sessions.len(), "agent");
    vec![
        Line::styled("No requests are held.", appearance.style(Meaning::Strong)),
        Line::from(format!("{last}Watching {watching}.")),
        Line::default(),
        Line::from(vec![
            Span::styled("Try: ", appearance.style(Meaning::Dim)),
            Span::styled("cra demo", appearance.style(Meaning::Key)),
        ]),
    ]
}

fn waiting_line(queue: &QueueScreen, cells: usize, appearance: Appearance) -> Line<'static> {
    let waiting = &queue.waiting;
    let is_critical = |held: &&Arc<Held>| held.tier() == RiskTier::Critical;
    let loud = waiting.iter().filter(is_critical).take(MAX_NAMED_CRITICAL);
    let loud: Vec<&str> = loud.map(|held| held.id.as_str()).collect();
    if !loud.is_empty() {
        // The total number must not read as the number of critical arrivals.
        let more = match waiting.len().saturating_sub(loud.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!("CRITICAL {}{more} not shown: press u", loud.join(", "));
        return Line::styled(
            clip(&text, cells, appearance),
            appearance.style(Meaning::Banner),
        );
    }
    let names: Vec<String> = waiting
        .iter()
        .take(MAX_NAMED_ARRIVALS)
        .map(|held| format!("{} {}", held.id, risk_text(held)))
        .collect();
    let text = format!(
        "{}: press u to show {} {}",
        counted(waiting.len(), "new request"),
        appearance.mark(Mark::Bullet),
        names.join(", ")
    );
    Line::styled(
        clip(&text, cells, appearance),
        appearance.style(Meaning::Waiting),
    )
}

fn prompt_line(
    queue: &QueueScreen,
    prompt: &QueuePrompt,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let name = match prompt.purpose {
        QueuePromptPurpose::Filter => "filter> ",
        QueuePromptPurpose::Search => "search> ",
    };
    let (note, meaning) = match &prompt.problem {
        Some(problem) => (problem.to_string(), Meaning::Error),
        None => match prompt.purpose {
            QueuePromptPurpose::Filter => (
                format!("{} of {} match", queue.rows.len(), queue.index.len()),
                Meaning::Dim,
            ),
            QueuePromptPurpose::Search => ("Enter, then n and N".to_owned(), Meaning::Dim),
        },
    };
    let note = clip(&note, cells / 2, appearance);
    let room = cells.saturating_sub(width(name) + width(&note) + 3);
    let typed = prompt.line.text();
    // A long line shows its end: the cursor is there.
    let skip = width(typed).saturating_sub(room);
    let typed: String = typed.chars().skip(skip).collect();
    let gap = room.saturating_sub(width(&typed)) + 1;
    Line::from(vec![
        Span::styled(name, appearance.style(Meaning::Key)),
        Span::styled(typed, appearance.style(Meaning::Strong)),
        Span::styled(" ", appearance.style(Meaning::Selected)),
        Span::raw(" ".repeat(gap)),
        Span::styled(note, appearance.style(meaning)),
    ])
}
