//! `cra doctor`: checks that agents are held, and lists what each agent can be held to.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer_key;
use super::args::DoctorArgs;
use super::connect::load_connections;
use super::error::{Failure, verdict};
use super::exit;
use super::settings::{Settings, SocketOwner};
use crate::base::text::one_line;
use crate::gateway::agents::CodingAgent;
use crate::gateway::connect::file::SettingsFile;
use crate::gateway::connect::registry::{
    ConnectionRegistry, companion_problem, disabled_elsewhere,
};
use crate::gateway::connect::{
    ConnectScope, Folders, HookConfig, SettingsState, former_settings_files, inspect, is_generated,
    read_hook_config, settings_file, without_comments,
};
use crate::gateway::hook::OfflineBehavior;
use crate::gateway::protocol::proof::AnswerVerifier;
use crate::gateway::protocol::rejected_answers::{FOLDER_NAME, RejectedAnswerReports};
use crate::gateway::transport::http::read_address;

mod codex_hooks;
mod console;

use console::{ConsoleStatus, ask_console, missing_key};

/// Longest wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Agent that lists its hooks itself.
const CODEX: &str = "codex";

/// Settings of an agent that mention `cra`.
struct ConnectionFinding {
    agent: CodingAgent,
    scope: ConnectScope,
    file: PathBuf,
    wiring: Option<HookConfig>,
    problems: Vec<String>,
    /// Number of problems that connecting again fixes: they come first.
    fixable: usize,
    /// Source of the agent's trust in the hooks, if it has to trust them.
    trust_source: Option<&'static str>,
}

/// Reports good and bad findings.
pub(super) fn doctor(settings: &Settings, given: &DoctorArgs) -> Result<u8, Failure> {
    let mut agents: Vec<CodingAgent> = given.agents.clone();
    let named = !agents.is_empty();
    if !named {
        agents = CodingAgent::ALL.to_vec();
    }
    let folders = Settings::agent_folders(given.dir.as_deref())?;
    let store = settings.data_dir()?;
    let known = load_connections(&store)?;
    let key = answer_key::read(settings);
    let own = OwnConsole {
        place: settings.console_options()?,
        key: key.as_ref().ok().cloned().flatten(),
    };
    let findings: Vec<_> = candidates(&agents, &folders, &known)
        .into_iter()
        .filter_map(|(agent, scope, file)| examine(agent, scope, file, &folders, &known, &own))
        .collect();
    let findings = mark_duplicate_hooks(findings);
    let connected = |agent: &CodingAgent| findings.iter().any(|finding| finding.agent == *agent);
    let missing: Vec<CodingAgent> = agents
        .iter()
        .copied()
        .filter(|agent| !connected(agent))
        .collect();
    let socket = settings.socket(SocketOwner::Console)?;
    let console = match key {
        Ok(Some(key)) => ask_console(&socket, key),
        Ok(None) => ConsoleStatus::Unreachable(missing_key(&store, &socket)),
        Err(failure) => ConsoleStatus::Unreachable(one_line(&failure.to_string())),
    };
    let http = read_address(&store).map(|address| (address, check_http(address)));
    let lacking = if named {
        !missing.is_empty()
    } else {
        findings.is_empty()
    };
    let http_is_well = http.as_ref().is_none_or(|(_, reached)| reached.is_ok());
    let rejected = RejectedAnswerReports::read(&store).summary();
    let well = matches!(console, ConsoleStatus::Healthy)
        && rejected.is_none()
        && http_is_well
        && !lacking
        && findings.iter().all(|finding| finding.problems.is_empty());
    let seen = DoctorReport {
        socket,
        console,
        key: own.key.map(|key| key.to_string()),
        rejected: rejected.map(|summary| (summary, store.join(FOLDER_NAME))),
        http,
        findings,
        missing,
        agents,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if given.json {
        serde_json::to_writer_pretty(&mut out, &seen.json(DoctorVerdict(well)))
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        seen.print(&mut out, DoctorVerdict(well))
    };
    let code = if well { exit::OK } else { exit::FAILURE };
    verdict(code, written.and_then(|()| out.flush()))
}

/// The console that this command asks.
struct OwnConsole {
    place: Vec<String>,
    key: Option<AnswerVerifier>,
}

/// True if no problem was found.
#[derive(Clone, Copy)]
struct DoctorVerdict(bool);

/// Everything that was checked.
struct DoctorReport {
    socket: PathBuf,
    console: ConsoleStatus,
    /// Key that proves its answers, if it exists.
    key: Option<String>,
    /// Rejected answers of other processes, in one line, and the folder of the reports.
    rejected: Option<(String, PathBuf)>,
    /// HTTP address for agents and its check, if HTTP is enabled.
    http: Option<(SocketAddr, Result<(), String>)>,
    findings: Vec<ConnectionFinding>,
    missing: Vec<CodingAgent>,
    agents: Vec<CodingAgent>,
}

/// Places where hooks may be: this project, this user, and every recorded connection.
fn candidates(
    agents: &[CodingAgent],
    folders: &Folders,
    known: &ConnectionRegistry,
) -> Vec<(CodingAgent, ConnectScope, PathBuf)> {
    let mut found = Vec::new();
    for agent in agents {
        let usual =
            ConnectScope::ALL.map(|scope| (*agent, scope, settings_file(*agent, scope, folders)));
        found.extend(usual);
        let former = former_settings_files(*agent, ConnectScope::User, folders);
        found.extend(
            former
                .into_iter()
                .map(|file| (*agent, ConnectScope::User, file)),
        );
        let others = known
            .connections
            .iter()
            .filter(|connection| connection.agent == *agent);
        for other in others {
            if !found
                .iter()
                .any(|(agent, _, file)| *agent == other.agent && *file == other.file)
            {
                found.push((*agent, other.scope, other.file.clone()));
            }
        }
    }
    found
}

/// Checks one settings file. `None` if it does not mention `cra`.
fn examine(
    agent: CodingAgent,
    scope: ConnectScope,
    file: PathBuf,
    folders: &Folders,
    known: &ConnectionRegistry,
    own: &OwnConsole,
) -> Option<ConnectionFinding> {
    let remembered = known.find(agent, &file);
    let text = match (SettingsFile::read(&file), remembered) {
        (Ok(found), _) => found.text().to_owned(),
        (Err(_), None) => return None,
        (Err(error), Some(connection)) => {
            return Some(ConnectionFinding {
                agent,
                scope,
                file,
                wiring: Some(connection.wiring.clone()),
                problems: vec![format!("cannot read the file: {error}")],
                fixable: 0,
                trust_source: None,
            });
        }
    };
    let wiring = remembered.map(|connection| connection.wiring.clone());
    let wiring = wiring.or_else(|| read_hook_config(&text, agent));
    let assumed = wiring.clone().unwrap_or_else(|| HookConfig {
        program: PathBuf::new(),
        timeout: 0,
        offline: OfflineBehavior::Deny,
        place: Vec::new(),
        key: None,
    });
    let problems = match inspect(&text, agent, &assumed) {
        Ok(SettingsState::Absent) | Err(_) if remembered.is_none() => return None,
        Ok(SettingsState::Absent) => vec!["the hooks were removed".to_owned()],
        Err(error) => vec![error.to_string()],
        Ok(SettingsState::Changed(what)) => what,
        Ok(SettingsState::Intact) => Vec::new(),
    };
    let mut problems = problems;
    problems.extend(companion_problem(agent, &file));
    if former_settings_files(agent, scope, folders).contains(&file) {
        let new = settings_file(agent, scope, folders);
        problems.push(format!("its hooks belong in `{}` now", new.display()));
    }
    let mut finding = ConnectionFinding {
        agent,
        scope,
        file,
        wiring,
        fixable: problems.len(),
        problems,
        trust_source: None,
    };
    finding.check_environment(folders, own);
    Some(finding)
}

/// Reports agents that a project and the user connect: both hooks ask about each step, and one may deny
/// what the other allows. An agent runs two equal entries once. Other projects do not matter.
fn mark_duplicate_hooks(mut findings: Vec<ConnectionFinding>) -> Vec<ConnectionFinding> {
    let users = findings.iter();
    let wired: Vec<_> = users
        .filter(|finding| finding.scope == ConnectScope::User)
        .map(|finding| (finding.agent, finding.wiring.clone()))
        .collect();
    for finding in &mut findings {
        let other = |(agent, wiring): &&(CodingAgent, Option<HookConfig>)| {
            let runs_both = is_generated(*agent) || *wiring != finding.wiring;
            *agent == finding.agent && wiring.is_some() && runs_both
        };
        if finding.scope == ConnectScope::Project && wired.iter().any(|entry| other(&entry)) {
            let trouble = "also connected for the user: each step is asked twice";
            finding.problems.push(trouble.to_owned());
        }
    }
    findings
}

impl ConnectionFinding {
    /// Checks outside of the settings file.
    fn check_environment(&mut self, folders: &Folders, own: &OwnConsole) {
        if let Some(wiring) = &self.wiring {
            self.problems.extend(program_problem(&wiring.program));
            let same_place = wiring.place == own.place;
            // The key of another console is not known here.
            let key = own.key.as_ref().filter(|_| same_place);
            self.problems.extend(wiring.key_problem(self.agent, key));
            self.fixable = self.problems.len();
            if !same_place {
                let asks = match wiring.place.as_slice() {
                    [] => "the default console".to_owned(),
                    named => named.join(" "),
                };
                let trouble = format!("the hooks use another console than this command: {asks}");
                self.problems.push(trouble);
            }
        }
        let off = disabled_elsewhere(self.agent, &self.file, Some(folders));
        self.problems.extend(off);
        let agent = self.agent.adapter();
        let trust = agent.trust_files(folders);
        if !trust.is_empty() {
            let problem = self.trust_problem(&trust, folders);
            self.problems.extend(problem);
        }
    }

    /// Problem with the agent's trust in the hooks: as Codex tells it, otherwise as the trust files do.
    fn trust_problem(&mut self, trust: &[PathBuf], folders: &Folders) -> Option<String> {
        if self.agent.as_str() == CODEX {
            let project = match self.scope {
                ConnectScope::Project => self.file.parent().and_then(Path::parent),
                ConnectScope::User => Some(folders.project.as_path()),
            };
            if let Some(hooks) = project.and_then(codex_hooks::list_hooks) {
                self.trust_source = Some("trust as Codex itself lists it");
                return codex_hooks::skipped_hooks(&hooks, &self.file).map(str::to_owned);
            }
            self.trust_source =
                Some("trust as config.toml states it: `codex` gave no list of its hooks");
        }
        let texts = trust.iter();
        let texts: Vec<_> = texts
            .map(|file| without_comments(&fs::read_to_string(file).unwrap_or_default()))
            .collect();
        self.agent.adapter().trust_problem(&texts, &self.file)
    }

    /// Description of the wiring.
    fn describe_wiring(&self) -> String {
        match &self.wiring {
            Some(wiring) => format!(
                "waits {} s, {} without a console",
                wiring.timeout,
                wiring.offline.as_str()
            ),
            None => "the settings of the hooks are unknown".to_owned(),
        }
    }
}

/// Problem with the program that hooks run, if any.
fn program_problem(program: &Path) -> Option<String> {
    let name = one_line(&program.to_string_lossy());
    if !program.is_file() {
        return Some(format!("the program `{name}` of the hooks is missing"));
    }
    let this = std::env::current_exe();
    if this.is_ok_and(|this| same_file(&this, program)) {
        return None;
    }
    let ours = concat!("cra ", env!("CARGO_PKG_VERSION"));
    match version(program) {
        Some(theirs) if theirs == ours => None,
        Some(theirs) => Some(format!(
            "`{name}` is {}, but this is {ours}",
            one_line(&theirs)
        )),
        None => Some(format!("`{name}` does not report its version")),
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), _) => false,
    }
}

/// Version that a program prints. A program that does not answer in time is ignored.
fn version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || {
        // The receiver may be gone.
        let _ = sender.send(command.output());
    });
    let output = answers.recv_timeout(ANSWER_TIMEOUT).ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// Checks that a server listens at an address.
fn check_http(address: SocketAddr) -> Result<(), String> {
    let reached = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT);
    let failed = |error| format!("no server listens at http://{address}: {error}");
    reached.map(drop).map_err(failed)
}

impl DoctorReport {
    fn json(&self, DoctorVerdict(well): DoctorVerdict) -> Value {
        let findings = self.findings.iter().map(|finding| {
            let wiring = finding.wiring.as_ref();
            json!({
                "agent": finding.agent.as_str(),
                "scope": finding.scope.as_str(),
                "file": finding.file.to_string_lossy(),
                "program": wiring.map(|wiring| wiring.program.to_string_lossy()),
                "timeout": wiring.map(|wiring| wiring.timeout),
                "offline": wiring.map(|wiring| wiring.offline.as_str()),
                "key": wiring.and_then(|wiring| wiring.key.as_deref()),
                "problems": finding.problems,
            })
        });
        let agents = self.agents.iter().map(|agent| {
            let bounds = agent.adapter().limits();
            json!({
                "agent": agent.as_str(),
                "connected": !self.missing.contains(agent),
                "hook_late": bounds.on_late_hook,
                "hook_broken": bounds.on_broken_hook,
                "asks_its_user": bounds.asks_user,
                "never_asked_about": bounds.uncovered,
            })
        });
        json!({
            "well": well,
            "console": {
                "socket": self.socket.to_string_lossy(),
                "answers": !matches!(self.console, ConsoleStatus::Unreachable(_)),
                "recording": matches!(self.console, ConsoleStatus::Healthy | ConsoleStatus::Denying(_)),
                "problem": self.console.problem(),
                "key": self.key,
            },
            "rejected_answers": self.rejected.as_ref().map(|(summary, folder)| json!({
                "problem": summary,
                "folder": folder.to_string_lossy(),
            })),
            "http": self.http.as_ref().map(|(address, reached)| json!({
                "address": address.to_string(),
                "answers": reached.is_ok(),
                "problem": reached.as_ref().err(),
            })),
            "connections": findings.collect::<Vec<_>>(),
            "agents": agents.collect::<Vec<_>>(),
        })
    }

    /// Prints the state of the console.
    fn print_console(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.console {
            ConsoleStatus::Healthy => {
                let socket = one_line(&self.socket.to_string_lossy());
                writeln!(out, "ok       the console answers at {socket}")?;
                let key = self.key.as_deref().unwrap_or_default();
                writeln!(out, "         public key of its answers: {key}")?;
            }
            ConsoleStatus::NotRecording(why) => {
                let socket = one_line(&self.socket.to_string_lossy());
                writeln!(
                    out,
                    "PROBLEM  the console at {socket} cannot record and denies every agent: {why}\n         \
                     check the disk; restart cra, unless the console reports that it records again"
                )?;
            }
            ConsoleStatus::Denying(why) => {
                let socket = one_line(&self.socket.to_string_lossy());
                writeln!(
                    out,
                    "PROBLEM  the console at {socket} denies every agent: {why}\n         \
                     check the record: cra trace verify; an operator can then continue at the console"
                )?;
            }
            ConsoleStatus::Unreachable(why) => writeln!(
                out,
                "PROBLEM  {why}\n         start the console: cra; if it runs already, it may be stuck or use another socket"
            )?,
        }
        if let Some((summary, folder)) = &self.rejected {
            let folder = one_line(&folder.to_string_lossy());
            writeln!(
                out,
                "PROBLEM  {summary}\n         find out which process answered, then remove {folder}"
            )?;
        }
        match &self.http {
            Some((address, Ok(()))) => {
                writeln!(
                    out,
                    "ok       the HTTP server for agents listens at http://{address}"
                )?;
            }
            Some((_, Err(why))) => writeln!(
                out,
                "PROBLEM  {why}\n         start the console with --http"
            )?,
            None => {}
        }
        Ok(())
    }

    fn print(&self, out: &mut impl Write, DoctorVerdict(well): DoctorVerdict) -> io::Result<()> {
        self.print_console(out)?;
        for finding in &self.findings {
            let mark = if finding.problems.is_empty() {
                "ok"
            } else {
                "PROBLEM"
            };
            let (agent, scope) = (finding.agent.as_str(), finding.scope.as_str());
            let file = one_line(&finding.file.to_string_lossy());
            writeln!(out, "{mark:<8} {agent:<12} {scope:<8} {file}")?;
            writeln!(out, "{:8} {}", "", finding.describe_wiring())?;
            if let Some(source) = finding.trust_source {
                writeln!(out, "{:8} {source}", "")?;
            }
            for problem in &finding.problems {
                writeln!(out, "{:8} - {}", "", one_line(problem))?;
            }
            if finding.fixable > 0 {
                writeln!(out, "{:8} fix it: cra connect {agent} --scope {scope}", "")?;
            }
        }
        if !self.missing.is_empty() {
            let names: Vec<_> = self.missing.iter().map(|agent| agent.as_str()).collect();
            writeln!(out, "-        not connected: {}", names.join(", "))?;
        }
        writeln!(
            out,
            "\nLimits of each agent, once it is connected:\n\n\
             {:<12} {:<10} {:<12} {:<22} NOT COVERED",
            "AGENT", "HOOK LATE", "HOOK BROKEN", "ASKS ITS USER"
        )?;
        for agent in &self.agents {
            let limits = agent.adapter().limits();
            let name = agent.as_str();
            let (late, broken, ask, unseen) = (
                limits.on_late_hook,
                limits.on_broken_hook,
                limits.asks_user,
                limits.uncovered,
            );
            writeln!(out, "{name:<12} {late:<10} {broken:<12} {ask:<22} {unseen}")?;
        }
        writeln!(
            out,
            "\nAn agent continues when a hook is late, so cra answers before the agent's timeout.\n{}",
            if well {
                "No problems found."
            } else {
                "Problems found."
            }
        )
    }
}
