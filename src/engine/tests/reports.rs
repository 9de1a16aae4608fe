//! Tests of reports that are only recorded.

use super::record::{TIERS, bench, session};
use super::*;
use crate::base::id::EventId;
use crate::trace::event::{Durability, OutputType, UsageOutcome, WrapperCapabilities};

fn wrapper() -> Wrapper {
    let mut wrapper = Wrapper {
        session: session(),
        wrapper_version: "1.0.0".to_owned(),
        components: vec!["ioHooks".to_owned(), "traceQueue".to_owned()],
        plugins: Vec::new(),
        transport: "mcp".to_owned(),
        cache_backend: "memory".to_owned(),
        capabilities: WrapperCapabilities {
            intercept_input: true,
            intercept_output: false,
            intercept_actions: true,
        },
        construction_hash: String::new(),
    };
    wrapper.construction_hash = wrapper.proof().to_string();
    wrapper
}

// covers T5, T6
#[test]
fn a_wrapper_is_recorded_and_verified_by_its_proof() {
    let mut bench = bench(TIERS);
    let good = bench.report(AgentReport::Wrapper(wrapper()));
    assert_eq!(bench.noted(good), &ReportReceipt::default());
    let canonical = r#"{"cache_backend":"memory","capabilities":{"intercept_actions":true,"intercept_input":true,"intercept_output":false},"components":["ioHooks","traceQueue"],"plugins":[],"transport":"mcp","wrapper_version":"1.0.0"}"#;
    assert_eq!(
        bench.payloads("wrapper_constructed")[0]["construction_hash"],
        json!(Digest::of(canonical).to_string())
    );
    assert_eq!(
        bench.payloads("wrapper_verified")[0],
        json!({"verification_passed": true, "tests_run": ["construction_hash", "wrapper_version",
            "components", "transport", "intercept_actions"]})
    );
    let mut bad = wrapper();
    bad.transport = "pigeon".to_owned();
    bad.capabilities.intercept_actions = false;
    let bad = bench.report(AgentReport::Wrapper(bad));
    assert_eq!(bench.noted(bad).failures.len(), 3);
    let verified = &bench.payloads("wrapper_verified")[1];
    assert_eq!(verified["verification_passed"], json!(false));
    assert_eq!(verified["failures"].as_array().unwrap().len(), 3);
    for event_type in ["wrapper_constructed", "wrapper_verified"] {
        let drafts = bench.drafts_of(event_type);
        assert!(
            drafts
                .iter()
                .all(|draft| draft.durability == Durability::Sync)
        );
    }
    let mut huge = wrapper();
    huge.components = vec!["x".to_owned(); 300];
    let huge = bench.report(AgentReport::Wrapper(huge));
    assert_eq!(bench.denied(huge).code, DenyCode::BadRequest);
}

// covers T9
#[test]
fn feedback_needs_a_context_that_was_injected() {
    let mut bench = bench("context_blocks: [{context_id: k, content: x, inject_mode: always}]\n");
    let feedback = |context_id: &str| {
        AgentReport::Feedback(Feedback {
            session: session(),
            context_id: context_id.to_owned(),
            helpful: false,
            reason: Some("stale".to_owned()),
            usage_outcome: Some(UsageOutcome::Ignored),
        })
    };
    let reply_id = bench.report(feedback("k"));
    bench.noted(reply_id);
    assert_eq!(
        bench.payloads("context_feedback"),
        [
            json!({"context_id": "k", "helpful": false, "reason": "stale",
            "usage_outcome": "ignored"})
        ]
    );
    let reply_id = bench.report(feedback("other"));
    assert_eq!(bench.denied(reply_id).code, DenyCode::BadRequest);
}

// covers T22
#[test]
fn output_is_recorded_only_as_hash_and_size() {
    let mut bench = bench(TIERS);
    let reply_id = bench.report(AgentReport::Output(OutputReport {
        session: session(),
        text: "the answer is 42".to_owned(),
        output_type: OutputType::Text,
        contains_action: false,
    }));
    bench.noted(reply_id);
    assert_eq!(
        bench.payloads("output_produced"),
        [
            json!({"output_hash": Digest::of("the answer is 42").to_string(),
            "output_size_bytes": 16, "output_type": "text", "contains_action": false})
        ]
    );
    assert!(!bench.recorded().contains("answer is"));
}

// covers T19, T20
#[test]
fn a_recovery_names_its_error() {
    let mut bench = bench(TIERS);
    let error = bench.fail("disk full");
    let draft = bench.drafts_of("error_occurred")[0].clone();
    assert_eq!(draft.event_id, error);
    assert_eq!(
        Value::from(draft.payload.fields()),
        json!({"error_type": "io", "error_code": "E42", "message": "disk full",
            "recoverable": true, "stack_trace": "main.rs:1"})
    );
    let recovery = |error: &EventId, success| {
        AgentReport::Recovery(Recovery {
            session: session(),
            error: error.clone(),
            method: "retried".to_owned(),
            success,
        })
    };
    for success in [false, true] {
        let reply_id = bench.report(recovery(&error, success));
        bench.noted(reply_id);
    }
    assert_eq!(
        bench.payloads("error_recovered")[1],
        json!({"original_error_id": error, "recovery_method": "retried", "success": true})
    );
    let recovered = bench.drafts_of("error_recovered")[1].clone();
    assert_eq!(recovered.trace_id, draft.trace_id);
    assert_eq!(recovered.parent_span_id, Some(draft.span_id));
    // An error that was recovered from is closed, and an unknown error cannot be recovered from.
    for unknown in [error, "made-up".parse().unwrap()] {
        let reply_id = bench.report(recovery(&unknown, true));
        assert_eq!(bench.denied(reply_id).code, DenyCode::BadRequest);
    }
}
