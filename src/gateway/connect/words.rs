//! A command line, as the shell reads it.

/// The words of a command line up to the first operator. What only a shell could tell is left as it is written.
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

/// A word as it has to be written for the shell.
pub(in crate::gateway) fn quote(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "/._-+:=@%,".contains(it);
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
    fn words_end_at_what_the_shell_does_next() {
        let line = "/opt/my\\ tools/cra hook 'claude-code' --timer \"30\" || exit 2";
        let words = ["/opt/my tools/cra", "hook", "claude-code", "--timer", "30"];
        assert_eq!(split(line), words);
        assert_eq!(split("cra hook ''"), ["cra", "hook", ""]);
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_one_word_again(word in any::<String>()) {
            prop_assert_eq!(split(&quote(&word)), [word]);
        }
    }
}
