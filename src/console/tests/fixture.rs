//! Sample data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::atlas::document::RiskTier;
use crate::atlas::model::CompiledQuestion;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::engine::command::{HeldOutcome, SettledRequest};
use crate::engine::held::{
    ActionCall, Gate, GateOrigin, Held, HeldSubject, PassEffects, TierSource, request_hash,
};
use crate::engine::session::StartState;
use crate::runtime::RecordedSession;
use crate::runtime::snapshot::{
    AtlasSummary, ChainVerdict, ConsoleAccess, EvaluationLog, HeadState, OperatorActs,
    RecordSummary, RuntimeSnapshot, SessionSummary, StoreState,
};
use crate::trace::event::Event;

pub(in crate::console) fn now() -> Timestamp {
    "2026-09-23T14:02:31.000000Z".parse().unwrap()
}

pub(in crate::console) fn question(fields: Value) -> CompiledQuestion {
    serde_json::from_value(fields).unwrap()
}

pub(in crate::console) fn justification() -> CompiledQuestion {
    question(json!({
        "question_id": "justify-risk",
        "question": "Provide justification for this high-risk action",
        "response_type": "text",
        "hint": "explain why you need to perform this action",
        "validation": { "min_length": 20, "must_contain": ["reason"] },
    }))
}

pub(in crate::console) fn acknowledgment() -> CompiledQuestion {
    question(json!({
        "question_id": "irreversible",
        "question": "I understand this deletion cannot be undone",
        "response_type": "acknowledgment",
    }))
}

pub(in crate::console) fn confirmation() -> CompiledQuestion {
    question(json!({
        "question_id": "confirm",
        "question": "Was the customer asked?",
        "response_type": "boolean",
    }))
}

pub(in crate::console) fn gate(
    id: &str,
    kind: &str,
    reason: &str,
    questions: Vec<CompiledQuestion>,
) -> Gate {
    Gate {
        origin: GateOrigin::Checkpoint {
            atlas_id: "com.acme.support".to_owned(),
            checkpoint_id: id.to_owned(),
            name: id.to_owned(),
            kind: kind.to_owned(),
            priority: 900,
        },
        why: reason.to_owned(),
        questions,
        guidance: None,
        effects: PassEffects::default(),
        respondent: crate::atlas::document::Respondent::Operator,
        approvers: crate::atlas::document::Approvers::One,
        force_sync: true,
        shared_name: false,
        atlas_hash: None,
        span_id: "span-1".parse().unwrap(),
    }
}

/// A held action, asked `age` seconds ago, with `left` seconds left.
pub(in crate::console) fn held(
    id: &str,
    action: &str,
    tier: RiskTier,
    age: u64,
    left: u64,
) -> Held {
    let session: SessionId = "s-12".parse().unwrap();
    let params = json!({ "ticket_ids": [4411, 4412], "cascade": true });
    Held {
        id: id.parse().unwrap(),
        agent: "triage-bot".to_owned(),
        intent: Some("clean up duplicate tickets".to_owned()),
        request_hash: request_hash(&session, action, &params),
        subject: HeldSubject::Action(ActionCall {
            action: action.to_owned(),
            params,
            tier,
            tier_source: TierSource::Declared,
        }),
        session,
        atlas_hash: Digest::of("atlas"),
        gates: vec![gate(
            "delete-confirm",
            "action_pre",
            "matches the pattern *.delete",
            vec![confirmation()],
        )],
        opened_at: Timestamp::from_micros(now().micros() - i64::try_from(age).unwrap() * 1_000_000),
        deadline: now().plus(Duration::from_secs(left)),
        invalid_attempts: 0,
        agent_attempts: 0,
        answered: BTreeMap::new(),
        approval: None,
        claim: None,
        joined: 0,
        trace_id: "trace-1".parse().unwrap(),
        span_id: "span-0".parse().unwrap(),
    }
}

/// A held action with other parameters.
pub(in crate::console) fn with_params(mut held: Held, params: Value) -> Held {
    held.request_hash = request_hash(&held.session, held.action(), &params);
    if let HeldSubject::Action(call) = &mut held.subject {
        call.params = params;
    }
    held
}

pub(in crate::console) fn detected(mut held: Held) -> Held {
    if let HeldSubject::Action(call) = &mut held.subject {
        call.tier_source = TierSource::Detected;
    }
    held
}

/// `c-121`: high risk, two gates, three questions, one hidden character.
pub(in crate::console) fn ticket_delete() -> Held {
    let mut item = with_params(
        held("c-121", "ticket.delete", RiskTier::High, 130, 170),
        json!({
            "ticket_ids": [4411, 4412, 4413],
            "cascade": true,
            "note": "dup\u{202e} cleanup",
        }),
    );
    let mut risk = gate(
        "high-risk-gate",
        "risk_threshold",
        "ticket.delete is of tier high",
        vec![justification(), acknowledgment()],
    );
    let guidance = json!({ "content": "Proceed with caution. All actions are being audited." });
    risk.guidance = serde_json::from_value(guidance).unwrap();
    risk.effects.inject = vec!["high-risk-procedures".to_owned()];
    item.gates.insert(0, risk);
    item
}

/// `c-119`: start of a session, one acknowledgment.
pub(in crate::console) fn onboarding() -> Held {
    let mut item = held("c-119", "session_start", RiskTier::Low, 390, 540);
    item.subject = HeldSubject::SessionStart;
    item.agent = "docs-bot".to_owned();
    item.session = "s-15".parse().unwrap();
    let mut welcome = gate(
        "onboarding",
        "session_start",
        "a session begins",
        vec![acknowledgment()],
    );
    welcome.effects.unlock = BTreeSet::from(["basic-support".to_owned()]);
    item.gates = vec![welcome];
    item
}

/// `c-118`: critical, held by a policy.
pub(in crate::console) fn user_ban() -> Held {
    let mut item = with_params(
        held("c-118", "user.ban", RiskTier::Critical, 41, 559),
        json!({ "user": "mallory" }),
    );
    item.agent = "billing-bot".to_owned();
    item.session = "s-07".parse().unwrap();
    item.gates = vec![Gate {
        origin: GateOrigin::Approval {
            atlas_id: "com.acme.support".to_owned(),
            policy_id: "bans-need-approval".to_owned(),
            reason: "bans are final".to_owned(),
        },
        why: "policy bans-need-approval wants an operator: bans are final".to_owned(),
        questions: vec![justification()],
        ..gate("x", "x", "x", vec![])
    }];
    item
}

/// A medium request with a detected tier that was asked three times, and one that was answered wrongly.
pub(in crate::console) fn others() -> [Held; 2] {
    let mut refund = detected(held("c-122", "payment.refund", RiskTier::High, 132, 468));
    refund.joined = 2;
    let mut update = held("c-124", "ticket.update", RiskTier::Medium, 185, 715);
    update.invalid_attempts = 1;
    [refund, update]
}

pub(in crate::console) fn decided(
    id: &str,
    time: &str,
    outcome: HeldOutcome,
    by: Option<&str>,
) -> SettledRequest {
    SettledRequest {
        gate: id.parse().unwrap(),
        at: format!("2026-09-23T{time}.000000Z").parse().unwrap(),
        outcome,
        by: by.map(str::to_owned),
        detail: match outcome {
            HeldOutcome::Passed => "customer confirmed".to_owned(),
            HeldOutcome::Denied => "wrong tenant".to_owned(),
            HeldOutcome::Expired | HeldOutcome::Withdrawn | HeldOutcome::Voided => String::new(),
        },
        session: "s-07".parse().unwrap(),
        agent: "billing-bot".to_owned(),
        action: "payment.refund".to_owned(),
        tier: RiskTier::High,
    }
}

/// A snapshot with these held requests.
pub(in crate::console) fn snapshot(held: impl IntoIterator<Item = Held>) -> RuntimeSnapshot {
    let session = |id: &str, agent: &str| SessionSummary {
        id: id.parse().unwrap(),
        agent: agent.to_owned(),
        intent: None,
        entry: StartState::Open,
        pending: vec![],
        started_at: now(),
        actions: 3,
        unlocked: vec!["basic-support".to_owned()],
        locked: vec!["admin-support".to_owned()],
        allowed: vec![],
        denied: vec!["public.*".to_owned()],
        contexts: vec!["intro-context".to_owned()],
        guidance: vec!["onboarding".to_owned()],
        events: 17,
    };
    RuntimeSnapshot {
        revision: 1,
        operator: "op-1@ops".to_owned(),
        access: ConsoleAccess::Write,
        atlases: vec![AtlasSummary {
            id: "com.acme.support".to_owned(),
            version: "2.1.0".to_owned(),
            name: "ACME support".to_owned(),
            hash: Digest::of("atlas"),
            checkpoints: 4,
        }],
        loaded: Arc::default(),
        distrusted: None,
        head_file_missing: false,
        load_info: crate::runtime::snapshot::AtlasLoadInfo::default(),
        watched: EvaluationLog::default(),
        threads: Arc::default(),
        sessions: [
            session("s-07", "billing-bot"),
            session("s-12", "triage-bot"),
            session("s-15", "docs-bot"),
        ]
        .into_iter()
        .collect(),
        held: held.into_iter().map(Arc::new).collect(),
        decided: vec![
            Arc::new(decided(
                "c-117",
                "14:01:02",
                HeldOutcome::Denied,
                Some("op-1@ops"),
            )),
            Arc::new(decided(
                "c-116",
                "13:58:40",
                HeldOutcome::Passed,
                Some("o2@ops"),
            )),
            Arc::new(decided("c-112", "13:55:11", HeldOutcome::Expired, None)),
        ],
        drafts: Arc::default(),
        thread_drafts: Arc::default(),
        operator_acts: OperatorActs::default(),
        chain: RecordSummary {
            sessions: 7,
            events: 234,
            verdict: ChainVerdict::Verified {
                events: 225,
                unsealed: 0,
            },
            head: HeadState {
                covered: 234,
                ..HeadState::default()
            },
        },
        store: StoreState::Ready,
        undelivered: crate::runtime::snapshot::UndeliveredCounts::default(),
        notices: Arc::default(),
        clock_step: None,
        threads_full_at: None,
        ran_unasked: None,
    }
}

/// A snapshot with five held requests of all kinds.
pub(in crate::console) fn busy() -> RuntimeSnapshot {
    let [refund, update] = others();
    snapshot([onboarding(), user_ban(), ticket_delete(), refund, update])
}

/// A snapshot without held requests.
pub(in crate::console) fn idle() -> RuntimeSnapshot {
    snapshot([])
}

pub(in crate::console) fn sessions() -> Vec<RecordedSession> {
    let of = |session: &str, agent: &str, events, ended| RecordedSession {
        session: session.parse().unwrap(),
        agent: agent.to_owned(),
        started_at: now(),
        last_at: now(),
        events,
        ended,
        imports: Vec::new(),
    };
    vec![
        of("s-15", "docs-bot", 4, false),
        of("s-12", "triage-bot", 6, false),
        of("s-09", "returns-bot", 12_345, true),
    ]
}

/// Events of a session, from a sequence number on.
pub(in crate::console) fn events(session: &str, from: u64, count: u64) -> Vec<Event> {
    let kinds = [
        (
            "session_started",
            json!({ "agent_type": "triage-bot", "intent": "clean up" }),
        ),
        (
            "action_attempted",
            json!({ "action_type": "ticket.delete", "risk_tier": "high" }),
        ),
        (
            "checkpoint_triggered",
            json!({ "checkpoint_id": "high-risk-gate", "mode": "blocking" }),
        ),
        (
            "risk_verified",
            json!({ "action_type": "ticket.delete", "verified_by": "op-1@ops" }),
        ),
        (
            "checkpoint_passed",
            json!({ "checkpoint_id": "high-risk-gate" }),
        ),
        (
            "action_completed",
            json!({ "action_type": "ticket.delete", "note": "a\u{1b}[2Jb" }),
        ),
    ];
    let of = |sequence: u64| {
        let at = usize::try_from(sequence).unwrap() % kinds.len();
        let (event_type, payload) = &kinds[at];
        Event {
            trace_version: "1.0".to_owned(),
            event_id: format!("event-{sequence}").parse().unwrap(),
            trace_id: "trace-1".parse().unwrap(),
            span_id: "span-2".parse().unwrap(),
            parent_span_id: Some("span-1".parse().unwrap()),
            session_id: session.parse().unwrap(),
            sequence,
            timestamp: now().plus(Duration::from_secs(sequence)),
            event_type: (*event_type).to_owned(),
            payload: payload.as_object().unwrap().clone(),
            pruned: false,
            previous_hash: Digest::of(format!("{}", sequence.wrapping_sub(1))),
            hash: Digest::of(format!("{sequence}")),
        }
    };
    (from..from + count).map(of).collect()
}
