//! Firing of custom triggers, by their condition and by the answer of their extension.

use crate::atlas::condition::{Facts, Truth};
use crate::atlas::model::{Atlas, Checkpoint, CustomTrigger};
use crate::base::text::one_line;

use super::handler_outcomes::can_restrict;
use super::suspension::{CallKey, CallPurpose, ExtensionAnswers};
use crate::engine::Extensions;

/// Evaluator of custom triggers: the known extensions, and their answers so far.
#[derive(Clone, Copy)]
pub(crate) struct CustomTriggers<'s> {
    pub(crate) extensions: &'s Extensions,
    pub(crate) answers: &'s ExtensionAnswers,
}

/// Evaluation result of a custom trigger.
pub(crate) enum CustomTriggerFiring {
    Fires {
        why: String,
        /// False when the trigger counts as fired because this could not be ruled out.
        certain: bool,
    },
    DoesNotFire {
        wanted: String,
        actual: String,
    },
    /// The trigger's extension has to be called first.
    Ask,
}

impl CustomTriggers<'_> {
    /// Evaluates a custom trigger. Both its condition and its extension have to agree; an unknown result
    /// counts as firing.
    pub(crate) fn firing(
        &self,
        atlas: &Atlas,
        checkpoint: &Checkpoint,
        trigger: &CustomTrigger,
        facts: &Facts<'_>,
    ) -> CustomTriggerFiring {
        let name = &trigger.trigger_id;
        let truth = trigger.when.as_ref().map(|when| when.evaluate(facts));
        if truth == Some(Truth::False) {
            return CustomTriggerFiring::DoesNotFire {
                wanted: format!("custom trigger `{name}`"),
                actual: "its condition does not hold".to_owned(),
            };
        }
        let is_known = truth != Some(Truth::Unknown);
        if !is_known && !can_restrict(self.extensions, checkpoint) {
            return CustomTriggerFiring::DoesNotFire {
                wanted: format!("custom trigger `{name}`"),
                actual: "its condition cannot be evaluated".to_owned(),
            };
        }
        if !self.extensions.triggers.contains(name) {
            let why = match truth {
                Some(Truth::True) => format!("the condition of `{name}` holds"),
                Some(Truth::Unknown | Truth::False) => {
                    format!("the condition of `{name}` is unknown, so it counts as fired")
                }
                None => {
                    format!("trigger `{name}` is not in the operator's list, so it counts as fired")
                }
            };
            let certain = truth == Some(Truth::True);
            return CustomTriggerFiring::Fires { why, certain };
        }
        let key = call_key(atlas, checkpoint, name, CallPurpose::Trigger);
        let Some(returned) = self.answers.get(&key) else {
            return CustomTriggerFiring::Ask;
        };
        match returned.yes_no() {
            Ok(answer) if answer.yes => CustomTriggerFiring::Fires {
                why: with_reason(&format!("trigger `{name}` fires"), answer.reason.as_deref()),
                certain: is_known,
            },
            Ok(answer) => CustomTriggerFiring::DoesNotFire {
                wanted: format!("custom trigger `{name}`"),
                actual: with_reason("it does not fire", answer.reason.as_deref()),
            },
            Err(fault) => CustomTriggerFiring::Fires {
                why: format!("trigger `{name}` failed, so it counts as fired: {fault}"),
                certain: false,
            },
        }
    }
}

fn with_reason(text: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{text}: {}", one_line(reason)),
        None => text.to_owned(),
    }
}

/// Builds the key of an extension call for a checkpoint.
fn call_key(
    atlas: &Atlas,
    checkpoint: &Checkpoint,
    extension: &str,
    about: CallPurpose,
) -> CallKey {
    CallKey {
        atlas_id: atlas.id.clone(),
        checkpoint_id: checkpoint.id.clone(),
        extension: extension.to_owned(),
        about,
    }
}
