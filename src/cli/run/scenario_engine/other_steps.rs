//! Steps other than requests and decisions: input, errors, context, results, and disconnects.

use super::{OpenRequest, ScenarioEngine, StepFault, StepOutcome};
use crate::base::id::SessionId;
use crate::engine::command::{ActionCompletion, ActionError, AgentReport, EngineCommand, ReplyId};

impl ScenarioEngine {
    /// Plays a call of a session that is not about an action.
    pub(super) fn play_call(
        &mut self,
        session: &SessionId,
        noted: &mut StepOutcome,
        command: impl FnOnce(ReplyId) -> EngineCommand,
    ) {
        let wish = OpenRequest {
            session: session.clone(),
            action: None,
        };
        self.open_requests.insert(ReplyId(self.asks + 1), wish);
        self.run_request(command, noted);
    }

    /// Plays a report of an agent that is only recorded.
    pub(super) fn report(&mut self, report: &AgentReport, noted: &mut StepOutcome) {
        self.run_request(
            |reply_id| EngineCommand::Report(reply_id, report.clone()),
            noted,
        );
    }

    /// Plays the result of the oldest run of an action.
    pub(super) fn complete(
        &mut self,
        session: &SessionId,
        action: &str,
        result: &Result<String, ActionError>,
        noted: &mut StepOutcome,
    ) {
        let mut runs = self.runs.iter();
        let Some(place) = runs.position(|run| run.session == *session && run.action == action)
        else {
            let running = self.runs.iter().filter(|run| run.session == *session);
            let running: Vec<_> = running.map(|run| run.action.as_str()).collect();
            noted.fault = Some(StepFault {
                what: "no such run",
                wanted: format!("a run of {action}"),
                actual: format!("running [{}]", running.join(", ")),
            });
            return;
        };
        let run = self.runs.remove(place);
        let completed = ActionCompletion {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: run.session,
            execution: run.execution,
            result: result.clone(),
        };
        self.run_request(
            |reply_id| EngineCommand::CompleteAction(reply_id, completed),
            noted,
        );
    }

    /// Disconnects the waiting requesters of a session: for one action, or for all.
    pub(super) fn leave(
        &mut self,
        session: &SessionId,
        action: Option<&str>,
        noted: &mut StepOutcome,
    ) {
        let meant = |wish: &OpenRequest| {
            wish.session == *session && (action.is_none() || wish.action.as_deref() == action)
        };
        let waiting = self.open_requests.iter().filter(|(_, wish)| meant(wish));
        let waiting: Vec<ReplyId> = waiting.map(|(reply_id, _)| *reply_id).collect();
        if waiting.is_empty() {
            let wishes = self.open_requests.values();
            let names = wishes.map(|wish| {
                wish.action
                    .as_deref()
                    .unwrap_or("a request without an action")
            });
            let names: Vec<_> = names.collect();
            noted.fault = Some(StepFault {
                what: "no waiting agent",
                wanted: format!("an agent that waits for {}", action.unwrap_or("anything")),
                actual: format!("waiting for [{}]", names.join(", ")),
            });
        }
        for reply_id in waiting {
            self.open_requests.remove(&reply_id);
            self.run_command(EngineCommand::CallerDisconnected(reply_id), None, noted);
        }
    }
}
