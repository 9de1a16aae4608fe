//! How the queue looks.

use std::collections::BTreeSet;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{Queue, detail, find, risk_word};
use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::base::id::GateId;
use crate::base::text::one_line;
use crate::console::cells::{clip, coordinate, counted, fit, span, width};
use crate::console::theme::{Focus, Look, Mark, Meaning, of_outcome, of_tier};
use crate::engine::command::Decided;
use crate::engine::held::Held;
use crate::runtime::snapshot::Snapshot;

/// What the console knows about rows beyond the snapshot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Marks<'a> {
    /// Requests with an answer begun.
    pub(crate) drafts: &'a BTreeSet<GateId>,
}

/// From here on a countdown is shown as urgent.
const URGENT: Duration = Duration::from_mins(1);
/// From here on a countdown is shown as near.
const NEAR: Duration = Duration::from_mins(3);

/// Paints the queue.
pub(crate) fn draw(
    queue: &Queue,
    snapshot: &Snapshot,
    marks: Marks,
    frame: &mut Frame,
    area: Rect,
    look: Look,
    now: Timestamp,
) {
    let tall = area.height >= 30 && area.width >= 100;
    let (about, past) = match (tall, area.width >= 80) {
        (true, _) => (10, 6),
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
    draw_list(queue, snapshot, marks, frame, list, look, now);
    if about.height > 0 {
        detail::draw(queue.selected(&snapshot.held), frame, about, look);
    }
    if tall {
        draw_decided(snapshot, frame, past, look);
    } else if let Some(decided) = snapshot.decided.first() {
        let mut line = decided_line(decided, usize::from(past.width) - 2, look);
        line.spans.insert(0, Span::raw("  "));
        frame.render_widget(line, past);
    }
}

fn draw_list(
    queue: &Queue,
    snapshot: &Snapshot,
    marks: Marks,
    frame: &mut Frame,
    area: Rect,
    look: Look,
    now: Timestamp,
) {
    let title = Line::from(vec![
        Span::styled(" Held requests ", look.style(Meaning::Title)),
        Span::styled(
            format!("{} by risk, then deadline ", look.mark(Mark::Bullet)),
            look.style(Meaning::Dim),
        ),
    ]);
    let block = look.panel(Focus::Here).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if queue.order.is_empty() {
        draw_empty(snapshot, frame, inner, look);
        return;
    }
    let note = u16::from(queue.has_waiting()) * 2;
    let [head, rows, note] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(note),
    ])
    .areas(inner);
    let columns = Columns::of(usize::from(inner.width));
    frame.render_widget(columns.head(look), head);
    let visible = usize::from(rows.height).max(1);
    let top = (queue.place() + 1).saturating_sub(visible);
    let shown = queue.order.iter().skip(top).take(visible);
    let lines: Vec<Line> = shown
        .filter_map(|id| find(&snapshot.held, id))
        .map(|held| {
            let chosen = Focus::from(queue.selected.as_ref() == Some(&held.id));
            columns.row(held, marks, chosen, look, now)
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), rows);
    if queue.has_waiting() {
        let line = waiting_line(queue, snapshot, usize::from(note.width), look);
        frame.render_widget(Paragraph::new(vec![Line::default(), line]), note);
    }
}

fn draw_empty(snapshot: &Snapshot, frame: &mut Frame, area: Rect, look: Look) {
    let last = match snapshot.decided.first() {
        Some(decided) => {
            let time: String = decided.at.time_of_day().chars().take(5).collect();
            format!("Last decision {time} ({}). ", decided.gate)
        }
        None => String::new(),
    };
    let watching = counted(snapshot.sessions.len(), "agent");
    let lines = vec![
        Line::styled("No gates held.", look.style(Meaning::Strong)),
        Line::from(format!("{last}Watching {watching}.")),
        Line::default(),
        Line::from(vec![
            Span::styled("Try: ", look.style(Meaning::Dim)),
            Span::styled("cra demo", look.style(Meaning::Key)),
        ]),
    ];
    let rows = coordinate(lines.len());
    let top = area.height.saturating_sub(rows) / 2;
    let [_, middle] = Layout::vertical([Constraint::Length(top), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Paragraph::new(lines).centered(), middle);
}

fn waiting_line(queue: &Queue, snapshot: &Snapshot, cells: usize, look: Look) -> Line<'static> {
    let items: Vec<&Held> = queue
        .waiting
        .iter()
        .filter_map(|id| find(&snapshot.held, id).map(AsRef::as_ref))
        .collect();
    let critical = items.iter().any(|held| held.tier() == RiskTier::Critical);
    let names: Vec<String> = items
        .iter()
        .map(|held| format!("{} {}", held.id, risk_word(held)))
        .collect();
    let text = format!(
        "{}{} held back so that no row moves: press u to merge {} {}",
        if critical { "CRITICAL " } else { "" },
        counted(items.len(), "arrival"),
        look.mark(Mark::Bullet),
        names.join(", ")
    );
    let meaning = if critical {
        Meaning::Banner
    } else {
        Meaning::Waiting
    };
    Line::styled(clip(&text, cells, look), look.style(meaning))
}

/// Which columns there is room for, and how wide the two flexible ones are.
struct Columns {
    all: bool,
    checkpoint: usize,
    action: usize,
    agent: usize,
}

impl Columns {
    fn of(cells: usize) -> Self {
        // Mark, ID, LEFT, RISK and STATE are never dropped.
        let fixed = 2 + 7 + 7 + 7 + 10;
        if cells >= 96 {
            let rest = cells - fixed - 7 - 4;
            let (checkpoint, agent) = (rest * 3 / 10, rest * 4 / 10);
            Self {
                all: true,
                checkpoint,
                action: rest - checkpoint - agent,
                agent,
            }
        } else {
            let rest = cells.saturating_sub(fixed);
            let checkpoint = if rest >= 36 { rest / 2 } else { 0 };
            Self {
                all: false,
                checkpoint,
                action: rest - checkpoint,
                agent: 0,
            }
        }
    }

    fn head(&self, look: Look) -> Line<'static> {
        let mut text = format!("  {:<7}", "ID");
        if self.all {
            text.push_str(&fit("AGE", 7, look));
        }
        text.push_str("LEFT   RISK   ");
        text.push_str(&fit("CHECKPOINT", self.checkpoint, look));
        text.push_str(&fit("ACTION", self.action, look));
        if self.all {
            text.push_str(&fit("AGENT/SESSION", self.agent, look));
            text.push_str("Q   ");
        }
        text.push_str("STATE");
        Line::styled(text, look.style(Meaning::Dim))
    }

    fn row(
        &self,
        held: &Held,
        marks: Marks,
        chosen: Focus,
        look: Look,
        now: Timestamp,
    ) -> Line<'static> {
        let left = held.deadline.since(now);
        let near = if left <= URGENT {
            Meaning::Critical
        } else if left <= NEAR {
            Meaning::High
        } else {
            Meaning::Text
        };
        let mark = match chosen {
            Focus::Here => "> ",
            Focus::Elsewhere => "  ",
        };
        let plain = |text: &str, cells: usize| Span::raw(column(text, cells, look));
        let mut spans = vec![Span::raw(mark), plain(held.id.as_str(), 7)];
        if self.all {
            spans.push(plain(&span(now.since(held.opened_at)), 7));
        }
        spans.push(Span::styled(fit(&span(left), 7, look), look.style(near)));
        spans.push(Span::styled(
            fit(&risk_word(held), 7, look),
            look.style(of_tier(held.tier())),
        ));
        if self.checkpoint > 0 {
            spans.push(plain(&gates_word(held), self.checkpoint));
        }
        spans.push(Span::raw(column(
            &one_line(held.action()),
            self.action,
            look,
        )));
        if self.all {
            let who = format!("{}/{}", one_line(&held.agent), held.session);
            spans.push(plain(&who, self.agent));
            let questions: usize = held.gates.iter().map(|gate| gate.questions.len()).sum();
            spans.push(plain(&questions.to_string(), 4));
        }
        let (state, meaning) = state_word(held, marks);
        spans.push(Span::styled(fit(&state, 10, look), look.style(meaning)));
        let line = Line::from(spans);
        match chosen {
            Focus::Here => highlighted(line, look),
            Focus::Elsewhere => line,
        }
    }
}

/// A row of one style: its words say what the colours would.
pub(crate) fn highlighted(line: Line<'static>, look: Look) -> Line<'static> {
    let spans = line.spans.into_iter();
    let plain = spans
        .map(|span| Span::raw(span.content))
        .collect::<Vec<_>>();
    Line::from(plain).style(look.style(Meaning::Selected))
}

/// A text in its column, with a gap to the next one.
fn column(text: &str, cells: usize, look: Look) -> String {
    let mut fitted = fit(text, cells.saturating_sub(1), look);
    if width(&fitted) < cells {
        fitted.push(' ');
    }
    fitted
}

fn gates_word(held: &Held) -> String {
    let first = held.gates.first().map(|gate| one_line(gate.origin.id()));
    let more = held.gates.len().saturating_sub(1);
    let first = first.unwrap_or_default();
    if more == 0 {
        first
    } else {
        format!("{first} +{more}")
    }
}

fn state_word(held: &Held, marks: Marks) -> (String, Meaning) {
    if held.invalid_attempts > 0 {
        (
            format!("invalid {}", held.invalid_attempts),
            Meaning::Warning,
        )
    } else if marks.drafts.contains(&held.id) {
        ("draft".to_owned(), Meaning::Waiting)
    } else if held.joined > 0 {
        (format!("joined x{}", held.joined + 1), Meaning::Waiting)
    } else {
        ("open".to_owned(), Meaning::Text)
    }
}

fn draw_decided(snapshot: &Snapshot, frame: &mut Frame, area: Rect, look: Look) {
    let title = Span::styled(" Decided ", look.style(Meaning::Title));
    let block = look.panel(Focus::Elsewhere).title(Line::from(title));
    let inner = block.inner(area);
    let cells = usize::from(inner.width);
    let recent = snapshot.decided.iter().take(usize::from(inner.height));
    let mut lines: Vec<Line> = recent
        .map(|decided| decided_line(decided, cells, look))
        .collect();
    if lines.is_empty() {
        lines.push(Line::styled("nothing yet", look.style(Meaning::Dim)));
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn decided_line(decided: &Decided, cells: usize, look: Look) -> Line<'static> {
    let by = match &decided.by {
        Some(by) => format!("by {}", one_line(by)),
        None => "nobody decided".to_owned(),
    };
    let by_cells = if cells >= 96 { 24 } else { 18 };
    let rest = cells.saturating_sub(10 + 8 + 11 + by_cells);
    let about = format!(
        "{}  {}",
        one_line(&decided.action),
        one_line(&decided.detail)
    );
    Line::from(vec![
        Span::styled(
            fit(&decided.at.time_of_day(), 10, look),
            look.style(Meaning::Dim),
        ),
        Span::raw(column(decided.gate.as_str(), 8, look)),
        Span::styled(
            fit(&decided.outcome.as_str().to_uppercase(), 11, look),
            look.style(of_outcome(decided.outcome)),
        ),
        Span::raw(column(&by, by_cells, look)),
        Span::styled(clip(about.trim_end(), rest, look), look.style(Meaning::Dim)),
    ])
}
