//! `did you mean`: the known word that is closest to an unknown one.

/// Returns the candidate that `word` is most likely a misspelling of, if one is close enough.
pub(super) fn closest_match<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let word = normalize(word);
    candidates
        .into_iter()
        .map(|candidate| {
            let normal = normalize(candidate);
            // Cheap bound first: words of very different length are never close.
            let farthest = (normal.chars().count() / 3).clamp(1, 3);
            let distance = if normal.len().abs_diff(word.len()) > 4 * farthest {
                usize::MAX
            } else {
                strsim::osa_distance(&word, &normal)
            };
            (distance, farthest, candidate)
        })
        .filter(|(distance, farthest, _)| distance <= farthest)
        .min_by_key(|(distance, _, _)| *distance)
        .map(|(_, _, candidate)| candidate)
}

/// Normalizes a word: `minTier`, `min-tier` and `MIN_TIER` are the same mistake.
fn normalize(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_get_a_suggestion_and_unrelated_words_do_not() {
        let known = ["mode", "min_tier", "risk_threshold", "name", "type"];
        let cases = [
            ("risk_treshold", Some("risk_threshold")),
            ("minTier", Some("min_tier")),
            ("mdoe", Some("mode")),
            ("tpye", Some("type")),
            ("colour", None),
            ("", None),
            ("note", None),
        ];
        for (word, expected) in cases {
            assert_eq!(closest_match(word, known), expected, "{word}");
        }
    }
}
