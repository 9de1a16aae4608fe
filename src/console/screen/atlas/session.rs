//! State of one session: its permissions, the context it received, and the limits it has used.

use ratatui::text::{Line, Span};

use super::AtlasScreen;
use crate::atlas::document::LimitScope;
use crate::base::text::one_line;
use crate::console::text_cells::{counted, wrap};
use crate::console::theme::{Appearance, Meaning};
use crate::engine::session::StartState;
use crate::runtime::snapshot::{RuntimeSnapshot, SessionLimitUsage, SessionSummary};

/// Width of a label in cells.
const LABEL: usize = 9;

/// Returns the selected session with its index.
pub(super) fn selected_session<'s>(
    atlases: &AtlasScreen,
    snapshot: &'s RuntimeSnapshot,
) -> Option<(usize, &'s SessionSummary)> {
    let mut sessions = snapshot.sessions.iter().enumerate();
    sessions.find(|(_, session)| Some(&session.id) == atlases.session.as_ref())
}

/// Returns the lines that describe a session.
pub(super) fn session_lines(
    session: &SessionSummary,
    snapshot: &RuntimeSnapshot,
    cells: usize,
    appearance: Appearance,
) -> Vec<Line<'static>> {
    let (state, meaning) = session_state_text(session);
    let listed = |items: &[String]| match items {
        [] => "none".to_owned(),
        items => one_line(&items.join(", ")),
    };
    let mut lines = Vec::new();
    let mut add = |label: &str, text: &str, meaning: Meaning| {
        push_labelled(&mut lines, (label, text), meaning, cells, appearance);
    };
    add("STATE", &state, meaning);
    if let Some(intent) = &session.intent {
        add("GOAL", &one_line(intent), Meaning::Text);
    }
    add("UNLOCKED", &listed(&session.unlocked), Meaning::Passed);
    let locked = if session.locked.is_empty() {
        Meaning::Dim
    } else {
        Meaning::High
    };
    add("LOCKED", &listed(&session.locked), locked);
    add("INJECTED", &listed(&session.contexts), Meaning::Text);
    if !session.guidance.is_empty() {
        add("GUIDANCE", &listed(&session.guidance), Meaning::Text);
    }
    if !session.allowed.is_empty() {
        add("ALLOWED", &listed(&session.allowed), Meaning::Text);
    }
    if !session.denied.is_empty() {
        add("DENIED", &listed(&session.denied), Meaning::Denied);
    }
    let run = usize::try_from(session.actions).unwrap_or(usize::MAX);
    let recorded = usize::try_from(session.events).unwrap_or(usize::MAX);
    let counts = format!("{}, {}", counted(run, "action"), counted(recorded, "event"));
    add("COUNTED", &counts, Meaning::Text);
    let limits = snapshot.watched.limits.get(&session.id);
    for limit in limits.into_iter().flatten() {
        let (text, meaning) = limit_text(limit);
        add("LIMIT", &text, meaning);
    }
    lines
}

fn session_state_text(session: &SessionSummary) -> (String, Meaning) {
    let pending: Vec<_> = session.pending.iter().map(ToString::to_string).collect();
    match &session.entry {
        StartState::Open if pending.is_empty() => ("open".to_owned(), Meaning::Passed),
        StartState::Open => (format!("held: {}", pending.join(", ")), Meaning::Waiting),
        StartState::Held(gate) => (format!("start held at {gate}"), Meaning::Waiting),
        StartState::Lapsed { .. } => {
            let words = "start gate expired; held again at the next request";
            (words.to_owned(), Meaning::Lapsed)
        }
        StartState::Refused { reason } => {
            (format!("refused: {}", one_line(reason)), Meaning::Denied)
        }
    }
}

fn limit_text(limit: &SessionLimitUsage) -> (String, Meaning) {
    let meaning = if limit.used >= limit.allowed {
        Meaning::Denied
    } else {
        Meaning::Text
    };
    let window = limit
        .window
        .map_or(String::new(), |span| format!(" in {} s", span.as_secs()));
    let scope = match limit.scope {
        LimitScope::Session => "",
        LimitScope::Agent => ", all sessions of the agent",
        LimitScope::All => ", all sessions together",
    };
    let (id, used, most) = (one_line(&limit.policy_id), limit.used, limit.allowed);
    (
        format!("{id}: {used} of {most}{window} used{scope}"),
        meaning,
    )
}

/// Adds a label with a text that may need several rows.
pub(super) fn push_labelled(
    lines: &mut Vec<Line<'static>>,
    (label, text): (&str, &str),
    meaning: Meaning,
    cells: usize,
    appearance: Appearance,
) {
    let rows = wrap(text, cells.saturating_sub(LABEL).max(8));
    for (at, row) in rows.into_iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        lines.push(Line::from(vec![
            Span::styled(format!("{label:LABEL$}"), appearance.style(Meaning::Label)),
            Span::styled(row, appearance.style(meaning)),
        ]));
    }
}
