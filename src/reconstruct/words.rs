//! Identifiers as people read them.

/// `mid_design` as `Mid design`. What has blanks or marks of its own is meant as it is written.
pub(super) fn humanised(text: &str) -> String {
    capitalised(&lowered(text))
}

/// The same, within a sentence.
pub(super) fn lowered(text: &str) -> String {
    if text.contains(char::is_whitespace) {
        return text.to_owned();
    }
    let words = text.split('_').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// With its first letter large.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// With its first letter small, unless the word is a name or all capitals.
pub(super) fn decapitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    let second = letters.next();
    if second.is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    let first = first.into_iter().flat_map(char::to_lowercase);
    first.chain(text.chars().skip(1)).collect()
}

/// As a sentence: with a mark at its end.
pub(super) fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) {
        return text.to_owned();
    }
    format!("{text}.")
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn joined(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// 60 as `60%`, 62.5 as `62.5%`.
pub(super) fn percent(number: f64) -> String {
    format!("{}%", (number * 10.0).round() / 10.0)
}
