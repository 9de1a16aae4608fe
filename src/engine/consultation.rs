//! Questions that change nothing and allow nothing: the verdict of policies, and available contexts.
//!
//! Answers may come from a cache, because no action runs by them: a request is judged anew every time.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atlas::document::InjectMode;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

use super::access::foreign_session_denial;
use super::action::call_fault;
use super::command::{Caller, CallerId, DenyCode, InjectedContext, Reply};
use super::evaluation;
use super::extension::PolicyDecisionKind;
use super::held::{ActionCall, request_hash};
use super::misuse::ShownSecret;
use super::transaction::Transaction;

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

impl Transaction<'_> {
    pub(super) fn consult(&mut self, ask: CallerId, consult: &Consultation) {
        if self.live_session(consult.session()).is_none() {
            self.deny_unknown_session(ask, consult.session());
            return;
        }
        let answer = match consult {
            Consultation::Contexts {
                query, mode, hints, ..
            } => ConsultationAnswer::Contexts(self.contexts_for(query, *mode, hints)),
            Consultation::ContextsById { ids, .. } => {
                ConsultationAnswer::Contexts(self.contexts_by_id(ids))
            }
            Consultation::Policy {
                session,
                action,
                params,
            } => {
                if let Some(fault) = call_fault(action, params) {
                    self.deny(ask, DenyCode::BadRequest, fault);
                    return;
                }
                let Some(answer) = self.policy_for(session, action, params) else {
                    self.deny(ask, DenyCode::BadRequest, "the request cannot be evaluated");
                    return;
                };
                ConsultationAnswer::Policy(answer)
            }
            Consultation::Owner {
                session,
                owner,
                from,
            } => {
                let known = self.live_session(session);
                let theirs = known.is_some_and(|known| owner.is_some() && known.owner == *owner);
                if !theirs {
                    let shown = owner.map_or(ShownSecret::Nothing, |_| ShownSecret::Wrong);
                    self.record_takeover_attempt(session, from.as_ref(), shown);
                    self.reply(ask, Reply::Denied(foreign_session_denial(session)));
                    return;
                }
                ConsultationAnswer::Owned
            }
        };
        self.reply(ask, Reply::Consulted(answer));
    }

    /// Returns the contexts of a mode, or those that match a text or hints, highest priority first.
    fn contexts_for(
        &self,
        query: &str,
        mode: Option<InjectMode>,
        hints: &[String],
    ) -> Vec<InjectedContext> {
        let mut found = Vec::new();
        for atlas in self.engine.atlases.iter() {
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

    fn contexts_by_id(&self, ids: &[String]) -> Vec<InjectedContext> {
        let find = |id: &String| {
            let mut atlases = self.engine.atlases.iter();
            let context = atlases.find_map(|atlas| atlas.contexts.get(id))?;
            Some(InjectedContext {
                context_id: id.clone(),
                content: context.content.clone(),
            })
        };
        ids.iter().filter_map(find).collect()
    }

    fn policy_for(
        &mut self,
        session: &SessionId,
        action: &str,
        params: &Value,
    ) -> Option<PolicyAnswer> {
        let hash = request_hash(session, action, params);
        let now = self.now;
        if let Some(known) = self.engine.state.caches.policy(hash, now) {
            return Some(PolicyAnswer {
                cached: true,
                ..known.clone()
            });
        }
        let known = self.live_session(session)?;
        let call = ActionCall::of(&self.engine.atlases, action, params);
        let found = evaluation::evaluate_action(self.evaluation_case(known, &call));
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
        let lasting = super::policy::limits(self.evaluation_case(known, &call)).is_empty();
        let answer = PolicyAnswer {
            decision,
            reason,
            policy_id,
            cached: false,
        };
        if lasting {
            let ttl = self.engine.cache_ttl(|cache| cache.policy_ttl_seconds);
            let until = now.plus(ttl);
            self.state().caches.keep_policy(hash, answer.clone(), until);
        }
        Some(answer)
    }
}

impl super::Engine {
    /// Returns the strictest cache lifetime of all loaded Atlases.
    pub(super) fn cache_ttl(
        &self,
        seconds: fn(&crate::atlas::document::CacheConfig) -> u64,
    ) -> Duration {
        let all = self.atlases.iter().map(|atlas| seconds(&atlas.cache));
        Duration::from_secs(all.min().unwrap_or_default())
    }

    /// Returns whether the extension calls of one command took as long as the strictest time budget allows.
    pub(super) fn is_late(&self, took: Duration) -> bool {
        let budgets = self.atlases.iter().filter_map(|atlas| {
            let budget = atlas.budget.as_ref()?;
            budget.max_checkpoint_time_ms
        });
        let most = budgets.min();
        most.is_some_and(|most| took >= Duration::from_millis(most))
    }
}
