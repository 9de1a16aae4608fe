//! What would come of input, and why.

use serde::Serialize;

use super::{CheckpointEvidence, CheckpointOutcome, Imagined, Verdict};
use crate::atlas::compiled::{Atlas, Checkpoint, Trigger};
use crate::atlas::condition::Facts;
use crate::atlas::document::{CheckpointMode, MatchMode};
use crate::atlas::index::Sightings;
use crate::atlas::keyword::Keywords;
use crate::base::clock::Timestamp;
use crate::engine::customs::Customs;
use crate::engine::evaluate::{self, Fired, Occasion};
use crate::engine::extension::Extensions;
use crate::engine::session::Session;
use crate::engine::suspend::Answers;

/// What would come of input, and why.
#[derive(Clone, Debug, Serialize)]
pub struct InputExplanation {
    /// What would happen.
    pub verdict: Verdict,
    /// Every checkpoint, in the order they are looked at.
    pub checkpoints: Vec<CheckpointEvidence>,
    /// Contexts whose own keywords call for them, and every other that has some.
    pub contexts: Vec<ContextEvidence>,
}

/// What a context's own keywords made of input.
#[derive(Clone, Debug, Serialize)]
pub struct ContextEvidence {
    /// Its Atlas.
    pub atlas_id: String,
    /// The context.
    pub context_id: String,
    /// Whether it is called for.
    pub outcome: CheckpointOutcome,
}

/// What would come of input in such a session, under these Atlases.
#[must_use]
pub fn explain_input_under(
    atlases: &[Atlas],
    text: &str,
    imagined: &Imagined,
    now: Timestamp,
) -> InputExplanation {
    let session = imagined.session(atlases, now);
    let seen = Sightings::of(atlases, text);
    let occasion = Occasion::Input { text, seen: &seen };
    let (extensions, answers) = (Extensions::default(), Answers::default());
    let customs = Customs {
        extensions: &extensions,
        answers: &answers,
    };
    let fired = evaluate::on(atlases, &session, occasion, customs, now);
    let blocking = fired
        .iter()
        .filter(|fired| fired.checkpoint.mode == CheckpointMode::Blocking);
    let gates: Vec<_> = blocking.map(|fired| fired.checkpoint.id.clone()).collect();
    let verdict = if gates.is_empty() {
        Verdict::Allowed
    } else {
        Verdict::Held { gates }
    };
    let mut checkpoints = Vec::new();
    let mut contexts = Vec::new();
    for atlas in atlases {
        for checkpoint in &atlas.checkpoints {
            let why = fired
                .iter()
                .find(|it| std::ptr::eq(it.checkpoint, checkpoint));
            let outcome = match why {
                Some(Fired { why, .. }) => CheckpointOutcome::Fired { why: why.clone() },
                None => unfired(checkpoint, text),
            };
            checkpoints.push(CheckpointEvidence {
                atlas_id: atlas.id.clone(),
                checkpoint_id: checkpoint.id.clone(),
                kind: checkpoint.kind,
                mode: checkpoint.mode,
                outcome,
                conditions: checkpoint
                    .when
                    .as_ref()
                    .map(|when| when.explain(&facts(&session, text, now)))
                    .unwrap_or_default(),
            });
        }
        contexts.extend(called_for(atlas, text));
    }
    InputExplanation {
        verdict,
        checkpoints,
        contexts,
    }
}

/// Why a checkpoint does not fire on input.
fn unfired(checkpoint: &Checkpoint, text: &str) -> CheckpointOutcome {
    match &checkpoint.trigger {
        Trigger::Keyword(keywords) => {
            if keywords.find(text).is_empty() {
                not_found(keywords)
            } else {
                condition_fails()
            }
        }
        Trigger::Custom(custom) if custom.on_input => condition_fails(),
        Trigger::TimeInterval(_) | Trigger::CountInterval(_) => {
            skipped("intervals, when an action is asked for")
        }
        Trigger::SessionStart => skipped("the start of a session"),
        Trigger::SessionEnd => skipped("the end of a session"),
        Trigger::ActionPre(_)
        | Trigger::RiskThreshold(_)
        | Trigger::CapabilityAccess(_)
        | Trigger::Custom(_) => skipped("actions"),
        Trigger::ActionPost(_) => skipped("the end of an action"),
        Trigger::ExplicitRequest | Trigger::Interactive => skipped("the agent's request"),
        Trigger::ErrorOccurred => skipped("errors"),
    }
}

pub(super) fn condition_fails() -> CheckpointOutcome {
    CheckpointOutcome::NotFired {
        wanted: "when".to_owned(),
        actual: "its condition does not hold".to_owned(),
    }
}

fn skipped(at: &str) -> CheckpointOutcome {
    CheckpointOutcome::Skipped {
        why: format!("it fires at {at}"),
    }
}

fn not_found(keywords: &Keywords) -> CheckpointOutcome {
    let texts: Vec<_> = keywords.texts().collect();
    let (quantity, actual) = match keywords.mode() {
        MatchMode::All => ("all", "not all of them found"),
        MatchMode::Any | MatchMode::Phrase | MatchMode::Regex | MatchMode::Fuzzy => {
            ("one", "none found")
        }
    };
    CheckpointOutcome::NotFired {
        wanted: format!("{quantity} of [{}]", texts.join(", ")),
        actual: actual.to_owned(),
    }
}

fn called_for<'a>(atlas: &'a Atlas, text: &'a str) -> impl Iterator<Item = ContextEvidence> + 'a {
    let injections = atlas.injections.iter();
    injections.filter_map(move |injection| {
        let keywords = injection.keywords.as_ref()?;
        let found = keywords.find(text);
        let words: Vec<_> = found.iter().map(|it| format!("`{}`", it.keyword)).collect();
        let outcome = if words.is_empty() {
            not_found(keywords)
        } else {
            CheckpointOutcome::Fired {
                why: format!("on_match: found {}", words.join(", ")),
            }
        };
        Some(ContextEvidence {
            atlas_id: atlas.id.clone(),
            context_id: injection.context_id.clone(),
            outcome,
        })
    })
}

fn facts<'a>(session: &'a Session, text: &'a str, now: Timestamp) -> Facts<'a> {
    Facts {
        action: None,
        params: None,
        input: Some(text),
        session: session.id.as_str(),
        agent: &session.agent,
        intent: session.intent.as_deref(),
        actions: session.actions,
        started_at: session.started_at,
        now,
    }
}
