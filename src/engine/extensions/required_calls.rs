//! Extension calls that a stage of a command needs before it can go on.
//!
//! A stage evaluates its checkpoints once, with the answers that extensions gave so far. If all answers are
//! there, the stage goes on with that evaluation. Otherwise it returns the missing calls and changes nothing;
//! the command is suspended, and executed again with the answers.
//!
//! Contract: the evaluation that decides is the evaluation that finds the missing calls. So every extension
//! that a stage consults was called, and every call is about a checkpoint that the stage evaluates.

use crate::atlas::model::{Checkpoint, Trigger};

use super::handler_outcomes::{HandlerOutcomes, collect_outcomes};
use super::suspension::{CallKey, CallPurpose, RequiredCall};
use super::{AgentInput, CallQuestion, CheckpointContext, RequestedAction, SessionState};
use crate::engine::evaluation::fired_checkpoint::OwnedFiredCheckpoint;
use crate::engine::gates::held::ActionCall;
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::sessions::session::Session;
use crate::engine::transaction::Transaction;

/// Fired checkpoints, with the answers of their handlers.
#[derive(Default)]
pub(crate) struct HandledCheckpoints {
    pub(crate) fired: Vec<OwnedFiredCheckpoint>,
    pub(crate) outcomes: HandlerOutcomes,
}

impl HandledCheckpoints {
    /// Returns whether a gate stands at these checkpoints, by their mode or by an answer of a handler.
    pub(crate) fn are_gated(&self) -> bool {
        self.outcomes.restricts() || self.fired.iter().any(OwnedFiredCheckpoint::is_gate)
    }
}

/// Subject of extension calls: the session, and its input or action.
#[derive(Clone, Copy)]
pub(crate) struct CallSubject<'s> {
    pub(crate) session: &'s Session,
    /// Text and source of the input.
    pub(crate) input: Option<(&'s str, &'s str)>,
    pub(crate) action: Option<&'s ActionCall>,
}

impl<'s> CallSubject<'s> {
    /// Creates a subject without input or action.
    pub(crate) fn of_session(session: &'s Session) -> Self {
        Self {
            session,
            input: None,
            action: None,
        }
    }
}

/// Fails with the calls to custom triggers that have not answered yet. They are called at the same time.
pub(crate) fn require_trigger_answers(
    tx: &Transaction<'_>,
    fired: &[OwnedFiredCheckpoint],
    subject: CallSubject<'_>,
) -> StageResult {
    let missing = fired.iter().filter_map(|fired| {
        let Trigger::Custom(trigger) = &fired.checkpoint.trigger else {
            return None;
        };
        let name = &trigger.trigger_id;
        let key = call_key(fired, name, CallPurpose::Trigger);
        let known = tx.engine.extensions.triggers.contains(name);
        (known && tx.answers.get(&key).is_none()).then(|| RequiredCall {
            key,
            question: CallQuestion::Trigger {
                params: trigger.params.clone(),
            },
            context: call_context(tx, subject, &fired.checkpoint, None, name),
        })
    });
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(StageExit::Suspended(missing))
    }
}

/// Collects the answers of the handlers of fired checkpoints. Fails with the next call if one is missing.
///
/// Handlers are called one after the other, because each sees the input as the previous one left it.
pub(crate) fn require_handler_answers(
    tx: &Transaction<'_>,
    fired: Vec<OwnedFiredCheckpoint>,
    subject: CallSubject<'_>,
) -> StageResult<HandledCheckpoints> {
    let known = collect_known_answers(tx, fired);
    let Some((index, handler)) = &known.outcomes.next else {
        return Ok(known);
    };
    let Some(next) = known.fired.get(*index) else {
        return Ok(known);
    };
    let modified = known.outcomes.input.clone();
    Err(StageExit::Suspended(vec![RequiredCall {
        key: call_key(next, handler, CallPurpose::Handler),
        question: CallQuestion::Handler,
        context: call_context(tx, subject, &next.checkpoint, modified, &next.why),
    }]))
}

/// Collects the answers of handlers for a stage that cannot wait. A handler that was not called stops the
/// agent.
pub(crate) fn collect_known_answers(
    tx: &Transaction<'_>,
    fired: Vec<OwnedFiredCheckpoint>,
) -> HandledCheckpoints {
    let checkpoints = fired
        .iter()
        .map(|fired| (fired.atlas_id.as_str(), &fired.checkpoint));
    let outcomes = collect_outcomes(tx, &tx.answers, checkpoints);
    HandledCheckpoints { fired, outcomes }
}

/// Returns the session data for extensions.
pub(crate) fn session_state(tx: &Transaction<'_>, session: &Session) -> SessionState {
    let atlases = tx.engine.atlases.iter();
    SessionState {
        id: session.id.clone(),
        agent: session.agent.clone(),
        intent: session
            .intent
            .as_ref()
            .map(|intent| intent.original.clone()),
        actions: session.conversation_actions(),
        atlas_ids: atlases.map(|atlas| atlas.id.clone()).collect(),
    }
}

fn call_key(fired: &OwnedFiredCheckpoint, extension: &str, about: CallPurpose) -> CallKey {
    CallKey {
        atlas_id: fired.atlas_id.clone(),
        checkpoint_id: fired.checkpoint.id.clone(),
        extension: extension.to_owned(),
        about,
    }
}

fn call_context(
    tx: &Transaction<'_>,
    subject: CallSubject<'_>,
    checkpoint: &Checkpoint,
    modified: Option<String>,
    trigger: &str,
) -> CheckpointContext {
    CheckpointContext {
        checkpoint_type: checkpoint.kind.to_owned(),
        checkpoint_id: checkpoint.id.clone(),
        trigger: trigger.to_owned(),
        input: subject.input.map(|(text, source)| AgentInput {
            content: modified.unwrap_or_else(|| text.to_owned()),
            source: source.to_owned(),
        }),
        action: subject.action.map(RequestedAction::of),
        session: session_state(tx, subject.session),
        cache: subject.session.context_ids(),
    }
}
