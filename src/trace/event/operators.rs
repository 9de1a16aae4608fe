//! Log entries about operators, keys, seals and the machine.

use serde::{Deserialize, Serialize};

use super::enums::Acknowledged;
use super::enums::ClaimWord;
use super::macros::payload;
use super::parts::SealedHead;

payload! {
    /// The operator at the console changed. The name is claimed, not proven.
    OperatorChanged {
        /// New operator.
        operator: String,
        /// Previous operator.
        before: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// An operator acknowledged a problem. The text is what the console showed to the operator.
    OperatorAcknowledged {
        /// The operator.
        operator: String,
        /// `broken_chain` or `override`.
        about: Acknowledged,
        /// Description of the problem.
        what: String,
        /// Session concerned, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Displayed identifier of the held request concerned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gate_id: Option<String>,
        /// Digest of all faults of the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault_hash: Option<String>,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// The store was repaired when it was opened.
    StoreRecovered {
        /// The damage found and the repair made.
        what: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// A new key signs the log's heads from now on; the old key still signs this entry.
    KeyRotated {
        /// The public key.
        key: String,
        /// Operator who rotated the key.
        by: String,
    }
}

payload! {
    /// A log began. This is the first entry of its log.
    LogStarted {
        /// Version of this program.
        wrapper_version: String,
        /// The public key that the log's heads are signed with.
        key: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// The wall clock of the machine was set while the console ran.
    ClockMoved {
        /// Milliseconds by which it was set; negative is back.
        moved_ms: i64,
        /// Displayed form of the same offset.
        what: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// A hook or an MCP proxy reported an answer at the socket that did not come from the console. The
    /// report is unproven.
    AnswerRejected {
        /// Program that rejected the answer.
        by: String,
        /// Session that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asking_session: Option<String>,
        /// Socket that the answer came from.
        socket: String,
        /// Reason why it was rejected.
        reason: String,
        /// Time of the rejection, by the reporter's clock.
        reported_at: String,
    }
}

payload! {
    /// Ends of all chains at the time of this entry.
    LogSealed {
        /// Every session with events since the last entry of this type, by name.
        sessions: Vec<SealedHead>,
        /// Tells whether the store keeps a seal over the engine's state. Earlier versions kept none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state_sealed: Option<bool>,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// An operator claimed or released a held request. A claim decides nothing.
    RequestClaimed {
        /// Displayed identifier of the held request, such as `c-12`.
        gate_id: String,
        /// `taken`, `released` or `taken_over`.
        claim: ClaimWord,
        /// The operator.
        by: String,
        /// Operator who held the claim before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
    }
}
