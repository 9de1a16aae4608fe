//! Agents at the real socket, over a real SQLite file: what an answer costs one of them, a hundred and a thousand,
//! memory per agent, the effect of many held requests and of runs that are never reported as completed; and a
//! thousand agents for a minute, after which every reply that they received is looked up in the record.
//!
//! `cargo bench --bench socket`, or with the names of parts after `--`: `memory`, `round_trips`, `thousand_agents`,
//! `gates_held`, `live_sessions`, `sustained_load`. Agents and console share one process and its processors, so the figures are those
//! of both. The ratios are what is promised.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cra_core::engine::command::StartSession;
use serde_json::json;
use tokio::task::JoinSet;

#[path = "support/agent_load.rs"]
mod agent_load;

use agent_load::{Agent, Console, Until, check, run_agents};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Duration of each measurement.
const SPELL: Duration = Duration::from_secs(4);

/// Agents of the great crowd, and how long they stay.
const CROWD: u64 = 1000;
const STAY: Duration = Duration::from_mins(1);

fn main() {
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    threads.block_on(async {
        // First: what was used before would be used again.
        if wanted("memory") {
            memory().await;
        }
        if wanted("round_trips") {
            round_trips().await;
        }
        if wanted("thousand_agents") {
            thousand_agents().await;
        }
        if wanted("gates_held") {
            with_gates_held().await;
        }
        if wanted("live_sessions") {
            with_live_sessions().await;
        }
        if wanted("sustained_load") {
            sustained_load().await;
        }
    });
}

/// True for a part that is named on the command line, and for all when none is.
fn wanted(part: &str) -> bool {
    let named: Vec<_> = std::env::args().skip(1).collect();
    let mut named = named
        .iter()
        .filter(|name| !name.starts_with('-'))
        .peekable();
    named.peek().is_none() || named.any(|name| name == part)
}

/// Latencies, and answers per second.
struct Figures {
    waits: Vec<Duration>,
    per_second: f64,
}

impl Figures {
    fn new(mut waits: Vec<Duration>, took: Duration) -> Self {
        waits.sort_unstable();
        let count = f64::from(u32::try_from(waits.len()).expect("a count"));
        Self {
            waits,
            per_second: count / took.as_secs_f64(),
        }
    }

    /// Latency that `of_thousand` of a thousand answers do not exceed.
    fn at(&self, of_thousand: usize) -> Duration {
        let last = self.waits.len() - 1;
        self.waits[(self.waits.len() * of_thousand / 1000).min(last)]
    }
}

fn ms(wait: Duration) -> String {
    format!("{:.2} ms", wait.as_secs_f64() * 1e3)
}

/// Tells whether agents report the results of their runs. Unreported runs are kept with their session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Telling,
    Silent,
}

/// Agents that ask for what is allowed, one request after the other.
async fn ask(console: &Console, agents: u64, manner: Manner) -> Figures {
    let mut all = JoinSet::new();
    let (ready, signal) = tokio::sync::watch::channel(false);
    for agent in 0..agents {
        let (socket, mut signal) = (console.socket(), signal.clone());
        let name = format!("a-{agent}");
        all.spawn(async move {
            let mut one = Agent::begin(&socket, &name).await;
            signal.wait_for(|count| *count).await.expect("a beginning");
            let end = Instant::now() + SPELL;
            let mut waits = Vec::new();
            let mut number = 0;
            while Instant::now() < end {
                let pending = Instant::now();
                let allowed = one.ask("note.read", number).await.expect("a yes");
                waits.push(pending.elapsed());
                let execution = &allowed["execution"];
                assert!(execution.is_string(), "{allowed}");
                if manner == Manner::Telling {
                    let done = json!({"execution": execution, "result": "ok"});
                    one.say("action.completed", done).await.expect("noted");
                }
                number += 1;
            }
            waits
        });
    }
    // All agents connect first.
    let mut connections = console.server.connections();
    let there = usize::try_from(agents).expect("a count");
    connections
        .wait_for(|count| *count >= there)
        .await
        .expect("the server starts");
    let begun = Instant::now();
    ready.send_replace(true);
    let mut waits = Vec::new();
    while let Some(one) = all.join_next().await {
        waits.extend(one.expect("an agent"));
    }
    Figures::new(waits, begun.elapsed())
}

async fn round_trips() {
    println!("\n| agents at once | p50 | p99 | slowest | answers/s |\n|---|---|---|---|---|");
    let mut alone = None;
    let crowds = [
        (1, Manner::Telling),
        (100, Manner::Telling),
        (1000, Manner::Telling),
        (1, Manner::Silent),
        (100, Manner::Silent),
    ];
    for (agents, manner) in crowds {
        let console = Console::open().await;
        let figures = ask(&console, agents, manner).await;
        drop(console.record().await);
        let silent = match manner {
            Manner::Telling => "",
            Manner::Silent => ", who never tell what came of a run",
        };
        println!(
            "| {agents}{silent} | {} | {} | {} | {:.0} |",
            ms(figures.at(500)),
            ms(figures.at(990)),
            ms(figures.at(1000)),
            figures.per_second
        );
        match alone {
            None => alone = Some(figures.per_second),
            Some(alone) => println!(
                "| | | p99/p50 {:.1} | | x {:.2} of one |",
                figures.at(990).as_secs_f64() / figures.at(500).as_secs_f64(),
                figures.per_second / alone
            ),
        }
    }
}

/// A thousand agents without other load, compared with the required limits.
async fn thousand_agents() {
    let console = Console::open().await;
    let figures = ask(&console, 1000, Manner::Telling).await;
    drop(console.record().await);
    println!(
        "\n| 1,000 agents | p50 | p99 (at most 60 ms) | answers/s (at least 14,000) |\n|---|---|---|---|\n| | {} | {} | {:.0} |",
        ms(figures.at(500)),
        ms(figures.at(990)),
        figures.per_second
    );
}

/// Round trips while many requests are held and stay undecided.
async fn with_gates_held() {
    println!(
        "\n| gates held, 100 agents | p50 | p99 | answers/s | of none held (at least 0.8) |\n|---|---|---|---|---|"
    );
    let mut none = None;
    for gates in [0_u64, 100, 1000] {
        let console = Console::open().await;
        let mut holding = JoinSet::new();
        for agent in 0..gates {
            let socket = console.socket();
            holding.spawn(async move {
                let mut one = Agent::begin(&socket, &format!("h-{agent}")).await;
                one.ask("note.write", agent).await
            });
        }
        let mut snapshots = console.runtime.operator_handle().snapshots();
        let there = usize::try_from(gates).expect("a count");
        let all = snapshots
            .wait_for(|snapshot| snapshot.held.len() == there)
            .await;
        drop(all.expect("a snapshot"));
        let figures = ask(&console, 100, Manner::Telling).await;
        holding.abort_all();
        let none = *none.get_or_insert(figures.per_second);
        println!(
            "| {gates} | {} | {} | {:.0} | {:.2} |",
            ms(figures.at(500)),
            ms(figures.at(990)),
            figures.per_second,
            figures.per_second / none
        );
    }
}

/// Sessions that are live in the larger crowd.
const LIVE: u64 = 20_000;

/// A hook's calls (connect, take the session up, ask) with few and with many sessions that are live.
async fn with_live_sessions() {
    println!(
        "\n| live sessions | a hook's calls, p50 | p99 | of ten sessions |\n|---|---|---|---|"
    );
    let mut few = None;
    for live in [10, LIVE] {
        let console = Console::open().await;
        let agents = console.runtime.agent_handle();
        for session in 0..live {
            let start = StartSession {
                delivery: cra_core::engine::command::DeliveryTime::Now,
                session: format!("l-{session}").parse().expect("a name"),
                agent: "bot".to_owned(),
                agent_version: None,
                intent: None,
                owner: None,
            };
            agents.start_session(start).await.expect("a session");
        }
        let socket = console.socket();
        let mut hook = Agent::begin(&socket, "hook").await;
        let (begun, mut waits) = (Instant::now(), Vec::new());
        while begun.elapsed() < SPELL {
            let pending = Instant::now();
            hook.come_back(&socket).await;
            let allowed = hook.ask("note.read", 0).await.expect("a yes");
            waits.push(pending.elapsed());
            let done = json!({"execution": allowed["execution"], "result": "ok"});
            hook.say("action.completed", done).await.expect("noted");
        }
        let figures = Figures::new(waits, begun.elapsed());
        let few = *few.get_or_insert(figures.at(500));
        println!(
            "| {live} | {} | {} | {:.2} (at most 2) |",
            ms(figures.at(500)),
            ms(figures.at(990)),
            figures.at(500).as_secs_f64() / few.as_secs_f64()
        );
    }
}

/// Memory per connected agent. The client side is only a socket.
async fn memory() {
    let console = Console::open().await;
    let before = resident();
    let socket = console.socket();
    let agents = tokio::task::spawn_blocking(move || {
        let each = (0..CROWD).map(|agent| {
            let stream = UnixStream::connect(&socket).expect("a connection");
            let mut stream = BufReader::with_capacity(512, stream);
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"session.start","params":{{"agent":"bot","session":"m-{agent}"}}}}"#
            );
            writeln!(stream.get_mut(), "{line}").expect("written");
            let mut answer = String::new();
            stream.read_line(&mut answer).expect("an answer");
            assert!(answer.contains("\"result\""), "{answer}");
            stream
        });
        each.collect::<Vec<_>>()
    });
    let agents = agents.await.expect("agents");
    let after = resident();
    let each = after.saturating_sub(before) / CROWD;
    println!(
        "\n{} agents are there and have begun: {each} KiB each (resident {before} -> {after} KiB)",
        agents.len(),
    );
}

/// The memory of this process that is in use, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Everything at once, and then the account of it.
async fn sustained_load() {
    let console = Console::open().await;
    let folder = console.folder().to_owned();
    let begun = Instant::now();
    let replies = run_agents(&console, CROWD, Until::Time(begun + STAY)).await;
    let took = begun.elapsed();
    let waits = replies.iter().flat_map(|value| value.waits.clone());
    let figures = Figures::new(waits.collect(), took);
    let size = std::fs::read_dir(&folder).expect("a folder").flatten();
    let size: u64 = size
        .filter_map(|value| Some(value.metadata().ok()?.len()))
        .sum();
    let checking = Instant::now();
    let account = check(&replies, &console.record().await);
    println!(
        "\n{CROWD} agents for {} s, among them every fifth request held:",
        STAY.as_secs()
    );
    println!("  {account:?}");
    println!(
        "  answers without a gate: p50 {}, p99 {}, slowest {}, {:.0}/s",
        ms(figures.at(500)),
        ms(figures.at(990)),
        ms(figures.at(1000)),
        figures.per_second
    );
    println!(
        "  {} MB on disk; chains verified and every answer found, once, in {:.1} s",
        size / 1_000_000,
        checking.elapsed().as_secs_f64()
    );
}
