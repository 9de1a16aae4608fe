//! List of connected agents, next to the store, so that the console notices when an entry is gone.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::file::{SettingsFile, replace};
use super::{
    ConnectScope, HookConfig, SettingsState, companion_files, disabling_settings, inspect,
    settings_file,
};
use crate::base::json;
use crate::gateway::agents::CodingAgent;
use crate::gateway::agents::settings::Folders;
use crate::gateway::protocol::proof::AnswerVerifier;

/// Name of the list, in the folder of the store.
pub const FILE_NAME: &str = "connections.json";

/// Most orderly disconnections that are remembered. A running console checks every few seconds.
const MAX_DISCONNECTED: usize = 64;

/// All connected agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRegistry {
    /// One connection per agent and settings file.
    #[serde(default)]
    pub connections: Vec<ConnectedAgent>,
    /// Orderly disconnections, the newest last. They cause no alarm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disconnected: Vec<DisconnectedAgent>,
}

/// An agent that was disconnected in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisconnectedAgent {
    /// The agent.
    pub agent: CodingAgent,
    /// The settings file.
    pub file: PathBuf,
}

/// An agent that was connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectedAgent {
    /// The agent.
    pub agent: CodingAgent,
    /// Project or user.
    pub scope: ConnectScope,
    /// The settings file.
    pub file: PathBuf,
    /// Settings of the hooks.
    pub wiring: HookConfig,
    /// Members of the file that were created for our entries. An empty name stands for the file.
    pub made: Vec<String>,
}

impl ConnectedAgent {
    /// Returns true if the file was created for our entries.
    #[must_use]
    pub fn created_file(&self) -> bool {
        self.made.iter().any(String::is_empty)
    }

    /// Describes the current problem of the connection; `None` if it is unchanged and pins the console's
    /// key.
    #[must_use]
    pub fn find_problem(&self, key: Option<&AnswerVerifier>) -> Option<String> {
        let state = match SettingsFile::read(&self.file) {
            Ok(found) => inspect(found.text(), self.agent, &self.wiring),
            Err(error) => return Some(format!("the settings cannot be read: {error}")),
        };
        match state {
            Ok(SettingsState::Intact) if !self.wiring.program.is_file() => Some(format!(
                "its program `{}` is gone",
                self.wiring.program.display()
            )),
            Ok(SettingsState::Intact) => self
                .wiring
                .key_problem(self.agent, key)
                .or_else(|| companion_problem(self.agent, &self.file))
                .or_else(|| disabled_elsewhere(self.agent, &self.file, None)),
            Ok(SettingsState::Absent) => Some("its hooks were removed".to_owned()),
            Ok(SettingsState::Changed(what)) => Some(summarize_problems(&what)),
            Err(error) => Some(format!("the settings cannot be read: {error}")),
        }
    }
}

/// Describes a file next to the settings that is missing or was edited.
#[must_use]
pub fn companion_problem(agent: CodingAgent, file: &Path) -> Option<String> {
    let mut companions = companion_files(agent, file).into_iter();
    companions.find_map(|companion| {
        let found = SettingsFile::read(&companion.path);
        let shown = companion.path.display();
        match found.as_ref().map(|found| found.text.as_deref()) {
            Ok(Some(text)) if text == companion.text => None,
            Ok(Some(_)) => Some(format!("`{shown}` was edited")),
            Ok(None) => Some(format!("`{shown}` is missing")),
            Err(error) => Some(format!("`{shown}` cannot be read: {error}")),
        }
    })
}

/// Returns other files that an agent reads with its settings: each of them can disable hooks.
fn related_settings_files(
    agent: CodingAgent,
    file: &Path,
    folders: Option<&Folders>,
) -> Vec<PathBuf> {
    let mut found = agent.adapter().other_settings_files(file, folders);
    if found.is_empty() {
        return found;
    }
    if let Some(folders) = folders {
        found.extend(ConnectScope::ALL.map(|scope| settings_file(agent, scope, folders)));
    }
    found.sort();
    found.dedup();
    found.retain(|other| other != file);
    found
}

/// Describes a setting in another file of the agent that disables our hooks.
#[must_use]
pub fn disabled_elsewhere(
    agent: CodingAgent,
    file: &Path,
    folders: Option<&Folders>,
) -> Option<String> {
    let mut others = related_settings_files(agent, file, folders).into_iter();
    others.find_map(|other| {
        let found = SettingsFile::read(&other).ok()?;
        let off = disabling_settings(found.text(), agent);
        Some(format!("{} in {}", off.first()?, other.display()))
    })
}

fn summarize_problems(what: &[String]) -> String {
    match what {
        [] => String::new(),
        [one] => one.clone(),
        [one, more @ ..] => format!("{one}, and {} more", more.len()),
    }
}

impl ConnectionRegistry {
    /// Reads the list. A missing list counts as empty.
    ///
    /// # Errors
    /// Fails when the file exists but cannot be read.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let found = SettingsFile::read(&folder.join(FILE_NAME))?;
        match &found.text {
            None => Ok(Self::default()),
            Some(text) => json::read(text.as_bytes())
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }

    /// Writes the list.
    ///
    /// # Errors
    /// Fails when it cannot be written.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        replace(&folder.join(FILE_NAME), &format!("{text}\n"), None)
    }

    /// Returns the connection of an agent in a file.
    #[must_use]
    pub fn find(&self, agent: CodingAgent, file: &Path) -> Option<&ConnectedAgent> {
        let mut all = self.connections.iter();
        all.find(|connection| connection.agent == agent && connection.file == file)
    }

    /// Adds a connection. Members that were created for an earlier connection of the agent in this file
    /// count for this one.
    pub fn add(&mut self, mut connection: ConnectedAgent) {
        let (agent, file) = (connection.agent, &connection.file);
        self.disconnected
            .retain(|gone| !(gone.agent == agent && gone.file == *file));
        if let Some(earlier) = self.remove(connection.agent, &connection.file) {
            let fresh = std::mem::take(&mut connection.made);
            connection.made = earlier.made;
            let fresh = fresh.into_iter();
            let known = connection.made.clone();
            let fresh = fresh.filter(|member| !known.contains(member));
            connection.made.extend(fresh);
        }
        self.connections.push(connection);
        let name = |connection: &ConnectedAgent| {
            (connection.agent, connection.scope, connection.file.clone())
        };
        self.connections.sort_by_key(name);
    }

    /// Removes a connection because the user asked for it.
    pub fn disconnect(&mut self, agent: CodingAgent, file: &Path) -> Option<ConnectedAgent> {
        let gone = DisconnectedAgent {
            agent,
            file: file.to_owned(),
        };
        self.disconnected.retain(|earlier| *earlier != gone);
        self.disconnected.push(gone);
        let over = self.disconnected.len().saturating_sub(MAX_DISCONNECTED);
        self.disconnected.drain(..over);
        self.remove(agent, file)
    }

    /// Returns true if the user asked for the removal of a connection.
    #[must_use]
    pub fn was_disconnected(&self, agent: CodingAgent, file: &Path) -> bool {
        let mut all = self.disconnected.iter();
        all.any(|gone| gone.agent == agent && gone.file == file)
    }

    /// Removes a connection.
    pub fn remove(&mut self, agent: CodingAgent, file: &Path) -> Option<ConnectedAgent> {
        let mut all = self.connections.iter();
        let at = all.position(|connection| connection.agent == agent && connection.file == file)?;
        Some(self.connections.remove(at))
    }
}
