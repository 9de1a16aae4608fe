//! Completion of actions that were allowed to run.

use crate::atlas::redaction::Redactor;
use crate::base::limits::MAX_TEXT_BYTES;
use crate::trace::event::{ActionCompleted as CompletedRecord, ErrorDetail};

use super::command::{ActionCompletion, CallerId, DeliveryTime, DenyCode, Injected, Reply};
use super::events::RunResult;
use super::lifecycle::{millis, session_position};
use super::misuse::Misuse;
use super::redacted_records::redaction_list;
use super::transaction::{SpanPosition, Transaction};

impl Transaction<'_> {
    pub(super) fn complete_action(&mut self, ask: CallerId, completed: ActionCompletion) {
        if self.live_session(&completed.session).is_none() {
            self.deny_unknown_session(ask, &completed.session);
            return;
        }
        if is_too_long(&completed) {
            let reason = format!("the result of a run must have at most {MAX_TEXT_BYTES} bytes");
            self.deny(ask, DenyCode::BadRequest, reason);
            return;
        }
        let sessions = &mut self.engine.state.sessions;
        let Some(session) = sessions.get_mut(&completed.session) else {
            return;
        };
        let root = session_position(session);
        let Some(running) = session.running.remove(&completed.execution) else {
            let message = format!(
                "run `{}` was not allowed, or is already complete",
                completed.execution
            );
            self.record_misuse(&completed.session, Misuse::Execution, message.clone());
            self.deny(ask, DenyCode::BadRequest, message);
            return;
        };
        let place = SpanPosition {
            session: root.session.clone(),
            trace_id: running.trace_id,
            span_id: running.span_id,
            parent: Some(root.span_id),
        };
        let mut redactor = Redactor::new(&self.engine.atlases, Some(&running.action));
        let (success, result_summary, error) = match completed.result {
            Ok(summary) if summary.is_empty() => (true, None, None),
            Ok(summary) => (
                true,
                Some(redactor.redact_text("result_summary", &summary)),
                None,
            ),
            Err(error) => (
                false,
                None,
                Some(ErrorDetail {
                    code: redactor.redact_text("error.code", &error.code),
                    message: redactor.redact_text("error.message", &error.message),
                }),
            ),
        };
        let redacted = redaction_list(redactor.into_redactions());
        let record = CompletedRecord {
            action_type: running.action,
            success,
            duration_ms: millis(self.now, running.since),
            result_summary,
            error,
            redacted,
        };
        let action = record.action_type.clone();
        self.record_below(&place, record);
        let run = if success {
            RunResult::Succeeded
        } else {
            RunResult::Failed
        };
        self.run_action_post_checkpoints(&place, &action, run);
        let given = match completed.delivery {
            // A later reply may never come.
            DeliveryTime::Now => self.take_pending_injections(&place.session),
            DeliveryTime::Later => Injected::default(),
        };
        self.mark_changed(&place.session);
        self.reply(ask, Reply::Completed(given));
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
