//! The steps of a decision, and what stands around it.

use std::sync::Arc;

use ratatui_textarea::TextArea;

use super::field::editor;
use crate::atlas::document::RiskTier;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::console::screen::queue::is_detected;
use crate::engine::command::Decided;
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
    /// The decision is on its way to the disk. Nothing can be pressed.
    Writing(Verb),
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
    /// What was typed of the request's hash.
    pub(crate) typed: Box<TextArea<'static>>,
}

impl Review {
    /// A review with the focus on a harmless place: what has to be typed, or the way back.
    pub(crate) fn new(care: Care) -> Self {
        Self {
            spot: match care {
                Care::Challenged => ReviewSpot::Challenge,
                Care::Direct | Care::Reviewed => ReviewSpot::Back,
            },
            typed: Box::new(editor()),
        }
    }
}

/// A place the focus can be at in the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReviewSpot {
    /// Back to the answers.
    Back,
    /// The characters of the hash.
    Challenge,
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
}

/// Which pane has the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    /// The request.
    Context,
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
}

/// What is wrong with the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A chain does not hold, or cannot be read.
    Chain(String),
    /// Nothing more is recorded.
    Store(String),
}

impl Trouble {
    /// It, in full.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Chain(text) | Self::Store(text) => text,
        }
    }

    /// It, in two words.
    pub(crate) fn short(&self) -> &'static str {
        match self {
            Self::Chain(_) => "chain broken",
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
    /// A review, and the hash typed.
    Challenged,
}

/// How carefully this request is passed. A tier that was only detected is never passed directly.
pub(crate) fn care(held: &Held) -> Care {
    match held.tier() {
        RiskTier::Low if is_detected(held) => Care::Reviewed,
        RiskTier::Low => Care::Direct,
        RiskTier::Medium => Care::Reviewed,
        RiskTier::High | RiskTier::Critical => Care::Challenged,
    }
}

/// Whether what was typed is the beginning of the hash.
pub(crate) fn answers_challenge(typed: &str, hash: &Digest) -> bool {
    typed.trim().to_lowercase() == hash.short(CHALLENGE)
}
