//! Completion of actions that were allowed to run.

use crate::atlas::redaction::Redactor;
use crate::base::limits::MAX_TEXT_BYTES;
use crate::trace::event::{ActionCompleted as CompletedRecord, ErrorDetail};

use super::events::{RunResult, evaluate_event, run_action_post_checkpoints};
use crate::engine::admission::access::deny_unknown_session;
use crate::engine::admission::misuse::{Misuse, record_misuse};
use crate::engine::command::{
    ActionCompletion, ActionError, AgentReply, DeliveryTime, DenyCode, Injected, ReplyId,
};
use crate::engine::evaluation::TriggerEvent;
use crate::engine::extensions::required_calls::HandledCheckpoints;
use crate::engine::injection::withholding::take_pending_injections;
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::records::redaction::redaction_list;
use crate::engine::sessions::lifecycle::{millis, session_position};
use crate::engine::sessions::session::RunningAction;
use crate::engine::transaction::{SpanPosition, Transaction};

pub(crate) fn complete_action(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    completed: &ActionCompletion,
) -> StageResult {
    let handled = evaluate_completion(tx, reply_id, completed)?;
    let sessions = &mut tx.engine.state.sessions;
    let Some(session) = sessions.get_mut(&completed.session) else {
        return Ok(());
    };
    let root = session_position(session);
    let Some(running) = session.running.remove(&completed.execution) else {
        return Ok(());
    };
    let position = SpanPosition {
        session: root.session.clone(),
        trace_id: running.trace_id.clone(),
        span_id: running.span_id.clone(),
        parent: Some(root.span_id),
    };
    let run = match completed.result {
        Ok(_) => RunResult::Succeeded,
        Err(_) => RunResult::Failed,
    };
    let record = completed_record(tx, &running, &completed.result);
    tx.record_below(&position, record);
    run_action_post_checkpoints(tx, &position, &running.action, run, handled);
    let injected = match completed.delivery {
        // A later reply may never come.
        DeliveryTime::Now => take_pending_injections(tx, &position.session),
        DeliveryTime::Later => Injected::default(),
    };
    tx.mark_changed(&position.session);
    tx.reply_to_agent(reply_id, AgentReply::Completed(injected));
    Ok(())
}

/// Admits the report of a run, and evaluates the checkpoints that fire after it.
fn evaluate_completion(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    completed: &ActionCompletion,
) -> StageResult<HandledCheckpoints> {
    let Some(session) = tx.live_session(&completed.session) else {
        deny_unknown_session(tx, reply_id, &completed.session);
        return Err(StageExit::Finished);
    };
    if is_too_long(completed) {
        let reason = format!("the result of a run must have at most {MAX_TEXT_BYTES} bytes");
        tx.deny(reply_id, DenyCode::BadRequest, reason);
        return Err(StageExit::Finished);
    }
    let Some(running) = session.running.get(&completed.execution) else {
        let message = format!(
            "run `{}` was not allowed, or is already complete",
            completed.execution
        );
        record_misuse(tx, &completed.session, Misuse::Execution, message.clone());
        tx.deny(reply_id, DenyCode::BadRequest, message);
        return Err(StageExit::Finished);
    };
    let occasion = match completed.result {
        Ok(_) => TriggerEvent::ActionSucceeded(&running.action),
        Err(_) => TriggerEvent::ActionFailed(&running.action),
    };
    evaluate_event(tx, &completed.session, occasion)
}

/// Builds the record of a run, with redacted texts.
fn completed_record(
    tx: &Transaction<'_>,
    running: &RunningAction,
    result: &Result<String, ActionError>,
) -> CompletedRecord {
    let mut redactor = Redactor::new(&tx.engine.atlases, Some(&running.action));
    let (result_summary, error) = match result {
        Ok(summary) if summary.is_empty() => (None, None),
        Ok(summary) => (Some(redactor.redact_text("result_summary", summary)), None),
        Err(error) => {
            let error = ErrorDetail {
                code: redactor.redact_text("error.code", &error.code),
                message: redactor.redact_text("error.message", &error.message),
            };
            (None, Some(error))
        }
    };
    CompletedRecord {
        action_type: running.action.clone(),
        success: result.is_ok(),
        duration_ms: millis(tx.now, running.since),
        result_summary,
        error,
        redacted: redaction_list(redactor.into_redactions()),
    }
}

/// Returns whether a result or an error exceeds the text limit.
fn is_too_long(completed: &ActionCompletion) -> bool {
    let length = match &completed.result {
        Ok(summary) => summary.len(),
        Err(error) => error.code.len() + error.message.len(),
    };
    length > MAX_TEXT_BYTES
}
