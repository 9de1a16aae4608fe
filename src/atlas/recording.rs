//! A steward's validated rules about the record: event selection, durability and retention.

use super::Atlas;
use super::document::{AcknowledgeMode, RiskTier, TraceLevel};
use super::redaction::RedactionRule;
use crate::base::retention::{Retention, Schedule};

/// The rules of an Atlas about the record.
#[derive(Clone, Debug, Default)]
pub struct RecordingRules {
    /// Selection of stored events.
    pub level: TraceLevel,
    /// Time of the reply to agents.
    pub acknowledge: AcknowledgeMode,
    /// Events that must be on disk before any reply, in addition to the built-in ones.
    pub sync: Vec<SyncRule>,
    /// Retention of events; unlimited when absent.
    pub retention: Option<Schedule>,
    /// Rules that redact requests before they are recorded.
    pub redact: Vec<RedactionRule>,
}

/// Events that must be on disk before any reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRule {
    /// Type of the events.
    pub event_type: String,
    /// Risk tier of the events; any tier when absent.
    pub tier: Option<RiskTier>,
}

impl SyncRule {
    /// Returns true if the rule covers an event of this type and tier.
    #[must_use]
    pub fn applies(&self, event_type: &str, tier: Option<&str>) -> bool {
        let tier_fits = self.tier.is_none_or(|wanted| tier == Some(wanted.as_str()));
        self.event_type == event_type && tier_fits
    }
}

/// Returns the selection of stored events under these Atlases: the most complete level.
#[must_use]
pub fn trace_level(atlases: &[Atlas]) -> TraceLevel {
    let levels = atlases.iter().map(|atlas| atlas.recording.level);
    levels.max().unwrap_or_default()
}

/// Returns the time of the reply to agents under these Atlases: early only if all of them say so.
#[must_use]
pub fn acknowledge_mode(atlases: &[Atlas]) -> AcknowledgeMode {
    let wanted = atlases.iter().map(|atlas| atlas.recording.acknowledge);
    wanted.max().unwrap_or_default()
}

/// Returns the retention of events under these Atlases.
#[must_use]
pub fn combined_retention(atlases: &[Atlas]) -> Retention {
    let schedules = atlases
        .iter()
        .map(|atlas| atlas.recording.retention.as_ref());
    Retention::of_all(schedules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::event_type::BUILT_IN_TYPES;

    // covers T30
    #[test]
    fn each_level_stores_its_listed_events_and_those_of_lower_levels() {
        let stored = |level: TraceLevel| -> Vec<&str> {
            let types = BUILT_IN_TYPES.into_iter();
            types
                .filter(|event_type| level.stores(event_type))
                .collect()
        };
        let minimal = [
            "session_started",
            "session_ended",
            "action_blocked",
            "error_occurred",
        ];
        let standard = [
            "session_started",
            "session_ended",
            "context_requested",
            "context_injected",
            "context_feedback",
            "action_attempted",
            "action_completed",
            "action_blocked",
            "policy_checked",
            "policy_override",
            "error_occurred",
        ];
        let verbose_adds = [
            "checkpoint_triggered",
            "checkpoint_completed",
            "checkpoint_skipped",
            "checkpoint_response",
            "checkpoint_passed",
            "checkpoint_approved",
            "checkpoint_blocked",
            "input_received",
            "output_produced",
        ];
        assert_eq!(stored(TraceLevel::Minimal), minimal);
        assert_eq!(stored(TraceLevel::Standard), standard);
        let verbose = stored(TraceLevel::Verbose);
        assert_eq!(verbose.len(), standard.len() + verbose_adds.len());
        let added = standard.iter().chain(&verbose_adds);
        assert!(
            added.clone().all(|event_type| verbose.contains(event_type)),
            "{verbose:?}"
        );
        assert_eq!(stored(TraceLevel::Complete), BUILT_IN_TYPES);
        assert!(TraceLevel::Complete.stores("custom_analysis"));
        assert!(!TraceLevel::Verbose.stores("custom_analysis"));
        assert!(!TraceLevel::Minimal.stores("action_blocked_by_me"));
    }
}
