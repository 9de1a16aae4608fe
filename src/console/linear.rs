//! The console in line mode: for screen readers and for terminals without cursor control.
//!
//! `LineConsole` is a pure state machine: typed lines, snapshots and replies go in; output lines and
//! effects come out. The rules of the full-screen console apply: the whole request is printed before it
//! can pass, the operator must type the word that passes it, and input typed before the question could
//! be read does not count.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use self::line_console::{LineConsole, LineEffect};
use super::AlarmReceiver;
use super::ConsoleError;
use crate::base::clock::Clock;
use crate::base::id::HeldRequestId;
use crate::engine::command::{DecisionRefusal, OperatorAction, OperatorReply};
use crate::runtime::OperatorHandle;
use crate::trace::verification::VerificationReport;

pub(super) mod line_console;
mod pending_pass;
mod wording;

/// Capacity of the channel of typed lines.
const LINES: usize = 64;

/// Maximum bytes read as one line.
const LINE_BYTES: u64 = 1 << 20;

/// Response from the runtime.
enum RuntimeResponse {
    Decided(HeldRequestId, OperatorReply),
    Operated(OperatorAction, Result<(), DecisionRefusal>),
    Verified(Result<VerificationReport, String>),
}

/// Runs the line console until the operator quits, the terminal closes, or the process receives a signal to
/// end.
pub(super) async fn run_line_console(
    operator_handle: OperatorHandle,
    clock: Arc<dyn Clock>,
    alarms: Option<AlarmReceiver>,
) -> Result<(), ConsoleError> {
    let ended = run_loop(operator_handle, clock, alarms).await;
    ended.or_else(ConsoleError::ok_if_terminal_closed)
}

async fn run_loop(
    operator_handle: OperatorHandle,
    clock: Arc<dyn Clock>,
    mut alarms: Option<AlarmReceiver>,
) -> Result<(), ConsoleError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut snapshots = operator_handle.snapshots();
    let first = Arc::clone(&snapshots.borrow_and_update());
    let mut console = LineConsole::new(first, clock.now());
    let mut lines = read_lines();
    let (sender, mut answers) = mpsc::channel(LINES);
    loop {
        print(&console.take_output())?;
        let now = clock.now();
        let effects = tokio::select! {
            biased;
            _ = terminate.recv() => return Ok(()),
            _ = hangup.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            Some(answer) = answers.recv() => match answer {
                RuntimeResponse::Decided(gate, reply) => console.on_reply(&gate, &reply, now),
                RuntimeResponse::Operated(operate, done) => console.on_operated(&operate, &done),
                RuntimeResponse::Verified(report) => console.on_verified(&report),
            },
            changed = snapshots.changed() => {
                changed.map_err(|_| ConsoleError::Stopped)?;
                let snapshot = Arc::clone(&snapshots.borrow_and_update());
                console.on_snapshot(snapshot, now)
            }
            alarms = AlarmReceiver::next(&mut alarms) => console.on_alarms(&alarms),
            () = clock.sleep_until(console.next_change().unwrap_or(now)), if console.next_change().is_some() => {
                console.on_tick(clock.now())
            }
            line = lines.recv() => match line {
                Some(line) => console.on_line(&line?, clock.now()),
                // The terminal is closed. Held requests stay held.
                None => return Ok(()),
            },
        };
        for effect in effects {
            let (operator_handle, sender) = (operator_handle.clone(), sender.clone());
            match effect {
                LineEffect::Leave => {
                    print(&console.take_output())?;
                    return Ok(());
                }
                LineEffect::Decide(decide) => drop(tokio::spawn(async move {
                    let gate = decide.gate.clone();
                    let reply = operator_handle.decide(*decide).await;
                    // The receiver is gone if the operator has quit. The runtime still carries out the
                    // decision.
                    let _ = sender.send(RuntimeResponse::Decided(gate, reply)).await;
                })),
                LineEffect::Operate(operate) => drop(tokio::spawn(async move {
                    let done = operator_handle.operate((*operate).clone()).await;
                    let _ = sender.send(RuntimeResponse::Operated(*operate, done)).await;
                })),
                LineEffect::Verify(progress) => drop(tokio::spawn(async move {
                    // A stopped check returns no report: the console told the operator at once when it was
                    // stopped.
                    if let Some(report) = operator_handle.verify_watched(progress).await.transpose()
                    {
                        let _ = sender.send(RuntimeResponse::Verified(report)).await;
                    }
                })),
            }
        }
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Reads lines of standard input on a separate thread, so that waiting for input blocks nothing else. The
/// thread ends with the process.
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
