//! What a hook asks the console, and what it makes of the answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use super::told::{Moment, Told};
use super::tools::Action;
use super::{Host, Offline, Options};
use crate::base::clock::{Clock, SystemClock};
use crate::base::digest::Digest;
use crate::base::id::{SessionId, is_restricted};
use crate::base::text::one_line;
use crate::engine::command::DenyCode;
use crate::gateway::client::{CallError, Client};
use crate::gateway::words::{denial, given, joined};

/// What a hook answers, whatever the agent's format is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on.
    Pass {
        /// What the agent should know.
        context: Option<String>,
        /// The operator who let it pass, where one had to.
        approved: Option<String>,
    },
    /// It does not.
    Deny {
        /// Why, and what to do.
        reason: String,
    },
    /// The agent's own user is asked.
    Ask {
        /// Why.
        reason: String,
    },
}

impl Verdict {
    fn pass(context: Option<String>) -> Self {
        Self::Pass {
            context,
            approved: None,
        }
    }

    /// What the agent should know. Where nothing can be stopped, that it would have been is told so.
    pub(super) fn context(&self) -> Option<&str> {
        match self {
            Self::Pass { context, .. } => context.as_deref(),
            Self::Deny { reason } | Self::Ask { reason } => Some(reason),
        }
    }
}

/// How often an agent may go on with a session that has ended.
const MOST_AGAIN: u32 = 100;

/// Most of a timer that is kept back, so that an answer is there before it runs out.
const MARGIN: Duration = Duration::from_secs(5);

/// Asks the console about what an agent tells.
pub(super) fn ask(told: &Told, options: &Options) -> Verdict {
    if told.moment == Moment::Other {
        return Verdict::pass(None);
    }
    let Some(session) = session(told) else {
        let reason = "cra: the hook names no session, so nothing goes on".to_owned();
        return Verdict::Deny { reason };
    };
    let until = options.begun + budget(timer(told, options));
    let asked = Client::connect(&options.socket, until).and_then(|client| {
        client.tie(&options.leash)?;
        let asking = Asking {
            client,
            session,
            told,
            options,
            until,
        };
        asking.ask()
    });
    asked.unwrap_or_else(|error| without(told, options, &error))
}

/// When the agent has to be answered, whatever there is to say by then.
pub(super) fn last_moment(told: &Told, options: &Options) -> Instant {
    let timer = timer(told, options);
    options.begun + timer.saturating_sub(timer.saturating_sub(budget(timer)) / 2)
}

fn timer(told: &Told, options: &Options) -> Duration {
    options.timer.unwrap_or_else(|| usual_timer(told))
}

/// How much of a timer there is to wait for an operator.
fn budget(timer: Duration) -> Duration {
    timer.saturating_sub((timer / 10).min(MARGIN))
}

/// How long the agent waits for this hook when nobody says otherwise.
fn usual_timer(told: &Told) -> Duration {
    match (&told.moment, told.host) {
        // They wait hardly at all when they end.
        (Moment::End, _) => Duration::from_millis(900),
        (Moment::Prompt { .. }, Host::ClaudeCode) => Duration::from_secs(30),
        (_, host) => host.usual_timer(),
    }
}

/// The console's name for a session: whose it is, and what they call it.
fn session(told: &Told) -> Option<SessionId> {
    let named = told.session.as_deref()?;
    let host = told.host.as_str();
    let name = format!("{host}.{named}");
    let name = if is_restricted(&name) {
        name
    } else {
        // Whatever else it is, it is always the same.
        format!("{host}.{}", Digest::of(named))
    };
    name.parse().ok()
}

/// One hook's conversation with the console.
struct Asking<'a> {
    client: Client,
    session: SessionId,
    told: &'a Told,
    options: &'a Options,
    until: Instant,
}

impl Asking<'_> {
    fn ask(mut self) -> Result<Verdict, CallError> {
        if self.told.moment == Moment::End {
            return self.end();
        }
        let started = self.begin()?;
        let first = given(&started);
        match &self.told.moment {
            Moment::Start => Ok(Verdict::pass(first)),
            Moment::Prompt { id, text } => match text {
                Some(text) => self.hear(id.as_deref(), text, first),
                None => Ok(Verdict::Deny {
                    reason: "cra: nobody can tell what was said: the prompt is no text".to_owned(),
                }),
            },
            Moment::Before { reference, actions } => match actions {
                Ok(actions) => self.request(reference, actions, first),
                Err(why) => Ok(Verdict::Deny {
                    reason: format!("cra: nobody can tell what this would do: {why}"),
                }),
            },
            Moment::After {
                reference,
                tool,
                result,
            } => self
                .report(reference, tool, result)
                .map(|()| Verdict::pass(first)),
            Moment::Said(text) => self
                .say("output", json!({"text": text}))
                .map(|_| Verdict::pass(None)),
            Moment::Failed { kind, message } => {
                let error = json!({"error_type": kind, "message": message, "recoverable": true});
                self.say("error", error).map(|_| Verdict::pass(None))
            }
            Moment::End | Moment::Other => Ok(Verdict::pass(None)),
        }
    }

    /// Ends the session, or what it went on as. None is begun for that.
    fn end(&mut self) -> Result<Verdict, CallError> {
        let first = self.session.clone();
        for again in 1..=MOST_AGAIN {
            match self.say("session.end", json!({})) {
                Err(CallError::Fault(fault)) if fault.denied() == Some(DenyCode::Ended) => {
                    let next = format!("{first}.{again}").parse();
                    self.session = next.map_err(|_| CallError::Fault(fault))?;
                }
                // There is none, or it is somebody else's: there is nothing to end.
                Ok(_) | Err(CallError::Fault(_)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(Verdict::pass(None))
    }

    /// What came of a use of a tool. One that nobody here let run is on record as such: the agent may have gone on
    /// without an answer, or past a hook that was taken out.
    fn report(
        &mut self,
        reference: &str,
        tool: &str,
        result: &Result<String, String>,
    ) -> Result<(), CallError> {
        let said = match result {
            Ok(result) => json!({"reference": reference, "result": result}),
            Err(message) => json!({"reference": reference,
                "error": {"code": "failed", "message": message}}),
        };
        match self.say("action.completed", said) {
            Ok(_) => Ok(()),
            Err(CallError::Fault(_)) => {
                let message = format!(
                    "`{tool}` was used ({reference}), and nobody here let it run, or cra began anew since"
                );
                let error =
                    json!({"error_type": "ran_unasked", "message": message, "recoverable": true});
                self.say("error", error).map(|_| ())
            }
            Err(error) => Err(error),
        }
    }

    /// Begins the session, or takes it up again. An agent may go on with one that has ended, under the same
    /// name; to the record it is another one then.
    fn begin(&mut self) -> Result<Value, CallError> {
        let first = self.session.clone();
        for again in 1..=MOST_AGAIN {
            match self.start() {
                Err(CallError::Fault(fault)) if fault.denied() == Some(DenyCode::Ended) => {
                    let next = format!("{first}.{again}").parse();
                    self.session = next.map_err(|_| CallError::Fault(fault))?;
                }
                begun => return begun,
            }
        }
        self.start()
    }

    /// Begins a session, or takes it up again: every hook is a process of its own.
    fn start(&mut self) -> Result<Value, CallError> {
        let mut start = json!({"agent": self.told.host.as_str()});
        if let (Some(key), Some(fields)) = (&self.options.api_key, start.as_object_mut()) {
            fields.insert("api_key".to_owned(), key.clone().into());
        }
        self.say("session.start", start)
    }

    fn say(&mut self, method: &str, mut params: Value) -> Result<Value, CallError> {
        let secret = self.options.secret.to_string();
        let key = Digest::of(format!("{secret}\n{}", self.session));
        if let Some(fields) = params.as_object_mut() {
            fields.insert("session".to_owned(), self.session.to_string().into());
            fields.insert("key".to_owned(), key.to_string().into());
        }
        self.client.call(method, &params)
    }

    /// What a person said: input, and a turn of the session's conversation.
    fn hear(
        &mut self,
        id: Option<&str>,
        text: &str,
        first: Option<String>,
    ) -> Result<Verdict, CallError> {
        let accepted = self.say("input", json!({"text": text}))?;
        let mut context: Vec<_> = first.into_iter().chain(given(&accepted)).collect();
        let id = id.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        let id: String = id.chars().take(100).collect();
        let turn = json!({"message_id": id, "message": text, "author": "user"});
        match self.say("turn", json!({"turn": turn})) {
            Ok(turned) => context.extend(turn_words(&turned)),
            // What a conversation has come to decides about no action.
            Err(CallError::Fault(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(Verdict::pass(joined(context)))
    }

    /// Asks for everything that a use of a tool would do. All of it has to pass.
    fn request(
        &mut self,
        reference: &str,
        actions: &[Action],
        first: Option<String>,
    ) -> Result<Verdict, CallError> {
        let mut context: Vec<_> = first.into_iter().collect();
        let mut approved = Vec::new();
        for action in actions {
            let left = self.until.saturating_duration_since(Instant::now());
            // The console answers before the hook gives up, and says that it expired.
            let deadline = SystemClock
                .now()
                .plus(left.saturating_sub((left / 20).min(Duration::from_secs(1))));
            let request = json!({
                "action": action.name,
                "params": action.params,
                "deadline": deadline,
                "reference": reference,
            });
            let allowed = self.say("action.request", request)?;
            // Nothing but a run with a name is a yes.
            if !allowed.get("execution").is_some_and(Value::is_string) {
                let why = "an answer that allows nothing".to_owned();
                return Err(CallError::Unreadable(why));
            }
            context.extend(given(&allowed));
            let by = allowed.get("approved_by").and_then(Value::as_str);
            approved.extend(by.map(one_line));
        }
        // Where one of several went by without anybody's word, the agent's own rules stay in force.
        let all = approved.len() == actions.len();
        Ok(Verdict::Pass {
            context: joined(context),
            approved: approved.pop().filter(|_| all),
        })
    }
}

/// What becomes of a moment about which the console said something else than yes.
fn without(told: &Told, options: &Options, error: &CallError) -> Verdict {
    let reason = denial(error);
    match (error, options.offline) {
        (CallError::Unreachable(_), Offline::Ask) if told.is_gate() => Verdict::Ask { reason },
        _ => Verdict::Deny { reason },
    }
}

/// What a turn has to say to the agent: what is closed, and that its summary was held back.
fn turn_words(turned: &Value) -> Option<String> {
    let closed = turned.get("closed").and_then(Value::as_array);
    let closed = closed.into_iter().flatten().filter_map(Value::as_str);
    let mut words: Vec<_> = closed.map(|it| format!("Closed: {it}")).collect();
    if turned.get("frozen") == Some(&json!(true)) {
        words.push("This conversation is at its peak: its summary stays as it is.".to_owned());
    }
    joined(words)
}
