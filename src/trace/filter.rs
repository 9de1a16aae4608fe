//! Filter language that selects events: `type:checkpoint|action risk>=high -actor:op-1 "wrong tenant"`.
//!
//! A filter is a list of terms that must all hold; a `-` before a term negates it. Parsing is pure: it
//! returns an [`EventFilter`] or an error with its column. A filter matches against the text that the event's
//! hash covers; details are parsed only if a term needs them.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use aho_corasick::AhoCorasick;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::event::{RiskTierInfo, canonical_type};
use super::hash::Envelope;
use crate::base::pattern::Pattern;

mod parser;
#[cfg(test)]
mod tests;

pub use parser::EventFilterError;

/// Condition that selects events. Without terms it selects all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFilter {
    terms: Vec<EventFilterTerm>,
}

/// One condition, possibly negated.
#[derive(Clone, Debug, PartialEq)]
struct EventFilterTerm {
    sign: EventFilterSign,
    test: EventFilterTest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventFilterSign {
    Must,
    MustNot,
}

#[derive(Clone, Debug, PartialEq)]
enum EventFilterTest {
    /// A name that the event or its session has.
    Named(EventFilterField, Vec<String>),
    /// Risk tier of the event's subject.
    Risk(RiskComparison, RiskTierInfo),
    /// Time of the event.
    Time(TimeSide, String),
    /// Text in its type or its details, case-insensitive.
    Text(Vec<SearchText>),
}

/// A name that a term can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventFilterField {
    Type,
    Agent,
    Actor,
    Action,
    Checkpoint,
    Thread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RiskComparison {
    Least,
    More,
    Most,
    Less,
    Equal,
}

/// Side of a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeSide {
    After,
    Before,
}

/// Search text, escaped as inside JSON.
#[derive(Clone, Debug)]
struct SearchText {
    text: String,
    /// Absent for text that is not ASCII, which is compared character by character.
    finder: Option<AhoCorasick>,
}

impl PartialEq for SearchText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl EventFilter {
    /// Creates a filter that only searches for a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        let terms = vec![EventFilterTerm {
            sign: EventFilterSign::Must,
            test: EventFilterTest::Text(vec![SearchText::new(text)]),
        }];
        Self { terms }
    }

    /// True if the filter selects all events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// True if the filter selects the event; `agent` is the agent of its session.
    #[must_use]
    pub fn matches(&self, envelope: &Envelope<'_>, agent: &str) -> bool {
        let holds = |term: &EventFilterTerm| {
            let held = term.test.holds(envelope, agent);
            held == (term.sign == EventFilterSign::Must)
        };
        self.terms.iter().all(holds)
    }
}

impl FromStr for EventFilter {
    type Err = EventFilterError;

    fn from_str(text: &str) -> Result<Self, EventFilterError> {
        parser::parse_filter(text)
    }
}

impl EventFilterTest {
    fn holds(&self, envelope: &Envelope<'_>, agent: &str) -> bool {
        match self {
            Self::Named(EventFilterField::Type, names) => {
                let canonical = canonical_type(envelope.event_type);
                matches_any_name(names, envelope.event_type) || matches_any_name(names, canonical)
            }
            Self::Named(EventFilterField::Agent, names) => matches_any_name(names, agent),
            Self::Named(EventFilterField::Actor, names) => actors(envelope)
                .iter()
                .any(|actor| matches_any_name(names, actor)),
            Self::Named(EventFilterField::Action, names) => {
                let details = SearchableDetails::of(envelope, &["action_type", "blocked_action"]);
                let mut actions = [details.action_type, details.blocked_action]
                    .into_iter()
                    .flatten();
                actions.any(|action| matches_any_name(names, &action))
            }
            Self::Named(EventFilterField::Checkpoint, names) => {
                let id = SearchableDetails::of(envelope, &["checkpoint_id"]).checkpoint_id;
                id.is_some_and(|id| matches_any_name(names, &id))
            }
            Self::Named(EventFilterField::Thread, names) => {
                let details = SearchableDetails::of(envelope, &["thread_id"]);
                let within = details
                    .thread
                    .as_ref()
                    .and_then(|thread| thread.get("thread_id"));
                let within = within.and_then(serde_json::Value::as_str);
                let id = details.thread_id.as_deref().or(within);
                id.is_some_and(|id| matches_any_name(names, id))
            }
            Self::Risk(order, wanted) => {
                let recorded = SearchableDetails::of(envelope, &["risk_tier"]).risk_tier;
                let mut tiers = RiskTierInfo::ALL.iter();
                let tier = recorded.and_then(|name| tiers.find(|tier| tier.as_str() == name));
                tier.is_some_and(|tier| order.holds(*tier, *wanted))
            }
            Self::Time(side, moment) => {
                // A time without a date applies to every day.
                let from = if moment.contains('-') { 0 } else { 11 };
                let part = envelope.timestamp.get(from..from + moment.len());
                part.is_some_and(|part| match side {
                    TimeSide::After => part >= moment.as_str(),
                    TimeSide::Before => part < moment.as_str(),
                })
            }
            Self::Text(needles) => needles.iter().any(|needle| {
                needle.occurs_in(envelope.event_type) || needle.occurs_in(envelope.payload)
            }),
        }
    }
}

/// True if a text equals or begins with one of these names, or matches one that contains a `*`.
fn matches_any_name(names: &[String], text: &str) -> bool {
    names.iter().any(|name| {
        if name.contains('*') {
            return Pattern::new(name.as_str()).matches(text);
        }
        text.starts_with(name.as_str())
    })
}

impl RiskComparison {
    fn holds(self, tier: RiskTierInfo, wanted: RiskTierInfo) -> bool {
        match self {
            Self::Least => tier >= wanted,
            Self::More => tier > wanted,
            Self::Most => tier <= wanted,
            Self::Less => tier < wanted,
            Self::Equal => tier == wanted,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Least => ">=",
            Self::More => ">",
            Self::Most => "<=",
            Self::Less => "<",
            Self::Equal => ":",
        }
    }
}

impl SearchText {
    fn new(text: &str) -> Self {
        let mut builder = AhoCorasick::builder();
        let finder = builder.ascii_case_insensitive(true).build([escaped(text)]);
        Self {
            text: text.to_owned(),
            finder: finder.ok().filter(|_| text.is_ascii()),
        }
    }

    fn occurs_in(&self, text: &str) -> bool {
        match &self.finder {
            Some(finder) => finder.is_match(text),
            None => text
                .to_lowercase()
                .contains(&escaped(&self.text).to_lowercase()),
        }
    }
}

/// Escapes a text as inside JSON.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let inside = quoted
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inside.unwrap_or(text).to_owned()
}

/// Fields that name the deciding operator or agent.
pub(super) const ACTORS: [&str; 5] = [
    "answered_by",
    "passed_by",
    "decided_by",
    "approver",
    "verified_by",
];

/// Names of the deciders in an event.
#[must_use]
pub fn actors(envelope: &Envelope<'_>) -> Vec<String> {
    let details = SearchableDetails::of(envelope, &ACTORS);
    let named = [
        details.answered_by,
        details.passed_by,
        details.decided_by,
        details.approver,
        details.verified_by,
    ];
    named.into_iter().flatten().map(Cow::into_owned).collect()
}

/// Fields that a term can ask for. A field that is not a string counts as absent.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SearchableDetails<'p> {
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    risk_tier: Option<Cow<'p, str>>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    action_type: Option<Cow<'p, str>>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    blocked_action: Option<Cow<'p, str>>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    checkpoint_id: Option<Cow<'p, str>>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    thread_id: Option<Cow<'p, str>>,
    thread: Option<serde_json::Value>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    answered_by: Option<Cow<'p, str>>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    passed_by: Option<Cow<'p, str>>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    decided_by: Option<Cow<'p, str>>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    approver: Option<Cow<'p, str>>,
    #[serde(borrow, deserialize_with = "deserialize_text_or_none")]
    verified_by: Option<Cow<'p, str>>,
}

impl<'p> SearchableDetails<'p> {
    /// Parses the details of an event, if any of these names occurs in them.
    fn of(envelope: &Envelope<'p>, names: &[&str]) -> Self {
        let payload = envelope.payload.as_bytes();
        let occurs = |name: &&str| memchr::memmem::find(payload, name.as_bytes()).is_some();
        if !names.iter().any(occurs) {
            return Self::default();
        }
        serde_json::from_str(envelope.payload).unwrap_or_default()
    }
}

fn deserialize_text_or_none<'de, D>(from: D) -> Result<Option<Cow<'de, str>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum LooseText<'a> {
        Text(#[serde(borrow)] Cow<'a, str>),
        Other(IgnoredAny),
    }
    Ok(match LooseText::deserialize(from)? {
        LooseText::Text(text) => Some(text),
        LooseText::Other(IgnoredAny) => None,
    })
}

impl fmt::Display for EventFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            let gap = if at > 0 { " " } else { "" };
            let not = if term.sign == EventFilterSign::MustNot {
                "-"
            } else {
                ""
            };
            write!(f, "{gap}{not}{}", term.test)?;
        }
        Ok(())
    }
}

impl fmt::Display for EventFilterTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(field, names) => {
                write!(f, "{}:{}", field.name(), format_values(names.iter()))
            }
            Self::Risk(order, tier) => write!(f, "risk{}{}", order.sign(), tier.as_str()),
            Self::Time(TimeSide::After, moment) => write!(f, "after:{moment}"),
            Self::Time(TimeSide::Before, moment) => write!(f, "before:{moment}"),
            Self::Text(needles) => {
                let texts = needles.iter().map(|needle| &needle.text);
                write!(f, "text:{}", format_values(texts))
            }
        }
    }
}

impl EventFilterField {
    fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Agent => "agent",
            Self::Actor => "actor",
            Self::Action => "action",
            Self::Checkpoint => "checkpoint",
            Self::Thread => "thread",
        }
    }
}

/// Formats values: separated by `|`, quoted if needed.
fn format_values<'v>(values: impl Iterator<Item = &'v String>) -> String {
    let mut text = String::new();
    for (at, value) in values.enumerate() {
        let gap = if at > 0 { "|" } else { "" };
        let plain = !value.is_empty() && !value.chars().any(parser::ends_value);
        // Writing to a String cannot fail.
        let _ = if plain {
            write!(text, "{gap}{value}")
        } else {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            write!(text, "{gap}\"{value}\"")
        };
    }
    text
}
