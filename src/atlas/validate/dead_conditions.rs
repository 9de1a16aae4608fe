//! Conditions that can never hold, or that look at a fact which is not known where they are judged.
//!
//! Advice only: such a condition is judged like every other.

use std::cmp::Ordering;

use serde_json::Value;

use super::ManifestValidator;
use super::config::overlap;
use crate::atlas::condition::{ConditionDef, Operator};
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{AtlasManifest, CheckpointTrigger, CustomTriggerEvent};

/// Values of `time.weekday`.
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Facts that are known where a condition is judged, beside those of the session and the time.
#[derive(Clone, Copy)]
struct Known<'m> {
    /// Patterns of the actions it is about; none where any action may come.
    actions: Option<&'m [String]>,
    action: bool,
    params: bool,
    input: bool,
    /// Advice for a fact that is not known.
    help: &'static str,
}

const NOTHING: Known<'static> = Known {
    actions: None,
    action: false,
    params: false,
    input: false,
    help: "only `session` and `time` are available here; use a trigger such as `action_pre`",
};

impl<'m> Known<'m> {
    fn before(actions: Option<&'m [String]>) -> Self {
        Self {
            actions,
            action: true,
            params: true,
            help: "the input is available to `keyword` and `custom` triggers",
            ..NOTHING
        }
    }

    fn at(trigger: &'m CheckpointTrigger) -> Self {
        match trigger {
            CheckpointTrigger::ActionPre { patterns } => Self::before(Some(patterns)),
            CheckpointTrigger::RiskThreshold { .. }
            | CheckpointTrigger::CapabilityAccess { .. } => Self::before(None),
            CheckpointTrigger::ActionPost { patterns } => Self {
                actions: Some(patterns),
                action: true,
                help: "parameters are available before an action: use `action_pre`",
                ..NOTHING
            },
            CheckpointTrigger::ErrorOccurred => Self {
                action: true,
                ..NOTHING
            },
            CheckpointTrigger::Keyword { .. } => Self {
                input: true,
                help: "an input has no action: use a trigger such as `action_pre`",
                ..NOTHING
            },
            CheckpointTrigger::Custom { on, .. } => {
                let has = |moment| on.is_empty() || on.contains(&moment);
                let action = has(CustomTriggerEvent::Action);
                Self {
                    action,
                    params: action,
                    input: has(CustomTriggerEvent::Input),
                    help: "add the matching event (`input` or `action`) to the trigger's `on`",
                    ..NOTHING
                }
            }
            CheckpointTrigger::SessionStart
            | CheckpointTrigger::SessionEnd
            | CheckpointTrigger::TimeInterval { .. }
            | CheckpointTrigger::CountInterval { .. }
            | CheckpointTrigger::ExplicitRequest
            | CheckpointTrigger::Interactive => NOTHING,
        }
    }

    fn has(self, fact: &str) -> bool {
        match fact.split('.').next() {
            Some("action") => self.action,
            Some("params") => self.params,
            Some("input") => self.input,
            Some(_) | None => true,
        }
    }
}

impl ManifestValidator<'_, '_> {
    /// Advises about conditions that can never hold.
    pub(super) fn advise_conditions(&mut self, manifest: &AtlasManifest) {
        for (index, policy) in manifest.policies.iter().enumerate() {
            let known = Known::before(Some(&policy.actions));
            let path = format!("policies[{index}].when");
            self.advise_facts(&path, policy.when.as_ref(), known);
        }
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            let path = format!("checkpoints[{index}]");
            let known = Known::at(&checkpoint.trigger);
            self.advise_facts(&format!("{path}.when"), checkpoint.when.as_ref(), known);
            if let CheckpointTrigger::Custom { when, .. } = &checkpoint.trigger {
                let path = self.detail_path(&format!("{path}.trigger"), &["when"]);
                self.advise_facts(&path, when.as_ref(), known);
            }
        }
    }

    fn advise_facts(&mut self, path: &str, condition: Option<&ConditionDef>, known: Known<'_>) {
        let (key, parts) = match condition {
            None => return,
            Some(ConditionDef::All(parts)) => ("all", parts),
            Some(ConditionDef::Any(parts)) => ("any", parts),
            Some(ConditionDef::Not(part)) => {
                self.advise_facts(&format!("{path}.not"), Some(part), known);
                return;
            }
            Some(ConditionDef::Leaf { path: fact, tests }) => {
                self.advise_leaf(path, fact, tests, known);
                return;
            }
        };
        for (index, part) in parts.iter().enumerate() {
            self.advise_facts(&format!("{path}.{key}[{index}]"), Some(part), known);
        }
    }

    fn advise_leaf(
        &mut self,
        path: &str,
        fact: &str,
        tests: &[(Operator, Value)],
        known: Known<'_>,
    ) {
        let found = if known.has(fact) {
            impossible(fact, tests, known)
        } else {
            let what = format!(
                "{} is not available where this condition is evaluated",
                quoted(fact)
            );
            Some(("path", what, known.help.to_owned()))
        };
        if let Some((key, message, help)) = found {
            let problem = ManifestProblem::new(Code::DeadCondition, message).help(help);
            self.report(&format!("{path}.{key}"), problem);
        }
    }
}

/// The key, the message and the advice.
type Found = (&'static str, String, String);

/// Tells why no value passes all tests of a leaf, where that is so.
fn impossible(fact: &str, tests: &[(Operator, Value)], known: Known<'_>) -> Option<Found> {
    let absent = |(operator, wanted): &(Operator, Value)| {
        *operator == Operator::Exists && *wanted == Value::Bool(false)
    };
    if tests.len() > 1 && tests.iter().any(absent) {
        let message =
            "a value that does not exist passes no other test, so this condition never holds";
        let help = "write the other test as a separate condition, under `any`";
        return Some(("exists", message.to_owned(), help.to_owned()));
    }
    match fact {
        "action" => other_action(tests, known.actions?),
        "time.weekday" => other_weekday(tests),
        "time.hour" => other_time(tests, 23),
        "time.minute" => other_time(tests, 59),
        _ => between(tests),
    }
}

/// Tests that no action passes which a rule is about.
fn other_action(tests: &[(Operator, Value)], patterns: &[String]) -> Option<Found> {
    let is_about = |name: &str| patterns.iter().any(|pattern| overlap(pattern, name));
    tests.iter().find_map(|(operator, wanted)| {
        let wanted: Vec<&str> = match (operator, wanted) {
            (Operator::Eq | Operator::Glob, Value::String(name)) => vec![name],
            (Operator::In, Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        let first = wanted.first()?;
        if wanted.iter().any(|name| is_about(name)) {
            return None;
        }
        let message = format!(
            "this rule does not cover action {}, so this condition never holds",
            quoted(first)
        );
        let help = "use an action that the patterns of the rule match".to_owned();
        Some((operator.as_str(), message, help))
    })
}

/// Names that no weekday has.
fn other_weekday(tests: &[(Operator, Value)]) -> Option<Found> {
    tests.iter().find_map(|(operator, wanted)| {
        let names: Vec<&Value> = match (operator, wanted) {
            (Operator::Eq | Operator::Ne, name) => vec![name],
            (Operator::In, Value::Array(names)) => names.iter().collect(),
            _ => return None,
        };
        let other = names
            .into_iter()
            .find(|name| !name.as_str().is_some_and(|name| WEEKDAYS.contains(&name)))?;
        let message = format!("{} is not a weekday", quoted(&other.to_string()));
        let help = "weekdays are `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`, in UTC";
        Some((operator.as_str(), message, help.to_owned()))
    })
}

/// Tests that no hour or minute passes.
fn other_time(tests: &[(Operator, Value)], most: u8) -> Option<Found> {
    let passes = |value: f64| {
        tests
            .iter()
            .all(|(operator, wanted)| holds(*operator, wanted, value))
    };
    if (0..=most).any(|value| passes(f64::from(value))) {
        return None;
    }
    let message =
        format!("no value from 0 to {most} passes these tests, so this condition never holds");
    Some(("path", message, "times are in UTC".to_owned()))
}

/// Tells whether a number may pass a test. One that is not about numbers may.
fn holds(operator: Operator, wanted: &Value, value: f64) -> bool {
    let order = |wanted: &Value| {
        wanted
            .as_f64()
            .and_then(|wanted| value.partial_cmp(&wanted))
    };
    let is = |test: fn(Ordering) -> bool| order(wanted).is_none_or(test);
    match operator {
        Operator::Eq => is(Ordering::is_eq),
        Operator::Ne => is(Ordering::is_ne),
        Operator::Gt => is(Ordering::is_gt),
        Operator::Gte => is(Ordering::is_ge),
        Operator::Lt => is(Ordering::is_lt),
        Operator::Lte => is(Ordering::is_le),
        Operator::In => {
            let wanted = wanted.as_array().map(Vec::as_slice).unwrap_or_default();
            let mut wanted = wanted.iter();
            wanted.any(|wanted| order(wanted).is_none_or(Ordering::is_eq))
        }
        Operator::Matches
        | Operator::Glob
        | Operator::Contains
        | Operator::StartsWith
        | Operator::EndsWith
        | Operator::Exists => true,
    }
}

/// Bounds that leave no number between them.
fn between(tests: &[(Operator, Value)]) -> Option<Found> {
    let bound = |operators: [Operator; 2]| {
        let mut tests = tests.iter();
        tests.find(|(operator, _)| operators.contains(operator))
    };
    let found = |operator: Operator| {
        let message =
            "no value passes all of these tests, so this condition never holds".to_owned();
        let help = "write one of the tests as a separate condition, under `any`".to_owned();
        Some((operator.as_str(), message, help))
    };
    let exact = tests.iter().find(|(operator, _)| *operator == Operator::Eq);
    if let Some(value) = exact.and_then(|(_, wanted)| wanted.as_f64())
        && !tests
            .iter()
            .all(|(operator, wanted)| holds(*operator, wanted, value))
    {
        return found(Operator::Eq);
    }
    let (low, least) = bound([Operator::Gt, Operator::Gte])?;
    let (high, most) = bound([Operator::Lt, Operator::Lte])?;
    let (least, most) = (least.as_f64()?, most.as_f64()?);
    let touching = *low == Operator::Gte && *high == Operator::Lte;
    let empty = least > most || (least >= most && !touching);
    if empty { found(*high) } else { None }
}
