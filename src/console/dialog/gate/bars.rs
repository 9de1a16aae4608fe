//! What stands in the way of a decision, in words. A button whose bar is absent is enabled; the same
//! words are shown beside it and checked when it is pressed.

use super::GateDialog;
use super::field::text_of;
use super::step::{Care, Step, Trouble, answers_challenge, care};
use crate::base::clock::Timestamp;
use crate::runtime::snapshot::Access;

impl GateDialog {
    /// Why nothing can be decided, if so.
    pub(super) fn bars_all(&self, now: Timestamp) -> Option<String> {
        if self.around.access == Access::ReadOnly {
            return Some("read-only".to_owned());
        }
        if let Some(trouble @ Trouble::Store(_)) = &self.around.trouble {
            return Some(trouble.short().to_owned());
        }
        if self.held.deadline <= now {
            return Some("time is up".to_owned());
        }
        (!self.is_ready(now)).then(|| "arming".to_owned())
    }

    /// Why it cannot be passed, if so.
    pub(super) fn bars_pass(&self, now: Timestamp) -> Option<String> {
        let trouble = || self.around.trouble.as_ref().map(|it| it.short().to_owned());
        let unseen = || {
            let why = "request not fully seen (PgDn)".to_owned();
            (!self.context.is_seen()).then_some(why)
        };
        self.bars_all(now)
            .or_else(trouble)
            .or_else(|| self.stale.clone())
            .or_else(|| self.form.lacks())
            .or_else(unseen)
    }

    /// Why the last button of the review cannot be pressed, if so.
    pub(super) fn bars_pass_now(&self, now: Timestamp) -> Option<String> {
        let Step::Reviewing(review) = &self.step else {
            return Some("review first".to_owned());
        };
        let typed = text_of(&review.typed);
        let challenged = care(&self.held) == Care::Challenged;
        let answered = !challenged || answers_challenge(&typed, &self.held.request_hash);
        let unanswered = || (!answered).then(|| "type the hash first".to_owned());
        self.bars_pass(now).or_else(unanswered)
    }

    /// Why it cannot be denied, if so.
    pub(super) fn bars_deny(&self, now: Timestamp) -> Option<String> {
        let needed = care(&self.held) != Care::Direct && self.form.reason_text().is_empty();
        let missing = || needed.then(|| "a reason is needed".to_owned());
        self.bars_all(now).or_else(missing)
    }
}
