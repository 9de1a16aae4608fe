//! Double approval: permitted approvers, and the first of two approvals.
//!
//! Contract: one operator gives one approval. The requester never approves, no operator approves twice, and
//! an approval for another request or under other Atlases does not count.

use std::sync::Arc;

use crate::atlas::document::Approvers;
use crate::trace::event::Durability;

use super::answer_validation::JudgedAnswers;
use super::approval;
use super::decision::{Decider, current_denial, pass_or_refuse};
use super::held::{FirstApproval, Held};
use super::settlement::{RequestEnding, end_held, held_position};
use crate::engine::command::{DenyCode, HeldOutcome, OperatorReply, SettledRequest, StateKind};
use crate::engine::transaction::Transaction;

/// Passes a request whose answers are valid, or stores the first of two approvals.
pub(crate) fn approve_or_pass(
    tx: &mut Transaction<'_>,
    held: &Held,
    by: Decider<'_>,
    judged: &JudgedAnswers,
) -> OperatorReply {
    match (held.approvers(), held.first_approval()) {
        (Approvers::One, _) | (Approvers::Two, Some(_)) => {
            OperatorReply::Decided(pass_or_refuse(tx, held, by, judged))
        }
        (Approvers::Two, None) => approve_first(tx, held, by, judged),
    }
}

/// Stores the first of two approvals. The request stays held under unchanged conditions.
fn approve_first(
    tx: &mut Transaction<'_>,
    held: &Held,
    by: Decider<'_>,
    judged: &JudgedAnswers,
) -> OperatorReply {
    if let Some((code, reason)) = current_denial(tx, held) {
        // A second operator is not asked about a request that is refused anyway.
        return OperatorReply::Decided(refuse_held(tx, held, code, reason));
    }
    let position = held_position(tx, held);
    let answers = |at: usize| Some(&judged.gates.get(at)?.as_ref()?.answers);
    for (gate, judged) in held.gates.iter().zip(&judged.gates) {
        let Some(judged) = judged else { continue };
        let own = Some(&judged.answers);
        let why = approval::justification(held, gate, own, answers, by.justification);
        let record = approval::first_approval_record(held, gate, why, by.approver());
        let span = tx.new_span();
        let gate_position = position.child(gate.span_id.clone()).child(span);
        tx.record_as(&gate_position, record, Durability::Sync);
    }
    let why = approval::request_justification(held, answers, by.justification);
    let mut held = held.clone();
    held.approval = Some(FirstApproval {
        by: by.name.to_owned(),
        method: by.method.to_owned(),
        justification: Some(why),
        at: tx.now,
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
    });
    store_held(tx, held)
}

/// Stores a changed held request.
pub(crate) fn store_held(tx: &mut Transaction<'_>, held: Held) -> OperatorReply {
    let held = Arc::new(held);
    if let Some(entry) = tx.state().held.replace(Arc::clone(&held)).cloned() {
        tx.persist(StateKind::Held, held.id.as_str(), Some(&entry));
    }
    OperatorReply::Approved(Box::new((*held).clone()))
}

/// Ends a request that a rule refuses regardless of the operators.
pub(crate) fn refuse_held(
    tx: &mut Transaction<'_>,
    held: &Held,
    code: DenyCode,
    reason: String,
) -> SettledRequest {
    end_held(
        tx,
        held,
        RequestEnding {
            outcome: HeldOutcome::Denied,
            by: None,
            code,
            reason,
        },
    )
}
