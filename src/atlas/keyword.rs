//! Keywords: compilation, search in a text and positions of the matches.

use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use serde::Serialize;
use unicode_segmentation::UnicodeSegmentation;

use super::document::MatchMode;
use crate::base::limits::MAX_REGEX_BYTES;

mod prefilter;

pub(super) use prefilter::{FragmentPosition, KeywordPrefilter, fold_to_ascii};

/// Compiled keywords.
#[derive(Clone, Debug)]
pub struct Keywords {
    mode: MatchMode,
    case: CaseSensitivity,
    threshold: Option<usize>,
    words: Vec<Keyword>,
}

impl PartialEq for Keywords {
    fn eq(&self, other: &Self) -> bool {
        // The compiled form is derived from these fields.
        let texts = |keywords: &Self| {
            keywords
                .words
                .iter()
                .map(|word| word.text.clone())
                .collect::<Vec<_>>()
        };
        (self.mode, self.case, self.threshold) == (other.mode, other.case, other.threshold)
            && texts(self) == texts(other)
    }
}

#[derive(Clone, Debug)]
struct Keyword {
    text: String,
    finder: KeywordFinder,
}

#[derive(Clone, Debug)]
enum KeywordFinder {
    /// A regular expression: compiled once, linear in the input.
    Pattern(Regex),
    /// A literal, searched by a regular expression that is compiled on first use: most are never used.
    Literal(LiteralKeyword),
    /// A fuzzy search, word by word.
    Fuzzy {
        words: Vec<String>,
        case: CaseSensitivity,
        threshold: Option<usize>,
    },
}

/// The case sensitivity of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseSensitivity {
    /// Upper and lower case differ.
    Sensitive,
    /// Upper and lower case are equal.
    Insensitive,
}

/// A keyword that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeywordMatch {
    /// The keyword, as written.
    pub keyword: String,
    /// Position of the first character of the first match, in Unicode scalar values from 0.
    pub position: usize,
}

impl KeywordMatch {
    /// Describes several matches in words, each with its position.
    #[must_use]
    pub fn describe(matches: &[Self]) -> String {
        let words = matches.iter();
        let words =
            words.map(|found| format!("`{}` at character {}", found.keyword, found.position));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// An error in the compilation of keywords.
#[derive(Debug, thiserror::Error)]
#[error("keyword {index} does not compile: {source}")]
pub struct KeywordError {
    /// Index of the keyword.
    pub index: usize,
    /// The error of the regex compiler.
    pub source: Box<regex::Error>,
}

/// Length limits of a fuzzy search, because a short word has too many neighbours.
///
/// A word below the first limit must match exactly; a word below the second may differ by one edit.
const EXACT_BELOW: usize = 4;
const ONE_EDIT_BELOW: usize = 8;

impl Keywords {
    /// Compiles keywords. `threshold` sets the maximum edit distance of a fuzzy match; without it, the word length
    /// decides.
    ///
    /// # Errors
    /// Fails when a keyword is not a valid regular expression, or is too large.
    pub fn compile(
        texts: &[String],
        mode: MatchMode,
        case: CaseSensitivity,
        threshold: Option<usize>,
    ) -> Result<Self, KeywordError> {
        let words = texts.iter().enumerate().map(|(index, text)| {
            let finder = KeywordFinder::compile(text, mode, case, threshold)
                .map_err(|source| KeywordError { index, source })?;
            Ok(Keyword {
                text: text.clone(),
                finder,
            })
        });
        Ok(Self {
            mode,
            case,
            threshold,
            words: words.collect::<Result<_, _>>()?,
        })
    }

    /// Returns the keywords as written.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| word.text.as_str())
    }

    /// Returns the search mode.
    #[must_use]
    pub fn mode(&self) -> MatchMode {
        self.mode
    }

    /// Returns the matches in `text`, in the order of the keywords.
    ///
    /// At least one keyword must match, or all of them in mode `all`. Otherwise the result is empty. An empty list
    /// of keywords never matches.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<KeywordMatch> {
        let words = (0..self.words.len()).map(|word| KeywordCandidate {
            word,
            start: MatchStart::Unknown,
        });
        self.find_among(text, words)
    }

    /// Returns the matches in `text` if only these candidates, in the order of the keywords, can match.
    pub(super) fn find_among(
        &self,
        text: &str,
        candidates: impl Iterator<Item = KeywordCandidate>,
    ) -> Vec<KeywordMatch> {
        let found = candidates
            .filter_map(|candidate| self.words.get(candidate.word)?.find(text, candidate.start));
        let found: Vec<_> = found.collect();
        match self.mode {
            MatchMode::All if found.len() < self.words.len() => Vec::new(),
            MatchMode::Any
            | MatchMode::All
            | MatchMode::Phrase
            | MatchMode::Regex
            | MatchMode::Fuzzy => found,
        }
    }

    /// Returns, for each keyword in order, the pre-check that can exclude it from a search.
    pub(super) fn prefilters(&self) -> impl Iterator<Item = KeywordPrefilter> {
        self.words
            .iter()
            .map(|word| word.prefilter(self.mode, self.case))
    }

    /// Returns the case sensitivity.
    pub(super) fn case(&self) -> CaseSensitivity {
        self.case
    }
}

/// A keyword that can be in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeywordCandidate {
    /// Index of the keyword.
    pub(super) word: usize,
    /// Known start position.
    pub(super) start: MatchStart,
}

/// The known start position of a keyword, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchStart {
    /// The position is unknown.
    Unknown,
    /// The match is at this offset or later.
    NotBefore(usize),
    /// The match is at this offset.
    At(usize),
}

impl Keyword {
    fn find(&self, text: &str, start: MatchStart) -> Option<KeywordMatch> {
        let offset = match (&self.finder, start) {
            (_, MatchStart::At(offset)) => offset,
            (KeywordFinder::Pattern(pattern), MatchStart::Unknown) => pattern.find(text)?.start(),
            (KeywordFinder::Pattern(pattern), MatchStart::NotBefore(offset)) => {
                pattern.find_at(text, offset)?.start()
            }
            (KeywordFinder::Literal(literal), MatchStart::Unknown) => literal.find_at(text, 0)?,
            (KeywordFinder::Literal(literal), MatchStart::NotBefore(offset)) => {
                literal.find_at(text, offset)?
            }
            (
                KeywordFinder::Fuzzy {
                    words,
                    case,
                    threshold,
                },
                MatchStart::Unknown | MatchStart::NotBefore(_),
            ) => find_fuzzy(text, words, *case, *threshold)?,
        };
        Some(KeywordMatch {
            keyword: self.text.clone(),
            position: text.get(..offset).unwrap_or_default().chars().count(),
        })
    }
}

impl KeywordFinder {
    fn compile(
        text: &str,
        mode: MatchMode,
        case: CaseSensitivity,
        threshold: Option<usize>,
    ) -> Result<Self, Box<regex::Error>> {
        let pattern = match mode {
            MatchMode::Any | MatchMode::All => regex::escape(text),
            // Half boundaries also find a keyword that starts or ends with a symbol.
            MatchMode::Phrase => format!(r"\b{{start-half}}{}\b{{end-half}}", regex::escape(text)),
            MatchMode::Regex => text.to_owned(),
            MatchMode::Fuzzy => {
                return Ok(Self::Fuzzy {
                    words: text
                        .unicode_words()
                        .map(|word| folded(word, case))
                        .collect(),
                    case,
                    threshold,
                });
            }
        };
        if mode != MatchMode::Regex && text.len() <= MAX_LAZY_KEYWORD_BYTES {
            return Ok(Self::Literal(LiteralKeyword::new(pattern, case)));
        }
        compile(&pattern, case).map(Self::Pattern)
    }
}

fn compile(pattern: &str, case: CaseSensitivity) -> Result<Regex, Box<regex::Error>> {
    RegexBuilder::new(pattern)
        .case_insensitive(case == CaseSensitivity::Insensitive)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build()
        .map_err(Box::new)
}

/// Maximum length in bytes of a keyword that certainly compiles. A longer keyword is compiled at load time, so that
/// an error rejects the Atlas.
const MAX_LAZY_KEYWORD_BYTES: usize = 512;

/// A keyword that is searched literally.
#[derive(Clone, Debug)]
struct LiteralKeyword {
    pattern: String,
    case: CaseSensitivity,
    compiled: Arc<OnceLock<Option<Regex>>>,
}

impl LiteralKeyword {
    fn new(pattern: String, case: CaseSensitivity) -> Self {
        Self {
            pattern,
            case,
            compiled: Arc::default(),
        }
    }

    /// Returns the first match at or after `offset`.
    fn find_at(&self, text: &str, offset: usize) -> Option<usize> {
        let compiled = self
            .compiled
            .get_or_init(|| compile(&self.pattern, self.case).ok());
        match compiled {
            Some(pattern) => Some(pattern.find_at(text, offset)?.start()),
            // INVARIANT: the pattern compiles. If it did not, reporting a match holds the agent back.
            None => Some(offset),
        }
    }
}

/// Returns the offset of the first sequence of words that nearly equals `wanted`.
fn find_fuzzy(
    text: &str,
    wanted: &[String],
    case: CaseSensitivity,
    threshold: Option<usize>,
) -> Option<usize> {
    if wanted.is_empty() {
        return None;
    }
    let words: Vec<(usize, String)> = text
        .unicode_word_indices()
        .map(|(at, word)| (at, folded(word, case)))
        .collect();
    let near = |(wanted, (_, word)): (&String, &(usize, String))| {
        let length = wanted.chars().count();
        let edits = threshold.unwrap_or(match length {
            0..EXACT_BELOW => 0,
            EXACT_BELOW..ONE_EDIT_BELOW => 1,
            ONE_EDIT_BELOW.. => 2,
        });
        // A word whose length differs by more cannot be within that edit distance.
        length.abs_diff(word.chars().count()) <= edits
            && strsim::osa_distance(wanted, word) <= edits
    };
    words
        .windows(wanted.len())
        .find(|window| wanted.iter().zip(*window).all(near))
        .and_then(|window| window.first())
        .map(|(at, _)| *at)
}

fn folded(word: &str, case: CaseSensitivity) -> String {
    match case {
        CaseSensitivity::Sensitive => word.to_owned(),
        CaseSensitivity::Insensitive => word.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keywords(texts: &[&str], mode: MatchMode) -> Keywords {
        cased(texts, mode, CaseSensitivity::Insensitive)
    }

    fn cased(texts: &[&str], mode: MatchMode, case: CaseSensitivity) -> Keywords {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        Keywords::compile(&texts, mode, case, None).unwrap()
    }

    fn found(keywords: &Keywords, text: &str) -> Vec<(String, usize)> {
        let matches = keywords.find(text).into_iter();
        matches
            .map(|found| (found.keyword, found.position))
            .collect()
    }

    // covers A21, A23
    #[test]
    fn mode_any_needs_one_keyword_and_mode_all_needs_every_keyword() {
        let any = keywords(&["refund", "cancel"], MatchMode::Any);
        assert_eq!(found(&any, "Please CANCEL it"), [("cancel".to_owned(), 7)]);
        assert_eq!(found(&any, "nothing"), []);
        let all = keywords(&["refund", "cancel"], MatchMode::All);
        assert_eq!(found(&all, "cancel it"), []);
        assert_eq!(found(&all, "cancel, then refund").len(), 2);
    }

    // covers A24
    #[test]
    fn mode_any_matches_substrings_and_mode_phrase_whole_words() {
        let any = keywords(&["delete"], MatchMode::Any);
        assert_eq!(found(&any, "it was undeleted").len(), 1);
        let phrase = keywords(&["delete", "c++", "drop table"], MatchMode::Phrase);
        assert_eq!(found(&phrase, "it was undeleted"), []);
        assert_eq!(
            found(&phrase, "please DELETE, now"),
            [("delete".to_owned(), 7)]
        );
        assert_eq!(found(&phrase, "in c++ or c"), [("c++".to_owned(), 3)]);
        assert_eq!(found(&phrase, "drop tables"), []);
    }

    // covers A22
    #[test]
    fn case_sensitivity_applies_in_every_script() {
        let counts = cased(&["Refund"], MatchMode::Any, CaseSensitivity::Sensitive);
        assert_eq!(found(&counts, "refund"), []);
        let loose = keywords(&["ÄRGER"], MatchMode::Any);
        assert_eq!(found(&loose, "viel ärger"), [("ÄRGER".to_owned(), 5)]);
    }

    #[test]
    fn special_characters_are_literal_except_in_mode_regex() {
        let any = keywords(&["a.c"], MatchMode::Any);
        assert_eq!(found(&any, "abc"), []);
        let regex = keywords(&[r"\brm\s+-rf\b"], MatchMode::Regex);
        assert_eq!(
            found(&regex, "sudo RM  -rf /"),
            [(r"\brm\s+-rf\b".to_owned(), 5)]
        );
        let broken = Keywords::compile(
            &["(".to_owned()],
            MatchMode::Regex,
            CaseSensitivity::Sensitive,
            None,
        );
        assert_eq!(broken.unwrap_err().index, 0);
    }

    #[test]
    fn fuzzy_search_allows_more_edits_in_longer_words() {
        let near = keywords(&["refund", "subscription", "tax"], MatchMode::Fuzzy);
        assert_eq!(found(&near, "a reufnd please"), [("refund".to_owned(), 2)]);
        assert_eq!(
            found(&near, "my subsciptoin"),
            [("subscription".to_owned(), 3)]
        );
        assert_eq!(
            found(&near, "refnudd"),
            [],
            "two edits are too many for six letters"
        );
        assert_eq!(
            found(&near, "tux"),
            [],
            "a short word has too many neighbours"
        );
        assert_eq!(found(&near, "TAX"), [("tax".to_owned(), 0)]);
    }

    #[test]
    fn threshold_overrides_the_word_length() {
        let texts = ["refund".to_owned()];
        let strict = Keywords::compile(
            &texts,
            MatchMode::Fuzzy,
            CaseSensitivity::Insensitive,
            Some(0),
        );
        assert!(strict.unwrap().find("reufnd").is_empty());
        let loose = Keywords::compile(
            &texts,
            MatchMode::Fuzzy,
            CaseSensitivity::Insensitive,
            Some(3),
        );
        assert!(!loose.unwrap().find("rexxxd").is_empty());
    }

    #[test]
    fn lazily_compiled_keywords_always_compile() {
        // The letters with the most case variants: three each, of up to three bytes.
        for letter in ['k', '\u{3b8}', '\u{1c4}', '\u{fb05}', '\u{10ffff}', '\\'] {
            for case in [CaseSensitivity::Sensitive, CaseSensitivity::Insensitive] {
                let text = letter
                    .to_string()
                    .repeat(MAX_LAZY_KEYWORD_BYTES / letter.len_utf8());
                for mode in [MatchMode::Any, MatchMode::Phrase] {
                    let long = cased(&[&text], mode, case);
                    assert_eq!(found(&long, &format!(". {text}")), [(text.clone(), 2)]);
                    assert_eq!(found(&long, "."), []);
                }
            }
        }
    }

    #[test]
    fn empty_keyword_list_never_matches() {
        for mode in [
            MatchMode::Any,
            MatchMode::All,
            MatchMode::Phrase,
            MatchMode::Fuzzy,
        ] {
            assert!(keywords(&[], mode).find("anything").is_empty());
        }
    }

    proptest! {
        #[test]
        fn mode_any_agrees_with_str_contains(word in "[a-c.]{1,3}", text in "[a-c. ]{0,20}") {
            let any = cased(&[&word], MatchMode::Any, CaseSensitivity::Sensitive);
            prop_assert_eq!(!any.find(&text).is_empty(), text.contains(&word));
        }
    }
}
