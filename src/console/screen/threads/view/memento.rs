//! The memento: the stored summary, and the proposals that were held back.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::intensity_panel::thaw_condition_text;
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::console::dialog::gate::hidden_chars_text;
use crate::console::text_cells::{clip, counted, fit, wrap};
use crate::console::theme::{Appearance, Mark, Meaning};
use crate::console::thread_text::{offered_text, refused_text, unverified_text};
use crate::memento::{BaselineSource, ChangeSide, HeldProposal, KeptReason, SummaryShape, Thread};

/// Width of the labels in cells.
const LABEL: usize = 10;

/// Below this number of rows only the proposal is shown. One key shows the whole.
const FEW: u16 = 14;

/// Maximum width of a message name in cells.
const MESSAGE: usize = 40;

/// Indentation of the explanation of a comparison.
const INDENT: &str = "  ";

/// Returns the stored summary, and the changes of the newest proposal.
pub(super) fn stored_lines(
    thread: &Thread,
    place: Rect,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let cells = usize::from(place.width);
    let Some(latest) = &thread.latest else {
        return vec![Line::styled(
            "no memento yet",
            appearance.style(Meaning::Dim),
        )];
    };
    let shape = latest.shape();
    let mut rows = Vec::new();
    for (part, items) in shape.parts() {
        let dash = if part == "arc" { "" } else { "- " };
        let mut name = part.to_uppercase();
        if items.is_empty() {
            rows.push(labelled_line(&name, "none", Meaning::Dim, appearance));
        }
        for item in items {
            for row in wrapped_lines(dash, item, cells) {
                rows.push(labelled_line(&name, &row, Meaning::Text, appearance));
                name.clear();
            }
        }
    }
    if let Some(held) = thread.held_back.first() {
        rows.push(Line::default());
        rows.extend(if place.height < FEW {
            newest_proposal_short(&shape, held, cells, appearance)
        } else {
            newest_proposal_lines(thread, &shape, held, cells, appearance)
        });
    }
    rows.push(Line::default());
    rows.extend(notes(thread, &shape, cells, appearance));
    rows
}

fn labelled_line(
    name: &str,
    text: &str,
    meaning: Meaning,
    appearance: Appearance,
) -> Line<'static> {
    Line::from(vec![
        Span::styled(
            fit(name, LABEL, appearance),
            appearance.style(Meaning::Label),
        ),
        Span::styled(text.to_owned(), appearance.style(meaning)),
    ])
}

/// Wraps an item into rows. The rows after the first are indented.
fn wrapped_lines(dash: &str, item: &str, cells: usize) -> Vec<String> {
    let room = cells.saturating_sub(LABEL + dash.len()).max(2);
    let rows = wrap(&one_line(item), room).into_iter().enumerate();
    let indent = " ".repeat(dash.len());
    rows.map(|(at, row)| format!("{}{row}", if at == 0 { dash } else { &indent }))
        .collect()
}

/// Returns additional notes about the memento.
fn notes(
    thread: &Thread,
    shape: &SummaryShape,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let mut notes = Vec::new();
    let source = thread
        .turns
        .first()
        .map_or("-", |turn| source_text(turn.source));
    let etag = thread.etag().unwrap_or_default();
    let version = thread.version;
    notes.push((
        Meaning::Dim,
        format!("version {version}   etag {etag}   source {source}"),
    ));
    if let Some(text) = unverified_text(thread) {
        notes.push((Meaning::Warning, text.to_owned()));
    }
    if let Some(text) = refused_text(thread) {
        notes.push((Meaning::Warning, text));
    }
    if let Some(text) = offered_text(thread) {
        notes.push((Meaning::Waiting, text));
    }
    if thread.edited {
        let text = "edited by an operator: the next turn must follow the edit";
        notes.push((Meaning::Waiting, text.to_owned()));
    }
    if let Some(by) = &thread.drift_flagged {
        let text = format!("drift flagged by {}: counts at the next turn", one_line(by));
        notes.push((Meaning::Waiting, text));
    }
    let proposed = thread.held_back.iter().map(|held| &held.proposed);
    let hidden: usize = proposed.chain([shape]).map(hidden_in).sum();
    if hidden > 0 {
        notes.push((Meaning::Warning, hidden_chars_text(hidden)));
    }
    let rows = notes.into_iter().flat_map(|(meaning, text)| {
        let rows = wrap(&text, cells).into_iter();
        rows.map(move |row| Line::styled(row, appearance.style(meaning)))
    });
    rows.collect()
}

/// Text for the memento that the last turn started with.
fn source_text(source: BaselineSource) -> &'static str {
    match source {
        BaselineSource::RequestRef => "named by the agent",
        BaselineSource::Request => "sent by the agent",
        BaselineSource::StoredLatest => "stored by cra",
        BaselineSource::EmptySeed => "empty",
    }
}

/// Returns the number of escaped characters in a summary.
fn hidden_in(shape: &SummaryShape) -> usize {
    let texts = shape.parts().into_iter().flat_map(|(_, items)| items);
    texts
        .map(|text| sanitize(text, LineFeeds::Escape).escaped)
        .sum()
}

/// Returns the differences of the newest proposal held back.
fn newest_proposal_lines(
    thread: &Thread,
    kept: &SummaryShape,
    held: &HeldProposal,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let meaning = match held.why {
        KeptReason::AtPeak => Meaning::Frozen,
        KeptReason::OnlyAcknowledged
        | KeptReason::NothingProposed
        | KeptReason::Invalid(_)
        | KeptReason::BeforeEdit => Meaning::Waiting,
    };
    let mut rows = title(held, meaning, cells, appearance);
    // An accepted proposal keeps the lines it does not mention, so such lines do not count as different.
    let changes = kept.changes(&kept.updated_with(&held.proposed));
    if changes.is_empty() {
        rows.push(Line::styled(
            "  same as the summary",
            appearance.style(Meaning::Dim),
        ));
    }
    for change in changes {
        rows.extend(differing_lines(
            change.part,
            Some(change.side),
            &change.text,
            cells,
            appearance,
        ));
    }
    rows.extend(reasons(thread, held, cells, appearance));
    let older = thread.held_back_count.saturating_sub(1);
    if older > 0 {
        let older = counted(
            usize::try_from(older).unwrap_or(usize::MAX),
            "older proposal",
        );
        let text = format!("  and {older}: = to show");
        rows.push(Line::styled(text, appearance.style(Meaning::Dim)));
    }
    rows
}

/// Returns the newest proposal in a few rows: only the new lines.
fn newest_proposal_short(
    kept: &SummaryShape,
    held: &HeldProposal,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let changes = kept.changes(&kept.updated_with(&held.proposed));
    let mut name = "FOR LATER";
    let mut rows = Vec::new();
    for change in changes {
        let mark = match change.side {
            ChangeSide::Proposed => "+",
            ChangeSide::Kept => continue,
        };
        let text = format!("{mark} {} ", change.part.to_uppercase());
        for row in wrapped_lines(&text, &change.text, cells) {
            rows.push(labelled_line(name, &row, Meaning::Passed, appearance));
            name = "";
        }
    }
    if rows.is_empty() {
        rows.push(labelled_line(
            name,
            "only removes text: = to show",
            Meaning::Text,
            appearance,
        ));
    }
    rows
}

/// Returns the title of a proposal. "Not applied" comes first, so that clipping cannot remove it.
fn title(
    held: &HeldProposal,
    meaning: Meaning,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let reason = match &held.why {
        KeptReason::AtPeak => "saved for later by the peak guardrail",
        KeptReason::OnlyAcknowledged => "only an acknowledgment",
        KeptReason::BeforeEdit => "the agent had not read the operator's edit",
        KeptReason::NothingProposed | KeptReason::Invalid(_) => "saved for later",
    };
    let bullet = appearance.mark(Mark::Bullet);
    // The agent chose the message name.
    let message = clip(&one_line(held.message_id.as_str()), MESSAGE, appearance);
    let at = held.at.time_of_day();
    let text = format!("NOT APPLIED, {reason} {bullet} {at} {bullet} {message}");
    let rows = wrap(&text, cells).into_iter();
    rows.map(|row| Line::styled(row, appearance.style(meaning)))
        .collect()
}

/// Returns the reason why a proposal was held back, and when it could be applied.
fn reasons(
    thread: &Thread,
    held: &HeldProposal,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let mut turns = thread.turns.iter();
    let turn = turns.find(|turn| turn.at == held.at && turn.message_id == held.message_id);
    let arrow = appearance.mark(Mark::Arrow);
    let reason = turn.map(|turn| {
        let (phase, intensity) = turn.before;
        format!(
            "reason: phase={}, intensity={}, decision={} {arrow} the summary is unchanged",
            phase.as_str(),
            intensity.as_str(),
            turn.decided.decision.as_str()
        )
    });
    let last = thread.turns.first();
    let chance = thread.thaw_condition().zip(last);
    let chance = match chance {
        Some((thawed_by, last)) => thaw_condition_text(thawed_by, last.after),
        None => "the next turn with a proposal",
    };
    let chance = format!("next chance: {chance}");
    let rows = reason.into_iter().chain([chance]);
    let room = cells.saturating_sub(INDENT.len());
    rows.flat_map(|text| wrap(&text, room))
        .map(|row| Line::styled(format!("{INDENT}{row}"), appearance.style(Meaning::Dim)))
        .collect()
}

/// Returns one line of a comparison.
fn differing_lines(
    part: &str,
    side: Option<ChangeSide>,
    text: &str,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let (mark, meaning) = match side {
        Some(ChangeSide::Kept) => ("- ", Meaning::Denied),
        Some(ChangeSide::Proposed) => ("+ ", Meaning::Passed),
        None => ("  ", Meaning::Text),
    };
    let room = cells.saturating_sub(LABEL + 2).max(2);
    let rows = wrap(&one_line(text), room).into_iter().enumerate();
    rows.map(|(at, row)| {
        let part = if at == 0 {
            part.to_uppercase()
        } else {
            String::new()
        };
        let text = format!("{mark}{}{row}", fit(&part, LABEL, appearance));
        Line::styled(text, appearance.style(meaning))
    })
    .collect()
}

/// Returns all proposals held back, compared with the stored summary line by line.
pub(super) fn proposal_lines(
    thread: &Thread,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let Some(latest) = &thread.latest else {
        return Vec::new();
    };
    let kept = latest.shape();
    let mut rows = Vec::new();
    if thread.held_back.is_empty() {
        let taken = "No proposal is saved for later. The summary updates normally.";
        let taken = wrap(taken, cells).into_iter();
        rows.extend(taken.map(|row| Line::styled(row, appearance.style(Meaning::Dim))));
    }
    for held in &thread.held_back {
        if !rows.is_empty() {
            rows.push(Line::default());
        }
        rows.extend(title(held, Meaning::Strong, cells, appearance));
        let new = kept.updated_with(&held.proposed);
        for ((part, old), (_, new)) in kept.parts().into_iter().zip(new.parts()) {
            for item in &old {
                let side = (!new.contains(item)).then_some(ChangeSide::Kept);
                rows.extend(differing_lines(part, side, item, cells, appearance));
            }
            for item in new.iter().filter(|item| !old.contains(item)) {
                rows.extend(differing_lines(
                    part,
                    Some(ChangeSide::Proposed),
                    item,
                    cells,
                    appearance,
                ));
            }
        }
        rows.extend(reasons(thread, held, cells, appearance));
    }
    rows
}
