//! Key sequences that operators repeat.

use super::terminal::Terminal;

/// Opens the selected request and waits until its keys count.
pub(crate) fn open(terminal: &mut Terminal) {
    terminal.enter();
    terminal.wait_for("READY");
}

/// Waits until every key so far was looked at: the help opens after them, and closes again.
pub(crate) fn catch_up(terminal: &mut Terminal) {
    terminal.f1();
    terminal.wait_for("type to search");
    terminal.esc();
    terminal.wait_without("type to search");
}

/// The hash characters that the review asks for.
pub(crate) fn challenge(terminal: &mut Terminal) -> String {
    read_review(terminal);
    terminal.wait("the hash to type", |view| {
        let text = view.text();
        let (_, after) = text.split_once("To confirm, type ")?;
        let (hash, _) = after.split_once(" (request hash)")?;
        Some(hash.to_owned())
    })
}

/// Reads all that will be written, page by page: nothing passes before.
pub(crate) fn read_review(terminal: &mut Terminal) {
    terminal.wait_for("Review: what will be written");
    // Without the clock and the time spent, which move by themselves.
    let page = |text: &str| -> Vec<String> {
        let rows = text.lines().skip(3).filter(|row| !row.contains("so far"));
        rows.map(str::to_owned).collect()
    };
    for _ in 0..20 {
        let text = terminal.text();
        if !text.contains("scroll down first") {
            return;
        }
        terminal.keys("\x1b[6~");
        terminal.wait_until("another page", |view| page(&view.text()) != page(&text));
    }
    panic!("the review has no end: {}", terminal.text());
}

/// Quits while something is held: the console asks first.
pub(crate) fn leave(terminal: &mut Terminal) {
    terminal.keys("q");
    terminal.wait_for("Quit the console");
    terminal.tabs(1);
    terminal.enter();
    assert_eq!(terminal.wait_exit(), 0);
}
