//! The program ends, however: what is held stays held, and the terminal is given back.

use super::operator::{leave, open};
use super::place::{Place, WIDE};

#[test]
fn a_killed_console_leaves_a_sound_record_and_the_same_gate() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    open(&mut terminal);
    terminal.keys("underst");
    terminal.wait_for("underst");
    let before = place.held_on_disk();
    assert_eq!(before.len(), 1);
    terminal.kill9();
    place.assert_undecided();
    place.assert_sound();

    let mut terminal = place.console(WIDE);
    terminal.wait_for("> c-1 ");
    let shown = format!("c-1 · hash {:.4} ", before[0].1);
    terminal.wait_for(&shown);
    assert_eq!(place.held_on_disk(), before);
    terminal.keys("d");
    terminal.wait_for("READY");
    terminal.keys("asked before the crash\t\t\r");
    terminal.wait_for("c-1 DENIED and recorded");
    assert_eq!(place.held_on_disk(), []);
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    let reason = place.payloads("action_blocked")[0]["reason"].to_string();
    assert!(reason.contains("asked before the crash"), "{reason}");
    assert_eq!(place.payloads("checkpoint_blocked")[0]["outcome"], "denied");
    place.assert_sound();
}

#[test]
fn a_second_console_is_sent_away_and_the_first_goes_on() {
    let place = Place::new("gates.yaml");
    let mut first = place.held_delete();
    let mut second = place.console(WIDE);
    assert_eq!(second.wait_exit(), 1);
    second.assert_restored();
    let said = String::from_utf8(second.raw()).unwrap();
    let holder = format!(
        "is in use by another console (process {})",
        first.process_id()
    );
    assert!(said.contains(&holder), "{said}");
    assert!(said.contains("--data-dir"), "{said}");

    open(&mut first);
    place.assert_undecided();
    first.esc();
    first.wait_for("> c-1 ");
    leave(&mut first);
    place.assert_sound();
}

#[test]
fn told_to_terminate_it_gives_the_terminal_back_and_keeps_the_gate() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    open(&mut terminal);
    let before = place.held_on_disk();
    terminal.signal("TERM");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();
    place.assert_undecided();
    assert_eq!(place.held_on_disk(), before);
    place.assert_sound();

    let terminal = place.console(WIDE);
    terminal.wait_for("> c-1 ");
    terminal.wait_for("ticket.delete");
    place.assert_undecided();
}

#[test]
fn ctrl_c_twice_leaves_and_what_is_held_stays_held() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    terminal.ctrl('c');
    terminal.wait_for("Ctrl-C again leaves the console");
    terminal.keys("\x03\x03");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();
    place.assert_undecided();
    assert_eq!(place.held_on_disk().len(), 1);
    place.assert_sound();
}
