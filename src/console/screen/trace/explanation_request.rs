//! Explanation request for an event of the record.

use serde_json::{Value, json};

use super::{TracePane, TraceScreen};
use crate::base::id::SessionId;
use crate::engine::explanation::{ExplainQuestion, ExplainedSession, HypotheticalSession};
use crate::runtime::snapshot::RuntimeSnapshot;
use crate::trace::details::Details;
use crate::trace::event::Event;

/// Explanation request: the question to evaluate, with its title and a note.
#[derive(Debug, PartialEq)]
pub(crate) struct ExplanationRequest {
    pub(crate) question: ExplainQuestion,
    /// Subject of the explanation.
    pub(crate) title: String,
    /// Note that the operator needs to interpret the explanation.
    pub(crate) note: String,
}

impl TraceScreen {
    /// Returns the explanation request for the selected event.
    ///
    /// # Errors
    /// The reason why the event has nothing to explain.
    pub(crate) fn explanation_request(
        &self,
        snapshot: &RuntimeSnapshot,
    ) -> Result<ExplanationRequest, String> {
        let opened = self.opened.as_ref();
        let opened = opened.filter(|_| matches!(self.pane, TracePane::Spans | TracePane::Event));
        let full_event = opened.and_then(|opened| opened.full_event());
        let full_event = full_event.ok_or("choose an event of a session first")?;
        of(
            &full_event.event,
            &opened
                .map(|opened| opened.session.agent.clone())
                .unwrap_or_default(),
            snapshot,
        )
        .ok_or_else(|| "this event has no request or checkpoint".to_owned())
    }
}

fn of(event: &Event, agent: &str, snapshot: &RuntimeSnapshot) -> Option<ExplanationRequest> {
    let text = |key: &str| event.payload.get(key).and_then(Value::as_str);
    let rule = text("checkpoint_id").or_else(|| text("policy_id"));
    if let Some(gate) = rule.and_then(|id| find_held(&event.session_id, id, snapshot)) {
        return Some(ExplanationRequest {
            title: format!("{} {}", gate.id, gate.action()),
            question: ExplainQuestion::Held(gate.id.clone()),
            note: HELD_NOTE.to_owned(),
        });
    }
    let data = event.payload.get("trigger_data");
    let of_data = |key: &str| data.and_then(|data| data.get(key));
    let action = text("action_type")
        .or_else(|| text("blocked_action"))
        .or_else(|| of_data("action_id").and_then(Value::as_str))?;
    let params = Details::of(event).params();
    let lives = snapshot
        .sessions
        .iter()
        .any(|session| session.id == event.session_id);
    let asker = if lives {
        ExplainedSession::Session(event.session_id.clone())
    } else {
        ExplainedSession::Imagined(HypotheticalSession {
            agent: Some(agent.to_owned()),
            ..HypotheticalSession::default()
        })
    };
    let session = if lives {
        "in the session's current state"
    } else {
        "in a simulated session past its start gates (its own ended)"
    };
    let without = match &params {
        Some(_) => "",
        None => " The event records no parameters, so none are used.",
    };
    let left_out = match event.payload.get("redacted").and_then(Value::as_array) {
        Some(list) if !list.is_empty() => " Some values are redacted in the record.",
        Some(_) | None => "",
    };
    Some(ExplanationRequest {
        title: format!("#{} {action}", event.sequence),
        question: ExplainQuestion::Action {
            action: action.to_owned(),
            params: params.unwrap_or_else(|| json!({})),
            asker,
        },
        note: format!("Evaluated with the loaded Atlases, {session}.{without}{left_out}"),
    })
}

/// Note for the explanation of a held request.
pub(crate) const HELD_NOTE: &str =
    "Evaluated for the time of the request, with the session's current state.";

fn find_held<'s>(
    session: &SessionId,
    checkpoint: &str,
    snapshot: &'s RuntimeSnapshot,
) -> Option<&'s crate::engine::held::Held> {
    let mut held = snapshot.held.iter();
    let found = held.find(|request| {
        request.session == *session
            && request
                .gates
                .iter()
                .any(|gate| gate.origin.id() == checkpoint)
    });
    found.map(std::convert::AsRef::as_ref)
}
