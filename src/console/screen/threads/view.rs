//! Painting of the conversations.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{MementoContent, ThreadsPane, ThreadsScreen, find};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::screen::queue::highlighted;
use crate::console::text_cells::{asker_text, clip, coordinate, counted, fit, width};
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

fn split_area(threads: &ThreadsScreen, area: Rect) -> ThreadsAreas {
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
    let rows = list_rows(split_area(threads, area).list);
    let line = usize::from(at.y.checked_sub(rows.y)?);
    let row = first_row(threads, rows) + line;
    (rows.contains(at) && row < threads.order.len()).then_some(row)
}

/// Returns the first visible row, so that the selected row is visible.
fn first_row(threads: &ThreadsScreen, rows: Rect) -> usize {
    let visible = usize::from(rows.height).max(1);
    (threads.selected_index() + 1).saturating_sub(visible)
}

/// Returns the largest scroll offset of the memento.
pub(super) fn max_scroll(threads: &ThreadsScreen, thread: &Thread) -> usize {
    let appearance = Appearance::default();
    let inner = appearance.panel(Focus::Here);
    let inner = inner.inner(split_area(threads, threads.area).memento);
    let rows = rows_of(threads, thread, inner, appearance);
    rows.len().saturating_sub(usize::from(inner.height))
}

fn rows_of(
    threads: &ThreadsScreen,
    thread: &Thread,
    inner: Rect,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let cells = usize::from(inner.width);
    match threads.showing {
        MementoContent::Kept => memento::stored_lines(thread, inner, appearance),
        MementoContent::Proposed => memento::proposal_lines(thread, cells, appearance),
    }
}

/// Paints the conversations.
pub(crate) fn draw(
    threads: &ThreadsScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) {
    let Some(thread) = threads.selected_thread(snapshot) else {
        draw_empty(snapshot, frame, area, appearance);
        return;
    };
    let parts = split_area(threads, area);
    if parts.list.width > 0 {
        draw_list(threads, snapshot, frame, parts.list, appearance, now);
    }
    let title = about_title(threads, snapshot, thread, parts.about, appearance);
    intensity_panel::draw(thread, title, frame, parts.about, appearance, now);
    draw_memento(threads, thread, frame, parts.memento, appearance);
    if parts.history.height > 1 {
        let focus = Focus::from(threads.pane() == ThreadsPane::History);
        let at = threads.turn_index(thread);
        history::draw(thread, (at, focus), frame, parts.history, appearance);
    } else {
        let cells = usize::from(parts.history.width).saturating_sub(2);
        frame.render_widget(
            history::latest_turns_line(thread, cells, appearance),
            parts.history,
        );
    }
    if let Some(typed) = threads.search_input() {
        draw_search(threads, snapshot, typed, frame, area, appearance);
    }
}

/// Paints the line being typed in the last row.
fn draw_search(
    threads: &ThreadsScreen,
    snapshot: &RuntimeSnapshot,
    typed: &str,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let row = Rect {
        y: area.bottom().saturating_sub(1),
        height: 1,
        ..area
    };
    let all = threads.order.len();
    let hits = match threads.search_text() {
        "" => String::new(),
        _ => format!("  {} of {all} match", threads.match_count(snapshot)),
    };
    let cells = usize::from(area.width);
    let room = cells.saturating_sub(hits.len() + 10);
    let line = Line::from(vec![
        Span::styled(" search> ", appearance.style(Meaning::Key)),
        Span::styled(
            clip(typed, room, appearance),
            appearance.style(Meaning::Strong),
        ),
        Span::styled(" ", appearance.style(Meaning::Selected)),
        Span::styled(hits, appearance.style(Meaning::Dim)),
    ]);
    frame.render_widget(line, row);
}

fn draw_empty(snapshot: &RuntimeSnapshot, frame: &mut Frame, area: Rect, appearance: Appearance) {
    let title = Line::styled(" Threads ", appearance.style(Meaning::Title));
    let block = appearance.panel(Focus::Here).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let sessions = usize::try_from(snapshot.chain.sessions).unwrap_or(usize::MAX);
    let sessions = counted(sessions, "session");
    let lines = vec![
        Line::styled("No threads yet.", appearance.style(Meaning::Strong)),
        Line::from(format!("Searched the records of {sessions}.")),
        Line::default(),
        Line::from("An agent starts a thread with the first turn it reports."),
        Line::from(vec![
            Span::styled("Try: ", appearance.style(Meaning::Dim)),
            Span::styled("cra turn FILE", appearance.style(Meaning::Key)),
        ]),
    ];
    let top = inner.height.saturating_sub(coordinate(lines.len())) / 2;
    let [_, middle] = Layout::vertical([Constraint::Length(top), Constraint::Fill(1)]).areas(inner);
    frame.render_widget(Paragraph::new(lines).centered(), middle);
}

/// Returns the agent and the session that own a conversation.
fn owner_text(snapshot: &RuntimeSnapshot, thread: &Thread) -> String {
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
    appearance: Appearance,
) -> Line<'static> {
    let bullet = appearance.mark(Mark::Bullet);
    let cells = usize::from(area.width).saturating_sub(4);
    let name = clip(&one_line(thread.id.as_str()), cells / 3, appearance);
    let mut rest = format!("{bullet} {} ", owner_text(snapshot, thread));
    if threads.order.len() > 1 && !has_list(threads.area) {
        let place = threads.selected_index() + 1;
        rest = format!("{bullet} {place} of {} (< >) {rest}", threads.order.len());
    }
    let room = cells.saturating_sub(width(&name) + 2);
    Line::from(vec![
        Span::styled(format!(" {name} "), appearance.style(Meaning::Title)),
        Span::styled(
            clip(&rest, room, appearance),
            appearance.style(Meaning::Dim),
        ),
    ])
}

fn draw_list(
    threads: &ThreadsScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) {
    let focus = Focus::from(threads.pane() == ThreadsPane::List);
    let title = match threads.search_text() {
        "" => format!(" Threads {} ", threads.order.len()),
        text => format!(
            " Threads {}, /{} ",
            threads.order.len(),
            clip(text, 16, appearance)
        ),
    };
    let block = appearance
        .panel(focus)
        .title(Line::styled(title, appearance.style(Meaning::Title)));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let cells = usize::from(inner.width);
    let named = cells.saturating_sub(BESIDE) + 3;
    let head = fit("  THREAD", named, appearance) + "PHASE/INT       BP";
    let head = Line::styled(
        clip(&head, cells, appearance),
        appearance.style(Meaning::Dim),
    );
    frame.render_widget(head, inner);
    let rows = list_rows(area);
    let visible = usize::from(rows.height);
    let shown = threads.order.iter();
    let shown = shown.skip(first_row(threads, rows)).take(visible);
    let lines: Vec<Line> = shown
        .filter_map(|name| find(snapshot, name))
        .map(|thread| row(threads, thread, cells, appearance))
        .collect();
    frame.render_widget(Paragraph::new(lines), rows);
    let foot = Rect {
        y: inner.bottom().saturating_sub(1),
        height: 1,
        ..inner
    };
    frame.render_widget(totals_line(snapshot, appearance, now), foot);
}

fn row(
    threads: &ThreadsScreen,
    thread: &Thread,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let chosen = threads.selected.as_ref() == Some(&thread.id);
    let pointer = if chosen { "> " } else { "  " };
    let room = cells.saturating_sub(BESIDE);
    let name = fit(&one_line(thread.id.as_str()), room, appearance);
    let decision = thread.turns.first().map(|turn| turn.decided.decision);
    let (mark, meaning) = if thread.is_frozen() {
        ("!", Meaning::Frozen)
    } else {
        (" ", Meaning::Text)
    };
    let heat = phase_and_intensity_text(phase_and_intensity(thread));
    let line = Line::from(vec![
        Span::raw(format!("{pointer}{name} ")),
        Span::styled(fit(&heat, 14, appearance), appearance.style(Meaning::Text)),
        Span::styled(mark, appearance.style(meaning)),
        Span::raw(" "),
        Span::raw(decision.map_or("", TurnDecision::as_str)),
    ]);
    match chosen {
        true if threads.pane() == ThreadsPane::List => highlighted(line, appearance),
        true => line.style(appearance.style(Meaning::SelectedIdle)),
        false => line,
    }
}

/// Returns the number of frozen conversations, and of turns in the last hour that had to change a summary.
fn totals_line(
    snapshot: &RuntimeSnapshot,
    appearance: Appearance,
    now: Timestamp,
) -> Line<'static> {
    const HOUR: std::time::Duration = std::time::Duration::from_hours(1);
    let frozen = frozen_threads(snapshot);
    let turns = snapshot.threads.iter().flat_map(|thread| {
        let turns = thread.turns.iter();
        turns.take_while(|turn| now.since(turn.at) <= HOUR)
    });
    let must = turns.filter(|turn| turn.decided.decision == TurnDecision::Must);
    let meaning = if frozen == 0 {
        Meaning::Dim
    } else {
        Meaning::Frozen
    };
    Line::from(vec![
        Span::styled(format!(" FROZEN {frozen} "), appearance.style(meaning)),
        Span::styled(
            format!("  must turns in 1 h: {}", must.count()),
            appearance.style(Meaning::Dim),
        ),
    ])
}

fn draw_memento(
    threads: &ThreadsScreen,
    thread: &Thread,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let focus = Focus::from(threads.pane() == ThreadsPane::Memento);
    let block = appearance.panel(focus);
    let inner = block.inner(area);
    let rows = rows_of(threads, thread, inner, appearance);
    let visible = usize::from(inner.height);
    let top = threads.top.min(rows.len().saturating_sub(visible));
    let below = rows.len().saturating_sub(top + visible);
    let hint = match below {
        0 => String::new(),
        below => format!(" {below} more below "),
    };
    let hint = Line::styled(hint, appearance.style(Meaning::Waiting)).right_aligned();
    let name = match threads.showing {
        MementoContent::Kept => format!(" Memento v{} ", thread.version),
        MementoContent::Proposed => format!(" {} saved for later ", thread.held_back.len()),
    };
    let back = format!("{} = back ", appearance.mark(Mark::Bullet));
    let typed = threads.rejected_edit(&thread.id).is_some();
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
        let text = clip(text, room, appearance);
        room -= width(&text).min(room);
        title.push(Span::styled(text, appearance.style(meaning)));
    }
    let block = block.title(Line::from(title)).title(hint);
    let shown: Vec<Line> = rows.into_iter().skip(top).take(visible).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}
