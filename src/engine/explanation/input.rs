//! Explanation of hypothetical input.

use serde::Serialize;

use super::{CheckpointEvidence, CheckpointOutcome, ExplainedVerdict, HypotheticalSession};
use crate::atlas::condition::Facts;
use crate::atlas::document::{CheckpointMode, MatchMode};
use crate::atlas::index::KeywordMatches;
use crate::atlas::keyword::{KeywordMatch, Keywords};
use crate::atlas::model::{Atlas, Checkpoint, Trigger};
use crate::base::clock::Timestamp;
use crate::engine::custom_triggers::CustomTriggers;
use crate::engine::evaluation::{self, FiredCheckpoint, TriggerEvent};
use crate::engine::extension::Extensions;
use crate::engine::session::Session;
use crate::engine::suspension::ExtensionAnswers;

/// Explanation of hypothetical input.
#[derive(Clone, Debug, Serialize)]
pub struct InputExplanation {
    /// The decision.
    pub verdict: ExplainedVerdict,
    /// Every checkpoint, in the order of evaluation.
    pub checkpoints: Vec<CheckpointEvidence>,
    /// Contexts that have keywords, with the result of matching them.
    pub contexts: Vec<ContextEvidence>,
}

/// Result of matching a context's own keywords.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContextEvidence {
    /// Its Atlas.
    pub atlas_id: String,
    /// The context.
    pub context_id: String,
    /// Result of matching the keywords.
    pub outcome: CheckpointOutcome,
    /// Keywords that select the context, each with the position of its first match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<KeywordMatch>,
}

/// Explains input in a hypothetical session under these Atlases.
#[must_use]
pub fn explain_input_under(
    atlases: &[Atlas],
    text: &str,
    imagined: &HypotheticalSession,
    now: Timestamp,
) -> InputExplanation {
    let session = imagined.to_session(atlases, now);
    let (extensions, answers) = (Extensions::default(), ExtensionAnswers::default());
    let customs = CustomTriggers {
        extensions: &extensions,
        answers: &answers,
    };
    explain_session_input(atlases, &session, text, customs, now)
}

/// Explains input in a given session.
pub(super) fn explain_session_input(
    atlases: &[Atlas],
    session: &Session,
    text: &str,
    customs: CustomTriggers<'_>,
    now: Timestamp,
) -> InputExplanation {
    let seen = KeywordMatches::of(atlases, text);
    let occasion = TriggerEvent::Input { text, seen: &seen };
    let (verdict, checkpoints) = occasion_evidence(atlases, session, occasion, customs, now);
    InputExplanation {
        verdict,
        checkpoints,
        contexts: atlases
            .iter()
            .flat_map(|atlas| context_evidence(atlas, text))
            .collect(),
    }
}

/// Evaluates all checkpoints on an event other than an action request.
pub(super) fn occasion_evidence(
    atlases: &[Atlas],
    session: &Session,
    occasion: TriggerEvent<'_>,
    customs: CustomTriggers<'_>,
    now: Timestamp,
) -> (ExplainedVerdict, Vec<CheckpointEvidence>) {
    let mut fired = evaluation::fired_on_event(atlases, session, occasion, customs, now);
    if let (TriggerEvent::Input { .. }, false) = (occasion, session.is_blocked()) {
        // Due intervals are also checked when input arrives.
        let due =
            evaluation::fired_on_event(atlases, session, TriggerEvent::IntervalCheck, customs, now);
        fired.extend(due);
        fired.sort_by_key(|fired| std::cmp::Reverse(fired.checkpoint.priority));
    }
    let facts = evaluation::facts_of(session, occasion, now);
    let unfired = |checkpoint: &Checkpoint| match occasion {
        TriggerEvent::Input { .. } if super::is_interval(checkpoint) => {
            super::short_of(session, checkpoint, now).unwrap_or_else(condition_fails)
        }
        _ => unfired(checkpoint, occasion),
    };
    fired_evidence(atlases, &fired, &facts, unfired)
}

/// Lists the fired checkpoints, and the reasons why the others did not fire.
pub(super) fn fired_evidence(
    atlases: &[Atlas],
    fired: &[FiredCheckpoint<'_>],
    facts: &Facts<'_>,
    unfired: impl Fn(&Checkpoint) -> CheckpointOutcome,
) -> (ExplainedVerdict, Vec<CheckpointEvidence>) {
    let blocking = fired
        .iter()
        .filter(|fired| fired.checkpoint.mode == CheckpointMode::Blocking);
    let gates: Vec<_> = blocking.map(|fired| fired.checkpoint.id.clone()).collect();
    let verdict = if gates.is_empty() {
        ExplainedVerdict::Allowed
    } else {
        ExplainedVerdict::Held { gates }
    };
    let of = |atlas: &Atlas, checkpoint: &Checkpoint| {
        let mut fired = fired.iter();
        let own = fired.find(|fired| std::ptr::eq(fired.checkpoint, checkpoint));
        let outcome = match own {
            Some(FiredCheckpoint { why, .. }) => CheckpointOutcome::Fired { why: why.clone() },
            None => unfired(checkpoint),
        };
        let when = checkpoint.when.as_ref();
        let conditions = when.map(|when| when.explain(facts)).unwrap_or_default();
        CheckpointEvidence {
            matches: own.map(|fired| fired.matches.clone()).unwrap_or_default(),
            ..CheckpointEvidence::new(atlas, checkpoint, outcome, conditions)
        }
    };
    let checkpoints = atlases
        .iter()
        .flat_map(|atlas| {
            atlas
                .checkpoints
                .iter()
                .map(move |checkpoint| (atlas, checkpoint))
        })
        .map(|(atlas, checkpoint)| of(atlas, checkpoint));
    let mut checkpoints: Vec<_> = checkpoints.collect();
    super::by_priority(&mut checkpoints);
    (verdict, checkpoints)
}

/// Returns the reason why a checkpoint does not fire on an event.
fn unfired(checkpoint: &Checkpoint, occasion: TriggerEvent<'_>) -> CheckpointOutcome {
    match (&checkpoint.trigger, occasion) {
        (Trigger::Keyword(keywords), TriggerEvent::Input { text, .. }) => {
            if keywords.find(text).is_empty() {
                not_found(keywords)
            } else {
                condition_fails()
            }
        }
        (
            Trigger::ActionPost(patterns),
            TriggerEvent::ActionSucceeded(action) | TriggerEvent::ActionFailed(action),
        ) => {
            if patterns.matches(action) {
                return condition_fails();
            }
            let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
            CheckpointOutcome::NotFired {
                wanted: format!("an action like [{}]", patterns.join(", ")),
                actual: action.to_owned(),
            }
        }
        (Trigger::Interactive, TriggerEvent::CheckpointRequested(name))
            if checkpoint.id != name =>
        {
            CheckpointOutcome::NotFired {
                wanted: format!("a request for `{}`", checkpoint.id),
                actual: format!("a request for `{name}`"),
            }
        }
        (Trigger::Custom(custom), TriggerEvent::Input { .. }) if custom.on_input => {
            condition_fails()
        }
        (Trigger::ErrorOccurred, TriggerEvent::ErrorReported | TriggerEvent::ActionFailed(_))
        | (Trigger::ExplicitRequest, TriggerEvent::ContextRequested)
        | (Trigger::Interactive, TriggerEvent::CheckpointRequested(_))
        | (Trigger::SessionEnd, TriggerEvent::SessionEnd) => condition_fails(),
        (trigger, _) => skipped(trigger),
    }
}

/// Returns the skipped outcome, with the event at which the trigger is evaluated.
pub(super) fn skipped(trigger: &Trigger) -> CheckpointOutcome {
    let at = match trigger {
        Trigger::Keyword(_) => "input",
        Trigger::TimeInterval(_) | Trigger::CountInterval(_) => {
            "intervals, checked at each action or input"
        }
        Trigger::SessionStart => "the start of a session",
        Trigger::SessionEnd => "the end of a session",
        Trigger::Custom(custom) if custom.on_input && !custom.on_action => "input",
        Trigger::ActionPre(_)
        | Trigger::RiskThreshold(_)
        | Trigger::CapabilityAccess(_)
        | Trigger::Custom(_) => "actions",
        Trigger::ActionPost(_) => "the end of an action",
        Trigger::ExplicitRequest | Trigger::Interactive => "the agent's request",
        Trigger::ErrorOccurred => "errors",
    };
    CheckpointOutcome::Skipped {
        why: format!("fires at {at}"),
    }
}

pub(super) fn condition_fails() -> CheckpointOutcome {
    CheckpointOutcome::NotFired {
        wanted: "when".to_owned(),
        actual: "its condition does not hold".to_owned(),
    }
}

fn not_found(keywords: &Keywords) -> CheckpointOutcome {
    let texts: Vec<_> = keywords.texts().collect();
    let (quantity, actual) = match keywords.mode() {
        MatchMode::All => ("all", "not all found"),
        MatchMode::Any | MatchMode::Phrase | MatchMode::Regex | MatchMode::Fuzzy => {
            ("one", "none found")
        }
    };
    CheckpointOutcome::NotFired {
        wanted: format!("{quantity} of [{}]", texts.join(", ")),
        actual: actual.to_owned(),
    }
}

fn context_evidence<'a>(
    atlas: &'a Atlas,
    text: &'a str,
) -> impl Iterator<Item = ContextEvidence> + 'a {
    let injections = atlas.injections.iter();
    injections.filter_map(move |injection| {
        let keywords = injection.keywords.as_ref()?;
        let found = keywords.find(text);
        let outcome = if found.is_empty() {
            not_found(keywords)
        } else {
            CheckpointOutcome::Fired {
                why: format!("keywords found: {}", KeywordMatch::describe(&found)),
            }
        };
        Some(ContextEvidence {
            atlas_id: atlas.id.clone(),
            context_id: injection.context_id.clone(),
            outcome,
            matches: found,
        })
    })
}
