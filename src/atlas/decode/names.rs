//! The enumerated words of the format and their values.

use super::super::document::{
    AccessKind, Acknowledge, CheckpointMode, CustomMoment, DefaultDecision, Expect, GuidanceFormat,
    InjectMode, MatchMode, NoticeTrigger, OnInvalid, PolicyKind, Respondent, ResponseType,
    RiskMode, RiskTier, Scope, TraceLevel, UnknownActions,
};

type Names<T> = &'static [(&'static str, T)];

pub(super) const ACCESS_KINDS: Names<AccessKind> = &[
    ("public", AccessKind::Public),
    ("authenticated", AccessKind::Authenticated),
];

pub(super) const MODES: Names<CheckpointMode> = &[
    ("blocking", CheckpointMode::Blocking),
    ("advisory", CheckpointMode::Advisory),
    ("observational", CheckpointMode::Observational),
];

pub(super) const MATCH_MODES: Names<MatchMode> = &[
    ("any", MatchMode::Any),
    ("all", MatchMode::All),
    ("phrase", MatchMode::Phrase),
    ("regex", MatchMode::Regex),
    ("fuzzy", MatchMode::Fuzzy),
];

pub(super) const CUSTOM_MOMENTS: Names<CustomMoment> = &[
    ("input", CustomMoment::Input),
    ("action", CustomMoment::Action),
];

pub(super) const RESPONDENTS: Names<Respondent> = &[
    ("operator", Respondent::Operator),
    ("agent", Respondent::Agent),
    ("either", Respondent::Either),
];

pub(super) const RESPONSE_TYPES: Names<ResponseType> = &[
    ("text", ResponseType::Text),
    ("boolean", ResponseType::Boolean),
    ("acknowledgment", ResponseType::Acknowledgment),
    ("choice", ResponseType::Choice),
    ("number", ResponseType::Number),
    ("json", ResponseType::Json),
];

pub(super) const ON_INVALID: Names<OnInvalid> = &[
    ("retry", OnInvalid::Retry),
    ("block", OnInvalid::Block),
    ("warn_and_continue", OnInvalid::WarnAndContinue),
    ("log_and_continue", OnInvalid::LogAndContinue),
];

pub(super) const EXPECTATIONS: Names<Expect> = &[
    ("true", Expect::True),
    ("false", Expect::False),
    ("any", Expect::Any),
];

pub(super) const GUIDANCE_FORMATS: Names<GuidanceFormat> = &[
    ("text", GuidanceFormat::Text),
    ("markdown", GuidanceFormat::Markdown),
    ("json", GuidanceFormat::Json),
    ("system_instruction", GuidanceFormat::SystemInstruction),
];

pub(super) const INJECT_MODES: Names<InjectMode> = &[
    ("always", InjectMode::Always),
    ("on_match", InjectMode::OnMatch),
    ("on_demand", InjectMode::OnDemand),
    ("risk_based", InjectMode::RiskBased),
];

pub(super) const POLICY_KINDS: Names<PolicyKind> = &[
    ("allow", PolicyKind::Allow),
    ("deny", PolicyKind::Deny),
    ("requires_approval", PolicyKind::RequiresApproval),
    ("rate_limit", PolicyKind::RateLimit),
    ("budget", PolicyKind::Budget),
];

pub(super) const SCOPES: Names<Scope> = &[
    ("session", Scope::Session),
    ("agent", Scope::Agent),
    ("all", Scope::All),
];

pub(super) const RISK_MODES: Names<RiskMode> = &[
    ("detect", RiskMode::Detect),
    ("first_match", RiskMode::FirstMatch),
];

pub(super) const RISK_TIERS: Names<RiskTier> = &[
    ("low", RiskTier::Low),
    ("medium", RiskTier::Medium),
    ("high", RiskTier::High),
    ("critical", RiskTier::Critical),
];

pub(super) const ACKNOWLEDGE: Names<Acknowledge> = &[
    ("durable", Acknowledge::Durable),
    ("early", Acknowledge::Early),
];

pub(super) const TRACE_LEVELS: Names<TraceLevel> = &[
    ("minimal", TraceLevel::Minimal),
    ("standard", TraceLevel::Standard),
    ("verbose", TraceLevel::Verbose),
    ("complete", TraceLevel::Complete),
];

pub(super) const DEFAULT_DECISIONS: Names<DefaultDecision> = &[
    ("allow", DefaultDecision::Allow),
    ("deny", DefaultDecision::Deny),
];

pub(super) const UNKNOWN_ACTIONS: Names<UnknownActions> = &[
    ("deny", UnknownActions::Deny),
    ("allow", UnknownActions::Allow),
    ("approve", UnknownActions::Approve),
];

pub(super) const NOTICE_TRIGGERS: Names<NoticeTrigger> = &[
    ("policy_override", NoticeTrigger::PolicyOverride),
    ("high_risk_action", NoticeTrigger::HighRiskAction),
];

/// Delivery modes of an Atlas. Stored as text, because only one mode exists so far.
pub(super) const DELIVERY_MODES: Names<&str> = &[("embedded", "embedded")];

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::*;

    fn agree<T: Serialize + DeserializeOwned + PartialEq + Debug>(names: Names<T>) {
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
        agree(CUSTOM_MOMENTS);
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
