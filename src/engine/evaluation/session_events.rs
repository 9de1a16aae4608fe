//! Checkpoints that fire on events other than action requests.

use std::collections::BTreeSet;

use super::action_evaluation::{FiredCheckpoint, by_priority, may_fire, session_facts};
use crate::atlas::condition::{Facts, Truth};
use crate::atlas::index::{ActionMatches, CheckpointEvent, KeywordMatches};
use crate::atlas::keyword::KeywordMatch;
use crate::atlas::model::{Atlas, Checkpoint, Trigger};
use crate::base::clock::Timestamp;
use crate::engine::extensions::Extensions;
use crate::engine::extensions::custom_triggers::{CustomTriggerFiring, CustomTriggers};
use crate::engine::sessions::session::{IntervalMark, Session};

/// Returns the checkpoints that fire when a session starts, and the earlier ones in `owed` that were not
/// passed.
pub(crate) fn fired_at_start<'a>(
    atlases: &'a [Atlas],
    (session, extensions): (&Session, &Extensions),
    owed: &BTreeSet<String>,
    now: Timestamp,
) -> Vec<FiredCheckpoint<'a>> {
    let facts = session_facts(session, now);
    let mut fired = Vec::new();
    for atlas in atlases {
        for (_, checkpoint) in atlas.checkpoints_for_event(CheckpointEvent::SessionStart) {
            if owed.contains(&checkpoint.id) || may_fire(extensions, checkpoint, &facts) {
                fired.push(FiredCheckpoint {
                    atlas,
                    checkpoint,
                    why: "fires at the start of every session".to_owned(),
                    certain: certainly_holds(checkpoint, &facts),
                    matches: Vec::new(),
                });
            }
        }
    }
    by_priority(fired)
}

/// An event, other than an action request, on which checkpoints can fire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TriggerEvent<'o> {
    /// Input arrived.
    Input {
        /// Its text.
        text: &'o str,
        /// Keywords found in the text.
        seen: &'o KeywordMatches,
    },
    /// An action ran successfully.
    ActionSucceeded(&'o str),
    /// An action failed: both `action_post` and error checkpoints fire.
    ActionFailed(&'o str),
    /// An error was reported.
    ErrorReported,
    /// The agent requested context.
    ContextRequested,
    /// The agent requested a checkpoint by its name.
    CheckpointRequested(&'o str),
    /// The session ends.
    SessionEnd,
    /// The session wants to act, so due intervals are checked.
    IntervalCheck,
}

/// Returns the checkpoints that fire on an event.
pub(crate) fn fired_on_event<'a>(
    atlases: &'a [Atlas],
    session: &Session,
    occasion: TriggerEvent<'_>,
    customs: CustomTriggers<'_>,
    now: Timestamp,
) -> Vec<FiredCheckpoint<'a>> {
    let facts = facts_of(session, occasion, now);
    let mut fired = Vec::new();
    for (number, atlas) in atlases.iter().enumerate() {
        let begun = fired.len();
        if let TriggerEvent::Input { .. } = occasion {
            fired.extend(fired_custom_checkpoints(atlas, customs, &facts));
        }
        let mut fire = |checkpoint: &'a Checkpoint, why: &dyn Fn() -> String| {
            if may_fire(customs.extensions, checkpoint, &facts) {
                fired.push(FiredCheckpoint {
                    atlas,
                    checkpoint,
                    why: why(),
                    certain: certainly_holds(checkpoint, &facts),
                    matches: Vec::new(),
                });
            }
        };
        let mut fire_all = |when: CheckpointEvent<'_>, why: &str| {
            for (_, checkpoint) in atlas.checkpoints_for_event(when) {
                fire(checkpoint, &|| why.to_owned());
            }
        };
        match occasion {
            TriggerEvent::ErrorReported => {
                fire_all(CheckpointEvent::Error, "the agent reported an error");
            }
            TriggerEvent::ContextRequested => fire_all(
                CheckpointEvent::ExplicitRequest,
                "the agent asked for context",
            ),
            TriggerEvent::CheckpointRequested(name) => {
                fire_all(
                    CheckpointEvent::Named(name),
                    "the agent asked for this checkpoint",
                );
            }
            TriggerEvent::SessionEnd => {
                fire_all(CheckpointEvent::SessionEnd, "the session ends");
            }
            TriggerEvent::Input { seen, .. } => {
                for (checkpoint, found) in seen.checkpoints(number, atlas) {
                    if may_fire(customs.extensions, checkpoint, &facts) {
                        fired.push(FiredCheckpoint {
                            atlas,
                            checkpoint,
                            why: keywords_found(found),
                            certain: certainly_holds(checkpoint, &facts),
                            matches: found.to_vec(),
                        });
                    }
                }
            }
            TriggerEvent::ActionSucceeded(action) | TriggerEvent::ActionFailed(action) => {
                if let TriggerEvent::ActionFailed(_) = occasion {
                    for (_, checkpoint) in atlas.checkpoints_for_event(CheckpointEvent::Error) {
                        fire(checkpoint, &|| format!("`{action}` failed"));
                    }
                }
                let matches = ActionMatches::of(std::slice::from_ref(atlas), action);
                for matched in matches.checkpoints_after() {
                    let pattern = matched.pattern;
                    fire(matched.item, &|| {
                        format!("`{action}` ended and matches `{pattern}`")
                    });
                }
            }
            TriggerEvent::IntervalCheck => {
                for (_, checkpoint) in atlas.checkpoints_for_event(CheckpointEvent::Interval) {
                    if let Some(why) = interval_over(atlas, checkpoint, session, now) {
                        fire(checkpoint, &|| why.clone());
                    }
                }
            }
        }
        if let Some(own) = fired.get_mut(begun..) {
            sort_as_written(own);
        }
    }
    by_priority(fired)
}

/// Sorts the fired checkpoints of one Atlas in the order written. Custom and error checkpoints were collected
/// first.
fn sort_as_written(fired: &mut [FiredCheckpoint<'_>]) {
    let early = |fired: &FiredCheckpoint<'_>| {
        let trigger = &fired.checkpoint.trigger;
        matches!(trigger, Trigger::Custom(_) | Trigger::ErrorOccurred)
    };
    if fired.iter().any(early) {
        fired.sort_by_cached_key(|fired| {
            let mut own = fired.atlas.checkpoints.iter();
            own.position(|checkpoint| std::ptr::eq(checkpoint, fired.checkpoint))
        });
    }
}

/// Returns the facts about a session and an event.
pub(crate) fn facts_of<'s>(
    session: &'s Session,
    occasion: TriggerEvent<'s>,
    now: Timestamp,
) -> Facts<'s> {
    let mut facts = session_facts(session, now);
    match occasion {
        TriggerEvent::Input { text, .. } => facts.input = Some(text),
        TriggerEvent::ActionSucceeded(action) | TriggerEvent::ActionFailed(action) => {
            facts.action = Some(action);
        }
        TriggerEvent::ErrorReported
        | TriggerEvent::ContextRequested
        | TriggerEvent::CheckpointRequested(_)
        | TriggerEvent::SessionEnd
        | TriggerEvent::IntervalCheck => {}
    }
    facts
}

/// Returns the custom checkpoints of an Atlas that fire on input.
fn fired_custom_checkpoints<'a>(
    atlas: &'a Atlas,
    customs: CustomTriggers<'_>,
    facts: &Facts<'_>,
) -> Vec<FiredCheckpoint<'a>> {
    let mut fired = Vec::new();
    for (_, checkpoint) in atlas.checkpoints_for_event(CheckpointEvent::CustomInput) {
        let Trigger::Custom(custom) = &checkpoint.trigger else {
            continue;
        };
        let (why, certain) = match customs.firing(atlas, checkpoint, custom, facts) {
            CustomTriggerFiring::DoesNotFire { .. } => continue,
            CustomTriggerFiring::Fires { why, certain } => (why, certain),
            CustomTriggerFiring::Ask => ("its extension must be called first".to_owned(), false),
        };
        if may_fire(customs.extensions, checkpoint, facts) {
            fired.push(FiredCheckpoint {
                atlas,
                checkpoint,
                why,
                certain: certain && certainly_holds(checkpoint, facts),
                matches: Vec::new(),
            });
        }
    }
    fired
}

/// Returns whether a checkpoint's condition is known to hold.
fn certainly_holds(checkpoint: &Checkpoint, facts: &Facts<'_>) -> bool {
    let when = checkpoint.when.as_ref();
    when.is_none_or(|when| when.evaluate(facts) == Truth::True)
}

fn keywords_found(found: &[KeywordMatch]) -> String {
    format!("keywords found: {}", KeywordMatch::describe(found))
}

fn interval_over(
    atlas: &Atlas,
    checkpoint: &Checkpoint,
    session: &Session,
    now: Timestamp,
) -> Option<String> {
    let is_own = |mark: &&IntervalMark| mark.key.0 == atlas.id && mark.key.1 == checkpoint.id;
    let mark = session.interval_marks.iter().find(is_own);
    if let Trigger::TimeInterval(interval) = &checkpoint.trigger {
        let last = mark.map_or(session.conversation_started_at(), |mark| mark.at);
        let seconds = interval.as_secs();
        return (now.since(last) >= *interval).then(|| format!("{seconds} s have passed"));
    }
    if let Trigger::CountInterval(interval) = &checkpoint.trigger {
        let last = mark.map_or(0, |mark| mark.actions);
        return (session.conversation_actions().saturating_sub(last) >= *interval)
            .then(|| format!("{interval} actions have run"));
    }
    None
}
