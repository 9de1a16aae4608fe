//! Turns in scenarios: what is expected of one, and what is none.

use super::{is_unreadable, play};

const HOT: &str = "
  - start: { session: s-1 }
  - turn: { session: s-1, message_id: m-1, message: go, proposed: { arc: one },
            affect: { label: angry, intensity: 0.9, confidence: high, source: model } }
  - turn: { session: s-1, message_id: m-2, message: go on, proposed: { arc: two } }
";

// covers D10, D11, D16
#[test]
fn turn_expectations_pass_or_are_reported() {
    let all = "    expect: { decision: should, frozen: true, summary: kept_at_peak, arc: one, records: [breakpoint_decided] }\n";
    let ran = play(&format!("{HOT}{all}"), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    let reply = "turn s-1 \"go on\"";
    assert!(ran.out.contains(reply), "{}", ran.out);
    assert!(
        ran.out.contains("should, FROZEN: summary kept_at_peak"),
        "{}",
        ran.out
    );
    for (expected, reply) in [
        ("decision: must", "expected must, got should"),
        ("frozen: false", "expected not frozen, got frozen"),
        (
            "summary: updated",
            "expected summary updated, got summary kept_at_peak",
        ),
        ("arc: two", "expected arc `two`, got arc `one`"),
    ] {
        let ran = play(&format!("{HOT}    expect: {{ {expected} }}\n"), &[]);
        assert_eq!((ran.code, ran.err.as_str()), (4, ""), "{}", ran.out);
        assert!(ran.out.contains(reply), "`{reply}` in {}", ran.out);
    }
    let unknown = "
  - turn: { session: s-9, message_id: m-1, message: go }
    expect: { frozen: false }
";
    let ran = play(unknown, &[]);
    assert_eq!(ran.code, 4, "{}", ran.out);
    assert!(
        ran.out
            .contains("expected not frozen, got denied (session)"),
        "{}",
        ran.out
    );
    let ran = play(HOT, &["--json"]);
    let steps: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let turn = &steps[2]["turn"];
    assert_eq!((&turn["frozen"], &turn["rule"]), (&true.into(), &6.into()));
    assert_eq!(turn["memento"]["arc"], "one");
}

#[test]
fn invalid_turn_step_is_refused_with_its_line() {
    for (step, words) in [
        (
            "turn: { session: s-1, message_id: m-1 }",
            ["missing field `message`", ":5:"],
        ),
        (
            "turn: { session: s-1, message_id: m-1, message: go, mood: 1 }",
            ["unknown field `mood`", ":5:"],
        ),
        ("turn: []", ["expected one turn, found 0", ":5:"]),
        ("wait: 1\n    expect: { frozen: true }", ["frozen", ":6:"]),
    ] {
        let steps = format!("\n  - start: {{ session: s-1 }}\n  - {step}\n");
        is_unreadable(&play(&steps, &[]), &words);
    }
}
