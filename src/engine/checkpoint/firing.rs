//! Firing of a single checkpoint, in an Atlas that contains only this checkpoint, by the rules that the
//! engine uses.

use std::collections::BTreeSet;

use serde_json::Value;

use super::CheckpointConfig;
use crate::atlas::Atlas;
use crate::atlas::condition::{Condition, ConditionDef, Facts, Truth};
use crate::atlas::document::{
    AtlasManifest, CapabilityDef, CheckpointTrigger, ContextBlockDef, InjectMode, RiskConfig,
    RiskTier, StewardCheckpointDef,
};
use crate::atlas::index::{ActionMatches, KeywordMatches};
use crate::base::clock::Timestamp;
use crate::engine::evaluation::usage::Usage;
use crate::engine::evaluation::{
    self, CheckpointFiring as Fires, EvaluationCase, NOTHING_OVERRIDDEN, TriggerEvent,
};
use crate::engine::explanation::HypotheticalSession;
use crate::engine::extensions::Extensions;
use crate::engine::extensions::custom_triggers::CustomTriggers;
use crate::engine::extensions::suspension::ExtensionAnswers;
use crate::engine::gates::held::{ActionView, TierSource};
use crate::engine::sessions::session::Session;

/// Result of evaluating a single checkpoint.
pub(super) struct SingleFiring {
    pub(super) fired: bool,
    /// Reason why the checkpoint could not be judged. It then counts as fired.
    pub(super) unjudged: Option<String>,
}

impl SingleFiring {
    fn of(fired: bool) -> Self {
        Self {
            fired,
            unjudged: None,
        }
    }

    fn unjudged(why: String) -> Self {
        Self {
            fired: true,
            unjudged: Some(why),
        }
    }

    fn missing(key: &str) -> Self {
        Self::unjudged(format!(
            "the checkpoint cannot be evaluated: the trigger data has no `{key}`"
        ))
    }
}

/// Evaluates a checkpoint on trigger data.
pub(super) fn firing(
    config: CheckpointConfig,
    definition: &StewardCheckpointDef,
    data: &Value,
) -> SingleFiring {
    let atlas = match Atlas::from_manifest(&manifest(config, definition)) {
        Ok(loaded) => loaded.atlas,
        Err(error) => {
            return SingleFiring::unjudged(format!("the checkpoint is not valid: {error}"));
        }
    };
    let happened = match TriggerFacts::read(data) {
        Ok(happened) => happened,
        Err(why) => return SingleFiring::unjudged(why),
    };
    let fired = trigger_firing(&atlas, &definition.trigger, &happened);
    if !fired.fired || fired.unjudged.is_some() {
        return fired;
    }
    let of_trigger = match &definition.trigger {
        CheckpointTrigger::Custom { when, .. } => when.as_ref(),
        _ => None,
    };
    let conditions = [of_trigger, definition.when.as_ref()].into_iter().flatten();
    for condition in conditions {
        match happened.truth(condition) {
            Ok(Truth::True) => {}
            Ok(Truth::False) => return SingleFiring::of(false),
            Ok(Truth::Unknown) => {
                let paths = condition.paths().join("`, `");
                return SingleFiring::unjudged(format!(
                    "the condition on `{paths}` cannot be evaluated"
                ));
            }
            Err(unjudged) => return unjudged,
        }
    }
    fired
}

/// Builds an Atlas that contains only the checkpoint and what it names.
///
/// Its conditions are judged separately: the engine has every fact, and trigger data may lack some.
fn manifest(config: CheckpointConfig, definition: &StewardCheckpointDef) -> AtlasManifest {
    let mut checkpoint = definition.clone();
    checkpoint.when = None;
    let mut capabilities: BTreeSet<&String> = definition.unlock_capabilities.iter().collect();
    capabilities.extend(&definition.lock_capabilities);
    match (&definition.trigger, &mut checkpoint.trigger) {
        (CheckpointTrigger::CapabilityAccess { capability_ids }, _) => {
            capabilities.extend(capability_ids);
        }
        (_, CheckpointTrigger::Custom { when, .. }) => *when = None,
        _ => {}
    }
    if let Some(guidance) = &mut checkpoint.guidance {
        // Guidance may end after a checkpoint that is not part of this Atlas.
        guidance.expires_after = None;
    }
    let contexts: BTreeSet<&String> = definition.inject_contexts.iter().collect();
    AtlasManifest {
        atlas_version: "1.0".to_owned(),
        atlas_id: "single".to_owned(),
        version: "1".to_owned(),
        name: "Single checkpoint".to_owned(),
        capabilities: capabilities.into_iter().map(|id| capability(id)).collect(),
        context_blocks: contexts.into_iter().map(|id| context(id)).collect(),
        checkpoints: vec![checkpoint],
        risk_config: RiskConfig {
            mode: config.risk_mode,
        },
        ..AtlasManifest::default()
    }
}

/// Builds a capability with one action of the same name.
fn capability(id: &str) -> CapabilityDef {
    CapabilityDef {
        capability_id: id.to_owned(),
        name: String::new(),
        description: String::new(),
        actions: vec![id.to_owned()],
    }
}

fn context(id: &str) -> ContextBlockDef {
    ContextBlockDef {
        context_id: id.to_owned(),
        name: String::new(),
        content: id.to_owned(),
        inject_mode: InjectMode::OnDemand,
        keywords: Vec::new(),
        actions: Vec::new(),
        priority: 0,
    }
}

/// Reads a field of the trigger data, if present.
fn read_field<T: serde::de::DeserializeOwned>(
    data: &Value,
    key: &str,
) -> Result<Option<T>, String> {
    let part = data.get(key).cloned().map(serde_json::from_value);
    part.transpose()
        .map_err(|error| format!("the checkpoint cannot be evaluated: `{key}`: {error}"))
}

/// Trigger data after parsing.
struct TriggerFacts<'d> {
    action: Option<&'d str>,
    params: Option<&'d Value>,
    tier: Option<RiskTier>,
    capability: Option<&'d str>,
    input: Option<&'d str>,
    session: Option<HypotheticalSession>,
    now: Option<Timestamp>,
}

impl<'d> TriggerFacts<'d> {
    fn read(data: &'d Value) -> Result<Self, String> {
        let text = |key: &str| match data.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(format!(
                "the checkpoint cannot be evaluated: `{key}` must be text"
            )),
        };
        Ok(Self {
            action: text("action_id")?,
            params: data.get("params"),
            tier: read_field(data, "risk_tier")?,
            capability: text("capability_id")?,
            input: text("input")?,
            session: read_field(data, "session")?,
            now: read_field(data, "now")?,
        })
    }

    fn now(&self) -> Timestamp {
        self.now.unwrap_or(Timestamp::from_micros(0))
    }

    fn session(&self, atlas: &Atlas) -> Session {
        let imagined = self.session.clone().unwrap_or_default();
        imagined.to_session(std::slice::from_ref(atlas), self.now())
    }

    /// Evaluates a condition, if the data has every value that it reads.
    fn truth(&self, condition: &ConditionDef) -> Result<Truth, SingleFiring> {
        for path in condition.paths() {
            let (key, known) = match path.split('.').next().unwrap_or_default() {
                "action" => ("action_id", self.action.is_some()),
                "params" => ("params", self.params.is_some()),
                "input" => ("input", self.input.is_some()),
                "time" => ("now", self.now.is_some()),
                _ => ("session", self.session.is_some()),
            };
            if !known {
                return Err(SingleFiring::missing(key));
            }
        }
        let compiled = Condition::compile(condition).map_err(|errors| {
            let first = errors.first().map(ToString::to_string).unwrap_or_default();
            SingleFiring::unjudged(format!("the condition cannot be evaluated: {first}"))
        })?;
        let session = self
            .session
            .clone()
            .unwrap_or_default()
            .to_session(&[], self.now());
        Ok(compiled.evaluate(&Facts {
            action: self.action,
            params: self.params,
            input: self.input,
            session: session.id.as_str(),
            agent: &session.agent,
            intent: session
                .intent
                .as_ref()
                .map(|intent| intent.original.as_str()),
            actions: session.actions,
            started_at: session.started_at,
            now: self.now(),
        }))
    }
}

/// Returns whether the trigger fires. A trigger whose values are missing in the data cannot be judged.
fn trigger_firing(
    atlas: &Atlas,
    trigger: &CheckpointTrigger,
    happened: &TriggerFacts<'_>,
) -> SingleFiring {
    match trigger {
        CheckpointTrigger::ActionPre { .. } => match happened.action {
            Some(action) => {
                SingleFiring::of(fires_before_action(atlas, happened, action, RiskTier::Low))
            }
            None => SingleFiring::missing("action_id"),
        },
        CheckpointTrigger::RiskThreshold { .. } => {
            let detected = happened.action.map(|action| {
                let params = happened.params.unwrap_or(&Value::Null);
                evaluation::risk_tier(std::slice::from_ref(atlas), action, params).0
            });
            match happened.tier.or(detected) {
                Some(tier) => {
                    let action = happened.action.unwrap_or_default();
                    SingleFiring::of(fires_before_action(atlas, happened, action, tier))
                }
                None => SingleFiring::missing("risk_tier"),
            }
        }
        CheckpointTrigger::CapabilityAccess { .. } => match happened.capability {
            Some(capability) => SingleFiring::of(fires_before_action(
                atlas,
                happened,
                capability,
                RiskTier::Low,
            )),
            None => SingleFiring::missing("capability_id"),
        },
        CheckpointTrigger::ActionPost { .. } => match happened.action {
            Some(action) => SingleFiring::of(fires_on_event(
                atlas,
                happened,
                TriggerEvent::ActionSucceeded(action),
            )),
            None => SingleFiring::missing("action_id"),
        },
        CheckpointTrigger::Keyword { .. } => match happened.input {
            Some(text) => {
                let seen = KeywordMatches::of(std::slice::from_ref(atlas), text);
                let seen = &seen;
                SingleFiring::of(fires_on_event(
                    atlas,
                    happened,
                    TriggerEvent::Input { text, seen },
                ))
            }
            None => SingleFiring::missing("input"),
        },
        // The caller evaluates these at the right time.
        CheckpointTrigger::SessionStart
        | CheckpointTrigger::SessionEnd
        | CheckpointTrigger::TimeInterval { .. }
        | CheckpointTrigger::CountInterval { .. }
        | CheckpointTrigger::ExplicitRequest
        | CheckpointTrigger::ErrorOccurred
        | CheckpointTrigger::Interactive
        | CheckpointTrigger::Custom { .. } => SingleFiring::of(true),
    }
}

/// Returns whether the checkpoint fires before an action.
fn fires_before_action(
    atlas: &Atlas,
    happened: &TriggerFacts<'_>,
    action: &str,
    tier: RiskTier,
) -> bool {
    let atlases = std::slice::from_ref(atlas);
    let (session, usage) = (happened.session(atlas), Usage::default());
    let (extensions, answers) = (Extensions::default(), ExtensionAnswers::default());
    let matches = ActionMatches::of(atlases, action);
    let case = EvaluationCase {
        atlases,
        usage: &usage,
        custom_triggers: CustomTriggers {
            extensions: &extensions,
            answers: &answers,
        },
        overridden: NOTHING_OVERRIDDEN,
        session: &session,
        call: ActionView {
            action,
            params: happened.params.unwrap_or(&Value::Null),
            tier,
            tier_source: TierSource::Declared,
        },
        now: happened.now(),
    };
    let mut checkpoints = atlas.checkpoints.iter();
    checkpoints.any(|checkpoint| {
        let firing = evaluation::checkpoint_firing(case, &matches, atlas, checkpoint);
        matches!(firing, Fires::Fires { .. })
    })
}

/// Returns whether the checkpoint fires on an event that is not an action request.
fn fires_on_event(atlas: &Atlas, happened: &TriggerFacts<'_>, occasion: TriggerEvent<'_>) -> bool {
    let (extensions, answers) = (Extensions::default(), ExtensionAnswers::default());
    let customs = CustomTriggers {
        extensions: &extensions,
        answers: &answers,
    };
    let session = happened.session(atlas);
    let atlases = std::slice::from_ref(atlas);
    !evaluation::fired_on_event(atlases, &session, occasion, customs, happened.now()).is_empty()
}
