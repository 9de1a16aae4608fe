//! Command lines, split and quoted as the shell does.

use shlex::{Quoter, Shlex};

/// Splits a command line into words, up to the first operator. Expansions that only a shell can do stay as
/// written.
pub(super) fn split(line: &str) -> Vec<String> {
    Shlex::new(first_command(line)).collect()
}

/// Returns the part of a command line before its first operator.
fn first_command(line: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    let end = line.find(|letter: char| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match (quote, letter) {
            (Some('"') | None, '\\') => escaped = true,
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '|' | '&' | ';' | '\n') => return true,
            (Some(_) | None, _) => {}
        }
        false
    });
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

/// Quotes a word for the shell, if needed. Words that need no quotes stay as earlier versions wrote them:
/// an entry is compared with its text.
pub(in crate::gateway) fn quote(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:=@%,".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // INVARIANT: only a NUL cannot be quoted, and it is allowed here. An empty word would run nothing.
    let quoted = Quoter::new().allow_nul(true).quote(word);
    quoted.map_or_else(|_| "''".to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::{quote, split};
    use proptest::prelude::*;

    #[test]
    fn splitting_stops_at_the_first_shell_operator() {
        let line = "/opt/my\\ tools/cra hook 'claude-code' --timer \"30\" || exit 2";
        let words = ["/opt/my tools/cra", "hook", "claude-code", "--timer", "30"];
        assert_eq!(split(line), words);
        assert_eq!(split("cra hook ''"), ["cra", "hook", ""]);
        assert_eq!(split("echo; cra hook codex"), ["echo"]);
        assert_eq!(
            split("'/R&D/a;b/cra' \"x|y\" a\\;b&&c"),
            ["/R&D/a;b/cra", "x|y", "a;b"]
        );
    }

    proptest! {
        #[test]
        fn a_quoted_word_splits_into_the_same_word(word in any::<String>()) {
            prop_assert_eq!(split(&quote(&word)), [word]);
        }
    }
}
