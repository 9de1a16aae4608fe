//! Steps of a decision, and the console state that it depends on.

use std::sync::Arc;

use ratatui_textarea::TextArea;

use super::changed_request::ChangedRequest;
use super::claim_question::ClaimQuestion;
use super::form::AnswerForm;
use super::pace::RecentPass;
use super::scroll::ScrollState;
use super::text_editing::{editor, text_of};
use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::text::one_line;
use crate::console::screen::queue::{has_detected_tier, overrules};
use crate::engine::command::{Confirmation, RecordFault, SettledRequest};
use crate::engine::held::Held;
use crate::runtime::snapshot::ConsoleAccess;

/// Step of a decision.
#[derive(Debug)]
pub(crate) enum DecisionStep {
    /// The operator answers the questions.
    Editing,
    /// The operator reviews the records that will be written.
    Reviewing(Review),
    /// The operator types the reason for a denial.
    Denying(DenyFocus),
    /// Another operator has claimed the request: the dialog asks whether to continue.
    Claimed(Box<ClaimQuestion>),
    /// The decision is being recorded. Nothing can be pressed.
    Writing(DecisionKind),
    /// The request was replaced by another version. Answers typed for the version before do not count.
    Changed(Box<ChangedRequest>),
    /// The request is settled; with the decision, if it is known.
    Settled(Option<Arc<SettledRequest>>),
}

/// Kind of decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecisionKind {
    /// Pass the request.
    Pass,
    /// Deny the request.
    Deny,
}

/// State of the review.
#[derive(Debug)]
pub(crate) struct Review {
    /// The focused element.
    pub(crate) focus: ReviewFocus,
    /// Proofs required before the request can pass.
    pub(crate) proofs: Vec<PassProof>,
    /// Typed characters of the request's hash.
    pub(crate) hash: Box<TextArea<'static>>,
    /// Typed name of the action.
    pub(crate) action: Box<TextArea<'static>>,
    /// Scroll state of the records that will be written.
    pub(crate) sheet: ScrollState,
}

impl Review {
    /// Creates a review with the focus on a harmless element: a text to type, or the way back.
    pub(crate) fn new(held: &Held, form: &AnswerForm) -> Self {
        let proofs = required_proofs(held, form);
        let spot = proofs.first().copied().map(ReviewFocus::Proof);
        Self {
            focus: spot.unwrap_or(ReviewFocus::Back),
            proofs,
            hash: Box::new(editor()),
            action: Box::new(editor()),
            sheet: ScrollState::default(),
        }
    }

    /// Lists the focusable elements in order.
    pub(crate) fn focus_order(&self) -> Vec<ReviewFocus> {
        let proofs = self.proofs.iter().copied().map(ReviewFocus::Proof);
        proofs
            .chain([ReviewFocus::Back, ReviewFocus::PassNow])
            .collect()
    }

    /// Returns a confirmation that was typed wrongly, if there is one.
    pub(crate) fn wrong_confirmation(&self, held: &Held) -> Option<(Confirmation, String)> {
        self.proofs.iter().find_map(|proof| {
            let (wanted, typed) = match proof {
                PassProof::Why => return None,
                PassProof::Hash => (Confirmation::RequestHash, text_of(&self.hash)),
                PassProof::Action => (Confirmation::Action, text_of(&self.action)),
            };
            let right = match proof {
                PassProof::Why => true,
                PassProof::Hash => answers_challenge(&typed, &held.request_hash),
                PassProof::Action => typed.trim() == shown_action(held),
            };
            (!right && !typed.trim().is_empty()).then_some((wanted, typed))
        })
    }

    /// Text of the first missing proof.
    pub(crate) fn missing_proof_text(
        &self,
        held: &Held,
        form: &AnswerForm,
    ) -> Option<&'static str> {
        self.proofs.iter().find_map(|proof| match proof {
            PassProof::Why if form.justification_text().is_empty() => Some("enter a justification"),
            PassProof::Hash if !answers_challenge(&text_of(&self.hash), &held.request_hash) => {
                Some("type the hash first")
            }
            PassProof::Action if text_of(&self.action).trim() != shown_action(held) => {
                Some("type the action's name first")
            }
            PassProof::Why | PassProof::Hash | PassProof::Action => None,
        })
    }
}

/// Proof required before a request can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassProof {
    /// The justification, if no answer gives it.
    Why,
    /// The first characters of the request's hash.
    Hash,
    /// The action's name, in full.
    Action,
}

/// Lists the proofs required before this request can pass.
fn required_proofs(held: &Held, form: &AnswerForm) -> Vec<PassProof> {
    let mut proofs = care_for_request(held).required_proofs().to_vec();
    proofs.retain(|proof| *proof != PassProof::Why || !form.has_justification());
    proofs
}

/// Returns the action's name as it is shown and typed.
pub(crate) fn shown_action(held: &Held) -> String {
    one_line(held.action()).trim().to_owned()
}

/// Focusable element in the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewFocus {
    /// Input of a proof.
    Proof(PassProof),
    /// Button back to the answers.
    Back,
    /// Button that passes.
    PassNow,
}

/// Focusable element in the denial step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenyFocus {
    /// Input of the reason.
    Reason,
    /// Button back to the answers.
    Back,
    /// Button that denies.
    DenyNow,
}

/// Entry point by which the operator opened the dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialogEntry {
    /// Opened to answer.
    Answer,
    /// Opened to deny.
    Deny,
    /// Opened by the palette's command to override the denial behind the request.
    Override,
}

/// Pane that receives the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GatePane {
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
pub(crate) struct DecisionContext {
    /// Operator of this console.
    pub(crate) operator: String,
    /// Access of this console: read-only consoles never decide.
    pub(crate) access: ConsoleAccess,
    /// Fault of the record or the store.
    pub(crate) trouble: Option<RecordTrouble>,
    /// Recent passes, newest first.
    pub(crate) passes: Vec<RecentPass>,
}

/// Fault of the record or the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordTrouble {
    /// A chain is broken or cannot be read.
    Chain(RecordFault),
    /// Nothing can be recorded.
    Store(String),
}

impl RecordTrouble {
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
            Self::Store(_) => "cannot write records",
        }
    }
}

/// Number of characters of the hash to type.
pub(crate) const CHALLENGE_CHARS: usize = 4;

/// Level of care for a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PassCare {
    /// One press.
    Direct,
    /// A review first.
    Reviewed,
    /// A review first, for several requests at once.
    Batch,
    /// A review, a justification, and the typed hash.
    Challenged,
    /// Proofs of `Challenged`, and the typed name of the action.
    Named,
    /// Proofs of `Named`, with a longer justification: the pass overrides a denial.
    Override,
}

impl PassCare {
    /// Lists the required proofs. The justification is required only if no answer gives it.
    pub(crate) fn required_proofs(self) -> &'static [PassProof] {
        match self {
            Self::Direct | Self::Reviewed | Self::Batch => &[],
            Self::Challenged => &[PassProof::Why, PassProof::Hash],
            Self::Named | Self::Override => &[PassProof::Why, PassProof::Hash, PassProof::Action],
        }
    }

    /// Text for the method on the review sheet.
    pub(crate) fn method_text(self) -> &'static str {
        match self {
            Self::Direct | Self::Reviewed => "in the console",
            Self::Batch => "in the console, as a batch",
            Self::Challenged => "in the console, with the typed hash",
            Self::Named | Self::Override => "in the console, with hash and action",
        }
    }

    /// Name of the method in the record.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Direct | Self::Reviewed => "console",
            Self::Batch => "console+batch",
            Self::Challenged => "console+challenge",
            Self::Named | Self::Override => "console+challenge+action",
        }
    }
}

/// Returns the level of care for a request. A tier that was only detected is never passed directly.
pub(crate) fn care_for_request(held: &Held) -> PassCare {
    if overrules(held) {
        return PassCare::Override;
    }
    match held.tier() {
        RiskTier::Low if has_detected_tier(held) => PassCare::Reviewed,
        RiskTier::Low => PassCare::Direct,
        RiskTier::Medium => PassCare::Reviewed,
        RiskTier::High => PassCare::Challenged,
        RiskTier::Critical => PassCare::Named,
    }
}

/// Returns true if the typed text equals the first characters of the hash.
pub(crate) fn answers_challenge(typed: &str, hash: &Digest) -> bool {
    typed.trim().to_lowercase() == hash.short(CHALLENGE_CHARS)
}
