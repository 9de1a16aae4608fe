//! Limits with unknown usage: the stored counts were changed while no console was open.
//!
//! Limits that sessions share then count as spent: a rate limit for one full window, a budget until an
//! operator loads another version of the Atlas. Limits of a single session are not concerned: no session is
//! resumed if the counts are not trusted.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Usage;
use crate::atlas::document::LimitScope;
use crate::atlas::model::Limit;
use crate::base::clock::Timestamp;
use crate::engine::Engine;
use crate::engine::command::{StateChange, StateKind};
use crate::engine::transaction::changed_state;

/// Key of the stored row. Keys of limits contain slashes, so they differ.
pub(in crate::engine) const UNKNOWN_KEY: &str = "unknown";

/// State of the limits whose usage is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct UnknownUsage {
    /// Time of the start at which the counts were not trusted.
    since: Timestamp,
    /// True while budgets count as spent, too: until an operator loads another version of the Atlas.
    budgets: bool,
}

impl UnknownUsage {
    /// Returns the reason why a limit counts as spent, if it does.
    pub(super) fn refusal(&self, limit: &Limit, now: Timestamp) -> Option<String> {
        if limit.scope() == LimitScope::Session {
            return None;
        }
        let lost = "the state was changed while cra was not running, so the usage is unknown";
        match limit {
            Limit::Rate { window, .. } => self.is_recent(*window, now).then(|| {
                let (seconds, since) = (window.as_secs(), self.since.time_of_day());
                format!(
                    "{lost}; the limit counts as used up for {seconds} s from {since} UTC: try again after that"
                )
            }),
            Limit::Budget { .. } => self.budgets.then(|| {
                format!(
                    "{lost}; the limit counts as used up until an operator loads another version of the Atlas"
                )
            }),
        }
    }

    fn is_recent(&self, window: Duration, now: Timestamp) -> bool {
        now.since(self.since) < window
    }
}

impl Usage {
    /// Restores the state of unknown usage.
    pub(in crate::engine) fn restore_unknown(&mut self, unknown: UnknownUsage) {
        self.unknown = Some(unknown);
    }

    /// Applies `adjust` to the time since which the usage is not known. Returns the state to store.
    pub(in crate::engine) fn adjust_unknown(
        &mut self,
        adjust: impl Fn(Timestamp) -> Timestamp,
    ) -> Option<UnknownUsage> {
        let unknown = self.unknown.as_mut()?;
        unknown.since = adjust(unknown.since);
        Some(*unknown)
    }
}

impl Engine {
    /// Returns the state under which shared limits count as spent, from `now` on.
    #[must_use]
    pub fn usage_unknown(now: Timestamp) -> StateChange {
        let unknown = UnknownUsage {
            since: now,
            budgets: true,
        };
        changed_state(StateKind::Usage, UNKNOWN_KEY, Some(&unknown))
    }

    /// Returns the state after an operator loaded another version of the Atlas: budgets with unknown usage
    /// count from zero. `None` if nothing changes.
    #[must_use]
    pub fn budgets_accepted(&self) -> Option<StateChange> {
        let unknown = self.state.usage.unknown.filter(|unknown| unknown.budgets)?;
        let accepted = UnknownUsage {
            budgets: false,
            ..unknown
        };
        let change = changed_state(StateKind::Usage, UNKNOWN_KEY, Some(&accepted));
        Some(change)
    }

    /// Counts budgets with unknown usage from zero.
    pub(in crate::engine) fn accept_budgets(&mut self) {
        if let Some(unknown) = &mut self.state.usage.unknown {
            unknown.budgets = false;
        }
    }
}
