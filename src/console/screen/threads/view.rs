//! Painting of the conversations.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{MementoContent, ThreadsPane, ThreadsScreen, find};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::cells::{asker_text, clip, coordinate, counted, fit, width};
use crate::console::screen::queue::highlighted;
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::console::thread_text::{frozen_threads, phase_and_intensity, phase_and_intensity_text};
use crate::memento::{Thread, TurnDecision};
use crate::runtime::snapshot::RuntimeSnapshot;

mod history;
mod intensity_panel;
mod memento;

/// Width of the list in cells, with its borders.
const LIST_WIDTH: u16 = 39;

/// Width of a list row without the name, in cells.
const BESIDE: usize = 25;

/// Rows of the intensity panel: nine lines and the borders.
const ABOUT_ROWS: u16 = 11;

struct ThreadsAreas {
    list: Rect,
    about: Rect,
    memento: Rect,
    history: Rect,
}

/// Returns true if there is room for the list.
pub(super) fn has_list(area: Rect) -> bool {
    area.width >= 100 && area.height >= 28
}

/// Returns the area above the search line. The search line takes the last row while a search is typed.
fn body(threads: &ThreadsScreen, area: Rect) -> Rect {
    let typed = u16::from(threads.search_input().is_some());
    Rect {
        height: area.height.saturating_sub(typed),
        ..area
    }
}

fn parts(threads: &ThreadsScreen, area: Rect) -> ThreadsAreas {
    let area = body(threads, area);
    let reading = threads.pane() == ThreadsPane::History;
    let wide = has_list(area);
    let (about, history) = match (wide, reading) {
        (true, true) => (ABOUT_ROWS, 11),
        (true, false) => (ABOUT_ROWS, 5),
        (false, _) => {
            let about = if area.height >= 20 { 8 } else { 6 };
            let rest = area.height.saturating_sub(about);
            (about, if reading { rest / 2 } else { 1 })
        }
    };
    let [top, memento, history] = Layout::vertical([
        Constraint::Length(about),
        Constraint::Fill(1),
        Constraint::Length(history),
    ])
    .areas(area);
    let list = if wide { LIST_WIDTH } else { 0 };
    let [list, about] =
        Layout::horizontal([Constraint::Length(list), Constraint::Fill(1)]).areas(top);
    ThreadsAreas {
        list,
        about,
        memento,
        history,
    }
}

/// Returns the area of the list rows: between the head and the foot.
fn list_rows(list: Rect) -> Rect {
    let inner = Appearance::default().panel(Focus::Here).inner(list);
    Rect {
        y: inner.y + 1,
        height: inner.height.saturating_sub(2),
        ..inner
    }
}

/// Returns the list row at a screen position.
pub(super) fn row_at(threads: &ThreadsScreen, area: Rect, at: Position) -> Option<usize> {
    if !has_list(area) {
        return None;
    }
    let rows = list_rows(parts(threads, area).list);
    let line = usize::from(at.y.checked_sub(rows.y)?);
    let row = first_row(threads, rows) + line;
    (rows.contains(at) && row < threads.order.len()).then_some(row)
}

/// Returns the first visible row, so that the selected row is visible.
fn first_row(threads: &ThreadsScreen, rows: Rect) -> usize {
    let visible = usize::from(rows.height).max(1);
    (threads.place() + 1).saturating_sub(visible)
}

/// Returns the largest scroll offset of the memento.
pub(super) fn most(threads: &ThreadsScreen, thread: &Thread) -> usize {
    let look = Appearance::default();
    let inner = look.panel(Focus::Here);
    let inner = inner.inner(parts(threads, threads.area).memento);
    let rows = rows_of(threads, thread, inner, look);
    rows.len().saturating_sub(usize::from(inner.height))
}

fn rows_of(
    threads: &ThreadsScreen,
    thread: &Thread,
    inner: Rect,
    look: Appearance,
) -> Vec<Line<'static>> {
    let cells = usize::from(inner.width);
    match threads.showing {
        MementoContent::Kept => memento::kept(thread, inner, look),
        MementoContent::Proposed => memento::proposed(thread, cells, look),
    }
}

/// Paints the conversations.
pub(crate) fn draw(
    threads: &ThreadsScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    look: Appearance,
    now: Timestamp,
) {
    let Some(thread) = threads.chosen(snapshot) else {
        draw_empty(snapshot, frame, area, look);
        return;
    };
    let parts = parts(threads, area);
    if parts.list.width > 0 {
        draw_list(threads, snapshot, frame, parts.list, look, now);
    }
    let title = about_title(threads, snapshot, thread, parts.about, look);
    intensity_panel::draw(thread, title, frame, parts.about, look, now);
    draw_memento(threads, thread, frame, parts.memento, look);
    if parts.history.height > 1 {
        let focus = Focus::from(threads.pane() == ThreadsPane::History);
        let at = threads.turn_index(thread);
        history::draw(thread, (at, focus), frame, parts.history, look);
    } else {
        let cells = usize::from(parts.history.width).saturating_sub(2);
        frame.render_widget(history::short(thread, cells, look), parts.history);
    }
    if let Some(typed) = threads.search_input() {
        draw_search(threads, snapshot, typed, frame, area, look);
    }
}

/// Paints the line being typed in the last row.
fn draw_search(
    threads: &ThreadsScreen,
    snapshot: &RuntimeSnapshot,
    typed: &str,
    frame: &mut Frame,
    area: Rect,
    look: Appearance,
) {
    let row = Rect {
        y: area.bottom().saturating_sub(1),
        height: 1,
        ..area
    };
    let all = threads.order.len();
    let hits = match threads.searched() {
        "" => String::new(),
        _ => format!("  {} of {all} match", threads.hits(snapshot)),
    };
    let cells = usize::from(area.width);
    let room = cells.saturating_sub(hits.len() + 10);
    let line = Line::from(vec![
        Span::styled(" search> ", look.style(Meaning::Key)),
        Span::styled(clip(typed, room, look), look.style(Meaning::Strong)),
        Span::styled(" ", look.style(Meaning::Selected)),
        Span::styled(hits, look.style(Meaning::Dim)),
    ]);
    frame.render_widget(line, row);
}

fn draw_empty(snapshot: &RuntimeSnapshot, frame: &mut Frame, area: Rect, look: Appearance) {
    let title = Line::styled(" Threads ", look.style(Meaning::Title));
    let block = look.panel(Focus::Here).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let sessions = usize::try_from(snapshot.chain.sessions).unwrap_or(usize::MAX);
    let sessions = counted(sessions, "session");
    let lines = vec![
        Line::styled("No threads yet.", look.style(Meaning::Strong)),
        Line::from(format!("Searched the records of {sessions}.")),
        Line::default(),
        Line::from("An agent starts a thread with the first turn it reports."),
        Line::from(vec![
            Span::styled("Try: ", look.style(Meaning::Dim)),
            Span::styled("cra turn FILE", look.style(Meaning::Key)),
        ]),
    ];
    let top = inner.height.saturating_sub(coordinate(lines.len())) / 2;
    let [_, middle] = Layout::vertical([Constraint::Length(top), Constraint::Fill(1)]).areas(inner);
    frame.render_widget(Paragraph::new(lines).centered(), middle);
}

/// Returns the agent and the session that own a conversation.
fn whose(snapshot: &RuntimeSnapshot, thread: &Thread) -> String {
    let Some(owner) = &thread.owner else {
        return "no owner: use `:hand-over SESSION`".to_owned();
    };
    let mut sessions = snapshot.sessions.iter();
    match sessions.find(|session| session.id == owner.session) {
        Some(session) => asker_text(&session.agent, &owner.session),
        None => format!("{} (ended)", owner.session),
    }
}

fn about_title(
    threads: &ThreadsScreen,
    snapshot: &RuntimeSnapshot,
    thread: &Thread,
    area: Rect,
    look: Appearance,
) -> Line<'static> {
    let bullet = look.mark(Mark::Bullet);
    let cells = usize::from(area.width).saturating_sub(4);
    let name = clip(&one_line(thread.id.as_str()), cells / 3, look);
    let mut rest = format!("{bullet} {} ", whose(snapshot, thread));
    if threads.order.len() > 1 && !has_list(threads.area) {
        let place = threads.place() + 1;
        rest = format!("{bullet} {place} of {} (< >) {rest}", threads.order.len());
    }
    let room = cells.saturating_sub(width(&name) + 2);
    Line::from(vec![
        Span::styled(format!(" {name} "), look.style(Meaning::Title)),
        Span::styled(clip(&rest, room, look), look.style(Meaning::Dim)),
    ])
}

fn draw_list(
    threads: &ThreadsScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    look: Appearance,
    now: Timestamp,
) {
    let focus = Focus::from(threads.pane() == ThreadsPane::List);
    let title = match threads.searched() {
        "" => format!(" Threads {} ", threads.order.len()),
        text => format!(
            " Threads {}, /{} ",
            threads.order.len(),
            clip(text, 16, look)
        ),
    };
    let block = look
        .panel(focus)
        .title(Line::styled(title, look.style(Meaning::Title)));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let cells = usize::from(inner.width);
    let named = cells.saturating_sub(BESIDE) + 3;
    let head = fit("  THREAD", named, look) + "PHASE/INT       BP";
    let head = Line::styled(clip(&head, cells, look), look.style(Meaning::Dim));
    frame.render_widget(head, inner);
    let rows = list_rows(area);
    let visible = usize::from(rows.height);
    let shown = threads.order.iter();
    let shown = shown.skip(first_row(threads, rows)).take(visible);
    let lines: Vec<Line> = shown
        .filter_map(|name| find(snapshot, name))
        .map(|thread| row(threads, thread, cells, look))
        .collect();
    frame.render_widget(Paragraph::new(lines), rows);
    let foot = Rect {
        y: inner.bottom().saturating_sub(1),
        height: 1,
        ..inner
    };
    frame.render_widget(sums(snapshot, look, now), foot);
}

fn row(threads: &ThreadsScreen, thread: &Thread, cells: usize, look: Appearance) -> Line<'static> {
    let chosen = threads.selected.as_ref() == Some(&thread.id);
    let pointer = if chosen { "> " } else { "  " };
    let room = cells.saturating_sub(BESIDE);
    let name = fit(&one_line(thread.id.as_str()), room, look);
    let decision = thread.turns.first().map(|turned| turned.decided.decision);
    let (mark, meaning) = if thread.is_frozen() {
        ("!", Meaning::Frozen)
    } else {
        (" ", Meaning::Text)
    };
    let heat = phase_and_intensity_text(phase_and_intensity(thread));
    let line = Line::from(vec![
        Span::raw(format!("{pointer}{name} ")),
        Span::styled(fit(&heat, 14, look), look.style(Meaning::Text)),
        Span::styled(mark, look.style(meaning)),
        Span::raw(" "),
        Span::raw(decision.map_or("", TurnDecision::as_str)),
    ]);
    match chosen {
        true if threads.pane() == ThreadsPane::List => highlighted(line, look),
        true => line.style(look.style(Meaning::SelectedIdle)),
        false => line,
    }
}

/// Returns the number of frozen conversations, and of turns in the last hour that had to change a summary.
fn sums(snapshot: &RuntimeSnapshot, look: Appearance, now: Timestamp) -> Line<'static> {
    const HOUR: std::time::Duration = std::time::Duration::from_hours(1);
    let frozen = frozen_threads(snapshot);
    let turns = snapshot.threads.iter().flat_map(|thread| {
        let turns = thread.turns.iter();
        turns.take_while(|turned| now.since(turned.at) <= HOUR)
    });
    let must = turns.filter(|turned| turned.decided.decision == TurnDecision::Must);
    let meaning = if frozen == 0 {
        Meaning::Dim
    } else {
        Meaning::Frozen
    };
    Line::from(vec![
        Span::styled(format!(" FROZEN {frozen} "), look.style(meaning)),
        Span::styled(
            format!("  must turns in 1 h: {}", must.count()),
            look.style(Meaning::Dim),
        ),
    ])
}

fn draw_memento(
    threads: &ThreadsScreen,
    thread: &Thread,
    frame: &mut Frame,
    area: Rect,
    look: Appearance,
) {
    let focus = Focus::from(threads.pane() == ThreadsPane::Memento);
    let block = look.panel(focus);
    let inner = block.inner(area);
    let rows = rows_of(threads, thread, inner, look);
    let visible = usize::from(inner.height);
    let top = threads.top.min(rows.len().saturating_sub(visible));
    let below = rows.len().saturating_sub(top + visible);
    let hint = match below {
        0 => String::new(),
        below => format!(" {below} more below "),
    };
    let hint = Line::styled(hint, look.style(Meaning::Waiting)).right_aligned();
    let name = match threads.showing {
        MementoContent::Kept => format!(" Memento v{} ", thread.version),
        MementoContent::Proposed => format!(" {} saved for later ", thread.held_back.len()),
    };
    let back = format!("{} = back ", look.mark(Mark::Bullet));
    let typed = threads.typed(&thread.id).is_some();
    // Required information comes before available commands.
    let parts = [
        (true, name.as_str(), Meaning::Title),
        (thread.is_frozen(), " FROZEN ", Meaning::Frozen),
        (thread.edited, " EDITED ", Meaning::Waiting),
        (typed, " rejected edit: e ", Meaning::Warning),
        (
            threads.showing == MementoContent::Proposed,
            &back,
            Meaning::Dim,
        ),
    ];
    let mut room = usize::from(area.width).saturating_sub(2 + hint.width());
    let mut title = Vec::new();
    for (_, text, meaning) in parts.into_iter().filter(|(shown, ..)| *shown) {
        let text = clip(text, room, look);
        room -= width(&text).min(room);
        title.push(Span::styled(text, look.style(meaning)));
    }
    let block = block.title(Line::from(title)).title(hint);
    let shown: Vec<Line> = rows.into_iter().skip(top).take(visible).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}
