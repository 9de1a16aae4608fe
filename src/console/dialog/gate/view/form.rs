//! View of the questions, group by group. Painted as one long sheet, scrolled to the part with the
//! focus.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};
use ratatui_textarea::TextArea;

use super::super::{FormFocus, GateDialog, GatePane};
use super::question;
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::console::names::trigger_words;
use crate::console::text_cells::{coordinate, width, wrap};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};

/// Maximum rows of a text field.
const MOST_ROWS: usize = 8;

/// Part of the sheet.
pub(super) enum FormPiece<'a> {
    /// Plain lines.
    Lines(Vec<Line<'static>>),
    /// Text field in a box.
    Editor(&'a TextArea<'static>, Focus, u16),
    /// Text field in a box, with a line above it.
    Titled(Line<'static>, &'a TextArea<'static>, Focus, u16),
    /// Short text field with a width in cells, a line before it and a line after it.
    Inline(
        Line<'static>,
        &'a TextArea<'static>,
        Focus,
        u16,
        Line<'static>,
    ),
}

impl FormPiece<'_> {
    pub(super) fn height(&self) -> u16 {
        match self {
            Self::Lines(lines) => coordinate(lines.len()),
            Self::Editor(_, _, rows) => rows + 2,
            Self::Titled(_, _, _, rows) => rows + 3,
            Self::Inline(..) => 1,
        }
    }
}

/// Part of the sheet that has to be on screen.
pub(super) struct ScrollTarget {
    /// Pieces that belong together.
    pub(super) pieces: std::ops::Range<usize>,
    /// Rows among them that keys act on.
    pub(super) focal: Option<FocusedRows>,
}

impl ScrollTarget {
    /// Selects these pieces, without rows that keys act on.
    pub(super) fn select(pieces: std::ops::Range<usize>) -> Self {
        Self {
            pieces,
            focal: None,
        }
    }
}

/// Rows that keys act on.
pub(super) struct FocusedRows {
    /// Index of the piece with the rows.
    pub(super) piece: usize,
    /// First of the rows, within the piece.
    pub(super) row: u16,
    /// Number of rows.
    pub(super) rows: u16,
}

/// Minimum height for blank lines; below, they are left out.
const MIN_HEIGHT_FOR_BLANKS: u16 = 12;

/// Paints the questions, and returns the hint about hidden rows.
pub(super) fn draw(
    dialog: &GateDialog,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) -> &'static str {
    let roomy = area.height >= MIN_HEIGHT_FOR_BLANKS;
    let cells = usize::from(area.width);
    let mut pieces = Vec::new();
    let mut scroll_target = None;
    let mut group = None;
    for (at, field) in dialog.form.fields.iter().enumerate() {
        let start = pieces.len();
        if group != Some(field.gate) {
            group = Some(field.gate);
            pieces.push(FormPiece::Lines(group_head(
                dialog, field.gate, cells, appearance,
            )));
            if roomy {
                pieces.push(FormPiece::Lines(vec![Line::default()]));
            }
        }
        let here = dialog.pane == GatePane::Form && dialog.form.focus == FormFocus::Field(at);
        let focus = Focus::from(here);
        let focal = question::add(dialog, (at, field), focus, cells, appearance, &mut pieces);
        if here {
            scroll_target = Some(ScrollTarget {
                pieces: start..pieces.len(),
                focal: Some(focal),
            });
        }
        pieces.push(FormPiece::Lines(vec![Line::default()]));
    }
    // If a button has the focus, the last question is shown: it is next to the buttons.
    let last = pieces.len().saturating_sub(1)..pieces.len();
    let scroll_target = scroll_target.unwrap_or_else(|| ScrollTarget::select(last));
    paint(&pieces, &scroll_target, frame, area, appearance)
}

/// Paints the pieces below each other, scrolled to show those in `spotlight`, and returns the hint
/// about hidden rows.
pub(super) fn paint(
    pieces: &[FormPiece],
    scroll_target: &ScrollTarget,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
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
        paint_piece(piece, place, &mut sheet, appearance);
    }
    let (first, end) = (
        top_of(scroll_target.pieces.start),
        top_of(scroll_target.pieces.end),
    );
    // Priorities, lowest first: the end of the focused piece, its beginning, the row that keys act on.
    let mut scroll = end.saturating_sub(area.height).min(first);
    if let Some(focal) = &scroll_target.focal {
        let top = top_of(focal.piece).saturating_add(focal.row);
        let bottom = top.saturating_add(focal.rows);
        scroll = scroll.max(bottom.saturating_sub(area.height)).min(top);
    }
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

fn paint_piece(piece: &FormPiece<'_>, place: Rect, sheet: &mut Buffer, appearance: Appearance) {
    match piece {
        FormPiece::Lines(lines) => {
            for (line, row) in lines.iter().zip(place.rows()) {
                line.render(row, sheet);
            }
        }
        FormPiece::Editor(editor, focus, _) => {
            paint_editor(editor, *focus, place, sheet, appearance);
        }
        FormPiece::Titled(label, editor, focus, _) => {
            label.render(place, sheet);
            let below = Rect {
                y: place.y + 1,
                height: place.height.saturating_sub(1),
                ..place
            };
            paint_editor(editor, *focus, below, sheet, appearance);
        }
        FormPiece::Inline(label, editor, focus, cells, after) => {
            let at = paint_inline(label, editor, (*focus, *cells), place, sheet, appearance);
            let rest = Rect::new(at, place.y, place.right().saturating_sub(at), 1);
            after.render(rest, sheet);
        }
    }
}

/// Paints a field within a line, and returns the column after it.
pub(super) fn paint_inline(
    label: &Line<'static>,
    editor: &TextArea<'static>,
    (focus, cells): (Focus, u16),
    place: Rect,
    sheet: &mut Buffer,
    appearance: Appearance,
) -> u16 {
    let meaning = match focus {
        Focus::Here => Meaning::Key,
        Focus::Elsewhere => Meaning::Dim,
    };
    label.render(place, sheet);
    let cells = cells.min(place.width.saturating_sub(4));
    let at = coordinate(label.width()).min(place.width.saturating_sub(cells + 2));
    sheet.set_string(place.x + at, place.y, "[", appearance.style(meaning));
    sheet.set_string(
        place.x + at + cells + 1,
        place.y,
        "]",
        appearance.style(meaning),
    );
    let inner = Rect::new(place.x + at + 1, place.y, cells, 1);
    paint_text(editor, focus, inner, sheet);
    place.x + at + cells + 3
}

fn paint_editor(
    editor: &TextArea<'static>,
    focus: Focus,
    place: Rect,
    sheet: &mut Buffer,
    appearance: Appearance,
) {
    let block: Block = appearance.panel(focus);
    let inner = block.inner(place);
    block.render(place, sheet);
    paint_text(editor, focus, inner, sheet);
}

/// Paints the text; the cursor is visible only with the focus.
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

fn group_head(
    dialog: &GateDialog,
    gate: usize,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let Some(gate) = dialog.held.gates.get(gate) else {
        return Vec::new();
    };
    let id = one_line(&gate.name());
    let kind = one_line(&trigger_words(gate.origin.kind()));
    let used = width(&id) + width(&kind) + 4;
    let rule = appearance
        .mark(Mark::Rule)
        .repeat(cells.saturating_sub(used));
    let mut lines = vec![Line::from(vec![
        Span::styled(id, appearance.style(Meaning::Waiting)),
        Span::styled(format!("  {kind} "), appearance.style(Meaning::Dim)),
        Span::styled(format!(" {rule}"), appearance.style(Meaning::Border)),
    ])];
    let reason = wrap(&escape_lines(&gate.why), cells);
    lines.extend(
        reason
            .into_iter()
            .map(|row| Line::styled(row, appearance.style(Meaning::Dim))),
    );
    lines
}

/// Makes a steward's text safe to show, and keeps its line breaks.
pub(super) fn escape_lines(text: &str) -> String {
    sanitize(text.trim_end(), LineFeeds::Keep).text
}

/// Returns the number of rows that a text takes, within limits.
pub(super) fn row_count(area: &TextArea<'static>, cells: usize) -> u16 {
    let numbers = usize::from(area.line_number_width());
    let room = cells.saturating_sub(4 + numbers).max(1);
    let rows: usize = area.lines().iter().map(|line| width(line) / room + 1).sum();
    coordinate(rows.clamp(1, MOST_ROWS))
}
