//! Names of operators. A name is what somebody says at a console, and nothing proves it: it tells two
//! people apart who mean to be told apart.

use super::text::{Lines, visible};

/// Longest name, in characters.
pub const MAX_OPERATOR: usize = 64;

/// Why nobody can be called that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperatorNameError {
    /// There is no name.
    #[error("an operator needs a name")]
    Empty,
    /// It is too long.
    #[error("a name has at most {MAX_OPERATOR} characters")]
    TooLong,
    /// It has characters that nobody sees, or that change what is around them.
    #[error("the name has characters that cannot be seen: `{0}`")]
    Hidden(String),
    /// It could be taken for an agent: records name those so.
    #[error("`{0}` is how agents are named in the record")]
    Agent(String),
}

/// The name as it is recorded.
///
/// # Errors
/// When nobody can be called that.
pub fn operator_name(typed: &str) -> Result<String, OperatorNameError> {
    let name = typed.trim();
    if name.is_empty() {
        return Err(OperatorNameError::Empty);
    }
    if name.chars().count() > MAX_OPERATOR {
        return Err(OperatorNameError::TooLong);
    }
    let shown = visible(name, Lines::Escape);
    if shown.text != name {
        return Err(OperatorNameError::Hidden(shown.text));
    }
    let first = name.split_whitespace().next().unwrap_or_default();
    if same_name(first, "agent") {
        return Err(OperatorNameError::Agent(name.to_owned()));
    }
    Ok(name.to_owned())
}

/// Whether two names are of the same person: in another case, or with blanks around it, it is.
#[must_use]
pub fn same_name(one: &str, other: &str) -> bool {
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
    fn a_name_is_what_can_be_read_and_nobody_is_called_like_an_agent() {
        assert_eq!(operator_name("  op-1@ops ").as_deref(), Ok("op-1@ops"));
        assert_eq!(
            operator_name("\u{e9}lodie k").as_deref(),
            Ok("\u{e9}lodie k")
        );
        assert_eq!(operator_name("   "), Err(OperatorNameError::Empty));
        let long = "x".repeat(MAX_OPERATOR + 1);
        assert_eq!(operator_name(&long), Err(OperatorNameError::TooLong));
        for hidden in ["op\u{202e}1", "o\u{200b}p", "a\nb", "a\u{1b}[2J"] {
            let fault = operator_name(hidden).unwrap_err();
            assert!(matches!(fault, OperatorNameError::Hidden(_)), "{hidden:?}");
        }
        for agent in ["agent", "Agent billing-bot", "AGENT x"] {
            let fault = operator_name(agent).unwrap_err();
            assert!(matches!(fault, OperatorNameError::Agent(_)), "{agent}");
        }
        assert!(operator_name("agentina").is_ok());
    }

    #[test]
    fn case_and_blanks_make_nobody_a_second_person() {
        assert!(same_name("op-1@ops", " OP-1@OPS "));
        assert!(same_name("ann  b", "Ann B"));
        assert!(!same_name("op-1", "op-2"));
    }
}
