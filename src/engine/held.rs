//! A request that waits for a person: what was asked, which gates stand in its way, what they ask.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::atlas::Atlas;
use crate::atlas::compiled::Question;
use crate::atlas::document::{Approvers, GuidanceBlock, Respondent, RiskTier};
use crate::base::canon::{canonical, number_kinds};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{EventId, GateId, SessionId, SpanId, TraceId};
use crate::base::limits::MAX_HELD_TEXT_BYTES;
use crate::base::operator::same_name;
use crate::base::pattern::Patterns;

/// One held request, with every gate it has to pass.
///
/// All its gates are answered in one decision: the operator sees the request once, and nobody is
/// asked about a part of it that another part refuses anyway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// How people name it; the same after a restart.
    pub id: GateId,
    /// The session that asked.
    pub session: SessionId,
    /// The agent that asked.
    pub agent: String,
    /// What the session said it is for.
    pub intent: Option<String>,
    /// What was asked for.
    pub subject: Subject,
    /// Digest of session, action and parameters: a decision is bound to it.
    pub request_hash: Digest,
    /// Digest of the Atlases it was judged under: a decision is bound to it.
    pub atlas_hash: Digest,
    /// The gates, highest priority first. Never empty.
    pub gates: Vec<Gate>,
    /// When it was first asked.
    pub opened_at: Timestamp,
    /// When silence denies it.
    pub deadline: Timestamp,
    /// How many answers of operators were invalid.
    pub invalid_attempts: u32,
    /// How many answers of the agent itself were.
    #[serde(default)]
    pub agent_attempts: u32,
    /// How often the same request was asked again while held.
    pub joined: u32,
    /// What the agent itself answered, by index of the gate, as it was recorded.
    #[serde(default)]
    pub answered: BTreeMap<usize, Map<String, Value>>,
    /// The first of two approvals, where two are needed and one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<FirstApproval>,
    /// Who looks after it. It decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The operation its records belong to.
    pub trace_id: TraceId,
    /// The span its records hang under.
    pub span_id: SpanId,
}

/// The first of two approvals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstApproval {
    /// Who gave it.
    pub by: String,
    /// How: `console+challenge`.
    pub method: String,
    /// Why.
    pub justification: Option<String>,
    /// When.
    pub at: Timestamp,
    /// The request that was approved: it counts for no other.
    pub request_hash: Digest,
    /// The Atlases it was approved under.
    pub atlas_hash: Digest,
}

/// Who looks after a held request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who.
    pub by: String,
    /// Since when.
    pub at: Timestamp,
}

impl Held {
    /// How many operators have to let it pass: as many as the gate that wants most.
    #[must_use]
    pub fn approvers(&self) -> Approvers {
        let wanted = self.gates.iter().map(|gate| gate.approvers);
        wanted.max().unwrap_or_default()
    }

    /// The first approval, where it was given for exactly this request under these Atlases.
    #[must_use]
    pub fn first_approval(&self) -> Option<&FirstApproval> {
        self.approval.as_ref().filter(|first| {
            first.request_hash == self.request_hash && first.atlas_hash == self.atlas_hash
        })
    }

    /// How far approving has come, where two have to: `1 of 2`, and who.
    #[must_use]
    pub fn progress(&self) -> Option<(&'static str, Option<&str>)> {
        match (self.approvers(), self.first_approval()) {
            (Approvers::One, _) => None,
            (Approvers::Two, None) => Some(("0 of 2", None)),
            (Approvers::Two, Some(first)) => Some(("1 of 2", Some(&first.by))),
        }
    }

    /// Who else looks after it, as this operator sees it.
    #[must_use]
    pub fn claimed_by_other(&self, operator: &str) -> Option<&str> {
        let by = self.claim.as_ref().map(|claim| claim.by.as_str());
        by.filter(|by| !same_name(by, operator))
    }

    /// Identifiers of the checkpoints and policies in its way.
    pub(super) fn checkpoint_ids(&self) -> BTreeSet<String> {
        let gates = self.gates.iter();
        gates.map(|gate| gate.origin.id().to_owned()).collect()
    }

    /// The tier that decides how carefully it is treated.
    #[must_use]
    pub fn tier(&self) -> RiskTier {
        match &self.subject {
            Subject::SessionStart | Subject::Moment(_) => RiskTier::Low,
            Subject::Action(call) => call.tier,
        }
    }

    /// The action asked for, or `session_start`.
    #[must_use]
    pub fn action(&self) -> &str {
        match &self.subject {
            Subject::SessionStart => "session_start",
            Subject::Action(call) => &call.action,
            Subject::Moment(moment) => &moment.label,
        }
    }
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// To begin working.
    SessionStart,
    /// To run an action.
    Action(ActionCall),
    /// To go on after something else that happened.
    Moment(Moment),
}

impl Subject {
    /// Bytes of what an agent said about it.
    pub(super) fn bytes(&self) -> usize {
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

/// Something that happened beside actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// The type of checkpoint that it concerns.
    pub kind: String,
    /// What it is, for people: `input`, `after ticket.delete`.
    pub label: String,
    /// What is known about it.
    pub data: Value,
    /// The event that recorded it, where somebody may want to name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventId>,
    /// Text that an operator decides about. It is kept while the request is held, and never recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<HeldText>,
    /// Tells whether the agent has the input already, because it is asked about it: then its gate is owed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reached_agent: bool,
}

impl Moment {
    /// The same without the text, for when it is no longer held.
    pub(super) fn without_text(self) -> Self {
        Self { text: None, ..self }
    }
}

/// Text of a held input or error, as far as it is kept for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldText {
    /// The text, or its beginning.
    pub text: String,
    /// Size of the whole text.
    pub size_bytes: u64,
}

impl HeldText {
    /// Keeps a text, up to [`MAX_HELD_TEXT_BYTES`].
    pub(super) fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(MAX_HELD_TEXT_BYTES);
        Self {
            text: text.get(..end).unwrap_or_default().to_owned(),
            size_bytes: text.len() as u64,
        }
    }

    /// Bytes of the text that were not kept.
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
    /// How risky it is.
    pub tier: RiskTier,
    /// Who says so.
    pub tier_source: TierSource,
}

impl ActionCall {
    /// A request for an action, with its tier.
    pub(super) fn of(atlases: &[Atlas], action: &str, params: &Value) -> Self {
        let (tier, tier_source) = super::evaluate::tier(atlases, action, params);
        Self {
            action: action.to_owned(),
            params: params.clone(),
            tier,
            tier_source,
        }
    }

    /// The same, borrowed.
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked {
            action: &self.action,
            params: &self.params,
            tier: self.tier,
            tier_source: self.tier_source,
        }
    }
}

/// An action with its parameters, as it is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'s> {
    /// The action's name.
    pub(super) action: &'s str,
    /// Its parameters, exactly as they will be used.
    pub(super) params: &'s Value,
    /// How risky it is.
    pub(super) tier: RiskTier,
    /// Who says so.
    pub(super) tier_source: TierSource,
}

/// Who says how risky an action is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierSource {
    /// The Atlas.
    Declared,
    /// The words of the action's name and parameters.
    Detected,
}

/// One gate in a request's way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// What put it there.
    pub origin: Origin,
    /// Why it stands there, for people.
    pub why: String,
    /// What has to be answered. Never empty.
    pub questions: Vec<Question>,
    /// What the steward says about it.
    pub guidance: Option<GuidanceBlock>,
    /// What passing it does.
    pub effects: PassEffects,
    /// Who may answer.
    #[serde(default)]
    pub respondent: Respondent,
    /// How many operators have to let it pass.
    #[serde(default, skip_serializing_if = "Approvers::is_one")]
    pub approvers: Approvers,
    /// Whether its records must be durable at once.
    pub force_sync: bool,
    /// Tells whether another Atlas has a checkpoint or policy of the same name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_name: bool,
    /// Digest of the text of its Atlas. Earlier versions did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atlas_hash: Option<Digest>,
    /// The span its records hang under.
    pub span_id: SpanId,
}

impl Gate {
    /// The name under which operators and agents know it: with its Atlas where another Atlas has the same.
    #[must_use]
    pub fn name(&self) -> String {
        if self.shared_name {
            self.origin.full_name()
        } else {
            self.origin.id().to_owned()
        }
    }
}

/// What put a gate in a request's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A blocking checkpoint.
    Checkpoint {
        /// The Atlas it is from.
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
    /// A policy that wants an operator's approval.
    Approval {
        /// The Atlas it is from.
        atlas_id: String,
        /// The policy.
        policy_id: String,
        /// Why it wants it.
        reason: String,
    },
    /// A policy that denies, and that an operator may overrule.
    Override {
        /// The Atlas it is from.
        atlas_id: String,
        /// The policy.
        policy_id: String,
        /// Why it denies.
        reason: String,
    },
}

impl Origin {
    /// The checkpoint's or policy's identifier.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Checkpoint { checkpoint_id, .. } => checkpoint_id,
            Self::Approval { policy_id, .. } | Self::Override { policy_id, .. } => policy_id,
        }
    }

    /// The Atlas it is from.
    #[must_use]
    pub fn atlas_id(&self) -> &str {
        match self {
            Self::Checkpoint { atlas_id, .. }
            | Self::Approval { atlas_id, .. }
            | Self::Override { atlas_id, .. } => atlas_id,
        }
    }

    /// The identifier with its Atlas: two Atlases may have a checkpoint of the same name.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.atlas_id(), self.id())
    }

    /// The checkpoint's type, as TRACE names it; a policy's is `approval` or `override`.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Checkpoint { kind, .. } => kind,
            Self::Approval { .. } => "approval",
            Self::Override { .. } => "override",
        }
    }
}

/// What passing a gate does to its session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassEffects {
    /// Capabilities it unlocks.
    pub unlock: BTreeSet<String>,
    /// Capabilities it locks.
    pub lock: BTreeSet<String>,
    /// Capabilities on which it lifts an earlier lock of the same Atlas: only a passed gate does.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub lift: BTreeSet<String>,
    /// Contexts it hands to the agent.
    pub inject: Vec<String>,
    /// Actions it allows.
    pub allow: Patterns,
    /// Actions it denies.
    pub deny: Patterns,
}

impl PassEffects {
    /// Tells whether they change what the session may do. Contexts alone do not.
    pub(super) fn change_rights(&self) -> bool {
        let capabilities = [&self.unlock, &self.lock, &self.lift];
        let actions = [&self.allow, &self.deny];
        capabilities.iter().any(|ids| !ids.is_empty())
            || actions.iter().any(|patterns| !patterns.is_empty())
    }
}

/// The digest that binds a decision to one request of one session.
#[must_use]
pub fn request_hash(session: &SessionId, action: &str, params: &Value) -> Digest {
    // Where two requests have the same canonical text, what tells them apart is a part of its own.
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
    fn requests_that_differ_never_hash_alike() {
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
        // The value that runs is the same.
        assert_eq!(hash("{\"a\":1e2}"), hash("{\"a\":100.0}"));
        let other: SessionId = "s-2".parse().unwrap();
        assert_ne!(
            base,
            request_hash(&other, "ticket.delete", &json!({"id": 1, "x": 2}))
        );
    }
}
