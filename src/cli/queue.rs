//! `cra queue`: held requests, read without a console.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::QueueArgs;
use super::error::{Failure, verdict};
use super::exit;
use super::settings::Settings;
use super::trace::open;
use crate::base::clock::{Clock, SystemClock, Timestamp};
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::engine::command::{StateChange, StateKind};
use crate::engine::held::{Gate, Held, HeldSubject};
use crate::engine::held_in;
use crate::store::StateRow;

/// Lists held requests, or shows one completely. Only the console decides.
pub(super) fn queue(settings: &Settings, queue: &QueueArgs) -> Result<u8, Failure> {
    let now = SystemClock.now();
    let mut held = held(open(settings)?.state()?)?;
    if let Some(wanted) = &queue.gate {
        held.retain(|held| held.id.as_str() == wanted);
        if held.is_empty() {
            return Err(Failure::NoGate(one_line(wanted)));
        }
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match (&queue.gate, queue.json) {
        (_, true) => {
            let all: Vec<_> = held.iter().map(|held| to_json(held, now)).collect();
            serde_json::to_writer_pretty(&mut out, &all)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(out))
        }
        (Some(_), false) => held
            .iter()
            .try_for_each(|request| write_request(&mut out, request, now)),
        (None, false) => table(&mut out, &held, now),
    };
    verdict(exit::OK, written.and_then(|()| out.flush()))
}

/// Held requests, the riskiest first, then the most urgent.
pub(super) fn held(rows: Vec<StateRow>) -> Result<Vec<Arc<Held>>, Failure> {
    let rows = rows.into_iter();
    let stored = rows.filter(|row| row.kind == StateKind::Held.as_str());
    let stored = stored.map(|row| StateChange {
        kind: StateKind::Held,
        key: row.key,
        body: row.body,
    });
    let mut held = held_in(stored)?;
    held.sort_by(|one, other| {
        let urgent = one.deadline.cmp(&other.deadline);
        other.tier().cmp(&one.tier()).then(urgent)
    });
    Ok(held)
}

fn to_json(held: &Held, now: Timestamp) -> Value {
    let mut value = serde_json::to_value(held).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("action".to_owned(), json!(held.action()));
        fields.insert("risk_tier".to_owned(), json!(held.tier().as_str()));
        fields.insert("seconds_left".to_owned(), json!(seconds(held, now)));
        fields.insert("approvers".to_owned(), json!(held.approvers().count()));
        fields.insert("state".to_owned(), json!(describe_state(held)));
    }
    value
}

/// Progress of a request and its participants.
fn describe_state(held: &Held) -> String {
    let approval = held.approval_progress().map(|(words, by)| match by {
        Some(by) => format!("{words} ({})", one_line(by)),
        None => words.to_owned(),
    });
    let claim = held.claim.as_ref();
    let claim = claim.map(|claim| format!("claimed: {}", one_line(&claim.by)));
    let parts: Vec<_> = approval.into_iter().chain(claim).collect();
    if parts.is_empty() {
        return "open".to_owned();
    }
    parts.join(", ")
}

fn seconds(held: &Held, now: Timestamp) -> u64 {
    held.deadline.since(now).as_secs()
}

fn time_left(held: &Held, now: Timestamp) -> String {
    match seconds(held, now) {
        0 => "overdue".to_owned(),
        some => format!("{}:{:02}", some / 60, some % 60),
    }
}

fn gates(held: &Held) -> String {
    let names: Vec<_> = held.gates.iter().map(Gate::name).collect();
    one_line(&names.join(", "))
}

fn table(out: &mut impl Write, held: &[Arc<Held>], now: Timestamp) -> io::Result<()> {
    if held.is_empty() {
        return writeln!(out, "No requests are held.");
    }
    writeln!(
        out,
        "{:<7} {:>8}  {:<8}  {:<24}  {:<24}  GATES",
        "ID", "LEFT", "RISK", "ACTION", "AGENT/SESSION"
    )?;
    for request in held {
        let (id, left, tier) = (&request.id, time_left(request, now), request.tier());
        let action = one_line(request.action());
        let who = one_line(&format!("{}/{}", request.agent, request.session));
        let gates = gates(request);
        let joined = match request.joined {
            0 => String::new(),
            more => format!("  (requested {} times)", more + 1),
        };
        let state = match describe_state(request) {
            open if open == "open" => String::new(),
            state => format!("  [{state}]"),
        };
        writeln!(
            out,
            "{id:<7} {left:>8}  {tier:<8}  {action:<24}  {who:<24}  {gates}{joined}{state}"
        )?;
    }
    Ok(())
}

fn write_request(out: &mut impl Write, held: &Held, now: Timestamp) -> io::Result<()> {
    let mut line = |name: &str, text: &str| {
        let text = sanitize(text, LineFeeds::Keep)
            .text
            .replace('\n', "\n           ");
        writeln!(out, "{name:<10} {text}")
    };
    line("id", held.id.as_str())?;
    line("action", held.action())?;
    line("risk", held.tier().as_str())?;
    line("agent", &held.agent)?;
    line("session", held.session.as_str())?;
    line("intent", held.intent.as_deref().unwrap_or("not given"))?;
    let silent = format!("{}, then denied", time_left(held, now));
    line("left", &silent)?;
    line("state", &describe_state(held))?;
    if let Some(first) = held.first_approval() {
        let why = first.justification.as_deref().unwrap_or("no reason given");
        let at = first.at.time_of_day();
        let text = format!("{} at {at}, {}: {why}", first.by, first.method);
        line("approved", &text)?;
    }
    for gate in &held.gates {
        line("gate", &format!("{}: {}", gate.name(), gate.why))?;
        for question in &gate.questions {
            line("  asks", question.text())?;
        }
    }
    let what = match &held.subject {
        HeldSubject::SessionStart => Value::Null,
        HeldSubject::Action(call) => call.params.clone(),
        HeldSubject::Moment(moment) => moment.data.clone(),
    };
    if let HeldSubject::Moment(moment) = &held.subject
        && let Some(text) = &moment.text
    {
        line("text", &text.text)?;
        if text.missing_bytes() > 0 {
            let missing = format!("{} more bytes are not shown", text.missing_bytes());
            line("", &missing)?;
        }
    }
    if !what.is_null() {
        let what = serde_json::to_string_pretty(&what).unwrap_or_default();
        line("request", &what)?;
    }
    line("hash", &held.request_hash.to_string())
}
