//! The one thread that writes. What waits is committed together.

use rusqlite::{Connection, Transaction, params};
use tokio::sync::{mpsc, oneshot};

use super::super::{Batch, StateRow, StoreError};
use crate::base::canon::canonical;
use crate::base::id::SpanId;
use crate::trace::event::Event;

/// A batch and whoever waits for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) batch: Batch,
    pub(super) done: oneshot::Sender<Result<(), StoreError>>,
}

/// Most batches in one commit: enough to make the disk's wait cheap, few enough to answer soon.
const GROUP: usize = 256;

/// Writes until nobody can hand over batches any more.
pub(super) fn run(mut connection: Connection, mut queue: mpsc::Receiver<Job>) {
    let mut poison: Option<StoreError> = None;
    let mut jobs = Vec::new();
    while queue.blocking_recv_many(&mut jobs, GROUP) > 0 {
        let outcome = match &poison {
            Some(error) => Err(error.clone()),
            None => commit(&mut connection, &jobs).map_err(|error| StoreError::Poisoned {
                what: error.to_string(),
            }),
        };
        if let Err(error) = &outcome {
            poison.get_or_insert_with(|| error.clone());
        }
        for job in jobs.drain(..) {
            // Whoever no longer listens does not need to know.
            let _ = job.done.send(outcome.clone());
        }
    }
}

fn commit(connection: &mut Connection, jobs: &[Job]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for job in jobs {
        for event in &job.batch.events {
            insert_event(&transaction, event)?;
            move_head(&transaction, event)?;
        }
        for row in &job.batch.state {
            put_state(&transaction, row)?;
        }
    }
    transaction.commit()
}

fn insert_event(transaction: &Transaction<'_>, event: &Event) -> rusqlite::Result<()> {
    let payload = canonical(&event.payload.clone().into());
    transaction
        .prepare_cached(
            "INSERT INTO events (trace_version, event_id, trace_id, span_id, parent_span_id,
             session_id, sequence, timestamp, event_type, payload, previous_hash, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            event.trace_version,
            event.event_id.as_str(),
            event.trace_id.as_str(),
            event.span_id.as_str(),
            event.parent_span_id.as_ref().map(SpanId::as_str),
            event.session_id.as_str(),
            event.sequence.cast_signed(),
            event.timestamp.to_string(),
            event.event_type,
            payload,
            event.previous_hash.to_string(),
            event.hash.to_string(),
        ])?;
    Ok(())
}

fn move_head(transaction: &Transaction<'_>, event: &Event) -> rusqlite::Result<()> {
    let agent = event
        .payload
        .get("agent_type")
        .and_then(|agent| agent.as_str());
    transaction
        .prepare_cached(
            "INSERT INTO heads (session_id, count, hash, agent, started_at, last_at, ended)
             VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)
             ON CONFLICT (session_id) DO UPDATE SET count = excluded.count, hash = excluded.hash,
             last_at = excluded.last_at, ended = max(ended, excluded.ended)",
        )?
        .execute(params![
            event.session_id.as_str(),
            (event.sequence + 1).cast_signed(),
            event.hash.to_string(),
            agent.unwrap_or(""),
            event.timestamp.to_string(),
            event.event_type == "session_ended",
        ])?;
    Ok(())
}

fn put_state(transaction: &Transaction<'_>, row: &StateRow) -> rusqlite::Result<()> {
    match &row.body {
        Some(body) => transaction
            .prepare_cached(
                "INSERT INTO state (kind, key, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body",
            )?
            .execute(params![row.kind, row.key, body])?,
        None => transaction
            .prepare_cached("DELETE FROM state WHERE kind = ?1 AND key = ?2")?
            .execute(params![row.kind, row.key])?,
    };
    Ok(())
}
