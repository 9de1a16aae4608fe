//! Permits: the right to run one approved request once, when it is requested again.
//!
//! Contract: a permit counts for exactly one request, under exactly the Atlases it was approved under, until
//! it expires. It opens only the gates that were passed for that request.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, HeldRequestId, SessionId, SpanId, TraceId};
use crate::base::limits::PERMIT_LIFETIME;
use crate::trace::event::{CheckpointPassed, Durability};

use super::decision::overruled_denials;
use super::held::{ActionCall, Gate, GateOrigin, Held};
use crate::engine::command::{AgentReply, Injected, ReplyId, StateKind};
use crate::engine::evaluation::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use crate::engine::injection::delivery::{amend_attempt, unname_contexts};
use crate::engine::records::action_records::atlas_refs;
use crate::engine::records::notice::{ReleaseInfo, notify_release};
use crate::engine::requests::attempt::allow_run;
use crate::engine::sessions::lifecycle::add_pending_injections;
use crate::engine::transaction::{SpanPosition, Transaction};

/// The right to run one approved request once, when it is requested again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Permit {
    pub(crate) request_hash: Digest,
    pub(crate) atlas_hash: Digest,
    pub(crate) session: SessionId,
    pub(crate) gate: HeldRequestId,
    pub(crate) expires_at: Timestamp,
    #[serde(rename = "given")]
    pub(crate) injected: Injected,
    /// Denials that an operator overruled for this request.
    #[serde(default)]
    pub(crate) overrides: BTreeSet<String>,
    /// Gates that were passed for this request. The permit opens no other gate.
    #[serde(default)]
    pub(crate) passed: BTreeSet<String>,
    /// The operator who let the request pass.
    #[serde(default)]
    pub(crate) approved_by: Option<String>,
    pub(crate) trace_id: TraceId,
    pub(crate) span_id: SpanId,
}

impl Permit {
    /// Returns whether the permit was given for every gate that stands in the way now.
    pub(crate) fn opens(
        &self,
        fired: &[OwnedFiredCheckpoint],
        approvals: &[OwnedRequiredApproval],
    ) -> bool {
        let gates = fired
            .iter()
            .filter(|fired| fired.is_gate())
            .map(|fired| ("checkpoint", &fired.atlas_id, &fired.checkpoint.id));
        let approvals = approvals
            .iter()
            .map(|approval| ("policy", &approval.atlas_id, &approval.policy_id));
        let mut all = gates.chain(approvals);
        all.all(|(kind, atlas_id, id)| self.passed.contains(&gate_key(kind, atlas_id, id)))
    }
}

/// Stores the permit of a request that was approved while its caller was away.
pub(crate) fn store_permit(
    tx: &mut Transaction<'_>,
    held: &Held,
    injected: Injected,
    approved_by: Option<String>,
) {
    // The injections go with the next reply, so that no other request of the session runs without them.
    add_pending_injections(tx, &held.session, injected);
    unname_contexts(tx, held);
    let permit = Permit {
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        session: held.session.clone(),
        gate: held.id.clone(),
        expires_at: tx.now.plus(PERMIT_LIFETIME),
        injected: Injected::default(),
        overrides: overruled_denials(held),
        passed: passed_gates(&held.gates),
        approved_by,
        trace_id: held.trace_id.clone(),
        span_id: held.span_id.clone(),
    };
    let now = tx.now;
    let permits = &mut tx.engine.state.permits;
    for gate in permits.remove_where(|permit| permit.expires_at <= now) {
        tx.persist::<()>(StateKind::Permit, gate.as_str(), None);
    }
    tx.persist(StateKind::Permit, permit.gate.as_str(), Some(&permit));
    tx.state().permits.insert(permit);
}

/// Returns the denials that a permit for exactly this request overrules.
pub(crate) fn permitted_overrides(tx: &Transaction<'_>, hash: Digest) -> BTreeSet<String> {
    let permit = valid_permit(tx, hash);
    permit
        .map(|permit| permit.overrides.clone())
        .unwrap_or_default()
}

/// Returns the first permit for exactly this request that is valid now under the loaded Atlases.
pub(crate) fn valid_permit<'t>(tx: &'t Transaction<'_>, hash: Digest) -> Option<&'t Permit> {
    let mut permits = tx.engine.state.permits.of_request(&hash);
    permits.find(|permit| is_valid_permit(tx, permit))
}

fn is_valid_permit(tx: &Transaction<'_>, permit: &Permit) -> bool {
    permit.atlas_hash == tx.engine.atlas_hash && permit.expires_at > tx.now
}

/// Consumes the permit of a request. Returns it if it opens all gates in the way.
///
/// If a gate stands there that was not passed, all gates are asked again, together with the denials that
/// the permit overruled.
pub(crate) fn consume_permit(
    tx: &mut Transaction<'_>,
    hash: Digest,
    fired: &[OwnedFiredCheckpoint],
    approvals: &mut Vec<OwnedRequiredApproval>,
) -> Option<Permit> {
    let permit = take_permit(tx, hash)?;
    if permit.opens(fired, approvals) {
        return Some(permit);
    }
    approvals.extend(overruled_approvals(tx, &permit));
    None
}

/// Returns the denials that a permit overrules, as approvals to ask for again.
fn overruled_approvals(tx: &Transaction<'_>, permit: &Permit) -> Vec<OwnedRequiredApproval> {
    let mut again = Vec::new();
    for atlas in tx.engine.atlases.iter() {
        for policy in &atlas.policies {
            if permit
                .overrides
                .contains(&override_key(&atlas.id, &policy.id))
            {
                again.push(OwnedRequiredApproval {
                    atlas_id: atlas.id.clone(),
                    policy_id: policy.id.clone(),
                    reason: policy.reason.clone(),
                    why: format!("an operator overruled this denial at {}", permit.gate),
                    overrides: true,
                });
            }
        }
    }
    again
}

/// Allows a request that was approved while its caller was away.
pub(crate) fn run_by_permit(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    (position, event, call): (&SpanPosition, Option<&EventId>, &ActionCall),
    gates: &[(String, String)],
    permit: Permit,
    mut injected: Injected,
) {
    for (atlas_id, gate) in gates {
        record_permitted(tx, position, (atlas_id, gate), &permit);
    }
    injected.extend(permit.injected);
    let mut allowed = allow_run(tx, position, call, injected);
    amend_attempt(tx, event, &allowed.injected);
    let release = ReleaseInfo {
        gate: &permit.gate,
        approver: permit.approved_by.as_deref(),
        passed: &permit.passed,
    };
    notify_release(tx, position, call, Some(&release));
    allowed.approved_by = permit.approved_by;
    tx.reply_to_agent(reply_id, AgentReply::Allowed(allowed));
}

/// Takes the permit for exactly this request under exactly the loaded Atlases, if there is one.
fn take_permit(tx: &mut Transaction<'_>, hash: Digest) -> Option<Permit> {
    let gate = valid_permit(tx, hash)?.gate.clone();
    tx.persist::<()>(StateKind::Permit, gate.as_str(), None);
    tx.state().permits.remove(&gate)
}

/// Records that a gate is open because the request was passed before.
fn record_permitted(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    (atlas_id, gate): (&str, &str),
    permit: &Permit,
) {
    let held = &permit.gate;
    let passed = CheckpointPassed {
        checkpoint_id: gate.to_owned(),
        unlocked_capabilities: Vec::new(),
        injected_contexts: Vec::new(),
        passed_by: format!("the permit of {held}"),
        approval_method: Some("permit".to_owned()),
        justification: None,
        justification_source: None,
        approvers: Vec::new(),
        request_hash: Some(permit.request_hash.to_string()),
        judged_under: atlas_refs(tx, Some(atlas_id)),
    };
    let span = tx.new_span();
    tx.record_as(&position.child(span), passed, Durability::Sync);
}

/// Returns the Atlas and identifier of each gate in the way of an attempt: checkpoints first, then policies.
pub(crate) fn names_of_gates(
    fired: &[OwnedFiredCheckpoint],
    approvals: &[OwnedRequiredApproval],
) -> Vec<(String, String)> {
    let checkpoints = fired.iter().filter(|fired| fired.is_gate());
    let checkpoints =
        checkpoints.map(|fired| (fired.atlas_id.clone(), fired.checkpoint.id.clone()));
    let policies = approvals
        .iter()
        .map(|approval| (approval.atlas_id.clone(), approval.policy_id.clone()));
    checkpoints.chain(policies).collect()
}

/// Returns the keys of the gates that a held request passes.
pub(crate) fn passed_gates(gates: &[Gate]) -> BTreeSet<String> {
    let keys = gates.iter().map(|gate| {
        let kind = match &gate.origin {
            GateOrigin::Checkpoint { .. } => "checkpoint",
            GateOrigin::Approval { .. } | GateOrigin::Override { .. } => "policy",
        };
        gate_key(kind, gate.origin.atlas_id(), gate.origin.id())
    });
    keys.collect()
}

/// Returns the checkpoints and policies of one Atlas among passed gates.
pub(crate) fn gates_of_atlas(passed: &BTreeSet<String>, atlas_id: &str) -> Vec<String> {
    let kinds = ["checkpoint", "policy"].map(|kind| gate_key(kind, atlas_id, ""));
    let own = |key: &String| {
        let id = kinds.iter().find_map(|kind| key.strip_prefix(kind));
        id.map(str::to_owned)
    };
    passed.iter().filter_map(own).collect()
}

pub(crate) fn gate_key(kind: &str, atlas_id: &str, id: &str) -> String {
    format!("{kind}/{atlas_id}/{id}")
}

/// Returns the key under which an overruled denial is stored.
pub(crate) fn override_key(atlas_id: &str, policy_id: &str) -> String {
    format!("{atlas_id}/{policy_id}")
}
