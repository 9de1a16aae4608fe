//! Text editing: the effect of keys and pastes.
//!
//! Contract: one key press deletes or passes a whole character as users see it, never half of one.
//! Characters that hide or reorder text or move the cursor are never inserted. No text grows past the
//! maximum answer length.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Style;
use ratatui_textarea::{CursorMove, TextArea, WrapMode};
use unicode_segmentation::UnicodeSegmentation;

use crate::base::limits::MAX_ANSWER_CHARS;
use crate::base::text::is_deceptive;
use crate::console::keymap::{KeyAction, KeyScope, find_action};
use crate::console::text_cells::coordinate;

/// Maximum number of changes that can be undone.
const MOST_UNDOS: usize = 500;

/// Creates an empty editor.
pub(crate) fn editor() -> TextArea<'static> {
    let mut area = TextArea::default();
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_line_style(Style::new());
    area.set_max_histories(MOST_UNDOS);
    area
}

/// Creates an empty editor with line numbers, so that an error can be found by its line.
pub(crate) fn numbered_editor() -> TextArea<'static> {
    let mut area = editor();
    area.set_line_number_style(Style::new());
    area
}

/// Returns the text of an editor.
pub(crate) fn text_of(area: &TextArea<'static>) -> String {
    area.lines().join("\n")
}

/// Edits a text with several lines.
pub(crate) fn edit(area: &mut TextArea<'static>, key: KeyEvent) {
    // Keys with Alt never reach an editor.
    if key.modifiers.contains(KeyModifiers::ALT) {
        return;
    }
    let action = find_action(KeyScope::Text, key);
    if action == Some(KeyAction::Undo) {
        area.undo();
        return;
    }
    if action == Some(KeyAction::Redo) {
        area.redo();
        return;
    }
    let plain = !key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char(c) if plain && (is_deceptive(c) || is_full(area)) => {}
        KeyCode::Enter if is_full(area) => {}
        KeyCode::Backspace => delete_before(area),
        KeyCode::Char('h') if !plain => delete_before(area),
        KeyCode::Delete => delete_after(area),
        KeyCode::Char('d') if !plain => delete_after(area),
        KeyCode::Left if key.modifiers.is_empty() => go_back(area),
        KeyCode::Right if key.modifiers.is_empty() => move_cursor_forward(area),
        _ => {
            area.input(key);
        }
    }
}

/// Edits a text with one line: line breaks are ignored.
pub(crate) fn edit_line(area: &mut TextArea<'static>, key: KeyEvent) {
    let breaks = match key.code {
        KeyCode::Enter => true,
        KeyCode::Char('m') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    };
    if !breaks {
        edit(area, key);
    }
}

/// Returns true if a character can be part of a number.
pub(crate) fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')
}

/// Pastes a text. Characters that hide or reorder text or move the cursor are removed; excess length
/// is cut.
pub(crate) fn paste(area: &mut TextArea<'static>, text: &str) {
    area.insert_str(clean(text, remaining_chars(area)));
}

/// Pastes into a text with one line.
pub(crate) fn paste_line(area: &mut TextArea<'static>, text: &str) {
    paste(area, text.lines().next().unwrap_or_default());
}

/// Replaces the whole text. Undo restores the text before.
pub(crate) fn replace(area: &mut TextArea<'static>, text: &str) {
    let text = clean(text, MAX_ANSWER_CHARS);
    area.select_all();
    if text.is_empty() {
        area.cut();
    } else {
        area.insert_str(text);
    }
}

/// Counts the characters of a text that would be removed.
pub(crate) fn count_removed_chars(text: &str) -> usize {
    let unified = normalise(text);
    let kept = clean(text, MAX_ANSWER_CHARS).chars().count();
    unified.chars().count().saturating_sub(kept)
}

/// Normalises line endings and replaces tabs by spaces.
fn normalise(text: &str) -> String {
    text.replace("\r\n", "\n")
        .replace('\r', "\n")
        .replace('\t', "    ")
}

fn clean(text: &str, room: usize) -> String {
    let unified = normalise(text);
    let fine = unified.chars().filter(|&c| c == '\n' || !is_deceptive(c));
    fine.take(room).collect()
}

fn remaining_chars(area: &TextArea<'static>) -> usize {
    MAX_ANSWER_CHARS.saturating_sub(text_of(area).chars().count())
}

fn is_full(area: &TextArea<'static>) -> bool {
    !area.is_selecting() && remaining_chars(area) == 0
}

/// Moves the cursor back by one character as users see it.
fn go_back(area: &mut TextArea<'static>) {
    area.cancel_selection();
    match chars_before_cursor(area) {
        0 => area.move_cursor(CursorMove::Back),
        chars => {
            let column = area.cursor().1.saturating_sub(chars);
            jump(area, column);
        }
    }
}

/// Moves the cursor forward by one character as users see it.
fn move_cursor_forward(area: &mut TextArea<'static>) {
    area.cancel_selection();
    match chars_after_cursor(area) {
        0 => area.move_cursor(CursorMove::Forward),
        chars => {
            let column = area.cursor().1 + chars;
            jump(area, column);
        }
    }
}

/// Moves the cursor to a column, counted in code points. Single steps would not work: they count
/// cells, and a combining accent has none.
fn jump(area: &mut TextArea<'static>, column: usize) {
    let row = area.cursor().0;
    area.move_cursor(CursorMove::Jump(coordinate(row), coordinate(column)));
}

fn delete_before(area: &mut TextArea<'static>) {
    let chars = chars_before_cursor(area);
    if area.is_selecting() || chars <= 1 {
        area.delete_char();
        return;
    }
    // In one piece, so that one undo restores it.
    go_back(area);
    area.delete_str(chars);
}

fn delete_after(area: &mut TextArea<'static>) {
    let chars = chars_after_cursor(area);
    if area.is_selecting() || chars <= 1 {
        area.delete_next_char();
        return;
    }
    area.delete_str(chars);
}

/// Counts the code points of the character before the cursor; 0 at the start of a line.
fn chars_before_cursor(area: &TextArea<'static>) -> usize {
    let (line, column) = line(area);
    let head: String = line.chars().take(column).collect();
    let last = head.graphemes(true).next_back();
    last.map_or(0, |last| last.chars().count())
}

/// Counts the code points of the character after the cursor; 0 at the end of a line.
fn chars_after_cursor(area: &TextArea<'static>) -> usize {
    let (line, column) = line(area);
    let tail: String = line.chars().skip(column).collect();
    let first = tail.graphemes(true).next();
    first.map_or(0, |first| first.chars().count())
}

/// Returns the cursor's line, and the number of code points before the cursor.
fn line<'a>(area: &'a TextArea<'static>) -> (&'a str, usize) {
    let cursor = area.cursor();
    let line = area.lines().get(cursor.0).map_or("", String::as_str);
    (line, cursor.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(area: &mut TextArea<'static>, code: KeyCode) {
        edit(area, KeyEvent::new(code, KeyModifiers::NONE));
    }

    fn ctrl(area: &mut TextArea<'static>, letter: char) {
        edit(
            area,
            KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL),
        );
    }

    /// Multi-code-point characters: a combining accent, a skin tone, a flag, a syllable of three
    /// parts.
    const CLUSTERS: [&str; 4] = ["e\u{301}", "👍\u{1f3fd}", "🇩🇪", "\u{1112}\u{1161}\u{11ab}"];

    #[test]
    fn a_multi_code_point_character_is_deleted_and_restored_as_one() {
        for cluster in CLUSTERS {
            let mut area = editor();
            paste(&mut area, &format!("a{cluster}b"));
            press(&mut area, KeyCode::Backspace);
            press(&mut area, KeyCode::Backspace);
            assert_eq!(text_of(&area), "a", "{cluster}");
            ctrl(&mut area, 'u');
            assert_eq!(text_of(&area), format!("a{cluster}"), "one undo");
            ctrl(&mut area, 'r');
            assert_eq!(text_of(&area), "a", "one redo");
            ctrl(&mut area, 'u');
            press(&mut area, KeyCode::Home);
            press(&mut area, KeyCode::Right);
            press(&mut area, KeyCode::Delete);
            assert_eq!(text_of(&area), "a", "{cluster} by Delete");
        }
    }

    #[test]
    fn the_cursor_moves_over_a_multi_code_point_character_as_one() {
        for cluster in CLUSTERS {
            let mut area = editor();
            paste(&mut area, &format!("a{cluster}"));
            press(&mut area, KeyCode::Left);
            press(&mut area, KeyCode::Char('x'));
            assert_eq!(text_of(&area), format!("ax{cluster}"));
            press(&mut area, KeyCode::Right);
            press(&mut area, KeyCode::Char('y'));
            assert_eq!(text_of(&area), format!("ax{cluster}y"));
        }
    }

    #[test]
    fn backspace_at_a_line_start_joins_two_lines() {
        let mut area = editor();
        paste(&mut area, "a\r\nb\tc");
        assert_eq!(text_of(&area), "a\nb    c");
        press(&mut area, KeyCode::Home);
        press(&mut area, KeyCode::Backspace);
        assert_eq!(text_of(&area), "ab    c");
    }

    #[test]
    fn an_answer_never_grows_past_the_maximum_length() {
        let mut area = editor();
        paste(&mut area, &"x".repeat(MAX_ANSWER_CHARS + 5));
        for code in [KeyCode::Char('y'), KeyCode::Enter] {
            press(&mut area, code);
        }
        assert_eq!(text_of(&area).len(), MAX_ANSWER_CHARS);
    }

    #[test]
    fn replace_swaps_the_whole_text_and_can_be_undone() {
        let mut area = editor();
        paste(&mut area, "one\ntwo");
        replace(&mut area, "three\u{202e}\r\nfour");
        assert_eq!(text_of(&area), "three\nfour");
        assert_eq!(count_removed_chars("three\u{202e}\r\nfour"), 1);
        while text_of(&area) != "one\ntwo" {
            assert!(area.undo());
        }
        replace(&mut area, "");
        assert_eq!(text_of(&area), "");
    }
}
