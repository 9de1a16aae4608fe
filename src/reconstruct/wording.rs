//! Readable forms of identifiers, and helpers for English sentences.

/// Most parts of a list that are shown; the rest is counted.
pub(super) const SHOWN: usize = 5;

/// First parts of compound words that take a hyphen: `mid_design` becomes `mid-design`.
const PREFIXES: [&str; 9] = [
    "co", "cross", "meta", "mid", "multi", "non", "pre", "self", "semi",
];

/// Formats `mid_design` as `Mid-design`, for the beginning of a line.
pub(super) fn humanised(text: &str) -> String {
    capitalised(&replace_identifiers(text))
}

/// Formats a text for the middle of a sentence.
pub(super) fn mid_sentence(text: &str) -> String {
    decapitalised(&replace_identifiers(text))
}

/// Formats several texts for the middle of a sentence.
pub(super) fn all_mid_sentence(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| mid_sentence(text)).collect()
}

/// Replaces identifiers in a text by words. Code in backticks stays unchanged, and so does every word
/// that is more than an identifier, such as `db.drop` or a path.
pub(super) fn replace_identifiers(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(place, part)| {
        if place % 2 == 1 {
            return part.to_owned();
        }
        part.split(' ')
            .map(format_word)
            .collect::<Vec<_>>()
            .join(" ")
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Formats one word of a text; an identifier becomes several words. Punctuation around it stays.
fn format_word(word: &str) -> String {
    let inner = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    if !is_identifier(inner) {
        return word.to_owned();
    }
    word.replacen(inner, &spell_out(inner), 1)
}

/// True if a word is a program identifier: `snake_case`, but not a constant in capitals.
fn is_identifier(word: &str) -> bool {
    let fits = |letter: char| letter.is_alphanumeric() || "_-+'\u{2019}".contains(letter);
    word.contains('_') && word.chars().all(fits) && word.chars().any(char::is_lowercase)
}

fn spell_out(identifier: &str) -> String {
    let mut text = String::new();
    let mut hyphen = false;
    let parts = identifier.split('_').filter(|part| !part.is_empty());
    for (place, part) in parts.enumerate() {
        if place > 0 {
            text.push(if hyphen { '-' } else { ' ' });
        }
        let lower = part.to_lowercase();
        text.push_str(if lower == "vs" { "vs." } else { part });
        // `post` is a separate word elsewhere: `blog_post_series`.
        hyphen = PREFIXES.contains(&lower.as_str()) || place == 0 && lower == "post";
    }
    text
}

/// True if the first word of a text is a name whose spelling matters: `db.drop`, `c-121`, `iOS`.
fn begins_with_name(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let bare = first.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    bare.chars()
        .any(|letter| letter.is_ascii_digit() || ".:/=#@$(".contains(letter))
        || bare.chars().skip(1).any(char::is_uppercase)
}

/// Makes the first letter upper case, unless the text begins with a name.
pub(super) fn capitalised(text: &str) -> String {
    if begins_with_name(text) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Makes the first letter lower case, unless the text begins with a name: in capitals, or of several
/// capitalised words.
pub(super) fn decapitalised(text: &str) -> String {
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    // `Metadata Health Service` is a name, `Hybrid RAG` is not.
    let large = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().is_some_and(char::is_uppercase);
        first && letters.next().is_some_and(char::is_lowercase)
    };
    if begins_with_name(text) || first == "I" || words.next().is_some_and(large) {
        return text.to_owned();
    }
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

/// Makes a text a sentence: adds a full stop if needed.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) || text.ends_with(".\"") || text.ends_with("?\"") {
        return text.to_owned();
    }
    format!("{text}.")
}

/// Removes the mark at the end, for use within another sentence.
pub(super) fn clause(text: &str) -> String {
    replace_identifiers(text.trim_end().trim_end_matches('.'))
}

/// Joins items: `a`, `a and b`, `a, b and c`.
pub(super) fn join_and(items: &[String]) -> String {
    join_with("and", items)
}

/// Joins items: `a`, `a or b`, `a, b or c`.
pub(super) fn join_or(items: &[String]) -> String {
    join_with("or", items)
}

fn join_with(last_by: &str, items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {last_by} {last}", first.join(", ")),
    }
}

/// First items of a list, and the number of the others.
pub(super) fn limit_items(mut items: Vec<String>, most: usize) -> Vec<String> {
    if items.len() > most {
        let more = items.len() - most;
        items.truncate(most);
        items.push(format!("{more} more"));
    }
    items
}

/// Formats 60 as `60%`, 62.5 as `62.5%`.
pub(super) fn percent(number: f64) -> String {
    format!("{}%", (number * 10.0).round() / 10.0)
}

/// Common words without meaning for a subject.
const COMMON: [&str; 36] = [
    "about", "after", "again", "before", "between", "could", "deeply", "does", "doing", "every",
    "first", "from", "have", "into", "maintain", "more", "must", "need", "next", "only", "other",
    "over", "problem", "question", "should", "that", "their", "them", "then", "there", "this",
    "through", "what", "when", "while", "with",
];

/// Words of a text that describe its subject, in lower case.
pub(super) fn content_words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words
        .map(str::to_lowercase)
        .filter(|word| word.chars().count() >= 3 && word.chars().all(char::is_alphabetic))
        .filter(|word| !COMMON.contains(&word.as_str()))
}

/// True if two texts have the same subject: they share a word of at least four letters, or its stem.
pub(super) fn share_subject(one: &str, other: &str) -> bool {
    let same = |a: &str, b: &str| {
        let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
        let shorter = a.chars().count().min(b.chars().count());
        // `architecture` and `architectural`, `finalized` and `finalization`.
        common >= 4 && (common == shorter || common >= 7)
    };
    content_words(one).any(|a| content_words(other).any(|b| a == b && a.len() >= 4 || same(&a, &b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_become_words_and_code_stays_unchanged() {
        for (text, wanted) in [
            ("mid_design", "Mid-design"),
            (
                "meta_validation_through_checkpoint_design",
                "Meta-validation through checkpoint design",
            ),
            ("three-layer_state_structure", "Three-layer state structure"),
            ("automation_vs_control", "Automation vs. control"),
            ("blog_post_series", "Blog post series"),
            ("post_discovery_integration", "Post-discovery integration"),
            (
                "collaborative_co_creation_language",
                "Collaborative co-creation language",
            ),
            (
                "Test_geometric_awakening_transmission",
                "Test geometric awakening transmission",
            ),
            ("read_a OR (write_b)", "Read a OR (write b)"),
            ("keep `drop_table` out", "Keep `drop_table` out"),
            ("`drop_table` denied", "`drop_table` denied"),
            ("db.drop_all denied", "db.drop_all denied"),
            ("c-121 waits", "c-121 waits"),
            ("MAX_SIZE is too small", "MAX_SIZE is too small"),
            ("src/a_b.rs is long", "src/a_b.rs is long"),
            ("spec_one#section-2", "spec_one#section-2"),
            ("", ""),
        ] {
            assert_eq!(humanised(text), wanted, "{text}");
        }
    }

    #[test]
    fn names_keep_their_capitals_within_a_sentence() {
        for (text, wanted) in [
            ("Active reconstruction", "active reconstruction"),
            ("RAG for breadth", "RAG for breadth"),
            ("Hybrid RAG approach", "hybrid RAG approach"),
            ("PostgreSQL first", "PostgreSQL first"),
            ("Metadata Health Service", "Metadata Health Service"),
            ("I would wait", "I would wait"),
            ("A heap dump", "a heap dump"),
            ("Db.drop", "Db.drop"),
        ] {
            assert_eq!(mid_sentence(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_long_list_is_cut_and_the_rest_is_counted() {
        let items = |count: usize| {
            (1..=count)
                .map(|number| number.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(join_and(&limit_items(items(5), SHOWN)), "1, 2, 3, 4 and 5");
        assert_eq!(
            join_and(&limit_items(items(8), SHOWN)),
            "1, 2, 3, 4, 5 and 3 more"
        );
    }

    #[test]
    fn texts_share_a_subject_by_a_word_or_its_stem() {
        for (one, other, shared) in [
            (
                "explore_semantic_organization",
                "navigable semantic structure",
                true,
            ),
            ("architecture_finalized", "architectural review", true),
            ("RAG explanation", "contextual_librarian_spec", false),
            (
                "what should we do next?",
                "what should they do next?",
                false,
            ),
            ("pre", "prevents", false),
        ] {
            assert_eq!(share_subject(one, other), shared, "{one} / {other}");
        }
    }
}
