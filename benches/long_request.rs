//! Cost of a request of ten megabytes in the dialog, compared with a frame of sixteen milliseconds.
//!
//! `cargo bench --bench long_request` prints a table at the end: opening it, scrolling, jumping, searching,
//! and the event that recorded it. Every key should cost less than a frame; work on background threads
//! may take longer.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cra_core::atlas::document::{Respondent, RiskTier};
use cra_core::atlas::model::CompiledQuestion;
use cra_core::base::clock::Timestamp;
use cra_core::base::digest::Digest;
use cra_core::base::id::{CountedIds, IdSource, SessionId};
use cra_core::console::bench_console::{BenchConsole as Record, BenchQueue as BenchConsole};
use cra_core::engine::held::{
    ActionCall, Gate, GateOrigin, Held, HeldSubject, PassEffects, TierSource,
};
use cra_core::runtime::RecordReader;
use cra_core::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};
use cra_core::store::sqlite::SqliteStore;
use cra_core::store::{Batch, Store};
use cra_core::trace::chain::Chain;
use cra_core::trace::event::{Draft, Durability, Payload};
use cra_core::trace::note::Signer;
use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Bytes of a request.
const LONG: usize = 10 * 1024 * 1024;
/// Short lines of one.
const LINES: usize = 200_000;
/// Longest time that a key may take.
const FRAME: Duration = Duration::from_millis(16);
/// Number of runs; the best one counts, because other programs use the machine too.
const TIMES: usize = 5;

fn main() {
    println!("| request | operation | cost | share of a 16 ms frame |");
    println!("|---|---|---|---|");
    let line = "all work and no play ".repeat(LONG / 21);
    measure("one line of 10 MB", &json!({ "text": line }));
    let many: Vec<Value> = (0..LINES)
        .map(|at| json!(format!("line {at} of many, so that it adds up")))
        .collect();
    measure("200,000 lines", &json!({ "lines": many }));
}

fn measure(name: &str, params: &Value) {
    let tell = |what: &str, cost: Duration| {
        let ratio = cost.as_secs_f64() / FRAME.as_secs_f64();
        println!(
            "| {name} | {what} | {:.2} ms | {ratio:.2} |",
            cost.as_secs_f64() * 1000.0
        );
    };
    dialog(params, tell);
    event(params, tell);
}

fn dialog(params: &Value, tell: impl Fn(&str, Duration)) {
    let picture = snapshot(params);
    let mut screen = BenchConsole::new(picture, now()).expect("memory");
    screen.paint();
    let cost = best(1, || {
        screen.press(KeyCode::Enter);
        screen.paint();
    });
    tell("open", cost);
    tell("background: lay out rows", best(1, || screen.lay_out()));
    let cost = best(1, || {
        screen.apply_layouts();
        screen.paint();
    });
    tell("rows come", cost);
    screen.wait(Duration::from_secs(1));
    for (what, key) in [
        ("page down", KeyCode::PageDown),
        ("to the request", KeyCode::F(6)),
        ("the end", KeyCode::End),
        ("the beginning", KeyCode::Home),
        ("begin to search", KeyCode::Char('/')),
        ("a letter looked for", KeyCode::Char('q')),
        ("and one more", KeyCode::Char('z')),
        ("search", KeyCode::Enter),
        ("next match", KeyCode::Char('n')),
        ("match before", KeyCode::Char('N')),
        ("back to the form", KeyCode::F(6)),
        ("a field", KeyCode::Tab),
        ("close", KeyCode::Esc),
    ] {
        let cost = best(1, || {
            screen.press(key);
            screen.paint();
        });
        tell(what, cost);
    }
    let cost = best(TIMES, || {
        screen.press(KeyCode::Down);
        screen.paint();
    });
    tell("a key in the queue", cost);
}

/// The event that recorded it, on the screen of the record.
fn event(params: &Value, tell: impl Fn(&str, Duration)) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let runtime = Runtime::new().expect("a runtime");
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path()).expect("a store"));
    let records = vec![recorded(params)];
    let done = runtime.block_on(async { store.append(Batch::of(records)).await?.await });
    done.expect("a durable batch");
    let session = runtime.block_on(store.sessions()).expect("sessions");
    let session = session.first().expect("a session").clone();
    let key = Signer::new("bench", &[7; 32]).expect("a key").verifier();
    let reading = RecordReader::new(store, key, runtime.handle().clone());
    let mut screen = Record::open(reading, session, (120, 36));
    let cost = best(1, || while screen.answer() {});
    tell("background: read the event", cost);
    screen.draw();
    let mut all = screen.text();
    for (what, key) in [
        ("its event", KeyCode::Enter),
        ("the last line of its event", KeyCode::Char('G')),
        ("up to its parameters", KeyCode::Up),
        ("and further", KeyCode::Up),
        ("and further still", KeyCode::Up),
        ("unfold them", KeyCode::Char('l')),
        ("into them", KeyCode::Down),
        ("unfold what is in them", KeyCode::Char('l')),
        ("the end of it", KeyCode::Char('G')),
        ("the beginning of it", KeyCode::Char('g')),
    ] {
        let cost = best(1, || {
            screen.press(key);
            screen.draw();
        });
        while screen.answer() {}
        screen.draw();
        all.push_str(&screen.text());
        tell(what, cost);
    }
    assert!(all.contains("action_params"), "it was looked at: {all}");
    assert!(
        all.contains("not shown") || all.contains("more bytes"),
        "{all}"
    );
}

/// The attempt, on record.
fn recorded(params: &Value) -> cra_core::trace::record::Record {
    let fields = json!({
        "action_type": "file.write",
        "action_params": params,
        "risk_tier": "high",
        "policy_checked": true,
    });
    let Value::Object(fields) = fields else {
        unreachable!("an object");
    };
    let session: SessionId = "s-1".parse().expect("an identifier");
    let mut ids = CountedIds::starting_at(1);
    Chain::new(session.clone()).seal(&Draft {
        session_id: session,
        event_id: ids.next().into(),
        trace_id: ids.next().into(),
        span_id: ids.next().into(),
        parent_span_id: None,
        timestamp: now(),
        payload: Payload::read("action_attempted", fields).expect("details of the type"),
        durability: Durability::Sync,
    })
}

fn best(times: usize, mut work: impl FnMut()) -> Duration {
    let once = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..times).map(once).min().unwrap_or_default()
}

fn now() -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000)
}

fn snapshot(params: &Value) -> Arc<RuntimeSnapshot> {
    Arc::new(RuntimeSnapshot {
        revision: 1,
        operator: "op-1@ops".to_owned(),
        access: ConsoleAccess::Write,
        held: vec![Arc::new(request(params))],
        ..RuntimeSnapshot::empty()
    })
}

fn request(params: &Value) -> Held {
    let question: CompiledQuestion = serde_json::from_value(json!({
        "question_id": "confirm",
        "question": "Was the customer asked?",
        "response_type": "boolean",
    }))
    .expect("a question");
    Held {
        id: "c-1".parse().expect("an identifier"),
        session: "s-1".parse().expect("an identifier"),
        agent: "agent".to_owned(),
        intent: None,
        subject: HeldSubject::Action(ActionCall {
            action: "file.write".to_owned(),
            params: params.clone(),
            tier: RiskTier::High,
            tier_source: TierSource::Declared,
        }),
        request_hash: Digest::of("request"),
        atlas_hash: Digest::of("atlas"),
        gates: vec![Gate {
            origin: GateOrigin::Checkpoint {
                atlas_id: "com.acme.support".to_owned(),
                checkpoint_id: "write-confirm".to_owned(),
                name: "write-confirm".to_owned(),
                kind: "action_pre".to_owned(),
                priority: 100,
            },
            why: "matches the pattern *.write".to_owned(),
            questions: vec![question],
            guidance: None,
            effects: PassEffects::default(),
            respondent: Respondent::Operator,
            approvers: cra_core::atlas::document::Approvers::One,
            force_sync: true,
            shared_name: false,
            atlas_hash: None,
            span_id: "span-1".parse().expect("an identifier"),
        }],
        opened_at: now(),
        deadline: now().plus(Duration::from_mins(10)),
        invalid_attempts: 0,
        agent_attempts: 0,
        joined: 0,
        answered: std::collections::BTreeMap::new(),
        approval: None,
        claim: None,
        trace_id: "trace-1".parse().expect("an identifier"),
        span_id: "span-0".parse().expect("an identifier"),
    }
}
