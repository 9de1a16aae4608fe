//! Command lines, split and quoted as the shell does.

/// Splits a command line into words, up to the first operator. Expansions that only a shell can do stay as
/// written.
pub(super) fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('"') | None, '\\') => {
                let escaped = letters.next();
                word.get_or_insert_default().extend(escaped);
            }
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '|' | '&' | ';' | '\n') => break,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (Some(_) | None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Quotes a word for the shell, if needed.
pub(in crate::gateway) fn quote(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:=@%,".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
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
    }

    proptest! {
        #[test]
        fn a_quoted_word_splits_into_the_same_word(word in any::<String>()) {
            prop_assert_eq!(split(&quote(&word)), [word]);
        }
    }
}
