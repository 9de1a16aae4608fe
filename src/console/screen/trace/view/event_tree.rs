//! Painting of the events of a session: a tree in record order, next to a time bar.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::open_session::OpenSession;
use super::super::reads::EventRow;
use super::super::{TracePane, TraceScreen};
use super::time::{TimeAxis, duration_text};
use super::{style_selected_row, verdict};
use crate::base::text::one_line;
use crate::console::names::event_words;
use crate::console::text_cells::{clip, counted, fit, width, wrap};
use crate::console::theme::{Appearance, Focus, Glyphs, Mark, Meaning};
use crate::trace::outline::{EventMarks, OutlineEntry};
use crate::trace::summary::Tone;

/// Width of the duration column in cells. `FLAGS` is the width of the most important mark.
const DUR: usize = 7;
const FLAGS: usize = 7;

/// Widths of the columns.
#[derive(Clone, Copy)]
struct EventColumns {
    seq: usize,
    kind: usize,
    line: usize,
}

impl EventColumns {
    fn of(cells: usize, total: u64) -> Self {
        let seq = total.saturating_sub(1).to_string().len().max(4);
        // The cursor mark, the letter, the proof, and the gaps between columns.
        let rest = cells.saturating_sub(2 + seq + 3 + 1 + DUR + 1 + 1 + FLAGS);
        let line = (rest * 3 / 10).clamp(8, 40);
        Self {
            seq,
            kind: rest.saturating_sub(line),
            line,
        }
    }
}

pub(super) fn draw(
    trace: &TraceScreen,
    opened: &OpenSession,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let pane = Focus::from(trace.pane == TracePane::Spans);
    let block = appearance
        .panel(pane)
        .title(title(opened, area, appearance));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let cells = usize::from(inner.width);
    let columns = EventColumns::of(cells, opened.total());
    let rows = opened.rows();
    let visible = u64::from(inner.height.saturating_sub(1));
    let shown = opened.top..opened.top.saturating_add(visible);
    let shown: Vec<u64> = shown.map_while(|row| rows.get(row)).collect();
    if shown.is_empty() {
        frame.render_widget(
            Paragraph::new(empty_lines(opened, cells, appearance)),
            inner,
        );
        return;
    }
    let axis = axis(opened, &shown, columns.line);
    let mut lines = vec![heading(opened, columns, axis, appearance)];
    for (at, sequence) in shown.iter().enumerate() {
        let next = shown.get(at + 1).copied();
        let item = EventItem {
            trace,
            opened,
            sequence: *sequence,
            next: next.or_else(|| rows.get(opened.top + at as u64 + 1)),
        };
        let line = item.line(columns, axis, appearance);
        let focus = Focus::from(*sequence == opened.place);
        lines.push(style_selected_row(line, focus, pane, appearance));
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

fn title(opened: &OpenSession, area: Rect, appearance: Appearance) -> Line<'static> {
    let session = &opened.session;
    let count = counted(
        usize::try_from(session.events).unwrap_or(usize::MAX),
        "event",
    );
    let state = if session.ended { "ended" } else { "live" };
    let mut parts = vec![
        one_line(&session.agent),
        session.session.to_string(),
        count,
        state.to_owned(),
    ];
    if let Some(level) = opened.outline.fold_level() {
        parts.push(format!("folded to level {level}"));
    }
    let words = super::join_parts(&parts, appearance);
    let room = usize::from(area.width).saturating_sub(12);
    Line::from(vec![
        Span::styled(" Spans ", appearance.style(Meaning::Title)),
        Span::styled(
            format!("{} ", clip(&words, room, appearance)),
            appearance.style(Meaning::Dim),
        ),
    ])
}

/// Returns the lines shown if there are no rows.
fn empty_lines(opened: &OpenSession, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let total = opened.total();
    let words = match &opened.filter {
        Some(scan) if scan.is_running(total) => "searching...".to_owned(),
        Some(scan) => {
            let text = clip(&one_line(&scan.text), cells / 2, appearance);
            format!("0 of {total} match `{text}`. Esc to clear.")
        }
        None => "This session has no events.".to_owned(),
    };
    let rows = wrap(&words, cells).into_iter();
    rows.map(|row| Line::styled(row, appearance.style(Meaning::Dim)))
        .collect()
}

/// Returns the time axis of the visible rows: from the earliest to the latest start.
fn axis(opened: &OpenSession, shown: &[u64], cells: usize) -> TimeAxis {
    let times = shown.iter().filter_map(|at| opened.outline.get(*at));
    let times = || times.clone().map(|entry| entry.time_us);
    TimeAxis {
        start_us: times().min().unwrap_or(0),
        end_us: times().max().unwrap_or(0),
        cells,
    }
}

fn heading(
    opened: &OpenSession,
    columns: EventColumns,
    axis: TimeAxis,
    appearance: Appearance,
) -> Line<'static> {
    let begin = opened.outline.get(0).map_or(0, |entry| entry.time_us);
    let since = |at: i64| duration_text(at.saturating_sub(begin).max(0));
    // The left end is the start of the visible rows. The right end shows the length of the axis.
    let reach = duration_text(axis.end_us.saturating_sub(axis.start_us));
    let (left, right) = if opened.outline.is_empty() {
        (String::new(), String::new())
    } else if axis.start_us == begin {
        ("0s".to_owned(), reach)
    } else {
        (since(axis.start_us), format!("+{reach}"))
    };
    let gap = axis.cells.saturating_sub(width(&left) + width(&right));
    let scale = match gap {
        0 => left,
        gap => format!("{left}{}{right}", " ".repeat(gap)),
    };
    let text = format!(
        "  {:>seq$}   {} {:>DUR$} {} FLAGS",
        "SEQ",
        fit("TYPE", columns.kind, appearance),
        "DUR",
        fit(&scale, columns.line, appearance),
        seq = columns.seq,
    );
    Line::styled(text, appearance.style(Meaning::Dim))
}

/// One row of the event list.
struct EventItem<'t> {
    trace: &'t TraceScreen,
    opened: &'t OpenSession,
    sequence: u64,
    /// Event of the row below.
    next: Option<u64>,
}

impl EventItem<'_> {
    fn line(&self, columns: EventColumns, axis: TimeAxis, appearance: Appearance) -> Line<'static> {
        let entry = self.opened.outline.get(self.sequence);
        let row = self.opened.pages.get(self.sequence);
        let marks = entry.map(OutlineEntry::marks).or(row.map(|row| row.marks));
        let marks = marks.unwrap_or_default();
        let meaning = meaning(marks);
        let mut spans = self.leading_spans(columns, appearance);
        spans.extend(self.description_spans(entry, row, marks, columns.kind, appearance));
        let lasts = entry.filter(|_| marks.has_any(EventMarks::PARENT));
        let lasts = lasts.map(|entry| self.opened.outline.duration_us(entry));
        let dur = lasts.map_or_else(|| "-".to_owned(), duration_text);
        spans.push(Span::styled(
            format!(" {dur:>DUR$} "),
            appearance.style(Meaning::Dim),
        ));
        let bar = entry.map_or_else(
            || " ".repeat(columns.line),
            |entry| axis.bar(entry.time_us, lasts.unwrap_or(0), marks, appearance),
        );
        let colour = if meaning == Meaning::Text {
            Meaning::Label
        } else {
            meaning
        };
        spans.push(Span::styled(bar, appearance.style(colour)));
        let word = format!(" {:<FLAGS$}", marks.label());
        spans.push(Span::styled(word, appearance.style(meaning)));
        Line::from(spans)
    }

    /// Returns the cursor mark, the bookmark letter, the sequence number and the proof mark.
    fn leading_spans(&self, columns: EventColumns, appearance: Appearance) -> Vec<Span<'static>> {
        let mark = if self.sequence == self.opened.place {
            ">"
        } else {
            " "
        };
        let here = (self.opened.id(), self.sequence);
        let mut letters = self.trace.bookmarks.iter();
        let letter = letters.find(|(_, (session, at))| (session, *at) == here);
        let letter = letter.map_or(' ', |(letter, _)| *letter);
        let hit = self.opened.search.as_ref();
        let hit = hit.is_some_and(|scan| scan.has(self.sequence));
        let number = format!("{:>width$}", self.sequence, width = columns.seq);
        let colour = if hit { Meaning::Key } else { Meaning::Dim };
        let (proof, proven) = verdict::of_event(self.trace, self.opened.id(), self.sequence);
        vec![
            Span::raw(mark),
            Span::styled(letter.to_string(), appearance.style(Meaning::Key)),
            Span::styled(number, appearance.style(colour)),
            Span::styled(format!(" {proof} "), appearance.style(proven)),
        ]
    }

    /// Returns the description of the event, indented by its depth.
    fn description_spans(
        &self,
        entry: Option<&OutlineEntry>,
        row: Option<&EventRow>,
        marks: EventMarks,
        cells: usize,
        appearance: Appearance,
    ) -> Vec<Span<'static>> {
        let depth = entry.map_or(0, |entry| usize::from(entry.depth));
        let fold = match (
            marks.has_any(EventMarks::PARENT),
            marks.has_any(EventMarks::FOLDED),
            appearance.glyphs,
        ) {
            (false, _, _) => "  ",
            (true, false, Glyphs::Rounded) => "▾ ",
            (true, false, Glyphs::Ascii) => "v ",
            (true, true, Glyphs::Rounded) => "▸ ",
            (true, true, Glyphs::Ascii) => "> ",
        };
        let indent = (depth * 2).min(cells / 3);
        let front = format!("{}{fold}", " ".repeat(indent));
        let known = entry.and_then(|entry| self.opened.outline.kind(entry));
        let name = match (row, known) {
            (Some(row), _) => row.name.clone(),
            (None, _)
                if marks.has_any(EventMarks::MISSING)
                    || self.opened.pages.is_read(self.sequence) =>
            {
                "MISSING from the record".to_owned()
            }
            (None, Some(known)) => one_line(&event_words(known)),
            (None, None) => format!("reading{}", appearance.mark(Mark::Ellipsis)),
        };
        let below = self.next.unwrap_or(self.opened.outline.len());
        let folded = below.saturating_sub(self.sequence + 1);
        let more =
            if marks.has_any(EventMarks::FOLDED) && self.opened.filter.is_none() && folded > 0 {
                format!(" +{folded}")
            } else {
                String::new()
            };
        let about = row.map_or("", |row| row.about.as_str());
        let room = cells.saturating_sub(width(&front) + width(&more));
        let name = clip(&name, room, appearance);
        let about = format!(" {about}");
        let about = fit(&about, room.saturating_sub(width(&name)), appearance);
        let tone = row.map_or(Tone::Plain, |row| row.tone);
        vec![
            Span::styled(front, appearance.style(Meaning::Dim)),
            Span::styled(name, appearance.style(tone_meaning(tone, marks))),
            Span::styled(about, appearance.style(Meaning::Text)),
            Span::styled(more, appearance.style(Meaning::Key)),
        ]
    }
}

fn tone_meaning(tone: Tone, marks: EventMarks) -> Meaning {
    if marks.has_any(EventMarks::MISSING) {
        return Meaning::Error;
    }
    match tone {
        Tone::Plain => Meaning::Strong,
        Tone::Good => Meaning::Passed,
        Tone::Care => Meaning::Waiting,
        Tone::Stop => Meaning::Denied,
    }
}

/// Returns the style of an event's most important mark.
pub(super) fn meaning(marks: EventMarks) -> Meaning {
    if marks.has_any(EventMarks::MISSING | EventMarks::DENY | EventMarks::ERROR) {
        Meaning::Denied
    } else if marks.has_any(EventMarks::LAPSED) {
        Meaning::Lapsed
    } else if marks.has_any(EventMarks::WAIT | EventMarks::RETRY) {
        Meaning::Waiting
    } else if marks.has_any(EventMarks::SIGNED) {
        Meaning::Passed
    } else if marks.has_any(EventMarks::CRITICAL) {
        Meaning::Critical
    } else if marks.has_any(EventMarks::HIGH) {
        Meaning::High
    } else {
        Meaning::Text
    }
}
