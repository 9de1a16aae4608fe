//! A steward's rules about the record, proven: which events are stored, how durably, for how long.

use super::Atlas;
use super::document::{Acknowledge, RiskTier, TraceLevel};
use super::redact::Rule;
use crate::base::retention::{Retention, Schedule};

/// What an Atlas says about the record.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Which events are stored.
    pub level: TraceLevel,
    /// Moment of the answer to agents.
    pub acknowledge: Acknowledge,
    /// Events that are on disk before anyone is told, beyond those that always are.
    pub sync: Vec<SyncRule>,
    /// How long events are kept; for ever when absent.
    pub retention: Option<Schedule>,
    /// What is left out of requests before they are recorded.
    pub redact: Vec<Rule>,
}

/// Events that are on disk before anyone is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRule {
    /// Their type.
    pub event_type: String,
    /// Their tier; any when absent.
    pub tier: Option<RiskTier>,
}

impl SyncRule {
    /// Whether it is about an event of this type and tier.
    #[must_use]
    pub fn applies(&self, event_type: &str, tier: Option<&str>) -> bool {
        let tier_fits = self.tier.is_none_or(|wanted| tier == Some(wanted.as_str()));
        self.event_type == event_type && tier_fits
    }
}

/// Which events are stored where these Atlases are in force: those of the most complete level.
#[must_use]
pub fn level(atlases: &[Atlas]) -> TraceLevel {
    let levels = atlases.iter().map(|atlas| atlas.recording.level);
    levels.max().unwrap_or_default()
}

/// Moment of the answer to agents under these Atlases: early only where all of them say so.
#[must_use]
pub fn acknowledge(atlases: &[Atlas]) -> Acknowledge {
    let wanted = atlases.iter().map(|atlas| atlas.recording.acknowledge);
    wanted.max().unwrap_or_default()
}

/// How long events are kept where these Atlases are in force.
#[must_use]
pub fn retention(atlases: &[Atlas]) -> Retention {
    let schedules = atlases
        .iter()
        .map(|atlas| atlas.recording.retention.as_ref());
    Retention::of_all(schedules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::event_type::BUILT_IN;

    // covers T30
    #[test]
    fn each_level_has_what_the_specification_lists_and_all_of_the_one_before() {
        let stored = |level: TraceLevel| -> Vec<&str> {
            let types = BUILT_IN.into_iter();
            types.filter(|it| level.stores(it)).collect()
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
        assert!(added.clone().all(|it| verbose.contains(it)), "{verbose:?}");
        assert_eq!(stored(TraceLevel::Complete), BUILT_IN);
        assert!(TraceLevel::Complete.stores("custom_analysis"));
        assert!(!TraceLevel::Verbose.stores("custom_analysis"));
        assert!(!TraceLevel::Minimal.stores("action_blocked_by_me"));
    }
}
