//! Records of extensions: their answers at checkpoints, and their own events.

use serde_json::{Map, Value, json};

use crate::trace::event::{
    Payload, PluginEvent, PluginLoaded, REDACTED, Redaction, RegisteredEvent,
};

use super::extension::TraceNote;
use super::fired_checkpoint::OwnedFiredCheckpoint;
use super::handler_outcomes::HandlerOutcome;
use super::held::ActionCall;
use super::redacted_records::scrubbed;
use super::transaction::{SpanPosition, Transaction};

impl Transaction<'_> {
    /// Records a handler's answer, and the events it wants recorded.
    pub(super) fn record_handler_outcome(
        &mut self,
        place: &SpanPosition,
        call: Option<&ActionCall>,
        fired: &OwnedFiredCheckpoint,
        said: &HandlerOutcome,
    ) {
        let took = u64::try_from(said.duration.as_millis()).unwrap_or(u64::MAX);
        let (approved, reason) = match &said.result {
            Ok(result) => (result.proceed, result.block_reason.clone()),
            Err(fault) => (false, Some(fault.clone())),
        };
        let data = json!({
            "checkpoint_id": fired.checkpoint.id,
            "approved": approved,
            "reason": reason,
            "duration_ms": took,
        });
        let event = self.plugin_event(call, &said.handler, "external_validation", &data);
        self.record_below(place, event);
        let notes = said.result.iter().flat_map(|result| &result.trace_events);
        for note in notes {
            self.record_extension_event(place, call, &said.handler, note);
        }
    }

    /// Records an event of an extension. Nothing of it is lost.
    ///
    /// If its type is registered and the event matches the type, it is recorded under that type; otherwise as
    /// a plugin event.
    fn record_extension_event(
        &mut self,
        place: &SpanPosition,
        call: Option<&ActionCall>,
        handler: &str,
        note: &TraceNote,
    ) {
        let payload = note.payload.clone();
        let Some(known) = self.engine.extensions.events.get(&note.event_type) else {
            let data = Value::Object(payload);
            let event = self.plugin_event(call, handler, &note.event_type, &data);
            self.record_below(place, event);
            return;
        };
        let durability = known.durability();
        let fault = note
            .fault
            .clone()
            .or_else(|| known.schema.first_mismatch(&payload));
        let (fields, redacted) = scrubbed(self.redactor(call), "", &payload);
        let registered = RegisteredEvent::new(&note.event_type, with_list(fields, &redacted));
        let event: Payload = match (fault, registered) {
            (None, Some(registered)) => registered.into(),
            (fault, _) => {
                let fault =
                    fault.unwrap_or_else(|| "events of this type cannot be recorded".to_owned());
                let data = json!({ "refused": fault, "payload": payload });
                let event = self.plugin_event(call, handler, &note.event_type, &data);
                event.into()
            }
        };
        let span = self.new_span();
        self.record_as(&place.child(span), event, durability);
    }

    fn plugin_event(
        &self,
        call: Option<&ActionCall>,
        plugin: &str,
        custom_type: &str,
        data: &Value,
    ) -> PluginEvent {
        let data = data.as_object().cloned().unwrap_or_default();
        let (data, redacted) = scrubbed(self.redactor(call), "data", &data);
        PluginEvent {
            plugin_name: plugin.to_owned(),
            custom_type: custom_type.to_owned(),
            data,
            numbers_as_text: Vec::new(),
            redacted,
        }
    }

    /// Records the plugins that are loaded for a session and were not before.
    pub(super) fn record_loaded_plugins(&mut self, place: &SpanPosition) {
        for plugin in self.engine.extensions.plugins.clone() {
            let Some(session) = self.state().sessions.get_mut(&place.session) else {
                return;
            };
            let name = format!("{} {}", plugin.name, plugin.version);
            if session.loaded.insert(name) {
                let record = PluginLoaded {
                    plugin_name: plugin.name,
                    plugin_version: plugin.version,
                    capabilities: plugin.capabilities,
                };
                self.record_below(place, record);
            }
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
