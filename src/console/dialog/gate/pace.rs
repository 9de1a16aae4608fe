//! Against rubber stamps: what was passed lately, and how long each was looked at.

use std::time::Duration;

use super::GateDialog;
use crate::base::clock::Timestamp;
use crate::base::limits::PACE_WINDOW;

/// Most spans of time that are listed.
const MOST_LISTED: usize = 5;

/// A pass of the operator who sits here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    /// When.
    pub(crate) at: Timestamp,
    /// How long its dialog was on screen before, where this console showed it.
    pub(crate) spent: Option<Duration>,
}

impl GateDialog {
    /// How long it has been on screen.
    pub(crate) fn spent(&self, now: Timestamp) -> Duration {
        self.shown_at
            .map_or(Duration::ZERO, |since| now.since(since))
    }

    fn lately(&self, now: Timestamp) -> impl Iterator<Item = &Pass> {
        let passes = self.around.passes.iter();
        passes.filter(move |pass| now.since(pass.at) <= PACE_WINDOW)
    }

    /// `3 passed in 10 min`, while there is anything to count.
    pub(super) fn pace_short(&self, now: Timestamp) -> Option<String> {
        let count = self.lately(now).count();
        (count > 0).then(|| format!("you passed {count} in 10 min"))
    }

    /// How many were passed lately, the time spent on each, and on this one.
    pub(super) fn pace(&self, now: Timestamp) -> String {
        let count = self.lately(now).count();
        let these = match self.members().len() {
            0 => "this one".to_owned(),
            count => format!("these {count}"),
        };
        let here = format!("{} on {these} so far", seconds(self.spent(now)));
        if count == 0 {
            return format!("none passed in the last ten minutes; {here}");
        }
        let each = self.lately(now).take(MOST_LISTED).map(|pass| {
            let spent = pass.spent.map(seconds);
            spent.unwrap_or_else(|| "?".to_owned())
        });
        let each: Vec<String> = each.collect();
        let more = if count > MOST_LISTED { ", ..." } else { "" };
        let each = each.join(", ");
        format!("{count} passed in the last ten minutes, after {each}{more}; {here}")
    }
}

fn seconds(span: Duration) -> String {
    format!("{} s", span.as_secs())
}
