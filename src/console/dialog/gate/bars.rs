//! What stands in the way of a decision, in words. A button whose bar is absent is enabled; the same
//! words are shown beside it and checked when it is pressed.

use super::GateDialog;
use super::step::{Care, Entry, Step, Trouble};
use crate::base::clock::Timestamp;
use crate::engine::approval::bars;
use crate::runtime::snapshot::Access;

/// What stands in the way of every decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bar<'a> {
    /// This console only looks.
    ReadOnly,
    /// Something is wrong with the record.
    Trouble(&'a Trouble),
    /// Silence has decided by now.
    TimeUp,
    /// Nobody can have meant this dialog yet.
    Arming,
}

impl Bar<'_> {
    /// It, in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            // In here a colon is text.
            Self::Trouble(Trouble::Chain(_)) => "chain broken: Esc, then :ack-broken-chain",
            Self::Trouble(Trouble::Store(_)) => "nothing can be recorded",
            Self::TimeUp => "time is up",
            Self::Arming => "arming",
        }
    }
}

impl GateDialog {
    /// Whether passing it is the first of two approvals.
    pub(super) fn is_first_approval(&self) -> bool {
        !self.held.approvers().is_one() && self.held.first_approval().is_none()
    }

    /// What stands in the way of every decision, if anything does.
    pub(super) fn barred(&self, now: Timestamp) -> Option<Bar<'_>> {
        if self.around.access == Access::ReadOnly {
            return Some(Bar::ReadOnly);
        }
        if let Some(trouble) = &self.around.trouble {
            return Some(Bar::Trouble(trouble));
        }
        if self.held.deadline <= now {
            return Some(Bar::TimeUp);
        }
        (!self.is_ready(now)).then_some(Bar::Arming)
    }

    /// Why nothing can be decided, if so.
    pub(super) fn bars_all(&self, now: Timestamp) -> Option<String> {
        self.barred(now).map(|bar| bar.words().to_owned())
    }

    /// Why it cannot be passed, if so.
    pub(super) fn bars_pass(&self, now: Timestamp) -> Option<String> {
        self.bars_sending(now, || self.form.lacks())
    }

    /// Why not even answers that break rules can be sent, if so.
    pub(super) fn bars_broken(&self, now: Timestamp) -> Option<String> {
        self.bars_sending(now, || None)
    }

    /// Why answers cannot be sent, if so. `lacks` tells what is wrong with them.
    fn bars_sending(
        &self,
        now: Timestamp,
        lacks: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        // Overruling is asked for by name, never by the key that opens everything else.
        let unasked = || {
            let asked = self.entry == Entry::Override || !self.overrules();
            (!asked).then(|| format!("use :override {}", self.held.id))
        };
        let unseen = || {
            let why = if self.context.is_laid_out() {
                "request not fully seen (PgDn)"
            } else if self.context.is_shown() {
                "request still being laid out"
            } else {
                "request not seen yet (F6)"
            };
            (!self.context.is_seen()).then(|| why.to_owned())
        };
        // The engine says who can never approve it, and in the same words.
        let person = || bars(&self.held, &self.around.operator).map(|why| why.to_string());
        self.bars_all(now)
            .or_else(person)
            .or_else(unasked)
            .or_else(|| self.stale.clone())
            .or_else(lacks)
            .or_else(unseen)
    }

    /// Why the last button of the review cannot be pressed, if so.
    pub(super) fn bars_pass_now(&self, now: Timestamp) -> Option<String> {
        let Step::Reviewing(review) = &self.step else {
            return Some("review first".to_owned());
        };
        let unseen = || {
            // What was jumped over lies above.
            let way = if review.sheet.is_at_end() {
                "PgUp"
            } else {
                "PgDn"
            };
            (!review.sheet.is_whole()).then(|| format!("review not fully seen ({way})"))
        };
        let lacks = || review.lacks(&self.held, &self.form).map(str::to_owned);
        self.bars_pass(now).or_else(unseen).or_else(lacks)
    }

    /// Why it cannot be denied, if so.
    pub(super) fn bars_deny(&self, now: Timestamp) -> Option<String> {
        let needed = self.care() != Care::Direct && self.form.reason_text().is_empty();
        let missing = || needed.then(|| "a reason is needed".to_owned());
        self.bars_all(now).or_else(missing)
    }
}
