//! All kinds of answers: typing, rule feedback, and the value sent.

use insta::assert_snapshot;
use ratatui::crossterm::event::{Event, KeyCode};
use serde_json::{Value, json};

use super::fixture::{gate, held, question, snapshot};
use super::test_console::{TestConsole, decisions};
use crate::atlas::document::RiskTier;
use crate::engine::command::Ruling;
use crate::engine::held::Held;

const SIZES: [(u16, u16); 3] = [(120, 36), (80, 24), (60, 18)];

/// A low request with these questions.
pub(super) fn asking(questions: impl IntoIterator<Item = Value>) -> Held {
    let mut item = held("c-1", "x.write", RiskTier::Low, 1, 60);
    let questions = questions.into_iter().map(question).collect();
    item.gates = vec![gate("g", "action_pre", "it writes", questions)];
    item
}

fn choice() -> Value {
    let options: Vec<String> = (1..=12).map(|n| format!("region-{n:02}")).collect();
    json!({
        "question_id": "where",
        "question": "Where does it run?",
        "hint": "the region of the customer",
        "response_type": "choice",
        "options": options,
    })
}

fn number() -> Value {
    json!({
        "question_id": "amount",
        "question": "How much is paid back?",
        "response_type": "number",
        "min": 1, "max": 500,
        "on_invalid": "block",
    })
}

fn json_answer() -> Value {
    json!({
        "question_id": "plan",
        "question": "The plan of the migration",
        "response_type": "json",
        "max_retries": 3,
        "schema": {
            "type": "object",
            "required": ["steps", "owner"],
            "properties": {
                "owner": {"type": "string", "minLength": 1},
                "steps": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            },
        },
    })
}

fn text() -> Value {
    json!({
        "question_id": "why",
        "question": "Why now?",
        "hint": "one sentence, with a ticket",
        "response_type": "text",
        "validation": {
            "min_length": 20, "max_length": 500, "must_contain": ["ticket"],
            "must_not_contain": ["asap"], "pattern": "\\.$", "custom_validator": "ticket-desk",
        },
    })
}

fn open(questions: impl IntoIterator<Item = Value>, size: (u16, u16)) -> TestConsole {
    let mut console = TestConsole::new(snapshot([asking(questions)]), size);
    console.open();
    console
}

/// Presses Pass from the field before it, and returns the only answer sent.
#[track_caller]
fn sent(console: &mut TestConsole) -> Value {
    console.presses(KeyCode::PageDown, 3);
    console.presses(KeyCode::Tab, 3);
    let mut decided = decisions(console.press(KeyCode::Enter));
    assert_eq!(decided.len(), 1, "{}", console.text());
    let Ruling::Pass { answers } = decided.remove(0).ruling else {
        panic!("it was denied");
    };
    let answers = answers.into_iter().next().unwrap();
    answers.into_values().next().unwrap_or(Value::Null)
}

/// A screen at each size, one below the other.
fn at_every_size(set: impl Fn(&mut TestConsole), questions: &[Value]) -> String {
    let screens = SIZES.map(|size| {
        let mut console = open(questions.to_vec(), size);
        set(&mut console);
        console.text()
    });
    screens.join("\n\n")
}

#[test]
fn every_kind_of_answer_is_painted_at_every_size() {
    let typed = |text: &'static str| {
        move |console: &mut TestConsole| {
            console.type_text(text);
        }
    };
    assert_snapshot!(
        "kind_text",
        at_every_size(typed("the ticket, asap"), &[text()])
    );
    assert_snapshot!("kind_choice", at_every_size(typed("3-1"), &[choice()]));
    assert_snapshot!("kind_number", at_every_size(typed("1200"), &[number()]));
    assert_snapshot!(
        "kind_json",
        at_every_size(typed("{\"steps\": [1],"), &[json_answer()])
    );
    let boolean = json!({"question_id": "q", "question": "Was the customer asked?", "response_type": "boolean"});
    let no = |console: &mut TestConsole| {
        console.press(KeyCode::Right);
    };
    assert_snapshot!("kind_boolean", at_every_size(no, &[boolean]));
    let acknowledgment = json!({
        "question_id": "q",
        "question": "I understand this cannot be undone",
        "response_type": "acknowledgment",
        "on_invalid": "warn_and_continue",
    });
    assert_snapshot!(
        "kind_acknowledgment",
        at_every_size(typed("understod"), &[acknowledgment])
    );
}

#[test]
fn an_option_is_chosen_by_its_number_or_by_enter_and_never_by_moving() {
    let mut console = open([choice()], SIZES[0]);
    console.presses(KeyCode::Down, 4);
    console.shows("nothing chosen yet");
    console.shows("> ( ) 5 region-05");
    console.shows("Pass is disabled: 1 answer missing");
    console.press(KeyCode::Enter);
    console.shows("chosen: region-05");
    console.press(KeyCode::Char('3'));
    console.shows("> (•) 3 region-03");
    console.presses(KeyCode::Down, 20);
    console.shows("> ( )   region-12");
    console.shows("chosen: region-03");
    console.press(KeyCode::Char(' '));
    assert_eq!(sent(&mut console), json!("region-12"));
}

#[test]
fn the_row_that_keys_act_on_is_on_screen_at_every_size() {
    let mut long = choice();
    long["question"] = json!("Where does it run, and why there? ".repeat(20));
    for size in SIZES {
        let mut console = open([long.clone()], size);
        for option in 1..=12 {
            console.shows(&format!("region-{option:02}"));
            console.press(KeyCode::Down);
        }
        let mut wordy = text();
        wordy["hint"] = json!("say what was looked at, by whom, and when. ".repeat(20));
        let mut console = open([wordy], size);
        console.type_text("what is typed is seen");
        console.shows("what is typed is seen");
    }
}

#[test]
fn typing_filters_the_options_and_esc_lists_all_again() {
    let mut console = open([choice()], SIZES[0]);
    console.type_text("ON-1");
    console.shows("3 of 12");
    console.hides("region-09");
    console.press(KeyCode::Down);
    console.press(KeyCode::Enter);
    console.shows("chosen: region-11");
    console.type_text("x");
    console.shows("no option contains `ON-1x`");
    console.press(KeyCode::Enter);
    console.shows("chosen: region-11");
    console.press(KeyCode::Esc);
    console.shows("region-01");
    assert_eq!(console.app.layers.len(), 1, "Esc closed nothing");
    assert_eq!(sent(&mut console), json!("region-11"));
    console = open([choice()], SIZES[0]);
    console.event(&Event::Paste("region-07\r\n".to_owned()));
    console.shows("1 of 12");
    console.shows("nothing chosen yet");
}

#[test]
fn options_that_differ_in_case_alone_are_sent_exactly() {
    let options = json!({
        "question_id": "q", "question": "?", "response_type": "choice",
        "options": ["Prod", "prod", "\u{202e}dorp"],
    });
    let mut console = open([options.clone()], SIZES[0]);
    console.press(KeyCode::Char('2'));
    assert_eq!(sent(&mut console), json!("prod"));
    let mut console = open([options], SIZES[0]);
    console.shows("\\u{202e}dorp");
    console.press(KeyCode::Char('3'));
    assert_eq!(sent(&mut console), json!("\u{202e}dorp"));
}

#[test]
fn a_number_field_accepts_only_numbers_and_shows_its_rules() {
    let mut console = open([number()], SIZES[0]);
    console.shows("· a number, such as 12 or -0.5  · at least 1  · at most 500");
    console.shows("if invalid: DENIED");
    console.type_text("x");
    console.shows("enter a number");
    console.type_text("-");
    console.shows("✗ a number, such as 12 or -0.5  ✗ at least 1  ✗ at most 500");
    console.shows("Pass is disabled: 1 answer invalid");
    console.press(KeyCode::Backspace);
    console.type_text("501");
    console.shows("✓ a number  ✓ at least 1  ✗ at most 500");
    console.press(KeyCode::Backspace);
    console.type_text(".5");
    assert_eq!(sent(&mut console), json!("50.5"));
    let mut console = open([number()], SIZES[0]);
    console.event(&Event::Paste("12 apples".to_owned()));
    console.shows("✗ a number, such as 12 or -0.5");
}

#[test]
fn a_json_answer_reports_error_locations_and_starts_from_its_schema() {
    let mut console = open([json_answer()], SIZES[0]);
    console.shows("F4 skeleton");
    console.shows("· valid JSON  · must match the schema");
    console.press(KeyCode::F(4));
    console.shows("\"owner\": \"\"");
    console.shows("✗ must match the schema (at /owner:");
    console.hides("F4 skeleton");
    console.press(KeyCode::F(4));
    console.shows("the skeleton needs an empty answer");
    console.ctrl('u');
    console.ctrl('u');
    console.shows("F4 skeleton");
    console.type_text("{\"steps\": [1,");
    console.press(KeyCode::Enter);
    console.type_text("oops");
    console.shows("line 2 column 1");
    console.presses(KeyCode::Backspace, 4);
    console.type_text("2], \"owner\": \"\"}");
    console.shows("at /owner:");
    console.shows("at /steps/0: 1 is not of type");
    console.shows("at /steps/1: 2 is not of type");
    console.presses(KeyCode::Backspace, 40);
    console.event(&Event::Paste(
        "{\"steps\":[\"a\"],\n\"owner\":\"me\"}".to_owned(),
    ));
    console.shows("✓ valid JSON  ✓ must match the schema");
    let answer = sent(&mut console);
    assert_eq!(answer, json!("{\"steps\":[\"a\"],\n\"owner\":\"me\"}"));
}

#[test]
fn every_rule_of_a_text_shows_its_state_during_typing() {
    let mut console = open([text()], SIZES[0]);
    console.shows("· at least 20 characters (0 now)");
    console.shows("validator `ticket-desk` checks the answer");
    console.type_text("the ticket asap");
    for state in [
        "✗ at least 20 characters (15 now)",
        "✓ at most 500 characters (15 now)",
        "✓ must contain `ticket`",
        "✗ must not contain `asap`",
        "✗ must match `\\.$`",
    ] {
        console.shows(state);
    }
    console.presses(KeyCode::Backspace, 4);
    console.type_text("was closed twice.");
    console.hides("✗");
    console.ctrl('u');
    console.shows("✗ must match `\\.$`");
    console.ctrl('r');
    assert_eq!(sent(&mut console), json!("the ticket was closed twice."));
}

#[test]
fn a_draft_of_each_kind_of_answer_is_restored() {
    let item = asking([text(), choice(), number(), json_answer()]);
    let draft = json!({
        "request_hash": item.request_hash.to_string(),
        "atlas_hash": item.atlas_hash.to_string(),
        "answered": 0,
        "answers": [
            { "gate": 0, "question": "why", "raw": "half a" },
            { "gate": 0, "question": "where", "raw": "region-04" },
            { "gate": 0, "question": "amount", "raw": "12" },
            { "gate": 0, "question": "plan", "raw": "{" },
        ],
        "reason": "",
    });
    let mut picture = snapshot([item]);
    let drafts = std::collections::BTreeMap::from([("c-1".parse().unwrap(), draft)]);
    picture.drafts = std::sync::Arc::new(drafts);
    let mut console = TestConsole::new(picture, (120, 60));
    console.open();
    for text in ["half a", "chosen: region-04", "number [12", "1 {"] {
        console.shows(text);
    }
}

#[test]
fn a_partly_typed_option_in_an_older_draft_becomes_the_filter() {
    let item = asking([choice()]);
    for (raw, shown) in [("ion-1", "3 of 12"), (" REGION-04 ", "chosen: region-04")] {
        let draft = json!({
            "request_hash": item.request_hash.to_string(),
            "atlas_hash": item.atlas_hash.to_string(),
            "answered": 0,
            "answers": [{ "gate": 0, "question": "where", "raw": raw }],
            "reason": "",
        });
        let mut picture = snapshot([item.clone()]);
        let drafts = std::collections::BTreeMap::from([("c-1".parse().unwrap(), draft)]);
        picture.drafts = std::sync::Arc::new(drafts);
        let mut console = TestConsole::new(picture, SIZES[0]);
        console.open();
        console.shows(shown);
    }
}

#[test]
fn hostile_text_of_a_steward_is_escaped() {
    let evil = "a\u{1b}[2Jb\u{202e}c\u{200b}";
    let mut item = asking([json!({
        "question_id": evil, "question": evil, "hint": evil, "response_type": "choice",
        "options": [evil], "validation": {"custom_validator": evil},
    })]);
    let guidance = json!({ "content": format!("# {evil}\n- [x](http://{evil}) `{evil}`"), "format": "markdown" });
    item.gates[0].guidance = serde_json::from_value(guidance).unwrap();
    item.gates[0].why = evil.to_owned();
    item.agent = evil.to_owned();
    for size in SIZES {
        let mut console = TestConsole::new(snapshot([item.clone()]), size);
        console.open();
        for code in [
            KeyCode::Char('1'),
            KeyCode::F(6),
            KeyCode::End,
            KeyCode::F(6),
        ] {
            console.press(code);
            let text = console.text();
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{text}");
        }
        console.shows("\\u{202e}c\\u{200b}");
    }
}
