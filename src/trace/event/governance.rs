//! Log entries about the governance of the record: Atlases, retention, imports, legal holds and alarms.

use serde::{Deserialize, Serialize};

use super::Payload;
use super::macros::payload;

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
        /// Number of its checkpoints.
        checkpoints: u64,
        /// Digest of the text of the Atlas that it replaced while agents were running.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replaces: Option<String>,
        /// Digests of the texts of the Atlases that were removed with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removes: Vec<String>,
        /// Operator who loaded it.
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
        /// Pruned events as ranges of sequence numbers, both ends included.
        pruned: Vec<(u64, u64)>,
        /// Number of pruned events.
        events: u64,
        /// Digest of the remaining envelopes. It replaces the hashes, which cannot be recomputed.
        envelopes_hash: String,
        /// Description of the expired retention rule.
        reason: String,
        /// Rules that caused the pruning. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rules: Vec<RetentionRule>,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

/// Retention rule that pruned events, as the Atlas in force had it when they were recorded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionRule {
    /// Type of the events.
    pub event_type: String,
    /// Days that they are kept.
    pub days: u32,
    /// The Atlas with the rule; of several Atlases, the one with the longest retention.
    pub atlas_id: String,
    /// Digest of its text, under which the store keeps it.
    pub atlas_hash: String,
}

payload! {
    /// A session recorded elsewhere was imported.
    TraceImported {
        /// The session.
        imported_session: String,
        /// Its events.
        events: u64,
        /// Hash of the last of them.
        head_hash: String,
        /// Origin of the session.
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

/// Name of this program, used as the actor of entries that no operator caused.
pub const PROGRAM: &str = "cra";

impl Payload {
    /// Sets the actor of a log entry without one: the operator it is about, or this program.
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
