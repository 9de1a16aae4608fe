//! Tests of the engine: commands in; replies, records and state out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::command::*;
use super::held::Held;
use super::*;
use crate::atlas::load_str;
use crate::base::id::CountedIds;
use crate::base::limits::PERMIT_LIFETIME;

mod access;
mod agent_answers;
mod blocked_questions;
mod blocked_sessions;
mod budgets;
mod checkpoint_config;
mod checkpoint_types;
mod clocks;
mod consultations;
mod decisions;
mod dual_approval;
mod event_handlers;
mod events;
mod explanations;
mod extension_calls;
mod extensions;
mod guidance;
mod handlers;
mod identical_requests;
mod justifications;
mod limits;
mod notices;
mod numbers;
mod operator_actions;
mod overrides;
mod policies;
mod record;
mod reloads;
mod reports;
mod requests;
mod resolutions;
mod restarts;
mod secrets;
mod session_limits;
mod several_atlases;
mod spans;

const ACME: &str = include_str!("../../assets/atlas/acme-support.yaml");

/// An engine with a manual clock, and all its effects and replies.
struct EngineBench {
    engine: Engine,
    now: Timestamp,
    reply_count: u64,
    effects: Vec<Effect>,
    replies: BTreeMap<ReplyId, Reply>,
}

impl EngineBench {
    fn new(atlases: &[&str]) -> Self {
        Self::with(Engine::new(
            atlases_of(atlases),
            Box::new(CountedIds::default()),
        ))
    }

    fn acme() -> Self {
        Self::new(&[ACME])
    }

    fn with(engine: Engine) -> Self {
        Self {
            engine,
            now: "2026-01-01T00:00:00.000000Z".parse().unwrap(),
            reply_count: 0,
            effects: Vec::new(),
            replies: BTreeMap::new(),
        }
    }

    fn handle(&mut self, command: EngineCommand) {
        for effect in self.engine.handle(command, self.now) {
            if let Effect::Reply(reply_id, reply) = &effect {
                let before = self.replies.insert(*reply_id, reply.clone());
                assert_eq!(before, None, "{reply_id:?} was answered twice");
            }
            self.effects.push(effect);
        }
    }

    fn reply_id(&mut self, command: impl FnOnce(ReplyId) -> EngineCommand) -> ReplyId {
        self.reply_count += 1;
        let reply_id = ReplyId(self.reply_count);
        self.handle(command(reply_id));
        reply_id
    }

    fn start(&mut self, session: &str) -> ReplyId {
        let start = StartSession {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            agent: "bot".to_owned(),
            agent_version: None,
            intent: None,
            owner: None,
        };
        self.reply_id(|reply_id| EngineCommand::StartSession(reply_id, start))
    }

    fn end(&mut self, session: &str) -> ReplyId {
        let end = EndSession {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            status: FinalStatus::Completed,
            summary: None,
        };
        self.reply_id(|reply_id| EngineCommand::EndSession(reply_id, end))
    }

    fn request(&mut self, session: &str, action: &str, params: Value) -> ReplyId {
        let request = ActionRequest {
            delivery: crate::engine::command::DeliveryTime::Now,
            on_disconnect: crate::engine::command::OnDisconnect::Kept,
            session: session.parse().unwrap(),
            action: action.to_owned(),
            params,
            deadline: None,
            resolution: None,
            call: None,
        };
        self.reply_id(|reply_id| EngineCommand::RequestAction(reply_id, request))
    }

    /// Requests an action of `s-1` with the agent's own identifier of the call.
    fn call(&mut self, call: &str, action: &str, params: Value) -> ReplyId {
        let request = ActionRequest {
            delivery: crate::engine::command::DeliveryTime::Now,
            on_disconnect: crate::engine::command::OnDisconnect::Kept,
            session: "s-1".parse().unwrap(),
            action: action.to_owned(),
            params,
            deadline: None,
            resolution: None,
            call: Some(call.to_owned()),
        };
        self.reply_id(|reply_id| EngineCommand::RequestAction(reply_id, request))
    }

    /// Answers every question of a held request with a valid answer.
    fn pass(&mut self, gate: &str) -> ReplyId {
        let held = self.held(gate);
        let answers = held.gates.iter().map(|gate| {
            let questions = gate.questions.iter();
            questions
                .map(|question| (question.id().to_owned(), good_answer(question)))
                .collect()
        });
        let ruling = Ruling::Pass {
            answers: answers.collect(),
        };
        self.decide(&held, ruling)
    }

    fn answer(&mut self, gate: &str, answers: Value) -> ReplyId {
        let held = self.held(gate);
        let answers = serde_json::from_value(answers).unwrap();
        self.decide(&held, Ruling::Pass { answers })
    }

    fn refuse(&mut self, gate: &str, reason: &str) -> ReplyId {
        let held = self.held(gate);
        let reason = reason.to_owned();
        self.decide(&held, Ruling::Deny { reason })
    }

    fn decide(&mut self, held: &Held, ruling: Ruling) -> ReplyId {
        let decide = DecisionRequest {
            gate: held.id.clone(),
            operator: "op-1".to_owned(),
            method: "console".to_owned(),
            request_hash: held.request_hash,
            atlas_hash: held.atlas_hash,
            justification: None,
            ruling,
        };
        self.reply_id(|reply_id| EngineCommand::Decide(reply_id, decide))
    }

    fn held(&self, gate: &str) -> Held {
        let gate: HeldRequestId = gate.parse().unwrap();
        (*self
            .engine
            .state
            .held
            .get(&gate)
            .expect("it is not held")
            .held)
            .clone()
    }

    fn held_ids(&self) -> Vec<String> {
        self.engine
            .held()
            .iter()
            .map(|held| held.id.to_string())
            .collect()
    }

    fn advance(&mut self, seconds: u64) {
        self.now = self.now.plus(Duration::from_secs(seconds));
    }

    /// Wakes the engine for every held request, as deadlines would.
    fn wake(&mut self) {
        for gate in self.held_ids() {
            self.handle(EngineCommand::DeadlineReached(gate.parse().unwrap()));
        }
    }

    fn reply(&self, reply_id: ReplyId) -> &Reply {
        self.replies
            .get(&reply_id)
            .unwrap_or_else(|| panic!("{reply_id:?} has no reply yet"))
    }

    fn waits(&self, reply_id: ReplyId) -> bool {
        !self.replies.contains_key(&reply_id)
    }

    fn allowed(&self, reply_id: ReplyId) -> &RunPermission {
        match self.reply(reply_id) {
            Reply::Agent(AgentReply::Allowed(allowed)) => allowed,
            other => panic!("not allowed: {other:?}"),
        }
    }

    fn denied(&self, reply_id: ReplyId) -> &DenialReply {
        match self.reply(reply_id) {
            Reply::Agent(AgentReply::Denied(denied)) => denied,
            other => panic!("not denied: {other:?}"),
        }
    }

    fn outcome(&self, reply_id: ReplyId) -> HeldOutcome {
        match self.reply(reply_id) {
            Reply::Operator(OperatorReply::Decided(decided)) => decided.outcome,
            other => panic!("not decided: {other:?}"),
        }
    }

    /// Returns the extension calls, in the order they were made.
    fn calls(&self) -> Vec<crate::engine::extensions::ExtensionCall> {
        let calls = self.effects.iter().filter_map(|effect| match effect {
            Effect::CallExtension(call) => Some(call.clone()),
            _ => None,
        });
        calls.collect()
    }

    /// Answers the last extension call.
    fn returns(&mut self, answer: Value) {
        self.returned(Ok(answer), Duration::ZERO);
    }

    fn returned(&mut self, outcome: Result<Value, String>, took: Duration) {
        let call = self.calls().pop().expect("nobody was asked");
        let returned = crate::engine::extensions::CallResult {
            outcome,
            duration: took,
        };
        self.handle(EngineCommand::ExtensionReturned(call.id, returned));
    }

    /// Returns the types of the events recorded so far.
    fn records(&self) -> Vec<&str> {
        self.drafts()
            .map(|draft| draft.payload.event_type())
            .collect()
    }

    /// Returns the payloads of the recorded events of a type, without `judged_under`.
    fn payloads(&self, event_type: &str) -> Vec<Value> {
        self.drafts()
            .filter(|draft| draft.payload.event_type() == event_type)
            .map(|draft| {
                let mut fields = draft.payload.fields();
                fields.remove("judged_under");
                fields.into()
            })
            .collect()
    }

    fn drafts(&self) -> impl Iterator<Item = &crate::trace::event::Draft> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Record(draft) => Some(draft),
            _ => None,
        })
    }

    /// Returns the persisted state, as a store would have it.
    fn persisted_state(&self) -> Vec<StateChange> {
        let mut kept = BTreeMap::new();
        for effect in &self.effects {
            if let Effect::Persist(change) = effect {
                let key = (change.kind, change.key.clone());
                match change.body {
                    Some(_) => drop(kept.insert(key, change.clone())),
                    None => drop(kept.remove(&key)),
                }
            }
        }
        kept.into_values().collect()
    }

    /// Creates a bench with an admitted ACME session.
    fn in_acme(session: &str) -> Self {
        let mut bench = Self::acme();
        bench.start(session);
        bench.pass("c-1");
        bench
    }
}

fn atlases_of(texts: &[&str]) -> Vec<Atlas> {
    let load = |text: &&str| match load_str("test.yaml", text) {
        Ok(loaded) => loaded.atlas,
        Err(error) => panic!(
            "{}",
            error.report(crate::atlas::diagnostic::ReportColour::None)
        ),
    };
    texts.iter().map(load).collect()
}

fn good_answer(question: &crate::atlas::model::CompiledQuestion) -> Value {
    use crate::atlas::document::ResponseType;
    match question.response_type() {
        ResponseType::Boolean => json!(true),
        ResponseType::Acknowledgment => json!("understood"),
        _ => json!("it was confirmed by the customer in writing"),
    }
}

/// Builds an Atlas with this body below its header.
fn atlas(body: &str) -> String {
    format!("atlas_version: \"1.0\"\natlas_id: test\nversion: \"1\"\nname: Test\n{body}")
}
