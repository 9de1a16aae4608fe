//! What verification has to say.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;

/// What was acknowledged about a session: how many events, and the hash of the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The session.
    pub session: SessionId,
    /// Events that were made durable.
    pub count: u64,
    /// Hash of the last of them.
    pub hash: Digest,
    /// When the last of them happened.
    pub last_at: Timestamp,
}

/// What was found about a whole record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The log over all sessions, where there is one.
    pub log: Option<LogChecked>,
    /// Every session, by name.
    pub chains: Vec<Checked>,
}

impl Report {
    /// Whether nothing speaks against any of it.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.first_fault().is_none()
    }

    /// The first thing that speaks against it.
    #[must_use]
    pub fn first_fault(&self) -> Option<(&SessionId, &Verdict)> {
        self.faults().next()
    }

    /// Everything that speaks against it.
    pub fn faults(&self) -> impl Iterator<Item = (&SessionId, &Verdict)> {
        let log = self.log.iter().map(|log| (&log.log, &log.verdict));
        let chains = self.chains.iter().map(|one| (&one.session, &one.verdict));
        log.chain(chains).filter(|(_, verdict)| !verdict.is_sound())
    }

    /// What was found about one session. A chain is not called proven while the log over it does not
    /// hold.
    #[must_use]
    pub fn of_session(&self, session: &SessionId) -> Option<Checked> {
        let mut chains = self.chains.iter();
        let mut checked = chains.find(|chain| chain.session == *session)?.clone();
        let log = self.log.as_ref().filter(|log| !log.verdict.is_sound());
        if let (Some(log), true) = (log, checked.verdict.is_sound()) {
            let what = format!("the log over it does not hold: {}", log.verdict);
            checked.verdict = Verdict::diverged(0, what);
        }
        Some(checked)
    }

    /// Events that were read, those of the log included.
    #[must_use]
    pub fn events(&self) -> u64 {
        let log = self.log.as_ref().map_or(0, |log| log.entries);
        log + self.chains.iter().map(|chain| chain.events).sum::<u64>()
    }
}

/// What was found about the log over all sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogChecked {
    /// The log.
    pub log: SessionId,
    /// Its entries that were read.
    pub entries: u64,
    /// What they prove.
    pub verdict: Verdict,
    /// The key whose signature proves it, where one does.
    pub key: Option<String>,
}

/// What was found about one session's chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// The session.
    pub session: SessionId,
    /// Events that were read.
    pub events: u64,
    /// Those of them whose content was pruned: their order is proven, and that they were there.
    pub pruned: u64,
    /// What they prove.
    pub verdict: Verdict,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        match self.pruned {
            0 => Ok(()),
            pruned => write!(f, "; {pruned} linked, content pruned"),
        }
    }
}

/// What a chain proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every record follows the one before it. How much of that is proven to be what was written,
    /// and all of it, is said beside.
    Holds(Proven),
    /// It holds, and it is not the chain that was sealed.
    Diverged {
        /// The first record that is another one, as far as that can be told.
        sequence: u64,
        /// What is wrong, for people.
        what: String,
    },
    /// It holds as far as it goes, and there was more.
    Truncated {
        /// Records that are there.
        found: u64,
        /// Records that are known to have been there.
        expected: u64,
    },
    /// It does not hold.
    Broken {
        /// Where.
        sequence: u64,
        /// What is wrong, for people.
        what: String,
    },
}

/// How much of a chain is proven, and by what. All numbers are counts from the first record on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proven {
    /// Records that a head from elsewhere covers.
    pub witnessed: u64,
    /// Records that a signed head covers.
    pub sealed: u64,
    /// All records.
    pub count: u64,
}

impl Proven {
    /// Records that nothing covers.
    #[must_use]
    pub fn tail(&self) -> u64 {
        self.count - self.witnessed.max(self.sealed).min(self.count)
    }
}

impl Verdict {
    /// Whether nothing speaks against the chain.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match self {
            Self::Holds(_) => true,
            Self::Diverged { .. } | Self::Truncated { .. } | Self::Broken { .. } => false,
        }
    }

    /// The one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Holds(proven) if proven.tail() > 0 || proven.count == 0 => "UNSEALED",
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

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds(proven) => write!(f, "{proven}"),
            Self::Diverged { sequence, what } => write!(f, "DIVERGED at {sequence}: {what}"),
            Self::Truncated { found, expected } => {
                write!(f, "TRUNCATED: {found} of {expected} events are there")
            }
            Self::Broken { sequence, what } => write!(f, "BROKEN at {sequence}: {what}"),
        }
    }
}

impl fmt::Display for Proven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (witnessed, sealed) = (self.witnessed.min(self.count), self.sealed.min(self.count));
        let mut parts = Vec::new();
        if let Some(last) = witnessed.checked_sub(1) {
            parts.push(format!("WITNESSED 0..{last}"));
        }
        if sealed > witnessed {
            parts.push(format!("SEALED {witnessed}..{}", sealed - 1));
        }
        if self.tail() > 0 || parts.is_empty() {
            parts.push(format!("UNSEALED tail {}", self.tail()));
        }
        write!(f, "{}", parts.join(", "))
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("word", self.word())?;
        map.serialize_entry("text", &self.to_string())?;
        match self {
            Self::Holds(proven) => {
                map.serialize_entry("witnessed", &proven.witnessed)?;
                map.serialize_entry("sealed", &proven.sealed)?;
                map.serialize_entry("tail", &proven.tail())?;
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
