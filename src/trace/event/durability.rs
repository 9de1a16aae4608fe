//! Events that must be durable regardless of the Atlas settings.

use super::{Durability, Payload, PolicyOutcome, RiskTierInfo};

impl Payload {
    /// Durability that this event requires regardless of the Atlas settings.
    #[must_use]
    pub fn mandatory_durability(&self) -> Durability {
        let sync = match self {
            Self::SessionEnded(_)
            | Self::WrapperConstructed(_)
            | Self::WrapperVerified(_)
            | Self::ActionBlocked(_)
            | Self::PolicyOverride(_)
            | Self::RiskDetected(_)
            | Self::RiskVerified(_)
            | Self::RetentionApplied(_)
            | Self::TraceImported(_)
            | Self::LogStarted(_)
            | Self::LogSealed(_)
            | Self::KeyRotated(_)
            | Self::ClockMoved(_)
            | Self::CheckpointApproved(_)
            | Self::RequestClaimed(_)
            | Self::OperatorAcknowledged(_)
            | Self::OperatorChanged(_)
            | Self::AnswerRejected(_)
            | Self::AlarmRaised(_)
            | Self::HoldPlaced(_)
            | Self::HoldReleased(_)
            | Self::BreakpointDecided(_)
            | Self::MementoEdited(_)
            | Self::DriftFlagged(_)
            | Self::ThreadHandedOver(_)
            | Self::ThreadDropped(_)
            | Self::StoreRecovered(_) => true,
            Self::ActionAttempted(attempted) => attempted.risk_tier >= RiskTierInfo::High,
            Self::PolicyChecked(checked) => checked.decision != PolicyOutcome::Allow,
            Self::SessionStarted(_)
            | Self::ContextRequested(_)
            | Self::ContextInjected(_)
            | Self::ContextFeedback(_)
            | Self::ActionCompleted(_)
            | Self::CheckpointTriggered(_)
            | Self::CheckpointCompleted(_)
            | Self::CheckpointSkipped(_)
            | Self::CheckpointResponse(_)
            | Self::CheckpointPassed(_)
            | Self::CheckpointBlocked(_)
            | Self::ErrorOccurred(_)
            | Self::ErrorRecovered(_)
            | Self::InputReceived(_)
            | Self::OutputProduced(_)
            | Self::PluginLoaded(_)
            | Self::PluginEvent(_)
            | Self::AtlasLoaded(_)
            // The registration of the type decides.
            | Self::Registered(_) => false,
        };
        if sync {
            Durability::Sync
        } else {
            Durability::Async
        }
    }
}

impl Payload {
    /// True if this event is stored at every level of detail: decisions about gates, and entries of the log
    /// about itself. A governance record without its decisions would be worthless.
    #[must_use]
    pub fn is_essential(&self) -> bool {
        match self {
            // The trigger of a gate belongs to the decision made there.
            Self::CheckpointTriggered(triggered) => triggered.mode == "blocking",
            Self::CheckpointResponse(_)
            | Self::CheckpointPassed(_)
            | Self::CheckpointApproved(_)
            | Self::CheckpointBlocked(_)
            | Self::RequestClaimed(_)
            | Self::OperatorAcknowledged(_)
            | Self::OperatorChanged(_)
            | Self::AnswerRejected(_)
            | Self::AlarmRaised(_)
            | Self::HoldPlaced(_)
            | Self::HoldReleased(_)
            | Self::BreakpointDecided(_)
            | Self::MementoEdited(_)
            | Self::DriftFlagged(_)
            | Self::ThreadHandedOver(_)
            | Self::ThreadDropped(_)
            | Self::PolicyOverride(_)
            | Self::RiskVerified(_)
            | Self::AtlasLoaded(_)
            | Self::RetentionApplied(_)
            | Self::TraceImported(_)
            | Self::LogStarted(_)
            | Self::LogSealed(_)
            | Self::KeyRotated(_)
            | Self::ClockMoved(_)
            | Self::StoreRecovered(_) => true,
            Self::SessionStarted(_)
            | Self::SessionEnded(_)
            | Self::WrapperConstructed(_)
            | Self::WrapperVerified(_)
            | Self::ContextRequested(_)
            | Self::ContextInjected(_)
            | Self::ContextFeedback(_)
            | Self::ActionAttempted(_)
            | Self::ActionCompleted(_)
            | Self::ActionBlocked(_)
            | Self::PolicyChecked(_)
            | Self::CheckpointCompleted(_)
            | Self::CheckpointSkipped(_)
            | Self::RiskDetected(_)
            | Self::ErrorOccurred(_)
            | Self::ErrorRecovered(_)
            | Self::InputReceived(_)
            | Self::OutputProduced(_)
            | Self::PluginLoaded(_)
            | Self::PluginEvent(_)
            | Self::Registered(_) => false,
        }
    }

    /// Risk tier of the event's subject, if the event has one.
    #[must_use]
    pub fn tier(&self) -> Option<RiskTierInfo> {
        if let Self::ActionAttempted(attempted) = self {
            return Some(attempted.risk_tier);
        }
        if let Self::RiskDetected(detected) = self {
            return Some(detected.risk_tier);
        }
        if let Self::RiskVerified(verified) = self {
            return Some(verified.risk_tier);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Breakpoint, BreakpointDecided, BreakpointThread};
    use super::super::{DriftFlagged, MementoEdited};
    use super::*;

    /// A turn event as it is recorded.
    fn turn() -> BreakpointDecided {
        let text = str::to_owned;
        BreakpointDecided {
            actor: text("solserver"),
            phase: text("breakpoint"),
            status: text("completed"),
            summary: text("Breakpoint decision: MUST"),
            metadata: Breakpoint {
                kind: text("breakpoint_engine"),
                decision: text("must"),
                peak_guardrail_active: false,
                source: text("stored_latest"),
            },
            thread: BreakpointThread {
                thread_id: text("t-1"),
                message_id: text("m-1"),
                rule: 2,
                signals: Vec::new(),
                affect_phase: text("settled"),
                intensity: text("low"),
                update: text("updated"),
                version: 1,
                etag: text("e"),
            },
        }
    }

    #[test]
    fn breakpoint_decisions_are_durable_and_stored_at_every_level() {
        let (thread_id, by) = ("t-1".to_owned(), "op-1".to_owned());
        let edited = MementoEdited {
            thread_id: thread_id.clone(),
            by: by.clone(),
            before: "a".to_owned(),
            now: "b".to_owned(),
            text_before: None,
            text_now: None,
            redacted: Vec::new(),
        };
        let payloads: [Payload; 3] = [
            turn().into(),
            edited.into(),
            DriftFlagged { thread_id, by }.into(),
        ];
        for payload in payloads {
            let name = payload.event_type().to_owned();
            assert_eq!(payload.mandatory_durability(), Durability::Sync, "{name}");
            assert!(payload.is_essential(), "{name}");
        }
    }
}
