//! The summary of a conversation as a text for an editor: JSON, with remarks in lines that begin with `#`.
//!
//! What an editor would hide or reorder is written as `\u202e`, so that whoever edits sees it, and it comes back
//! as it was.

use std::fmt::Write as _;

use serde_json::Value;

use super::Typed;
use crate::base::json;
use crate::base::limits::MAX_SHAPE_ITEMS;
use crate::base::text::{is_deceptive, one_line};
use crate::memento::{Name, Shape};

/// The text of a summary, or what was typed before with what is kept now beside it.
pub(crate) fn text(thread: &Name, kept: &Shape, typed: Option<&Typed>) -> String {
    let mut text = format!(
        "# The summary of {}. Lines that begin with # do not count.\n\
         # The arc has up to 200 characters; each list up to {MAX_SHAPE_ITEMS} items of up to 160.\n",
        one_line(thread.as_str())
    );
    match typed {
        None => text.push_str(&json(kept)),
        Some(typed) => {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "# Below is what you typed. It was not taken: {}",
                typed.why
            );
            text.push_str("# What is kept now:\n");
            for line in json(kept).lines() {
                let _ = writeln!(text, "#   {line}");
            }
            text.push_str(&without_remarks(&typed.text));
        }
    }
    text
}

/// The summary that a text says.
///
/// # Errors
/// When it is none, in words with the place.
pub(crate) fn read(text: &str) -> Result<Shape, String> {
    // The lines stay, so that the line of an error is the line in the editor.
    let blank = |line| if is_remark(line) { "" } else { line };
    let bare: Vec<&str> = text.lines().map(blank).collect();
    let value: Value = json::read(bare.join("\n").as_bytes()).map_err(|error| error.detail())?;
    Shape::proposed(&value).map_err(|it| it.to_string())
}

fn is_remark(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

fn without_remarks(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|it| !is_remark(it)).collect();
    lines.join("\n")
}

fn json(shape: &Shape) -> String {
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

    fn shape(arc: &str) -> Shape {
        Shape {
            arc: arc.to_owned(),
            active: vec!["a\u{202e}b\n# c".to_owned(), "\u{e0001}".to_owned()],
            ..Shape::default()
        }
    }

    #[test]
    fn a_summary_comes_back_as_it_was_and_hides_nothing_on_the_way() {
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
    fn what_was_typed_comes_back_beside_what_is_kept_now() {
        let typed = Typed {
            text: "# old remark\n{\"arc\": 1}".to_owned(),
            why: "arc: is no text".to_owned(),
        };
        let text = text(&"t-1".parse().unwrap(), &shape("two"), Some(&typed));
        assert!(text.contains("It was not taken: arc: is no text"), "{text}");
        assert!(text.contains("#     \"arc\": \"two\""), "{text}");
        assert!(text.ends_with("\n{\"arc\": 1}"), "{text}");
        assert!(!text.contains("old remark"), "{text}");
    }

    #[test]
    fn what_is_no_summary_says_where() {
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
