//! The memento format for other programs: exactly version 0.2.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::affect::{Affect, Confidence};
use super::shape::SummaryShape;
use super::signal::SignalKind;
use super::text::{BoundedText, Datetime, ExternalName};
use crate::base::canonical_json::canonical;
use crate::base::digest::Digest;
use crate::base::json::{self, StrictJsonError};
use crate::base::limits::{MAX_MEMENTO_BYTES, MAX_SIGNALS};
use crate::base::text::one_line;

/// The supported version.
pub const MEMENTO_VERSION: &str = "memento-v0.2";

/// The summary of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ThreadMemento {
    /// Id of the memento.
    pub memento_id: ExternalName,
    /// Id of the thread.
    pub thread_id: ExternalName,
    /// Time of creation.
    pub created_ts: Datetime,
    /// Version of the contract.
    pub version: MementoVersion,
    /// Direction of the conversation.
    pub arc: BoundedText<200>,
    /// Topics in progress.
    pub active: Vec<BoundedText<200>>,
    /// Topics left for later.
    pub parked: Vec<BoundedText<200>>,
    /// Decisions made.
    pub decisions: Vec<BoundedText<200>>,
    /// Next steps.
    pub next: Vec<BoundedText<200>>,
    /// Emotional intensity of the conversation.
    pub affect: Affect,
    /// Signals of the turn that created the memento.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<SignalList>,
}

/// The only supported version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MementoVersion;

impl TryFrom<String> for MementoVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == MEMENTO_VERSION {
            return Ok(Self);
        }
        let text = one_line(&text.chars().take(40).collect::<String>());
        Err(format!("must be `{MEMENTO_VERSION}`, not `{text}`"))
    }
}

impl From<MementoVersion> for String {
    fn from(_: MementoVersion) -> Self {
        MEMENTO_VERSION.to_owned()
    }
}

/// Events in a turn, each with its message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SignalList {
    /// Time of collection.
    pub updated_at: Datetime,
    /// The signals.
    #[serde(default, deserialize_with = "deserialize_signals")]
    pub items: Vec<SignalItem>,
}

/// An event in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SignalItem {
    /// Id of the message.
    pub end_message_id: ExternalName,
    /// Kind of the signal.
    pub kind: SignalKind,
    /// Confidence of the source.
    pub confidence: Confidence,
    /// Source of the signal.
    pub source: SignalSource,
    /// Description in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SignalSummary>,
}

/// A description of at most 180 characters; may be empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SignalSummary(String);

/// Maximum length of a signal's description.
const MAX_SUMMARY: usize = 180;

impl ThreadMemento {
    /// Changes every text. A text that becomes too long is cut.
    pub(super) fn change_texts(&mut self, change: &mut dyn FnMut(&str) -> String) {
        let lists = [
            &mut self.active,
            &mut self.parked,
            &mut self.decisions,
            &mut self.next,
        ];
        let texts = lists.into_iter().flatten().chain([&mut self.arc]);
        for text in texts {
            let changed = change(text.as_str());
            *text = BoundedText::cut(&changed).unwrap_or_else(BoundedText::placeholder);
        }
        for signal in self
            .signals
            .iter_mut()
            .flat_map(|signals| &mut signals.items)
        {
            signal.change_texts(change);
        }
    }
}

impl SignalItem {
    /// Changes the description. A description that becomes too long is cut.
    pub(super) fn change_texts(&mut self, change: &mut dyn FnMut(&str) -> String) {
        if let Some(summary) = &mut self.summary {
            let changed = change(summary.as_str());
            *summary = SignalSummary(changed.chars().take(MAX_SUMMARY).collect());
        }
    }
}

impl SignalSummary {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SignalSummary {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let length = text.chars().count();
        if length <= MAX_SUMMARY {
            return Ok(Self(text));
        }
        Err(format!(
            "has {length} characters, and at most {MAX_SUMMARY} are allowed"
        ))
    }
}

impl From<SignalSummary> for String {
    fn from(words: SignalSummary) -> Self {
        words.0
    }
}

/// The source of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalSource {
    /// The server.
    Server,
    /// The model.
    Model,
}

impl SignalSource {
    /// Returns the source's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Model => "model",
        }
    }
}

pub(super) fn deserialize_signals<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Vec<SignalItem>, D::Error> {
    let items = Vec::<SignalItem>::deserialize(from)?;
    if items.len() <= MAX_SIGNALS {
        return Ok(items);
    }
    let found = items.len();
    Err(serde::de::Error::custom(format!(
        "{found} signals exceed the limit of {MAX_SIGNALS}"
    )))
}

/// An error in a memento, a turn or a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct MementoError {
    /// Path of the error: `affect.points[2].label`.
    pub place: String,
    /// Description of the error.
    pub what: String,
}

/// Reads JSON strictly against a contract, and reports the path of an error.
pub(super) fn read_strictly<T: serde::de::DeserializeOwned>(
    text: &[u8],
    whole: &str,
) -> Result<T, MementoError> {
    let (read, value) = read_bounded(text, whole)?;
    reject_stray_lists(&value, whole)?;
    Ok(read)
}

/// Reads one value or a list of values strictly, as [`read_strictly`] does.
pub(crate) fn read_all_strictly<T: serde::de::DeserializeOwned>(
    text: &[u8],
    whole: &str,
) -> Result<Vec<T>, MementoError> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'[') {
        return Ok(vec![read_strictly(text, whole)?]);
    }
    let (read, value): (Vec<T>, _) = read_bounded(text, whole)?;
    let items = value.as_array().into_iter().flatten().enumerate();
    for (place, item) in items {
        reject_stray_lists(item, &format!("[{place}]"))?;
    }
    Ok(read)
}

/// Reads JSON within the size limit; returns the typed and the untyped value.
fn read_bounded<T: serde::de::DeserializeOwned>(
    text: &[u8],
    whole: &str,
) -> Result<(T, Value), MementoError> {
    if text.len() > MAX_MEMENTO_BYTES {
        let found = text.len();
        let what = format!("{found} bytes exceed the limit of {MAX_MEMENTO_BYTES}");
        return Err(memento_error(whole, &what));
    }
    let checked = json::check(text);
    if let Err(StrictJsonError::Ambiguous(fault)) = &checked {
        let place = if fault.path.is_empty() {
            whole
        } else {
            &fault.path
        };
        return Err(memento_error(place, &fault.reason()));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read: T = deserialize_with_path(&mut reader, whole)?;
    let wrong = |error: serde_json::Error| memento_error(whole, &error.to_string());
    reader.end().map_err(wrong)?;
    checked.map_err(|error| memento_error(whole, &error.detail()))?;
    Ok((read, serde_json::from_slice(text).map_err(wrong)?))
}

/// Reads an already parsed JSON value strictly, as [`read_strictly`] does.
pub(super) fn read_value_strictly<T: serde::de::DeserializeOwned>(
    value: &Value,
    whole: &str,
) -> Result<T, MementoError> {
    let read = deserialize_with_path(value, whole)?;
    reject_stray_lists(value, whole)?;
    Ok(read)
}

fn deserialize_with_path<'de, T, D>(from: D, whole: &str) -> Result<T, MementoError>
where
    T: serde::Deserialize<'de>,
    D: serde::Deserializer<'de, Error = serde_json::Error>,
{
    serde_path_to_error::deserialize(from).map_err(|error| {
        let path = error.path().to_string();
        // A field without a name has no path either.
        let place = match path.as_str() {
            "" | "." => whole,
            path => path,
        };
        memento_error(place, &error.inner().to_string())
    })
}

fn memento_error(place: &str, what: &str) -> MementoError {
    MementoError {
        place: one_line(place),
        what: one_line(what),
    }
}

/// The fields that are lists.
const LISTS: [&str; 7] = [
    "active",
    "parked",
    "decisions",
    "next",
    "points",
    "items",
    "signals",
];

/// Rejects a list where an object belongs; serde would accept it as a struct with its fields in order.
fn reject_stray_lists(value: &Value, place: &str) -> Result<(), MementoError> {
    let fields: Vec<(String, &Value)> = match value {
        Value::Array(_) => return Err(memento_error(place, "must be an object, not a list")),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, field)| (key.clone(), field))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (key, field) in fields {
        match field {
            Value::Array(items) if LISTS.contains(&key.as_str()) => {
                let each = items
                    .iter()
                    .try_for_each(|item| reject_stray_lists(item, &key));
                each?;
            }
            field => reject_stray_lists(field, &key)?,
        }
    }
    Ok(())
}

impl ThreadMemento {
    /// Reads a memento.
    ///
    /// # Errors
    /// Fails when the text is not exactly a memento of version 0.2, with the path.
    pub fn read(text: &[u8]) -> Result<Self, MementoError> {
        read_strictly(text, "memento")
    }

    /// Reads a memento from a JSON value.
    ///
    /// # Errors
    /// As [`ThreadMemento::read`].
    pub fn from_value(value: &Value) -> Result<Self, MementoError> {
        read_value_strictly(value, "memento")
    }

    /// Returns the summary.
    #[must_use]
    pub fn shape(&self) -> SummaryShape {
        let texts = |list: &[BoundedText<200>]| list.iter().map(ToString::to_string).collect();
        SummaryShape {
            arc: self.arc.to_string(),
            active: texts(&self.active),
            parked: texts(&self.parked),
            decisions: texts(&self.decisions),
            next: texts(&self.next),
        }
    }

    /// Returns a tag of this exact state. Writers send the tag of the state they have read.
    #[must_use]
    pub fn etag(&self) -> String {
        Digest::of(canonical(self)).short(16)
    }
}
