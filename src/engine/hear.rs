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

    /// Whether a handler of this checkpoint wants an approval.
    fn wants_approval(&self, index: usize) -> bool {
        let mut said = self.said.iter().filter(|said| said.index == index);
        said.any(|said| {
            let result = said.result.as_ref().ok();
            let policy = result.and_then(|result| result.policy_decision.as_ref());
            policy.is_some_and(|policy| policy.decision == PolicyWord::RequireApproval)
        })
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
/// been asked.
pub(super) fn hear<'f>(
    turn: &Turn<'_>,
    answers: &Answers,
    fired: impl Iterator<Item = (&'f str, &'f Checkpoint)>,
) -> Heard {
    let extensions = &turn.engine.extensions;
    let mut heard = Heard::default();
    let late = turn.engine.is_late(answers.took());
    for (index, (atlas_id, checkpoint)) in fired.enumerate() {
        for handler in handlers_of(extensions, checkpoint) {
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
                // What wants an approval is a gate by now.
                None if late
                    && checkpoint.mode != CheckpointMode::Blocking
                    && !heard.wants_approval(index) =>
                {
                    heard.skipped.push(index);
                    break;
                }
                None => {
                    heard.next = Some((index, handler));
                    return heard;
                }
            };
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
