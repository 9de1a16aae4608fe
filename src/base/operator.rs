//! Operator names. A name is what a person types at a console, without proof: it distinguishes cooperating people.

use super::text::{LineFeeds, sanitize};

/// Maximum length of a name in characters.
pub const MAX_OPERATOR_NAME_CHARS: usize = 64;

/// The reason why an operator name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorNameError {
    /// The name is empty.
    #[error("the operator name is empty")]
    Empty,
    /// The name is too long.
    #[error("the name is longer than {MAX_OPERATOR_NAME_CHARS} characters")]
    TooLong,
    /// The name has characters that are invisible or change the text around them.
    #[error("the name contains hidden characters: `{0}`")]
    Hidden(String),
    /// The name could be taken for an agent, because records name agents this way.
    #[error("`{0}` is reserved for agents in the record")]
    Agent(String),
}

/// Returns the name in its recorded form.
///
/// # Errors
/// Fails when the name is invalid.
pub fn parse_operator_name(typed: &str) -> Result<String, OperatorNameError> {
    let name = typed.trim();
    if name.is_empty() {
        return Err(OperatorNameError::Empty);
    }
    if name.chars().count() > MAX_OPERATOR_NAME_CHARS {
        return Err(OperatorNameError::TooLong);
    }
    let shown = sanitize(name, LineFeeds::Escape);
    if shown.text != name {
        return Err(OperatorNameError::Hidden(shown.text));
    }
    let first = name.split_whitespace().next().unwrap_or_default();
    if is_same_operator(first, "agent") {
        return Err(OperatorNameError::Agent(name.to_owned()));
    }
    Ok(name.to_owned())
}

/// Returns true if two names belong to the same person; case and surrounding blanks are ignored.
#[must_use]
pub fn is_same_operator(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

fn folded(name: &str) -> String {
    let words: Vec<_> = name.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_names_are_readable_and_never_look_like_agents() {
        assert_eq!(
            parse_operator_name("  op-1@ops ").as_deref(),
            Ok("op-1@ops")
        );
        assert_eq!(
            parse_operator_name("\u{e9}lodie k").as_deref(),
            Ok("\u{e9}lodie k")
        );
        assert_eq!(parse_operator_name("   "), Err(OperatorNameError::Empty));
        let long = "x".repeat(MAX_OPERATOR_NAME_CHARS + 1);
        assert_eq!(parse_operator_name(&long), Err(OperatorNameError::TooLong));
        for hidden in ["op\u{202e}1", "o\u{200b}p", "a\nb", "a\u{1b}[2J"] {
            let fault = parse_operator_name(hidden).unwrap_err();
            assert!(matches!(fault, OperatorNameError::Hidden(_)), "{hidden:?}");
        }
        for agent in ["agent", "Agent billing-bot", "AGENT x"] {
            let fault = parse_operator_name(agent).unwrap_err();
            assert!(matches!(fault, OperatorNameError::Agent(_)), "{agent}");
        }
        assert!(parse_operator_name("agentina").is_ok());
    }

    #[test]
    fn names_that_differ_only_in_case_or_blanks_are_the_same_operator() {
        assert!(is_same_operator("op-1@ops", " OP-1@OPS "));
        assert!(is_same_operator("ann  b", "Ann B"));
        assert!(!is_same_operator("op-1", "op-2"));
    }
}
