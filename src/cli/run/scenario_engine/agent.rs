//! Agent steps other than action requests: answers to questions, and requests for a resolution.

use super::{OpenRequest, ScenarioEngine, StepFault, StepOutcome};
use crate::base::id::SessionId;
use crate::cli::run::scenario::AgentAnswers;
use crate::engine::command::{AgentAnswer, EngineCommand, ReleaseTo, ReplyId, ResolveRequest};
use crate::engine::held::{Held, HeldSubject};

/// Word by which a request relies on the last resolution of its session.
const LAST: &str = "last";

impl ScenarioEngine {
    /// Plays an agent's answer at a gate.
    pub(super) fn answer(
        &mut self,
        session: &SessionId,
        gate: &str,
        answers: &AgentAnswers,
        noted: &mut StepOutcome,
    ) {
        let Some(held) = self.named(gate, noted) else {
            return;
        };
        let action = match &held.subject {
            HeldSubject::Action(call) => Some(call.action.clone()),
            HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
        };
        let request = OpenRequest {
            session: session.clone(),
            action,
        };
        self.open_requests.insert(ReplyId(self.asks + 1), request);
        let answer = AgentAnswer {
            session: session.clone(),
            gate: held.id.clone(),
            answers: answers.clone(),
            release: ReleaseTo::default(),
        };
        self.run_request(|reply_id| EngineCommand::Answer(reply_id, answer), noted);
        if noted.reply.is_none() {
            noted.held = self.open_gates(&held);
        }
    }

    /// Gates of a held request that have no answer yet.
    fn open_gates(&self, held: &Held) -> Vec<String> {
        let now = self.engine.held();
        let Some(now) = now.iter().find(|now| now.id == held.id) else {
            return Vec::new();
        };
        let gates = now.gates.iter().enumerate();
        let open = gates.filter(|(index, _)| !now.answered.contains_key(index));
        open.map(|(_, gate)| gate.name()).collect()
    }

    /// Plays an agent's request for a resolution.
    pub(super) fn resolve(&mut self, resolve: &ResolveRequest, noted: &mut StepOutcome) {
        self.play_call(&resolve.session, noted, |reply_id| {
            EngineCommand::Resolve(reply_id, resolve.clone())
        });
    }

    /// Resolution that a request means: the last of its session, or one by its identifier.
    pub(super) fn resolution(
        &self,
        session: &SessionId,
        named: Option<&str>,
        noted: &mut StepOutcome,
    ) -> Option<String> {
        let named = named?;
        if named != LAST {
            return Some(named.to_owned());
        }
        let last = self.resolutions.get(session);
        if last.is_none() {
            noted.fault = Some(StepFault {
                what: "no such resolution",
                wanted: format!("a resolution of {session}"),
                actual: "the session has no resolution".to_owned(),
            });
        }
        // A request that should rely on a missing resolution must not continue without one.
        last.cloned().or_else(|| Some(LAST.to_owned()))
    }
}
