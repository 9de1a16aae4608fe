//! Other Atlases while agents are at work: nothing is opened by it.

use super::*;
use crate::engine::extension::Extensions;

impl Bench {
    fn reload(&mut self, atlas: &str) {
        self.engine.reload(atlases_of(&[atlas]).into());
    }
}

fn stricter() -> String {
    ACME.replace("min_length: 20", "min_length: 30")
}

#[test]
fn what_is_held_can_be_refused_and_passed_only_when_its_atlas_is_back() {
    let mut bench = Bench::in_acme("s-1");
    let asked = bench.request("s-1", "ticket.delete", json!({}));
    bench.reload(&stricter());
    let pass = bench.pass("c-2");
    assert_eq!(bench.reply(pass), &Reply::Refused(Refused::AtlasChanged));
    assert!(bench.waits(asked));
    bench.reload(ACME);
    bench.pass("c-2");
    bench.allowed(asked);

    let asked = bench.request("s-1", "ticket.delete", json!({"id": 2}));
    bench.reload(&stricter());
    let deny = bench.refuse("c-3", "asked under old rules");
    assert_eq!(bench.outcome(deny), Outcome::Denied);
    assert!(matches!(bench.reply(asked), Reply::Denied(_)));
}

#[test]
fn even_an_atlas_without_gates_opens_nothing_that_is_held() {
    let open = atlas("actions: [{action_id: ticket.delete, risk_tier: low}]\n");
    let mut bench = Bench::in_acme("s-1");
    let asked = bench.request("s-1", "ticket.delete", json!({}));
    bench.reload(&open);
    assert!(bench.waits(asked));
    assert_eq!(bench.held_ids(), ["c-2"]);
    bench.advance(1000);
    bench.tell(Command::DeadlineReached("c-2".parse().unwrap()));
    assert!(matches!(bench.reply(asked), Reply::Denied(_)));
}

#[test]
fn a_permit_of_the_atlas_before_opens_nothing() {
    let mut bench = Bench::in_acme("s-1");
    let gone = bench.request("s-1", "ticket.delete", json!({}));
    bench.tell(Command::AskerLeft(gone));
    bench.pass("c-2");
    bench.reload(&stricter());
    let retry = bench.request("s-1", "ticket.delete", json!({}));
    // First at the start gate of the new Atlas, then at its own.
    bench.pass("c-3");
    assert!(bench.waits(retry));
    assert_eq!(bench.held_ids(), ["c-4"]);
}

#[test]
fn a_session_starts_anew_with_the_next_thing_it_does() {
    let open = atlas("actions: [{action_id: ticket.get, risk_tier: low}]\n");
    let mut bench = Bench::new(&[&open]);
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
fn what_an_extension_says_to_a_question_of_the_atlas_before_does_not_count() {
    let body = |threshold: &str| {
        atlas(&format!(
            "actions: [{{action_id: a, risk_tier: low}}]\n\
             checkpoints: [{{checkpoint_id: g, mode: blocking, trigger: {{type: custom, \
             trigger_id: mood, params: {{threshold: {threshold}}}, on: [action]}}}}]\n"
        ))
    };
    let mut bench = Bench::new(&[&body("1")]);
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
