//! Decoder for checkpoint triggers, with the names of the format and of its drafts.

use super::super::diagnostic::{Code, Problems, quoted};
use super::super::document::{CheckpointTrigger, CustomTriggerEvent, MatchMode, RiskTier};
use super::condition::condition;
use super::fields::{FieldKey, MapFields, PathNode, Section, decode_map};
use super::names::{CUSTOM_TRIGGER_EVENTS, MATCH_MODES, RISK_TIERS};
use super::readers::{
    boolean, count, infallible, integer, list, object, one_of, text, texts, unknown_word,
};

/// A trigger, and the priority if it was written inside the trigger.
pub(super) struct DecodedTrigger {
    pub(super) trigger: CheckpointTrigger,
    pub(super) priority: Option<i64>,
}

type TriggerReader = fn(&mut MapFields<'_, '_, '_>) -> CheckpointTrigger;

/// The trigger types and the decoders for their fields.
const TRIGGERS: &[(&str, TriggerReader)] = &[
    ("session_start", |_| CheckpointTrigger::SessionStart),
    ("session_end", |_| CheckpointTrigger::SessionEnd),
    ("action_pre", |fields| CheckpointTrigger::ActionPre {
        patterns: fields.required("patterns", texts).unwrap_or_default(),
    }),
    ("action_post", |fields| CheckpointTrigger::ActionPost {
        patterns: fields.required("patterns", texts).unwrap_or_default(),
    }),
    ("keyword", |fields| CheckpointTrigger::Keyword {
        patterns: fields
            .required(FieldKey::with_aliases("patterns", &["keywords"]), texts)
            .unwrap_or_default(),
        case_sensitive: fields.optional(CASE, boolean).unwrap_or_default(),
        match_mode: fields
            .optional(
                FieldKey::with_aliases("match_mode", &["matchMode"]),
                one_of("match mode", MATCH_MODES),
            )
            .unwrap_or_default(),
        threshold: fields.optional("threshold", count),
    }),
    ("risk_threshold", |fields| {
        CheckpointTrigger::RiskThreshold {
            min_tier: fields
                .optional(
                    FieldKey::with_aliases("min_tier", &["minTier"]),
                    one_of("risk tier", RISK_TIERS),
                )
                .unwrap_or(RiskTier::High),
        }
    }),
    ("capability_access", |fields| {
        CheckpointTrigger::CapabilityAccess {
            capability_ids: fields.required("capability_ids", texts).unwrap_or_default(),
        }
    }),
    ("time_interval", |fields| CheckpointTrigger::TimeInterval {
        seconds: fields.optional("seconds", count).unwrap_or(300),
    }),
    ("count_interval", |fields| {
        CheckpointTrigger::CountInterval {
            actions: fields.optional("actions", count).unwrap_or(10),
        }
    }),
    ("explicit_request", |_| CheckpointTrigger::ExplicitRequest),
    ("error_occurred", |_| CheckpointTrigger::ErrorOccurred),
    ("interactive", |_| CheckpointTrigger::Interactive),
    ("custom", |fields| CheckpointTrigger::Custom {
        trigger_id: fields.required("trigger_id", text).unwrap_or_default(),
        params: fields.optional("params", object).unwrap_or_default(),
        on: fields
            .optional("on", custom_trigger_events)
            .unwrap_or_default(),
        when: fields.optional("when", infallible(condition)),
    }),
];

const CASE: FieldKey = FieldKey::with_aliases("case_sensitive", &["caseSensitive"]);

/// An alias of a trigger type.
struct TriggerAlias {
    name: &'static str,
    canonical: &'static str,
    /// Decoder for the fields, if it differs from the canonical type.
    read: Option<TriggerReader>,
    /// Replacement to suggest.
    advice: &'static str,
}

const fn alias(name: &'static str, canonical: &'static str, advice: &'static str) -> TriggerAlias {
    TriggerAlias {
        name,
        canonical,
        read: None,
        advice,
    }
}

const ALIASES: &[TriggerAlias] = &[
    alias("keyword_match", "keyword", "`keyword`"),
    alias(
        "capability_gate",
        "capability_access",
        "`capability_access`",
    ),
    alias("risk", "risk_threshold", "`risk_threshold`"),
    alias("interval", "time_interval", "`time_interval`"),
    alias("count", "count_interval", "`count_interval`"),
    TriggerAlias {
        read: Some(|_| CheckpointTrigger::ActionPre {
            patterns: every_action(),
        }),
        ..alias(
            "always",
            "action_pre",
            "`action_pre` with `patterns: [\"*\"]`",
        )
    },
    TriggerAlias {
        read: Some(|fields| CheckpointTrigger::ActionPre {
            patterns: fields
                .required(FieldKey::with_aliases("patterns", &["actions"]), texts)
                .unwrap_or_default(),
        }),
        ..alias("action", "action_pre", "`action_pre`")
    },
    TriggerAlias {
        read: Some(|fields| CheckpointTrigger::Keyword {
            patterns: fields.required("pattern", text).into_iter().collect(),
            case_sensitive: fields.optional(CASE, boolean).unwrap_or_default(),
            match_mode: MatchMode::Regex,
            threshold: None,
        }),
        ..alias("regex", "keyword", "`keyword` with `match_mode: regex`")
    },
];

/// A trigger type: its canonical name and the decoder for its fields.
#[derive(Clone, Copy)]
struct TriggerKind {
    name: &'static str,
    read: TriggerReader,
}

/// Decodes a trigger. Returns `None` for an unknown kind, after reporting it.
pub(super) fn trigger(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<DecodedTrigger> {
    decode_map(value, Section::Trigger, problems, |fields| {
        let nested = fields.has("condition");
        let read = if nested {
            any_trigger_type
        } else {
            trigger_type
        };
        let Some(kind) = fields.required("type", read) else {
            fields.suppress_reports();
            return None;
        };
        let priority = fields.optional("priority", integer);
        if priority.is_some() {
            let message = "`priority` belongs to the checkpoint, next to `trigger`";
            fields.report_problem(Code::Alias, "priority", message);
        }
        let trigger = if nested {
            let message = "write the details of a trigger next to its `type`, without `condition`";
            fields.report_problem(Code::Alias, "condition", message);
            fields.optional("condition", |value, problems| {
                nested_trigger(kind, value, problems)
            })
        } else {
            Some((kind.read)(fields))
        };
        if nested || kind.name != "custom" {
            refuse_when(fields);
        }
        trigger.map(|trigger| DecodedTrigger { trigger, priority })
    })
}

/// Decodes the nested `condition` of a trigger of type `kind`. Its own type must not contradict `kind`.
fn nested_trigger(
    kind: TriggerKind,
    value: &PathNode<'_>,
    problems: &mut Problems<'_>,
) -> Option<CheckpointTrigger> {
    decode_map(value, Section::Trigger, problems, |fields| {
        let named = |value: &PathNode<'_>, problems: &mut Problems<'_>| {
            any_trigger_type(value, problems).zip(text(value, problems))
        };
        let Some((found, word)) = fields.required("type", named) else {
            fields.suppress_reports();
            return None;
        };
        if word == "always" {
            let trigger = unconditional_trigger(kind.name);
            if trigger.is_none() {
                let name = kind.name;
                let message = format!("`{name}` needs its own details and cannot use `always`");
                fields.report_problem(Code::Contradiction, "type", &message);
            }
            return trigger;
        }
        let after = word == "action" && kind.name == "action_post";
        if found.name != kind.name && !after {
            let (word, found, kind) = (quoted(&word), found.name, kind.name);
            let message =
                format!("condition {word} belongs to type `{found}`, but the trigger is `{kind}`");
            fields.report_problem(Code::Contradiction, "type", &message);
            fields.suppress_reports();
            return None;
        }
        if found.name != "custom" {
            refuse_when(fields);
        }
        match (found.read)(fields) {
            CheckpointTrigger::ActionPre { patterns } if after => {
                Some(CheckpointTrigger::ActionPost { patterns })
            }
            trigger => Some(trigger),
        }
    })
}

/// Returns the trigger that fires at every event of its type, if the type needs no further detail.
fn unconditional_trigger(name: &str) -> Option<CheckpointTrigger> {
    let patterns = every_action();
    match name {
        "session_start" => Some(CheckpointTrigger::SessionStart),
        "session_end" => Some(CheckpointTrigger::SessionEnd),
        "action_pre" => Some(CheckpointTrigger::ActionPre { patterns }),
        "action_post" => Some(CheckpointTrigger::ActionPost { patterns }),
        "risk_threshold" => Some(CheckpointTrigger::RiskThreshold {
            min_tier: RiskTier::High,
        }),
        "time_interval" => Some(CheckpointTrigger::TimeInterval { seconds: 300 }),
        "count_interval" => Some(CheckpointTrigger::CountInterval { actions: 10 }),
        "explicit_request" => Some(CheckpointTrigger::ExplicitRequest),
        "error_occurred" => Some(CheckpointTrigger::ErrorOccurred),
        "interactive" => Some(CheckpointTrigger::Interactive),
        _ => None,
    }
}

fn every_action() -> Vec<String> {
    vec!["*".to_owned()]
}

fn refuse_when(fields: &mut MapFields<'_, '_, '_>) {
    let message = "only a `custom` trigger can have `when`";
    fields.reject_key(
        "when",
        message,
        "move it to the checkpoint, next to `trigger`",
    );
}

fn custom_trigger_events(
    value: &PathNode<'_>,
    problems: &mut Problems<'_>,
) -> Option<Vec<CustomTriggerEvent>> {
    let moment = |value: &PathNode<'_>, problems: &mut Problems<'_>| {
        let read = one_of("trigger event", CUSTOM_TRIGGER_EVENTS);
        read(value, problems).unwrap_or(CustomTriggerEvent::Action)
    };
    let moments = list(moment)(value, problems)?;
    if moments.is_empty() {
        let message = "an empty list never fires";
        problems.add(value.problem(Code::EmptyPattern, message));
    }
    Some(moments)
}

/// Reads a trigger type by any of its names, and reports aliases with their canonical name.
fn trigger_type(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<TriggerKind> {
    let word = text(value, problems)?;
    if let Some(alias) = ALIASES.iter().find(|alias| alias.name == word) {
        let canonical = alias.canonical;
        let message = format!(
            "trigger type {} is an alias of `{canonical}`",
            quoted(&word)
        );
        let help = format!("write {}, the canonical name", alias.advice);
        problems.add(value.problem(Code::Alias, message).help(help));
    }
    any_trigger_type(value, problems)
}

/// Reads a trigger type by any of its names.
fn any_trigger_type(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<TriggerKind> {
    let word = text(value, problems)?;
    let alias = ALIASES.iter().find(|alias| alias.name == word);
    let name = alias.map_or(word.as_str(), |alias| alias.canonical);
    let Some((name, read)) = TRIGGERS.iter().find(|(known, _)| *known == name) else {
        let known = TRIGGERS.iter().map(|(known, _)| *known);
        unknown_word(value, "trigger type", &word, known, problems);
        return None;
    };
    Some(TriggerKind {
        name,
        read: alias.and_then(|alias| alias.read).unwrap_or(*read),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trigger_type_of_the_format_has_a_decoder() {
        let names: Vec<_> = TRIGGERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, CheckpointTrigger::NAMES);
        for alias in ALIASES {
            assert!(names.contains(&alias.canonical), "{}", alias.canonical);
        }
        for name in CheckpointTrigger::OTHER_TYPES {
            assert!(ALIASES.iter().any(|alias| alias.name == name), "{name}");
        }
    }
}
