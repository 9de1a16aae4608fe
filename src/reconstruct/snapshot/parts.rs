//! Parts of a snapshot file.

use serde::Serialize;
use serde_json::Value;

use super::super::json_view::JsonView;
use super::super::wording::{
    SHOWN, all_mid_sentence, capitalised, clause, join_and, limit_items, mid_sentence, percent,
};

/// Level of confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceLevel {
    /// At least 0.8.
    High,
    /// At least 0.5.
    Medium,
    /// Below 0.5.
    Low,
}

impl ConfidenceLevel {
    fn of(number: f64) -> Self {
        match number {
            share if share >= 0.8 => Self::High,
            share if share >= 0.5 => Self::Medium,
            _ => Self::Low,
        }
    }

    /// Parses a number, a percentage, or a word.
    pub(super) fn read(look: &JsonView<'_>) -> Option<(Self, String)> {
        match look.raw()? {
            Value::Number(number) => Self::of_number(number.as_f64()?, look),
            Value::String(text) => {
                let word = text.trim().to_lowercase();
                let digits = word.trim_end_matches('%').trim_end();
                if let Ok(number) = digits.parse::<f64>() {
                    return Self::of_number(number, look);
                }
                let certainty = match word.replace(['_', '-'], " ").as_str() {
                    "high" | "very high" | "certain" | "firm" | "confirmed" => Self::High,
                    "medium" | "med" | "moderate" | "tentative" | "medium high" => Self::Medium,
                    "low" | "very low" | "medium low" | "uncertain" | "unknown" | "exploratory" => {
                        Self::Low
                    }
                    _ => return look.record_wrong_type("high, medium or low"),
                };
                Some((certainty, word.replace('_', " ")))
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                look.record_wrong_type("a number or a word")
            }
        }
    }

    fn of_number(number: f64, look: &JsonView<'_>) -> Option<(Self, String)> {
        if !(0.0..=100.0).contains(&number) {
            look.add_fault("must be a number from 0 to 1 or a percentage");
            return None;
        }
        let share = if number > 1.0 { number / 100.0 } else { number };
        Some((Self::of(share), percent(share * 100.0)))
    }
}

/// State of a possible blocker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Work is blocked.
    Yes {
        /// Descriptions of the blocker, if any.
        what: Vec<String>,
    },
    /// Work is not blocked.
    No,
}

impl Blocker {
    pub(super) fn read(look: &JsonView<'_>) -> Option<Self> {
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
                look.record_wrong_type("true or false, a text or a list")
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
pub struct SnapshotDecision {
    /// Text of the decision.
    pub decision: String,
    /// Level of confidence, and its text in the file.
    pub confidence: Option<(ConfidenceLevel, String)>,
    /// Reason for the decision.
    pub rationale: Option<String>,
    /// Rejected options.
    pub rejected: Vec<String>,
    /// True if the decision has to be reviewed.
    pub needs_revision: bool,
    /// Status, such as `tentative` or `denied`.
    pub status: Option<String>,
    /// Operator who decided.
    pub decided_by: Option<String>,
}

/// Status words of decisions that may still change.
const TENTATIVE: [&str; 9] = [
    "tentative",
    "proposed",
    "draft",
    "open",
    "pending",
    "exploratory",
    "under review",
    "unresolved",
    "deferred",
];

/// Status words of decisions that were carried out.
const SETTLED: [&str; 12] = [
    "final",
    "finalized",
    "finalised",
    "decided",
    "done",
    "complete",
    "completed",
    "implemented",
    "accepted",
    "confirmed",
    "passed",
    "approved",
];

/// Status words of decisions that were refused or given up.
const REFUSED: [&str; 13] = [
    "denied",
    "refused",
    "rejected",
    "blocked",
    "expired",
    "withdrawn",
    "voided",
    "abandoned",
    "superseded",
    "reverted",
    "failed",
    "cancelled",
    "canceled",
];

impl SnapshotDecision {
    fn status_is_one_of(&self, words: &[&str]) -> bool {
        let status = self.status.as_deref().map(str::to_lowercase);
        status.is_some_and(|status| words.contains(&status.replace('_', " ").as_str()))
    }

    /// True if the decision may still change.
    #[must_use]
    pub fn is_tentative(&self) -> bool {
        self.needs_revision || self.status_is_one_of(&TENTATIVE)
    }

    /// True if the decision achieved its goal: it is firm, and not a refusal.
    #[must_use]
    pub fn is_accomplished(&self) -> bool {
        let certainty = self.confidence.as_ref().map(|(certainty, _)| *certainty);
        let firm = match certainty {
            Some(ConfidenceLevel::High) => true,
            Some(ConfidenceLevel::Medium | ConfidenceLevel::Low) => false,
            None => self.status_is_one_of(&SETTLED),
        };
        firm && !self.is_tentative() && !self.is_refused()
    }

    /// True if the decision refused or gave up an option.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.status_is_one_of(&REFUSED)
    }

    /// Name of the decision within a sentence, with a remark if it may still change.
    pub(in crate::reconstruct) fn named(&self) -> String {
        let name = mid_sentence(&self.decision);
        let lower = name.to_lowercase();
        if self.is_refused() && !REFUSED.iter().any(|word| lower.contains(word)) {
            let status = self.status.as_deref().unwrap_or("refused");
            return format!("{name} ({})", mid_sentence(status));
        }
        if self.is_tentative() && !name.to_lowercase().contains("tentative") {
            return format!("{name} (tentative)");
        }
        name
    }
}

/// An insight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Insight {
    /// Text of the insight.
    pub insight: String,
    /// Importance of the insight.
    pub importance: Option<String>,
    /// Status of the insight.
    pub status: Option<String>,
    /// Consequence of the insight.
    pub led_to: Option<String>,
}

impl Insight {
    /// True if the file says that the insight is not settled.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        let texts = [&self.importance, &self.status].into_iter().flatten();
        texts.map(|text| text.to_lowercase()).any(|text| {
            ["unresolved", "exploration", "open", "uncertain"]
                .iter()
                .any(|word| text.contains(word))
        })
    }
}

/// A trade-off, with the parts that the file names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tradeoff {
    /// Both sides, such as `automation_vs_control`.
    pub dimension: Option<String>,
    /// Conflicting demands, or the whole trade-off as text.
    pub tension: Option<String>,
    /// Status of the trade-off.
    pub status: Option<String>,
    /// Resolution of the trade-off.
    pub resolution: Option<String>,
}

impl Tradeoff {
    pub(super) fn read(look: &JsonView<'_>) -> Option<Self> {
        if !look.raw().is_some_and(Value::is_object) {
            let tension = Some(look.text()?);
            return Some(Self {
                tension,
                ..Self::default()
            });
        }
        let text = look.first(&["tradeoff", "description", "summary"]).text();
        let tradeoff = Self {
            dimension: look.first(&["dimension", "name", "between"]).text(),
            tension: look.at("tension").text().or(text),
            status: look.at("status").text(),
            resolution: look.at("resolution").text(),
        };
        let texts = [&tradeoff.dimension, &tradeoff.tension, &tradeoff.resolution];
        if texts.into_iter().all(Option::is_none) {
            look.add_fault("has no description");
            return None;
        }
        Some(tradeoff)
    }

    /// True if the trade-off is not resolved.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        let status = self.status.as_deref().map(str::to_lowercase);
        status.map_or(self.resolution.is_none(), |status| {
            status.contains("unresolved") || status.contains("open")
        })
    }

    /// Formats the trade-off as one clause.
    #[must_use]
    pub fn words(&self) -> String {
        let status = self.status.as_deref().map(mid_sentence);
        let status = status
            .map(|status| format!(" ({status})"))
            .unwrap_or_default();
        let tension = self.tension.as_deref().map(clause);
        let mut text = match (self.dimension.as_deref().map(mid_sentence), tension) {
            (Some(dimension), Some(tension)) => {
                format!("{dimension}{status}: {}", mid_sentence(&tension))
            }
            (Some(one), None) | (None, Some(one)) => format!("{one}{status}"),
            (None, None) => String::new(),
        };
        if let Some(resolution) = self.resolution.as_deref().map(clause) {
            let between = if text.is_empty() { "" } else { "; " };
            text = format!("{text}{between}resolved: {}", mid_sentence(&resolution));
        }
        text
    }
}

/// A change of direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pivot {
    /// Previous direction.
    pub from: Option<String>,
    /// New direction.
    pub to: Option<String>,
    /// Insight that led to the change.
    pub insight: Option<String>,
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenQuestion {
    /// The question.
    pub question: String,
    /// Priority of the question.
    pub priority: Option<String>,
    /// Topic that the question belongs to.
    pub related_to: Option<String>,
}

/// State of a conversation's summary that is frozen or has proposals held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConversationState {
    /// True if the summary is frozen.
    pub frozen: bool,
    /// Start of the freeze.
    pub frozen_since: Option<String>,
    /// Condition that ends the freeze.
    pub until: Option<String>,
    /// Proposals that were held back, newest first, as far as they are stored.
    pub held_back: Vec<String>,
    /// Number of all proposals that were held back.
    pub held_back_count: u64,
}

impl ConversationState {
    pub(super) fn read(look: &JsonView<'_>) -> Option<Self> {
        look.raw()?;
        let held_back = look.at("held_back").texts();
        let kept = u64::try_from(held_back.len()).unwrap_or(u64::MAX);
        let counted = look.at("held_back_count").raw().and_then(Value::as_u64);
        Some(Self {
            frozen: look.at("frozen").boolean().unwrap_or(false),
            frozen_since: look.at("frozen_since").text(),
            until: look.at("until").text(),
            held_back_count: counted.unwrap_or(kept).max(kept),
            held_back,
        })
    }
}

/// A possible next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// Text of the step.
    pub step: String,
    /// True if the step has the highest priority.
    pub high: bool,
    /// Kind of the step.
    pub kind: Option<String>,
    /// Purpose of the step.
    pub purpose: Option<String>,
    /// Questions that the step would answer.
    pub questions: Vec<String>,
    /// Step that it would replace.
    pub alternative_to: Option<String>,
}

/// Deferred work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeferredItem {
    /// Text of the item.
    pub item: String,
    /// Reason for the deferral.
    pub reason: Option<String>,
    /// Condition that ends the deferral.
    pub until: Option<String>,
}

/// An artifact of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// Identifier of the artifact.
    pub id: String,
    /// Title of the artifact.
    pub title: Option<String>,
    /// Kind of the artifact.
    pub kind: Option<String>,
    /// Status of the artifact.
    pub status: Option<String>,
    /// Occasions on which to load it.
    pub retrieve_for: Vec<String>,
    /// Sections of its content.
    pub key_sections: Vec<String>,
    /// File of the artifact, relative to the snapshot file.
    pub path: Option<String>,
    /// Content, if the snapshot file includes it.
    #[serde(skip)]
    pub content: Option<String>,
}

impl Artifact {
    /// True if another artifact replaced it.
    #[must_use]
    pub fn is_superseded(&self) -> bool {
        let status = self.status.as_deref().map(str::to_lowercase);
        status.is_some_and(|status| {
            ["superseded", "obsolete", "abandoned", "archived"]
                .iter()
                .any(|word| status.contains(word))
        })
    }

    /// True if it is the record of a session.
    pub(in crate::reconstruct) fn is_record(&self) -> bool {
        self.kind.as_deref() == Some("trace")
    }

    /// Title with an article, and the identifier.
    pub(in crate::reconstruct) fn named(&self) -> String {
        let title = self.title.as_deref().unwrap_or(&self.id);
        let title = match self.title {
            Some(_) => title.to_owned(),
            None => mid_sentence(title),
        };
        let first = title.split_whitespace().next().unwrap_or_default();
        let first = first.to_lowercase();
        let article = ["a", "an", "the", "our", "your", "my"].contains(&first.as_str());
        let id = &self.id;
        if article {
            let title = title.split_at(first.len()).1;
            return format!("{first}{title} (artifact: {id})");
        }
        format!("the {title} (artifact: {id})")
    }

    /// Sentence that mentions the artifact and offers to load it.
    #[must_use]
    pub fn mention(&self) -> String {
        let named = self.named();
        let for_what = limit_items(all_mid_sentence(&self.retrieve_for), SHOWN);
        let details = match join_and(&for_what) {
            nothing if nothing.is_empty() => "the details".to_owned(),
            what => format!("details for {what}"),
        };
        if self.is_record() {
            let (named, id) = (capitalised(&named), &self.id);
            return format!("{named} has {details}. Run `cra trace show {id}` to print it.");
        }
        format!("We created {named}, with {details}. Would you like me to review that section?")
    }
}
