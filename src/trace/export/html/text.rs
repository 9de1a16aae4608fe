//! Untrusted text as the report shows it, and times, durations and counts in words.

use std::time::Duration;

use maud::{Render, html};

use crate::base::clock::Timestamp;
use crate::base::text::is_deceptive;

/// Untrusted text as it is shown. The template escapes markup; control, invisible and reordering characters
/// are written out and marked.
///
/// For the content of elements only: the marks are elements.
pub(super) struct VisibleText<'t>(pub(super) &'t str);

impl Render for VisibleText<'_> {
    fn render_to(&self, buffer: &mut String) {
        let mut rest = self.0;
        while let Some((start, hidden)) = rest.char_indices().find(|(_, c)| is_hidden(*c)) {
            let (shown, tail) = rest.split_at(start);
            shown.render_to(buffer);
            html! { b class="x" { (hidden.escape_default()) } }.render_to(buffer);
            rest = tail.get(hidden.len_utf8()..).unwrap_or_default();
        }
        rest.render_to(buffer);
    }
}

/// Returns true if a character would hide, reorder or change the text around it.
fn is_hidden(c: char) -> bool {
    c != '\n' && is_deceptive(c)
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
