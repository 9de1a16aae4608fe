//! How risky an action is, when no Atlas says so: by the words of its name and parameters.

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
    let words = words(action);
    let named = WORDS
        .iter()
        .filter(|(_, known)| words.iter().any(|word| known.contains(&word.as_str())))
        .map(|(tier, _)| *tier)
        .max()
        .unwrap_or(RiskTier::Low);
    if is_production(&words) || mentions_production(params) {
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
    let params = params.to_string();
    let texts = [action, params.as_str()];
    let begins = |words: &[&str]| {
        texts
            .iter()
            .any(|text| words.iter().any(|word| text.starts_with(word)))
    };
    let named = BEGINNINGS.iter().find(|(_, words)| begins(words));
    match named {
        Some((tier, _)) => *tier,
        None if texts.iter().any(|text| text.contains("prod")) => RiskTier::High,
        None => RiskTier::Low,
    }
}

fn is_production(words: &[String]) -> bool {
    words.iter().any(|word| PRODUCTION.contains(&word.as_str()))
}

fn mentions_production(value: &Value) -> bool {
    match value {
        Value::String(text) => is_production(&words(text)),
        Value::Array(items) => items.iter().any(mentions_production),
        Value::Object(fields) => fields.values().any(mentions_production),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Splits on everything that is not a letter or digit, and where camelCase changes.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut before_is_lower, mut before_is_upper) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        // `deleteTicket`, and `HTTPDelete`, where the last capital begins the next word.
        let changes = before_is_lower || (before_is_upper && next_is_lower);
        let starts_word = !c.is_alphanumeric() || (c.is_uppercase() && changes);
        if starts_word {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
        before_is_lower = c.is_lowercase();
        before_is_upper = c.is_uppercase();
    }
    words
}

#[cfg(test)]
mod tests {
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
}
