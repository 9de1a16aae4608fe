//! Frame around every screen: header, tabs, banners and footer.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::app::App;
use super::dialog::gate::GateDialog;
use super::dialog::gate::RecordTrouble;
use super::screen::{ScreenDefinition, ScreenId};
use super::text_cells::{clip, coordinate, counted, span, width};
use super::theme::{Appearance, Mark, Meaning};
use crate::base::clock::Timestamp;
use crate::base::limits::MIN_TERMINAL;
use crate::base::text::one_line;
use crate::runtime::notices::NoticeSummary;
use crate::runtime::snapshot::{ChainVerdict, ConsoleAccess, StoreState, UndeliveredCounts};

mod footer;

/// Returns true if an area is too small to decide in.
pub(crate) fn is_too_small(area: Rect) -> bool {
    let (width, height) = MIN_TERMINAL;
    area.width < width || area.height < height
}

struct ScreenAreas {
    header: Rect,
    tabs: Rect,
    banner: Rect,
    content: Rect,
    /// Bar of the minimised dialog.
    minimised: Rect,
    footer: Rect,
}

fn screen_areas(app: &App, area: Rect) -> ScreenAreas {
    let banner = coordinate(app.banners().len());
    let minimised = u16::from(app.dialog_history.minimised.is_some());
    let [header, tabs, banner, content, minimised, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(banner),
        Constraint::Fill(1),
        Constraint::Length(minimised),
        Constraint::Length(1),
    ])
    .areas(area);
    ScreenAreas {
        header,
        tabs,
        banner,
        content,
        minimised,
        footer,
    }
}

/// Returns the area for screens and dialogs.
pub(crate) fn content(app: &App, area: Rect) -> Rect {
    screen_areas(app, area).content
}

impl App {
    /// Paints the whole console.
    pub(crate) fn draw(&self, frame: &mut Frame, now: Timestamp) {
        let area = frame.area();
        if is_too_small(area) {
            draw_small(self, frame, area);
            return;
        }
        let parts = screen_areas(self, area);
        let cells = usize::from(area.width);
        frame.render_widget(header_line(self, cells, now), parts.header);
        frame.render_widget(tab_row(self, cells, now), parts.tabs);
        for (banner, row) in self.banners().into_iter().zip(parts.banner.rows()) {
            frame.render_widget(banner.line(cells, self.appearance), row);
        }
        let covered = self
            .layers
            .iter()
            .any(|layer| layer.get::<GateDialog>().is_some());
        if !covered {
            self.draw_screen(frame, parts.content, now);
        }
        for layer in &self.layers {
            layer.draw(frame, parts.content, self.appearance, now);
        }
        if let Some(dialog) = &self.dialog_history.minimised {
            frame.render_widget(dialog.bar(cells, self.appearance, now), parts.minimised);
        }
        frame.render_widget(footer::line(self, cells), parts.footer);
    }

    fn draw_screen(&self, frame: &mut Frame, area: Rect, now: Timestamp) {
        let screen = self.screens.get(self.screen);
        screen.draw(&self.snapshot, frame, area, self.appearance, now);
    }
}

fn draw_small(app: &App, frame: &mut Frame, area: Rect) {
    let (width, height) = MIN_TERMINAL;
    let held = counted(app.snapshot.held.len(), "request");
    let lines = vec![
        Line::styled("terminal too small", app.appearance.style(Meaning::Warning)),
        Line::from(format!(
            "needs {width}x{height}, is {}x{}",
            area.width, area.height
        )),
        Line::from(format!("{held} held; deciding is disabled")),
        Line::styled(
            "q quits; requests stay held",
            app.appearance.style(Meaning::Dim),
        ),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

fn header_line(app: &App, cells: usize, now: Timestamp) -> Line<'static> {
    let appearance = app.appearance;
    let snapshot = &app.snapshot;
    let (agents, held) = (snapshot.sessions.len(), snapshot.held.len());
    let (access, access_meaning) = match (snapshot.access, &snapshot.store) {
        (ConsoleAccess::ReadOnly, _) => ("READ-ONLY", Meaning::Warning),
        (ConsoleAccess::Write, StoreState::Poisoned { .. } | StoreState::Stalled { .. }) => {
            ("NO WRITES", Meaning::Error)
        }
        (ConsoleAccess::Write, StoreState::Ready) => ("WRITE", Meaning::Passed),
    };
    let clock = clock_text(app, now);
    let (verdict, verdict_meaning) = verdict_text(app);
    let wide = cells >= 100;
    let name = if wide { " CRA console" } else { " CRA" };
    let counts = if wide {
        format!("agents {agents}  held {held}")
    } else {
        format!("ag {agents}  held {held}")
    };
    let verdict = if wide {
        format!("chains {} {verdict}", snapshot.chain.sessions)
    } else {
        format!("chain {verdict}")
    };
    // In narrow terminals the tabs alone give the number of held requests.
    let counts = (cells >= 80).then_some(counts);
    let queued = (app.queued_requests > 0).then(|| format!("queued {}", app.queued_requests));
    let dropped = dropped_text(snapshot.undelivered, cells);
    let operator = clip(&one_line(&snapshot.operator), cells / 3, appearance);
    let fixed = counts.map(|text| (text, Meaning::Text));
    let fixed = fixed.into_iter().chain([(verdict, verdict_meaning)]);
    let queued = queued.map(|text| (text, Meaning::Waiting));
    let extras = queued
        .into_iter()
        .chain(unsent_text(&snapshot.notices, cells).map(|text| (text, Meaning::Warning)))
        .chain(dropped.map(|text| (text, Meaning::Warning)));
    let right = access.len() + clock.len() + 3;
    let room = cells.saturating_sub(width(name) + right + 2);
    let bar = format!(" {} ", appearance.mark(Mark::Separator));
    let mut spans = vec![Span::styled(name, appearance.style(Meaning::Title))];
    let parts = fitting_header_parts(
        &operator,
        fixed.collect(),
        extras.collect(),
        room,
        appearance,
    );
    for (text, meaning) in parts {
        spans.push(Span::styled(bar.clone(), appearance.style(Meaning::Dim)));
        spans.push(Span::styled(text, appearance.style(meaning)));
    }
    let used: usize = spans.iter().map(|part| width(&part.content)).sum();
    let gap = cells.saturating_sub(used + right).max(1);
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(Span::styled(access, appearance.style(access_meaning)));
    spans.push(Span::raw(format!("  {clock} ")));
    Line::from(spans)
}

/// Selects the parts of the header that fit next to the fixed ones. A long operator name is cut first.
/// Then parts are left out in this order: dropped messages, unsent notices, waiting requests, more of
/// the name. The verdict always stays.
fn fitting_header_parts(
    operator: &str,
    fixed: Vec<(String, Meaning)>,
    mut extras: Vec<(String, Meaning)>,
    room: usize,
    appearance: Appearance,
) -> Vec<(String, Meaning)> {
    const BAR: usize = 3;
    const NAME: usize = 7;
    const LEAST: usize = 4;
    let taken = |parts: &[(String, Meaning)]| {
        let each = parts.iter().map(|(text, _)| width(text) + BAR);
        each.sum::<usize>()
    };
    let named = |extras: &[(String, Meaning)]| {
        let rest = taken(&fixed) + taken(extras) + BAR;
        room.saturating_sub(rest)
    };
    let name = width(operator).min(NAME);
    while named(&extras) < name && extras.pop().is_some() {}
    let cells = named(&extras);
    let operator = Some(clip(operator, cells, appearance)).filter(|_| cells >= LEAST);
    let operator = operator.map(|text| (text, Meaning::Text));
    operator.into_iter().chain(fixed).chain(extras).collect()
}

/// Text for messages that were dropped, if there are any; with their kinds if there is room.
fn dropped_text(dropped: UndeliveredCounts, cells: usize) -> Option<String> {
    let total = dropped.total();
    let kinds = [
        (dropped.advice, "advice"),
        (dropped.hooks, "to hooks"),
        (dropped.answers, "to agents"),
    ];
    let kinds = kinds.iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<_> = kinds
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match cells {
        _ if total == 0 => None,
        0..80 => Some(format!("drop {total}")),
        80..100 => Some(format!("dropped {total}")),
        100.. => Some(format!("dropped {}", kinds.join(", "))),
    }
}

/// Text for notices that were given up or left out, so that no steward receives them; `None` if there
/// are none.
fn unsent_text(notices: &NoticeSummary, cells: usize) -> Option<String> {
    let unsent = notices.undelivered_count();
    match cells {
        _ if unsent == 0 => None,
        0..100 => Some(format!("unsent {unsent}")),
        100.. => Some(format!("{} unsent", counted(unsent, "notice"))),
    }
}

/// Formats the time. Without a countdown the screen changes once a minute, so the seconds are left
/// out: a stopped clock must not look like a running one.
fn clock_text(app: &App, now: Timestamp) -> String {
    let time = now.time_of_day();
    if app.has_countdown() {
        format!("{time}Z")
    } else {
        let minutes: String = time.chars().take(5).collect();
        format!("{minutes}Z")
    }
}

fn verdict_text(app: &App) -> (String, Meaning) {
    if app.snapshot.store.problem().is_some() {
        // An earlier verdict must not be shown as if recording continued.
        return ("NOT RECORDING".to_owned(), Meaning::Error);
    }
    let broken = ("BROKEN".to_owned(), Meaning::Error);
    let chain = &app.snapshot.chain;
    match chain.verdict {
        ChainVerdict::Unreadable { .. } => ("UNREADABLE".to_owned(), Meaning::Error),
        ChainVerdict::Broken { .. } => broken,
        // A fault found by the operator's own check takes precedence over the earlier verdict.
        ChainVerdict::Unchecked | ChainVerdict::Verified { .. }
            if matches!(app.record_trouble(), Some(RecordTrouble::Chain(_))) =>
        {
            broken
        }
        ChainVerdict::Unchecked => ("not verified".to_owned(), Meaning::Warning),
        ChainVerdict::Verified { events, unsealed } => {
            // Events sealed since the check were read back before they were sealed.
            let sealed = chain.head.covered.max(events.saturating_sub(unsealed));
            match chain.events.saturating_sub(sealed) {
                0 => ("SEALED".to_owned(), Meaning::Passed),
                open => (format!("UNSEALED {open}"), Meaning::Waiting),
            }
        }
    }
}

/// Labels of the tabs. If there is little room, only the current tab and the queue keep their names.
/// The rest show their number and their problem count.
fn tab_labels(app: &App, cells: usize) -> Vec<(ScreenId, String)> {
    let whole: Vec<(ScreenId, String)> = ScreenId::ALL
        .iter()
        .map(|id| (*id, tab_label(app, *id)))
        .collect();
    let tabs: usize = whole.iter().map(|(_, label)| width(label) + 4).sum();
    let notice = app.notice.as_ref().map_or(0, |(_, text)| width(text));
    if cells >= 80 && tabs + notice + 2 <= cells {
        return whole;
    }
    let narrow = whole.into_iter().map(|(id, label)| {
        if id == app.screen || app.screens.get(id).keeps_tab_title() {
            return (id, label);
        }
        let mut words = label.split(' ');
        let number = words.next().unwrap_or_default();
        let mark = words.find(|word| word.starts_with('!'));
        let mark = mark.map(|word| format!(" {word}")).unwrap_or_default();
        (id, format!("{number}{mark}"))
    });
    narrow.collect()
}

/// Label of a tab: number, title, and the note of its screen.
fn tab_label(app: &App, id: ScreenId) -> String {
    let ScreenDefinition { number, title, .. } = id.definition();
    match app.screens.get(id).tab_note(&app.snapshot) {
        Some(note) => format!("{number} {title} {note}"),
        None => format!("{number} {title}"),
    }
}

/// Returns the screen of the tab at a position on screen.
pub(crate) fn tab_at(app: &App, area: Rect, at: Position) -> Option<ScreenId> {
    if !screen_areas(app, area).tabs.contains(at) {
        return None;
    }
    let mut from = 1;
    for (tab, label) in tab_labels(app, usize::from(area.width)) {
        let cells = width(&label) + 2;
        if (from..from + cells).contains(&usize::from(at.x)) {
            return Some(tab);
        }
        from += cells + 2;
    }
    None
}

fn tab_row(app: &App, cells: usize, now: Timestamp) -> Line<'static> {
    let appearance = app.appearance;
    let tab = |id: ScreenId, text: String| {
        let meaning = if app.screen == id {
            Meaning::TabActive
        } else {
            Meaning::Dim
        };
        Span::styled(format!(" {text} "), appearance.style(meaning))
    };
    let mut spans = vec![Span::raw(" ")];
    for (at, (name, label)) in tab_labels(app, cells).into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::raw("  "));
        }
        spans.push(tab(name, label));
    }
    let used: usize = spans.iter().map(|part| width(&part.content)).sum();
    let room = cells.saturating_sub(used + 3);
    let (text, meaning) = match (&app.notice, deadline_text(app, now, room)) {
        (Some((meaning, text)), _) => (text.clone(), *meaning),
        (None, due) => {
            let screen = app.screens.get(app.screen);
            let own = screen.tab_row_text(&app.snapshot, cells);
            match own.or(due.map(|due| (due, Meaning::Waiting))) {
                Some(shown) => shown,
                None => return Line::from(spans),
            }
        }
    };
    let text = clip(&text, room, appearance);
    spans.push(Span::raw(" ".repeat(room.saturating_sub(width(&text)) + 2)));
    spans.push(Span::styled(text, appearance.style(meaning)));
    Line::from(spans)
}

/// Text for the next deadline and the new requests, shortened if there is little room.
fn deadline_text(app: &App, now: Timestamp, room: usize) -> Option<String> {
    let left = span(app.screens.queue.earliest_deadline()?.since(now));
    if !app.screens.queue.has_waiting() {
        return Some(format!("next due in {left}"));
    }
    let waiting = app.screens.queue.waiting_count();
    let text = format!("{waiting} new (u)   next due in {left}");
    if width(&text) <= room {
        return Some(text);
    }
    Some(format!("+{waiting} (u)  due {left}"))
}
