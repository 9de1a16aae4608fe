use proptest::prelude::*;

use super::*;
use crate::atlas::document::MatchMode;
use crate::base::pattern::Patterns;

fn injection(keywords: Keywords) -> InjectionRule {
    InjectionRule {
        context_id: "c".to_owned(),
        mode: InjectMode::OnMatch,
        keywords: Some(keywords),
        actions: Patterns::default(),
        priority: 0,
    }
}

fn keywords(texts: &[&str], mode: MatchMode, case: CaseSensitivity) -> Keywords {
    let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
    Keywords::compile(&texts, mode, case, None).unwrap()
}

/// Returns the matches of the index, and the matches of a search for every keyword.
fn both(lists: Vec<Keywords>, text: &str) -> [Vec<(usize, Vec<KeywordMatch>)>; 2] {
    let injections: Vec<_> = lists.into_iter().map(injection).collect();
    let index = KeywordIndex::new(&[], &injections);
    let found = index.find(&[], &injections, text).injections;
    let lists = injections
        .iter()
        .filter_map(|injection| injection.keywords.as_ref());
    let asked = lists.map(|keywords| keywords.find(text)).enumerate();
    let asked = asked.filter(|(_, found)| !found.is_empty()).collect();
    [found, asked]
}

#[test]
fn characters_that_fold_to_ascii_match_only_when_case_is_ignored() {
    for text in [
        "KIS\u{17f} ME",
        "\u{212a}i\u{17f}s me",
        "kiſs",
        "KISS",
        "\u{212a}",
        "a \u{212a}elvin, a kelvin",
    ] {
        for case in [CaseSensitivity::Sensitive, CaseSensitivity::Insensitive] {
            for mode in [MatchMode::Any, MatchMode::All, MatchMode::Phrase] {
                let lists = ["kiss", "ki\u{17f}s", "\u{212a}", "kelvin", "k", "KISS"]
                    .map(|word| keywords(&[word], mode, case));
                let [found, asked] = both(lists.into(), text);
                assert_eq!(found, asked, "{text} {mode:?} {case:?}");
            }
        }
    }
}

#[test]
fn regular_expressions_are_combined_into_sets() {
    let lists: Vec<_> = (0..200)
        .map(|at| {
            keywords(
                &[&format!(r"\bn{at}\s+x")],
                MatchMode::Regex,
                CaseSensitivity::Insensitive,
            )
        })
        .collect();
    let [found, asked] = both(lists, "N7 x and n77  x, n8x");
    assert_eq!(found, asked);
    assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [7, 77]);
}

#[test]
fn a_phrase_within_a_word_does_not_hide_the_phrase_after_it() {
    let lists = vec![keywords(
        &["delete"],
        MatchMode::Phrase,
        CaseSensitivity::Insensitive,
    )];
    let [found, asked] = both(lists, "ä undeleted, then DELETE");
    assert_eq!(found, asked);
    assert_eq!(found[0].1[0].position, 18);
}

fn mode() -> impl Strategy<Value = MatchMode> {
    prop::sample::select(vec![
        MatchMode::Any,
        MatchMode::All,
        MatchMode::Phrase,
        MatchMode::Regex,
        MatchMode::Fuzzy,
    ])
}

/// Text with characters that are hard to compare without case: the Kelvin sign, the long s, sharp s, the dotted
/// capital i, sigma in its three forms, and a combining mark.
fn text(most: usize) -> impl Strategy<Value = String> {
    let letters = "abkKsS\u{212a}\u{17f}äÄßẞİiσςΣ\u{301} ."
        .chars()
        .collect::<Vec<_>>();
    prop::collection::vec(prop::sample::select(letters), 0..=most)
        .prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #[test]
    fn keyword_index_agrees_with_a_search_for_every_keyword(
        lists in prop::collection::vec(
            (
                prop::collection::vec(text(5), 0..4),
                mode(),
                prop::sample::select(vec![CaseSensitivity::Sensitive, CaseSensitivity::Insensitive]),
            ),
            0..12,
        ),
        text in text(40),
    ) {
        let lists = lists
            .iter()
            .filter_map(|(texts, mode, case)| {
                Keywords::compile(texts, *mode, *case, None).ok()
            })
            .collect();
        let [found, asked] = both(lists, &text);
        prop_assert_eq!(found, asked);
    }
}
