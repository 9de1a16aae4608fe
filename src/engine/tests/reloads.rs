//! Tests of reloads while agents are at work: a reload opens nothing.

use super::*;
use crate::engine::extensions::Extensions;

impl EngineBench {
    fn reload(&mut self, atlas: &str) {
        self.engine.reload(atlases_of(&[atlas]).into());
    }
}

fn stricter() -> String {
    ACME.replace("min_length: 20", "min_length: 30")
}

#[test]
fn a_held_request_passes_only_under_its_own_atlas() {
    let mut bench = EngineBench::in_acme("s-1");
    let asked = bench.request("s-1", "ticket.delete", json!({}));
    bench.reload(&stricter());
    let pass = bench.pass("c-2");
    assert_eq!(
        bench.reply(pass),
        &Reply::Operator(OperatorReply::Refused(DecisionRefusal::AtlasChanged))
    );
    assert!(bench.waits(asked));
    bench.reload(ACME);
    bench.pass("c-2");
    bench.allowed(asked);

    let asked = bench.request("s-1", "ticket.delete", json!({"id": 2}));
    bench.reload(&stricter());
    let deny = bench.refuse("c-3", "asked under old rules");
    assert_eq!(bench.outcome(deny), HeldOutcome::Denied);
    assert!(matches!(
        bench.reply(asked),
        Reply::Agent(AgentReply::Denied(_))
    ));
}

#[test]
fn an_atlas_without_gates_releases_no_held_request() {
    let open = atlas("actions: [{action_id: ticket.delete, risk_tier: low}]\n");
    let mut bench = EngineBench::in_acme("s-1");
    let asked = bench.request("s-1", "ticket.delete", json!({}));
    bench.reload(&open);
    assert!(bench.waits(asked));
    assert_eq!(bench.held_ids(), ["c-2"]);
    bench.advance(1000);
    bench.handle(EngineCommand::DeadlineReached("c-2".parse().unwrap()));
    assert!(matches!(
        bench.reply(asked),
        Reply::Agent(AgentReply::Denied(_))
    ));
}

#[test]
fn a_permit_from_an_earlier_atlas_opens_nothing() {
    let mut bench = EngineBench::in_acme("s-1");
    let gone = bench.request("s-1", "ticket.delete", json!({}));
    bench.handle(EngineCommand::CallerDisconnected(gone));
    bench.pass("c-2");
    bench.reload(&stricter());
    let retry = bench.request("s-1", "ticket.delete", json!({}));
    // First at the start gate of the new Atlas, then at the request's own gate.
    bench.pass("c-3");
    assert!(bench.waits(retry));
    assert_eq!(bench.held_ids(), ["c-4"]);
}

#[test]
fn a_session_restarts_under_a_new_atlas_with_its_next_command() {
    let open = atlas("actions: [{action_id: ticket.get, risk_tier: low}]\n");
    let mut bench = EngineBench::new(&[&open]);
    bench.start("s-1");
    let get = bench.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    bench.allowed(get);
    bench.reload(ACME);
    let get = bench.request("s-1", "ticket.get", json!({"ticket_id": "x"}));
    assert!(bench.waits(get), "at the start gate of the new one");
    bench.pass("c-1");
    bench.allowed(get);
}

#[test]
fn an_extension_answer_for_an_earlier_atlas_does_not_count() {
    let body = |threshold: &str| {
        atlas(&format!(
            "actions: [{{action_id: a, risk_tier: low}}]\n\
             checkpoints: [{{checkpoint_id: g, mode: blocking, trigger: {{type: custom, \
             trigger_id: mood, params: {{threshold: {threshold}}}, on: [action]}}}}]\n"
        ))
    };
    let mut bench = EngineBench::new(&[&body("1")]);
    bench.engine.set_extensions(Extensions {
        triggers: ["mood".to_owned()].into(),
        ..Extensions::default()
    });
    bench.start("s-1");
    let asked = bench.request("s-1", "a", json!({}));
    bench.reload(&body("2"));
    bench.returns(json!(false));
    assert!(bench.waits(asked), "asked again, by the new Atlas");
    assert_eq!(bench.calls().len(), 2);
    bench.returns(json!(false));
    bench.allowed(asked);
}
