//! What an extension can ask back.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::atlas::document::InjectMode;
use crate::base::id::SessionId;
use crate::engine::command::{Command, GivenContext, Reply};
use crate::engine::consult::{Consult, Consulted, PolicyAnswer};
use crate::runtime::message::{AskIds, Message};

/// What an extension can ask back about the session it was asked about. Nothing it asks changes
/// anything, and no answer lets anything run.
#[derive(Clone, Debug)]
pub struct Client {
    messages: mpsc::WeakSender<Message>,
    ids: AskIds,
    session: SessionId,
}

impl Client {
    pub(in crate::runtime) fn new(
        messages: mpsc::WeakSender<Message>,
        ids: AskIds,
        session: SessionId,
    ) -> Self {
        Self {
            messages,
            ids,
            session,
        }
    }

    /// Contexts that a text or hints call for, or all that are handed over in one way.
    pub async fn request_context(
        &self,
        query: &str,
        mode: Option<InjectMode>,
        hints: &[&str],
    ) -> Vec<GivenContext> {
        let consult = Consult::Contexts {
            session: self.session.clone(),
            query: query.to_owned(),
            mode,
            hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
        };
        match self.consult(consult).await {
            Some(Consulted::Contexts(contexts)) => contexts,
            Some(Consulted::Policy(_) | Consulted::Owned) | None => Vec::new(),
        }
    }

    /// Contexts by identifier. What does not exist is left out.
    pub async fn get_contexts(&self, ids: &[&str]) -> Vec<GivenContext> {
        let consult = Consult::ContextsById {
            session: self.session.clone(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        };
        match self.consult(consult).await {
            Some(Consulted::Contexts(contexts)) => contexts,
            Some(Consulted::Policy(_) | Consulted::Owned) | None => Vec::new(),
        }
    }

    /// What policies say about an action. `None` when nobody can tell any more.
    pub async fn check_policy(&self, action: &str, params: &Value) -> Option<PolicyAnswer> {
        let consult = Consult::Policy {
            session: self.session.clone(),
            action: action.to_owned(),
            params: params.clone(),
        };
        match self.consult(consult).await? {
            Consulted::Policy(answer) => Some(answer),
            Consulted::Contexts(_) | Consulted::Owned => None,
        }
    }

    async fn consult(&self, consult: Consult) -> Option<Consulted> {
        let ask = self.ids.next();
        let (reply, answer) = oneshot::channel();
        let message = Message::Ask {
            ask,
            command: Command::Consult(ask, consult),
            reply,
        };
        self.messages.upgrade()?.send(message).await.ok()?;
        match answer.await.ok()? {
            Reply::Consulted(consulted) => Some(consulted),
            _ => None,
        }
    }
}
