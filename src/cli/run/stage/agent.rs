//! Agent steps other than action requests: answers to questions, and requests for a resolution.

use super::{Misfit, Noted, Stage, Wish};
use crate::base::id::SessionId;
use crate::cli::run::scenario::AgentAnswers;
use crate::engine::command::{Answer, AskId, Command, ReleaseTo, Resolve};
use crate::engine::held::{Held, Subject};

/// Word by which a request relies on the last resolution of its session.
const LAST: &str = "last";

impl Stage {
    /// Plays an agent's answer at a gate.
    pub(super) fn answer(
        &mut self,
        session: &SessionId,
        gate: &str,
        answers: &AgentAnswers,
        noted: &mut Noted,
    ) {
        let Some(held) = self.named(gate, noted) else {
            return;
        };
        let action = match &held.subject {
            Subject::Action(call) => Some(call.action.clone()),
            Subject::SessionStart | Subject::Moment(_) => None,
        };
        let wish = Wish {
            session: session.clone(),
            action,
        };
        self.wishes.insert(AskId(self.asks + 1), wish);
        let answer = Answer {
            session: session.clone(),
            gate: held.id.clone(),
            answers: answers.clone(),
            release: ReleaseTo::default(),
        };
        self.ask(|ask| Command::Answer(ask, answer), noted);
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
    pub(super) fn resolve(&mut self, resolve: &Resolve, noted: &mut Noted) {
        self.moment(&resolve.session, noted, |ask| {
            Command::Resolve(ask, resolve.clone())
        });
    }

    /// Resolution that a request means: the last of its session, or one by its identifier.
    pub(super) fn resolution(
        &self,
        session: &SessionId,
        named: Option<&str>,
        noted: &mut Noted,
    ) -> Option<String> {
        let named = named?;
        if named != LAST {
            return Some(named.to_owned());
        }
        let last = self.resolutions.get(session);
        if last.is_none() {
            noted.misfit = Some(Misfit {
                what: "no such resolution",
                wanted: format!("a resolution of {session}"),
                actual: "it has not resolved".to_owned(),
            });
        }
        // A request that should rely on a missing resolution must not continue without one.
        last.cloned().or_else(|| Some(LAST.to_owned()))
    }
}
