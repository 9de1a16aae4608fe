//! The summary of a conversation, and what somebody proposes it to be.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::contract::{MementoError, strictly_of};
use super::text::Text;
use crate::base::limits::MAX_SHAPE_ITEMS;

/// Most characters of an arc, and of an item of a list.
const MAX_ARC_CHARS: usize = 200;
const MAX_ITEM_CHARS: usize = 160;

/// Where a conversation is going, and what belongs to that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Where it is going.
    pub arc: String,
    /// What is worked on.
    pub active: Vec<String>,
    /// What is left for later.
    pub parked: Vec<String>,
    /// What was decided.
    pub decisions: Vec<String>,
    /// What comes next.
    pub next: Vec<String>,
}

/// A shape as somebody may propose it.
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

/// Which side of a comparison a line is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It is kept, and would have gone.
    Kept,
    /// It was proposed, and did not come.
    Proposed,
}

/// A line in which two shapes differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which part of the shape.
    pub part: &'static str,
    /// Whose line it is.
    pub side: Side,
    /// The line.
    pub text: String,
}

impl Shape {
    /// The same shape with other texts. One that gets too long is cut.
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
    /// When it is not one, or too large, with the place.
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

    /// The shape that comes of accepting `proposed`: what it says nothing of is kept, where saying nothing
    /// would lose it.
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

    /// Its parts, with their names.
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

    /// The lines in which `proposed` differs.
    #[must_use]
    pub fn changes(&self, proposed: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for ((part, kept), (_, new)) in self.parts().into_iter().zip(proposed.parts()) {
            let change = |side, text: &str| Change {
                part,
                side,
                text: text.to_owned(),
            };
            let gone = kept.iter().filter(|it| !new.contains(it));
            changes.extend(gone.map(|it| change(Side::Kept, it)));
            let come = new.iter().filter(|it| !kept.contains(it));
            changes.extend(come.map(|it| change(Side::Proposed, it)));
        }
        changes
    }
}
