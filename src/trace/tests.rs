use serde_json::{Map, Value, json};

use super::chain::Chain;
use super::event::{Draft, Durability, Payload};
use super::hash::Envelope;
use super::jsonl;
use super::record::Record;
use super::verification::{
    ChainHead, ListedEnd, LogVerifier, ProvenCounts, TrustAnchors, VerificationReport,
    VerificationVerdict, check_record,
};
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
fn chain(count: u64) -> Vec<Record> {
    let mut chain = Chain::new(session());
    (0..count)
        .map(|n| {
            let at = Timestamp::from_micros(i64::try_from(n).unwrap() * 1_000_000).to_string();
            let payload = Payload::read(
                "action_completed",
                fields(json!({"action_type": format!("a:{n}"), "success": true, "duration_ms": n})),
            );
            chain.seal(&draft(
                &format!("e-{n}"),
                &format!("s-{n}"),
                None,
                &at,
                payload.unwrap(),
            ))
        })
        .collect()
}

fn line(record: &Record) -> String {
    let mut line = String::new();
    jsonl::write_line(&record.envelope().unwrap(), &record.hash, &mut line);
    line
}

fn export(records: &[Record]) -> String {
    records.iter().map(|record| line(record) + "\n").collect()
}

fn head(records: &[Record]) -> ChainHead {
    let last = records.last().unwrap();
    ChainHead {
        session: session(),
        count: records.len() as u64,
        hash: last.hash,
        last_at: last.timestamp,
    }
}

/// Verdict about records, checked against a list that contains `head`.
fn verdict(records: &[Record], head: &ChainHead) -> VerificationVerdict {
    let mut verifier = LogVerifier::new(TrustAnchors::nothing());
    for record in records {
        match check_record(&record.text, &record.hash) {
            Ok((envelope, link)) => verifier.push(&envelope, &link, &record.text),
            Err(what) => {
                let place = verifier.chain_index(&record.session);
                verifier.report_unreadable(Some(place), &what);
            }
        }
    }
    let start = Timestamp::from_micros(0);
    verifier.check_listed(head, "", &start, ListedEnd::No);
    let mut chains = verifier.finish().chains;
    assert_eq!(chains.len(), 1, "{chains:?}");
    chains.remove(0).verdict
}

fn of_export(text: &str) -> VerificationReport {
    jsonl::verify(text.as_bytes(), TrustAnchors::nothing())
}

fn holds(count: u64) -> VerificationVerdict {
    VerificationVerdict::Holds(ProvenCounts {
        count,
        ..ProvenCounts::default()
    })
}

// covers T2
#[test]
fn hash_matches_known_answers() {
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
        payload: &crate::base::canonical_json::canonical(&json!({
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
    let event = chain.seal(&draft(
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
fn an_intact_chain_holds_but_its_end_is_unproven() {
    let records = chain(5);
    assert_eq!(verdict(&records, &head(&records)), holds(5));
    let report = of_export(&export(&records));
    assert_eq!(report.chains[0].verdict, holds(5));
    assert_eq!(report.chains[0].verdict.to_string(), "UNSEALED tail 5");
    assert_eq!(report.log, None);
}

#[test]
fn record_and_event_give_the_same_line() {
    for record in chain(3) {
        let event = record.event_of().unwrap();
        assert_eq!(jsonl::format_line(&event), line(&record));
        let text = line(&record);
        let (envelope, hash) = jsonl::read_line(&text).unwrap();
        assert_eq!((envelope, hash), (record.envelope().unwrap(), record.hash));
    }
}

#[test]
fn a_missing_tail_is_reported_as_truncated() {
    let records = chain(5);
    let cut = |found| VerificationVerdict::Truncated { found, expected: 5 };
    assert_eq!(verdict(&records[..3], &head(&records)), cut(3));
    assert_eq!(verdict(&[], &head(&records)), cut(0));
}

/// One way to tamper with a chain.
type Attack = fn(&mut Vec<Record>);

#[test]
fn tampering_is_reported_at_its_sequence() {
    let records = chain(5);
    let head = head(&records);
    let attacks: [(&str, u64, Attack); 9] = [
        ("delete", 2, |all| drop(all.remove(2))),
        ("reorder", 1, |all| all.swap(1, 2)),
        ("duplicate", 3, |all| all.insert(3, all[2].clone())),
        ("drop the first", 0, |all| drop(all.remove(0))),
        ("edit", 3, |all| {
            all[3].text = all[3].text.replace("true", "false");
        }),
        ("set the clock back", 2, |all| {
            all[2].text = all[2].text.replace("00:00:02.", "00:00:00.");
        }),
        ("loose timestamp", 1, |all| {
            all[1].text = all[1].text.replace(".000000Z", "Z");
        }),
        ("loose payload", 1, |all| {
            all[1].text = all[1].text.replace(":true", ": true");
        }),
        ("extra event", 5, |all| all.push(all[4].clone())),
    ];
    for (name, place, attack) in attacks {
        let mut tampered = records.clone();
        attack(&mut tampered);
        assert_ne!(tampered, records, "{name}");
        match verdict(&tampered, &head) {
            VerificationVerdict::Broken { sequence, .. } => assert_eq!(sequence, place, "{name}"),
            other => panic!("{name}: {other}"),
        }
    }
}

/// Rechains every record from the third on, with hashes that fit.
fn rechain(records: &mut [Record]) {
    for n in 2..records.len() {
        let previous = records[n - 1].hash.to_string();
        let record = &mut records[n];
        let keep = record.text.len() - previous.len();
        record.text.replace_range(keep.., &previous);
        record.hash = Digest::of(&record.text);
    }
}

#[test]
fn forgery_with_recomputed_hashes_is_detected() {
    let honest = chain(5);
    // One event is rewritten with a hash that fits: the next event does not link to it.
    let mut forged = honest.clone();
    forged[2].text = forged[2].text.replace("true", "false");
    forged[2].hash = Digest::of(&forged[2].text);
    let found = verdict(&forged, &head(&honest));
    assert!(
        matches!(found, VerificationVerdict::Broken { sequence: 3, .. }),
        "{found}"
    );

    // Everything after it is rewritten too, the head included: values that no writer writes still show.
    let attacks: [(&str, Attack); 4] = [
        ("is earlier", |all| {
            all[2].text = all[2].text.replace("00:00:02.", "00:00:00.");
        }),
        ("canonical", |all| {
            all[2].text = all[2].text.replace(":true", ": true");
        }),
        ("trace_version", |all| {
            all[2].text = all[2].text.replacen("1.0", "1.1", 1);
        }),
        ("wrong format", |all| {
            all[2].text = all[2].text.replace("1970-01-01T", "1970-01-01 ");
        }),
    ];
    for (expected, attack) in attacks {
        let mut forged = honest.clone();
        attack(&mut forged);
        rechain(&mut forged);
        let found = verdict(&forged, &head(&forged));
        assert!(
            matches!(found, VerificationVerdict::Broken { sequence: 2, .. }),
            "{found}"
        );
        assert!(found.to_string().contains(expected), "{found}");
    }
}

#[test]
fn events_beyond_the_head_are_reported() {
    let records = chain(5);
    let found = verdict(&records, &head(&records[..4]));
    assert!(
        matches!(found, VerificationVerdict::Broken { sequence: 4, .. }),
        "{found}"
    );
    assert!(found.to_string().contains("never acknowledged"), "{found}");
}

#[test]
fn every_flipped_bit_of_an_export_is_detected() {
    let text = export(&chain(3));
    assert!(of_export(&text).is_sound());
    for index in 0..text.len() {
        for bit in 0..8 {
            let mut bytes = text.clone().into_bytes();
            bytes[index] ^= 1 << bit;
            let report = jsonl::verify(&bytes, TrustAnchors::nothing());
            assert!(!report.is_sound(), "byte {index} bit {bit}: {report:?}");
        }
    }
}

#[test]
fn every_flipped_bit_of_a_stored_record_is_detected() {
    for record in chain(2) {
        for index in 0..record.text.len() {
            for bit in 0..7 {
                let mut bytes = record.text.clone().into_bytes();
                bytes[index] ^= 1 << bit;
                let text = String::from_utf8(bytes).unwrap();
                assert!(
                    check_record(&text, &record.hash).is_err(),
                    "byte {index} bit {bit}"
                );
            }
        }
    }
}

/// Texts with the same bytes in other fields are parsed into the same fields as written.
#[test]
fn no_byte_can_move_between_fields() {
    let record = &chain(1)[0];
    let envelope = record.envelope().unwrap();
    let mut again = String::new();
    envelope.write(&mut again);
    assert_eq!(again, record.text);
    for (from, to) in [
        (":e-0:", ":e:-0:"),
        (":e-0:", "::"),
        (":s-0:", ":s-0::"),
        (":0:1970", ":00:1970"),
        (":0:1970", ":+0:1970"),
        (":action_completed:{", ":action_completed:x:{"),
        (":{\"", ": {\""),
        ("}:", "}x:"),
        ("}:", "}{}:"),
        (":0000", ":000"),
    ] {
        let text = record.text.replacen(from, to, 1);
        assert_ne!(text, record.text, "{from}");
        assert!(Envelope::split(&text).is_err(), "{from} as {to}");
    }
}

#[test]
fn a_field_outside_the_hash_is_rejected() {
    let mut value: Value = serde_json::from_str(&line(&chain(1)[0])).unwrap();
    value["zz_note"] = json!("approved");
    let text = crate::base::canonical_json::canonical(&value);
    let problem = jsonl::read_line(&text).unwrap_err();
    assert_eq!(problem, "has a field `zz_note` that no hash covers");
}

#[test]
fn an_unreadable_line_casts_doubt_on_the_whole_file() {
    let text = export(&chain(2));
    for bad in ["", "{}", "not json", "\u{feff}", "{\"a\":1}", "[]"] {
        let report = of_export(&format!("{bad}\n{text}"));
        assert!(!report.is_sound(), "{bad}: {report:?}");
        let problem = report.chains[0].verdict.to_string();
        assert!(problem.contains("line 1"), "{problem}");
    }
    assert!(!of_export("\n").is_sound());
}

#[test]
fn a_clock_set_back_does_not_break_the_chain() {
    let mut chain = Chain::new(session());
    let payload = || {
        let body = json!({"original_error_id": "x", "recovery_method": "r", "success": true});
        Payload::read("error_recovered", fields(body)).unwrap()
    };
    let first = chain.seal(&draft(
        "e-0",
        "s-0",
        None,
        "2026-01-01T00:00:05.000000Z",
        payload(),
    ));
    let second = chain.seal(&draft(
        "e-1",
        "s-1",
        None,
        "2026-01-01T00:00:01.000000Z",
        payload(),
    ));
    assert_eq!(second.timestamp, first.timestamp);
    let report = of_export(&export(&[first, second]));
    assert_eq!(report.chains[0].verdict, holds(2));
}

#[test]
fn unknown_fields_of_a_known_type_are_rejected() {
    let body = json!({"original_error_id": "x", "recovery_method": "r", "success": true, "x": 1});
    let problem = Payload::read("error_recovered", fields(body))
        .unwrap_err()
        .to_string();
    assert!(problem.contains("unknown field `x`"), "{problem}");
    assert!(Payload::read("made_up", Map::new()).is_err());
}
