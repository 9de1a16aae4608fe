//! Notices that stewards asked for. The engine only creates them as data; the runtime sends them.
//!
//! Contract: a notice contains no parameters, answers or reasons. They may contain secrets, and the record
//! has them.

use std::collections::BTreeSet;

use crate::atlas::Atlas;
use crate::atlas::document::{NoticeTrigger, RiskTier};
use crate::atlas::index::ActionMatches;
use crate::base::id::{EventId, HeldRequestId, SessionId};
use crate::trace::event::Payload;

use crate::engine::command::Effect;
use crate::engine::gates::held::{ActionCall, Gate, GateOrigin, Held};
use crate::engine::gates::permits::gates_of_atlas;
use crate::engine::transaction::{SpanPosition, Transaction};

/// A notice that the steward of an Atlas asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StewardNotice {
    /// Cause of the notice.
    pub trigger: NoticeTrigger,
    /// Destination address.
    pub address: String,
    /// The Atlas whose steward asked for it.
    pub atlas_id: String,
    /// Version of the Atlas.
    pub atlas_version: String,
    /// The session.
    pub session: SessionId,
    /// Agent of the session.
    pub agent: String,
    /// The requested action.
    pub action: String,
    /// Risk tier of the action.
    pub risk: RiskTier,
    /// Checkpoints and policies of the Atlas that were passed.
    pub passed: Vec<String>,
    /// The operator who let it pass, if one did.
    pub approver: Option<String>,
    /// The held request that was decided, if any.
    pub gate: Option<HeldRequestId>,
    /// The event that recorded it. Its record comes before the notice, among the same effects.
    pub event: EventId,
}

/// Details of how an action was allowed to run.
pub(crate) struct ReleaseInfo<'r> {
    /// The held request that was decided.
    pub(crate) gate: &'r HeldRequestId,
    /// The operator who let it pass.
    pub(crate) approver: Option<&'r str>,
    /// Keys of the passed gates.
    pub(crate) passed: &'r BTreeSet<String>,
}

/// Notifies the steward whose policy an operator overruled or approved.
pub(crate) fn notify_override(
    tx: &mut Transaction<'_>,
    held: &Held,
    gate: &Gate,
    approver: &str,
    event: EventId,
) {
    let (atlas_id, policy_id) = match &gate.origin {
        GateOrigin::Checkpoint { .. } => return,
        GateOrigin::Approval {
            atlas_id,
            policy_id,
            ..
        }
        | GateOrigin::Override {
            atlas_id,
            policy_id,
            ..
        } => (atlas_id, policy_id),
    };
    let mut atlases = tx.engine.atlases.iter();
    let Some(atlas) = atlases.find(|atlas| atlas.id == *atlas_id) else {
        return;
    };
    let trigger = NoticeTrigger::PolicyOverride;
    let Some(address) = address(atlas, trigger) else {
        return;
    };
    let notice = StewardNotice {
        trigger,
        address: address.to_owned(),
        atlas_id: atlas.id.clone(),
        atlas_version: atlas.version.clone(),
        session: held.session.clone(),
        agent: held.agent.clone(),
        action: held.action().to_owned(),
        risk: held.tier(),
        passed: vec![policy_id.clone()],
        approver: Some(approver.to_owned()),
        gate: Some(held.id.clone()),
        event,
    };
    tx.push(Effect::Notify(notice));
}

/// Notifies the stewards concerned that a high-risk action is allowed to run.
pub(crate) fn notify_release(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    call: &ActionCall,
    release: Option<&ReleaseInfo<'_>>,
) {
    let trigger = NoticeTrigger::HighRiskAction;
    let atlases = &tx.engine.atlases;
    let asked = |atlas: &Atlas| address(atlas, trigger).is_some();
    if call.tier < RiskTier::High || !atlases.iter().any(asked) {
        return;
    }
    let session = tx.engine.state.sessions.get(&position.session);
    let (Some(session), Some(event)) = (session, release_event(tx, position)) else {
        return;
    };
    let matches = ActionMatches::of(atlases, &call.action);
    let notices: Vec<_> = atlases
        .iter()
        .filter_map(|atlas| {
            let address = address(atlas, trigger)?;
            let passed = release.map(|release| gates_of_atlas(release.passed, &atlas.id));
            let passed = passed.unwrap_or_default();
            let concerned = !passed.is_empty() || concerns(atlas, &matches, call.tier);
            concerned.then(|| StewardNotice {
                trigger,
                address: address.to_owned(),
                atlas_id: atlas.id.clone(),
                atlas_version: atlas.version.clone(),
                session: position.session.clone(),
                agent: session.agent.clone(),
                action: call.action.clone(),
                risk: call.tier,
                passed,
                approver: release.and_then(|release| release.approver.map(str::to_owned)),
                gate: release.map(|release| release.gate.clone()),
                event: event.clone(),
            })
        })
        .collect();
    for notice in notices {
        tx.push(Effect::Notify(notice));
    }
}

/// Returns the newest record of this command that allows something in the same trace.
fn release_event(tx: &Transaction<'_>, position: &SpanPosition) -> Option<EventId> {
    tx.effects().iter().rev().find_map(|effect| match effect {
        Effect::Record(draft) if draft.trace_id == position.trace_id => {
            let lets = matches!(
                draft.payload,
                Payload::CheckpointPassed(_) | Payload::ActionAttempted(_)
            );
            lets.then(|| draft.event_id.clone())
        }
        Effect::Record(_)
        | Effect::AppendToLog(_)
        | Effect::SetOperator(_)
        | Effect::Persist(_)
        | Effect::Reply(..)
        | Effect::SetDeadline(..)
        | Effect::CallExtension(_)
        | Effect::RequestHeld(_)
        | Effect::Notify(_)
        | Effect::RequestSettled(_) => None,
    })
}

fn address(atlas: &Atlas, trigger: NoticeTrigger) -> Option<&str> {
    let steward = atlas.steward.as_ref()?;
    steward.notifications.as_ref()?.address_for(trigger)
}

/// Returns whether an action concerns an Atlas.
///
/// An action concerns an Atlas if the Atlas declares or lists the action, if one of its policies or
/// checkpoints names it, or if one of its checkpoints fires at this risk tier. An action that no Atlas knows
/// concerns all of them.
fn concerns(atlas: &Atlas, matches: &ActionMatches<'_>, tier: RiskTier) -> bool {
    let own = |of: &Atlas| std::ptr::eq(of, atlas);
    !matches.is_known()
        || matches.is_known_by(atlas)
        || matches.policies().any(|matched| own(matched.atlas))
        || matches
            .checkpoints_before()
            .any(|matched| own(matched.atlas))
        || atlas.checkpoints_for_tier(tier).next().is_some()
}
