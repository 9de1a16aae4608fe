//! Turns of a conversation across processes: what one froze the next one finds frozen.

use std::fs;

use serde_json::{Value, json};

use super::place::{Place, WIDE};

fn turn(number: u32, fields: &Value) -> Value {
    let mut turn = json!({
        "session": "s-1",
        "message_id": format!("m-{number}"),
        "message": "go on",
        "affect": {"label": "tense", "intensity": 0.9, "confidence": "high", "source": "model"},
        "proposed": {"arc": format!("arc {number}")},
    });
    let fields = fields.as_object().unwrap().clone();
    turn.as_object_mut().unwrap().extend(fields);
    turn
}

fn take(place: &Place, turns: &Value) -> std::process::Output {
    let file = place.path("turns.json");
    fs::write(&file, turns.to_string()).unwrap();
    let (atlas, file) = (place.atlas(), file.to_str().unwrap().to_owned());
    place.cra(&["turn", &file, "--atlas", atlas.to_str().unwrap(), "--json"])
}

fn shown(place: &Place) -> Value {
    let output = place.cra(&["thread", "show", "s-1", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap()
}

// covers D16, D18
#[test]
fn a_freeze_outlives_every_process_and_ends_with_a_turn_that_must() {
    let place = Place::new("gates.yaml");
    let mut terminal = place.console(WIDE);
    terminal.wait_for("Queue");
    let refused = take(&place, &turn(1, &json!({})));
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("in use by another console"), "{told}");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);

    let taken = take(&place, &json!([turn(1, &json!({})), turn(2, &json!({}))]));
    assert!(taken.status.success(), "{taken:?}");
    let frozen = shown(&place);
    assert_eq!(frozen["frozen"], true);
    assert_eq!(frozen["held_back"][0]["proposed"]["arc"], "arc 2");
    // A console comes and goes in between: the freeze is not its own.
    let mut terminal = place.console(WIDE);
    terminal.wait_for("Queue");
    terminal.keys("q");
    assert_eq!(terminal.wait_exit(), 0);
    assert_eq!(shown(&place), frozen, "a console thaws nothing");

    let signal = json!({
        "endMessageId": "m-3", "kind": "pivot", "confidence": "high", "source": "model",
    });
    let must = json!({"signals": [signal], "if_match": frozen["etag"]});
    let taken = take(&place, &turn(3, &must));
    assert!(taken.status.success(), "{taken:?}");
    let thawed = shown(&place);
    assert_eq!(thawed["frozen"], false);
    assert_eq!(thawed["arc"], "arc 3");
    let decided = place.payloads("breakpoint_decided");
    let active = |it: &Value| it["metadata"]["peakGuardrailActive"].as_bool().unwrap();
    let active: Vec<_> = decided.iter().map(active).collect();
    assert_eq!(active, [false, true, false]);
    assert_eq!(decided[2]["summary"], "Breakpoint decision: MUST");
    assert_eq!(decided[2]["thread"]["etag"], thawed["etag"]);
    place.assert_sound();
}
