//! `cra turn`: takes turns of a conversation from a file.
//!
//! The command opens the store as the console does and takes the turns in order. Each result is printed
//! when it is on disk. After a refused turn the following ones are not taken, and the earlier ones
//! stay.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use serde_json::{Value, json};

use super::args::TurnArgs;
use super::console::{load_atlases, signer};
use super::error::{Failure, ThreadFailure, verdict};
use super::exit;
use super::input::read;
use super::queue::held;
use super::settings::Settings;
use super::thread::{decision, formula, formula_json, kept_because, line};
use crate::atlas::Atlas;
use crate::base::clock::SystemClock;
use crate::base::id::RandomIds;
use crate::base::limits::MAX_MEMENTO_BYTES;
use crate::base::text::one_line;
use crate::engine::combined_hash;
use crate::engine::command::{DenialReply, Injected, StartSession};
use crate::memento::{ExternalName, TurnOutcome};
use crate::runtime::notices::{NoticesOff, Webhooks};
use crate::runtime::{Runtime, RuntimeParts, SessionTurn, TurnReply};
use crate::store::{self, Store};

/// A turn with its outcome.
struct TurnResult {
    session: String,
    thread: String,
    message: ExternalName,
    outcome: TurnOutcome,
    injected: Injected,
}

/// Takes the turns of a file.
pub(super) fn turn(settings: &Settings, args: &TurnArgs) -> Result<u8, Failure> {
    settings.may_write("cra turn")?;
    let text = read(&args.file, MAX_MEMENTO_BYTES)?;
    let turns = SessionTurn::read_all(&text);
    let turns = turns.map_err(|error| ThreadFailure::NoTurn(args.file.clone(), error))?;
    let atlases = load_atlases(settings, &args.atlas)?;
    let url = settings.store_url()?;
    let extensions = settings.extensions()?;
    let store = store::open(&url, None)?;
    let threads = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let threads = threads.map_err(Failure::Tokio)?;
    let (taken, refused) = threads.block_on(async {
        check_same_atlases(&*store, &atlases).await?;
        let signer = signer(url.folder(), &*store).await?;
        let runtime = Runtime::start(RuntimeParts {
            store,
            atlases,
            clock: Arc::new(SystemClock),
            ids: Box::new(RandomIds),
            operator: settings.operator.clone(),
            access: settings.access,
            extensions,
            signer,
            head_file: settings.head_file.clone(),
            webhooks: Webhooks::Off(NoticesOff::NoConsole),
        })
        .await?;
        let come = take_all(&runtime, turns, &args.agent).await;
        runtime.stop().await;
        Ok::<_, Failure>(come)
    })?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if args.json {
        let all: Vec<_> = taken.iter().map(to_json).collect();
        serde_json::to_writer_pretty(&mut out, &all)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        taken
            .iter()
            .try_for_each(|taken| write_turn(&mut out, taken))
    };
    let printed = verdict(exit::OK, written.and_then(|()| out.flush()));
    match refused {
        Some(refused) => Err(refused),
        None => printed,
    }
}

/// Fails if held requests were judged under other Atlases: opening the store with these Atlases would
/// void them without an operator's decision.
async fn check_same_atlases(store: &dyn Store, atlases: &[Atlas]) -> Result<(), Failure> {
    let hash = combined_hash(atlases);
    let held = held(store.state().await?)?;
    let others = held.iter().filter(|held| held.atlas_hash != hash).count();
    match others {
        0 => Ok(()),
        1 => Err(ThreadFailure::OtherAtlases("1 request is".to_owned()).into()),
        more => Err(ThreadFailure::OtherAtlases(format!("{more} requests are")).into()),
    }
}

/// Takes turns until one is refused.
async fn take_all(
    runtime: &Runtime,
    turns: Vec<SessionTurn>,
    agent: &str,
) -> (Vec<TurnResult>, Option<Failure>) {
    let all = turns.len();
    let mut taken = Vec::new();
    for (number, take) in (1..).zip(turns) {
        let message = take.turn.message_id.clone();
        match take_one(runtime, take, agent).await {
            Ok(one) => taken.push(one),
            Err(denied) => {
                let refused = ThreadFailure::Refused {
                    number,
                    all,
                    message: one_line(message.as_str()),
                    denied,
                };
                return (taken, Some(refused.into()));
            }
        }
    }
    (taken, None)
}

async fn take_one(
    runtime: &Runtime,
    take: SessionTurn,
    agent: &str,
) -> Result<TurnResult, DenialReply> {
    let agents = runtime.agent_handle();
    let picture = Arc::clone(&runtime.operator_handle().snapshots().borrow());
    let mut known = picture.sessions.iter();
    if !known.any(|session| session.id == take.session) {
        let start = StartSession {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: take.session.clone(),
            agent: agent.to_owned(),
            agent_version: None,
            intent: None,
            owner: None,
        };
        // A gate before the session's start does not matter: a turn is not an action.
        agents.start_session(start).await?;
    }
    let session = take.session.to_string();
    let message = take.turn.message_id.clone();
    let TurnReply {
        outcome, injected, ..
    } = agents.turn(take).await?;
    Ok(TurnResult {
        thread: outcome.memento.thread_id.to_string(),
        session,
        message,
        outcome,
        injected,
    })
}

fn write_turn(out: &mut impl Write, taken: &TurnResult) -> io::Result<()> {
    let outcome = &taken.outcome;
    line(out, "message", taken.message.as_str())?;
    let place = format!("{}, session {}", taken.thread, taken.session);
    line(out, "thread", &place)?;
    line(out, "decision", &decision(outcome.decided))?;
    let [formula, values] = formula(outcome.freeze);
    line(out, "freeze", &formula)?;
    line(out, "", &values)?;
    let summary = match kept_because(&outcome.summary) {
        Some(why) => format!("{}: {why}", outcome.summary.label()),
        None => outcome.summary.label().to_owned(),
    };
    line(out, "summary", &summary)?;
    let rollup = &outcome.memento.affect.rollup;
    let (phase, intensity) = (rollup.phase.as_str(), rollup.intensity_bucket.as_str());
    line(out, "affect", &format!("{phase}/{intensity}"))?;
    let source = outcome.source.as_str();
    let version = format!("{}, from {source}", outcome.version);
    line(out, "version", &version)?;
    line(out, "etag", &outcome.etag)?;
    let closed = outcome.closed.iter();
    closed
        .clone()
        .try_for_each(|text| line(out, "closed", text))?;
    let notes = outcome.notes.iter();
    notes.clone().try_for_each(|text| line(out, "note", text))?;
    for context in &taken.injected.contexts {
        line(out, "context", &context.context_id)?;
    }
    writeln!(out)
}

fn to_json(taken: &TurnResult) -> Value {
    let outcome = &taken.outcome;
    json!({
        "session": taken.session,
        "thread": taken.thread,
        "message_id": taken.message,
        "decision": outcome.decided.decision,
        "rule": outcome.decided.rule.number(),
        "rule_name": outcome.decided.rule,
        "freeze": formula_json(outcome.freeze),
        "summary": outcome.summary.as_str(),
        "kept_because": kept_because(&outcome.summary),
        "source": outcome.source.as_str(),
        "version": outcome.version,
        "etag": outcome.etag,
        "closed": outcome.closed,
        "notes": outcome.notes,
        "memento": outcome.memento,
        "given": taken.injected,
    })
}
