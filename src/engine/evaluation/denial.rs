//! Denials of an action that hold regardless of its gates. Reads state and changes none.

use crate::atlas::document::{CheckpointMode, UnknownActions};
use crate::atlas::index::{ActionMatches, CheckpointEvent};
use crate::atlas::model::{Atlas, Capability, Checkpoint, Trigger};
use crate::trace::event::AtlasRef;

use super::EvaluationCase;
use super::fired_checkpoint::OwnedRequiredApproval;
use crate::engine::command::{DenialReply, DenyCode};
use crate::engine::gates::held::ActionView;
use crate::engine::records::action_records::atlas_ref;
use crate::engine::sessions::session::Session;

/// A denial that no answer at a gate can lift.
#[derive(Debug)]
pub(crate) struct Denial {
    /// Name of the rule that denies, for the record.
    pub(crate) by: String,
    /// Atlas of the rule, if a single Atlas denies.
    pub(crate) atlas: Option<AtlasRef>,
    /// The denial for the agent.
    pub(crate) denied: DenialReply,
    /// Approval by which an operator can overrule the denial, if allowed.
    pub(crate) overrides: Option<OwnedRequiredApproval>,
}

pub(crate) fn unknown_action(
    case: EvaluationCase<'_, '_>,
    matches: &ActionMatches<'_>,
) -> Option<Denial> {
    let (atlases, action) = (case.atlases, case.call.action);
    if matches.is_known() || case.session.allows(action) {
        return None;
    }
    // A denial in any Atlas wins. Without any Atlas, nothing is allowed.
    let allowed = atlases
        .iter()
        .all(|atlas| atlas.unknown_actions != UnknownActions::Deny);
    if allowed && !atlases.is_empty() {
        return None;
    }
    let (reason, help) = if atlases.is_empty() {
        (
            "no Atlas is loaded, so nothing is allowed".to_owned(),
            "start cra with --atlas FILE",
        )
    } else {
        (
            format!("no loaded Atlas knows the action `{action}`"),
            "a steward can declare it under `actions` or in a capability",
        )
    };
    Some(denial(
        "unknown_actions",
        DenyCode::UnknownAction,
        reason,
        Some(help),
    ))
}

pub(crate) fn denied_action(session: &Session, action: &str) -> Option<Denial> {
    let (gate, pattern) = session.denial_of(action)?;
    let reason = format!("checkpoint `{gate}` denies `{pattern}` in this session");
    Some(denial(gate, DenyCode::DeniedAction, reason, None))
}

pub(crate) fn locked_capability(
    case: EvaluationCase<'_, '_>,
    matches: &ActionMatches<'_>,
) -> Option<Denial> {
    let session = case.session;
    for matched in matches.capabilities() {
        let (atlas, capability) = (matched.atlas, matched.item);
        if !session.lacks(atlas, capability) {
            continue;
        }
        // A checkpoint at the capability decides instead, unless its condition keeps it from firing.
        let mut standing = atlas.checkpoints_for_event(CheckpointEvent::Access(&capability.id));
        if standing.any(|(_, checkpoint)| decides_access(case, atlas, capability, checkpoint)) {
            continue;
        }
        let reason = format!("capability `{}` is locked in this session", capability.id);
        let mut denial = denial(&capability.id, DenyCode::CapabilityLocked, reason, None);
        denial.atlas = Some(atlas_ref(atlas));
        denial.denied.help = unlock_help(session, atlas, capability);
        return Some(denial);
    }
    None
}

/// Returns whether a checkpoint at a locked capability decides about its use.
///
/// A gate asks, and an advisory checkpoint unlocks the capability at once. A lock that another checkpoint set
/// is lifted only by a gate of the same Atlas.
fn decides_access(
    case: EvaluationCase<'_, '_>,
    atlas: &Atlas,
    capability: &Capability,
    checkpoint: &Checkpoint,
) -> bool {
    let unlocks = checkpoint.unlock_capabilities.contains(&capability.id)
        && !checkpoint.lock_capabilities.contains(&capability.id);
    let locked = case.session.locked.contains(&capability.id);
    let lifts = unlocks && case.session.can_lift(&atlas.id, &capability.id);
    match checkpoint.mode {
        CheckpointMode::Blocking => (!locked || lifts) && case.holds(checkpoint.when.as_ref()),
        CheckpointMode::Advisory => {
            !locked && unlocks && case.certainly_holds(checkpoint.when.as_ref())
        }
        CheckpointMode::Observational => false,
    }
}

/// Returns the checkpoints that can still unlock a capability, as help text.
fn unlock_help(session: &Session, atlas: &Atlas, capability: &Capability) -> Option<String> {
    let locked = session.locked.contains(&capability.id);
    if locked && !session.can_lift(&atlas.id, &capability.id) {
        return None;
    }
    let unlocking = |mode| {
        let checkpoints = atlas.checkpoints.iter().filter(move |checkpoint| {
            // The start of this session is over, and its end injects nothing.
            let past = matches!(
                checkpoint.trigger,
                Trigger::SessionStart | Trigger::SessionEnd
            );
            checkpoint.mode == mode
                && !past
                && checkpoint.unlock_capabilities.contains(&capability.id)
                && !checkpoint.lock_capabilities.contains(&capability.id)
        });
        let names = checkpoints.map(|checkpoint| format!("`{}`", checkpoint.id));
        names.collect::<Vec<_>>().join(" or ")
    };
    let gates = unlocking(CheckpointMode::Blocking);
    if !gates.is_empty() {
        return Some(format!("to unlock the capability, pass {gates}"));
    }
    let advice = unlocking(CheckpointMode::Advisory);
    (!locked && !advice.is_empty())
        .then(|| format!("the capability is unlocked when {advice} fires"))
}

pub(crate) fn bad_parameters(matches: &ActionMatches<'_>, call: ActionView<'_>) -> Option<Denial> {
    let mut actions = matches.actions();
    let problem = actions.find_map(|action| action.parameter_error(call.params))?;
    let reason = format!(
        "the parameters of `{}` are not valid: {problem}",
        call.action
    );
    Some(denial(
        "parameters_schema",
        DenyCode::Parameters,
        reason,
        None,
    ))
}

pub(crate) fn denial(by: &str, code: DenyCode, reason: String, help: Option<&str>) -> Denial {
    Denial {
        by: by.to_owned(),
        atlas: None,
        denied: DenialReply {
            code,
            reason,
            help: help.map(str::to_owned),
            gate: None,
        },
        overrides: None,
    }
}
