//! Hooks: what agents run before and after each step, each in its own words.
//!
//! Every one of these agents goes on when a hook says nothing in time, crashes, or answers what it cannot
//! read. So this always answers, before the agent's own timer, in the agent's own format; whatever goes
//! wrong is a denial with the way out. A step that no gate stood before is answered with nothing at all where
//! the agent allows it: its own rules and questions stay in force. Only what an operator let pass is allowed
//! outright.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use self::ask::Verdict;
use super::client::{CallError, Leash};
use super::proof::AnswerVerifier;
use super::words::{Remedy, denial};
use crate::base::digest::Digest;

mod answer;
mod answering;
mod ask;
mod secret;
mod send;
mod told;
mod tools;
mod wrapper;

pub use answer::Printed;
pub use answering::{AnswerCommand, AnswerLine};
pub use secret::secret;
pub(super) use secret::secret_named;
pub use send::{Answered, Answerer, send_answers};
pub use told::{Moment, Told, Unreadable};
pub use tools::{Action, actions};

/// An agent that runs hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
    /// GitHub Copilot: CLI, cloud agent, VS Code.
    Copilot,
}

impl Host {
    /// Every one.
    pub const ALL: [Self; 5] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Cursor,
        Self::Copilot,
    ];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
        }
    }

    /// How long it waits for a hook when nobody says otherwise.
    #[must_use]
    pub fn usual_timer(self) -> Duration {
        match self {
            Self::ClaudeCode | Self::Codex => Duration::from_mins(10),
            Self::Gemini | Self::Cursor => Duration::from_mins(1),
            Self::Copilot => Duration::from_secs(30),
        }
    }
}

/// What is done when no console is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offline {
    /// Nothing goes on.
    Deny,
    /// The agent asks its own user, where it can.
    Ask,
}

impl Offline {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = [Self::Deny, Self::Ask].into_iter();
        all.find(|it| it.as_str() == name)
    }
}

/// How a hook is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose hook it is.
    pub host: Host,
    /// When the agent began to wait for it.
    pub begun: Instant,
    /// How long the agent waits for it, if that is known.
    pub timer: Option<Duration>,
    /// What is done when no console is there.
    pub offline: Offline,
    /// Where the console listens.
    pub socket: PathBuf,
    /// Key that the console's answers are verified with; without a usable one the reason, and nothing goes on.
    pub key: Result<AnswerVerifier, String>,
    /// Folder of the store, where a rejected answer is reported.
    pub folder: PathBuf,
    /// What the keys of sessions are made from. Hooks are processes of their own: only by it they know that
    /// a session is theirs.
    pub secret: Digest,
    /// What is shown to be let in, where an Atlas wants to see something.
    pub api_key: Option<String>,
    /// What whoever waits for the hook can cut it off by.
    pub leash: Leash,
    /// Command by which the agent answers a checkpoint from its shell.
    pub answer_command: AnswerCommand,
    /// Way in which the agent reaches the hook.
    pub transport: Transport,
}

/// Way in which an agent reaches its hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// It runs the program.
    Direct,
    /// It posts to the console over HTTP.
    Rest,
}

impl Transport {
    /// Its name in the record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Rest => "rest",
        }
    }
}

/// Runs a hook: what the agent said, answered.
#[must_use]
pub fn run(payload: &[u8], options: &Options) -> Printed {
    match Told::read(options.host, payload) {
        Ok(told) => answer(&told, options),
        Err(unreadable) => Printed::unreadable(options.host, &unreadable),
    }
}

/// The answer to what an agent told.
#[must_use]
pub fn answer(told: &Told, options: &Options) -> Printed {
    let verdict = ask::ask(told, options);
    answer::encode(told, &verdict)
}

/// What is said when no answer came in time, and until when there is time to wait for one.
#[must_use]
pub fn too_late(told: &Told, options: &Options) -> (Instant, Printed) {
    let reason = denial(&CallError::Late, Remedy::Connect(options.host.as_str()));
    let printed = answer::encode(told, &Verdict::Deny { reason });
    (ask::last_moment(told, options), printed)
}
