//! The summary of a conversation as a text for an editor: JSON, with comments in lines that begin with `#`.
//!
//! Characters that an editor would hide or reorder are written as escapes such as `\u202e`. The operator sees
//! them, and the text round-trips unchanged.

use std::fmt::Write as _;

use serde_json::Value;

use super::RejectedEdit;
use crate::base::json;
use crate::base::limits::MAX_SHAPE_ITEMS;
use crate::base::text::{is_deceptive, one_line};
use crate::memento::{ExternalName, SummaryShape};

/// Returns the summary as text, or the text typed before together with the stored summary.
pub(crate) fn text(
    thread: &ExternalName,
    kept: &SummaryShape,
    typed: Option<&RejectedEdit>,
) -> String {
    let mut text = format!(
        "# Summary of {}. Lines that start with # are ignored.\n\
         # Limits: arc 200 characters; each list {MAX_SHAPE_ITEMS} items of 160 characters.\n",
        one_line(thread.as_str())
    );
    match typed {
        None => text.push_str(&json(kept)),
        Some(typed) => {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "# Your text below was rejected: {}", typed.reason);
            text.push_str("# Current summary:\n");
            for line in json(kept).lines() {
                let _ = writeln!(text, "#   {line}");
            }
            text.push_str(&without_remarks(&typed.text));
        }
    }
    text
}

/// Parses a summary from a text.
///
/// # Errors
/// The reason with its line and column.
pub(crate) fn read(text: &str) -> Result<SummaryShape, String> {
    // Comment lines are blanked, not removed, so that the line of an error is the line in the editor.
    let blank = |line| if is_remark(line) { "" } else { line };
    let bare: Vec<&str> = text.lines().map(blank).collect();
    let value: Value = json::read(bare.join("\n").as_bytes()).map_err(|error| error.detail())?;
    SummaryShape::read_proposal(&value).map_err(|error| error.to_string())
}

fn is_remark(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

fn without_remarks(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !is_remark(line)).collect();
    lines.join("\n")
}

fn json(shape: &SummaryShape) -> String {
    let text = serde_json::to_string_pretty(shape).unwrap_or_default();
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_deceptive(c) {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(arc: &str) -> SummaryShape {
        SummaryShape {
            arc: arc.to_owned(),
            active: vec!["a\u{202e}b\n# c".to_owned(), "\u{e0001}".to_owned()],
            ..SummaryShape::default()
        }
    }

    #[test]
    fn a_summary_round_trips_through_the_editor_with_hidden_characters_escaped() {
        let kept = shape("one \"quoted\"");
        let text = text(&"t-\u{202e}1".parse().unwrap(), &kept, None);
        assert!(
            text.chars().all(|c| c == '\n' || !is_deceptive(c)),
            "{text}"
        );
        assert!(text.contains("a\\u202eb\\n# c"), "{text}");
        assert_eq!(read(&text), Ok(kept));
    }

    #[test]
    fn a_rejected_edit_returns_with_the_stored_summary_as_comments() {
        let typed = RejectedEdit {
            text: "# old remark\n{\"arc\": 1}".to_owned(),
            reason: "arc: is no text".to_owned(),
        };
        let text = text(&"t-1".parse().unwrap(), &shape("two"), Some(&typed));
        assert!(text.contains("rejected: arc: is no text"), "{text}");
        assert!(text.contains("#     \"arc\": \"two\""), "{text}");
        assert!(text.ends_with("\n{\"arc\": 1}"), "{text}");
        assert!(!text.contains("old remark"), "{text}");
    }

    #[test]
    fn an_invalid_summary_reports_the_location_of_the_error() {
        let refused = |text: &str| read(text).unwrap_err();
        assert!(
            refused("# x\n{").contains("line 2"),
            "{}",
            refused("# x\n{")
        );
        assert_eq!(refused("{\"arc\": \"\"}"), "arc: is empty");
        let items = vec!["x"; MAX_SHAPE_ITEMS + 1];
        let many = serde_json::json!({"arc": "a", "next": items}).to_string();
        assert!(refused(&many).contains("next"), "{}", refused(&many));
        assert!(refused("{\"arc\": \"a\", \"mood\": 1}").contains("mood"));
    }
}
