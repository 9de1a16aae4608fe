//! Limits whose use is not known: the kept counts were changed while no console was open.
//!
//! Limits that all sessions share then count as spent: a rate limit for one full window, a budget until an operator
//! loads another version of the Atlas. What counts for one session alone is not meant: no session is taken up again
//! where the counts are not believed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Usage;
use crate::atlas::compiled::Limit;
use crate::atlas::document::Scope;
use crate::base::clock::Timestamp;
use crate::engine::Engine;
use crate::engine::command::{StateChange, StateKind};
use crate::engine::turn::changed_state;

/// The key of the row that has it. Limits are kept under keys with slashes.
pub(in crate::engine) const UNKNOWN: &str = "unknown";

/// The limits whose use is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::engine) struct UnknownUsage {
    /// The start at which the counts were not believed.
    since: Timestamp,
    /// True while budgets count as spent, too: until an operator has loaded another version of the Atlas.
    budgets: bool,
}

impl UnknownUsage {
    /// The reason why a limit counts as spent, if it does.
    pub(super) fn refusal(&self, limit: &Limit, now: Timestamp) -> Option<String> {
        if limit.scope() == Scope::Session {
            return None;
        }
        let lost = "the state was changed while no console was open, so what was used is not known";
        match limit {
            Limit::Rate { window, .. } => self.is_recent(*window, now).then(|| {
                let (seconds, since) = (window.as_secs(), self.since.time_of_day());
                format!(
                    "{lost}: it counts as used up for {seconds} s from {since} UTC; ask again then"
                )
            }),
            Limit::Budget { .. } => self.budgets.then(|| {
                format!(
                    "{lost}: it counts as used up until an operator loads another version of the Atlas"
                )
            }),
        }
    }

    fn is_recent(&self, window: Duration, now: Timestamp) -> bool {
        now.since(self.since) < window
    }
}

impl Usage {
    /// Takes up that the use of limits is not known.
    pub(in crate::engine) fn restore_unknown(&mut self, unknown: UnknownUsage) {
        self.unknown = Some(unknown);
    }

    /// Changes the moment since which the use of limits is not known. Gives what has to be kept.
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
    /// The state under which limits that all sessions share count as spent, from `now` on.
    #[must_use]
    pub fn usage_unknown(now: Timestamp) -> StateChange {
        let unknown = UnknownUsage {
            since: now,
            budgets: true,
        };
        changed_state(StateKind::Usage, UNKNOWN, Some(&unknown))
    }

    /// The state in which an operator has loaded another version of the Atlas: budgets count anew where what was
    /// used of them is not known. `None` where nothing changes.
    #[must_use]
    pub fn budgets_accepted(&self) -> Option<StateChange> {
        let unknown = self.state.usage.unknown.filter(|unknown| unknown.budgets)?;
        let accepted = UnknownUsage {
            budgets: false,
            ..unknown
        };
        let change = changed_state(StateKind::Usage, UNKNOWN, Some(&accepted));
        Some(change)
    }

    /// Counts budgets anew where what was used of them is not known.
    pub(in crate::engine) fn accept_budgets(&mut self) {
        if let Some(unknown) = &mut self.state.usage.unknown {
            unknown.budgets = false;
        }
    }
}
