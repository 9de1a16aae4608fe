//! HTTP client for addresses that a steward or an operator configured, and no others.

use std::time::Duration;

use ureq::Agent;

/// Creates a client. A whole call takes at most `timeout`.
pub(super) fn http_agent(timeout: Duration) -> Agent {
    let agent = Agent::config_builder()
        .timeout_global(Some(timeout))
        // Neither the receiver, by a redirect, nor the environment, by a proxy, may pass the content on to
        // a third party.
        .max_redirects(0)
        .proxy(None)
        .build();
    agent.into()
}
