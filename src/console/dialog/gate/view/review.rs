//! The review: exactly what will be written, and what has to be shown before it is.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::{Map, Value};

use super::super::GateDialog;
use super::super::step::{CHALLENGE, Proof, Review, ReviewSpot, care, shown_action};
use super::form::{Piece, paint, rows_of};
use super::question::labelled;
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::cells::{coordinate, width, wrap};
use crate::console::theme::{Focus, Look, Meaning};
use crate::engine::approval::{self, Approver};
use crate::engine::held::Gate;
use crate::trace::event::Payload;

/// What the record has in the place of a sensitive answer.
const HASHED: &str = "sha256, salted";

/// Paints it, and tells what lies out of sight.
pub(super) fn draw(
    dialog: &GateDialog,
    review: &Review,
    frame: &mut Frame,
    area: Rect,
    look: Look,
    now: Timestamp,
) -> &'static str {
    let cells = usize::from(area.width);
    let proofs = proof_pieces(dialog, review, cells, look);
    let needs: u16 = proofs.iter().map(Piece::height).sum();
    let [sheet, proof] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(needs)]).areas(area);
    let lines = sheet_lines(dialog, cells, look, now);
    let room = usize::from(sheet.height);
    let most = lines.len().saturating_sub(room);
    let top = review.top.min(most);
    let shown: Vec<Line> = lines.into_iter().skip(top).take(room).collect();
    frame.render_widget(Paragraph::new(shown), sheet);
    let here = |spot: &Proof| review.spot == ReviewSpot::Proof(*spot);
    let focused = review.proofs.iter().position(here).unwrap_or(0);
    paint(&proofs, &(focused..focused + 1), frame, proof, look);
    match (top > 0, top < most) {
        (true, true) => "Up/Down on a button: more above and below",
        (true, false) => "Up: more above",
        (false, true) => "Down on a button: more below",
        (false, false) => "",
    }
}

/// What is passed, by whom, at what pace, and every record of it.
fn sheet_lines(
    dialog: &GateDialog,
    cells: usize,
    look: Look,
    now: Timestamp,
) -> Vec<Line<'static>> {
    let held = &dialog.held;
    let what = format!(
        "{} for {}, session {}",
        one_line(held.action()),
        one_line(&held.agent),
        held.session
    );
    let method = care(held).method();
    let by = format!("{}, {method}", one_line(&dialog.around.operator));
    let mut lines = labelled("PASS", &what, cells, look);
    lines.extend(labelled("BY", &by, cells, look));
    lines.extend(labelled("PACE", &dialog.pace(now), cells, look));
    lines.push(Line::styled("WRITES", look.style(Meaning::Label)));
    for record in records(dialog) {
        lines.extend(record_lines(&record, cells, look));
    }
    lines
}

/// Every record that passing it writes about its gates, as the engine makes them.
fn records(dialog: &GateDialog) -> Vec<Payload> {
    let held = &dialog.held;
    let why = dialog.form.why_text();
    let operator = Approver {
        name: &dialog.around.operator,
        method: care(held).method(),
        why: Some(why.as_str()).filter(|why| !why.is_empty() && !dialog.form.justifies()),
    };
    let agent = format!("agent {}", held.agent);
    let mut responses: Vec<Payload> = Vec::new();
    let mut passes = Vec::new();
    for (at, gate) in held.gates.iter().enumerate() {
        let answered = held.answered.contains_key(&at);
        let answers = (!answered).then(|| answers(dialog, at, gate));
        let by = if answered {
            Approver {
                name: &agent,
                method: "agent",
                why: None,
            }
        } else {
            operator
        };
        if let Some(answers) = &answers {
            responses.push(approval::response(gate, answers.clone(), by).into());
        }
        passes.extend(approval::approval(held, gate, answers.as_ref(), by));
        passes.push(approval::passed(gate, gate.effects.inject.clone(), by).into());
    }
    responses.extend(passes);
    responses
}

/// The answers to a gate as they are recorded.
fn answers(dialog: &GateDialog, at: usize, gate: &Gate) -> Map<String, Value> {
    let fields = dialog.form.fields.iter().filter(|field| field.gate == at);
    let answers = fields.filter_map(|field| {
        let answer = field.judged().answer?;
        let answer = if field.question.sensitive() {
            Value::from(HASHED)
        } else {
            answer
        };
        Some((field.question.id().to_owned(), answer))
    });
    debug_assert!(!gate.questions.is_empty(), "a gate asks something");
    answers.collect()
}

fn record_lines(record: &Payload, cells: usize, look: Look) -> Vec<Line<'static>> {
    let name = format!("  {}", record.event_type());
    let fields = record.fields();
    let told: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", one_line(&value.to_string())))
        .collect();
    let mut lines = vec![Line::styled(name, look.style(Meaning::Strong))];
    let rows = wrap(&told.join(", "), cells.saturating_sub(4)).into_iter();
    lines.extend(rows.map(|row| Line::raw(format!("    {row}"))));
    lines
}

/// What has to be typed.
fn proof_pieces<'a>(
    dialog: &'a GateDialog,
    review: &'a Review,
    cells: usize,
    look: Look,
) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    for proof in &review.proofs {
        let focus = Focus::from(review.spot == ReviewSpot::Proof(*proof));
        let mark = match focus {
            Focus::Here => "> ",
            Focus::Elsewhere => "  ",
        };
        let mark = Span::styled(mark, look.style(Meaning::Key));
        let strong = |text: String| Span::styled(text, look.style(Meaning::Strong));
        match proof {
            Proof::Why => {
                let said = "Why may it pass?".to_owned();
                let more = Span::styled("  no answer says so yet", look.style(Meaning::Dim));
                let area = &dialog.form.why;
                pieces.push(Piece::Titled(
                    Line::from(vec![mark, strong(said), more]),
                    area,
                    focus,
                    rows_of(area, cells).min(3),
                ));
            }
            Proof::Hash => {
                let hash = dialog.held.request_hash.short(CHALLENGE);
                let label = Line::from(vec![
                    mark,
                    Span::raw("Type "),
                    strong(hash),
                    Span::raw(format!(", the first {CHALLENGE} of the request hash  ")),
                ]);
                pieces.push(Piece::Inline(
                    label,
                    &review.hash,
                    focus,
                    6,
                    Line::default(),
                ));
            }
            Proof::Action => {
                let action = shown_action(&dialog.held);
                let wide = coordinate(width(&action).clamp(6, 40) + 2);
                let label = Line::from(vec![
                    mark,
                    Span::raw("Type "),
                    strong(action),
                    Span::raw(", the action  "),
                ]);
                let after = Line::default();
                pieces.push(Piece::Inline(label, &review.action, focus, wide, after));
            }
        }
    }
    pieces
}
