//! Decoder from nodes to the manifest; written by hand so that every problem has its exact position.
//!
//! Decoding never stops at a problem. The decoder reports it and continues with a placeholder, so that one run
//! shows all problems and the n-th item of a list stays the n-th. Placeholders never reach an `Atlas`, because a
//! manifest with an error does not pass validation.

mod checkpoint;
mod condition;
mod config;
mod deserialization;
mod fields;
mod names;
mod readers;
mod steward;
mod trace;
mod trigger;

pub(super) use fields::{OWN_KEY, Section, join};

use fields::{PathNode, decode_map};
use names::{
    DEFAULT_DECISIONS, INJECT_MODES, POLICY_KINDS, RISK_MODES, RISK_TIERS, SCOPES, UNKNOWN_ACTIONS,
};
use readers::{boolean, count, infallible, integer, list, number, one_of, schema, text, texts};

use super::diagnostic::{Code, Problems};
use super::document::{
    ActionDef, AtlasManifest, CapabilityDef, ContextBlockDef, PolicyDef, PolicyKind, RiskConfig,
};
use super::yaml::YamlNode;

/// Decodes a whole manifest. After a reported error, the result must not be used as an Atlas.
pub(super) fn decode(root: &YamlNode, problems: &mut Problems<'_>) -> AtlasManifest {
    decode_map(
        &PathNode::root(root),
        Section::Manifest,
        problems,
        |fields| AtlasManifest {
            atlas_version: fields.required("atlas_version", text).unwrap_or_default(),
            atlas_id: fields.required("atlas_id", text).unwrap_or_default(),
            version: fields.required("version", text).unwrap_or_default(),
            name: fields.required("name", text).unwrap_or_default(),
            description: fields.optional("description", text).unwrap_or_default(),
            steward: fields.optional("steward", infallible(steward::steward)),
            capabilities: fields
                .optional("capabilities", list(capability))
                .unwrap_or_default(),
            checkpoints: fields
                .optional("checkpoints", list(checkpoint::checkpoint))
                .unwrap_or_default(),
            context_blocks: fields
                .optional("context_blocks", list(context))
                .unwrap_or_default(),
            policies: fields
                .optional("policies", list(policy))
                .unwrap_or_default(),
            actions: fields.optional("actions", list(action)).unwrap_or_default(),
            default_decision: fields
                .optional("default_decision", one_of("decision", DEFAULT_DECISIONS))
                .unwrap_or_default(),
            unknown_actions: fields
                .optional("unknown_actions", one_of("decision", UNKNOWN_ACTIONS))
                .unwrap_or_default(),
            risk_config: fields
                .optional("risk_config", infallible(risk_config))
                .unwrap_or_default(),
            checkpoint_config: fields
                .optional("checkpoint_config", infallible(config::checkpoints)),
            cache_config: fields
                .optional("cache_config", infallible(config::cache))
                .unwrap_or_default(),
            trace_config: fields.optional("trace_config", infallible(trace::trace)),
        },
    )
}

fn capability(value: &PathNode<'_>, problems: &mut Problems<'_>) -> CapabilityDef {
    decode_map(value, Section::Capability, problems, |fields| {
        CapabilityDef {
            capability_id: fields.required("capability_id", text).unwrap_or_default(),
            name: fields.optional("name", text).unwrap_or_default(),
            description: fields.optional("description", text).unwrap_or_default(),
            actions: fields.required("actions", texts).unwrap_or_default(),
        }
    })
}

fn risk_config(value: &PathNode<'_>, problems: &mut Problems<'_>) -> RiskConfig {
    decode_map(value, Section::RiskConfig, problems, |fields| RiskConfig {
        mode: fields
            .optional("mode", one_of("risk mode", RISK_MODES))
            .unwrap_or_default(),
    })
}

fn context(value: &PathNode<'_>, problems: &mut Problems<'_>) -> ContextBlockDef {
    decode_map(value, Section::Context, problems, |fields| {
        // These keys may also be in a nested map, but not in both places.
        let nested = fields.optional("checkpoint_config", infallible(context_config));
        let flat = ContextConfig {
            keywords: fields.optional("keywords", texts),
            actions: fields.optional("actions", texts),
            priority: fields.optional("priority", integer),
        };
        let config = match nested {
            Some(nested) if flat == ContextConfig::default() => nested,
            Some(_) => {
                let message = "write these keys inside or outside `checkpoint_config`, not both";
                fields.report_problem(Code::Contradiction, "checkpoint_config", message);
                flat
            }
            None => flat,
        };
        ContextBlockDef {
            context_id: fields.required("context_id", text).unwrap_or_default(),
            name: fields.optional("name", text).unwrap_or_default(),
            content: fields.required("content", text).unwrap_or_default(),
            inject_mode: fields
                .optional("inject_mode", one_of("inject mode", INJECT_MODES))
                .unwrap_or_default(),
            keywords: config.keywords.unwrap_or_default(),
            actions: config.actions.unwrap_or_default(),
            priority: config.priority.unwrap_or_default(),
        }
    })
}

/// The triggers of a context injection.
#[derive(Default, PartialEq)]
struct ContextConfig {
    keywords: Option<Vec<String>>,
    actions: Option<Vec<String>>,
    priority: Option<i64>,
}

fn context_config(value: &PathNode<'_>, problems: &mut Problems<'_>) -> ContextConfig {
    decode_map(value, Section::ContextConfig, problems, |fields| {
        ContextConfig {
            keywords: fields.optional("keywords", texts),
            actions: fields.optional("actions", texts),
            priority: fields.optional("priority", integer),
        }
    })
}

fn policy(value: &PathNode<'_>, problems: &mut Problems<'_>) -> PolicyDef {
    decode_map(value, Section::Policy, problems, |fields| PolicyDef {
        policy_id: fields.required("policy_id", text).unwrap_or_default(),
        kind: fields
            .required("type", one_of("policy type", POLICY_KINDS))
            .unwrap_or(PolicyKind::Deny),
        actions: fields.required("actions", texts).unwrap_or_default(),
        reason: fields.optional("reason", text).unwrap_or_default(),
        max_calls: fields.optional("max_calls", count),
        window_seconds: fields.optional("window_seconds", count),
        limit: fields.optional("limit", number),
        cost: fields.optional("cost", text),
        scope: fields
            .optional("scope", one_of("scope", SCOPES))
            .unwrap_or_default(),
        when: fields.optional("when", infallible(condition::condition)),
        overridable: fields.optional("override", boolean).unwrap_or_default(),
    })
}

fn action(value: &PathNode<'_>, problems: &mut Problems<'_>) -> ActionDef {
    decode_map(value, Section::Action, problems, |fields| ActionDef {
        action_id: fields.required("action_id", text).unwrap_or_default(),
        name: fields.optional("name", text).unwrap_or_default(),
        description: fields.optional("description", text).unwrap_or_default(),
        risk_tier: fields.optional("risk_tier", one_of("risk tier", RISK_TIERS)),
        parameters_schema: fields.optional("parameters_schema", schema),
    })
}
