//! Passed gates: their effects, injections, and records of the approver.

use std::collections::BTreeSet;

use crate::trace::event::{ActionTaken, CheckpointCompleted, Durability};

use super::answer_validation::JudgedAnswers;
use super::approval::{self, Justification};
use super::decision::{Decider, DeciderSide};
use super::held::{Gate, Held, PassEffects};
use super::holding::injection_trigger;
use crate::engine::command::Injected;
use crate::engine::injection::contexts::{BudgetRule, Injection, expire_guidance, inject_contexts};
use crate::engine::injection::withholding::apply_effects;
use crate::engine::records::notice::notify_override;
use crate::engine::sessions::lifecycle::millis;
use crate::engine::transaction::{SpanPosition, Transaction};

/// Passes every gate of a request, each with its justification.
pub(crate) fn pass_gates(
    tx: &mut Transaction<'_>,
    held: &Held,
    position: &SpanPosition,
    locks: &BTreeSet<String>,
    (judged, by): (&JudgedAnswers, Decider<'_>),
) -> Injected {
    let mut injected = Injected::default();
    let answers = |at: usize| Some(&judged.gates.get(at)?.as_ref()?.answers);
    let agent = format!("agent {}", held.agent);
    for (at, (gate, judged)) in held.gates.iter().zip(&judged.gates).enumerate() {
        let by = match judged {
            Some(_) => by,
            // The agent answered this gate before.
            None => Decider {
                name: &agent,
                method: "agent",
                justification: None,
                first_approver: None,
                side: DeciderSide::Agent,
            },
        };
        let why = match judged {
            Some(judged) => {
                let own = Some(&judged.answers);
                approval::justification(held, gate, own, answers, by.justification)
            }
            None => approval::agent_justification(gate, held.answered.get(&at)),
        };
        injected.extend(pass_gate(tx, held, position, (gate, locks), &why, by));
    }
    injected
}

fn pass_gate(
    tx: &mut Transaction<'_>,
    held: &Held,
    position: &SpanPosition,
    (gate, locks): (&Gate, &BTreeSet<String>),
    why: &Justification,
    by: Decider<'_>,
) -> Injected {
    let gate_position = position.child(gate.span_id.clone());
    let id = gate.origin.id().to_owned();
    record_approval(tx, held, &gate_position, gate, why, by);
    let effects = PassEffects {
        lift: gate.effects.unlock.difference(locks).cloned().collect(),
        ..gate.effects.clone()
    };
    apply_effects(tx, position, gate.origin.atlas_id(), &id, &effects);
    if let Some(session) = tx.state().sessions.get_mut(&held.session) {
        let key = (gate.origin.atlas_id().to_owned(), id.clone());
        session.passed.insert(key);
    }
    tx.state().caches.new_generation();
    let kind = gate.origin.kind();
    expire_guidance(tx, &held.session, &[&id, kind]);
    let injected = inject_contexts(
        tx,
        position,
        &Injection {
            atlas: Some(gate.origin.atlas_id()),
            from: &id,
            kind,
            trigger: injection_trigger(kind),
            contexts: &gate.effects.inject,
            guidance: gate.guidance.as_ref(),
            size: BudgetRule::Unlimited,
        },
    );
    let contexts: Vec<_> = injected
        .contexts
        .iter()
        .map(|c| c.context_id.clone())
        .collect();
    let passed = approval::passed_record(held, gate, contexts.clone(), why, by.approver());
    // The agent goes on because of this record: it is on disk before the agent is told.
    let span = tx.new_span();
    tx.record_as(&gate_position.child(span), passed, Durability::Sync);
    tx.record_below(
        &gate_position,
        CheckpointCompleted {
            checkpoint_id: id,
            checkpoint_type: kind.to_owned(),
            duration_ms: millis(tx.now, held.opened_at),
            contexts_injected: contexts,
            action_taken: Some(ActionTaken::Continue),
            block_reason: None,
            judged_under: approval::judged_under(gate),
            redacted: Vec::new(),
        },
    );
    injected
}

/// Writes the record that only some gates need: a verified risk, or an overruled policy.
fn record_approval(
    tx: &mut Transaction<'_>,
    held: &Held,
    gate_position: &SpanPosition,
    gate: &Gate,
    why: &Justification,
    by: Decider<'_>,
) {
    if let Some(record) = approval::approval_record(held, gate, why, by.approver()) {
        let span = tx.new_span();
        let event = tx.record_as(&gate_position.child(span), record, Durability::Async);
        notify_override(tx, held, gate, by.name, event);
    }
}
