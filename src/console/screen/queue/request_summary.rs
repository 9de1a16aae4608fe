//! Summary of the selected request: why it is held, which agent asks, and the effect of each answer.

use std::io::{self, Write};

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::Value;

use super::{QueueScreen, has_detected_tier, overrules, recent_decisions, risk_text};
use crate::base::clock::Timestamp;
use crate::base::text::one_line;
use crate::console::text_cells::{fit, wrap, wrap_within};
use crate::console::theme::{Appearance, Focus, Mark, Meaning};
use crate::console::thread_text;
use crate::engine::held::{GateOrigin, Held, HeldSubject};
use crate::runtime::snapshot::RuntimeSnapshot;

/// Maximum bytes of parameters prepared for the few lines that show them.
const PARAMS_BYTES: usize = 1024;

/// Paints the summary.
pub(super) fn draw(
    queue: &QueueScreen,
    snapshot: &RuntimeSnapshot,
    frame: &mut Frame,
    area: Rect,
    appearance: Appearance,
    now: Timestamp,
) {
    let Some(held) = queue.selected() else {
        return;
    };
    let title = Line::from(vec![
        Span::styled(format!(" {} ", held.id), appearance.style(Meaning::Title)),
        Span::styled(
            format!(
                "{} hash {} {} preview: Enter to review and decide ",
                appearance.mark(Mark::Bullet),
                held.request_hash.short(4),
                appearance.mark(Mark::Bullet)
            ),
            appearance.style(Meaning::Dim),
        ),
    ]);
    let block = appearance.panel(Focus::Elsewhere).title(title);
    let inner = block.inner(area);
    let cells = usize::from(inner.width).saturating_sub(11);
    let mut rows = rows(held, appearance);
    if let Some(thread) = thread_text::thread_of_session(snapshot, &held.session) {
        let notes = thread_text::thread_lines(thread).into_iter().rev();
        let notes: Vec<_> = notes.collect();
        // A frozen conversation summary is shown above optional information.
        let place = if thread.is_frozen() { 2 } else { rows.len() };
        rows.insert(place, ("THREAD", notes.join(", "), 0));
    }
    rows.extend(queue.latest_text(&held.id).map(|last| ("LAST", last, 0)));
    rows.push((
        "SIMILAR",
        recent_decisions::similar_decisions(snapshot, held, now),
        0,
    ));
    // Each text gets one row. Texts that need more share the spare rows, the request first.
    let mut spare = usize::from(inner.height).saturating_sub(rows.len());
    let mut lines = Vec::new();
    for (label, text, stretch) in rows {
        let needs = wrap(&text, cells).len().saturating_sub(1);
        let more = needs.min(spare).min(stretch);
        spare -= more;
        for (at, row) in wrap_within(&text, cells, more + 1, appearance)
            .into_iter()
            .enumerate()
        {
            let label = if at == 0 { label } else { "" };
            lines.push(Line::from(vec![
                Span::styled(fit(label, 11, appearance), appearance.style(Meaning::Label)),
                Span::raw(row),
            ]));
        }
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Returns label, text and the number of extra rows that the text may take.
fn rows(held: &Held, appearance: Appearance) -> Vec<(&'static str, String, usize)> {
    let mut rows = vec![("WHY", cause_text(held), 1), ("WHO", asker_line(held), 0)];
    rows.push(("WHAT", action_line(held), 2));
    rows.push(("IF YES", if_yes(held), 1));
    // One row, so that a small window has room for the earlier decisions.
    let silent = format!(
        "denied with reason   no answer by {} {} DENIED",
        held.deadline.time_of_day(),
        appearance.mark(Mark::Arrow)
    );
    rows.push(("IF NO", silent, 0));
    if let Some(note) = risk_note_text(held) {
        rows.push(("RISK", note, 0));
    }
    rows
}

fn cause_text(held: &Held) -> String {
    let reasons: Vec<String> = held
        .gates
        .iter()
        .map(|gate| format!("{}: {}", one_line(&gate.name()), one_line(&gate.why)))
        .collect();
    reasons.join("; ")
}

fn asker_line(held: &Held) -> String {
    let mut text = format!("{}, session {}", one_line(&held.agent), held.session);
    if let Some(intent) = &held.intent {
        text.push_str(", for: ");
        text.push_str(&one_line(intent));
    }
    text
}

fn action_line(held: &Held) -> String {
    match &held.subject {
        HeldSubject::SessionStart => "start of the session".to_owned(),
        HeldSubject::Moment(moment) => {
            let label = one_line(&moment.label);
            match &moment.text {
                Some(text) => format!("to continue: {label}: {}", text_start(&text.text)),
                None => format!("to continue: {label}"),
            }
        }
        HeldSubject::Action(call) => {
            let params = json_prefix(&call.params);
            format!("{} {}", one_line(&call.action), one_line(&params))
        }
    }
}

/// Returns the first bytes of a text, safe to show on one line.
fn text_start(text: &str) -> String {
    let end = text.floor_char_boundary(PARAMS_BYTES);
    let cut = if end < text.len() { "..." } else { "" };
    format!("{}{cut}", one_line(text.get(..end).unwrap_or_default()))
}

/// Returns the first bytes of a value as JSON. Parameters may be megabytes long, and this is painted often.
fn json_prefix(value: &Value) -> String {
    struct BoundedWriter(Vec<u8>);
    impl Write for BoundedWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = PARAMS_BYTES.saturating_sub(self.0.len());
            let taken = bytes.iter().take(room);
            let before = self.0.len();
            self.0.extend(taken);
            // A short write ends the serialisation: the buffer is full.
            Ok(self.0.len() - before)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut room = BoundedWriter(Vec::new());
    let whole = serde_json::to_writer(&mut room, value);
    let mut text = String::from_utf8_lossy(&room.0).into_owned();
    if whole.is_err() {
        text.push_str("...");
    }
    text
}

fn if_yes(held: &Held) -> String {
    let unlocks = held.gates.iter().flat_map(|gate| &gate.effects.unlock);
    let injects = held.gates.iter().flat_map(|gate| &gate.effects.inject);
    let mut text = match held.approval_progress() {
        Some((_, None)) => {
            return "records approval 1 of 2; held until a second operator approves".to_owned();
        }
        Some((_, Some(first))) => {
            let first = one_line(first);
            format!(
                "2 of 2 after {first}: records {}",
                record_names(held).join(" and ")
            )
        }
        None => format!("records {}", record_names(held).join(" and ")),
    };
    let listed = |names: Vec<String>| names.join(", ");
    let unlocks: Vec<String> = unlocks.map(|name| one_line(name)).collect();
    let injects: Vec<String> = injects.map(|name| one_line(name)).collect();
    if overrules(held) {
        text.push_str("; the agent may then try once more");
    }
    for (verb, names) in [("unlocks", unlocks), ("gives", injects)] {
        if !names.is_empty() {
            text = format!("{text}; {verb} {}", listed(names));
        }
    }
    text
}

/// Returns the names of the records that passing the request writes.
fn record_names(held: &Held) -> Vec<&'static str> {
    let mut names = Vec::new();
    for gate in &held.gates {
        let name = match &gate.origin {
            GateOrigin::Checkpoint { kind, .. } if kind == "risk_threshold" => "the risk check",
            GateOrigin::Checkpoint { .. } => continue,
            GateOrigin::Approval { .. } | GateOrigin::Override { .. } => "the policy override",
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.push("the pass");
    names
}

/// Explains the mark of a detected tier.
fn risk_note_text(held: &Held) -> Option<String> {
    has_detected_tier(held).then(|| {
        let word = risk_text(held);
        format!("{word}: risk guessed from the request, not declared")
    })
}
