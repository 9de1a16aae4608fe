//! Verification result of a session, in words.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::super::TraceScreen;
use super::super::open_session::OpenSession;
use super::{TraceLayout, is_verifying, verifying};
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::console::text_cells::{clip, counted, width, wrap_within};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::runtime::snapshot::{HeadCopyState, RuntimeSnapshot};
use crate::trace::verification::{ChainVerification, VerificationProgress, VerificationVerdict};

/// Legend of the proof letters next to the events.
const LEGEND: &str = " W witnessed  S sealed  ? not proven  X wrong ";
const IMPORTED_LEGEND: &str = " W witnessed  S sealed  I imported  ? not proven  X wrong ";

/// Returns the proof letter of one event: witnessed, sealed, neither, or wrong.
pub(super) fn of_event(trace: &TraceScreen, session: &SessionId, sequence: u64) -> (char, Meaning) {
    let Some(checked) = trace.checked.get(session) else {
        return (' ', Meaning::Dim);
    };
    match &checked.verdict {
        VerificationVerdict::Holds(proven)
            if (proven.own_count()..proven.count).contains(&sequence) =>
        {
            ('I', Meaning::Waiting)
        }
        VerificationVerdict::Holds(proven) if sequence < proven.witnessed => ('W', Meaning::Passed),
        VerificationVerdict::Holds(proven) if sequence < proven.sealed => ('S', Meaning::Passed),
        VerificationVerdict::Holds(proven) if sequence < proven.count => ('?', Meaning::Waiting),
        VerificationVerdict::Diverged { sequence: at, .. }
        | VerificationVerdict::Broken { sequence: at, .. } => match sequence.cmp(at) {
            std::cmp::Ordering::Less => (' ', Meaning::Dim),
            std::cmp::Ordering::Equal => ('X', Meaning::Denied),
            std::cmp::Ordering::Greater => ('?', Meaning::Warning),
        },
        VerificationVerdict::Truncated { found, .. } if sequence + 1 == *found => {
            ('X', Meaning::Denied)
        }
        VerificationVerdict::Holds(_) | VerificationVerdict::Truncated { .. } => {
            (' ', Meaning::Dim)
        }
    }
}

/// Returns the verification result of a session in one or two words, for the list.
pub(super) fn short_verdict(trace: &TraceScreen, session: &SessionId) -> (String, Meaning) {
    match trace.checked.get(session) {
        None if is_imported(trace, session) => ("IMPORTED".to_owned(), Meaning::Waiting),
        None if is_verifying(trace) => ("checking".to_owned(), Meaning::Waiting),
        None => ("not verified".to_owned(), Meaning::Dim),
        Some(checked) => {
            let word = checked.verdict.label();
            match &checked.verdict {
                VerificationVerdict::Holds(proven) if proven.imported_from.is_some() => {
                    (word.to_owned(), Meaning::Waiting)
                }
                VerificationVerdict::Holds(proven) => match proven.unproven_count() {
                    0 => (word.to_owned(), Meaning::Passed),
                    tail => (format!("{word} {tail}"), Meaning::Waiting),
                },
                VerificationVerdict::Diverged { .. }
                | VerificationVerdict::Truncated { .. }
                | VerificationVerdict::Broken { .. } => (word.to_owned(), Meaning::Denied),
            }
        }
    }
}

fn is_imported(trace: &TraceScreen, session: &SessionId) -> bool {
    let mut sessions = trace.sessions.iter();
    sessions.any(|known| known.session == *session && !known.imports.is_empty())
}

/// Returns the verification result and its meaning.
fn verdict_texts(trace: &TraceScreen, opened: &OpenSession) -> (String, String, Meaning) {
    if let Some(problem) = opened.problem.as_ref().or(trace.problem.as_ref()) {
        let words = "cra cannot read this part of the record. Press r to retry.";
        return (
            format!("! {}", one_line(problem)),
            words.to_owned(),
            Meaning::Error,
        );
    }
    if let Some(progress) = verifying(trace) {
        let words = "Recomputing every hash. Esc to stop.";
        return (progress_text(progress), words.to_owned(), Meaning::Waiting);
    }
    let Some(checked) = trace.checked.get(opened.id()) else {
        let missing = opened.outline.tally().missing;
        if missing > 0 {
            let missing = counted(usize::try_from(missing).unwrap_or(usize::MAX), "event");
            let words = "cra numbers events without gaps: the missing events were removed.";
            return (
                format!("{missing} MISSING: v to verify"),
                words.to_owned(),
                Meaning::Error,
            );
        }
        let words = "v to check the hash of every event.";
        return (
            "not verified yet".to_owned(),
            words.to_owned(),
            Meaning::Dim,
        );
    };
    let newer = opened.total().saturating_sub(checked.events);
    let newer = match newer {
        0 => String::new(),
        newer => format!(", {newer} newer not verified yet"),
    };
    let (meaning, message) = result_text(checked);
    (
        format!("{}{newer}", one_line(&checked.to_string())),
        message,
        meaning,
    )
}

/// Formats the progress, as in `VERIFYING 42 %, 420 of 1000 records`.
pub(super) fn progress_text(progress: &VerificationProgress) -> String {
    match (progress.percent(), progress.checked_and_total()) {
        (Some(percent), Some((done, all))) => {
            format!("VERIFYING {percent} %, {done} of {all} records")
        }
        (..) => "VERIFYING every record".to_owned(),
    }
}

fn result_text(checked: &ChainVerification) -> (Meaning, String) {
    match &checked.verdict {
        VerificationVerdict::Holds(proven) if proven.imported_from.is_some() => (
            Meaning::Waiting,
            "Imported: unchanged since the import. What happened before it is not proven."
                .to_owned(),
        ),
        VerificationVerdict::Holds(proven) => match proven.unproven_count() {
            0 => (
                Meaning::Passed,
                "Verified: signed, nothing changed, added or removed.".to_owned(),
            ),
            1 => (
                Meaning::Waiting,
                "The last event is not sealed yet: its removal would go unnoticed until the next seal."
                    .to_owned(),
            ),
            tail => (
                Meaning::Waiting,
                format!(
                    "The last {tail} events are not sealed yet: removal would go unnoticed until the next seal."
                ),
            ),
        },
        VerificationVerdict::Diverged { sequence, .. } => (
            Meaning::Denied,
            format!("The chain differs from the sealed one: it was rewritten from event {sequence} on."),
        ),
        VerificationVerdict::Truncated { .. } => (
            Meaning::Denied,
            "The end of this session was removed: sealed events are missing."
                .to_owned(),
        ),
        VerificationVerdict::Broken { sequence, .. } => (
            Meaning::Denied,
            format!("Event {sequence} was changed, or an event before it was removed. Nothing is proven from there on."),
        ),
    }
}

/// Describes how far the log is signed.
fn log_signature_text(snapshot: &RuntimeSnapshot) -> String {
    let head = &snapshot.chain.head;
    let kept = match &head.copy {
        HeadCopyState::NotConfigured => "",
        HeadCopyState::Written => ", head copied",
        HeadCopyState::Failed { .. } => ", head NOT copied",
    };
    match head.signed {
        0 => String::new(),
        signed => format!("log signed to entry {signed}{kept}"),
    }
}

pub(super) fn draw(
    trace: &TraceScreen,
    snapshot: &RuntimeSnapshot,
    opened: &OpenSession,
    frame: &mut Frame,
    area: Rect,
    shape: TraceLayout,
    appearance: Appearance,
) {
    let (found, message, meaning) = verdict_texts(trace, opened);
    let style = appearance.style(meaning);
    match shape {
        TraceLayout::Wide => {
            let title = Line::styled(" Verify ", appearance.style(Meaning::Title));
            let mut block = appearance.panel(Focus::Elsewhere).title(title);
            let head = log_signature_text(snapshot);
            if !head.is_empty() {
                let head = Line::styled(format!(" {head} "), appearance.style(Meaning::Dim));
                block = block.title(head.right_aligned());
            }
            if trace.checked.contains_key(opened.id()) {
                let legend = if is_imported(trace, opened.id()) {
                    IMPORTED_LEGEND
                } else {
                    LEGEND
                };
                let legend = Line::styled(legend, appearance.style(Meaning::Dim));
                block = block.title_bottom(legend.right_aligned());
            }
            let inner = block.inner(area);
            frame.render_widget(block, area);
            let cells = usize::from(inner.width);
            let one = format!("{found}. {message}");
            let rows = if width(&found) > cells {
                wrap_within(&one, cells, 2, appearance)
            } else {
                vec![found, clip(&message, cells, appearance)]
            };
            let mut lines: Vec<Line> = rows.into_iter().map(Line::from).collect();
            if let Some(first) = lines.first_mut() {
                *first = std::mem::take(first).style(style);
            }
            frame.render_widget(Paragraph::new(lines), inner);
        }
        TraceLayout::Stacked | TraceLayout::Single => {
            let cells = usize::from(area.width).saturating_sub(2);
            let words = format!("{found} {} {message}", appearance.mark(Mark::Bullet));
            let rows = wrap_within(&words, cells, usize::from(area.height), appearance);
            let lines = rows.into_iter().map(|row| Line::from(format!(" {row}")));
            let lines: Vec<Line> = lines.collect();
            frame.render_widget(Paragraph::new(lines).style(style), area);
        }
    }
}
