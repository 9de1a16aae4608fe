//! An agent whose words are meant for the terminal instead of its operator.

use serde_json::json;

use super::operator::{leave, open};
use super::terminal::{Terminal, View};
use super::workspace::{WIDE, Workspace, script};

/// Text that must never reach the terminal: commands it would obey, characters it would hide or reorder.
const PLANTED: [&str; 10] = [
    "\x1b]52;c;cHduZWQ=\x07",
    "\x1b]0;pwned",
    "\x1b]8;;http://pwned",
    "\x1b[2J\x1b[1;1Hpwned",
    "\x1b[?1000h",
    "\u{9b}31mpwned",
    "\u{202e}pwned",
    "\u{200b}pwned",
    "\rpwned",
    "\u{7}pwned",
];

/// Tells whether the panes of the screen are whole: every row between header and footer begins and ends
/// with a border.
fn panes_are_whole(view: &View, mut rows: std::ops::Range<u16>) -> bool {
    let last = WIDE.0 - 1;
    rows.all(|row| {
        matches!(view.cell(row, 0), "╭" | "│" | "╰")
            && matches!(view.cell(row, last), "╮" | "│" | "╯")
    })
}

/// The rows of the request as far as they are on screen.
pub(crate) fn request_pane(view: &View) -> Vec<String> {
    view.screen.rows(0, 52).skip(4).take(30).collect()
}

/// Asserts that nothing of it was written to the terminal so far.
#[track_caller]
fn assert_nothing_planted(terminal: &Terminal) {
    let raw = String::from_utf8(terminal.raw()).expect("text");
    for planted in PLANTED {
        assert!(!raw.contains(planted), "{planted:?} reached the terminal");
    }
    for hidden in ['\u{202e}', '\u{200b}', '\u{200d}', '\u{9b}'] {
        assert!(!raw.contains(hidden), "{hidden:?} reached the terminal");
    }
}

#[test]
fn hostile_text_is_escaped_and_never_interpreted() {
    let all = PLANTED.concat();
    let params = json!({
        "all": all,
        all.clone(): "as a name",
        "each": PLANTED,
        "long": (1000..3000).map(|n| n.to_string()).collect::<Vec<_>>().join(" "),
        "long_line": PLANTED.concat().repeat(60),
        "wide": "表示幅".repeat(200),
        "joined": "👩‍👩‍👧‍👦e\u{301}\u{301}\u{301}".repeat(20),
    });
    let agent = format!("{all}表表表");
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.demo(&script(&agent, params), WIDE);
    terminal.wait_until("the queue in its frame", |view| {
        view.shows("> [ ]  c-1 ") && panes_are_whole(view, 2..35)
    });
    open(&mut terminal);
    assert_nothing_planted(&terminal);
    // Through all of the request, page by page.
    let pages = 40;
    for _ in 0..pages {
        let (page, seen) = terminal.wait("the request", |view| {
            panes_are_whole(view, 3..35).then(|| (request_pane(view), view.shows("seen 100 %")))
        });
        if seen {
            break;
        }
        // One page at a time: what was never painted was not seen.
        terminal.keys("\x1b[6~");
        terminal.wait_until("another page", |view| request_pane(view) != page);
    }
    terminal.wait_for("seen 100 %");
    terminal.wait_for("hidden");
    terminal.esc();
    terminal.wait_for("> [ ]  c-1 ");
    terminal.keys("2");
    terminal.wait_until("the sessions in their frame", |view| {
        // The list is read from the disk: Enter opens nothing before a session is selected.
        view.shows(" live ") && panes_are_whole(view, 3..35)
    });
    terminal.enter();
    terminal.wait_until("the record in its frame", |view| {
        view.shows("action requested") && panes_are_whole(view, 3..35)
    });
    terminal.keys("1");
    terminal.wait_for("> [ ]  c-1 ");
    leave(&mut terminal);
    terminal.assert_restored();

    assert_nothing_planted(&terminal);
    workspace.assert_undecided();
    workspace.assert_sound();
}
