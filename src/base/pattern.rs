//! Wildcard matcher, used by policies, capabilities, triggers, retention and access keys.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A pattern in which `*` matches any run of characters, including dots; all other characters match themselves.
///
/// The whole text must match, and case matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Pattern(String);

impl Pattern {
    /// Creates a pattern from its text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the pattern contains no `*`.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.0.contains('*')
    }

    /// Returns the number of literal characters; of several matching patterns the one with the most wins.
    #[must_use]
    pub fn literal_len(&self) -> usize {
        self.0.chars().filter(|&c| c != '*').count()
    }

    /// Returns true if the whole of `text` matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else {
            return self.0 == text;
        };
        let Some(mut text) = text.strip_prefix(head) else {
            return false;
        };
        let (middle, tail) = rest.rsplit_once('*').map_or(("", rest), |(m, t)| (m, t));
        for part in middle.split('*').filter(|part| !part.is_empty()) {
            match text.split_once(part) {
                Some((_, after)) => text = after,
                None => return false,
            }
        }
        text.ends_with(tail)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

/// Several patterns, any of which may match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    /// Returns the first pattern, in the order written, that matches `text`.
    #[must_use]
    pub fn first_match(&self, text: &str) -> Option<&Pattern> {
        self.0.iter().find(|pattern| pattern.matches(text))
    }

    /// Returns true if any pattern matches `text`. An empty list matches nothing.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.first_match(text).is_some()
    }

    /// Returns the patterns as written.
    pub fn iter(&self) -> impl Iterator<Item = &Pattern> {
        self.0.iter()
    }

    /// Returns true if there are no patterns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<S: Into<String>> FromIterator<S> for Patterns {
    fn from_iter<I: IntoIterator<Item = S>>(patterns: I) -> Self {
        Self(patterns.into_iter().map(Pattern::new).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // covers B26
    #[test]
    fn patterns_match_exact_prefix_suffix_and_middle() {
        let cases = [
            ("ticket.delete", "ticket.delete", true),
            ("ticket.delete", "ticket.deleted", false),
            ("ticket.*", "ticket.get", true),
            ("ticket.*", "ticket.a.b", true),
            ("ticket.*", "ticket", false),
            ("*.delete", "user.delete", true),
            ("*.delete", "undelete", false),
            ("admin.*.delete", "admin.user.delete", true),
            ("admin.*.delete", "admin.delete", false),
            ("a*b*a", "aba", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("**", "x", true),
            ("", "", true),
            ("", "x", false),
            ("Ticket.*", "ticket.get", false),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(
                Pattern::new(pattern).matches(text),
                expected,
                "{pattern} ~ {text}"
            );
        }
    }

    fn naive(pattern: &[char], text: &[char]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some('*'), _) => {
                naive(&pattern[1..], text) || (!text.is_empty() && naive(pattern, &text[1..]))
            }
            (Some(p), Some(t)) if p == t => naive(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn pattern_agrees_with_a_naive_matcher(pattern in "[ab.*é]{0,8}", text in "[ab.é]{0,10}") {
            let pattern_chars: Vec<char> = pattern.chars().collect();
            let text_chars: Vec<char> = text.chars().collect();
            prop_assert_eq!(
                Pattern::new(pattern).matches(&text),
                naive(&pattern_chars, &text_chars)
            );
        }
    }
}
