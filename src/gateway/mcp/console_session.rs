//! Session at the console, with a new connection for each call.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::base::id::SessionId;
use crate::engine::command::{DenyCode, Injected};
use crate::gateway::call::SessionKey;
use crate::gateway::client::{CallError, GatewayClient};
use crate::gateway::proof::AnswerVerifier;
use crate::gateway::rejected_answers::RejectedAnswer;
use crate::gateway::wording::{given, words_of};

/// Identity of an MCP client at the console.
#[derive(Clone, Debug)]
pub struct ConsoleIdentity {
    /// Program name for reports of rejected answers.
    pub program: &'static str,
    /// Socket of the console.
    pub socket: PathBuf,
    /// Key that verifies the console's answers; without it, everything is denied.
    pub answers: Option<AnswerVerifier>,
    /// Folder of the store, for reports of rejected answers.
    pub folder: PathBuf,
    /// Kind of agent.
    pub agent: String,
    /// Purpose of the session.
    pub intent: Option<String>,
    /// Key that the agent presents, if an Atlas requires one.
    pub api_key: Option<String>,
}

/// Session at the console.
#[derive(Debug)]
pub(super) struct ConsoleSession {
    guest: ConsoleIdentity,
    session: SessionId,
    key: SessionKey,
    begun: Mutex<ConsoleSessionPhase>,
}

/// Progress of the session.
#[derive(Debug)]
enum ConsoleSessionPhase {
    /// The console does not know the session yet.
    No,
    /// The session has started. Its first contexts wait for a result that can deliver them.
    Yes(Injected),
}

/// A run that is permitted.
#[derive(Debug)]
pub(super) struct PermittedRun {
    execution: String,
    /// Text for the agent.
    pub(super) words: Option<String>,
}

impl ConsoleSession {
    /// Creates a session that is not yet started.
    ///
    /// # Errors
    /// Fails when the system provides no randomness.
    pub(super) fn new(guest: ConsoleIdentity) -> Result<Self, getrandom::Error> {
        Ok(Self {
            guest,
            session: Uuid::now_v7().into(),
            key: SessionKey::random()?,
            begun: Mutex::new(ConsoleSessionPhase::No),
        })
    }

    /// Asks whether an action may run. Dropping the future withdraws the request.
    ///
    /// # Errors
    /// Every outcome other than a permission.
    pub(super) async fn ask(
        &self,
        action: &str,
        params: &Map<String, Value>,
    ) -> Result<PermittedRun, CallError> {
        let request = json!({"action": action, "params": params});
        let allowed = self.say("action.request", request).await?;
        // Only an answer with the name of a run is a permission.
        let execution = allowed.get("execution").and_then(Value::as_str);
        let execution = execution
            .ok_or_else(|| CallError::Unreadable("an answer that allows nothing".to_owned()))?
            .to_owned();
        let mut handed = match &mut *self.begun.lock().await {
            ConsoleSessionPhase::No => Injected::default(),
            ConsoleSessionPhase::Yes(first) => std::mem::take(first),
        };
        handed.extend(given(&allowed));
        Ok(PermittedRun {
            execution,
            words: words_of(&handed),
        })
    }

    /// Reports the result of a run, or the code and the message of an error. Returns texts that checkpoints
    /// inject for the agent after the run.
    ///
    /// # Errors
    /// Fails when the report does not reach the console.
    pub(super) async fn completed(
        &self,
        run: &PermittedRun,
        result: Result<String, (String, String)>,
    ) -> Result<Option<String>, CallError> {
        let mut said = json!({"execution": run.execution});
        if let Some(fields) = said.as_object_mut() {
            match result {
                Ok(result) => fields.insert("result".to_owned(), cut(result).into()),
                Err((code, message)) => fields.insert(
                    "error".to_owned(),
                    json!({"code": cut(code), "message": cut(message)}),
                ),
            };
        }
        let completed = self.say("action.completed", said).await?;
        Ok(words_of(&given(&completed)))
    }

    /// Ends the session, if it was started.
    ///
    /// # Errors
    /// Fails when the console cannot be reached.
    pub(super) async fn end(&self) -> Result<(), CallError> {
        if matches!(*self.begun.lock().await, ConsoleSessionPhase::No) {
            return Ok(());
        }
        self.say("session.end", json!({"given": "later"}))
            .await
            .map(|_| ())
    }

    /// Sends a call in the session, and starts the session first if needed.
    ///
    /// # Errors
    /// Every outcome other than a result.
    pub(super) async fn say(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let said = self.converse(method, params).await;
        if let Err(CallError::Unproven { reason, .. }) = &said {
            let (guest, session) = (&self.guest, Some(self.session.to_string()));
            let report =
                RejectedAnswer::now(guest.program, session, &guest.socket, reason.to_string());
            // A failed report changes nothing: the agent is denied in any case.
            let _ = report.leave(&guest.folder);
        }
        said
    }

    async fn converse(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let key = self.guest.answers.clone();
        let key = key.ok_or_else(|| CallError::NoKey("it is missing".to_owned()))?;
        let mut speaker = GatewayClient::connect_verified(&self.guest.socket, key).await?;
        self.begin(&mut speaker).await?;
        let params = self.signed(params);
        let said = speaker.call(method, &params).await;
        let Err(CallError::Fault(fault)) = &said else {
            return said;
        };
        if fault.denied() != Some(DenyCode::Session) {
            return said;
        }
        // This is another console with another record: it does not know the session.
        *self.begun.lock().await = ConsoleSessionPhase::No;
        self.begin(&mut speaker).await?;
        speaker.call(method, &params).await
    }

    async fn begin(&self, speaker: &mut GatewayClient) -> Result<(), CallError> {
        let mut begun = self.begun.lock().await;
        if matches!(*begun, ConsoleSessionPhase::Yes(_)) {
            return Ok(());
        }
        let start = self.signed(json!({
            "agent": self.guest.agent,
            "intent": self.guest.intent,
            "api_key": self.guest.api_key,
        }));
        let started = speaker.call("session.start", &start).await?;
        *begun = ConsoleSessionPhase::Yes(given(&started));
        Ok(())
    }

    /// Adds the session and its secret to parameters.
    fn signed(&self, mut params: Value) -> Value {
        if let Some(fields) = params.as_object_mut() {
            fields.insert("session".to_owned(), self.session.to_string().into());
            fields.insert("key".to_owned(), self.key.reveal().into());
        }
        params
    }
}

/// Longest report about a run, in bytes.
const MOST: usize = 16 * 1024;

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MOST));
    text
}
