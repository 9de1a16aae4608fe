//! How addresses are called that somebody named: those, and no others.

use std::time::Duration;

use ureq::Agent;

/// What calls an address. All of a call together takes at most so long.
pub(super) fn agent(timeout: Duration) -> Agent {
    let agent = Agent::config_builder()
        .timeout_global(Some(timeout))
        // Whoever answers there may not send what was said on to somebody else, nor may the
        // environment.
        .max_redirects(0)
        .proxy(None)
        .build();
    agent.into()
}
