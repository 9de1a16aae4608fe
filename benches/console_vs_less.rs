//! The real program in a real terminal, with a record of a million events, compared with `less` on the same
//! events as lines: to the first frame, to a text at the other end, memory, and what it costs at rest.
//!
//! `cargo bench --bench console_vs_less`. Times are of one run each, the best of three.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use cra_core::store::sqlite::SqliteStore;
use cra_core::store::{Batch, Store};
use cra_core::trace::jsonl;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

#[expect(dead_code, reason = "only the story is told here")]
#[path = "support/recorded_events.rs"]
mod recorded_events;
#[path = "support/session.rs"]
mod session;

use session::Session;

const EVENTS: usize = 1_000_000;

/// Nothing takes longer.
const DEADLINE: Duration = Duration::from_mins(2);

/// Text that only the last event contains.
const NEEDLE: &str = "needle-in-the-haystack";

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let lines = folder.path().join("record.jsonl");
    record(folder.path(), &lines);
    let mut best = [[Duration::MAX; 2]; 2];
    let mut rest = (Duration::ZERO, 0);
    for _ in 0..3 {
        let (opened, found, idle, memory) = console(folder.path());
        best[0] = [best[0][0].min(opened), best[0][1].min(found)];
        rest = (idle, memory);
        let (opened, found) = less(&lines);
        best[1] = [best[1][0].min(opened), best[1][1].min(found)];
    }
    let [cra, less] = best;
    println!("\n| a record of {EVENTS} events | cra | less | ratio |\n|---|---|---|---|");
    for (what, at) in [
        ("to the first frame of it", 0),
        ("to a text at its other end", 1),
    ] {
        let (cra, less) = (cra[at].as_secs_f64(), less[at].as_secs_f64());
        let ratio = cra / less;
        println!(
            "| {what} | {:.0} ms | {:.0} ms | {ratio:.2} |",
            cra * 1e3,
            less * 1e3
        );
    }
    let (idle, memory) = rest;
    println!("| processor time in 3 s at rest | {idle:?} | | |");
    println!("| most memory | {} MB | | |", memory / 1000);
}

/// A store with one long session, and its lines.
fn record(folder: &Path, lines: &Path) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = SqliteStore::open(&folder.join("data")).expect("a store");
    let mut session = Session::new("long");
    let mut out = BufWriter::new(File::create(lines).expect("a file"));
    let mut left = EVENTS;
    while left > 0 {
        let count = left.min(10_000);
        left -= count;
        let last = usize::from(left == 0);
        let mut page = session.take(count - last);
        if last == 1 {
            page.push(session.last_with(NEEDLE));
        }
        let mut text = String::new();
        for record in &page {
            jsonl::write_line(
                &record.envelope().expect("a record"),
                &record.hash,
                &mut text,
            );
            text.push('\n');
        }
        out.write_all(text.as_bytes()).expect("lines");
        let done = runtime.block_on(async { store.append(Batch::of(page)).await?.await });
        done.expect("a durable batch");
    }
    out.flush().expect("lines");
}

/// A program in a terminal.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    _master: Box<dyn MasterPty + Send>,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Terminal {
    fn start(mut command: CommandBuilder) -> Self {
        command.env("TERM", "xterm-256color");
        let size = PtySize {
            rows: 36,
            cols: 120,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let child = pair.slave.spawn_command(command).expect("a program");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            writer: pair.master.take_writer().expect("a writer"),
            _master: pair.master,
            bytes,
            screen: vt100::Parser::new(cells(size.rows), cells(size.cols), 0),
        }
    }

    fn keys(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).expect("keys");
        self.writer.flush().expect("keys");
    }

    /// Waits until a text is on the screen.
    fn wait_for(&mut self, text: &str) {
        let begin = Instant::now();
        while !self.screen.screen().contents().contains(text) {
            let left = DEADLINE.saturating_sub(begin.elapsed());
            match self.bytes.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(error) => {
                    let shown = self.screen.screen().contents();
                    panic!("`{text}` never came, {error}:\n{shown}");
                }
            }
        }
    }

    fn stat(&self, file: &str) -> String {
        let id = self.child.process_id().expect("a process");
        fs::read_to_string(format!("/proc/{id}/{file}")).expect("its state")
    }

    /// Processor time so far, in ticks of ten milliseconds.
    fn ticks(&self) -> u32 {
        let stat = self.stat("stat");
        let fields: Vec<_> = stat.split_whitespace().collect();
        let number = |at: usize| fields[at].parse::<u32>().expect("a number");
        number(13) + number(14)
    }

    fn memory(&self) -> u64 {
        let status = self.stat("status");
        let line = status.lines().find(|line| line.starts_with("VmHWM"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a terminal has some")
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// To the first frame, to the needle, at rest, memory.
fn console(folder: &Path) -> (Duration, Duration, Duration, u64) {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cra"));
    command.env("HOME", folder);
    command.args(["--data-dir"]);
    command.arg(folder.join("data"));
    let mut terminal = Terminal::start(command);
    terminal.wait_for("CRA console");
    terminal.keys("2");
    terminal.wait_for("long");
    let begin = Instant::now();
    terminal.keys("\r");
    terminal.wait_for("input_received");
    let opened = begin.elapsed();
    let begin = Instant::now();
    terminal.keys("/");
    terminal.keys(&format!("{NEEDLE}\r"));
    terminal.wait_for("result_summary");
    let found = begin.elapsed();
    // What goes on in the background comes to rest first.
    let (mut before, mut quiet) = (terminal.ticks(), 0);
    while quiet < 3 {
        std::thread::sleep(Duration::from_millis(500));
        let now = terminal.ticks();
        quiet = if now - before <= 1 { quiet + 1 } else { 0 };
        before = now;
    }
    std::thread::sleep(Duration::from_secs(3));
    let idle = Duration::from_millis(10) * (terminal.ticks() - before);
    (opened, found, idle, terminal.memory())
}

/// To the first frame and to the needle.
fn less(lines: &Path) -> (Duration, Duration) {
    let mut command = CommandBuilder::new("less");
    command.arg("-S");
    command.arg(lines);
    let begin = Instant::now();
    let mut terminal = Terminal::start(command);
    terminal.wait_for("event_id");
    let opened = begin.elapsed();
    let begin = Instant::now();
    terminal.keys(&format!("/{NEEDLE}\r"));
    terminal.wait_for("(END)");
    (opened, begin.elapsed())
}
