//! Commands that wait for extensions.
//!
//! Before a command is executed, the engine checks whether extensions take part in it. If so, the command
//! waits until they have answered, and is then executed as if it had just arrived, with their answers.
//!
//! The attempt of an action is on record before the extensions are called. Apart from that, nothing is
//! recorded or changed before they answer, so nothing is half done if the process ends meanwhile. Later
//! commands of the session wait behind it: a fast request must not overtake the input whose gate would have
//! held it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::base::id::SessionId;
use crate::base::limits::{MAX_EXTENSION_BYTES, MAX_HELD_PER_SESSION, MAX_PARAMS_DEPTH};

use super::action::is_deeper;
use super::command::{CallerId, DenyCode, Effect, EngineCommand};
use super::extension::{CallId, CallQuestion, CallResult, CheckpointContext, ExtensionCall};
use super::transaction::Transaction;

/// Answers of extensions, by call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ExtensionAnswers(BTreeMap<CallKey, CallResult>);

impl ExtensionAnswers {
    pub(super) fn get(&self, key: &CallKey) -> Option<&CallResult> {
        self.0.get(key)
    }

    /// Returns whether no extension was called.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the duration of a checkpoint's trigger call.
    pub(super) fn trigger_took(&self, atlas_id: &str, checkpoint_id: &str) -> Duration {
        let mut answers = self.0.iter();
        let own = answers.find(|(key, _)| {
            key.about == CallPurpose::Trigger
                && key.atlas_id == atlas_id
                && key.checkpoint_id == checkpoint_id
        });
        own.map_or(Duration::ZERO, |(_, returned)| returned.duration)
    }

    /// Returns the total duration of all trigger calls.
    pub(super) fn triggers_took(&self) -> Duration {
        let triggers = self
            .0
            .iter()
            .filter(|(key, _)| key.about == CallPurpose::Trigger);
        triggers.map(|(_, returned)| returned.duration).sum()
    }
}

/// Key of an extension call: the extension, the checkpoint, and the purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallKey {
    pub(super) atlas_id: String,
    pub(super) checkpoint_id: String,
    pub(super) extension: String,
    pub(super) about: CallPurpose,
}

/// Purpose of an extension call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallPurpose {
    /// Firing of a trigger.
    Trigger,
    /// Action to take at a checkpoint.
    Handler,
    /// Validity of the answer to this question.
    Answer(String),
}

/// An extension call that has to be made.
pub(super) struct RequiredCall {
    pub(super) key: CallKey,
    pub(super) question: CallQuestion,
    pub(super) context: CheckpointContext,
}

/// All commands that wait for extensions.
#[derive(Debug, Default)]
pub(super) struct SuspendedCommands {
    /// Commands that wait for answers.
    waiting: Vec<SuspendedCommand>,
    /// Later commands of the same sessions, in the order they arrived.
    queued: BTreeMap<SessionId, VecDeque<EngineCommand>>,
    calls_made: u64,
}

#[derive(Debug)]
struct SuspendedCommand {
    command: EngineCommand,
    /// The session whose later commands wait behind this one. A decision of an operator blocks no session.
    session: Option<SessionId>,
    answers: ExtensionAnswers,
    open: BTreeMap<CallId, CallKey>,
    asked_under: CallValidity,
}

/// The Atlases from which the open calls came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallValidity {
    /// The loaded ones.
    Current,
    /// Earlier ones: the answers do not count, and the calls are made again.
    Outdated,
}

impl SuspendedCommands {
    /// Marks all open calls as outdated, because other Atlases are loaded.
    pub(super) fn mark_calls_outdated(&mut self) {
        for suspended in &mut self.waiting {
            suspended.asked_under = CallValidity::Outdated;
        }
    }

    /// Returns every waiting command.
    pub(super) fn commands_mut(&mut self) -> impl Iterator<Item = &mut EngineCommand> {
        let waiting = self
            .waiting
            .iter_mut()
            .map(|suspended| &mut suspended.command);
        waiting.chain(self.queued.values_mut().flatten())
    }

    fn blocks_session(&self, session: &SessionId) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|suspended| suspended.session.as_ref() == Some(session))
    }
}

impl Transaction<'_> {
    /// Executes a command, as soon as the extensions that take part have answered.
    pub(super) fn start_command(&mut self, command: EngineCommand) {
        let session = command.session().cloned();
        if let Some(session) = session
            && self.engine.state.suspension.blocks_session(&session)
        {
            self.queue_command(session, command);
            return;
        }
        self.execute_or_suspend(command, ExtensionAnswers::default());
    }

    /// Handles the result of an extension call.
    pub(super) fn handle_call_result(&mut self, id: CallId, mut returned: CallResult) {
        let waiting = &mut self.state().suspension.waiting;
        let Some(index) = waiting
            .iter()
            .position(|suspended| suspended.open.contains_key(&id))
        else {
            return;
        };
        if let Some(fault) = answer_fault(&returned) {
            returned.outcome = Err(fault);
        }
        let Some(suspended) = waiting.get_mut(index) else {
            return;
        };
        if let Some(key) = suspended.open.remove(&id) {
            suspended.answers.0.insert(key, returned);
        }
        if !suspended.open.is_empty() {
            return;
        }
        let suspended = waiting.remove(index);
        let answers = match suspended.asked_under {
            CallValidity::Current => suspended.answers,
            CallValidity::Outdated => ExtensionAnswers::default(),
        };
        self.execute_or_suspend(suspended.command, answers);
        if let Some(session) = suspended.session {
            self.resume_queued(&session);
        }
    }

    /// Drops the commands of a caller that is gone, if they are not yet executed.
    pub(super) fn drop_suspended(&mut self, ask: CallerId) {
        let suspension = &mut self.state().suspension;
        // Only commands that could let an action run are dropped, because the caller could not run it. All
        // other commands report events that did happen.
        let asks = |command: &EngineCommand| match command {
            EngineCommand::RequestAction(asker, _) | EngineCommand::Answer(asker, _) => {
                *asker == ask
            }
            EngineCommand::StartSession(..)
            | EngineCommand::EndSession(..)
            | EngineCommand::CompleteAction(..)
            | EngineCommand::Input(..)
            | EngineCommand::ReportError(..)
            | EngineCommand::RequestContext(..)
            | EngineCommand::Report(..)
            | EngineCommand::CallerLeft(_)
            | EngineCommand::Decide(..)
            | EngineCommand::Operate(..)
            | EngineCommand::RecordFinding(..)
            | EngineCommand::RecordIntact
            | EngineCommand::ClockMoved(_)
            | EngineCommand::Resolve(..)
            | EngineCommand::Consult(..)
            | EngineCommand::DeadlineReached(_)
            | EngineCommand::ExtensionReturned(..) => false,
        };
        let dropped: Vec<_> = suspension
            .waiting
            .extract_if(.., |suspended| asks(&suspended.command))
            .collect();
        for behind in suspension.queued.values_mut() {
            behind.retain(|command| !asks(command));
        }
        for session in dropped
            .into_iter()
            .filter_map(|suspended| suspended.session)
        {
            self.resume_queued(&session);
        }
    }

    fn execute_or_suspend(&mut self, command: EngineCommand, answers: ExtensionAnswers) {
        let needed = self.required_calls(&command, &answers);
        if needed.is_empty() {
            let answers = std::mem::replace(&mut self.answers, answers);
            // The contexts of one command do not use up the budget of another.
            let handed = std::mem::take(&mut self.injected_bytes);
            let beside = self.withheld_for_gate.take();
            self.dispatch(command);
            self.withheld_for_gate = beside;
            self.answers = answers;
            self.injected_bytes = handed;
            return;
        }
        self.record_pending_attempt(&command);
        let mut open = BTreeMap::new();
        for RequiredCall {
            key,
            question,
            context,
        } in needed
        {
            let suspension = &mut self.state().suspension;
            suspension.calls_made += 1;
            let id = CallId(suspension.calls_made);
            let name = key.extension.clone();
            open.insert(id, key);
            self.push(Effect::CallExtension(ExtensionCall {
                id,
                name,
                question,
                context,
            }));
        }
        let session = command.session().cloned();
        self.state().suspension.waiting.push(SuspendedCommand {
            command,
            session,
            answers,
            open,
            asked_under: CallValidity::Current,
        });
    }

    fn queue_command(&mut self, session: SessionId, command: EngineCommand) {
        let behind = self.state().suspension.queued.entry(session).or_default();
        if behind.len() < MAX_HELD_PER_SESSION {
            behind.push_back(command);
        } else if let Some(ask) = command.caller() {
            let reason =
                format!("{MAX_HELD_PER_SESSION} requests of this session are already waiting");
            self.deny(ask, DenyCode::Overload, reason);
        }
    }

    /// Executes the commands that waited behind a command that is no longer suspended.
    fn resume_queued(&mut self, session: &SessionId) {
        while !self.engine.state.suspension.blocks_session(session) {
            let behind = self.state().suspension.queued.get_mut(session);
            let Some(next) = behind.and_then(VecDeque::pop_front) else {
                self.state().suspension.queued.remove(session);
                return;
            };
            self.execute_or_suspend(next, ExtensionAnswers::default());
        }
    }
}

/// Returns the reason why an answer cannot be used, regardless of its content.
fn answer_fault(returned: &CallResult) -> Option<String> {
    let answer = returned.outcome.as_ref().ok()?;
    if is_deeper(answer, MAX_PARAMS_DEPTH) {
        return Some(format!(
            "its answer is nested more than {MAX_PARAMS_DEPTH} levels deep"
        ));
    }
    let size = answer.to_string().len();
    (size > MAX_EXTENSION_BYTES)
        .then(|| format!("its answer has {size} bytes, more than {MAX_EXTENSION_BYTES}"))
}
