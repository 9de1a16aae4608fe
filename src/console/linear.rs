//! The console line by line: for screen readers, and for terminals that can do no more.
//!
//! `Talk` is a pure state machine: lines, pictures and replies go in; lines and requests come out. The
//! same rules hold as on the screen: a request is told whole before it can pass, what passes it has to
//! be typed, and what was typed before it could be read does not count.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use self::talk::{Deed, Talk};
use super::ConsoleError;
use super::alarm::Alarms;
use crate::base::clock::Clock;
use crate::base::id::GateId;
use crate::engine::command::{Operate, Refused, Reply};
use crate::runtime::Desk;
use crate::trace::verify::Report;

mod passing;
pub(super) mod talk;
mod words;

/// Lines that may wait to be looked at.
const LINES: usize = 64;

/// Text that is taken as one line.
const LINE_BYTES: u64 = 1 << 20;

/// What came back from the runtime.
enum Answer {
    Decided(GateId, Reply),
    Operated(Operate, Result<(), Refused>),
    Verified(Result<Report, String>),
}

/// Talks until the operator leaves, the terminal is gone, or the process is told to end.
pub(super) async fn drive(
    desk: Desk,
    clock: Arc<dyn Clock>,
    alarms: Option<Alarms>,
) -> Result<(), ConsoleError> {
    let ended = run(desk, clock, alarms).await;
    ended.or_else(ConsoleError::unless_gone)
}

async fn run(
    desk: Desk,
    clock: Arc<dyn Clock>,
    mut alarms: Option<Alarms>,
) -> Result<(), ConsoleError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut snapshots = desk.snapshots();
    let first = Arc::clone(&snapshots.borrow_and_update());
    let mut talk = Talk::new(first, clock.now());
    let mut lines = read_lines();
    let (sender, mut answers) = mpsc::channel(LINES);
    loop {
        say(&talk.take())?;
        let now = clock.now();
        let deeds = tokio::select! {
            biased;
            _ = terminate.recv() => return Ok(()),
            _ = hangup.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            Some(answer) = answers.recv() => match answer {
                Answer::Decided(gate, reply) => talk.on_reply(&gate, &reply, now),
                Answer::Operated(operate, done) => talk.on_operated(&operate, &done),
                Answer::Verified(report) => talk.on_verified(&report),
            },
            changed = snapshots.changed() => {
                changed.map_err(|_| ConsoleError::Stopped)?;
                let snapshot = Arc::clone(&snapshots.borrow_and_update());
                talk.on_snapshot(snapshot, now)
            }
            alarms = Alarms::next(&mut alarms) => talk.on_alarms(&alarms),
            () = clock.sleep_until(talk.next_change().unwrap_or(now)), if talk.next_change().is_some() => {
                talk.on_tick(clock.now())
            }
            line = lines.recv() => match line {
                Some(line) => talk.on_line(&line?, clock.now()),
                // The terminal is gone; what is held stays held.
                None => return Ok(()),
            },
        };
        for deed in deeds {
            let (desk, sender) = (desk.clone(), sender.clone());
            match deed {
                Deed::Leave => {
                    say(&talk.take())?;
                    return Ok(());
                }
                Deed::Decide(decide) => drop(tokio::spawn(async move {
                    let gate = decide.gate.clone();
                    let reply = desk.decide(*decide).await;
                    // Whoever left meanwhile needs no answer: what was sent is carried out.
                    let _ = sender.send(Answer::Decided(gate, reply)).await;
                })),
                Deed::Operate(operate) => drop(tokio::spawn(async move {
                    let done = desk.operate((*operate).clone()).await;
                    let _ = sender.send(Answer::Operated(*operate, done)).await;
                })),
                Deed::Verify(progress) => drop(tokio::spawn(async move {
                    // Whoever stopped it was told so at once.
                    if let Some(report) = desk.verify_watched(progress).await.transpose() {
                        let _ = sender.send(Answer::Verified(report)).await;
                    }
                })),
            }
        }
    }
}

fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Lines of standard input, read where waiting for them holds up nobody. The thread goes with the
/// process.
fn read_lines() -> mpsc::Receiver<io::Result<String>> {
    let (sender, lines) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = io::Read::take(&mut input, LINE_BYTES).read_until(b'\n', &mut line);
            let line = match read {
                Ok(0) => return,
                Ok(_) => Ok(String::from_utf8_lossy(&line).into_owned()),
                Err(error) => Err(error),
            };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
