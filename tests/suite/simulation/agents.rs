//! Steps of the agents in the simulation.

use std::time::Duration;

use cra_core::base::clock::Clock;
use cra_core::engine::command::{
    ActionRequest, AgentAnswer, ContextRequest, EndSession, FinalStatus, InputReport, InputSource,
    ResolveRequest, StartSession,
};
use serde_json::json;

use super::{ACTIONS, PendingInput, PendingRequest, PendingStart, RequestKey, World, request_key};
use crate::support::request;

impl World {
    /// Begins a session, or takes one up again.
    pub(super) fn start(&mut self) {
        let again = self.dice.roll(4) == 0;
        let known = self.dice.pick(&self.sessions).filter(|_| again).cloned();
        let new = known.is_none();
        let session = known.unwrap_or_else(|| {
            self.started += 1;
            let session = format!("s-{}", self.started);
            self.sessions.push(session.clone());
            session
        });
        let start = StartSession {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            agent: "bot".to_owned(),
            agent_version: None,
            intent: None,
            owner: None,
        };
        let agents = self.bench.runtime.agent_handle();
        let task = tokio::spawn(async move { agents.start_session(start).await });
        self.starting.push(PendingStart { session, new, task });
    }

    fn any_request(&mut self) -> Option<(RequestKey, ActionRequest)> {
        let (action, _) = *self.dice.pick(&ACTIONS)?;
        self.request_for(action)
    }

    fn request_for(&mut self, action: &str) -> Option<(RequestKey, ActionRequest)> {
        let session = self.dice.pick(&self.sessions).cloned()?;
        let params = json!({"ticket_id": self.dice.roll(3).to_string()});
        let request_key = (session.clone(), action.to_owned(), params.to_string());
        let mut request = request(&session, action, params);
        // Some agents do not wait for long.
        if self.dice.roll(5) == 0 {
            let patience = Duration::from_secs(20 + self.dice.roll(400));
            request.deadline = Some(self.clock.now().plus(patience));
        }
        Some((request_key, request))
    }

    pub(super) fn ask(&mut self) {
        if let Some((request_key, request)) = self.any_request() {
            self.send(request_key, request);
        }
    }

    /// Asks for the same gated action twice at once.
    pub(super) fn ask_twice(&mut self) {
        let gated: Vec<_> = ACTIONS.iter().filter(|(_, gated)| *gated).collect();
        let (action, _) = self.dice.pick(&gated).unwrap();
        if let Some((request_key, request)) = self.request_for(action) {
            self.send(request_key.clone(), request.clone());
            self.send(request_key, request);
        }
    }

    /// Asks for exactly this.
    pub(super) fn ask_for(&mut self, request_key: RequestKey) {
        let params = serde_json::from_str(&request_key.2).unwrap();
        let request = request(&request_key.0, &request_key.1, params);
        self.send(request_key, request);
    }

    fn send(&mut self, request_key: RequestKey, request: ActionRequest) {
        let agents = self.bench.runtime.agent_handle();
        self.asking.push(PendingRequest {
            request_key,
            opening: self.opening,
            task: tokio::spawn(async move { agents.request_action(request).await }),
        });
    }

    /// Asks what may be done, and then for something with that answer in hand.
    pub(super) fn rely(&mut self) {
        let Some((request_key, mut request)) = self.any_request() else {
            return;
        };
        let agents = self.bench.runtime.agent_handle();
        let resolve = ResolveRequest {
            session: request.session.clone(),
            input: None,
            actions: Vec::new(),
        };
        let relied = async move {
            request.resolution = Some(agents.resolve(resolve).await?.id);
            agents.request_action(request).await
        };
        self.asking.push(PendingRequest {
            request_key,
            opening: self.opening,
            task: tokio::spawn(relied),
        });
    }

    /// An agent answers what it was asked itself, well or not.
    pub(super) fn answer_own(&mut self) {
        let Some(questions) = self.own.pop() else {
            return;
        };
        let snapshot = self.bench.snapshot();
        let Some(held) = snapshot.held.iter().find(|held| held.id == questions.gate) else {
            return;
        };
        let output = *self
            .dice
            .pick(&["understood", "understood", "no", ""])
            .unwrap();
        let answers = questions.gates.iter().map(|gate| {
            let questions = gate.questions.iter();
            let answers = questions.map(|question| (question.id().to_owned(), json!(output)));
            (gate.checkpoint_id.clone(), answers.collect())
        });
        let answer = AgentAnswer {
            session: held.session.clone(),
            gate: held.id.clone(),
            answers: answers.collect(),
            release: cra_core::engine::command::ReleaseTo::default(),
        };
        let agents = self.bench.runtime.agent_handle();
        let task = tokio::spawn(async move { agents.answer(answer).await });
        self.answering.push((request_key(held), task));
        // It may well answer again.
        self.own.insert(0, questions);
    }

    pub(super) fn say(&mut self) {
        let Some(session) = self.dice.pick(&self.sessions).cloned() else {
            return;
        };
        let words = *self
            .dice
            .pick(&["hello", "hello", "a refund please"])
            .unwrap();
        let text = format!("{words} {}", self.dice.roll(u64::MAX));
        let input = InputReport {
            session: session.parse().unwrap(),
            text: text.clone(),
            source: InputSource::User,
            reaches_asked_agent: false,
            waits_for_start: false,
            deadline: None,
        };
        let agents = self.bench.runtime.agent_handle();
        let task = tokio::spawn(async move { agents.input(input).await });
        self.saying.push(PendingInput {
            session,
            text: Some(text),
            task,
        });
    }

    /// Asks for context by its name.
    pub(super) fn want(&mut self) {
        let Some(session) = self.dice.pick(&self.sessions).cloned() else {
            return;
        };
        let hint = *self.dice.pick(&["numbers", "policy-summary"]).unwrap();
        let wanted = ContextRequest {
            session: session.parse().unwrap(),
            query: None,
            hints: vec![hint.to_owned()],
            checkpoint: None,
        };
        let agents = self.bench.runtime.agent_handle();
        let task = tokio::spawn(async move { agents.request_context(wanted).await });
        self.saying.push(PendingInput {
            session,
            text: None,
            task,
        });
    }

    pub(super) fn leave(&mut self) {
        let sides = self.asking.len() as u64;
        if sides > 0 {
            let index = usize::try_from(self.dice.roll(sides)).unwrap();
            self.asking.remove(index).task.abort();
        }
    }

    pub(super) fn end(&mut self) {
        let Some(session) = self.dice.pick(&self.sessions).cloned() else {
            return;
        };
        self.sessions.retain(|known| *known != session);
        let end = EndSession {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            status: FinalStatus::Completed,
            summary: None,
        };
        let agents = self.bench.runtime.agent_handle();
        tokio::spawn(async move { agents.end_session(end).await });
    }
}
