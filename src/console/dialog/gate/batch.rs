//! Several requests in one dialog: answered once, decided one by one.
//!
//! Contract: the decisions cover exactly the requests that the review lists. Each request gets its own
//! decision, bound to its own hashes, and its own record. A request that changed or ended meanwhile
//! drops out of the batch, and the dialog says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::context::ContextPane;
use super::form::FormFocus;
use super::reply::ReplyEffect;
use super::step::{DecisionContext, DecisionStep, DialogEntry, PassCare, care_for_request};
use super::{DecisionKind, DenyFocus, GateDialog};
use crate::base::id::HeldRequestId;
use crate::console::text_cells::counted;
use crate::engine::command::{DecisionRequest, OperatorReply};
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;

/// Requests that are decided together.
#[derive(Debug, Default)]
pub(super) struct RequestBatch {
    /// All requests of the batch; the dialog shows the first. Empty if one request is decided alone.
    members: Vec<Arc<Held>>,
    /// Requests whose decision is being recorded.
    pending: BTreeSet<HeldRequestId>,
    /// Requests that were decided here.
    decided: Vec<HeldRequestId>,
    /// Refusals, as text.
    refused: Vec<String>,
}

impl GateDialog {
    /// Opens several requests with the same questions. Returns `None` if `members` is empty.
    pub(crate) fn batch(members: Vec<Arc<Held>>, context: DecisionContext) -> Option<Self> {
        let first = Arc::clone(members.first()?);
        let mut dialog = Self::new(first, None, None, DialogEntry::Answer, context);
        dialog.batch.members = members;
        dialog.show_members();
        Some(dialog)
    }

    /// Returns true if several requests are decided.
    pub(super) fn is_batch(&self) -> bool {
        !self.batch.members.is_empty()
    }

    /// Returns true if this dialog decides the request.
    pub(crate) fn is_about(&self, gate: &HeldRequestId) -> bool {
        self.held.id == *gate || self.batch.pending.contains(gate)
    }

    /// Lists all requests of the batch.
    pub(super) fn members(&self) -> &[Arc<Held>] {
        &self.batch.members
    }

    /// Lists the requests decided here so far.
    pub(crate) fn decided(&self) -> &[HeldRequestId] {
        &self.batch.decided
    }

    /// Returns the level of care for a pass. A batch never passes without a review that lists it.
    pub(super) fn required_care(&self) -> PassCare {
        if self.is_batch() {
            PassCare::Batch
        } else {
            care_for_request(&self.held)
        }
    }

    /// Identifiers of the requests, as text.
    pub(super) fn ids(&self) -> String {
        let ids: Vec<&str> = self.members().iter().map(|held| held.id.as_str()).collect();
        ids.join(" ")
    }

    /// Builds one decision for each request of the batch.
    pub(super) fn for_each(&self, one: &DecisionRequest) -> Vec<DecisionRequest> {
        if !self.is_batch() {
            return vec![one.clone()];
        }
        let each = self.members().iter().map(|held| DecisionRequest {
            gate: held.id.clone(),
            request_hash: held.request_hash,
            atlas_hash: held.atlas_hash,
            ..one.clone()
        });
        each.collect()
    }

    /// One decision for each, whose answers are waited for.
    pub(super) fn decide_each(&mut self, one: &DecisionRequest) -> Vec<DecisionRequest> {
        let each = self.for_each(one);
        self.batch.pending = each.iter().map(|decide| decide.gate.clone()).collect();
        self.batch.refused.clear();
        each
    }

    /// Compares the batch with a newer snapshot: requests that changed or ended drop out.
    pub(super) fn remove_settled_members(&mut self, snapshot: &RuntimeSnapshot) {
        if !matches!(
            self.step,
            DecisionStep::Editing | DecisionStep::Reviewing(_) | DecisionStep::Denying(_)
        ) {
            return;
        }
        let now: BTreeMap<&HeldRequestId, &Arc<Held>> = {
            let ids: BTreeSet<&HeldRequestId> =
                self.members().iter().map(|held| &held.id).collect();
            let held = snapshot.held.iter().filter(|held| ids.contains(&held.id));
            held.map(|held| (&held.id, held)).collect()
        };
        let mut gone = Vec::new();
        let mut stay = Vec::new();
        for was in self.members() {
            match now.get(&was.id) {
                Some(is) if is_same_request(was, is) => stay.push(Arc::clone(is)),
                Some(_) => gone.push(format!("{} changed", was.id)),
                None => gone.push(format!("{} is no longer held", was.id)),
            }
        }
        if gone.is_empty() {
            return;
        }
        self.batch.members = stay;
        let words = format!("removed: {}", gone.join(", "));
        self.continue_batch(DecisionKind::Pass, words);
    }

    /// Handles the reply to one of the decisions.
    pub(super) fn on_batch_reply(
        &mut self,
        verb: DecisionKind,
        gate: &HeldRequestId,
        reply: OperatorReply,
    ) -> ReplyEffect {
        if !self.batch.pending.remove(gate) {
            return ReplyEffect::KeepOpen;
        }
        let words = match reply {
            OperatorReply::Decided(_) => {
                self.batch.decided.push(gate.clone());
                None
            }
            // A request that needs two operators can never be marked for a batch.
            OperatorReply::Approved(_) => {
                Some("approved; a second operator must approve".to_owned())
            }
            OperatorReply::Invalid(_) => Some("the answers were rejected".to_owned()),
            OperatorReply::Refused(refused) => Some(refused.to_string()),
            OperatorReply::Acted => Some("unexpected reply".to_owned()),
        };
        let refused = words.map(|words| format!("{gate}: {words}"));
        self.batch.refused.extend(refused);
        if !self.batch.pending.is_empty() {
            return ReplyEffect::KeepOpen;
        }
        if self.batch.refused.is_empty() {
            return ReplyEffect::Close;
        }
        let decided = &self.batch.decided;
        self.batch
            .members
            .retain(|held| !decided.contains(&held.id));
        let done = counted(decided.len(), "request");
        let words = format!("{done} decided; failed: {}", self.batch.refused.join("; "));
        self.continue_batch(verb, words);
        ReplyEffect::KeepOpen
    }

    /// Continues with the remaining requests of the batch.
    fn continue_batch(&mut self, verb: DecisionKind, words: String) {
        self.notice = Some(words);
        let Some(first) = self.members().first().cloned() else {
            self.step = DecisionStep::Settled(None);
            return;
        };
        self.held = first;
        self.step = match (&self.step, verb) {
            (DecisionStep::Denying(_), _) | (DecisionStep::Writing(_), DecisionKind::Deny) => {
                DecisionStep::Denying(DenyFocus::Reason)
            }
            (
                DecisionStep::Editing
                | DecisionStep::Reviewing(_)
                | DecisionStep::Claimed(_)
                | DecisionStep::Writing(_)
                | DecisionStep::Changed(_)
                | DecisionStep::Settled(_),
                _,
            ) => DecisionStep::Editing,
        };
        // The operator must not press a button that had the focus before this notice appeared.
        self.form.focus = FormFocus::Back;
        self.show_members();
    }

    /// Shows all requests below each other: the operator must see each.
    fn show_members(&mut self) {
        self.context = ContextPane::of_all(&self.batch.members);
    }
}

/// Returns true if a decision about `was` also applies to `is`.
fn is_same_request(was: &Held, is: &Held) -> bool {
    was.request_hash == is.request_hash
        && was.atlas_hash == is.atlas_hash
        && was.answered.len() == is.answered.len()
}
