//! Admission of a request: a live session, a well-formed call, and the loaded Atlases.

use serde_json::Value;

use crate::base::canonical_json::canonical;
use crate::base::limits::{MAX_ACTION_LEN, MAX_PARAMS_BYTES, MAX_PARAMS_DEPTH};

use super::access::deny_unknown_session;
use crate::engine::command::{ActionRequest, DenyCode, EngineCommand, ReplyId};
use crate::engine::extensions::suspension::execute_or_queue;
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::sessions::lifecycle::adopt_loaded_atlases;
use crate::engine::transaction::Transaction;

/// Admits a request to run an action, or denies it.
pub(crate) fn admit_request(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
) -> StageResult {
    if tx.live_session(&request.session).is_none() {
        deny_unknown_session(tx, reply_id, &request.session);
        return Err(StageExit::Finished);
    }
    if let Some(fault) = call_fault(&request.action, &request.params) {
        tx.deny(reply_id, DenyCode::BadRequest, fault);
        return Err(StageExit::Finished);
    }
    if adopt_loaded_atlases(tx, &request.session)? {
        // The session's new start is finished. The request is handled as a command of its own.
        execute_or_queue(tx, EngineCommand::RequestAction(reply_id, request.clone()));
        return Err(StageExit::Finished);
    }
    Ok(())
}

/// Returns the reason why an action name or its parameters are malformed.
pub(crate) fn call_fault(action: &str, params: &Value) -> Option<String> {
    let length = action.chars().count();
    if length == 0 || length > MAX_ACTION_LEN {
        return Some(format!(
            "an action name must have 1 to {MAX_ACTION_LEN} characters, not {length}"
        ));
    }
    if !(params.is_object() || params.is_null()) {
        return Some("parameters must be a JSON object".to_owned());
    }
    // This comes first: parameters that are nested too deep must not be traversed.
    if is_deeper(params, MAX_PARAMS_DEPTH) {
        return Some(format!(
            "parameters must be nested at most {MAX_PARAMS_DEPTH} levels deep"
        ));
    }
    let size = canonical(params).len();
    (size > MAX_PARAMS_BYTES)
        .then(|| format!("parameters must have at most {MAX_PARAMS_BYTES} bytes, not {size}"))
}

/// Returns whether `value` is nested more than `levels` deep.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, levels - 1)),
    }
}
