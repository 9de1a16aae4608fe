//! Verdict of the policies on an action: denials, approvals, limits and defaults. Reads state and changes
//! none.

use std::borrow::Cow;

use crate::atlas::Atlas;
use crate::atlas::document::{DefaultDecision, PolicyKind, UnknownActions};
use crate::atlas::index::ActionMatches;
use crate::atlas::model::Policy;
use crate::trace::event::PolicyOutcome as Verdict;

use super::EvaluationCase;
use super::denial::{Denial, denial};
use super::fired_checkpoint::OwnedRequiredApproval;
use super::usage::{AppliedLimit, limit_key};
use crate::engine::command::DenyCode;
use crate::engine::gates::permits::override_key;
use crate::engine::records::action_records::atlas_ref;

/// Verdict of the policies.
#[derive(Debug)]
pub(crate) struct PolicyOutcome<'a> {
    /// The deciding policy or other rule; `default_decision` if nothing matched.
    pub(crate) policy_id: Cow<'a, str>,
    /// The Atlas of the deciding policy, if a single Atlas decides.
    pub(crate) atlas: Option<&'a Atlas>,
    /// The matching pattern.
    pub(crate) rule: Option<&'a str>,
    /// The decision.
    pub(crate) decision: Verdict,
    /// Number of evaluated policies.
    pub(crate) looked_at: u64,
}

/// An approval that a policy requires.
#[derive(Debug)]
pub(crate) struct RequiredApproval<'a> {
    /// The Atlas.
    pub(crate) atlas: &'a Atlas,
    /// The policy.
    pub(crate) policy_id: &'a str,
    /// The matching pattern.
    pub(crate) rule: Option<&'a str>,
    /// Reason of the policy.
    pub(crate) reason: &'a str,
    /// Reason why the policy applies, for people.
    pub(crate) why: String,
}

pub(crate) fn approvals<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
) -> Vec<RequiredApproval<'a>> {
    let EvaluationCase { atlases, call, .. } = case;
    let mut approvals = Vec::new();
    for matched in matches.policies() {
        let policy = matched.item;
        if policy.kind == PolicyKind::RequiresApproval && case.holds(policy.when.as_ref()) {
            let (action, pattern) = (call.action, matched.pattern);
            approvals.push(RequiredApproval {
                atlas: matched.atlas,
                policy_id: &policy.id,
                rule: Some(pattern.as_str()),
                reason: &policy.reason,
                why: format!("needs approval: `{action}` matches `{pattern}`"),
            });
        }
    }
    // One approval is enough: a policy that requires approval is more specific.
    if approvals.is_empty()
        && !matches.is_known()
        && let Some(atlas) = atlases
            .iter()
            .find(|a| a.unknown_actions == UnknownActions::Approve)
    {
        approvals.push(RequiredApproval {
            atlas,
            policy_id: "unknown_actions",
            rule: None,
            reason: "no Atlas knows this action",
            why: "unknown actions need approval".to_owned(),
        });
    }
    approvals
}

/// A policy that denies an action, or whose limit is used up.
pub(crate) struct DenyingPolicy<'a> {
    pub(crate) atlas: &'a Atlas,
    pub(crate) rule: &'a str,
    pub(crate) denial: Denial,
}

/// Returns the policy that denies an action. A final denial comes before an overridable one.
pub(crate) fn denying_policy<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
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
    let overrides = policy.overridable.then(|| OwnedRequiredApproval {
        atlas_id: denying.atlas.id.clone(),
        policy_id: policy.id.clone(),
        reason: reason.clone(),
        why: format!("{reason} (`{action}` matches `{pattern}`); can be overruled"),
        overrides: true,
    });
    let help =
        (policy.overridable).then_some("an operator may overrule this denial for one request");
    Some(DenyingPolicy {
        atlas: denying.atlas,
        rule: pattern.as_str(),
        denial: Denial {
            overrides,
            atlas: Some(atlas_ref(denying.atlas)),
            ..denial(&policy.id, DenyCode::Policy, reason, help)
        },
    })
}

/// Returns the first denying policy that an operator overruled for exactly this request.
fn overruled_policy<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
) -> Option<(&'a Atlas, &'a str, &'a str)> {
    let mut policies = matches.policies();
    let overruled = policies.find(|matched| {
        matched.item.kind == PolicyKind::Deny
            && case.holds(matched.item.when.as_ref())
            && overridden(case, matched.atlas, matched.item)
    })?;
    let policy = overruled.item;
    Some((overruled.atlas, &policy.id, overruled.pattern.as_str()))
}

fn overridden(case: EvaluationCase<'_, '_>, atlas: &Atlas, policy: &Policy) -> bool {
    policy.overridable
        && !case.overridden.is_empty()
        && case
            .overridden
            .contains(&override_key(&atlas.id, &policy.id))
}

/// A denial, with the data for the policy record.
#[derive(Clone, Copy)]
pub(crate) struct DenialSource<'a, 'd> {
    pub(crate) denial: &'d Denial,
    /// Atlas and pattern of the denying policy, if a policy denies.
    pub(crate) by: Option<(&'a Atlas, &'a str)>,
}

/// Returns the policies' verdict. It agrees with the decision: a denial is always attributed to the rule that
/// denies.
pub(crate) fn policy_verdict<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
    denying: Option<DenialSource<'a, '_>>,
    by_default: DefaultRule,
    approvals: &[RequiredApproval<'a>],
) -> PolicyOutcome<'a> {
    let policies = case.atlases.iter().map(|atlas| atlas.policies.len() as u64);
    let looked_at = policies.sum();
    let verdict = |policy_id, atlas, rule, decision| PolicyOutcome {
        policy_id,
        atlas,
        rule,
        decision,
        looked_at,
    };
    if let Some(DenialSource { denial, by }) = denying {
        let (atlas, rule) = by.unzip();
        return verdict(Cow::Owned(denial.by.clone()), atlas, rule, Verdict::Deny);
    }
    if let Some((atlas, id, rule)) = overruled_policy(case, matches) {
        return verdict(Cow::Borrowed(id), Some(atlas), Some(rule), Verdict::Allow);
    }
    if let Some(approval) = approvals.first() {
        let (id, rule) = (Cow::Borrowed(approval.policy_id), approval.rule);
        return verdict(id, Some(approval.atlas), rule, Verdict::RequireApproval);
    }
    let allowing = matches.policies().find(|matched| {
        matched.item.kind == PolicyKind::Allow && case.certainly_holds(matched.item.when.as_ref())
    });
    match (allowing, by_default) {
        (Some(by), _) => {
            let (id, rule) = (Cow::Borrowed(by.item.id.as_str()), by.pattern.as_str());
            verdict(id, Some(by.atlas), Some(rule), Verdict::Allow)
        }
        (None, DefaultRule(policy_id)) => {
            verdict(Cow::Borrowed(policy_id), None, None, Verdict::Allow)
        }
    }
}

/// The rule that allows an action if no policy decides.
#[derive(Clone, Copy)]
pub(crate) struct DefaultRule(&'static str);

pub(crate) fn by_default(case: EvaluationCase<'_, '_>) -> DefaultRule {
    if case.session.allows(case.call.action) {
        DefaultRule("allow_actions")
    } else {
        DefaultRule("default_decision")
    }
}

/// Returns the limits that a run counts against.
pub(crate) fn limits(case: EvaluationCase<'_, '_>) -> Vec<AppliedLimit> {
    let mut limits = Vec::new();
    for matched in ActionMatches::of(case.atlases, case.call.action).policies() {
        let policy = matched.item;
        if let Some(limit) = &policy.limit
            && case.holds(policy.when.as_ref())
        {
            limits.push(AppliedLimit {
                key: limit_key(matched.atlas, policy, case.session),
                limit: limit.clone(),
            });
        }
    }
    limits
}

/// Returns the policy whose limit is used up, if any.
pub(crate) fn spent_limit<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
) -> Option<DenyingPolicy<'a>> {
    let (session, call) = (case.session, case.call);
    for matched in matches.policies() {
        let policy = matched.item;
        if policy.limit.is_none() || !case.holds(policy.when.as_ref()) {
            continue;
        }
        let usage = case.usage;
        let refusal = usage.limit_refusal(matched.atlas, policy, session, call.params, case.now);
        let Some(what) = refusal else { continue };
        let mut reason = format!("policy `{}` limits `{}`: {what}", policy.id, call.action);
        if !policy.reason.is_empty() {
            reason = format!("{reason} ({})", policy.reason);
        }
        return Some(DenyingPolicy {
            atlas: matched.atlas,
            rule: matched.pattern.as_str(),
            denial: Denial {
                atlas: Some(atlas_ref(matched.atlas)),
                ..denial(&policy.id, DenyCode::Limit, reason, None)
            },
        });
    }
    None
}

/// Returns the denial by an Atlas whose default decision is to deny.
///
/// If the Atlas knows the action, policies of other Atlases cannot allow it. If it does not, an allowing
/// policy of any Atlas is enough.
pub(crate) fn not_allowed(
    case: EvaluationCase<'_, '_>,
    matches: &ActionMatches<'_>,
) -> Option<Denial> {
    let action = case.call.action;
    let mut denying = case
        .atlases
        .iter()
        .filter(|atlas| atlas.default_decision == DefaultDecision::Deny)
        .peekable();
    denying.peek()?;
    let mentions = |policy: &Policy| match policy.kind {
        PolicyKind::Allow => case.certainly_holds(policy.when.as_ref()),
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
    if !denying.any(|atlas| !mentioned_by(atlas) && (matches.is_known_by(atlas) || !mentioned)) {
        return None;
    }
    let reason = format!("no policy allows `{action}`, and the default decision is deny");
    Some(denial("default_decision", DenyCode::Policy, reason, None))
}
