//! The summary of a conversation, and proposals for it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::contract::{MementoError, read_value_strictly};
use super::text::BoundedText;
use crate::base::limits::MAX_SHAPE_ITEMS;

/// Maximum number of characters of an arc, and of a list item.
const MAX_ARC_CHARS: usize = 200;
const MAX_ITEM_CHARS: usize = 160;

/// The direction of a conversation, with its topics, decisions and next steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryShape {
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
struct ProposedShape {
    arc: BoundedText<MAX_ARC_CHARS>,
    #[serde(default)]
    active: ShortList,
    #[serde(default)]
    parked: ShortList,
    #[serde(default)]
    decisions: ShortList,
    #[serde(default)]
    next: ShortList,
}

/// A list of a few short items.
#[derive(Default, Deserialize)]
#[serde(try_from = "Vec<BoundedText<MAX_ITEM_CHARS>>")]
struct ShortList(Vec<String>);

impl TryFrom<Vec<BoundedText<MAX_ITEM_CHARS>>> for ShortList {
    type Error = String;

    fn try_from(items: Vec<BoundedText<MAX_ITEM_CHARS>>) -> Result<Self, Self::Error> {
        if items.len() > MAX_SHAPE_ITEMS {
            let found = items.len();
            return Err(format!(
                "{found} items exceed the limit of {MAX_SHAPE_ITEMS}"
            ));
        }
        Ok(Self(items.into_iter().map(String::from).collect()))
    }
}

/// The side of a comparison that a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeSide {
    /// The line is in the current summary, and not in the proposal.
    Kept,
    /// The line is in the proposal, and not in the current summary.
    Proposed,
}

/// A line that differs between two shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeChange {
    /// Name of the part.
    pub part: &'static str,
    /// Side of the line.
    pub side: ChangeSide,
    /// Text of the line.
    pub text: String,
}

impl SummaryShape {
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
    pub fn read_proposal(value: &Value) -> Result<Self, MementoError> {
        let read: ProposedShape = read_value_strictly(value, "shape")?;
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
    pub fn updated_with(&self, proposed: &Self) -> Self {
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
    pub fn changes(&self, proposed: &Self) -> Vec<ShapeChange> {
        let mut changes = Vec::new();
        for ((part, kept), (_, new)) in self.parts().into_iter().zip(proposed.parts()) {
            let change = |side, text: &str| ShapeChange {
                part,
                side,
                text: text.to_owned(),
            };
            let gone = kept.iter().filter(|line| !new.contains(line));
            changes.extend(gone.map(|line| change(ChangeSide::Kept, line)));
            let come = new.iter().filter(|line| !kept.contains(line));
            changes.extend(come.map(|line| change(ChangeSide::Proposed, line)));
        }
        changes
    }
}
