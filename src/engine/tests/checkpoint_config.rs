//! Tests of `checkpoint_config`: each part has its effect, and none when it is disabled.

use super::*;
use crate::trace::event::Durability;

const CONTEXTS: &str = "
default_decision: allow
unknown_actions: allow
context_blocks:
  - {context_id: facts, content: Facts, inject_mode: on_demand}
  - {context_id: rules, content: Rules, inject_mode: on_demand}
";

/// Starts a session under this configuration. Returns it with its initial contexts.
fn under(config: &str) -> (EngineBench, Vec<String>) {
    let mut bench = EngineBench::new(&[&atlas(&format!("{CONTEXTS}checkpoint_config:\n{config}"))]);
    let reply_id = bench.start("s-1");
    let injected = bench.injected(reply_id);
    (bench, injected)
}

impl EngineBench {
    /// Returns the contexts of a reply.
    fn injected(&self, reply_id: ReplyId) -> Vec<String> {
        let injected = match self.reply(reply_id) {
            Reply::Agent(AgentReply::Started(started)) => &started.injected,
            Reply::Agent(AgentReply::Accepted(accepted)) => &accepted.injected,
            Reply::Agent(AgentReply::Allowed(allowed)) => &allowed.injected,
            other => panic!("nothing given: {other:?}"),
        };
        let contexts = injected.contexts.iter();
        contexts.map(|context| context.context_id.clone()).collect()
    }

    fn send_configured_input(&mut self, text: &str) -> Vec<String> {
        let input = InputReport {
            session: "s-1".parse().unwrap(),
            text: text.to_owned(),
            source: InputSource::User,
            reaches_asked_agent: false,
            waits_for_start: false,
            deadline: None,
        };
        let reply_id = self.reply_id(|reply_id| EngineCommand::Input(reply_id, input));
        self.injected(reply_id)
    }

    fn act(&mut self, action: &str) -> Vec<String> {
        let reply_id = self.request("s-1", action, json!({}));
        self.injected(reply_id)
    }
}

const NOTHING: [&str; 0] = [];

// covers A6
#[test]
fn configured_contexts_are_injected_at_session_start() {
    let (_, injected) =
        under("  session_start: {enabled: true, inject_contexts: [facts, rules]}\n");
    assert_eq!(injected, ["facts", "rules"]);
    let (_, injected) = under("  session_start: {inject_contexts: [facts]}\n");
    assert_eq!(injected, ["facts"], "it is on unless it says otherwise");
    let (bench, injected) = under("  session_start: {enabled: false, inject_contexts: [facts]}\n");
    assert_eq!(injected, NOTHING);
    assert_eq!(bench.payloads("checkpoint_triggered"), Vec::<Value>::new());
}

// covers A7
#[test]
fn configured_keywords_inject_their_contexts() {
    let words = "keywords: {'geometry|index': [facts], Formula: [rules]}";
    let (mut bench, _) = under(&format!("  keyword_match: {{{words}}}\n"));
    assert_eq!(bench.send_configured_input("an INDEX"), ["facts"]);
    assert_eq!(bench.send_configured_input("a formula"), ["rules"]);
    let (mut bench, _) = under(&format!(
        "  keyword_match: {{{words}, case_sensitive: true}}\n"
    ));
    assert_eq!(bench.send_configured_input("a formula"), NOTHING);
    assert_eq!(bench.send_configured_input("a Formula"), ["rules"]);
    let (mut bench, _) = under(&format!(
        "  keyword_match: {{{words}, match_mode: phrase}}\n"
    ));
    assert_eq!(bench.send_configured_input("indexes and formulas"), NOTHING);
    // With `all`, the alternatives of one key are still alternatives.
    let (mut bench, _) = under(&format!("  keyword_match: {{{words}, match_mode: all}}\n"));
    assert_eq!(bench.send_configured_input("an index"), ["facts"]);
    // A regular expression keeps its vertical bars.
    let regex = "match_mode: regex, keywords: {'^(geometry|index)$': [facts]}";
    let (mut bench, _) = under(&format!("  keyword_match: {{{regex}}}\n"));
    assert_eq!(bench.send_configured_input("an index"), NOTHING);
    assert_eq!(bench.send_configured_input("index"), ["facts"]);
    let (mut bench, _) = under(&format!("  keyword_match: {{enabled: false, {words}}}\n"));
    assert_eq!(bench.send_configured_input("an index"), NOTHING);
}

// covers A8
#[test]
fn configured_actions_inject_contexts_require_confirmation_and_obey_policies() {
    let actions = "actions: {write_file: {inject_contexts: [facts], require_policy_check: false}, \
                   'delete_*': {inject_contexts: [rules], require_policy_check: true, \
                   require_confirmation: true}}";
    let policy = "policies:\n  - {policy_id: no-disk, type: deny, actions: [delete_disk]}\n";
    let (mut bench, _) = under(&format!("  action_pre: {{{actions}}}\n{policy}"));
    assert_eq!(bench.act("write_file"), ["facts"]);
    let reply_id = bench.request("s-1", "delete_user", json!({}));
    assert!(bench.waits(reply_id));
    let held = bench.held("c-1");
    assert_eq!(held.gates[0].origin.id(), "config.action_pre.2");
    bench.pass("c-1");
    assert_eq!(bench.injected(reply_id), ["rules"]);
    // A policy decides before an operator is asked.
    let reply_id = bench.request("s-1", "delete_disk", json!({}));
    assert_eq!(bench.denied(reply_id).code, DenyCode::Policy);
    let (mut bench, _) = under(&format!("  action_pre: {{enabled: false, {actions}}}\n"));
    assert_eq!(bench.act("delete_user"), NOTHING);
}

#[test]
fn the_most_specific_action_key_applies() {
    let keys = "{'*': {inject_contexts: [facts]}, 'delete_*': {require_confirmation: true}, \
                delete_draft: {inject_contexts: [rules]}}";
    let (mut bench, _) = under(&format!("  action_pre: {{mappings: {keys}}}\n"));
    assert_eq!(bench.act("delete_draft"), ["rules"]);
    assert_eq!(bench.act("look"), ["facts"]);
    let reply_id = bench.request("s-1", "delete_user", json!({}));
    assert!(bench.waits(reply_id));
    let fired = bench.payloads("checkpoint_triggered");
    let fired: Vec<_> = fired
        .iter()
        .map(|record| record["checkpoint_id"].as_str().unwrap())
        .collect();
    let wanted = [
        "config.action_pre.3",
        "config.action_pre.1",
        "config.action_pre.2",
    ];
    assert_eq!(fired, wanted);
}

// covers A9
#[test]
fn configured_risk_injects_contexts_and_requires_sync_records() {
    for (key, durable) in [("require_sync", true), ("require_sync_trace", false)] {
        let part = format!("inject_contexts: [rules], {key}: {durable}");
        let (mut bench, _) = under(&format!("  risk_threshold: {{{part}}}\n"));
        assert_eq!(bench.act("write_file"), NOTHING);
        assert_eq!(bench.act("delete_file"), ["rules"]);
        let records = bench.drafts();
        let mut of_checkpoint =
            records.filter(|draft| draft.payload.event_type() == "checkpoint_triggered");
        let sync = of_checkpoint.next().unwrap().durability == Durability::Sync;
        assert_eq!(sync, durable);
    }
    let (mut bench, _) =
        under("  risk_threshold: {min_tier: critical, inject_contexts: [rules]}\n");
    assert_eq!(bench.act("delete_file"), NOTHING);
    assert_eq!(bench.act("deploy_site"), ["rules"]);
    let (mut bench, _) = under("  risk_threshold: {enabled: false, inject_contexts: [rules]}\n");
    assert_eq!(bench.act("deploy_site"), NOTHING);
}

// covers A10, B25
#[test]
fn an_enabled_time_interval_injects_contexts() {
    let (mut bench, _) = under("  time_interval: {enabled: true, inject_contexts: [rules]}\n");
    bench.now = bench.now.plus(Duration::from_secs(299));
    assert_eq!(bench.act("look"), NOTHING);
    bench.now = bench.now.plus(Duration::from_secs(1));
    assert_eq!(bench.act("look"), ["rules"]);
    let (mut bench, _) = under("  time_interval: {seconds: 300, inject_contexts: [rules]}\n");
    bench.now = bench.now.plus(Duration::from_mins(5));
    assert_eq!(
        bench.act("look"),
        NOTHING,
        "it is off unless it says otherwise"
    );
}

// covers A11, B25
#[test]
fn an_enabled_count_interval_injects_contexts() {
    let (mut bench, _) = under("  count_interval: {enabled: true, inject_contexts: [rules]}\n");
    for _ in 0..50 {
        assert_eq!(bench.act("look"), NOTHING);
    }
    assert_eq!(bench.act("look"), ["rules"]);
    let (mut bench, _) = under("  count_interval: {actions: 1, inject_contexts: [rules]}\n");
    bench.act("look");
    assert_eq!(
        bench.act("look"),
        NOTHING,
        "it is off unless it says otherwise"
    );
}
