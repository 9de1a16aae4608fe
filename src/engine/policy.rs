//! What policies make of an action: denials, approvals, limits and defaults. Reads state, changes none.

use crate::atlas::Atlas;
use crate::atlas::compiled::Policy;
use crate::atlas::document::{DefaultDecision, PolicyKind, UnknownActions};
use crate::atlas::index::Matches;
use crate::trace::event::PolicyVerdict as Verdict;

use super::attempt::override_key;
use super::command::DenyCode;
use super::deny::{Denial, denial};
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
    /// What they say.
    pub(super) decision: Verdict,
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

pub(super) fn approvals<'a>(case: Case<'a, '_>, matches: &Matches<'a>) -> Vec<Approval<'a>> {
    let Case { atlases, call, .. } = case;
    let mut approvals = Vec::new();
    for matched in matches.policies() {
        let policy = matched.item;
        if policy.kind == PolicyKind::RequiresApproval && case.holds(policy.when.as_ref()) {
            let (action, pattern) = (call.action, matched.pattern);
            approvals.push(Approval {
                atlas: matched.atlas,
                policy_id: &policy.id,
                reason: &policy.reason,
                why: format!("requires_approval: `{action}` matches `{pattern}`"),
            });
        }
    }
    // Asked once is asked enough: a policy that wants approval has said more.
    if approvals.is_empty()
        && !matches.known()
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
pub(super) fn denying_policy<'a>(
    case: Case<'a, '_>,
    matches: &Matches<'a>,
) -> Option<DenyingPolicy<'a>> {
    let action = case.call.action;
    let denying = matches.policies().filter(|matched| {
        matched.item.kind == PolicyKind::Deny
            && case.holds(matched.item.when.as_ref())
            && !overridden(case, matched.atlas, matched.item)
    });
    let denying = denying.min_by_key(|matched| matched.item.overridable)?;
    let policy = denying.item;
    let reason = if policy.reason.is_empty() {
        format!("policy `{}` denies `{action}`", policy.id)
    } else {
        format!(
            "policy `{}` denies `{action}`: {}",
            policy.id, policy.reason
        )
    };
    let pattern = denying.pattern;
    let overrides = policy.overridable.then(|| OwnedApproval {
        atlas_id: denying.atlas.id.clone(),
        policy_id: policy.id.clone(),
        reason: reason.clone(),
        why: format!("{reason} (`{action}` matches `{pattern}`); it may be overruled"),
        overrides: true,
    });
    let help = (policy.overridable).then_some("an operator may overrule it for one request");
    Some(DenyingPolicy {
        policy_id: &policy.id,
        rule: pattern.as_str(),
        denial: Denial {
            overrides,
            ..denial(&policy.id, DenyCode::Policy, reason, help)
        },
    })
}

fn overridden(case: Case<'_, '_>, atlas: &Atlas, policy: &Policy) -> bool {
    policy.overridable
        && !case.overridden.is_empty()
        && case
            .overridden
            .contains(&override_key(&atlas.id, &policy.id))
}

/// What the policies come to, in agreement with what happens: what is denied by default is not
/// recorded as allowed, and the other way round.
pub(super) fn policy_verdict<'a>(
    case: Case<'a, '_>,
    matches: &Matches<'a>,
    denying: Option<&DenyingPolicy<'a>>,
    by_default: ByDefault,
    approvals: &[Approval<'a>],
) -> PolicyVerdict<'a> {
    let policies = case.atlases.iter().map(|atlas| atlas.policies.len() as u64);
    let looked_at = policies.sum();
    let verdict = |policy_id, rule, decision| PolicyVerdict {
        policy_id,
        rule,
        decision,
        looked_at,
    };
    if let Some(denying) = denying {
        return verdict(denying.policy_id, Some(denying.rule), Verdict::Deny);
    }
    if let ByDefault::Deny(policy_id) = by_default {
        return verdict(policy_id, None, Verdict::Deny);
    }
    if let Some(approval) = approvals.first() {
        return verdict(approval.policy_id, None, Verdict::RequireApproval);
    }
    let allowing = matches.policies().find(|matched| {
        matched.item.kind == PolicyKind::Allow && case.surely_holds(matched.item.when.as_ref())
    });
    match (allowing, by_default) {
        (Some(by), _) => verdict(&by.item.id, Some(by.pattern.as_str()), Verdict::Allow),
        (None, ByDefault::Allow(policy_id) | ByDefault::Deny(policy_id)) => {
            verdict(policy_id, None, Verdict::Allow)
        }
    }
}

/// What holds for an action where no policy decides, and what says so.
#[derive(Clone, Copy)]
pub(super) enum ByDefault {
    Allow(&'static str),
    Deny(&'static str),
}

pub(super) fn by_default(
    case: Case<'_, '_>,
    unknown: Option<&Denial>,
    not_allowed: Option<&Denial>,
) -> ByDefault {
    if unknown.is_some() {
        ByDefault::Deny("unknown_actions")
    } else if not_allowed.is_some() {
        ByDefault::Deny("default_decision")
    } else if case.session.allows(case.call.action) {
        ByDefault::Allow("allow_actions")
    } else {
        ByDefault::Allow("default_decision")
    }
}

/// The limits that a run draws on.
pub(super) fn limits(case: Case<'_, '_>) -> Vec<AppliedLimit> {
    let mut limits = Vec::new();
    for matched in Matches::of(case.atlases, case.call.action).policies() {
        let policy = matched.item;
        if let Some(limit) = &policy.limit
            && case.holds(policy.when.as_ref())
        {
            limits.push(AppliedLimit {
                key: key(matched.atlas, policy, case.session),
                limit: limit.clone(),
            });
        }
    }
    limits
}

/// A limit that is used up.
pub(super) fn spent_limit(case: Case<'_, '_>, matches: &Matches<'_>) -> Option<Denial> {
    let (session, call) = (case.session, case.call);
    for matched in matches.policies() {
        let policy = matched.item;
        if policy.limit.is_none() || !case.holds(policy.when.as_ref()) {
            continue;
        }
        let usage = case.usage;
        let refusal = usage.refusal(matched.atlas, policy, session, call.params, case.now);
        let Some(what) = refusal else { continue };
        let mut reason = format!("policy `{}` limits `{}`: {what}", policy.id, call.action);
        if !policy.reason.is_empty() {
            reason = format!("{reason} ({})", policy.reason);
        }
        return Some(denial(&policy.id, DenyCode::Limit, reason, None));
    }
    None
}

/// An Atlas that denies by default what it knows is not overruled by what another one allows; where
/// it does not know the action, an allowing policy of any Atlas will do.
pub(super) fn not_allowed(case: Case<'_, '_>, matches: &Matches<'_>) -> Option<Denial> {
    let action = case.call.action;
    let mut denying = case
        .atlases
        .iter()
        .filter(|atlas| atlas.default_decision == DefaultDecision::Deny)
        .peekable();
    denying.peek()?;
    let mentions = |policy: &Policy| match policy.kind {
        PolicyKind::Allow => case.surely_holds(policy.when.as_ref()),
        PolicyKind::RequiresApproval => case.holds(policy.when.as_ref()),
        PolicyKind::Deny | PolicyKind::RateLimit | PolicyKind::Budget => false,
    };
    let allowed = case.session.allows(action);
    let mentioned = allowed || matches.policies().any(|matched| mentions(matched.item));
    let mentioned_by = |atlas: &Atlas| {
        let mut own = matches.policies();
        (allowed && case.session.allows_under(&atlas.id, action))
            || own.any(|matched| std::ptr::eq(matched.atlas, atlas) && mentions(matched.item))
    };
    if !denying.any(|atlas| !mentioned_by(atlas) && (matches.known_by(atlas) || !mentioned)) {
        return None;
    }
    let reason = format!("no policy allows `{action}`, and default_decision is deny");
    Some(denial("default_decision", DenyCode::Policy, reason, None))
}
