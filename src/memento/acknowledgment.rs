//! Detection of messages that only acknowledge.

/// Words that acknowledge and have no other content.
const ACKNOWLEDGING: [&str; 15] = [
    "ok", "okay", "kk", "thx", "thanks", "got", "it", "sounds", "good", "cool", "yep", "yup",
    "sure", "all", "right",
];

/// Returns true if every word of a message acknowledges. A message without words does not.
#[must_use]
pub fn is_ack_only(message: &str) -> bool {
    let lower = message.to_lowercase();
    // Punctuation separates words: `ok,thanks` is two words.
    let mut words = lower
        .split(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | '!' | '?'))
        .filter(|word| !word.is_empty())
        .peekable();
    words.peek().is_some() && words.all(|word| ACKNOWLEDGING.contains(&word))
}
