//! The steps of a decision, and what stands around it.

use std::sync::Arc;

use ratatui_textarea::TextArea;

use super::changed::Changed;
use super::claimed::OverClaim;
use super::form::Form;
use super::pace::Pass;
use super::scroll::Scroll;
use super::text::{editor, text_of};
use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::text::one_line;
use crate::console::screen::queue::{is_detected, overrules};
use crate::engine::command::{Confirmation, Decided, RecordFault};
use crate::engine::held::Held;
use crate::runtime::snapshot::Access;

/// How far a decision has come.
#[derive(Debug)]
pub(crate) enum Step {
    /// The questions are answered.
    Editing,
    /// What will be written is looked at once more.
    Reviewing(Review),
    /// The reason to deny is written.
    Denying(DenySpot),
    /// Another operator looks after it: whether to go on is asked.
    Claimed(Box<OverClaim>),
    /// The decision is on its way to the disk. Nothing can be pressed.
    Writing(Verb),
    /// It is another request by now. What was typed for the one before does not count.
    Changed(Box<Changed>),
    /// It is over; how, as far as it is known.
    Settled(Option<Arc<Decided>>),
}

/// What is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// A pass.
    Pass,
    /// A refusal.
    Deny,
}

/// The review.
#[derive(Debug)]
pub(crate) struct Review {
    /// Where the focus is.
    pub(crate) spot: ReviewSpot,
    /// What has to be shown before it can pass.
    pub(crate) proofs: Vec<Proof>,
    /// What was typed of the request's hash.
    pub(crate) hash: Box<TextArea<'static>>,
    /// What was typed of the action's name.
    pub(crate) action: Box<TextArea<'static>>,
    /// What will be written.
    pub(crate) sheet: Scroll,
}

impl Review {
    /// A review with the focus on a harmless place: what has to be typed, or the way back.
    pub(crate) fn new(held: &Held, form: &Form) -> Self {
        let proofs = proofs(held, form);
        let spot = proofs.first().copied().map(ReviewSpot::Proof);
        Self {
            spot: spot.unwrap_or(ReviewSpot::Back),
            proofs,
            hash: Box::new(editor()),
            action: Box::new(editor()),
            sheet: Scroll::default(),
        }
    }

    /// The places the focus can be at, in order.
    pub(crate) fn spots(&self) -> Vec<ReviewSpot> {
        let proofs = self.proofs.iter().copied().map(ReviewSpot::Proof);
        proofs
            .chain([ReviewSpot::Back, ReviewSpot::PassNow])
            .collect()
    }

    /// A confirmation that was typed and is wrong.
    pub(crate) fn wrong(&self, held: &Held) -> Option<(Confirmation, String)> {
        self.proofs.iter().find_map(|proof| {
            let (wanted, typed) = match proof {
                Proof::Why => return None,
                Proof::Hash => (Confirmation::RequestHash, text_of(&self.hash)),
                Proof::Action => (Confirmation::Action, text_of(&self.action)),
            };
            let right = match proof {
                Proof::Why => true,
                Proof::Hash => answers_challenge(&typed, &held.request_hash),
                Proof::Action => typed.trim() == shown_action(held),
            };
            (!right && !typed.trim().is_empty()).then_some((wanted, typed))
        })
    }

    /// What is still to be shown, in words.
    pub(crate) fn lacks(&self, held: &Held, form: &Form) -> Option<&'static str> {
        self.proofs.iter().find_map(|proof| match proof {
            Proof::Why if form.why_text().is_empty() => Some("say why it may pass"),
            Proof::Hash if !answers_challenge(&text_of(&self.hash), &held.request_hash) => {
                Some("type the hash first")
            }
            Proof::Action if text_of(&self.action).trim() != shown_action(held) => {
                Some("type the action's name first")
            }
            Proof::Why | Proof::Hash | Proof::Action => None,
        })
    }
}

/// Something that has to be shown before a request can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Why it may, where no answer says so.
    Why,
    /// The first characters of the request's hash.
    Hash,
    /// The action's name, in full.
    Action,
}

/// What has to be shown before this request can pass.
fn proofs(held: &Held, form: &Form) -> Vec<Proof> {
    let mut proofs = care(held).proofs().to_vec();
    proofs.retain(|proof| *proof != Proof::Why || !form.justifies());
    proofs
}

/// The action's name as it is shown and typed.
pub(crate) fn shown_action(held: &Held) -> String {
    one_line(held.action()).trim().to_owned()
}

/// A place the focus can be at in the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewSpot {
    /// What has to be shown.
    Proof(Proof),
    /// Back to the answers.
    Back,
    /// The button that passes.
    PassNow,
}

/// A place the focus can be at while denying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenySpot {
    /// The reason.
    Reason,
    /// Back to the answers.
    Back,
    /// The button that denies.
    DenyNow,
}

/// How the dialog was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// To answer.
    Answer,
    /// To deny.
    Deny,
    /// To overrule the denial behind it, as the palette was asked for.
    Override,
}

/// Which pane has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    /// The request.
    Context,
    /// The request, while what to look for in it is typed.
    Search,
    /// The answers.
    Form,
}

/// Since when keys count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arming {
    /// Not painted yet: nobody can have meant this dialog.
    Undrawn,
    /// Keys count from this moment on.
    Until(Timestamp),
}

/// What decides about deciding, outside of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Around {
    /// Who sits here.
    pub(crate) operator: String,
    /// Whether this console decides at all.
    pub(crate) access: Access,
    /// What is wrong with the record.
    pub(crate) trouble: Option<Trouble>,
    /// What was passed lately, newest first.
    pub(crate) passes: Vec<Pass>,
}

/// What is wrong with the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A chain does not hold, or cannot be read.
    Chain(RecordFault),
    /// Nothing more is recorded.
    Store(String),
}

impl Trouble {
    /// It, in full.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Chain(fault) => &fault.what,
            Self::Store(text) => text,
        }
    }

    /// It, in two words.
    pub(crate) fn short(&self) -> &'static str {
        match self {
            Self::Chain(_) => "chain broken (:ack-broken-chain)",
            Self::Store(_) => "nothing can be recorded",
        }
    }
}

/// How many characters of the hash are typed.
pub(crate) const CHALLENGE: usize = 4;

/// How carefully a request is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Care {
    /// One press.
    Direct,
    /// A review in between.
    Reviewed,
    /// The same, for several at once.
    Together,
    /// A review, a justification, and the hash typed.
    Challenged,
    /// And the action's name typed.
    Named,
    /// The same, with a longer justification: a denial is overruled.
    Overruled,
}

impl Care {
    /// What has to be shown, of which the reason only where no answer says it.
    pub(crate) fn proofs(self) -> &'static [Proof] {
        match self {
            Self::Direct | Self::Reviewed | Self::Together => &[],
            Self::Challenged => &[Proof::Why, Proof::Hash],
            Self::Named | Self::Overruled => &[Proof::Why, Proof::Hash, Proof::Action],
        }
    }

    /// How a pass that was taken with it is recorded.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Direct | Self::Reviewed => "console",
            Self::Together => "console+batch",
            Self::Challenged => "console+challenge",
            Self::Named | Self::Overruled => "console+challenge+action",
        }
    }
}

/// How carefully this request is passed. A tier that was only detected is never passed directly.
pub(crate) fn care(held: &Held) -> Care {
    if overrules(held) {
        return Care::Overruled;
    }
    match held.tier() {
        RiskTier::Low if is_detected(held) => Care::Reviewed,
        RiskTier::Low => Care::Direct,
        RiskTier::Medium => Care::Reviewed,
        RiskTier::High => Care::Challenged,
        RiskTier::Critical => Care::Named,
    }
}

/// Whether what was typed is the beginning of the hash.
pub(crate) fn answers_challenge(typed: &str, hash: &Digest) -> bool {
    typed.trim().to_lowercase() == hash.short(CHALLENGE)
}
