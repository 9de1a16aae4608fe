//! Conditions of filters and searches: the filter language of the record, and the words that the screens show for event
//! types.
//!
//! `type:checkpoint_passed` and `type:"gate passed"` select the same events. A text matches the record as it is
//! written, and the words for the type of the event.

use crate::console::names::{event_types_by_words, event_words};
use crate::trace::event::Payload;
use crate::trace::filter::{EventFilter, EventFilterError};
use crate::trace::hash::Envelope;

/// Field of a filter that names event types.
const TYPE_FIELD: &str = "type";

/// Maximum number of event types that a completion names.
const MAX_NAMED_TYPES: usize = 6;

/// Condition on an event. One of the alternatives must match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventCondition {
    alternatives: Vec<EventFilter>,
}

impl EventCondition {
    /// Creates the condition of a search: the record has the text, or the words for its type have it.
    pub(super) fn for_text(text: &str) -> Self {
        let recorded = Some(EventFilter::text(text));
        let named = types_filter(&types_containing(text));
        Self {
            alternatives: recorded.into_iter().chain(named).collect(),
        }
    }

    /// Returns true if one of the alternatives matches; `agent` is the agent of the session.
    pub(super) fn matches(&self, envelope: &Envelope<'_>, agent: &str) -> bool {
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|filter| filter.matches(envelope, agent))
    }
}

/// Parses a filter. All of the returned conditions must be met.
///
/// # Errors
/// The first error in the text, with its column.
pub(super) fn parse_conditions(text: &str) -> Result<Vec<EventCondition>, EventFilterError> {
    // The whole text is parsed first, so that an error has the column that the operator sees.
    text.parse::<EventFilter>()?;
    let mut conditions = Vec::new();
    for term in split_terms(text) {
        let (negated, positive) = match term.strip_prefix('-') {
            Some(positive) => (true, positive),
            None => (false, term.as_str()),
        };
        let recorded: EventFilter = term.parse()?;
        let types = types_of_term(positive);
        let sign = if negated { "-" } else { "" };
        let by_words: Option<EventFilter> = if types.is_empty() {
            None
        } else {
            Some(format!("{sign}{TYPE_FIELD}:{}", types.join("|")).parse()?)
        };
        let both = [Some(recorded), by_words].into_iter().flatten();
        if negated {
            conditions.extend(both.map(|filter| EventCondition {
                alternatives: vec![filter],
            }));
        } else {
            conditions.push(EventCondition {
                alternatives: both.collect(),
            });
        }
    }
    Ok(conditions)
}

/// Text that completes the event type before the cursor, and the words that fit so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TypeCompletion {
    /// Text before the cursor, completed with the first of the words.
    pub(super) completed: String,
    /// Words for the event types that fit, separated by commas.
    pub(super) words: String,
}

/// Completes the event type that is typed at the end of a filter.
pub(super) fn complete_type(before_cursor: &str) -> Option<TypeCompletion> {
    let term = split_terms(before_cursor).pop()?;
    if !before_cursor.ends_with(&term) {
        return None;
    }
    let values = values_of_type_term(term.strip_prefix('-').unwrap_or(&term))?;
    let typed = split_values(values).pop().unwrap_or_default();
    let wanted = normalized(&typed);
    let fitting: Vec<String> = Payload::TYPES
        .iter()
        .map(|name| event_words(name))
        .filter(|words| words.starts_with(&wanted) && *words != wanted)
        .collect();
    let first = fitting.first()?;
    let start = before_cursor.len() - last_value_length(values);
    let kept = before_cursor.get(..start)?;
    let more = fitting.len().saturating_sub(MAX_NAMED_TYPES);
    let named: Vec<&str> = fitting
        .iter()
        .take(MAX_NAMED_TYPES)
        .map(String::as_str)
        .collect();
    let mut words = named.join(", ");
    if more > 0 {
        words = format!("{words}, +{more}");
    }
    Some(TypeCompletion {
        completed: format!("{kept}\"{first}\""),
        words,
    })
}

/// Splits a filter into its terms, at blanks outside of quotes.
fn split_terms(text: &str) -> Vec<String> {
    split_unquoted(text, char::is_whitespace)
        .into_iter()
        .filter(|term| !term.is_empty())
        .collect()
}

/// Splits values at `|` and removes their quotes.
fn split_values(values: &str) -> Vec<String> {
    let values = split_unquoted(values, |c| c == '|');
    values.iter().map(|value| unquoted(value)).collect()
}

fn split_unquoted(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut in_quotes, mut escaped) = (false, false);
    for c in text.chars() {
        if !in_quotes && is_separator(c) {
            parts.push(String::new());
            continue;
        }
        if c == '"' && !escaped {
            in_quotes = !in_quotes;
        }
        escaped = in_quotes && c == '\\' && !escaped;
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

fn unquoted(value: &str) -> String {
    let inside = value.strip_prefix('"').unwrap_or(value);
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    inside.replace("\\\"", "\"").replace("\\\\", "\\")
}

fn last_value_length(values: &str) -> usize {
    split_unquoted(values, |c| c == '|')
        .pop()
        .map_or(0, |value| value.len())
}

/// Returns the values of a term that names event types.
fn values_of_type_term(term: &str) -> Option<&str> {
    let rest = term.strip_prefix(TYPE_FIELD)?;
    rest.strip_prefix(':').or_else(|| rest.strip_prefix('='))
}

/// Lists the event types that a term selects by their words.
fn types_of_term(term: &str) -> Vec<&'static str> {
    if let Some(values) = values_of_type_term(term) {
        let values = split_values(values).into_iter();
        let named = values.flat_map(|value| {
            let wanted = normalized(&value);
            event_types_by_words(move |words| words.starts_with(&wanted))
        });
        return named.collect();
    }
    let values = match term.strip_prefix("text:").or(term.strip_prefix("text=")) {
        Some(values) => values,
        None if has_field(term) => return Vec::new(),
        None => term,
    };
    let values = split_values(values);
    let named = values.iter().flat_map(|value| types_containing(value));
    named.collect()
}

fn has_field(term: &str) -> bool {
    let rest = term.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    rest.len() < term.len() && rest.starts_with([':', '=', '<', '>'])
}

fn types_containing(text: &str) -> Vec<&'static str> {
    let wanted = text.to_lowercase();
    event_types_by_words(|words| words.contains(&wanted))
}

/// Creates a filter that selects these event types; `None` if there are none.
fn types_filter(types: &[&str]) -> Option<EventFilter> {
    if types.is_empty() {
        return None;
    }
    format!("{TYPE_FIELD}:{}", types.join("|")).parse().ok()
}

/// Returns a name as its words are written: in lower case, with blanks.
fn normalized(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope<'a>(event_type: &'a str, payload: &'a str) -> Envelope<'a> {
        Envelope {
            trace_version: "1.0.0",
            event_id: "e-1",
            trace_id: "t-1",
            span_id: "sp-1",
            parent_span_id: "",
            session_id: "s-1",
            sequence: 1,
            timestamp: "2026-09-23T14:02:31.000000Z",
            event_type,
            payload,
            previous_hash: "",
        }
    }

    fn matching(filter: &str, event_type: &str) -> bool {
        let envelope = envelope(event_type, r#"{"action_type":"ticket.delete"}"#);
        let conditions = parse_conditions(filter).unwrap();
        conditions
            .iter()
            .all(|condition| condition.matches(&envelope, "bot"))
    }

    #[test]
    fn a_type_is_accepted_in_words_and_as_recorded() {
        for filter in [
            "type:checkpoint_passed",
            "type:\"gate passed\"",
            "type:gate",
            "type:Gate-Passed",
            "type=\"action requested\"|\"gate pass\"",
            "\"gate passed\"",
            "passed gate",
            "text:\"gate passed\"",
            "-type:\"policy decided\"",
            "-decided",
        ] {
            assert!(matching(filter, "checkpoint_passed"), "{filter}");
        }
        for filter in [
            "type:\"policy decided\"",
            "-type:\"gate passed\"",
            "-type:checkpoint_passed",
            "-gate",
            "answered",
            "actor:gate",
        ] {
            assert!(!matching(filter, "checkpoint_passed"), "{filter}");
        }
    }

    #[test]
    fn words_of_a_type_match_that_type_only() {
        // The details of a requested action have a field `policy_checked`.
        let envelope = envelope("action_attempted", r#"{"policy_checked":true}"#);
        let search = EventCondition::for_text("policy decided");
        assert!(!search.matches(&envelope, "bot"));
        assert!(EventCondition::for_text("action req").matches(&envelope, "bot"));
    }

    #[test]
    fn a_typed_event_type_is_completed_in_words() {
        let complete = |text: &str| complete_type(text).map(|found| found.completed);
        assert_eq!(
            complete("type:gate p").as_deref(),
            None,
            "the blank ends the value"
        );
        assert_eq!(
            complete("type:\"gate p").as_deref(),
            Some("type:\"gate passed\"")
        );
        assert_eq!(
            complete("risk>=high -type:policy|polic").as_deref(),
            Some("risk>=high -type:policy|\"policy decided\"")
        );
        assert_eq!(complete("type:nothing").as_deref(), None);
        assert_eq!(complete("actor:gate").as_deref(), None);
        assert_eq!(complete("").as_deref(), None);
        let all = complete_type("type:").unwrap();
        assert!(all.words.contains(", +"), "{}", all.words);
    }

    #[test]
    fn errors_keep_the_column_of_the_typed_text() {
        let error = parse_conditions("type:\"gate passed\" risk>=hih").unwrap_err();
        assert_eq!(error.column, 26);
    }
}
