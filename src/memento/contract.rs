//! The memento as other programs read and write it: version 0.2, and nothing beside.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::affect::{Affect, Confidence};
use super::shape::Shape;
use super::signal::SignalKind;
use super::text::{Datetime, Name, Text};
use crate::base::canon::canonical;
use crate::base::digest::Digest;
use crate::base::json::{self, JsonError};
use crate::base::limits::{MAX_MEMENTO_BYTES, MAX_SIGNALS};
use crate::base::text::one_line;

/// The version that is read and written.
pub const MEMENTO_VERSION: &str = "memento-v0.2";

/// What a thread has come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ThreadMemento {
    /// This memento.
    pub memento_id: Name,
    /// Its thread.
    pub thread_id: Name,
    /// When it was made.
    pub created_ts: Datetime,
    /// The version of this contract.
    pub version: Version,
    /// Where the conversation is going.
    pub arc: Text<200>,
    /// What is worked on.
    pub active: Vec<Text<200>>,
    /// What is left for later.
    pub parked: Vec<Text<200>>,
    /// What was decided.
    pub decisions: Vec<Text<200>>,
    /// What comes next.
    pub next: Vec<Text<200>>,
    /// How heated it is.
    pub affect: Affect,
    /// What happened in the turn that it was made in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signals: Option<Signals>,
}

/// The one version there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version;

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == MEMENTO_VERSION {
            return Ok(Self);
        }
        let text = one_line(&text.chars().take(40).collect::<String>());
        Err(format!("`{text}` is not `{MEMENTO_VERSION}`"))
    }
}

impl From<Version> for String {
    fn from(_: Version) -> Self {
        MEMENTO_VERSION.to_owned()
    }
}

/// What happened, each with the message it happened at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Signals {
    /// When they were gathered.
    pub updated_at: Datetime,
    /// The signals.
    #[serde(default, deserialize_with = "few_signals")]
    pub items: Vec<SignalItem>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SignalItem {
    /// The message it happened at.
    pub end_message_id: Name,
    /// What.
    pub kind: SignalKind,
    /// How sure whoever says so is.
    pub confidence: Confidence,
    /// Who says so.
    pub source: SignalSource,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summarised>,
}

/// Words of at most 180 characters. None at all are words too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Summarised(String);

/// Most characters of a signal's words.
const MAX_SUMMARY: usize = 180;

impl ThreadMemento {
    /// Changes every text of it. One that gets too long is cut.
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
            *text = Text::cut(&changed).unwrap_or_else(Text::nameless);
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
    /// Changes its words. Words that get too long are cut.
    pub(super) fn change_texts(&mut self, change: &mut dyn FnMut(&str) -> String) {
        if let Some(summary) = &mut self.summary {
            let changed = change(summary.as_str());
            *summary = Summarised(changed.chars().take(MAX_SUMMARY).collect());
        }
    }
}

impl Summarised {
    /// The words.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Summarised {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let length = text.chars().count();
        if length <= MAX_SUMMARY {
            return Ok(Self(text));
        }
        Err(format!(
            "has {length} characters, and may have {MAX_SUMMARY}"
        ))
    }
}

impl From<Summarised> for String {
    fn from(words: Summarised) -> Self {
        words.0
    }
}

/// Who says that something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalSource {
    /// The server.
    Server,
    /// The model.
    Model,
}

impl SignalSource {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Model => "model",
        }
    }
}

pub(super) fn few_signals<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Vec<SignalItem>, D::Error> {
    let items = Vec::<SignalItem>::deserialize(from)?;
    if items.len() <= MAX_SIGNALS {
        return Ok(items);
    }
    let found = items.len();
    Err(serde::de::Error::custom(format!(
        "{found} signals are more than {MAX_SIGNALS}"
    )))
}

/// Why something is no memento, no turn or no shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct MementoError {
    /// Where, as a path: `affect.points[2].label`.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

/// Reads JSON that is held to a contract, and says where it is not.
pub(super) fn strictly<T: serde::de::DeserializeOwned>(
    text: &[u8],
    whole: &str,
) -> Result<T, MementoError> {
    let (read, value) = bounded(text, whole)?;
    no_stray_list(&value, whole)?;
    Ok(read)
}

/// The same of one, or of a list of them.
pub(crate) fn strictly_all<T: serde::de::DeserializeOwned>(
    text: &[u8],
    whole: &str,
) -> Result<Vec<T>, MementoError> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'[') {
        return Ok(vec![strictly(text, whole)?]);
    }
    let (read, value): (Vec<T>, _) = bounded(text, whole)?;
    let items = value.as_array().into_iter().flatten().enumerate();
    for (place, item) in items {
        no_stray_list(item, &format!("[{place}]"))?;
    }
    Ok(read)
}

/// Reads JSON of a size that can be held, into what it is to be and as it is.
fn bounded<T: serde::de::DeserializeOwned>(
    text: &[u8],
    whole: &str,
) -> Result<(T, Value), MementoError> {
    if text.len() > MAX_MEMENTO_BYTES {
        let found = text.len();
        let what = format!("{found} bytes are more than {MAX_MEMENTO_BYTES}");
        return Err(failed(whole, &what));
    }
    let checked = json::check(text);
    if let Err(JsonError::Ambiguous(fault)) = &checked {
        let place = if fault.path.is_empty() {
            whole
        } else {
            &fault.path
        };
        return Err(failed(place, &fault.reason()));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read: T = placed(&mut reader, whole)?;
    let wrong = |error: serde_json::Error| failed(whole, &error.to_string());
    reader.end().map_err(wrong)?;
    checked.map_err(|error| failed(whole, &error.detail()))?;
    Ok((read, serde_json::from_slice(text).map_err(wrong)?))
}

/// The same of JSON that was read already.
pub(super) fn strictly_of<T: serde::de::DeserializeOwned>(
    value: &Value,
    whole: &str,
) -> Result<T, MementoError> {
    let read = placed(value, whole)?;
    no_stray_list(value, whole)?;
    Ok(read)
}

fn placed<'de, T, D>(from: D, whole: &str) -> Result<T, MementoError>
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
        failed(place, &error.inner().to_string())
    })
}

fn failed(place: &str, what: &str) -> MementoError {
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

/// Refuses a list where an object belongs: whoever reads fields by their order would take it for one.
fn no_stray_list(value: &Value, place: &str) -> Result<(), MementoError> {
    let fields: Vec<(String, &Value)> = match value {
        Value::Array(_) => return Err(failed(place, "is a list, and no object")),
        Value::Object(fields) => fields.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (key, field) in fields {
        match field {
            Value::Array(items) if LISTS.contains(&key.as_str()) => {
                let each = items.iter().try_for_each(|it| no_stray_list(it, &key));
                each?;
            }
            field => no_stray_list(field, &key)?,
        }
    }
    Ok(())
}

impl ThreadMemento {
    /// Reads one.
    ///
    /// # Errors
    /// When it is not exactly one of version 0.2, with the place.
    pub fn read(text: &[u8]) -> Result<Self, MementoError> {
        strictly(text, "memento")
    }

    /// Reads one that is JSON already.
    ///
    /// # Errors
    /// As [`ThreadMemento::read`].
    pub fn from_value(value: &Value) -> Result<Self, MementoError> {
        strictly_of(value, "memento")
    }

    /// Its summary.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let texts = |list: &[Text<200>]| list.iter().map(ToString::to_string).collect();
        Shape {
            arc: self.arc.to_string(),
            active: texts(&self.active),
            parked: texts(&self.parked),
            decisions: texts(&self.decisions),
            next: texts(&self.next),
        }
    }

    /// What tells it from every other state of it: whoever writes names the one they have read.
    #[must_use]
    pub fn etag(&self) -> String {
        Digest::of(canonical(self)).short(16)
    }
}
