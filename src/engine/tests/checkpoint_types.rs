//! Tests of every type of checkpoint, and of rules that all of them share.

use super::*;
use crate::atlas::document::CheckpointTrigger;
use crate::atlas::reference::{CHECKPOINT_TYPES, TIERS};
use crate::engine::evaluation::risk;
use crate::trace::event::{Durability, Payload, canonical_type};

/// Builds an Atlas with one advisory checkpoint of each type, each with its own context.
fn every_type() -> String {
    let triggers = [
        ("session_start", "type: session_start"),
        ("session_end", "type: session_end"),
        ("keyword_match", "type: keyword, patterns: [refund]"),
        ("action_pre", "type: action_pre, patterns: [act]"),
        ("action_post", "type: action_post, patterns: [act]"),
        ("risk_threshold", "type: risk_threshold"),
        ("time_interval", "type: time_interval, seconds: 60"),
        ("count_interval", "type: count_interval, actions: 1"),
        ("explicit_request", "type: explicit_request"),
        ("error_occurred", "type: error_occurred"),
    ];
    let mut text = String::from("actions: [{action_id: act, risk_tier: high}]\ncontext_blocks:\n");
    for (name, _) in triggers {
        let block = format!("{{context_id: for-{name}, content: c, inject_mode: on_demand}}");
        text.extend(["  - ", &block, "\n"]);
    }
    text += "checkpoints:\n";
    for (name, trigger) in triggers {
        let checkpoint = format!(
            "{{checkpoint_id: on-{name}, trigger: {{{trigger}}}, inject_contexts: [for-{name}]}}"
        );
        text.extend(["  - ", &checkpoint, "\n"]);
    }
    atlas(&text)
}

/// Runs a session in which every event happens once.
fn everything() -> EngineBench {
    let mut bench = EngineBench::new(&[&every_type()]);
    bench.start("s-1");
    bench.input("a refund please");
    bench.error();
    bench.context(&[], None);
    bench.run("act");
    bench.advance(60);
    bench.run("act");
    bench.end("s-1");
    bench
}

// covers A1, A31
#[test]
fn every_checkpoint_type_fires_at_its_event_and_is_recorded() {
    let bench = everything();
    let fired: BTreeSet<_> = bench
        .payloads("checkpoint_triggered")
        .into_iter()
        .map(|record| record["checkpoint_type"].as_str().unwrap().to_owned())
        .collect();
    let draft = [
        "action_post",
        "action_pre",
        "count_interval",
        "error_occurred",
        "explicit_request",
        "keyword_match",
        "risk_threshold",
        "session_end",
        "session_start",
        "time_interval",
    ];
    assert_eq!(fired, draft.map(str::to_owned).into());
    for name in draft {
        let described = CHECKPOINT_TYPES
            .iter()
            .find(|described| described.checkpoint_type == name);
        let described = described.unwrap();
        assert!(!described.fires.is_empty() && !described.purpose.is_empty());
        let injected = bench.payloads("context_injected");
        let own = json!([format!("for-{name}")]);
        assert!(
            injected.iter().any(|record| record["context_ids"] == own),
            "{name}"
        );
    }
    // Each has its event in addition to the checkpoint's own events.
    let records = bench.records();
    for (kind, event) in [
        ("session_start", "session_started"),
        ("session_end", "session_ended"),
        ("keyword_match", "context_injected"),
        ("action_pre", "action_attempted"),
        ("action_post", "action_completed"),
        ("error_occurred", "error_occurred"),
    ] {
        assert!(records.contains(&event), "{kind}");
    }
    // The names that the draft had for two of them are still understood when a record is read.
    assert_eq!(canonical_type("risk_checkpoint"), "risk_detected");
    assert_eq!(canonical_type("error_handled"), "error_occurred");
    let fields = json!({"risk_tier": "high", "trigger": "t", "recommended_action": "verify"});
    let read = Payload::read("risk_checkpoint", fields.as_object().unwrap().clone()).unwrap();
    assert_eq!(read.event_type(), "risk_detected");
}

// covers A28
#[test]
fn checkpoint_priorities_match_the_reference_table() {
    let draft = [
        ("session_start", 1000),
        ("risk_threshold", 900),
        ("action_pre", 800),
        ("keyword_match", 600),
        ("time_interval", 500),
        ("count_interval", 400),
        ("explicit_request", 300),
        ("custom", 200),
        ("action_post", 100),
        ("session_end", 0),
    ];
    for (name, priority) in draft {
        let described = CHECKPOINT_TYPES
            .iter()
            .find(|described| described.checkpoint_type == name);
        assert_eq!(described.unwrap().priority, priority, "{name}");
    }
    let table: BTreeSet<_> = CHECKPOINT_TYPES
        .iter()
        .map(|described| described.checkpoint_type)
        .collect();
    assert_eq!(table, CheckpointTrigger::TYPES.into());
    // An Atlas gets the priorities of the table.
    for checkpoint in &atlases_of(&[&every_type()])[0].checkpoints {
        let own = |described: &&crate::atlas::reference::CheckpointType| {
            described.checkpoint_type == checkpoint.kind
        };
        assert_eq!(
            checkpoint.priority,
            CHECKPOINT_TYPES.iter().find(own).unwrap().priority
        );
    }
}

// covers A25
#[test]
fn tier_examples_are_detected_with_their_tier() {
    for tier in TIERS {
        assert!(!tier.meaning.is_empty());
        for example in tier.examples {
            assert_eq!(risk::detect(example, &json!({})), tier.tier, "{example}");
        }
    }
}

// covers A38
#[test]
fn an_atlas_may_observe_start_and_end_only_or_hold_every_action() {
    let least = atlas(
        "actions: [{action_id: act, risk_tier: low}]\ncheckpoints: [\
         {checkpoint_id: first, trigger: {type: session_start}, mode: observational}, \
         {checkpoint_id: last, trigger: {type: session_end}, mode: observational}]\n",
    );
    let mut bench = EngineBench::new(&[&least]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "act", json!({}));
    bench.allowed(reply_id);
    bench.end("s-1");
    let fired: Vec<_> = bench
        .payloads("checkpoint_triggered")
        .into_iter()
        .map(|record| record["checkpoint_id"].clone())
        .collect();
    assert_eq!(fired, [json!("first"), json!("last")]);
    let most = atlas(
        "unknown_actions: allow\ncheckpoints: [{checkpoint_id: all, \
         trigger: {type: action_pre, patterns: ['*']}, mode: blocking}]\n",
    );
    let mut bench = EngineBench::new(&[&most]);
    bench.start("s-1");
    for action in ["act", "other", "a.b.c"] {
        let reply_id = bench.request("s-1", action, json!({}));
        assert!(bench.waits(reply_id), "{action}");
    }
}

// covers B1
#[test]
fn one_checkpoint_asks_injects_guides_unlocks_denies_and_records() {
    let mut bench = EngineBench::new(&[&atlas(
        "capabilities: [{capability_id: admin, actions: [ban]}]\n\
         actions: [{action_id: ban, risk_tier: low}, {action_id: talk, risk_tier: low}]\n\
         context_blocks: [{context_id: rules, content: be fair, inject_mode: on_demand}]\n\
         checkpoints: [{checkpoint_id: g, trigger: {type: capability_access, capability_ids: [admin]}, \
           mode: blocking, questions: [{question_id: why, question: Why?}], \
           guidance: {content: think twice}, inject_contexts: [rules], unlock_capabilities: [admin], \
           deny_actions: [talk]}]\n",
    )]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "ban", json!({}));
    assert_eq!(bench.held("c-1").gates[0].questions.len(), 1);
    bench.pass("c-1");
    let injected = &bench.allowed(reply_id).injected;
    assert_eq!(injected.contexts[0].content, "be fair");
    assert_eq!(injected.guidance[0].block.content, "think twice");
    let again = bench.request("s-1", "ban", json!({"n": 2}));
    bench.allowed(again);
    let denied = bench.request("s-1", "talk", json!({}));
    assert_eq!(bench.denied(denied).code, DenyCode::DeniedAction);
    let records = bench.records();
    for event in [
        "checkpoint_triggered",
        "checkpoint_response",
        "checkpoint_passed",
        "context_injected",
    ] {
        assert!(records.contains(&event), "{event}");
    }
}

// covers B2
#[test]
fn agent_data_never_changes_the_atlas() {
    let before = atlases_of(&[&every_type()]);
    let bench = everything();
    let after = bench.engine.atlases();
    assert_eq!(before.len(), after.len());
    assert_eq!(format!("{:?}", before[0]), format!("{:?}", after[0]));
    // Even a session that claims to be the steward cannot add a definition.
    let mut bench = EngineBench::acme();
    bench.start("acme-corp");
    let injected =
        json!({"checkpoints": [], "checkpoint_config": {"session_start": {"enabled": false}}});
    let reply_id = bench.request("acme-corp", "user.ban", injected);
    assert!(
        bench.waits(reply_id),
        "the gates stand as they were written"
    );
}

// covers B3
#[test]
fn an_atlas_yields_permissions_capabilities_contexts_and_records() {
    let mut bench = EngineBench::in_acme("s-1");
    let resolve = ResolveRequest {
        session: "s-1".parse().unwrap(),
        input: None,
        actions: Vec::new(),
    };
    let reply_id = bench.reply_id(|reply_id| EngineCommand::Resolve(reply_id, resolve));
    let Reply::Agent(AgentReply::Resolved(resolution)) = bench.reply(reply_id) else {
        panic!()
    };
    assert_eq!(resolution.allowed, ["ticket.comment", "ticket.list"]);
    assert!(
        resolution
            .constraints
            .iter()
            .any(|constraint| constraint.action == "ticket.delete")
    );
    let session = &bench.engine.sessions()[0];
    assert!(
        session
            .unlocked
            .iter()
            .any(|(_, capability)| capability == "basic-support")
    );
    let contexts: Vec<_> = resolution
        .contexts
        .iter()
        .map(|context| context.context_id.as_str())
        .collect();
    assert_eq!(contexts, ["intro-context", "policy-summary"]);
    assert!(resolution.guidance[0].block.content.contains("Welcome"));
    assert!(bench.records().contains(&"checkpoint_passed"));
}

// covers A36, B29
#[test]
fn an_allowed_request_needs_no_sync_record_and_gets_one_reply() {
    let mut bench = EngineBench::new(&[&atlas(
        "actions: [{action_id: act, risk_tier: low}]\n\
         checkpoint_config: {budget: {max_checkpoints_per_input: 1}}\n\
         context_blocks: [{context_id: a, content: one, actions: [act]}, \
           {context_id: b, content: two, actions: ['*']}, \
           {context_id: c, content: three, keywords: [refund]}]\n\
         checkpoints: [{checkpoint_id: k, trigger: {type: keyword, patterns: [refund]}}, \
           {checkpoint_id: l, trigger: {type: keyword, patterns: [refund]}}]\n",
    )]);
    bench.start("s-1");
    let reply_id = bench.request("s-1", "act", json!({}));
    assert_eq!(bench.allowed(reply_id).injected.contexts.len(), 2);
    let waits = bench
        .drafts()
        .filter(|draft| draft.durability == Durability::Sync);
    assert_eq!(
        waits.count(),
        0,
        "nothing on the way of an allowed request waits for the disk"
    );
    // The same input is not scanned again, and injects nothing twice.
    let first = bench.input("a refund");
    assert_eq!(bench.accepted(first).contexts.len(), 1);
    let again = bench.input("a refund");
    assert_eq!(bench.accepted(again).contexts.len(), 0);
    let skipped = bench.payloads("checkpoint_skipped");
    assert_eq!(skipped.len(), 2, "one for each input: {skipped:?}");
}
