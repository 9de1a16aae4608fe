//! The summary of a conversation, and proposals for it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::contract::{MementoError, strictly_of};
use super::text::Text;
use crate::base::limits::MAX_SHAPE_ITEMS;

/// Maximum number of characters of an arc, and of a list item.
const MAX_ARC_CHARS: usize = 200;
const MAX_ITEM_CHARS: usize = 160;

/// The direction of a conversation, with its topics, decisions and next steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Direction of the conversation.
    pub arc: String,
    /// Topics in progress.
    pub active: Vec<String>,
    /// Topics left for later.
    pub parked: Vec<String>,
    /// Decisions made.
    pub decisions: Vec<String>,
    /// Next steps.
    pub next: Vec<String>,
}

/// The form of a proposed shape.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proposed {
    arc: Text<MAX_ARC_CHARS>,
    #[serde(default)]
    active: Few,
    #[serde(default)]
    parked: Few,
    #[serde(default)]
    decisions: Few,
    #[serde(default)]
    next: Few,
}

/// A list of a few short items.
#[derive(Default, Deserialize)]
#[serde(try_from = "Vec<Text<MAX_ITEM_CHARS>>")]
struct Few(Vec<String>);

impl TryFrom<Vec<Text<MAX_ITEM_CHARS>>> for Few {
    type Error = String;

    fn try_from(items: Vec<Text<MAX_ITEM_CHARS>>) -> Result<Self, Self::Error> {
        if items.len() > MAX_SHAPE_ITEMS {
            let found = items.len();
            return Err(format!("{found} items are more than {MAX_SHAPE_ITEMS}"));
        }
        Ok(Self(items.into_iter().map(String::from).collect()))
    }
}

/// The side of a comparison that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The line is in the current summary, and not in the proposal.
    Kept,
    /// The line is in the proposal, and not in the current summary.
    Proposed,
}

/// A line that differs between two shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Name of the part.
    pub part: &'static str,
    /// Side of the line.
    pub side: Side,
    /// Text of the line.
    pub text: String,
}

impl Shape {
    /// Returns the shape with changed texts. A text that becomes too long is cut.
    #[must_use]
    pub fn with_texts(&self, change: &mut dyn FnMut(&str) -> String) -> Self {
        let mut list = |items: &[String]| {
            let items = items.iter().map(|item| change(item));
            items
                .map(|item| item.chars().take(MAX_ITEM_CHARS).collect())
                .collect()
        };
        Self {
            active: list(&self.active),
            parked: list(&self.parked),
            decisions: list(&self.decisions),
            next: list(&self.next),
            arc: change(&self.arc).chars().take(MAX_ARC_CHARS).collect(),
        }
    }

    /// Reads a proposal.
    ///
    /// # Errors
    /// Fails when the value is not a valid proposal or is too large, with the path.
    pub fn proposed(value: &Value) -> Result<Self, MementoError> {
        let read: Proposed = strictly_of(value, "shape")?;
        Ok(Self {
            arc: read.arc.into(),
            active: read.active.0,
            parked: read.parked.0,
            decisions: read.decisions.0,
            next: read.next.0,
        })
    }

    /// Returns the shape after accepting `proposed`. Empty `decisions` and `next` of the proposal keep the old
    /// items.
    #[must_use]
    pub fn followed_by(&self, proposed: &Self) -> Self {
        let or_kept =
            |new: &[String], old: &[String]| if new.is_empty() { old } else { new }.to_vec();
        Self {
            decisions: or_kept(&proposed.decisions, &self.decisions),
            next: or_kept(&proposed.next, &self.next),
            ..proposed.clone()
        }
    }

    /// Returns the parts with their names.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, Vec<&str>); 5] {
        fn list(list: &[String]) -> Vec<&str> {
            list.iter().map(String::as_str).collect()
        }
        [
            ("arc", vec![self.arc.as_str()]),
            ("active", list(&self.active)),
            ("parked", list(&self.parked)),
            ("decisions", list(&self.decisions)),
            ("next", list(&self.next)),
        ]
    }

    /// Returns the lines in which `proposed` differs.
    #[must_use]
    pub fn changes(&self, proposed: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for ((part, kept), (_, new)) in self.parts().into_iter().zip(proposed.parts()) {
            let change = |side, text: &str| Change {
                part,
                side,
                text: text.to_owned(),
            };
            let gone = kept.iter().filter(|line| !new.contains(line));
            changes.extend(gone.map(|line| change(Side::Kept, line)));
            let come = new.iter().filter(|line| !kept.contains(line));
            changes.extend(come.map(|line| change(Side::Proposed, line)));
        }
        changes
    }
}
