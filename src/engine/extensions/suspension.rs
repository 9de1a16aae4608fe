//! Commands that wait for extensions.
//!
//! If a stage of a command needs answers of extensions, the command waits until they have answered, and is
//! then executed as if it had just arrived, with their answers.
//!
//! The attempt of an action is on record before the extensions are called. Stages that are finished stay done, such as
//! the firing of due intervals. So no stage is half done if the process ends meanwhile. Later commands of the session
//! wait behind the suspended one: a fast request must not overtake the input whose gate would have held it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::base::id::SessionId;
use crate::base::limits::{MAX_EXTENSION_BYTES, MAX_HELD_PER_SESSION, MAX_PARAMS_DEPTH};

use super::{CallId, CallQuestion, CallResult, CheckpointContext, ExtensionCall};
use crate::engine::admission::request_admission::is_deeper;
use crate::engine::command::{DenyCode, Effect, EngineCommand, ReplyId};
use crate::engine::evaluation::fired_checkpoint::OwnedFiredCheckpoint;
use crate::engine::pipeline::{StageExit, execute_command};
use crate::engine::records::attempts::record_pending_attempt;
use crate::engine::transaction::Transaction;

/// Answers of extensions, by call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExtensionAnswers(BTreeMap<CallKey, CallResult>);

impl ExtensionAnswers {
    pub(crate) fn get(&self, key: &CallKey) -> Option<&CallResult> {
        self.0.get(key)
    }

    /// Returns whether no extension was called.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the answers of the handlers of fired checkpoints.
    pub(crate) fn remove_handlers_of(&mut self, fired: &[OwnedFiredCheckpoint]) {
        let own = |key: &CallKey| {
            let mut fired = fired.iter();
            fired.any(|fired| {
                key.atlas_id == fired.atlas_id && key.checkpoint_id == fired.checkpoint.id
            })
        };
        self.0
            .retain(|key, _| key.about != CallPurpose::Handler || !own(key));
    }

    /// Returns the duration of a checkpoint's trigger call.
    pub(crate) fn trigger_took(&self, atlas_id: &str, checkpoint_id: &str) -> Duration {
        let mut answers = self.0.iter();
        let own = answers.find(|(key, _)| {
            key.about == CallPurpose::Trigger
                && key.atlas_id == atlas_id
                && key.checkpoint_id == checkpoint_id
        });
        own.map_or(Duration::ZERO, |(_, returned)| returned.duration)
    }

    /// Returns the total duration of all trigger calls.
    pub(crate) fn triggers_took(&self) -> Duration {
        let triggers = self
            .0
            .iter()
            .filter(|(key, _)| key.about == CallPurpose::Trigger);
        triggers.map(|(_, returned)| returned.duration).sum()
    }
}

/// Key of an extension call: the extension, the checkpoint, and the purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallKey {
    pub(crate) atlas_id: String,
    pub(crate) checkpoint_id: String,
    pub(crate) extension: String,
    pub(crate) about: CallPurpose,
}

/// Purpose of an extension call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallPurpose {
    /// Firing of a trigger.
    Trigger,
    /// Action to take at a checkpoint.
    Handler,
    /// Validity of the answer to this question.
    Answer(String),
}

/// An extension call that has to be made.
pub(crate) struct RequiredCall {
    pub(crate) key: CallKey,
    pub(crate) question: CallQuestion,
    pub(crate) context: CheckpointContext,
}

/// All commands that wait for extensions.
#[derive(Debug, Default)]
pub(crate) struct SuspendedCommands {
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
    pub(crate) fn mark_calls_outdated(&mut self) {
        for suspended in &mut self.waiting {
            suspended.asked_under = CallValidity::Outdated;
        }
    }

    /// Returns every waiting command.
    pub(crate) fn commands_mut(&mut self) -> impl Iterator<Item = &mut EngineCommand> {
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

/// Executes a command, as soon as the extensions that take part have answered.
pub(crate) fn execute_or_queue(tx: &mut Transaction<'_>, command: EngineCommand) {
    let session = command.session().cloned();
    if let Some(session) = session
        && tx.engine.state.suspension.blocks_session(&session)
    {
        queue_command(tx, session, command);
        return;
    }
    execute_or_suspend(tx, command, ExtensionAnswers::default());
}

/// Handles the result of an extension call.
pub(crate) fn handle_call_result(tx: &mut Transaction<'_>, id: CallId, mut returned: CallResult) {
    let waiting = &mut tx.state().suspension.waiting;
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
    execute_or_suspend(tx, suspended.command, answers);
    if let Some(session) = suspended.session {
        resume_queued(tx, &session);
    }
}

/// Drops the commands of a caller that is gone, if they are not yet executed.
pub(crate) fn drop_suspended(tx: &mut Transaction<'_>, reply_id: ReplyId) {
    let suspension = &mut tx.state().suspension;
    // Only commands that could let an action run are dropped, because the caller could not run it. All
    // other commands report events that did happen.
    let concerns = |command: &EngineCommand| match command {
        EngineCommand::RequestAction(other_id, _) | EngineCommand::Answer(other_id, _) => {
            *other_id == reply_id
        }
        EngineCommand::StartSession(..)
        | EngineCommand::EndSession(..)
        | EngineCommand::CompleteAction(..)
        | EngineCommand::Input(..)
        | EngineCommand::ReportError(..)
        | EngineCommand::RequestContext(..)
        | EngineCommand::Report(..)
        | EngineCommand::CallerDisconnected(_)
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
        .extract_if(.., |suspended| concerns(&suspended.command))
        .collect();
    for behind in suspension.queued.values_mut() {
        behind.retain(|command| !concerns(command));
    }
    for session in dropped
        .into_iter()
        .filter_map(|suspended| suspended.session)
    {
        resume_queued(tx, &session);
    }
}

/// Executes a command, or suspends it until extensions have answered.
///
/// A command can start another one in the same transaction, such as a parked request. So the data of the outer command
/// is put aside here and restored afterwards.
fn execute_or_suspend(tx: &mut Transaction<'_>, command: EngineCommand, answers: ExtensionAnswers) {
    let outer_answers = std::mem::replace(&mut tx.answers, answers);
    // The contexts of one command do not use up the budget of another.
    let outer_injected_bytes = std::mem::take(&mut tx.injected_bytes);
    let outer_withheld = tx.withheld_for_gate.take();
    let executed = execute_command(tx, &command);
    tx.withheld_for_gate = outer_withheld;
    let own_answers = std::mem::replace(&mut tx.answers, outer_answers);
    tx.injected_bytes = outer_injected_bytes;
    if let Err(StageExit::Suspended(calls)) = executed {
        suspend_command(tx, command, own_answers, calls);
    }
}

/// Suspends a command until extensions have answered these calls.
fn suspend_command(
    tx: &mut Transaction<'_>,
    command: EngineCommand,
    answers: ExtensionAnswers,
    calls: Vec<RequiredCall>,
) {
    record_pending_attempt(tx, &command);
    let mut open = BTreeMap::new();
    for RequiredCall {
        key,
        question,
        context,
    } in calls
    {
        let suspension = &mut tx.state().suspension;
        suspension.calls_made += 1;
        let id = CallId(suspension.calls_made);
        let name = key.extension.clone();
        open.insert(id, key);
        tx.push(Effect::CallExtension(ExtensionCall {
            id,
            name,
            question,
            context,
        }));
    }
    let session = command.session().cloned();
    tx.state().suspension.waiting.push(SuspendedCommand {
        command,
        session,
        answers,
        open,
        asked_under: CallValidity::Current,
    });
}

fn queue_command(tx: &mut Transaction<'_>, session: SessionId, command: EngineCommand) {
    let behind = tx.state().suspension.queued.entry(session).or_default();
    if behind.len() < MAX_HELD_PER_SESSION {
        behind.push_back(command);
    } else if let Some(reply_id) = command.reply_id() {
        let reason = format!("{MAX_HELD_PER_SESSION} requests of this session are already waiting");
        tx.deny(reply_id, DenyCode::Overload, reason);
    }
}

/// Executes the commands that waited behind a command that is no longer suspended.
fn resume_queued(tx: &mut Transaction<'_>, session: &SessionId) {
    while !tx.engine.state.suspension.blocks_session(session) {
        let behind = tx.state().suspension.queued.get_mut(session);
        let Some(next) = behind.and_then(VecDeque::pop_front) else {
            tx.state().suspension.queued.remove(session);
            return;
        };
        execute_or_suspend(tx, next, ExtensionAnswers::default());
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
