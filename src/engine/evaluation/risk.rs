//! Risk tier of an action that no Atlas declares, by the words of its name and parameters.

use std::fmt::{self, Write as _};

use serde_json::Value;

use crate::atlas::document::RiskTier;

/// Words that name a tier. The highest found counts.
const WORDS: [(RiskTier, &[&str]); 4] = [
    (RiskTier::Low, &["read", "get", "list", "search", "find"]),
    (RiskTier::Medium, &["write", "create", "update", "set"]),
    (RiskTier::High, &["delete", "remove", "destroy"]),
    (
        RiskTier::Critical,
        &["drop", "deploy", "migrate", "truncate"],
    ),
];

/// Words that raise any action to at least high risk.
const PRODUCTION: [&str; 2] = ["production", "prod"];

/// Returns the tier that the words of `action` and its parameters suggest; low without any.
#[must_use]
pub fn detect(action: &str, params: &Value) -> RiskTier {
    let (mut named, mut raised) = (RiskTier::Low, false);
    for word in words(action) {
        let known = WORDS.iter().find(|(_, known)| word.is_in(known));
        named = known.map_or(named, |(tier, _)| named.max(*tier));
        raised |= word.is_in(&PRODUCTION);
    }
    if raised || mentions_production(params) {
        named.max(RiskTier::High)
    } else {
        named
    }
}

/// Prefixes that name a tier, in the order they are tried.
const PREFIXES: [(RiskTier, &[&str]); 4] = [
    (RiskTier::Low, &["read", "get", "list", "search", "find"]),
    (RiskTier::Medium, &["write", "create", "update", "set"]),
    (RiskTier::High, &["delete", "remove", "drop", "destroy"]),
    (RiskTier::Critical, &["deploy", "migrate", "truncate"]),
];

/// Returns the tier of the first known prefix of `action` or of its parameters' text; otherwise high if the
/// text contains the word for production.
///
/// Kept for Atlases that were written for it. It misses much: `ticket.delete` has no known prefix.
#[must_use]
pub fn first_match(action: &str, params: &Value) -> RiskTier {
    // The text of parameters begins with a brace, a quote or the like, and so with none of these words.
    let begins = |words: &[&str]| words.iter().any(|word| action.starts_with(word));
    let named = PREFIXES.iter().find(|(_, words)| begins(words));
    match named {
        Some((tier, _)) => *tier,
        None if action.contains(PROD) || text_contains_prod(params) => RiskTier::High,
        None => RiskTier::Low,
    }
}

/// The word for production, as searched for in the text of parameters.
const PROD: &str = "prod";

/// Returns whether the JSON text of `value` contains [`PROD`], without building the text.
fn text_contains_prod(value: &Value) -> bool {
    let mut search = ProdSearch { matched: 0 };
    // Writing stops with an error when the word is found.
    write!(search, "{value}").is_err()
}

/// A search in text that arrives in pieces. Writing fails when the text is found.
struct ProdSearch {
    matched: usize,
}

impl fmt::Write for ProdSearch {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for byte in piece.bytes() {
            // The letters of the word differ, so after a mismatch only its first letter can start a new
            // match.
            self.matched = match PROD.as_bytes().get(self.matched) {
                Some(wanted) if *wanted == byte => self.matched + 1,
                Some(_) | None => usize::from(PROD.as_bytes().first() == Some(&byte)),
            };
            if self.matched == PROD.len() {
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

fn mentions_production(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            // Most texts do not contain the letters at all, and that check is much faster.
            has_prod(text) && words(text).any(|word| word.is_in(&PRODUCTION))
        }
        Value::Array(items) => items.iter().any(mentions_production),
        Value::Object(fields) => fields.values().any(mentions_production),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether `text` contains the four letters, in any case.
fn has_prod(text: &str) -> bool {
    let mut windows = text.as_bytes().windows(PROD.len());
    windows.any(|window| window.eq_ignore_ascii_case(PROD.as_bytes()))
}

/// Length of the longest known word.
const MAX_WORD_LETTERS: usize = 10;

/// A word in lower case.
struct RiskWord {
    letters: [u8; MAX_WORD_LETTERS],
    /// Number of letters; `usize::MAX` for a word that cannot be a known one.
    length: usize,
}

impl RiskWord {
    fn push(&mut self, letter: char) {
        let slot = self.letters.get_mut(self.length);
        self.length = match (u8::try_from(letter), slot) {
            (Ok(byte), Some(slot)) if byte.is_ascii() => {
                *slot = byte;
                self.length + 1
            }
            // No known word is longer or has other letters.
            (Ok(_) | Err(_), Some(_) | None) => usize::MAX,
        };
    }

    fn is_in(&self, known: &[&str]) -> bool {
        let own = self.letters.get(..self.length);
        own.is_some_and(|own| known.iter().any(|known| known.as_bytes() == own))
    }
}

/// Splits a text at everything that is not a letter or digit, and at camelCase boundaries.
fn words(text: &str) -> impl Iterator<Item = RiskWord> {
    let mut chars = text.chars().peekable();
    let (mut before_is_lower, mut before_is_upper) = (false, false);
    // The letter that ended a word and begins the next one.
    let mut begun: Option<char> = None;
    std::iter::from_fn(move || {
        let mut word = RiskWord {
            letters: [0; MAX_WORD_LETTERS],
            length: 0,
        };
        let lower = |letter: char, word: &mut RiskWord| {
            if letter.is_ascii() {
                word.push(letter.to_ascii_lowercase());
            } else {
                letter.to_lowercase().for_each(|letter| word.push(letter));
            }
        };
        if let Some(letter) = begun.take() {
            lower(letter, &mut word);
        } else {
            chars.peek()?;
        }
        while let Some(c) = chars.next() {
            let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
            // `deleteTicket`, and `HTTPDelete`, where the last capital letter begins the next word.
            let changes = before_is_lower || (before_is_upper && next_is_lower);
            before_is_lower = c.is_lowercase();
            before_is_upper = c.is_uppercase();
            if !c.is_alphanumeric() {
                break;
            }
            if before_is_upper && changes {
                begun = Some(c);
                break;
            }
            lower(c, &mut word);
        }
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    // covers A27
    #[test]
    fn risk_tiers_of_known_actions() {
        use RiskTier::{Critical, High, Low, Medium};
        for (action, by_words, by_beginning) in [
            ("ticket.delete", High, Low),
            ("drop_database", Critical, High),
            ("update_production_config", High, Medium),
            ("user.ban", Low, Low),
            ("product.view", Low, High),
            ("settle_payment", Low, Medium),
            ("deploy_service", Critical, Critical),
        ] {
            assert_eq!(detect(action, &Value::Null), by_words, "{action}");
            assert_eq!(first_match(action, &Value::Null), by_beginning, "{action}");
        }
        let params = json!({"env": "production"});
        assert_eq!(first_match("restart", &params), High);
    }

    #[test]
    fn risk_words_are_found_as_whole_words_in_any_case_style() {
        assert_eq!(detect("deleteTicket", &Value::Null), RiskTier::High);
        assert_eq!(detect("HTTPDelete", &Value::Null), RiskTier::High);
        assert_eq!(detect("DBDropTable", &Value::Null), RiskTier::Critical);
        assert_eq!(detect("DELETE", &Value::Null), RiskTier::High);
        assert_eq!(detect("ticket:bulkRemove", &Value::Null), RiskTier::High);
        assert_eq!(detect("undeleted.show", &Value::Null), RiskTier::Low);
        assert_eq!(detect("getOrDelete", &Value::Null), RiskTier::High);
    }

    #[test]
    fn production_in_a_parameter_raises_the_tier() {
        let params = json!({"target": {"hosts": ["eu-prod-7"]}});
        assert_eq!(detect("config.get", &params), RiskTier::High);
        assert_eq!(
            detect("config.get", &json!({"prod": "staging"})),
            RiskTier::Low
        );
    }

    /// Splits a text into words in the simplest way, as a reference.
    fn plain_words(text: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let chars: Vec<_> = text.chars().collect();
        for (at, c) in chars.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| chars[at]);
            let next_is_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
            let changes = before.is_some_and(char::is_lowercase)
                || (before.is_some_and(char::is_uppercase) && next_is_lower);
            if !c.is_alphanumeric() || (c.is_uppercase() && changes) {
                words.push(String::new());
            }
            if c.is_alphanumeric() {
                words.last_mut().unwrap().extend(c.to_lowercase());
            }
        }
        words
    }

    proptest! {
        #[test]
        fn words_are_split_like_the_reference_splitter(
            text in "([a-zA-Z.é_ İK]|prod|Prod|PROD|production|delete){0,12}",
        ) {
            for wanted in ["prod", "production", "delete", "a", "kproducti", "aprod"] {
                let plain = plain_words(&text).contains(&wanted.to_owned());
                prop_assert_eq!(words(&text).any(|word| word.is_in(&[wanted])), plain);
            }
            let plain = plain_words(&text);
            let means = plain.iter().any(|word| PRODUCTION.contains(&word.as_str()));
            prop_assert_eq!(mentions_production(&json!({"a": [text]})), means);
        }

        #[test]
        fn first_match_agrees_with_a_search_of_the_whole_text(
            action in "(read|prod|x|delete|deploy|p|pro){0,3}",
            text in "(prod|p|pr|ro|od|\"|x|é){0,6}",
        ) {
            for params in [
                json!({ "a": text }),
                json!({ text.as_str(): [1, true] }),
                json!(text),
                json!(null),
            ] {
                let texts = [action.clone(), params.to_string()];
                let begins = |words: &[&str]| {
                    words.iter().any(|word| texts.iter().any(|text| text.starts_with(word)))
                };
                let named = PREFIXES.iter().find(|(_, words)| begins(words));
                let wanted = match named {
                    Some((tier, _)) => *tier,
                    None if texts.iter().any(|text| text.contains("prod")) => RiskTier::High,
                    None => RiskTier::Low,
                };
                prop_assert_eq!(first_match(&action, &params), wanted);
            }
        }
    }
}
