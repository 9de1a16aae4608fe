//! Cheap pre-checks that exclude keywords before the full search.

use std::borrow::Cow;

use super::super::document::MatchMode;
use super::{CaseSensitivity, Keyword, KeywordFinder};

/// The pre-check that can exclude a keyword from a search.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::atlas) enum KeywordPrefilter {
    /// A fragment in lower case must be in the text, ignoring case.
    Fragment(String, FragmentPosition),
    /// The regular expression must match.
    Regex(String),
    /// The keyword cannot be excluded.
    AlwaysSearch,
}

/// The position information that a found fragment gives about its keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::atlas) enum FragmentPosition {
    /// The keyword is at the position of the fragment.
    AtFragment,
    /// The keyword is not before the fragment.
    NotBefore,
    /// The keyword may be anywhere.
    Anywhere,
}

/// Minimum length of a fragment that distinguishes texts.
const MIN_FRAGMENT: usize = 3;

/// The two non-ASCII characters that equal an ASCII letter when case is ignored: the Kelvin sign and the long s.
const ASCII_EQUIVALENTS: [(char, &str); 2] = [('\u{212a}', "k"), ('\u{17f}', "s")];

/// Replaces the characters that count as an ASCII letter when case is ignored.
///
/// Only in the resulting text does an ASCII comparison find every fragment.
pub(in crate::atlas) fn fold_to_ascii(text: &str) -> Cow<'_, str> {
    let mut plain = Cow::Borrowed(text);
    if text.is_ascii() {
        return plain;
    }
    for (character, ascii) in ASCII_EQUIVALENTS {
        if plain.contains(character) {
            plain = Cow::Owned(plain.replace(character, ascii));
        }
    }
    plain
}

impl Keyword {
    pub(super) fn prefilter(&self, mode: MatchMode, case: CaseSensitivity) -> KeywordPrefilter {
        let pattern = match &self.finder {
            KeywordFinder::Pattern(pattern) => pattern.as_str(),
            KeywordFinder::Literal(literal) => &literal.pattern,
            KeywordFinder::Fuzzy { .. } => return KeywordPrefilter::AlwaysSearch,
        };
        if self.text.is_empty() {
            return KeywordPrefilter::AlwaysSearch;
        }
        let regex = || KeywordPrefilter::Regex(pattern.to_owned());
        let meaning = match mode {
            MatchMode::Any | MatchMode::All => FragmentPosition::AtFragment,
            MatchMode::Phrase => FragmentPosition::NotBefore,
            MatchMode::Regex | MatchMode::Fuzzy => return regex(),
        };
        match case {
            // A fragment is found in any case; the keyword in its exact case may come later.
            CaseSensitivity::Sensitive => KeywordPrefilter::Fragment(
                fold_to_ascii(&self.text).to_ascii_lowercase(),
                FragmentPosition::NotBefore,
            ),
            CaseSensitivity::Insensitive if self.text.is_ascii() => {
                KeywordPrefilter::Fragment(self.text.to_ascii_lowercase(), meaning)
            }
            CaseSensitivity::Insensitive => {
                let parts = self.text.split(|c: char| !c.is_ascii());
                let longest = parts.max_by_key(|part| part.len()).unwrap_or_default();
                if longest.len() < MIN_FRAGMENT {
                    return regex();
                }
                KeywordPrefilter::Fragment(longest.to_ascii_lowercase(), FragmentPosition::Anywhere)
            }
        }
    }
}
