//! View of one question: its text, its input, and the state of every rule.

use ratatui::text::{Line, Span};

use super::super::GateDialog;
use super::super::field::{AnswerField, AnswerInput, AnswerStatus};
use super::super::picker::OptionPicker;
use super::form::{FocusedRows, FormPiece, escape_lines, row_count};
use crate::atlas::document::{InvalidAnswerAction, ResponseType};
use crate::base::text::one_line;
use crate::console::text_cells::{clip, coordinate, fit, width, wrap};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::engine::answer::AnswerRule;

/// Width of a field for a word, and of one for a number, in cells.
const WORD_FIELD_CELLS: u16 = 16;
const NUMBER_FIELD_CELLS: u16 = 20;

/// Maximum number of options listed at once.
const MOST_OPTIONS: usize = 7;

/// Adds the pieces of a question, and returns the rows that keys act on.
pub(super) fn add<'a>(
    dialog: &GateDialog,
    (at, field): (usize, &'a AnswerField),
    focus: Focus,
    cells: usize,
    appearance: Appearance,
    pieces: &mut Vec<FormPiece<'a>>,
) -> FocusedRows {
    let mut head = heading(field, at, focus, cells, appearance);
    head.extend(indented(
        field.question.text(),
        Meaning::Strong,
        cells,
        appearance,
    ));
    if let Some(hint) = field.question.hint() {
        let hint = format!("hint: {hint}");
        head.extend(indented(&hint, Meaning::Dim, cells, appearance));
    }
    if focus == Focus::Here && field.can_skeleton() {
        let text = "  F4 fills in the fields of the schema";
        head.push(Line::styled(text, appearance.style(Meaning::Dim)));
    }
    pieces.push(FormPiece::Lines(head));
    let mut focal = FocusedRows {
        piece: pieces.len(),
        row: 0,
        rows: 1,
    };
    pieces.push(match &field.input {
        AnswerInput::Text(area) => {
            let rows = row_count(area, cells);
            focal.rows = rows + 2;
            FormPiece::Editor(area, focus, rows)
        }
        AnswerInput::Line(area) => {
            let label = Line::from(vec![
                Span::raw("  type "),
                Span::styled("understood", appearance.style(Meaning::Strong)),
                Span::raw(" "),
            ]);
            FormPiece::Inline(
                label,
                area,
                focus,
                WORD_FIELD_CELLS,
                rule_sign(field, appearance),
            )
        }
        AnswerInput::Number(area) => {
            let label = Line::raw("  number ");
            FormPiece::Inline(label, area, focus, NUMBER_FIELD_CELLS, Line::default())
        }
        AnswerInput::YesNo(choice) => FormPiece::Lines(vec![yes_no(*choice, focus, appearance)]),
        AnswerInput::Pick(picker) => {
            let (lines, row) = options(picker, field.question.options(), focus, cells, appearance);
            focal.row = coordinate(row);
            FormPiece::Lines(lines)
        }
    });
    pieces.push(FormPiece::Lines(status_lines(
        dialog, field, cells, appearance,
    )));
    focal
}

/// Builds lines of text, indented below the number of their question.
fn indented(
    text: &str,
    meaning: Meaning,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let rows = wrap(&escape_lines(text), cells.saturating_sub(2)).into_iter();
    rows.map(|row| Line::styled(format!("  {row}"), appearance.style(meaning)))
        .collect()
}

/// Builds the lines below an answer: the state of every rule, and the problems of the answer sent
/// last.
fn status_lines(
    dialog: &GateDialog,
    field: &AnswerField,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let mut tail = match &field.input {
        AnswerInput::Text(_) | AnswerInput::Number(_) | AnswerInput::YesNo(_) => {
            rule_lines(field, cells, appearance)
        }
        AnswerInput::Pick(_) => vec![chosen_line(field, cells, appearance)],
        // The line of the field shows it.
        AnswerInput::Line(_) => Vec::new(),
    };
    tail.extend(tolerance_note(field, appearance));
    if let Some(name) = &field.question.validation().custom_validator {
        let bullet = appearance.mark(Mark::Bullet);
        let text = format!("{bullet} validator `{name}` checks the answer");
        tail.extend(indented(&one_line(&text), Meaning::Dim, cells, appearance));
    }
    for problem in &dialog.problems {
        if problem.gate == field.gate && problem.question == field.question.id() {
            for rule in &problem.rules {
                let text = format!("! rejected: {rule}");
                tail.extend(indented(&text, Meaning::Error, cells, appearance));
            }
        }
    }
    tail
}

/// Builds the first line of a question: its number, its answer type, and the effect of an invalid
/// answer.
fn heading(
    field: &AnswerField,
    at: usize,
    focus: Focus,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
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
    let number = format!("{mark}Q{} ", at + 1);
    let what = format!("{kind}, {needed}{sensitive}");
    let invalid = on_invalid(field);
    let used = width(&number) + width(&what);
    let mut spans = vec![
        Span::styled(number, appearance.style(Meaning::Key)),
        Span::styled(what, appearance.style(Meaning::Dim)),
    ];
    if used + width(&invalid) + 2 <= cells {
        let gap = cells - used - width(&invalid);
        spans.push(Span::raw(" ".repeat(gap)));
        spans.push(Span::styled(invalid, appearance.style(Meaning::Dim)));
        return vec![Line::from(spans)];
    }
    // Without room on the first line, the effect of an invalid answer gets its own rows.
    let mut rows = vec![Line::from(spans)];
    rows.extend(indented(&invalid, Meaning::Dim, cells, appearance));
    rows
}

/// Text for the effect of an invalid answer.
fn on_invalid(field: &AnswerField) -> String {
    match field.question.on_invalid() {
        InvalidAnswerAction::Retry => match field.question.max_retries() {
            None => "must be valid to continue".to_owned(),
            Some(most) => format!("must be valid, at most {most} retries"),
        },
        InvalidAnswerAction::Block => "if invalid: DENIED".to_owned(),
        InvalidAnswerAction::WarnAndContinue => "if invalid: passes with a warning".to_owned(),
        InvalidAnswerAction::LogAndContinue => "if invalid: passes, logged".to_owned(),
    }
}

fn yes_no(choice: Option<bool>, focus: Focus, appearance: Appearance) -> Line<'static> {
    let option = |name: &str, chosen: bool| {
        let mark = if chosen { Mark::Chosen } else { Mark::Unchosen };
        let meaning = match (focus, chosen) {
            (Focus::Here, true) => Meaning::ButtonFocused,
            (Focus::Here, false) => Meaning::Key,
            (Focus::Elsewhere, true) => Meaning::Strong,
            (Focus::Elsewhere, false) => Meaning::Text,
        };
        Span::styled(
            format!("{} {name}", appearance.mark(mark)),
            appearance.style(meaning),
        )
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
            appearance.style(Meaning::Dim),
        ));
    }
    Line::from(spans)
}

/// Builds a window of the options around the cursor, and returns the cursor's row in it.
fn options(
    picker: &OptionPicker,
    options: &[String],
    focus: Focus,
    cells: usize,
    appearance: Appearance,
) -> (Vec<Line<'static>>, usize) {
    let listed = picker.listed(options);
    let mut lines = Vec::new();
    let mut cursor_row = 0;
    if !picker.filter().is_empty() {
        let count = format!("   {} of {}, Esc lists all", listed.len(), options.len());
        lines.push(Line::from(vec![
            Span::styled("  / ", appearance.style(Meaning::Key)),
            Span::styled(
                picker.filter().to_owned(),
                appearance.style(Meaning::Strong),
            ),
            Span::styled(count, appearance.style(Meaning::Dim)),
        ]));
    } else if focus == Focus::Here {
        let text = "  Enter or number: choose; type: filter";
        lines.push(Line::styled(text, appearance.style(Meaning::Dim)));
    }
    let most = listed.len().saturating_sub(MOST_OPTIONS);
    let top = picker.at().saturating_sub(MOST_OPTIONS / 2).min(most);
    for (row, at) in listed.iter().enumerate().skip(top).take(MOST_OPTIONS) {
        let chosen = picker.chosen() == Some(*at);
        let under = focus == Focus::Here && row == picker.at();
        let mark = if chosen { Mark::Chosen } else { Mark::Unchosen };
        let meaning = match (under, chosen) {
            (true, _) => Meaning::Selected,
            (false, true) => Meaning::Strong,
            (false, false) => Meaning::Text,
        };
        let number = match at {
            0..9 => (at + 1).to_string(),
            _ => " ".to_owned(),
        };
        let cursor = if under { ">" } else { " " };
        if under {
            cursor_row = lines.len();
        }
        let option = options.get(*at).map(|option| one_line(option));
        let text = format!(
            "{} {number} {}",
            appearance.mark(mark),
            option.unwrap_or_default()
        );
        lines.push(Line::from(vec![
            Span::styled(format!("  {cursor} "), appearance.style(Meaning::Key)),
            Span::styled(
                clip(&text, cells.saturating_sub(4), appearance),
                appearance.style(meaning),
            ),
        ]));
    }
    let hidden = listed.len().saturating_sub(MOST_OPTIONS);
    if hidden > 0 {
        let text = format!("      {hidden} more: Up/Down, or type to filter");
        lines.push(Line::styled(text, appearance.style(Meaning::Dim)));
    }
    if listed.is_empty() {
        let text = format!("    no option contains `{}`", picker.filter());
        lines.push(Line::styled(
            clip(&text, cells, appearance),
            appearance.style(Meaning::Warning),
        ));
    }
    (lines, cursor_row)
}

/// Builds the line with the chosen option, which may be outside the window or filtered out.
fn chosen_line(field: &AnswerField, cells: usize, appearance: Appearance) -> Line<'static> {
    if let Some(option) = field.raw().as_str() {
        let text = format!(
            "  {} chosen: {}",
            appearance.mark(Mark::Kept),
            one_line(option)
        );
        return Line::styled(
            clip(&text, cells, appearance),
            appearance.style(Meaning::Passed),
        );
    }
    let text = format!("  {} nothing chosen yet", appearance.mark(Mark::Bullet));
    Line::styled(text, appearance.style(Meaning::Dim))
}

/// Builds the sign after a field that says whether its only rule is kept.
fn rule_sign(field: &AnswerField, appearance: Appearance) -> Line<'static> {
    let kept = field.validate().is_valid();
    match (field.is_touched(), kept) {
        (false, _) => Line::default(),
        (true, true) => Line::styled(
            appearance.mark(Mark::Kept),
            appearance.style(Meaning::Passed),
        ),
        (true, false) => {
            let text = format!("{} no match", appearance.mark(Mark::Broken));
            Line::styled(text, appearance.style(Meaning::Warning))
        }
    }
}

/// Builds the lines with the state of every rule, several per row if they fit.
fn rule_lines(field: &AnswerField, cells: usize, appearance: Appearance) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut used = usize::MAX;
    for rule in field.validate().rules {
        let (text, meaning) = rule_text(field, &rule, appearance);
        let needs = width(&text) + 2;
        if needs > cells {
            // The position of an error is at the end of the text, and must not be cut.
            let rows = wrap(&text, cells.saturating_sub(4)).into_iter().enumerate();
            lines.extend(rows.map(|(at, row)| {
                let indent = if at == 0 { "  " } else { "    " };
                Line::styled(format!("{indent}{row}"), appearance.style(meaning))
            }));
            used = usize::MAX;
            continue;
        }
        if used.saturating_add(needs) > cells {
            lines.push(Line::default());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            line.spans.push(Span::raw("  "));
            line.spans
                .push(Span::styled(text, appearance.style(meaning)));
            used += needs;
        }
    }
    lines
}

fn tolerance_note(field: &AnswerField, appearance: Appearance) -> Option<Line<'static>> {
    let text = "  invalid, but passes with a recorded warning";
    (field.status() == AnswerStatus::Tolerated)
        .then(|| Line::styled(text, appearance.style(Meaning::Warning)))
}

/// Text and meaning for the state of a rule. Before the first input, none is shown as broken.
fn rule_text(field: &AnswerField, rule: &AnswerRule, appearance: Appearance) -> (String, Meaning) {
    let (mark, meaning) = match (field.is_touched(), rule.kept) {
        (false, _) => (Mark::Bullet, Meaning::Dim),
        (true, true) => (Mark::Kept, Meaning::Passed),
        (true, false) => (Mark::Broken, Meaning::Warning),
    };
    (
        format!("{} {}", appearance.mark(mark), one_line(&rule.text)),
        meaning,
    )
}

/// Builds lines with a label in front.
pub(super) fn labelled_lines(
    label: &str,
    text: &str,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let rows = wrap(text, cells.saturating_sub(10)).into_iter().enumerate();
    rows.map(|(at, row)| {
        let label = if at == 0 { label } else { "" };
        Line::from(vec![
            Span::styled(fit(label, 10, appearance), appearance.style(Meaning::Label)),
            Span::raw(row),
        ])
    })
    .collect()
}
