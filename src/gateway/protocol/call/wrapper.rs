//! Calls about the wrapper of an agent: its parts, and the results of its checks.

use serde::Deserialize;

use crate::base::id::SessionId;
use crate::engine::command as engine;
use crate::trace::event::WrapperCapabilities;

/// `wrapper.constructed`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapperConstructed {
    /// The session.
    pub session: SessionId,
    /// Version of the wrapper.
    pub wrapper_version: String,
    /// Parts of the wrapper: its program, and the agent's events that it intercepts.
    pub components: Vec<String>,
    /// Plugins of the wrapper.
    #[serde(default)]
    pub plugins: Vec<String>,
    /// `mcp`, `rest` or `direct`.
    pub transport: String,
    /// Backend of its cache.
    #[serde(default = "no_cache")]
    pub cache_backend: String,
    /// Kinds of events that the wrapper can intercept.
    pub capabilities: WrapperCapabilities,
    /// SHA-256 of the canonical JSON of all other fields of the event.
    pub construction_hash: String,
}

fn no_cache() -> String {
    "none".to_owned()
}

impl From<WrapperConstructed> for engine::Wrapper {
    fn from(call: WrapperConstructed) -> Self {
        Self {
            session: call.session,
            wrapper_version: call.wrapper_version,
            components: call.components,
            plugins: call.plugins,
            transport: call.transport,
            cache_backend: call.cache_backend,
            capabilities: call.capabilities,
            construction_hash: call.construction_hash,
        }
    }
}

/// `wrapper.verified`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapperVerified {
    /// The session.
    pub session: SessionId,
    /// Tells whether every test passed.
    pub verification_passed: bool,
    /// Names of the tests.
    pub tests_run: Vec<String>,
    /// Descriptions of what failed.
    #[serde(default)]
    pub failures: Vec<String>,
}

impl From<WrapperVerified> for engine::WrapperCheck {
    fn from(call: WrapperVerified) -> Self {
        Self {
            session: call.session,
            verification_passed: call.verification_passed,
            tests_run: call.tests_run,
            failures: call.failures,
        }
    }
}
