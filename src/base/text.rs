//! Sanitization of external text for display: no hidden characters, no cursor movement.

/// The result of [`sanitize`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SanitizedText {
    /// The text with every character that would not show as itself escaped, as in `\u{202e}`.
    pub text: String,
    /// Number of escaped characters.
    pub escaped: usize,
}

/// Escapes every character that a terminal would obey, hide or reorder. `lines` decides about line feeds.
#[must_use]
pub fn sanitize(text: &str, lines: LineFeeds) -> SanitizedText {
    let mut shown = String::with_capacity(text.len());
    let mut escaped = 0;
    for c in text.chars() {
        if c == '\n' && lines == LineFeeds::Keep {
            shown.push(c);
        } else if is_deceptive(c) {
            escaped += 1;
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    SanitizedText {
        text: shown,
        escaped,
    }
}

/// The handling of line feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFeeds {
    /// Line feeds stay.
    Keep,
    /// Line feeds are escaped as `\n`, for text that has one line on the screen.
    Escape,
}

/// Returns external text on one line, safe to show.
#[must_use]
pub fn one_line(text: &str) -> String {
    sanitize(text, LineFeeds::Escape).text
}

/// Ranges of characters that a terminal would obey, hide or reorder instead of show, in addition to control
/// characters.
///
/// The ranges are sorted and inclusive. They cover all of Unicode's `Default_Ignorable_Code_Point` and
/// `Bidi_Control`.
const DECEPTIVE: [(char, char); 23] = [
    ('\u{00ad}', '\u{00ad}'),     // soft hyphen
    ('\u{034f}', '\u{034f}'),     // grapheme joiner
    ('\u{061c}', '\u{061c}'),     // Arabic letter mark
    ('\u{115f}', '\u{1160}'),     // Hangul fillers
    ('\u{17b4}', '\u{17b5}'),     // Khmer inherent vowels
    ('\u{180b}', '\u{180f}'),     // Mongolian variation selectors and vowel separator
    ('\u{200b}', '\u{200f}'),     // zero width, direction marks
    ('\u{2028}', '\u{202e}'),     // separators, embeddings, overrides
    ('\u{2060}', '\u{206f}'),     // invisible operators, isolates
    ('\u{3164}', '\u{3164}'),     // Hangul filler
    ('\u{e000}', '\u{f8ff}'),     // private use
    ('\u{fe00}', '\u{fe0f}'),     // variation selectors
    ('\u{feff}', '\u{feff}'),     // byte order mark
    ('\u{ffa0}', '\u{ffa0}'),     // halfwidth Hangul filler
    ('\u{fff0}', '\u{fffb}'),     // specials, interlinear annotation
    ('\u{13430}', '\u{1345f}'),   // Egyptian format controls
    ('\u{1bca0}', '\u{1bca3}'),   // shorthand format controls
    ('\u{1d173}', '\u{1d17a}'),   // musical format controls
    ('\u{e0000}', '\u{e0fff}'),   // tags, variation selectors
    ('\u{f0000}', '\u{ffffd}'),   // private use
    ('\u{ffffe}', '\u{fffff}'),   // noncharacters
    ('\u{100000}', '\u{10fffd}'), // private use
    ('\u{10fffe}', '\u{10ffff}'), // noncharacters
];

/// Returns true if a terminal would obey, hide or reorder a character instead of showing it.
///
/// These are control, format (bidirectional, zero-width), separator, tag, variation, filler and private-use
/// characters.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let ended = DECEPTIVE.partition_point(|(_, last)| *last < c);
    let range = DECEPTIVE.get(ended);
    c.is_control() || range.is_some_and(|(first, _)| *first <= c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_counted() {
        let hostile = "dup\u{202e} \x1b[2Jx\u{200b}\r";
        let shown = sanitize(hostile, LineFeeds::Keep);
        assert_eq!(shown.text, "dup\\u{202e} \\u{1b}[2Jx\\u{200b}\\r");
        assert_eq!(shown.escaped, 4);
    }

    #[test]
    fn ordinary_text_of_any_script_is_unchanged() {
        let plain = "naïve 日本語 שלום e\u{301} 🙂";
        assert_eq!(one_line(plain), plain);
        assert_eq!(sanitize("a\nb", LineFeeds::Keep).text, "a\nb");
        assert_eq!(one_line("a\nb"), "a\\nb");
    }

    fn in_table(c: char) -> bool {
        let mut ranges = DECEPTIVE.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&c))
    }

    fn neighbours((first, last): (char, char)) -> Vec<char> {
        let below = u32::from(first).checked_sub(1).and_then(char::from_u32);
        let above = char::from_u32(u32::from(last) + 1);
        below.into_iter().chain(above).collect()
    }

    #[test]
    fn both_ends_of_every_range_are_escaped_and_their_neighbours_are_not() {
        let control = [('\0', '\u{1f}'), ('\u{7f}', '\u{9f}')];
        for (first, last) in DECEPTIVE.into_iter().chain(control) {
            assert!(first <= last);
            for c in [first, last] {
                assert!(is_deceptive(c), "{c:?}");
                assert_eq!(
                    sanitize(&c.to_string(), LineFeeds::Escape).escaped,
                    1,
                    "{c:?}"
                );
            }
            for c in neighbours((first, last)) {
                let deceptive = in_table(c) || c.is_control();
                assert_eq!(is_deceptive(c), deceptive, "{c:?}");
            }
        }
        assert!(DECEPTIVE.is_sorted_by(|one, other| one.1 < other.0));
        // Neighbours that are not in another range, by name.
        for c in "\u{20}\u{7e}\u{a0}\u{ac}\u{ae}\u{34e}\u{350}\u{61b}\u{61d}\u{115e}\u{1161}\u{17b3}\u{17b6}\
                  \u{180a}\u{1810}\u{200a}\u{2010}\u{2027}\u{202f}\u{205f}\u{2070}\u{3163}\u{3165}\u{d7ff}\
                  \u{f900}\u{fdff}\u{fe10}\u{fefe}\u{ff00}\u{ff9f}\u{ffa1}\u{ffef}\u{fffc}\u{1342f}\
                  \u{13460}\u{1bc9f}\u{1bca4}\u{1d172}\u{1d17b}\u{dffff}\u{e1000}\u{effff}"
            .chars()
        {
            assert!(!is_deceptive(c), "{c:?}");
        }
    }

    /// The properties come from the `regex` crate, whose tables are built from the Unicode database.
    #[test]
    fn table_covers_all_ignorable_and_bidirectional_characters_of_unicode() {
        let deceptive = regex::Regex::new(
            r"^[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cc}\p{Zl}\p{Zp}\p{Co}]$",
        );
        let deceptive = deceptive.unwrap();
        // Format characters that are visible: signs around numbers and names.
        let format = regex::Regex::new(r"^\p{Cf}$").unwrap();
        let shown = [
            ('\u{600}', '\u{605}'),
            ('\u{6dd}', '\u{6dd}'),
            ('\u{70f}', '\u{70f}'),
            ('\u{890}', '\u{891}'),
            ('\u{8e2}', '\u{8e2}'),
            ('\u{110bd}', '\u{110bd}'),
            ('\u{110cd}', '\u{110cd}'),
        ];
        let is_shown = |c: char| {
            shown
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&c))
        };
        // Merged with controls of the same block, or never assigned as characters.
        let beside = |c: char| matches!(c, '\u{13430}'..='\u{1345f}' | '\u{ffffe}'.. | '\u{fff0}'..='\u{fffb}');
        let mut text = [0; 4];
        for c in '\0'..=char::MAX {
            let one = c.encode_utf8(&mut text);
            let wanted = deceptive.is_match(one) || c == '\n';
            let formats = format.is_match(one) && !is_shown(c);
            if wanted || formats {
                assert!(is_deceptive(c), "{c:?} is missing");
            } else if is_deceptive(c) {
                assert!(beside(c), "{c:?} should be shown");
            }
        }
    }

    proptest! {
        #[test]
        fn visible_text_contains_no_deceptive_character(text in any::<String>()) {
            prop_assert!(!one_line(&text).chars().any(is_deceptive));
        }
    }
}
