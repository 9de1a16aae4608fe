//! Tests of resolutions.

use super::*;
use crate::base::limits::RESOLUTION_LIFETIME;
use crate::engine::requests::resolution::{ConstraintKind, Resolution};

const ATLAS: &str = "\
capabilities:
  - {capability_id: locked, actions: [open.it]}
context_blocks:
  - {context_id: tips, content: take care, inject_mode: on_match, keywords: [refund]}
checkpoints:
  - checkpoint_id: confirm
    trigger: {type: action_pre, patterns: [drop]}
    mode: blocking
  - checkpoint_id: unlock
    trigger: {type: explicit_request}
    unlock_capabilities: [locked]
  - checkpoint_id: ask-refund
    trigger: {type: keyword, patterns: [refund]}
    guidance: {content: be kind}
policies:
  - {policy_id: never, type: deny, actions: [wipe], reason: too much}
  - {policy_id: approve, type: requires_approval, actions: [ban], reason: a person decides}
  - {policy_id: few, type: rate_limit, actions: [read], max_calls: 2, window_seconds: 60}
actions:
  - {action_id: read, risk_tier: low}
  - {action_id: drop, risk_tier: low}
  - {action_id: wipe, risk_tier: low}
  - {action_id: ban, risk_tier: low}
  - action_id: shaped
    risk_tier: low
    parameters_schema: {type: object, required: [id]}
";

fn bench() -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(ATLAS)]);
    bench.start("s-1");
    bench
}

impl EngineBench {
    pub(super) fn resolve(&mut self, input: Option<&str>) -> ReplyId {
        let resolve = ResolveRequest {
            session: "s-1".parse().unwrap(),
            input: input.map(str::to_owned),
            actions: Vec::new(),
        };
        self.reply_id(|reply_id| EngineCommand::Resolve(reply_id, resolve))
    }

    fn resolved(&self, reply_id: ReplyId) -> &Resolution {
        match self.reply(reply_id) {
            Reply::Agent(AgentReply::Resolved(resolution)) => resolution,
            other => panic!("not resolved: {other:?}"),
        }
    }

    fn request_with_resolution(
        &mut self,
        session: &str,
        action: &str,
        resolution: &str,
    ) -> ReplyId {
        let request = ActionRequest {
            delivery: crate::engine::command::DeliveryTime::Now,
            on_disconnect: crate::engine::command::OnDisconnect::Kept,
            session: session.parse().unwrap(),
            action: action.to_owned(),
            params: json!({}),
            deadline: None,
            resolution: Some(resolution.to_owned()),
            call: None,
        };
        self.reply_id(|reply_id| EngineCommand::RequestAction(reply_id, request))
    }
}

// covers B15
#[test]
fn a_resolution_lists_allowed_denied_and_constrained_actions() {
    let mut bench = bench();
    let reply_id = bench.resolve(Some("a refund please"));
    let resolution = bench.resolved(reply_id).clone();
    assert_eq!(resolution.allowed, ["read"]);
    let denied: Vec<_> = resolution
        .denied
        .iter()
        .map(|denied| (denied.action.as_str(), denied.policy_id.as_str()))
        .collect();
    assert_eq!(denied, [("open.it", "locked"), ("wipe", "never")]);
    assert!(resolution.denied[1].reason.contains("too much"));
    let constraints: Vec<_> = resolution
        .constraints
        .iter()
        .map(|constraint| {
            (
                constraint.action.as_str(),
                constraint.kind,
                constraint.by.as_str(),
            )
        })
        .collect();
    assert_eq!(
        constraints,
        [
            ("ban", ConstraintKind::Approval, "approve"),
            ("drop", ConstraintKind::Gate, "confirm"),
            ("read", ConstraintKind::RateLimit, "few"),
            ("shaped", ConstraintKind::Parameters, "parameters_schema"),
        ]
    );
    assert_eq!(resolution.contexts[0].context_id, "tips");
    assert_eq!(resolution.guidance[0].block.content, "be kind");
    assert_eq!(resolution.held, []);
    assert_eq!(resolution.ttl_seconds, RESOLUTION_LIFETIME.as_secs());
    assert_eq!(resolution.expires_at, bench.now.plus(RESOLUTION_LIFETIME));
}

#[test]
fn a_resolution_uses_no_limit_and_allows_nothing() {
    let mut bench = bench();
    for _ in 0..5 {
        let reply_id = bench.resolve(None);
        assert!(
            bench
                .resolved(reply_id)
                .allowed
                .contains(&"read".to_owned())
        );
    }
    assert_eq!(bench.engine.sessions()[0].actions, 0);
    for _ in 0..2 {
        let reply_id = bench.request("s-1", "read", json!({}));
        bench.allowed(reply_id);
    }
    let third = bench.request("s-1", "read", json!({}));
    assert_eq!(bench.denied(third).code, DenyCode::Limit);
}

#[test]
fn an_invented_foreign_expired_or_uncovered_resolution_is_denied() {
    let mut bench = bench();
    let reply_id = bench.resolve(None);
    let id = bench.resolved(reply_id).id.clone();
    bench.start("s-2");
    let cases = [
        ("s-1", "read", "made-up"),
        ("s-2", "read", id.as_str()),
        ("s-1", "wipe", id.as_str()),
        ("s-1", "unheard.of", id.as_str()),
    ];
    for (session, action, resolution) in cases {
        let reply_id = bench.request_with_resolution(session, action, resolution);
        assert_eq!(
            bench.denied(reply_id).code,
            DenyCode::Resolution,
            "{session} {action}"
        );
    }
    let good = bench.request_with_resolution("s-1", "read", &id);
    bench.allowed(good);
    // A listed action with a constraint still meets that constraint.
    let gated = bench.request_with_resolution("s-1", "drop", &id);
    assert!(bench.waits(gated));
    bench.advance(RESOLUTION_LIFETIME.as_secs());
    let late = bench.request_with_resolution("s-1", "read", &id);
    assert_eq!(bench.denied(late).code, DenyCode::Resolution);
}

#[test]
fn a_resolution_of_a_held_session_lists_its_gate_and_allows_nothing() {
    let mut bench = EngineBench::acme();
    bench.start("s-1");
    let reply_id = bench.resolve(None);
    let resolution = bench.resolved(reply_id);
    assert_eq!(resolution.allowed, Vec::<String>::new());
    assert_eq!(resolution.held, ["c-1".parse().unwrap()]);
    assert_eq!(
        bench
            .records()
            .iter()
            .filter(|event| **event == "action_attempted")
            .count(),
        0
    );
}

#[test]
fn named_actions_are_judged_with_their_parameters() {
    let mut bench = bench();
    let actions = [json!({}), json!({"id": 1})];
    let resolve = ResolveRequest {
        session: "s-1".parse().unwrap(),
        input: None,
        actions: actions
            .into_iter()
            .map(|params| ResolveAction {
                action: "shaped".to_owned(),
                params,
            })
            .collect(),
    };
    let reply_id = bench.reply_id(|reply_id| EngineCommand::Resolve(reply_id, resolve));
    let resolution = bench.resolved(reply_id);
    assert_eq!(resolution.denied.len(), 1);
    assert_eq!(resolution.allowed, ["shaped"]);
}

#[test]
fn a_resolution_from_another_atlas_is_denied() {
    let mut bench = bench();
    let reply_id = bench.resolve(None);
    let id = bench.resolved(reply_id).id.clone();
    bench.engine.atlas_hash = Digest::of("another Atlas");
    let reply_id = bench.request_with_resolution("s-1", "read", &id);
    let denied = bench.denied(reply_id);
    assert_eq!(denied.code, DenyCode::Resolution);
    assert!(denied.reason.contains("another Atlas"), "{}", denied.reason);
}
