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
use crate::gateway::rejected::Rejected;
use crate::gateway::words::{Remedy, denial, given, joined};

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

/// Most of the hook's time that is kept back for the console's answer to arrive.
const CONSOLE_MARGIN: Duration = Duration::from_secs(1);

/// Asks the console about what an agent tells.
pub(super) fn ask(told: &Told, options: &Options) -> Verdict {
    if told.moment == Moment::Other {
        return Verdict::pass(None);
    }
    let Some(session) = session(told) else {
        let reason = "cra: the hook names no session, so nothing goes on".to_owned();
        return Verdict::Deny { reason };
    };
    let asked = converse(told, options, session.clone());
    asked.unwrap_or_else(|error| {
        if let CallError::Unproven { reason, .. } = &error {
            report_rejected(options, &session, &reason.to_string());
        }
        without(told, options, &error)
    })
}

fn converse(told: &Told, options: &Options, session: SessionId) -> Result<Verdict, CallError> {
    let key = options.key.clone().map_err(CallError::NoKey)?;
    let until = options.begun + budget(timer(told, options));
    let client = Client::connect(&options.socket, key, until)?;
    client.tie(&options.leash)?;
    let asking = Asking {
        client,
        conversation: session.clone(),
        session,
        told,
        options,
        until,
    };
    asking.ask()
}

/// Tells the console that another process answered in its place.
fn report_rejected(options: &Options, session: &SessionId, reason: &str) {
    let by = format!("cra hook {}", options.host.as_str());
    let session = Some(session.to_string());
    let report = Rejected::now(&by, session, &options.socket, reason.to_owned());
    // A report that cannot be left changes nothing: the agent is denied.
    let _ = report.leave(&options.folder);
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

/// Time that the console has for an answer, of the time that the hook has left. The console answers before the hook
/// gives up, and says that the request expired.
fn console_time(left: Duration) -> Duration {
    left.saturating_sub((left / 20).min(CONSOLE_MARGIN))
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
    /// Name of the first session: the thread of the conversation, however often the agent resumes it.
    conversation: SessionId,
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
            Moment::Before {
                reference,
                call,
                actions,
            } => match actions {
                Ok(actions) => self.request((reference, call.as_deref()), actions, first),
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
            match self.say("session.end", json!({"given": "later"})) {
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
            Ok(result) => json!({"reference": reference, "result": result, "given": "later"}),
            Err(message) => json!({"reference": reference, "given": "later",
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
        // All sessions of a conversation show one secret: the thread of the first is theirs too.
        let key = Digest::of(format!("{secret}\n{}", self.conversation));
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
        match self.take_turn(&turn) {
            Ok(turned) => context.extend(turn_words(&turned)),
            // What a conversation has come to decides about no action.
            Err(CallError::Fault(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(Verdict::pass(joined(context)))
    }

    /// Takes a turn in the thread of the conversation, or in the session's own where that one is not its to write.
    fn take_turn(&mut self, turn: &Value) -> Result<Value, CallError> {
        let thread = self.conversation.to_string();
        let taken = self.say("turn", json!({"thread": thread, "turn": turn}));
        match taken {
            Err(CallError::Fault(fault))
                if fault.denied() == Some(DenyCode::Thread)
                    && self.session != self.conversation =>
            {
                self.say("turn", json!({"turn": turn}))
            }
            taken => taken,
        }
    }

    /// Asks for everything that a use of a tool would do. All of it has to pass. A use without an identifier of
    /// the agent's own gets one here: an identical use at the same time is another one.
    fn request(
        &mut self,
        (reference, call): (&str, Option<&str>),
        actions: &[Action],
        first: Option<String>,
    ) -> Result<Verdict, CallError> {
        let call = call.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        let mut context: Vec<_> = first.into_iter().collect();
        let mut approved = Vec::new();
        for action in actions {
            let left = self.until.saturating_duration_since(Instant::now());
            let deadline = SystemClock.now().plus(console_time(left));
            let request = json!({
                "action": action.name,
                "params": action.params,
                "deadline": deadline,
                "reference": reference,
                "call": call,
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
    let reason = denial(error, Remedy::Connect(options.host.as_str()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::proof::AnswerSigner;
    use crate::trace::note::Signer;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn told(host: Host) -> Told {
        let payload = json!({
            "session_id": "s-1", "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "tool_use_id": "t-1",
        });
        Told::read(host, payload.to_string().as_bytes()).unwrap()
    }

    fn options(timer: Option<Duration>, socket: &std::path::Path) -> Options {
        let log = Signer::new("cra/log-1", &[7; 32]).unwrap();
        Options {
            host: Host::ClaudeCode,
            begun: Instant::now(),
            timer,
            offline: Offline::Deny,
            socket: socket.to_owned(),
            key: Ok(AnswerSigner::derive(&log).verifier()),
            folder: std::path::PathBuf::new(),
            secret: Digest::ZERO,
            api_key: None,
            leash: crate::gateway::client::Leash::default(),
        }
    }

    /// Timer of the agent, time for the hook, last moment of an answer: all in milliseconds.
    const MARGINS: [(u64, u64, u64); 10] = [
        (0, 0, 0),
        (10, 9, 9),
        (900, 810, 855),
        (1000, 900, 950),
        (30_000, 27_000, 28_500),
        (49_990, 44_991, 47_490),
        (50_000, 45_000, 47_500),
        (50_010, 45_010, 47_510),
        (60_000, 55_000, 57_500),
        (600_000, 595_000, 597_500),
    ];

    #[test]
    fn a_tenth_of_the_timer_is_kept_back_and_never_more_than_five_seconds() {
        for (timer, hook, last) in MARGINS {
            assert_eq!(budget(ms(timer)), ms(hook), "{timer}");
            let options = options(Some(ms(timer)), "/nonexistent".as_ref());
            let moment = last_moment(&told(Host::ClaudeCode), &options) - options.begun;
            assert_eq!(moment.as_millis(), u128::from(last), "{timer}");
        }
    }

    #[test]
    fn console_hook_and_agent_give_up_in_this_order() {
        let mut timers: Vec<_> = MARGINS.iter().map(|(timer, ..)| ms(*timer)).collect();
        timers.extend([Duration::from_nanos(1), Duration::from_micros(1), ms(1)]);
        for timer in timers {
            let hook = budget(timer);
            let options = options(Some(timer), "/nonexistent".as_ref());
            let last = last_moment(&told(Host::ClaudeCode), &options) - options.begun;
            assert!(console_time(hook) <= hook, "{timer:?}");
            assert!(hook <= last && last <= timer, "{timer:?}");
            if timer >= Duration::from_micros(1) {
                assert!(console_time(hook) < hook, "{timer:?}");
                assert!(hook < last && last < timer, "{timer:?}");
            }
        }
        // The console's own margin ends at one second.
        assert_eq!(console_time(ms(19_980)), ms(18_981));
        assert_eq!(console_time(ms(20_000)), ms(19_000));
        assert_eq!(console_time(ms(20_001)), ms(19_001));
        assert_eq!(console_time(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn every_agent_has_a_timer_that_leaves_a_margin() {
        for (host, seconds) in [
            (Host::ClaudeCode, 600),
            (Host::Codex, 600),
            (Host::Gemini, 60),
            (Host::Cursor, 60),
            (Host::Copilot, 30),
        ] {
            let timer = host.usual_timer();
            assert_eq!(timer, Duration::from_secs(seconds));
            assert!(budget(timer) + Duration::from_secs(3) <= timer);
        }
        let options = options(None, "/nonexistent".as_ref());
        let usual = timer(&told(Host::ClaudeCode), &options);
        assert_eq!(usual, Duration::from_mins(10));
    }

    #[test]
    fn a_timer_that_is_over_denies_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        // It takes the connection, and never answers.
        let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let verdict = ask(
            &told(Host::ClaudeCode),
            &options(Some(Duration::ZERO), &socket),
        );
        let Verdict::Deny { reason } = verdict else {
            panic!("{verdict:?}");
        };
        assert!(reason.contains("did not answer in time"), "{reason}");
    }
}
