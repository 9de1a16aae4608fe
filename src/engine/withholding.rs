//! Contexts, guidance and grants that wait until a gate is passed.
//!
//! Contract: while a gate blocks a whole session (at its start, or after an input, an error, an interval or a
//! run), the session gets no contexts and no grants. What is selected meanwhile is kept in order, and
//! delivered when the last of these gates is passed; only then is it on record as injected. Locks and denials
//! apply at once. A refused session loses what was kept.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::atlas::document::GuidanceBlock;
use crate::base::id::{GateId, SessionId};
use crate::base::limits::{MAX_WITHHELD, MAX_WITHHELD_BYTES};
use crate::base::pattern::Patterns;
use crate::trace::event::{CheckpointSkipped, ContextInjected, InjectTrigger};

use super::command::{DenialReply, DenyCode, Injected, InjectedContext};
use super::held::PassEffects;
use super::inject::{BudgetRule, Injection};
use super::lifecycle::session_position;
use super::session::{Session, StartState};
use super::transaction::{SpanPosition, Transaction};

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
    pub(super) fn keep_locked(&mut self, capability: &str) {
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
    pub(super) fn refuse(&mut self, reason: String) {
        self.entry = StartState::Refused { reason };
        self.withheld.clear();
        // The contexts were not delivered, so they are injected again if the session is ever admitted.
        for context in std::mem::take(&mut self.owed).contexts {
            self.forget_context(Some(&context.context_id));
        }
    }

    /// Returns the held gates that block all requests of the session.
    #[must_use]
    pub fn blocking_gates(&self) -> Vec<GateId> {
        let entry = match &self.entry {
            StartState::Held(gate) => Some(gate.clone()),
            StartState::Open | StartState::Lapsed { .. } | StartState::Refused { .. } => None,
        };
        entry.into_iter().chain(self.pending.clone()).collect()
    }
}

impl Transaction<'_> {
    pub(super) fn is_blocked(&self, session: &SessionId) -> bool {
        self.live_session(session).is_some_and(Session::is_blocked)
    }

    /// Returns whether new injections have to wait for a gate.
    pub(super) fn withholds(&self, session: &SessionId) -> bool {
        self.withheld_for_gate.is_some() || self.is_blocked(session)
    }

    /// Keeps an injection until the gate of the same command, or the gates of the session, are passed.
    pub(super) fn withhold(&mut self, place: &SpanPosition, withheld: WithheldInjection) {
        match &mut self.withheld_for_gate {
            Some(kept) => kept.push(withheld),
            None => self.withhold_from_session(place, withheld),
        }
    }

    /// Keeps an injection or grant until the gates of the session are passed.
    pub(super) fn withhold_from_session(
        &mut self,
        place: &SpanPosition,
        withheld: WithheldInjection,
    ) {
        let Some(known) = self.engine.state.sessions.get_mut(&place.session) else {
            return;
        };
        let refused = matches!(known.entry, StartState::Refused { .. });
        if refused || known.withheld.contains(&withheld) {
            return;
        }
        let bytes: usize = known.withheld.iter().map(WithheldInjection::bytes).sum();
        if known.withheld.len() < MAX_WITHHELD && bytes + withheld.bytes() <= MAX_WITHHELD_BYTES {
            known.withheld.push(withheld);
            self.mark_changed(&place.session);
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
        self.record_below(place, record);
    }

    /// Applies the effects of a checkpoint to a session: restrictions at once, grants when no gate blocks the
    /// session.
    pub(super) fn apply_effects(
        &mut self,
        place: &SpanPosition,
        atlas_id: &str,
        gate: &str,
        effects: &PassEffects,
    ) {
        let mut now = effects.clone();
        if self.is_blocked(&place.session) {
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
                self.withhold_from_session(place, grant);
            }
        }
        if let Some(session) = self.state().sessions.get_mut(&place.session) {
            session.apply(atlas_id, gate, &now);
        }
    }

    /// Delivers what was withheld for a gate that is passed now.
    pub(super) fn inject_withheld(
        &mut self,
        place: &SpanPosition,
        withheld: Vec<WithheldInjection>,
    ) -> Injected {
        let mut given = Injected::default();
        for withheld in withheld {
            match withheld {
                WithheldInjection::Contexts {
                    atlas,
                    from,
                    kind,
                    trigger,
                    contexts,
                    guidance,
                } => given.extend(self.inject(
                    place,
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
                } => given.extend(self.inject_texts(place, &from, &kind, contexts)),
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
                    self.apply_effects(place, &atlas_id, &from, &effects);
                    self.state().caches.new_generation();
                }
            }
        }
        given
    }

    /// Delivers what was withheld from a session, once no gate blocks it. It goes with the next reply.
    pub(super) fn deliver_withheld(&mut self, session: &SessionId) {
        if self.is_blocked(session) {
            return;
        }
        let Some(known) = self.state().sessions.get_mut(session) else {
            return;
        };
        let withheld = std::mem::take(&mut known.withheld);
        if withheld.is_empty() {
            return;
        }
        let place = session_position(known);
        // The context of the gate itself does not use up the budget of what waited behind it.
        let handed = std::mem::take(&mut self.injected_bytes);
        let given = self.inject_withheld(&place, withheld);
        self.injected_bytes = handed;
        self.add_pending_injections(session, given);
    }

    /// Takes a session's pending injections, unless a gate blocks it.
    pub(super) fn take_pending_injections(&mut self, session: &SessionId) -> Injected {
        let known = self.state().sessions.get_mut(session);
        match known.filter(|known| !known.is_blocked()) {
            Some(known) => std::mem::take(&mut known.owed),
            None => Injected::default(),
        }
    }

    /// Injects texts of an extension as far as they fit, and records that.
    pub(super) fn inject_texts(
        &mut self,
        place: &SpanPosition,
        from: &str,
        kind: &str,
        texts: Vec<InjectedContext>,
    ) -> Injected {
        let mut given = Injected::default();
        if texts.is_empty() {
            return given;
        }
        if self.withholds(&place.session) {
            let withheld = WithheldInjection::Texts {
                from: from.to_owned(),
                kind: kind.to_owned(),
                contexts: texts,
            };
            self.withhold(place, withheld);
            return given;
        }
        let mut dropped = Vec::new();
        for text in texts {
            let size = text.content.len() as u64;
            if self.fits_budget(size) {
                self.injected_bytes += size;
                given.contexts.push(text);
            } else {
                dropped.push(text.context_id);
            }
        }
        if !given.contexts.is_empty() {
            let sizes = given.contexts.iter();
            let sizes = sizes.map(|context| context.content.len() as u64);
            let ids = given.contexts.iter();
            let record = ContextInjected {
                context_ids: ids.map(|context| context.context_id.clone()).collect(),
                atlas_ids: Vec::new(),
                total_size_bytes: sizes.sum(),
                trigger: InjectTrigger::OnDemand,
                checkpoint_type: Some(kind.to_owned()),
                cache_hit: false,
            };
            given.injections.push(self.record_injected(place, record));
        }
        self.record_too_large(place, from, kind, dropped);
        given
    }

    /// Records contexts that were dropped because they do not fit.
    pub(super) fn record_too_large(
        &mut self,
        place: &SpanPosition,
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
            self.record_below(place, record);
        }
    }

    /// Returns the denial for a session whose start was refused.
    pub(super) fn refused_session_denial(&self, session: &SessionId) -> Option<DenialReply> {
        match &self.live_session(session)?.entry {
            StartState::Refused { reason } => Some(DenialReply {
                code: DenyCode::Refused,
                reason: format!("this session may not act: {reason}"),
                help: None,
                gate: None,
            }),
            StartState::Open | StartState::Held(_) | StartState::Lapsed { .. } => None,
        }
    }
}
