//! Records of extensions: their answers at checkpoints, and their own events.

use serde_json::{Map, Value, json};

use crate::trace::event::{
    Payload, PluginEvent, PluginLoaded, REDACTED, Redaction, RegisteredEvent,
};

use super::TraceNote;
use super::handler_outcomes::HandlerOutcome;
use crate::engine::evaluation::fired_checkpoint::OwnedFiredCheckpoint;
use crate::engine::gates::held::ActionCall;
use crate::engine::records::redaction::{new_redactor, redact_object};
use crate::engine::transaction::{SpanPosition, Transaction};

/// Records a handler's answer, and the events it wants recorded.
pub(crate) fn record_handler_outcome(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    call: Option<&ActionCall>,
    fired: &OwnedFiredCheckpoint,
    outcome: &HandlerOutcome,
) {
    let took = u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX);
    let (approved, reason) = match &outcome.result {
        Ok(result) => (result.proceed, result.block_reason.clone()),
        Err(fault) => (false, Some(fault.clone())),
    };
    let data = json!({
        "checkpoint_id": fired.checkpoint.id,
        "approved": approved,
        "reason": reason,
        "duration_ms": took,
    });
    let event = plugin_event(tx, call, &outcome.handler, "external_validation", &data);
    tx.record_below(position, event);
    let notes = outcome
        .result
        .iter()
        .flat_map(|result| &result.trace_events);
    for note in notes {
        record_extension_event(tx, position, call, &outcome.handler, note);
    }
}

/// Records an event of an extension. Nothing of it is lost.
///
/// If its type is registered and the event matches the type, it is recorded under that type; otherwise as
/// a plugin event.
fn record_extension_event(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    call: Option<&ActionCall>,
    handler: &str,
    note: &TraceNote,
) {
    let payload = note.payload.clone();
    let Some(known) = tx.engine.extensions.events.get(&note.event_type) else {
        let data = Value::Object(payload);
        let event = plugin_event(tx, call, handler, &note.event_type, &data);
        tx.record_below(position, event);
        return;
    };
    let durability = known.durability();
    let fault = note
        .fault
        .clone()
        .or_else(|| known.schema.first_mismatch(&payload));
    let (fields, redacted) = redact_object(new_redactor(tx, call), "", &payload);
    let registered = RegisteredEvent::new(&note.event_type, with_list(fields, &redacted));
    let event: Payload = match (fault, registered) {
        (None, Some(registered)) => registered.into(),
        (fault, _) => {
            let fault =
                fault.unwrap_or_else(|| "events of this type cannot be recorded".to_owned());
            let data = json!({ "refused": fault, "payload": payload });
            let event = plugin_event(tx, call, handler, &note.event_type, &data);
            event.into()
        }
    };
    let span = tx.new_span();
    tx.record_as(&position.child(span), event, durability);
}

fn plugin_event(
    tx: &Transaction<'_>,
    call: Option<&ActionCall>,
    plugin: &str,
    custom_type: &str,
    data: &Value,
) -> PluginEvent {
    let data = data.as_object().cloned().unwrap_or_default();
    let (data, redacted) = redact_object(new_redactor(tx, call), "data", &data);
    PluginEvent {
        plugin_name: plugin.to_owned(),
        custom_type: custom_type.to_owned(),
        data,
        numbers_as_text: Vec::new(),
        redacted,
    }
}

/// Records the plugins that are loaded for a session and were not before.
pub(crate) fn record_loaded_plugins(tx: &mut Transaction<'_>, position: &SpanPosition) {
    for plugin in tx.engine.extensions.plugins.clone() {
        let Some(session) = tx.state().sessions.get_mut(&position.session) else {
            return;
        };
        let name = format!("{} {}", plugin.name, plugin.version);
        if session.loaded.insert(name) {
            let record = PluginLoaded {
                plugin_name: plugin.name,
                plugin_version: plugin.version,
                capabilities: plugin.capabilities,
            };
            tx.record_below(position, record);
        }
    }
}

/// Adds the list of redactions to the fields of a registered event, if there are any.
fn with_list(mut fields: Map<String, Value>, redacted: &[Redaction]) -> Map<String, Value> {
    if !redacted.is_empty() {
        let listed = serde_json::to_value(redacted).unwrap_or_default();
        fields.insert(REDACTED.to_owned(), listed);
    }
    fields
}
