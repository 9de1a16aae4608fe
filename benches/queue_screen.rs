//! Cost of the queue screen with ten, a thousand and a hundred thousand held requests.
//!
//! `cargo bench --bench queue_screen` prints a table of ratios at the end: a frame and a key should cost the
//! same however many are held. Times differ between machines; the ratios are what is promised.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::document::{Respondent, RiskTier};
use cra_core::atlas::model::CompiledQuestion;
use cra_core::base::clock::Timestamp;
use cra_core::base::digest::Digest;
use cra_core::console::bench_console::BenchQueue as BenchConsole;
use cra_core::engine::held::{
    ActionCall, Gate, GateOrigin, Held, HeldSubject, PassEffects, TierSource,
};
use cra_core::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};
use criterion::Criterion;
use ratatui::crossterm::event::KeyCode;
use serde_json::json;

#[path = "support/ratios.rs"]
mod ratios;

use ratios::{nanoseconds, ratio, time};

const SIZES: [usize; 3] = [10, 1_000, 100_000];

fn main() {
    let mut criterion = ratios::criterion()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    for size in SIZES {
        measure(&mut criterion, size);
    }
    criterion.final_summary();
    report();
}

fn measure(criterion: &mut Criterion, size: usize) {
    let full = snapshot(size);
    let mut fewer = (*full).clone();
    let gone = size / 2;
    fewer.held.remove(gone);
    let fewer = Arc::new(fewer);
    let mut screen = BenchConsole::new(Arc::clone(&full), now()).expect("memory");
    screen.press(KeyCode::PageDown);
    screen.paint();
    let mut group = criterion.benchmark_group("queue_frame");
    group.bench_function(size.to_string(), |bench| bench.iter(|| screen.paint()));
    group.finish();
    let mut group = criterion.benchmark_group("queue_key");
    group.bench_function(size.to_string(), |bench| {
        bench.iter(|| {
            screen.press(KeyCode::Down);
            screen.press(KeyCode::Up);
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("queue_one_leaves_and_comes");
    group.bench_function(size.to_string(), |bench| {
        bench.iter(|| {
            screen.replace(Arc::clone(black_box(&fewer)));
            screen.replace(Arc::clone(black_box(&full)));
        });
    });
    group.finish();
}

fn now() -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000)
}

fn snapshot(size: usize) -> Arc<RuntimeSnapshot> {
    let held = (0..size).map(|at| Arc::new(request(at))).collect();
    Arc::new(RuntimeSnapshot {
        revision: 1,
        operator: "op-1@ops".to_owned(),
        access: ConsoleAccess::Write,
        held,
        ..RuntimeSnapshot::empty()
    })
}

fn request(at: usize) -> Held {
    let tiers = [
        RiskTier::Low,
        RiskTier::Medium,
        RiskTier::High,
        RiskTier::Critical,
    ];
    let tier = tiers.get(at % tiers.len()).copied().expect("four tiers");
    let question: CompiledQuestion = serde_json::from_value(json!({
        "question_id": "confirm",
        "question": "Was the customer asked?",
        "response_type": "boolean",
    }))
    .expect("a question");
    Held {
        id: format!("c-{at}").parse().expect("an identifier"),
        session: format!("s-{}", at % 500).parse().expect("an identifier"),
        agent: format!("agent-{}", at % 40),
        intent: Some("clean up duplicate tickets".to_owned()),
        subject: HeldSubject::Action(ActionCall {
            action: "ticket.update".to_owned(),
            params: json!({ "ticket_ids": [at], "cascade": true }),
            tier,
            tier_source: TierSource::Declared,
        }),
        request_hash: Digest::of(format!("request {at}")),
        atlas_hash: Digest::of("atlas"),
        gates: vec![Gate {
            origin: GateOrigin::Checkpoint {
                atlas_id: "com.acme.support".to_owned(),
                checkpoint_id: "update-confirm".to_owned(),
                name: "update-confirm".to_owned(),
                kind: "action_pre".to_owned(),
                priority: 100,
            },
            why: "matches the pattern *.update".to_owned(),
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
        deadline: now().plus(Duration::from_secs(600 + at as u64 % 997)),
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

fn report() {
    println!("\n| operation | 10 held | 1,000 held | 100,000 held | 100,000 / 10 | limit |");
    println!("|---|---|---|---|---|---|");
    for (what, promised) in [
        ("frame", "at most 1.5, and below 2 ms"),
        ("key", "at most 2"),
        ("one_leaves_and_comes", "below 16 ms"),
    ] {
        let of = |size: usize| nanoseconds(&format!("queue_{what}"), size);
        let [small, middle, large] = SIZES.map(of);
        println!(
            "| {what} | {} | {} | {} | {} | {promised} |",
            time(small),
            time(middle),
            time(large),
            ratio(large, small)
        );
    }
}
