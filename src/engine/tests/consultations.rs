//! Tests of consultations, and of their cache.

use super::*;
use crate::atlas::document::InjectMode;
use crate::engine::extensions::PolicyDecisionKind;
use crate::engine::extensions::consultation::{Consultation, ConsultationAnswer, PolicyAnswer};

const ATLAS: &str = "\
cache_config: {policy_ttl_seconds: 60, keyword_ttl_seconds: 10, context_ttl_seconds: 300}
context_blocks:
  - {context_id: basics, content: be polite, inject_mode: always}
  - {context_id: refunds, content: 30 days, inject_mode: on_match, keywords: [refund]}
policies:
  - {policy_id: never, type: deny, actions: [wipe], reason: too much}
  - {policy_id: few, type: rate_limit, actions: [read], max_calls: 1, window_seconds: 60}
checkpoints:
  - {checkpoint_id: g, trigger: {type: interactive}, deny_actions: [talk]}
actions: [{action_id: read}, {action_id: wipe}, {action_id: talk}]
";

fn bench() -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(ATLAS)]);
    bench.start("s-1");
    bench
}

impl EngineBench {
    fn consult(&mut self, consult: Consultation) -> ConsultationAnswer {
        let reply_id = self.reply_id(|reply_id| EngineCommand::Consult(reply_id, consult));
        match self.reply(reply_id) {
            Reply::Agent(AgentReply::Consulted(consulted)) => consulted.clone(),
            other => panic!("not consulted: {other:?}"),
        }
    }

    fn policy(&mut self, action: &str) -> PolicyAnswer {
        let consult = Consultation::Policy {
            session: "s-1".parse().unwrap(),
            action: action.to_owned(),
            params: json!({}),
        };
        match self.consult(consult) {
            ConsultationAnswer::Policy(answer) => answer,
            ConsultationAnswer::Contexts(_) | ConsultationAnswer::Owned => panic!(),
        }
    }

    fn found(&mut self, query: &str, mode: Option<InjectMode>, hints: &[&str]) -> Vec<String> {
        let consult = Consultation::Contexts {
            session: "s-1".parse().unwrap(),
            query: query.to_owned(),
            mode,
            hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
        };
        match self.consult(consult) {
            ConsultationAnswer::Contexts(found) => found
                .into_iter()
                .map(|context| context.context_id)
                .collect(),
            ConsultationAnswer::Policy(_) | ConsultationAnswer::Owned => panic!(),
        }
    }
}

// covers A20
#[test]
fn consultations_find_contexts_by_mode_hint_and_id_and_ask_policies() {
    let mut bench = bench();
    assert_eq!(
        bench.found("hello", Some(InjectMode::Always), &[]),
        ["basics"]
    );
    assert_eq!(bench.found("a refund", None, &[]), ["refunds"]);
    assert_eq!(bench.found("hello", None, &["refund"]), ["refunds"]);
    assert_eq!(bench.found("hello", None, &[]), Vec::<String>::new());
    let by_id = Consultation::ContextsById {
        session: "s-1".parse().unwrap(),
        ids: vec!["refunds".to_owned(), "none".to_owned()],
    };
    let ConsultationAnswer::Contexts(found) = bench.consult(by_id) else {
        panic!()
    };
    assert_eq!(found[0].content, "30 days");
    assert_eq!(found.len(), 1);
    let said = bench.policy("wipe");
    assert_eq!(said.decision, PolicyDecisionKind::Deny);
    assert!(said.reason.contains("too much"), "{}", said.reason);
    assert_eq!(bench.policy("talk").decision, PolicyDecisionKind::Allow);
}

// covers A29, A30
#[test]
fn cached_policy_answers_expire_and_never_allow_a_run() {
    let mut bench = bench();
    assert!(!bench.policy("talk").cached);
    assert!(bench.policy("talk").cached);
    bench.advance(60);
    assert!(!bench.policy("talk").cached, "it is out of date");
    // A checkpoint restricts the session, so the cached answer is no longer valid.
    bench.context(&[], Some("g"));
    let said = bench.policy("talk");
    assert!(!said.cached);
    assert_eq!(said.decision, PolicyDecisionKind::Deny);
    let run = bench.request("s-1", "talk", json!({}));
    assert_eq!(bench.denied(run).code, DenyCode::DeniedAction);
}

#[test]
fn keyword_matches_of_an_input_are_cached_briefly() {
    let mut bench = bench();
    let text = "a refund please";
    bench.input(text);
    let known = |bench: &EngineBench| {
        let hash = crate::base::digest::Digest::of(text);
        bench
            .engine
            .state
            .caches
            .keywords(hash, bench.now)
            .is_some()
    };
    assert!(known(&bench));
    bench.advance(10);
    assert!(!known(&bench), "it is out of date");
    bench.input(text);
    assert!(known(&bench));
    bench.context(&[], Some("g"));
    assert!(!known(&bench), "another generation has begun");
}

#[test]
fn a_policy_answer_with_a_limit_is_never_cached() {
    let mut bench = bench();
    assert_eq!(bench.policy("read").decision, PolicyDecisionKind::Allow);
    let reply_id = bench.request("s-1", "read", json!({}));
    bench.allowed(reply_id);
    assert_eq!(bench.policy("read").decision, PolicyDecisionKind::Deny);
    bench.advance(60);
    assert_eq!(bench.policy("read").decision, PolicyDecisionKind::Allow);
}

#[test]
fn a_consultation_records_nothing() {
    let mut bench = bench();
    let before = bench.records().len();
    bench.found("a refund", None, &[]);
    bench.policy("wipe");
    assert_eq!(bench.records().len(), before);
}

#[test]
fn malformed_actions_are_rejected_in_consultations_and_resolutions() {
    let mut bench = bench();
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({ "a": deep });
    }
    let long = "x".repeat(10_000);
    for (action, params) in [(long.as_str(), json!({})), ("read", deep)] {
        let session: SessionId = "s-1".parse().unwrap();
        let consult = Consultation::Policy {
            session: session.clone(),
            action: action.to_owned(),
            params: params.clone(),
        };
        let consulted = bench.reply_id(|reply_id| EngineCommand::Consult(reply_id, consult));
        assert_eq!(bench.denied(consulted).code, DenyCode::BadRequest);
        let resolve = ResolveRequest {
            session,
            input: None,
            actions: vec![ResolveAction {
                action: action.to_owned(),
                params,
            }],
        };
        let resolved = bench.reply_id(|reply_id| EngineCommand::Resolve(reply_id, resolve));
        assert_eq!(bench.denied(resolved).code, DenyCode::BadRequest);
    }
}
