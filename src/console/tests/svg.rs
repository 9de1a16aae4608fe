//! SVG pictures of the screens for the README, made from the painted cells.
//!
//! `UPDATE_PICTURES=1 cargo test --lib pictures` writes them again. Without it the test checks that they are
//! up to date.

use std::fmt::Write as _;
use std::path::PathBuf;

use ratatui::buffer::{Buffer, Cell};
use ratatui::crossterm::event::KeyCode;
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

use super::archive::Archive;
use super::fixture::busy;
use super::test_console::TestConsole;

/// Size of a cell in pixels.
const WIDTH: f32 = 8.4;
const HEIGHT: f32 = 16.4;
const MARGIN: f32 = 14.0;

const PAPER: &str = "#16181d";
const INK: &str = "#d6d9de";

fn colour(colour: Color, default: &'static str) -> &'static str {
    match colour {
        Color::Black => "#16181d",
        Color::Red | Color::LightRed => "#f47067",
        Color::Green | Color::LightGreen => "#7ec37f",
        Color::Yellow | Color::LightYellow => "#e3b35b",
        Color::Blue | Color::LightBlue => "#6cb0f5",
        Color::Magenta | Color::LightMagenta => "#d0a0f0",
        Color::Cyan | Color::LightCyan => "#5fc9d6",
        Color::Gray => "#a7adb7",
        Color::DarkGray => "#6b727e",
        Color::White => "#f2f4f7",
        _ => default,
    }
}

/// Returns the foreground, background and weight of a cell.
fn style(cell: &Cell) -> (&'static str, &'static str, &'static str) {
    let (mut ink, mut paper) = (colour(cell.fg, INK), colour(cell.bg, PAPER));
    if cell.modifier.contains(Modifier::REVERSED) {
        (ink, paper) = (paper, ink);
    }
    let bold = cell.modifier.contains(Modifier::BOLD);
    (ink, paper, if bold { "bold" } else { "normal" })
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

fn pixels(cells: u16, each: f32) -> f32 {
    MARGIN + f32::from(cells) * each
}

/// Converts a buffer to SVG. A run of cells with the same style becomes one text.
fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (width, height) = (
        pixels(area.width, WIDTH) + MARGIN,
        pixels(area.height, HEIGHT) + MARGIN,
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" \
         font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"{PAPER}\"/>\n"
    );
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let appearance = style(&buffer[(x, y)]);
            let (start, mut text) = (x, String::new());
            while x < area.right() && style(&buffer[(x, y)]) == appearance {
                let symbol = buffer[(x, y)].symbol();
                text.push_str(symbol);
                x += u16::try_from(symbol.width().max(1)).unwrap();
            }
            run(&mut out, (start, x - start, y), &text, appearance);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn run(out: &mut String, place: (u16, u16, u16), text: &str, appearance: (&str, &str, &str)) {
    let (start, cells, y) = place;
    let (ink, paper, weight) = appearance;
    let (left, top) = (pixels(start, WIDTH), pixels(y, HEIGHT));
    let width = f32::from(cells) * WIDTH;
    if paper != PAPER {
        writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{paper}\"/>"
        )
        .unwrap();
    }
    let weight = if weight == "bold" {
        " font-weight=\"bold\""
    } else {
        ""
    };
    let base = top + HEIGHT * 0.74;
    // SVG renderers collapse consecutive spaces, so each word gets its own position.
    for (before, word) in words(text) {
        let left = left + f32::from(before) * WIDTH;
        let width = f32::from(u16::try_from(word.width()).unwrap()) * WIDTH;
        writeln!(
            out,
            "<text x=\"{left:.1}\" y=\"{base:.1}\" textLength=\"{width:.1}\" \
             lengthAdjust=\"spacingAndGlyphs\" fill=\"{ink}\"{weight}>{}</text>",
            escaped(word)
        )
        .unwrap();
    }
}

/// Returns the words of a text, each with the number of cells before it.
fn words(text: &str) -> Vec<(u16, &str)> {
    let mut words = Vec::new();
    let mut cells = 0;
    for word in text.split(' ') {
        let width = u16::try_from(word.width()).unwrap();
        if width > 0 {
            words.push((cells, word));
        }
        cells += width + 1;
    }
    words
}

fn is_fresh(name: &str, console: &TestConsole) {
    let file: PathBuf = [env!("CARGO_MANIFEST_DIR"), "assets", "pictures", name]
        .iter()
        .collect();
    let painted = svg(console.buffer());
    if std::env::var_os("UPDATE_PICTURES").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &painted).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == painted,
        "assets/pictures/{name} is not what is painted: UPDATE_PICTURES=1 cargo test --lib pictures"
    );
}

#[test]
fn pictures_of_the_queue_and_its_dialog_are_up_to_date() {
    let mut console = TestConsole::new(busy(), (120, 36));
    console.press(KeyCode::Down);
    is_fresh("queue.svg", &console);
    console.open_gate("c-121");
    console.type_text("Dup of 4398, customer confirmed by mail, reason: merge");
    is_fresh("dialog.svg", &console);
}

#[test]
fn pictures_of_the_record_are_up_to_date() {
    let archive = Archive::sample();
    let mut console = TestConsole::new(busy(), (120, 36));
    archive.open(&mut console, "s-09");
    console.message(archive.checked(2));
    archive.keys(&mut console, "jjjjjjjjj");
    is_fresh("trace.svg", &console);
}

#[test]
fn pictures_show_the_screen_text_with_markup_escaped() {
    use ratatui::layout::Rect;
    let mut buffer = Buffer::empty(Rect::new(0, 0, 8, 1));
    buffer.set_string(
        0,
        0,
        "<a&b> 日",
        ratatui::style::Style::default().fg(Color::Red),
    );
    let painted = svg(&buffer);
    assert!(painted.contains(">&lt;a&amp;b&gt;</text>"), "{painted}");
    assert!(
        painted.contains("x=\"64.4\"") && painted.contains(">日</text>"),
        "{painted}"
    );
}
