//! What stands in a request's way. Reads state, changes none.

use serde_json::Value;

use super::held::{ActionCall, TierSource};
use super::risk;
use super::session::Session;
use super::usage::{AppliedLimit, Usage, key};
use crate::atlas::compiled::{Atlas, Checkpoint, Trigger};
use crate::atlas::condition::{Condition, Facts, Truth};
use crate::atlas::document::{DefaultDecision, PolicyKind, RiskTier, UnknownActions};
use crate::base::clock::Timestamp;

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

/// What an action is judged by.
#[derive(Clone, Copy)]
pub(super) struct Case<'a, 's> {
    /// The Atlases.
    pub(super) atlases: &'a [Atlas],
    /// What was used of limits.
    pub(super) usage: &'s Usage,
    /// Who asks.
    pub(super) session: &'s Session,
    /// For what.
    pub(super) call: &'s ActionCall,
    /// When.
    pub(super) now: Timestamp,
}

impl Case<'_, '_> {
    fn facts(&self) -> Facts<'_> {
        Facts {
            action: Some(&self.call.action),
            params: Some(&self.call.params),
            input: None,
            session: self.session.id.as_str(),
            agent: &self.session.agent,
            intent: self.session.intent.as_deref(),
            actions: self.session.actions,
            started_at: self.session.started_at,
            now: self.now,
        }
    }

    /// Whether a condition lets a rule that holds agents back apply. What cannot be told does.
    fn holds(&self, when: Option<&Condition>) -> bool {
        when.is_none_or(|when| when.evaluate(&self.facts()) != Truth::False)
    }

    /// Whether a condition lets a rule that lets agents go on apply. What cannot be told does not.
    fn surely_holds(&self, when: Option<&Condition>) -> bool {
        when.is_none_or(|when| when.evaluate(&self.facts()) == Truth::True)
    }
}

/// Evaluates an action against every Atlas. Deny in any of them wins.
pub(super) fn action<'a>(case: Case<'a, '_>) -> Evaluation<'a> {
    let Case {
        atlases,
        session,
        call,
        ..
    } = case;
    let approvals = approvals(case);
    let denied_by = denying_policy(case);
    let policy = policy_verdict(case, denied_by.as_ref(), &approvals);
    let denial = unknown_action(atlases, session, &call.action)
        .or(denied_by.map(|policy| policy.denial))
        .or_else(|| denied_action(session, &call.action))
        .or_else(|| locked_capability(atlases, session, &call.action))
        .or_else(|| not_allowed(case))
        .or_else(|| bad_parameters(atlases, call))
        .or_else(|| spent_limit(case));
    Evaluation {
        policy,
        denial,
        fired: fired(case),
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

fn fired<'a>(case: Case<'a, '_>) -> Vec<Fired<'a>> {
    let mut fired = Vec::new();
    for atlas in case.atlases {
        for checkpoint in &atlas.checkpoints {
            if !case.holds(checkpoint.when.as_ref()) {
                continue;
            }
            if let Some(why) = fires(atlas, checkpoint, case.session, case.call) {
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

fn approvals<'a>(case: Case<'a, '_>) -> Vec<Approval<'a>> {
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

fn denying_policy<'a>(case: Case<'a, '_>) -> Option<DenyingPolicy<'a>> {
    let Case { atlases, call, .. } = case;
    let action = call.action.as_str();
    let policies = atlases.iter().flat_map(|atlas| &atlas.policies);
    let denying = policies
        .filter(|policy| policy.kind == PolicyKind::Deny && case.holds(policy.when.as_ref()));
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
    case: Case<'a, '_>,
    denying: Option<&DenyingPolicy<'a>>,
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
    if let Some(approval) = approvals.first() {
        return verdict(approval.policy_id, None, "require_approval");
    }
    let allowing = policies()
        .filter(|policy| policy.kind == PolicyKind::Allow)
        .filter(|policy| case.surely_holds(policy.when.as_ref()))
        .find_map(|policy| Some((policy, policy.actions.first_match(&call.action)?)));
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
fn spent_limit(case: Case<'_, '_>) -> Option<Denial> {
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

fn not_allowed(case: Case<'_, '_>) -> Option<Denial> {
    let Case {
        atlases,
        session,
        call,
        ..
    } = case;
    let action = call.action.as_str();
    if !defaults_to_deny(atlases) || session.allows(action) {
        return None;
    }
    let mut policies = atlases.iter().flat_map(|atlas| &atlas.policies);
    let mentioned = policies.any(|policy| {
        let applies = match policy.kind {
            PolicyKind::Allow => case.surely_holds(policy.when.as_ref()),
            PolicyKind::RequiresApproval => case.holds(policy.when.as_ref()),
            PolicyKind::Deny | PolicyKind::RateLimit | PolicyKind::Budget => false,
        };
        applies && policy.actions.matches(action)
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
