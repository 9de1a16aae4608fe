//! Events as a session with gates leaves them, in chains, with the log over them.

use cra_core::base::clock::Timestamp;
use cra_core::base::id::{CountedIds, IdSource, SessionId};
use cra_core::trace::chain::Chain;
use cra_core::trace::event::{Draft, Durability, Payload};
use cra_core::trace::record::Record;
use serde_json::{Value, json};

/// Sessions that the events are of.
const SESSIONS: u64 = 100;

/// The details of one deletion that is held, approved and run, and of the input before it.
pub(crate) fn story() -> Vec<(&'static str, Value)> {
    let params = json!({"ticket_id": "T-10023", "reason": "requested by the customer in writing"});
    vec![
        (
            "input_received",
            json!({"input_hash": "a".repeat(64), "input_size_bytes": 812, "source": "user", "checkpoints_triggered": []}),
        ),
        (
            "action_attempted",
            json!({"action_type": "ticket.delete", "action_params": params, "risk_tier": "high", "policy_checked": true}),
        ),
        (
            "policy_checked",
            json!({"policy_id": "require-admin-approval", "action_type": "ticket.delete", "decision": "require_approval", "conditions_evaluated": 1, "matching_rule": "ticket.delete"}),
        ),
        (
            "risk_detected",
            json!({"risk_tier": "high", "trigger": "detected from words in the request", "action_type": "ticket.delete", "recommended_action": "verify"}),
        ),
        (
            "checkpoint_triggered",
            json!({"checkpoint_id": "delete-confirm", "checkpoint_type": "action_pre", "mode": "blocking", "trigger_condition": "`ticket.delete` matches the rule `*.delete`", "trigger_data": {"action_id": "ticket.delete"}, "priority": 900}),
        ),
        (
            "checkpoint_response",
            json!({"checkpoint_id": "delete-confirm", "answers": {"confirm-delete": "acknowledged", "justify-risk": "the customer asked for it in writing on Monday"}, "validation_result": "valid", "answered_by": "op-1@ops"}),
        ),
        (
            "checkpoint_passed",
            json!({"checkpoint_id": "delete-confirm", "unlocked_capabilities": [], "injected_contexts": [], "passed_by": "op-1@ops"}),
        ),
        (
            "policy_override",
            json!({"policy_id": "require-admin-approval", "action_type": "ticket.delete", "approver": "op-1@ops", "approval_method": "console", "justification": "the customer asked for it in writing on Monday"}),
        ),
        (
            "action_completed",
            json!({"action_type": "ticket.delete", "success": true, "duration_ms": 412, "result_summary": "deleted"}),
        ),
    ]
}

/// Drafts without end.
pub(crate) struct Drafts {
    ids: CountedIds,
    payloads: Vec<Payload>,
    sessions: Vec<SessionId>,
    next: u64,
}

impl Drafts {
    pub(crate) fn new() -> Self {
        let read = |(event_type, fields): (&str, Value)| {
            let Value::Object(fields) = fields else {
                panic!("details are an object");
            };
            Payload::read(event_type, fields).expect("details of the type")
        };
        let mut ids = CountedIds::starting_at(1 << 100);
        Self {
            payloads: story().into_iter().map(read).collect(),
            sessions: (0..SESSIONS).map(|_| ids.next().into()).collect(),
            ids,
            next: 0,
        }
    }

    pub(crate) fn draft(&mut self) -> Draft {
        let at = usize::try_from(self.next).expect("a place");
        let payload = self.payloads[at % self.payloads.len()].clone();
        let session = self.sessions[at / self.payloads.len() % self.sessions.len()].clone();
        self.next += 1;
        Draft {
            session_id: session,
            event_id: self.ids.next().into(),
            trace_id: self.ids.next().into(),
            span_id: self.ids.next().into(),
            parent_span_id: Some(self.ids.next().into()),
            timestamp: Timestamp::from_micros(
                1_767_225_600_000_000 + i64::try_from(self.next).expect("a time"),
            ),
            payload,
            durability: Durability::Sync,
        }
    }
}

/// Records without end, each in its session's chain.
pub(crate) struct Records {
    drafts: Drafts,
    chains: std::collections::HashMap<SessionId, Chain>,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self {
            drafts: Drafts::new(),
            chains: std::collections::HashMap::new(),
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<Record> {
        (0..count)
            .map(|_| {
                let draft = self.drafts.draft();
                let session = draft.session_id.clone();
                let chain = self.chains.entry(session.clone());
                chain.or_insert_with(|| Chain::new(session)).seal(&draft)
            })
            .collect()
    }
}

/// The most memory that this process had so far, in KiB.
pub(crate) fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
