//! Tests that parse exports with independent readers.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::html::HtmlReport;
use super::{csv, html, otlp};
use crate::base::canonical_json::canonical;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::base::text::is_deceptive;
use crate::trace::event::Event;
use crate::trace::replay::tests::event;
use crate::trace::source::MemorySource;

/// Text that tries to break out of its context.
const HOSTILE: &str = "</pre></details><script>alert(1)</script>\u{202e}\u{1b}[31m\u{0}\u{2028} \" ' & <img src=x onerror=y>";

fn sessions(events: &[Event]) -> Vec<SessionId> {
    let names: BTreeSet<_> = events
        .iter()
        .map(|event| event.session_id.clone())
        .collect();
    names.into_iter().collect()
}

/// Writes all exports of these events and reads them back: nothing is lost, no text becomes markup.
pub(crate) fn assert_exports(events: &[Event]) {
    assert_csv(events);
    assert_otlp(events);
    assert_html(events);
}

/// Rows of a CSV file according to RFC 4180.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let row = rows.last_mut().unwrap();
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => {
                chars.next();
                row.last_mut().unwrap().push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(String::new()),
            ('\r', false) if chars.peek() == Some(&'\n') => {
                chars.next();
                rows.push(vec![String::new()]);
            }
            _ => row.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(rows.pop(), Some(vec![String::new()]), "the last row ends");
    rows
}

fn assert_csv(events: &[Event]) {
    let mut text = String::new();
    csv::write_header(&mut text).unwrap();
    for event in events {
        csv::write_event(&mut text, event, None).unwrap();
    }
    let rows = rows(&text);
    assert_eq!(rows.len(), events.len() + 1);
    assert_eq!(rows[0], csv::COLUMNS);
    for (row, event) in rows[1..].iter().zip(events) {
        assert_eq!(row.len(), csv::COLUMNS.len());
        for cell in row {
            let first = cell.trim_start_matches(' ').chars().next();
            let runs = first.is_some_and(|c| "=+-@\t\r\n＝＋－＠".contains(c));
            assert!(!runs, "{cell:?}");
        }
        assert_eq!(row[1], event.sequence.to_string());
        assert_eq!(
            row[3].trim_start_matches('\''),
            event.event_type.trim_start_matches('\'')
        );
        let payload = canonical(&Value::Object(event.payload.clone()));
        assert_eq!(row[13], if event.pruned { "" } else { &payload });
    }
}

fn hex(value: &Value, digits: usize) -> &str {
    let text = value.as_str().unwrap();
    assert_eq!(text.len(), digits, "{text}");
    assert!(
        text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')),
        "{text}"
    );
    assert!(text.contains(|c| c != '0'), "all zeros is no identifier");
    text
}

fn attribute<'v>(of: &'v Value, key: &str) -> &'v Value {
    let attributes = of["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|one| one["key"] == key);
    &found.unwrap_or_else(|| panic!("no {key} in {of}"))["value"]
}

fn nanos(value: &Value) -> u128 {
    value.as_str().unwrap().parse().unwrap()
}

fn assert_otlp(events: &[Event]) {
    let source = MemorySource::new(events.to_vec());
    let mut text = String::new();
    otlp::write(&source, &sessions(events), &mut text).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let mut event_count = 0;
    for resource in whole["resourceSpans"].as_array().unwrap() {
        assert_eq!(
            attribute(&resource["resource"], "service.name")["stringValue"],
            "cra"
        );
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
        assert!(!spans.is_empty(), "an envelope without a span");
        for span in spans {
            let trace = hex(&span["traceId"], 32);
            let id = hex(&span["spanId"], 16);
            assert_eq!(seen.insert(id, trace), None, "one span each");
            assert_eq!(span["kind"], 1);
            assert!(!span["name"].as_str().unwrap().is_empty());
            let (start, end) = (
                nanos(&span["startTimeUnixNano"]),
                nanos(&span["endTimeUnixNano"]),
            );
            assert!(start <= end, "{span}");
            for event in span["events"].as_array().unwrap() {
                let at = nanos(&event["timeUnixNano"]);
                assert!(start <= at && at <= end, "{span}");
                let sequence = attribute(event, "cra.sequence")["intValue"]
                    .as_str()
                    .unwrap();
                let sequence: u64 = sequence.parse().unwrap();
                let known = events.iter().any(|known| {
                    known.sequence == sequence && event["name"] == known.event_type.as_str()
                });
                assert!(known, "{event}");
                event_count += 1;
            }
            if let Some(status) = span.get("status") {
                assert_eq!(status["code"], 2);
            }
        }
        for span in spans {
            let parent = span.get("parentSpanId").map(|parent| hex(parent, 16));
            let of_parent = parent.and_then(|parent| seen.get(parent));
            assert!(
                of_parent.is_none_or(|trace| span["traceId"] == *trace),
                "{span}"
            );
            for link in span
                .get("links")
                .into_iter()
                .flat_map(|list| list.as_array().unwrap())
            {
                hex(&link["traceId"], 32);
                hex(&link["spanId"], 16);
            }
        }
    }
    assert_eq!(event_count, events.len());
}

/// Elements that the report may contain.
const ELEMENTS: &str = "!DOCTYPE html head meta title style body main header footer nav section h1 h2 h3 \
    h4 p dl dt dd div ol li table thead tbody tr th td a span strong em b i code pre details summary";

fn assert_html(events: &[Event]) {
    let text = report(events, Vec::new());
    let elements: BTreeSet<_> = ELEMENTS.split_whitespace().collect();
    let mut open: Vec<&str> = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, _) = part
            .split_once('>')
            .unwrap_or_else(|| panic!("not closed: {part}"));
        let name = tag.trim_start_matches('/').split(' ').next().unwrap();
        assert!(elements.contains(name), "<{tag}>");
        // No attribute may be active or hold untrusted text.
        for attribute in tag.split(' ').skip(1).filter(|word| word.contains('=')) {
            let name = attribute.split('=').next().unwrap();
            let known = [
                "lang",
                "charset",
                "http-equiv",
                "content",
                "name",
                "class",
                "href",
                "id",
            ];
            assert!(known.contains(&name) || tag.starts_with("meta"), "<{tag}>");
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "<{tag}>");
        } else if !matches!(name, "!DOCTYPE" | "meta") {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(
        !text.chars().any(|c| c != '\n' && is_deceptive(c)),
        "something is hidden"
    );
    assert_eq!(text.matches("<details ").count(), events.len());
    let style = text
        .split("<style>")
        .nth(1)
        .unwrap()
        .split("</style>")
        .next()
        .unwrap();
    let hash = STANDARD.encode(Sha256::digest(style));
    let policy = format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'");
    assert!(
        text.contains(&policy),
        "the policy lets its own style in and nothing else"
    );
}

fn report(events: &[Event], facts: Vec<(String, String)>) -> String {
    report_with_log(events, facts, Vec::new())
}

fn report_with_log(events: &[Event], facts: Vec<(String, String)>, log: Vec<Event>) -> String {
    let report = HtmlReport {
        made_at: Timestamp::from_micros(0),
        facts,
        log,
    };
    let source = MemorySource::new(events.to_vec());
    let mut text = String::new();
    html::write(&source, &report, &sessions(events), &mut text).unwrap();
    text
}

fn below(parent: &str, mut event: Event) -> Event {
    event.parent_span_id = Some(parent.parse().unwrap());
    event
}

/// A request that is held at a gate, answered and denied; its texts are hostile.
fn story() -> Vec<Event> {
    let attempt =
        json!({"action_type": HOSTILE, "action_params": {HOSTILE: HOSTILE}, "risk_tier": "high"});
    let gate = json!({"checkpoint_id": "g", "checkpoint_type": "action_pre", "mode": "blocking",
        "trigger_condition": HOSTILE, "trigger_data": {"action_id": HOSTILE}});
    let answer = json!({"checkpoint_id": "g", "answers": {"why": HOSTILE, "pin": "sha256:aa:bb"},
        "validation_result": "invalid", "answered_by": HOSTILE});
    let blocked =
        json!({"checkpoint_id": "g", "reason": HOSTILE, "outcome": "denied", "decided_by": "op"});
    let refused = json!({"action_type": HOSTILE, "policy_id": "g", "reason": HOSTILE});
    let mut pruned = event(6, "plugin_event", json!({}));
    pruned.pruned = true;
    vec![
        event(
            0,
            "session_started",
            json!({"agent_type": HOSTILE, "intent": HOSTILE, "atlas_ids": [HOSTILE]}),
        ),
        event(1, "action_attempted", attempt),
        below("span-1", event(2, "checkpoint_triggered", gate)),
        below("span-2", event(3, "checkpoint_response", answer)),
        below("span-2", event(4, "checkpoint_blocked", blocked)),
        below("span-1", event(5, "action_blocked", refused)),
        pruned,
    ]
}

#[test]
fn hostile_text_stays_text_in_every_export() {
    assert_exports(&story());
    assert_exports(&[]);
    let mut big = story();
    let long = format!("={}{HOSTILE}", "x\u{202e}".repeat(300_000));
    big.push(event(
        7,
        "error_occurred",
        json!({"message": long, "error_type": "x"}),
    ));
    assert_exports(&big);
}

#[test]
fn formula_cells_are_escaped() {
    for text in [
        "=1+1", "+1", "-1", "@x", "\tx", "\rx", "\n=1", "  =1", "＝1", "-s.1",
    ] {
        let payload = json!({"action_type": text});
        assert_exports(&[event(0, "action_attempted", payload)]);
    }
    let mut text = String::new();
    csv::write_event(
        &mut text,
        &event(0, "action_attempted", json!({"action_type": "=1+1,\"2\""})),
        None,
    )
    .unwrap();
    assert!(text.contains(",\"'=1+1,\"\"2\"\"\","), "{text}");
    // Text that no spreadsheet runs stays as it is.
    let mut text = String::new();
    csv::write_event(
        &mut text,
        &event(0, "action_attempted", json!({"action_type": "a=b"})),
        None,
    )
    .unwrap();
    assert!(text.contains(",a=b,"), "{text}");
}

#[test]
fn spans_keep_their_parents_durations_and_failures() {
    let mut events = story();
    events[1].trace_id = "0192d3b4-0000-7000-8000-00000000abcd".parse().unwrap();
    let source = MemorySource::new(events.clone());
    let mut text = String::new();
    otlp::write(&source, &sessions(&events), &mut text).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let spans = whole["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let of = |sequence: u64| {
        let wanted = json!(sequence.to_string());
        let found = spans
            .iter()
            .find(|span| attribute(span, "cra.sequence")["intValue"] == wanted);
        found.unwrap().clone()
    };
    let (root, attempt, gate, refused) = (of(0), of(1), of(2), of(4));
    // A parent of another operation becomes a link.
    assert_eq!(
        attempt["traceId"],
        "0192d3b4000070008000".to_owned() + "00000000abcd"
    );
    assert_eq!(attempt.get("parentSpanId"), None);
    assert_eq!(attempt["links"][0]["spanId"], root["spanId"]);
    assert_eq!(refused["parentSpanId"], gate["spanId"]);
    // The span lasts until the last event below it; the denial marks it as stopped.
    assert_eq!(attempt["endTimeUnixNano"], "5000000");
    assert_eq!(gate["endTimeUnixNano"], "4000000");
    assert_eq!(
        (&gate["status"]["code"], &attempt["status"]["code"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(root.get("status"), None);
}

#[test]
fn a_report_lists_decisions_first_and_explains_verdicts() {
    let facts = vec![("witness".to_owned(), "<b>nobody</b>".to_owned())];
    let text = report(&story(), facts);
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what}"));
    assert!(place("<h3>Decisions</h3>") < place("<h3>Events</h3>"));
    assert!(text.contains("<span class=\"tag\">denied</span> g"));
    assert!(text.contains("by <strong>op</strong>"));
    assert!(text.contains("invalid answers before: 1"));
    assert!(text.contains("(sensitive: only a salted hash is recorded)"));
    assert!(!text.contains("sha256:aa:bb</dd>"));
    assert!(text.contains("NOT CHECKED"));
    assert!(text.contains("&lt;b&gt;nobody&lt;/b&gt;"));
    assert!(text.contains("<b class=\"x\">\\u{202e}</b>"));
    for outside in ["http:", "https:", "src=\"", "url(", "@import", "javascript"] {
        assert!(!text.contains(outside), "{outside}");
    }
    // Requests that are still held are shown too.
    let held = report(&story()[..3], Vec::new());
    assert!(held.contains("<span class=\"tag\">still held</span> g"));
    assert!(report(&story()[..1], Vec::new()).contains("No gate decisions"));
}

/// Tags of a report with their attributes, in order. The marks of hidden characters are left out.
fn tags(report: &str) -> Vec<&str> {
    let parts = report.split('<').skip(1);
    let tags = parts.map(|part| part.split_once('>').unwrap().0);
    tags.filter(|tag| !matches!(*tag, "b class=\"x\"" | "/b"))
        .collect()
}

/// The events with another text in place of [`HOSTILE`].
fn with_text(events: &[Event], text: &str) -> Vec<Event> {
    let replaced = |json: &str| {
        let quoted = |text: &str| Value::from(text).to_string();
        json.replace(&quoted(HOSTILE), &quoted(text))
    };
    let mut events = events.to_vec();
    for event in &mut events {
        let payload = Value::Object(event.payload.clone()).to_string();
        event.payload = serde_json::from_str(&replaced(&payload)).unwrap();
    }
    events
}

#[test]
fn hostile_text_adds_no_element_and_no_attribute_to_a_report() {
    let log = [event(
        9,
        "alarm_raised",
        json!({"alarm": HOSTILE, "what": HOSTILE, "by": HOSTILE}),
    )];
    let report_of = |text: &str| {
        let facts = vec![(text.to_owned(), text.to_owned())];
        report_with_log(&with_text(&story(), text), facts, with_text(&log, text))
    };
    let plain = report_of("plain");
    for hostile in [
        HOSTILE,
        "<script>alert(1)</script>",
        "\"><script>alert(1)</script>",
        "' onmouseover='alert(1)",
        "\" onmouseover=\"alert(1)",
        "</code></dd></dl></section><iframe srcdoc=x>",
        "<!-- ",
        "]]>",
        "&lt;script&gt;",
        "\u{202e}<\u{2066}script\u{200b}>",
    ] {
        let report = report_of(hostile);
        assert_eq!(tags(&report), tags(&plain), "{hostile:?}");
        let mut shown = report.chars().filter(|c| *c != '\n');
        assert!(!shown.any(is_deceptive), "{hostile:?}");
    }
    // An entity in a text is shown as it was written.
    assert!(report_of("&lt;b&gt;").contains("&amp;lt;b&amp;gt;"));
    assert!(report_of("a\u{202e}b").contains("a<b class=\"x\">\\u{202e}</b>b"));
}

#[test]
fn cycles_and_orphans_in_the_span_tree_are_exported() {
    let mut events: Vec<Event> = (0..40).map(|at| event(at, "my_type", json!({}))).collect();
    // Each span has the next as its parent, and the last has the first: a cycle. One span is its own
    // parent, one has an unknown parent.
    for (at, event) in events.iter_mut().enumerate() {
        event.parent_span_id = Some(format!("span-{}", (at + 1) % 40).parse().unwrap());
    }
    events[7].parent_span_id = Some("span-7".parse().unwrap());
    events[8].parent_span_id = Some("nowhere".parse().unwrap());
    events[9].span_id = "span-3".parse().unwrap();
    events[10].sequence = u64::MAX - 1;
    events[11].timestamp = Timestamp::from_micros(i64::MAX);
    events[12].payload = Map::new();
    events[13].session_id = "-other".parse().unwrap();
    assert_exports(&events);
}
