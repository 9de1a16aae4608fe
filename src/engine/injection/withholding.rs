//! Contexts, guidance and grants that wait until a gate is passed.
//!
//! Contract: while a gate blocks a whole session (at its start, or after an input, an error, an interval or a
//! run), the session gets no contexts and no grants. What is selected meanwhile is kept in order, and
//! delivered when the last of these gates is passed; only then is it on record as injected. Locks and denials
//! apply at once. A refused session loses what was kept.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::atlas::document::GuidanceBlock;
use crate::base::id::{HeldRequestId, SessionId};
use crate::base::limits::{MAX_WITHHELD, MAX_WITHHELD_BYTES};
use crate::base::pattern::Patterns;
use crate::trace::event::{CheckpointSkipped, ContextInjected, InjectTrigger};

use super::contexts::{BudgetRule, Injection, fits_budget, inject_contexts};
use super::delivery::record_injected;
use crate::engine::command::{DenialReply, DenyCode, Injected, InjectedContext};
use crate::engine::gates::held::PassEffects;
use crate::engine::sessions::lifecycle::{add_pending_injections, session_position};
use crate::engine::sessions::session::{Session, StartState};
use crate::engine::transaction::{SpanPosition, Transaction};

/// An injection or grant that waits until a gate is passed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithheldInjection {
    /// Contexts of an Atlas, and guidance.
    Contexts {
        /// The Atlas of the contexts; any Atlas if absent.
        atlas: Option<String>,
        /// The checkpoint that injects them, or the context.
        from: String,
        /// Type of the checkpoint.
        kind: String,
        /// The recorded reason.
        trigger: InjectTrigger,
        /// Identifiers of the contexts.
        contexts: Vec<String>,
        /// Guidance.
        guidance: Option<GuidanceBlock>,
    },
    /// Texts of an extension.
    Texts {
        /// The checkpoint whose handler returned them.
        from: String,
        /// Type of the checkpoint.
        kind: String,
        /// The texts.
        contexts: Vec<InjectedContext>,
    },
    /// Unlocked capabilities and allowed actions.
    Grant {
        /// The Atlas that grants them.
        atlas_id: String,
        /// The checkpoint that grants them.
        from: String,
        /// Capabilities.
        unlock: BTreeSet<String>,
        /// Capabilities on which an earlier lock is lifted.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        lift: BTreeSet<String>,
        /// Actions.
        allow: Patterns,
    },
}

impl WithheldInjection {
    /// Returns the size of texts that are not part of an Atlas, in bytes.
    fn bytes(&self) -> usize {
        match self {
            Self::Texts { contexts, .. } => {
                contexts.iter().map(|context| context.content.len()).sum()
            }
            Self::Contexts { .. } | Self::Grant { .. } => 0,
        }
    }
}

impl WithheldInjection {
    /// Removes a capability from the lifts, because it was locked after the grant was withheld.
    pub(crate) fn keep_locked(&mut self, capability: &str) {
        if let Self::Grant { lift, .. } = self {
            lift.remove(capability);
        }
    }
}

impl Session {
    /// Returns whether an unpassed gate blocks all requests of the session.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.entry != StartState::Open || !self.pending.is_empty() || !self.unpassed.is_empty()
    }

    /// Refuses the session. It loses everything that was kept for it.
    pub(crate) fn refuse(&mut self, reason: String) {
        self.entry = StartState::Refused { reason };
        self.withheld.clear();
        // The contexts were not delivered, so they are injected again if the session is ever admitted.
        for context in std::mem::take(&mut self.pending_injections).contexts {
            self.forget_context(Some(&context.context_id));
        }
    }

    /// Returns the held gates that block all requests of the session.
    #[must_use]
    pub fn blocking_gates(&self) -> Vec<HeldRequestId> {
        let entry = match &self.entry {
            StartState::Held(gate) => Some(gate.clone()),
            StartState::Open | StartState::Lapsed { .. } | StartState::Refused { .. } => None,
        };
        entry.into_iter().chain(self.pending.clone()).collect()
    }
}

pub(crate) fn is_session_blocked(tx: &Transaction<'_>, session: &SessionId) -> bool {
    tx.live_session(session).is_some_and(Session::is_blocked)
}

/// Returns whether new injections have to wait for a gate.
pub(crate) fn withholds_injections(tx: &Transaction<'_>, session: &SessionId) -> bool {
    tx.withheld_for_gate.is_some() || is_session_blocked(tx, session)
}

/// Keeps an injection until the gate of the same command, or the gates of the session, are passed.
pub(crate) fn withhold_injection(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    withheld: WithheldInjection,
) {
    match &mut tx.withheld_for_gate {
        Some(kept) => kept.push(withheld),
        None => withhold_from_session(tx, position, withheld),
    }
}

/// Keeps an injection or grant until the gates of the session are passed.
pub(crate) fn withhold_from_session(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    withheld: WithheldInjection,
) {
    let Some(session_state) = tx.engine.state.sessions.get_mut(&position.session) else {
        return;
    };
    let refused = matches!(session_state.entry, StartState::Refused { .. });
    if refused || session_state.withheld.contains(&withheld) {
        return;
    }
    let bytes: usize = session_state
        .withheld
        .iter()
        .map(WithheldInjection::bytes)
        .sum();
    if session_state.withheld.len() < MAX_WITHHELD && bytes + withheld.bytes() <= MAX_WITHHELD_BYTES
    {
        session_state.withheld.push(withheld);
        tx.mark_changed(&position.session);
        return;
    }
    let (from, kind, contexts) = match withheld {
        WithheldInjection::Contexts {
            from,
            kind,
            contexts,
            ..
        } => (from, kind, contexts),
        WithheldInjection::Texts {
            from,
            kind,
            contexts,
        } => {
            let ids = contexts.into_iter().map(|context| context.context_id);
            (from, kind, ids.collect())
        }
        // Without the grant the session may do less, never more.
        WithheldInjection::Grant { .. } => return,
    };
    let record = CheckpointSkipped {
        checkpoint_id: from,
        checkpoint_type: kind,
        reason: "limit reached: texts withheld from this session".to_owned(),
        dropped_contexts: contexts,
        judged_under: Vec::new(),
    };
    tx.record_below(position, record);
}

/// Applies the effects of a checkpoint to a session: restrictions at once, grants when no gate blocks the
/// session.
pub(crate) fn apply_effects(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    atlas_id: &str,
    gate: &str,
    effects: &PassEffects,
) {
    let mut now = effects.clone();
    if is_session_blocked(tx, &position.session) {
        let unlock = std::mem::take(&mut now.unlock);
        let allow = std::mem::take(&mut now.allow);
        let lift = std::mem::take(&mut now.lift);
        if !unlock.is_empty() || !allow.is_empty() {
            let grant = WithheldInjection::Grant {
                atlas_id: atlas_id.to_owned(),
                from: gate.to_owned(),
                unlock,
                lift,
                allow,
            };
            withhold_from_session(tx, position, grant);
        }
    }
    if let Some(session) = tx.state().sessions.get_mut(&position.session) {
        session.apply(atlas_id, gate, &now);
    }
}

/// Delivers what was withheld for a gate that is passed now.
pub(crate) fn inject_withheld(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    withheld: Vec<WithheldInjection>,
) -> Injected {
    let mut injected = Injected::default();
    for withheld in withheld {
        match withheld {
            WithheldInjection::Contexts {
                atlas,
                from,
                kind,
                trigger,
                contexts,
                guidance,
            } => injected.extend(inject_contexts(
                tx,
                position,
                &Injection {
                    atlas: atlas.as_deref(),
                    from: &from,
                    kind: &kind,
                    trigger,
                    contexts: &contexts,
                    guidance: guidance.as_ref(),
                    size: BudgetRule::Budgeted,
                },
            )),
            WithheldInjection::Texts {
                from,
                kind,
                contexts,
            } => injected.extend(inject_texts(tx, position, &from, &kind, contexts)),
            WithheldInjection::Grant {
                atlas_id,
                from,
                unlock,
                lift,
                allow,
            } => {
                let effects = PassEffects {
                    unlock,
                    lift,
                    allow,
                    ..PassEffects::default()
                };
                apply_effects(tx, position, &atlas_id, &from, &effects);
                tx.state().caches.new_generation();
            }
        }
    }
    injected
}

/// Delivers what was withheld from a session, once no gate blocks it. It goes with the next reply.
pub(crate) fn deliver_withheld(tx: &mut Transaction<'_>, session: &SessionId) {
    if is_session_blocked(tx, session) {
        return;
    }
    let Some(session_state) = tx.state().sessions.get_mut(session) else {
        return;
    };
    let withheld = std::mem::take(&mut session_state.withheld);
    if withheld.is_empty() {
        return;
    }
    let position = session_position(session_state);
    // The context of the gate itself does not use up the budget of what waited behind it.
    let handed = std::mem::take(&mut tx.injected_bytes);
    let injected = inject_withheld(tx, &position, withheld);
    tx.injected_bytes = handed;
    add_pending_injections(tx, session, injected);
}

/// Takes a session's pending injections, unless a gate blocks it.
pub(crate) fn take_pending_injections(tx: &mut Transaction<'_>, session: &SessionId) -> Injected {
    let session_state = tx.state().sessions.get_mut(session);
    match session_state.filter(|session_state| !session_state.is_blocked()) {
        Some(session_state) => std::mem::take(&mut session_state.pending_injections),
        None => Injected::default(),
    }
}

/// Injects texts of an extension as far as they fit, and records that.
pub(crate) fn inject_texts(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    from: &str,
    kind: &str,
    texts: Vec<InjectedContext>,
) -> Injected {
    let mut injected = Injected::default();
    if texts.is_empty() {
        return injected;
    }
    if withholds_injections(tx, &position.session) {
        let withheld = WithheldInjection::Texts {
            from: from.to_owned(),
            kind: kind.to_owned(),
            contexts: texts,
        };
        withhold_injection(tx, position, withheld);
        return injected;
    }
    let mut dropped = Vec::new();
    for text in texts {
        let size = text.content.len() as u64;
        if fits_budget(tx, size) {
            tx.injected_bytes += size;
            injected.contexts.push(text);
        } else {
            dropped.push(text.context_id);
        }
    }
    if !injected.contexts.is_empty() {
        let sizes = injected.contexts.iter();
        let sizes = sizes.map(|context| context.content.len() as u64);
        let ids = injected.contexts.iter();
        let record = ContextInjected {
            context_ids: ids.map(|context| context.context_id.clone()).collect(),
            atlas_ids: Vec::new(),
            total_size_bytes: sizes.sum(),
            trigger: InjectTrigger::OnDemand,
            checkpoint_type: Some(kind.to_owned()),
            cache_hit: false,
        };
        injected
            .injections
            .push(record_injected(tx, position, record));
    }
    record_too_large(tx, position, from, kind, dropped);
    injected
}

/// Records contexts that were dropped because they do not fit.
pub(crate) fn record_too_large(
    tx: &mut Transaction<'_>,
    position: &SpanPosition,
    from: &str,
    kind: &str,
    dropped: Vec<String>,
) {
    if !dropped.is_empty() {
        let record = CheckpointSkipped {
            checkpoint_id: from.to_owned(),
            checkpoint_type: kind.to_owned(),
            reason: "limit reached: max_context_injection_size".to_owned(),
            dropped_contexts: dropped,
            judged_under: Vec::new(),
        };
        tx.record_below(position, record);
    }
}

/// Returns the denial for a session whose start was refused.
pub(crate) fn refused_session_denial(
    tx: &Transaction<'_>,
    session: &SessionId,
) -> Option<DenialReply> {
    match &tx.live_session(session)?.entry {
        StartState::Refused { reason } => Some(DenialReply {
            code: DenyCode::Refused,
            reason: format!("this session may not act: {reason}"),
            help: None,
            gate: None,
        }),
        StartState::Open | StartState::Held(_) | StartState::Lapsed { .. } => None,
    }
}
