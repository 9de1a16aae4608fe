//! Explanations of hypothetical requests: the evaluation of a real request, without any change.

use serde::Serialize;
use serde_json::Value;

use crate::atlas::condition::{Condition, LeafReport, Truth};
use crate::atlas::document::{CheckpointMode, PolicyKind, RiskTier};
use crate::atlas::index::ActionMatches;
use crate::atlas::keyword::KeywordMatch;
use crate::atlas::model::{Atlas, Checkpoint, Limit, Policy, Trigger};
use crate::base::clock::Timestamp;
use crate::base::id::{HeldRequestId, SessionId};

use super::Engine;
use super::command::DenialReply;
use super::evaluation::usage::Usage;
use super::evaluation::{
    self, CheckpointFiring, Evaluation, EvaluationCase, FiredCheckpoint, NOTHING_OVERRIDDEN,
    TriggerEvent,
};
use super::extensions::Extensions;
use super::extensions::custom_triggers::CustomTriggers;
use super::extensions::suspension::ExtensionAnswers;
use super::gates::held::{ActionCall, ActionView, HeldSubject, TierSource};
use super::sessions::session::Session;

mod checkpoint_effects;
mod full_explanation;
mod handler_previews;
mod hypothetical;
mod input;
mod preview;
pub mod shadow;

pub use checkpoint_effects::CheckpointEffects;
pub use full_explanation::{ExplainQuestion, ExplainedSession, FullExplanation};
pub use handler_previews::{HandlerPreview, preview_handlers};
pub use hypothetical::HypotheticalSession;
pub use input::{ContextEvidence, InputExplanation, explain_input_under};

/// A hypothetical request.
#[derive(Clone, Debug)]
pub struct HypotheticalRequest {
    /// The action.
    pub action: String,
    /// Its parameters.
    pub params: Value,
    /// The session that would ask.
    pub session: HypotheticalSession,
}

/// Explanation of the decision about a request.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The action.
    pub action: String,
    /// Risk tier of the action.
    pub tier: RiskTier,
    /// Source of the risk tier.
    pub tier_source: TierSource,
    /// The decision.
    pub verdict: ExplainedVerdict,
    /// Every checkpoint, in the order of evaluation.
    pub checkpoints: Vec<CheckpointEvidence>,
    /// Every policy, in the order written.
    pub policies: Vec<PolicyEvidence>,
    /// Every capability that lists the action.
    pub capabilities: Vec<CapabilityEvidence>,
    /// Contexts that the action selects when it runs.
    pub contexts: Vec<ContextEvidence>,
}

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum ExplainedVerdict {
    /// The action would run.
    Allowed,
    /// The request would be held at these gates.
    Held {
        /// Checkpoints and policies, in the order they are asked.
        gates: Vec<String>,
    },
    /// The request would be denied.
    Denied(DenialReply),
}

/// Evaluation of one checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckpointEvidence {
    /// Its Atlas.
    pub atlas_id: String,
    /// The checkpoint.
    pub checkpoint_id: String,
    /// Its type.
    pub kind: &'static str,
    /// Mode: whether the checkpoint blocks, advises or only observes.
    pub mode: CheckpointMode,
    /// Priority. Checkpoints with a higher priority come first.
    pub priority: i64,
    /// Result of the evaluation.
    pub outcome: CheckpointOutcome,
    /// Keywords that make it fire, each with the position of its first match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<KeywordMatch>,
    /// Expected and actual values of its condition.
    pub conditions: Vec<LeafReport>,
    /// Effects of the checkpoint: of a gate when it is passed; an observational checkpoint has none.
    #[serde(skip_serializing_if = "CheckpointEffects::is_empty")]
    pub effects: CheckpointEffects,
}

/// Result of evaluating a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointOutcome {
    /// The checkpoint fires.
    Fired {
        /// Reason.
        why: String,
    },
    /// The checkpoint does not fire.
    NotFired {
        /// Expected value.
        wanted: String,
        /// Actual value.
        actual: String,
    },
    /// The checkpoint does not concern this event.
    Skipped {
        /// Reason.
        why: String,
    },
}

/// Evaluation of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyEvidence {
    /// Its Atlas.
    pub atlas_id: String,
    /// The policy.
    pub policy_id: String,
    /// Kind of the policy.
    pub kind: PolicyKind,
    /// True when the policy applies.
    pub applies: bool,
    /// The matching pattern, or the expected patterns.
    pub rule: String,
    /// Amount and scope of a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Expected and actual values of its condition.
    pub conditions: Vec<LeafReport>,
}

/// A capability that lists the action.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapabilityEvidence {
    /// Its Atlas.
    pub atlas_id: String,
    /// The capability.
    pub capability_id: String,
    /// True when the session lacks the capability.
    pub locked: bool,
}

impl Engine {
    /// Explains a request of a session that passed its start gates.
    #[must_use]
    pub fn explain(&self, what_if: &HypotheticalRequest, now: Timestamp) -> Explanation {
        let session = what_if.session.to_session(&self.atlases, now);
        let call = ActionCall::of(&self.atlases, &what_if.action, &what_if.params);
        self.explain_case(&session, &call, now)
    }

    /// Explains a request of a session as it is now. `None` if the session does not exist.
    #[must_use]
    pub fn explain_request(
        &self,
        session: &SessionId,
        action: &str,
        params: &Value,
        now: Timestamp,
    ) -> Option<Explanation> {
        let session = self.state.sessions.get(session)?;
        let call = ActionCall::of(&self.atlases, action, params);
        Some(self.explain_case(session, &call, now))
    }

    /// Explains a held request, including the checkpoints that do not hold it. `None` if it is not held or
    /// concerns no action.
    #[must_use]
    pub fn explain_held(&self, gate: &HeldRequestId, now: Timestamp) -> Option<Explanation> {
        let held = &self.state.held.get(gate)?.held;
        let session = self.state.sessions.get(&held.session)?;
        match &held.subject {
            HeldSubject::Action(call) => Some(self.explain_case(session, call, now)),
            HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
        }
    }

    fn explain_case(&self, session: &Session, call: &ActionCall, now: Timestamp) -> Explanation {
        explain_case(EvaluationCase {
            atlases: &self.atlases,
            usage: &self.state.usage,
            custom_triggers: CustomTriggers {
                extensions: &self.extensions,
                answers: &ExtensionAnswers::default(),
            },
            overridden: NOTHING_OVERRIDDEN,
            session,
            call: call.view(),
            now,
        })
    }
}

/// Explains a request under these Atlases, with unused limits.
#[must_use]
pub fn explain_under(
    atlases: &[Atlas],
    what_if: &HypotheticalRequest,
    now: Timestamp,
) -> Explanation {
    explain_case(EvaluationCase {
        atlases,
        usage: &Usage::default(),
        custom_triggers: CustomTriggers {
            extensions: &Extensions::default(),
            answers: &ExtensionAnswers::default(),
        },
        overridden: NOTHING_OVERRIDDEN,
        session: &what_if.session.to_session(atlases, now),
        call: ActionCall::of(atlases, &what_if.action, &what_if.params).view(),
        now,
    })
}

fn explain_case(case: EvaluationCase<'_, '_>) -> Explanation {
    let EvaluationCase {
        atlases,
        session,
        call,
        ..
    } = case;
    let matches = ActionMatches::of(atlases, call.action);
    let mut checkpoints = Vec::new();
    let mut policies = Vec::new();
    let mut capabilities = Vec::new();
    for atlas in atlases {
        checkpoints.extend(checkpoint_evidence(case, &matches, atlas));
        policies.extend(
            atlas
                .policies
                .iter()
                .map(|policy| policy_evidence(case, atlas, policy)),
        );
        let listing = evaluation::capabilities_of(&matches, atlas);
        capabilities.extend(listing.map(|capability| CapabilityEvidence {
            atlas_id: atlas.id.clone(),
            capability_id: capability.id.clone(),
            locked: session.lacks(atlas, capability),
        }));
    }
    by_priority(&mut checkpoints);
    Explanation {
        action: call.action.to_owned(),
        tier: call.tier,
        tier_source: call.tier_source,
        verdict: verdict(
            &evaluation::evaluate_matched_action(case, &matches),
            &due_intervals(case),
        ),
        checkpoints,
        policies,
        capabilities,
        contexts: run_contexts(atlases, call),
    }
}

/// Returns the contexts that an action selects by its name or its risk when it runs.
fn run_contexts(atlases: &[Atlas], call: ActionView<'_>) -> Vec<ContextEvidence> {
    let mut found = Vec::new();
    for atlas in atlases {
        let matches = ActionMatches::of(std::slice::from_ref(atlas), call.action);
        let by_name = matches.injections().map(|matched| {
            let why = format!("`{}` matches the rule `{}`", call.action, matched.pattern);
            (matched.item, why)
        });
        let risky = call.tier >= RiskTier::High;
        let by_risk = atlas.injections_by_risk().filter(|_| risky);
        let by_risk = by_risk.map(|(_, injection)| (injection, format!("risk is {}", call.tier)));
        found.extend(
            by_name
                .chain(by_risk)
                .map(|(injection, why)| ContextEvidence {
                    atlas_id: atlas.id.clone(),
                    context_id: injection.context_id.clone(),
                    outcome: CheckpointOutcome::Fired { why },
                    matches: Vec::new(),
                }),
        );
    }
    found
}

/// Sorts checkpoints in the order of evaluation. Ties stay in the order of the Atlases, then as written.
fn by_priority(checkpoints: &mut [CheckpointEvidence]) {
    checkpoints.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.priority));
}

/// Returns the due interval checkpoints.
fn due_intervals<'a>(case: EvaluationCase<'a, '_>) -> Vec<FiredCheckpoint<'a>> {
    let (atlases, session) = (case.atlases, case.session);
    evaluation::fired_on_event(
        atlases,
        session,
        TriggerEvent::IntervalCheck,
        case.custom_triggers,
        case.now,
    )
}

/// Returns the decision that an evaluation leads to. Due intervals come before every request of the session.
pub(super) fn verdict(found: &Evaluation<'_>, due: &[FiredCheckpoint<'_>]) -> ExplainedVerdict {
    if let Some(denial) = &found.denial {
        return ExplainedVerdict::Denied(denial.denied.clone());
    }
    let fired = due.iter().chain(&found.fired);
    let blocking = fired.filter(|f| f.checkpoint.mode == CheckpointMode::Blocking);
    let mut gates: Vec<_> = blocking.map(|fired| fired.checkpoint.id.clone()).collect();
    gates.extend(
        found
            .approvals
            .iter()
            .map(|approval| approval.policy_id.to_owned()),
    );
    if gates.is_empty() {
        ExplainedVerdict::Allowed
    } else {
        ExplainedVerdict::Held { gates }
    }
}

fn checkpoint_evidence<'a>(
    case: EvaluationCase<'a, 'a>,
    matches: &'a ActionMatches<'a>,
    atlas: &'a Atlas,
) -> impl Iterator<Item = CheckpointEvidence> + 'a {
    atlas.checkpoints.iter().map(move |checkpoint| {
        let outcome = match evaluation::checkpoint_firing(case, matches, atlas, checkpoint) {
            CheckpointFiring::OtherEvent { .. } if is_interval(checkpoint) => {
                interval_outcome(case, checkpoint)
            }
            CheckpointFiring::Fires { why, .. } => CheckpointOutcome::Fired { why },
            CheckpointFiring::DoesNotFire { wanted, actual } => {
                CheckpointOutcome::NotFired { wanted, actual }
            }
            CheckpointFiring::OtherEvent { at } => CheckpointOutcome::Skipped {
                why: format!("fires at {at}"),
            },
        };
        let conditions = explain_condition(case, checkpoint.when.as_ref());
        CheckpointEvidence::new(atlas, checkpoint, outcome, conditions)
    })
}

fn is_interval(checkpoint: &Checkpoint) -> bool {
    matches!(
        checkpoint.trigger,
        Trigger::TimeInterval(_) | Trigger::CountInterval(_)
    )
}

/// Returns whether an interval is due. It is checked whenever the session requests something.
fn interval_outcome(case: EvaluationCase<'_, '_>, checkpoint: &Checkpoint) -> CheckpointOutcome {
    let mut due = due_intervals(case).into_iter();
    match due.find(|fired| std::ptr::eq(fired.checkpoint, checkpoint)) {
        Some(fired) => CheckpointOutcome::Fired { why: fired.why },
        None => short_of(case.session, checkpoint, case.now).unwrap_or_else(input::condition_fails),
    }
}

/// Returns the time or runs left of an interval, if its checkpoint does not fire because of that.
fn short_of(
    session: &Session,
    checkpoint: &Checkpoint,
    now: Timestamp,
) -> Option<CheckpointOutcome> {
    let mut interval_marks = session.interval_marks.iter();
    let last = interval_marks.find(|mark| mark.key.1 == checkpoint.id);
    let (wanted, actual, unit) = match &checkpoint.trigger {
        Trigger::TimeInterval(interval) => {
            let passed = now.since(last.map_or(session.conversation_started_at(), |mark| mark.at));
            (interval.as_secs(), passed.as_secs(), "seconds")
        }
        Trigger::CountInterval(interval) => {
            let run = session
                .conversation_actions()
                .saturating_sub(last.map_or(0, |mark| mark.actions));
            (*interval, run, "actions")
        }
        _ => return None,
    };
    (actual < wanted).then(|| CheckpointOutcome::NotFired {
        wanted: format!("{wanted} {unit}"),
        actual: format!("{actual} {unit}"),
    })
}

fn policy_evidence(case: EvaluationCase<'_, '_>, atlas: &Atlas, policy: &Policy) -> PolicyEvidence {
    let pattern = policy.actions.first_match(case.call.action);
    let truth = policy
        .when
        .as_ref()
        .map(|when| when.evaluate(&case.facts()));
    let holds = match policy.kind {
        PolicyKind::Allow => truth.is_none_or(|truth| truth == Truth::True),
        PolicyKind::Deny
        | PolicyKind::RequiresApproval
        | PolicyKind::RateLimit
        | PolicyKind::Budget => truth.is_none_or(|truth| truth != Truth::False),
    };
    let patterns: Vec<_> = policy.actions.iter().map(ToString::to_string).collect();
    PolicyEvidence {
        atlas_id: atlas.id.clone(),
        policy_id: policy.id.clone(),
        kind: policy.kind,
        applies: pattern.is_some() && holds,
        rule: pattern.map_or_else(
            || format!("wanted [{}]", patterns.join(", ")),
            ToString::to_string,
        ),
        limit: policy.limit.as_ref().map(describe_limit),
        conditions: explain_condition(case, policy.when.as_ref()),
    }
}

/// Describes the amount and the scope of a limit.
fn describe_limit(limit: &Limit) -> String {
    match limit {
        Limit::Rate {
            max_calls,
            window,
            scope,
        } => {
            let window = window.as_secs();
            format!("{max_calls} calls in {window} s, {}", scope.description())
        }
        Limit::Budget { limit, scope, .. } => format!("{limit} in total, {}", scope.description()),
    }
}

fn explain_condition(case: EvaluationCase<'_, '_>, when: Option<&Condition>) -> Vec<LeafReport> {
    when.map(|when| when.explain(&case.facts()))
        .unwrap_or_default()
}
