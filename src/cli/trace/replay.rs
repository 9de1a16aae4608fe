//! `cra trace replay`: shows a session step by step, or the state at one of its events.

use std::io::{self, BufWriter, Write};

use serde_json::json;

use super::session_source::SessionSource;
use crate::base::pattern::Patterns;
use crate::cli::args;
use crate::cli::error::{Failure, verdict};
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::trace::SpanDepths;
use crate::trace::event::Event;
use crate::trace::replay::{Replay, ReplayState};
use crate::trace::summary::{Tone, sentence, tone};
use crate::trace::verification::ChainVerification;

mod state_text;

use state_text::write_state;

/// Replays a session.
pub(in crate::cli) fn replay(settings: &Settings, args: &args::ReplayArgs) -> Result<u8, Failure> {
    let (record, session) = SessionSource::named(settings, &args.session)?;
    let missing = || Failure::NoSession(session.to_string());
    let types: Patterns = args.types.iter().cloned().collect();
    let replay = Replay::load(&record, session.clone())?.ok_or_else(missing)?;
    let mut replay = replay.filter(types);
    let checked = if args.no_verify {
        None
    } else {
        replay.verify()?
    };
    let broken = checked
        .as_ref()
        .is_some_and(|checked| !checked.verdict.is_sound());
    let mut out = BufWriter::new(io::stdout().lock());
    let result = match args.at {
        Some(at) => write_state_at(&mut out, &mut replay, args, checked.as_ref(), at),
        None => write_steps(&mut out, &mut replay, args, checked.as_ref()),
    };
    let written = match result.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => Ok(()),
        Err(Failure::ClosedPipe) => Err(io::ErrorKind::BrokenPipe.into()),
        Err(failure) => return Err(failure),
    };
    verdict(if broken { exit::BROKEN } else { exit::OK }, written)
}

fn chain(checked: Option<&ChainVerification>) -> String {
    checked.map_or_else(
        || "not checked".to_owned(),
        |checked| checked.verdict.to_string(),
    )
}

/// Prints the state after one event.
fn write_state_at(
    out: &mut impl Write,
    replay: &mut Replay<&SessionSource>,
    args: &args::ReplayArgs,
    checked: Option<&ChainVerification>,
    at: u64,
) -> Result<(), Failure> {
    let last = replay.end().saturating_sub(1);
    let session = replay.session().to_string();
    let event = replay.seek(at)?.filter(|event| event.sequence == at);
    let event = event
        .cloned()
        .ok_or(Failure::NoEvent { session, at, last })?;
    let state = replay.state()?;
    if args.json {
        let json = json!({ "chain": checked, "event": event, "state": state });
        serde_json::to_writer_pretty(&mut *out, &json).map_err(io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let (session, chain) = (replay.session(), chain(checked));
    writeln!(out, "session {session}, event {at} of {last}")?;
    writeln!(out, "chain   {chain}")?;
    writeln!(out, "event   {}: {}", event.event_type, sentence(&event))?;
    Ok(write_state(out, &state)?)
}

/// Prints the steps, up to the stop condition.
fn write_steps(
    out: &mut impl Write,
    replay: &mut Replay<&SessionSource>,
    args: &args::ReplayArgs,
    checked: Option<&ChainVerification>,
) -> Result<(), Failure> {
    if !args.json {
        let (session, events) = (replay.session(), replay.end());
        writeln!(out, "session {session}, {events} events")?;
        writeln!(out, "chain   {}\n", chain(checked))?;
    }
    let mut depths = SpanDepths::default();
    let mut stopped = false;
    while let Some(event) = replay.forward()? {
        let depth = depths.of(event);
        if args.json {
            let step = json!({ "depth": depth, "summary": sentence(event), "event": event });
            writeln!(out, "{step}")?;
        } else {
            write_step(out, event, depth)?;
        }
        if args.stop_on.iter().any(|stop| stop.stops_at(event)) {
            stopped = true;
            break;
        }
    }
    if !stopped {
        if !args.json && !args.stop_on.is_empty() {
            writeln!(out, "\nNo event matched --stop-on.")?;
        }
        return Ok(());
    }
    let state = replay.state()?;
    if args.json {
        let step = json!({ "stopped_at": replay.at(), "state": state });
        return Ok(writeln!(out, "{step}")?);
    }
    write_stopped(out, &state).map_err(Failure::from)
}

fn write_step(out: &mut impl Write, event: &Event, depth: usize) -> io::Result<()> {
    let mark = match tone(event) {
        Tone::Plain => ' ',
        Tone::Good => '+',
        Tone::Care => '!',
        Tone::Stop => 'x',
    };
    let time = event.timestamp.time_of_day();
    writeln!(
        out,
        "{:>6}  {time}  {mark} {:indent$}{}  ({})",
        event.sequence,
        "",
        sentence(event),
        crate::base::text::one_line(&event.event_type),
        indent = depth * 2
    )
}

fn write_stopped(out: &mut impl Write, state: &ReplayState) -> io::Result<()> {
    let at = state.sequence.unwrap_or(0);
    writeln!(out, "\nStopped at event {at}. State there:")?;
    write_state(out, state)
}
