//! Report about the wrapper of an agent and its check, for the record: once per session.
//!
//! The wrapper is what stands between an agent and its tools: here, this hook.

use serde_json::{Value, json};

use super::console_calls::{ConsoleSocket, Transport};
use crate::base::id::SessionId;
use crate::engine::command::Wrapper;
use crate::gateway::agents::CodingAgent;
use crate::gateway::connect::registry::{ConnectedAgent, ConnectionRegistry};
use crate::gateway::connect::{event_names, intercepts};
use crate::trace::event::WrapperCapabilities;

/// Longest description of a failure in bytes: the record accepts no longer names.
const MAX_FAILURE_BYTES: usize = 200;

/// Returns the parameters of `wrapper.constructed`: the program, the intercepted events, and the proof.
pub(super) fn construction_report(
    agent: CodingAgent,
    transport: Transport<'_>,
    session: &SessionId,
) -> Value {
    let program = format!("cra hook {}", agent.as_str());
    let events = event_names(agent).map(|event| format!("event {event}"));
    let (intercept_input, intercept_output, intercept_actions) = intercepts(agent);
    let mut wrapper = Wrapper {
        session: session.clone(),
        wrapper_version: env!("CARGO_PKG_VERSION").to_owned(),
        components: std::iter::once(program).chain(events).collect(),
        plugins: Vec::new(),
        transport: transport.as_str().to_owned(),
        cache_backend: "none".to_owned(),
        capabilities: WrapperCapabilities {
            intercept_input,
            intercept_output,
            intercept_actions,
        },
        construction_hash: String::new(),
    };
    wrapper.construction_hash = wrapper.proof().to_string();
    json!({
        "wrapper_version": wrapper.wrapper_version,
        "components": wrapper.components,
        "plugins": wrapper.plugins,
        "transport": wrapper.transport,
        "cache_backend": wrapper.cache_backend,
        "capabilities": wrapper.capabilities,
        "construction_hash": wrapper.construction_hash,
    })
}

/// Returns the parameters of `wrapper.verified`: whether the hook's entries are as `cra connect` wrote
/// them. A hook over HTTP has no such entries, so it is not compared.
pub(super) fn check_report(agent: CodingAgent, transport: Transport<'_>) -> Option<Value> {
    let socket = match transport {
        Transport::Rest => return None,
        Transport::Direct(socket) => socket,
    };
    let failures = match ConnectionRegistry::load(&socket.folder) {
        Err(error) => vec![format!("the list of connections cannot be read: {error}")],
        Ok(registry) => {
            let own = registry.connections.iter();
            let own: Vec<_> = own.filter(|connection| connection.agent == agent).collect();
            if own.is_empty() {
                vec![format!(
                    "`{}` was not connected with `cra connect`",
                    agent.as_str()
                )]
            } else {
                own.into_iter()
                    .filter_map(|connection| connection_problem(connection, socket))
                    .collect()
            }
        }
    };
    let failures: Vec<_> = failures.iter().map(|text| truncated(text)).collect();
    Some(json!({
        "verification_passed": failures.is_empty(),
        "tests_run": ["hook_entries"],
        "failures": failures,
    }))
}

fn connection_problem(connection: &ConnectedAgent, socket: &ConsoleSocket) -> Option<String> {
    let trouble = connection.find_problem(socket.key.as_ref().ok())?;
    Some(format!("{}: {trouble}", connection.file.display()))
}

fn truncated(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_FAILURE_BYTES);
    text.get(..end).unwrap_or_default().to_owned()
}
