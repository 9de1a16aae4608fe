//! Overview of the whole session on one line.

use ratatui::text::Span;

use super::super::TraceScreen;
use super::super::open_session::OpenSession;
use super::event_tree::meaning;
use crate::console::theme::{Appearance, Glyphs, Meaning};
use crate::trace::outline::EventMarks;

/// Returns the session in at most `cells` cells: `!` denied or lapsed, `W` a gate waited, `*` signed, `X`
/// missing or broken. The cursor is reversed.
pub(super) fn line(
    trace: &TraceScreen,
    opened: &OpenSession,
    cells: usize,
    appearance: Appearance,
) -> Vec<Span<'static>> {
    let total = opened.total();
    let count = (cells as u64).min(total).max(1);
    let broken = trace.broken_at(opened.id());
    let quiet = match appearance.glyphs {
        Glyphs::Rounded => '·',
        Glyphs::Ascii => '.',
    };
    let cell = |number: u64| {
        let from = number * total / count;
        let until = ((number + 1) * total / count).max(from + 1);
        let marks = opened.outline.marks_in(from, until);
        let here = (from..until).contains(&opened.place);
        let is_broken = broken.is_some_and(|at| (from..until).contains(&at));
        let (c, cell_meaning) = if is_broken || marks.has_any(EventMarks::MISSING) {
            ('X', Meaning::Denied)
        } else if marks.has_any(EventMarks::DENY | EventMarks::LAPSED) {
            ('!', meaning(marks))
        } else if marks.has_any(EventMarks::SIGNED) {
            ('*', Meaning::Passed)
        } else if marks.has_any(EventMarks::WAIT) {
            ('W', Meaning::Waiting)
        } else if from < opened.outline.len() {
            (quiet, Meaning::Dim)
        } else {
            (' ', Meaning::Dim)
        };
        let style = if here {
            Meaning::Selected
        } else {
            cell_meaning
        };
        Span::styled(c.to_string(), appearance.style(style))
    };
    (0..count).map(cell).collect()
}
