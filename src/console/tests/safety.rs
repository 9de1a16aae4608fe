//! The safety rules, each with at least one test. The test presses keys, reads the screen, and then checks
//! the state of the runtime and the disk.

use std::collections::BTreeMap;
use std::path::Path;

use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use serde_json::{Value, json};

use super::live_console::{LiveConsole, WIDE};
use crate::base::limits::DIALOG_ARMING_TIME;

/// All rules, with the tests that cover them: the tests here, and older tests that cover a part.
const RULES: [(u8, &[&str]); 24] = [
    (
        1,
        &[
            "rule_01_nothing_opens_without_a_key",
            "an_arrival_opens_nothing_for_any_key_pressed_with_it",
        ],
    ),
    (
        2,
        &[
            "rule_02_only_a_focused_button_and_enter_decide",
            "no_printable_key_ever_decides",
            "only_key_presses_count_and_alt_keys_do_nothing",
            "letters_never_decide_and_completing_every_step_passes_the_request",
        ],
    ),
    (
        3,
        &[
            "rule_03_keys_of_the_arming_time_are_dropped",
            "nothing_is_decided_within_the_arming_time",
            "keys_are_dropped_for_a_short_time_after_the_dialog_is_shown",
        ],
    ),
    (
        4,
        &[
            "rule_04_the_first_focus_is_harmless",
            "the_review_starts_on_a_harmless_button",
        ],
    ),
    (
        5,
        &[
            "rule_05_the_keys_that_passed_one_request_do_not_pass_the_next",
            "rule_05_repeating_a_key_never_confirms",
            "the_key_that_opens_a_request_never_confirms_it",
        ],
    ),
    (
        6,
        &[
            "rule_06_pass_waits_until_the_whole_request_was_on_screen",
            "request_cannot_pass_before_all_of_it_was_on_screen",
            "a_request_that_was_not_printed_whole_cannot_pass",
        ],
    ),
    (
        7,
        &[
            "rule_07_the_request_is_shown_exactly_and_hidden_characters_are_counted",
            "hostile_text_is_escaped_and_never_interpreted",
        ],
    ),
    (
        8,
        &[
            "rule_08_an_arrival_moves_no_row_and_enter_opens_the_selected_request",
            "enter_opens_the_highlighted_request_despite_arrivals",
        ],
    ),
    (
        9,
        &[
            "rule_09_a_batch_decides_each_reviewed_request_separately",
            "marking_a_request_that_fits_no_batch_reports_the_reason",
        ],
    ),
    (
        10,
        &["rule_10_expiry_denial_and_withdrawal_have_different_records_and_words"],
    ),
    (
        11,
        &[
            "rule_11_the_countdown_runs_while_typing_and_the_draft_survives",
            "answers_of_an_expired_request_return_when_it_is_asked_again",
            "killed_console_leaves_a_valid_record_the_gate_and_the_draft",
        ],
    ),
    (
        12,
        &[
            "rule_12_a_settled_request_loses_its_controls_at_once",
            "a_failed_write_reads_back_what_is_on_disk",
        ],
    ),
    (
        13,
        &[
            "rule_13_a_decision_applies_once_to_one_request_under_one_atlas",
            "a_changed_request_discards_the_input_and_shows_the_difference",
        ],
    ),
    (
        14,
        &[
            "rule_14_the_record_is_on_disk_before_the_agent_continues",
            "console_killed_at_any_time_loses_no_acknowledged_event",
        ],
    ),
    (
        15,
        &[
            "rule_15_the_asking_agent_never_approves",
            "the_requester_never_approves",
        ],
    ),
    (
        16,
        &[
            "rule_16_no_approval_is_permanent",
            "there_is_no_always_allow_and_the_help_says_so",
        ],
    ),
    (
        17,
        &["rule_17_a_denied_request_asks_no_operator_and_a_retry_joins_the_held_request"],
    ),
    (
        18,
        &["rule_18_a_denial_carries_its_reason_and_needs_fewer_keys_than_a_pass"],
    ),
    (
        19,
        &[
            "rule_19_a_denial_is_overridden_only_by_id_and_shown_until_acknowledged",
            "a_denial_is_overridden_only_through_the_palette",
        ],
    ),
    (
        20,
        &[
            "rule_20_every_way_of_quitting_leaves_the_request_held",
            "ctrl_c_twice_quits_and_held_requests_stay_held",
            "esc_and_a_lost_terminal_leave_the_request_held",
        ],
    ),
    (
        21,
        &[
            "rule_21_only_key_presses_count_and_a_paste_never_submits",
            "paste_fills_a_field_and_never_presses_a_key",
        ],
    ),
    (
        22,
        &[
            "rule_22_a_read_only_console_has_no_way_to_write",
            "a_read_only_console_never_decides_for_any_keys",
        ],
    ),
    (
        23,
        &[
            "rule_23_a_broken_chain_is_shown_everywhere_and_blocks_decisions_until_acknowledged",
            "a_broken_chain_blocks_denials_too",
        ],
    ),
    (
        24,
        &[
            "rule_24_the_number_of_recent_passes_is_shown",
            "the_number_of_recent_passes_and_the_time_per_pass_are_shown",
        ],
    ),
];

/// Returns all tests by name, with their files.
fn tests() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeMap::new();
    for folder in ["src/console/tests", "src/engine/tests", "tests/e2e"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for (mark, line) in text.lines().zip(text.lines().skip(1)) {
                let name = line.trim().strip_prefix("fn ");
                let name = name.and_then(|rest| rest.split('(').next());
                if let ("#[test]", Some(name)) = (mark.trim(), name) {
                    found.insert(name.to_owned(), path.display().to_string());
                }
            }
        }
    }
    found
}

#[test]
fn every_rule_has_a_test_and_every_test_of_a_rule_is_listed() {
    let tests = tests();
    for (at, (rule, listed)) in (1..).zip(RULES) {
        assert_eq!(at, rule);
        assert!(!listed.is_empty(), "rule {rule} has no test");
        let own = format!("rule_{rule:02}_");
        assert!(listed.iter().any(|name| name.starts_with(&own)), "{rule}");
        for name in listed {
            assert!(tests.contains_key(*name), "there is no test {name}");
        }
    }
    for name in tests.keys().filter(|name| name.starts_with("rule_")) {
        let rule = RULES
            .iter()
            .find(|(_, listed)| listed.contains(&name.as_str()));
        let (rule, _) = rule.unwrap_or_else(|| panic!("{name} is not listed"));
        assert!(name.starts_with(&format!("rule_{rule:02}_")), "{name}");
    }
}

#[test]
fn rule_01_nothing_opens_without_a_key() {
    let mut live = LiveConsole::new();
    live.types("x");
    let asked = live.ask("user.ban", json!({"user": "m"}), 1);
    live.console.shows("Held requests");
    live.console.shows("1 Queue 1");
    assert!(live.console.app.layers.is_empty());
    // Keys typed while the request arrived open nothing either.
    live.types("yes I agree");
    assert!(
        live.console.app.layers.is_empty(),
        "{}",
        live.console.text()
    );
    live.undecided(&["c-1"]);
    assert!(live.waits(&asked));
    live.press(KeyCode::Enter);
    assert_eq!(live.console.app.layers.len(), 1);
    live.undecided(&["c-1"]);
}

#[test]
fn rule_02_only_a_focused_button_and_enter_decide() {
    let mut live = LiveConsole::new();
    let mut asked = live.ask("note.add", json!({"text": "x"}), 1);
    live.open("c-1");
    // A key with Alt is not even typed.
    for c in "understood".chars() {
        live.with(KeyCode::Char(c), KeyModifiers::ALT);
    }
    live.console.shows("Pass is disabled: 1 answer missing");
    // Enter in a field presses nothing, even if all answers are complete.
    live.types("understood");
    live.console.hides("is disabled");
    live.presses(KeyCode::Enter, 3);
    live.undecided(&["c-1"]);
    live.presses(KeyCode::Tab, 3);
    for c in (' '..='~').chain("\u{e9}\u{4e00}".chars()) {
        live.press(KeyCode::Char(c));
    }
    for code in [KeyCode::Enter, KeyCode::Char('y'), KeyCode::Char('p')] {
        live.with(code, KeyModifiers::ALT);
        live.with(code, KeyModifiers::ALT | KeyModifiers::CONTROL);
    }
    live.undecided(&["c-1"]);
    assert!(live.waits(&asked));
    live.press(KeyCode::Enter);
    assert!(live.agent_reply(&mut asked).unwrap().is_ok());
    assert_eq!(live.on_disk("checkpoint_passed").len(), 1);
    live.console.shows("c-1 PASSED and recorded");
}

#[test]
fn rule_03_keys_of_the_arming_time_are_dropped() {
    let mut live = LiveConsole::new();
    let asked = live.ask("note.add", json!({"text": "x"}), 1);
    live.press(KeyCode::Enter);
    live.console.shows("DENIED  WAIT");
    live.fill("c-1", "understood");
    live.presses(KeyCode::Enter, 3);
    live.wait(DIALOG_ARMING_TIME);
    live.console.shows("READY");
    // The keys were not queued: the field is still empty.
    live.console.shows("Pass is disabled");
    live.undecided(&["c-1"]);
    assert_eq!(live.rehearsal.snapshot().drafts.len(), 0);
    assert!(live.waits(&asked));
}

#[test]
fn rule_04_the_first_focus_is_harmless() {
    let mut live = LiveConsole::new();
    let first = live.ask("note.add", json!({}), 1);
    let second = live.ask("ticket.update", json!({}), 2);
    for id in ["c-1", "c-2"] {
        live.open(id);
        live.presses(KeyCode::Enter, 12);
        live.undecided(&["c-1", "c-2"]);
        live.press(KeyCode::Esc);
    }
    // The review starts on the button that goes back.
    live.open("c-2");
    live.types("understood");
    live.presses(KeyCode::Tab, 3);
    live.press(KeyCode::Enter);
    live.console.shows("Review: what will be written");
    live.press(KeyCode::Enter);
    live.console.hides("Review: what will be written");
    live.press(KeyCode::Esc);
    // The denial starts in the field of the reason.
    live.select("c-2");
    live.press(KeyCode::Char('d'));
    live.wait(DIALOG_ARMING_TIME);
    live.presses(KeyCode::Enter, 5);
    live.undecided(&["c-1", "c-2"]);
    assert!(live.waits(&first) && live.waits(&second));
}

#[test]
fn rule_05_the_keys_that_passed_one_request_do_not_pass_the_next() {
    let mut live = LiveConsole::new();
    let mut first = live.ask("ticket.delete", json!({"id": 1}), 1);
    let second = live.ask("ticket.delete", json!({"id": 2}), 2);
    let (one, two) = (live.held("c-1"), live.held("c-2"));
    assert_ne!(one.request_hash.short(4), two.request_hash.short(4));
    let keys = |live: &mut LiveConsole, hash: &str| {
        live.press(KeyCode::Enter);
        live.wait(DIALOG_ARMING_TIME);
        live.types("as agreed");
        live.presses(KeyCode::Tab, 3);
        live.press(KeyCode::Enter);
        live.types(hash);
        live.presses(KeyCode::Tab, 2);
        live.press(KeyCode::Enter);
    };
    live.select("c-1");
    keys(&mut live, &one.request_hash.short(4));
    assert!(live.agent_reply(&mut first).unwrap().is_ok());
    // The same keys again.
    live.select("c-2");
    keys(&mut live, &one.request_hash.short(4));
    live.console.shows("cannot pass: type the hash first");
    assert_eq!(live.held_on_disk(), ["c-2"]);
    assert_eq!(live.on_disk("checkpoint_passed").len(), 1);
    assert!(live.waits(&second));
}

#[test]
fn rule_05_repeating_a_key_never_confirms() {
    let actions = ["note.add", "ticket.update", "ticket.delete", "user.ban"];
    let keys = [
        KeyCode::Enter,
        KeyCode::Char(' '),
        KeyCode::Char('y'),
        KeyCode::Tab,
        KeyCode::Char('\n'),
        KeyCode::F(6),
    ];
    let mut live = LiveConsole::new();
    for (held, action) in (1..).zip(actions) {
        live.ask(action, json!({}), held);
    }
    let ids: Vec<_> = (1..=4).map(|number| format!("c-{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for id in &ids {
        for key in keys {
            live.open(id);
            live.presses(key, 30);
            while !live.console.app.layers.is_empty() {
                live.press(KeyCode::Esc);
            }
        }
    }
    live.undecided(&ids);
}

#[test]
fn rule_06_pass_waits_until_the_whole_request_was_on_screen() {
    let mut live = LiveConsole::sized(WIDE);
    let lines: Vec<_> = (0..100).map(|n| format!("line {n}")).collect();
    let mut asked = live.ask("note.add", json!({ "lines": lines }), 1);
    live.open("c-1");
    live.fill("c-1", "understood");
    live.console.shows("seen ");
    live.console
        .shows("Pass is disabled: request not fully seen");
    live.press(KeyCode::Enter);
    live.undecided(&["c-1"]);
    // Jumping to the end is not reading.
    live.press(KeyCode::F(6));
    live.press(KeyCode::End);
    live.press(KeyCode::F(6));
    live.press(KeyCode::Enter);
    live.undecided(&["c-1"]);
    live.press(KeyCode::F(6));
    live.press(KeyCode::Home);
    live.press(KeyCode::F(6));
    live.presses(KeyCode::PageDown, 12);
    live.console.shows("seen 100 %");
    live.press(KeyCode::Enter);
    assert!(live.agent_reply(&mut asked).unwrap().is_ok());
    assert_eq!(live.on_disk("checkpoint_passed").len(), 1);
}

#[test]
fn rule_07_the_request_is_shown_exactly_and_hidden_characters_are_counted() {
    let mut live = LiveConsole::new();
    let text = "rm -rf \u{202e}cod\u{200b}.txt\u{1b}[2J\u{e000}\u{2028}";
    live.ask("note.add", json!({"cmd": text, "n": 1}), 1);
    live.open("c-1");
    // Everything that a terminal would obey or hide is escaped, in addition to JSON's own escapes.
    live.console
        .shows("rm -rf \\u{202e}cod\\u{200b}.txt\\u001b[");
    live.console.shows("2J\\u{e000}\\u{2028}");
    live.console.shows("hidden characters");
    let screen = live.console.text();
    assert!(!screen.contains(['\u{202e}', '\u{200b}', '\u{1b}', '\u{e000}']));
    // The record on disk has the request character by character.
    let attempted: Vec<Value> = live.on_disk("action_attempted");
    assert_eq!(attempted[0]["action_params"], json!({"cmd": text, "n": 1}));
    live.undecided(&["c-1"]);
}

#[test]
fn rule_08_an_arrival_moves_no_row_and_enter_opens_the_selected_request() {
    let mut live = LiveConsole::new();
    let mut asked = live.ask("note.add", json!({}), 1);
    let row = |live: &LiveConsole, id: &str| {
        let text = live.console.text();
        text.lines()
            .position(|line| line.contains(&format!("  {id} ")))
    };
    let before = row(&live, "c-1");
    assert!(before.is_some());
    let other = live.ask("user.ban", json!({"user": "m"}), 2);
    assert_eq!(row(&live, "c-1"), before, "{}", live.console.text());
    live.console.shows("1 new (u)");
    live.console.shows("c-2");
    live.press(KeyCode::Enter);
    live.wait(DIALOG_ARMING_TIME);
    live.console.shows("c-1  note.add");
    live.fill("c-1", "understood");
    live.press(KeyCode::Enter);
    assert!(live.agent_reply(&mut asked).unwrap().is_ok());
    assert_eq!(live.held_on_disk(), ["c-2"]);
    assert!(live.waits(&other));
}
