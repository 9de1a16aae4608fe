//! Session at the console, with a new connection for each call.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::engine::command::{DenyCode, Injected};
use crate::gateway::protocol::call::{CallError, SessionKey};
use crate::gateway::protocol::proof::AnswerVerifier;
use crate::gateway::protocol::rejected_answers::RejectedAnswer;
use crate::gateway::protocol::wording::{injected_in, injected_text};
use crate::gateway::transport::client::GatewayClient;

/// Identity of a proxy's client at the console.
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
    identity: ConsoleIdentity,
    session: SessionId,
    key: SessionKey,
    phase: Mutex<ConsoleSessionPhase>,
}

/// Progress of the session.
#[derive(Debug)]
enum ConsoleSessionPhase {
    /// The console does not know the session yet.
    NotStarted,
    /// The session has started. Its first contexts wait for a result that can deliver them.
    Started(Injected),
}

/// A run that is permitted.
#[derive(Debug)]
pub(super) struct PermittedRun {
    execution: String,
    /// Text for the agent.
    pub(super) text: Option<String>,
    /// Operator who approved it; `None` if no gate held it.
    pub(super) approved_by: Option<String>,
}

impl ConsoleSession {
    /// Creates a session that is not yet started.
    ///
    /// # Errors
    /// Fails when the system provides no randomness.
    pub(super) fn new(identity: ConsoleIdentity) -> Result<Self, getrandom::Error> {
        Ok(Self {
            identity,
            session: Uuid::now_v7().into(),
            key: SessionKey::random()?,
            phase: Mutex::new(ConsoleSessionPhase::NotStarted),
        })
    }

    /// Asks whether an action may run. Dropping the future withdraws the request.
    ///
    /// # Errors
    /// Every outcome other than a permission.
    pub(super) async fn request_action(
        &self,
        action: &str,
        params: &Map<String, Value>,
    ) -> Result<PermittedRun, CallError> {
        let request = json!({"action": action, "params": params});
        let allowed = self.call("action.request", request).await?;
        // Only an answer with the name of a run is a permission.
        let execution = allowed.get("execution").and_then(Value::as_str);
        let execution = execution
            .ok_or_else(|| {
                CallError::Unreadable("`execution` is missing or not a string".to_owned())
            })?
            .to_owned();
        let mut handed = self.take_first_injected().await;
        handed.extend(injected_in(&allowed));
        Ok(PermittedRun {
            execution,
            text: injected_text(&handed),
            approved_by: allowed
                .get("approved_by")
                .and_then(Value::as_str)
                .map(one_line),
        })
    }

    /// Takes the first contexts of the session, which have not been delivered yet.
    pub(super) async fn take_first_injected(&self) -> Injected {
        match &mut *self.phase.lock().await {
            ConsoleSessionPhase::NotStarted => Injected::default(),
            ConsoleSessionPhase::Started(first) => std::mem::take(first),
        }
    }

    /// Reports the result of a run, or the code and the message of an error. Returns texts that checkpoints
    /// inject for the agent after the run.
    ///
    /// # Errors
    /// Fails when the report does not reach the console.
    pub(super) async fn report_result(
        &self,
        run: &PermittedRun,
        result: Result<String, (String, String)>,
    ) -> Result<Option<String>, CallError> {
        let mut params = json!({"execution": run.execution});
        if let Some(fields) = params.as_object_mut() {
            match result {
                Ok(result) => fields.insert("result".to_owned(), truncated(result).into()),
                Err((code, message)) => fields.insert(
                    "error".to_owned(),
                    json!({"code": truncated(code), "message": truncated(message)}),
                ),
            };
        }
        let completed = self.call("action.completed", params).await?;
        Ok(injected_text(&injected_in(&completed)))
    }

    /// Ends the session, if it was started.
    ///
    /// # Errors
    /// Fails when the console cannot be reached.
    pub(super) async fn end(&self) -> Result<(), CallError> {
        if matches!(*self.phase.lock().await, ConsoleSessionPhase::NotStarted) {
            return Ok(());
        }
        self.call("session.end", json!({"given": "later"}))
            .await
            .map(|_| ())
    }

    /// Sends a call in the session, and starts the session first if needed.
    ///
    /// # Errors
    /// Every outcome other than a result.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let result = self.call_console(method, params).await;
        if let Err(CallError::Unproven { reason, .. }) = &result {
            let (identity, session) = (&self.identity, Some(self.session.to_string()));
            let report = RejectedAnswer::new(
                identity.program,
                session,
                &identity.socket,
                reason.to_string(),
            );
            // A failed report changes nothing: the agent is denied in any case.
            let _ = report.write_report(&identity.folder);
        }
        result
    }

    async fn call_console(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let key = self.identity.answers.clone();
        let key = key.ok_or_else(|| CallError::NoKey("the option is missing".to_owned()))?;
        let mut client = GatewayClient::connect_verified(&self.identity.socket, key).await?;
        self.start_if_needed(&mut client).await?;
        let params = self.with_session(params);
        let result = client.call(method, &params).await;
        let Err(CallError::Fault(fault)) = &result else {
            return result;
        };
        if fault.deny_code() != Some(DenyCode::Session) {
            return result;
        }
        // This is another console with another record: it does not know the session.
        *self.phase.lock().await = ConsoleSessionPhase::NotStarted;
        self.start_if_needed(&mut client).await?;
        client.call(method, &params).await
    }

    async fn start_if_needed(&self, client: &mut GatewayClient) -> Result<(), CallError> {
        let mut begun = self.phase.lock().await;
        if matches!(*begun, ConsoleSessionPhase::Started(_)) {
            return Ok(());
        }
        let start = self.with_session(json!({
            "agent": self.identity.agent,
            "intent": self.identity.intent,
            "api_key": self.identity.api_key,
        }));
        let started = client.call("session.start", &start).await?;
        *begun = ConsoleSessionPhase::Started(injected_in(&started));
        Ok(())
    }

    /// Adds the session and its secret to parameters.
    fn with_session(&self, mut params: Value) -> Value {
        if let Some(fields) = params.as_object_mut() {
            fields.insert("session".to_owned(), self.session.to_string().into());
            fields.insert("key".to_owned(), self.key.reveal().into());
        }
        params
    }
}

/// Longest report about a run, in bytes.
const MAX_REPORT_BYTES: usize = 16 * 1024;

fn truncated(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_REPORT_BYTES));
    text
}
