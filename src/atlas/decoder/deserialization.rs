//! Serde deserialization for the parts of a manifest, through the decoder that also reads files.
//!
//! Contract: serde reads exactly what a file may say, draft spellings and keys of the steward's own included.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

use super::super::condition::ConditionDef;
use super::super::diagnostic::{ByteSpan, Code, Diagnostic, Problems, Severity};
use super::super::document::{
    ActionDef, AnswerValidation, AtlasManifest, CacheConfig, CapabilityDef, CheckpointConfig,
    CheckpointQuestion, CheckpointTrigger, ContextBlockDef, PolicyDef, RiskConfig, Steward,
    StewardCheckpointDef, TraceConfig,
};
use super::super::yaml::{YamlEntry, YamlNode, YamlValue};
use super::fields::PathNode;
use super::{action, capability, checkpoint, condition, config, context, policy, risk_config};
use super::{decode, steward, trace, trigger};

/// Decodes a part from a tree without source positions.
fn read<T>(
    node: &YamlNode,
    part: impl FnOnce(&PathNode<'_>, &mut Problems<'_>) -> T,
) -> Result<T, String> {
    let mut problems = Problems::new("", "");
    let read = part(&PathNode::root(node), &mut problems);
    let found = problems.into_diagnostics();
    let refused = |found: &&Diagnostic| found.severity == Severity::Error;
    match found.iter().find(refused) {
        None => Ok(read),
        Some(Diagnostic {
            path,
            message,
            help,
            ..
        }) => {
            let place = if path.is_empty() { "" } else { ": " };
            let help = help.as_ref().map(|help| format!(" ({help})"));
            Err(format!(
                "{path}{place}{message}{}",
                help.unwrap_or_default()
            ))
        }
    }
}

/// Decodes a trigger outside a checkpoint. The `priority` of a checkpoint is an error here.
fn standalone_trigger(value: &PathNode<'_>, problems: &mut Problems<'_>) -> CheckpointTrigger {
    let written = trigger::trigger(value, problems);
    if written
        .as_ref()
        .is_some_and(|trigger| trigger.priority.is_some())
    {
        let message = "`priority` belongs to the checkpoint, not to its trigger";
        problems.add(value.problem(Code::Contradiction, message));
    }
    // An unreadable trigger has been reported; the placeholder is discarded with the error.
    written.map_or(CheckpointTrigger::SessionStart, |written| written.trigger)
}

macro_rules! read_by_the_decoder {
    ($($part:ty => $read:expr;)+) => {$(
        impl<'de> Deserialize<'de> for $part {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let node = YamlNode::deserialize(deserializer)?;
                read(&node, $read).map_err(D::Error::custom)
            }
        }
    )+};
}

read_by_the_decoder! {
    AtlasManifest => |value, problems| decode(value.node, problems);
    Steward => steward::steward;
    CapabilityDef => capability;
    StewardCheckpointDef => checkpoint::checkpoint;
    CheckpointTrigger => standalone_trigger;
    CheckpointQuestion => checkpoint::question;
    AnswerValidation => checkpoint::validation;
    ContextBlockDef => context;
    PolicyDef => policy;
    ActionDef => action;
    ConditionDef => condition::condition;
    RiskConfig => risk_config;
    CheckpointConfig => config::checkpoints;
    CacheConfig => config::cache;
    TraceConfig => trace::trace;
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl NodeVisitor {
    fn node(value: YamlValue) -> YamlNode {
        YamlNode {
            span: ByteSpan::default(),
            value,
        }
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = YamlNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of an Atlas")
    }

    fn visit_unit<E: Error>(self) -> Result<YamlNode, E> {
        Ok(Self::node(YamlValue::Null))
    }

    fn visit_none<E: Error>(self) -> Result<YamlNode, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlNode, D::Error> {
        YamlNode::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<YamlNode, E> {
        Ok(Self::node(YamlValue::Bool(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<YamlNode, E> {
        Ok(Self::node(YamlValue::Number(value.into())))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<YamlNode, E> {
        Ok(Self::node(YamlValue::Number(value.into())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<YamlNode, E> {
        let number = Number::from_f64(value);
        let number = number.ok_or_else(|| E::custom("a number must be finite"))?;
        Ok(Self::node(YamlValue::Number(number)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<YamlNode, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<YamlNode, E> {
        Ok(Self::node(YamlValue::String(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Self::node(YamlValue::Seq(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlNode, A::Error> {
        let mut entries: Vec<YamlEntry> = Vec::new();
        while let Some((key, node)) = map.next_entry::<String, YamlNode>()? {
            if entries.iter().any(|entry| entry.key == key) {
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            entries.push(YamlEntry {
                key,
                key_span: ByteSpan::default(),
                node,
            });
        }
        Ok(Self::node(YamlValue::Map(entries)))
    }
}
