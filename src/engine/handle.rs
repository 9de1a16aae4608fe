//! What handlers of checkpoints want done: contexts, approvals, events for the record, another input.

use crate::trace::event::{CheckpointSkipped, InjectTrigger};

use super::command::{Given, GivenContext};
use super::extension::{CheckpointResult, PolicyWord};
use super::fired::{OwnedApproval, OwnedFired};
use super::give::{Gift, Size};
use super::hear::{Heard, Said, Stop, can_restrict, hear};
use super::held::{ActionCall, Subject};
use super::lifecycle::{raise_approvals, raise_stop};
use super::turn::{Place, Turn};

/// What the handlers of fired checkpoints came to.
#[derive(Default)]
pub(super) struct Handled {
    /// What the agent is given.
    pub(super) given: Given,
    /// Why it may not go on.
    pub(super) stop: Option<Stop>,
    /// Approvals that are wanted and that no checkpoint stands for.
    pub(super) approvals: Vec<OwnedApproval>,
    /// The input as it should read.
    pub(super) input: Option<String>,
}

/// The command whose checkpoints have handlers: it decides what their words lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handling {
    /// An action. A no refuses it; an approval is a gate of its own.
    Action,
    /// Input. A no refuses it; where an approval is wanted the checkpoint becomes a gate.
    Input,
    /// The start of a session. A no refuses it; a handler that is not heard makes its checkpoint a gate.
    Start,
    /// Something that did happen. A no, too, makes the checkpoint a gate.
    Moment,
    /// The end of a session, which nothing stops.
    End,
}

impl Handling {
    /// Tells whether a stop refuses the command. Otherwise its checkpoint becomes a gate.
    fn refuses(self, stop: &Stop) -> bool {
        match self {
            Self::Action | Self::Input | Self::End => true,
            Self::Start => stop.said,
            Self::Moment => false,
        }
    }
}

impl Turn<'_> {
    /// Does what the handlers of fired checkpoints want, and leaves out the checkpoints for which
    /// there was no time. When a handler stops the agent, nothing is handed over.
    pub(super) fn handle_fired(
        &mut self,
        place: &Place,
        subject: &Subject,
        fired: &mut Vec<OwnedFired>,
        handling: Handling,
    ) -> Handled {
        let call = match subject {
            Subject::Action(call) => Some(call),
            Subject::SessionStart | Subject::Moment(_) => None,
        };
        self.handle_fired_for(place, (subject, call), fired, handling)
    }

    /// The same for checkpoints that were told of an action which is not their subject: of its parameters nothing
    /// is recorded that a steward wants left out.
    pub(super) fn handle_fired_for(
        &mut self,
        place: &Place,
        (subject, call): (&Subject, Option<&ActionCall>),
        fired: &mut Vec<OwnedFired>,
        handling: Handling,
    ) -> Handled {
        let answers = std::mem::take(&mut self.answers);
        let checkpoints = fired
            .iter()
            .map(|it| (it.atlas_id.as_str(), &it.checkpoint));
        let mut heard = hear(self, &answers, checkpoints);
        for fired in fired.iter_mut() {
            fired.took = answers.trigger_took(&fired.atlas_id, &fired.checkpoint.id);
        }
        self.answers = answers;
        let gated = heard.closes() || fired.iter().any(OwnedFired::is_gate);
        if gated && self.beside_gate.is_none() {
            self.beside_gate = Some(Vec::new());
        }
        let mut handled = Handled {
            input: heard.input.take(),
            ..Handled::default()
        };
        let mut approvals = Vec::new();
        for said in &heard.said {
            if let Some(fired) = fired.get_mut(said.index) {
                fired.modified |= modifies(said);
                fired.took += said.took;
                let wanted = said.result.as_ref().ok();
                let wanted = wanted.and_then(|result| approval(fired, said, result));
                approvals.extend(wanted.map(|approval| (said.index, approval)));
            }
        }
        match handling {
            Handling::Action => {
                handled.approvals = approvals.into_iter().map(|(_, wanted)| wanted).collect();
            }
            Handling::Input | Handling::Start | Handling::Moment => {
                raise_approvals(fired, &approvals);
            }
            Handling::End => {}
        }
        let stop = heard.stopped();
        let stopped = stop.is_some();
        let refusal = stop.and_then(|stop| {
            if handling.refuses(&stop) {
                return Some(stop);
            }
            raise_stop(fired, stop);
            None
        });
        self.record_heard(place, (subject, call), fired, (&heard, refusal.as_ref()));
        if !stopped {
            for said in &heard.said {
                if let (Some(fired), Ok(result)) = (fired.get(said.index), &said.result) {
                    let given = self.hand_over(place, fired, &said.handler, result);
                    handled.given.extend(given);
                }
            }
        }
        self.skip_late(place, fired, &heard);
        handled.stop = refusal.map(|stop| Stop {
            index: heard.kept(stop.index),
            ..stop
        });
        handled
    }

    /// Records that checkpoints fired, then the words of their handlers, in the order of priorities. Where a handler
    /// refuses the command, only the checkpoints whose handlers were asked are on record; they are over.
    fn record_heard(
        &mut self,
        place: &Place,
        (subject, call): (&Subject, Option<&ActionCall>),
        fired: &mut [OwnedFired],
        (heard, refusal): (&Heard, Option<&Stop>),
    ) {
        let asked = heard.said.iter().map(|said| said.index);
        let Some(last) = asked.chain(refusal.map(|stop| stop.index)).max() else {
            return;
        };
        for (index, fired) in fired.iter_mut().enumerate().take(last + 1) {
            let said: Vec<_> = heard
                .said
                .iter()
                .filter(|said| said.index == index)
                .collect();
            let stops = refusal.filter(|stop| stop.index == index);
            let concerned = !said.is_empty() || stops.is_some();
            if heard.skipped.contains(&index) || (refusal.is_some() && !concerned) {
                continue;
            }
            self.record_fired(place, fired, subject);
            for said in said {
                self.record_said(place, call, fired, said);
                if let Ok(result) = &said.result {
                    self.forget(place, result);
                }
            }
            if refusal.is_some() {
                let told = stops.map(|stop| self.told_of(call, "block_reason", &stop.reason));
                self.record_handled(place, fired, told);
            }
        }
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
        given.extend(self.give_texts(place, from, kind, texts.collect()));
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
            judged_under: self.under(Some(&dropped.atlas_id)),
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
