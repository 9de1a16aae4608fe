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
use crate::gateway::connect::file::{Backup, SettingsFile};
use crate::gateway::connect::registry::{ConnectedAgent, ConnectionRegistry, FILE_NAME};
use crate::gateway::connect::{self, ConnectScope, Folders, HookConfig, settings_file};

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
    folders: Folders,
    /// Folder of the store, which keeps the list of connections.
    store: PathBuf,
    known: ConnectionRegistry,
}

impl SettingsTarget {
    fn new(settings: &Settings, change: &SettingsChangeArgs) -> Result<Self, Failure> {
        let (agent, scope) = (change.agent, change.scope());
        let folders = Settings::agent_folders(change.dir.as_deref())?;
        let file = settings_file(agent, scope, &folders);
        let found = read_file(&file)?;
        let store = settings.data_dir()?;
        Ok(Self {
            known: load_connections(&store)?,
            agent,
            scope,
            file,
            found,
            folders,
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

    fn name(&self) -> String {
        one_line(&self.file.to_string_lossy())
    }

    /// Plans the new text of the settings file.
    fn plan(&self, new: Option<String>) -> PlannedChange {
        let made = self.known.find(self.agent, &self.file);
        let made = made.map_or(&[][..], |connection| connection.made.as_slice());
        let is_ours = connect::is_only_ours(self.found.text(), self.agent, made);
        PlannedChange {
            path: self.file.clone(),
            found: self.found.clone(),
            new,
            backup: if is_ours { Backup::Skip } else { Backup::Keep },
        }
    }

    /// Plans to remove our hooks from the files where earlier versions wrote them, and forgets those.
    fn plan_former_files(
        &self,
        known: &mut ConnectionRegistry,
    ) -> Result<Vec<PlannedChange>, Failure> {
        let mut changes = Vec::new();
        for file in connect::former_settings_files(self.agent, self.scope, &self.folders) {
            let earlier = known.find(self.agent, &file).cloned();
            if earlier.is_some() {
                known.disconnect(self.agent, &file);
            }
            let found = read_file(&file)?;
            changes.extend(plan_removal(self.agent, file, found, earlier.as_ref())?);
        }
        Ok(changes)
    }

    /// Plans to remove the files next to the settings that are exactly ours.
    fn plan_companion_removal(&self) -> Result<Vec<PlannedChange>, Failure> {
        let mut changes = Vec::new();
        for companion in connect::companion_files(self.agent, &self.file) {
            let found = read_file(&companion.path)?;
            if found.text.as_deref() == Some(companion.text) {
                changes.push(PlannedChange {
                    path: companion.path,
                    found,
                    new: None,
                    backup: Backup::Skip,
                });
            }
        }
        Ok(changes)
    }

    /// Plans to write the files next to the settings.
    fn plan_companions(&self) -> Result<Vec<PlannedChange>, Failure> {
        let mut changes = Vec::new();
        for companion in connect::companion_files(self.agent, &self.file) {
            changes.push(PlannedChange {
                found: read_file(&companion.path)?,
                path: companion.path,
                new: Some(companion.text.to_owned()),
                backup: Backup::Keep,
            });
        }
        Ok(changes)
    }
}

fn read_file(file: &Path) -> Result<SettingsFile, Failure> {
    let failed = |error| ConnectFailure::File(file.to_owned(), error);
    Ok(SettingsFile::read(file).map_err(failed)?)
}

/// Plans to remove our hooks from a file; `None` if it has none.
fn plan_removal(
    agent: CodingAgent,
    file: PathBuf,
    found: SettingsFile,
    earlier: Option<&ConnectedAgent>,
) -> Result<Option<PlannedChange>, Failure> {
    let made = earlier.map(|connection| connection.made.as_slice());
    let form = |error| ConnectFailure::Form(file.clone(), error);
    let text = found.text();
    let without = connect::disconnect(text, agent, made).map_err(form)?;
    if without == text {
        return Ok(None);
    }
    let is_ours = connect::is_only_ours(text, agent, made.unwrap_or_default());
    let created = earlier.is_some_and(ConnectedAgent::created_file) || without.is_empty();
    let is_gone = created && connect::is_blank(&without);
    Ok(Some(PlannedChange {
        path: file,
        found,
        new: (!is_gone).then_some(without),
        backup: if is_ours { Backup::Skip } else { Backup::Keep },
    }))
}

/// A file with its new text.
struct PlannedChange {
    /// Path as the user gave it.
    path: PathBuf,
    found: SettingsFile,
    /// The new text; `None` if the file is removed.
    new: Option<String>,
    backup: Backup,
}

impl PlannedChange {
    fn is_needed(&self) -> bool {
        self.new != self.found.text
    }

    /// Writes the file; returns the path of the backup.
    fn write(&self) -> Result<Option<PathBuf>, Failure> {
        let failed = |error| ConnectFailure::File(self.path.clone(), error);
        let written = self.found.replace_text(self.new.as_deref(), self.backup);
        Ok(written.map_err(failed)?)
    }

    fn diff(&self) -> String {
        let name = one_line(&self.path.to_string_lossy());
        let side = |text: &Option<String>| match text {
            Some(_) => name.clone(),
            None => "/dev/null".to_owned(),
        };
        let new = self.new.as_deref().unwrap_or_default();
        let diff = TextDiff::from_lines(self.found.text(), new);
        let mut diff = diff.unified_diff();
        let text = diff
            .context_radius(CONTEXT_LINES)
            .header(&side(&self.found.text), &side(&self.new))
            .to_string();
        sanitize(&text, LineFeeds::Keep).text
    }
}

/// Returns the diffs of all changes, one after the other.
fn diff(changes: &[PlannedChange]) -> String {
    let needed = changes.iter().filter(|change| change.is_needed());
    needed.map(PlannedChange::diff).collect()
}

/// Writes all changes; returns the paths of the backups.
fn write_all(changes: &[PlannedChange]) -> Result<Vec<PathBuf>, Failure> {
    let mut backups = Vec::new();
    for change in changes.iter().filter(|change| change.is_needed()) {
        backups.extend(change.write()?);
    }
    Ok(backups)
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
    let edited = connect::connect(target.found.text(), target.agent, &wiring).map_err(form)?;
    let mut made = edited.created;
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
    let mut changes = vec![target.plan(Some(edited.text))];
    changes.extend(target.plan_companions()?);
    changes.extend(target.plan_former_files(&mut known)?);
    let outcome = confirm_change(&given.change, &changes)?;
    let backups = match outcome {
        ChangeOutcome::Unchanged => {
            if !given.change.dry_run {
                target.save(&known)?;
            }
            Vec::new()
        }
        ChangeOutcome::Shown | ChangeOutcome::Declined => Vec::new(),
        ChangeOutcome::Write => {
            let backups = write_all(&changes)?;
            target.save(&known)?;
            backups
        }
    };
    report(&target, &given.change, &changes, outcome, &backups)
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
    let (file, found) = (target.file.clone(), target.found.clone());
    let mut changes: Vec<_> = plan_removal(target.agent, file, found, earlier.as_ref())?
        .into_iter()
        .collect();
    changes.extend(target.plan_companion_removal()?);
    changes.extend(target.plan_former_files(&mut known)?);
    let outcome = confirm_change(&given.change, &changes)?;
    let backups = match outcome {
        ChangeOutcome::Unchanged => {
            if !given.change.dry_run {
                target.save(&known)?;
            }
            Vec::new()
        }
        ChangeOutcome::Shown | ChangeOutcome::Declined => Vec::new(),
        ChangeOutcome::Write => {
            // Saved first, so that a running console sees a regular disconnect.
            target.save(&known)?;
            match write_all(&changes) {
                Ok(backups) => {
                    remove_empty_folders(&target);
                    backups
                }
                Err(failure) => {
                    // The agent is still connected.
                    let _ = target.known.save(&target.store);
                    return Err(failure);
                }
            }
        }
    };
    report(&target, &given.change, &changes, outcome, &backups)
}

/// Removes the folders that held only files of ours. A folder with other files stays.
fn remove_empty_folders(target: &SettingsTarget) {
    for companion in connect::companion_files(target.agent, &target.file) {
        let own = companion.path.parent();
        let inner = target.file.parent().filter(|inner| Some(*inner) != own);
        for folder in inner.into_iter().chain(own) {
            let _ = std::fs::remove_dir(folder);
        }
    }
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

/// Shows the changes and asks the user to confirm them.
fn confirm_change(
    change: &SettingsChangeArgs,
    changes: &[PlannedChange],
) -> Result<ChangeOutcome, Failure> {
    if !changes.iter().any(PlannedChange::is_needed) {
        return Ok(ChangeOutcome::Unchanged);
    }
    if !change.json {
        let mut out = io::stdout().lock();
        out.write_all(diff(changes).as_bytes())?;
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

fn report(
    target: &SettingsTarget,
    change: &SettingsChangeArgs,
    changes: &[PlannedChange],
    outcome: ChangeOutcome,
    backups: &[PathBuf],
) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    if change.json {
        let backup = backups.first().map(|path| path.to_string_lossy());
        let report = json!({
            "agent": target.agent.as_str(),
            "scope": target.scope.as_str(),
            "file": target.file.to_string_lossy(),
            "changes": outcome != ChangeOutcome::Unchanged,
            "written": outcome == ChangeOutcome::Write,
            "backup": backup,
            "diff": diff(changes),
        });
        let written = serde_json::to_writer_pretty(&mut out, &report);
        let written = written.map_err(io::Error::from);
        return verdict(exit::OK, written.and_then(|()| writeln!(out)));
    }
    let agent = target.agent.as_str();
    let written = match outcome {
        ChangeOutcome::Unchanged => {
            writeln!(out, "Nothing to do: {} is up to date.", target.name())
        }
        ChangeOutcome::Shown | ChangeOutcome::Declined => writeln!(out, "\nNothing was written."),
        ChangeOutcome::Write => {
            let mut lines = Vec::new();
            for change in changes.iter().filter(|change| change.is_needed()) {
                let name = one_line(&change.path.to_string_lossy());
                let what = match change.new {
                    Some(_) => "written",
                    None => "removed",
                };
                lines.push(format!("\n{name} was {what}."));
            }
            for backup in backups {
                let name = one_line(&backup.to_string_lossy());
                lines.push(format!("\n  backup: {name}"));
            }
            lines.push(advice(target, changes));
            let lines = lines.concat();
            writeln!(out, "{lines}\n  check it: cra doctor {agent}")
        }
    };
    verdict(exit::OK, written)
}

/// Remaining manual steps after hooks were added.
fn advice(target: &SettingsTarget, changes: &[PlannedChange]) -> String {
    let mut advice = String::new();
    let new = changes.iter().filter(|change| change.path == target.file);
    let mut texts = new.filter_map(|change| change.new.as_deref());
    if !texts.any(|text| connect::read_hook_config(text, target.agent).is_some()) {
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
