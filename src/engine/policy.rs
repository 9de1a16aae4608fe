//! What policies make of an action: denials, approvals, limits and defaults. Reads state, changes none.

use crate::atlas::Atlas;
use crate::atlas::compiled::Policy;
use crate::atlas::document::{DefaultDecision, PolicyKind, UnknownActions};

use super::command::DenyCode;
use super::deny::{Denial, denial, known, unknown_action};
use super::evaluate::Case;
use super::gate::OwnedApproval;
use super::usage::{AppliedLimit, key};

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

pub(super) fn approvals<'a>(case: Case<'a, '_>) -> Vec<Approval<'a>> {
    let Case { atlases, call, .. } = case;
    let mut approvals = Vec::new();
    for atlas in atlases {
        for policy in &atlas.policies {
            let pattern = policy.actions.first_match(&call.action);
            if let (PolicyKind::RequiresApproval, Some(pattern)) = (policy.kind, pattern)
                && case.holds(policy.when.as_ref())
            {
                approvals.push(Approval {
                    atlas,
                    policy_id: &policy.id,
                    reason: &policy.reason,
                    why: format!("requires_approval: `{}` matches `{pattern}`", call.action),
                });
            }
        }
    }
    // Asked once is asked enough: a policy that wants approval has said more.
    if approvals.is_empty()
        && !known(atlases, &call.action)
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

pub(super) struct DenyingPolicy<'a> {
    policy_id: &'a str,
    rule: &'a str,
    pub(super) denial: Denial,
}

/// The policy that denies an action: one that is final, rather than one an operator may overrule.
pub(super) fn denying_policy<'a>(case: Case<'a, '_>) -> Option<DenyingPolicy<'a>> {
    let Case { atlases, call, .. } = case;
    let action = call.action.as_str();
    let policies = atlases
        .iter()
        .flat_map(|atlas| atlas.policies.iter().map(move |policy| (atlas, policy)));
    let denying = policies.filter(|(atlas, policy)| {
        policy.kind == PolicyKind::Deny
            && case.holds(policy.when.as_ref())
            && !overridden(case, atlas, policy)
    });
    let (atlas, policy, pattern) = denying
        .filter_map(|(atlas, policy)| Some((atlas, policy, policy.actions.first_match(action)?)))
        .min_by_key(|(_, policy, _)| policy.overridable)?;
    let reason = if policy.reason.is_empty() {
        format!("policy `{}` denies `{action}`", policy.id)
    } else {
        format!(
            "policy `{}` denies `{action}`: {}",
            policy.id, policy.reason
        )
    };
    let overrides = policy.overridable.then(|| OwnedApproval {
        atlas_id: atlas.id.clone(),
        policy_id: policy.id.clone(),
        reason: reason.clone(),
        why: format!("deny: `{action}` matches `{pattern}`; it may be overruled"),
        overrides: true,
    });
    Some(DenyingPolicy {
        policy_id: &policy.id,
        rule: pattern.as_str(),
        denial: Denial {
            overrides,
            ..denial(&policy.id, DenyCode::Policy, reason, None)
        },
    })
}

fn overridden(case: Case<'_, '_>, atlas: &Atlas, policy: &Policy) -> bool {
    policy.overridable
        && !case.overridden.is_empty()
        && case
            .overridden
            .contains(&format!("{}/{}", atlas.id, policy.id))
}

/// What the policies come to, in agreement with what happens: what is denied by default is not
/// recorded as allowed, and the other way round.
pub(super) fn policy_verdict<'a>(
    case: Case<'a, '_>,
    denying: Option<&DenyingPolicy<'a>>,
    by_default: ByDefault,
    approvals: &[Approval<'a>],
) -> PolicyVerdict<'a> {
    let Case { atlases, call, .. } = case;
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
    if let ByDefault::Deny(policy_id) = by_default {
        return verdict(policy_id, None, "deny");
    }
    if let Some(approval) = approvals.first() {
        return verdict(approval.policy_id, None, "require_approval");
    }
    let allowing = policies()
        .filter(|policy| policy.kind == PolicyKind::Allow)
        .filter(|policy| case.surely_holds(policy.when.as_ref()))
        .find_map(|policy| Some((policy, policy.actions.first_match(&call.action)?)));
    match (allowing, by_default) {
        (Some((policy, pattern)), _) => verdict(&policy.id, Some(pattern.as_str()), "allow"),
        (None, ByDefault::Allow(policy_id) | ByDefault::Deny(policy_id)) => {
            verdict(policy_id, None, "allow")
        }
    }
}

/// What holds for an action where no policy decides, and what says so.
#[derive(Clone, Copy)]
pub(super) enum ByDefault {
    Allow(&'static str),
    Deny(&'static str),
}

pub(super) fn default_for(case: Case<'_, '_>) -> ByDefault {
    let (session, action) = (case.session, case.call.action.as_str());
    if unknown_action(case.atlases, session, action).is_some() {
        ByDefault::Deny("unknown_actions")
    } else if not_allowed(case).is_some() {
        ByDefault::Deny("default_decision")
    } else if session.allows(action) {
        ByDefault::Allow("allow_actions")
    } else {
        ByDefault::Allow("default_decision")
    }
}

/// The limits that a run draws on.
pub(super) fn limits(case: Case<'_, '_>) -> Vec<AppliedLimit> {
    let mut limits = Vec::new();
    for atlas in case.atlases {
        for policy in &atlas.policies {
            let applies =
                policy.actions.matches(&case.call.action) && case.holds(policy.when.as_ref());
            if let (true, Some(limit)) = (applies, &policy.limit) {
                limits.push(AppliedLimit {
                    key: key(atlas, policy, &case.session.id),
                    limit: limit.clone(),
                });
            }
        }
    }
    limits
}

/// A limit that is used up.
pub(super) fn spent_limit(case: Case<'_, '_>) -> Option<Denial> {
    for atlas in case.atlases {
        for policy in &atlas.policies {
            if !policy.actions.matches(&case.call.action) || !case.holds(policy.when.as_ref()) {
                continue;
            }
            let session = &case.session.id;
            let refusal = case
                .usage
                .refusal(atlas, policy, session, case.call, case.now);
            let Some(what) = refusal else { continue };
            let mut reason = format!(
                "policy `{}` limits `{}`: {what}",
                policy.id, case.call.action
            );
            if !policy.reason.is_empty() {
                reason = format!("{reason} ({})", policy.reason);
            }
            return Some(denial(&policy.id, DenyCode::Limit, reason, None));
        }
    }
    None
}

/// An Atlas that denies by default what it knows is not overruled by what another one allows; where
/// it does not know the action, an allowing policy of any Atlas will do.
pub(super) fn not_allowed(case: Case<'_, '_>) -> Option<Denial> {
    let Case {
        atlases,
        session,
        call,
        ..
    } = case;
    let action = call.action.as_str();
    if session.allows(action) {
        return None;
    }
    let mentions = |atlas: &Atlas| {
        atlas.policies.iter().any(|policy| {
            let applies = match policy.kind {
                PolicyKind::Allow => case.surely_holds(policy.when.as_ref()),
                PolicyKind::RequiresApproval => case.holds(policy.when.as_ref()),
                PolicyKind::Deny | PolicyKind::RateLimit | PolicyKind::Budget => false,
            };
            applies && policy.actions.matches(action)
        })
    };
    let mentioned = atlases.iter().any(mentions);
    let mut denying = atlases
        .iter()
        .filter(|atlas| atlas.default_decision == DefaultDecision::Deny);
    if !denying.any(|atlas| !mentions(atlas) && (atlas.knows(action) || !mentioned)) {
        return None;
    }
    let reason = format!("no policy allows `{action}`, and default_decision is deny");
    Some(denial("default_decision", DenyCode::Policy, reason, None))
}
