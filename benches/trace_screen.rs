//! Cost of the trace screen: a frame, a key and a filter, for a short session and for one of a
//! million events.
//!
//! `cargo bench --bench trace_screen` prints a table of ratios at the end. Times differ between machines;
//! the ratios are what is promised.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::sync::Arc;
use std::time::Duration;

use cra_core::console::bench_console::BenchConsole;
use cra_core::runtime::RecordReader;
use cra_core::store::sqlite::SqliteStore;
use cra_core::store::{Batch, RecordedSession, Store};
use cra_core::trace::note::Signer;
use criterion::{BatchSize, Criterion};
use ratatui::crossterm::event::KeyCode;
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "support/ratios.rs"]
mod ratios;
#[expect(dead_code, reason = "only the story is told here")]
#[path = "support/recorded_events.rs"]
mod recorded_events;
#[path = "support/session.rs"]
mod session;

use ratios::{nanoseconds, ratio, time};
use recorded_events::memory;
use session::Session;

const LONG: usize = 1_000_000;
const SHORT: usize = 1_000;
const SIZE: (u16, u16) = (120, 36);

fn main() {
    let mut criterion = ratios::criterion()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    let record = Kept::new();
    frames(&mut criterion, &record);
    reading(&mut criterion, &record);
    criterion.final_summary();
    report();
}

/// A store with a short and a long session.
struct Kept {
    _folder: TempDir,
    runtime: Runtime,
    store: Arc<dyn Store>,
    sessions: Vec<RecordedSession>,
}

impl Kept {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let runtime = Runtime::new().expect("a runtime");
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(folder.path()).expect("a store"));
        for (name, count) in [("short", SHORT), ("long", LONG)] {
            let mut session = Session::new(name);
            let mut left = count;
            while left > 0 {
                let page = session.take(left.min(10_000));
                left -= page.len();
                let done = runtime.block_on(async { store.append(Batch::of(page)).await?.await });
                done.expect("a durable batch");
            }
        }
        let sessions = runtime.block_on(store.sessions()).expect("sessions");
        Self {
            _folder: folder,
            runtime,
            store,
            sessions,
        }
    }

    fn session(&self, events: usize) -> RecordedSession {
        let mut sessions = self.sessions.iter();
        let found = sessions.find(|session| session.events == events as u64);
        found.expect("a session of that length").clone()
    }

    /// A session, opened, with nothing read.
    fn open(&self, events: usize) -> BenchConsole {
        let key = Signer::new("bench", &[7; 32]).expect("a key").verifier();
        let reading =
            RecordReader::new(Arc::clone(&self.store), key, self.runtime.handle().clone());
        BenchConsole::open(reading, self.session(events), SIZE)
    }

    /// A session, opened and read, the cursor in the middle.
    fn read(&self, events: usize) -> BenchConsole {
        let mut screen = self.open(events);
        while screen.answer() {}
        screen.press(KeyCode::Char(':'));
        screen.type_line(&format!("seek {}", events / 2));
        while screen.answer() {}
        screen.draw();
        let wanted = format!("paused at {} of {}", events / 2, events - 1);
        assert!(screen.text().contains(&wanted), "{}", screen.text());
        screen
    }
}

fn frames(criterion: &mut Criterion, record: &Kept) {
    let mut group = criterion.benchmark_group("frame");
    let mut long = record.read(LONG);
    println!(
        "memory: {} KiB at the most with a million events open",
        memory()
    );
    for (name, screen) in [("1k", &mut record.read(SHORT)), ("1m", &mut long)] {
        group.bench_function(name, |bench| bench.iter(|| screen.draw()));
    }
    // A key that moves, and the frame after it.
    group.bench_function("step_1m", |bench| {
        bench.iter(|| {
            long.press(KeyCode::Char('j'));
            long.press(KeyCode::Char('k'));
            long.draw();
        });
    });
    // The key that does most: everything is folded anew.
    group.bench_function("fold_1m", |bench| {
        bench.iter(|| {
            long.press(KeyCode::Char('z'));
            long.draw();
        });
    });
    group.finish();
}

fn reading(criterion: &mut Criterion, record: &Kept) {
    let mut group = criterion.benchmark_group("read");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(10));
    for (name, events) in [("open_1k", SHORT), ("open_1m", LONG)] {
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let mut screen = record.open(events);
                // The rows of the first page and the first event: what a first look needs.
                screen.answer();
                screen.answer();
                screen.draw();
                assert!(screen.text().contains("input_received"));
            });
        });
    }
    group.bench_function("window", |bench| {
        bench.iter_batched(
            || {
                let mut screen = record.open(LONG);
                screen.answer();
                screen.answer();
                screen
            },
            |mut screen| {
                screen.answer();
                screen
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("outline_1m", |bench| {
        bench.iter(|| {
            let mut screen = record.open(LONG);
            while screen.answer() {}
        });
    });
    let mut screen = record.read(LONG);
    for (name, text, found) in [
        ("filter_type_1m", "type:policy_override", "111111/1000000"),
        ("filter_risk_1m", "risk>=high actor:nobody", "0/1000000"),
        ("filter_text_1m", "\"nowhere to be found\"", "0/1000000"),
    ] {
        group.bench_function(name, |bench| {
            bench.iter(|| {
                screen.press(KeyCode::Char('f'));
                for _ in 0..60 {
                    screen.press(KeyCode::Backspace);
                }
                screen.type_line(text);
                while screen.answer() {}
                screen.draw();
                assert!(screen.text().contains(found), "{}", screen.text());
            });
        });
    }
    group.finish();
}

fn report() {
    let frame = |name: &str| nanoseconds("frame", name);
    let read = |name: &str| nanoseconds("read", name);
    println!("\n| operation | ours | baseline | ratio | limit |\n|---|---|---|---|---|");
    let row = |what: &str, ours: Option<f64>, baseline: Option<f64>, promised: &str| {
        println!(
            "| {what} | {} | {} | {} | {promised} |",
            time(ours),
            time(baseline),
            ratio(ours, baseline)
        );
    };
    row(
        "a frame of 1 M, of 1 k",
        frame("1m"),
        frame("1k"),
        "at most 1.5, and 2 ms",
    );
    row(
        "two keys and a frame of 1 M, a frame",
        frame("step_1m"),
        frame("1m"),
        "-",
    );
    row(
        "everything of 1 M folded anew, a frame",
        frame("fold_1m"),
        frame("1m"),
        "within 16 ms",
    );
    row(
        "first look at 1 M, at 1 k",
        read("open_1m"),
        read("open_1k"),
        "at most 1.5",
    );
    row(
        "all of 1 M read into the outline, one window",
        read("outline_1m"),
        read("window"),
        "-",
    );
    for name in ["filter_type_1m", "filter_risk_1m", "filter_text_1m"] {
        row(name, read(name), read("outline_1m"), "at most 1");
    }
}
