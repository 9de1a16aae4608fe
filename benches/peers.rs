//! Comparison of three engines with the same rules and requests, in one run.
//!
//! `cargo bench --features peers --bench peers` prints a table of ratios at the end. Each engine is
//! used as its documentation says, with everything that can be prepared done before. All of them must
//! agree before anything is measured.
//!
//! The rules allow and deny by the name of the action alone, which all three can say. Cedar looks at
//! every policy by design: any of them may forbid. Regorus is given one rule for each; a table in its
//! data would be looked up, but is not a set of rules.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement that is surprised should stop, and says what it found"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use cedar_policy::{Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request};
use cra_core::atlas::Atlas;
use cra_core::atlas::index::ActionMatches;
use cra_core::base::clock::Timestamp;
use cra_core::engine::judgement::judge_under;
use cra_core::engine::session::Session;
use criterion::{BenchmarkId, Criterion};
use serde_json::json;

#[path = "support/generated_atlas.rs"]
#[expect(dead_code, reason = "the other benches use more of it")]
mod generated_atlas;
#[path = "support/ratios.rs"]
mod ratios;

use generated_atlas::{atlas, now, session};
use ratios::{nanoseconds, ratio, time};

/// Rules: one half allows, the other denies.
const RULES: [usize; 3] = [10, 100, 1_000];

/// Requests: allowed by a rule, denied by one, and named by none. Every size has them.
const REQUESTS: [(&str, bool); 3] = [
    ("service4.read", true),
    ("service5.purge", false),
    ("service5.list", false),
];

fn main() {
    let mut criterion = ratios::criterion()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    for rules in RULES {
        let ours = Ours::new(rules);
        let cedar = Cedar::new(rules);
        let mut regorus = Regorus::new(rules);
        for (action, allowed) in REQUESTS {
            assert_eq!(ours.allows(action), allowed, "cra on {action}");
            assert_eq!(
                cedar.allows(&Cedar::request(action)),
                allowed,
                "cedar on {action}"
            );
            assert_eq!(
                regorus.allows(&Regorus::input(action)),
                allowed,
                "regorus on {action}"
            );
        }
        measure(&mut criterion, rules, &ours, &cedar, &mut regorus);
    }
    criterion.final_summary();
    report();
}

/// One measurement is all three requests, one after the other.
fn measure(
    criterion: &mut Criterion,
    rules: usize,
    ours: &Ours,
    cedar: &Cedar,
    regorus: &mut Regorus,
) {
    let id = || BenchmarkId::from_parameter(rules);
    let actions = REQUESTS.map(|(action, _)| action);
    criterion
        .benchmark_group("cra")
        .bench_function(id(), |bench| {
            bench.iter(|| actions.map(|action| ours.allows(black_box(action))));
        });
    criterion
        .benchmark_group("floor")
        .bench_function(id(), |bench| {
            let look_up = |action| ActionMatches::of(&ours.atlases, black_box(action)).len();
            bench.iter(|| actions.map(look_up));
        });
    let requests = actions.map(Cedar::request);
    criterion
        .benchmark_group("cedar")
        .bench_function(id(), |bench| {
            bench.iter(|| {
                requests
                    .each_ref()
                    .map(|request| cedar.allows(black_box(request)))
            });
        });
    let inputs = actions.map(Regorus::input);
    criterion
        .benchmark_group("regorus")
        .bench_function(id(), |bench| {
            bench.iter(|| {
                inputs
                    .each_ref()
                    .map(|input| regorus.allows(black_box(input)))
            });
        });
}

fn report() {
    println!("\nThree decisions: one allowed by a rule, one denied by a rule, one by default.\n");
    println!(
        "| rules | cra | floor | cedar | regorus | cra / floor | cedar / cra | regorus / cra |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for rules in RULES {
        let of = |group| nanoseconds(group, rules);
        println!(
            "| {rules} | {} | {} | {} | {} | {} | {} | {} |",
            time(of("cra")),
            time(of("floor")),
            time(of("cedar")),
            time(of("regorus")),
            ratio(of("cra"), of("floor")),
            ratio(of("cedar"), of("cra")),
            ratio(of("regorus"), of("cra")),
        );
    }
    for group in ["cra", "cedar", "regorus"] {
        let of = |rules| nanoseconds(group, rules);
        println!("\n{group}: T(1,000) / T(10) = {}", ratio(of(1_000), of(10)));
    }
}

/// The action of a rule, and whether it allows it.
fn rules(count: usize) -> impl Iterator<Item = (String, bool)> {
    (0..count).map(|at| match at % 2 {
        0 => (format!("service{at}.read"), true),
        _ => (format!("service{at}.purge"), false),
    })
}

/// This crate. In addition to the rules it has as many checkpoints, a capability and tiers to find:
/// the other engines do none of that.
struct Ours {
    atlases: [Atlas; 1],
    session: Session,
    params: serde_json::Value,
    now: Timestamp,
}

impl Ours {
    fn new(count: usize) -> Self {
        let mut text = String::from(
            "atlas_version: '1.0'\natlas_id: com.example.speed\nversion: '1'\nname: Peers\n\
             default_decision: deny\n\
             capabilities: [{capability_id: all, name: A, actions: ['service*']}]\npolicies:\n",
        );
        for (at, (action, allowed)) in rules(count).enumerate() {
            let kind = if allowed { "allow" } else { "deny" };
            writeln!(
                text,
                "- {{policy_id: p{at}, type: {kind}, actions: ['{action}']}}"
            )
            .expect("a string takes everything");
        }
        text.push_str("checkpoints:\n");
        for at in 0..count {
            writeln!(
                text,
                "- {{checkpoint_id: k{at}, name: K, mode: blocking, \
                 trigger: {{type: action_pre, patterns: ['service{at}.deploy*']}}}}"
            )
            .expect("a string takes everything");
        }
        Self {
            atlases: [atlas(&text)],
            session: session(),
            params: json!({"id": 4711}),
            now: now(),
        }
    }

    fn allows(&self, action: &str) -> bool {
        judge_under(&self.atlases, &self.session, action, &self.params, self.now).is_allowed()
    }
}

struct Cedar {
    authorizer: Authorizer,
    policies: PolicySet,
    entities: Entities,
}

impl Cedar {
    fn new(count: usize) -> Self {
        let mut text = String::new();
        for (action, allowed) in rules(count) {
            let effect = if allowed { "permit" } else { "forbid" };
            writeln!(
                text,
                "{effect}(principal, action == Action::\"{action}\", resource);"
            )
            .expect("a string takes everything");
        }
        Self {
            authorizer: Authorizer::new(),
            policies: text.parse().expect("policies"),
            entities: Entities::empty(),
        }
    }

    fn request(action: &str) -> Request {
        let entity = |kind: &str, id: &str| -> EntityUid {
            format!("{kind}::\"{id}\"").parse().expect("an entity")
        };
        let context = Context::from_json_value(json!({"id": 4711}), None).expect("a context");
        Request::new(
            entity("Agent", "bot"),
            entity("Action", action),
            entity("Tool", "any"),
            context,
            None,
        )
        .expect("a request")
    }

    fn allows(&self, request: &Request) -> bool {
        let response = self
            .authorizer
            .is_authorized(request, &self.policies, &self.entities);
        response.decision() == Decision::Allow
    }
}

struct Regorus(regorus::Engine);

impl Regorus {
    fn new(count: usize) -> Self {
        let mut text =
            String::from("package peers\ndefault allow := false\ndefault deny := false\n");
        text.push_str("default decision := false\ndecision if { allow; not deny }\n");
        for (action, allowed) in rules(count) {
            let rule = if allowed { "allow" } else { "deny" };
            writeln!(text, "{rule} if input.action == \"{action}\"")
                .expect("a string takes everything");
        }
        let mut engine = regorus::Engine::new();
        engine
            .add_policy("peers.rego".to_owned(), text)
            .expect("a policy");
        Self(engine)
    }

    fn input(action: &str) -> regorus::Value {
        let text = json!({"action": action, "id": 4711}).to_string();
        regorus::Value::from_json_str(&text).expect("an input")
    }

    fn allows(&mut self, input: &regorus::Value) -> bool {
        self.0.set_input(input.clone());
        let decision = self.0.eval_rule("data.peers.decision".to_owned());
        decision.expect("a decision") == regorus::Value::from(true)
    }
}
