//! Which events somebody waits for, whatever the Atlas says.

use super::{Durability, Payload};

impl Payload {
    /// Whether something waits for this event to be on disk, whatever the Atlas says.
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
            | Self::StoreRecovered(_) => true,
            Self::ActionAttempted(attempted) => {
                matches!(attempted.risk_tier.as_str(), "high" | "critical")
            }
            Self::PolicyChecked(checked) => checked.decision != "allow",
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
            | Self::AtlasLoaded(_) => false,
        };
        if sync {
            Durability::Sync
        } else {
            Durability::Async
        }
    }
}
