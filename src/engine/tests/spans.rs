//! Tests of the span tree of a session, with one trace for each operation.

use super::*;
use crate::base::id::TraceId;

const BODY: &str = "context_blocks: [{context_id: k, content: hello, inject_mode: on_demand}]\n\
     actions: [{action_id: read, risk_tier: low}, {action_id: wipe, risk_tier: high}]\n\
     policies: [{policy_id: ask, type: requires_approval, actions: [wipe]}]\n\
     checkpoints:\n  - {checkpoint_id: word, trigger: {type: keyword, patterns: [refund]}, \
     inject_contexts: [k]}\n";

impl EngineBench {
    /// Returns the tree as lines: each record is indented below the record of its parent span.
    fn tree(&self) -> Vec<String> {
        let drafts: Vec<_> = self.drafts().collect();
        let depth = |draft: &crate::trace::event::Draft| {
            let mut depth = 0;
            let mut parent = draft.parent_span_id.clone();
            while let Some(span) = parent.take() {
                let above = drafts.iter().find(|above| above.span_id == span);
                let above = above.unwrap_or_else(|| panic!("nothing has the span {span}"));
                parent.clone_from(&above.parent_span_id);
                depth += 1;
            }
            depth
        };
        let line = |draft: &&crate::trace::event::Draft| {
            format!(
                "{}{}",
                "  ".repeat(depth(draft)),
                draft.payload.event_type()
            )
        };
        drafts.iter().map(line).collect()
    }

    /// Returns the operation of each record, numbered in the order of appearance.
    fn operations(&self) -> Vec<(&str, usize)> {
        let mut seen: Vec<TraceId> = Vec::new();
        let drafts = self.drafts().map(|draft| {
            if !seen.contains(&draft.trace_id) {
                seen.push(draft.trace_id.clone());
            }
            let number = seen.iter().position(|trace| *trace == draft.trace_id);
            (draft.payload.event_type(), number.unwrap())
        });
        drafts.collect()
    }

    fn done(&mut self, reply_id: ReplyId) {
        self.complete(reply_id, Ok("done"));
    }
}

fn bench() -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(BODY)]);
    bench.start("s-1");
    bench
}

// covers T28
#[test]
fn spans_nest_as_in_the_specification() {
    let mut bench = bench();
    bench.send_input("a refund, please");
    let reply_id = bench.request("s-1", "read", json!({}));
    bench.done(reply_id);
    bench.end("s-1");
    assert_eq!(
        bench.tree(),
        [
            "session_started",
            "  input_received",
            "    checkpoint_triggered",
            "    context_injected",
            "      checkpoint_completed",
            "  action_attempted",
            "    policy_checked",
            "    action_completed",
            "  session_ended",
        ]
    );
    let spans: BTreeSet<_> = bench
        .drafts()
        .map(|draft| draft.span_id.to_string())
        .collect();
    assert_eq!(spans.len(), bench.records().len(), "every record is a span");
}

// covers T28
#[test]
fn a_gate_is_a_child_of_its_request_and_its_decision_a_child_of_the_gate() {
    let mut bench = bench();
    let reply_id = bench.request("s-1", "wipe", json!({}));
    bench.pass("c-1");
    bench.done(reply_id);
    assert_eq!(
        bench.tree(),
        [
            "session_started",
            "  action_attempted",
            "    policy_checked",
            "    risk_detected",
            "    checkpoint_triggered",
            "      checkpoint_response",
            "      policy_override",
            "      checkpoint_passed",
            "      checkpoint_completed",
            "    action_completed",
        ]
    );
}

// covers T29
#[test]
fn a_request_with_its_gates_decision_permit_and_completion_is_one_operation() {
    let mut bench = bench();
    let asker = bench.request("s-1", "wipe", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(asker));
    let again = bench.request("s-1", "wipe", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(again));
    bench.pass("c-1");
    // The caller had left: the identical retry uses the permit.
    let retry = bench.request("s-1", "wipe", json!({}));
    bench.done(retry);
    let other = bench.request("s-1", "read", json!({}));
    bench.done(other);
    let operations = bench.operations();
    let numbers: Vec<_> = operations.iter().map(|(_, number)| *number).collect();
    let attempts = operations
        .iter()
        .filter(|(event, _)| *event == "action_attempted");
    assert_eq!(attempts.count(), 4, "{operations:?}");
    let last = operations.len() - 3;
    assert_eq!(numbers[0], 0);
    assert!(
        numbers[1..last].iter().all(|number| *number == 1),
        "{operations:?}"
    );
    assert!(
        numbers[last..].iter().all(|number| *number == 2),
        "{operations:?}"
    );
}

// covers T29
#[test]
fn actions_after_an_input_belong_to_its_operation() {
    let mut bench = bench();
    bench.send_input("one");
    for _ in 0..2 {
        let reply_id = bench.request("s-1", "read", json!({}));
        bench.done(reply_id);
    }
    let output = OutputReport {
        session: "s-1".parse().unwrap(),
        text: "done".to_owned(),
        output_type: crate::trace::event::OutputType::Text,
        contains_action: false,
    };
    bench.reply_id(|reply_id| EngineCommand::Report(reply_id, AgentReport::Output(output)));
    bench.send_input("two");
    bench.end("s-1");
    let numbers: Vec<_> = bench
        .operations()
        .into_iter()
        .map(|record| record.1)
        .collect();
    // The session, the first input with two actions of three records each and the output, the second input,
    // and the end of the session.
    assert_eq!(numbers, [0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0]);
}

// covers T29
#[test]
fn a_denial_that_may_be_overruled_stays_one_operation() {
    let body = "actions: [{action_id: pay, risk_tier: low}]\n\
                policies: [{policy_id: no, type: deny, actions: [pay], override: true}]\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench.request("s-1", "pay", json!({}));
    bench.request("s-1", "pay", json!({}));
    bench.pass("c-1");
    let reply_id = bench.request("s-1", "pay", json!({}));
    bench.done(reply_id);
    let numbers: Vec<_> = bench
        .operations()
        .into_iter()
        .skip(1)
        .map(|record| record.1)
        .collect();
    assert!(
        numbers.iter().all(|number| *number == 1),
        "{:?}",
        bench.operations()
    );
}

// covers T3, T10, T11, T13, T17
#[test]
fn a_session_and_its_actions_are_recorded_in_full() {
    let mut bench = bench();
    let reply_id = bench.request("s-1", "wipe", json!({"path": "/x"}));
    bench.pass("c-1");
    bench.advance(2);
    bench.done(reply_id);
    let first = |event_type: &str| bench.payloads(event_type).remove(0);
    assert_eq!(
        first("session_started"),
        json!({"agent_type": "bot", "wrapper_version": env!("CARGO_PKG_VERSION"),
            "atlas_ids": ["test"], "initial_contexts": [],
            "environment": {"platform": std::env::consts::OS}})
    );
    assert_eq!(
        first("action_attempted"),
        json!({"action_type": "wipe", "action_params": {"path": "/x"}, "risk_tier": "high",
            "policy_checked": true})
    );
    assert_eq!(
        first("policy_checked"),
        json!({"policy_id": "ask", "action_type": "wipe", "decision": "require_approval",
            "conditions_evaluated": 1, "matching_rule": "wipe"})
    );
    assert_eq!(
        first("risk_detected"),
        json!({"risk_tier": "high", "trigger": "declared by the Atlas", "action_type": "wipe",
            "recommended_action": "verify"})
    );
    assert_eq!(
        first("action_completed"),
        json!({"action_type": "wipe", "success": true, "duration_ms": 2000,
            "result_summary": "done"})
    );
}

// covers T15, T16
#[test]
fn a_checkpoint_is_recorded_from_firing_to_completion() {
    let mut bench = bench();
    bench.send_input("a refund");
    let hash = Digest::of("a refund").to_string();
    assert_eq!(
        bench.payloads("checkpoint_triggered"),
        [
            json!({"checkpoint_id": "word", "checkpoint_type": "keyword_match", "mode": "advisory",
            "trigger_condition": "keywords found: `refund` at character 2",
            "trigger_data": {"input_hash": hash, "matches": [{"keyword": "refund", "position": 2}]},
            "priority": 600, "input_hash": hash})
        ]
    );
    assert_eq!(
        bench.payloads("checkpoint_completed"),
        [
            json!({"checkpoint_id": "word", "checkpoint_type": "keyword_match", "duration_ms": 0,
            "contexts_injected": ["k"], "action_taken": "continue"})
        ]
    );
    bench.request("s-1", "wipe", json!({}));
    bench.advance(3);
    bench.refuse("c-1", "no need");
    assert_eq!(
        bench.payloads("checkpoint_completed")[1],
        json!({"checkpoint_id": "ask", "checkpoint_type": "approval", "duration_ms": 3000,
            "contexts_injected": [], "action_taken": "block",
            "block_reason": "denied by op-1: no need"})
    );
}

// covers T7
#[test]
fn a_context_request_is_recorded_with_its_type_and_query() {
    let body = "context_blocks: [{context_id: k, content: x, keywords: [refund, money]}]\n\
                checkpoints: [{checkpoint_id: i, trigger: {type: interactive}}]\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    bench.send_input("my money: a refund, a refund");
    let reply_id = |query: Option<&str>, hints: &[&str], checkpoint: Option<&str>| ContextRequest {
        session: "s-1".parse().unwrap(),
        query: query.map(str::to_owned),
        hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
        checkpoint: checkpoint.map(str::to_owned),
    };
    for request in [
        reply_id(Some("how?"), &["k"], None),
        reply_id(None, &[], Some("i")),
    ] {
        bench.reply_id(|reply_id| EngineCommand::RequestContext(reply_id, request));
    }
    assert_eq!(
        bench.payloads("context_requested"),
        [
            json!({"request_type": "keyword", "keywords_matched": ["money", "refund"],
                "matches": [{"keyword": "money", "position": 3}, {"keyword": "refund", "position": 12}]}),
            json!({"request_type": "explicit", "query": "how?", "hints": ["k"]}),
            json!({"request_type": "checkpoint", "checkpoint_type": "interactive"}),
        ]
    );
}
