//! Reading the record, from a console or from the command line.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, params};

use super::super::{RecordedSession, StateRow, StoreError};
use super::{damaged, open_error, schema};
use crate::base::id::SessionId;
use crate::trace::event::Event;
use crate::trace::verify::{Checked, Head, Known, RawEvent, Verdict, Verifier};

/// A connection that cannot write.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

/// Events read at a time while verifying, so that memory stays flat.
const PAGE: usize = 4096;

impl Reader {
    /// Opens the store file for reading. It may be in use by a console at the same time.
    ///
    /// # Errors
    /// When it does not exist, is not a store of this version, or is damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| open_error(path, &error))?;
        match schema::inspect(&connection, path)? {
            schema::Found::Ours => Ok(Self { connection }),
            schema::Found::Empty => Err(StoreError::Foreign {
                path: path.display().to_string(),
                what: "it is empty".to_owned(),
            }),
        }
    }

    /// Every piece of state.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn state(&self) -> Result<Vec<StateRow>, StoreError> {
        self.rows(
            "SELECT kind, key, body FROM state ORDER BY kind, key",
            |row| {
                Ok(StateRow {
                    kind: row.get(0)?,
                    key: row.get(1)?,
                    body: Some(row.get(2)?),
                })
            },
        )
    }

    /// The end of every chain, as acknowledged.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn heads(&self) -> Result<Vec<Head>, StoreError> {
        let query = "SELECT session_id, count, hash, last_at FROM heads ORDER BY session_id";
        self.rows(query, |row| {
            Ok(Head {
                session: parsed(row, 0)?,
                count: count(row, 1)?,
                hash: parsed(row, 2)?,
                last_at: parsed(row, 3)?,
            })
        })
    }

    /// The sessions on record, newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn sessions(&self) -> Result<Vec<RecordedSession>, StoreError> {
        let query = "SELECT session_id, agent, started_at, last_at, count, ended FROM heads
                     ORDER BY started_at DESC, session_id";
        self.rows(query, |row| {
            Ok(RecordedSession {
                session: parsed(row, 0)?,
                agent: row.get(1)?,
                started_at: parsed(row, 2)?,
                last_at: parsed(row, 3)?,
                events: count(row, 4)?,
                ended: row.get(5)?,
            })
        })
    }

    /// Events of a session, from a sequence number on.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn events(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.page(session, from, limit, |row| {
            let payload: String = row.get(9)?;
            Ok(Event {
                trace_version: row.get(0)?,
                event_id: parsed(row, 1)?,
                trace_id: parsed(row, 2)?,
                span_id: parsed(row, 3)?,
                parent_span_id: row
                    .get::<_, Option<String>>(4)?
                    .map(|text| text.parse().map_err(|error| unreadable(4, error)))
                    .transpose()?,
                session_id: parsed(row, 5)?,
                sequence: count(row, 6)?,
                timestamp: parsed(row, 7)?,
                event_type: row.get(8)?,
                payload: serde_json::from_str(&payload).map_err(|error| unreadable(9, error))?,
                pruned: false,
                previous_hash: parsed(row, 10)?,
                hash: parsed(row, 11)?,
            })
        })
    }

    /// Checks every chain that has events or was ever acknowledged.
    ///
    /// # Errors
    /// When the file itself cannot be read; faults of the record are verdicts, not errors.
    pub fn verify(&self) -> Result<Vec<Checked>, StoreError> {
        // One moment of the file: between reading a head and its chain a console may go on writing,
        // and what it wrote would look like events that nobody acknowledged.
        let moment = self.connection.unchecked_transaction();
        let _moment = moment.map_err(|error| damaged(&error))?;
        let mut heads: BTreeMap<String, Option<Head>> = BTreeMap::new();
        let named = "SELECT DISTINCT session_id FROM events";
        for session in self.rows(named, |row| row.get::<_, String>(0))? {
            heads.insert(session, None);
        }
        for head in self.heads()? {
            heads.insert(head.session.to_string(), Some(head));
        }
        heads
            .into_iter()
            .map(|(session, head)| self.verify_session(&session, head.as_ref()))
            .collect()
    }

    /// Checks one session's chain, and that what is listed about the session follows from it.
    fn verify_session(&self, session: &str, head: Option<&Head>) -> Result<Checked, StoreError> {
        // A name that no writer could have written still gets a verdict.
        let id: SessionId = match session.parse() {
            Ok(id) => id,
            Err(error) => {
                let id = "unknown".parse().map_err(|_| StoreError::Damaged {
                    what: error.to_string(),
                })?;
                let mut verifier = Verifier::new(id);
                verifier.push_unreadable(format!("session_id {error}"));
                return Ok(verifier.finish(Known::Nothing));
            }
        };
        let mut verifier = Verifier::new(id.clone());
        let mut told = Told::default();
        let mut from = 0;
        loop {
            let page = self.page(&id, from, PAGE, |row| Ok(raw(row)))?;
            for event in &page {
                match event {
                    Ok(event) => {
                        from = from.max(event.sequence.saturating_add(1));
                        verifier.push(event);
                        told.note(event);
                    }
                    Err(what) => verifier.push_unreadable(what.clone()),
                }
            }
            if page.len() < PAGE || page.iter().all(Result::is_err) {
                break;
            }
        }
        let mut checked = verifier.finish(Known::Head(head));
        if let Verdict::Verified { last } = checked.verdict
            && let Some(what) = self.contradiction(&id, checked.events, &told)?
        {
            let sequence = last;
            checked.verdict = Verdict::Broken { sequence, what };
        }
        Ok(checked)
    }

    /// What lies beside a chain that holds and does not agree with it.
    fn contradiction(
        &self,
        session: &SessionId,
        read: u64,
        told: &Told,
    ) -> Result<Option<String>, StoreError> {
        let one = |query: &str| -> rusqlite::Result<(String, String, String, bool, i64)> {
            self.connection.query_row(query, [session.as_str()], |row| {
                let (agent, started_at) = (row.get(0)?, row.get(1)?);
                Ok((agent, started_at, row.get(2)?, row.get(3)?, row.get(4)?))
            })
        };
        let (agent, started_at, last_at, ended, rows) =
            one("SELECT agent, started_at, last_at, ended,
             (SELECT count(*) FROM events WHERE session_id = ?1)
             FROM heads WHERE session_id = ?1")
            .map_err(|error| damaged(&error))?;
        let wrong = |what: &str| Some(format!("the list of sessions has another {what}"));
        Ok(if u64::try_from(rows) != Ok(read) {
            Some("there are events outside of the chain".to_owned())
        } else if agent != told.agent {
            wrong("agent than its first event")
        } else if started_at != told.started_at {
            wrong("start than its first event")
        } else if last_at != told.last_at {
            wrong("time than its last event")
        } else if ended != told.ended {
            wrong("state than its events")
        } else {
            None
        })
    }

    fn page<T>(
        &self,
        session: &SessionId,
        from: u64,
        limit: usize,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT trace_version, event_id, trace_id, span_id, parent_span_id, session_id,
                 sequence, timestamp, event_type, payload, previous_hash, hash
                 FROM events WHERE session_id = ?1 AND sequence >= ?2
                 ORDER BY sequence LIMIT ?3",
            )
            .map_err(|error| damaged(&error))?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![session.as_str(), from, limit], read);
        rows.and_then(Iterator::collect)
            .map_err(|error| damaged(&error))
    }

    fn rows<T>(
        &self,
        query: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self
            .connection
            .prepare(query)
            .map_err(|error| damaged(&error))?;
        let rows = statement.query_map([], read);
        rows.and_then(Iterator::collect)
            .map_err(|error| damaged(&error))
    }
}

/// What the events of a chain say about its session.
#[derive(Debug, Default)]
struct Told {
    agent: String,
    started_at: String,
    last_at: String,
    ended: bool,
}

impl Told {
    fn note(&mut self, event: &RawEvent) {
        if event.sequence == 0 {
            let payload: serde_json::Value =
                serde_json::from_str(&event.payload).unwrap_or_default();
            let agent = payload.get("agent_type").and_then(|agent| agent.as_str());
            agent.unwrap_or_default().clone_into(&mut self.agent);
            self.started_at.clone_from(&event.timestamp);
        }
        self.last_at.clone_from(&event.timestamp);
        self.ended |= event.event_type == "session_ended";
    }
}

/// A row as it lies: what is not text, or not a number, is said and not guessed.
fn raw(row: &Row<'_>) -> Result<RawEvent, String> {
    let text = |index: usize| match row.get_ref(index) {
        Ok(ValueRef::Text(bytes)) => {
            String::from_utf8(bytes.to_vec()).map_err(|_| format!("column {index} is not UTF-8"))
        }
        Ok(_) | Err(_) => Err(format!("column {index} is not text")),
    };
    Ok(RawEvent {
        trace_version: text(0)?,
        event_id: text(1)?,
        trace_id: text(2)?,
        span_id: text(3)?,
        parent_span_id: match row.get_ref(4) {
            Ok(ValueRef::Null) => None,
            Ok(_) | Err(_) => Some(text(4)?),
        },
        session_id: text(5)?,
        sequence: count(row, 6).map_err(|error| error.to_string())?,
        timestamp: text(7)?,
        event_type: text(8)?,
        payload: text(9)?,
        previous_hash: text(10)?,
        hash: text(11)?,
    })
}

fn parsed<T>(row: &Row<'_>, index: usize) -> rusqlite::Result<T>
where
    T: FromStr,
    T::Err: Display,
{
    let text: String = row.get(index)?;
    text.parse().map_err(|error| unreadable(index, error))
}

fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(index)?;
    u64::try_from(number).map_err(|error| unreadable(index, error))
}

fn unreadable(index: usize, error: impl Display) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        index,
        rusqlite::types::Type::Text,
        error.to_string().into(),
    )
}
