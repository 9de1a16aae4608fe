//! Whether a message says nothing but "understood".

/// Words that acknowledge and carry nothing else.
const ACKNOWLEDGING: [&str; 15] = [
    "ok", "okay", "kk", "thx", "thanks", "got", "it", "sounds", "good", "cool", "yep", "yup",
    "sure", "all", "right",
];

/// Whether every word of a message acknowledges. One without any word does not.
#[must_use]
pub fn is_ack_only(message: &str) -> bool {
    let lower = message.to_lowercase();
    // A mark parts words: `ok,thanks` is two of them.
    let mut words = lower
        .split(|it: char| it.is_whitespace() || matches!(it, '.' | ',' | '!' | '?'))
        .filter(|word| !word.is_empty())
        .peekable();
    words.peek().is_some() && words.all(|word| ACKNOWLEDGING.contains(&word))
}
