//! `cra connect` and `cra disconnect`: hooks in the settings of agents.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use similar::TextDiff;

use super::answer_key;
use super::args::{ConnectArgs, DisconnectArgs, SettingsChangeArgs};
use super::error::{ConnectFailure, Failure, verdict};
use super::exit;
use super::settings::Settings;
use crate::base::text::{LineFeeds, one_line, sanitize};
use crate::gateway::agents::CodingAgent;
use crate::gateway::connect::file::SettingsFile;
use crate::gateway::connect::registry::{ConnectedAgent, ConnectionRegistry, FILE_NAME};
use crate::gateway::connect::{self, ConnectScope, HookConfig, settings_file};

/// Placeholder for a key that is created only when the change is written.
const NO_KEY_YET: &str = "CREATED-WHEN-THIS-IS-WRITTEN";

/// Context lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// A settings file to change.
struct SettingsTarget {
    agent: CodingAgent,
    scope: ConnectScope,
    /// Path as the user gave it.
    file: PathBuf,
    found: SettingsFile,
    /// Folder of the store, which keeps the list of connections.
    store: PathBuf,
    known: ConnectionRegistry,
}

impl SettingsTarget {
    fn new(settings: &Settings, change: &SettingsChangeArgs) -> Result<Self, Failure> {
        let (agent, scope) = (change.agent, change.scope());
        let folders = Settings::agent_folders(change.dir.as_deref())?;
        let file = settings_file(agent, scope, &folders);
        let found =
            SettingsFile::read(&file).map_err(|error| ConnectFailure::File(file.clone(), error))?;
        let store = settings.data_dir()?;
        Ok(Self {
            known: load_connections(&store)?,
            agent,
            scope,
            file,
            found,
            store,
        })
    }

    fn save(&self, known: &ConnectionRegistry) -> Result<(), Failure> {
        if *known == self.known {
            return Ok(());
        }
        let failed = |error| ConnectFailure::List(self.store.join(FILE_NAME), error);
        Ok(known.save(&self.store).map_err(failed)?)
    }

    /// Writes the file; returns the path of the backup.
    fn write(&self, new: Option<&str>) -> Result<Option<PathBuf>, Failure> {
        let failed = |error| ConnectFailure::File(self.file.clone(), error);
        Ok(self.found.replace_text(new).map_err(failed)?)
    }

    fn name(&self) -> String {
        one_line(&self.file.to_string_lossy())
    }
}

/// Loads the list of connections.
pub(super) fn load_connections(store: &Path) -> Result<ConnectionRegistry, Failure> {
    let failed = |error| ConnectFailure::List(store.join(FILE_NAME), error);
    Ok(ConnectionRegistry::load(store).map_err(failed)?)
}

/// Path of the running program, as hooks have to name it.
pub(super) fn program() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(ConnectFailure::Program)?;
    if program.to_str().is_none() {
        return Err(ConnectFailure::ProgramText(program).into());
    }
    if program.file_name().is_none_or(|name| name != "cra") {
        return Err(ConnectFailure::Name(program).into());
    }
    Ok(program)
}

/// Adds our hooks to an agent's settings.
pub(super) fn connect(settings: &Settings, given: &ConnectArgs) -> Result<u8, Failure> {
    let target = SettingsTarget::new(settings, &given.change)?;
    let wiring = HookConfig {
        program: program()?,
        timeout: given.timeout,
        offline: given.offline.into(),
        place: settings.console_options()?,
        key: Some(pinned_key(settings, &given.change)?),
    };
    let form = |error| ConnectFailure::Form(target.file.clone(), error);
    let changed = connect::connect(target.found.text(), target.agent, &wiring).map_err(form)?;
    let mut made = changed.created;
    if target.found.text.is_none() {
        made.insert(0, String::new());
    }
    let mut known = target.known.clone();
    known.add(ConnectedAgent {
        agent: target.agent,
        scope: target.scope,
        file: target.file.clone(),
        wiring,
        made,
    });
    let outcome = confirm_change(&target, &given.change, Some(&changed.text))?;
    let backup = match outcome {
        ChangeOutcome::Unchanged => {
            if !given.change.dry_run {
                target.save(&known)?;
            }
            None
        }
        ChangeOutcome::Shown | ChangeOutcome::Declined => None,
        ChangeOutcome::Write => {
            let backup = target.write(Some(&changed.text))?;
            target.save(&known)?;
            backup
        }
    };
    report(&target, &given.change, Some(&changed.text), outcome, backup)
}

/// Returns the key that entries pin. A change that is only shown creates none.
fn pinned_key(settings: &Settings, change: &SettingsChangeArgs) -> Result<String, Failure> {
    if change.dry_run || !(change.yes || can_ask(change)) {
        let key = answer_key::read(settings)?.map(|key| key.to_string());
        return Ok(key.unwrap_or_else(|| NO_KEY_YET.to_owned()));
    }
    Ok(answer_key::read_or_create(settings)?.to_string())
}

/// Removes our hooks from an agent's settings.
pub(super) fn disconnect(settings: &Settings, given: &DisconnectArgs) -> Result<u8, Failure> {
    let target = SettingsTarget::new(settings, &given.change)?;
    let mut known = target.known.clone();
    let earlier = known.disconnect(target.agent, &target.file);
    let made = earlier
        .as_ref()
        .map(|connection| connection.made.as_slice());
    let form = |error| ConnectFailure::Form(target.file.clone(), error);
    let text = target.found.text();
    let without = connect::disconnect(text, target.agent, made).map_err(form)?;
    let ours = earlier.as_ref().is_some_and(ConnectedAgent::created_file);
    let gone =
        target.found.text.is_none() || (ours && without != text && connect::is_blank(&without));
    let new = (!gone).then_some(without.as_str());
    let outcome = confirm_change(&target, &given.change, new)?;
    let backup = match outcome {
        ChangeOutcome::Unchanged => {
            if !given.change.dry_run {
                target.save(&known)?;
            }
            None
        }
        ChangeOutcome::Shown | ChangeOutcome::Declined => None,
        ChangeOutcome::Write => {
            // Saved first, so that a running console sees a regular disconnect.
            target.save(&known)?;
            match target.write(new) {
                Ok(backup) => backup,
                Err(failure) => {
                    // The agent is still connected.
                    let _ = target.known.save(&target.store);
                    return Err(failure);
                }
            }
        }
    };
    report(&target, &given.change, new, outcome, backup)
}

/// Outcome of a proposed change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeOutcome {
    /// The file needs no change.
    Unchanged,
    /// The change was only shown.
    Shown,
    /// The user declined it.
    Declined,
    /// The change is to be written.
    Write,
}

/// True if a user is present to be asked.
fn can_ask(change: &SettingsChangeArgs) -> bool {
    !change.json && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows a change and asks the user to confirm it.
fn confirm_change(
    target: &SettingsTarget,
    change: &SettingsChangeArgs,
    new: Option<&str>,
) -> Result<ChangeOutcome, Failure> {
    if new == target.found.text.as_deref() {
        return Ok(ChangeOutcome::Unchanged);
    }
    if !change.json {
        let mut out = io::stdout().lock();
        out.write_all(diff(target, new).as_bytes())?;
        out.flush()?;
    }
    if change.dry_run {
        return Ok(ChangeOutcome::Shown);
    }
    if change.yes {
        return Ok(ChangeOutcome::Write);
    }
    if !can_ask(change) {
        return Err(ConnectFailure::NotAsked.into());
    }
    let mut out = io::stdout().lock();
    write!(out, "\nWrite this? [y/N] ")?;
    out.flush()?;
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    Ok(match typed.trim() {
        "y" | "Y" | "yes" => ChangeOutcome::Write,
        _ => ChangeOutcome::Declined,
    })
}

fn diff(target: &SettingsTarget, new: Option<&str>) -> String {
    let name = target.name();
    let before = match target.found.text {
        Some(_) => name.as_str(),
        None => "/dev/null",
    };
    let after = if new.is_some() {
        name.as_str()
    } else {
        "/dev/null"
    };
    let diff = TextDiff::from_lines(target.found.text(), new.unwrap_or_default());
    let mut diff = diff.unified_diff();
    let text = diff
        .context_radius(CONTEXT_LINES)
        .header(before, after)
        .to_string();
    sanitize(&text, LineFeeds::Keep).text
}

fn report(
    target: &SettingsTarget,
    change: &SettingsChangeArgs,
    new: Option<&str>,
    outcome: ChangeOutcome,
    backup: Option<PathBuf>,
) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    if change.json {
        let backup = backup.map(|path| path.to_string_lossy().into_owned());
        let report = json!({
            "agent": target.agent.as_str(),
            "scope": target.scope.as_str(),
            "file": target.file.to_string_lossy(),
            "changes": outcome != ChangeOutcome::Unchanged,
            "written": outcome == ChangeOutcome::Write,
            "backup": backup,
            "diff": if outcome == ChangeOutcome::Unchanged { String::new() } else { diff(target, new) },
        });
        let written = serde_json::to_writer_pretty(&mut out, &report);
        let written = written.map_err(io::Error::from);
        return verdict(exit::OK, written.and_then(|()| writeln!(out)));
    }
    let (agent, name) = (target.agent.as_str(), target.name());
    let written = match outcome {
        ChangeOutcome::Unchanged => writeln!(out, "Nothing to do: {name} is up to date."),
        ChangeOutcome::Shown | ChangeOutcome::Declined => writeln!(out, "\nNothing was written."),
        ChangeOutcome::Write => {
            let what = if new.is_some() { "written" } else { "removed" };
            let backup_note = backup.map(|path| one_line(&path.to_string_lossy()));
            let backup_note = backup_note.map(|path| format!("\n  backup: {path}"));
            let backup_note = backup_note.unwrap_or_default();
            let advice = advice(target, new);
            writeln!(
                out,
                "\n{name} was {what}.{backup_note}{advice}\n  check it: cra doctor {agent}"
            )
        }
    };
    verdict(exit::OK, written)
}

/// Remaining manual steps after hooks were added.
fn advice(target: &SettingsTarget, new: Option<&str>) -> String {
    let mut advice = String::new();
    let ours = new.is_some_and(|text| connect::read_hook_config(text, target.agent).is_some());
    if !ours {
        return advice;
    }
    if let Some(step) = target.agent.adapter().trust_advice() {
        advice += "\n  ";
        advice += step;
    }
    if target.scope == ConnectScope::Project
        && let Some(gap) = target.agent.adapter().project_scope_gap()
    {
        advice += "\n  not held: ";
        advice += gap;
        advice += "; --scope user holds them too";
    }
    if target.scope == ConnectScope::Project && target.agent.adapter().shares_project_file() {
        advice += "\n  the file names a program on this machine: do not commit it to git";
    }
    advice
}
