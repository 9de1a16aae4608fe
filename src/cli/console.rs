//! `cra` and `cra demo`: the console, with the engine in the same process.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::alarms;
use super::args::{AtlasFileArgs, DemoArgs};
use super::atlases::{files_in, files_of, load_all};
use super::config::Config;
use super::error::Failure;
use super::exit;
use super::run::trials;
use super::settings::{DisplayMode, Settings, SocketOwner};
use crate::atlas::{Atlas, load_str_with};
use crate::base::clock::SystemClock;
use crate::base::id::RandomIds;
use crate::base::limits::MAX_HTTP_CONNECTIONS;
use crate::base::open_files::raise_open_file_limit;
use crate::console::{self, Appearance, AtlasFileSource, ConsoleOptions, ScenarioRunner};
use crate::engine::command::{EndSession, FinalStatus};
use crate::gateway::protocol::proof::AnswerSigner;
use crate::gateway::simulated_agents::AgentScript;
use crate::gateway::transport::gateway_state::GatewayState;
use crate::gateway::transport::http::{HttpResources, HttpServer, remove_address_file};
use crate::gateway::transport::socket_lock;
use crate::gateway::transport::unix_server::UnixServer;
use crate::runtime::snapshot::ConsoleAccess;
use crate::runtime::{Runtime, RuntimeParts, STALL_TIME, ViewParts};
use crate::store::key::{self, SigningHistory};
use crate::store::{self, Store, StoreError, StoreUrl};
use crate::trace::note::{Signer, Verifier};

/// Log entries read at a time.
const PAGE: usize = 1000;

const EXAMPLE_ATLAS: &str = include_str!("../../assets/atlas/acme-support.yaml");
/// Second demo Atlas: a gate that needs two operators, so that new users see one.
const SECOND_ATLAS: &str = include_str!("../../assets/demo/treasury.yaml");
const EXAMPLE_SCRIPT: &str = include_str!("../../assets/demo/agents.json");

/// Opens the console on the user's store.
pub(super) fn open(settings: &Settings, named: &AtlasFileArgs) -> Result<u8, Failure> {
    let atlases = load_atlases(settings, named)?;
    let place = ConsolePaths {
        folder: settings.data_dir()?,
        socket: settings.socket(SocketOwner::Console)?,
    };
    let shelf = atlas_file_source(named.files.clone());
    run(settings, &place, (atlases, Some(shelf)), None)
}

/// The named Atlases, or those of the user's folder.
pub(super) fn load_atlases(
    settings: &Settings,
    named: &AtlasFileArgs,
) -> Result<Vec<Atlas>, Failure> {
    load_all(&list_atlas_files(&named.files)?, &settings.configure())
}

/// Files that Atlases are loaded from, at this moment.
fn list_atlas_files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if named.is_empty() {
        files_in(&Settings::atlas_dir()?)
    } else {
        files_of(named)
    }
}

fn atlas_file_source(named: Vec<PathBuf>) -> AtlasFileSource {
    AtlasFileSource(Arc::new(move || {
        list_atlas_files(&named).map_err(|failure| failure.to_string())
    }))
}

/// Opens the console on the demo's store, with simulated agents.
pub(super) fn demo(settings: &Settings, demo: &DemoArgs) -> Result<u8, Failure> {
    let configure = settings.configure();
    let example = |name: &str, text: &str| {
        load_str_with(name, text, |manifest| configure.apply(manifest)).map(|loaded| loaded.atlas)
    };
    let atlases = match &demo.atlas {
        Some(named) => load_all(std::slice::from_ref(named), &configure)?,
        None => vec![
            example("acme-support.yaml", EXAMPLE_ATLAS)?,
            example("treasury.yaml", SECOND_ATLAS)?,
        ],
    };
    let script = match &demo.script {
        Some(file) => {
            let text = fs::read_to_string(file).map_err(|e| Failure::Read(file.clone(), e))?;
            AgentScript::read(&text).map_err(|e| Failure::Script(file.clone(), e))?
        }
        None => AgentScript::read(EXAMPLE_SCRIPT)
            .map_err(|e| Failure::Script("agents.json".into(), e))?,
    };
    let place = ConsolePaths {
        folder: settings.demo_dir()?,
        socket: settings.socket(SocketOwner::Demo)?,
    };
    let shelf = demo
        .atlas
        .clone()
        .map(|named| atlas_file_source(vec![named]));
    let code = run(settings, &place, (atlases, shelf), Some(script))?;
    let shown = place.folder.display();
    let printed = writeln!(
        io::stdout().lock(),
        "The demo's record is in {shown}\nRead it with: cra trace list --data-dir {shown}"
    );
    match printed {
        // The terminal was closed, which ended the console.
        Err(error) if console::is_terminal_closed(&error) => Ok(code),
        printed => Ok(printed.map(|()| code)?),
    }
}

/// Folder of the record and socket for agents.
struct ConsolePaths {
    folder: PathBuf,
    socket: PathBuf,
}

fn run(
    settings: &Settings,
    ConsolePaths { folder, socket }: &ConsolePaths,
    (atlases, shelf): (Vec<Atlas>, Option<AtlasFileSource>),
    script: Option<AgentScript>,
) -> Result<u8, Failure> {
    if !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
        return Err(Failure::NoTerminal);
    }
    let (look, config) = settings.config()?;
    let extensions = settings.extensions()?;
    let script_source = match &script {
        Some(_) => SocketOwner::Demo,
        None => SocketOwner::Console,
    };
    let webhooks = Settings::webhooks(script_source, config.webhooks, folder)?;
    let options = options(settings, look, config, shelf);
    let store = match store::open(&StoreUrl::in_folder(folder), settings.quota) {
        Err(error) if can_be_viewed(settings.access, &error) => {
            return show_read_only(settings, folder, atlases, options);
        }
        opened => opened?,
    };
    let _log = start_log(folder);
    let acquired = socket_lock::SocketLock::acquire(socket)?;
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let threads = threads.map_err(Failure::Tokio)?;
    threads.block_on(async {
        let signer = signer(folder, &*store).await?;
        let answers = AnswerSigner::derive(&signer);
        let runtime = Runtime::start(RuntimeParts {
            store,
            atlases,
            clock: Arc::new(SystemClock),
            ids: Box::new(RandomIds),
            operator: settings.operator.clone(),
            access: settings.access,
            extensions,
            signer,
            head_file: settings.head_file.clone(),
            webhooks,
        })
        .await?;
        runtime.watch_store();
        let gateway = GatewayState::new(runtime.agent_handle(), answers);
        let server = UnixServer::start(acquired, gateway.clone())?;
        let web = start_http_server(
            settings.http,
            &runtime,
            gateway.clone(),
            (folder, server.path()),
        )
        .await?;
        if let Some(script) = script {
            end_abandoned_sessions(&runtime).await;
            script.start(server.path());
        }
        let operator = runtime.operator_handle();
        let alarms = Some(alarms::watch(
            folder.clone(),
            server.bound(),
            gateway,
            operator,
        ));
        let options = ConsoleOptions {
            alarms,
            greeting: web.as_ref().map(http_address_message),
            ..options
        };
        let shown = show(settings.display_mode, &runtime, options).await;
        drop((server, web));
        let stopped = stop(runtime).await;
        shown?;
        stopped.map(|()| exit::OK)
    })
}

/// Options of the console, before any watcher starts.
fn options(
    settings: &Settings,
    look: Appearance,
    config: Config,
    shelf: Option<AtlasFileSource>,
) -> ConsoleOptions {
    let own = settings.own_extensions.clone();
    ConsoleOptions {
        look,
        theme: config.theme,
        toasts: config.toasts,
        mouse: config.mouse,
        clock: Arc::new(SystemClock),
        scenario_runner: Some(ScenarioRunner(Arc::new(move |files| trials(files, &own)))),
        atlas_files: shelf,
        configure: settings.configure(),
        alarms: None,
        greeting: None,
    }
}

/// Stops a runtime and reports a failure to record.
///
/// A disk that does not respond must not keep the console from ending: in that case the process exits
/// at once, because even closing the store would wait for that disk.
async fn stop(runtime: Runtime) -> Result<(), Failure> {
    let snapshots = runtime.operator_handle().snapshots();
    let mut stopping = std::pin::pin!(runtime.stop());
    while tokio::time::timeout(STALL_TIME, &mut stopping)
        .await
        .is_err()
    {
        let stalled = snapshots.borrow().store.stall().map(str::to_owned);
        if let Some(what) = stalled {
            let failure = Failure::NotRecording(what);
            // Best effort: the exit code reports the failure too.
            let _ = writeln!(io::stderr().lock(), "{}", failure.report());
            std::process::exit(exit::FAILURE.into());
        }
    }
    match snapshots.borrow().store.problem() {
        Some(what) => Err(Failure::NotRecording(what.to_owned())),
        None => Ok(()),
    }
}

/// True if a store that cannot be opened for writing is shown by a read-only console instead.
fn can_be_viewed(access: ConsoleAccess, error: &StoreError) -> bool {
    let is_unwritable = match error {
        StoreError::InUse { .. } | StoreError::Open { .. } | StoreError::Full { .. } => true,
        StoreError::Foreign { .. }
        | StoreError::Version { .. }
        | StoreError::Missing { .. }
        | StoreError::Damaged { .. }
        | StoreError::Cancelled
        | StoreError::Poisoned(_) => false,
    };
    access == ConsoleAccess::ReadOnly && is_unwritable
}

/// Shows a store that another console writes to, or whose disk is read-only. Agents cannot connect.
fn show_read_only(
    settings: &Settings,
    folder: &Path,
    atlases: Vec<Atlas>,
    options: ConsoleOptions,
) -> Result<u8, Failure> {
    let store = store::open_read_only(&StoreUrl::in_folder(folder))?;
    let key = key::load_verifier(folder).ok_or(Failure::Unsigned)?;
    let threads = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    threads.map_err(Failure::Tokio)?.block_on(async {
        let runtime = Runtime::view(ViewParts {
            store,
            atlases,
            clock: Arc::new(SystemClock),
            operator: settings.operator.clone(),
            key,
        })
        .await?;
        let shown = show(settings.display_mode, &runtime, options).await;
        runtime.stop().await;
        shown.map(|()| exit::OK)
    })
}

/// Shows the console until the user quits.
async fn show(
    manner: DisplayMode,
    runtime: &Runtime,
    options: ConsoleOptions,
) -> Result<(), Failure> {
    let shown = match manner {
        DisplayMode::Screen => console::run(runtime.operator_handle(), options).await,
        DisplayMode::Linear => {
            if let Some(greeting) = &options.greeting {
                writeln!(io::stdout().lock(), "{greeting}")?;
            }
            console::run_linear(runtime.operator_handle(), options.clock, options.alarms).await
        }
    };
    Ok(shown?)
}

/// Key that signs the heads of a store's log.
pub(super) async fn signer(folder: &Path, store: &dyn Store) -> Result<Signer, Failure> {
    let log = store.log().await?;
    let history = match log.seal {
        Some(_) => SigningHistory::Signed,
        None => SigningHistory::Unsigned,
    };
    let current = current_key(store).await?;
    Ok(key::load_or_create(
        folder,
        &log.log,
        history,
        current.as_ref(),
    )?)
}

/// Key that the log itself names as current.
async fn current_key(store: &dyn Store) -> Result<Option<Verifier>, Failure> {
    let log = store.log().await?.log;
    let (mut from, mut current) = (0, None);
    loop {
        let entries = store.events(log.clone(), from, PAGE).await?;
        for entry in &entries {
            let names = matches!(entry.event_type.as_str(), "log_started" | "key_rotated");
            let key = entry.payload.get("key").filter(|_| names);
            let key = key.and_then(|key| key.as_str()?.parse().ok());
            current = key.or(current);
        }
        from += entries.len() as u64;
        if entries.len() < PAGE {
            return Ok(current);
        }
    }
}

/// Ends sessions of an earlier demo: its agents ended with its process. Held requests stay held.
async fn end_abandoned_sessions(runtime: &Runtime) {
    let picture = Arc::clone(&runtime.operator_handle().snapshots().borrow());
    for session in picture.sessions.iter() {
        if picture.held.iter().any(|held| held.session == session.id) {
            continue;
        }
        let end = EndSession {
            delivery: crate::engine::command::DeliveryTime::Later,
            session: session.id.clone(),
            status: FinalStatus::Cancelled,
            summary: Some("the demo was closed".to_owned()),
        };
        // A session that cannot be ended is shown as it is.
        let _ = runtime.agent_handle().end_session(end).await;
    }
}

/// Sends log output to a file next to the store, because the screen belongs to the console. Without the
/// file nothing is logged.
fn start_log(folder: &Path) -> Option<tracing_appender::non_blocking::WorkerGuard> {
    let file = open_log(&folder.join("cra.log")).ok()?;
    let (writer, guard) = tracing_appender::non_blocking(file);
    let filter = tracing_subscriber::EnvFilter::try_from_env("CRA_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_writer(writer)
        .with_ansi(false)
        .with_env_filter(filter);
    // Only the first logger of a process takes effect; there is only one.
    let _ = log.try_init();
    Some(guard)
}

/// Opens the log file with owner-only access, also if an earlier version created it for everyone.
fn open_log(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut options = fs::OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Starts the HTTP server for agents, if it is enabled.
async fn start_http_server(
    wanted: Option<SocketAddr>,
    runtime: &Runtime,
    gateway: GatewayState,
    (folder, socket): (&Path, &Path),
) -> Result<Option<HttpServer>, Failure> {
    let Some(address) = wanted else {
        remove_address_file(folder);
        return Ok(None);
    };
    let resources = HttpResources {
        gateway,
        records: runtime.record_stream(),
        folder: folder.to_owned(),
        socket: socket.to_owned(),
        connections: MAX_HTTP_CONNECTIONS.min(raise_open_file_limit() / 4),
    };
    Ok(Some(HttpServer::start(address, resources).await?))
}

/// Returns the message with the address for agents.
fn http_address_message(server: &HttpServer) -> String {
    let address = server.address();
    format!("agents can connect at http://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_read_only_console_shows_a_store_it_cannot_write() {
        let path = "cra.db".to_owned();
        let in_use = StoreError::InUse {
            path: path.clone(),
            holder: String::new(),
        };
        let read_only_disk = StoreError::Open {
            path,
            what: "Read-only file system (os error 30)".to_owned(),
        };
        let damaged = StoreError::Damaged {
            what: "page 3".to_owned(),
        };
        for error in [&in_use, &read_only_disk] {
            assert!(can_be_viewed(ConsoleAccess::ReadOnly, error), "{error}");
            assert!(!can_be_viewed(ConsoleAccess::Write, error), "{error}");
        }
        assert!(!can_be_viewed(ConsoleAccess::ReadOnly, &damaged));
    }
}
