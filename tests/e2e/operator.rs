//! What an operator does over and over.

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
pub(crate) fn challenge(terminal: &Terminal) -> String {
    terminal.wait("the hash to type", |view| {
        let text = view.text();
        let (_, after) = text.split_once("Type ")?;
        let (hash, _) = after.split_once(", the first 4 of the request hash")?;
        Some(hash.to_owned())
    })
}

/// Quits while something is held: the console asks first.
pub(crate) fn leave(terminal: &mut Terminal) {
    terminal.keys("q");
    terminal.wait_for("Leave the console");
    terminal.tabs(1);
    terminal.enter();
    assert_eq!(terminal.wait_exit(), 0);
}
