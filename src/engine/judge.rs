//! A whole decision by the rules, without changing or recording anything.

use serde_json::Value;

use crate::atlas::Atlas;
use crate::atlas::document::{CheckpointMode, RiskTier};
use crate::atlas::index::Matches;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;

use super::Engine;
use super::customs::Customs;
use super::evaluate::{self, Case, Evaluation, NOTHING_OVERRIDDEN};
use super::explain::{Verdict, verdict};
use super::extension::Extensions;
use super::held::{Asked, TierSource};
use super::session::Session;
use super::suspend::Answers;
use super::usage::Usage;

/// What the rules make of a request.
#[derive(Debug)]
pub struct Judgement<'a> {
    tier: RiskTier,
    tier_source: TierSource,
    found: Evaluation<'a>,
}

impl Engine {
    /// What the rules make of a request of a session: checkpoints, risk, capabilities, policies,
    /// parameters and limits. `None` when there is no such session.
    ///
    /// Nothing is counted, recorded or held, and what is held already is not looked at. A request
    /// that nothing stands in the way of is judged without asking for memory.
    #[must_use]
    pub fn judge(
        &self,
        session: &SessionId,
        action: &str,
        params: &Value,
        now: Timestamp,
    ) -> Option<Judgement<'_>> {
        let session = self.state.sessions.get(session)?;
        let customs = Customs {
            extensions: &self.extensions,
            answers: &Answers::default(),
        };
        let rules = (&*self.atlases, &self.state.usage, customs);
        Some(judge(rules, session, (action, params), now))
    }
}

/// What the rules of these Atlases make of a request, with nothing used of any limit.
#[must_use]
pub fn judge_under<'a>(
    atlases: &'a [Atlas],
    session: &Session,
    action: &str,
    params: &Value,
    now: Timestamp,
) -> Judgement<'a> {
    let customs = Customs {
        extensions: &Extensions::default(),
        answers: &Answers::default(),
    };
    let rules = (atlases, &Usage::default(), customs);
    judge(rules, session, (action, params), now)
}

fn judge<'a>(
    (atlases, usage, customs): (&'a [Atlas], &Usage, Customs<'_>),
    session: &Session,
    (action, params): (&str, &Value),
    now: Timestamp,
) -> Judgement<'a> {
    let matches = Matches::of(atlases, action);
    let (tier, tier_source) = evaluate::matched_tier(&matches, action, params);
    let call = Asked {
        action,
        params,
        tier,
        tier_source,
    };
    let case = Case {
        atlases,
        usage,
        customs,
        overridden: NOTHING_OVERRIDDEN,
        session,
        call,
        now,
    };
    Judgement {
        tier,
        tier_source,
        found: evaluate::matched_action(case, &matches),
    }
}

impl Judgement<'_> {
    /// How risky the request is.
    #[must_use]
    pub fn tier(&self) -> RiskTier {
        self.tier
    }

    /// Who says so.
    #[must_use]
    pub fn tier_source(&self) -> TierSource {
        self.tier_source
    }

    /// Whether it would run: nothing denies it and no gate holds it.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        let blocking = |it: &evaluate::Fired<'_>| it.checkpoint.mode == CheckpointMode::Blocking;
        self.found.denial.is_none()
            && self.found.approvals.is_empty()
            && !self.found.fired.iter().any(blocking)
    }

    /// What would happen to it.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        verdict(&self.found, &[])
    }

    /// The policy that decides, or the default that does where none does.
    #[must_use]
    pub fn policy_id(&self) -> &str {
        &self.found.policy.policy_id
    }

    /// The pattern of that policy that matches.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.found.policy.rule
    }

    /// The checkpoints that fire, highest priority first.
    pub fn checkpoints(&self) -> impl Iterator<Item = &str> {
        self.found.fired.iter().map(|it| it.checkpoint.id.as_str())
    }
}
