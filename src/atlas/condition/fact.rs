//! Facts as conditions find them.

use std::borrow::Cow;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde_json::{Value, json};

use super::{FactPath, Facts, SessionFact, TimeFact};
use crate::base::clock::Timestamp;

impl FactPath {
    /// Tells whether a moment has this fact at all. Where it has, the fact can still be missing.
    pub(super) fn is_of(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Action => facts.action.is_some(),
            Self::Params(_) => facts.params.is_some(),
            Self::Input => facts.input.is_some(),
            Self::Session(_) | Self::Time(_) => true,
        }
    }

    /// The fact, if there is one. Parameters are only looked at: they can be large.
    pub(super) fn read<'f>(&self, facts: &Facts<'f>) -> Option<Cow<'f, Value>> {
        let value = match self {
            Self::Action => facts.action?.into(),
            Self::Input => facts.input?.into(),
            Self::Params(keys) => {
                let mut value = facts.params?;
                for key in keys {
                    value = match value {
                        Value::Object(fields) => fields.get(key)?,
                        Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                            return None;
                        }
                    };
                }
                return Some(Cow::Borrowed(value));
            }
            Self::Session(fact) => match fact {
                SessionFact::Id => facts.session.into(),
                SessionFact::Agent => facts.agent.into(),
                SessionFact::Intent => facts.intent?.into(),
                SessionFact::Actions => facts.actions.into(),
                SessionFact::AgeSeconds => facts.now.since(facts.started_at).as_secs().into(),
            },
            Self::Time(fact) => fact.read(facts.now),
        };
        Some(Cow::Owned(value))
    }
}

impl TimeFact {
    fn read(self, now: Timestamp) -> Value {
        let moment: DateTime<Utc> =
            DateTime::from_timestamp_micros(now.micros()).unwrap_or_default();
        match self {
            Self::Hour => json!(moment.hour()),
            Self::Minute => json!(moment.minute()),
            Self::Weekday => json!(moment.weekday().to_string().to_lowercase()),
            Self::Date => json!(moment.date_naive().to_string()),
        }
    }
}
