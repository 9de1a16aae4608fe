//! What the agents of a simulated world do.

use cra_core::engine::command::{
    ActionRequest, Answer, EndSession, FinalStatus, Input, InputSource, Resolve,
};
use serde_json::json;

use super::{ACTIONS, Asked, World, asked};
use crate::support::request;

impl World {
    pub(super) async fn start(&mut self) {
        self.started += 1;
        let session = format!("s-{}", self.started);
        self.bench.begin(&session).await;
        self.sessions.push(session);
    }

    fn any_request(&mut self) -> Option<(Asked, ActionRequest)> {
        let session = self.dice.pick(&self.sessions).cloned()?;
        let (action, _) = *self.dice.pick(&ACTIONS)?;
        let params = json!({"ticket_id": self.dice.roll(3).to_string()});
        let asked = (session.clone(), action.to_owned(), params.to_string());
        Some((asked, request(&session, action, params)))
    }

    pub(super) fn ask(&mut self) {
        let Some((asked, request)) = self.any_request() else {
            return;
        };
        let agents = self.bench.runtime.agents();
        self.asking.push((
            asked,
            tokio::spawn(async move { agents.request_action(request).await }),
        ));
    }

    /// Asks what may be done, and then for something with that answer in hand.
    pub(super) fn rely(&mut self) {
        let Some((asked, mut request)) = self.any_request() else {
            return;
        };
        let agents = self.bench.runtime.agents();
        let resolve = Resolve {
            session: request.session.clone(),
            input: None,
            actions: Vec::new(),
        };
        let relied = async move {
            request.resolution = Some(agents.resolve(resolve).await?.id);
            agents.request_action(request).await
        };
        self.asking.push((asked, tokio::spawn(relied)));
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
        let said = *self
            .dice
            .pick(&["understood", "understood", "no", ""])
            .unwrap();
        let answers = questions.gates.iter().map(|gate| {
            let questions = gate.questions.iter();
            let answers = questions.map(|it| (it.id().to_owned(), json!(said)));
            (gate.checkpoint_id.clone(), answers.collect())
        });
        let answer = Answer {
            session: held.session.clone(),
            gate: held.id.clone(),
            answers: answers.collect(),
        };
        let agents = self.bench.runtime.agents();
        let task = tokio::spawn(async move { agents.answer(answer).await });
        self.answering.push((asked(held), task));
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
        let input = Input {
            session: session.parse().unwrap(),
            text: text.clone(),
            source: InputSource::User,
        };
        let agents = self.bench.runtime.agents();
        let task = tokio::spawn(async move { agents.input(input).await });
        self.saying.push((text, task));
    }

    pub(super) fn leave(&mut self) {
        let sides = self.asking.len() as u64;
        if sides > 0 {
            let index = usize::try_from(self.dice.roll(sides)).unwrap();
            self.asking.remove(index).1.abort();
        }
    }

    pub(super) fn end(&mut self) {
        let Some(session) = self.dice.pick(&self.sessions).cloned() else {
            return;
        };
        self.sessions.retain(|known| *known != session);
        let end = EndSession {
            session: session.parse().unwrap(),
            status: FinalStatus::Completed,
            summary: None,
        };
        let agents = self.bench.runtime.agents();
        tokio::spawn(async move { agents.end_session(end).await });
    }
}
