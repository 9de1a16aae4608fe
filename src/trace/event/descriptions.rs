//! Descriptions of the built-in event types, for the documentation.
//!
//! The macros take the texts from the doc comments of the types and their fields. Only the order of subjects is
//! written here.

/// Built-in event type with its fields.
#[derive(Clone, Copy, Debug)]
pub struct TypeDescription {
    /// Name of the type.
    pub name: &'static str,
    /// Step that the event records.
    pub description: &'static str,
    /// Fields of the payload, in the order of declaration.
    pub fields: &'static [FieldDescription],
}

/// Field of an event type.
#[derive(Clone, Copy, Debug)]
pub struct FieldDescription {
    /// Name of the field.
    pub name: &'static str,
    /// Rust type of the field, as declared.
    pub type_name: &'static str,
    /// Serde attribute of the field; empty if every event of the type has the field.
    pub attribute: &'static str,
    /// Meaning of the field.
    pub description: &'static str,
}

impl FieldDescription {
    /// Returns true if events of the type may lack the field.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        !self.attribute.is_empty()
    }
}

/// Event types about one subject.
#[derive(Clone, Copy, Debug)]
pub struct TypeGroup {
    /// The subject.
    pub title: &'static str,
    /// Names of the types.
    pub types: &'static [&'static str],
}

/// All built-in event types by subject, in the order of the documentation.
pub const TYPE_GROUPS: &[TypeGroup] = &[
    TypeGroup {
        title: "Sessions",
        types: &[
            "session_started",
            "session_ended",
            "wrapper_constructed",
            "wrapper_verified",
        ],
    },
    TypeGroup {
        title: "Input, output and context",
        types: &[
            "input_received",
            "output_produced",
            "context_requested",
            "context_injected",
            "context_feedback",
        ],
    },
    TypeGroup {
        title: "Actions and policies",
        types: &[
            "action_attempted",
            "policy_checked",
            "action_blocked",
            "action_completed",
            "policy_override",
        ],
    },
    TypeGroup {
        title: "Checkpoints",
        types: &[
            "checkpoint_triggered",
            "checkpoint_response",
            "checkpoint_approved",
            "checkpoint_passed",
            "checkpoint_blocked",
            "checkpoint_completed",
            "checkpoint_skipped",
            "request_claimed",
        ],
    },
    TypeGroup {
        title: "Risk and errors",
        types: &[
            "risk_detected",
            "risk_verified",
            "error_occurred",
            "error_recovered",
        ],
    },
    TypeGroup {
        title: "Threads",
        types: &[
            "breakpoint_decided",
            "memento_edited",
            "drift_flagged",
            "thread_handed_over",
            "thread_dropped",
        ],
    },
    TypeGroup {
        title: "Extensions",
        types: &["plugin_loaded", "plugin_event"],
    },
    TypeGroup {
        title: "The log",
        types: &[
            "log_started",
            "log_sealed",
            "key_rotated",
            "atlas_loaded",
            "store_recovered",
            "clock_moved",
            "retention_applied",
            "hold_placed",
            "hold_released",
            "trace_imported",
            "operator_changed",
            "operator_acknowledged",
            "answer_rejected",
            "alarm_raised",
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::super::Payload;
    use super::*;

    #[test]
    fn every_event_type_is_in_exactly_one_group() {
        let groups = TYPE_GROUPS.iter();
        let mut grouped: Vec<_> = groups.flat_map(|group| group.types).copied().collect();
        grouped.sort_unstable();
        let mut types = Payload::TYPES.to_vec();
        types.sort_unstable();
        assert_eq!(grouped, types);
    }

    #[test]
    fn descriptions_have_the_types_and_fields_of_the_payloads() {
        let names: Vec<_> = Payload::DESCRIPTIONS
            .iter()
            .map(|event| event.name)
            .collect();
        assert_eq!(names, Payload::TYPES);
        for event in Payload::DESCRIPTIONS {
            let fields: Vec<_> = event.fields.iter().map(|field| field.name).collect();
            assert_eq!(fields, Payload::field_names(event.name), "{}", event.name);
        }
    }

    #[test]
    fn fields_with_a_default_are_optional() {
        let started = Payload::DESCRIPTIONS.first().unwrap();
        let optional = |name: &str| {
            let field = started.fields.iter().find(|field| field.name == name);
            field.unwrap().is_optional()
        };
        assert!(!optional("agent_type") && !optional("environment"));
        assert!(optional("agent_version") && optional("judged_under") && optional("redacted"));
    }
}
