//! An extension that says yes, no, nothing or something too late, as its dice fall; and what it said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cra_core::base::clock::Boxed;
use cra_core::engine::extensions::{CallQuestion, ExtensionCall};
use cra_core::runtime::extension::{Client, Extension, Registry, Role};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Dice, RequestKey};

/// Gates that an extension has a say in, or that agents answer themselves.
pub(super) const OUTSIDE: &str = r#"
atlas_version: "1.0"
atlas_id: com.example.outside
version: "1"
name: Outside
unknown_actions: allow
checkpoints:
  - { checkpoint_id: check, handler: check, trigger: { type: action_pre, patterns: ["ticket.get"] } }
  - { checkpoint_id: mood, mode: blocking, trigger: { type: custom, trigger_id: mood, on: [input] } }
  - checkpoint_id: own
    mode: blocking
    respondent: agent
    trigger: { type: action_pre, patterns: ["ticket.comment"] }
    questions: [{ question_id: why, question: Why?, validation: { custom_validator: fair } }]
  - { checkpoint_id: told, mode: blocking, respondent: either, trigger: { type: action_post, patterns: ["ticket.comment"] } }
"#;

/// More late answers than these are given up.
const MOST_LATE: usize = 8;

/// Answers of the extension.
#[derive(Default)]
pub(super) struct ExtensionLog {
    /// Number of times that a handler let exactly this request continue.
    pub(super) cleared: BTreeMap<RequestKey, u64>,
    /// Number of valid answers about exactly this request.
    pub(super) fair: BTreeMap<RequestKey, u64>,
    /// Tells whether an input is known to be harmless.
    pub(super) calm: BTreeMap<String, bool>,
    /// Number of calls without an answer.
    pub(super) silent: u64,
    /// Answers that are still to come, with the session that waits.
    late: Vec<(String, oneshot::Sender<()>)>,
}

impl ExtensionLog {
    /// Sessions that wait for an answer.
    pub(super) fn sessions_that_wait(&self) -> BTreeSet<String> {
        let sessions = self.late.iter().map(|(session, _)| session.clone());
        sessions.collect()
    }
}

/// The extension.
#[derive(Clone)]
pub(super) struct UnreliableExtension(Arc<Mutex<(Dice, ExtensionLog)>>);

impl UnreliableExtension {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new((Dice(seed), ExtensionLog::default()))))
    }

    pub(super) fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        let (handler, trigger, validator) = (Role::Handler, Role::Trigger, Role::Validator);
        for (role, name) in [(handler, "check"), (trigger, "mood"), (validator, "fair")] {
            let hour = Duration::from_hours(1);
            let registered = registry.register(role, name, Arc::new(self.clone()), hour);
            registered.unwrap();
        }
        registry
    }

    pub(super) fn with_log<T>(&self, look: impl FnOnce(&ExtensionLog) -> T) -> T {
        look(&self.0.lock().unwrap().1)
    }

    /// Drops the oldest call without an answer.
    pub(super) fn give_up(&self) {
        let log = &mut self.0.lock().unwrap().1;
        if !log.late.is_empty() {
            let _ = log.late.remove(0).1.send(());
        }
    }

    fn answer(&self, call: &ExtensionCall) -> Result<Value, Option<oneshot::Receiver<()>>> {
        let mut guard = self.0.lock().unwrap();
        let (dice, log) = &mut *guard;
        let rolled = dice.roll(12);
        if rolled >= 9 {
            log.silent += 1;
            if rolled == 9 || log.late.len() >= MOST_LATE {
                return Err(None);
            }
            let (late, waits) = oneshot::channel();
            log.late.push((call.context.session.id.to_string(), late));
            return Err(Some(waits));
        }
        let about = call.context.action.as_ref().map(|action| {
            let session = call.context.session.id.to_string();
            (
                session,
                action.action_type.clone(),
                action.params.to_string(),
            )
        });
        Ok(match (&call.question, about) {
            (CallQuestion::Handler, Some(about)) if rolled < 6 => {
                *log.cleared.entry(about).or_default() += 1;
                json!({"continue": true})
            }
            (CallQuestion::Handler, _) if rolled < 8 => {
                json!({"continue": true, "policy_decision": {"decision": "require_approval"}})
            }
            (CallQuestion::Handler, _) => json!({"continue": false, "reason": "not now"}),
            (CallQuestion::Validator { .. }, Some(about)) if rolled < 6 => {
                *log.fair.entry(about).or_default() += 1;
                json!(true)
            }
            (CallQuestion::Validator { .. }, _) => json!({"valid": false, "reason": "try again"}),
            (CallQuestion::Trigger { .. }, _) => {
                let text = call
                    .context
                    .input
                    .as_ref()
                    .map(|input| input.content.clone());
                log.calm.insert(text.unwrap_or_default(), rolled < 6);
                json!(rolled >= 6)
            }
        })
    }
}

impl Extension for UnreliableExtension {
    fn call<'a>(&'a self, call: &'a ExtensionCall, _: Client) -> Boxed<'a, Result<Value, String>> {
        Box::pin(async move {
            let late = match self.answer(call) {
                Ok(answer) => return Ok(answer),
                Err(late) => late,
            };
            if let Some(late) = late {
                let _ = late.await;
            }
            Err("no answer".to_owned())
        })
    }
}
