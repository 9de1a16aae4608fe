//! Terminals of other sizes.

use super::operator::open;
use super::terminal::View;
use super::workspace::{WIDE, Workspace, delete_script};

/// Tells whether an enclosing border is whole: corners, and a bar at both ends of every row between.
fn is_framed(view: &View, top: u16) -> bool {
    let (rows, columns) = view.screen.size();
    let last = columns.get() - 1;
    let bottom = (top..rows.get()).find(|row| view.cell(*row, 0) == "╰");
    bottom.is_some_and(|bottom| {
        view.cell(top, 0) == "╭"
            && view.cell(top, last) == "╮"
            && view.cell(bottom, last) == "╯"
            && (top + 1..bottom).all(|row| view.cell(row, 0) == "│" && view.cell(row, last) == "│")
    })
}

#[test]
fn too_small_terminal_shows_a_message_and_ignores_keys() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    terminal.resize((40, 10));
    terminal.wait_for("needs 60x18, is 40x10");
    terminal.wait_for("1 request held; deciding is disabled");
    // The last key has it painted anew: what was typed before was looked at by then.
    let painted = |view: &View| Some(view.written("terminal too small"));
    let before = terminal.wait("what was painted so far", painted);
    terminal.keys("d2\r\t\t\runderstood\r\x0c");
    terminal.wait_until("it was painted anew", |view| painted(view) > Some(before));
    terminal.resize(WIDE);
    terminal.wait_until("the queue in its frame", |view| {
        view.shows("> [ ]  c-1 ") && view.shows("Held requests") && is_framed(view, 2)
    });
    workspace.assert_undecided();
    open(&mut terminal);
}

#[test]
fn requests_can_be_decided_in_a_terminal_of_80x24() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.demo(&delete_script(), (80, 24));
    terminal.wait_until("the queue in its frame", |view| {
        view.shows("> c-1 ") && is_framed(view, 2)
    });
    terminal.keys("d");
    terminal.wait_for("READY");
    terminal.keys("not today");
    terminal.wait_for("not today");
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("c-1 DENIED and recorded");
    terminal.wait_for("held 0");
    workspace.assert_sound();
}

/// A key that comes together with another size is not kept until the next key: it would take effect
/// on what is on the screen by then.
#[test]
fn a_key_pressed_while_the_size_changes_counts_at_once() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    for width in 80..140 {
        terminal.resize((width, 30));
        terminal.keys("2");
        terminal.wait_for("Sessions");
        terminal.keys("1");
        terminal.resize((width, 31));
        terminal.wait_for("Held requests");
    }
}
