//! What handlers of checkpoints want done: contexts, approvals, events for the record, another input.

use crate::trace::event::{CheckpointSkipped, InjectTrigger};

use super::command::{Given, GivenContext};
use super::extension::{CheckpointResult, PolicyWord};
use super::gate::{OwnedApproval, OwnedFired};
use super::give::{Gift, Size};
use super::hear::{Heard, Said, Stop, can_restrict, hear};
use super::held::ActionCall;
use super::turn::{Place, Turn};

/// What the handlers of fired checkpoints came to.
#[derive(Default)]
pub(super) struct Handled {
    /// What the agent is given.
    pub(super) given: Given,
    /// Why it may not go on.
    pub(super) stop: Option<Stop>,
    /// Approvals that are wanted, each with the index of the checkpoint.
    pub(super) approvals: Vec<(usize, OwnedApproval)>,
    /// The input as it should read.
    pub(super) input: Option<String>,
}

impl Turn<'_> {
    /// Does what the handlers of fired checkpoints want, and leaves out the checkpoints for which
    /// there was no time. When a handler stops the agent, nothing is handed over.
    /// What it says of an action's parameters is recorded without what a steward wants left out.
    pub(super) fn handle_fired(
        &mut self,
        place: &Place,
        call: Option<&ActionCall>,
        fired: &mut Vec<OwnedFired>,
    ) -> Handled {
        let answers = std::mem::take(&mut self.answers);
        let checkpoints = fired
            .iter()
            .map(|it| (it.atlas_id.as_str(), &it.checkpoint));
        let mut heard = hear(self, &answers, checkpoints);
        self.answers = answers;
        let gated = heard.closes() || fired.iter().any(OwnedFired::is_gate);
        if gated && self.beside_gate.is_none() {
            self.beside_gate = Some(Vec::new());
        }
        let mut handled = Handled::default();
        for said in &heard.said {
            if let Some(fired) = fired.get_mut(said.index) {
                fired.modified |= modifies(said);
                self.record_said(place, call, fired, said);
                if let Ok(result) = &said.result {
                    self.forget(place, result);
                    let approval = approval(fired, said, result);
                    handled
                        .approvals
                        .extend(approval.map(|it| (heard.kept(said.index), it)));
                }
            }
        }
        if heard.stop.is_none() && heard.next.is_none() {
            for said in &heard.said {
                if let (Some(fired), Ok(result)) = (fired.get(said.index), &said.result) {
                    let given = self.hand_over(place, fired, &said.handler, result);
                    handled.given.extend(given);
                }
            }
        }
        self.skip_late(place, fired, &heard);
        handled.stop = heard.stop.take().or_else(|| {
            let (index, name) = heard.next.take()?;
            let reason = format!("extension `{name}` was not asked");
            Some(Stop {
                index,
                reason,
                said: false,
            })
        });
        handled.stop = handled.stop.map(|stop| Stop {
            index: heard.kept(stop.index),
            ..stop
        });
        handled.input = heard.input.take();
        handled
    }

    /// Forgets what a handler says is no longer valid.
    fn forget(&mut self, place: &Place, result: &CheckpointResult) {
        if result.cache_clear {
            self.state().caches.clear();
        }
        for id in &result.cache_invalidate {
            self.state().caches.forget_context(id);
        }
        if let Some(session) = self.state().sessions.get_mut(&place.session) {
            if result.cache_clear {
                session.forget_context(None);
            }
            for id in &result.cache_invalidate {
                session.forget_context(Some(id));
            }
        }
        self.touch(&place.session);
    }

    /// Hands over the contexts that a handler names; what names none is a text of its own.
    fn hand_over(
        &mut self,
        place: &Place,
        fired: &OwnedFired,
        handler: &str,
        result: &CheckpointResult,
    ) -> Given {
        let known = |id: &&String| {
            let mut atlases = self.engine.atlases.iter();
            atlases.any(|atlas| atlas.contexts.contains_key(*id))
        };
        let (named, texts): (Vec<_>, Vec<_>) = result.inject_context.iter().partition(known);
        let named: Vec<String> = named.into_iter().cloned().collect();
        let mut given = self.give(
            place,
            &Gift {
                atlas: None,
                from: &fired.checkpoint.id,
                kind: fired.checkpoint.kind,
                trigger: InjectTrigger::OnDemand,
                contexts: &named,
                guidance: None,
                size: Size::Budgeted,
            },
        );
        let texts = texts.into_iter().enumerate();
        let texts = texts.map(|(index, text)| GivenContext {
            context_id: format!("{handler}.{}", index + 1),
            content: text.clone(),
        });
        let (from, kind) = (&fired.checkpoint.id, fired.checkpoint.kind);
        given
            .contexts
            .extend(self.give_texts(place, from, kind, texts.collect()));
        given
    }

    /// Leaves out checkpoints for which extensions took too long. They only give something.
    fn skip_late(&mut self, place: &Place, fired: &mut Vec<OwnedFired>, heard: &Heard) {
        for index in heard.skipped.iter().rev() {
            if *index >= fired.len() {
                continue;
            }
            let dropped = fired.remove(*index);
            debug_assert!(!can_restrict(&self.engine.extensions, &dropped.checkpoint));
            self.record_skipped(place, &dropped, "max_checkpoint_time_ms is used up");
        }
    }

    /// Records that a checkpoint was left out.
    pub(super) fn record_skipped(&mut self, place: &Place, dropped: &OwnedFired, reason: &str) {
        let record = CheckpointSkipped {
            checkpoint_id: dropped.checkpoint.id.clone(),
            checkpoint_type: dropped.checkpoint.kind.to_owned(),
            reason: reason.to_owned(),
            dropped_contexts: dropped.checkpoint.inject_contexts.clone(),
        };
        self.record_below(place, record);
    }
}

fn modifies(said: &Said) -> bool {
    let result = said.result.as_ref().ok();
    result.is_some_and(|result| result.modified_input.is_some())
}

/// An approval that a handler wants.
fn approval(fired: &OwnedFired, said: &Said, result: &CheckpointResult) -> Option<OwnedApproval> {
    let policy = result.policy_decision.as_ref()?;
    (policy.decision == PolicyWord::RequireApproval).then(|| OwnedApproval {
        atlas_id: fired.atlas_id.clone(),
        policy_id: said.handler.clone(),
        reason: policy.reason.clone(),
        why: format!("extension `{}` wants an approval", said.handler),
        overrides: false,
    })
}
