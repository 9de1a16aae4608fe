//! Views of the steps other than answering: claim, denial, wait, changed request, and settled request.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::Value;

use super::super::changed_request::{ChangedRequest, RequestDiffSide};
use super::super::claim_question::ClaimQuestion;
use super::super::field::AnswerField;
use super::super::form::AnswerForm;
use super::super::scroll::{SheetSize, hidden_rows_hint};
use super::super::step::PassCare;
use super::super::text_editing::text_of;
use super::super::{DecisionKind, DenyFocus, GateDialog};
use super::form::{FormPiece, ScrollTarget, paint, row_count};
use super::question::labelled_lines;
use super::review::member_lines;
use crate::base::text::one_line;
use crate::console::text_cells::{clip, wrap};
use crate::console::theme::{Appearance, Focus, Mark, Meaning, outcome_meaning};
use crate::engine::command::{HeldOutcome, SettledRequest};
use crate::engine::held::HeldSubject;

/// Paints the question about another operator's claim, and returns the hint about hidden rows.
pub(super) fn draw_claimed(
    dialog: &GateDialog,
    over: &ClaimQuestion,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) -> &'static str {
    let cells = usize::from(area.width);
    let verb = match over.verb {
        DecisionKind::Pass => "pass",
        DecisionKind::Deny => "deny",
    };
    let since = dialog.held.claim.as_ref().map(|claim| claim.at);
    let since = since.filter(|_| !dialog.is_batch());
    let since = since.map_or_else(String::new, |at| format!(" since {}", at.time_of_day()));
    let sentence = format!("{}{since}", over.by);
    let mut lines = labelled_lines("CLAIMED", &sentence, cells, appearance);
    lines.push(Line::default());
    let ask = format!(
        "This operator may be about to decide. A claim does not block you: you can {verb} the request, \
         and the record names you."
    );
    lines.extend(wrap(&ask, cells).into_iter().map(Line::from));
    frame.render_widget(Paragraph::new(lines), area);
    ""
}

/// Paints the denial step, and returns the hint about hidden rows.
pub(super) fn draw_deny(
    dialog: &GateDialog,
    spot: DenyFocus,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) -> &'static str {
    let cells = usize::from(area.width);
    let needed = if dialog.required_care() == PassCare::Direct {
        "optional"
    } else {
        "required"
    };
    let writes = match &dialog.held.subject {
        HeldSubject::Action(_) => "the denial and the blocked action",
        HeldSubject::SessionStart | HeldSubject::Moment(_) => "the denial",
    };
    let mut lines = labelled_lines("DENY", &dialog.request_summary(), cells, appearance);
    if dialog.is_batch() {
        lines = member_lines(dialog, cells, appearance);
    }
    let by = one_line(&dialog.decision_context.operator);
    lines.extend(labelled_lines("BY", &by, cells, appearance));
    lines.extend(labelled_lines("WRITES", writes, cells, appearance));
    lines.push(Line::default());
    lines.push(Line::from(vec![
        Span::styled("Reason", appearance.style(Meaning::Strong)),
        Span::styled(
            format!(", {needed}: sent to the agent and recorded"),
            appearance.style(Meaning::Dim),
        ),
    ]));
    let reason = &dialog.form.reason;
    let focus = Focus::from(spot == DenyFocus::Reason);
    let rows = row_count(reason, cells).max(3);
    let pieces = [
        FormPiece::Lines(lines),
        FormPiece::Editor(reason, focus, rows),
    ];
    paint(
        &pieces,
        &ScrollTarget::select(1..2),
        frame,
        area,
        appearance,
    )
}

/// Paints the wait for the disk.
pub(super) fn draw_writing(
    verb: DecisionKind,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) -> &'static str {
    let what = match verb {
        DecisionKind::Pass => "the pass and its records",
        DecisionKind::Deny => "the denial and its reason",
    };
    let lines = vec![
        Line::styled("writing...", appearance.style(Meaning::Waiting)),
        Line::from(format!("waiting until {what} are on disk")),
    ];
    frame.render_widget(Paragraph::new(lines), area);
    ""
}

/// Paints the difference from the version before, and returns the hint about hidden rows.
pub(super) fn draw_changed(
    changed: &ChangedRequest,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) -> &'static str {
    let (mut lines, rest) = changed_lines(changed, usize::from(area.width), appearance);
    let place = sheet_size(&lines, &rest, area);
    let top = changed.sheet.top.min(place.max_scroll());
    lines.extend(rest.into_iter().skip(top).take(place.room));
    frame.render_widget(Paragraph::new(lines), area);
    hidden_rows_hint(top, place.max_scroll())
}

/// Returns the size of the difference as painted.
pub(super) fn sheet(changed: &ChangedRequest, area: Rect, appearance: Appearance) -> SheetSize {
    let (head, rest) = changed_lines(changed, usize::from(area.width), appearance);
    sheet_size(&head, &rest, area)
}

fn sheet_size(head: &[Line], rest: &[Line], area: Rect) -> SheetSize {
    SheetSize {
        rows: rest.len(),
        room: usize::from(area.height).saturating_sub(head.len()),
        cells: usize::from(area.width),
    }
}

/// Builds the head about a changed request, and the lines of the difference below it.
fn changed_lines(
    changed: &ChangedRequest,
    cells: usize,
    appearance: Appearance,
) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
    let sentence = "The request changed. What you typed before does not count.";
    let mut head: Vec<Line> = wrap(sentence, cells)
        .into_iter()
        .map(|row| Line::styled(row, appearance.style(Meaning::Warning)))
        .collect();
    head.push(Line::default());
    let typed = typed_lines(&changed.typed, cells, appearance);
    // The difference comes first. The typed answers follow if there is room, or by scrolling.
    let differs = changed.lines.iter().map(|(side, text)| {
        let (mark, meaning) = match side {
            RequestDiffSide::Before => ("- ", Meaning::Denied),
            RequestDiffSide::Now => ("+ ", Meaning::Passed),
            RequestDiffSide::Both => ("  ", Meaning::Dim),
            RequestDiffSide::Gap => ("...", Meaning::Dim),
        };
        let text = format!("{mark}{text}");
        Line::styled(clip(&text, cells, appearance), appearance.style(meaning))
    });
    (head, differs.chain(typed).collect())
}

/// Paints how the request was settled, and the answers typed but not sent.
pub(super) fn draw_settled(
    dialog: &GateDialog,
    decided: Option<&SettledRequest>,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
) -> &'static str {
    let cells = usize::from(area.width);
    let mut lines = Vec::new();
    match decided {
        Some(decided) => {
            let at = decided.at.time_of_day();
            let how = match (&decided.by, decided.outcome) {
                (Some(by), _) => format!(" by {} at {at}", one_line(by)),
                // A request that expires without a decision is denied at that moment.
                (None, HeldOutcome::Expired) => {
                    format!(
                        " at {at} {} DENIED: no answer",
                        appearance.mark(Mark::Arrow)
                    )
                }
                (
                    None,
                    HeldOutcome::Passed
                    | HeldOutcome::Denied
                    | HeldOutcome::Withdrawn
                    | HeldOutcome::Voided,
                ) => format!(" at {at}: no decision"),
            };
            let word = decided.outcome.as_str().to_uppercase();
            let meaning = outcome_meaning(decided.outcome);
            lines.push(Line::from(vec![
                Span::styled(word, appearance.style(meaning)),
                Span::raw(how),
            ]));
            if !decided.detail.is_empty() {
                let detail = wrap(&one_line(&decided.detail), cells);
                lines.extend(detail.into_iter().map(Line::from));
            }
        }
        None => lines.push(Line::from(format!("{} is no longer held", dialog.held.id))),
    }
    lines.extend(typed_lines(&dialog.form, cells, appearance));
    frame.render_widget(Paragraph::new(lines), area);
    ""
}

/// Builds the lines with the answers that were typed but not sent.
fn typed_lines(form: &AnswerForm, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if !form.is_touched() {
        return lines;
    }
    lines.push(Line::default());
    let rule = appearance.mark(Mark::Rule);
    let head = format!("{rule}{rule} your input, not sent {rule}{rule}");
    lines.push(Line::styled(head, appearance.style(Meaning::Dim)));
    for (at, field) in form.fields.iter().enumerate() {
        let label = format!("Q{}", at + 1);
        lines.extend(labelled_lines(
            &label,
            &typed_text(field),
            cells,
            appearance,
        ));
    }
    for (label, area) in [("REASON", &form.reason), ("WHY", &form.justification)] {
        let text = one_line(&text_of(area));
        if !text.is_empty() {
            lines.extend(labelled_lines(label, &text, cells, appearance));
        }
    }
    lines
}

fn typed_text(field: &AnswerField) -> String {
    match field.raw() {
        Value::String(text) => one_line(&text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => String::new(),
    }
}
