//! Painting of the list of sessions.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::{SessionListState, TracePane, TraceScreen};
use super::time::duration_text;
use super::{centred_top, style_selected_row, verdict, verifying};
use crate::base::text::one_line;
use crate::console::text_cells::{clip, coordinate, fit, width, wrap};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::runtime::RecordedSession;

/// Minimum width in cells at which start time and duration are shown.
const WITH_TIME: usize = 96;
const EVENTS: usize = 10;
const STATE: usize = 6;
const VERDICT: usize = 15;

/// Splits the area into the list and the lines below it.
fn split_area(inner: Rect, below: usize) -> [Rect; 2] {
    let parts = [Constraint::Fill(1), Constraint::Length(coordinate(below))];
    Layout::vertical(parts).areas(inner)
}

/// Returns the area of the list rows, below a bar of `bar` rows.
pub(super) fn list(trace: &TraceScreen, area: Rect, bar: u16) -> Rect {
    let appearance = Appearance::default();
    let rest = Rect::new(
        area.x,
        area.y + bar,
        area.width,
        area.height.saturating_sub(bar),
    );
    let inner = appearance.panel(Focus::Here).inner(rest);
    let below = log_lines(trace, usize::from(inner.width), appearance).len();
    let [list, _] = split_area(inner, below);
    Rect::new(
        list.x,
        list.y + 1,
        list.width,
        list.height.saturating_sub(1),
    )
}

pub(super) fn draw(trace: &TraceScreen, frame: &mut Frame, area: Rect, appearance: Appearance) {
    let focus = Focus::from(trace.pane == TracePane::Sessions);
    let title = Line::styled(" Sessions ", appearance.style(Meaning::Title));
    // If the record could not be read, the number of sessions is unknown, not zero.
    let count = match trace.problem {
        Some(_) if trace.sessions.is_empty() => String::new(),
        Some(_) | None => format!(" {} ", trace.sessions.len()),
    };
    let count = Line::styled(count, appearance.style(Meaning::Dim));
    let block = appearance
        .panel(focus)
        .title(title)
        .title(count.right_aligned());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let cells = usize::from(inner.width);
    if trace.sessions.is_empty() {
        frame.render_widget(Paragraph::new(empty(trace, cells, appearance)), inner);
        return;
    }
    let below = log_lines(trace, cells, appearance);
    let [list, bottom] = split_area(inner, below.len());
    frame.render_widget(Paragraph::new(below), bottom);
    let columns = SessionColumns::of(cells);
    let mut lines = vec![columns.heading(appearance)];
    let visible = usize::from(list.height.saturating_sub(1));
    let place = trace.selected_index();
    let top = centred_top(place, trace.sessions.len(), visible);
    for (at, session) in trace.sessions.iter().enumerate().skip(top).take(visible) {
        let row_focus = Focus::from(at == place);
        lines.push(style_selected_row(
            columns.row(trace, session, row_focus, appearance),
            row_focus,
            focus,
            appearance,
        ));
    }
    frame.render_widget(Paragraph::new(lines), list);
}

fn empty(trace: &TraceScreen, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let (text, meaning) = match (&trace.problem, trace.list_state) {
        (Some(problem), _) => (
            format!("! {}. Press r to retry.", one_line(problem)),
            Meaning::Error,
        ),
        (None, SessionListState::Here) => (
            "No records yet. cra records every session, request and decision of an agent. \
             Try: cra demo"
                .to_owned(),
            Meaning::Dim,
        ),
        (None, SessionListState::Never | SessionListState::Asked | SessionListState::Outdated) => {
            ("reading the record...".to_owned(), Meaning::Dim)
        }
    };
    let rows = wrap(&text, cells).into_iter();
    rows.map(|row| Line::styled(row, appearance.style(meaning)))
        .collect()
}

/// Returns the verification result of the log over all sessions, and the read error.
fn log_lines(trace: &TraceScreen, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let (words, meaning) = match (&trace.problem, verifying(trace), &trace.log) {
        (Some(problem), ..) => (format!("! {}", one_line(problem)), Meaning::Error),
        (None, Some(progress), _) => (
            format!("{}. Esc to stop.", verdict::progress_text(progress)),
            Meaning::Waiting,
        ),
        (None, None, Some(log)) => {
            let meaning = if log.verdict.is_sound() {
                Meaning::Passed
            } else {
                Meaning::Denied
            };
            let key = log
                .key
                .as_ref()
                .map_or_else(String::new, |_| ", signed".to_owned());
            (
                format!(
                    "log over all sessions{key}: {}",
                    one_line(&log.verdict.to_string())
                ),
                meaning,
            )
        }
        (None, None, None) => ("v: verify every chain".to_owned(), Meaning::Dim),
    };
    let words = crate::console::text_cells::wrap_within(&words, cells, 3, appearance).into_iter();
    let mut lines = vec![Line::default()];
    lines.extend(words.map(|row| Line::styled(row, appearance.style(meaning))));
    lines
}

/// Widths of the columns. A time column of zero width is not shown.
struct SessionColumns {
    agent: usize,
    session: usize,
    times: Option<()>,
}

impl SessionColumns {
    fn of(cells: usize) -> Self {
        let times = (cells >= WITH_TIME).then_some(());
        let fixed = 2 + EVENTS + STATE + VERDICT + 4 + times.map_or(0, |()| 20 + 8);
        let rest = cells.saturating_sub(fixed);
        let session = (rest * 3 / 5).min(36);
        Self {
            agent: rest.saturating_sub(session),
            session,
            times,
        }
    }

    fn heading(&self, appearance: Appearance) -> Line<'static> {
        let times = self.times.map_or_else(String::new, |()| {
            format!("{:<20}{:>7} ", "STARTED", "LASTED")
        });
        let text = format!(
            "  {} {} {times}{:>EVENTS$} {:<STATE$} {:<VERDICT$}",
            fit("AGENT", self.agent, appearance),
            fit("SESSION", self.session, appearance),
            "EVENTS",
            "STATE",
            "VERDICT"
        );
        Line::styled(text, appearance.style(Meaning::Dim))
    }

    fn row(
        &self,
        trace: &TraceScreen,
        session: &RecordedSession,
        focus: Focus,
        appearance: Appearance,
    ) -> Line<'static> {
        let mark = match focus {
            Focus::Here => "> ",
            Focus::Elsewhere => "  ",
        };
        let (state, meaning) = if session.ended {
            ("ended", Meaning::Dim)
        } else {
            ("live", Meaning::Waiting)
        };
        let (verdict, proven) = verdict::short_verdict(trace, &session.session);
        let times = self.times.map_or_else(String::new, |()| {
            let started = session.started_at.to_string().replace('T', " ");
            let started: String = started.chars().take(19).collect();
            let lasted = session.last_at.micros() - session.started_at.micros();
            format!("{started} {:>7} ", duration_text(lasted))
        });
        Line::from(vec![
            Span::raw(mark),
            Span::styled(
                format!(
                    "{} ",
                    fit(&one_line(&session.agent), self.agent, appearance)
                ),
                appearance.style(Meaning::Strong),
            ),
            Span::raw(format!(
                "{} ",
                fit_name_end(session.session.as_str(), self.session, appearance)
            )),
            Span::styled(times, appearance.style(Meaning::Dim)),
            Span::raw(format!("{:>EVENTS$} ", session.events)),
            Span::styled(format!("{state:<STATE$} "), appearance.style(meaning)),
            Span::styled(
                fit(&clip(&verdict, VERDICT, appearance), VERDICT, appearance),
                appearance.style(proven),
            ),
        ])
    }
}

/// Fits a name into its column. A long name shows its end, because its beginning is a time.
fn fit_name_end(name: &str, cells: usize, appearance: Appearance) -> String {
    if width(name) <= cells {
        return fit(name, cells, appearance);
    }
    let keep = cells.saturating_sub(1);
    let skip = name.chars().count().saturating_sub(keep);
    let end: String = name.chars().skip(skip).collect();
    format!("{}{end}", appearance.mark(Mark::Ellipsis))
}
