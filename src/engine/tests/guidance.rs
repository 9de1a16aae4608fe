//! Tests of guidance and contexts: how long they are in force, what they replace, and how often they are
//! injected.

use super::*;

fn bench(checkpoints: &str) -> EngineBench {
    let body = format!(
        "actions: [{{action_id: a}}, {{action_id: b}}, {{action_id: c}}]\n\
         context_blocks: [{{context_id: tips, content: take care, inject_mode: on_demand}}]\n\
         cache_config: {{context_ttl_seconds: 60}}\n\
         checkpoints: [{checkpoints}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    bench
}

fn checkpoint(action: &str, guidance: &str) -> String {
    format!(
        "{{checkpoint_id: on-{action}, trigger: {{type: action_pre, patterns: [{action}]}}, \
         guidance: {{{guidance}}}}}"
    )
}

impl EngineBench {
    fn given_for(&mut self, action: &str) -> Injected {
        let reply_id = self.request("s-1", action, json!({}));
        self.allowed(reply_id).injected.clone()
    }

    fn in_force(&self) -> Vec<String> {
        let session = &self.engine.sessions()[0];
        let texts = session.guidance.iter();
        texts
            .map(|injected| injected.block.content.clone())
            .collect()
    }
}

// covers B12
#[test]
fn guidance_appends_replaces_and_expires_as_configured() {
    let mut bench = bench(&format!(
        "{}, {}, {}",
        checkpoint("a", "content: one, priority: 5, labels: [x]"),
        checkpoint("b", "content: two, format: markdown, expires_after: on-c"),
        checkpoint("c", "content: three, append: false"),
    ));
    let injected = bench.given_for("a");
    assert_eq!(injected.guidance[0].checkpoint_id, "on-a");
    assert_eq!(injected.guidance[0].block.labels, ["x"]);
    bench.given_for("b");
    assert_eq!(bench.in_force(), ["one", "two"]);
    // `b` ends because `c` fired, `a` because `c` replaces earlier guidance; the agent is told of both.
    let injected = bench.given_for("c");
    assert_eq!(injected.withdrawn, ["on-b", "on-a"]);
    assert_eq!(bench.in_force(), ["three"]);
    // Repeated guidance is in force again, once.
    bench.given_for("a");
    let injected = bench.given_for("a");
    assert_eq!(injected.withdrawn, Vec::<String>::new());
    assert_eq!(bench.in_force(), ["three", "one"]);
}

#[test]
fn guidance_expires_after_a_checkpoint_type_in_either_spelling() {
    let mut bench = bench(&checkpoint("a", "content: one, expires_after: action-post"));
    let done = bench.run("a");
    assert_eq!(bench.in_force(), Vec::<String>::new());
    let Reply::Agent(AgentReply::Completed(injected)) = bench.reply(done) else {
        panic!("{:?}", bench.reply(done));
    };
    assert_eq!(injected.withdrawn, ["on-a"]);
}

// covers B13
#[test]
fn a_system_instruction_comes_first_and_replaces_only_system_instructions() {
    let mut bench = bench(
        "{checkpoint_id: text, trigger: {type: action_pre, patterns: ['*']}, \
          guidance: {content: plain, priority: 900}}, \
         {checkpoint_id: sys-a, trigger: {type: action_pre, patterns: [a]}, \
          guidance: {content: first, format: system_instruction}}, \
         {checkpoint_id: sys-b, trigger: {type: action_pre, patterns: [b]}, \
          guidance: {content: second, format: system_instruction}}",
    );
    let injected = bench.given_for("a");
    let order: Vec<_> = injected
        .guidance
        .iter()
        .map(|guidance| &guidance.block.content)
        .collect();
    assert_eq!(order, ["first", "plain"]);
    let injected = bench.given_for("b");
    assert_eq!(injected.withdrawn, ["sys-a"]);
    assert_eq!(bench.in_force(), ["plain", "second"]);
}

#[test]
fn an_expired_context_is_injected_again() {
    let mut bench = bench(
        "{checkpoint_id: on-a, trigger: {type: action_pre, patterns: [a]}, inject_contexts: [tips]}",
    );
    assert_eq!(bench.given_for("a").contexts.len(), 1);
    bench.advance(59);
    assert_eq!(bench.given_for("a").contexts.len(), 0);
    bench.advance(1);
    assert_eq!(bench.given_for("a").contexts.len(), 1);
    let hits: Vec<_> = bench
        .payloads("context_injected")
        .into_iter()
        .map(|record| record["cache_hit"].clone())
        .collect();
    assert_eq!(hits, [json!(false), json!(false)]);
    // Another session gets the context from the cache.
    bench.start("s-2");
    bench.request("s-2", "a", json!({}));
    let last = bench.payloads("context_injected").pop().unwrap();
    assert_eq!(last["cache_hit"], json!(true));
}

// covers A37
#[test]
fn a_budget_drops_low_priority_advice_and_never_a_gate() {
    let keyword = "trigger: {type: keyword, patterns: [x]}";
    let body = format!(
        "checkpoint_config: {{budget: {{max_checkpoints_per_input: 2, max_context_injection_size: 10}}}}\n\
         context_blocks: [{{context_id: long, content: 'twelve bytes', inject_mode: on_demand}}, \
           {{context_id: short, content: four, inject_mode: on_demand}}, \
           {{context_id: wide, content: 'eleven bytes', inject_mode: on_demand}}]\n\
         checkpoints: [\
           {{checkpoint_id: gate, {keyword}, mode: blocking, priority: 1, inject_contexts: [long]}}, \
           {{checkpoint_id: low, {keyword}, priority: 10}}, \
           {{checkpoint_id: high, {keyword}, priority: 30, inject_contexts: [short, wide]}}, \
           {{checkpoint_id: middle, {keyword}, priority: 20}}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    let reply_id = bench.input("x");
    assert!(bench.waits(reply_id), "the gate is not dropped");
    // The contexts of a gate count against no budget.
    bench.pass("c-1");
    let skipped: Vec<_> = bench
        .payloads("checkpoint_skipped")
        .into_iter()
        .map(|record| (record["checkpoint_id"].clone(), record["reason"].clone()))
        .collect();
    assert_eq!(
        skipped,
        [
            (
                json!("low"),
                json!("limit reached: max_checkpoints_per_input")
            ),
            (
                json!("high"),
                json!("limit reached: max_context_injection_size")
            ),
        ]
    );
    let injected = bench.accepted(reply_id);
    let ids: Vec<_> = injected
        .contexts
        .iter()
        .map(|context| &context.context_id)
        .collect();
    assert_eq!(ids, ["long", "short"]);
}

#[test]
fn contexts_of_a_refused_request_are_injected_later() {
    let mut bench = bench(
        "{checkpoint_id: advice, trigger: {type: action_pre, patterns: [a, b]}, inject_contexts: [tips]}, \
         {checkpoint_id: gate, trigger: {type: action_pre, patterns: [a]}, mode: blocking}",
    );
    bench.request("s-1", "a", json!({}));
    bench.refuse("c-1", "no");
    assert_eq!(bench.given_for("b").contexts.len(), 1);
    assert_eq!(bench.given_for("b").contexts.len(), 0);
}

#[test]
fn one_request_does_not_use_up_the_context_budget_of_another() {
    let body = "actions: [{action_id: a}, {action_id: b}]\n\
        context_blocks: [{context_id: tips, content: take care, inject_mode: on_demand}, \
                         {context_id: more, content: great care, inject_mode: on_demand}]\n\
        checkpoint_config: {budget: {max_context_injection_size: 10}}\n\
        checkpoints: [{checkpoint_id: start, trigger: {type: session_start}, mode: blocking}, \
          {checkpoint_id: on-a, trigger: {type: action_pre, patterns: [a]}, inject_contexts: [tips]}, \
          {checkpoint_id: on-b, trigger: {type: action_pre, patterns: [b]}, inject_contexts: [more]}]\n";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let first = bench.request("s-1", "a", json!({}));
    let second = bench.request("s-1", "b", json!({}));
    bench.pass("c-1");
    assert_eq!(bench.allowed(first).injected.contexts.len(), 1);
    assert_eq!(bench.allowed(second).injected.contexts.len(), 1);
}

#[test]
fn guidance_that_is_given_again_is_not_withdrawn() {
    let mut bench = bench(&checkpoint("a", "content: one, expires_after: action_post"));
    bench.run("a");
    let injected = bench.given_for("a");
    assert_eq!(injected.guidance.len(), 1);
    assert_eq!(injected.withdrawn, Vec::<String>::new());
    assert_eq!(bench.in_force(), ["one"]);
}
