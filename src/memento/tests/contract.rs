use super::*;

fn refused(memento: &Value) -> String {
    ThreadMemento::from_value(memento).unwrap_err().to_string()
}

/// A memento in which `path` is `value`; without a value, `path` is removed.
fn with(path: &str, value: Option<Value>) -> Value {
    let mut memento = full();
    let (above, last) = path.rsplit_once('/').unwrap();
    let place = memento.pointer_mut(above).unwrap();
    match (place, value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(last.to_owned(), value)),
        (Value::Object(fields), None) => drop(fields.remove(last).unwrap()),
        (Value::Array(items), Some(value)) => items[last.parse::<usize>().unwrap()] = value,
        (other, _) => panic!("{other}"),
    }
    memento
}

/// A memento with all optional parts.
fn full() -> Value {
    let mut memento = heated("rising", "med");
    memento["affect"]["points"] = json!([{
        "endMessageId": "m-0", "label": "tense", "intensity": 0.5, "confidence": "low",
        "source": "device_hint"
    }]);
    memento["signals"] = json!({"updatedAt": "2026-01-31T23:59:59Z", "items": [{
        "endMessageId": "m-0", "kind": "pivot", "confidence": "med", "source": "server",
        "summary": "x".repeat(180)
    }]});
    memento
}

#[test]
fn memento_round_trips_unchanged() {
    for memento in [memento(), full()] {
        let read = ThreadMemento::from_value(&memento).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), memento);
    }
}

// covers D12, D13
#[test]
fn signals_are_optional_and_limited_to_eight() {
    let without = with("/signals/items", None);
    let read = ThreadMemento::from_value(&without).unwrap();
    assert!(read.signals.unwrap().items.is_empty());
    let item = full()["signals"]["items"][0].clone();
    let eight = with("/signals/items", Some(json!(vec![item.clone(); 8])));
    assert!(ThreadMemento::from_value(&eight).is_ok());
    let nine = with("/signals/items", Some(json!(vec![item; 9])));
    assert!(refused(&nine).starts_with("signals.items: 9 signals exceed the limit of 8"));
}

fn holds_to(table: &[(&str, Option<Value>, &str)]) {
    for (path, value, wanted) in table {
        let refused = refused(&with(path, value.clone()));
        assert!(refused.starts_with(wanted), "{path}: {refused}");
    }
}

fn long(length: usize) -> Value {
    json!("x".repeat(length))
}

#[rustfmt::skip]
#[test]
fn memento_that_breaks_the_contract_is_rejected_with_its_path() {
    holds_to(&[
        ("/mementoId", Some(json!("")), "mementoId: is empty"),
        ("/threadId", Some(json!(7)), "threadId: invalid type: integer `7`"),
        ("/createdTs", Some(json!("yesterday")), "createdTs: must be a time"),
        ("/createdTs", Some(json!("2026-01-31T23:59:59+01:00")), "createdTs: must be a time"),
        ("/createdTs", Some(json!("2026-02-30T23:59:59Z")), "createdTs: must be a time"),
        ("/version", Some(json!("memento-v0.1")), "version: must be `memento-v0.2`, not `memento-v0.1`"),
        ("/arc", Some(long(201)), "arc: has 201 characters, and at most 200 are allowed"),
        ("/arc", Some(json!("")), "arc: is empty"),
        ("/arc", None, "memento: missing field `arc`"),
        ("/next/0", Some(long(201)), "next[0]: has 201 characters"),
        ("/extra", Some(json!(1)), "extra: unknown field `extra`"),
    ]);
}

#[rustfmt::skip]
#[test]
fn affect_that_breaks_the_contract_is_rejected_with_its_path() {
    let six = vec![full()["affect"]["points"][0].clone(); 6];
    holds_to(&[
        ("/affect", None, "memento: missing field `affect`"),
        ("/affect/mood", Some(json!(1)), "affect.mood: unknown field `mood`"),
        ("/affect/points", Some(json!(six)), "affect.points: 6 points exceed the limit of 5"),
        ("/affect/points/0/intensity", Some(json!(1.01)), "affect.points[0].intensity: 1.01 is not"),
        ("/affect/points/0/intensity", Some(json!(-0.1)), "affect.points[0].intensity: -0.1 is not"),
        ("/affect/points/0/label", Some(long(65)), "affect.points[0].label: has 65 characters"),
        ("/affect/points/0/source", Some(json!("user")), "affect.points[0].source: unknown variant"),
        ("/affect/rollup/phase", Some(json!("calm")), "affect.rollup.phase: unknown variant `calm`"),
        ("/affect/rollup/extra", Some(json!(1)), "affect.rollup.extra: unknown field"),
    ]);
}

#[rustfmt::skip]
#[test]
fn signals_that_break_the_contract_are_rejected_with_their_path() {
    holds_to(&[
        ("/signals/extra", Some(json!(1)), "signals.extra: unknown field"),
        ("/signals/updatedAt", None, "signals: missing field `updatedAt`"),
        ("/signals/items/0/extra", Some(json!(1)), "signals.items[0].extra: unknown field"),
        ("/signals/items/0/endMessageId", Some(json!("")), "signals.items[0].endMessageId: is empty"),
        ("/signals/items/0/kind", Some(json!("mood")), "signals.items[0].kind: unknown variant"),
        ("/signals/items/0/source", Some(json!("user")), "signals.items[0].source: unknown variant"),
        ("/signals/items/0/confidence", Some(json!("sure")), "signals.items[0].confidence: unknown"),
        ("/signals/items/0/summary", Some(long(181)), "signals.items[0].summary: has 181 characters"),
    ]);
}

#[test]
fn invalid_or_oversized_json_is_rejected() {
    let refused = |text: &[u8]| ThreadMemento::read(text).unwrap_err().to_string();
    assert!(refused(b"").starts_with("memento: EOF"));
    assert!(refused(b"\xff").starts_with("memento: "));
    let twice = format!("{} {{}}", memento());
    assert!(refused(twice.as_bytes()).starts_with("memento: trailing"));
    let deep = "{\"arc\":".repeat(100_000);
    assert!(refused(deep.as_bytes()).starts_with("arc: invalid type"));
    let deep = format!("{{\"extra\":{}", "[".repeat(100_000));
    assert!(refused(deep.as_bytes()).starts_with("extra: unknown field"));
    let large = " ".repeat(crate::base::limits::MAX_MEMENTO_BYTES + 1);
    assert!(refused(large.as_bytes()).contains("bytes exceed the limit of"));
    let double = memento().to_string().replacen('{', "{\"arc\":\"x\",", 1);
    assert!(refused(double.as_bytes()).starts_with("arc: duplicate key"));
}

#[test]
fn list_in_place_of_an_object_is_rejected() {
    let points = json!([["m-0", "tense", 0.5, "low", "model"]]);
    for (path, value, wanted) in [
        (
            "/affect/points",
            points,
            "points: must be an object, not a list",
        ),
        (
            "/affect/rollup",
            json!(["peak", "high", "2026-01-31T23:59:59Z"]),
            "rollup: must be an object, not a list",
        ),
    ] {
        let refused = refused(&with(path, Some(value)));
        assert!(refused.starts_with(wanted), "{refused}");
    }
    let values: Vec<_> = [
        "mementoId",
        "threadId",
        "createdTs",
        "version",
        "arc",
        "active",
        "parked",
        "decisions",
        "next",
        "affect",
    ]
    .map(|field| memento()[field].clone())
    .to_vec();
    let list = Value::Array(values).to_string();
    let refused = ThreadMemento::read(list.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(
        refused.starts_with("memento: must be an object"),
        "{refused}"
    );
}

#[test]
fn proposal_exceeding_the_limits_is_rejected() {
    let place = |value: &Value| SummaryShape::read_proposal(value).unwrap_err().to_string();
    assert!(SummaryShape::read_proposal(&proposal()).is_ok());
    assert!(SummaryShape::read_proposal(&json!({"arc": "x"})).is_ok());
    let table = [
        (json!({"arc": "x".repeat(201)}), "arc: has 201"),
        (json!({}), "shape: missing field `arc`"),
        (
            json!({"arc": "x", "next": vec!["y"; 7]}),
            "next: 7 items exceed the limit of 6",
        ),
        (
            json!({"arc": "x", "next": ["y".repeat(161)]}),
            "next[0]: has 161",
        ),
        (json!({"arc": "x", "mood": 1}), "mood: unknown field"),
        (json!("purge"), "shape: invalid type"),
    ];
    for (value, wanted) in table {
        assert!(place(&value).starts_with(wanted), "{}", place(&value));
    }
}

#[test]
fn shape_changes_are_listed_by_line() {
    let kept = ThreadMemento::from_value(&memento()).unwrap().shape();
    let proposed = SummaryShape::read_proposal(&proposal()).unwrap();
    let changes = kept.changes(&proposed);
    let lines: Vec<_> = changes
        .iter()
        .map(|change| {
            let side = match change.side {
                ChangeSide::Kept => '-',
                ChangeSide::Proposed => '+',
            };
            format!("{side} {} {}", change.part, change.text)
        })
        .collect();
    assert_eq!(
        lines,
        [
            "- arc dedupe tickets",
            "+ arc purge all",
            "- active delete 4411",
            "+ active a",
            "- parked report format",
            "- decisions keep 4398",
            "- next dry run",
            "+ next delete 190",
        ]
    );
    assert!(kept.changes(&kept).is_empty());
}
