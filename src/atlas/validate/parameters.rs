//! Advice about parameters in conditions and costs that the schemas of the covered actions do not have.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::ManifestValidator;
use crate::atlas::condition::ConditionDef;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{AtlasManifest, CheckpointTrigger};
use crate::atlas::suggest::closest_match;
use crate::base::pattern::Pattern;

impl ManifestValidator<'_, '_> {
    /// Advises about parameters that no action covered by the rule has.
    pub(super) fn advise_parameters(&mut self, manifest: &AtlasManifest) {
        for (index, policy) in manifest.policies.iter().enumerate() {
            let path = format!("policies[{index}]");
            let schemas = schemas_of(manifest, Some(&policy.actions));
            self.advise_condition(&format!("{path}.when"), policy.when.as_ref(), &schemas);
            if let Some(cost) = &policy.cost {
                let segments: Vec<_> = cost.split('.').collect();
                self.advise_parameter(&format!("{path}.cost"), &segments, &schemas);
            }
        }
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            let path = format!("checkpoints[{index}]");
            let patterns = match &checkpoint.trigger {
                CheckpointTrigger::ActionPre { patterns } => Some(patterns),
                _ => None,
            };
            let schemas = schemas_of(manifest, patterns);
            self.advise_condition(&format!("{path}.when"), checkpoint.when.as_ref(), &schemas);
            if let CheckpointTrigger::Custom { when, .. } = &checkpoint.trigger {
                let path = self.detail_path(&format!("{path}.trigger"), &["when"]);
                self.advise_condition(&path, when.as_ref(), &schemas);
            }
        }
    }

    fn advise_condition(
        &mut self,
        path: &str,
        condition: Option<&ConditionDef>,
        schemas: &[&Value],
    ) {
        match condition {
            None => {}
            Some(ConditionDef::All(parts)) => self.advise_parts(path, "all", parts, schemas),
            Some(ConditionDef::Any(parts)) => self.advise_parts(path, "any", parts, schemas),
            Some(ConditionDef::Not(part)) => {
                self.advise_condition(&format!("{path}.not"), Some(part), schemas);
            }
            Some(ConditionDef::Leaf { path: fact, .. }) => {
                if let Some(parameter) = fact.strip_prefix("params.") {
                    let segments: Vec<_> = parameter.split('.').collect();
                    self.advise_parameter(&format!("{path}.path"), &segments, schemas);
                }
            }
        }
    }

    fn advise_parts(&mut self, path: &str, key: &str, parts: &[ConditionDef], schemas: &[&Value]) {
        for (index, part) in parts.iter().enumerate() {
            self.advise_condition(&format!("{path}.{key}[{index}]"), Some(part), schemas);
        }
    }

    fn advise_parameter(&mut self, path: &str, segments: &[&str], schemas: &[&Value]) {
        if schemas.is_empty() {
            return;
        }
        let mut near = BTreeSet::new();
        for schema in schemas {
            match look_up(schema, segments) {
                ParameterLookup::Possible => return,
                ParameterLookup::Absent { wanted, known } => {
                    let names = known.keys().map(String::as_str);
                    near.extend(closest_match(wanted, names).map(|name| (wanted, name)));
                }
            }
        }
        let message = format!(
            "no action of this rule has a parameter {}",
            quoted(&segments.join("."))
        );
        let help = near.first().map_or_else(
            || "declare it in `parameters_schema`, or use another parameter".to_owned(),
            |(_, name)| format!("did you mean {}?", quoted(name)),
        );
        self.report(
            path,
            ManifestProblem::new(Code::UnknownParameter, message).help(help),
        );
    }
}

/// Returns the schemas of the declared actions that match.
///
/// The result is empty if one of the actions has no schema, because that action may have any parameter.
fn schemas_of<'m>(manifest: &'m AtlasManifest, patterns: Option<&Vec<String>>) -> Vec<&'m Value> {
    let matches = |action: &str| {
        patterns.is_none_or(|patterns| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| Pattern::new(pattern.as_str()).matches(action))
        })
    };
    let about = manifest
        .actions
        .iter()
        .filter(|action| matches(&action.action_id));
    let schemas: Option<Vec<_>> = about
        .map(|action| action.parameters_schema.as_ref())
        .collect();
    schemas.unwrap_or_default()
}

/// The result of searching a schema for a parameter.
enum ParameterLookup<'s> {
    /// The schema declares the parameter, or does not list all parameters.
    Possible,
    /// The schema lists its parameters, and this one is not in the list.
    Absent {
        /// The part of the path that is missing.
        wanted: &'s str,
        /// The listed parameters.
        known: &'s Map<String, Value>,
    },
}

/// Schema keywords that can allow parameters which `properties` does not list.
const OPEN_SCHEMA_KEYWORDS: [&str; 12] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "patternProperties",
    "unevaluatedProperties",
    "not",
];

fn look_up<'s>(schema: &'s Value, segments: &[&'s str]) -> ParameterLookup<'s> {
    let (Some((first, rest)), Value::Object(fields)) = (segments.split_first(), schema) else {
        return ParameterLookup::Possible;
    };
    let is_open = OPEN_SCHEMA_KEYWORDS
        .iter()
        .any(|key| fields.contains_key(*key))
        || matches!(fields.get("additionalProperties"), Some(more) if *more != Value::Bool(false));
    let Some(Value::Object(known)) = fields.get("properties") else {
        return ParameterLookup::Possible;
    };
    match known.get(*first) {
        Some(part) => look_up(part, rest),
        None if is_open => ParameterLookup::Possible,
        None => ParameterLookup::Absent {
            wanted: first,
            known,
        },
    }
}
