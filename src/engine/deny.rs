//! What refuses an action, whatever gates say. Reads state, changes none.

use crate::atlas::document::{CheckpointMode, UnknownActions};
use crate::atlas::index::{Matches, When};

use super::command::{Denied, DenyCode};
use super::evaluate::Case;
use super::gate::OwnedApproval;
use super::held::Asked;
use super::session::Session;

/// A refusal that no answer at a gate can lift.
#[derive(Debug)]
pub(super) struct Denial {
    /// What refuses, for the record.
    pub(super) by: String,
    /// What the agent is told.
    pub(super) denied: Denied,
    /// What an operator may do about it after all.
    pub(super) overrides: Option<OwnedApproval>,
}

pub(super) fn unknown_action(case: Case<'_, '_>, matches: &Matches<'_>) -> Option<Denial> {
    let (atlases, action) = (case.atlases, case.call.action);
    if matches.known() || case.session.allows(action) {
        return None;
    }
    // Deny in any Atlas wins, and no Atlas at all allows nothing.
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

pub(super) fn denied_action(session: &Session, action: &str) -> Option<Denial> {
    let (gate, pattern) = session.denial_of(action)?;
    let reason = format!("checkpoint `{gate}` denies `{pattern}` in this session");
    Some(denial(gate, DenyCode::DeniedAction, reason, None))
}

pub(super) fn locked_capability(case: Case<'_, '_>, matches: &Matches<'_>) -> Option<Denial> {
    let session = case.session;
    for matched in matches.capabilities() {
        let (atlas, capability) = (matched.atlas, matched.item);
        if !session.lacks(atlas, capability) {
            continue;
        }
        // A gate that stands before it takes over, unless its condition keeps it from firing.
        let mut gates = atlas.checkpoints_when(When::Access(&capability.id));
        let takes_over = !session.locked.contains(&capability.id)
            && gates.any(|(_, gate)| {
                gate.mode == CheckpointMode::Blocking && case.holds(gate.when.as_ref())
            });
        if takes_over {
            continue;
        }
        let unlocking: Vec<_> = atlas
            .checkpoints
            .iter()
            .filter(|checkpoint| checkpoint.unlock_capabilities.contains(&capability.id))
            .map(|checkpoint| format!("`{}`", checkpoint.id))
            .collect();
        let reason = format!("capability `{}` is locked in this session", capability.id);
        let mut denial = denial(&capability.id, DenyCode::CapabilityLocked, reason, None);
        if !unlocking.is_empty() {
            let help = format!("it is unlocked by passing {}", unlocking.join(" or "));
            denial.denied.help = Some(help);
        }
        return Some(denial);
    }
    None
}

pub(super) fn bad_parameters(matches: &Matches<'_>, call: Asked<'_>) -> Option<Denial> {
    let mut actions = matches.actions();
    let told = actions.find_map(|action| action.parameter_fault(call.params))?;
    let reason = format!("the parameters of `{}` are wrong: {told}", call.action);
    Some(denial(
        "parameters_schema",
        DenyCode::Parameters,
        reason,
        None,
    ))
}

pub(super) fn denial(by: &str, code: DenyCode, reason: String, help: Option<&str>) -> Denial {
    Denial {
        by: by.to_owned(),
        denied: Denied {
            code,
            reason,
            help: help.map(str::to_owned),
            gate: None,
        },
        overrides: None,
    }
}
