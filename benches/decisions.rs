//! Cost of a decision, compared with the least possible cost.
//!
//! `cargo bench --bench decisions` prints a table of ratios at the end. Times differ between
//! machines; the ratios are what is promised.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::hint::black_box;
use std::time::Duration;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use cra_core::atlas::Atlas;
use cra_core::atlas::index::{ActionMatches, KeywordMatches};
use cra_core::base::id::SessionId;
use cra_core::engine::Engine;
use cra_core::engine::command::{
    ActionCompletion, ActionRequest, AgentReply, Effect, EngineCommand, Reply, ReplyId,
    StartSession,
};
use cra_core::engine::judgement::judge_under;
use criterion::{BenchmarkId, Criterion, Throughput};

#[path = "support/generated_atlas.rs"]
mod generated_atlas;
#[path = "support/ratios.rs"]
mod ratios;

use generated_atlas::{
    ALLOWED, DENIED, HELD, atlas, keyword_manifest, keywords, manifest, now, params, prose, session,
};
use ratios::{nanoseconds, ratio, time};

/// Checkpoints, and as many policies.
const RULES: [usize; 4] = [10, 100, 1_000, 10_000];

/// Bytes of input.
const INPUTS: [usize; 4] = [100, 1_000, 10_000, 100_000];

/// Keywords that are looked for in it.
const KEYWORDS: usize = 1_000;

fn main() {
    let mut criterion = ratios::criterion()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    let atlases = RULES.map(|rules| (rules, [atlas(&manifest(rules))]));
    decisions(&mut criterion, &atlases);
    inputs(&mut criterion);
    turns(&mut criterion, &atlases);
    loading(&mut criterion);
    criterion.final_summary();
    report();
}

/// A whole decision, and the bare look-up in it. All sizes of one kind come one after the other, so
/// that what else the machine does falls on all of them.
fn decisions(criterion: &mut Criterion, atlases: &[(usize, [Atlas; 1])]) {
    let (session, params, now) = (session(), params(), now());
    for (name, action, is_allowed) in [
        ("allow", ALLOWED, true),
        ("deny", DENIED, false),
        ("hold", HELD, false),
    ] {
        let mut group = criterion.benchmark_group(name);
        for (rules, atlases) in atlases {
            let judge = || judge_under(atlases, &session, black_box(action), &params, now);
            assert_eq!(judge().is_allowed(), is_allowed, "{action}");
            group.bench_function(BenchmarkId::from_parameter(rules), |bench| {
                bench.iter(|| judge().is_allowed());
            });
        }
    }
    let mut group = criterion.benchmark_group("look_up");
    for (rules, atlases) in atlases {
        group.bench_function(BenchmarkId::from_parameter(rules), |bench| {
            bench.iter(|| ActionMatches::of(atlases, black_box(ALLOWED)).len());
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("command");
    for (rules, atlases) in atlases {
        let mut engine = started(atlases);
        group.bench_function(BenchmarkId::from_parameter(rules), |bench| {
            bench.iter(|| run(&mut engine));
        });
    }
}

/// A request and its completion, with everything that is recorded and kept of them.
fn run(engine: &mut Engine) -> usize {
    let session: SessionId = "s-1".parse().expect("an identifier");
    let request = ActionRequest {
        delivery: cra_core::engine::command::DeliveryTime::Now,
        on_disconnect: cra_core::engine::command::OnDisconnect::Kept,
        session: session.clone(),
        action: "service7.list".to_owned(),
        params: params(),
        deadline: None,
        resolution: None,
        call: None,
    };
    let effects = engine.handle(EngineCommand::RequestAction(ReplyId(2), request), now());
    let allowed = effects.iter().find_map(|effect| match effect {
        Effect::Reply(_, Reply::Agent(AgentReply::Allowed(allowed))) => {
            Some(allowed.execution.clone())
        }
        _ => None,
    });
    let completed = ActionCompletion {
        delivery: cra_core::engine::command::DeliveryTime::Now,
        session,
        execution: allowed.expect("an allowed run"),
        result: Ok(String::new()),
    };
    let after = engine.handle(EngineCommand::CompleteAction(ReplyId(3), completed), now());
    effects.len() + after.len()
}

/// An engine with a session.
fn started(atlases: &[Atlas]) -> Engine {
    let ids = Box::new(cra_core::base::id::CountedIds::default());
    let mut engine = Engine::new(atlases.to_vec(), ids);
    let start = StartSession {
        delivery: cra_core::engine::command::DeliveryTime::Now,
        session: "s-1".parse().expect("an identifier"),
        agent: "bot".to_owned(),
        agent_version: None,
        intent: None,
        owner: None,
    };
    engine.handle(EngineCommand::StartSession(ReplyId(1), start), now());
    engine
}

/// Looking for keywords, and an automaton that only finds them.
fn inputs(criterion: &mut Criterion) {
    let words = keywords(KEYWORDS);
    let atlases = [atlas(&keyword_manifest(&words))];
    let automaton = automaton(&words);
    for bytes in INPUTS {
        let text = prose(bytes);
        let throughput = Throughput::Bytes(bytes as u64);
        let mut group = criterion.benchmark_group("keywords");
        group.throughput(throughput.clone());
        group.bench_function(BenchmarkId::from_parameter(bytes), |bench| {
            bench.iter(|| KeywordMatches::of(&atlases, black_box(&text)));
        });
        group.finish();
        let mut group = criterion.benchmark_group("automaton");
        group.throughput(throughput);
        group.bench_function(BenchmarkId::from_parameter(bytes), |bench| {
            bench.iter(|| automaton.find_overlapping_iter(black_box(&text)).count());
        });
        group.finish();
    }
}

/// Calls of an agent in one turn: input of 1 KB, then a request for an action. The floor is the
/// automaton's pass over the input and the bare look-up of the action.
fn turns(criterion: &mut Criterion, atlases: &[(usize, [Atlas; 1])]) {
    let (session, params, now) = (session(), params(), now());
    let text = prose(1_000);
    for (rules, atlases) in atlases {
        let words: Vec<_> = (1..*rules)
            .filter(|at| at % 5 == 4)
            .flat_map(|at| [format!("keyword number {at}"), format!("phrase{at}")])
            .collect();
        let automaton = automaton(&words);
        let mut group = criterion.benchmark_group("turn");
        group.bench_function(BenchmarkId::from_parameter(rules), |bench| {
            bench.iter(|| {
                let seen = KeywordMatches::of(atlases, black_box(&text));
                let judged = judge_under(atlases, &session, black_box(ALLOWED), &params, now);
                (seen, judged.is_allowed())
            });
        });
        group.finish();
        let mut group = criterion.benchmark_group("turn_floor");
        group.bench_function(BenchmarkId::from_parameter(rules), |bench| {
            bench.iter(|| {
                let seen = automaton.find_overlapping_iter(black_box(&text)).count();
                (seen, ActionMatches::of(atlases, black_box(ALLOWED)).len())
            });
        });
    }
}

/// Automaton that finds keywords and does nothing else.
fn automaton(words: &[String]) -> AhoCorasick {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .expect("an automaton")
}

/// From text to an Atlas that can be asked.
fn loading(criterion: &mut Criterion) {
    let mut load = |name: &str, parameter: usize, text: &str| {
        let mut group = criterion.benchmark_group(name);
        group
            .sample_size(10)
            .throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(parameter), |bench| {
            bench.iter(|| atlas(black_box(text)));
        });
        group.finish();
    };
    for rules in RULES {
        load("load", rules, &manifest(rules));
    }
    load(
        "load_keywords",
        KEYWORDS,
        &keyword_manifest(&keywords(KEYWORDS)),
    );
}

fn report() {
    println!(
        "\n| rules | decision | look-up | decision / look-up | turn | floor | turn / floor | command | load |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for rules in RULES {
        let of = |group| nanoseconds(group, rules);
        println!(
            "| {rules} | {} | {} | {} | {} | {} | {} | {} | {} |",
            time(of("allow")),
            time(of("look_up")),
            ratio(of("allow"), of("look_up")),
            time(of("turn")),
            time(of("turn_floor")),
            ratio(of("turn"), of("turn_floor")),
            time(of("command")),
            time(of("load")),
        );
    }
    println!("\n| input | {KEYWORDS} keywords | automaton | ratio |\n|---|---|---|---|");
    for bytes in INPUTS {
        let (own, bare) = (
            nanoseconds("keywords", bytes),
            nanoseconds("automaton", bytes),
        );
        println!(
            "| {bytes} B | {} | {} | {} |",
            time(own),
            time(bare),
            ratio(own, bare)
        );
    }
    for group in ["allow", "deny", "hold", "command"] {
        let of = |rules| nanoseconds(group, rules);
        println!("\n{group}: T(1,000) / T(10) = {}", ratio(of(1_000), of(10)));
    }
}
