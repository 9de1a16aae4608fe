//! Tests of checkpoints at input, results, errors, context requests and intervals.

use super::*;

fn with(checkpoint: &str) -> EngineBench {
    let body = format!(
        "actions: [{{action_id: a}}, {{action_id: pay}}]\n\
         context_blocks: [{{context_id: tips, content: take care, inject_mode: on_demand}}]\n\
         checkpoints: [{{checkpoint_id: g, {checkpoint}}}]\n"
    );
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("s-1");
    bench
}

impl EngineBench {
    pub(super) fn input(&mut self, text: &str) -> ReplyId {
        let input = InputReport {
            session: "s-1".parse().unwrap(),
            text: text.to_owned(),
            source: InputSource::User,
            reaches_asked_agent: false,
            waits_for_start: false,
            deadline: None,
        };
        self.reply_id(|reply_id| EngineCommand::Input(reply_id, input))
    }

    pub(super) fn accepted(&self, reply_id: ReplyId) -> &Injected {
        match self.reply(reply_id) {
            Reply::Agent(AgentReply::Accepted(accepted)) => &accepted.injected,
            other => panic!("not accepted: {other:?}"),
        }
    }

    pub(super) fn error(&mut self) -> ReplyId {
        let report = ErrorReport {
            error_code: None,
            stack_trace: None,
            session: "s-1".parse().unwrap(),
            error_type: "timeout".to_owned(),
            message: "the database is slow".to_owned(),
            recoverable: true,
        };
        self.reply_id(|reply_id| EngineCommand::ReportError(reply_id, report))
    }

    pub(super) fn context(&mut self, hints: &[&str], checkpoint: Option<&str>) -> ReplyId {
        let request = ContextRequest {
            session: "s-1".parse().unwrap(),
            query: None,
            hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
            checkpoint: checkpoint.map(str::to_owned),
        };
        self.reply_id(|reply_id| EngineCommand::RequestContext(reply_id, request))
    }

    pub(super) fn run(&mut self, action: &str) -> ReplyId {
        let reply_id = self.request("s-1", action, json!({}));
        let execution = self.allowed(reply_id).execution.clone();
        let completed = ActionCompletion {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: "s-1".parse().unwrap(),
            execution,
            result: Ok(String::new()),
        };
        self.reply_id(|reply_id| EngineCommand::CompleteAction(reply_id, completed))
    }
}

// covers A18, T21
#[test]
fn keywords_in_input_inject_context_and_only_the_hash_is_kept() {
    let mut bench = with("trigger: {type: keyword, patterns: [refund]}, inject_contexts: [tips]");
    let none = bench.input("hello");
    assert_eq!(bench.accepted(none), &Injected::default());
    let some = bench.input("I want a REFUND now");
    assert_eq!(bench.accepted(some).contexts[0].content, "take care");
    let received = bench.payloads("input_received");
    assert_eq!(received[0]["checkpoints_triggered"], json!([]));
    assert_eq!(received[1]["checkpoints_triggered"], json!(["g"]));
    assert_eq!(received[1]["input_size_bytes"], 19);
    assert_eq!(received[1]["source"], "user");
    assert!(!format!("{:?}", bench.effects).contains("I want"));
}

#[test]
fn a_keyword_gate_holds_the_input_and_later_requests() {
    let mut bench = with("trigger: {type: keyword, patterns: [refund]}, mode: blocking");
    let input = bench.input("refund me");
    let action = bench.request("s-1", "a", json!({}));
    assert!(bench.waits(input) && bench.waits(action));
    bench.pass("c-1");
    bench.accepted(input);
    bench.allowed(action);
}

#[test]
fn refused_input_is_dropped_and_the_session_goes_on() {
    let mut bench = with("trigger: {type: keyword, patterns: [refund]}, mode: blocking");
    let input = bench.input("refund me");
    let behind = bench.request("s-1", "a", json!({}));
    bench.refuse("c-1", "no refunds");
    assert_eq!(bench.denied(input).code, DenyCode::Refused);
    assert_eq!(bench.denied(behind).code, DenyCode::Refused);
    let after = bench.request("s-1", "a", json!({}));
    bench.allowed(after);
}

#[test]
fn an_action_post_gate_fires_only_after_the_action() {
    let mut bench = with("trigger: {type: action_post, patterns: [pay]}, mode: blocking");
    let pay = bench.request("s-1", "pay", json!({}));
    bench.allowed(pay);
    assert!(bench.held_ids().is_empty());
    let done = bench.run("pay");
    assert_eq!(
        bench.reply(done),
        &Reply::Agent(AgentReply::Completed(Injected::default()))
    );
    assert_eq!(bench.held_ids(), ["c-1"]);
    let next = bench.request("s-1", "a", json!({}));
    assert!(bench.waits(next));
    bench.pass("c-1");
    bench.allowed(next);
}

#[test]
fn an_unpassed_gate_is_raised_again() {
    let mut bench = with("trigger: {type: action_post, patterns: [pay]}, mode: blocking");
    bench.run("pay");
    bench.refuse("c-1", "");
    for n in 2..4 {
        let reply_id = bench.request("s-1", "a", json!({}));
        assert_eq!(bench.held_ids(), [format!("c-{n}")]);
        bench.advance(301);
        bench.wake();
        assert_eq!(bench.denied(reply_id).code, DenyCode::Expired);
    }
    let last = bench.request("s-1", "a", json!({}));
    bench.pass("c-4");
    bench.allowed(last);
}

// covers B25
#[test]
fn time_and_count_intervals_fire_repeatedly() {
    let mut timed = with("trigger: {type: time_interval, seconds: 60}, inject_contexts: [tips]");
    let early = timed.request("s-1", "a", json!({}));
    assert!(timed.allowed(early).injected.contexts.is_empty());
    timed.advance(60);
    let due = timed.request("s-1", "a", json!({}));
    assert_eq!(timed.allowed(due).injected.contexts.len(), 1);
    let fired = |bench: &EngineBench| bench.payloads("checkpoint_triggered").len();
    assert_eq!(fired(&timed), 1);
    timed.request("s-1", "a", json!({}));
    assert_eq!(fired(&timed), 1);
    timed.advance(61);
    timed.request("s-1", "a", json!({}));
    assert_eq!(fired(&timed), 2);

    let mut counted = with("trigger: {type: count_interval, actions: 2}, mode: blocking");
    for _ in 0..2 {
        let reply_id = counted.request("s-1", "a", json!({}));
        counted.allowed(reply_id);
    }
    let third = counted.request("s-1", "a", json!({}));
    assert!(counted.waits(third));
    counted.pass("c-1");
    counted.allowed(third);
}

// covers T19
#[test]
fn a_reported_error_is_recorded_and_can_give_guidance() {
    let mut bench = with("trigger: {type: error_occurred}, guidance: {content: try again later}");
    let report = bench.error();
    assert_eq!(
        bench.accepted(report).guidance[0].block.content,
        "try again later"
    );
    assert_eq!(
        bench.payloads("error_occurred"),
        [json!({
            "error_type": "timeout", "message": "the database is slow", "recoverable": true,
        })]
    );
}

// covers T7
#[test]
fn requested_context_is_injected() {
    let mut bench = with("trigger: {type: explicit_request}, guidance: {content: as you asked}");
    let reply_id = bench.context(&["tips", "unknown"], None);
    let injected = bench.accepted(reply_id);
    assert_eq!(injected.contexts[0].content, "take care");
    assert_eq!(injected.guidance[0].block.content, "as you asked");
    assert_eq!(
        bench.payloads("context_requested")[0],
        json!({
            "request_type": "explicit", "hints": ["tips", "unknown"],
        })
    );
}

#[test]
fn an_interactive_checkpoint_fires_by_its_name_only() {
    let mut bench = with("trigger: {type: interactive}, mode: blocking");
    let other = bench.context(&[], None);
    bench.accepted(other);
    let unknown = bench.context(&[], Some("x"));
    assert_eq!(bench.denied(unknown).code, DenyCode::BadRequest);
    let named = bench.context(&[], Some("g"));
    assert!(bench.waits(named));
    bench.pass("c-1");
    bench.accepted(named);
}

#[test]
fn session_end_checkpoints_are_recorded_and_never_hold() {
    let mut bench = with("trigger: {type: session_end}, mode: observational");
    let end = bench.end("s-1");
    assert_eq!(
        bench.reply(end),
        &Reply::Agent(AgentReply::Ended(Injected::default()))
    );
    let names = bench.records();
    let triggered = names
        .iter()
        .position(|name| *name == "checkpoint_triggered");
    assert!(triggered < names.iter().position(|name| *name == "session_ended"));
    let body =
        atlas("checkpoints: [{checkpoint_id: g, mode: blocking, trigger: {type: session_end}}]");
    assert!(load_str("x", &body).is_err());
}

#[test]
fn gates_of_session_events_survive_a_restart() {
    let text = atlas(
        "
actions: [{action_id: pay}, {action_id: a}]
checkpoints: [{checkpoint_id: g, mode: blocking, trigger: {type: action_post, patterns: [pay]}}]
",
    );
    let mut bench = EngineBench::new(&[&text]);
    bench.start("s-1");
    bench.run("pay");
    let mut next = super::restarts::restart(&bench, &[&text]);
    let reply_id = next.request("s-1", "a", json!({}));
    assert!(next.waits(reply_id));
    assert_eq!(next.held_ids(), ["c-1"]);
    next.pass("c-1");
    next.allowed(reply_id);
}

// covers A12, A17, T8
#[test]
fn contexts_are_injected_always_on_match_and_by_risk() {
    let body = "
actions: [{action_id: pay}, {action_id: wipe, risk_tier: high}]
context_blocks:
  - {context_id: rules, content: be kind, inject_mode: always}
  - {context_id: money, content: count twice, keywords: [refund], actions: ['pa*'], priority: 1}
  - context_id: late
    content: last words
    inject_mode: on_match
    checkpoint_config: {actions: [pay], priority: 380}
  - {context_id: danger, content: look out, inject_mode: risk_based}
  - {context_id: asked, content: only when asked, inject_mode: on_demand}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    let start = bench.start("s-1");
    let Reply::Agent(AgentReply::Started(started)) = bench.reply(start) else {
        panic!()
    };
    let ids = |injected: &Injected| -> Vec<String> {
        injected
            .contexts
            .iter()
            .map(|context| context.context_id.clone())
            .collect()
    };
    assert_eq!(ids(&started.injected), ["rules"]);
    let pay = bench.request("s-1", "pay", json!({}));
    assert_eq!(ids(&bench.allowed(pay).injected), ["late", "money"]);
    let input = bench.input("a refund");
    assert!(
        bench.accepted(input).contexts.is_empty(),
        "each context is given once a session"
    );
    let wipe = bench.request("s-1", "wipe", json!({}));
    assert_eq!(ids(&bench.allowed(wipe).injected), ["danger"]);
    let triggers: Vec<_> = bench
        .payloads("context_injected")
        .iter()
        .map(|p| p["trigger"].clone())
        .collect();
    assert_eq!(triggers, ["always", "on_match", "on_match", "risk_based"]);
}

#[test]
fn guidance_is_sorted_by_priority() {
    let body = "
actions: [{action_id: a}]
checkpoints:
  - {checkpoint_id: x, trigger: {type: action_pre, patterns: [a]}, guidance: {content: light}}
  - checkpoint_id: y
    trigger: {type: action_pre, patterns: [a]}
    guidance: {content: heavy, priority: 100}
";
    let mut bench = EngineBench::new(&[&atlas(body)]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    let injected = &bench.allowed(reply_id).injected.guidance;
    let texts: Vec<_> = injected
        .iter()
        .map(|guidance| guidance.block.content.as_str())
        .collect();
    assert_eq!(texts, ["heavy", "light"]);
}

#[test]
fn one_session_cannot_fill_the_queue_with_input_or_errors() {
    use crate::base::limits::MAX_HELD_PER_SESSION;
    let mut bench = with("trigger: {type: keyword, patterns: [x]}, mode: blocking");
    for number in 0..MAX_HELD_PER_SESSION {
        let reply_id = bench.input(&format!("x {number}"));
        assert!(bench.waits(reply_id));
    }
    let more = bench.input("x once more");
    assert_eq!(bench.denied(more).code, DenyCode::Overload);
    assert_eq!(bench.held_ids().len(), MAX_HELD_PER_SESSION);
    // The gate of refused input is dropped.
    assert_eq!(bench.engine.sessions()[0].unpassed, []);
    let mut bench = with("trigger: {type: error_occurred}, mode: blocking");
    for _ in 0..MAX_HELD_PER_SESSION + 5 {
        bench.error();
    }
    assert_eq!(bench.held_ids().len(), MAX_HELD_PER_SESSION);
    assert_eq!(
        bench.engine.sessions()[0].unpassed.len(),
        1,
        "owed, and owed once"
    );
    let reply_id = bench.request("s-1", "a", json!({}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::Overload);
    for gate in bench.held_ids() {
        bench.pass(&gate);
    }
    let parked = bench.request("s-1", "a", json!({}));
    assert!(bench.waits(parked), "what is owed stands there");
    bench.pass(&format!("c-{}", MAX_HELD_PER_SESSION + 1));
    bench.allowed(parked);
}

#[test]
fn passing_an_action_does_not_pass_the_gates_of_its_session() {
    let gate = "trigger: {type: action_pre, patterns: [a]}, mode: blocking}, \
        {checkpoint_id: words, trigger: {type: keyword, patterns: [x]}, mode: blocking";
    let mut bench = with(gate);
    let reply_id = bench.request("s-1", "a", json!({}));
    bench.input("x");
    bench.pass("c-1");
    assert!(bench.waits(reply_id), "c-2 stands before the whole session");
    bench.pass("c-2");
    bench.allowed(reply_id);
    assert_eq!(bench.engine.sessions()[0].actions, 1);
    let reply_id = bench.request("s-1", "a", json!({}));
    assert!(bench.waits(reply_id), "one approval is one run");
    bench.input("x");
    bench.pass("c-3");
    bench.refuse("c-4", "no");
    assert_eq!(bench.denied(reply_id).code, DenyCode::Refused);
}
