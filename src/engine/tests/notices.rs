//! Tests of notices to stewards.

use super::*;
use crate::atlas::document::{NoticeTrigger, RiskTier};
use crate::engine::records::notice::StewardNotice;

/// Builds an Atlas with this name whose steward asks for these notices.
fn notifying_atlas(id: &str, triggers: &str, body: &str) -> String {
    format!(
        "atlas_version: '1.0'\natlas_id: {id}\nversion: '3'\nname: {id}\n\
         steward:\n  id: {id}\n  notifications:\n    \
         channels: {{ webhook: 'https://{id}.example/' }}\n    triggers: [{triggers}]\n{body}"
    )
}

const BOTH: &str = "policy_override, high_risk_action";

impl EngineBench {
    fn notices(&self) -> Vec<&StewardNotice> {
        let notices = self.effects.iter().filter_map(|effect| match effect {
            Effect::Notify(notice) => Some(notice),
            _ => None,
        });
        notices.collect()
    }

    /// Returns the Atlas and the trigger of every notice.
    fn notified(&self) -> Vec<(&str, &str)> {
        let notices = self.notices().into_iter();
        notices
            .map(|notice| (notice.atlas_id.as_str(), notice.trigger.as_str()))
            .collect()
    }

    /// Returns the type of the record that a notice names. The record must come before the notice.
    fn cause_of(&self, notice: &StewardNotice) -> String {
        let before = self.effects.iter();
        let before = before.take_while(|effect| **effect != Effect::Notify(notice.clone()));
        let found = before.filter_map(|effect| match effect {
            Effect::Record(draft) if draft.event_id == notice.event => Some(draft),
            _ => None,
        });
        let all: Vec<_> = found.map(|draft| draft.payload.event_type()).collect();
        assert_eq!(all.len(), 1);
        all[0].to_owned()
    }
}

const PAY: &str = "actions: [{action_id: pay, risk_tier: low}]\n\
    policies: [{policy_id: no-pay, type: deny, actions: [pay], override: true}]\n";

// covers B16
#[test]
fn only_the_steward_of_the_overruled_policy_is_notified() {
    let mine = notifying_atlas("mine", BOTH, PAY);
    let other = notifying_atlas("other", BOTH, "");
    let mut bench = EngineBench::new(&[&other, &mine]);
    bench.start("s-1");
    bench.request("s-1", "pay", json!({"card": "4111"}));
    assert_eq!(bench.notified(), []);
    bench.pass("c-1");
    let wanted = StewardNotice {
        trigger: NoticeTrigger::PolicyOverride,
        address: "https://mine.example/".to_owned(),
        atlas_id: "mine".to_owned(),
        atlas_version: "3".to_owned(),
        session: "s-1".parse().unwrap(),
        agent: "bot".to_owned(),
        action: "pay".to_owned(),
        risk: RiskTier::Low,
        passed: vec!["no-pay".to_owned()],
        approver: Some("op-1".to_owned()),
        gate: Some("c-1".parse().unwrap()),
        event: bench.notices()[0].event.clone(),
    };
    assert_eq!(bench.notices(), [&wanted]);
    assert_eq!(bench.cause_of(&wanted), "policy_override");
    let retry = bench.request("s-1", "pay", json!({"card": "4111"}));
    bench.allowed(retry);
    assert_eq!(bench.notified().len(), 1, "it is told once");
}

// covers B16
#[test]
fn a_required_approval_is_notified_and_a_refusal_is_not() {
    let body = "actions: [{action_id: pay, risk_tier: low}]\n\
        policies: [{policy_id: ask, type: requires_approval, actions: [pay]}]\n";
    for (triggers, told) in [
        (BOTH, vec![("mine", "policy_override")]),
        ("high_risk_action", vec![]),
    ] {
        let mut bench = EngineBench::new(&[&notifying_atlas("mine", triggers, body)]);
        bench.start("s-1");
        bench.request("s-1", "pay", json!({}));
        bench.refuse("c-1", "no");
        assert_eq!(bench.notified(), []);
        bench.request("s-1", "pay", json!({}));
        bench.pass("c-2");
        assert_eq!(bench.notified(), told, "{triggers}");
    }
}

// covers B16
#[test]
fn a_high_risk_run_is_notified_exactly_once() {
    let body = "actions: [{action_id: ban, risk_tier: critical}, {action_id: cut, risk_tier: high}, \
        {action_id: look, risk_tier: medium}]\ndefault_decision: allow\n\
        checkpoints: [{checkpoint_id: sure, trigger: {type: action_pre, patterns: [ban]}, mode: blocking}]\n";
    let mut bench = EngineBench::new(&[&notifying_atlas("mine", BOTH, body)]);
    bench.start("s-1");
    let look = bench.request("s-1", "look", json!({}));
    bench.allowed(look);
    assert_eq!(bench.notified(), [], "medium is not high");
    // No gate is in the way.
    let cut = bench.request("s-1", "cut", json!({}));
    bench.allowed(cut);
    let [notice] = bench.notices()[..] else {
        panic!()
    };
    assert_eq!(bench.cause_of(notice), "action_attempted");
    assert_eq!((&notice.gate, &notice.approver), (&None, &None));
    assert_eq!((notice.risk, notice.passed.len()), (RiskTier::High, 0));
    // A gate is in the way.
    bench.request("s-1", "ban", json!({"n": 1}));
    assert_eq!(bench.notified().len(), 1, "it is held, and does not run");
    bench.pass("c-1");
    let [_, notice] = bench.notices()[..] else {
        panic!()
    };
    assert_eq!(bench.cause_of(notice), "checkpoint_passed");
    assert_eq!(notice.passed, ["sure"]);
    assert_eq!(notice.approver.as_deref(), Some("op-1"));
    // The caller had left: the action runs later, by the permit.
    let left = bench.request("s-1", "ban", json!({"n": 2}));
    bench.handle(EngineCommand::CallerDisconnected(left));
    bench.pass("c-2");
    assert_eq!(bench.notified().len(), 2, "it does not run yet");
    let again = bench.request("s-1", "ban", json!({"n": 2}));
    bench.allowed(again);
    let [.., notice] = bench.notices()[..] else {
        panic!()
    };
    assert_eq!(bench.notified().len(), 3);
    assert_eq!(bench.cause_of(notice), "checkpoint_passed");
    assert_eq!(notice.gate, Some("c-2".parse().unwrap()));
    assert_eq!(notice.passed, ["sure"]);
    assert_eq!(notice.approver.as_deref(), Some("op-1"));
    // A denied action causes no notice.
    bench.request("s-1", "ban", json!({"n": 3}));
    bench.refuse("c-3", "no");
    assert_eq!(bench.notified().len(), 3);
}

// covers B16
#[test]
fn only_stewards_concerned_by_an_action_are_notified() {
    let all = "default_decision: allow\nunknown_actions: allow\n";
    let declares = notifying_atlas(
        "declares",
        BOTH,
        &format!("{all}actions: [{{action_id: ban, risk_tier: high}}]\n"),
    );
    let lists = notifying_atlas(
        "lists",
        BOTH,
        &format!("{all}capabilities: [{{capability_id: c, actions: ['b*']}}]\n"),
    );
    let rules = notifying_atlas(
        "rules",
        BOTH,
        &format!("{all}policies: [{{policy_id: p, type: allow, actions: [ban]}}]\n"),
    );
    let watches = notifying_atlas(
        "watches",
        BOTH,
        &format!(
            "{all}checkpoints: [{{checkpoint_id: w, trigger: {{type: action_pre, patterns: [ban]}}, mode: observational}}]\n"
        ),
    );
    let weighs = notifying_atlas(
        "weighs",
        BOTH,
        &format!(
            "{all}checkpoints: [{{checkpoint_id: w, trigger: {{type: risk_threshold, min_tier: high}}, mode: observational}}]\n"
        ),
    );
    let elsewhere = notifying_atlas(
        "elsewhere",
        BOTH,
        &format!("{all}actions: [{{action_id: look, risk_tier: low}}]\n"),
    );
    let deaf = notifying_atlas("deaf", "policy_override", all);
    let atlases = [
        &declares, &lists, &rules, &watches, &weighs, &elsewhere, &deaf,
    ];
    let mut bench = EngineBench::new(&atlases.map(String::as_str));
    bench.start("s-1");
    let ban = bench.request("s-1", "ban", json!({}));
    bench.allowed(ban);
    let told: Vec<_> = bench.notified().into_iter().map(|(id, _)| id).collect();
    assert_eq!(told, ["declares", "lists", "rules", "watches", "weighs"]);
    // An action that no Atlas knows concerns all of them.
    let mut bench = EngineBench::new(&[&elsewhere, &deaf].map(String::as_str));
    bench.start("s-1");
    let drop = bench.request("s-1", "drop_database", json!({}));
    bench.allowed(drop);
    assert_eq!(bench.notified(), [("elsewhere", "high_risk_action")]);
}
