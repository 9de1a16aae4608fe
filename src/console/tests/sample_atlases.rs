//! Sample Atlases and their evaluations.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::fixture::now;
use crate::atlas::origin::AtlasOrigin;
use crate::atlas::{Atlas, load_str};
use crate::base::id::CountedIds;
use crate::engine::Engine;
use crate::engine::command::{
    ActionRequest, EngineCommand, InputReport, InputSource, ReplyId, StartSession,
};
use crate::engine::explanation::{ExplainQuestion, ExplainedSession, FullExplanation};
use crate::runtime::WatchSetting;
use crate::runtime::snapshot::{
    EvaluationLog, EvaluationOutcome, RuntimeSnapshot, SessionLimitUsage, WatchedEvaluation,
};

pub(super) const ACME: &str = include_str!("../../../assets/atlas/acme-support.yaml");

/// An Atlas with one part of every kind that the screen describes in its own words.
pub(super) const WORDS: &str = r#"atlas_version: "1.0"
atlas_id: com.example.payments
version: "1"
name: Payments
default_decision: allow
checkpoints:
  - checkpoint_id: large
    name: Large payments
    trigger: { type: action_pre, patterns: ["payment.*"] }
    mode: blocking
    when: { path: params.amount, gt: 1000 }
  - checkpoint_id: refunds
    trigger: { type: keyword, patterns: [refund], match_mode: phrase }
policies:
  - policy_id: few
    type: rate_limit
    actions: ["payment.*"]
    max_calls: 5
    window_seconds: 60
    reason: slow down
    scope: session
actions:
  - action_id: payment.send
    name: Send
    risk_tier: medium
"#;

pub(super) fn atlases() -> Vec<Atlas> {
    let acme = load_str("assets/acme-support.yaml", ACME).unwrap().atlas;
    let words = load_str("payments.yaml", WORDS).unwrap().atlas;
    vec![acme, words]
}

pub(super) fn ask() -> ReplyId {
    ReplyId(1)
}

/// An engine in which session `s-12` of `triage-bot` has started.
pub(super) fn engine() -> Engine {
    let mut engine = Engine::new(atlases(), Box::new(CountedIds::default()));
    engine.handle(EngineCommand::StartSession(ask(), start()), now());
    engine
}

pub(super) fn start() -> StartSession {
    StartSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: "s-12".parse().unwrap(),
        agent: "triage-bot".to_owned(),
        agent_version: None,
        intent: None,
        owner: None,
    }
}

pub(super) fn request(action: &str, params: serde_json::Value) -> EngineCommand {
    let request = ActionRequest {
        delivery: crate::engine::command::DeliveryTime::Now,
        on_disconnect: crate::engine::command::OnDisconnect::Kept,
        session: "s-12".parse().unwrap(),
        action: action.to_owned(),
        params,
        deadline: None,
        resolution: None,
        call: None,
    };
    EngineCommand::RequestAction(ask(), request)
}

pub(super) fn evaluated(
    number: u64,
    command: &EngineCommand,
    came: EvaluationOutcome,
) -> Arc<WatchedEvaluation> {
    let engine = match command {
        EngineCommand::StartSession(..) => Engine::new(atlases(), Box::new(CountedIds::default())),
        _ => engine(),
    };
    let (session, agent, account) = engine.preview(command, now()).unwrap();
    Arc::new(WatchedEvaluation {
        number,
        at: now().plus(Duration::from_secs(number)),
        session,
        agent,
        counts: account.counts(),
        account,
        outcome: came,
    })
}

/// A snapshot with two Atlases and four evaluations.
pub(super) fn studied(base: RuntimeSnapshot) -> RuntimeSnapshot {
    let input = InputReport {
        session: "s-12".parse().unwrap(),
        text: "a refund please".to_owned(),
        source: InputSource::User,
        reaches_asked_agent: false,
        waits_for_start: false,
        deadline: None,
    };
    let held = EvaluationOutcome::Held(vec!["c-121".parse().unwrap()]);
    let denied = EvaluationOutcome::Denied("no Atlas knows the action `disk.wipe`".to_owned());
    let evaluations: Vec<_> = vec![
        evaluated(
            5,
            &request("ticket.delete", json!({"ticket_id": "1"})),
            held,
        ),
        evaluated(
            4,
            &request("payment.send", json!({"amount": 750})),
            EvaluationOutcome::Allowed,
        ),
        evaluated(3, &request("disk.wipe", json!({})), denied),
        evaluated(
            2,
            &EngineCommand::Input(ask(), input),
            EvaluationOutcome::Allowed,
        ),
        evaluated(
            1,
            &EngineCommand::StartSession(ask(), start()),
            EvaluationOutcome::Waiting,
        ),
    ];
    let few = SessionLimitUsage {
        atlas_id: "com.example.payments".to_owned(),
        policy_id: "few".to_owned(),
        used: 1.0,
        allowed: 5.0,
        window: Some(Duration::from_mins(1)),
        scope: crate::atlas::document::LimitScope::Session,
    };
    RuntimeSnapshot {
        loaded: atlases().into(),
        watched: EvaluationLog {
            watch: WatchSetting::On,
            total: 5,
            evaluations: evaluations.into(),
            limits: Arc::new([("s-07".parse().unwrap(), vec![few])].into()),
            shadow: None,
        },
        ..base
    }
}

/// A snapshot whose Atlases have files.
pub(super) fn on_disk(snapshot: RuntimeSnapshot) -> RuntimeSnapshot {
    let file = |mut atlas: Atlas| {
        let mut origin: AtlasOrigin = (*atlas.origin).clone();
        origin.file = Some(PathBuf::from("/etc/cra").join(&origin.name));
        atlas.origin = Arc::new(origin);
        atlas
    };
    let loaded: Vec<_> = snapshot.loaded.iter().cloned().map(file).collect();
    RuntimeSnapshot {
        loaded: loaded.into(),
        ..snapshot
    }
}

pub(super) fn account() -> FullExplanation {
    let question = ExplainQuestion::Action {
        action: "ticket.delete".to_owned(),
        params: json!({}),
        asker: ExplainedSession::Session("s-12".parse().unwrap()),
    };
    engine().explain_question(&question, now()).unwrap()
}
