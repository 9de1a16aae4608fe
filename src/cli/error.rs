//! Failures of commands, each with its cause and help.

use std::io;
use std::path::PathBuf;

use super::exit;
use crate::atlas::LoadError;
use crate::atlas::diagnostic::ReportColour;
use crate::base::json::StrictJsonError;
use crate::console::ConsoleError;
use crate::engine::RestoreError;
use crate::engine::command::DenialReply;
use crate::gateway::transport::acp::AcpProxyError;
use crate::gateway::transport::http::HttpError;
use crate::gateway::transport::mcp::proxy::ProxyError;
use crate::gateway::transport::mcp::tool_server::ToolServerError;
use crate::gateway::transport::socket_lock::SocketError;
use crate::memento::MementoError;
use crate::runtime::StartError;
use crate::runtime::maintenance::MaintenanceError;
use crate::runtime::notices::SecretError;
use crate::runtime::snapshot_file::SnapshotFileError;
use crate::store::StoreError;
use crate::store::key::KeyError;
use crate::trace::head::HeadError;
use crate::trace::note::NoteError;

mod connect;

pub(super) use connect::ConnectFailure;

/// Failure of a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The reader of our output stopped reading.
    #[error("standard output was closed")]
    ClosedPipe,
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    #[error("the console needs a terminal")]
    NoTerminal,
    #[error("cannot find the user's folders: neither HOME nor XDG folders are set")]
    NoHome,
    #[error("nothing was recorded after the store failed: {0}")]
    NotRecording(String),
    #[error("session `{0}` is not on record")]
    NoSession(String),
    #[error("session `{}` is not in `{}`", .1, .0.display())]
    NoSessionIn(PathBuf, String),
    #[error("session `{session}` has no event {at}, only 0 to {last}")]
    NoEvent { session: String, at: u64, last: u64 },
    #[error("`{}`: line {line} is not an event: {what}", file.display())]
    NotAnEvent {
        file: PathBuf,
        line: u64,
        what: String,
    },
    #[error("`{}` contains no events", .0.display())]
    EmptyExport(PathBuf),
    #[error("`{0}` is not a public key: {1}")]
    Key(String, NoteError),
    #[error("`{0}` is not the head of a log: {1}")]
    Head(String, HeadError),
    #[error(transparent)]
    SigningKey(#[from] KeyError),
    #[error(transparent)]
    Upkeep(#[from] MaintenanceError),
    #[error("the record is signed, but there is no key to verify it")]
    NoKey,
    #[error("an export contains no signatures, so --key has nothing to verify")]
    NoHead,
    #[error("the record is not signed yet")]
    Unsigned,
    #[error("`{}` fails verification and was not imported: {}", .0.display(), .1)]
    Unsound(PathBuf, String),
    #[error("no loaded Atlas sets a retention, so cra keeps all events")]
    KeepsAll,
    #[error("no record yet: `{}` does not exist", .0.display())]
    NoStore(PathBuf),
    #[error("cannot read `{}`: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    #[error("cannot write `{}`: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    #[error("`{}` is not a script for simulated agents: {}", .0.display(), .1)]
    Script(PathBuf, StrictJsonError),
    #[error("`{}` already exists", .0.display())]
    Exists(PathBuf),
    #[error(transparent)]
    SnapshotFile(#[from] SnapshotFileError),
    #[error("the file has no artifact `{0}`; {known}", known = names(.1))]
    NoArtifact(String, Vec<String>),
    #[error("the text of Atlas `{0}` is missing in the store; it defines the redaction")]
    AtlasGone(String),
    #[error("`{0}` writes to the record, but --read-only is set")]
    ReadOnly(&'static str),
    #[error("request `{0}` is not held")]
    NoGate(String),
    #[error(transparent)]
    Thread(#[from] ThreadFailure),
    #[error(transparent)]
    Notice(#[from] NoticeFailure),
    #[error(transparent)]
    StoredState(#[from] RestoreError),
    #[error(transparent)]
    Agents(#[from] ServerFailure),
    #[error("`{}` contains no scenario", .0.display())]
    NoScenario(PathBuf),
    #[error("`{}` contains no Atlas", .0.display())]
    NoAtlas(PathBuf),
    #[error(
        "two Atlases have the identifier `{id}`: `{}` and `{}`",
        first.display(),
        second.display()
    )]
    SameAtlas {
        id: String,
        first: PathBuf,
        second: PathBuf,
    },
    #[error("invalid --params: {0}")]
    Params(StrictJsonError),
    #[error("invalid --session: {0}")]
    Session(StrictJsonError),
    #[error("--{0} and --session contradict each other")]
    TwoSessions(&'static str),
    #[error(transparent)]
    Atlas(#[from] LoadError),
    #[error(transparent)]
    Scenario(LoadError),
    #[error(transparent)]
    Extensions(LoadError),
    #[error(transparent)]
    Config(LoadError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Console(#[from] ConsoleError),
    #[error(transparent)]
    SocketLock(#[from] SocketError),
    #[error(transparent)]
    Connect(#[from] ConnectFailure),
    #[error("cannot start: {0}")]
    Tokio(io::Error),
}

/// Existing names, for a message.
fn names(names: &[String]) -> String {
    match names {
        [] => "it lists no artifacts".to_owned(),
        some => format!("it lists {}", some.join(", ")),
    }
}

const WITHOUT_A_TERMINAL: &str = "these commands need no terminal: cra queue, cra notices, cra thread show, cra turn, cra snapshot, cra trace list, cra trace show, cra trace verify, cra trace \
     replay, cra trace diff, cra trace export, cra atlas lint, cra atlas explain, cra run";

const RECORD_THAT_DOES_NOT_HOLD: &str = "nothing was changed; run cra trace verify for details; restore a backup, or start a new \
     record with another --data-dir";

const LOOK_AT_DISK: &str = "check the disk and the data folder, then start cra again";

const OTHER_HEAD_FILE: &str =
    "name another file with --head-file; cra never overwrites the head of another log";

const RETENTION: &str = "set the retention in `trace_config` of every loaded Atlas; it applies to events that are \
     recorded from then on";

const SCENARIO_FILE: &str =
    "a scenario file ends in .yaml, .yml or .json; cra run --help shows an example";

const LIST_OF_EXTENSIONS: &str = "the list of extensions is the file of --extensions or CRA_EXTENSIONS, or extensions.yaml \
     in the user's cra configuration folder";

impl Failure {
    /// Message for the user: the failure and the help.
    pub(super) fn report(&self) -> String {
        if let Self::Atlas(error)
        | Self::Scenario(error)
        | Self::Extensions(error)
        | Self::Config(error) = self
        {
            let report = error.report(ReportColour::None);
            let report = report.trim_end();
            return match self.help() {
                Some(help) => format!("{report}\n  help: {help}"),
                None => report.to_owned(),
            };
        }
        let text =
            crate::base::text::sanitize(&self.to_string(), crate::base::text::LineFeeds::Keep);
        match self.help() {
            Some(help) => format!("error: {}\n  help: {help}", text.text),
            None => format!("error: {}", text.text),
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::NoTerminal
            | Self::Params(_)
            | Self::Session(_)
            | Self::TwoSessions(_)
            | Self::Key(..)
            | Self::NoKey
            | Self::NoHead
            | Self::ReadOnly(_)
            | Self::Head(..) => exit::USAGE,
            Self::EmptyExport(_) | Self::Unsound(..) => exit::BROKEN,
            // A file that cannot be read has no errors of its own.
            Self::SameAtlas { .. } => exit::LINT,
            Self::Atlas(error) if !matches!(error, LoadError::Io { .. }) => exit::LINT,
            Self::ClosedPipe
            | Self::Atlas(_)
            | Self::Output(_)
            | Self::NoHome
            | Self::SigningKey(_)
            | Self::Upkeep(_)
            | Self::Unsigned
            | Self::NotRecording(_)
            | Self::KeepsAll
            | Self::NoSession(_)
            | Self::NoSessionIn(..)
            | Self::NoEvent { .. }
            | Self::NotAnEvent { .. }
            | Self::NoStore(_)
            | Self::Read(..)
            | Self::Write(..)
            | Self::Script(..)
            | Self::Exists(_)
            | Self::SnapshotFile(_)
            | Self::NoArtifact(..)
            | Self::AtlasGone(_)
            | Self::NoGate(_)
            | Self::Thread(_)
            | Self::Notice(_)
            | Self::StoredState(_)
            | Self::Agents(_)
            | Self::NoScenario(_)
            | Self::NoAtlas(_)
            | Self::Scenario(_)
            | Self::Extensions(_)
            | Self::Config(_)
            | Self::Store(_)
            | Self::Start(_)
            | Self::Console(_)
            | Self::SocketLock(_)
            | Self::Tokio(_) => exit::FAILURE,
            Self::Connect(failure) => failure.exit_code(),
        }
    }

    fn help(&self) -> Option<&str> {
        match self {
            Self::Config(_) => Some("cra paths lists this file as config"),
            Self::NoTerminal => Some(WITHOUT_A_TERMINAL),
            Self::Params(_) => Some("write a JSON object: --params '{\"id\": 1}'"),
            Self::Session(_) => {
                Some("write a JSON object: --session '{\"agent\": \"bot\", \"actions\": 3}'")
            }
            Self::TwoSessions(_) => Some("set this value in one of them"),
            Self::EmptyExport(_) => Some("an export has one line per event"),
            Self::Key(..) => Some("run cra trace key where the record is kept"),
            Self::NoHead => Some("name a signed head with --known-head; cra trace head prints one"),
            Self::NoKey => Some("name the public key with --key; cra trace key prints it"),
            Self::Head(..) => Some("cra trace head prints a head, and --head-file keeps one"),
            Self::SigningKey(error) => Some(error.help()),
            Self::Unsigned => Some("start cra once: it signs the record"),
            Self::NotRecording(_) => Some(LOOK_AT_DISK),
            Self::Unsound(..) => Some("run cra trace verify --file for details"),
            Self::KeepsAll => Some(RETENTION),
            Self::Upkeep(error) => Some(error.help()),
            Self::Start(StartError::Log(_)) => Some(RECORD_THAT_DOES_NOT_HOLD),
            Self::Start(StartError::HeadFile(_)) => Some(OTHER_HEAD_FILE),
            Self::SocketLock(error) => Some(error.help()),
            Self::Connect(failure) => Some(failure.help()),
            Self::NoHome => Some("name a folder with --data-dir"),
            Self::NoSession(_) => Some("cra trace list shows the recorded sessions"),
            Self::NoSessionIn(..) => Some("cra trace verify --file FILE shows its sessions"),
            Self::NotAnEvent { .. } => Some("a file of cra trace export has one event per line"),
            Self::NoStore(_) => {
                Some("cra demo creates one in its own folder; --data-dir names another folder")
            }
            Self::Store(error) | Self::Start(StartError::Store(error)) => Some(error.help()),
            Self::Exists(_) => Some("nothing was changed; name another file"),
            Self::NoGate(_) => Some("cra queue lists the held requests"),
            Self::ReadOnly(_) => Some("nothing was changed; remove --read-only"),
            Self::Thread(failure) => failure.help(),
            Self::Notice(failure) => Some(failure.help()),
            Self::SnapshotFile(error) => error.help(),
            Self::NoArtifact(..) => {
                Some("cra reconstruct FILE --phase retrieve lists the artifacts")
            }
            Self::AtlasGone(_) | Self::StoredState(_) => {
                Some("run cra trace verify to check the record")
            }
            Self::Agents(error) => error.help(),
            Self::NoScenario(_) => Some(SCENARIO_FILE),
            Self::NoAtlas(_) => Some("an Atlas file ends in .yaml, .yml or .json"),
            Self::SameAtlas { .. } | Self::Start(StartError::SameAtlas(_)) => {
                Some("nothing was changed; load each Atlas once, or change one `atlas_id`")
            }
            Self::Extensions(LoadError::Io { .. }) => Some(LIST_OF_EXTENSIONS),
            Self::Scenario(LoadError::Io { .. }) => Some("cra run --help shows an example"),
            Self::Atlas(LoadError::Io { .. }) => {
                Some("name an Atlas file or folder; cra demo has its own Atlas")
            }
            Self::Start(_) => Some(
                "nothing was changed; use the version of cra that wrote the store, or another --data-dir",
            ),
            Self::ClosedPipe
            | Self::Output(_)
            | Self::NoEvent { .. }
            | Self::Read(..)
            | Self::Write(..)
            | Self::Script(..)
            | Self::Atlas(_)
            | Self::Scenario(_)
            | Self::Extensions(_)
            | Self::Console(_)
            | Self::Tokio(_) => None,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Output(error)
        }
    }
}

/// Exit code of a command that gives a verdict. The verdict stands even if the output was not read: in
/// `cra trace verify | head -1` a broken chain must not exit as fine.
pub(super) fn verdict(code: u8, written: io::Result<()>) -> Result<u8, Failure> {
    match written.map_err(Failure::from) {
        Ok(()) | Err(Failure::ClosedPipe) => Ok(code),
        Err(failure) => Err(failure),
    }
}

/// Failure of a command about notices.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoticeFailure {
    #[error("no waiting or failed notice `{0}`")]
    Unknown(String),
    #[error("there are no failed notices")]
    NoneFailed,
    #[error("CRA_WEBHOOK_SECRET is not a valid secret: {0}")]
    Given(SecretError),
    #[error("{0}")]
    Secret(String),
}

impl NoticeFailure {
    /// Help for the user.
    fn help(&self) -> &'static str {
        match self {
            Self::Unknown(_) | Self::NoneFailed => "cra notices lists the notices",
            Self::Given(_) => "correct or unset it: without it cra uses a file next to the store",
            Self::Secret(_) => "cra notices secret shows where the secret is",
        }
    }
}

/// Reason why a server for agents does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerFailure {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error(transparent)]
    AcpProxy(#[from] AcpProxyError),
    #[error(transparent)]
    Tools(#[from] ToolServerError),
}

impl ServerFailure {
    fn help(&self) -> Option<&'static str> {
        match self {
            Self::Http(error) => Some(error.help()),
            Self::Proxy(error) => error.help(),
            Self::AcpProxy(error) => error.help(),
            Self::Tools(_) => None,
        }
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Agents(error.into())
    }
}

impl From<ProxyError> for Failure {
    fn from(error: ProxyError) -> Self {
        Self::Agents(error.into())
    }
}

impl From<AcpProxyError> for Failure {
    fn from(error: AcpProxyError) -> Self {
        Self::Agents(error.into())
    }
}

impl From<ToolServerError> for Failure {
    fn from(error: ToolServerError) -> Self {
        Self::Agents(error.into())
    }
}

/// Failure of a command about conversations.
#[derive(Debug, thiserror::Error)]
pub(super) enum ThreadFailure {
    #[error("cannot read turns from `{}`: {}", .0.display(), .1)]
    NoTurn(PathBuf, MementoError),
    #[error("turn {number} of {all} (message `{message}`) was rejected: {}", denied.reason)]
    Refused {
        number: usize,
        all: usize,
        message: String,
        denied: DenialReply,
    },
    #[error("{0} held under other Atlases and would be checked again")]
    OtherAtlases(String),
    #[error("thread `{0}` does not exist")]
    NoThread(String),
    #[error("there are no threads yet")]
    NoThreads,
}

impl ThreadFailure {
    /// Help for the user.
    fn help(&self) -> Option<&str> {
        match self {
            Self::NoTurn(..) => Some("cra turn --help shows an example"),
            Self::Refused { denied, .. } => denied.help.as_deref(),
            Self::OtherAtlases(_) => {
                Some("nothing was changed; load the Atlases of the console with --atlas")
            }
            Self::NoThread(_) => Some("cra thread list shows the threads"),
            Self::NoThreads => Some("cra turn --help shows how to add a turn"),
        }
    }
}
