//! The questions, group by group. Painted as one long sheet of which the part with the focus shows.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};
use ratatui_textarea::TextArea;

use super::super::field::{Field, Input, Standing};
use super::super::{GateDialog, Pane, Spot};
use crate::atlas::document::ResponseType;
use crate::base::text::{Lines, one_line, visible};
use crate::console::cells::{coordinate, fit, width, wrap};
use crate::console::theme::{Focus, Look, Mark, Meaning};
use crate::engine::answer::Rule;

/// Most rows a text field grows to.
const MOST_ROWS: usize = 6;

/// A part of the sheet.
pub(super) enum Piece<'a> {
    /// Lines as they are.
    Lines(Vec<Line<'static>>),
    /// A text field in its box.
    Editor(&'a TextArea<'static>, Focus, u16),
    /// A short text field at the end of a line.
    Inline(Line<'static>, &'a TextArea<'static>, Focus),
}

impl Piece<'_> {
    fn height(&self) -> u16 {
        match self {
            Self::Lines(lines) => coordinate(lines.len()),
            Self::Editor(_, _, rows) => rows + 2,
            Self::Inline(..) => 1,
        }
    }
}

/// Below this height blank lines are left out.
const ROOMY: u16 = 12;

/// Paints the questions, and tells what lies out of sight.
pub(super) fn draw(dialog: &GateDialog, frame: &mut Frame, area: Rect, look: Look) -> &'static str {
    let roomy = area.height >= ROOMY;
    let cells = usize::from(area.width);
    let mut pieces = Vec::new();
    let mut spotlight = None;
    let mut group = None;
    for (at, field) in dialog.form.fields.iter().enumerate() {
        let start = pieces.len();
        if group != Some(field.gate) {
            group = Some(field.gate);
            pieces.push(Piece::Lines(group_head(dialog, field.gate, cells, look)));
            if roomy {
                pieces.push(Piece::Lines(vec![Line::default()]));
            }
        }
        let here = dialog.pane == Pane::Form && dialog.form.focus == Spot::Field(at);
        let focus = Focus::from(here);
        question(dialog, field, at, focus, cells, look, &mut pieces);
        if here {
            spotlight = Some(start..pieces.len());
        }
        pieces.push(Piece::Lines(vec![Line::default()]));
    }
    // On a button the last question shows, which is next to it.
    let spotlight = spotlight.unwrap_or(pieces.len().saturating_sub(1)..pieces.len());
    paint(&pieces, &spotlight, frame, area, look)
}

/// Paints pieces one below the other, scrolled so that those in `spotlight` are on screen, and
/// tells what lies out of sight.
pub(super) fn paint(
    pieces: &[Piece],
    spotlight: &std::ops::Range<usize>,
    frame: &mut Frame,
    area: Rect,
    look: Look,
) -> &'static str {
    let mut tops = vec![0_u16];
    for piece in pieces {
        let last = tops.last().copied().unwrap_or(0);
        tops.push(last.saturating_add(piece.height()));
    }
    let top_of = |at: usize| tops.get(at).copied().unwrap_or(0);
    let total = top_of(pieces.len());
    let sheet_area = Rect::new(0, 0, area.width, total.max(area.height));
    let mut sheet = Buffer::empty(sheet_area);
    for (at, piece) in pieces.iter().enumerate() {
        let place = Rect::new(0, top_of(at), area.width, piece.height());
        match piece {
            Piece::Lines(lines) => {
                for (line, row) in lines.iter().zip(place.rows()) {
                    line.render(row, &mut sheet);
                }
            }
            Piece::Editor(editor, focus, _) => {
                paint_editor(editor, *focus, place, &mut sheet, look);
            }
            Piece::Inline(label, editor, focus) => {
                paint_inline(label, editor, *focus, place, &mut sheet, look);
            }
        }
    }
    let (first, end) = (top_of(spotlight.start), top_of(spotlight.end));
    // The end of the focused piece is kept on screen, and its beginning even more so.
    let scroll = end.saturating_sub(area.height).min(first);
    let buffer = frame.buffer_mut();
    for y in 0..area.height.min(total.saturating_sub(scroll)) {
        for x in 0..area.width {
            if let (Some(from), Some(to)) = (
                sheet.cell((x, y + scroll)),
                buffer.cell_mut((area.x + x, area.y + y)),
            ) {
                *to = from.clone();
            }
        }
    }
    let hidden = total.saturating_sub(scroll).saturating_sub(area.height);
    match (scroll > 0, hidden > 1) {
        (true, true) => "more above and below",
        (true, false) => "more above",
        (false, true) => "more below",
        (false, false) => "",
    }
}

fn paint_inline(
    label: &Line<'static>,
    editor: &TextArea<'static>,
    focus: Focus,
    place: Rect,
    sheet: &mut Buffer,
    look: Look,
) {
    const CELLS: u16 = 6;
    let meaning = match focus {
        Focus::Here => Meaning::Key,
        Focus::Elsewhere => Meaning::Dim,
    };
    label.render(place, sheet);
    let at = coordinate(label.width()).min(place.width.saturating_sub(CELLS + 2));
    sheet.set_string(place.x + at, place.y, "[", look.style(meaning));
    sheet.set_string(place.x + at + CELLS + 1, place.y, "]", look.style(meaning));
    let inner = Rect::new(place.x + at + 1, place.y, CELLS, 1);
    paint_text(editor, focus, inner, sheet);
}

fn paint_editor(
    editor: &TextArea<'static>,
    focus: Focus,
    place: Rect,
    sheet: &mut Buffer,
    look: Look,
) {
    let block: Block = look.panel(focus);
    let inner = block.inner(place);
    block.render(place, sheet);
    paint_text(editor, focus, inner, sheet);
}

/// The text itself; the cursor only where the focus is.
fn paint_text(editor: &TextArea<'static>, focus: Focus, inner: Rect, sheet: &mut Buffer) {
    match focus {
        Focus::Here => editor.render(inner, sheet),
        Focus::Elsewhere => {
            let mut still = editor.clone();
            still.set_cursor_style(Style::new());
            still.render(inner, sheet);
        }
    }
}

fn group_head(dialog: &GateDialog, gate: usize, cells: usize, look: Look) -> Vec<Line<'static>> {
    let Some(gate) = dialog.held.gates.get(gate) else {
        return Vec::new();
    };
    let id = one_line(gate.origin.id());
    let kind = one_line(gate.origin.kind());
    let used = width(&id) + width(&kind) + 4;
    let rule = look.mark(Mark::Rule).repeat(cells.saturating_sub(used));
    let mut lines = vec![Line::from(vec![
        Span::styled(id, look.style(Meaning::Waiting)),
        Span::styled(format!("  {kind} "), look.style(Meaning::Dim)),
        Span::styled(format!(" {rule}"), look.style(Meaning::Border)),
    ])];
    let why = wrap(&lines_of(&gate.why), cells);
    lines.extend(
        why.into_iter()
            .map(|row| Line::styled(row, look.style(Meaning::Dim))),
    );
    lines
}

fn question<'a>(
    dialog: &GateDialog,
    field: &'a Field,
    at: usize,
    focus: Focus,
    cells: usize,
    look: Look,
    pieces: &mut Vec<Piece<'a>>,
) {
    let mut head = vec![question_head(field, at, focus, look)];
    let indented = |text: &str, meaning| {
        let style = look.style(meaning);
        let rows = wrap(&lines_of(text), cells.saturating_sub(2)).into_iter();
        rows.map(move |row| Line::styled(format!("  {row}"), style))
            .collect::<Vec<_>>()
    };
    head.extend(indented(field.question.text(), Meaning::Strong));
    if let Some(hint) = field.question.hint() {
        head.extend(indented(&format!("hint: {hint}"), Meaning::Dim));
    }
    let mut tail = Vec::new();
    match &field.input {
        Input::Text(area) => {
            pieces.push(Piece::Lines(head));
            pieces.push(Piece::Editor(area, focus, rows_of(area, cells)));
        }
        Input::Line(area) => {
            pieces.push(Piece::Lines(head));
            pieces.push(Piece::Editor(area, focus, 1));
        }
        Input::Choice(choice) => {
            head.push(choice_line(*choice, focus, look));
            pieces.push(Piece::Lines(head));
        }
    }
    tail.extend(rule_lines(field, cells, look));
    for problem in &dialog.problems {
        if problem.gate == field.gate && problem.question == field.question.id() {
            for rule in &problem.rules {
                tail.extend(indented(&format!("! not taken: {rule}"), Meaning::Error));
            }
        }
    }
    pieces.push(Piece::Lines(tail));
}

/// The first line of a question: its number and what kind of answer it wants.
fn question_head(field: &Field, at: usize, focus: Focus, look: Look) -> Line<'static> {
    let mark = match focus {
        Focus::Here => "> ",
        Focus::Elsewhere => "  ",
    };
    let needed = if field.question.required() {
        "required"
    } else {
        "optional"
    };
    let kind = match field.question.response_type() {
        ResponseType::Boolean => "yes/no",
        other @ (ResponseType::Text
        | ResponseType::Acknowledgment
        | ResponseType::Choice
        | ResponseType::Number
        | ResponseType::Json) => other.as_str(),
    };
    let sensitive = if field.question.sensitive() {
        ", sensitive: only a hash is kept"
    } else {
        ""
    };
    Line::from(vec![
        Span::styled(format!("{mark}Q{} ", at + 1), look.style(Meaning::Key)),
        Span::styled(
            format!("{kind}, {needed}{sensitive}"),
            look.style(Meaning::Dim),
        ),
    ])
}

fn choice_line(choice: Option<bool>, focus: Focus, look: Look) -> Line<'static> {
    let option = |name: &str, chosen: bool| {
        let mark = if chosen { Mark::Chosen } else { Mark::Unchosen };
        let meaning = match (focus, chosen) {
            (Focus::Here, true) => Meaning::ButtonFocused,
            (Focus::Here, false) => Meaning::Key,
            (Focus::Elsewhere, true) => Meaning::Strong,
            (Focus::Elsewhere, false) => Meaning::Text,
        };
        Span::styled(format!("{} {name}", look.mark(mark)), look.style(meaning))
    };
    let mut spans = vec![
        Span::raw("  "),
        option("yes", choice == Some(true)),
        Span::raw("   "),
        option("no", choice == Some(false)),
    ];
    if focus == Focus::Here {
        spans.push(Span::styled(
            "   Left/Right choose",
            look.style(Meaning::Dim),
        ));
    }
    Line::from(spans)
}

/// How many rows a text takes, within limits.
pub(super) fn rows_of(area: &TextArea<'static>, cells: usize) -> u16 {
    let room = cells.saturating_sub(4).max(1);
    let rows: usize = area.lines().iter().map(|line| width(line) / room + 1).sum();
    coordinate(rows.clamp(1, MOST_ROWS))
}

/// Every rule with its state, as many on a row as fit.
fn rule_lines(field: &Field, cells: usize, look: Look) -> Vec<Line<'static>> {
    let tolerated = field.standing() == Standing::Tolerated;
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut used = usize::MAX;
    for rule in field.judged().rules {
        let span = rule_span(field, &rule, look);
        let needs = width(&span.content) + 2;
        if used.saturating_add(needs) > cells {
            lines.push(Line::default());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            line.spans.push(Span::raw("  "));
            line.spans.push(span);
            used += needs;
        }
    }
    if tolerated {
        let text = fit(
            "  passes all the same, with a warning on record",
            cells,
            look,
        );
        lines.push(Line::styled(
            text.trim_end().to_owned(),
            look.style(Meaning::Warning),
        ));
    }
    lines
}

/// Text of a steward, who may have written it in several lines.
fn lines_of(text: &str) -> String {
    visible(text.trim_end(), Lines::Keep).text
}

/// A rule with its state. Nothing is called broken before anything was answered.
fn rule_span(field: &Field, rule: &Rule, look: Look) -> Span<'static> {
    let (mark, meaning) = match (field.is_touched(), rule.kept) {
        (false, _) => (Mark::Bullet, Meaning::Dim),
        (true, true) => (Mark::Kept, Meaning::Passed),
        (true, false) => (Mark::Broken, Meaning::Warning),
    };
    let text = format!("{} {}", look.mark(mark), one_line(&rule.text));
    Span::styled(text, look.style(meaning))
}
