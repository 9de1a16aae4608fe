//! Steps of a decision, and the console state that it depends on.

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

/// Step of a decision.
#[derive(Debug)]
pub(crate) enum Step {
    /// The operator answers the questions.
    Editing,
    /// The operator reviews the records that will be written.
    Reviewing(Review),
    /// The operator types the reason for a denial.
    Denying(DenySpot),
    /// Another operator has claimed the request: the dialog asks whether to continue.
    Claimed(Box<OverClaim>),
    /// The decision is being recorded. Nothing can be pressed.
    Writing(Verb),
    /// The request was replaced by another version. Answers typed for the version before do not count.
    Changed(Box<Changed>),
    /// The request is settled; with the decision, if it is known.
    Settled(Option<Arc<Decided>>),
}

/// Kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Pass the request.
    Pass,
    /// Deny the request.
    Deny,
}

/// State of the review.
#[derive(Debug)]
pub(crate) struct Review {
    /// The focused element.
    pub(crate) spot: ReviewSpot,
    /// Proofs required before the request can pass.
    pub(crate) proofs: Vec<Proof>,
    /// Typed characters of the request's hash.
    pub(crate) hash: Box<TextArea<'static>>,
    /// Typed name of the action.
    pub(crate) action: Box<TextArea<'static>>,
    /// Scroll state of the records that will be written.
    pub(crate) sheet: Scroll,
}

impl Review {
    /// Creates a review with the focus on a harmless element: a text to type, or the way back.
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

    /// Lists the focusable elements in order.
    pub(crate) fn spots(&self) -> Vec<ReviewSpot> {
        let proofs = self.proofs.iter().copied().map(ReviewSpot::Proof);
        proofs
            .chain([ReviewSpot::Back, ReviewSpot::PassNow])
            .collect()
    }

    /// Returns a confirmation that was typed wrongly, if there is one.
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

    /// Text of the first missing proof.
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

/// Proof required before a request can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The justification, if no answer gives it.
    Why,
    /// The first characters of the request's hash.
    Hash,
    /// The action's name, in full.
    Action,
}

/// Lists the proofs required before this request can pass.
fn proofs(held: &Held, form: &Form) -> Vec<Proof> {
    let mut proofs = care(held).proofs().to_vec();
    proofs.retain(|proof| *proof != Proof::Why || !form.justifies());
    proofs
}

/// Returns the action's name as it is shown and typed.
pub(crate) fn shown_action(held: &Held) -> String {
    one_line(held.action()).trim().to_owned()
}

/// Focusable element in the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewSpot {
    /// Input of a proof.
    Proof(Proof),
    /// Button back to the answers.
    Back,
    /// Button that passes.
    PassNow,
}

/// Focusable element in the denial step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenySpot {
    /// Input of the reason.
    Reason,
    /// Button back to the answers.
    Back,
    /// Button that denies.
    DenyNow,
}

/// Entry point by which the operator opened the dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Opened to answer.
    Answer,
    /// Opened to deny.
    Deny,
    /// Opened by the palette's command to override the denial behind the request.
    Override,
}

/// Pane that receives the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    /// The request.
    Context,
    /// The request, while the search text is typed.
    Search,
    /// The answers.
    Form,
}

/// State of the arming time: until it ends, keys are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arming {
    /// Not painted yet: a key cannot be meant for this dialog.
    Undrawn,
    /// Keys count from this time on.
    Until(Timestamp),
}

/// Console state outside the request that determines whether the operator may decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Around {
    /// Operator of this console.
    pub(crate) operator: String,
    /// Access of this console: read-only consoles never decide.
    pub(crate) access: Access,
    /// Fault of the record or the store.
    pub(crate) trouble: Option<Trouble>,
    /// Recent passes, newest first.
    pub(crate) passes: Vec<Pass>,
}

/// Fault of the record or the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A chain is broken or cannot be read.
    Chain(RecordFault),
    /// Nothing can be recorded.
    Store(String),
}

impl Trouble {
    /// Full text of the fault.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Chain(fault) => &fault.what,
            Self::Store(text) => text,
        }
    }

    /// Short text of the fault.
    pub(crate) fn short(&self) -> &'static str {
        match self {
            Self::Chain(_) => "chain broken (:ack-broken-chain)",
            Self::Store(_) => "nothing can be recorded",
        }
    }
}

/// Number of characters of the hash to type.
pub(crate) const CHALLENGE: usize = 4;

/// Level of care for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Care {
    /// One press.
    Direct,
    /// A review first.
    Reviewed,
    /// A review first, for several requests at once.
    Together,
    /// A review, a justification, and the typed hash.
    Challenged,
    /// Proofs of `Challenged`, and the typed name of the action.
    Named,
    /// Proofs of `Named`, with a longer justification: the pass overrides a denial.
    Overruled,
}

impl Care {
    /// Lists the required proofs. The justification is required only if no answer gives it.
    pub(crate) fn proofs(self) -> &'static [Proof] {
        match self {
            Self::Direct | Self::Reviewed | Self::Together => &[],
            Self::Challenged => &[Proof::Why, Proof::Hash],
            Self::Named | Self::Overruled => &[Proof::Why, Proof::Hash, Proof::Action],
        }
    }

    /// Name of the method in the record.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Direct | Self::Reviewed => "console",
            Self::Together => "console+batch",
            Self::Challenged => "console+challenge",
            Self::Named | Self::Overruled => "console+challenge+action",
        }
    }
}

/// Returns the level of care for a request. A tier that was only detected is never passed directly.
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

/// Returns true if the typed text equals the first characters of the hash.
pub(crate) fn answers_challenge(typed: &str, hash: &Digest) -> bool {
    typed.trim().to_lowercase() == hash.short(CHALLENGE)
}
