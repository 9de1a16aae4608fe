//! Cost of the record, compared with the least possible cost.
//!
//! `cargo bench --bench trace` prints a table of ratios at the end. Times differ between machines, and
//! a disk's waits from hour to hour; the ratios are what is promised.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::collections::HashMap;
use std::fs;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use cra_core::base::digest::Digest;
use cra_core::base::id::SessionId;
use cra_core::runtime::lines::{READ_BYTES, each_line};
use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader, SqliteStore};
use cra_core::store::{Batch, Store};
use cra_core::trace::chain::Chain;
use cra_core::trace::jsonl::{self, LinesVerifier};
use cra_core::trace::record::Record;
use cra_core::trace::verification::TrustAnchors;
use criterion::{BatchSize, Criterion, Throughput};
use rusqlite::{Connection, params};
use tempfile::TempDir;
use tokio::runtime::Runtime;

#[path = "support/ratios.rs"]
mod ratios;
#[path = "support/recorded_events.rs"]
mod recorded_events;

use ratios::{nanoseconds, ratio, time};
use recorded_events::{Drafts, Records, memory};

/// Events of the record that is verified and read.
const EVENTS: usize = 1_000_000;

/// Agents that wait for the disk at once.
const AGENTS: u8 = 64;

fn main() {
    let mut criterion = ratios::criterion()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    sealing(&mut criterion);
    appending(&mut criterion);
    verifying(&mut criterion);
    criterion.final_summary();
    report();
}

/// Sealing a draft, compared with the bare hash of the same bytes.
fn sealing(criterion: &mut Criterion) {
    const COUNT: usize = 1_000;
    let mut drafts = Drafts::new();
    let drafts: Vec<_> = (0..COUNT).map(|_| drafts.draft()).collect();
    let seal = || {
        let mut chain = Chain::new(drafts[0].session_id.clone());
        drafts
            .iter()
            .map(|draft| chain.seal(draft))
            .collect::<Vec<_>>()
    };
    let texts: Vec<_> = seal().into_iter().map(|record| record.text).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("a record has {} bytes on average", bytes / COUNT);
    let mut group = criterion.benchmark_group("seal");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("chain", |bench| bench.iter(|| black_box(seal())));
    group.bench_function("sha256", |bench| {
        bench.iter(|| {
            for text in &texts {
                black_box(Digest::of(black_box(text)));
            }
        });
    });
    group.finish();
}

/// A store of its own that takes records one batch after the other.
struct Appending {
    folder: TempDir,
    store: SqliteStore,
    records: Records,
    runtime: Runtime,
}

impl Appending {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        Self {
            store: SqliteStore::open(folder.path()).expect("a store"),
            folder,
            records: Records::new(),
            runtime: Runtime::new().expect("a runtime"),
        }
    }

    /// Until it is durable.
    fn append(&mut self, count: usize) {
        let batch = Batch::of(self.records.take(count));
        let done = self
            .runtime
            .block_on(async { self.store.append(batch).await?.await });
        done.expect("a durable batch");
    }
}

/// Baseline: the same rows in the same tables, by SQLite alone.
struct Plain {
    _folder: TempDir,
    connection: Connection,
    records: Records,
    numbers: HashMap<SessionId, i64>,
    position: i64,
}

impl Plain {
    fn new() -> Self {
        let like = Appending::new();
        drop(like.store);
        let connection = Connection::open(like.folder.path().join(FILE_NAME)).expect("a file");
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
            .expect("durable commits");
        Self {
            _folder: like.folder,
            connection,
            records: Records::new(),
            numbers: HashMap::new(),
            position: 0,
        }
    }

    fn append(&mut self, count: usize) {
        let rows = self.records.take(count);
        let transaction = self.connection.transaction().expect("a transaction");
        for row in &rows {
            let mut insert = transaction
                .prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)")
                .expect("a statement");
            let hash = row.hash.as_bytes().as_slice();
            let known = i64::try_from(self.numbers.len()).expect("a number") + 1;
            let number = *self.numbers.entry(row.session.clone()).or_insert(known);
            let sequence = row.sequence.cast_signed();
            insert
                .execute(params![self.position, number, sequence, row.text, hash])
                .expect("a row");
            self.position += 1;
        }
        transaction.commit().expect("a commit");
    }
}

fn appending(criterion: &mut Criterion) {
    let (mut ours, mut plain) = (Appending::new(), Plain::new());
    let mut group = criterion.benchmark_group("durable");
    for count in [1, 64, 1_024] {
        group.throughput(Throughput::Elements(count as u64));
        // One after the other, so that what the disk does falls on both.
        group.bench_function(format!("store_{count}"), |bench| {
            bench.iter(|| ours.append(count));
        });
        group.bench_function(format!("sqlite_{count}"), |bench| {
            bench.iter(|| plain.append(count));
        });
    }
    group.bench_function("agents", |bench| {
        bench.iter_batched(
            || {
                let batches = (0..AGENTS).map(|_| Batch::of(ours.records.take(1)));
                batches.collect::<Vec<_>>()
            },
            |batches| {
                ours.runtime.block_on(async {
                    let mut acks = Vec::new();
                    for batch in batches {
                        acks.push(ours.store.append(batch).await.expect("room"));
                    }
                    for ack in acks {
                        ack.await.expect("a durable batch");
                    }
                });
            },
            BatchSize::PerIteration,
        );
    });
    // Latency of an append that no caller waits for: only its place in the queue.
    group.bench_function("handed_over", |bench| {
        bench.iter_batched(
            || Batch::of(ours.records.take(1)),
            |batch| {
                let ack = ours.runtime.block_on(ours.store.append(batch));
                drop(ack.expect("room"));
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn verifying(criterion: &mut Criterion) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let lines = folder.path().join("lines.jsonl");
    let texts = fill(folder.path(), &lines);
    let reader = SqliteReader::open(&folder.path().join(FILE_NAME)).expect("a store");
    let mut group = criterion.benchmark_group("verify");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(8))
        .throughput(Throughput::Elements(EVENTS as u64));
    group.bench_function("sha256", |bench| {
        bench.iter(|| {
            for text in &texts {
                black_box(Digest::of(black_box(text)));
            }
        });
    });
    drop(texts);
    let before = memory();
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).expect("a thread");
        group.bench_function(format!("store_{threads}"), |bench| {
            bench.iter(|| {
                let report = reader
                    .verify_on_threads(TrustAnchors::nothing(), threads)
                    .expect("a report");
                assert!(report.is_sound() && report.events() == EVENTS as u64);
            });
        });
    }
    group.bench_function("jsonl", |bench| {
        bench.iter(|| {
            let mut verifier = LinesVerifier::new(TrustAnchors::nothing());
            let file = fs::File::open(&lines).expect("a file");
            let file = std::io::BufReader::with_capacity(READ_BYTES, file);
            each_line(file, |line| verifier.push(line)).expect("lines");
            let report = verifier.finish();
            assert!(report.is_sound() && report.events() == EVENTS as u64);
        });
    });
    println!(
        "memory: {before} KiB before, {} KiB at the most while verifying",
        memory()
    );
    group.finish();
    let session = reader.sessions().expect("sessions")[0].session.clone();
    let mut group = criterion.benchmark_group("seek");
    group.bench_function("first", |bench| {
        bench.iter(|| black_box(reader.events(&session, 0, 1).expect("an event")));
    });
    group.bench_function("last", |bench| {
        bench.iter(|| black_box(reader.events(&session, 9_990, 1).expect("an event")));
    });
}

/// A store with a million events, the same as lines, and the texts that are hashed.
fn fill(folder: &Path, lines: &Path) -> Vec<String> {
    use std::io::Write;
    let store = SqliteStore::open(folder).expect("a store");
    let runtime = Runtime::new().expect("a runtime");
    let mut records = Records::new();
    let mut out = std::io::BufWriter::new(fs::File::create(lines).expect("a file"));
    let mut texts = Vec::with_capacity(EVENTS);
    let mut line = String::new();
    while texts.len() < EVENTS {
        let page: Vec<Record> = records.take(10_000);
        for record in &page {
            line.clear();
            let envelope = record.envelope().expect("an envelope");
            jsonl::write_line(&envelope, &record.hash, &mut line);
            line.push('\n');
            out.write_all(line.as_bytes()).expect("room on the disk");
            texts.push(record.text.clone());
        }
        let done = runtime.block_on(async { store.append(Batch::of(page)).await?.await });
        done.expect("a durable batch");
    }
    out.flush().expect("room on the disk");
    texts
}

fn report() {
    let seal = |name: &str| nanoseconds("seal", name);
    let durable = |name: &str| nanoseconds("durable", name);
    let verify = |name: &str| nanoseconds("verify", name);
    println!("\n| operation | ours | baseline | ratio | limit |\n|---|---|---|---|---|");
    let row =
        |what: &str, ours: Option<f64>, baseline: Option<f64>, shown: String, promised: &str| {
            println!(
                "| {what} | {} | {} | {shown} | {promised} |",
                time(ours),
                time(baseline)
            );
        };
    let share = |ours, baseline| ratio(baseline, ours);
    row(
        "1,000 records sealed, SHA-256 of them",
        seal("chain"),
        seal("sha256"),
        share(seal("chain"), seal("sha256")),
        "at least 0.35",
    );
    row(
        "1 durable, plain SQLite",
        durable("store_1"),
        durable("sqlite_1"),
        ratio(durable("store_1"), durable("sqlite_1")),
        "at most 1.3",
    );
    for count in [64, 1_024] {
        let (ours, plain) = (
            durable(&format!("store_{count}")),
            durable(&format!("sqlite_{count}")),
        );
        row(
            &format!("{count} durable, plain SQLite"),
            ours,
            plain,
            share(ours, plain),
            "at least 0.8",
        );
    }
    let each = durable("agents").map(|all| all / f64::from(AGENTS));
    row(
        "each of 64 agents at once, one alone",
        each,
        durable("store_1"),
        share(each, durable("store_1")),
        "at least 10",
    );
    row(
        "handed over, one durable",
        durable("handed_over"),
        durable("store_1"),
        share(durable("handed_over"), durable("store_1")),
        "-",
    );
    row(
        "1 M from the store, SHA-256 of them",
        verify("store_1"),
        verify("sha256"),
        share(verify("store_1"), verify("sha256")),
        "at least 0.5",
    );
    row(
        "the same on two threads, on one",
        verify("store_2"),
        verify("store_1"),
        share(verify("store_2"), verify("store_1")),
        "at least 1.8",
    );
    row(
        "1 M from JSONL, SHA-256 of them",
        verify("jsonl"),
        verify("sha256"),
        share(verify("jsonl"), verify("sha256")),
        "at least 0.45",
    );
    let seek = |name: &str| nanoseconds("seek", name);
    row(
        "the last of 10,000 events of a session in 1 M, the first",
        seek("last"),
        seek("first"),
        ratio(seek("last"), seek("first")),
        "-",
    );
}
