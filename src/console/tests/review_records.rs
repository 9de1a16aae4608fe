//! The review sheet against what the engine writes, for every kind of gate.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::atlas::load_str;
use crate::base::id::CountedIds;
use crate::console::dialog::gate::{PlannedAnswers, care_for_request, plan_records};
use crate::engine::Engine;
use crate::engine::approval::Approver;
use crate::engine::command::{
    ActionRequest, AgentAnswer, DecisionRequest, Effect, EngineCommand, ReleaseTo, ReplyId, Ruling,
    StartSession,
};
use crate::engine::held::Held;

/// Records by event type, each with its fields.
type Records = Vec<(String, Map<String, Value>)>;

struct Bench {
    engine: Engine,
    asks: u64,
}

impl Bench {
    fn new(checkpoints: &str, policies: &str) -> Self {
        let text = format!(
            "atlas_version: \"1.0\"\natlas_id: test\nversion: \"1\"\nname: Test\n\
             actions: [{{action_id: do, risk_tier: high}}]\ndefault_decision: allow\n\
             checkpoints: [{checkpoints}]\npolicies: [{policies}]\n"
        );
        let loaded = load_str("test.yaml", &text).expect("the Atlas loads");
        let engine = Engine::new(vec![loaded.atlas], Box::new(CountedIds::default()));
        let mut bench = Self { engine, asks: 0 };
        bench.send_command(|ask| {
            let start = StartSession {
                delivery: crate::engine::command::DeliveryTime::Now,
                session: "s-1".parse().unwrap(),
                agent: "bot".to_owned(),
                agent_version: None,
                intent: None,
                owner: None,
            };
            EngineCommand::StartSession(ask, start)
        });
        bench.send_command(|ask| {
            let request = ActionRequest {
                delivery: crate::engine::command::DeliveryTime::Now,
                on_disconnect: crate::engine::command::OnDisconnect::Kept,
                session: "s-1".parse().unwrap(),
                action: "do".to_owned(),
                params: json!({}),
                deadline: None,
                resolution: None,
                call: None,
            };
            EngineCommand::RequestAction(ask, request)
        });
        bench
    }

    fn send_command(&mut self, command: impl FnOnce(ReplyId) -> EngineCommand) -> Records {
        self.asks += 1;
        let now = "2026-01-01T00:00:00.000000Z".parse().unwrap();
        let effects = self.engine.handle(command(ReplyId(self.asks)), now);
        let records = effects.into_iter().filter_map(|effect| match effect {
            Effect::Record(draft) => Some(draft.payload),
            _ => None,
        });
        records
            .map(|payload| (payload.event_type().to_owned(), payload.fields()))
            .collect()
    }

    fn held(&self) -> Held {
        let held = self.engine.held();
        (**held.first().expect("it is held")).clone()
    }

    /// Passes the request with good answers: what the sheet shows, and what was written.
    fn pass(&mut self, operator: &str) -> (Records, Records) {
        let held = self.held();
        let method = care_for_request(&held).method();
        let by = Approver {
            name: operator,
            method,
            justification: None,
            first_approver: None,
        };
        let mut answers = vec![BTreeMap::new(); held.gates.len()];
        let open = |at: &usize| !held.answered.contains_key(at);
        for (at, gate) in held.gates.iter().enumerate().filter(|(at, _)| open(at)) {
            for question in &gate.questions {
                use crate::atlas::document::ResponseType;
                let said = match question.response_type() {
                    ResponseType::Boolean => json!(true),
                    ResponseType::Acknowledgment => json!("understood"),
                    _ => json!("as agreed with the customer, in writing"),
                };
                answers[at].insert(question.id().to_owned(), said);
            }
        }
        let planned = plan_records(&held, by, |at| {
            let mut planned = PlannedAnswers::default();
            for question in held.gates[at].questions.iter().filter(|_| open(&at)) {
                planned.add(question, &answers[at][question.id()]);
            }
            planned
        });
        let planned = planned
            .into_iter()
            .map(|record| (record.event_type, record.fields));
        let decide = DecisionRequest {
            gate: held.id.clone(),
            operator: operator.to_owned(),
            method: method.to_owned(),
            request_hash: held.request_hash,
            atlas_hash: held.atlas_hash,
            justification: None,
            ruling: Ruling::Pass {
                answers: answers.clone(),
            },
        };
        let written = self.send_command(|ask| EngineCommand::Decide(ask, decide));
        (planned.collect(), written)
    }
}

fn checkpoint(id: &str, more: &str) -> String {
    let question = "{question_id: q, question: Agreed?, response_type: boolean}";
    format!("{{checkpoint_id: {id}, mode: blocking, questions: [{question}], {more}}}")
}

/// Asserts that everything on the sheet was written as it stood there, with everything an approval carries.
#[track_caller]
fn assert_written(case: &str, (planned, written): (Records, Records), approvals: &[&str]) {
    for (event_type, fields) in &planned {
        let same = |it: &&(String, Map<String, Value>)| it.0 == *event_type && it.1 == *fields;
        let found = written.iter().find(same);
        assert!(
            found.is_some(),
            "{case}: {event_type} {fields:?}\nin {written:?}"
        );
        if event_type == "checkpoint_response" {
            continue;
        }
        for wanted in ["justification", "justification_source", "request_hash"] {
            let said = fields.get(wanted).and_then(Value::as_str);
            assert!(
                said.is_some_and(|said| !said.is_empty()),
                "{case}: {event_type}.{wanted}"
            );
        }
    }
    for approval in approvals {
        let shown = planned.iter().any(|(event_type, _)| event_type == approval);
        assert!(shown, "{case}: {approval} is on the sheet");
    }
}

// covers T14, T18
#[test]
fn every_approval_is_written_as_the_review_shows_it() {
    let on_do = "trigger: {type: action_pre, patterns: [do]}";
    let risky = "trigger: {type: risk_threshold, min_tier: high}";
    let wants = "{policy_id: p, type: requires_approval, actions: [do], reason: risky}";
    let denies = "{policy_id: p, type: deny, actions: [do], reason: never, override: true}";
    let cases = [
        (
            "plain gate",
            checkpoint("g", on_do),
            "",
            vec!["checkpoint_passed"],
        ),
        (
            "gate without questions",
            format!("{{checkpoint_id: g, mode: blocking, {on_do}}}"),
            "",
            vec!["checkpoint_passed"],
        ),
        (
            "risk gate",
            checkpoint("g", risky),
            "",
            vec!["risk_verified", "checkpoint_passed"],
        ),
        (
            "approval",
            String::new(),
            wants,
            vec!["policy_override", "checkpoint_passed"],
        ),
        ("override", String::new(), denies, vec!["policy_override"]),
        (
            "gate and approval",
            checkpoint("g", on_do),
            wants,
            vec!["policy_override", "checkpoint_passed"],
        ),
    ];
    for (case, checkpoints, policies, approvals) in cases {
        let mut bench = Bench::new(&checkpoints, policies);
        assert_written(case, bench.pass("op-1"), &approvals);
    }
    let mut two = Bench::new(&checkpoint("g", &format!("approvers: 2, {on_do}")), "");
    assert_written("first of two", two.pass("op-1"), &["checkpoint_approved"]);
    assert_written("second of two", two.pass("op-2"), &["checkpoint_passed"]);
    let agents = checkpoint("a", &format!("respondent: agent, {on_do}"));
    let own = checkpoint("g", on_do);
    let mut both = Bench::new(&format!("{agents}, {own}"), "");
    let gate = both.held().id;
    both.send_command(|ask| {
        let answer = AgentAnswer {
            session: "s-1".parse().unwrap(),
            gate,
            answers: serde_json::from_value(json!({"a": {"q": true}})).unwrap(),
            release: ReleaseTo::default(),
        };
        EngineCommand::Answer(ask, answer)
    });
    assert_written(
        "agent and operator",
        both.pass("op-1"),
        &["checkpoint_passed"],
    );
}
