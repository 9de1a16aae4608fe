//! Delivery of contexts, and its records.
//!
//! Contract: `context_injected` is on record only for contexts that reached the agent with a reply. A context
//! is recorded when it is selected. If no reply carried it when the command ends, the record is retracted.
//! The context then waits in the session's pending injections, and is recorded when a reply carries it.

use crate::base::id::{EventId, SessionId, SpanId};
use crate::trace::event::{ContextInjected, ErrorOccurred, Payload};

use crate::engine::command::{Injected, InjectionRecord};
use crate::engine::gates::held::Held;
use crate::engine::sessions::lifecycle::add_pending_injections;
use crate::engine::transaction::{SpanPosition, Transaction};

/// Records contexts below `place`. Returns the data to retract the record, or to write it later.
pub(crate) fn record_injected(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    record: ContextInjected,
) -> InjectionRecord {
    let child_position = position.child(tx.new_span());
    let mut injection = InjectionRecord {
        event: None,
        session: child_position.session.clone(),
        trace_id: child_position.trace_id.clone(),
        span_id: child_position.span_id.clone(),
        parent: child_position.parent.clone(),
        context_ids: record.context_ids.clone(),
        atlas_ids: record.atlas_ids.clone(),
        total_size_bytes: record.total_size_bytes,
        trigger: record.trigger,
        checkpoint_type: record.checkpoint_type.clone(),
        cache_hit: record.cache_hit,
    };
    let event = tx.record_as(
        &child_position,
        record,
        crate::trace::event::Durability::Async,
    );
    injection.event = Some(event);
    injection
}

/// Counts and records the contexts of a reply that is sent now.
pub(crate) fn deliver_injected(tx: &mut Transaction<'_>, injected: &mut Injected) {
    for injection in std::mem::take(&mut injected.injections) {
        let delivered = injection.context_ids.len() as u64;
        let session = injection.session.clone();
        let recorded = injection.event.as_ref();
        if !recorded.is_some_and(|event| tx.has_recorded(event)) {
            let (position, record) = injection.into_record();
            tx.record(&position, record);
        }
        if let Some(session_state) = tx.state().sessions.get_mut(&session) {
            session_state.injected = session_state.injected.saturating_add(delivered);
        }
        tx.mark_changed(&session);
    }
}

/// Keeps the contexts of a reply whose caller cannot show them to the agent. A later reply delivers them.
pub(crate) fn defer_injected(tx: &mut Transaction<'_>, session: &SessionId, injected: Injected) {
    let deferred: Vec<_> = injected
        .contexts
        .iter()
        .map(|c| c.context_id.clone())
        .collect();
    let is_delivered = |id: &String| !deferred.contains(id);
    tx.amend_where(|draft| {
        if draft.session_id != *session {
            return;
        }
        match &mut draft.payload {
            Payload::ActionAttempted(attempted) => {
                if let Some(ids) = &mut attempted.context_injected {
                    ids.retain(is_delivered);
                }
                attempted.context_injected.take_if(|ids| ids.is_empty());
            }
            Payload::CheckpointPassed(passed) => passed.injected_contexts.retain(is_delivered),
            Payload::CheckpointCompleted(completed) => {
                completed.contexts_injected.retain(is_delivered);
            }
            _ => {}
        }
    });
    add_pending_injections(tx, session, injected);
}

/// Retracts the records of contexts that no reply of this command carried.
pub(crate) fn retract_undelivered_records(tx: &mut Transaction<'_>) {
    let sessions: Vec<SessionId> = tx.changed_sessions().cloned().collect();
    for session in sessions {
        let Some(session_state) = tx.state().sessions.get_mut(&session) else {
            continue;
        };
        let owed = session_state.pending_injections.injections.iter_mut();
        let events: Vec<_> = owed.filter_map(|owed| owed.event.take()).collect();
        for event in events {
            tx.unrecord(&event);
        }
    }
}

/// Takes the names of contexts out of the records of passed gates whose asker is gone: no answer takes the
/// contexts along now. The answer that does later has its own record.
pub(crate) fn unname_contexts(tx: &mut Transaction<'_>, held: &Held) {
    let is_gate = |span: &Option<SpanId>| {
        held.gates
            .iter()
            .any(|gate| Some(&gate.span_id) == span.as_ref())
    };
    tx.amend_where(|draft| {
        if !is_gate(&draft.parent_span_id) {
            return;
        }
        match &mut draft.payload {
            Payload::CheckpointPassed(passed) => passed.injected_contexts.clear(),
            Payload::CheckpointCompleted(completed) => completed.contexts_injected.clear(),
            _ => {}
        }
    });
}

/// Adds the contexts that an error was answered with to its record.
pub(crate) fn amend_error(tx: &mut Transaction<'_>, event: Option<&EventId>, injected: &Injected) {
    let Some(event) = event else { return };
    let provided = context_ids(injected);
    tx.amend(event, |payload| {
        if let Payload::ErrorOccurred(ErrorOccurred {
            context_provided, ..
        }) = payload
        {
            *context_provided = provided;
        }
    });
}

/// Adds the contexts of the reply to the record of an attempt.
pub(crate) fn amend_attempt(
    tx: &mut Transaction<'_>,
    event: Option<&EventId>,
    injected: &Injected,
) {
    let Some(event) = event else { return };
    let provided = context_ids(injected);
    tx.amend(event, |payload| {
        if let Payload::ActionAttempted(attempted) = payload {
            attempted.context_injected = provided;
        }
    });
}

/// Returns the contexts that a session received and that are still valid, sorted by name.
pub(crate) fn contexts_in_use(tx: &Transaction<'_>, session: &SessionId) -> Option<Vec<String>> {
    let session_state = tx.live_session(session)?;
    let owed = session_state.pending_injections.contexts.iter();
    let owed: Vec<_> = owed.map(|context| context.context_id.as_str()).collect();
    let mut ids = Vec::new();
    for atlas in tx.engine.atlases.iter() {
        let valid = std::time::Duration::from_secs(atlas.cache.context_ttl_seconds);
        for id in atlas.contexts.keys() {
            let handed = session_state
                .contexts
                .get(&super::contexts::context_key(&atlas.id, id));
            let in_use = handed.is_some_and(|at| tx.now.since(*at) < valid);
            if in_use && !owed.contains(&id.as_str()) && !ids.contains(id) {
                ids.push(id.clone());
            }
        }
    }
    ids.sort();
    (!ids.is_empty()).then_some(ids)
}

impl InjectionRecord {
    fn into_record(self) -> (SpanPosition, ContextInjected) {
        let position = SpanPosition {
            session: self.session,
            trace_id: self.trace_id,
            span_id: self.span_id,
            parent: self.parent,
        };
        let record = ContextInjected {
            context_ids: self.context_ids,
            atlas_ids: self.atlas_ids,
            total_size_bytes: self.total_size_bytes,
            trigger: self.trigger,
            checkpoint_type: self.checkpoint_type,
            cache_hit: self.cache_hit,
        };
        (position, record)
    }
}

fn context_ids(injected: &Injected) -> Option<Vec<String>> {
    let ids = injected.contexts.iter();
    let ids: Vec<_> = ids.map(|context| context.context_id.clone()).collect();
    (!ids.is_empty()).then_some(ids)
}
