//! Decoder for `trace_config`.

use super::super::diagnostic::Problems;
use super::super::document::{RedactRule, RetentionConfig, TraceConfig};
use super::fields::{PathNode, Section, decode_map};
use super::names::{ACKNOWLEDGE, TRACE_LEVELS};
use super::readers::{count, infallible, list, one_of, ordered_map, texts};

const SECTION: Section = Section::TraceConfig;

/// Decodes `trace_config`.
pub(super) fn trace(value: &PathNode<'_>, problems: &mut Problems<'_>) -> TraceConfig {
    decode_map(value, SECTION, problems, |fields| TraceConfig {
        level: fields
            .optional("level", one_of("trace level", TRACE_LEVELS))
            .unwrap_or_default(),
        acknowledge: fields
            .optional("acknowledge", one_of("acknowledge", ACKNOWLEDGE))
            .unwrap_or_default(),
        sync_required_for: fields
            .optional("sync_required_for", texts)
            .unwrap_or_default(),
        custom_events: fields.optional("custom_events", texts).unwrap_or_default(),
        retention: fields.optional("retention", infallible(retention)),
        redact: fields.optional("redact", list(redact)).unwrap_or_default(),
    })
}

fn retention(value: &PathNode<'_>, problems: &mut Problems<'_>) -> RetentionConfig {
    decode_map(value, SECTION, problems, |fields| RetentionConfig {
        default_days: fields.optional("default_days", count),
        by_event_type: fields
            .optional("by_event_type", ordered_map(days))
            .unwrap_or_default(),
    })
}

fn days(value: &PathNode<'_>, problems: &mut Problems<'_>) -> u32 {
    count(value, problems).unwrap_or_default()
}

fn redact(value: &PathNode<'_>, problems: &mut Problems<'_>) -> RedactRule {
    decode_map(value, SECTION, problems, |fields| RedactRule {
        actions: fields.optional("actions", texts).unwrap_or_default(),
        params: fields.optional("params", texts).unwrap_or_default(),
        values: fields.optional("values", texts).unwrap_or_default(),
    })
}
