//! Cost of a hook before each step of an agent: the whole process of `cra hook`, from start to exit, compared with
//! interpreters that do nothing at all.
//!
//! `cargo bench --bench hook`. They take turns, so that what else the machine does falls on all of them. The target
//! is a fifth of `python3 -c pass`. What is found by that name may be a script that looks for the interpreter: a hook
//! pays for that too, and the interpreter alone is measured for comparison.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cra_core::gateway::protocol::proof::AnswerSigner;
use cra_core::trace::note::Signer;
use serde_json::json;

#[expect(dead_code, reason = "only the console is needed here")]
#[path = "support/agent_load.rs"]
mod agent_load;

use agent_load::Console;

/// Runs of each.
const RUNS: usize = 100;

/// The Atlas for coding agents.
const CODING: &str = include_str!("../assets/atlas/coding-agents.yaml");

/// Command to measure.
struct Runner<'a> {
    name: &'static str,
    command: Box<dyn Fn() -> Command + 'a>,
    input: String,
    times: Vec<Duration>,
}

impl<'a> Runner<'a> {
    fn new(name: &'static str, command: impl Fn() -> Command + 'a, input: String) -> Self {
        Self {
            name,
            command: Box::new(command),
            input,
            times: Vec::new(),
        }
    }

    /// Runs it once; whether it is there at all.
    fn run(&self) -> Option<(Duration, String)> {
        let begun = Instant::now();
        let child = (self.command)()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let mut child = child.ok()?;
        let mut stdin = child.stdin.take().expect("an input");
        // Who reads nothing may be gone by now.
        let _ = stdin.write_all(self.input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().expect("an end");
        let took = begun.elapsed();
        assert!(
            output.status.success(),
            "{}: {:?}",
            self.name,
            output.status
        );
        Some((took, String::from_utf8(output.stdout).expect("text")))
    }
}

fn main() {
    let threads = tokio::runtime::Runtime::new().expect("a runtime");
    let console = threads.block_on(Console::under(CODING));
    // The same Atlas, but agents are answered before their events are on disk.
    let early = CODING.replacen(
        "trace_config:\n",
        "trace_config:\n  acknowledge: early\n",
        1,
    );
    let early = threads.block_on(Console::under(&early));
    let payload = json!({
        "session_id": "6bd73c2b-1", "transcript_path": "/t.jsonl", "cwd": "/src",
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "cargo test", "description": "d"}, "tool_use_id": "toolu_1",
    });
    let python = itself("python3", &["-c", "import sys; print(sys.executable)"]);
    let node = itself("node", &["-p", "process.execPath"]);
    let mut runners = vec![
        Runner::new(
            "cra hook claude-code",
            || hook(&console),
            payload.to_string(),
        ),
        Runner::new(
            "cra hook, `acknowledge: early` (at most 1.2)",
            || hook(&early),
            payload.to_string(),
        ),
        Runner::new(
            "python3 -c pass",
            || with("python3", &["-c", "pass"]),
            String::new(),
        ),
        Runner::new(
            "its interpreter alone",
            || with(&python, &["-c", "pass"]),
            String::new(),
        ),
        Runner::new("node -e 0", || with("node", &["-e", "0"]), String::new()),
        Runner::new(
            "its interpreter alone",
            || with(&node, &["-e", "0"]),
            String::new(),
        ),
    ];
    // Once for nothing: files are read into memory then.
    runners.retain(|runner| match runner.run() {
        Some((_, output)) if runner.name.starts_with("cra") => {
            assert_eq!(output, "{}\n", "it was not allowed");
            true
        }
        Some(_) => true,
        None => {
            println!("{} is left out: it is not installed", runner.name);
            false
        }
    });
    // Each program runs twice, and the second run counts: the caches hold its own files then, not those of the
    // program before it.
    for _ in 0..RUNS {
        for runner in &mut runners {
            runner.run().expect("it is there");
            let (took, _) = runner.run().expect("it is there");
            runner.times.push(took);
        }
    }
    report(&mut runners);
    drop(runners);
    threads.block_on(async { drop((console.record().await, early.record().await)) });
}

/// A hook that asks a console.
fn hook(console: &Console) -> Command {
    let signer = Signer::new("cra/log", &agent_load::SEED).expect("a key");
    let key = AnswerSigner::derive(&signer).verifier().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cra"));
    command.env_clear().args(["hook", "claude-code"]);
    command.arg("--data-dir").arg(console.folder());
    command
        .arg("--socket")
        .arg(console.socket())
        .args(["--key", &key]);
    command
}

/// Path that a program reports for itself, or else its name.
fn itself(name: &str, arguments: &[&str]) -> String {
    let output = with(name, arguments).output();
    let output = output.map(|value| String::from_utf8_lossy(&value.stdout).trim().to_owned());
    output
        .ok()
        .filter(|item| !item.is_empty())
        .unwrap_or_else(|| name.to_owned())
}

fn with(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn report(runners: &mut [Runner<'_>]) {
    for runner in &mut *runners {
        runner.times.sort_unstable();
    }
    println!(
        "\n| from start to exit, {RUNS} runs in turn | best | median | cra is, at best | in the median |"
    );
    println!("|---|---|---|---|---|");
    let both = |runner: &Runner<'_>| (runner.times[0], runner.times[RUNS / 2]);
    let (best, median) = both(&runners[0]);
    for runner in &*runners {
        let (its_best, its_median) = both(runner);
        let ratio = |ours: Duration, its: Duration| ours.as_secs_f64() / its.as_secs_f64();
        println!(
            "| {} | {:.1} ms | {:.1} ms | {:.2} of it | {:.2} of it |",
            runner.name,
            its_best.as_secs_f64() * 1e3,
            its_median.as_secs_f64() * 1e3,
            ratio(best, its_best),
            ratio(median, its_median),
        );
    }
}
