//! How risky an action is, when no Atlas says so: by the words of its name and parameters.

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

/// Words that raise whatever they occur in to at least high.
const PRODUCTION: [&str; 2] = ["production", "prod"];

/// The tier that the words of `action` and of its parameters' values suggest; low without any.
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

/// Beginnings that name a tier, in the order they are tried.
const BEGINNINGS: [(RiskTier, &[&str]); 4] = [
    (RiskTier::Low, &["read", "get", "list", "search", "find"]),
    (RiskTier::Medium, &["write", "create", "update", "set"]),
    (RiskTier::High, &["delete", "remove", "drop", "destroy"]),
    (RiskTier::Critical, &["deploy", "migrate", "truncate"]),
];

/// The tier by the first of a fixed list that `action`, or the text of its parameters, begins with;
/// then by the word for production anywhere in them.
///
/// Kept for Atlases that were written for it. It misses much: `ticket.delete` begins with neither.
#[must_use]
pub fn first_match(action: &str, params: &Value) -> RiskTier {
    // The text of parameters begins with a brace, a quote or the like: with none of these words.
    let begins = |words: &[&str]| words.iter().any(|word| action.starts_with(word));
    let named = BEGINNINGS.iter().find(|(_, words)| begins(words));
    match named {
        Some((tier, _)) => *tier,
        None if action.contains(PROD) || text_contains_prod(params) => RiskTier::High,
        None => RiskTier::Low,
    }
}

/// The word for production, as it is looked for in parameters as text.
const PROD: &str = "prod";

/// Whether the JSON text of `value` contains it. The text is not put together for that.
fn text_contains_prod(value: &Value) -> bool {
    let mut search = Search { matched: 0 };
    // It is written to the end, or until it is found.
    write!(search, "{value}").is_err()
}

/// A search in text that comes in pieces; an error when it is found.
struct Search {
    matched: usize,
}

impl fmt::Write for Search {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        for byte in piece.bytes() {
            // Its letters differ: after a mismatch only the first can begin anew.
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
            // Most texts do not have its letters at all, which is told far sooner.
            has_prod(text) && words(text).any(|word| word.is_in(&PRODUCTION))
        }
        Value::Array(items) => items.iter().any(mentions_production),
        Value::Object(fields) => fields.values().any(mentions_production),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether the four letters stand in `text`, whatever their case.
fn has_prod(text: &str) -> bool {
    let mut windows = text.as_bytes().windows(PROD.len());
    windows.any(|window| window.eq_ignore_ascii_case(PROD.as_bytes()))
}

/// Longest word that means anything here.
const LONGEST: usize = 10;

/// A word in lower case.
struct Word {
    letters: [u8; LONGEST],
    /// How many; more than fit where it means nothing.
    length: usize,
}

impl Word {
    fn push(&mut self, letter: char) {
        let place = self.letters.get_mut(self.length);
        self.length = match (u8::try_from(letter), place) {
            (Ok(byte), Some(place)) if byte.is_ascii() => {
                *place = byte;
                self.length + 1
            }
            // No word that means anything goes on like this.
            (Ok(_) | Err(_), Some(_) | None) => usize::MAX,
        };
    }

    fn is_in(&self, known: &[&str]) -> bool {
        let own = self.letters.get(..self.length);
        own.is_some_and(|own| known.iter().any(|known| known.as_bytes() == own))
    }
}

/// Splits on everything that is not a letter or digit, and where camelCase changes.
fn words(text: &str) -> impl Iterator<Item = Word> {
    let mut chars = text.chars().peekable();
    let (mut before_is_lower, mut before_is_upper) = (false, false);
    // The letter that ended a word by beginning the next one.
    let mut begun: Option<char> = None;
    std::iter::from_fn(move || {
        let mut word = Word {
            letters: [0; LONGEST],
            length: 0,
        };
        let lower = |letter: char, word: &mut Word| {
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
            // `deleteTicket`, and `HTTPDelete`, where the last capital begins the next word.
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
    fn known_answers() {
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
    fn whole_words_in_any_case_style() {
        assert_eq!(detect("deleteTicket", &Value::Null), RiskTier::High);
        assert_eq!(detect("HTTPDelete", &Value::Null), RiskTier::High);
        assert_eq!(detect("DBDropTable", &Value::Null), RiskTier::Critical);
        assert_eq!(detect("DELETE", &Value::Null), RiskTier::High);
        assert_eq!(detect("ticket:bulkRemove", &Value::Null), RiskTier::High);
        assert_eq!(detect("undeleted.show", &Value::Null), RiskTier::Low);
        assert_eq!(detect("getOrDelete", &Value::Null), RiskTier::High);
    }

    #[test]
    fn production_in_a_parameter_raises() {
        let params = json!({"target": {"hosts": ["eu-prod-7"]}});
        assert_eq!(detect("config.get", &params), RiskTier::High);
        assert_eq!(
            detect("config.get", &json!({"prod": "staging"})),
            RiskTier::Low
        );
    }

    /// The words, put together one by one.
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
        fn words_are_told_apart_without_putting_them_together(
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
        fn first_match_is_that_of_the_whole_text(
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
                let named = BEGINNINGS.iter().find(|(_, words)| begins(words));
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
