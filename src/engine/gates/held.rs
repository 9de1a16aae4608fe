//! A request that waits for an operator: the subject, its gates, and their questions.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::atlas::Atlas;
use crate::atlas::document::{Approvers, GuidanceBlock, Respondent, RiskTier};
use crate::atlas::model::CompiledQuestion;
use crate::base::canonical_json::{canonical, number_kinds};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, HeldRequestId, SessionId, SpanId, TraceId};
use crate::base::limits::MAX_HELD_TEXT_BYTES;
use crate::base::operator::is_same_operator;
use crate::base::pattern::Patterns;

/// One held request, with every gate it has to pass.
///
/// All gates are answered in one decision. The operator sees the request once, and never answers a part of a
/// request that another part refuses anyway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Identifier for people; stable across restarts.
    pub id: HeldRequestId,
    /// The session that made the request.
    pub session: SessionId,
    /// The agent that made the request.
    pub agent: String,
    /// Purpose of the session, as the agent stated it.
    pub intent: Option<String>,
    /// Subject of the request.
    pub subject: HeldSubject,
    /// Digest of session, action and parameters: a decision is bound to it.
    pub request_hash: Digest,
    /// Digest of the Atlases it was judged under: a decision is bound to it.
    pub atlas_hash: Digest,
    /// The gates, highest priority first. Never empty.
    pub gates: Vec<Gate>,
    /// Time of the first request.
    pub opened_at: Timestamp,
    /// Time at which the request is denied if it is not answered.
    pub deadline: Timestamp,
    /// Number of invalid answers by operators.
    pub invalid_attempts: u32,
    /// Number of invalid answers by the agent.
    #[serde(default)]
    pub agent_attempts: u32,
    /// Number of repetitions of the request while held.
    pub joined: u32,
    /// Answers of the agent, by index of the gate, as recorded.
    #[serde(default)]
    pub answered: BTreeMap<usize, Map<String, Value>>,
    /// The first of two approvals, if two are needed and one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<FirstApproval>,
    /// The operator who claimed the request. A claim decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The trace that its records belong to.
    pub trace_id: TraceId,
    /// Parent span of its records.
    pub span_id: SpanId,
}

/// The first of two approvals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstApproval {
    /// The operator who approved.
    pub by: String,
    /// The approval method, such as `console+challenge`.
    pub method: String,
    /// Justification of the approval.
    pub justification: Option<String>,
    /// Time of the approval.
    pub at: Timestamp,
    /// Hash of the approved request. The approval counts for no other request.
    pub request_hash: Digest,
    /// Hash of the Atlases at the time of the approval.
    pub atlas_hash: Digest,
}

/// A claim on a held request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The operator who has the claim.
    pub by: String,
    /// Time of the claim.
    pub at: Timestamp,
}

impl Held {
    /// Returns the number of operators that have to approve: the highest number that any gate requires.
    #[must_use]
    pub fn approvers(&self) -> Approvers {
        let wanted = self.gates.iter().map(|gate| gate.approvers);
        wanted.max().unwrap_or_default()
    }

    /// Returns the first approval, if it was given for exactly this request under these Atlases.
    #[must_use]
    pub fn first_approval(&self) -> Option<&FirstApproval> {
        self.approval.as_ref().filter(|first| {
            first.request_hash == self.request_hash && first.atlas_hash == self.atlas_hash
        })
    }

    /// Returns the progress of a double approval, such as `1 of 2`, and the first approver.
    #[must_use]
    pub fn approval_progress(&self) -> Option<(&'static str, Option<&str>)> {
        match (self.approvers(), self.first_approval()) {
            (Approvers::One, _) => None,
            (Approvers::Two, None) => Some(("0 of 2", None)),
            (Approvers::Two, Some(first)) => Some(("1 of 2", Some(&first.by))),
        }
    }

    /// Returns the other operator who has the claim, from the view of this operator.
    #[must_use]
    pub fn claimed_by_other(&self, operator: &str) -> Option<&str> {
        let by = self.claim.as_ref().map(|claim| claim.by.as_str());
        by.filter(|by| !is_same_operator(by, operator))
    }

    /// Identifiers of the checkpoints and policies in its way.
    pub(crate) fn checkpoint_ids(&self) -> BTreeSet<String> {
        let gates = self.gates.iter();
        gates.map(|gate| gate.origin.id().to_owned()).collect()
    }

    /// The tier that decides how carefully it is treated.
    #[must_use]
    pub fn tier(&self) -> RiskTier {
        match &self.subject {
            HeldSubject::SessionStart | HeldSubject::Moment(_) => RiskTier::Low,
            HeldSubject::Action(call) => call.tier,
        }
    }

    /// Returns the requested action, or `session_start`.
    #[must_use]
    pub fn action(&self) -> &str {
        match &self.subject {
            HeldSubject::SessionStart => "session_start",
            HeldSubject::Action(call) => &call.action,
            HeldSubject::Moment(moment) => &moment.label,
        }
    }
}

/// Subject of a held request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeldSubject {
    /// The start of a session.
    SessionStart,
    /// An action.
    Action(ActionCall),
    /// Another event, after which the session wants to go on.
    Moment(SessionEvent),
}

impl HeldSubject {
    /// Returns the size of the agent's data, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::SessionStart => 0,
            Self::Action(call) => call.params.to_string().len(),
            Self::Moment(moment) => {
                let text = moment.text.as_ref().map_or(0, |text| text.text.len());
                moment.data.to_string().len() + text
            }
        }
    }
}

/// An event of a session that is not an action request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionEvent {
    /// Type of the checkpoints that it concerns.
    pub kind: String,
    /// Label for people: `input`, `after ticket.delete`.
    pub label: String,
    /// Data about the event.
    pub data: Value,
    /// The TRACE event that recorded it, if a later report can refer to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventId>,
    /// Text that the operator needs for the decision. It is kept while the request is held, and never
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<HeldText>,
    /// True when the agent already has the input, because it is asked about it. An unpassed gate then stays
    /// required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reached_agent: bool,
}

impl SessionEvent {
    /// Returns the event without its text, for when it is no longer held.
    pub(crate) fn without_text(self) -> Self {
        Self { text: None, ..self }
    }
}

/// Text of a held input or error, as far as it is kept for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldText {
    /// The text, or its beginning.
    pub text: String,
    /// Size of the whole text, in bytes.
    pub size_bytes: u64,
}

impl HeldText {
    /// Keeps a text, up to [`MAX_HELD_TEXT_BYTES`].
    pub(crate) fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(MAX_HELD_TEXT_BYTES);
        Self {
            text: text.get(..end).unwrap_or_default().to_owned(),
            size_bytes: text.len() as u64,
        }
    }

    /// Returns the number of bytes that were not kept.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.text.len() as u64)
    }
}

/// An action with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionCall {
    /// The action's name.
    pub action: String,
    /// Its parameters, exactly as they will be used.
    pub params: Value,
    /// Risk tier of the action.
    pub tier: RiskTier,
    /// Source of the risk tier.
    pub tier_source: TierSource,
}

impl ActionCall {
    /// Creates an action call and determines its risk tier.
    pub(crate) fn of(atlases: &[Atlas], action: &str, params: &Value) -> Self {
        let (tier, tier_source) = crate::engine::evaluation::risk_tier(atlases, action, params);
        Self {
            action: action.to_owned(),
            params: params.clone(),
            tier,
            tier_source,
        }
    }

    /// Returns a borrowed view of the call.
    pub(crate) fn view(&self) -> ActionView<'_> {
        ActionView {
            action: &self.action,
            params: &self.params,
            tier: self.tier,
            tier_source: self.tier_source,
        }
    }
}

/// Borrowed view of an action with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionView<'s> {
    /// The action's name.
    pub(crate) action: &'s str,
    /// Its parameters, exactly as they will be used.
    pub(crate) params: &'s Value,
    /// Risk tier of the action.
    pub(crate) tier: RiskTier,
    /// Source of the risk tier.
    pub(crate) tier_source: TierSource,
}

/// Source of an action's risk tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierSource {
    /// Declared in the Atlas.
    Declared,
    /// Detected from the words of the action's name and parameters.
    Detected,
}

/// One gate in the way of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// Checkpoint or policy that the gate comes from.
    pub origin: GateOrigin,
    /// Reason, for people.
    pub why: String,
    /// Questions to answer. Never empty.
    pub questions: Vec<CompiledQuestion>,
    /// The steward's guidance.
    pub guidance: Option<GuidanceBlock>,
    /// Effects of passing the gate.
    pub effects: PassEffects,
    /// Respondent: operator, agent, or either.
    #[serde(default)]
    pub respondent: Respondent,
    /// Number of operators that have to approve.
    #[serde(default, skip_serializing_if = "Approvers::is_one")]
    pub approvers: Approvers,
    /// True when its records must be durable at once.
    pub force_sync: bool,
    /// True when another Atlas has a checkpoint or policy of the same name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_name: bool,
    /// Digest of its Atlas. Earlier versions did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atlas_hash: Option<Digest>,
    /// Parent span of its records.
    pub span_id: SpanId,
}

impl Gate {
    /// Returns the gate's name for operators and agents. It includes the Atlas if another Atlas has the same
    /// name.
    #[must_use]
    pub fn name(&self) -> String {
        if self.shared_name {
            self.origin.full_name()
        } else {
            self.origin.id().to_owned()
        }
    }
}

/// Checkpoint or policy that a gate comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOrigin {
    /// A blocking checkpoint.
    Checkpoint {
        /// Identifier of its Atlas.
        atlas_id: String,
        /// Its identifier.
        checkpoint_id: String,
        /// Its name.
        name: String,
        /// Its type.
        kind: String,
        /// Its priority.
        priority: i64,
    },
    /// A policy that requires an operator's approval.
    Approval {
        /// Identifier of its Atlas.
        atlas_id: String,
        /// The policy.
        policy_id: String,
        /// Reason of the policy.
        reason: String,
    },
    /// A denying policy that an operator may overrule.
    Override {
        /// Identifier of its Atlas.
        atlas_id: String,
        /// The policy.
        policy_id: String,
        /// Reason of the denial.
        reason: String,
    },
}

impl GateOrigin {
    /// Returns the identifier of the checkpoint or policy.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Checkpoint { checkpoint_id, .. } => checkpoint_id,
            Self::Approval { policy_id, .. } | Self::Override { policy_id, .. } => policy_id,
        }
    }

    /// Returns the identifier of the Atlas.
    #[must_use]
    pub fn atlas_id(&self) -> &str {
        match self {
            Self::Checkpoint { atlas_id, .. }
            | Self::Approval { atlas_id, .. }
            | Self::Override { atlas_id, .. } => atlas_id,
        }
    }

    /// Returns the identifier with its Atlas: two Atlases may have checkpoints of the same name.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.atlas_id(), self.id())
    }

    /// Returns the checkpoint's type, as TRACE names it; for a policy `approval` or `override`.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Checkpoint { kind, .. } => kind,
            Self::Approval { .. } => "approval",
            Self::Override { .. } => "override",
        }
    }
}

/// Effects of a passed gate on its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassEffects {
    /// Capabilities to unlock.
    pub unlock: BTreeSet<String>,
    /// Capabilities to lock.
    pub lock: BTreeSet<String>,
    /// Capabilities on which an earlier lock of the same Atlas is lifted. Only a passed gate lifts locks.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lift: BTreeSet<String>,
    /// Contexts to inject.
    pub inject: Vec<String>,
    /// Actions to allow.
    pub allow: Patterns,
    /// Actions to deny.
    pub deny: Patterns,
}

impl PassEffects {
    /// Returns whether the effects change what the session may do. Contexts alone do not.
    pub(crate) fn change_rights(&self) -> bool {
        let capabilities = [&self.unlock, &self.lock, &self.lift];
        let actions = [&self.allow, &self.deny];
        capabilities.iter().any(|ids| !ids.is_empty())
            || actions.iter().any(|patterns| !patterns.is_empty())
    }
}

/// Returns the digest that binds a decision to one request of one session.
#[must_use]
pub fn request_hash(session: &SessionId, action: &str, params: &Value) -> Digest {
    // Two requests can have the same canonical text. The number kinds, as another part, tell them apart.
    let kinds = number_kinds(params);
    let params = canonical(params);
    let parts = [
        b"cra request 1".as_slice(),
        session.as_str().as_bytes(),
        action.as_bytes(),
        params.as_bytes(),
    ];
    Digest::of_parts(parts.into_iter().chain(kinds.as_deref().map(str::as_bytes)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn different_requests_have_different_hashes() {
        let session: SessionId = "s-1".parse().unwrap();
        let base = request_hash(&session, "ticket.delete", &json!({"id": 1, "x": 2}));
        assert_eq!(
            base,
            request_hash(&session, "ticket.delete", &json!({"x": 2, "id": 1}))
        );
        for (action, params) in [
            ("ticket.delete", json!({"id": 1, "x": 3})),
            ("ticket.delet", json!({"id": 1, "x": 2})),
            ("ticket.delete", json!({"id": "1", "x": 2})),
        ] {
            assert_ne!(base, request_hash(&session, action, &params));
        }
        let digits = 9_007_199_254_740_993_u64;
        assert_ne!(
            request_hash(&session, "a", &json!({"id": digits})),
            request_hash(&session, "a", &json!({"id": digits.to_string()}))
        );
        let hash = |text: &str| {
            let params = serde_json::from_str(text).unwrap();
            request_hash(&session, "a", &params)
        };
        for (one, other) in [
            ("{\"a\":1}", "{\"a\":1.0}"),
            ("{\"a\":0}", "{\"a\":-0}"),
            ("{\"a\":0.0}", "{\"a\":-0.0}"),
            ("{\"a\":0}", "{\"a\":0.0}"),
            ("{\"a\":[1,1.0]}", "{\"a\":[1.0,1]}"),
            ("{\"a\":9007199254740994}", "{\"a\":9007199254740994.0}"),
            ("{\"a\":1e16}", "{\"a\":\"10000000000000000\"}"),
        ] {
            assert_ne!(hash(one), hash(other), "{one} and {other}");
        }
        // Both texts denote the same value.
        assert_eq!(hash("{\"a\":1e2}"), hash("{\"a\":100.0}"));
        let other: SessionId = "s-2".parse().unwrap();
        assert_ne!(
            base,
            request_hash(&other, "ticket.delete", &json!({"id": 1, "x": 2}))
        );
    }
}
