//! `checkpoint_config` in force: each part does what it stands for, and nothing when it is off.

use super::*;
use crate::trace::event::Durability;

const CONTEXTS: &str = "
default_decision: allow
unknown_actions: allow
context_blocks:
  - {context_id: facts, content: Facts, inject_mode: on_demand}
  - {context_id: rules, content: Rules, inject_mode: on_demand}
";

/// A session under this configuration, and what it was given at its start.
fn under(config: &str) -> (Bench, Vec<String>) {
    let mut bench = Bench::new(&[&atlas(&format!("{CONTEXTS}checkpoint_config:\n{config}"))]);
    let ask = bench.start("s-1");
    let given = bench.given(ask);
    (bench, given)
}

impl Bench {
    /// The contexts that came with an answer.
    fn given(&self, ask: AskId) -> Vec<String> {
        let given = match self.reply(ask) {
            Reply::Started(started) => &started.given,
            Reply::Accepted(accepted) => &accepted.given,
            Reply::Allowed(allowed) => &allowed.given,
            other => panic!("nothing given: {other:?}"),
        };
        let contexts = given.contexts.iter();
        contexts.map(|context| context.context_id.clone()).collect()
    }

    fn say(&mut self, text: &str) -> Vec<String> {
        let input = Input {
            session: "s-1".parse().unwrap(),
            text: text.to_owned(),
            source: InputSource::User,
            reaches_asked_agent: false,
        };
        let ask = self.ask(|ask| Command::Input(ask, input));
        self.given(ask)
    }

    fn act(&mut self, action: &str) -> Vec<String> {
        let ask = self.request("s-1", action, json!({}));
        self.given(ask)
    }
}

const NOTHING: [&str; 0] = [];

// covers A6
#[test]
fn contexts_come_at_the_start() {
    let (_, given) = under("  session_start: {enabled: true, inject_contexts: [facts, rules]}\n");
    assert_eq!(given, ["facts", "rules"]);
    let (_, given) = under("  session_start: {inject_contexts: [facts]}\n");
    assert_eq!(given, ["facts"], "it is on unless it says otherwise");
    let (bench, given) = under("  session_start: {enabled: false, inject_contexts: [facts]}\n");
    assert_eq!(given, NOTHING);
    assert_eq!(bench.payloads("checkpoint_triggered"), Vec::<Value>::new());
}

// covers A7
#[test]
fn keywords_call_for_contexts_by_their_key() {
    let words = "keywords: {'geometry|index': [facts], Formula: [rules]}";
    let (mut bench, _) = under(&format!("  keyword_match: {{{words}}}\n"));
    assert_eq!(bench.say("an INDEX"), ["facts"]);
    assert_eq!(bench.say("a formula"), ["rules"]);
    let (mut bench, _) = under(&format!(
        "  keyword_match: {{{words}, case_sensitive: true}}\n"
    ));
    assert_eq!(bench.say("a formula"), NOTHING);
    assert_eq!(bench.say("a Formula"), ["rules"]);
    let (mut bench, _) = under(&format!(
        "  keyword_match: {{{words}, match_mode: phrase}}\n"
    ));
    assert_eq!(bench.say("indexes and formulas"), NOTHING);
    // With `all`, the alternatives of one key are alternatives still.
    let (mut bench, _) = under(&format!("  keyword_match: {{{words}, match_mode: all}}\n"));
    assert_eq!(bench.say("an index"), ["facts"]);
    // A regular expression keeps its bars.
    let regex = "match_mode: regex, keywords: {'^(geometry|index)$': [facts]}";
    let (mut bench, _) = under(&format!("  keyword_match: {{{regex}}}\n"));
    assert_eq!(bench.say("an index"), NOTHING);
    assert_eq!(bench.say("index"), ["facts"]);
    let (mut bench, _) = under(&format!("  keyword_match: {{enabled: false, {words}}}\n"));
    assert_eq!(bench.say("an index"), NOTHING);
}

// covers A8
#[test]
fn actions_call_for_contexts_confirmation_and_policies() {
    let actions = "actions: {write_file: {inject_contexts: [facts], require_policy_check: false}, \
                   'delete_*': {inject_contexts: [rules], require_policy_check: true, \
                   require_confirmation: true}}";
    let policy = "policies:\n  - {policy_id: no-disk, type: deny, actions: [delete_disk]}\n";
    let (mut bench, _) = under(&format!("  action_pre: {{{actions}}}\n{policy}"));
    assert_eq!(bench.act("write_file"), ["facts"]);
    let ask = bench.request("s-1", "delete_user", json!({}));
    assert!(bench.waits(ask));
    let held = bench.held("c-1");
    assert_eq!(held.gates[0].origin.id(), "config.action_pre.2");
    bench.pass("c-1");
    assert_eq!(bench.given(ask), ["rules"]);
    // A policy counts before anyone is asked.
    let ask = bench.request("s-1", "delete_disk", json!({}));
    assert_eq!(bench.denied(ask).code, DenyCode::Policy);
    let (mut bench, _) = under(&format!("  action_pre: {{enabled: false, {actions}}}\n"));
    assert_eq!(bench.act("delete_user"), NOTHING);
}

#[test]
fn of_several_keys_the_closest_counts() {
    let keys = "{'*': {inject_contexts: [facts]}, 'delete_*': {require_confirmation: true}, \
                delete_draft: {inject_contexts: [rules]}}";
    let (mut bench, _) = under(&format!("  action_pre: {{mappings: {keys}}}\n"));
    assert_eq!(bench.act("delete_draft"), ["rules"]);
    assert_eq!(bench.act("look"), ["facts"]);
    let ask = bench.request("s-1", "delete_user", json!({}));
    assert!(bench.waits(ask));
    let fired = bench.payloads("checkpoint_triggered");
    let fired: Vec<_> = fired
        .iter()
        .map(|it| it["checkpoint_id"].as_str().unwrap())
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
fn risk_calls_for_contexts_and_for_a_record_that_lasts() {
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
fn time_calls_for_contexts_where_it_is_switched_on() {
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
fn a_number_of_actions_calls_for_contexts_where_it_is_switched_on() {
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
