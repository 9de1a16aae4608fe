//! What stewards asked to be told of. Here it is only said, as data: others send it.
//!
//! Contract: a notice has no parameters, no answers and no reasons. They may hold secrets, and the record
//! has them.

use std::collections::BTreeSet;

use crate::atlas::Atlas;
use crate::atlas::document::{NoticeTrigger, RiskTier};
use crate::atlas::index::Matches;
use crate::base::id::{EventId, GateId, SessionId};
use crate::trace::event::Payload;

use super::attempt::own_gates;
use super::command::Effect;
use super::held::{ActionCall, Gate, Held, Origin};
use super::turn::{Place, Turn};

/// Something that the steward of an Atlas asked to be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What is told.
    pub trigger: NoticeTrigger,
    /// Where it goes.
    pub address: String,
    /// The Atlas whose steward asked for it.
    pub atlas_id: String,
    /// Its version.
    pub atlas_version: String,
    /// The session.
    pub session: SessionId,
    /// Its agent.
    pub agent: String,
    /// What was asked for.
    pub action: String,
    /// How risky that is.
    pub risk: RiskTier,
    /// Checkpoints and policies of the Atlas that were passed for it.
    pub passed: Vec<String>,
    /// The operator who let it pass, where one did.
    pub approver: Option<String>,
    /// The held request that was decided about, where one was.
    pub gate: Option<GateId>,
    /// The record that says so. It comes before this, among the same effects.
    pub event: EventId,
}

/// How an action came to be let run.
pub(super) struct Release<'r> {
    /// The held request that was decided about.
    pub(super) gate: &'r GateId,
    /// The operator who let it pass.
    pub(super) approver: Option<&'r str>,
    /// The gates that were passed, by name.
    pub(super) passed: &'r BTreeSet<String>,
}

impl Turn<'_> {
    /// Tells the steward whose policy an operator let something pass over.
    pub(super) fn notify_override(
        &mut self,
        held: &Held,
        gate: &Gate,
        approver: &str,
        event: EventId,
    ) {
        let (atlas_id, policy_id) = match &gate.origin {
            Origin::Checkpoint { .. } => return,
            Origin::Approval {
                atlas_id,
                policy_id,
                ..
            }
            | Origin::Override {
                atlas_id,
                policy_id,
                ..
            } => (atlas_id, policy_id),
        };
        let mut atlases = self.engine.atlases.iter();
        let Some(atlas) = atlases.find(|atlas| atlas.id == *atlas_id) else {
            return;
        };
        let trigger = NoticeTrigger::PolicyOverride;
        let Some(address) = address(atlas, trigger) else {
            return;
        };
        let notice = Notice {
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
        self.push(Effect::Notify(notice));
    }

    /// Tells the stewards concerned that an action of high risk is let run.
    pub(super) fn notify_release(
        &mut self,
        place: &Place,
        call: &ActionCall,
        release: Option<&Release<'_>>,
    ) {
        let trigger = NoticeTrigger::HighRiskAction;
        let atlases = &self.engine.atlases;
        let asked = |atlas: &Atlas| address(atlas, trigger).is_some();
        if call.tier < RiskTier::High || !atlases.iter().any(asked) {
            return;
        }
        let session = self.engine.state.sessions.get(&place.session);
        let (Some(session), Some(event)) = (session, self.letting(place)) else {
            return;
        };
        let matches = Matches::of(atlases, &call.action);
        let notices: Vec<_> = atlases
            .iter()
            .filter_map(|atlas| {
                let address = address(atlas, trigger)?;
                let passed = release.map(|it| own_gates(it.passed, &atlas.id));
                let passed = passed.unwrap_or_default();
                let concerned = !passed.is_empty() || concerns(atlas, &matches, call.tier);
                concerned.then(|| Notice {
                    trigger,
                    address: address.to_owned(),
                    atlas_id: atlas.id.clone(),
                    atlas_version: atlas.version.clone(),
                    session: place.session.clone(),
                    agent: session.agent.clone(),
                    action: call.action.clone(),
                    risk: call.tier,
                    passed,
                    approver: release.and_then(|it| it.approver.map(str::to_owned)),
                    gate: release.map(|it| it.gate.clone()),
                    event: event.clone(),
                })
            })
            .collect();
        for notice in notices {
            self.push(Effect::Notify(notice));
        }
    }

    /// The newest record of this command that lets something of the same operation go on.
    fn letting(&self, place: &Place) -> Option<EventId> {
        self.effects().iter().rev().find_map(|effect| match effect {
            Effect::Record(draft) if draft.trace_id == place.trace_id => {
                let lets = matches!(
                    draft.payload,
                    Payload::CheckpointPassed(_) | Payload::ActionAttempted(_)
                );
                lets.then(|| draft.event_id.clone())
            }
            Effect::Record(_)
            | Effect::Enter(_)
            | Effect::Seat(_)
            | Effect::Persist(_)
            | Effect::Reply(..)
            | Effect::SetDeadline(..)
            | Effect::CallOut(_)
            | Effect::Held(_)
            | Effect::Notify(_)
            | Effect::Settled(_) => None,
        })
    }
}

fn address(atlas: &Atlas, trigger: NoticeTrigger) -> Option<&str> {
    let steward = atlas.steward.as_ref()?;
    steward.notifications.as_ref()?.address_for(trigger)
}

/// Whether an action is an Atlas' business: it declares or lists it, a policy or checkpoint of it names it
/// or asks about so much risk. What no Atlas knows is the business of all.
fn concerns(atlas: &Atlas, matches: &Matches<'_>, tier: RiskTier) -> bool {
    let own = |of: &Atlas| std::ptr::eq(of, atlas);
    !matches.known()
        || matches.known_by(atlas)
        || matches.policies().any(|it| own(it.atlas))
        || matches.before().any(|it| own(it.atlas))
        || atlas.checkpoints_at(tier).next().is_some()
}
