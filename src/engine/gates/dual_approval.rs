//! Double approval: permitted approvers, and the first of two approvals.
//!
//! Contract: one operator gives one approval. The requester never approves, no operator approves twice, and
//! an approval for another request or under other Atlases does not count.

use std::sync::Arc;

use crate::atlas::document::Approvers;
use crate::trace::event::Durability;

use super::answer_validation::JudgedAnswers;
use super::approval;
use super::decision::Decider;
use super::held::{FirstApproval, Held};
use super::settlement::RequestEnding;
use crate::engine::command::{DenyCode, HeldOutcome, OperatorReply, SettledRequest, StateKind};
use crate::engine::transaction::Transaction;

impl Transaction<'_> {
    /// Passes a request whose answers are valid, or stores the first of two approvals.
    pub(crate) fn approve_or_pass(
        &mut self,
        held: &Held,
        by: Decider<'_>,
        judged: &JudgedAnswers,
    ) -> OperatorReply {
        match (held.approvers(), held.first_approval()) {
            (Approvers::One, _) | (Approvers::Two, Some(_)) => {
                OperatorReply::Decided(self.pass_or_refuse(held, by, judged))
            }
            (Approvers::Two, None) => self.approve_first(held, by, judged),
        }
    }

    /// Stores the first of two approvals. The request stays held under unchanged conditions.
    fn approve_first(
        &mut self,
        held: &Held,
        by: Decider<'_>,
        judged: &JudgedAnswers,
    ) -> OperatorReply {
        if let Some((code, reason)) = self.current_denial(held) {
            // A second operator is not asked about a request that is refused anyway.
            return OperatorReply::Decided(self.refuse_held(held, code, reason));
        }
        let place = self.held_position(held);
        let answers = |at: usize| Some(&judged.gates.get(at)?.as_ref()?.answers);
        for (gate, judged) in held.gates.iter().zip(&judged.gates) {
            let Some(judged) = judged else { continue };
            let own = Some(&judged.answers);
            let why = approval::justification(held, gate, own, answers, by.justification);
            let record = approval::first_approval_record(held, gate, why, by.approver());
            let span = self.new_span();
            let here = place.child(gate.span_id.clone()).child(span);
            self.record_as(&here, record, Durability::Sync);
        }
        let why = approval::request_justification(held, answers, by.justification);
        let mut held = held.clone();
        held.approval = Some(FirstApproval {
            by: by.name.to_owned(),
            method: by.method.to_owned(),
            justification: Some(why),
            at: self.now,
            request_hash: held.request_hash,
            atlas_hash: held.atlas_hash,
        });
        self.store_held(held)
    }

    /// Stores a changed held request.
    pub(crate) fn store_held(&mut self, held: Held) -> OperatorReply {
        let held = Arc::new(held);
        if let Some(waiting) = self.state().held.replace(Arc::clone(&held)).cloned() {
            self.persist(StateKind::Held, held.id.as_str(), Some(&waiting));
        }
        OperatorReply::Approved(Box::new((*held).clone()))
    }

    /// Ends a request that a rule refuses regardless of the operators.
    pub(crate) fn refuse_held(
        &mut self,
        held: &Held,
        code: DenyCode,
        reason: String,
    ) -> SettledRequest {
        self.end_held(
            held,
            RequestEnding {
                outcome: HeldOutcome::Denied,
                by: None,
                code,
                reason,
            },
        )
    }
}
