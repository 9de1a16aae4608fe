//! The way to the console: one session, and a connection for each thing that is asked.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::base::id::SessionId;
use crate::engine::command::{DenyCode, Given};
use crate::gateway::call::Key;
use crate::gateway::client::{CallError, Speaker};
use crate::gateway::proof::AnswerVerifier;
use crate::gateway::rejected::Rejected;
use crate::gateway::words::{given, words_of};

/// Who asks.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Program that asks, as a report of a rejected answer names it.
    pub program: &'static str,
    /// Where the console listens.
    pub socket: PathBuf,
    /// Key that the console's answers are verified with; without one nothing goes on.
    pub answers: Option<AnswerVerifier>,
    /// Folder of the store, where a rejected answer is reported.
    pub folder: PathBuf,
    /// What kind of agent it is.
    pub agent: String,
    /// What its session is for.
    pub intent: Option<String>,
    /// What is shown to be let in, where an Atlas wants to see something.
    pub api_key: Option<String>,
}

/// The way to the console.
#[derive(Debug)]
pub(super) struct Gate {
    guest: Guest,
    session: SessionId,
    key: Key,
    begun: Mutex<Begun>,
}

/// How far the session is.
#[derive(Debug)]
enum Begun {
    /// The console does not know it.
    No,
    /// It does. What it had to say to the agent stays until there is a result that it can go with.
    Yes(Given),
}

/// A run that may go on.
#[derive(Debug)]
pub(super) struct Run {
    execution: String,
    /// What the agent should know.
    pub(super) words: Option<String>,
}

impl Gate {
    /// # Errors
    /// When the system has no randomness to give.
    pub(super) fn new(guest: Guest) -> Result<Self, getrandom::Error> {
        Ok(Self {
            guest,
            session: Uuid::now_v7().into(),
            key: Key::random()?,
            begun: Mutex::new(Begun::No),
        })
    }

    /// Asks whether an action may run. Dropping this leaves the gate.
    ///
    /// # Errors
    /// Whatever comes that is no yes.
    pub(super) async fn ask(
        &self,
        action: &str,
        params: &Map<String, Value>,
    ) -> Result<Run, CallError> {
        let request = json!({"action": action, "params": params});
        let allowed = self.say("action.request", request).await?;
        // Nothing but a run with a name is a yes.
        let execution = allowed.get("execution").and_then(Value::as_str);
        let execution = execution
            .ok_or_else(|| CallError::Unreadable("an answer that allows nothing".to_owned()))?
            .to_owned();
        let mut handed = match &mut *self.begun.lock().await {
            Begun::No => Given::default(),
            Begun::Yes(first) => std::mem::take(first),
        };
        handed.extend(given(&allowed));
        Ok(Run {
            execution,
            words: words_of(&handed),
        })
    }

    /// Says what came of a run: a result, or the code and the words of an error. Gives what checkpoints after it hand to
    /// the agent.
    ///
    /// # Errors
    /// When the console is not told.
    pub(super) async fn completed(
        &self,
        run: &Run,
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

    /// Ends the session, if there is one.
    ///
    /// # Errors
    /// When the console is not told.
    pub(super) async fn end(&self) -> Result<(), CallError> {
        if matches!(*self.begun.lock().await, Begun::No) {
            return Ok(());
        }
        self.say("session.end", json!({"given": "later"}))
            .await
            .map(|_| ())
    }

    /// Says something in the session, which is begun before that.
    ///
    /// # Errors
    /// Whatever comes that is no result.
    pub(super) async fn say(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let said = self.converse(method, params).await;
        if let Err(CallError::Unproven { reason, .. }) = &said {
            let (guest, session) = (&self.guest, Some(self.session.to_string()));
            let report = Rejected::now(guest.program, session, &guest.socket, reason.to_string());
            // A report that cannot be left changes nothing: the agent is denied.
            let _ = report.leave(&guest.folder);
        }
        said
    }

    async fn converse(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let key = self.guest.answers.clone();
        let key = key.ok_or_else(|| CallError::NoKey("it is missing".to_owned()))?;
        let mut speaker = Speaker::connect_verified(&self.guest.socket, key).await?;
        self.begin(&mut speaker).await?;
        let params = self.signed(params);
        let said = speaker.call(method, &params).await;
        let Err(CallError::Fault(fault)) = &said else {
            return said;
        };
        if fault.denied() != Some(DenyCode::Session) {
            return said;
        }
        // Another console, with another record: to that one the session is new.
        *self.begun.lock().await = Begun::No;
        self.begin(&mut speaker).await?;
        speaker.call(method, &params).await
    }

    async fn begin(&self, speaker: &mut Speaker) -> Result<(), CallError> {
        let mut begun = self.begun.lock().await;
        if matches!(*begun, Begun::Yes(_)) {
            return Ok(());
        }
        let start = self.signed(json!({
            "agent": self.guest.agent,
            "intent": self.guest.intent,
            "api_key": self.guest.api_key,
        }));
        let started = speaker.call("session.start", &start).await?;
        *begun = Begun::Yes(given(&started));
        Ok(())
    }

    /// Parameters, with the session and its secret.
    fn signed(&self, mut params: Value) -> Value {
        if let Some(fields) = params.as_object_mut() {
            fields.insert("session".to_owned(), self.session.to_string().into());
            fields.insert("key".to_owned(), self.key.reveal().into());
        }
        params
    }
}

/// Most that is told about what came of a run.
const MOST: usize = 16 * 1024;

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MOST));
    text
}
