//! The screen as text: first its content, then its styles.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

/// Returns the rows of a buffer without trailing spaces.
pub(super) fn rows(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let row = |y| {
        let mut text = String::new();
        let mut x = area.left();
        while x < area.right() {
            let symbol = buffer[(x, y)].symbol();
            text.push_str(symbol);
            x += u16::try_from(symbol.width().max(1)).unwrap();
        }
        text.trim_end().to_owned()
    };
    (area.top()..area.bottom()).map(row).collect()
}

/// Returns the rows, then one line per row with its runs of style: `3: 1-12 cyan bold`.
pub(super) fn styled(buffer: &Buffer) -> String {
    let mut text = rows(buffer).join("\n");
    text.push_str("\n--- styles\n");
    for y in buffer.area.top()..buffer.area.bottom() {
        let mut runs: Vec<(u16, u16, String)> = Vec::new();
        for x in buffer.area.left()..buffer.area.right() {
            let style = style_words(&buffer[(x, y)]);
            match runs.last_mut() {
                Some((_, end, words)) if *end + 1 == x && *words == style => *end = x,
                _ if style.is_empty() => {}
                _ => runs.push((x, x, style)),
            }
        }
        if !runs.is_empty() {
            let runs: Vec<String> = runs
                .into_iter()
                .map(|(start, end, words)| format!("{start}-{end} {words}"))
                .collect();
            writeln!(text, "{y}: {}", runs.join(", ")).unwrap();
        }
    }
    text
}

fn style_words(cell: &Cell) -> String {
    let mut words = Vec::new();
    if cell.fg != Color::Reset {
        words.push(cell.fg.to_string().to_lowercase());
    }
    if cell.bg != Color::Reset {
        words.push(format!("on {}", cell.bg.to_string().to_lowercase()));
    }
    if cell.modifier.contains(Modifier::BOLD) {
        words.push("bold".to_owned());
    }
    if cell.modifier.contains(Modifier::REVERSED) {
        words.push("reverse".to_owned());
    }
    words.join(" ")
}
