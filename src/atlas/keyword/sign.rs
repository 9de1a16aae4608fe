//! How a keyword can be ruled out before it is looked for.

use std::borrow::Cow;

use super::super::document::MatchMode;
use super::{Case, Finder, Keyword};

/// How a keyword can be ruled out beforehand.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::atlas) enum Sign {
    /// A fragment, in lower case, must be in the text whatever its case.
    Fragment(String, Meaning),
    /// Its regular expression must match.
    Regex(String),
    /// Not at all.
    Never,
}

/// What it says about a keyword that its fragment was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::atlas) enum Meaning {
    /// It is found there.
    Found,
    /// It is not found before that.
    NotBefore,
    /// It may be anywhere.
    Somewhere,
}

/// Shortest part of a keyword that tells texts apart.
const MIN_FRAGMENT: usize = 3;

/// The two characters beyond ASCII that are the same as one of ASCII when case does not count: the
/// Kelvin sign and the long s.
const LIKE_ASCII: [(char, &str); 2] = [('\u{212a}', "k"), ('\u{17f}', "s")];

/// `text` without characters that count as one of ASCII: in it, and only in it, every fragment is
/// found by comparing ASCII.
pub(in crate::atlas) fn plain(text: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(text);
    if text.is_ascii() {
        return plain;
    }
    for (character, ascii) in LIKE_ASCII {
        if plain.contains(character) {
            plain = Cow::Owned(plain.replace(character, ascii));
        }
    }
    plain
}

impl Keyword {
    pub(super) fn sign(&self, mode: MatchMode, case: Case) -> Sign {
        let pattern = match &self.finder {
            Finder::Pattern(pattern) => pattern.as_str(),
            Finder::Literal(literal) => &literal.pattern,
            Finder::Near { .. } => return Sign::Never,
        };
        if self.text.is_empty() {
            return Sign::Never;
        }
        let regex = || Sign::Regex(pattern.to_owned());
        let meaning = match mode {
            MatchMode::Any | MatchMode::All => Meaning::Found,
            MatchMode::Phrase => Meaning::NotBefore,
            MatchMode::Regex | MatchMode::Fuzzy => return regex(),
        };
        match case {
            // A fragment is found whatever its case: the keyword as it is written may come later.
            Case::Sensitive => {
                Sign::Fragment(plain(&self.text).to_ascii_lowercase(), Meaning::NotBefore)
            }
            Case::Insensitive if self.text.is_ascii() => {
                Sign::Fragment(self.text.to_ascii_lowercase(), meaning)
            }
            Case::Insensitive => {
                let parts = self.text.split(|c: char| !c.is_ascii());
                let longest = parts.max_by_key(|part| part.len()).unwrap_or_default();
                if longest.len() < MIN_FRAGMENT {
                    return regex();
                }
                Sign::Fragment(longest.to_ascii_lowercase(), Meaning::Somewhere)
            }
        }
    }
}
