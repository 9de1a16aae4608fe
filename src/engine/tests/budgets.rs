//! Tests of budgets: they never remove a restriction. Only checkpoints that just inject something can be
//! skipped.

use super::handlers::table;
use super::*;
use crate::engine::extensions::Extensions;

fn bench(body: &str, extensions: Extensions) -> EngineBench {
    let body = format!(
        "actions: [{{action_id: net.send, risk_tier: low}}]\n\
         context_blocks: [{{context_id: tips, content: take care, inject_mode: on_demand}}]\n{body}"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.engine.set_extensions(extensions);
    bench.start("s-1");
    bench
}

fn input(bench: &mut EngineBench, text: &str) -> ReplyId {
    let input = InputReport {
        session: "s-1".parse().unwrap(),
        text: text.to_owned(),
        source: InputSource::User,
        reaches_asked_agent: false,
        waits_for_start: false,
        deadline: None,
    };
    bench.reply_id(|reply_id| EngineCommand::Input(reply_id, input))
}

// covers A35, A37
#[test]
fn every_handler_is_called_even_after_the_time_budget_is_used_up() {
    let pre = "trigger: {type: action_pre, patterns: [net.send]}";
    let mut bench = bench(
        &format!(
            "checkpoint_config: {{budget: {{max_checkpoint_time_ms: 500}}}}\n\
             checkpoints: [\
               {{checkpoint_id: one, {pre}, handler: h1, priority: 9}}, \
               {{checkpoint_id: two, {pre}, handler: h2, priority: 8}}, \
               {{checkpoint_id: three, {pre}, handler: h3, priority: 7}}, \
               {{checkpoint_id: hints, {pre}, inject_contexts: [tips], priority: 6}}]\n"
        ),
        table(&["h1", "h2", "h3"]),
    );
    let reply_id = bench.request("s-1", "net.send", json!({}));
    bench.returned(Ok(json!({"continue": true})), Duration::from_millis(400));
    bench.returned(Ok(json!({"continue": true})), Duration::from_millis(400));
    assert_eq!(bench.calls().len(), 3, "the third handler is asked");
    bench.returns(json!({"continue": false, "reason": "not this one"}));
    let denied = bench.denied(reply_id);
    assert_eq!(denied.code, DenyCode::Extension);
    assert!(denied.reason.contains("not this one"));

    // When every handler agrees, only checkpoints that just inject something are skipped.
    let reply_id = bench.request("s-1", "net.send", json!({"again": true}));
    for _ in 0..3 {
        bench.returned(Ok(json!({"continue": true})), Duration::from_millis(400));
    }
    assert_eq!(bench.allowed(reply_id).injected.contexts, []);
    let skipped = bench.payloads("checkpoint_skipped");
    let skipped: Vec<_> = skipped
        .iter()
        .map(|record| &record["checkpoint_id"])
        .collect();
    assert_eq!(skipped, ["hints"]);
}

// covers A37
#[test]
fn the_checkpoint_budget_never_drops_restrictions_or_handlers() {
    let keyword = |word: &str| format!("trigger: {{type: keyword, patterns: [{word}]}}");
    let body = format!(
        "capabilities: [{{capability_id: mail, actions: [net.send]}}]\n\
         checkpoint_config: {{budget: {{max_checkpoints_per_input: 1}}}}\n\
         checkpoints: [\
           {{checkpoint_id: a, {}, priority: 90}}, {{checkpoint_id: b, {}, priority: 80}}, \
           {{checkpoint_id: denies, {}, deny_actions: [net.send], priority: 3}}, \
           {{checkpoint_id: locks, {}, lock_capabilities: [mail], priority: 2}}, \
           {{checkpoint_id: asks, {}, handler: outside, priority: 1}}]\n",
        keyword("alpha"),
        keyword("beta"),
        keyword("secret"),
        keyword("vault"),
        keyword("outside"),
    );
    for (text, code) in [
        ("alpha beta secret", DenyCode::DeniedAction),
        ("alpha beta vault", DenyCode::CapabilityLocked),
    ] {
        let mut bench = bench(&body, Extensions::default());
        input(&mut bench, text);
        let reply_id = bench.request("s-1", "net.send", json!({}));
        assert_eq!(bench.denied(reply_id).code, code, "{text}");
        let skipped = bench.payloads("checkpoint_skipped");
        assert_eq!(skipped.len(), 1, "{skipped:?}");
        assert_eq!(skipped[0]["checkpoint_id"], json!("b"));
    }
    let mut bench = bench(&body, table(&["outside"]));
    let reply_id = input(&mut bench, "alpha beta outside");
    bench.returns(json!({"continue": false, "reason": "no such input"}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::Extension);
}

#[test]
fn handler_texts_over_the_budget_are_recorded_as_dropped() {
    let mut bench = bench(
        "checkpoint_config: {budget: {max_context_injection_size: 4}}\n\
         checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: [net.send]}, handler: outside}]\n",
        table(&["outside"]),
    );
    let reply_id = bench.request("s-1", "net.send", json!({}));
    bench.returns(json!({"continue": true, "inject_context": ["four", "too long"]}));
    assert_eq!(bench.allowed(reply_id).injected.contexts.len(), 1);
    let skipped = &bench.payloads("checkpoint_skipped")[0];
    assert_eq!(skipped["dropped_contexts"], json!(["outside.2"]));
}
