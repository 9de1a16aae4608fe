//! Judgement of a request by the rules, without changing or recording anything.

use serde_json::Value;

use crate::atlas::Atlas;
use crate::atlas::document::{CheckpointMode, RiskTier};
use crate::atlas::index::ActionMatches;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;

use super::usage::Usage;
use crate::engine::Engine;
use crate::engine::evaluation::{self, Evaluation, EvaluationCase, NOTHING_OVERRIDDEN};
use crate::engine::explanation::{ExplainedVerdict, verdict};
use crate::engine::extensions::Extensions;
use crate::engine::extensions::custom_triggers::CustomTriggers;
use crate::engine::extensions::suspension::ExtensionAnswers;
use crate::engine::gates::held::{ActionView, TierSource};
use crate::engine::sessions::session::Session;

/// Judgement of a request.
#[derive(Debug)]
pub struct Judgement<'a> {
    tier: RiskTier,
    tier_source: TierSource,
    found: Evaluation<'a>,
}

impl Engine {
    /// Judges a request of a session by checkpoints, risk, capabilities, policies, parameters and limits.
    ///
    /// `None` if the session does not exist. Nothing is counted, recorded or held, and held requests are
    /// ignored. A request without obstacles is judged without a heap allocation.
    #[must_use]
    pub fn judge(
        &self,
        session: &SessionId,
        action: &str,
        params: &Value,
        now: Timestamp,
    ) -> Option<Judgement<'_>> {
        let session = self.state.sessions.get(session)?;
        let customs = CustomTriggers {
            extensions: &self.extensions,
            answers: &ExtensionAnswers::default(),
        };
        let rules = (&*self.atlases, &self.state.usage, customs);
        Some(judge(rules, session, (action, params), now))
    }
}

/// Judges a request under these Atlases, with unused limits.
#[must_use]
pub fn judge_under<'a>(
    atlases: &'a [Atlas],
    session: &Session,
    action: &str,
    params: &Value,
    now: Timestamp,
) -> Judgement<'a> {
    let customs = CustomTriggers {
        extensions: &Extensions::default(),
        answers: &ExtensionAnswers::default(),
    };
    let rules = (atlases, &Usage::default(), customs);
    judge(rules, session, (action, params), now)
}

fn judge<'a>(
    (atlases, usage, customs): (&'a [Atlas], &Usage, CustomTriggers<'_>),
    session: &Session,
    (action, params): (&str, &Value),
    now: Timestamp,
) -> Judgement<'a> {
    let matches = ActionMatches::of(atlases, action);
    let (tier, tier_source) = evaluation::matched_risk_tier(&matches, action, params);
    let call = ActionView {
        action,
        params,
        tier,
        tier_source,
    };
    let case = EvaluationCase {
        atlases,
        usage,
        custom_triggers: customs,
        overridden: NOTHING_OVERRIDDEN,
        session,
        call,
        now,
    };
    Judgement {
        tier,
        tier_source,
        found: evaluation::evaluate_matched_action(case, &matches),
    }
}

impl Judgement<'_> {
    /// Returns the risk tier of the request.
    #[must_use]
    pub fn tier(&self) -> RiskTier {
        self.tier
    }

    /// Returns the source of the risk tier.
    #[must_use]
    pub fn tier_source(&self) -> TierSource {
        self.tier_source
    }

    /// Returns whether the request would run: nothing denies it and no gate holds it.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        let blocking = |fired: &evaluation::FiredCheckpoint<'_>| {
            fired.checkpoint.mode == CheckpointMode::Blocking
        };
        self.found.denial.is_none()
            && self.found.approvals.is_empty()
            && !self.found.fired.iter().any(blocking)
    }

    /// Returns the decision about the request.
    #[must_use]
    pub fn verdict(&self) -> ExplainedVerdict {
        verdict(&self.found, &[])
    }

    /// Returns the policy that decides, or the default rule if no policy does.
    #[must_use]
    pub fn policy_id(&self) -> &str {
        &self.found.policy.policy_id
    }

    /// Returns the matching pattern of that policy.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.found.policy.rule
    }

    /// Returns the fired checkpoints, highest priority first.
    pub fn checkpoints(&self) -> impl Iterator<Item = &str> {
        self.found
            .fired
            .iter()
            .map(|fired| fired.checkpoint.id.as_str())
    }
}
