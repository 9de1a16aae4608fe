//! Questions that change nothing and allow nothing: the verdict of policies, and available contexts.
//!
//! Answers may come from a cache, because no action runs by them: a request is judged anew every time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atlas::document::InjectMode;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::PolicyDecisionKind;
use crate::engine::admission::access::{deny_unknown_session, foreign_session_denial};
use crate::engine::admission::misuse::{ShownSecret, record_takeover_attempt};
use crate::engine::admission::request_admission::call_fault;
use crate::engine::command::{AgentReply, Caller, DenyCode, InjectedContext, ReplyId};
use crate::engine::evaluation;
use crate::engine::gates::held::{ActionCall, request_hash};
use crate::engine::transaction::Transaction;

/// A question that changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Consultation {
    /// Contexts that match a text or hints.
    Contexts {
        /// The session.
        session: SessionId,
        /// Search text.
        query: String,
        /// Injection mode that the contexts must have.
        mode: Option<InjectMode>,
        /// More words to search for.
        hints: Vec<String>,
    },
    /// Contexts by identifier.
    ContextsById {
        /// The session.
        session: SessionId,
        /// Identifiers of the contexts.
        ids: Vec<String>,
    },
    /// Verdict of the policies on an action.
    Policy {
        /// The session.
        session: SessionId,
        /// The action.
        action: String,
        /// Its parameters.
        params: Value,
    },
    /// Ownership check: does the session belong to the caller?
    Owner {
        /// The session.
        session: SessionId,
        /// Digest of the secret that the caller shows, if any.
        owner: Option<Digest>,
        /// The caller, if known.
        from: Option<Caller>,
    },
}

impl Consultation {
    /// Returns the session that the question is about.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        match self {
            Self::Contexts { session, .. }
            | Self::ContextsById { session, .. }
            | Self::Policy { session, .. }
            | Self::Owner { session, .. } => session,
        }
    }
}

/// The answer to a consultation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConsultationAnswer {
    /// The matching contexts.
    Contexts(Vec<InjectedContext>),
    /// Verdict of the policies.
    Policy(PolicyAnswer),
    /// The session belongs to the caller.
    Owned,
}

/// Verdict of the policies on an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyAnswer {
    /// The decision.
    pub decision: PolicyDecisionKind,
    /// Reason of the decision.
    pub reason: String,
    /// The policy that decides.
    pub policy_id: String,
    /// True when the answer comes from the cache.
    pub cached: bool,
}

pub(crate) fn answer_consultation(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    consult: &Consultation,
) {
    if tx.live_session(consult.session()).is_none() {
        deny_unknown_session(tx, reply_id, consult.session());
        return;
    }
    let answer = match consult {
        Consultation::Contexts {
            query, mode, hints, ..
        } => ConsultationAnswer::Contexts(contexts_for(tx, query, *mode, hints)),
        Consultation::ContextsById { ids, .. } => {
            ConsultationAnswer::Contexts(contexts_by_id(tx, ids))
        }
        Consultation::Policy {
            session,
            action,
            params,
        } => {
            if let Some(fault) = call_fault(action, params) {
                tx.deny(reply_id, DenyCode::BadRequest, fault);
                return;
            }
            let Some(answer) = policy_for(tx, session, action, params) else {
                tx.deny(
                    reply_id,
                    DenyCode::BadRequest,
                    "the request cannot be evaluated",
                );
                return;
            };
            ConsultationAnswer::Policy(answer)
        }
        Consultation::Owner {
            session,
            owner,
            from,
        } => {
            let known = tx.live_session(session);
            let theirs = known.is_some_and(|known| owner.is_some() && known.owner == *owner);
            if !theirs {
                let shown = owner.map_or(ShownSecret::Nothing, |_| ShownSecret::Wrong);
                record_takeover_attempt(tx, session, from.as_ref(), shown);
                tx.reply_to_agent(
                    reply_id,
                    AgentReply::Denied(foreign_session_denial(session)),
                );
                return;
            }
            ConsultationAnswer::Owned
        }
    };
    tx.reply_to_agent(reply_id, AgentReply::Consulted(answer));
}

/// Returns the contexts of a mode, or those that match a text or hints, highest priority first.
fn contexts_for(
    tx: &Transaction<'_>,
    query: &str,
    mode: Option<InjectMode>,
    hints: &[String],
) -> Vec<InjectedContext> {
    let mut found = Vec::new();
    for atlas in tx.engine.atlases.iter() {
        for injection in &atlas.injections {
            let of_mode = mode.is_none_or(|mode| mode == injection.mode);
            let texts = std::iter::once(query).chain(hints.iter().map(String::as_str));
            let keywords = injection.keywords.as_ref();
            let called = keywords.is_some_and(|keywords| {
                texts
                    .into_iter()
                    .any(|text| !keywords.find(text).is_empty())
            });
            // A question that names a mode other than `on_match` selects all contexts of that mode.
            let wanted = called
                || (mode.is_some() && mode != Some(InjectMode::OnMatch))
                || hints.contains(&injection.context_id);
            if of_mode
                && wanted
                && let Some(context) = atlas.contexts.get(&injection.context_id)
            {
                found.push((injection.priority, context));
            }
        }
    }
    // Stable: ties stay in the order of the Atlases, then as written.
    found.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
    let contexts = found.into_iter().map(|(_, context)| InjectedContext {
        context_id: context.context_id.clone(),
        content: context.content.clone(),
    });
    contexts.collect()
}

fn contexts_by_id(tx: &Transaction<'_>, ids: &[String]) -> Vec<InjectedContext> {
    let find = |id: &String| {
        let mut atlases = tx.engine.atlases.iter();
        let context = atlases.find_map(|atlas| atlas.contexts.get(id))?;
        Some(InjectedContext {
            context_id: id.clone(),
            content: context.content.clone(),
        })
    };
    ids.iter().filter_map(find).collect()
}

fn policy_for(
    tx: &mut Transaction<'_>,
    session: &SessionId,
    action: &str,
    params: &Value,
) -> Option<PolicyAnswer> {
    let hash = request_hash(session, action, params);
    let now = tx.now;
    if let Some(known) = tx.engine.state.caches.policy(hash, now) {
        return Some(PolicyAnswer {
            cached: true,
            ..known.clone()
        });
    }
    let known = tx.live_session(session)?;
    let call = ActionCall::of(&tx.engine.atlases, action, params);
    let found = evaluation::evaluate_action(tx.evaluation_case(known, &call));
    let (decision, reason) = match &found.denial {
        Some(denial) => (PolicyDecisionKind::Deny, denial.denied.reason.clone()),
        None => match found.approvals.first() {
            Some(approval) => (
                PolicyDecisionKind::RequireApproval,
                approval.reason.to_owned(),
            ),
            None => (PolicyDecisionKind::Allow, String::new()),
        },
    };
    let policy_id = found.policy.policy_id.into_owned();
    // A spent limit becomes available again over time: it must not be cached as a denial.
    let lasting =
        crate::engine::evaluation::policy::limits(tx.evaluation_case(known, &call)).is_empty();
    let answer = PolicyAnswer {
        decision,
        reason,
        policy_id,
        cached: false,
    };
    if lasting {
        let ttl = tx.engine.cache_ttl(|cache| cache.policy_ttl_seconds);
        let until = now.plus(ttl);
        tx.state().caches.keep_policy(hash, answer.clone(), until);
    }
    Some(answer)
}

impl crate::engine::Engine {
    /// Returns the strictest cache lifetime of all loaded Atlases.
    pub(crate) fn cache_ttl(
        &self,
        seconds: fn(&crate::atlas::document::CacheConfig) -> u64,
    ) -> Duration {
        let all = self.atlases.iter().map(|atlas| seconds(&atlas.cache));
        Duration::from_secs(all.min().unwrap_or_default())
    }

    /// Returns whether the extension calls of one command took as long as the strictest time budget allows.
    pub(crate) fn is_late(&self, took: Duration) -> bool {
        let budgets = self.atlases.iter().filter_map(|atlas| {
            let budget = atlas.budget.as_ref()?;
            budget.max_checkpoint_time_ms
        });
        let most = budgets.min();
        most.is_some_and(|most| took >= Duration::from_millis(most))
    }
}
