//! `cra thread`: the state of conversations, read without a console.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::{ThreadListArgs, ThreadShowArgs};
use super::error::{Failure, ThreadFailure, verdict};
use super::exit;
use super::settings::Settings;
use super::trace::open;
use crate::base::text::one_line;
use crate::memento::{
    ChangeSide, Freeze, HeldProposal, KeptReason, ProcessedTurn, SummaryResult, ThawCondition,
    Thread, ThreadMemento, TurnClassification,
};
use crate::runtime::stored_threads;

/// Lists the threads.
pub(super) fn list(settings: &Settings, args: &ThreadListArgs) -> Result<u8, Failure> {
    let threads = threads(settings)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if args.json {
        let all: Vec<_> = threads.iter().map(|thread| summary_json(thread)).collect();
        serde_json::to_writer_pretty(&mut out, &all)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        table(&mut out, &threads)
    };
    verdict(exit::OK, written.and_then(|()| out.flush()))
}

/// Shows one thread completely.
pub(super) fn show(settings: &Settings, args: &ThreadShowArgs) -> Result<u8, Failure> {
    let threads = threads(settings)?;
    let found = match &args.thread {
        Some(wanted) => {
            let found = threads.iter().find(|thread| thread.id.as_str() == wanted);
            found.ok_or_else(|| ThreadFailure::NoThread(one_line(wanted)))?
        }
        None => threads.first().ok_or(ThreadFailure::NoThreads)?,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if args.json {
        serde_json::to_writer_pretty(&mut out, &thread_json(found))
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_thread(&mut out, found)
    };
    verdict(exit::OK, written.and_then(|()| out.flush()))
}

/// Threads of the store. An unreadable thread is named on standard error, and the others are shown.
fn threads(settings: &Settings) -> Result<Vec<Arc<Thread>>, Failure> {
    let stored = stored_threads(open(settings)?.state()?);
    for (thread, error) in &stored.unreadable {
        let (thread, error) = (one_line(thread), one_line(error));
        // A failed warning must not stop the output.
        let _ = writeln!(
            io::stderr().lock(),
            "warning: cannot read the thread `{thread}`: {error}"
        );
    }
    Ok(stored.threads)
}

fn summary_json(thread: &Thread) -> Value {
    let last = thread.turns.first();
    json!({
        "thread": thread.id,
        "session": thread.session,
        "owner": thread.owner.as_ref().map(|owner| &owner.session),
        "phase": last.map(|turn| turn.after.0),
        "intensity": last.map(|turn| turn.after.1),
        "decision": last.map(|turn| turn.decided.decision),
        "rule": last.map(|turn| turn.decided.rule.number()),
        "unverified": thread.unverified,
        "frozen": thread.is_frozen(),
        "frozen_since": thread.frozen_since,
        "held_back": thread.held_back_count,
        "version": thread.version,
        "etag": thread.etag(),
        "arc": thread.latest.as_ref().map(|memento| &memento.arc),
        "last_turn": last.map(|turn| turn.at),
    })
}

fn thread_json(thread: &Thread) -> Value {
    let mut value = serde_json::to_value(thread).unwrap_or_default();
    if let (Some(fields), Value::Object(more)) = (value.as_object_mut(), summary_json(thread)) {
        let known = ["held_back", "session", "version", "frozen_since"];
        let more = more.into_iter();
        fields.extend(more.filter(|(name, _)| !known.contains(&name.as_str())));
        let freeze = thread.turns.first().map(|turn| formula_json(turn.freeze));
        fields.insert("freeze".to_owned(), json!(freeze));
        let thaws = thread.thaw_condition().map(ThawCondition::description);
        fields.insert("thawed_by".to_owned(), json!(thaws));
    }
    value
}

fn table(out: &mut impl Write, threads: &[Arc<Thread>]) -> io::Result<()> {
    if threads.is_empty() {
        return writeln!(out, "There are no threads yet.");
    }
    writeln!(
        out,
        "{:<24}  {:<14}  {:<8}  {:<6}  {:>4}  ARC",
        "THREAD", "PHASE/INT", "DECISION", "STATE", "VER"
    )?;
    for thread in threads {
        let last = thread.turns.first();
        let heat = last.map_or_else(String::new, phase_and_intensity);
        let decision = last.map_or("", |turn| turn.decided.decision.as_str());
        let state = if thread.is_frozen() { "FROZEN" } else { "" };
        let arc = thread
            .latest
            .as_ref()
            .map_or("", |memento| memento.arc.as_str());
        let (name, arc) = (one_line(thread.id.as_str()), one_line(arc));
        writeln!(
            out,
            "{name:<24}  {heat:<14}  {decision:<8}  {state:<6}  {:>4}  {arc}",
            thread.version
        )?;
    }
    Ok(())
}

fn write_thread(out: &mut impl Write, thread: &Thread) -> io::Result<()> {
    line(out, "thread", thread.id.as_str())?;
    line(out, "owner", &owner(thread))?;
    line(out, "session", thread.session.as_str())?;
    write_refused(out, thread)?;
    if let Some(last) = thread.turns.first() {
        write_last_turn(out, last)?;
    }
    write_guardrail(out, thread)?;
    write_memento(out, thread)?;
    if let Some(by) = &thread.drift_flagged {
        line(
            out,
            "drift",
            &format!("flagged by {by} since the last turn"),
        )?;
    }
    if thread.edited {
        line(
            out,
            "edited",
            "since the last turn: the next turn must build on it",
        )?;
    }
    for held in &thread.held_back {
        write_held_back(out, thread, held)?;
    }
    let turns = thread.turns.iter();
    turns
        .clone()
        .try_for_each(|turned| write_turn_line(out, turned))
}

/// Session that owns a thread, and the one it was handed over to.
fn owner(thread: &Thread) -> String {
    let owner = thread.owner.as_ref();
    let owner = owner.map_or("none: an operator can hand the thread over", |owner| {
        owner.session.as_str()
    });
    match &thread.offered_to {
        Some(to) => format!("{owner}, handed over to {to} at its next turn"),
        None if thread.unverified => {
            format!("{owner}, not verified: an operator must hand the thread over")
        }
        None => owner.to_owned(),
    }
}

fn write_refused(out: &mut impl Write, thread: &Thread) -> io::Result<()> {
    let Some(refused) = &thread.refused else {
        return Ok(());
    };
    let (count, session, at) = (refused.count, &refused.session, refused.at);
    let text = format!("{count} writes of other sessions, the last by {session} at {at}");
    line(out, "refused", &text)
}

fn write_last_turn(out: &mut impl Write, last: &ProcessedTurn) -> io::Result<()> {
    line(out, "phase", last.after.0.as_str())?;
    line(out, "intensity", last.after.1.as_str())?;
    line(out, "decision", &decision(last.decided))?;
    line(out, "signals", &signals(last))?;
    let word = |truth| if truth { "yes" } else { "no" };
    let given = &last.given;
    let given = format!(
        "context pressure {}, drift risk {}, summary changed {}",
        word(given.context_pressure),
        word(given.drift_risk),
        word(given.summary_changed)
    );
    line(out, "inputs", &given)
}

fn write_guardrail(out: &mut impl Write, thread: &Thread) -> io::Result<()> {
    let state = match thread.frozen_since {
        Some(since) => format!(
            "SUMMARY FROZEN since {since}, {} saved for later",
            thread.held_back_count
        ),
        None => "open: the summary updates normally".to_owned(),
    };
    line(out, "guardrail", &state)?;
    if let Some(last) = thread.turns.first() {
        let [formula, values] = formula(last.freeze);
        line(out, "freeze", &formula)?;
        line(out, "", &values)?;
    }
    match thread.thaw_condition() {
        Some(thaws) => line(out, "unfreezes", thaws.description()),
        None => Ok(()),
    }
}

fn write_memento(out: &mut impl Write, thread: &Thread) -> io::Result<()> {
    let Some(memento) = &thread.latest else {
        return line(out, "memento", "none yet");
    };
    let about = format!(
        "version {}, {}, created {}",
        thread.version,
        memento.memento_id,
        memento.created_ts.at()
    );
    line(out, "memento", &about)?;
    line(out, "etag", &memento.etag())?;
    for (part, lines) in memento.shape().parts() {
        for text in lines {
            line(out, part, text)?;
        }
    }
    Ok(())
}

fn write_held_back(out: &mut impl Write, thread: &Thread, held: &HeldProposal) -> io::Result<()> {
    let why = kept_reason(&held.why);
    let about = format!("{} at {}: {why}", held.message_id, held.at);
    line(out, "saved", &about)?;
    let stored = thread.latest.as_ref().map(ThreadMemento::shape);
    for change in stored.unwrap_or_default().changes(&held.proposed) {
        let sign = match change.side {
            ChangeSide::Kept => '-',
            ChangeSide::Proposed => '+',
        };
        line(out, "", &format!("{sign} {}: {}", change.part, change.text))?;
    }
    Ok(())
}

fn write_turn_line(out: &mut impl Write, turned: &ProcessedTurn) -> io::Result<()> {
    let (decision, heat) = (
        turned.decided.decision.as_str(),
        phase_and_intensity(turned),
    );
    let (word, version) = (turned.summary.label(), turned.version);
    let signals = match signals(turned) {
        none if none == NO_SIGNALS => String::new(),
        some => format!("  {some}"),
    };
    let text = format!(
        "{}  {decision:<6}  {heat:<14}  {word:<9}  v{version:<4}  {}  by {}{signals}",
        turned.at, turned.message_id, turned.session
    );
    line(out, "turn", &text)
}

/// Text shown for a turn without signals.
const NO_SIGNALS: &str = "none";

fn phase_and_intensity(turned: &ProcessedTurn) -> String {
    let (phase, intensity) = turned.after;
    format!("{}/{}", phase.as_str(), intensity.as_str())
}

fn signals(turned: &ProcessedTurn) -> String {
    let names: Vec<_> = turned
        .signals
        .iter()
        .map(|signal| signal.as_str())
        .collect();
    match names.as_slice() {
        [] => NO_SIGNALS.to_owned(),
        names => names.join(", "),
    }
}

/// Decision about a turn, and its rule.
pub(super) fn decision(decided: TurnClassification) -> String {
    let (decision, rule) = (decided.decision.as_str(), decided.rule);
    format!("{decision}, rule {}: {}", rule.number(), rule.description())
}

/// Formula of the guardrail, and the formula with the values of its terms.
pub(super) fn formula(freeze: Freeze) -> [String; 2] {
    let word = |truth| if truth { "TRUE" } else { "FALSE" };
    let (peak, high) = (word(freeze.peak), word(freeze.high));
    let (other, holds) = (word(!freeze.must), word(freeze.is_frozen()));
    [
        "(phase=peak or intensity=high) and decision!=must".to_owned(),
        format!("({peak} or {high}) and {other} = {holds}"),
    ]
}

/// Values of the guardrail's terms as JSON.
pub(super) fn formula_json(freeze: Freeze) -> Value {
    json!({
        "peak": freeze.peak,
        "high": freeze.high,
        "must": freeze.must,
        "holds": freeze.is_frozen(),
    })
}

/// Reason why a summary stayed unchanged; `None` if it changed.
pub(super) fn kept_because(summary: &SummaryResult) -> Option<String> {
    match summary {
        SummaryResult::Updated => None,
        SummaryResult::Kept(stored) => Some(kept_reason(stored)),
    }
}

/// Reason to hold back a proposal made before an operator's edit.
const BEFORE_EDIT: &str = "the agent had not read the operator's edit";

fn kept_reason(stored: &KeptReason) -> String {
    match stored {
        KeptReason::NothingProposed => "no new summary was proposed".to_owned(),
        KeptReason::Invalid(what) => format!("the proposed summary is invalid: {what}"),
        KeptReason::AtPeak => "the peak guardrail saved the proposal for later".to_owned(),
        KeptReason::OnlyAcknowledged => "the turn was only an acknowledgment".to_owned(),
        KeptReason::BeforeEdit => BEFORE_EDIT.to_owned(),
    }
}

/// Writes a name and its value on one line.
pub(super) fn line(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    writeln!(out, "{name:<12}{}", one_line(text))
}
