//! Pace of the operator's decisions, shown against rubber-stamping: recent passes and their viewing
//! times.

use std::time::Duration;

use super::GateDialog;
use crate::base::clock::Timestamp;
use crate::base::limits::PACE_WINDOW;

/// Maximum number of viewing times that are listed.
const MOST_LISTED: usize = 5;

/// A recent pass by this console's operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecentPass {
    /// Time of the pass.
    pub(crate) at: Timestamp,
    /// Time that the dialog was on screen before the pass, if this console showed it.
    pub(crate) viewing_time: Option<Duration>,
}

impl GateDialog {
    /// Returns the time since the dialog was first painted.
    pub(crate) fn viewing_time(&self, now: Timestamp) -> Duration {
        self.shown_at
            .map_or(Duration::ZERO, |since| now.since(since))
    }

    fn passes_in_window(&self, now: Timestamp) -> impl Iterator<Item = &RecentPass> {
        let passes = self.decision_context.passes.iter();
        passes.filter(move |pass| now.since(pass.at) <= PACE_WINDOW)
    }

    /// Text such as `you passed 3 in 10 min`, if there were recent passes.
    pub(super) fn pace_short(&self, now: Timestamp) -> Option<String> {
        let count = self.passes_in_window(now).count();
        (count > 0).then(|| format!("you passed {count} in 10 min"))
    }

    /// Text with the number of recent passes, the viewing time of each, and of this request.
    pub(super) fn pace(&self, now: Timestamp) -> String {
        let count = self.passes_in_window(now).count();
        let these = match self.members().len() {
            0 => "this request".to_owned(),
            count => format!("these {count} requests"),
        };
        let here = format!("{} on {these} so far", seconds(self.viewing_time(now)));
        if count == 0 {
            return format!("you passed none in 10 min; {here}");
        }
        let each = self.passes_in_window(now).take(MOST_LISTED).map(|pass| {
            let spent = pass.viewing_time.map(seconds);
            spent.unwrap_or_else(|| "?".to_owned())
        });
        let each: Vec<String> = each.collect();
        let more = if count > MOST_LISTED { ", ..." } else { "" };
        let each = each.join(", ");
        format!("you passed {count} in 10 min (viewed {each}{more}); {here}")
    }
}

fn seconds(span: Duration) -> String {
    format!("{} s", span.as_secs())
}
