//! Results of verification.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::trace::event::TraceImported;

/// Acknowledged end of a session's chain: the number of events and the hash of the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainHead {
    /// The session.
    pub session: SessionId,
    /// Number of durable events.
    pub count: u64,
    /// Hash of the last event.
    pub hash: Digest,
    /// Time of the last event.
    pub last_at: Timestamp,
}

/// Verification result of a whole record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerificationReport {
    /// Result for the log over all sessions, if there is one.
    pub log: Option<LogVerification>,
    /// Result for every session, by name.
    pub chains: Vec<ChainVerification>,
}

impl VerificationReport {
    /// True if no fault was found.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.first_fault().is_none()
    }

    /// First fault.
    #[must_use]
    pub fn first_fault(&self) -> Option<(&SessionId, &VerificationVerdict)> {
        self.faults().next()
    }

    /// All faults.
    pub fn faults(&self) -> impl Iterator<Item = (&SessionId, &VerificationVerdict)> {
        let log = self.log.iter().map(|log| (&log.log, &log.verdict));
        let chains = self.chains.iter().map(|one| (&one.session, &one.verdict));
        log.chain(chains).filter(|(_, verdict)| !verdict.is_sound())
    }

    /// Result for one session. A chain is not called proven while the log over it has a fault.
    #[must_use]
    pub fn of_session(&self, session: &SessionId) -> Option<ChainVerification> {
        if let Some(log) = self.log.as_ref().filter(|log| log.log == *session) {
            return Some(ChainVerification::from(log));
        }
        let mut chains = self.chains.iter();
        let mut checked = chains.find(|chain| chain.session == *session)?.clone();
        let log = self.log.as_ref().filter(|log| !log.verdict.is_sound());
        if let (Some(log), true) = (log, checked.verdict.is_sound()) {
            let what = format!("the log failed verification: {}", log.verdict);
            checked.verdict = VerificationVerdict::diverged(0, what);
        }
        Some(checked)
    }

    /// Number of events read, those of the log included.
    #[must_use]
    pub fn events(&self) -> u64 {
        let log = self.log.as_ref().map_or(0, |log| log.entries);
        log + self.chains.iter().map(|chain| chain.events).sum::<u64>()
    }
}

/// Verification result of the log over all sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogVerification {
    /// The log.
    pub log: SessionId,
    /// Number of entries read.
    pub entries: u64,
    /// Verdict about the log.
    pub verdict: VerificationVerdict,
    /// Key whose signature proves it, if any.
    pub key: Option<String>,
}

impl From<&LogVerification> for ChainVerification {
    fn from(log: &LogVerification) -> Self {
        Self {
            session: log.log.clone(),
            events: log.entries,
            pruned: 0,
            not_canonical: 0,
            imports: Vec::new(),
            verdict: log.verdict.clone(),
        }
    }
}

/// Verification result of one session's chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainVerification {
    /// The session.
    pub session: SessionId,
    /// Number of events read.
    pub events: u64,
    /// Number of them that were pruned: their existence and order are proven, their content is not.
    pub pruned: u64,
    /// Lines of an export that are valid but not written as `cra trace export` writes them.
    #[serde(skip_serializing_if = "is_zero")]
    pub not_canonical: u64,
    /// Imports that brought it, or parts of it, into this store.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<ImportEntry>,
    /// Verdict about the chain.
    pub verdict: VerificationVerdict,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Import of a chain according to the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportEntry {
    /// The operator. Earlier versions recorded none.
    pub by: Option<String>,
    /// Time of the import.
    pub at: String,
    /// Number of events of the chain in the file.
    pub events: u64,
    /// The file.
    pub source: String,
    /// Digest of the file. Earlier versions recorded none.
    pub file_hash: Option<String>,
}

impl ImportEntry {
    /// Converts a `trace_imported` entry that was recorded at that time.
    #[must_use]
    pub fn of(imported: &TraceImported, at: &str) -> Self {
        Self {
            by: imported.by.clone(),
            at: at.to_owned(),
            events: imported.events,
            source: imported.source.clone(),
            file_hash: imported.file_hash.clone(),
        }
    }
}

impl fmt::Display for ImportEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.by.as_deref().unwrap_or("an unnamed operator");
        write!(f, "by {} at {}", one_line(by), one_line(&self.at))
    }
}

impl fmt::Display for ChainVerification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        if let Some(first) = self.imports.first() {
            write!(f, "; imported {first}")?;
            for again in self.imports.iter().skip(1) {
                write!(f, " and {again}")?;
            }
            if self.verdict.is_sound() {
                write!(f, ", linked since; nothing before the import is proven")?;
            }
        }
        if self.pruned > 0 {
            write!(f, "; {} linked, content pruned", self.pruned)?;
        }
        match self.not_canonical {
            0 => Ok(()),
            1 => write!(f, "; 1 line is not canonical, its hash matches"),
            lines => write!(f, "; {lines} lines are not canonical, their hashes match"),
        }
    }
}

/// Verdict about a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerificationVerdict {
    /// Every record follows the one before it. [`ProvenCounts`] states how many of them are proven to be the
    /// original records.
    Holds(ProvenCounts),
    /// The chain is consistent, but it is not the chain that was sealed.
    Diverged {
        /// First differing record, as far as it can be determined.
        sequence: u64,
        /// Description of the fault.
        what: String,
    },
    /// The chain is consistent, but records are missing at its end.
    Truncated {
        /// Number of records present.
        found: u64,
        /// Number of records known to have existed.
        expected: u64,
    },
    /// The chain is inconsistent.
    Broken {
        /// Sequence of the fault.
        sequence: u64,
        /// Description of the fault.
        what: String,
    },
}

/// Proven part of a chain. All numbers are counts from the first record on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProvenCounts {
    /// Records covered by a head from elsewhere.
    pub witnessed: u64,
    /// Records covered by a signed head.
    pub sealed: u64,
    /// All records.
    pub count: u64,
    /// First imported record, if any. From there on, a head proves that the record did not change since the
    /// import, not that the event happened.
    pub imported_from: Option<u64>,
}

impl ProvenCounts {
    /// Number of records that this log recorded itself.
    #[must_use]
    pub fn own_count(&self) -> u64 {
        self.imported_from.unwrap_or(self.count).min(self.count)
    }

    /// Number of records that no head covers.
    #[must_use]
    pub fn unproven_count(&self) -> u64 {
        self.count - self.witnessed.max(self.sealed).min(self.count)
    }
}

impl VerificationVerdict {
    /// True if no fault was found in the chain.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Holds(_) => true,
            Self::Diverged { .. } | Self::Truncated { .. } | Self::Broken { .. } => false,
        }
    }

    /// The verdict in one word.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Holds(proven) if proven.imported_from.is_some() => "IMPORTED",
            Self::Holds(proven) if proven.unproven_count() > 0 || proven.count == 0 => "UNSEALED",
            Self::Holds(proven) if proven.witnessed >= proven.count => "WITNESSED",
            Self::Holds(_) => "SEALED",
            Self::Diverged { .. } => "DIVERGED",
            Self::Truncated { .. } => "TRUNCATED",
            Self::Broken { .. } => "BROKEN",
        }
    }

    pub(super) fn broken(sequence: u64, what: impl Into<String>) -> Self {
        Self::Broken {
            sequence,
            what: what.into(),
        }
    }

    pub(super) fn diverged(sequence: u64, what: impl Into<String>) -> Self {
        Self::Diverged {
            sequence,
            what: what.into(),
        }
    }
}

impl fmt::Display for VerificationVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds(proven) => write!(f, "{proven}"),
            Self::Diverged { sequence, what } => write!(f, "DIVERGED at {sequence}: {what}"),
            Self::Truncated { found, expected } => {
                write!(f, "TRUNCATED: {found} of {expected} events found")
            }
            Self::Broken { sequence, what } => write!(f, "BROKEN at {sequence}: {what}"),
        }
    }
}

impl fmt::Display for ProvenCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = self.own_count();
        let (witnessed, sealed) = (self.witnessed.min(own), self.sealed.min(own));
        let mut parts = Vec::new();
        if let Some(last) = witnessed.checked_sub(1) {
            parts.push(format!("WITNESSED 0..{last}"));
        }
        if sealed > witnessed {
            parts.push(format!("SEALED {witnessed}..{}", sealed - 1));
        }
        if let Some(last) = self.count.checked_sub(1).filter(|last| own <= *last) {
            parts.push(format!("IMPORTED {own}..{last}"));
        }
        if self.unproven_count() > 0 || parts.is_empty() {
            parts.push(format!("UNSEALED tail {}", self.unproven_count()));
        }
        write!(f, "{}", parts.join(", "))
    }
}

impl Serialize for VerificationVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("word", self.label())?;
        map.serialize_entry("text", &self.to_string())?;
        match self {
            Self::Holds(proven) => {
                map.serialize_entry("witnessed", &proven.witnessed)?;
                map.serialize_entry("sealed", &proven.sealed)?;
                map.serialize_entry("tail", &proven.unproven_count())?;
                if let Some(from) = proven.imported_from {
                    map.serialize_entry("imported_from", &from)?;
                }
            }
            Self::Diverged { sequence, what } | Self::Broken { sequence, what } => {
                map.serialize_entry("sequence", sequence)?;
                map.serialize_entry("what", what)?;
            }
            Self::Truncated { found, expected } => {
                map.serialize_entry("found", found)?;
                map.serialize_entry("expected", expected)?;
            }
        }
        map.end()
    }
}
