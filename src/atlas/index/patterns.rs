//! Lookup of many patterns at once; the cost does not depend on patterns that do not match.
//!
//! [`Pattern::matches`] defines the result; this index only finds it faster. A pattern is looked up by the rarest
//! of its literal parts: its head, its tail or, if it has neither or shares both with many patterns, its longest
//! inner part.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;

use super::trie::Trie;
use crate::base::pattern::Pattern;

/// Patterns by their parts. A pattern is identified by its number, in the order given.
#[derive(Debug, Default)]
pub(super) struct PatternIndex {
    /// Patterns by head; a pattern without a star is stored as a whole.
    heads: Trie<PatternEntry>,
    /// Patterns by tail, from the last byte to the first.
    tails: Trie<PatternEntry>,
    /// Patterns by inner part.
    inner: Option<InnerPartIndex>,
    /// Patterns that consist only of stars.
    any: Vec<u32>,
}

#[derive(Debug)]
struct InnerPartIndex {
    parts: AhoCorasick,
    /// The patterns, by part.
    patterns: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct PatternEntry {
    pattern: u32,
    rest: RestCondition,
}

/// The requirement for the rest of a text when one end matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestCondition {
    /// The rest must be empty.
    Empty,
    /// The rest can be anything.
    Any,
    /// The full pattern must be checked.
    FullPattern,
}

/// A pattern, or a name in which a star is a literal star.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum PatternOrName<'a> {
    /// A pattern.
    Pattern(&'a Pattern),
    /// A name.
    Name(&'a str),
}

impl<'a> PatternOrName<'a> {
    /// Returns the text as written.
    pub(super) fn as_str(self) -> &'a str {
        match self {
            Self::Pattern(pattern) => pattern.as_str(),
            Self::Name(name) => name,
        }
    }

    /// Returns the pattern if it contains a star.
    fn as_wildcard(self) -> Option<&'a Pattern> {
        match self {
            Self::Pattern(pattern) => Some(pattern).filter(|pattern| !pattern.is_literal()),
            Self::Name(_) => None,
        }
    }
}

/// Maximum number of patterns that share an end before an inner part is used. Checking a few patterns costs less
/// than another pass over the text.
const MAX_SHARED_ENDS: usize = 8;

/// The parts that a pattern can be looked up by.
struct PatternParts<'a> {
    head: &'a str,
    tail: &'a str,
    /// The longest part between two stars.
    inner: &'a str,
    stars: usize,
}

impl<'a> PatternParts<'a> {
    fn of(pattern: &'a Pattern) -> Self {
        let parts: Vec<_> = pattern.as_str().split('*').collect();
        let ends = (parts.first(), parts.last());
        let between = parts.get(1..parts.len().saturating_sub(1));
        Self {
            head: ends.0.copied().unwrap_or_default(),
            tail: ends.1.copied().unwrap_or_default(),
            inner: between
                .unwrap_or_default()
                .iter()
                .copied()
                .max_by_key(|part| part.len())
                .unwrap_or_default(),
            stars: parts.len() - 1,
        }
    }
}

/// The number of patterns that share each part.
#[derive(Default)]
struct PartCounts<'a> {
    heads: HashMap<&'a str, usize>,
    tails: HashMap<&'a str, usize>,
    inner: HashMap<&'a str, usize>,
}

impl<'a> PartCounts<'a> {
    fn count(&mut self, parts: &PatternParts<'a>) {
        *self.heads.entry(parts.head).or_default() += 1;
        *self.tails.entry(parts.tail).or_default() += 1;
        *self.inner.entry(parts.inner).or_default() += 1;
    }

    /// Returns the part to look a pattern up by, or `None` for stars only.
    fn rarest(&self, parts: &PatternParts<'a>) -> Option<PatternPart> {
        let share = |counts: &HashMap<&str, usize>, part: &str| {
            let count = counts.get(part).copied().unwrap_or_default();
            (!part.is_empty()).then_some(count)
        };
        let head = share(&self.heads, parts.head).map(|count| (count, PatternPart::Head));
        let tail = share(&self.tails, parts.tail).map(|count| (count, PatternPart::Tail));
        let inner = share(&self.inner, parts.inner).map(|count| (count, PatternPart::Inner));
        let ends = head.into_iter().chain(tail);
        let end = ends.min_by_key(|(count, part)| {
            let length = match part {
                PatternPart::Head => parts.head.len(),
                PatternPart::Tail | PatternPart::Inner => parts.tail.len(),
            };
            (*count, std::cmp::Reverse(length))
        });
        let best = match (end, inner) {
            (Some(end), Some(inner)) if end.0 > MAX_SHARED_ENDS && inner.0 < end.0 => Some(inner),
            (Some(end), _) => Some(end),
            (None, inner) => inner,
        };
        best.map(|(_, part)| part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternPart {
    Head,
    Tail,
    Inner,
}

impl PatternIndex {
    /// Builds an index of patterns, identified by their number.
    pub(super) fn new<'a>(sought: impl Iterator<Item = PatternOrName<'a>> + Clone) -> Self {
        let mut shares = PartCounts::default();
        for sought in sought.clone() {
            if let Some(wild) = sought.as_wildcard() {
                shares.count(&PatternParts::of(wild));
            }
        }
        let (mut heads, mut tails) = (Vec::new(), Vec::new());
        let (mut inner, mut any) = (Vec::new(), Vec::new());
        for (sought, pattern) in sought.zip(0_u32..) {
            let entry = |rest| PatternEntry { pattern, rest };
            let Some(wild) = sought.as_wildcard() else {
                heads.push((
                    sought.as_str().as_bytes().to_vec(),
                    entry(RestCondition::Empty),
                ));
                continue;
            };
            let parts = PatternParts::of(wild);
            let rest = |other: &str| match other {
                "" if parts.stars == 1 => RestCondition::Any,
                _ => RestCondition::FullPattern,
            };
            match shares.rarest(&parts) {
                None => any.push(pattern),
                Some(PatternPart::Head) => {
                    heads.push((parts.head.as_bytes().to_vec(), entry(rest(parts.tail))));
                }
                Some(PatternPart::Tail) => {
                    tails.push((parts.tail.bytes().rev().collect(), entry(rest(parts.head))));
                }
                Some(PatternPart::Inner) => inner.push((parts.inner, pattern)),
            }
        }
        let patterns: Vec<_> = inner.iter().map(|(_, pattern)| *pattern).collect();
        let automaton = AhoCorasick::new(inner.iter().map(|(part, _)| part));
        let inner = match automaton {
            Ok(_) if patterns.is_empty() => None,
            Ok(parts) => Some(InnerPartIndex { parts, patterns }),
            // The automaton would be too large, which the size limit of an Atlas rules out: check the patterns one
            // by one.
            Err(_) => {
                any.extend(patterns);
                None
            }
        };
        Self {
            heads: Trie::new(heads),
            tails: Trie::new(tails),
            inner,
            any,
        }
    }

    /// Calls `found` with every pattern that `text` matches, possibly more than once.
    ///
    /// `ask` checks the full pattern where one part is not enough.
    pub(super) fn for_each_match(
        &self,
        text: &str,
        ask: impl Fn(u32) -> bool,
        mut found: impl FnMut(u32),
    ) {
        let mut settle = |entry: PatternEntry, is_end: bool| {
            let matches = match entry.rest {
                RestCondition::Empty => is_end,
                RestCondition::Any => true,
                RestCondition::FullPattern => ask(entry.pattern),
            };
            if matches {
                found(entry.pattern);
            }
        };
        self.heads.walk(text.bytes(), &mut settle);
        self.tails.walk(text.bytes().rev(), &mut settle);
        if let Some(inner) = &self.inner {
            for part in inner.parts.find_overlapping_iter(text) {
                let pattern = inner.patterns.get(part.pattern().as_usize());
                if let Some(pattern) = pattern.filter(|pattern| ask(**pattern)) {
                    found(*pattern);
                }
            }
        }
        for pattern in self.any.iter().filter(|pattern| ask(**pattern)) {
            found(*pattern);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn found(texts: &[String], action: &str) -> BTreeSet<usize> {
        let patterns: Vec<_> = texts.iter().map(Pattern::new).collect();
        let index = PatternIndex::new(patterns.iter().map(PatternOrName::Pattern));
        let mut found = BTreeSet::new();
        let ask = |at: u32| patterns[at as usize].matches(action);
        index.for_each_match(action, ask, |at| found.extend([at as usize]));
        found
    }

    fn wanted(texts: &[String], action: &str) -> BTreeSet<usize> {
        let patterns = texts.iter().map(Pattern::new).enumerate();
        patterns
            .filter(|(_, pattern)| pattern.matches(action))
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn patterns_of_every_shape_are_found() {
        let texts = [
            "ticket.delete",
            "ticket.*",
            "*.delete",
            "ti*te",
            "*ck*",
            "*",
            "**",
            "t*k*e",
            "*e",
            "x*",
            "*xyz*",
            "ticket.delete*",
            "*ticket.delete",
            "delete_*",
            "",
        ]
        .map(str::to_owned);
        for action in ["ticket.delete", "ticket.", "xyz", "", "delete_it", "tte"] {
            assert_eq!(found(&texts, action), wanted(&texts, action), "{action}");
        }
    }

    #[test]
    fn patterns_with_shared_ends_are_looked_up_by_their_inner_part() {
        let texts: Vec<_> = (0..100)
            .map(|at| format!("admin.*.n{at}.*.delete"))
            .collect();
        let patterns: Vec<_> = texts.iter().map(Pattern::new).collect();
        let index = PatternIndex::new(patterns.iter().map(PatternOrName::Pattern));
        let asked = std::cell::Cell::new(0);
        let action = "admin.x.n77.y.delete";
        let ask = |at: u32| {
            asked.set(asked.get() + 1);
            patterns[at as usize].matches(action)
        };
        let mut found = Vec::new();
        index.for_each_match(action, ask, |at| found.push(at));
        assert_eq!(found, [77]);
        assert!(asked.get() <= 2, "{} patterns were asked", asked.get());
    }

    #[test]
    fn star_in_a_name_is_literal() {
        let index = PatternIndex::new([PatternOrName::Name("a*")].into_iter());
        let count = |text: &str| {
            let mut count = 0;
            index.for_each_match(text, |_| true, |_| count += 1);
            count
        };
        assert_eq!((count("a*"), count("ab")), (1, 0));
    }

    proptest! {
        #[test]
        fn pattern_index_agrees_with_matching_every_pattern(
            texts in prop::collection::vec("[ab.*é]{0,6}", 0..40),
            action in "[ab.é]{0,10}",
        ) {
            prop_assert_eq!(found(&texts, &action), wanted(&texts, &action));
        }

        #[test]
        fn pattern_index_agrees_where_ends_are_shared(
            texts in prop::collection::vec("a\\*[ab*]{0,4}\\*b", 10..40),
            action in "a[ab]{0,6}b",
        ) {
            prop_assert_eq!(found(&texts, &action), wanted(&texts, &action));
        }
    }
}
