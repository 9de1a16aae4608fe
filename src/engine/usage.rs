//! Usage of rate limits and budgets.
//!
//! Usage is counted when an action is allowed to run, never when a caller only asks whether it may.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smallvec::SmallVec;

use crate::atlas::Atlas;
use crate::atlas::document::LimitScope;
use crate::atlas::model::{Limit, Policy};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::json::compare_with;
use crate::base::limits::MAX_RUNS_LEFT;
use crate::trace::event::UsedLimit;

use super::held::ActionCall;
use super::session::Session;

mod unknown_usage;

pub(super) use unknown_usage::{UNKNOWN_KEY, UnknownUsage};

/// Usage of every limit, by policy and, depending on the scope, by session or agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    spent: BTreeMap<String, LimitUsage>,
    /// Limits whose usage is not known, because the stored counts were not trusted.
    unknown: Option<UnknownUsage>,
}

/// Usage of one limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LimitUsage {
    /// Times of the runs, oldest first; at most as many as the limit allows.
    runs: VecDeque<Timestamp>,
    /// Sum of the costs.
    total: f64,
    /// Rounding error of the sum: both together are the exact usage.
    #[serde(default, skip_serializing_if = "is_zero")]
    rest: f64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(rest: &f64) -> bool {
    *rest == 0.0
}

/// Share of a cost by which a sum may exceed its limit: ten times 0.1 is 1, though doubles add up to a
/// little more.
const TOLERANCE: f64 = 1e-9;

/// Usage of a limit by a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionLimitUsage {
    /// Its Atlas.
    pub atlas_id: String,
    /// The policy.
    pub policy_id: String,
    /// Amount used.
    pub used: f64,
    /// Amount allowed.
    pub allowed: f64,
    /// Time window, if the limit has one.
    pub window: Option<Duration>,
    /// Sessions that share the limit.
    pub scope: LimitScope,
}

/// A limit that applies to a run, with its key.
#[derive(Debug)]
pub(super) struct AppliedLimit {
    pub(super) key: String,
    pub(super) limit: Limit,
}

impl Usage {
    /// Returns the reason why `policy` does not allow a run now, if it does not.
    pub(super) fn limit_refusal(
        &self,
        atlas: &Atlas,
        policy: &Policy,
        session: &Session,
        params: &Value,
        now: Timestamp,
    ) -> Option<String> {
        let limit = policy.limit.as_ref()?;
        if let Some(refusal) = self.unknown_refusal(limit, now) {
            return Some(refusal);
        }
        let none = LimitUsage::default();
        let spent = look_up(&self.spent, atlas, policy, session).unwrap_or(&none);
        match limit {
            Limit::Rate {
                max_calls, window, ..
            } => {
                let recent = spent.recent(*window, now);
                (recent >= *max_calls).then(|| {
                    let seconds = window.as_secs();
                    format!("the limit of {max_calls} runs in {seconds} s is used up")
                })
            }
            Limit::Budget { limit, cost, .. } => match cost_of(cost.as_deref(), params) {
                Err(what) => Some(what),
                Ok(cost) if spent.exceeds(cost, *limit) => Some(format!(
                    "the action costs {cost}, and {} of {limit} are left",
                    (limit - spent.total - spent.rest).max(0.0)
                )),
                Ok(_) => None,
            },
        }
    }

    /// Returns a session's current usage of a limit.
    pub(super) fn used(
        &self,
        atlas: &Atlas,
        policy: &Policy,
        session: &Session,
        now: Timestamp,
    ) -> Option<SessionLimitUsage> {
        let none = LimitUsage::default();
        let spent = look_up(&self.spent, atlas, policy, session).unwrap_or(&none);
        let limit = policy.limit.as_ref()?;
        let (used, most, window) = match limit {
            Limit::Rate {
                max_calls, window, ..
            } => (
                as_number(spent.recent(*window, now)),
                as_number(*max_calls),
                Some(*window),
            ),
            Limit::Budget { limit, .. } => (spent.total + spent.rest, *limit, None),
        };
        let is_unknown = self.unknown_refusal(limit, now).is_some();
        let used = if is_unknown { most } else { used };
        Some(SessionLimitUsage {
            atlas_id: atlas.id.clone(),
            policy_id: policy.id.clone(),
            used,
            allowed: most,
            window,
            scope: limit.scope(),
        })
    }

    /// Returns the reason why a limit counts as spent because its usage is not known.
    fn unknown_refusal(&self, limit: &Limit, now: Timestamp) -> Option<String> {
        self.unknown.as_ref()?.refusal(limit, now)
    }

    /// Counts a run against the limits that apply to it. Returns their new usage.
    pub(super) fn count(
        &mut self,
        limits: &[AppliedLimit],
        call: &ActionCall,
        now: Timestamp,
    ) -> Vec<(String, LimitUsage)> {
        let mut changed = Vec::new();
        for applied in limits {
            let spent = self.spent.entry(applied.key.clone()).or_default();
            match &applied.limit {
                Limit::Rate { max_calls, .. } => {
                    spent.runs.push_back(now);
                    let most = usize::try_from(*max_calls).unwrap_or(usize::MAX);
                    while spent.runs.len() > most {
                        spent.runs.pop_front();
                    }
                }
                Limit::Budget { cost, .. } => {
                    spent.add(cost_of(cost.as_deref(), &call.params).unwrap_or_default());
                }
            }
            changed.push((applied.key.clone(), spent.clone()));
        }
        changed
    }

    /// Use of the limits that count for a session alone, for the session that goes on with its conversation.
    pub(super) fn left_by(&self, session: &SessionId) -> Vec<UsedLimit> {
        let own = self.spent.iter();
        let own = own.filter_map(|(key, spent)| Some(spent.left(own_limit(key, session)?)));
        own.collect()
    }

    /// Counts the use of limits for the session that goes on with a conversation. Gives them as they are now.
    pub(super) fn take_over<'l>(
        &mut self,
        session: &SessionId,
        limits: impl Iterator<Item = &'l UsedLimit>,
        now: Timestamp,
    ) -> Vec<(String, LimitUsage)> {
        let taken: Vec<_> = limits
            .map(|used| {
                (
                    format!("{}/{session}", used.limit),
                    LimitUsage::of(used, now),
                )
            })
            .collect();
        self.spent.extend(taken.iter().cloned());
        taken
    }

    /// Forgets what counted for a session alone. Gives what was forgotten.
    pub(super) fn forget(&mut self, session: &SessionId) -> Vec<String> {
        let own = |key: &String| own_limit(key, session).is_some();
        let gone = self.spent.extract_if(.., |key, _| own(key));
        gone.map(|(key, _)| key).collect()
    }

    /// Applies `adjust` to the time of every run. Returns the changed limits.
    pub(super) fn adjust_timestamps(
        &mut self,
        adjust: impl Fn(Timestamp) -> Timestamp,
    ) -> Vec<(String, LimitUsage)> {
        let timed = self
            .spent
            .iter_mut()
            .filter(|(_, spent)| !spent.runs.is_empty());
        let changed = timed.filter_map(|(key, spent)| {
            let mut changes = false;
            for run in &mut spent.runs {
                let adjusted = adjust(*run);
                changes |= adjusted != *run;
                *run = adjusted;
            }
            changes.then(|| (key.clone(), spent.clone()))
        });
        changed.collect()
    }

    /// Restores the stored usage of a limit.
    pub(super) fn restore(&mut self, key: String, spent: LimitUsage) {
        self.spent.insert(key, spent);
    }
}

/// Atlas and policy of a limit, where a key is the one of a session alone.
fn own_limit<'k>(key: &'k str, session: &SessionId) -> Option<&'k str> {
    let limit = key.strip_suffix(session.as_str())?.strip_suffix('/')?;
    (!key.contains(AGENT_SEPARATOR)).then_some(limit)
}

impl LimitUsage {
    /// The use as a session leaves it to its successor.
    fn left(&self, limit: &str) -> UsedLimit {
        let older = self.runs.len().saturating_sub(MAX_RUNS_LEFT);
        UsedLimit {
            limit: limit.to_owned(),
            runs: self.runs.iter().skip(older).copied().collect(),
            older_runs: older as u64,
            total: self.total,
            rest: self.rest,
        }
    }

    /// The use as a session takes it over. A run is never later than now, so that a clock that was set back does not
    /// make it count for longer.
    fn of(used: &UsedLimit, now: Timestamp) -> Self {
        let oldest = used.runs.first().copied().unwrap_or(now);
        let older = usize::try_from(used.older_runs).unwrap_or(usize::MAX);
        let older = std::iter::repeat_n(oldest, older);
        let runs = older.chain(used.runs.iter().copied());
        Self {
            runs: runs.map(|run| run.min(now)).collect(),
            total: used.total,
            rest: used.rest,
        }
    }

    /// The sum with a cost, and what rounding cuts off it.
    fn sum(&self, cost: f64) -> (f64, f64) {
        let sum = self.total + cost;
        // Exact for any two doubles (Knuth).
        let added = sum - self.total;
        let cut = (self.total - (sum - added)) + (cost - added);
        (sum, self.rest + cut)
    }

    /// Returns whether a cost exceeds the rest of a limit.
    fn exceeds(&self, cost: f64, limit: f64) -> bool {
        let (sum, rest) = self.sum(cost);
        (sum - limit) + rest > cost * TOLERANCE
    }

    fn add(&mut self, cost: f64) {
        (self.total, self.rest) = self.sum(cost);
    }

    fn recent(&self, window: Duration, now: Timestamp) -> u64 {
        self.runs
            .iter()
            .filter(|run| now.since(**run) < window)
            .count() as u64
    }
}

/// Converts a count into a number for display. The exact value of a count above four billion does not matter.
fn as_number(count: u64) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

/// Separator before the name of an agent in a key. Identifiers of Atlases, policies and sessions never
/// contain `@`.
const AGENT_SEPARATOR: &str = "/@";

/// Returns the key of a limit. Its last part is a session, an agent, or `*` for all sessions; no session has
/// that name.
pub(super) fn limit_key(atlas: &Atlas, policy: &Policy, session: &Session) -> String {
    key_parts(atlas, policy, session).concat()
}

fn key_parts<'k>(atlas: &'k Atlas, policy: &'k Policy, session: &'k Session) -> [&'k str; 5] {
    let scope = policy.limit.as_ref().map(Limit::scope).unwrap_or_default();
    let (separator, who) = match scope {
        LimitScope::Session => ("/", session.id.as_str()),
        LimitScope::Agent => (AGENT_SEPARATOR, session.agent.as_str()),
        LimitScope::All => ("/", "*"),
    };
    [&atlas.id, "/", &policy.id, separator, who]
}

/// Finds the usage of a limit without a heap allocation. This happens with every request that the limit
/// applies to.
fn look_up<'u>(
    spent: &'u BTreeMap<String, LimitUsage>,
    atlas: &Atlas,
    policy: &Policy,
    session: &Session,
) -> Option<&'u LimitUsage> {
    let mut key: SmallVec<[u8; USUAL_KEY_BYTES]> = SmallVec::new();
    for part in key_parts(atlas, policy, session) {
        key.extend_from_slice(part.as_bytes());
    }
    spent.get(str::from_utf8(&key).ok()?)
}

/// Key length that needs no heap allocation. Few keys are longer: a session's identifier has 36 bytes, and
/// names are rarely longer.
const USUAL_KEY_BYTES: usize = 256;

/// Returns the cost of a run: 1, or the number in a parameter. An unknown cost is an error, so that the run
/// is refused.
fn cost_of(parameter: Option<&str>, params: &Value) -> Result<f64, String> {
    let Some(name) = parameter else {
        return Ok(1.0);
    };
    let number = params.get(name).and_then(Value::as_number);
    match number.and_then(|number| Some((number, number.as_f64()?))) {
        Some((number, cost)) if compare_with(number, cost) != Some(Ordering::Equal) => Err(
            format!("the cost is unknown: `{name}` is {number}, which cannot be added exactly"),
        ),
        Some((_, cost)) if cost >= 0.0 => Ok(cost),
        Some(_) | None => Err(format!(
            "the cost is unknown: `{name}` must be a positive number"
        )),
    }
}
