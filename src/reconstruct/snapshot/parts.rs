//! The parts of a snapshot file.

use serde::Serialize;
use serde_json::Value;

use super::super::look::Look;
use super::super::words::{
    SHOWN, all_within, bounded, capitalised, clause, joined, percent, within,
};

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

    /// Reads a number, a share in per cent, or a word.
    pub(super) fn read(look: &Look<'_>) -> Option<(Self, String)> {
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
                    _ => return look.wrong("high, medium or low"),
                };
                Some((certainty, word.replace('_', " ")))
            }
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                look.wrong("a number or a word")
            }
        }
    }

    fn of_number(number: f64, look: &Look<'_>) -> Option<(Self, String)> {
        if !(0.0..=100.0).contains(&number) {
            look.note("is not between 0 and 1, nor a share in per cent");
            return None;
        }
        let share = if number > 1.0 { number / 100.0 } else { number };
        Some((Self::of(share), percent(share * 100.0)))
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
    /// How it stands, such as `tentative` or `denied`.
    pub status: Option<String>,
    /// The operator who decided it.
    pub decided_by: Option<String>,
}

/// Words for decisions that may still change.
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

/// Words for what was decided and done.
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

/// Words for what was refused or given up.
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

impl Decided {
    fn status_is_one_of(&self, words: &[&str]) -> bool {
        let status = self.status.as_deref().map(str::to_lowercase);
        status.is_some_and(|status| words.contains(&status.replace('_', " ").as_str()))
    }

    /// Tells whether it may still change.
    #[must_use]
    pub fn is_tentative(&self) -> bool {
        self.needs_revision || self.status_is_one_of(&TENTATIVE)
    }

    /// Tells whether something was achieved by it: it is firm, and no refusal.
    #[must_use]
    pub fn is_accomplished(&self) -> bool {
        let certainty = self.confidence.as_ref().map(|(certainty, _)| *certainty);
        let firm = match certainty {
            Some(Certainty::High) => true,
            Some(Certainty::Medium | Certainty::Low) => false,
            None => self.status_is_one_of(&SETTLED),
        };
        firm && !self.is_tentative() && !self.is_refused()
    }

    /// Tells whether something was refused or given up by it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.status_is_one_of(&REFUSED)
    }

    /// Names it within a sentence, with a word where it may still change.
    pub(in crate::reconstruct) fn named(&self) -> String {
        let name = within(&self.decision);
        let lower = name.to_lowercase();
        if self.is_refused() && !REFUSED.iter().any(|word| lower.contains(word)) {
            let status = self.status.as_deref().unwrap_or("refused");
            return format!("{name} ({})", within(status));
        }
        if self.is_tentative() && !name.to_lowercase().contains("tentative") {
            return format!("{name} (tentative)");
        }
        name
    }
}

/// Something that was understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Insight {
    /// What.
    pub insight: String,
    /// How much it matters.
    pub importance: Option<String>,
    /// How it stands.
    pub status: Option<String>,
    /// What came of it.
    pub led_to: Option<String>,
}

impl Insight {
    /// Tells whether the file says that it is not settled.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        let said = [&self.importance, &self.status].into_iter().flatten();
        said.map(|it| it.to_lowercase()).any(|it| {
            ["unresolved", "exploration", "open", "uncertain"]
                .iter()
                .any(|word| it.contains(word))
        })
    }
}

/// A trade-off, in the parts that the file names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tradeoff {
    /// Both sides, such as `automation_vs_control`.
    pub dimension: Option<String>,
    /// What pulls in both directions, or the whole of it in a text.
    pub tension: Option<String>,
    /// How it stands.
    pub status: Option<String>,
    /// How it was resolved.
    pub resolution: Option<String>,
}

impl Tradeoff {
    pub(super) fn read(look: &Look<'_>) -> Option<Self> {
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
        let said = [&tradeoff.dimension, &tradeoff.tension, &tradeoff.resolution];
        if said.into_iter().all(Option::is_none) {
            look.note("does not say what it is about");
            return None;
        }
        Some(tradeoff)
    }

    /// Tells whether no way was found yet.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        let said = self.status.as_deref().map(str::to_lowercase);
        said.map_or(self.resolution.is_none(), |it| {
            it.contains("unresolved") || it.contains("open")
        })
    }

    /// The trade-off in one clause.
    #[must_use]
    pub fn words(&self) -> String {
        let status = self.status.as_deref().map(within);
        let status = status.map(|it| format!(" ({it})")).unwrap_or_default();
        let tension = self.tension.as_deref().map(clause);
        let mut text = match (self.dimension.as_deref().map(within), tension) {
            (Some(dimension), Some(tension)) => {
                format!("{dimension}{status}: {}", within(&tension))
            }
            (Some(one), None) | (None, Some(one)) => format!("{one}{status}"),
            (None, None) => String::new(),
        };
        if let Some(resolution) = self.resolution.as_deref().map(clause) {
            let between = if text.is_empty() { "" } else { "; " };
            text = format!("{text}{between}resolved: {}", within(&resolution));
        }
        text
    }
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
    /// What it belongs to.
    pub related_to: Option<String>,
}

/// The summary of a conversation that does not move on freely.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConversationState {
    /// Whether its summary is frozen.
    pub frozen: bool,
    /// Since when.
    pub frozen_since: Option<String>,
    /// What would end that.
    pub until: Option<String>,
    /// Proposals that were held back, newest first, as far as they are kept.
    pub held_back: Vec<String>,
    /// All that were held back.
    pub held_back_count: u64,
}

impl ConversationState {
    pub(super) fn read(look: &Look<'_>) -> Option<Self> {
        look.raw()?;
        let held_back = look.at("held_back").texts();
        let kept = u64::try_from(held_back.len()).unwrap_or(u64::MAX);
        let counted = look.at("held_back_count").raw().and_then(Value::as_u64);
        Some(Self {
            frozen: look.at("frozen").truth().unwrap_or(false),
            frozen_since: look.at("frozen_since").text(),
            until: look.at("until").text(),
            held_back_count: counted.unwrap_or(kept).max(kept),
            held_back,
        })
    }
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
    /// Tells whether another one took its place.
    #[must_use]
    pub fn is_superseded(&self) -> bool {
        let status = self.status.as_deref().map(str::to_lowercase);
        status.is_some_and(|it| {
            ["superseded", "obsolete", "abandoned", "archived"]
                .iter()
                .any(|word| it.contains(word))
        })
    }

    /// Tells whether it is the record of a session.
    pub(in crate::reconstruct) fn is_record(&self) -> bool {
        self.kind.as_deref() == Some("trace")
    }

    /// Its title with an article, and its identifier.
    pub(in crate::reconstruct) fn named(&self) -> String {
        let title = self.title.as_deref().unwrap_or(&self.id);
        let title = match self.title {
            Some(_) => title.to_owned(),
            None => within(title),
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

    /// A sentence that mentions it and offers to load it.
    #[must_use]
    pub fn mention(&self) -> String {
        let named = self.named();
        let for_what = bounded(all_within(&self.retrieve_for), SHOWN);
        let details = match joined(&for_what) {
            nothing if nothing.is_empty() => "the details".to_owned(),
            what => format!("details for {what}"),
        };
        if self.is_record() {
            let (named, id) = (capitalised(&named), &self.id);
            return format!("{named} has {details}: `cra trace show {id}` prints it.");
        }
        format!("We created {named}, with {details}. Would you like me to review that part?")
    }
}
