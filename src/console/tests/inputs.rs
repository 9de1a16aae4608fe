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
    let mut stage = TestConsole::new(snapshot([asking(questions)]), size);
    stage.open();
    stage
}

/// Presses Pass from the field before it, and returns the only answer sent.
#[track_caller]
fn sent(stage: &mut TestConsole) -> Value {
    stage.presses(KeyCode::PageDown, 3);
    stage.presses(KeyCode::Tab, 3);
    let mut decided = decisions(stage.press(KeyCode::Enter));
    assert_eq!(decided.len(), 1, "{}", stage.text());
    let Ruling::Pass { answers } = decided.remove(0).ruling else {
        panic!("it was denied");
    };
    let answers = answers.into_iter().next().unwrap();
    answers.into_values().next().unwrap_or(Value::Null)
}

/// A screen at each size, one below the other.
fn at_every_size(set: impl Fn(&mut TestConsole), questions: &[Value]) -> String {
    let screens = SIZES.map(|size| {
        let mut stage = open(questions.to_vec(), size);
        set(&mut stage);
        stage.text()
    });
    screens.join("\n\n")
}

#[test]
fn every_kind_of_answer_is_painted_at_every_size() {
    let typed = |text: &'static str| {
        move |stage: &mut TestConsole| {
            stage.type_text(text);
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
    let no = |stage: &mut TestConsole| {
        stage.press(KeyCode::Right);
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
    let mut stage = open([choice()], SIZES[0]);
    stage.presses(KeyCode::Down, 4);
    stage.shows("nothing chosen yet");
    stage.shows("> ( ) 5 region-05");
    stage.shows("Pass is disabled: 1 answer missing");
    stage.press(KeyCode::Enter);
    stage.shows("chosen: region-05");
    stage.press(KeyCode::Char('3'));
    stage.shows("> (•) 3 region-03");
    stage.presses(KeyCode::Down, 20);
    stage.shows("> ( )   region-12");
    stage.shows("chosen: region-03");
    stage.press(KeyCode::Char(' '));
    assert_eq!(sent(&mut stage), json!("region-12"));
}

#[test]
fn the_row_that_keys_act_on_is_on_screen_at_every_size() {
    let mut long = choice();
    long["question"] = json!("Where does it run, and why there? ".repeat(20));
    for size in SIZES {
        let mut stage = open([long.clone()], size);
        for option in 1..=12 {
            stage.shows(&format!("region-{option:02}"));
            stage.press(KeyCode::Down);
        }
        let mut wordy = text();
        wordy["hint"] = json!("say what was looked at, by whom, and when. ".repeat(20));
        let mut stage = open([wordy], size);
        stage.type_text("what is typed is seen");
        stage.shows("what is typed is seen");
    }
}

#[test]
fn typing_filters_the_options_and_esc_lists_all_again() {
    let mut stage = open([choice()], SIZES[0]);
    stage.type_text("ON-1");
    stage.shows("3 of 12");
    stage.hides("region-09");
    stage.press(KeyCode::Down);
    stage.press(KeyCode::Enter);
    stage.shows("chosen: region-11");
    stage.type_text("x");
    stage.shows("no option contains `ON-1x`");
    stage.press(KeyCode::Enter);
    stage.shows("chosen: region-11");
    stage.press(KeyCode::Esc);
    stage.shows("region-01");
    assert_eq!(stage.app.layers.len(), 1, "Esc closed nothing");
    assert_eq!(sent(&mut stage), json!("region-11"));
    stage = open([choice()], SIZES[0]);
    stage.event(&Event::Paste("region-07\r\n".to_owned()));
    stage.shows("1 of 12");
    stage.shows("nothing chosen yet");
}

#[test]
fn options_that_differ_in_case_alone_are_sent_exactly() {
    let options = json!({
        "question_id": "q", "question": "?", "response_type": "choice",
        "options": ["Prod", "prod", "\u{202e}dorp"],
    });
    let mut stage = open([options.clone()], SIZES[0]);
    stage.press(KeyCode::Char('2'));
    assert_eq!(sent(&mut stage), json!("prod"));
    let mut stage = open([options], SIZES[0]);
    stage.shows("\\u{202e}dorp");
    stage.press(KeyCode::Char('3'));
    assert_eq!(sent(&mut stage), json!("\u{202e}dorp"));
}

#[test]
fn a_number_field_accepts_only_numbers_and_shows_its_rules() {
    let mut stage = open([number()], SIZES[0]);
    stage.shows("· a number, such as 12 or -0.5  · at least 1  · at most 500");
    stage.shows("if invalid: DENIED");
    stage.type_text("x");
    stage.shows("enter a number");
    stage.type_text("-");
    stage.shows("✗ a number, such as 12 or -0.5  ✗ at least 1  ✗ at most 500");
    stage.shows("Pass is disabled: 1 answer invalid");
    stage.press(KeyCode::Backspace);
    stage.type_text("501");
    stage.shows("✓ a number  ✓ at least 1  ✗ at most 500");
    stage.press(KeyCode::Backspace);
    stage.type_text(".5");
    assert_eq!(sent(&mut stage), json!("50.5"));
    let mut stage = open([number()], SIZES[0]);
    stage.event(&Event::Paste("12 apples".to_owned()));
    stage.shows("✗ a number, such as 12 or -0.5");
}

#[test]
fn a_json_answer_reports_error_locations_and_starts_from_its_schema() {
    let mut stage = open([json_answer()], SIZES[0]);
    stage.shows("F4 skeleton");
    stage.shows("· valid JSON  · must match the schema");
    stage.press(KeyCode::F(4));
    stage.shows("\"owner\": \"\"");
    stage.shows("✗ must match the schema (at /owner:");
    stage.hides("F4 skeleton");
    stage.press(KeyCode::F(4));
    stage.shows("the skeleton needs an empty answer");
    stage.ctrl('u');
    stage.ctrl('u');
    stage.shows("F4 skeleton");
    stage.type_text("{\"steps\": [1,");
    stage.press(KeyCode::Enter);
    stage.type_text("oops");
    stage.shows("line 2 column 1");
    stage.presses(KeyCode::Backspace, 4);
    stage.type_text("2], \"owner\": \"\"}");
    stage.shows("at /owner:");
    stage.shows("at /steps/0: 1 is not of type");
    stage.shows("at /steps/1: 2 is not of type");
    stage.presses(KeyCode::Backspace, 40);
    stage.event(&Event::Paste(
        "{\"steps\":[\"a\"],\n\"owner\":\"me\"}".to_owned(),
    ));
    stage.shows("✓ valid JSON  ✓ must match the schema");
    let answer = sent(&mut stage);
    assert_eq!(answer, json!("{\"steps\":[\"a\"],\n\"owner\":\"me\"}"));
}

#[test]
fn every_rule_of_a_text_shows_its_state_during_typing() {
    let mut stage = open([text()], SIZES[0]);
    stage.shows("· at least 20 characters (0 now)");
    stage.shows("validator `ticket-desk` checks the answer");
    stage.type_text("the ticket asap");
    for state in [
        "✗ at least 20 characters (15 now)",
        "✓ at most 500 characters (15 now)",
        "✓ must contain `ticket`",
        "✗ must not contain `asap`",
        "✗ must match `\\.$`",
    ] {
        stage.shows(state);
    }
    stage.presses(KeyCode::Backspace, 4);
    stage.type_text("was closed twice.");
    stage.hides("✗");
    stage.ctrl('u');
    stage.shows("✗ must match `\\.$`");
    stage.ctrl('r');
    assert_eq!(sent(&mut stage), json!("the ticket was closed twice."));
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
    let mut stage = TestConsole::new(picture, (120, 60));
    stage.open();
    for text in ["half a", "chosen: region-04", "number [12", "1 {"] {
        stage.shows(text);
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
        let mut stage = TestConsole::new(picture, SIZES[0]);
        stage.open();
        stage.shows(shown);
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
        let mut stage = TestConsole::new(snapshot([item.clone()]), size);
        stage.open();
        for code in [
            KeyCode::Char('1'),
            KeyCode::F(6),
            KeyCode::End,
            KeyCode::F(6),
        ] {
            stage.press(code);
            let text = stage.text();
            assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{200b}']), "{text}");
        }
        stage.shows("\\u{202e}c\\u{200b}");
    }
}
