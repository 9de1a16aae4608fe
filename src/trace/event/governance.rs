//! Entries of the log about what governs the record: Atlases, retention, imports, legal holds and alarms.

use serde::{Deserialize, Serialize};

use super::Payload;
use super::declare::payload;

payload! {
    /// An Atlas came into force.
    AtlasLoaded {
        /// The Atlas.
        atlas_id: String,
        /// Its version.
        version: String,
        /// Digest of its text, under which the store keeps it.
        atlas_hash: String,
        /// Digest of its text alone, where extensions changed what is in force.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_hash: Option<String>,
        /// How many checkpoints it has.
        checkpoints: u64,
        /// Digest of the text of the one that it took the place of, while agents were at work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<String>,
        /// Digests of the texts of those that went away with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removes: Vec<String>,
        /// Who wanted that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loaded_by: Option<String>,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// The content of old events of a session was dropped; their envelopes and hashes stay.
    RetentionApplied {
        /// The session.
        pruned_session: String,
        /// Which events, as ranges of sequence numbers, both ends included.
        pruned: Vec<(u64, u64)>,
        /// How many.
        events: u64,
        /// Digest of what is left of them: it stands in for hashes that cannot be computed again.
        envelopes_hash: String,
        /// What was older than its rule allows.
        reason: String,
        /// Rules by which they went. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<RetentionRule>,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

/// A rule by which events were pruned, as an Atlas in force had it when they were recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionRule {
    /// Type of the events.
    pub event_type: String,
    /// Days that they are kept.
    pub days: u32,
    /// The Atlas that wants them kept that long: of several, the one that wants it longest.
    pub atlas_id: String,
    /// Digest of its text, under which the store keeps it.
    pub atlas_hash: String,
}

payload! {
    /// A session that was recorded elsewhere was taken in.
    TraceImported {
        /// The session.
        imported_session: String,
        /// Its events.
        events: u64,
        /// Hash of the last of them.
        head_hash: String,
        /// Where it came from.
        source: String,
        /// Digest of the file, as `sha256sum` prints it. Earlier versions kept none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file_hash: Option<String>,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// An alarm was shown at the console.
    AlarmRaised {
        /// Kind of alarm, such as `socket` or `agent_left`.
        alarm: String,
        /// The alarm, as the operator read it.
        what: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// A session was put under a legal hold: nothing of it is pruned until it is released.
    HoldPlaced {
        /// The session.
        held_session: String,
        /// Reason of the hold.
        reason: String,
        /// The operator.
        by: String,
    }
}

payload! {
    /// The legal hold of a session ended.
    HoldReleased {
        /// The session.
        held_session: String,
        /// Reason, where one was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The operator.
        by: String,
    }
}

/// This program, as the actor of entries that no operator asked for.
pub const PROGRAM: &str = "cra";

impl Payload {
    /// Names the actor of a log entry that names none: the operator it is about, or this program.
    #[must_use]
    pub fn with_actor(mut self) -> Self {
        let program = || PROGRAM.to_owned();
        match &mut self {
            Self::OperatorChanged(changed) => {
                changed.by.get_or_insert_with(|| changed.operator.clone());
            }
            Self::OperatorAcknowledged(known) => {
                known.by.get_or_insert_with(|| known.operator.clone());
            }
            Self::StoreRecovered(entry) => {
                entry.by.get_or_insert_with(program);
            }
            Self::LogStarted(entry) => {
                entry.by.get_or_insert_with(program);
            }
            Self::ClockMoved(entry) => {
                entry.by.get_or_insert_with(program);
            }
            Self::TraceImported(entry) => {
                entry.by.get_or_insert_with(program);
            }
            Self::LogSealed(entry) => {
                entry.by.get_or_insert_with(program);
            }
            Self::AlarmRaised(entry) => {
                entry.by.get_or_insert_with(program);
            }
            Self::ThreadDropped(entry) => {
                entry.by.get_or_insert_with(program);
            }
            Self::AtlasLoaded(entry) => {
                entry.by.get_or_insert_with(program);
            }
            Self::RetentionApplied(entry) => {
                entry.by.get_or_insert_with(program);
            }
            _ => {}
        }
        self
    }
}
