//! How the record looks.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use serde_json::Value;

use super::{Pane, Trace, Verifying};
use crate::base::text::{Lines, one_line, visible};
use crate::console::cells::{break_exactly, clip, coordinate, counted, fit, width, wrap_within};
use crate::console::json;
use crate::console::screen::queue::highlighted;
use crate::console::theme::{Focus, Look, Mark, Meaning};
use crate::trace::event::Event;
use crate::trace::verify::Verdict;

/// From this width on the events show their time; the event itself always does.
const WITH_TIME: usize = 60;
/// Most rows of a verdict.
const VERDICT_ROWS: usize = 4;

struct Areas {
    sessions: Rect,
    events: Rect,
    detail: Rect,
}

fn areas(area: Rect, pane: Pane) -> Areas {
    if area.width < 80 {
        let shown = |wanted| if pane == wanted { area } else { Rect::ZERO };
        return Areas {
            sessions: shown(Pane::Sessions),
            events: shown(Pane::Events),
            detail: shown(Pane::Detail),
        };
    }
    let left = if area.width >= 100 { 42 } else { 28 };
    let [sessions, right] =
        Layout::horizontal([Constraint::Length(left), Constraint::Fill(1)]).areas(area);
    let [events, detail] =
        Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(right);
    Areas {
        sessions,
        events,
        detail,
    }
}

/// Paints the record.
pub(crate) fn draw(trace: &Trace, frame: &mut Frame, area: Rect, look: Look) {
    let areas = areas(area, trace.pane);
    if !areas.sessions.is_empty() {
        draw_sessions(trace, frame, areas.sessions, look);
    }
    if !areas.events.is_empty() {
        draw_events(trace, frame, areas.events, look);
    }
    if !areas.detail.is_empty() {
        draw_detail(trace, frame, areas.detail, look);
    }
}

fn draw_sessions(trace: &Trace, frame: &mut Frame, area: Rect, look: Look) {
    let focus = Focus::from(trace.pane == Pane::Sessions);
    let title = Line::styled(" Sessions ", look.style(Meaning::Title));
    let count = format!(" {} ", trace.sessions.len());
    let block = look
        .panel(focus)
        .title(title)
        .title(Line::styled(count, look.style(Meaning::Dim)).right_aligned());
    let inner = block.inner(area);
    let cells = usize::from(inner.width);
    let visible = usize::from(inner.height);
    let place = trace.session_place();
    let mut lines = Vec::new();
    if trace.sessions.is_empty() {
        lines = empty(trace, cells, look);
    }
    let top = centred(place, trace.sessions.len(), visible);
    for (at, session) in trace.sessions.iter().enumerate().skip(top).take(visible) {
        let chosen = at == place;
        let mark = if chosen { "> " } else { "  " };
        let events = session.events.to_string();
        let (state, meaning) = match (session.ended, trace.checked.get(&session.session)) {
            (_, Some(verdict)) if !verdict.verdict.is_sound() => ("BROKEN", Meaning::Denied),
            (false, _) => ("live", Meaning::Waiting),
            (true, _) => ("ended", Meaning::Dim),
        };
        let name = format!("{} {}", one_line(&session.agent), session.session);
        // Where there is no room for both, being broken is the news, and else the count.
        let mut spans = vec![Span::raw(mark)];
        let state = Span::styled(format!("{state:>7}"), look.style(meaning));
        let count = Span::raw(format!("{events:>7}"));
        if cells >= 32 {
            spans.push(Span::raw(fit(&name, cells.saturating_sub(2 + 14), look)));
            spans.extend([count, state]);
        } else {
            spans.push(Span::raw(fit(&name, cells.saturating_sub(2 + 7), look)));
            spans.push(if meaning == Meaning::Denied {
                state
            } else {
                count
            });
        }
        let line = Line::from(spans);
        lines.push(match (chosen, focus) {
            (true, Focus::Here) => highlighted(line, look),
            (true, Focus::Elsewhere) => line.style(look.style(Meaning::SelectedIdle)),
            (false, _) => line,
        });
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn empty(trace: &Trace, cells: usize, look: Look) -> Vec<Line<'static>> {
    let text = match (&trace.problem, trace.listing) {
        (Some(problem), _) => format!("! {}", one_line(problem)),
        (None, super::Listing::Here) => {
            "No records yet. They come from agents: every session, request and decision is one. \
             Try: cra demo"
                .to_owned()
        }
        (None, _) => "reading the record...".to_owned(),
    };
    let rows = crate::console::cells::wrap(&text, cells).into_iter();
    rows.map(|row| Line::styled(row, look.style(Meaning::Dim)))
        .collect()
}

fn draw_events(trace: &Trace, frame: &mut Frame, area: Rect, look: Look) {
    let focus = Focus::from(trace.pane == Pane::Events);
    let mut title = vec![Span::styled(" Events ", look.style(Meaning::Title))];
    if let Some(session) = trace.session() {
        let words = counted(
            usize::try_from(session.events).unwrap_or(usize::MAX),
            "event",
        );
        let words = format!("{} {} {words} ", session.session, look.mark(Mark::Bullet));
        title.push(Span::styled(words, look.style(Meaning::Dim)));
    }
    let block = look.panel(focus).title(Line::from(title));
    let inner = draw_verdict(trace, block, frame, area, look);
    let cells = usize::from(inner.width);
    let time = if cells >= WITH_TIME { "TIME      " } else { "" };
    let head = format!("  {:>5}  {time}{}  SUMMARY", "SEQ", fit("TYPE", 20, look));
    let mut lines = vec![Line::styled(
        clip(&head, cells, look),
        look.style(Meaning::Dim),
    )];
    let rows = u64::from(inner.height.saturating_sub(1));
    let total = trace.total();
    let top = trace
        .place
        .saturating_sub(rows / 2)
        .min(total.saturating_sub(rows));
    for sequence in top..total.min(top + rows) {
        let chosen = sequence == trace.place;
        let line = match trace.pages.get(sequence) {
            Some(event) => event_line(event, Focus::from(chosen), cells, look),
            None => missing_line(trace, sequence, look),
        };
        lines.push(match (chosen, focus) {
            (true, Focus::Here) => highlighted(line, look),
            (true, Focus::Elsewhere) => line.style(look.style(Meaning::SelectedIdle)),
            (false, _) => line,
        });
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Paints a panel with what is proven of its events, and tells how much of it is left for them.
fn draw_verdict(trace: &Trace, block: Block, frame: &mut Frame, area: Rect, look: Look) -> Rect {
    let (verdict, meaning) = verdict(trace);
    let style = look.style(meaning);
    let inner = block.inner(area);
    let cells = usize::from(inner.width);
    if width(&verdict) + 2 <= cells {
        let verdict = Line::styled(format!(" {verdict} "), style);
        frame.render_widget(block.title_bottom(verdict), area);
        return inner;
    }
    // What does not fit into the border stands above it: the end of a verdict is often the news.
    frame.render_widget(block, area);
    let rows = wrap_within(&verdict, cells, VERDICT_ROWS, look).into_iter();
    let rows: Vec<Line> = rows.map(|row| Line::styled(row, style)).collect();
    let below = Constraint::Length(coordinate(rows.len()));
    let [events, below] = Layout::vertical([Constraint::Fill(1), below]).areas(inner);
    frame.render_widget(Paragraph::new(rows), below);
    events
}

fn event_line(event: &Event, chosen: Focus, cells: usize, look: Look) -> Line<'static> {
    let mark = match chosen {
        Focus::Here => ">",
        Focus::Elsewhere => " ",
    };
    let time = if cells >= WITH_TIME {
        format!("{}  ", event.timestamp.time_of_day())
    } else {
        String::new()
    };
    let rest = cells.saturating_sub(2 + 5 + 2 + time.len() + 20 + 2);
    Line::from(vec![
        Span::raw(format!("{mark} {:>5}  ", event.sequence)),
        Span::styled(time, look.style(Meaning::Dim)),
        Span::styled(
            format!("{}  ", fit(&one_line(&event.event_type), 20, look)),
            look.style(type_meaning(&event.event_type)),
        ),
        Span::raw(fit(&summary(event), rest, look)),
    ])
}

fn missing_line(trace: &Trace, sequence: u64, look: Look) -> Line<'static> {
    let (words, meaning) = if trace.pages.is_read(sequence) {
        ("MISSING from the record", Meaning::Error)
    } else {
        ("reading...", Meaning::Dim)
    };
    Line::styled(format!("  {sequence:>5}  {words}"), look.style(meaning))
}

/// What the colours of a type rest on: its own words.
fn type_meaning(event_type: &str) -> Meaning {
    let has = |word: &str| event_type.contains(word);
    if has("denied") || has("blocked") || has("expired") || has("error") || has("failed") {
        Meaning::Denied
    } else if has("passed") || has("verified") || has("override") {
        Meaning::Passed
    } else if has("triggered") || has("question") || has("response") {
        Meaning::Waiting
    } else {
        Meaning::Text
    }
}

/// The fields that say most, in the order they are looked for.
const TELLING: [&str; 14] = [
    "action_type",
    "action",
    "checkpoint_id",
    "policy_id",
    "decision",
    "outcome",
    "final_status",
    "risk_tier",
    "reason",
    "verified_by",
    "operator",
    "agent_type",
    "intent",
    "error",
];

fn summary(event: &Event) -> String {
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(one_line(text)),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let telling = TELLING
        .iter()
        .filter_map(|name| event.payload.get(*name).and_then(scalar));
    let found: Vec<String> = telling.take(3).collect();
    if !found.is_empty() {
        return found.join("  ");
    }
    let fields = event.payload.iter();
    let named =
        fields.filter_map(|(name, value)| Some(format!("{} {}", one_line(name), scalar(value)?)));
    named.take(3).collect::<Vec<_>>().join("  ")
}

fn verdict(trace: &Trace) -> (String, Meaning) {
    if let Some(problem) = &trace.problem {
        return (format!("! {}", one_line(problem)), Meaning::Error);
    }
    if trace.verifying == Verifying::Running {
        return ("verifying every chain...".to_owned(), Meaning::Waiting);
    }
    let found = trace.selected.as_ref().and_then(|id| trace.checked.get(id));
    match found {
        None => ("not verified yet: v verifies".to_owned(), Meaning::Dim),
        Some(checked) => match &checked.verdict {
            Verdict::Holds(proven) => {
                let newer = trace.total().saturating_sub(proven.count);
                let note = if newer > 0 {
                    format!(", {newer} newer not verified yet")
                } else {
                    String::new()
                };
                let meaning = match proven.tail() {
                    0 => Meaning::Passed,
                    _ => Meaning::Waiting,
                };
                (format!("{checked}{note}"), meaning)
            }
            Verdict::Diverged { .. } | Verdict::Truncated { .. } | Verdict::Broken { .. } => {
                (one_line(&checked.to_string()), Meaning::Denied)
            }
        },
    }
}

fn draw_detail(trace: &Trace, frame: &mut Frame, area: Rect, look: Look) {
    let focus = Focus::from(trace.pane == Pane::Detail);
    let title = Line::styled(" Event ", look.style(Meaning::Title));
    let block = look.panel(focus).title(title);
    let inner = block.inner(area);
    let lines = detail_lines(trace, usize::from(inner.width), look);
    let shown: Vec<Line> = lines.into_iter().skip(trace.top).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// How many rows the chosen event's content has.
pub(super) fn detail_rows(trace: &Trace) -> usize {
    let look = Look::default();
    let inner = look
        .panel(Focus::Elsewhere)
        .inner(areas(trace.area, trace.pane).detail);
    let rows = detail_lines(trace, usize::from(inner.width), look).len();
    rows.saturating_sub(usize::from(inner.height).saturating_sub(1))
}

fn detail_lines(trace: &Trace, cells: usize, look: Look) -> Vec<Line<'static>> {
    let Some(event) = trace.event() else {
        let text = "no event selected";
        return vec![Line::styled(text, look.style(Meaning::Dim))];
    };
    let parent = event
        .parent_span_id
        .as_ref()
        .map_or("none", |id| id.as_str());
    let pairs = [
        (
            "seq",
            format!("{}  {}", event.sequence, one_line(&event.event_type)),
        ),
        ("time", event.timestamp.to_string()),
        ("hash", event.hash.to_string()),
        ("previous", event.previous_hash.to_string()),
        ("event", event.event_id.to_string()),
        ("span", format!("{} under {parent}", event.span_id)),
        ("trace", event.trace_id.to_string()),
    ];
    let mut lines = Vec::new();
    for (label, text) in pairs {
        for (at, row) in break_exactly(&text, cells.saturating_sub(10))
            .into_iter()
            .enumerate()
        {
            let label = if at == 0 { label } else { "" };
            lines.push(Line::from(vec![
                Span::styled(fit(label, 10, look), look.style(Meaning::Label)),
                Span::raw(row.to_owned()),
            ]));
        }
    }
    let payload = serde_json::to_string_pretty(&event.payload).unwrap_or_default();
    let payload = visible(&payload, Lines::Keep).text;
    for line in payload.split('\n') {
        let mut rows = break_exactly(line, cells).into_iter();
        lines.extend(rows.next().map(|row| json::line(row, look)));
        lines.extend(rows.map(|row| Line::from(row.to_owned())));
    }
    lines
}

/// The first row on screen so that `place` is in the middle, as far as there are rows.
fn centred(place: usize, count: usize, visible: usize) -> usize {
    place
        .saturating_sub(visible / 2)
        .min(count.saturating_sub(visible))
}
