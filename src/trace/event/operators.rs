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
