//! What stands in a request's way. Reads state, changes none.

use serde_json::Value;

use super::held::{ActionCall, TierSource};
use super::risk;
use super::session::Session;
use crate::atlas::compiled::{Atlas, Checkpoint, Trigger};
use crate::atlas::document::{DefaultDecision, PolicyKind, RiskTier, UnknownActions};

use super::command::{Denied, DenyCode};

/// What an evaluation comes to.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    /// Which policy decided what, for the record.
    pub(super) policy: PolicyVerdict<'a>,
    /// A refusal that no answer can lift.
    pub(super) denial: Option<Denial>,
    /// Checkpoints that fire, highest priority first.
    pub(super) fired: Vec<Fired<'a>>,
    /// Policies that want an operator's approval.
    pub(super) approvals: Vec<Approval<'a>>,
}

/// What the policies say.
#[derive(Debug)]
pub(super) struct PolicyVerdict<'a> {
    /// The policy that decided; `default` when none matched.
    pub(super) policy_id: &'a str,
    /// The pattern that matched.
    pub(super) rule: Option<&'a str>,
    /// `allow`, `deny` or `require_approval`.
    pub(super) decision: &'static str,
    /// How many policies were looked at.
    pub(super) looked_at: u64,
}

/// A refusal that no answer can lift.
#[derive(Debug)]
pub(super) struct Denial {
    /// What refuses, for the record.
    pub(super) by: String,
    /// What the agent is told.
    pub(super) denied: Denied,
}

/// A checkpoint that fires.
#[derive(Debug)]
pub(super) struct Fired<'a> {
    /// Its Atlas.
    pub(super) atlas: &'a Atlas,
    /// The checkpoint.
    pub(super) checkpoint: &'a Checkpoint,
    /// Why, for people.
    pub(super) why: String,
}

/// An approval that a policy wants.
#[derive(Debug)]
pub(super) struct Approval<'a> {
    /// The Atlas.
    pub(super) atlas: &'a Atlas,
    /// The policy.
    pub(super) policy_id: &'a str,
    /// Why it wants it.
    pub(super) reason: &'a str,
    /// Why it applies, for people.
    pub(super) why: String,
}

/// Evaluates an action against every Atlas. Deny in any of them wins.
pub(super) fn action<'a>(
    atlases: &'a [Atlas],
    session: &Session,
    call: &ActionCall,
) -> Evaluation<'a> {
    let approvals = approvals(atlases, call);
    let denied_by = denying_policy(atlases, &call.action);
    let policy = policy_verdict(atlases, &call.action, denied_by.as_ref(), &approvals);
    let denial = unknown_action(atlases, session, &call.action)
        .or(denied_by.map(|policy| policy.denial))
        .or_else(|| denied_action(session, &call.action))
        .or_else(|| locked_capability(atlases, session, &call.action))
        .or_else(|| not_allowed(atlases, session, &call.action))
        .or_else(|| bad_parameters(atlases, call));
    Evaluation {
        policy,
        denial,
        fired: fired(atlases, session, call),
        approvals,
    }
}

/// The checkpoints that fire when a session starts.
pub(super) fn session_start(atlases: &[Atlas]) -> Vec<Fired<'_>> {
    let mut fired = Vec::new();
    for atlas in atlases {
        let matching = atlas
            .checkpoints
            .iter()
            .filter(|c| c.trigger == Trigger::SessionStart);
        fired.extend(matching.map(|checkpoint| Fired {
            atlas,
            checkpoint,
            why: "session_start: every session begins here".to_owned(),
        }));
    }
    by_priority(fired)
}

/// How risky an action is. The highest declared tier counts; without one it is detected.
pub(super) fn tier(atlases: &[Atlas], action: &str, params: &Value) -> (RiskTier, TierSource) {
    let declared = atlases
        .iter()
        .filter_map(|atlas| atlas.actions.get(action)?.risk_tier)
        .max();
    match declared {
        Some(tier) => (tier, TierSource::Declared),
        None => (risk::detect(action, params), TierSource::Detected),
    }
}

fn fired<'a>(atlases: &'a [Atlas], session: &Session, call: &ActionCall) -> Vec<Fired<'a>> {
    let mut fired = Vec::new();
    for atlas in atlases {
        for checkpoint in &atlas.checkpoints {
            if let Some(why) = fires(atlas, checkpoint, session, call) {
                fired.push(Fired {
                    atlas,
                    checkpoint,
                    why,
                });
            }
        }
    }
    by_priority(fired)
}

fn fires(
    atlas: &Atlas,
    checkpoint: &Checkpoint,
    session: &Session,
    call: &ActionCall,
) -> Option<String> {
    match &checkpoint.trigger {
        Trigger::SessionStart => None,
        Trigger::ActionPre(patterns) => {
            let pattern = patterns.first_match(&call.action)?;
            Some(format!("action_pre: `{}` matches `{pattern}`", call.action))
        }
        Trigger::RiskThreshold(min_tier) => {
            let source = match call.tier_source {
                TierSource::Declared => "declared",
                TierSource::Detected => "detected",
            };
            let tier = call.tier;
            let why = format!("risk_threshold: {source} tier {tier} is at least {min_tier}");
            (call.tier >= *min_tier).then_some(why)
        }
        Trigger::CapabilityAccess(gated) => {
            let capability = atlas
                .capabilities_of(&call.action)
                .find(|capability| gated.contains(&capability.id) && session.lacks(capability))?;
            Some(format!("capability_access: `{}` is locked", capability.id))
        }
    }
}

fn by_priority(mut fired: Vec<Fired<'_>>) -> Vec<Fired<'_>> {
    // Stable: ties stay in the order of the Atlases, then as written.
    fired.sort_by_key(|fired| std::cmp::Reverse(fired.checkpoint.priority));
    fired
}

fn approvals<'a>(atlases: &'a [Atlas], call: &ActionCall) -> Vec<Approval<'a>> {
    let mut approvals = Vec::new();
    for atlas in atlases {
        for policy in &atlas.policies {
            let pattern = policy.actions.first_match(&call.action);
            if let (PolicyKind::RequiresApproval, Some(pattern)) = (policy.kind, pattern) {
                approvals.push(Approval {
                    atlas,
                    policy_id: &policy.id,
                    reason: &policy.reason,
                    why: format!("requires_approval: `{}` matches `{pattern}`", call.action),
                });
            }
        }
    }
    if !known(atlases, &call.action)
        && let Some(atlas) = atlases
            .iter()
            .find(|a| a.unknown_actions == UnknownActions::Approve)
    {
        approvals.push(Approval {
            atlas,
            policy_id: "unknown_actions",
            reason: "no Atlas knows this action",
            why: "unknown_actions: approve".to_owned(),
        });
    }
    approvals
}

struct DenyingPolicy<'a> {
    policy_id: &'a str,
    rule: &'a str,
    denial: Denial,
}

fn denying_policy<'a>(atlases: &'a [Atlas], action: &str) -> Option<DenyingPolicy<'a>> {
    let policies = atlases.iter().flat_map(|atlas| &atlas.policies);
    let denying = policies.filter(|policy| policy.kind == PolicyKind::Deny);
    denying
        .filter_map(|policy| Some((policy, policy.actions.first_match(action)?)))
        .map(|(policy, pattern)| {
            let reason = if policy.reason.is_empty() {
                format!("policy `{}` denies `{action}`", policy.id)
            } else {
                format!(
                    "policy `{}` denies `{action}`: {}",
                    policy.id, policy.reason
                )
            };
            DenyingPolicy {
                policy_id: &policy.id,
                rule: pattern.as_str(),
                denial: denial(&policy.id, DenyCode::Policy, reason, None),
            }
        })
        .next()
}

fn policy_verdict<'a>(
    atlases: &'a [Atlas],
    action: &str,
    denying: Option<&DenyingPolicy<'a>>,
    approvals: &[Approval<'a>],
) -> PolicyVerdict<'a> {
    let policies = || atlases.iter().flat_map(|atlas| &atlas.policies);
    let looked_at = policies().count() as u64;
    let verdict = |policy_id, rule, decision| PolicyVerdict {
        policy_id,
        rule,
        decision,
        looked_at,
    };
    if let Some(denying) = denying {
        return verdict(denying.policy_id, Some(denying.rule), "deny");
    }
    if let Some(approval) = approvals.first() {
        return verdict(approval.policy_id, None, "require_approval");
    }
    let allowing = policies()
        .filter(|policy| policy.kind == PolicyKind::Allow)
        .find_map(|policy| Some((policy, policy.actions.first_match(action)?)));
    match allowing {
        Some((policy, pattern)) => verdict(&policy.id, Some(pattern.as_str()), "allow"),
        None if defaults_to_deny(atlases) => verdict("default_decision", None, "deny"),
        None => verdict("default_decision", None, "allow"),
    }
}

fn defaults_to_deny(atlases: &[Atlas]) -> bool {
    atlases
        .iter()
        .any(|atlas| atlas.default_decision == DefaultDecision::Deny)
}

fn known(atlases: &[Atlas], action: &str) -> bool {
    atlases.iter().any(|atlas| atlas.knows(action))
}

fn unknown_action(atlases: &[Atlas], session: &Session, action: &str) -> Option<Denial> {
    if known(atlases, action) || session.allows(action) {
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

fn denied_action(session: &Session, action: &str) -> Option<Denial> {
    let (gate, pattern) = session.denial_of(action)?;
    let reason = format!("checkpoint `{gate}` denies `{pattern}` in this session");
    Some(denial(gate, DenyCode::DeniedAction, reason, None))
}

fn locked_capability(atlases: &[Atlas], session: &Session, action: &str) -> Option<Denial> {
    for atlas in atlases {
        for capability in atlas.capabilities_of(action) {
            let gated = !session.locked.contains(&capability.id)
                && gates_of(atlas, &capability.id).next().is_some();
            if !session.lacks(capability) || gated {
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
    }
    None
}

/// The checkpoints that gate access to a capability.
fn gates_of<'a>(atlas: &'a Atlas, capability: &'a str) -> impl Iterator<Item = &'a Checkpoint> {
    atlas.checkpoints.iter().filter(move |checkpoint| {
        matches!(&checkpoint.trigger, Trigger::CapabilityAccess(gated) if gated.contains(capability))
            && checkpoint.mode == crate::atlas::document::CheckpointMode::Blocking
    })
}

fn not_allowed(atlases: &[Atlas], session: &Session, action: &str) -> Option<Denial> {
    if !defaults_to_deny(atlases) || session.allows(action) {
        return None;
    }
    let mut policies = atlases.iter().flat_map(|atlas| &atlas.policies);
    let mentioned = policies.any(|policy| {
        matches!(
            policy.kind,
            PolicyKind::Allow | PolicyKind::RequiresApproval
        ) && policy.actions.matches(action)
    });
    if mentioned {
        return None;
    }
    let reason = format!("no policy allows `{action}`, and default_decision is deny");
    Some(denial("default_decision", DenyCode::Policy, reason, None))
}

fn bad_parameters(atlases: &[Atlas], call: &ActionCall) -> Option<Denial> {
    let mut actions = atlases
        .iter()
        .filter_map(|atlas| atlas.actions.get(&call.action));
    let told = actions.find_map(|action| action.parameter_fault(&call.params))?;
    let reason = format!("the parameters of `{}` are wrong: {told}", call.action);
    Some(denial(
        "parameters_schema",
        DenyCode::Parameters,
        reason,
        None,
    ))
}

fn denial(by: &str, code: DenyCode, reason: String, help: Option<&str>) -> Denial {
    Denial {
        by: by.to_owned(),
        denied: Denied {
            code,
            reason,
            help: help.map(str::to_owned),
            gate: None,
        },
    }
}
