//! Tests of blocked sessions: behind an unpassed gate a session gets no contexts and no grants.

use super::*;
use crate::base::limits::MAX_HELD_PER_SESSION;

const GATED: &str = "actions: [{action_id: a, risk_tier: low}, {action_id: vault.read, risk_tier: low}, {action_id: odd, risk_tier: low}]
default_decision: allow
capabilities: [{capability_id: vault, actions: [vault.read]}]
context_blocks:
  - {context_id: house, content: house rules, inject_mode: always}
  - {context_id: price, content: price list, keywords: [price]}
  - {context_id: map, content: the map, inject_mode: on_demand}
checkpoints:
  - {checkpoint_id: terms, trigger: {type: session_start}, mode: blocking}
  - checkpoint_id: welcome
    trigger: {type: session_start}
    inject_contexts: [map]
    guidance: {content: be kind}
    unlock_capabilities: [vault]
    deny_actions: [odd]
  - {checkpoint_id: stop, trigger: {type: keyword, patterns: [halt]}, mode: blocking, inject_contexts: [map]}
  - {checkpoint_id: tip, trigger: {type: keyword, patterns: [halt]}, inject_contexts: [price], unlock_capabilities: [vault]}
";

fn bench() -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(GATED)]);
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

fn context(bench: &mut EngineBench, hint: &str) -> ReplyId {
    let request = ContextRequest {
        session: "s-1".parse().unwrap(),
        query: None,
        hints: vec![hint.to_owned()],
        checkpoint: None,
    };
    bench.reply_id(|reply_id| EngineCommand::RequestContext(reply_id, request))
}

fn resolve(bench: &mut EngineBench) -> ReplyId {
    let resolve = ResolveRequest {
        session: "s-1".parse().unwrap(),
        input: None,
        actions: Vec::new(),
    };
    bench.reply_id(|reply_id| EngineCommand::Resolve(reply_id, resolve))
}

fn failure(bench: &mut EngineBench) -> ReplyId {
    let report = ErrorReport {
        session: "s-1".parse().unwrap(),
        error_type: "io".to_owned(),
        error_code: None,
        message: "broken".to_owned(),
        recoverable: true,
        stack_trace: None,
    };
    bench.reply_id(|reply_id| EngineCommand::ReportError(reply_id, report))
}

/// Returns the known texts that appear anywhere in a reply.
fn texts(bench: &EngineBench, reply_id: ReplyId) -> Vec<&'static str> {
    let told = serde_json::to_string(bench.reply(reply_id)).unwrap();
    let all = ["house rules", "price list", "the map", "be kind"];
    all.into_iter().filter(|text| told.contains(text)).collect()
}

fn ask_everything(bench: &mut EngineBench) -> Vec<ReplyId> {
    vec![
        bench.start("s-1"),
        input(bench, "the price"),
        context(bench, "map"),
        failure(bench),
        resolve(bench),
    ]
}

// covers A17
#[test]
fn a_session_behind_its_start_gate_gets_no_contexts_or_grants() {
    let mut bench = EngineBench::new(&[&atlas(GATED)]);
    let first = bench.start("s-1");
    let mut asked = ask_everything(&mut bench);
    asked.push(first);
    for reply_id in asked {
        assert_eq!(texts(&bench, reply_id), Vec::<&str>::new(), "{reply_id:?}");
    }
    let session = bench.engine.sessions()[0].clone();
    assert!(session.unlocked.is_empty(), "nothing is unlocked");
    assert!(
        session.denial_of("odd").is_some(),
        "what it denies counts at once"
    );
    // The record claims only what did happen.
    assert_eq!(bench.payloads("context_injected"), Vec::<Value>::new());
    assert_eq!(
        bench.payloads("session_started")[0]["initial_contexts"],
        json!([])
    );

    bench.pass("c-1");
    let reply_id = bench.request("s-1", "vault.read", json!({}));
    bench.allowed(reply_id);
    assert_eq!(
        texts(&bench, reply_id),
        ["house rules", "price list", "the map", "be kind"]
    );
    let injected = bench.payloads("context_injected");
    let ids: Vec<_> = injected
        .iter()
        .map(|record| record["context_ids"].clone())
        .collect();
    assert_eq!(ids, [json!(["house"]), json!(["map"]), json!(["price"])]);
    let odd = bench.request("s-1", "odd", json!({}));
    assert_eq!(bench.denied(odd).code, DenyCode::DeniedAction);
}

#[test]
fn a_session_with_a_refused_or_lapsed_start_gets_no_contexts() {
    let mut refused = bench();
    refused.refuse("c-1", "not today");
    for reply_id in ask_everything(&mut refused) {
        assert_eq!(
            texts(&refused, reply_id),
            Vec::<&str>::new(),
            "{reply_id:?}"
        );
    }
    let reply_id = context(&mut refused, "map");
    assert_eq!(refused.denied(reply_id).code, DenyCode::Refused);

    let mut lapsed = bench();
    lapsed.advance(3600);
    lapsed.wake();
    for reply_id in ask_everything(&mut lapsed) {
        assert_eq!(texts(&lapsed, reply_id), Vec::<&str>::new(), "{reply_id:?}");
    }
    assert_eq!(lapsed.payloads("context_injected"), Vec::<Value>::new());
    let gate = lapsed.held_ids()[0].clone();
    lapsed.pass(&gate);
    let started = lapsed.start("s-1");
    assert_eq!(
        texts(&lapsed, started),
        ["house rules", "price list", "the map", "be kind"]
    );
}

#[test]
fn a_session_with_a_refused_start_cannot_record_a_turn() {
    let mut bench = bench();
    let payload = crate::trace::event::OutputProduced {
        output_hash: Digest::ZERO.to_string(),
        output_size_bytes: 0,
        output_type: crate::trace::event::OutputType::Text,
        contains_action: false,
    };
    let session: SessionId = "s-1".parse().unwrap();
    let note = |reply_id| {
        EngineCommand::RecordFinding(
            reply_id,
            session.clone(),
            Box::new(RuntimeFinding::Event(payload.clone().into())),
        )
    };
    // A turn injects nothing from an Atlas here, so it does not wait for the gate.
    let reply_id = bench.reply_id(note);
    assert!(matches!(
        bench.reply(reply_id),
        Reply::Agent(AgentReply::Noted(_))
    ));
    bench.refuse("c-1", "not today");
    let reply_id = bench.reply_id(note);
    assert_eq!(bench.denied(reply_id).code, DenyCode::Refused);
}

#[test]
fn a_reloaded_start_gate_withholds_contexts_from_an_open_session() {
    let open = atlas("actions: [{action_id: a, risk_tier: low}]\n");
    let mut bench = EngineBench::new(&[&open]);
    bench.start("s-1");
    bench.engine.reload(atlases_of(&[&atlas(GATED)]).into());
    for reply_id in ask_everything(&mut bench) {
        assert_eq!(texts(&bench, reply_id), Vec::<&str>::new(), "{reply_id:?}");
    }
    assert!(bench.engine.sessions()[0].unlocked.is_empty());
    bench.pass("c-1");
    let reply_id = bench.request("s-1", "a", json!({}));
    assert_eq!(
        texts(&bench, reply_id),
        ["house rules", "price list", "the map", "be kind"]
    );
}

#[test]
fn an_input_gate_withholds_contexts_from_the_whole_session() {
    let mut bench = bench();
    bench.pass("c-1");
    let reply_id = bench.start("s-1");
    assert_eq!(
        texts(&bench, reply_id),
        ["house rules", "the map", "be kind"]
    );
    let session = bench.engine.state.sessions.values_mut().next().unwrap();
    session.contexts.clear();
    session.unlocked.clear();
    let held = input(&mut bench, "halt");
    assert!(bench.waits(held));
    let reply_id = context(&mut bench, "map");
    assert_eq!(texts(&bench, reply_id), Vec::<&str>::new());
    assert!(bench.engine.sessions()[0].unlocked.is_empty());
    let before = bench.payloads("context_injected").len();

    // Refused input injects nothing; a context that was requested meanwhile comes with the next reply.
    bench.refuse("c-2", "no");
    assert_eq!(bench.payloads("context_injected").len(), before);
    let reply_id = bench.start("s-1");
    assert_eq!(texts(&bench, reply_id), ["the map"]);
    let injected = bench.payloads("context_injected").split_off(before);
    assert_eq!(injected.len(), 1, "{injected:?}");
    assert_eq!(injected[0]["context_ids"], json!(["map"]));
    let held = input(&mut bench, "halt");
    bench.pass("c-3");
    assert_eq!(texts(&bench, held), ["price list"]);
    assert!(!bench.engine.sessions()[0].unlocked.is_empty());
}

#[test]
fn withheld_contexts_survive_a_restart() {
    let mut bench = bench();
    input(&mut bench, "the price");
    let kept = bench.persisted_state();
    let (engine, _) = Engine::restore(
        atlases_of(&[&atlas(GATED)]),
        Box::new(CountedIds::starting_at(1000)),
        kept,
        BTreeSet::new(),
        bench.now,
    )
    .unwrap();
    let mut next = EngineBench::with(engine);
    next.pass("c-1");
    let reply_id = next.request("s-1", "a", json!({}));
    assert_eq!(
        texts(&next, reply_id),
        ["house rules", "price list", "the map", "be kind"]
    );
}

const START_GATE: &str = "actions: [{action_id: a}]\n\
    checkpoints:\n\
      - {checkpoint_id: who, trigger: {type: session_start}, mode: blocking}\n\
      - {checkpoint_id: halt, trigger: {type: keyword, patterns: [halt]}, mode: blocking}\n";

/// Sends input whose caller waits for the start gate, for so many seconds.
fn waiting_input(bench: &mut EngineBench, text: &str, seconds: u64) -> ReplyId {
    let input = InputReport {
        session: "s-1".parse().unwrap(),
        text: text.to_owned(),
        source: InputSource::User,
        reaches_asked_agent: true,
        waits_for_start: true,
        deadline: Some(bench.now.plus(Duration::from_secs(seconds))),
    };
    bench.reply_id(|reply_id| EngineCommand::Input(reply_id, input))
}

fn behind_start_gate() -> EngineBench {
    let mut bench = EngineBench::new(&[&atlas(START_GATE)]);
    bench.start("s-1");
    bench
}

#[test]
fn input_waits_for_the_start_gate_if_its_caller_asks_for_that() {
    let mut bench = behind_start_gate();
    let default = bench.input("hello");
    bench.accepted(default);
    let waiting = waiting_input(&mut bench, "hello", 600);
    assert!(bench.waits(waiting));
    bench.pass("c-1");
    bench.accepted(waiting);
    let at_once = waiting_input(&mut bench, "hello", 600);
    bench.accepted(at_once);
}

#[test]
fn input_behind_a_denied_start_gate_is_denied_with_its_reason() {
    let mut bench = behind_start_gate();
    let waiting = waiting_input(&mut bench, "hello", 600);
    bench.refuse("c-1", "not on a friday");
    assert!(bench.denied(waiting).reason.contains("not on a friday"));
    let later = waiting_input(&mut bench, "hello", 600);
    assert_eq!(bench.denied(later).code, DenyCode::Refused);
    assert!(bench.payloads("input_received").is_empty());
}

#[test]
fn start_gate_expires_when_its_waiting_caller_stops_waiting() {
    let mut bench = behind_start_gate();
    let input = waiting_input(&mut bench, "hello", 12);
    let request = bench.request("s-1", "a", json!({}));
    bench.advance(11);
    bench.wake();
    assert!(bench.waits(input) && bench.waits(request));
    bench.advance(1);
    bench.wake();
    for reply_id in [input, request] {
        let denied = bench.denied(reply_id);
        assert_eq!(denied.code, DenyCode::Expired);
        assert_eq!(
            denied.reason,
            "no answer within 12 s: no operator passed the start gate of this session"
        );
    }
    // The gate is held again at the next call, and passed there.
    let again = waiting_input(&mut bench, "hello", 12);
    assert!(bench.waits(again));
    bench.pass("c-2");
    bench.accepted(again);
    let request = bench.request("s-1", "a", json!({}));
    bench.allowed(request);
}

#[test]
fn released_input_is_held_at_its_own_gates() {
    let mut bench = behind_start_gate();
    let first = waiting_input(&mut bench, "halt", 600);
    let request = bench.request("s-1", "a", json!({}));
    bench.pass("c-1");
    assert!(bench.waits(first) && bench.waits(request));
    bench.advance(600);
    bench.wake();
    assert_eq!(bench.denied(first).code, DenyCode::Expired);
}

#[test]
fn parked_input_is_limited_and_withdrawn_with_its_caller() {
    let mut bench = behind_start_gate();
    let first = waiting_input(&mut bench, "hello", 600);
    for _ in 1..MAX_HELD_PER_SESSION {
        waiting_input(&mut bench, "hello", 600);
    }
    let more = waiting_input(&mut bench, "hello", 600);
    assert_eq!(bench.denied(more).code, DenyCode::Overload);
    bench.handle(EngineCommand::CallerDisconnected(first));
    let room = waiting_input(&mut bench, "hello", 600);
    bench.pass("c-1");
    assert!(bench.waits(first));
    bench.accepted(room);
}

#[test]
fn input_passes_a_start_gate_that_the_agent_answers() {
    let own = START_GATE.replace(
        "{checkpoint_id: who, trigger: {type: session_start}, mode: blocking}",
        "{checkpoint_id: who, trigger: {type: session_start}, mode: blocking, respondent: agent}",
    );
    let mut bench = EngineBench::new(&[&atlas(&own)]);
    bench.start("s-1");
    let input = waiting_input(&mut bench, "hello", 600);
    bench.accepted(input);
}
