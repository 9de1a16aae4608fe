//! The program ends, however: what is held stays held, and the terminal is given back.

use serde_json::json;

use super::alarms::Agent;
use super::operator::{challenge, leave, open};
use super::place::{Place, WIDE, delete_script};
use super::terminal::Terminal;

#[test]
fn a_killed_console_leaves_a_sound_record_the_same_gate_and_what_was_typed() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    open(&mut terminal);
    terminal.keys("underst");
    terminal.wait_for("underst");
    // What is said to be kept is on disk: from here on nothing can take it away.
    terminal.wait_for("draft saved");
    let before = place.held_on_disk();
    assert_eq!(before.len(), 1);
    terminal.kill9();
    place.assert_undecided();
    place.assert_sound();

    let mut terminal = place.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    let shown = format!("c-1 · hash {:.4} ", before[0].1);
    terminal.wait_for(&shown);
    assert_eq!(place.held_on_disk(), before);
    terminal.wait_until("the mark of a draft", |view| {
        let text = view.text();
        let row = text.lines().find(|row| row.contains("> [ ]  c-1 "));
        row.is_some_and(|row| row.contains(" draft "))
    });
    open(&mut terminal);
    terminal.wait_for("underst");
    terminal.wait_for("2 answers missing, 1 invalid");
    place.assert_undecided();
    // Typing goes on where it was cut off, and every step to a pass is still to be taken.
    terminal.keys("ood\tthe customer confirmed it in writing\tduplicates of T-0");
    terminal.wait_without("Pass is disabled");
    terminal.tabs(3);
    terminal.enter();
    let hash = challenge(&mut terminal);
    terminal.keys(&hash);
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("c-1 PASSED and recorded");
    assert_eq!(place.held_on_disk(), []);
    assert_eq!(place.kept_on_disk("draft").len(), 0);
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    assert_eq!(
        place.payloads("checkpoint_response")[0]["answers"],
        json!({ "confirm-delete": "acknowledged" })
    );
    assert_eq!(place.payloads("risk_verified").len(), 1);
    place.assert_sound();
}

#[test]
fn a_draft_outlives_a_console_that_is_left_while_typing() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    open(&mut terminal);
    // All at once: nothing was painted since, and the console is told to go.
    terminal.keys("underst\x03\x03");
    assert_eq!(terminal.wait_exit(), 0);
    place.assert_undecided();
    let mut terminal = place.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    open(&mut terminal);
    terminal.wait_for("underst");
    terminal.backspace(7);
    terminal.wait_for("3 answers missing");
    terminal.esc();
    terminal.wait_for("> [ ]  c-1 ");
    leave(&mut terminal);
    assert_eq!(place.kept_on_disk("draft").len(), 0);
    place.assert_undecided();
    place.assert_sound();
}

#[test]
fn the_record_on_screen_lists_the_sessions_and_the_log_and_proves_them() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    leave(&mut terminal);
    let count = place.events().len();
    // Whoever starts again finds everything sealed.
    let mut terminal = place.console((80, 24));
    terminal.wait_for("chain SEALED ");
    terminal.keys("2");
    terminal.wait_for("triage-bot");
    terminal.wait_for("cra, governance");
    terminal.keys("v");
    terminal.wait_for("log over all sessions, signed: SEALED");
    terminal.enter();
    terminal.wait_for(&format!(" SEALED 0..{} ", count - 1));
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
    first.wait_for("> [ ]  c-1 ");
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
    terminal.wait_for("> [ ]  c-1 ");
    terminal.wait_for("ticket.delete");
    place.assert_undecided();
}

#[test]
fn ctrl_c_twice_leaves_and_what_is_held_stays_held() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    terminal.ctrl('c');
    terminal.wait_for("press Ctrl-C again to quit");
    terminal.keys("\x03\x03");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();
    place.assert_undecided();
    assert_eq!(place.held_on_disk().len(), 1);
    place.assert_sound();
}

/// An agent whose request is held at this console.
fn held_agent(place: &Place, terminal: &Terminal, shown: &str) -> Agent {
    let mut agent = Agent::new(place);
    let start = json!({"agent": "bot", "session": "s-1"});
    let key = agent.call("session.start", &start)["key"].clone();
    let delete =
        json!({"session": "s-1", "key": key, "action": "ticket.delete", "params": {"id": 1}});
    agent.say("action.request", &delete);
    terminal.wait_for(shown);
    agent
}

/// A console whose terminal was closed left everything as one that was left with `q`.
fn assert_left_in_order(place: &Place, agent: &mut Agent) {
    assert_eq!(agent.rest(), "", "nothing that allows anything");
    assert!(!place.path("data/run/console.sock").exists());
    place.assert_undecided();
    assert_eq!(place.held_on_disk().len(), 1);
    place.assert_sound();
}

#[test]
fn closing_the_terminal_ends_the_screen_console_in_order() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.console(WIDE);
    terminal.wait_for("1 Queue");
    let mut agent = held_agent(&place, &terminal, "1 Queue 1");
    let code = terminal.close(|terminal| terminal.resize((100, 30)));
    assert_eq!(code, 0);
    assert_left_in_order(&place, &mut agent);
    let terminal = place.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
}

#[test]
fn closing_the_terminal_ends_the_linear_console_in_order() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.linear_console(WIDE);
    terminal.wait_for("> ");
    let mut agent = held_agent(&place, &terminal, "New: c-1: ");
    let code = terminal.close(Terminal::enter);
    assert_eq!(code, 0);
    assert_left_in_order(&place, &mut agent);
}

#[test]
fn closing_the_terminal_ends_a_demo_in_order() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.held_delete();
    let code = terminal.close(|terminal| terminal.resize((100, 30)));
    assert_eq!(code, 0);
    place.assert_undecided();
    assert_eq!(place.held_on_disk().len(), 1);
    place.assert_sound();
}

#[test]
fn closing_the_terminal_ends_a_linear_demo_in_order() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.linear_demo(&delete_script(), WIDE);
    terminal.wait_for("c-1: ");
    assert_eq!(terminal.close(Terminal::enter), 0);
    place.assert_undecided();
    assert_eq!(place.held_on_disk().len(), 1);
    place.assert_sound();
}
