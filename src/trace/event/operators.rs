//! What is recorded of those who look after a console.

use serde::{Deserialize, Serialize};

use super::declare::payload;

payload! {
    /// Somebody else sits at the console. The name is what they say, and nothing proves it.
    OperatorChanged {
        /// Who sits there now.
        operator: String,
        /// Who sat there before.
        before: String,
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
    }
}
