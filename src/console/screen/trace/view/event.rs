//! Painting of one full event.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::event_detail::{self, EventForm};
use super::super::open_session::{EventRead, OpenSession};
use super::super::reads::HashProof;
use super::super::{TracePane, TraceScreen};
use super::{centred_top, style_selected_row};
use crate::base::text::one_line;
use crate::console::text_cells::{clip, counted, fit, width, wrap};
use crate::console::theme::{Appearance, Focus, Glyphs, Mark, Meaning};
use crate::trace::outline::FoldState;

/// Width of a label at the outermost level, in cells.
const LABEL: usize = 10;

pub(super) fn draw(
    trace: &TraceScreen,
    opened: &OpenSession,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let pane = Focus::from(trace.pane == TracePane::Event);
    let form = match opened.detail.form {
        EventForm::Words => "",
        EventForm::Raw => "raw ",
    };
    let title = format!(" Event {} {form}", opened.place);
    let mut block = appearance
        .panel(pane)
        .title(Line::styled(title, appearance.style(Meaning::Title)));
    if opened.detail.escaped > 0 && opened.full_event().is_some() {
        let words = format!(
            " ! {} written out ",
            counted(opened.detail.escaped, "hidden character")
        );
        let words = Line::styled(words, appearance.style(Meaning::Warning));
        block = block.title_bottom(words.right_aligned());
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let cells = usize::from(inner.width);
    match opened.event() {
        EventRead::UnderWay => {
            let words = if opened.total() == 0 {
                "no event"
            } else {
                "reading..."
            };
            frame.render_widget(Line::styled(words, appearance.style(Meaning::Dim)), inner);
        }
        EventRead::Gone => {
            let words = format!(
                "Event {} was removed from the record: cra numbers events without gaps.",
                opened.place
            );
            let rows = wrap(&words, cells).into_iter();
            let rows: Vec<Line> = rows
                .map(|row| Line::styled(row, appearance.style(Meaning::Error)))
                .collect();
            frame.render_widget(Paragraph::new(rows), inner);
        }
        EventRead::Here(_) => {
            let small = inner.height < 8;
            let chain = BreakPosition::of(trace, opened);
            let below = if small { 0 } else { 2 };
            let parts = [Constraint::Fill(1), Constraint::Length(below)];
            let [top, bottom] = Layout::vertical(parts).areas(inner);
            if small && pane == Focus::Elsewhere {
                draw_short(opened, chain, frame, top, appearance);
            } else {
                draw_lines(opened, chain, pane, frame, top, appearance);
            }
            frame.render_widget(
                Paragraph::new(footer_lines(trace, opened, cells, appearance)),
                bottom,
            );
        }
    }
}

/// Position of the event relative to the break that the last check found in its chain.
#[derive(Clone, Copy)]
enum BreakPosition {
    Sound,
    Broken,
}

impl BreakPosition {
    fn of(trace: &TraceScreen, opened: &OpenSession) -> Self {
        let broken = trace.broken_at(opened.id());
        if broken.is_some_and(|at| opened.place >= at) {
            Self::Broken
        } else {
            Self::Sound
        }
    }

    /// Describes a hash verification in one word. From a break on, nothing is proven, even if the hash
    /// matches.
    fn word(self, proof: &HashProof) -> (&'static str, Meaning) {
        match (proof, self) {
            (HashProof::Fails(_), _) => ("WRONG", Meaning::Denied),
            (HashProof::Holds, Self::Sound) => ("OK", Meaning::Passed),
            (HashProof::Holds, Self::Broken) => ("unproven", Meaning::Warning),
            (HashProof::Unknown(_), _) => ("pruned", Meaning::Dim),
        }
    }
}

fn draw_lines(
    opened: &OpenSession,
    chain: BreakPosition,
    pane: Focus,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let cells = usize::from(area.width);
    let lines = opened.detail.lines();
    let visible = usize::from(area.height);
    let top = centred_top(opened.detail.at, lines.len(), visible);
    let shown = lines.iter().enumerate().skip(top).take(visible);
    let shown: Vec<Line> = shown
        .map(|(at, line)| {
            let focus = Focus::from(at == opened.detail.at && pane == Focus::Here);
            style_selected_row(row(line, chain, cells, appearance), focus, pane, appearance)
        })
        .collect();
    frame.render_widget(Paragraph::new(shown), area);
}

fn row(
    line: &event_detail::EventLine,
    chain: BreakPosition,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let fold = match (line.fold, appearance.glyphs) {
        (None, _) => "",
        (Some(FoldState::Open), Glyphs::Rounded) => "▾ ",
        (Some(FoldState::Open), Glyphs::Ascii) => "v ",
        (Some(FoldState::Closed), Glyphs::Rounded) => "▸ ",
        (Some(FoldState::Closed), Glyphs::Ascii) => "> ",
    };
    let indent = " ".repeat((line.depth * 2).min(cells / 2));
    let label = if line.depth == 0 && !line.label.is_empty() {
        fit(&format!("{fold}{}", line.label), LABEL, appearance)
    } else if line.label.is_empty() {
        String::new()
    } else {
        let fold = if fold.is_empty() { "  " } else { fold };
        format!("{fold}{}  ", clip(&line.label, cells / 2, appearance))
    };
    let (proof, proven) = match &line.proof {
        None => (String::new(), Meaning::Text),
        Some(proof) => {
            let (word, meaning) = chain.word(proof);
            (format!(" {word}"), meaning)
        }
    };
    let used = width(&indent) + width(&label) + width(&proof);
    let value = fit(&line.value, cells.saturating_sub(used), appearance);
    Line::from(vec![
        Span::raw(indent),
        Span::styled(label, appearance.style(Meaning::Label)),
        Span::raw(value),
        Span::styled(proof, appearance.style(proven)),
    ])
}

/// Returns the lines below the event: the path of the selected value, a hash error, and the legend of
/// letters.
fn footer_lines(
    trace: &TraceScreen,
    opened: &OpenSession,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let line = opened.detail.line();
    let path = line.map_or("", |line| line.path.as_str());
    let wrong = line.and_then(|line| match &line.proof {
        Some(HashProof::Fails(what)) => Some(one_line(what)),
        Some(HashProof::Unknown(what)) => Some((*what).to_owned()),
        Some(HashProof::Holds) | None => None,
    });
    let first = match wrong {
        Some(what) => Line::styled(
            fit(&what, cells, appearance),
            appearance.style(Meaning::Warning),
        ),
        None if trace.pane != TracePane::Event => {
            Line::styled("Enter: details", appearance.style(Meaning::Dim))
        }
        None if opened.detail.form == EventForm::Words => Line::styled(
            clip("R: raw record, with its field names", cells, appearance),
            appearance.style(Meaning::Dim),
        ),
        None => Line::from(vec![
            Span::styled("path ", appearance.style(Meaning::Dim)),
            Span::styled(
                clip(path, cells.saturating_sub(5), appearance),
                appearance.style(Meaning::Key),
            ),
        ]),
    };
    vec![first, bookmark_line(trace, opened, cells, appearance)]
}

fn bookmark_line(
    trace: &TraceScreen,
    opened: &OpenSession,
    cells: usize,
    appearance: Appearance,
) -> Line<'static> {
    let here = trace
        .bookmarks
        .iter()
        .filter(|(_, (id, _))| id == opened.id());
    let here: Vec<_> = here
        .map(|(letter, (_, at))| format!("{letter} {at}"))
        .collect();
    let words = if here.is_empty() {
        "no bookmarks (m: mark)".to_owned()
    } else {
        format!("bookmarks {}", here.join("  "))
    };
    Line::styled(
        clip(&words, cells, appearance),
        appearance.style(Meaning::Dim),
    )
}

/// Paints the event in four rows: its type, its hash verification, and its first details.
fn draw_short(
    opened: &OpenSession,
    chain: BreakPosition,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) {
    let Some(full_event) = opened.full_event() else {
        return;
    };
    let cells = usize::from(area.width);
    let event = &full_event.event;
    let (link, own) = (chain.word(&full_event.link), chain.word(&full_event.own));
    let label = |text: &'static str| Span::styled(text, appearance.style(Meaning::Label));
    let message = crate::trace::summary::sentence(event);
    let hashes = Line::from(vec![
        label("prev "),
        Span::raw(format!(
            "{}{} ",
            event.previous_hash.short(8),
            appearance.mark(Mark::Ellipsis)
        )),
        Span::styled(link.0, appearance.style(link.1)),
        label("  hash "),
        Span::raw(format!(
            "{}{} ",
            event.hash.short(8),
            appearance.mark(Mark::Ellipsis)
        )),
        Span::styled(own.0, appearance.style(own.1)),
        Span::styled(
            format!("  {}", event.timestamp),
            appearance.style(Meaning::Dim),
        ),
    ]);
    let mut lines = vec![
        Line::styled(
            clip(&message, cells, appearance),
            appearance.style(Meaning::Strong),
        ),
        hashes,
    ];
    let details = opened.detail.lines().iter().filter(|line| line.depth == 1);
    let details: Vec<_> = details
        .map(|line| format!("{} {}", line.label, line.value))
        .collect();
    let details = details.join("  ");
    let cut: String = details.chars().take(cells * 4).collect();
    let rows = crate::console::text_cells::wrap_within(&cut, cells, 2, appearance).into_iter();
    lines.extend(rows.map(|row| Line::styled(row, appearance.style(Meaning::Dim))));
    frame.render_widget(Paragraph::new(lines), area);
}
