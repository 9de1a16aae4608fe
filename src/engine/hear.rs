//! What handlers of checkpoints have said so far, and who is to be asked next.

use std::time::Duration;

use crate::atlas::compiled::{Checkpoint, Trigger};
use crate::atlas::document::CheckpointMode;
use crate::base::text::one_line;

use super::extension::{CheckpointResult, Extensions, PolicyWord};
use super::suspend::{About, Answers, CallKey};
use super::turn::Turn;

/// What the handlers of fired checkpoints have said, in the order they are asked.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) said: Vec<Said>,
    /// Why the agent may not go on, and the checkpoint that says so.
    pub(super) stop: Option<Stop>,
    /// The next handler that has to be asked, with the checkpoint's index.
    pub(super) next: Option<(usize, String)>,
    /// Checkpoints, by index, that are left out because extensions took too long.
    pub(super) skipped: Vec<usize>,
    /// The input as it should read.
    pub(super) input: Option<String>,
}

impl Heard {
    /// The index of a checkpoint among those that are not left out.
    pub(super) fn kept(&self, index: usize) -> usize {
        let before = self.skipped.iter().filter(|skipped| **skipped < index);
        index - before.count()
    }

    /// Why the agent may not go on: a handler said so, or was not heard or asked.
    pub(super) fn stopped(&mut self) -> Option<Stop> {
        self.stop.take().or_else(|| {
            let (index, name) = self.next.take()?;
            let reason = format!("extension `{name}` was not asked");
            Some(Stop {
                index,
                reason,
                said: false,
            })
        })
    }

    /// Tells whether a handler stops the agent, was not heard, or wants an approval.
    pub(super) fn closes(&self) -> bool {
        let mut said = self.said.iter();
        let approval = said.any(|said| {
            let result = said.result.as_ref().ok();
            let policy = result.and_then(|result| result.policy_decision.as_ref());
            policy.is_some_and(|policy| policy.decision == PolicyWord::RequireApproval)
        });
        approval || self.stop.is_some() || self.next.is_some()
    }
}

/// What one handler said.
pub(super) struct Said {
    /// Index of the checkpoint.
    pub(super) index: usize,
    pub(super) handler: String,
    pub(super) result: Result<CheckpointResult, String>,
    pub(super) took: Duration,
}

/// Why an agent may not go on.
pub(super) struct Stop {
    /// Index of the checkpoint.
    pub(super) index: usize,
    pub(super) reason: String,
    /// Whether an extension said so; otherwise one could not be heard.
    pub(super) said: bool,
}

/// Goes through the handlers of fired checkpoints, up to the first that stops the agent or has not
/// been asked. Every handler may deny, so all of them are asked, however long the others took; when the time
/// budget is used up, only checkpoints that just give something are left out.
pub(super) fn hear<'f>(
    turn: &Turn<'_>,
    answers: &Answers,
    fired: impl Iterator<Item = (&'f str, &'f Checkpoint)>,
) -> Heard {
    let extensions = &turn.engine.extensions;
    let mut heard = Heard::default();
    let mut spent = answers.triggers_took();
    for (index, (atlas_id, checkpoint)) in fired.enumerate() {
        let handlers = handlers_of(extensions, checkpoint);
        if handlers.is_empty()
            && !can_restrict(extensions, checkpoint)
            && turn.engine.is_late(spent)
        {
            heard.skipped.push(index);
            continue;
        }
        for handler in handlers {
            let key = CallKey {
                atlas_id: atlas_id.to_owned(),
                checkpoint_id: checkpoint.id.clone(),
                extension: handler.clone(),
                about: About::Handler,
            };
            let (result, took) = match answers.get(&key) {
                Some(returned) => (returned.result(), returned.took),
                None if !extensions.handlers.contains(&handler) => {
                    let fault = "no extension has that name".to_owned();
                    (Err(fault), Duration::ZERO)
                }
                None => {
                    heard.next = Some((index, handler));
                    return heard;
                }
            };
            spent += took;
            heard.stop = stop(index, &handler, &result);
            if let Ok(CheckpointResult {
                modified_input: Some(text),
                ..
            }) = &result
            {
                heard.input = Some(text.clone());
            }
            heard.said.push(Said {
                index,
                handler,
                result,
                took,
            });
            if heard.stop.is_some() {
                return heard;
            }
        }
    }
    heard
}

fn stop(index: usize, handler: &str, result: &Result<CheckpointResult, String>) -> Option<Stop> {
    let (reason, said) = match result {
        Err(fault) => {
            let reason = format!("extension `{handler}` could not be heard: {fault}");
            (reason, false)
        }
        Ok(result) => {
            let policy = result.policy_decision.as_ref();
            let denied = policy.filter(|policy| policy.decision == PolicyWord::Deny);
            if result.proceed && denied.is_none() {
                return None;
            }
            let reason = result
                .block_reason
                .clone()
                .or_else(|| denied.map(|policy| policy.reason.clone()));
            let reason = reason.filter(|reason| !reason.trim().is_empty());
            let reason = reason.unwrap_or_else(|| "it gives no reason".to_owned());
            (
                format!("extension `{handler}` says no: {}", one_line(&reason)),
                true,
            )
        }
    };
    Some(Stop {
        index,
        reason,
        said,
    })
}

impl Turn<'_> {
    /// What fired on one input and fits its budget, and what does not: the least important of those
    /// that only give something. What can deny, lock, hold or ask always fits.
    pub(super) fn within_budget<F>(
        &self,
        fired: Vec<F>,
        checkpoint: impl Fn(&F) -> &Checkpoint,
    ) -> (Vec<F>, Vec<F>) {
        let budgets = self.engine.atlases.iter().filter_map(|atlas| {
            let budget = atlas.budget.as_ref()?;
            budget.max_checkpoints_per_input
        });
        let most = budgets.min().unwrap_or(u64::MAX);
        let mut passing = 0;
        fired.into_iter().partition(|fired| {
            if can_restrict(&self.engine.extensions, checkpoint(fired)) {
                return true;
            }
            passing += 1;
            passing <= most
        })
    }
}

/// Tells whether a checkpoint can deny, lock, hold or ask. No budget leaves such a checkpoint out.
pub(super) fn can_restrict(extensions: &Extensions, checkpoint: &Checkpoint) -> bool {
    let takes = match checkpoint.mode {
        CheckpointMode::Blocking => true,
        CheckpointMode::Advisory => {
            !checkpoint.deny_actions.is_empty()
                || !checkpoint.lock_capabilities.is_empty()
                || opens_capability(checkpoint)
        }
        CheckpointMode::Observational => false,
    };
    takes || !handlers_of(extensions, checkpoint).is_empty()
}

/// Tells whether an action runs because a checkpoint unlocks its capability: left out, the capability would be
/// used while it is locked.
fn opens_capability(checkpoint: &Checkpoint) -> bool {
    let access = matches!(checkpoint.trigger, Trigger::CapabilityAccess(_));
    access && !checkpoint.unlock_capabilities.is_empty()
}

/// The handlers of a checkpoint, in the order they are asked.
pub(super) fn handlers_of(extensions: &Extensions, checkpoint: &Checkpoint) -> Vec<String> {
    let mut handlers: Vec<String> = checkpoint.handler.iter().cloned().collect();
    if let Trigger::Custom(custom) = &checkpoint.trigger
        && extensions.handlers.contains(&custom.trigger_id)
        && handlers.is_empty()
    {
        handlers.push(custom.trigger_id.clone());
    }
    handlers.extend(
        extensions
            .by_type
            .get(checkpoint.kind)
            .into_iter()
            .flatten()
            .cloned(),
    );
    handlers
}
