//! Escaping of untrusted text: no markup, no hidden characters.

use std::fmt::{self, Write};
use std::time::Duration;

use crate::base::clock::Timestamp;
use crate::base::text::is_deceptive;

/// Untrusted text as it is shown. Markup is escaped; control, invisible and reordering characters are
/// written out and marked. For the content of elements, never for attributes.
pub(super) struct EscapedText<'t>(pub(super) &'t str);

impl fmt::Display for EscapedText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' => f.write_char(c)?,
                c if is_deceptive(c) => write!(f, "<b class=\"x\">{}</b>", c.escape_default())?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Formats a timestamp to the millisecond: `2026-01-31 23:59:59.000`.
pub(super) fn format_time(at: Timestamp) -> String {
    let text = at.to_string();
    let date = text.get(..10).unwrap_or_default();
    let time = text.get(11..23).unwrap_or_default();
    format!("{date} {time}")
}

/// Formats a duration in a suitable unit.
pub(super) fn format_duration(span: Duration) -> String {
    let millis = span.as_millis();
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", (millis % 1000) / 100),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Formats a number with its noun: `1 event`, `2 events`.
pub(super) fn count_noun(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
