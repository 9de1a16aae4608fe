//! What is recorded of those who look after a console.

use serde::{Deserialize, Serialize};

use super::declare::payload;
use super::parts::SealedHead;
use super::words::Acknowledged;
use super::words::ClaimWord;

payload! {
    /// Somebody else sits at the console. The name is what they say, and nothing proves it.
    OperatorChanged {
        /// Who sits there now.
        operator: String,
        /// Who sat there before.
        before: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// An operator says that they know of something. What it was is as it was shown to them.
    OperatorAcknowledged {
        /// Who.
        operator: String,
        /// `broken_chain` or `override`.
        about: Acknowledged,
        /// What, in words.
        what: String,
        /// The session that it is about, where it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The held request that it is about, as people named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gate_id: Option<String>,
        /// Digest of all that is wrong with the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault_hash: Option<String>,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// Something was mended when the store was opened.
    StoreRecovered {
        /// What was found, and what was done about it.
        what: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// Another key signs the log's heads from now on; the old one signs this entry still.
    KeyRotated {
        /// The public key.
        key: String,
        /// Who wanted it.
        by: String,
    }
}

payload! {
    /// A log began. It is the first entry of its log.
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
        /// The same for people.
        what: String,
        /// The actor: the operator, or `cra` itself. Earlier versions named none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    }
}

payload! {
    /// An answer at the socket was not the console's own, as a hook or an MCP proxy reported. Nothing proves the report.
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
    /// The ends of all chains when this was recorded.
    LogSealed {
        /// Every session with events since the last entry of this kind, by its name.
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
    /// An operator said who looks after a held request. Nothing is decided by it.
    RequestClaimed {
        /// How people name the held request.
        gate_id: String,
        /// `taken`, `released` or `taken_over`.
        claim: ClaimWord,
        /// Who.
        by: String,
        /// Whose claim it was before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
    }
}
