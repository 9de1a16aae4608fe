//! Answers of the handlers of checkpoints so far, and the next handler to call.

use std::time::Duration;

use crate::atlas::document::CheckpointMode;
use crate::atlas::model::{Checkpoint, Trigger};
use crate::base::text::one_line;

use super::suspension::{CallKey, CallPurpose, ExtensionAnswers};
use super::{CheckpointResult, Extensions, PolicyDecisionKind};
use crate::engine::transaction::Transaction;

/// Answers of the handlers of fired checkpoints, in the order they are called.
#[derive(Default)]
pub(crate) struct HandlerOutcomes {
    pub(crate) outcomes: Vec<HandlerOutcome>,
    /// Reason why the agent may not go on, with the checkpoint.
    pub(crate) stop: Option<HandlerStop>,
    /// The next handler to call, with the checkpoint's index.
    pub(crate) next: Option<(usize, String)>,
    /// Indexes of checkpoints that are skipped because extensions took too long.
    pub(crate) skipped: Vec<usize>,
    /// The rewritten input.
    pub(crate) input: Option<String>,
}

impl HandlerOutcomes {
    /// Returns the index of a checkpoint among those that are not skipped.
    pub(crate) fn kept_index(&self, index: usize) -> usize {
        let before = self.skipped.iter().filter(|skipped| **skipped < index);
        index - before.count()
    }

    /// Returns the reason why the agent may not go on: a handler stopped it, failed to answer, or was not
    /// called.
    pub(crate) fn take_stop(&mut self) -> Option<HandlerStop> {
        self.stop.take().or_else(|| {
            let (index, name) = self.next.take()?;
            let reason = format!("extension `{name}` was not called");
            Some(HandlerStop {
                index,
                reason,
                denied: false,
            })
        })
    }

    /// Returns whether a handler stops the agent, failed to answer, or requires an approval.
    pub(crate) fn restricts(&self) -> bool {
        let approval = self.outcomes.iter().any(|outcome| {
            let result = outcome.result.as_ref().ok();
            let policy = result.and_then(|result| result.policy_decision.as_ref());
            policy.is_some_and(|policy| policy.decision == PolicyDecisionKind::RequireApproval)
        });
        approval || self.stop.is_some() || self.next.is_some()
    }
}

/// Answer of one handler.
pub(crate) struct HandlerOutcome {
    /// Index of the checkpoint.
    pub(crate) index: usize,
    pub(crate) handler: String,
    pub(crate) result: Result<CheckpointResult, String>,
    pub(crate) duration: Duration,
}

/// Reason why an agent may not go on.
pub(crate) struct HandlerStop {
    /// Index of the checkpoint.
    pub(crate) index: usize,
    pub(crate) reason: String,
    /// True when an extension denied; false when one failed to answer.
    pub(crate) denied: bool,
}

/// Collects the answers of the handlers of fired checkpoints, up to the first that stops the agent or has not
/// been called.
///
/// Every handler may deny, so all of them are called regardless of the time the others took. When the time
/// budget is used up, only checkpoints that just inject something are skipped.
pub(crate) fn collect_outcomes<'f>(
    tx: &Transaction<'_>,
    answers: &ExtensionAnswers,
    fired: impl Iterator<Item = (&'f str, &'f Checkpoint)>,
) -> HandlerOutcomes {
    let extensions = &tx.engine.extensions;
    let mut outcomes = HandlerOutcomes::default();
    let mut spent = answers.triggers_took();
    for (index, (atlas_id, checkpoint)) in fired.enumerate() {
        let handlers = handlers_of(extensions, checkpoint);
        if handlers.is_empty() && !can_restrict(extensions, checkpoint) && tx.engine.is_late(spent)
        {
            outcomes.skipped.push(index);
            continue;
        }
        for handler in handlers {
            let key = CallKey {
                atlas_id: atlas_id.to_owned(),
                checkpoint_id: checkpoint.id.clone(),
                extension: handler.clone(),
                about: CallPurpose::Handler,
            };
            let (result, took) = match answers.get(&key) {
                Some(returned) => (returned.result(), returned.duration),
                None if !extensions.handlers.contains(&handler) => {
                    let fault = "no extension has that name".to_owned();
                    (Err(fault), Duration::ZERO)
                }
                None => {
                    outcomes.next = Some((index, handler));
                    return outcomes;
                }
            };
            spent += took;
            outcomes.stop = handler_stop(index, &handler, &result);
            if let Ok(CheckpointResult {
                modified_input: Some(text),
                ..
            }) = &result
            {
                outcomes.input = Some(text.clone());
            }
            outcomes.outcomes.push(HandlerOutcome {
                index,
                handler,
                result,
                duration: took,
            });
            if outcomes.stop.is_some() {
                return outcomes;
            }
        }
    }
    outcomes
}

fn handler_stop(
    index: usize,
    handler: &str,
    result: &Result<CheckpointResult, String>,
) -> Option<HandlerStop> {
    let (reason, denied) = match result {
        Err(fault) => {
            let reason = format!("extension `{handler}` failed: {fault}");
            (reason, false)
        }
        Ok(result) => {
            let policy = result.policy_decision.as_ref();
            let denial = policy.filter(|policy| policy.decision == PolicyDecisionKind::Deny);
            if result.proceed && denial.is_none() {
                return None;
            }
            let reason = result
                .block_reason
                .clone()
                .or_else(|| denial.map(|policy| policy.reason.clone()));
            let reason = reason.filter(|reason| !reason.trim().is_empty());
            let reason = reason.unwrap_or_else(|| "no reason given".to_owned());
            (
                format!("extension `{handler}` denied this: {}", one_line(&reason)),
                true,
            )
        }
    };
    Some(HandlerStop {
        index,
        reason,
        denied,
    })
}

/// Splits the checkpoints that fired on one input into those that fit the budget and those that do not.
///
/// Only checkpoints that just inject something are dropped, lowest priority first. A checkpoint that can
/// deny, lock, hold or ask always fits.
pub(crate) fn within_budget<F>(
    tx: &Transaction<'_>,
    fired: Vec<F>,
    checkpoint: impl Fn(&F) -> &Checkpoint,
) -> (Vec<F>, Vec<F>) {
    let budgets = tx.engine.atlases.iter().filter_map(|atlas| {
        let budget = atlas.budget.as_ref()?;
        budget.max_checkpoints_per_input
    });
    let most = budgets.min().unwrap_or(u64::MAX);
    let mut passing = 0;
    fired.into_iter().partition(|fired| {
        if can_restrict(&tx.engine.extensions, checkpoint(fired)) {
            return true;
        }
        passing += 1;
        passing <= most
    })
}

/// Returns whether a checkpoint can deny, lock, hold or ask. No budget drops such a checkpoint.
pub(crate) fn can_restrict(extensions: &Extensions, checkpoint: &Checkpoint) -> bool {
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

/// Returns whether an action runs because the checkpoint unlocks its capability. If it were dropped, the
/// capability would be used while locked.
fn opens_capability(checkpoint: &Checkpoint) -> bool {
    let access = matches!(checkpoint.trigger, Trigger::CapabilityAccess(_));
    access && !checkpoint.unlock_capabilities.is_empty()
}

/// Returns the handlers of a checkpoint, in the order they are called.
pub(crate) fn handlers_of(extensions: &Extensions, checkpoint: &Checkpoint) -> Vec<String> {
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
