//! Search for all keywords of an Atlas in one pass over a text.
//!
//! [`Keywords::find`] defines the matches and their positions; this index only skips the keywords that cannot be in
//! the text. One automaton searches for a fragment of every literal keyword, ignoring case. Regular expressions are
//! tried together. Fuzzy keywords are always searched.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::{RegexSet, RegexSetBuilder};

use crate::atlas::document::InjectMode;
use crate::atlas::keyword::{
    CaseSensitivity, FragmentPosition, KeywordCandidate, KeywordMatch, KeywordPrefilter, Keywords,
    MatchStart, fold_to_ascii,
};
use crate::atlas::model::{Atlas, Checkpoint, InjectionRule, Trigger};
use crate::base::limits::{MAX_DENSE_KEYWORD_BYTES, MAX_REGEX_SET_BYTES};

/// The keywords of an Atlas.
#[derive(Debug, Default)]
pub(super) struct KeywordIndex {
    /// The owners of the keyword lists, in the order of the Atlas.
    lists: Vec<KeywordListOwner>,
    fragments: Option<FragmentIndex>,
    regexes: Vec<(RegexSet, Vec<KeywordRef>)>,
    /// Keywords that cannot be skipped.
    always: Vec<KeywordRef>,
}

/// The owner of a list of keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeywordListOwner {
    Checkpoint(usize),
    Injection(usize),
}

#[derive(Debug)]
struct FragmentIndex {
    automaton: AhoCorasick,
    /// The keywords, by fragment.
    words: Vec<Vec<(KeywordRef, FragmentPosition)>>,
}

/// A keyword: the number of its list and its index in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KeywordRef {
    list: usize,
    word: usize,
}

/// The keywords found in a text.
#[derive(Debug, Default)]
pub struct KeywordMatches(Vec<AtlasKeywordMatches>);

#[derive(Debug, Default)]
struct AtlasKeywordMatches {
    checkpoints: Vec<(usize, Vec<KeywordMatch>)>,
    injections: Vec<(usize, Vec<KeywordMatch>)>,
}

impl KeywordMatches {
    /// Searches `text` for the keywords of `atlases`.
    #[must_use]
    pub fn of(atlases: &[Atlas], text: &str) -> Self {
        let found = atlases.iter().map(|atlas| {
            let index = &atlas.index.0.keywords;
            index.find(&atlas.checkpoints, &atlas.injections, text)
        });
        Self(found.collect())
    }

    /// Returns the checkpoints of `atlas`, the Atlas with that number, whose keywords were found, with the matches.
    pub fn checkpoints<'a>(
        &self,
        number: usize,
        atlas: &'a Atlas,
    ) -> impl Iterator<Item = (&'a Checkpoint, &[KeywordMatch])> {
        let of = self.0.get(number).into_iter();
        of.flat_map(|of| &of.checkpoints)
            .filter_map(|(place, found)| Some((atlas.checkpoints.get(*place)?, found.as_slice())))
    }

    /// Returns the contexts of `atlas`, the Atlas with that number, whose keywords were found, with their indices.
    pub fn injections<'a>(
        &self,
        number: usize,
        atlas: &'a Atlas,
    ) -> impl Iterator<Item = (usize, &'a InjectionRule)> {
        let of = self.0.get(number).into_iter();
        of.flat_map(|of| &of.injections)
            .filter_map(|(place, _)| Some((*place, atlas.injections.get(*place)?)))
    }

    /// Returns the keywords that inject contexts, each once, with the position of its first match.
    #[must_use]
    pub fn injecting_keywords(&self) -> Vec<KeywordMatch> {
        let found = self.0.iter().flat_map(|of| &of.injections);
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for found in found.flat_map(|(_, found)| found) {
            let position = first.entry(&found.keyword).or_insert(found.position);
            *position = found.position.min(*position);
        }
        let first = first.into_iter();
        first
            .map(|(keyword, position)| KeywordMatch {
                keyword: keyword.to_owned(),
                position,
            })
            .collect()
    }
}

impl KeywordIndex {
    pub(super) fn new(checkpoints: &[Checkpoint], injections: &[InjectionRule]) -> Self {
        let mut index = Self::default();
        let mut fragments: BTreeMap<String, Vec<(KeywordRef, FragmentPosition)>> = BTreeMap::new();
        let mut regexes: BTreeMap<bool, Vec<(String, KeywordRef)>> = BTreeMap::new();
        let owners = (0..checkpoints.len()).map(KeywordListOwner::Checkpoint);
        let owners = owners.chain((0..injections.len()).map(KeywordListOwner::Injection));
        for owner in owners {
            let Some(keywords) = keywords_of(owner, checkpoints, injections) else {
                continue;
            };
            let list = index.lists.len();
            index.lists.push(owner);
            for (word, sign) in keywords.prefilters().enumerate() {
                let word = KeywordRef { list, word };
                match sign {
                    KeywordPrefilter::Fragment(fragment, meaning) => {
                        fragments.entry(fragment).or_default().push((word, meaning));
                    }
                    KeywordPrefilter::Regex(pattern) => {
                        let loose = keywords.case() == CaseSensitivity::Insensitive;
                        regexes.entry(loose).or_default().push((pattern, word));
                    }
                    KeywordPrefilter::AlwaysSearch => index.always.push(word),
                }
            }
        }
        for (loose, patterns) in regexes {
            let case = if loose {
                CaseSensitivity::Insensitive
            } else {
                CaseSensitivity::Sensitive
            };
            for patterns in patterns.chunks(MAX_REGEXES_PER_SET) {
                index.add_regexes(patterns, case);
            }
        }
        index.add_fragments(fragments);
        index
    }

    fn add_fragments(&mut self, fragments: BTreeMap<String, Vec<(KeywordRef, FragmentPosition)>>) {
        if fragments.is_empty() {
            return;
        }
        let size_bytes: usize = fragments.keys().map(String::len).sum();
        let dense = size_bytes <= MAX_DENSE_KEYWORD_BYTES;
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(dense.then_some(AhoCorasickKind::DFA))
            .build(fragments.keys());
        let words = fragments.into_values();
        match automaton {
            Ok(automaton) => {
                self.fragments = Some(FragmentIndex {
                    automaton,
                    words: words.collect(),
                });
            }
            // The automaton would be too large, which the size limit of an Atlas rules out.
            Err(_) => self.always.extend(words.flatten().map(|(word, _)| word)),
        }
    }

    fn add_regexes(&mut self, patterns: &[(String, KeywordRef)], case: CaseSensitivity) {
        let words = patterns.iter().map(|(_, word)| *word);
        if patterns.len() <= MAX_SEPARATE_REGEXES {
            self.always.extend(words);
            return;
        }
        let set = RegexSetBuilder::new(patterns.iter().map(|(pattern, _)| pattern))
            .case_insensitive(case == CaseSensitivity::Insensitive)
            .size_limit(MAX_REGEX_SET_BYTES)
            .build();
        if let Ok(set) = set {
            self.regexes.push((set, words.collect()));
        } else {
            // The set is too large; split it.
            let (one, other) = patterns.split_at(patterns.len() / 2);
            self.add_regexes(one, case);
            self.add_regexes(other, case);
        }
    }

    fn find(
        &self,
        checkpoints: &[Checkpoint],
        injections: &[InjectionRule],
        text: &str,
    ) -> AtlasKeywordMatches {
        let mut found = AtlasKeywordMatches::default();
        let mut candidates = self.candidates(text);
        candidates.sort_unstable_by_key(|(word, _)| *word);
        for of_list in candidates.chunk_by(|(one, _), (other, _)| one.list == other.list) {
            let owner = of_list
                .first()
                .and_then(|(word, _)| self.lists.get(word.list));
            let Some(owner) = owner else { continue };
            let Some(keywords) = keywords_of(*owner, checkpoints, injections) else {
                continue;
            };
            let candidates = of_list.iter().map(|(word, start)| KeywordCandidate {
                word: word.word,
                start: *start,
            });
            let matches = keywords.find_among(text, candidates);
            if matches.is_empty() {
                continue;
            }
            match owner {
                KeywordListOwner::Checkpoint(at) => found.checkpoints.push((*at, matches)),
                KeywordListOwner::Injection(at) => found.injections.push((*at, matches)),
            }
        }
        found
    }

    /// Returns the keywords that can be in `text`, each once.
    fn candidates(&self, text: &str) -> Vec<(KeywordRef, MatchStart)> {
        let always = self.always.iter().map(|word| (*word, MatchStart::Unknown));
        let mut candidates: Vec<_> = always.collect();
        if let Some(fragments) = &self.fragments {
            fragments.add_candidates(text, &mut candidates);
        }
        for (set, words) in &self.regexes {
            let matching = set.matches(text);
            let words = matching.iter().filter_map(|at| words.get(at));
            candidates.extend(words.map(|word| (*word, MatchStart::Unknown)));
        }
        candidates
    }
}

impl FragmentIndex {
    fn add_candidates(&self, text: &str, candidates: &mut Vec<(KeywordRef, MatchStart)>) {
        let plain = fold_to_ascii(text);
        let is_same = matches!(plain, Cow::Borrowed(_));
        let mut seen = vec![false; self.words.len()];
        for fragment in self.automaton.find_overlapping_iter(plain.as_ref()) {
            let at = fragment.pattern().as_usize();
            let Some(seen @ false) = seen.get_mut(at) else {
                continue;
            };
            *seen = true;
            for (word, meaning) in self.words.get(at).into_iter().flatten() {
                let start = match meaning {
                    FragmentPosition::AtFragment if is_same => MatchStart::At(fragment.start()),
                    FragmentPosition::NotBefore if is_same => {
                        MatchStart::NotBefore(fragment.start())
                    }
                    // The position is unknown, or differs from the position in the plain text.
                    FragmentPosition::AtFragment
                    | FragmentPosition::NotBefore
                    | FragmentPosition::Anywhere => MatchStart::Unknown,
                };
                candidates.push((*word, start));
            }
        }
    }
}

/// Maximum number of regular expressions tried at once. A larger set makes an automaton that is slower than several
/// small ones.
const MAX_REGEXES_PER_SET: usize = 64;

/// Maximum number of regular expressions tried one by one. So few are faster alone: each has a literal that is
/// found without running it.
const MAX_SEPARATE_REGEXES: usize = 4;

fn keywords_of<'k>(
    owner: KeywordListOwner,
    checkpoints: &'k [Checkpoint],
    injections: &'k [InjectionRule],
) -> Option<&'k Keywords> {
    match owner {
        KeywordListOwner::Checkpoint(at) => {
            let trigger = checkpoints.get(at).map(|checkpoint| &checkpoint.trigger);
            if let Some(Trigger::Keyword(keywords)) = trigger {
                Some(keywords)
            } else {
                None
            }
        }
        // Keywords apply only to contexts that are injected on a match.
        KeywordListOwner::Injection(at) => {
            let injection = injections.get(at)?;
            let keywords = injection.keywords.as_ref();
            keywords.filter(|_| injection.mode == InjectMode::OnMatch)
        }
    }
}

#[cfg(test)]
mod tests;
