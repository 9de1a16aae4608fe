//! The steps after the questions: the review, the reason to deny, the wait, and the end.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::field::{Field, text_of};
use super::super::step::{CHALLENGE, Care, Review, care};
use super::super::{DenySpot, GateDialog, ReviewSpot, Verb};
use super::form::{Piece, paint, rows_of};
use super::{outcome_style, verb_words};
use crate::base::text::one_line;
use crate::console::cells::{clip, fit, wrap};
use crate::console::screen::queue::records;
use crate::console::theme::{Focus, Look, Mark, Meaning};
use crate::engine::command::Decided;

/// A label and what belongs to it.
fn labelled(label: &str, text: &str, cells: usize, look: Look) -> Vec<Line<'static>> {
    let rows = wrap(text, cells.saturating_sub(10)).into_iter().enumerate();
    rows.map(|(at, row)| {
        let label = if at == 0 { label } else { "" };
        Line::from(vec![
            Span::styled(fit(label, 10, look), look.style(Meaning::Label)),
            Span::raw(row),
        ])
    })
    .collect()
}

fn answer_line(field: &Field, at: usize, cells: usize, look: Look) -> Line<'static> {
    let raw = match field.raw() {
        serde_json::Value::Null => "(not answered)".to_owned(),
        serde_json::Value::Bool(true) => "yes".to_owned(),
        serde_json::Value::Bool(false) => "no".to_owned(),
        serde_json::Value::String(text) if text.trim().is_empty() => "(not answered)".to_owned(),
        serde_json::Value::String(text) => one_line(text.trim()),
        other => one_line(&other.to_string()),
    };
    Line::from(vec![
        Span::styled(
            fit(&format!("Q{}", at + 1), 10, look),
            look.style(Meaning::Label),
        ),
        Span::raw(clip(&raw, cells.saturating_sub(10), look)),
    ])
}

/// What will be written, and the last button.
pub(super) fn draw_review(
    dialog: &GateDialog,
    review: &Review,
    frame: &mut Frame,
    area: Rect,
    look: Look,
) -> &'static str {
    let cells = usize::from(area.width);
    let held = &dialog.held;
    let challenged = care(held) == Care::Challenged;
    let method = if challenged {
        "console+challenge"
    } else {
        "console"
    };
    let what = format!(
        "{} for {}, session {}",
        one_line(held.action()),
        one_line(&held.agent),
        held.session
    );
    let by = format!("{} by {method}", one_line(&dialog.around.operator));
    let mut lines = labelled("PASS", &what, cells, look);
    lines.extend(labelled("WRITES", &records(held).join(", "), cells, look));
    lines.extend(labelled("BY", &by, cells, look));
    let fields = dialog.form.fields.iter().enumerate();
    lines.extend(fields.map(|(at, field)| answer_line(field, at, cells, look)));
    lines.push(Line::default());
    let mut pieces = vec![Piece::Lines(lines)];
    if challenged {
        let hash = held.request_hash.short(CHALLENGE);
        let focus = Focus::from(review.spot == ReviewSpot::Challenge);
        let mark = match focus {
            Focus::Here => "> ",
            Focus::Elsewhere => "  ",
        };
        let label = Line::from(vec![
            Span::styled(mark, look.style(Meaning::Key)),
            Span::raw("Type "),
            Span::styled(hash, look.style(Meaning::Strong)),
            Span::raw(format!(", the first {CHALLENGE} of the request hash  ")),
        ]);
        pieces.push(Piece::Inline(label, &review.typed, focus));
    }
    let end = pieces.len();
    paint(&pieces, &(end.saturating_sub(1)..end), frame, area, look)
}

/// The reason to deny.
pub(super) fn draw_deny(
    dialog: &GateDialog,
    spot: DenySpot,
    frame: &mut Frame,
    area: Rect,
    look: Look,
) -> &'static str {
    let cells = usize::from(area.width);
    let needed = if care(&dialog.held) == Care::Direct {
        "optional"
    } else {
        "required"
    };
    let mut lines = labelled("DENY", &one_line(dialog.held.action()), cells, look);
    lines.extend(labelled(
        "BY",
        &one_line(&dialog.around.operator),
        cells,
        look,
    ));
    lines.push(Line::default());
    lines.push(Line::from(vec![
        Span::styled("Reason", look.style(Meaning::Strong)),
        Span::styled(
            format!(", {needed}: the agent is told, and it is recorded"),
            look.style(Meaning::Dim),
        ),
    ]));
    let reason = &dialog.form.reason;
    let focus = Focus::from(spot == DenySpot::Reason);
    let rows = rows_of(reason, cells).max(3);
    let pieces = [Piece::Lines(lines), Piece::Editor(reason, focus, rows)];
    paint(&pieces, &(1..2), frame, area, look)
}

/// The wait for the disk.
pub(super) fn draw_writing(verb: Verb, frame: &mut Frame, area: Rect, look: Look) {
    let lines = vec![
        Line::styled("writing...", look.style(Meaning::Waiting)),
        Line::from(format!("waiting until {} are on disk", verb_words(verb))),
    ];
    frame.render_widget(Paragraph::new(lines), area);
}

/// How it ended, and what had been typed.
pub(super) fn draw_settled(
    dialog: &GateDialog,
    decided: Option<&Decided>,
    frame: &mut Frame,
    area: Rect,
    look: Look,
) {
    let cells = usize::from(area.width);
    let mut lines = Vec::new();
    match decided {
        Some(decided) => {
            let by = match &decided.by {
                Some(by) => format!(" by {}", one_line(by)),
                None => ": nobody decided".to_owned(),
            };
            let word = decided.outcome.as_str().to_uppercase();
            lines.push(Line::from(vec![
                Span::styled(word, outcome_style(decided.outcome, look)),
                Span::raw(format!("{by} at {}", decided.at.time_of_day())),
            ]));
            if !decided.detail.is_empty() {
                let detail = wrap(&one_line(&decided.detail), cells);
                lines.extend(detail.into_iter().map(Line::from));
            }
        }
        None => lines.push(Line::from(format!("{} is no longer held", dialog.held.id))),
    }
    if dialog.form.is_touched() {
        lines.push(Line::default());
        let rule = look.mark(Mark::Rule);
        let head = format!("{rule}{rule} what you had typed, not sent {rule}{rule}");
        lines.push(Line::styled(head, look.style(Meaning::Dim)));
        for (at, field) in dialog.form.fields.iter().enumerate() {
            lines.extend(labelled(
                &format!("Q{}", at + 1),
                &typed(field),
                cells,
                look,
            ));
        }
        let reason = one_line(&text_of(&dialog.form.reason));
        if !reason.is_empty() {
            lines.extend(labelled("REASON", &reason, cells, look));
        }
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn typed(field: &Field) -> String {
    match field.raw() {
        serde_json::Value::String(text) => one_line(&text),
        serde_json::Value::Bool(true) => "yes".to_owned(),
        serde_json::Value::Bool(false) => "no".to_owned(),
        _ => String::new(),
    }
}
