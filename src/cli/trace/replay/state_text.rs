//! Text output of a session's state.

use std::io::{self, Write};

use crate::base::text::one_line;
use crate::trace::replay::ReplayState;
use crate::trace::replay::state::{ActionOutcome, HeldRequest, ReleaseKind};

/// Longest untrusted text in a line.
const MAX_CHARS: usize = 160;

/// Most lines of one kind.
const MAX_LINES: usize = 10;

/// Writes the state.
pub(super) fn write_state(out: &mut impl Write, state: &ReplayState) -> io::Result<()> {
    let agent = &state.agent;
    line(out, "agent", &agent.name)?;
    if let Some(intent) = &agent.intent {
        line(out, "intent", intent)?;
    }
    line(out, "Atlases", &agent.atlases.join(", "))?;
    if let Some(time) = state.time {
        line(out, "time", &time.to_string())?;
    }
    if let Some(operation) = &state.operation {
        line(out, "operation", operation.as_str())?;
    }
    line(out, "phase", state.phase.text())?;
    if let Some(ended) = &state.ended {
        line(out, "ended", &ended.status)?;
    }
    if state.pruned > 0 {
        let pruned = format!("{} events, with unknown effects", state.pruned);
        line(out, "pruned", &pruned)?;
    }
    for held in &state.held {
        write_held(out, held)?;
    }
    list(out, "unlocked", state.unlocked.iter())?;
    list(out, "locked", state.locked.iter())?;
    list(out, "contexts", state.contexts.keys())?;
    for (id, thread) in state.threads.iter().take(MAX_LINES) {
        let frozen = if thread.frozen { ", FROZEN" } else { "" };
        let text = format!(
            "{id}: {}/{}{frozen}, {} by rule {}, version {}",
            thread.phase, thread.intensity, thread.decision, thread.rule, thread.version
        );
        line(out, "thread", &text)?;
    }
    write_actions(out, state)?;
    write_tallies(out, state)
}

fn write_held(out: &mut impl Write, held: &HeldRequest) -> io::Result<()> {
    let text = format!("{}, since {}", held.what, held.since);
    line(out, "held", &text)?;
    if let Some(first) = &held.approved {
        let why = first.justification.as_deref().unwrap_or("no reason given");
        line(out, "  1 of 2", &format!("{}: {why}", first.by))?;
    }
    if let Some(by) = &held.claimed_by {
        line(out, "  claimed", by)?;
    }
    for gate in &held.gates {
        let wrong = match gate.wrong_answers {
            0 => String::new(),
            wrong => format!(" ({wrong} wrong answers)"),
        };
        let text = format!("{}{wrong}: {}", gate.checkpoint, gate.why);
        line(out, "  gate", &text)?;
    }
    Ok(())
}

fn write_actions(out: &mut impl Write, state: &ReplayState) -> io::Result<()> {
    let actions = &state.actions;
    let text = format!(
        "{} requested, {} completed ({} failed), {} blocked",
        actions.attempted, actions.completed, actions.failed, actions.blocked
    );
    line(out, "actions", &text)?;
    for going in actions.going.iter().rev().take(MAX_LINES) {
        let direction = match going.way {
            ReleaseKind::Open => "running",
            ReleaseKind::Released => "released: runs, or waits for its agent",
        };
        let text = format!(
            "{} ({direction}), since event {}",
            going.action, going.sequence
        );
        line(out, "  open", &text)?;
    }
    for done in actions.recent.iter().rev().take(MAX_LINES) {
        let outcome = match done.outcome {
            ActionOutcome::Completed => "completed",
            ActionOutcome::Failed => "failed",
            ActionOutcome::Blocked => "blocked",
        };
        let reason = done.reason.as_deref().unwrap_or_default();
        let text = format!("{} at event {}", done.action, done.sequence);
        let text = match reason {
            "" => text,
            reason => format!("{text}: {reason}"),
        };
        line(out, &format!("  {outcome}"), &text)?;
    }
    Ok(())
}

fn write_tallies(out: &mut impl Write, state: &ReplayState) -> io::Result<()> {
    let text = format!(
        "{} passed, {} not passed",
        state.passed.count, state.blocked.count
    );
    line(out, "gates", &text)?;
    for one in state.passed.recent.iter().rev().take(MAX_LINES) {
        let by = one.by.as_deref().unwrap_or("?");
        let why = one.justification.as_deref().unwrap_or("no reason given");
        line(
            out,
            "  passed",
            &format!("{} by {by}: {why}", one.checkpoint),
        )?;
    }
    for one in state.overrides.recent.iter().rev().take(MAX_LINES) {
        let why = one.justification.as_deref().unwrap_or("no reason given");
        let text = format!(
            "{} by {} under {}: {why}",
            one.action, one.approver, one.policy
        );
        line(out, "override", &text)?;
    }
    for one in state.verified.recent.iter().rev().take(MAX_LINES) {
        let by = one.by.as_deref().unwrap_or("?");
        let why = one.justification.as_deref().unwrap_or("no reason given");
        let text = format!("{} ({}) by {by}: {why}", one.action, one.tier);
        line(out, "verified", &text)?;
    }
    for one in state.errors.recent.iter().rev().take(MAX_LINES) {
        let recovered = if one.recovered { " (recovered)" } else { "" };
        let text = format!("{}: {}{recovered}", one.kind, one.message);
        line(out, "error", &text)?;
    }
    Ok(())
}

fn list<'n>(
    out: &mut impl Write,
    name: &str,
    items: impl ExactSizeIterator<Item = &'n String>,
) -> io::Result<()> {
    if items.len() == 0 {
        return Ok(());
    }
    let items: Vec<_> = items.map(String::as_str).collect();
    for some in items.chunks(MAX_LINES) {
        line(out, name, &some.join(", "))?;
    }
    Ok(())
}

fn line(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    let mut shown: String = text.chars().take(MAX_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    writeln!(out, "{name:12}{}", one_line(&shown))
}
