//! Decoders for checkpoints, their questions and their guidance.

use super::super::diagnostic::{Code, Problems};
use super::super::document::{
    AnswerValidation, Approvers, CheckpointQuestion, CheckpointTrigger, GuidanceBlock,
    StewardCheckpointDef,
};
use super::condition::condition;
use super::fields::{PathNode, Section, decode_map};
use super::names::{
    EXPECTATIONS, GUIDANCE_FORMATS, MODES, ON_INVALID, RESPONDENTS, RESPONSE_TYPES,
};
use super::readers::{
    boolean, count, infallible, integer, list, number, one_of, schema, text, texts,
};
use super::trigger::trigger;

/// Decodes one checkpoint.
pub(super) fn checkpoint(
    value: &PathNode<'_>,
    problems: &mut Problems<'_>,
) -> StewardCheckpointDef {
    decode_map(value, Section::Checkpoint, problems, |fields| {
        let written = fields.required("trigger", trigger);
        let inner = written.as_ref().and_then(|written| written.priority);
        if inner.is_some() {
            let message = "the priority is already in `trigger`";
            fields.reject_key(
                "priority",
                message,
                "keep it here, and remove it from `trigger`",
            );
        }
        StewardCheckpointDef {
            checkpoint_id: fields.required("checkpoint_id", text).unwrap_or_default(),
            name: fields.optional("name", text).unwrap_or_default(),
            description: fields.optional("description", text).unwrap_or_default(),
            trigger: written.map_or(CheckpointTrigger::SessionStart, |written| written.trigger),
            mode: fields
                .optional("mode", one_of("checkpoint mode", MODES))
                .unwrap_or_default(),
            questions: fields
                .optional("questions", list(question))
                .unwrap_or_default(),
            guidance: fields.optional("guidance", infallible(guidance)),
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
            priority: inner.or(fields.optional("priority", integer)),
            timeout_seconds: fields.optional("timeout_seconds", count),
            respondent: fields
                .optional("respondent", one_of("respondent", RESPONDENTS))
                .unwrap_or_default(),
            approvers: fields.optional("approvers", approvers).unwrap_or_default(),
            when: fields.optional("when", infallible(condition)),
            handler: fields.optional("handler", text),
        }
    })
}

fn approvers(value: &PathNode<'_>, problems: &mut Problems<'_>) -> Option<Approvers> {
    match Approvers::try_from(count::<u64>(value, problems)?) {
        Ok(approvers) => Some(approvers),
        Err(message) => {
            let help = Approvers::HELP.to_owned();
            problems.add(value.problem(Code::OutOfRange, message).help(help));
            None
        }
    }
}

pub(super) fn question(value: &PathNode<'_>, problems: &mut Problems<'_>) -> CheckpointQuestion {
    decode_map(value, Section::Question, problems, |fields| {
        CheckpointQuestion {
            question_id: fields.required("question_id", text).unwrap_or_default(),
            question: fields.required("question", text).unwrap_or_default(),
            response_type: fields
                .optional("response_type", one_of("response type", RESPONSE_TYPES))
                .unwrap_or_default(),
            required: fields.optional("required", boolean).unwrap_or(true),
            hint: fields.optional("hint", text),
            validation: fields
                .optional("validation", infallible(validation))
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

pub(super) fn validation(value: &PathNode<'_>, problems: &mut Problems<'_>) -> AnswerValidation {
    decode_map(value, Section::Validation, problems, |fields| {
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

fn guidance(value: &PathNode<'_>, problems: &mut Problems<'_>) -> GuidanceBlock {
    decode_map(value, Section::Guidance, problems, |fields| GuidanceBlock {
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
