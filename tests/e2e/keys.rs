//! Keys and pastes that were not meant as an answer.

use super::operator::{catch_up, challenge, open};
use super::workspace::Workspace;

/// Tells whether the first field of the dialog is empty.
fn first_field_is_empty(text: &str) -> bool {
    let field = text.split("type understood [").nth(1);
    let typed = field.and_then(|field| field.split(']').next());
    typed.is_some_and(|typed| typed.trim().is_empty())
}

#[test]
fn keys_typed_before_the_dialog_opened_are_dropped() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    terminal.keys("\runderstood\t\t\t\r");
    terminal.wait_for("READY");
    let text = terminal.text();
    assert!(first_field_is_empty(&text), "{text}");
    assert!(text.contains("3 answers missing"), "{text}");
    workspace.assert_undecided();
    // From now on keys count, and the focus is where it was.
    terminal.keys("understood");
    terminal.wait_for("2 answers missing");
    assert!(!first_field_is_empty(&terminal.text()));
    workspace.assert_undecided();
}

#[test]
fn keys_are_dropped_for_a_short_time_after_the_dialog_is_shown() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    // Whether a key arrives within the moment is up to the machine: a slow one gets another try.
    let tries = 10;
    let dropped = (0..tries).any(|_| {
        terminal.enter();
        terminal.wait_until("the dialog", |view| {
            view.shows("DENIED  WAIT") || view.shows("READY")
        });
        terminal.keys("x");
        terminal.wait_for("READY");
        catch_up(&mut terminal);
        let dropped = first_field_is_empty(&terminal.text());
        terminal.backspace(1);
        terminal.esc();
        terminal.wait_for("> [ ]  c-1 ");
        dropped
    });
    assert!(dropped, "every key counted");
    workspace.assert_undecided();
}

#[test]
fn paste_fills_a_field_and_never_presses_a_key() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    // Nothing is open: it goes nowhere, not even the Enter in it.
    terminal.paste("\rd\r");
    open(&mut terminal);
    terminal.paste("understood\r");
    terminal.wait_for("2 answers missing");
    terminal.tabs(1);
    terminal.paste("the customer confirmed\rit in writing\r\t\t\t\r");
    terminal.wait_for("1 answer missing");
    terminal.tabs(1);
    terminal.paste("duplicates\r\n\r\n");
    terminal.wait_without("Pass is disabled");
    // On each button in turn, the last of which would lead on.
    for _button in ["Back", "Deny...", "Pass"] {
        terminal.tabs(1);
        terminal.paste("\r\n\r");
    }
    catch_up(&mut terminal);
    terminal.wait_for("[ Pass ]");
    terminal.enter();
    terminal.wait_for("Review: what will be written");
    let hash = challenge(&mut terminal);
    terminal.paste(&format!("{hash}\r"));
    terminal.wait_without("Pass now is disabled");
    terminal.tabs(2);
    terminal.paste("\r\r");
    catch_up(&mut terminal);
    terminal.wait_for("[ Pass now ]");
    workspace.assert_undecided();
    terminal.enter();
    terminal.wait_for("c-1 PASSED and recorded");
}
