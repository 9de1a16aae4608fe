//! Seal over the state: a keyed digest of all rows, bound to the end of the record.
//!
//! The rows decide what may run after a restart (permits, held requests, passed gates and used limits of
//! sessions), which session owns a thread and what its memento says, and whether acknowledged events may be
//! missing. Any process that can write to the store can edit, remove or restore rows while the console is
//! closed. So every batch that changes rows or adds records carries one more row: a code over all rows and
//! over the ends of the log and the record, made with a key that is derived from the key that signs the
//! log. Without that key no row can be forged, and rows that were valid once do not fit a record that has
//! grown since. Batches are written atomically, so the seal fits after a crash, too.
//!
//! Contract: if the seal does not fit, no row permits anything. Permits and held requests are dropped, open
//! sessions end, limits that all sessions share count as used up, and threads wait until an operator hands
//! them over. The log and an alarm report this.
//!
//! Not covered: replacement of the whole store by an older copy of it. Only an external copy of the head
//! shows that.

use std::collections::HashMap;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::acknowledgement::Acknowledgement;
use super::actor::DRAFT_KIND;
use super::actor::replies::state_row;
use super::ledger::{Ledger, LogError};
use super::notices::NOTICE_KIND;
use super::threads::{THREAD_DRAFT_KIND, THREAD_KIND, unverified_thread};
use crate::atlas::document::AcknowledgeMode;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::engine::Engine;
use crate::engine::command::StateKind;
use crate::store::{Batch, LogState, StateRow, Store};
use crate::trace::event::{Payload, StoreRecovered};
use crate::trace::note::Signer;
use crate::trace::verification;

/// State kind of the row with the seal.
pub(super) const STATE_SEAL: &str = "state_seal";

/// Key of that row.
const CURRENT: &str = "current";

type Lanes = [u64; 4];

/// Seal over the state.
pub(super) struct StateSeal {
    row_key: Hmac<Sha256>,
    seal_key: Hmac<Sha256>,
    /// Key of seals that cover only the engine's rows, as an earlier version wrote them. It is a separate
    /// key: the seal of a store without other rows must not be accepted as a seal that ignores them.
    engine_seal_key: Hmac<Sha256>,
    /// Contribution of each row to the sum.
    rows: HashMap<(String, String), Lanes>,
    sum: Lanes,
    last_code: Option<Digest>,
    origin: RowOrigin,
}

/// Origin of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowOrigin {
    /// The console wrote them: it continues to seal them.
    Own,
    /// Another process changed them: they are never sealed.
    Foreign,
    /// The key that sealed them is lost: they are marked as such, and never sealed.
    KeyLost,
}

/// Result of checking the rows of a store against its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SealCheck {
    /// A console wrote these rows last.
    Valid,
    /// The rows differ from those that a console wrote last, for this reason.
    Invalid(&'static str),
    /// The key was changed without the old one, so the rows cannot be checked.
    KeyLost,
}

/// Version of cra that wrote to a store last, as far as it matters for the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriterVersion {
    /// A version that seals the state.
    Sealing,
    /// An earlier version.
    Earlier,
}

/// Returns the version that made the newest signed entry of the log.
///
/// # Errors
/// Fails when the store cannot be read, or the entry does not match its hash.
pub(super) async fn writer_version(
    store: &dyn Store,
    log: &LogState,
) -> Result<WriterVersion, LogError> {
    let Some(size) = log.seal.as_ref().map(|seal| seal.size) else {
        return Ok(WriterVersion::Earlier);
    };
    let newest = size.saturating_sub(1);
    let entry = store.session_records(log.log.clone(), newest, 1).await?;
    let Some(entry) = entry.first() else {
        return Ok(WriterVersion::Sealing);
    };
    let changed = |what: String| LogError::ReadBack { what };
    let (envelope, _) = verification::check_record(&entry.text, &entry.hash).map_err(changed)?;
    let marker = serde_json::from_str::<SealMarker>(envelope.payload);
    match marker {
        Ok(marker) if !marker.state_sealed.unwrap_or_default() => Ok(WriterVersion::Earlier),
        // An unreadable entry does not come from an earlier version.
        Ok(_) | Err(_) => Ok(WriterVersion::Sealing),
    }
}

/// The part of an entry that tells whether the state was sealed.
#[derive(serde::Deserialize)]
struct SealMarker {
    #[serde(default)]
    state_sealed: Option<bool>,
}

impl StateSeal {
    /// Creates the seal over these rows of a store. The rows are trusted only if the stored seal fits.
    pub(super) fn new(signer: &Signer, rows: &[StateRow]) -> Self {
        // Only the holder of the key knows a signature over a text that is never published.
        let secret = |text: &str| Digest::of(signer.signature(text));
        let mut seal = Self {
            row_key: new_hmac(&secret("cra state row key 1\n")),
            seal_key: new_hmac(&secret("cra state seal key 2\n")),
            engine_seal_key: new_hmac(&secret("cra state seal key 1\n")),
            rows: HashMap::new(),
            sum: [0; 4],
            last_code: None,
            origin: RowOrigin::Own,
        };
        seal.add_rows(rows);
        seal
    }

    /// Compares the rows of a store with the stored seal.
    pub(super) fn check(&self, rows: &[StateRow], ledger: &Ledger, by: WriterVersion) -> SealCheck {
        let stored = rows.iter().find(|row| row.kind == STATE_SEAL);
        let stored = stored.and_then(|row| row.body.as_deref());
        match stored {
            Some(stored) if stored == seal_body(&self.code(ledger)) => SealCheck::Valid,
            Some(stored) if stored == seal_body(&self.engine_code(ledger)) => SealCheck::Valid,
            Some(stored) if stored == seal_body(&self.key_lost_code(ledger)) => SealCheck::KeyLost,
            Some(_) => SealCheck::Invalid("its seal does not match"),
            None if by == WriterVersion::Sealing => SealCheck::Invalid("its seal is missing"),
            None if self.rows.is_empty() => SealCheck::Valid,
            None if ledger.is_new() => SealCheck::Invalid("its log is missing"),
            // An earlier version, which did not seal state, wrote them.
            None => SealCheck::Valid,
        }
    }

    /// Changes the key to one that is derived from another signer.
    pub(super) fn change_key(&mut self, signer: &Signer, rows: &[StateRow]) {
        let standing = self.origin;
        *self = Self {
            origin: standing,
            ..Self::new(signer, rows)
        };
    }

    /// Stops sealing the rows of this store: another process changed them.
    pub(super) fn distrust(&mut self) {
        self.origin = RowOrigin::Foreign;
    }

    /// Returns true if the rows are still sealed.
    pub(super) fn is_trusted(&self) -> bool {
        self.origin == RowOrigin::Own
    }

    /// Marks the rows of this store from now on: the key that sealed them is lost.
    pub(super) fn orphan(&mut self) {
        self.origin = RowOrigin::KeyLost;
    }

    /// Adds the seal to a batch that changes rows or adds records. The ledger already has the records.
    pub(super) fn add_seal(&mut self, batch: &mut Batch, ledger: &Ledger) {
        self.add_rows(&batch.state);
        let code = match self.origin {
            RowOrigin::Own => self.code(ledger),
            RowOrigin::Foreign => return,
            RowOrigin::KeyLost => self.key_lost_code(ledger),
        };
        if self.last_code != Some(code) {
            self.last_code = Some(code);
            batch.state.push(StateRow {
                kind: STATE_SEAL.to_owned(),
                key: CURRENT.to_owned(),
                body: Some(seal_body(&code)),
            });
        }
    }

    fn add_rows(&mut self, rows: &[StateRow]) {
        for row in rows.iter().filter(|row| is_covered(&row.kind)) {
            let key = (row.kind.clone(), row.key.clone());
            let before = match &row.body {
                Some(body) => {
                    let lanes = self.lanes(row, body);
                    self.sum = lane_wise(self.sum, lanes, u64::wrapping_add);
                    self.rows.insert(key, lanes)
                }
                None => self.rows.remove(&key),
            };
            if let Some(before) = before {
                self.sum = lane_wise(self.sum, before, u64::wrapping_sub);
            }
        }
    }

    fn lanes(&self, row: &StateRow, body: &str) -> Lanes {
        let parts = [row.kind.as_bytes(), row.key.as_bytes(), body.as_bytes()];
        let code = mac(&self.row_key, parts);
        let mut lanes = [0; 4];
        let (chunks, _) = code.as_bytes().as_chunks();
        for (lane, bytes) in lanes.iter_mut().zip(chunks) {
            *lane = u64::from_be_bytes(*bytes);
        }
        lanes
    }

    /// Returns the code over all rows and the ends of log and record.
    fn code(&self, ledger: &Ledger) -> Digest {
        code_with(&self.seal_key, ledger, lane_bytes(self.sum).as_flattened())
    }

    /// Returns the code over the engine's rows only, as an earlier version made it.
    fn engine_code(&self, ledger: &Ledger) -> Digest {
        let rows = self.rows.iter();
        let engine = rows.filter(|((kind, _), _)| engine_kind(kind).is_some());
        let sum = engine.fold([0; 4], |sum, (_, lanes)| {
            lane_wise(sum, *lanes, u64::wrapping_add)
        });
        let sum = lane_bytes(sum);
        code_with(&self.engine_seal_key, ledger, sum.as_flattened())
    }

    /// Returns the code which marks that the key of the rows is lost. It covers no row.
    fn key_lost_code(&self, ledger: &Ledger) -> Digest {
        let what = b"the key that sealed the rows is lost";
        code_with(&self.seal_key, ledger, what)
    }
}

fn code_with(key: &Hmac<Sha256>, ledger: &Ledger, what: &[u8]) -> Digest {
    let (entries, events) = ledger.sizes();
    let parts = [
        ledger.log().as_str().as_bytes(),
        &entries.to_be_bytes(),
        &events.to_be_bytes(),
        what,
    ];
    mac(key, parts)
}

impl fmt::Debug for StateSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never show the keys.
        let rows = self.rows.len();
        f.debug_struct("StateSeal")
            .field("rows", &rows)
            .finish_non_exhaustive()
    }
}

/// Counts of rows that are ignored because the seal does not confirm them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntrustedRows {
    /// Permits.
    pub permits: usize,
    /// Held requests.
    pub held: usize,
    /// Open sessions.
    pub sessions: usize,
    /// Threads. They are kept, and wait until an operator hands them over.
    pub threads: usize,
}

impl UntrustedRows {
    pub(super) fn of(rows: &[StateRow]) -> Self {
        let count = |kind: &str| rows.iter().filter(|row| row.kind == kind).count();
        Self {
            permits: count(StateKind::Permit.as_str()),
            held: count(StateKind::Held.as_str()),
            sessions: count(StateKind::Session.as_str()),
            threads: count(THREAD_KIND),
        }
    }
}

/// State of a store, as far as it is trusted.
#[derive(Debug)]
pub(super) struct OpenedState {
    pub(super) seal: StateSeal,
    /// Trusted rows.
    pub(super) rows: Vec<StateRow>,
    /// Rows to write: untrusted ones are removed, and limits count as used up.
    pub(super) changed: Vec<StateRow>,
    /// Reason why rows are not trusted, for people.
    pub(super) distrusted: Option<String>,
}

impl OpenedState {
    /// Checks the state of a store. If the seal does not confirm it, only rows that permit nothing are
    /// left: counters, used limits, and items that operators have to acknowledge. Rows of limits may be
    /// missing, so limits that all sessions share count as used up from `now` on. Threads are kept for an
    /// operator to inspect. Operators' drafts are dropped, and acknowledged events count as possibly
    /// missing.
    pub(super) fn new(
        seal: StateSeal,
        rows: Vec<StateRow>,
        ledger: &Ledger,
        by: WriterVersion,
        now: Timestamp,
    ) -> Self {
        let why = match seal.check(&rows, ledger, by) {
            SealCheck::Valid => {
                return Self {
                    seal,
                    rows,
                    changed: Vec::new(),
                    distrusted: None,
                };
            }
            SealCheck::Invalid(why) => {
                format!("the state was changed while cra was not running ({why})")
            }
            SealCheck::KeyLost => {
                "the key was replaced without the old one, so the state cannot be verified"
                    .to_owned()
            }
        };
        let dropped = UntrustedRows::of(&rows);
        let what = format!(
            "{why}: {} permits and {} held requests are dropped, {} sessions are ended, {} threads wait until an operator \
             hands them over, and limits that all sessions share count as used up: rates for one window, budgets until \
             an operator loads another version of the Atlas",
            dropped.permits, dropped.held, dropped.sessions, dropped.threads,
        );
        let (mut rows, mut changed): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(lets_nothing_run);
        for row in &mut changed {
            row.body = None;
        }
        let threads = rows.iter().filter(|row| row.kind == THREAD_KIND);
        let threads = threads.filter_map(unverified_thread);
        let unknown = state_row(Engine::usage_unknown(now));
        for replaced in threads.chain([unknown]).collect::<Vec<_>>() {
            replace_row(&mut rows, replaced.clone());
            changed.push(replaced);
        }
        // The start writes its own row; this one tells what the last console may have lost.
        replace_row(
            &mut rows,
            Acknowledgement::running(AcknowledgeMode::Early).row(),
        );
        Self {
            seal,
            rows,
            changed,
            distrusted: Some(what),
        }
    }

    /// Returns the log entry about untrusted rows.
    pub(super) fn entry(&self) -> Option<Payload> {
        let what = self.distrusted.clone()?;
        Some(StoreRecovered { what, by: None }.into())
    }
}

fn replace_row(rows: &mut Vec<StateRow>, with: StateRow) {
    rows.retain(|row| (&row.kind, &row.key) != (&with.kind, &with.key));
    rows.push(with);
}

/// Returns true if a row permits nothing, with any content.
fn lets_nothing_run(row: &StateRow) -> bool {
    match engine_kind(&row.kind) {
        Some(StateKind::Session | StateKind::Held | StateKind::Permit | StateKind::Fault) => false,
        Some(StateKind::Counter | StateKind::Usage | StateKind::Overruled) => true,
        // A forged draft could pass for an operator's own text.
        None => row.kind != DRAFT_KIND && row.kind != THREAD_DRAFT_KIND,
    }
}

/// Returns true if the seal covers rows of a kind. Commands change notices while no console is open, and a
/// notice decides nothing.
fn is_covered(kind: &str) -> bool {
    kind != STATE_SEAL && kind != NOTICE_KIND
}

/// Returns the kind of one of the engine's rows; `None` for rows of the runtime.
fn engine_kind(kind: &str) -> Option<StateKind> {
    let mut kinds = StateKind::ALL.into_iter();
    kinds.find(|known| known.as_str() == kind)
}

fn seal_body(code: &Digest) -> String {
    format!("{{\"code\":\"{code}\"}}")
}

fn lane_bytes(lanes: Lanes) -> [[u8; 8]; 4] {
    lanes.map(u64::to_be_bytes)
}

fn lane_wise(a: Lanes, b: Lanes, with: fn(u64, u64) -> u64) -> Lanes {
    let [a0, a1, a2, a3] = a;
    let [b0, b1, b2, b3] = b;
    [with(a0, b0), with(a1, b1), with(a2, b2), with(a3, b3)]
}

fn new_hmac(key: &Digest) -> Hmac<Sha256> {
    // A key that is shorter than a block of the hash is padded with zeros.
    let mut block = [0; 64];
    for (place, byte) in block.iter_mut().zip(key.as_bytes()) {
        *place = *byte;
    }
    Hmac::new(&block.into())
}

fn mac<'a>(key: &Hmac<Sha256>, parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut mac = key.clone();
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    Digest::from_bytes(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, key: &str, body: Option<&str>) -> StateRow {
        StateRow {
            kind: kind.to_owned(),
            key: key.to_owned(),
            body: body.map(str::to_owned),
        }
    }

    fn seal(number: u8, rows: &[StateRow]) -> StateSeal {
        StateSeal::new(&Signer::new("cra/test", &[number; 32]).unwrap(), rows)
    }

    #[test]
    fn the_sum_depends_only_on_the_rows_and_the_key() {
        let rows = [
            row("permit", "c-1", Some("{}")),
            row("session", "s-1", Some("{}")),
        ];
        let sum = seal(7, &rows).sum;
        assert_ne!(sum, seal(8, &rows).sum, "another key");
        let turned = [rows[1].clone(), rows[0].clone()];
        assert_eq!(sum, seal(7, &turned).sum, "the order does not count");
        for (kind, key, body) in [
            ("held", "c-1", "{}"),
            ("permit", "c-2", "{}"),
            ("permit", "c-1", "{ }"),
        ] {
            let other = [row(kind, key, Some(body)), rows[1].clone()];
            assert_ne!(sum, seal(7, &other).sum, "{kind} {key} {body}");
        }
        let mut gone = seal(7, &rows);
        gone.add_rows(&[
            row("permit", "c-1", None),
            row(STATE_SEAL, CURRENT, Some("x")),
        ]);
        assert_eq!(
            gone.sum,
            seal(7, &rows[1..]).sum,
            "the seal does not cover itself"
        );
    }
}
