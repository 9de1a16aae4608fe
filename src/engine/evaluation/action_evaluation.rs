//! Evaluation of a request: every denial, checkpoint and approval in its way. Reads state and changes none.

use std::collections::BTreeSet;

use serde_json::Value;
use smallvec::SmallVec;

use super::denial::{Denial, bad_parameters, denied_action, locked_capability, unknown_action};
use super::policy::{
    DenialSource, DenyingPolicy, PolicyOutcome, RequiredApproval, approvals, by_default,
    denying_policy, not_allowed, policy_verdict, spent_limit,
};
use super::risk;
use super::usage::Usage;
use crate::atlas::condition::{Condition, Facts, Truth};
use crate::atlas::document::{RiskMode, RiskTier};
use crate::atlas::index::{ActionMatches, CheckpointEvent};
use crate::atlas::keyword::KeywordMatch;
use crate::atlas::model::{Atlas, Capability, Checkpoint, CustomTrigger, Trigger};
use crate::base::clock::Timestamp;
use crate::engine::extensions::Extensions;
use crate::engine::extensions::custom_triggers::{CustomTriggerFiring, CustomTriggers};
use crate::engine::extensions::handler_outcomes::can_restrict;
use crate::engine::gates::held::{ActionView, TierSource};
use crate::engine::sessions::session::Session;

/// Result of an evaluation.
#[derive(Debug)]
pub(crate) struct Evaluation<'a> {
    /// Verdict of the policies, for the record.
    pub(crate) policy: PolicyOutcome<'a>,
    /// Denial of the attempt. Answers at gates do not lift it. If `overrides` is set, an operator can overrule it for a
    /// repeated request.
    pub(crate) denial: Option<Denial>,
    /// Checkpoints that fire, highest priority first.
    pub(crate) fired: Vec<FiredCheckpoint<'a>>,
    /// Policies that require an operator's approval.
    pub(crate) approvals: Vec<RequiredApproval<'a>>,
}

/// A checkpoint that fires.
#[derive(Debug)]
pub(crate) struct FiredCheckpoint<'a> {
    /// Its Atlas.
    pub(crate) atlas: &'a Atlas,
    /// The checkpoint.
    pub(crate) checkpoint: &'a Checkpoint,
    /// Reason, for people.
    pub(crate) why: String,
    /// False when the checkpoint counts as fired because this could not be ruled out.
    pub(crate) certain: bool,
    /// Keywords that made it fire, with their positions.
    pub(crate) matches: Vec<KeywordMatch>,
}

/// The empty set of overruled denials.
pub(crate) const NOTHING_OVERRIDDEN: &BTreeSet<String> = &BTreeSet::new();

/// All inputs of an action's evaluation.
#[derive(Clone, Copy)]
pub(crate) struct EvaluationCase<'a, 's> {
    /// The loaded Atlases.
    pub(crate) atlases: &'a [Atlas],
    /// Usage of limits.
    pub(crate) usage: &'s Usage,
    /// Evaluator for custom triggers.
    pub(crate) custom_triggers: CustomTriggers<'s>,
    /// Denials that an operator overruled for exactly this request.
    pub(crate) overridden: &'s BTreeSet<String>,
    /// The session that requests the action.
    pub(crate) session: &'s Session,
    /// The requested action.
    pub(crate) call: ActionView<'s>,
    /// Time of the request.
    pub(crate) now: Timestamp,
}

impl EvaluationCase<'_, '_> {
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            action: Some(self.call.action),
            params: Some(self.call.params),
            ..session_facts(self.session, self.now)
        }
    }

    /// Returns whether a condition lets a restricting rule apply. An unknown condition does.
    pub(crate) fn holds(&self, when: Option<&Condition>) -> bool {
        when.is_none_or(|when| when.evaluate(&self.facts()) != Truth::False)
    }

    /// Tells whether the condition of a checkpoint lets it fire. One that cannot be judged fires where that can hold the
    /// agent back.
    pub(crate) fn may_fire(&self, checkpoint: &Checkpoint) -> bool {
        may_fire(self.custom_triggers.extensions, checkpoint, &self.facts())
    }

    /// Returns whether a condition lets a permissive rule apply. An unknown result does not.
    pub(crate) fn certainly_holds(&self, when: Option<&Condition>) -> bool {
        when.is_none_or(|when| when.evaluate(&self.facts()) == Truth::True)
    }
}

/// Evaluates an action against every Atlas. A denial in any of them wins.
pub(crate) fn evaluate_action<'a>(case: EvaluationCase<'a, '_>) -> Evaluation<'a> {
    evaluate_matched_action(case, &ActionMatches::of(case.atlases, case.call.action))
}

/// Evaluates an action whose matches are already known.
pub(crate) fn evaluate_matched_action<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
) -> Evaluation<'a> {
    let EvaluationCase { session, call, .. } = case;
    let approvals = approvals(case, matches);
    // An overridable denial comes last: overruling it would not help against the others.
    let (soft, hard) = match denying_policy(case, matches) {
        Some(policy) if policy.denial.overrides.is_some() => (Some(policy), None),
        other => (None, other),
    };
    let (denial, by) = unknown_action(case, matches)
        .map(|denial| (denial, None))
        .or_else(|| hard.map(policy_denial))
        .or_else(|| denied_action(session, call.action).map(|denial| (denial, None)))
        .or_else(|| locked_capability(case, matches).map(|denial| (denial, None)))
        .or_else(|| not_allowed(case, matches).map(|denial| (denial, None)))
        .or_else(|| bad_parameters(matches, call).map(|denial| (denial, None)))
        .or_else(|| spent_limit(case, matches).map(policy_denial))
        .or_else(|| soft.map(policy_denial))
        .unzip();
    let by = by.flatten();
    let denying = denial.as_ref().map(|denial| DenialSource { denial, by });
    let policy = policy_verdict(case, matches, denying, by_default(case), &approvals);
    Evaluation {
        policy,
        denial,
        fired: fired(case, matches),
        approvals,
    }
}

/// Returns the denial of a policy, with the policy's Atlas and pattern.
fn policy_denial(policy: DenyingPolicy<'_>) -> (Denial, Option<(&Atlas, &str)>) {
    (policy.denial, Some((policy.atlas, policy.rule)))
}

/// Returns the facts about a session alone.
pub(crate) fn session_facts(session: &Session, now: Timestamp) -> Facts<'_> {
    Facts {
        action: None,
        params: None,
        input: None,
        session: session.id.as_str(),
        agent: &session.agent,
        intent: session
            .intent
            .as_ref()
            .map(|intent| intent.original.as_str()),
        actions: session.conversation_actions(),
        started_at: session.conversation_started_at(),
        now,
    }
}

/// Returns the risk tier of an action. The highest declared tier counts; without one, the tier is detected.
pub(crate) fn risk_tier(atlases: &[Atlas], action: &str, params: &Value) -> (RiskTier, TierSource) {
    matched_risk_tier(&ActionMatches::of(atlases, action), action, params)
}

/// Returns the risk tier of an action whose matches are already known.
pub(crate) fn matched_risk_tier(
    matches: &ActionMatches<'_>,
    action: &str,
    params: &Value,
) -> (RiskTier, TierSource) {
    let declared = matches.actions().filter_map(|action| action.risk_tier);
    if let Some(tier) = declared.max() {
        return (tier, TierSource::Declared);
    }
    let uses = |mode| {
        let mut atlases = matches.atlases().iter();
        atlases.any(|atlas| atlas.risk_mode == mode)
    };
    // The highest tier counts, in any Atlas.
    let by_beginning = uses(RiskMode::FirstMatch).then(|| risk::first_match(action, params));
    let by_words =
        (by_beginning.is_none() || uses(RiskMode::Detect)).then(|| risk::detect(action, params));
    let tier = by_beginning.max(by_words).unwrap_or(RiskTier::Low);
    (tier, TierSource::Detected)
}

/// Number of checkpoints that can fire on one action without a heap allocation.
const USUAL_FIRED: usize = 8;

fn fired<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
) -> Vec<FiredCheckpoint<'a>> {
    let mut fired = Vec::new();
    for atlas in case.atlases {
        let mut places: SmallVec<[usize; USUAL_FIRED]> = SmallVec::new();
        let own = |of: &Atlas| std::ptr::eq(of, atlas);
        let before = matches
            .checkpoints_before()
            .filter(|matched| own(matched.atlas));
        places.extend(before.map(|matched| matched.place));
        places.extend(
            atlas
                .checkpoints_for_tier(case.call.tier)
                .map(|(position, _)| position),
        );
        let customs = atlas.checkpoints_for_event(CheckpointEvent::CustomAction);
        places.extend(customs.map(|(position, _)| position));
        for capability in capabilities_of(matches, atlas) {
            if case.session.lacks(atlas, capability) {
                let gates = atlas.checkpoints_for_event(CheckpointEvent::Access(&capability.id));
                places.extend(gates.map(|(position, _)| position));
            }
        }
        places.sort_unstable();
        places.dedup();
        let checkpoints = places.iter().filter_map(|at| atlas.checkpoints.get(*at));
        for checkpoint in checkpoints.filter(|checkpoint| case.may_fire(checkpoint)) {
            let firing = trigger_firing(case, matches, atlas, checkpoint);
            if let CheckpointFiring::Fires { why, certain } = firing {
                fired.push(FiredCheckpoint {
                    atlas,
                    checkpoint,
                    why,
                    certain: certain && case.certainly_holds(checkpoint.when.as_ref()),
                    matches: Vec::new(),
                });
            }
        }
    }
    by_priority(fired)
}

/// Returns the capabilities of one Atlas that list the action.
pub(crate) fn capabilities_of<'a>(
    matches: &ActionMatches<'a>,
    atlas: &'a Atlas,
) -> impl Iterator<Item = &'a Capability> {
    let own = matches.capabilities();
    own.filter(move |matched| std::ptr::eq(matched.atlas, atlas))
        .map(|matched| matched.item)
}

/// Result of evaluating a checkpoint on an action, with the expected and the actual value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointFiring {
    /// The checkpoint fires.
    Fires {
        /// Reason, for people.
        why: String,
        /// False when the checkpoint counts as fired because this could not be ruled out.
        certain: bool,
    },
    /// The checkpoint does not fire.
    DoesNotFire {
        /// Expected value.
        wanted: String,
        /// Actual value.
        actual: String,
    },
    /// The checkpoint does not concern actions.
    OtherEvent {
        /// Event at which the checkpoint fires.
        at: &'static str,
    },
}

pub(crate) fn checkpoint_firing<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
    atlas: &'a Atlas,
    checkpoint: &Checkpoint,
) -> CheckpointFiring {
    let firing = trigger_firing(case, matches, atlas, checkpoint);
    if matches!(firing, CheckpointFiring::Fires { .. }) && !case.may_fire(checkpoint) {
        return CheckpointFiring::DoesNotFire {
            wanted: "when".to_owned(),
            actual: unmet(checkpoint, &case.facts()),
        };
    }
    firing
}

/// Tells whether the condition of a checkpoint lets it fire. One that cannot be judged counts against the agent: it
/// fires where the checkpoint can deny, lock, hold or ask. One that only gives something does not.
pub(crate) fn may_fire(
    extensions: &Extensions,
    checkpoint: &Checkpoint,
    facts: &Facts<'_>,
) -> bool {
    match checkpoint.when.as_ref().map(|when| when.evaluate(facts)) {
        None | Some(Truth::True) => true,
        Some(Truth::False) => false,
        Some(Truth::Unknown) => can_restrict(extensions, checkpoint),
    }
}

/// The reason why the condition of a checkpoint does not let it fire.
pub(crate) fn unmet(checkpoint: &Checkpoint, facts: &Facts<'_>) -> String {
    let when = checkpoint.when.as_ref();
    let when = when.filter(|when| when.evaluate(facts) == Truth::Unknown);
    let leaves = when.map(|when| when.explain(facts)).unwrap_or_default();
    let missing: BTreeSet<_> = leaves
        .iter()
        .filter(|leaf| leaf.is_missing())
        .map(|leaf| format!("`{}`", leaf.path))
        .collect();
    let missing: Vec<_> = missing.into_iter().collect();
    match (when, missing.as_slice()) {
        (None, _) => "its condition does not hold".to_owned(),
        (Some(_), []) => "its condition cannot be evaluated".to_owned(),
        (Some(_), [one]) => format!("its condition cannot be evaluated: {one} is missing"),
        (Some(_), many) => format!(
            "its condition cannot be evaluated: {} are missing",
            many.join(", ")
        ),
    }
}

fn trigger_firing<'a>(
    case: EvaluationCase<'a, '_>,
    matches: &ActionMatches<'a>,
    atlas: &'a Atlas,
    checkpoint: &Checkpoint,
) -> CheckpointFiring {
    let call = case.call;
    let not = |wanted: String, actual: String| CheckpointFiring::DoesNotFire { wanted, actual };
    let elsewhere = |at| CheckpointFiring::OtherEvent { at };
    let fires = |why: String| CheckpointFiring::Fires { why, certain: true };
    match &checkpoint.trigger {
        Trigger::SessionStart => elsewhere("the start of a session"),
        Trigger::SessionEnd => elsewhere("the end of a session"),
        Trigger::ActionPost(_) => elsewhere("the end of an action"),
        Trigger::Keyword(_) => elsewhere("input"),
        Trigger::TimeInterval(_) | Trigger::CountInterval(_) => elsewhere("intervals"),
        Trigger::ExplicitRequest | Trigger::Interactive => elsewhere("the agent's request"),
        Trigger::ErrorOccurred => elsewhere("errors"),
        Trigger::Custom(custom) if !custom.on_action => elsewhere("input"),
        Trigger::Custom(custom) => custom_firing(case, atlas, checkpoint, custom),
        Trigger::ActionPre(patterns) => {
            let mut before = matches.checkpoints_before();
            match before.find(|matched| std::ptr::eq(matched.item, checkpoint)) {
                Some(own) => match checkpoint.unless.first_match(call.action) {
                    Some(closer) => not(
                        format!("no closer pattern than `{}`", own.pattern),
                        format!("`{closer}` also matches {}", call.action),
                    ),
                    None => fires(format!(
                        "`{}` matches the rule `{}`",
                        call.action, own.pattern
                    )),
                },
                None => not(
                    format!("an action like {}", listed(patterns.iter())),
                    call.action.to_owned(),
                ),
            }
        }
        Trigger::RiskThreshold(min_tier) => {
            let source = match call.tier_source {
                TierSource::Declared => "declared",
                TierSource::Detected => "detected",
            };
            let tier = call.tier;
            if tier >= *min_tier {
                let why = format!("{source} risk is {tier} (fires at {min_tier} and above)");
                fires(why)
            } else {
                not(
                    format!("risk {min_tier} or higher"),
                    format!("{source} risk {tier}"),
                )
            }
        }
        Trigger::CapabilityAccess(gated) => {
            let mut capabilities = capabilities_of(matches, atlas);
            let locked = capabilities.find(|capability| {
                gated.contains(&capability.id) && case.session.lacks(atlas, capability)
            });
            if let Some(capability) = locked {
                let why = format!("needs the capability `{}`, which is locked", capability.id);
                return fires(why);
            }
            let actual = capabilities_of(matches, atlas).map(|capability| &capability.id);
            not(
                format!("a locked capability of {}", listed(gated)),
                listed(actual),
            )
        }
    }
}

fn custom_firing(
    case: EvaluationCase<'_, '_>,
    atlas: &Atlas,
    checkpoint: &Checkpoint,
    custom: &CustomTrigger,
) -> CheckpointFiring {
    let facts = case.facts();
    match case
        .custom_triggers
        .firing(atlas, checkpoint, custom, &facts)
    {
        CustomTriggerFiring::DoesNotFire { wanted, actual } => {
            CheckpointFiring::DoesNotFire { wanted, actual }
        }
        CustomTriggerFiring::Fires { why, certain } => CheckpointFiring::Fires { why, certain },
        CustomTriggerFiring::Ask => CheckpointFiring::Fires {
            why: format!("trigger `{}` must be called first", custom.trigger_id),
            certain: false,
        },
    }
}

fn listed<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() {
        return "none".to_owned();
    }
    format!("[{}]", items.join(", "))
}

pub(crate) fn by_priority(mut fired: Vec<FiredCheckpoint<'_>>) -> Vec<FiredCheckpoint<'_>> {
    // Stable: ties stay in the order of the Atlases, then as written.
    fired.sort_by_key(|fired| std::cmp::Reverse(fired.checkpoint.priority));
    fired
}
