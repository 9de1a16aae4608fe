//! Checkpoints: their triggers, questions and guidance.

use super::super::diagnostic::{Code, Problems, quoted};
use super::super::document::{
    AnswerValidation, CheckpointQuestion, CheckpointTrigger, GuidanceBlock, RiskTier,
    StewardCheckpointDef,
};
use super::condition::condition;
use super::fields::{Fields, Section, Value, map};
use super::names::{
    EXPECTATIONS, GUIDANCE_FORMATS, MATCH_MODES, MODES, ON_INVALID, RESPONDENTS, RESPONSE_TYPES,
    RISK_TIERS,
};
use super::read::{
    boolean, count, integer, list, number, object, one_of, part, schema, text, texts, unknown_word,
};

/// Decodes one checkpoint.
pub(super) fn checkpoint(value: &Value<'_>, problems: &mut Problems<'_>) -> StewardCheckpointDef {
    map(value, Section::Checkpoint, problems, |fields| {
        StewardCheckpointDef {
            checkpoint_id: fields.required("checkpoint_id", text).unwrap_or_default(),
            name: fields.optional("name", text).unwrap_or_default(),
            description: fields.optional("description", text).unwrap_or_default(),
            trigger: fields
                .required("trigger", trigger)
                .unwrap_or(CheckpointTrigger::SessionStart),
            mode: fields
                .optional("mode", one_of("checkpoint mode", MODES))
                .unwrap_or_default(),
            questions: fields
                .optional("questions", list(question))
                .unwrap_or_default(),
            guidance: fields.optional("guidance", part(guidance)),
            inject_contexts: fields
                .optional("inject_contexts", texts)
                .unwrap_or_default(),
            unlock_capabilities: fields
                .optional("unlock_capabilities", texts)
                .unwrap_or_default(),
            lock_capabilities: fields
                .optional("lock_capabilities", texts)
                .unwrap_or_default(),
            allow_actions: fields.optional("allow_actions", texts).unwrap_or_default(),
            deny_actions: fields.optional("deny_actions", texts).unwrap_or_default(),
            force_sync_trace: fields
                .optional("force_sync_trace", boolean)
                .unwrap_or_default(),
            priority: fields.optional("priority", integer),
            timeout_seconds: fields.optional("timeout_seconds", count),
            respondent: fields
                .optional("respondent", one_of("respondent", RESPONDENTS))
                .unwrap_or_default(),
            when: fields.optional("when", part(condition)),
        }
    })
}

type ReadTrigger = fn(&mut Fields<'_, '_, '_>) -> CheckpointTrigger;

/// What each trigger type is followed by.
const TRIGGERS: &[(&str, ReadTrigger)] = &[
    ("session_start", |_| CheckpointTrigger::SessionStart),
    ("session_end", |_| CheckpointTrigger::SessionEnd),
    ("action_pre", |fields| CheckpointTrigger::ActionPre {
        patterns: fields.required("patterns", texts).unwrap_or_default(),
    }),
    ("action_post", |fields| CheckpointTrigger::ActionPost {
        patterns: fields.required("patterns", texts).unwrap_or_default(),
    }),
    ("keyword", |fields| CheckpointTrigger::Keyword {
        patterns: fields.required("patterns", texts).unwrap_or_default(),
        case_sensitive: fields
            .optional("case_sensitive", boolean)
            .unwrap_or_default(),
        match_mode: fields
            .optional("match_mode", one_of("match mode", MATCH_MODES))
            .unwrap_or_default(),
    }),
    ("risk_threshold", |fields| {
        CheckpointTrigger::RiskThreshold {
            min_tier: fields
                .optional("min_tier", one_of("risk tier", RISK_TIERS))
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
    }),
];

/// The names of checkpoint types that triggers go by as well, and the triggers' own.
const TRIGGER_ALIASES: &[(&str, &str)] = &[
    ("keyword_match", "keyword"),
    ("capability_gate", "capability_access"),
];

fn trigger(value: &Value<'_>, problems: &mut Problems<'_>) -> Option<CheckpointTrigger> {
    map(value, Section::Trigger, problems, |fields| {
        let Some(read) = fields.required("type", trigger_type) else {
            fields.mute();
            return None;
        };
        Some(read(fields))
    })
}

fn trigger_type(value: &Value<'_>, problems: &mut Problems<'_>) -> Option<ReadTrigger> {
    let word = text(value, problems)?;
    let alias = TRIGGER_ALIASES.iter().find(|(alias, _)| *alias == word);
    if let Some((_, canonical)) = alias {
        let message = format!(
            "trigger type {} is also called `{canonical}`",
            quoted(&word)
        );
        problems.add(
            value
                .problem(Code::Alias, message)
                .help(format!("write `{canonical}`, the canonical name")),
        );
    }
    let name = alias.map_or(word.as_str(), |(_, canonical)| canonical);
    let found = TRIGGERS.iter().find(|(known, _)| *known == name);
    if found.is_none() {
        let known = TRIGGERS.iter().map(|(known, _)| *known);
        unknown_word(value, "trigger type", &word, known, problems);
    }
    found.map(|(_, read)| *read)
}

fn question(value: &Value<'_>, problems: &mut Problems<'_>) -> CheckpointQuestion {
    map(value, Section::Question, problems, |fields| {
        CheckpointQuestion {
            question_id: fields.required("question_id", text).unwrap_or_default(),
            question: fields.required("question", text).unwrap_or_default(),
            response_type: fields
                .optional("response_type", one_of("response type", RESPONSE_TYPES))
                .unwrap_or_default(),
            required: fields.optional("required", boolean).unwrap_or(true),
            hint: fields.optional("hint", text),
            validation: fields
                .optional("validation", part(validation))
                .unwrap_or_default(),
            on_invalid: fields
                .optional(
                    "on_invalid",
                    one_of("action for invalid answers", ON_INVALID),
                )
                .unwrap_or_default(),
            max_retries: fields.optional("max_retries", count),
            expect: fields
                .optional("expect", one_of("expected answer", EXPECTATIONS))
                .unwrap_or_default(),
            options: fields.optional("options", texts).unwrap_or_default(),
            min: fields.optional("min", number),
            max: fields.optional("max", number),
            schema: fields.optional("schema", schema),
            sensitive: fields.optional("sensitive", boolean).unwrap_or_default(),
        }
    })
}

fn validation(value: &Value<'_>, problems: &mut Problems<'_>) -> AnswerValidation {
    map(value, Section::Validation, problems, |fields| {
        AnswerValidation {
            pattern: fields.optional("pattern", text),
            min_length: fields.optional("min_length", count),
            max_length: fields.optional("max_length", count),
            must_contain: fields.optional("must_contain", texts).unwrap_or_default(),
            must_not_contain: fields
                .optional("must_not_contain", texts)
                .unwrap_or_default(),
            custom_validator: fields.optional("custom_validator", text),
        }
    })
}

fn guidance(value: &Value<'_>, problems: &mut Problems<'_>) -> GuidanceBlock {
    map(value, Section::Guidance, problems, |fields| GuidanceBlock {
        format: fields
            .optional("format", one_of("guidance format", GUIDANCE_FORMATS))
            .unwrap_or_default(),
        content: fields.required("content", text).unwrap_or_default(),
        priority: fields.optional("priority", integer).unwrap_or_default(),
        append: fields.optional("append", boolean),
        expires_after: fields.optional("expires_after", text),
        labels: fields.optional("labels", texts).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trigger_of_the_format_can_be_read() {
        let names: Vec<_> = TRIGGERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, CheckpointTrigger::NAMES);
        for (_, canonical) in TRIGGER_ALIASES {
            assert!(names.contains(canonical), "{canonical}");
        }
    }
}
