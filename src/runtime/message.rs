//! What the two ways in send to the actor.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tokio::sync::oneshot;

use super::load::{Load, LoadRefused};
use super::watched::Watch;
use crate::base::id::GateId;
use crate::engine::command::{AskId, Command, Reply};
use crate::engine::explain::{Account, Question};
use crate::engine::extension::{CallId, Returned};
use crate::trace::verify::Report;

/// A message to the actor.
#[derive(Debug)]
pub(super) enum Message {
    /// Something for the engine, with where the reply goes.
    Ask {
        ask: AskId,
        command: Command,
        reply: oneshot::Sender<Reply>,
    },
    /// An extension answered, or did not.
    Returned(CallId, Returned),
    /// All chains were checked.
    Checked(Result<Report, String>),
    /// An operator typed something, or threw it away.
    Draft(GateId, Option<Value>),
    /// Somebody wants something explained. It changes nothing.
    Explain(Question, oneshot::Sender<Result<Account, String>>),
    /// Somebody begins to watch evaluations, or stops.
    Watch(Watch),
    /// Other Atlases are wanted, instead of those of that hash.
    Load(Load, oneshot::Sender<Result<(), LoadRefused>>),
    /// Finish what is under way and stop.
    Stop(oneshot::Sender<()>),
}

/// One number per ask, whoever asks.
#[derive(Clone, Debug, Default)]
pub(super) struct AskIds(Arc<AtomicU64>);

impl AskIds {
    pub(super) fn next(&self) -> AskId {
        AskId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
