//! Questions that an extension can ask back.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::atlas::document::InjectMode;
use crate::base::id::SessionId;
use crate::engine::command::{AgentReply, EngineCommand, InjectedContext};
use crate::engine::consultation::{Consultation, ConsultationAnswer, PolicyAnswer};
use crate::runtime::message::{ActorMessage, ReplyIds, ReplySender};

/// Client for an extension's questions about its session. The questions change nothing, and no answer
/// permits anything.
#[derive(Clone, Debug)]
pub struct Client {
    messages: mpsc::WeakSender<ActorMessage>,
    ids: ReplyIds,
    session: SessionId,
}

impl Client {
    pub(in crate::runtime) fn new(
        messages: mpsc::WeakSender<ActorMessage>,
        ids: ReplyIds,
        session: SessionId,
    ) -> Self {
        Self {
            messages,
            ids,
            session,
        }
    }

    /// Returns the contexts that match a text or hints, or all with one injection mode.
    pub async fn request_context(
        &self,
        query: &str,
        mode: Option<InjectMode>,
        hints: &[&str],
    ) -> Vec<InjectedContext> {
        let consult = Consultation::Contexts {
            session: self.session.clone(),
            query: query.to_owned(),
            mode,
            hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
        };
        match self.consult(consult).await {
            Some(ConsultationAnswer::Contexts(contexts)) => contexts,
            Some(ConsultationAnswer::Policy(_) | ConsultationAnswer::Owned) | None => Vec::new(),
        }
    }

    /// Returns contexts by identifier. Unknown identifiers are skipped.
    pub async fn get_contexts(&self, ids: &[&str]) -> Vec<InjectedContext> {
        let consult = Consultation::ContextsById {
            session: self.session.clone(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        };
        match self.consult(consult).await {
            Some(ConsultationAnswer::Contexts(contexts)) => contexts,
            Some(ConsultationAnswer::Policy(_) | ConsultationAnswer::Owned) | None => Vec::new(),
        }
    }

    /// Returns the decision of the policies on an action; `None` if the console has stopped.
    pub async fn check_policy(&self, action: &str, params: &Value) -> Option<PolicyAnswer> {
        let consult = Consultation::Policy {
            session: self.session.clone(),
            action: action.to_owned(),
            params: params.clone(),
        };
        match self.consult(consult).await? {
            ConsultationAnswer::Policy(answer) => Some(answer),
            ConsultationAnswer::Contexts(_) | ConsultationAnswer::Owned => None,
        }
    }

    async fn consult(&self, consult: Consultation) -> Option<ConsultationAnswer> {
        let reply_id = self.ids.next();
        let (reply, answer) = oneshot::channel();
        let message = ActorMessage::Command {
            reply_id,
            command: EngineCommand::Consult(reply_id, consult),
            reply: ReplySender::Agent(reply),
        };
        self.messages.upgrade()?.send(message).await.ok()?;
        match answer.await.ok()? {
            AgentReply::Consulted(consulted) => Some(consulted),
            _ => None,
        }
    }
}
