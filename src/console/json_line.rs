//! Line of pretty-printed JSON with a styled key. Only the style differs: every character stays in
//! place.

use ratatui::text::{Line, Span};

use super::theme::{Appearance, Meaning};

/// Renders the line, with its key styled as a label.
pub(crate) fn line(text: &str, appearance: Appearance) -> Line<'static> {
    match key_end(text) {
        Some(end) => {
            let (key, value) = text.split_at(end);
            Line::from(vec![
                Span::styled(key.to_owned(), appearance.style(Meaning::Label)),
                Span::raw(value.to_owned()),
            ])
        }
        None => Line::from(text.to_owned()),
    }
}

/// Returns the offset after the key, if the line begins with one.
fn key_end(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip_while(|(_, c)| *c == ' ');
    chars.next().filter(|(_, c)| *c == '"')?;
    let mut escaped = false;
    for (at, c) in chars {
        match c {
            '\\' if !escaped => escaped = true,
            '"' if !escaped => {
                let (_, after) = text.split_at(at + 1);
                return after.starts_with(": ").then_some(at + 1);
            }
            _ => escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_json_key_is_styled() {
        let key = |text: &str| key_end(text).map(|end| text.split_at(end).0.to_owned());
        assert_eq!(key("  \"note\": \"x\""), Some("  \"note\"".to_owned()));
        assert_eq!(key("\"a\\\": b\": 1"), Some("\"a\\\": b\"".to_owned()));
        for value in ["  \"a: b\"", "\"x\\\": y\"", "{", "12", "", "\"open"] {
            assert_eq!(key(value), None, "{value}");
        }
    }
}
