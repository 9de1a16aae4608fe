//! Verdict on settings that change while an agent runs: a change that takes our hooks away is refused.
//!
//! The console is not asked: the list of connections says which entries have to be there. A connection that
//! its user removed with `cra disconnect` is no longer in that list.

use std::path::Path;

use super::console_calls::ConsoleSocket;
use crate::gateway::agents::CodingAgent;
use crate::gateway::agents::hook_output::HookVerdict;
use crate::gateway::agents::settings::{ConnectScope, Folders};
use crate::gateway::connect::registry::{ConnectedAgent, ConnectionRegistry, disabled_elsewhere};

/// Judges a change of settings of an agent that works in `cwd`.
pub(super) fn verdict(
    agent: CodingAgent,
    cwd: Option<&str>,
    socket: &ConsoleSocket,
) -> HookVerdict {
    let registry = match ConnectionRegistry::load(&socket.folder) {
        Ok(registry) => registry,
        Err(error) => {
            return refusal(&format!("the list of connections cannot be read: {error}"));
        }
    };
    let connections = registry.connections.iter();
    let connections = connections
        .filter(|connection| connection.agent == agent && covers(connection, cwd.map(Path::new)));
    let key = socket.key.as_ref().ok();
    for connection in connections {
        let problem = connection.find_problem(key).or_else(|| {
            let folders = cwd.map(|cwd| Folders::of_project(Path::new(cwd)));
            disabled_elsewhere(agent, &connection.file, folders.as_ref())
        });
        if let Some(problem) = problem {
            return refusal(&problem);
        }
    }
    HookVerdict::pass(None)
}

fn refusal(problem: &str) -> HookVerdict {
    HookVerdict::Deny {
        reason: format!(
            "cra: the changed settings would let this session run without its gate ({problem}), so it keeps the old \
             ones. To disconnect the agent, run `cra disconnect`; to repair the settings, run `cra connect`."
        ),
    }
}

/// Returns true if a connection holds agents that work in `cwd`.
fn covers(connection: &ConnectedAgent, cwd: Option<&Path>) -> bool {
    if connection.scope == ConnectScope::User {
        return true;
    }
    // The file is in a folder of the agent, in the folder of the project.
    let project = connection.file.parent().and_then(Path::parent);
    match (project, cwd) {
        (Some(project), Some(cwd)) => cwd.starts_with(project),
        (_, None) => true,
        (None, Some(_)) => false,
    }
}
