//! Records of the wrapper that an agent runs in.

use serde::{Deserialize, Serialize};

use super::macros::payload;
use super::parts::{Redaction, WrapperCapabilities};

payload! {
    /// An agent's wrapper was built.
    WrapperConstructed {
        /// Its version.
        wrapper_version: String,
        /// Its parts.
        components: Vec<String>,
        /// Plugins in it.
        plugins: Vec<String>,
        /// `mcp`, `rest` or `direct`.
        transport: String,
        /// Location of the cache.
        cache_backend: String,
        /// Proof of construction.
        construction_hash: String,
        /// Steps that the wrapper can intercept.
        capabilities: WrapperCapabilities,
        /// Parts that were left out of these texts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redacted: Vec<Redaction>,
    }
}

payload! {
    /// An agent's wrapper was checked.
    WrapperVerified {
        /// True when every check passed.
        verification_passed: bool,
        /// Checks that were made.
        tests_run: Vec<String>,
        /// Checks that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failures: Option<Vec<String>>,
        /// Parts that were left out of these texts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        redacted: Vec<Redaction>,
    }
}
