use serde_json::{Map, Value, json};

use super::chain::Chain;
use super::event::{Draft, Durability, Event, Payload};
use super::jsonl;
use super::verify::{Head, Known, RawEvent, Verdict, Verifier};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

fn draft(event_id: &str, span: &str, parent: Option<&str>, at: &str, payload: Payload) -> Draft {
    Draft {
        session_id: "33333333-3333-3333-3333-333333333333".parse().unwrap(),
        event_id: event_id.parse().unwrap(),
        trace_id: "11111111-1111-1111-1111-111111111111".parse().unwrap(),
        span_id: span.parse().unwrap(),
        parent_span_id: parent.map(|id| id.parse().unwrap()),
        timestamp: at.parse().unwrap(),
        durability: Durability::Async,
        payload,
    }
}

fn session() -> SessionId {
    "33333333-3333-3333-3333-333333333333".parse().unwrap()
}

/// A short chain: `count` events, a second apart.
fn chain(count: u64) -> Vec<Event> {
    let mut chain = Chain::new(session());
    (0..count)
        .map(|n| {
            let at = Timestamp::from_micros(i64::try_from(n).unwrap() * 1_000_000).to_string();
            let payload = Payload::read(
                "action_completed",
                fields(json!({"action_type": format!("a:{n}"), "success": true, "duration_ms": n})),
            );
            chain.seal(draft(
                &format!("e-{n}"),
                &format!("s-{n}"),
                None,
                &at,
                payload.unwrap(),
            ))
        })
        .collect()
}

fn raw(event: &Event) -> RawEvent {
    jsonl::read_line(&jsonl::line(event)).unwrap()
}

fn head(events: &[Event]) -> Head {
    let last = events.last().unwrap();
    Head {
        session: session(),
        count: events.len() as u64,
        hash: last.hash,
        last_at: last.timestamp,
    }
}

fn verdict(events: &[RawEvent], head: Option<&Head>) -> Verdict {
    let mut verifier = Verifier::new(session());
    for event in events {
        verifier.push(event);
    }
    let known = head.map_or(Known::Nothing, |head| Known::Head(Some(head)));
    verifier.finish(known).verdict
}

// covers T2
#[test]
fn known_answers_of_the_hash() {
    let hash = super::hash::hash(&super::hash::Envelope {
        trace_version: "1.0",
        event_id: "01234567-89ab-cdef-0123-456789abcdef",
        trace_id: "11111111-1111-1111-1111-111111111111",
        span_id: "22222222-2222-2222-2222-222222222222",
        parent_span_id: "",
        session_id: "33333333-3333-3333-3333-333333333333",
        sequence: 0,
        timestamp: "2024-12-28T12:00:00.000000Z",
        event_type: "session_started",
        payload: &crate::base::canon::canonical(&json!({
            "wrapper_version": "1.0.0",
            "agent_type": "claude-code",
            "note": "naïve \"q\"",
            "atlas_ids": ["com.acme.support"],
            "environment": {"platform": "linux"},
            "initial_contexts": ["intro-context"],
        })),
        previous_hash: &Digest::ZERO.to_string(),
    });
    assert_eq!(
        hash.to_string(),
        "29260f878d8fae680c950c0d1335ecc56b78a141c8edd814e5d5c5dd75a051a2"
    );

    let mut chain = Chain::resume(session(), 1, hash, Timestamp::from_micros(0));
    let ended = fields(json!({
        "actions_taken": 0, "contexts_injected": 1, "duration_ms": 0, "event_count": 2,
        "final_status": "completed",
    }));
    let event = chain.seal(draft(
        "01234567-89ab-cdef-0123-456789abcde0",
        "44444444-4444-4444-4444-444444444444",
        Some("22222222-2222-2222-2222-222222222222"),
        "2024-12-28T12:00:01.000000Z",
        Payload::read("session_ended", ended).unwrap(),
    ));
    assert_eq!(event.sequence, 1);
    assert_eq!(
        event.hash.to_string(),
        "ff4a77966809f5e4635349529da0f0d4ecb8dad9d07efc65d85b2a4f4d177099"
    );
}

// covers T1
#[test]
fn a_chain_as_written_verifies() {
    let events = chain(5);
    let raws: Vec<_> = events.iter().map(raw).collect();
    assert_eq!(
        verdict(&raws, Some(&head(&events))),
        Verdict::Verified { last: 4 }
    );
    assert_eq!(verdict(&raws, None), Verdict::Unproven { last: 4 });
}

#[test]
fn a_cut_tail_is_truncated_not_fine() {
    let events = chain(5);
    let raws: Vec<_> = events.iter().map(raw).collect();
    let expected = Verdict::Truncated {
        found: 3,
        expected: 5,
    };
    assert_eq!(verdict(&raws[..3], Some(&head(&events))), expected);
    let expected = Verdict::Truncated {
        found: 0,
        expected: 5,
    };
    assert_eq!(verdict(&[], Some(&head(&events))), expected);
}

/// One way to tamper with a chain.
type Attack = fn(&mut Vec<RawEvent>);

#[test]
fn tampering_is_found_at_its_place() {
    let events = chain(5);
    let head = head(&events);
    let attacks: [(&str, u64, Attack); 10] = [
        ("delete", 2, |raws| drop(raws.remove(2))),
        ("reorder", 1, |raws| raws.swap(1, 2)),
        ("duplicate", 3, |raws| raws.insert(3, raws[2].clone())),
        ("drop the first", 0, |raws| drop(raws.remove(0))),
        ("edit", 3, |raws| {
            raws[3].payload = raws[3].payload.replace("true", "false");
        }),
        ("set the clock back", 2, |raws| {
            raws[2].timestamp = "1970-01-01T00:00:00.000000Z".to_owned();
        }),
        ("shift a boundary", 1, |raws| {
            raws[1].event_id = "e-1:11111111".to_owned();
            raws[1].trace_id = "1111-1111-1111-1111-111111111111".to_owned();
        }),
        ("loose timestamp", 1, |raws| {
            raws[1].timestamp = "1970-01-01T00:00:01Z".to_owned();
        }),
        ("loose payload", 1, |raws| {
            raws[1].payload = raws[1].payload.replace(":true", ": true");
        }),
        ("extra event", 5, |raws| raws.push(raws[4].clone())),
    ];
    for (name, place, attack) in attacks {
        let mut raws: Vec<_> = events.iter().map(raw).collect();
        attack(&mut raws);
        match verdict(&raws, Some(&head)) {
            Verdict::Broken { sequence, .. } => assert_eq!(sequence, place, "{name}"),
            other => panic!("{name}: {other}"),
        }
    }
}

/// Gives an event the hash of what it says now.
fn rehash(raw: &mut RawEvent) {
    let hash = super::hash::hash(&super::hash::Envelope {
        trace_version: &raw.trace_version,
        event_id: &raw.event_id,
        trace_id: &raw.trace_id,
        span_id: &raw.span_id,
        parent_span_id: raw.parent_span_id.as_deref().unwrap_or(""),
        session_id: &raw.session_id,
        sequence: raw.sequence,
        timestamp: &raw.timestamp,
        event_type: &raw.event_type,
        payload: &raw.payload,
        previous_hash: &raw.previous_hash,
    });
    raw.hash = hash.to_string();
}

#[test]
fn a_forger_who_can_compute_hashes_is_found_all_the_same() {
    let events = chain(5);
    let honest: Vec<_> = events.iter().map(raw).collect();
    // One event is rewritten, with a hash that fits it: the next one does not hang on to it.
    let mut raws = honest.clone();
    raws[2].payload = raws[2].payload.replace("true", "false");
    rehash(&mut raws[2]);
    let found = verdict(&raws, Some(&head(&events)));
    assert!(
        matches!(found, Verdict::Broken { sequence: 3, .. }),
        "{found}"
    );

    // Everything after it is rewritten too, the head included: what no writer writes still shows.
    let attacks: [(&str, Attack); 4] = [
        ("is earlier", |raws| {
            raws[2].timestamp = "1970-01-01T00:00:00.000000Z".to_owned();
        }),
        ("canonical", |raws| {
            raws[2].payload = raws[2].payload.replace(":true", ": true");
        }),
        ("trace_version", |raws| {
            raws[2].trace_version = "1.1".to_owned();
        }),
        ("belongs to session", |raws| {
            raws[2].session_id = "other".to_owned();
        }),
    ];
    for (expected, attack) in attacks {
        let mut raws = honest.clone();
        attack(&mut raws);
        for n in 2..raws.len() {
            raws[n].previous_hash = raws[n - 1].hash.clone();
            rehash(&mut raws[n]);
        }
        let forged = Head {
            hash: raws[4].hash.parse().unwrap(),
            ..head(&events)
        };
        let found = verdict(&raws, Some(&forged));
        assert!(
            matches!(found, Verdict::Broken { sequence: 2, .. }),
            "{found}"
        );
        assert!(found.to_string().contains(expected), "{found}");
    }
}

#[test]
fn events_beyond_the_head_were_never_acknowledged() {
    let events = chain(5);
    let raws: Vec<_> = events.iter().map(raw).collect();
    let found = verdict(&raws, Some(&head(&events[..4])));
    assert!(
        matches!(found, Verdict::Broken { sequence: 4, .. }),
        "{found}"
    );
    assert!(found.to_string().contains("never acknowledged"), "{found}");
}

#[test]
fn every_flipped_bit_of_an_export_is_found() {
    let text: String = chain(3)
        .iter()
        .map(|event| jsonl::line(event) + "\n")
        .collect();
    assert!(
        jsonl::verify(&text)
            .iter()
            .all(|checked| checked.verdict.is_sound())
    );
    for index in 0..text.len() - 1 {
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[index] ^= 1 << bit;
            // What is not text any more does not even reach the verifier.
            let Ok(flipped) = String::from_utf8(bytes) else {
                continue;
            };
            let checked = jsonl::verify(&flipped);
            assert!(
                checked.iter().any(|checked| !checked.verdict.is_sound()),
                "byte {index} bit {bit}: {checked:?}"
            );
        }
    }
}

#[test]
fn a_field_that_no_hash_covers_is_refused() {
    let line = jsonl::line(&chain(1)[0]);
    let mut value: Value = serde_json::from_str(&line).unwrap();
    value["zz_note"] = json!("approved");
    let told = jsonl::read_line(&crate::base::canon::canonical(&value)).unwrap_err();
    assert_eq!(told, "has a field `zz_note` that no hash covers");
}

#[test]
fn a_clock_set_back_does_not_break_the_chain() {
    let mut chain = Chain::new(session());
    let payload = || {
        let body = json!({"original_error_id": "x", "recovery_method": "r", "success": true});
        Payload::read("error_recovered", fields(body)).unwrap()
    };
    let first = chain.seal(draft(
        "e-0",
        "s-0",
        None,
        "2026-01-01T00:00:05.000000Z",
        payload(),
    ));
    let second = chain.seal(draft(
        "e-1",
        "s-1",
        None,
        "2026-01-01T00:00:01.000000Z",
        payload(),
    ));
    assert_eq!(second.timestamp, first.timestamp);
    let events = [first, second];
    let raws: Vec<_> = events.iter().map(raw).collect();
    assert_eq!(
        verdict(&raws, Some(&head(&events))),
        Verdict::Verified { last: 1 }
    );
}

#[test]
fn unknown_fields_of_a_known_type_are_refused() {
    let body = json!({"original_error_id": "x", "recovery_method": "r", "success": true, "x": 1});
    let told = Payload::read("error_recovered", fields(body))
        .unwrap_err()
        .to_string();
    assert!(told.contains("unknown field `x`"), "{told}");
    assert!(Payload::read("made_up", Map::new()).is_err());
}
