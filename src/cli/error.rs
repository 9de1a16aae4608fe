//! Failures of commands, each with its cause and help.

use std::io;
use std::path::PathBuf;

use super::exit;
use crate::atlas::LoadError;
use crate::atlas::diagnostic::ReportColour;
use crate::base::json::StrictJsonError;
use crate::console::ConsoleError;
use crate::engine::RestoreError;
use crate::gateway::transport::socket_lock::SocketError;
use crate::runtime::StartError;
use crate::runtime::maintenance::MaintenanceError;
use crate::runtime::snapshot_file::SnapshotFileError;
use crate::store::StoreError;
use crate::store::key::KeyError;
use crate::trace::head::HeadError;
use crate::trace::note::NoteError;

mod connect;
mod notices;
mod servers;
mod threads;

pub(super) use connect::ConnectFailure;
pub(super) use notices::NoticeFailure;
pub(super) use servers::ServerFailure;
pub(super) use threads::ThreadFailure;

/// Failure of a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The reader of our output stopped reading.
    #[error("standard output was closed")]
    ClosedPipe,
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    #[error("there is no terminal here to open the console in")]
    NoTerminal,
    #[error("the user's folders cannot be found: neither HOME nor XDG folders are set")]
    NoHome,
    #[error("nothing was recorded since the store failed: {0}")]
    NotRecording(String),
    #[error("no session `{0}` is on record")]
    NoSession(String),
    #[error("no session `{}` is in `{}`", .1, .0.display())]
    NoSessionIn(PathBuf, String),
    #[error("session `{session}` has no event {at}: they are 0 to {last}")]
    NoEvent { session: String, at: u64, last: u64 },
    #[error("`{}` has no event in line {line}: {what}", file.display())]
    NotAnEvent {
        file: PathBuf,
        line: u64,
        what: String,
    },
    #[error("`{}` has no events, so it proves nothing", .0.display())]
    EmptyExport(PathBuf),
    #[error("`{0}` is no public key: {1}")]
    Key(String, NoteError),
    #[error("`{0}` is no head of a log: {1}")]
    Head(String, HeadError),
    #[error(transparent)]
    SigningKey(#[from] KeyError),
    #[error(transparent)]
    Upkeep(#[from] MaintenanceError),
    #[error("the record is signed, and there is no key to hold it against")]
    NoKey,
    #[error("an export has no signatures in it, so there is nothing to hold against the key")]
    NoHead,
    #[error("nothing of the record is signed yet")]
    Unsigned,
    #[error("`{}` does not hold, so nothing of it is taken in: {}", .0.display(), .1)]
    Unsound(PathBuf, String),
    #[error("no Atlas that was in force says how long events are kept, so all are kept")]
    KeepsAll,
    #[error("there is no record yet: `{}` does not exist", .0.display())]
    NoStore(PathBuf),
    #[error("cannot read `{}`: {}", .0.display(), .1)]
    Read(PathBuf, io::Error),
    #[error("cannot write `{}`: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    #[error("`{}` is not a script for simulated agents: {}", .0.display(), .1)]
    Script(PathBuf, StrictJsonError),
    #[error("`{}` is there already", .0.display())]
    Exists(PathBuf),
    #[error(transparent)]
    SnapshotFile(#[from] SnapshotFileError),
    #[error("the file names no artifact `{0}`: {known}", known = names(.1))]
    NoArtifact(String, Vec<String>),
    #[error("the store has lost the text of the Atlas `{0}`, which says what is left out")]
    AtlasGone(String),
    #[error("`{0}` writes to the record, and --read-only says to only look")]
    ReadOnly(&'static str),
    #[error("no request `{0}` is held")]
    NoGate(String),
    #[error(transparent)]
    Thread(#[from] ThreadFailure),
    #[error(transparent)]
    Notice(#[from] NoticeFailure),
    #[error(transparent)]
    StoredState(#[from] RestoreError),
    #[error(transparent)]
    Agents(#[from] ServerFailure),
    #[error("`{}` has no scenario in it", .0.display())]
    NoScenario(PathBuf),
    #[error("`{}` has no Atlas in it", .0.display())]
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
    #[error("--params is {0}")]
    Params(StrictJsonError),
    #[error("--session does not describe a session: {0}")]
    Session(StrictJsonError),
    #[error("--{0} and --session say different things")]
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
        [] => "it names none".to_owned(),
        some => format!("there is {}", some.join(", ")),
    }
}

const WITHOUT_A_TERMINAL: &str = "without a terminal: cra queue, cra notices, cra thread show, cra turn, cra snapshot, cra trace list, cra trace show, cra trace verify, cra trace \
     replay, cra trace diff, cra trace export, cra atlas lint, cra atlas explain, cra run";

const RECORD_THAT_DOES_NOT_HOLD: &str = "nothing was changed; cra trace verify says more; put a backup in its place, or begin a new \
     record with another --data-dir";

const LOOK_AT_DISK: &str = "look at the disk and the data folder, then start cra again";

const OTHER_HEAD_FILE: &str =
    "name another file with --head-file; one that keeps the head of another log is left alone";

const RETENTION: &str = "an Atlas that is in force while events are recorded says in its `trace_config` how long \
     they are kept; of several, every one must";

const SCENARIO_FILE: &str =
    "a scenario is a file that ends in .yaml, .yml or .json; cra run --help shows one";

const LIST_OF_EXTENSIONS: &str = "the list of extensions is what --extensions or CRA_EXTENSIONS names, or extensions.yaml in \
     the user's cra configuration folder";

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
            Self::Config(_) => Some("it is the file that cra paths calls config"),
            Self::NoTerminal => Some(WITHOUT_A_TERMINAL),
            Self::Params(_) => Some("write it as an object: --params '{\"id\": 1}'"),
            Self::Session(_) => {
                Some("write it as an object: --session '{\"agent\": \"bot\", \"actions\": 3}'")
            }
            Self::TwoSessions(_) => Some("say it in one of them"),
            Self::EmptyExport(_) => Some("an export of a store with events has a line for each"),
            Self::Key(..) => Some("cra trace key prints it, where the record is kept"),
            Self::NoHead => Some("name a signed head with --known-head; cra trace head prints it"),
            Self::NoKey => Some("name the public key with --key; it is what cra trace key printed"),
            Self::Head(..) => Some("cra trace head prints it, and --head-file keeps it"),
            Self::SigningKey(error) => Some(error.help()),
            Self::Unsigned => Some("open it once with cra, which signs what is there"),
            Self::NotRecording(_) => Some(LOOK_AT_DISK),
            Self::Unsound(..) => Some("cra trace verify --file says more about it"),
            Self::KeepsAll => Some(RETENTION),
            Self::Upkeep(error) => Some(error.help()),
            Self::Start(StartError::Log(_)) => Some(RECORD_THAT_DOES_NOT_HOLD),
            Self::Start(StartError::HeadFile(_)) => Some(OTHER_HEAD_FILE),
            Self::SocketLock(error) => Some(error.help()),
            Self::Connect(failure) => Some(failure.help()),
            Self::NoHome => Some("name a folder with --data-dir"),
            Self::NoSession(_) => Some("cra trace list names the sessions on record"),
            Self::NoSessionIn(..) => Some("cra trace verify --file FILE names the sessions in it"),
            Self::NotAnEvent { .. } => Some("a file of cra trace export has an event a line"),
            Self::NoStore(_) => {
                Some("cra demo makes one in its own folder; --data-dir names another folder")
            }
            Self::Store(error) | Self::Start(StartError::Store(error)) => Some(error.help()),
            Self::Exists(_) => Some("nothing was changed; name another file"),
            Self::NoGate(_) => Some("cra queue lists what is held"),
            Self::ReadOnly(_) => Some("nothing was changed; leave --read-only out"),
            Self::Thread(failure) => failure.help(),
            Self::Notice(failure) => Some(failure.help()),
            Self::SnapshotFile(error) => error.help(),
            Self::NoArtifact(..) => Some("cra reconstruct FILE --phase retrieve lists them"),
            Self::AtlasGone(_) | Self::StoredState(_) => {
                Some("cra trace verify says whether the record holds")
            }
            Self::Agents(error) => error.help(),
            Self::NoScenario(_) => Some(SCENARIO_FILE),
            Self::NoAtlas(_) => Some("an Atlas is a file that ends in .yaml, .yml or .json"),
            Self::SameAtlas { .. } | Self::Start(StartError::SameAtlas(_)) => {
                Some("nothing was changed; name each Atlas once, or give one another `atlas_id`")
            }
            Self::Extensions(LoadError::Io { .. }) => Some(LIST_OF_EXTENSIONS),
            Self::Scenario(LoadError::Io { .. }) => Some("cra run --help shows a scenario"),
            Self::Atlas(LoadError::Io { .. }) => {
                Some("name an Atlas, or a folder of them; cra demo needs none")
            }
            Self::Start(_) => Some(
                "nothing was changed; use the version of cra that wrote it, or another --data-dir",
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
