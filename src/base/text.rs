//! Text that came from outside, made safe to show: nothing hidden, nothing that moves the cursor.

/// What [`visible`] made of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The text with every character that would not show as itself written out, as in `\u{202e}`.
    pub text: String,
    /// How many characters were written out.
    pub escaped: usize,
}

/// Writes out every character that a terminal would obey, hide or reorder. Line feeds stay where
/// `lines` keeps them.
#[must_use]
pub fn visible(text: &str, lines: Lines) -> Visible {
    let mut shown = String::with_capacity(text.len());
    let mut escaped = 0;
    for c in text.chars() {
        if c == '\n' && lines == Lines::Keep {
            shown.push(c);
        } else if is_deceptive(c) {
            escaped += 1;
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Visible {
        text: shown,
        escaped,
    }
}

/// What happens to line feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// They break the line.
    Keep,
    /// They are written out as `\n`: for text that has one line on the screen.
    Escape,
}

/// One line of text from outside, safe to show.
#[must_use]
pub fn one_line(text: &str) -> String {
    visible(text, Lines::Escape).text
}

/// Whether a character would be obeyed, hidden or reordered by a terminal instead of shown: control,
/// format (bidirectional, zero-width), separator, tag, variation, filler and private-use characters.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1345f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_are_written_out_and_counted() {
        let hostile = "dup\u{202e} \x1b[2Jx\u{200b}\r";
        let shown = visible(hostile, Lines::Keep);
        assert_eq!(shown.text, "dup\\u{202e} \\u{1b}[2Jx\\u{200b}\\r");
        assert_eq!(shown.escaped, 4);
    }

    #[test]
    fn ordinary_text_of_any_script_stays() {
        let plain = "naïve 日本語 שלום e\u{301} 🙂";
        assert_eq!(one_line(plain), plain);
        assert_eq!(visible("a\nb", Lines::Keep).text, "a\nb");
        assert_eq!(one_line("a\nb"), "a\\nb");
    }

    proptest! {
        #[test]
        fn nothing_deceptive_is_left(text in any::<String>()) {
            prop_assert!(!one_line(&text).chars().any(is_deceptive));
        }
    }
}
