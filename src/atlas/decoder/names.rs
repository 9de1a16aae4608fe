//! The enumerated words of the format and their values.

use super::super::document::{
    AccessKind, AcknowledgeMode, CheckpointMode, CustomTriggerEvent, DefaultDecision,
    ExpectedAnswer, GuidanceFormat, InjectMode, InvalidAnswerAction, LimitScope, MatchMode,
    NoticeTrigger, PolicyKind, Respondent, ResponseType, RiskMode, RiskTier, TraceLevel,
    UnknownActions,
};

type NameTable<T> = &'static [(&'static str, T)];

pub(super) const ACCESS_KINDS: NameTable<AccessKind> = &[
    ("public", AccessKind::Public),
    ("authenticated", AccessKind::Authenticated),
];

pub(super) const MODES: NameTable<CheckpointMode> = &[
    ("blocking", CheckpointMode::Blocking),
    ("advisory", CheckpointMode::Advisory),
    ("observational", CheckpointMode::Observational),
];

pub(super) const MATCH_MODES: NameTable<MatchMode> = &[
    ("any", MatchMode::Any),
    ("all", MatchMode::All),
    ("phrase", MatchMode::Phrase),
    ("regex", MatchMode::Regex),
    ("fuzzy", MatchMode::Fuzzy),
];

pub(super) const CUSTOM_TRIGGER_EVENTS: NameTable<CustomTriggerEvent> = &[
    ("input", CustomTriggerEvent::Input),
    ("action", CustomTriggerEvent::Action),
];

pub(super) const RESPONDENTS: NameTable<Respondent> = &[
    ("operator", Respondent::Operator),
    ("agent", Respondent::Agent),
    ("either", Respondent::Either),
];

pub(super) const RESPONSE_TYPES: NameTable<ResponseType> = &[
    ("text", ResponseType::Text),
    ("boolean", ResponseType::Boolean),
    ("acknowledgment", ResponseType::Acknowledgment),
    ("choice", ResponseType::Choice),
    ("number", ResponseType::Number),
    ("json", ResponseType::Json),
];

pub(super) const ON_INVALID: NameTable<InvalidAnswerAction> = &[
    ("retry", InvalidAnswerAction::Retry),
    ("block", InvalidAnswerAction::Block),
    ("warn_and_continue", InvalidAnswerAction::WarnAndContinue),
    ("log_and_continue", InvalidAnswerAction::LogAndContinue),
];

pub(super) const EXPECTATIONS: NameTable<ExpectedAnswer> = &[
    ("true", ExpectedAnswer::True),
    ("false", ExpectedAnswer::False),
    ("any", ExpectedAnswer::Any),
];

pub(super) const GUIDANCE_FORMATS: NameTable<GuidanceFormat> = &[
    ("text", GuidanceFormat::Text),
    ("markdown", GuidanceFormat::Markdown),
    ("json", GuidanceFormat::Json),
    ("system_instruction", GuidanceFormat::SystemInstruction),
];

pub(super) const INJECT_MODES: NameTable<InjectMode> = &[
    ("always", InjectMode::Always),
    ("on_match", InjectMode::OnMatch),
    ("on_demand", InjectMode::OnDemand),
    ("risk_based", InjectMode::RiskBased),
];

pub(super) const POLICY_KINDS: NameTable<PolicyKind> = &[
    ("allow", PolicyKind::Allow),
    ("deny", PolicyKind::Deny),
    ("requires_approval", PolicyKind::RequiresApproval),
    ("rate_limit", PolicyKind::RateLimit),
    ("budget", PolicyKind::Budget),
];

pub(super) const SCOPES: NameTable<LimitScope> = &[
    ("session", LimitScope::Session),
    ("agent", LimitScope::Agent),
    ("all", LimitScope::All),
];

pub(super) const RISK_MODES: NameTable<RiskMode> = &[
    ("detect", RiskMode::Detect),
    ("first_match", RiskMode::FirstMatch),
];

pub(super) const RISK_TIERS: NameTable<RiskTier> = &[
    ("low", RiskTier::Low),
    ("medium", RiskTier::Medium),
    ("high", RiskTier::High),
    ("critical", RiskTier::Critical),
];

pub(super) const ACKNOWLEDGE: NameTable<AcknowledgeMode> = &[
    ("durable", AcknowledgeMode::Durable),
    ("early", AcknowledgeMode::Early),
];

pub(super) const TRACE_LEVELS: NameTable<TraceLevel> = &[
    ("minimal", TraceLevel::Minimal),
    ("standard", TraceLevel::Standard),
    ("verbose", TraceLevel::Verbose),
    ("complete", TraceLevel::Complete),
];

pub(super) const DEFAULT_DECISIONS: NameTable<DefaultDecision> = &[
    ("allow", DefaultDecision::Allow),
    ("deny", DefaultDecision::Deny),
];

pub(super) const UNKNOWN_ACTIONS: NameTable<UnknownActions> = &[
    ("deny", UnknownActions::Deny),
    ("allow", UnknownActions::Allow),
    ("approve", UnknownActions::Approve),
];

pub(super) const NOTICE_TRIGGERS: NameTable<NoticeTrigger> = &[
    ("policy_override", NoticeTrigger::PolicyOverride),
    ("high_risk_action", NoticeTrigger::HighRiskAction),
];

/// Delivery modes of an Atlas. Stored as text, because only one mode exists so far.
pub(super) const DELIVERY_MODES: NameTable<&str> = &[("embedded", "embedded")];

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;

    fn agree<T: Serialize + DeserializeOwned + PartialEq + Debug>(names: NameTable<T>) {
        for (name, value) in names {
            assert_eq!(serde_json::to_value(value).unwrap(), *name);
        }
    }

    // covers B5
    #[test]
    fn name_tables_agree_with_serde() {
        agree(ACCESS_KINDS);
        agree(MODES);
        agree(MATCH_MODES);
        agree(CUSTOM_TRIGGER_EVENTS);
        agree(RESPONDENTS);
        agree(RESPONSE_TYPES);
        agree(ON_INVALID);
        agree(EXPECTATIONS);
        agree(GUIDANCE_FORMATS);
        agree(INJECT_MODES);
        agree(POLICY_KINDS);
        agree(SCOPES);
        agree(RISK_MODES);
        agree(RISK_TIERS);
        agree(DEFAULT_DECISIONS);
        agree(UNKNOWN_ACTIONS);
        agree(TRACE_LEVELS);
        agree(NOTICE_TRIGGERS);
    }
}
