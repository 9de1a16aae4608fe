//! The parts of a snapshot file.

use serde::Serialize;
use serde_json::Value;

use super::super::look::Look;
use super::super::words::percent;

/// How sure somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Very.
    High,
    /// Rather.
    Medium,
    /// Not very.
    Low,
}

impl Certainty {
    fn of(number: f64) -> Self {
        match number {
            it if it >= 0.8 => Self::High,
            it if it >= 0.5 => Self::Medium,
            _ => Self::Low,
        }
    }

    pub(super) fn read(look: &Look<'_>) -> Option<(Self, String)> {
        match look.raw()? {
            Value::Number(number) => {
                let number = number.as_f64()?;
                // Some write per cent.
                let share = if number > 1.0 { number / 100.0 } else { number };
                Some((Self::of(share), percent(share * 100.0)))
            }
            Value::String(text) => {
                let word = text.trim().to_lowercase();
                let certainty = match word.as_str() {
                    "high" | "very_high" | "very high" | "certain" => Self::High,
                    "medium" | "med" | "moderate" | "tentative" => Self::Medium,
                    "low" | "very_low" | "very low" | "uncertain" => Self::Low,
                    _ => return look.wrong("high, medium or low"),
                };
                Some((certainty, word))
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                look.wrong("a number or a word")
            }
        }
    }
}

/// Whether something stands in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocking {
    /// It does.
    Yes {
        /// What, as far as it is said.
        what: Vec<String>,
    },
    /// It does not.
    No,
}

impl Blocking {
    pub(super) fn read(look: &Look<'_>) -> Option<Self> {
        match look.raw()? {
            Value::Bool(true) => Some(Self::Yes { what: Vec::new() }),
            Value::Bool(false) => Some(Self::No),
            Value::String(_) => Some(match look.text() {
                Some(text) => Self::Yes { what: vec![text] },
                None => Self::No,
            }),
            Value::Array(_) => Some(match look.texts() {
                what if what.is_empty() => Self::No,
                what => Self::Yes { what },
            }),
            Value::Null | Value::Number(_) | Value::Object(_) => {
                look.wrong("true or false, a text or a list")
            }
        }
    }

    pub(in crate::reconstruct) fn what(&self) -> Option<&[String]> {
        match self {
            Self::Yes { what } => Some(what),
            Self::No => None,
        }
    }
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decided {
    /// What was decided.
    pub decision: String,
    /// How sure, and as it is written.
    pub confidence: Option<(Certainty, String)>,
    /// Why.
    pub rationale: Option<String>,
    /// What was decided against.
    pub rejected: Vec<String>,
    /// Whether it has to be looked at again.
    pub needs_revision: bool,
}

/// A change of direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pivot {
    /// From where.
    pub from: Option<String>,
    /// To where.
    pub to: Option<String>,
    /// What led to it.
    pub insight: Option<String>,
}

/// A question that is open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenQuestion {
    /// The question.
    pub question: String,
    /// How much it matters.
    pub priority: Option<String>,
}

/// Something that could be done next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// What.
    pub step: String,
    /// Whether it is among the most important.
    pub high: bool,
    /// Its kind.
    pub kind: Option<String>,
    /// What for.
    pub purpose: Option<String>,
    /// Questions it would answer.
    pub questions: Vec<String>,
    /// What it is instead of.
    pub alternative_to: Option<String>,
}

/// Something that was put off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deferred {
    /// What.
    pub item: String,
    /// Why.
    pub reason: Option<String>,
    /// Until when.
    pub until: Option<String>,
}

/// Something that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// Its name.
    pub id: String,
    /// What it is called.
    pub title: Option<String>,
    /// Its kind.
    pub kind: Option<String>,
    /// How far it is.
    pub status: Option<String>,
    /// When to load it.
    pub retrieve_for: Vec<String>,
    /// What is in it.
    pub key_sections: Vec<String>,
    /// The file it is in, beside the snapshot file.
    pub path: Option<String>,
    /// What it says, where the snapshot file has it.
    #[serde(skip)]
    pub content: Option<String>,
}

impl Artifact {
    /// How to mention it.
    #[must_use]
    pub fn mention(&self) -> String {
        let title = self.title.as_deref().unwrap_or("a document");
        let id = &self.id;
        format!(
            "There is {title} (artifact: {id}), which covers this in detail. Would you like me to look into it?"
        )
    }
}
