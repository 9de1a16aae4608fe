//! Numbers of a record that are written as text.
//!
//! Canonical JSON passes numbers through doubles, so an integer beyond 2^53 is recorded as text. It also writes `1.0` as
//! `1` and `-0.0` as `0`, while the hash of a request tells these apart: other programs read them as different values.
//! So a parameter that was sent as `1.0` is recorded as the text `1.0`, and two requests that hash differently never
//! read the same. The list tells all of these from texts that an agent sent.

use serde_json::{Map, Value};

use super::Payload;
use super::registered_types::RegisteredEvent;
use crate::base::canonical_json::canonical;
use crate::base::digest::Digest;
use crate::base::json::{paths_of_large_numbers, paths_of_large_numbers_in, write_hidden_numbers};

/// Name of the field with the list. Registered types cannot declare a field of this name.
pub const NUMBERS_AS_TEXT: &str = "numbers_as_text";

/// Longest list, and most characters of its paths together. A longer list is recorded as its digest.
const MAX_PATHS: usize = 64;
const MAX_PATH_CHARS: usize = 4096;

impl Payload {
    /// Writes the parameters of a request as they were sent, and lists the numbers that this record has as text.
    pub fn list_large_numbers(&mut self) {
        match self {
            Self::ActionAttempted(it) => {
                it.numbers_as_text = as_sent("action_params", &mut it.action_params);
            }
            Self::ActionBlocked(it) => {
                it.numbers_as_text = as_sent("action_params", &mut it.action_params);
            }
            Self::CheckpointTriggered(payload) => {
                payload.numbers_as_text = list_paths("trigger_data", &payload.trigger_data);
            }
            Self::CheckpointResponse(payload) => {
                payload.numbers_as_text = list_paths_in("answers", &payload.answers);
            }
            Self::PluginEvent(payload) => {
                payload.numbers_as_text = list_paths_in("data", &payload.data);
            }
            Self::Registered(payload) => list_registered(payload),
            _ => {}
        }
    }
}

fn list_registered(registered: &mut RegisteredEvent) {
    let listed = list_paths_in("", registered.fields());
    if !listed.is_empty() {
        let fields = registered.fields_mut();
        fields.insert(NUMBERS_AS_TEXT.to_owned(), listed.into());
    }
}

/// Writes numbers as text whose spelling a record would hide, and lists them with those that are text anyway.
fn as_sent(field: &str, value: &mut Value) -> Vec<String> {
    let mut paths = paths_of_large_numbers(field, value);
    paths.extend(write_hidden_numbers(field, value));
    paths.sort();
    bounded(paths)
}

fn list_paths(field: &str, value: &Value) -> Vec<String> {
    bounded(paths_of_large_numbers(field, value))
}

fn list_paths_in(field: &str, fields: &Map<String, Value>) -> Vec<String> {
    bounded(paths_of_large_numbers_in(field, fields))
}

/// The paths, or their digest if there are too many for a record.
fn bounded(paths: Vec<String>) -> Vec<String> {
    let chars: usize = paths.iter().map(String::len).sum();
    if paths.len() <= MAX_PATHS && chars <= MAX_PATH_CHARS {
        return paths;
    }
    vec![format!("sha256:{}", Digest::of(canonical(&paths)))]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn list_names_large_numbers_but_not_strings() {
        let params =
            json!({"a": u64::MAX, "b": "18446744073709551615", "c": [1, 1e16, {"d e": i64::MIN}]});
        assert_eq!(
            list_paths("p", &params),
            ["p.a", "p.c[1]", "p.c[2][\"d e\"]"]
        );
        assert!(
            list_paths(
                "p",
                &json!({"a": 1.0, "b": 1e300, "c": 9_007_199_254_740_992_u64})
            )
            .is_empty()
        );
    }

    #[test]
    fn a_long_path_list_is_recorded_as_its_digest() {
        let many = |count: usize| json!(vec![u64::MAX; count]);
        assert_eq!(list_paths("p", &many(MAX_PATHS)).len(), MAX_PATHS);
        let digest = list_paths("p", &many(MAX_PATHS + 1));
        assert_eq!(digest.len(), 1);
        assert!(digest[0].starts_with("sha256:"), "{digest:?}");
        assert_ne!(digest, list_paths("p", &many(MAX_PATHS + 2)));
        let long = json!({"k".repeat(MAX_PATH_CHARS): u64::MAX});
        assert!(list_paths("p", &long)[0].starts_with("sha256:"));
    }
}
