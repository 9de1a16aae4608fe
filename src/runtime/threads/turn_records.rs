//! Records of turns.

use super::{ACTOR_NAME, SessionTurn};
use crate::memento::{Thread, TurnOutcome};
use crate::trace::event::{Breakpoint, BreakpointDecided, BreakpointThread};

/// Builds the record of a turn.
#[must_use]
pub fn turn_record(
    thread: &Thread,
    take: &SessionTurn,
    outcome: &TurnOutcome,
) -> BreakpointDecided {
    let decision = outcome.decided.decision.as_str();
    let rollup = &outcome.memento.affect.rollup;
    let counted = thread.turns.first();
    let signals = counted.map_or(&[][..], |turned| &turned.signals);
    BreakpointDecided {
        actor: ACTOR_NAME.to_owned(),
        phase: "breakpoint".to_owned(),
        status: "completed".to_owned(),
        summary: format!("Breakpoint decision: {}", decision.to_uppercase()),
        metadata: Breakpoint {
            kind: "breakpoint_engine".to_owned(),
            decision: decision.to_owned(),
            peak_guardrail_active: outcome.freeze.is_frozen(),
            source: outcome.source.as_str().to_owned(),
        },
        thread: BreakpointThread {
            thread_id: thread.id.to_string(),
            message_id: take.turn.message_id.to_string(),
            rule: outcome.decided.rule.number(),
            signals: signals
                .iter()
                .map(|signal| signal.as_str().to_owned())
                .collect(),
            affect_phase: rollup.phase.as_str().to_owned(),
            intensity: rollup.intensity_bucket.as_str().to_owned(),
            update: outcome.summary.as_str().to_owned(),
            version: outcome.version,
            etag: outcome.etag.clone(),
        },
    }
}
