//! View of the review: the exact records that will be written, and the proofs required before.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::super::GateDialog;
use super::super::planned_records::{
    PlannedAnswers, PlannedRecord, justified_by_answers, plan_records,
};
use super::super::scroll::{SheetSize, hidden_rows_hint};
use super::super::step::{CHALLENGE_CHARS, PassProof, Review, ReviewFocus, shown_action};
use super::form::{FormPiece, ScrollTarget, paint, row_count};
use super::question::labelled_lines;
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::names::{action_words, event_words, field_words};
use crate::console::text_cells::{coordinate, counted, fit, width, wrap};
use crate::console::theme::{Appearance, Focus, Meaning};
use crate::engine::approval::Approver;
use crate::engine::held::Held;

/// Minimum rows for the records, however much has to be typed.
const MIN_SHEET: u16 = 3;

/// Splits the area into the records and the proofs to type.
fn split_area(proofs: &[FormPiece<'_>], area: Rect) -> [Rect; 2] {
    let needs: u16 = proofs.iter().map(FormPiece::height).sum();
    // The records to read before signing always keep some rows.
    let needs = needs.min(area.height.saturating_sub(MIN_SHEET));
    // A blank line separates the proofs, if there is room.
    let gap = u16::from(needs > 0 && area.height > needs + 12);
    let [sheet, _, proof] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(gap),
        Constraint::Length(needs),
    ])
    .areas(area);
    [sheet, proof]
}

/// Paints the review, and returns the hint about hidden rows.
pub(super) fn draw(
    dialog: &GateDialog,
    review: &Review,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) -> &'static str {
    let cells = usize::from(area.width);
    let proofs = proof_pieces(dialog, review, cells, appearance);
    let [sheet, proof] = split_area(&proofs, area);
    let lines = sheet_lines(dialog, cells, appearance, now);
    let place = sheet_size(lines.len(), sheet);
    let top = review.sheet.top.min(place.max_scroll());
    let shown: Vec<Line> = lines.into_iter().skip(top).take(place.room).collect();
    frame.render_widget(Paragraph::new(shown), sheet);
    let here = |spot: &PassProof| review.focus == ReviewFocus::Proof(*spot);
    let focused = review.proofs.iter().position(here).unwrap_or(0);
    let scroll_target = ScrollTarget::select(focused..focused + 1);
    paint(&proofs, &scroll_target, frame, proof, appearance);
    hidden_rows_hint(top, place.max_scroll())
}

/// Returns the size of the records sheet as painted.
pub(super) fn sheet(
    dialog: &GateDialog,
    review: &Review,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) -> SheetSize {
    let cells = usize::from(area.width);
    let [sheet, _] = split_area(&proof_pieces(dialog, review, cells, appearance), area);
    sheet_size(sheet_lines(dialog, cells, appearance, now).len(), sheet)
}

fn sheet_size(rows: usize, area: Rect) -> SheetSize {
    SheetSize {
        rows,
        room: usize::from(area.height),
        cells: usize::from(area.width),
    }
}

/// Builds the sheet: the request, the operator, the pace, and every record.
fn sheet_lines(
    dialog: &GateDialog,
    cells: usize,
    appearance: Appearance,
    now: Timestamp,
) -> Vec<Line<'static>> {
    let held = &dialog.held;
    let what = dialog.request_summary();
    let method = dialog.required_care().method_text();
    let by = format!("{}, {method}", one_line(&dialog.decision_context.operator));
    let mut lines = Vec::new();
    if dialog.is_batch() {
        lines.extend(member_lines(dialog, cells, appearance));
    } else {
        let verb = if dialog.is_first_approval() {
            "APPROVE"
        } else {
            "PASS"
        };
        lines.extend(labelled_lines(verb, &what, cells, appearance));
    }
    lines.extend(labelled_lines("BY", &by, cells, appearance));
    if let Some((_, first)) = held.approval_progress() {
        let description = match first {
            None => "1 of 2: recorded; held until a second operator approves".to_owned(),
            Some(first) => format!("2 of 2: {} already approved", one_line(first)),
        };
        lines.extend(labelled_lines("APPROVAL", &description, cells, appearance));
    }
    if let Some(by) = dialog.claimed_by() {
        let description = format!("{by} claimed the request: you must confirm");
        lines.extend(labelled_lines("CLAIM", &description, cells, appearance));
    }
    if !dialog.is_batch() {
        lines.extend(labelled_lines(
            "HASH",
            &bound_hashes_text(held),
            cells,
            appearance,
        ));
    }
    for warning in dialog.form.warnings() {
        lines.extend(labelled_lines("WARNING", &warning, cells, appearance));
    }
    let records = records(dialog);
    for text in justified_by_answers(&records) {
        let description = format!("Justification (your answers): {text}");
        lines.extend(labelled_lines("WHY", &description, cells, appearance));
    }
    lines.extend(labelled_lines("PACE", &dialog.pace(now), cells, appearance));
    lines.push(Line::default());
    lines.push(Line::from(vec![
        Span::styled("WRITES", appearance.style(Meaning::Label)),
        Span::styled(
            if dialog.is_first_approval() {
                "    the agent keeps waiting"
            } else if dialog.is_batch() {
                "    for each request, saved before its agent continues"
            } else {
                "    saved before the agent continues"
            },
            appearance.style(Meaning::Dim),
        ),
    ]));
    for record in records {
        lines.extend(record_lines(&record, cells, appearance));
    }
    lines
}

/// Fields of every record of an approval that the sheet tells once, above the records.
const SHARED_FIELDS: [&str; 5] = [
    "justification_source",
    "approval_method",
    "verification_method",
    "request_hash",
    "judged_under",
];

/// Text with the hashes of the request and the Atlases that an approval is bound to.
fn bound_hashes_text(held: &Held) -> String {
    let mut under: Vec<String> = Vec::new();
    for gate in &held.gates {
        let hash = gate.atlas_hash.as_ref().map(|hash| hash.short(8));
        let description = format!("{} {}", gate.origin.atlas_id(), hash.unwrap_or_default());
        let description = one_line(description.trim());
        if !under.contains(&description) {
            under.push(description);
        }
    }
    let request = held.request_hash.short(16);
    format!("{request}, under {}", under.join(" and "))
}

/// Lists exactly the requests that are decided together.
pub(super) fn member_lines(
    dialog: &GateDialog,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let count = counted(dialog.members().len(), "request");
    let description = format!("{count}, decided and recorded one by one");
    let mut lines = labelled_lines("BATCH", &description, cells, appearance);
    for held in dialog.members() {
        let what = format!(
            "{}  hash {}  {} for {}/{}",
            held.id,
            held.request_hash.short(4),
            action_words(held),
            one_line(&held.agent),
            held.session
        );
        lines.extend(labelled_lines("", &what, cells, appearance));
    }
    lines
}

/// Lists all records that a pass writes about the gates, built by the engine.
fn records(dialog: &GateDialog) -> Vec<PlannedRecord> {
    let reason = dialog.form.justification_text();
    let operator = Approver {
        name: &dialog.decision_context.operator,
        method: dialog.required_care().method(),
        justification: Some(reason.as_str())
            .filter(|reason| !reason.is_empty() && !dialog.form.has_justification()),
        first_approver: None,
    };
    plan_records(&dialog.held, operator, |at| answers(dialog, at))
}

/// Collects the answers to a gate as they will be recorded.
fn answers(dialog: &GateDialog, at: usize) -> PlannedAnswers {
    let mut planned = PlannedAnswers::default();
    for field in dialog.form.fields.iter().filter(|field| field.gate == at) {
        planned.add(&field.question, &field.raw());
    }
    planned
}

/// Builds the lines of a record, field by field.
fn record_lines(
    record: &PlannedRecord,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    const NAME: usize = 22;
    let name = format!("  {}", event_words(&record.event_type));
    let mut lines = vec![Line::styled(name, appearance.style(Meaning::Strong))];
    let fields = record.fields.iter();
    for (name, value) in fields.filter(|(name, _)| !SHARED_FIELDS.contains(&name.as_str())) {
        let mut description = one_line(&value.to_string());
        // Each context is injected once. Only then it is known which ones the session lacks.
        if name == "injected_contexts"
            && value
                .as_array()
                .is_some_and(|contexts| !contexts.is_empty())
        {
            description.push_str(" unless the agent has them");
        }
        let rows = wrap(&description, cells.saturating_sub(NAME + 4));
        for (at, row) in rows.into_iter().enumerate() {
            let name = if at == 0 {
                field_words(name)
            } else {
                String::new()
            };
            lines.push(Line::from(vec![
                Span::styled(
                    format!("    {}", fit(&name, NAME, appearance)),
                    appearance.style(Meaning::Dim),
                ),
                Span::raw(row),
            ]));
        }
    }
    lines
}

/// Builds the inputs of the required proofs.
fn proof_pieces<'a>(
    dialog: &'a GateDialog,
    review: &'a Review,
    cells: usize,
    appearance: Appearance,
) -> Vec<FormPiece<'a>> {
    let mut pieces = Vec::new();
    for proof in &review.proofs {
        let focus = Focus::from(review.focus == ReviewFocus::Proof(*proof));
        let mark = match focus {
            Focus::Here => "> ",
            Focus::Elsewhere => "  ",
        };
        let mark = Span::styled(mark, appearance.style(Meaning::Key));
        let strong = |text: String| Span::styled(text, appearance.style(Meaning::Strong));
        match proof {
            PassProof::Why => {
                let label_text = "Justification".to_owned();
                let more = Span::styled("  (required)", appearance.style(Meaning::Dim));
                let area = &dialog.form.justification;
                pieces.push(FormPiece::Titled(
                    Line::from(vec![mark, strong(label_text), more]),
                    area,
                    focus,
                    row_count(area, cells).min(3),
                ));
            }
            PassProof::Hash => {
                let hash = dialog.held.request_hash.short(CHALLENGE_CHARS);
                let label = Line::from(vec![
                    mark,
                    Span::raw("To confirm, type "),
                    strong(hash),
                    Span::raw(" (request hash)  "),
                ]);
                pieces.push(FormPiece::Inline(
                    label,
                    &review.hash,
                    focus,
                    6,
                    Line::default(),
                ));
            }
            PassProof::Action => {
                let action = shown_action(&dialog.held);
                let wide = coordinate(width(&action).clamp(6, 40) + 2);
                let label = Line::from(vec![
                    mark,
                    Span::raw("Type "),
                    strong(action),
                    Span::raw(" (action)  "),
                ]);
                let after = Line::default();
                pieces.push(FormPiece::Inline(label, &review.action, focus, wide, after));
            }
        }
    }
    pieces
}
