//! Painting of the Atlas screen.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{AtlasPane, AtlasScreen, FocusDepth, part_details, session};
use crate::base::text::one_line;
use crate::console::explanation_lines;
use crate::console::screen::queue::highlighted;
use crate::console::text_cells::{clip, fit, width, wrap};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::runtime::WatchSetting;
use crate::runtime::snapshot::{EvaluationOutcome, RuntimeSnapshot, WatchedEvaluation};

mod reload_panel;
mod tree_view;

/// Areas of the panels.
struct AtlasAreas {
    status: Rect,
    tree: Rect,
    session: Rect,
    /// Area of the evaluations or the problems.
    below: Rect,
    chosen: Rect,
    /// Area of the panel that compares the loaded Atlas with its file.
    reload: Rect,
}

fn split_areas(atlases: &AtlasScreen, snapshot: &RuntimeSnapshot, area: Rect) -> AtlasAreas {
    let wide = area.width >= 120 && area.height >= 26;
    let brief = !wide && reload_panel::summary_line(atlases, snapshot).is_some();
    let [status, rest, reload] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(u16::from(brief)),
    ])
    .areas(area);
    let none = AtlasAreas {
        status,
        tree: Rect::ZERO,
        session: Rect::ZERO,
        below: Rect::ZERO,
        chosen: Rect::ZERO,
        reload,
    };
    if wide {
        let halves = [Constraint::Percentage(56), Constraint::Fill(1)];
        let thirds = [
            Constraint::Percentage(52),
            Constraint::Fill(1),
            Constraint::Length(reload_panel::ROWS),
        ];
        let [left, right] =
            Layout::horizontal([Constraint::Length(46), Constraint::Fill(1)]).areas(rest);
        let [tree, session] = Layout::vertical(halves).areas(left);
        let [chosen, below, reload] = Layout::vertical(thirds).areas(right);
        return AtlasAreas {
            tree,
            session,
            below,
            chosen,
            reload,
            ..none
        };
    }
    let (list, chosen) = if area.width >= 80 && atlases.pane != AtlasPane::Session {
        let [list, chosen] =
            Layout::vertical([Constraint::Percentage(42), Constraint::Fill(1)]).areas(rest);
        (list, chosen)
    } else if atlases.focus_depth == FocusDepth::Chosen {
        (Rect::ZERO, rest)
    } else {
        (rest, Rect::ZERO)
    };
    match atlases.pane {
        AtlasPane::Tree => AtlasAreas {
            tree: list,
            chosen,
            ..none
        },
        AtlasPane::Session => AtlasAreas {
            session: list,
            ..none
        },
        AtlasPane::Stream | AtlasPane::Problems => AtlasAreas {
            below: list,
            chosen,
            ..none
        },
    }
}

/// Paints the Atlas screen.
pub(crate) fn draw(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let all = split_areas(atlases, snapshot, area);
    frame.render_widget(
        status_line(atlases, snapshot, usize::from(area.width), appearance),
        all.status,
    );
    if snapshot.loaded.is_empty() && atlases.pane != AtlasPane::Problems {
        let rest = Rect::new(
            area.x,
            area.y + 1,
            area.width,
            area.height.saturating_sub(1),
        );
        draw_empty(atlases, snapshot, frame, rest, appearance);
        return;
    }
    if !all.tree.is_empty() {
        tree_view::draw(atlases, snapshot, frame, all.tree, appearance);
    }
    if !all.session.is_empty() {
        draw_session(atlases, snapshot, frame, all.session, appearance);
    }
    if !all.below.is_empty() {
        match atlases.pane {
            AtlasPane::Problems => draw_problems(atlases, snapshot, frame, all.below, appearance),
            AtlasPane::Tree | AtlasPane::Session | AtlasPane::Stream => {
                draw_stream(atlases, snapshot, frame, all.below, appearance);
            }
        }
    }
    if all.reload.height > 1 {
        reload_panel::draw(atlases, snapshot, frame, all.reload, appearance);
    } else if let Some((words, meaning)) = reload_panel::summary_line(atlases, snapshot) {
        let words = clip(
            &format!(" {words}"),
            usize::from(all.reload.width),
            appearance,
        );
        frame.render_widget(Line::styled(words, appearance.style(meaning)), all.reload);
    }
    if !all.chosen.is_empty() {
        draw_details(atlases, snapshot, frame, all.chosen, appearance);
    }
}

/// Returns the line with the pane names and counts, and the last message.
fn status_line(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let problems = atlases.problem_count(snapshot);
    let names = [
        (AtlasPane::Tree, "Atlas".to_owned()),
        (AtlasPane::Session, "Session".to_owned()),
        (
            AtlasPane::Stream,
            format!("Evaluations {}", snapshot.watched.evaluations.len()),
        ),
        (AtlasPane::Problems, format!("Problems {problems}")),
    ];
    let mut spans = vec![Span::raw(" ")];
    for (at, (pane, name)) in names.into_iter().enumerate() {
        if at > 0 {
            let bar = format!(" {} ", appearance.mark(Mark::Separator));
            spans.push(Span::styled(bar, appearance.style(Meaning::Dim)));
        }
        let meaning = match pane {
            own if own == atlases.pane => Meaning::Strong,
            AtlasPane::Problems if problems > 0 => Meaning::Warning,
            AtlasPane::Tree | AtlasPane::Session | AtlasPane::Stream | AtlasPane::Problems => {
                Meaning::Dim
            }
        };
        spans.push(Span::styled(name, appearance.style(meaning)));
    }
    let (words, meaning) = match &atlases.message {
        Some((meaning, words)) => (words.clone(), *meaning),
        None => reload_panel::difference_text(atlases, snapshot, cells, appearance)
            .unwrap_or((String::new(), Meaning::Dim)),
    };
    let used: usize = spans.iter().map(|span| width(&span.content)).sum();
    let words = clip(&words, cells.saturating_sub(used + 3), appearance);
    let gap = cells.saturating_sub(used + width(&words) + 1);
    spans.push(Span::raw(" ".repeat(gap)));
    spans.push(Span::styled(words, appearance.style(meaning)));
    Line::from(spans)
}

fn draw_empty(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let inner = draw_panel(frame, area, ("Atlas", ""), Focus::Here, appearance);
    let cells = usize::from(inner.width);
    let text = "No Atlas is loaded: cra denies every action.\n\n\
        cra reads its Atlas folder (see `cra paths`) and the files given as arguments.\n\
        `cra atlas init FILE` writes a first Atlas. A new file in the folder is offered here. Try: cra demo";
    let rows = wrap(text, cells).into_iter();
    let mut lines: Vec<Line> = rows
        .map(|row| Line::styled(row, appearance.style(Meaning::Dim)))
        .collect();
    if let Some(change) = atlases.files.folder.difference(snapshot) {
        let (words, meaning) = match &change.bar {
            Some(bar) => (format!("NOT LOADED: {bar} (])"), Meaning::Error),
            None => change.description(),
        };
        let rows = wrap(&words, cells).into_iter();
        let mut rows: Vec<Line> = rows
            .map(|row| Line::styled(row, appearance.style(meaning)))
            .collect();
        rows.push(Line::default());
        lines.splice(0..0, rows);
    }
    frame.render_widget(Paragraph::new(lines), inner);
}

/// Paints a panel with its title. Returns the area of its content.
fn draw_panel(
    frame: &mut Frame,
    area: Rect,
    (title, hint): (&str, &str),
    focus: Focus,
    appearance: Appearance,
) -> Rect {
    let room = usize::from(area.width).saturating_sub(4);
    let title = clip(&format!(" {title} "), room, appearance);
    let hint = match hint {
        "" => String::new(),
        hint => format!("{} {hint}", appearance.mark(Mark::Bullet)),
    };
    let hint = clip(&hint, room.saturating_sub(width(&title)), appearance);
    let title = Line::from(vec![
        Span::styled(title, appearance.style(Meaning::Title)),
        Span::styled(hint, appearance.style(Meaning::Dim)),
    ]);
    let block = appearance.panel(focus).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// Paints a list around its selected row. Only the visible rows are built.
fn draw_rows(
    frame: &mut Frame,
    area: Rect,
    (place, count): (usize, usize),
    focus: Focus,
    appearance: Appearance,
    row: impl Fn(usize, usize) -> Line<'static>,
) {
    let (visible, cells) = (usize::from(area.height), usize::from(area.width));
    let top = place
        .saturating_sub(visible / 2)
        .min(count.saturating_sub(visible));
    let lines = (top..count.min(top + visible)).map(|at| {
        let chosen = at == place;
        let mark = if chosen { "> " } else { "  " };
        let mut line = row(at, cells.saturating_sub(2));
        line.spans.insert(0, Span::raw(mark));
        match (chosen, focus) {
            (true, Focus::Here) => highlighted(line, appearance),
            (true, Focus::Elsewhere) => line.style(appearance.style(Meaning::SelectedIdle)),
            (false, _) => line,
        }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn pane_focus(atlases: &AtlasScreen, pane: AtlasPane) -> Focus {
    Focus::from(atlases.pane == pane && atlases.focus_depth == FocusDepth::List)
}

fn draw_session(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let focus = Focus::from(atlases.pane == AtlasPane::Session);
    let Some((at, session)) = session::selected_session(atlases, snapshot) else {
        let inner = draw_panel(frame, area, ("Session", ""), focus, appearance);
        let words = "No active session.";
        frame.render_widget(Line::styled(words, appearance.style(Meaning::Dim)), inner);
        return;
    };
    let title = format!("{} {}", one_line(&session.agent), session.id);
    let many = snapshot.sessions.len();
    let hint = format!("{} of {many}, < > ", at + 1);
    let inner = draw_panel(frame, area, (&title, &hint), focus, appearance);
    let lines = session::session_lines(session, snapshot, usize::from(inner.width), appearance);
    let top = if focus == Focus::Here { atlases.top } else { 0 };
    draw_text(frame, inner, lines, top, appearance);
}

/// Paints the lines from the line `top` on. The last row shows how many lines are below.
fn draw_text(
    frame: &mut Frame,
    area: Rect,
    lines: Vec<Line<'static>>,
    top: usize,
    appearance: Appearance,
) {
    let visible = usize::from(area.height);
    let top = top.min(lines.len().saturating_sub(visible));
    let below = lines.len().saturating_sub(top + visible);
    let mut shown: Vec<Line> = lines.into_iter().skip(top).take(visible).collect();
    if below > 0
        && let Some(last) = shown.last_mut()
    {
        let words = format!(
            "{} {} more below",
            appearance.mark(Mark::Ellipsis),
            below + 1
        );
        *last = Line::styled(words, appearance.style(Meaning::Dim));
    }
    frame.render_widget(Paragraph::new(shown), area);
}

fn draw_stream(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let focus = pane_focus(atlases, AtlasPane::Stream);
    let watched = &snapshot.watched;
    let state = match (watched.watch, atlases.evaluation) {
        (WatchSetting::Off, _) => "not watched ".to_owned(),
        (WatchSetting::On, None) => "live, newest first ".to_owned(),
        (WatchSetting::On, Some(number)) => {
            let newer = watched.total.saturating_sub(number);
            format!("paused, +{newer} newer, g: newest ")
        }
    };
    let inner = draw_panel(frame, area, ("Evaluations", &state), focus, appearance);
    if watched.evaluations.is_empty() {
        let text = "No request since this screen was opened. New requests appear here, with the \
            checkpoints evaluated and fired.\nPress i to test a request without an agent.";
        let rows = wrap(text, usize::from(inner.width)).into_iter();
        let lines: Vec<Line> = rows
            .map(|line| Line::styled(line, appearance.style(Meaning::Dim)))
            .collect();
        frame.render_widget(Paragraph::new(lines), inner);
        return;
    }
    let place = (
        atlases.evaluation_index(snapshot),
        watched.evaluations.len(),
    );
    draw_rows(frame, inner, place, focus, appearance, |at, cells| {
        let line = watched
            .evaluations
            .get(at)
            .map(|evaluated| evaluation_row(evaluated, cells, appearance));
        line.unwrap_or_default()
    });
}

fn evaluation_row(
    evaluated: &WatchedEvaluation,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let (came, meaning) = outcome_text(&evaluated.outcome);
    let counts = explanation_lines::counts_text(evaluated.counts);
    let fired = if evaluated.counts.0 > 0 {
        Meaning::Waiting
    } else {
        Meaning::Dim
    };
    let (agent_cells, counted) = if cells >= 60 { (14, 16) } else { (0, 16) };
    let room = cells.saturating_sub(9 + agent_cells + counted + 2);
    // The subject takes all the space that the result leaves, so that it is not cut while cells stay empty.
    let asked = one_line(&evaluated.account.subject);
    let spare = room.saturating_sub(width(&came));
    let column = (room * 5 / 8).max(10).min(room);
    let subject = width(&asked).min(spare).max(column);
    let rest = room.saturating_sub(subject);
    Line::from(vec![
        Span::styled(
            format!("{} ", evaluated.at.time_of_day()),
            appearance.style(Meaning::Dim),
        ),
        Span::raw(fit(&one_line(&evaluated.agent), agent_cells, appearance)),
        Span::raw(" "),
        Span::styled(
            fit(&asked, subject, appearance),
            appearance.style(Meaning::Strong),
        ),
        Span::raw(" "),
        Span::styled(fit(&counts, counted, appearance), appearance.style(fired)),
        Span::styled(clip(&came, rest, appearance), appearance.style(meaning)),
    ])
}

/// Describes the result of an evaluation.
pub(super) fn outcome_text(came: &EvaluationOutcome) -> (String, Meaning) {
    match came {
        EvaluationOutcome::Allowed => ("allowed".to_owned(), Meaning::Passed),
        EvaluationOutcome::Held(gates) => {
            let gates: Vec<_> = gates.iter().map(ToString::to_string).collect();
            (format!("HELD {}", gates.join(" ")), Meaning::Waiting)
        }
        EvaluationOutcome::Denied(reason) => {
            (format!("DENIED {}", one_line(reason)), Meaning::Denied)
        }
        EvaluationOutcome::Waiting => ("HELD".to_owned(), Meaning::Waiting),
    }
}

fn draw_problems(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let focus = pane_focus(atlases, AtlasPane::Problems);
    let problems = atlases.problems(snapshot);
    let inner = draw_panel(frame, area, ("Problems", "] next "), focus, appearance);
    if problems.is_empty() {
        let words = "No problems in the loaded Atlases or the files.";
        frame.render_widget(
            Line::styled(words, appearance.style(Meaning::Passed)),
            inner,
        );
        return;
    }
    let place = (atlases.problem, problems.len());
    draw_rows(frame, inner, place, focus, appearance, |at, cells| {
        let Some((head, message, meaning)) = problems.get(at).map(super::AtlasProblem::row_texts)
        else {
            return Line::default();
        };
        let head = clip(&head, cells * 3 / 5, appearance);
        let rest = clip(
            &format!("  {message}"),
            cells.saturating_sub(width(&head)),
            appearance,
        );
        Line::from(vec![
            Span::styled(head, appearance.style(meaning)),
            Span::raw(rest),
        ])
    });
}

/// Returns the title and the lines of the details.
fn selected_details(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    cells: usize,
    appearance: Appearance,
) -> (String, Vec<Line<'static>>) {
    let found = match atlases.pane {
        AtlasPane::Tree | AtlasPane::Session => {
            part_details::selected_part_lines(atlases, snapshot, cells, appearance)
        }
        AtlasPane::Stream => atlases.selected_evaluation(snapshot).map(|evaluated| {
            let (words, meaning) = outcome_text(&evaluated.outcome);
            let mut lines =
                explanation_lines::render_account(&evaluated.account, cells, appearance);
            lines.insert(
                1,
                Line::styled(format!("result: {words}"), appearance.style(meaning)),
            );
            let title = format!(
                "{} {}",
                evaluated.at.time_of_day(),
                one_line(&evaluated.account.subject)
            );
            (title, lines)
        }),
        AtlasPane::Problems => atlases
            .problems(snapshot)
            .get(atlases.problem)
            .map(|problem| {
                (
                    problem.row_texts().0,
                    problem.report_lines(cells, appearance),
                )
            }),
    };
    found.unwrap_or_default()
}

/// Returns the lines of the details, for scrolling and for copying.
pub(super) fn detail_lines(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    cells: usize,
) -> Vec<Line<'static>> {
    selected_details(atlases, snapshot, cells, Appearance::default()).1
}

fn draw_details(
    atlases: &AtlasScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let cells = usize::from(area.width).saturating_sub(4);
    let (title, lines) = selected_details(atlases, snapshot, cells, appearance);
    let focus = Focus::from(atlases.focus_depth == FocusDepth::Chosen);
    let hint = match atlases.focus_depth {
        FocusDepth::List if lines.is_empty() => "",
        FocusDepth::Chosen => "Esc back ",
        FocusDepth::List if atlases.pane == AtlasPane::Tree && atlases.row.item.is_none() => "",
        FocusDepth::List => "Enter to open ",
    };
    let title = if title.is_empty() {
        "Nothing selected".to_owned()
    } else {
        title
    };
    let inner = draw_panel(frame, area, (&title, hint), focus, appearance);
    draw_text(frame, inner, lines, atlases.top, appearance);
}

/// Returns the largest scroll offset of the details.
pub(super) fn max_scroll(atlases: &AtlasScreen, snapshot: &RuntimeSnapshot) -> usize {
    let all = split_areas(atlases, snapshot, atlases.area);
    let (area, lines) = match atlases.pane {
        AtlasPane::Session => {
            let cells = usize::from(all.session.width).saturating_sub(4);
            let lines = session::selected_session(atlases, snapshot).map(|(_, summary)| {
                session::session_lines(summary, snapshot, cells, Appearance::default()).len()
            });
            (all.session, lines.unwrap_or(0))
        }
        AtlasPane::Tree | AtlasPane::Stream | AtlasPane::Problems => {
            let cells = usize::from(all.chosen.width).saturating_sub(4);
            (all.chosen, detail_lines(atlases, snapshot, cells).len())
        }
    };
    lines.saturating_sub(usize::from(area.height).saturating_sub(2))
}
