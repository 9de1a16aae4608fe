//! The dialog in the real program: what is typed, what the screen says will be written, and what is.

use std::fs;

use serde_json::{Value, json};

use super::hostile::request_pane;
use super::operator::{catch_up, challenge, leave, open, read_review};
use super::terminal::Terminal;
use super::workspace::{WIDE, Workspace, script};

/// One agent that asks to delete two tickets, one after the other.
fn two_deletes() -> Value {
    let step = |id: &str| json!({ "action": "ticket.delete", "params": { "ticket_ids": [id] } });
    json!({ "agents": [{
        "agent": "triage-bot", "pause_ms": 10, "sessions": 1, "steps": [step("T-1"), step("T-2")],
    }] })
}

/// Answers every question of `answers.yaml`; the focus ends on the last one.
fn answer(terminal: &mut Terminal) {
    terminal.keys("2");
    terminal.wait_for("chosen: prod");
    terminal.keys("\t3\t{\"owner\":\"me\"}\t");
    terminal.wait_without("answers missing");
}

/// From a focused Pass through the review to the pass.
fn pass(terminal: &mut Terminal) {
    terminal.enter();
    terminal.wait_for("Review: what will be written");
    // The focus is on Back: pressing Enter decides nothing and leads back.
    terminal.enter();
    terminal.wait_for("[ Deny... ]");
    terminal.enter();
    read_review(terminal);
    terminal.tabs(1);
    terminal.enter();
}

// covers B8
#[test]
fn every_response_type_is_recorded_as_it_was_chosen_and_shown() {
    let workspace = Workspace::new("answers.yaml");
    let mut terminal = workspace.demo(&two_deletes(), WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    open(&mut terminal);
    terminal.wait_for("see the rules <https://acme.example/rules>");
    terminal.keys("\x1b[6~");
    terminal.wait_for("1 action requested: asks for ticket.delete");
    answer(&mut terminal);
    terminal.tabs(3);
    terminal.enter();
    terminal.wait_for("Review: what will be written");
    // What the sheet says will be written is what is written.
    let sheet = terminal.text();
    workspace.assert_undecided();
    terminal.tabs(1);
    terminal.enter();
    terminal.wait_for("c-1 PASSED and recorded");
    let passed = workspace.payloads("checkpoint_passed").remove(0);
    let response = workspace.payloads("checkpoint_response").remove(0);
    assert_eq!(
        response["answers"],
        json!({ "region": "prod", "count": 3, "plan": { "owner": "me" } })
    );
    for record in [&passed, &response] {
        for (name, value) in record.as_object().unwrap() {
            // The sheet says method, hash and Atlas once, above the records.
            let words = match name.as_str() {
                "approval_method" => "op-1, in the console".to_owned(),
                "request_hash" => value.as_str().unwrap().chars().take(16).collect(),
                // The sheet says the source in words.
                "justification_source" => "(your answers)".to_owned(),
                "judged_under" => value[0]["atlas_id"].as_str().unwrap().to_owned(),
                _ => {
                    let label = match name.as_str() {
                        "checkpoint_id" => "checkpoint".to_owned(),
                        "injected_contexts" => "contexts given".to_owned(),
                        "unlocked_capabilities" => "capabilities unlocked".to_owned(),
                        "validation_result" => "validation".to_owned(),
                        other => other.replace('_', " "),
                    };
                    assert!(sheet.contains(&label), "{label}: {sheet}");
                    value.to_string()
                }
            };
            let first: String = words.chars().take(30).collect();
            assert!(sheet.contains(&first), "{name} {first}: {sheet}");
        }
    }
    // The next one says how many were passed, and how fast.
    terminal.wait_for("> [ ]  c-2 ");
    open(&mut terminal);
    terminal.wait_for("you passed 1 in 10 min");
    answer(&mut terminal);
    terminal.tabs(3);
    terminal.enter();
    terminal.wait_for("you passed 1 in 10 min (viewed ");
    terminal.esc();
    terminal.wait_for("[ Deny... ]");
    pass(&mut terminal);
    terminal.wait_for("c-2 PASSED and recorded");
    terminal.wait_for("agents 0  held 0");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    workspace.assert_sound();
}

#[test]
fn request_cannot_pass_before_all_of_it_was_on_screen() {
    let workspace = Workspace::new("answers.yaml");
    let ids: Vec<String> = (0..200).map(|n| format!("T-{n}")).collect();
    let request = script("triage-bot", json!({ "ticket_ids": ids }));
    let mut terminal = workspace.demo(&request, WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    open(&mut terminal);
    answer(&mut terminal);
    terminal.wait_for("Pass is disabled: request not fully seen (PgDn)");
    // Found by searching, or at the end, is not read.
    terminal.keys("\x1b[17~/t-150\r");
    terminal.wait_for("\"T-150\"");
    terminal.keys("G");
    terminal.wait_for("TRAIL");
    terminal.keys("\x1b[17~");
    terminal.tabs(3);
    terminal.enter();
    terminal.wait_for("cannot pass: request not fully seen");
    workspace.assert_undecided();
    terminal.keys("\x1b[17~g\x1b[17~");
    terminal.wait_for("\"T-0\"");
    let pages = 20;
    for _ in 0..pages {
        // One page at a time: what was never painted was not seen.
        let (page, seen) = terminal.wait("the request", |view| {
            Some((request_pane(view), view.shows("seen 100 %")))
        });
        if seen {
            break;
        }
        terminal.keys("\x1b[6~");
        terminal.wait_until("another page", |view| request_pane(view) != page);
    }
    terminal.wait_for("seen 100 %");
    terminal.enter();
    terminal.wait_for("Review: what will be written");
    workspace.assert_undecided();
}

#[test]
fn external_editor_changes_the_text_and_never_decides() {
    // It notes how private the file was, writes as editors on other systems do, and asks for a key.
    let editor = "f() { stat -c '%a %n' \"$1\" > \"$HOME/seen\"; cat \"$1\" >> \"$HOME/seen\"; \
                  printf 'the customer confirmed\\r\\nit in writing\\r\\n' > \"$1\"; \
                  echo EDITING; read -r key; }; f";
    let workspace = Workspace::new("gates.yaml").with_editor(editor);
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    terminal.keys("understood\tthe cust");
    terminal.wait_for("the cust");
    terminal.ctrl('e');
    terminal.wait_for("EDITING");
    workspace.assert_undecided();
    terminal.enter();
    terminal.wait_for("it in writing");
    terminal.wait_for("READY");
    workspace.assert_undecided();
    let seen = fs::read_to_string(workspace.path("home").join("seen")).unwrap();
    assert!(seen.starts_with("600 "), "{seen}");
    assert!(seen.contains("/answer.txt\nthe cust\n"), "{seen}");
    let left = fs::read_dir(workspace.path("")).unwrap();
    let left = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("cra-")
    });
    assert_eq!(left.count(), 0, "the file is gone");
    // Keys go to the dialog again, and the whole ladder is still to be climbed.
    terminal.keys("\tduplicates");
    terminal.wait_without("Pass is disabled");
    terminal.tabs(3);
    terminal.enter();
    let hash = challenge(&mut terminal);
    terminal.keys(&hash);
    terminal.tabs(2);
    terminal.enter();
    terminal.wait_for("c-1 PASSED and recorded");
    assert_eq!(
        workspace.payloads("checkpoint_response")[1]["answers"],
        json!({ "justify-risk": "the customer confirmed\nit in writing" })
    );
    terminal.wait_for("agents 0  held 0");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();
    workspace.assert_sound();
}

#[test]
fn missing_editor_is_named_and_the_text_is_kept() {
    let workspace = Workspace::new("gates.yaml").with_editor("/nowhere/ed 2>/dev/null");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    terminal.keys("understood\tthe cust");
    terminal.wait_for("the cust");
    terminal.ctrl('e');
    terminal.wait_for("the editor `/nowhere/ed 2>/dev/null` ($EDITOR) was");
    terminal.wait_for("the cust");
    workspace.assert_undecided();
    terminal.wait_for("READY");
    terminal.esc();
    terminal.wait_for("> [ ]  c-1 ");
    leave(&mut terminal);
    terminal.assert_restored();
}

#[test]
fn sigterm_while_an_editor_is_open_ends_the_console_and_keeps_the_gate() {
    let workspace =
        Workspace::new("gates.yaml").with_editor("f() { echo EDITING; read -r key; }; f");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    terminal.keys("\thalf an ans");
    terminal.wait_for("draft saved");
    terminal.ctrl('e');
    terminal.wait_for("EDITING");
    terminal.signal("TERM");
    assert_eq!(terminal.wait_exit(), 0);
    terminal.assert_restored();
    workspace.assert_undecided();
    assert_eq!(workspace.kept_on_disk("draft").len(), 1);
    workspace.assert_sound();
}

#[test]
fn minimized_dialog_leaves_the_queue_usable_and_decides_nothing() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    terminal.keys("understood");
    terminal.wait_for("2 answers missing");
    terminal.keys("\x1bOR");
    terminal.wait_for("> [ ]  c-1 ");
    terminal.wait_for("ticket.delete  2 answers missing");
    terminal.wait_for("left → DENIED");
    terminal.keys("jkgGu");
    catch_up(&mut terminal);
    terminal.keys("\x1bOR");
    terminal.wait_for("READY");
    terminal.wait_for("[understood      ] ✓");
    terminal.keys("\x1bOR");
    terminal.wait_for("> [ ]  c-1 ");
    // Left while it is aside: what was typed is on disk.
    leave(&mut terminal);
    workspace.assert_undecided();
    assert_eq!(workspace.kept_on_disk("draft").len(), 1);
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    open(&mut terminal);
    terminal.wait_for("[understood      ] ✓");
    workspace.assert_sound();
}

#[test]
fn esc_and_a_lost_terminal_leave_the_request_held() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    terminal.keys("understood\tthe customer confirmed it in writing\tduplicates");
    terminal.wait_without("Pass is disabled");
    terminal.tabs(3);
    terminal.enter();
    terminal.wait_for("Review: what will be written");
    for shown in ["[ Deny... ]", "> [ ]  c-1 "] {
        terminal.esc();
        terminal.wait_for(shown);
        workspace.assert_undecided();
    }
    open(&mut terminal);
    terminal.signal("HUP");
    assert_eq!(terminal.wait_exit(), 0);
    workspace.assert_undecided();
    assert_eq!(workspace.held_on_disk().len(), 1);
    workspace.assert_sound();
}

#[test]
fn request_held_under_another_atlas_can_only_be_denied() {
    let workspace = Workspace::new("gates.yaml");
    let mut terminal = workspace.held_delete();
    open(&mut terminal);
    terminal.keys("understood\tthe customer confirmed it in writing\tduplicates");
    terminal.wait_for("draft saved");
    terminal.wait_without("Pass is disabled");
    terminal.kill9();
    let workspace = workspace.under("answers.yaml");
    let mut terminal = workspace.console(WIDE);
    terminal.wait_for("> [ ]  c-1 ");
    open(&mut terminal);
    terminal.wait_for("Pass is disabled: Atlas changed");
    terminal.tabs(4);
    workspace.assert_undecided();
    terminal.enter();
    terminal.wait_for("Deny now is disabled: enter a reason");
    terminal.keys("ask again\t\t\r");
    terminal.wait_for("c-1 DENIED and recorded");
    workspace.assert_sound();
}
