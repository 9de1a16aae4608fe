//! Steps that need no request of an action: decisions, input, errors, context, results, reports and
//! disconnects.

use super::answers::{answers_for, stray_answer};
use super::{OpenRequest, ScenarioEngine, StepFault, StepOutcome};
use crate::base::id::SessionId;
use crate::cli::run::scenario::{ApprovalStep, DenialStep, ErrorRecovery, PolicyQuestion};
use crate::engine::command::{
    ActionCompletion, ActionError, AgentReply, AgentReport, DecisionRequest, EngineCommand,
    ErrorReport, Recovery, Reply, ReplyId, Ruling,
};
use crate::engine::consultation::Consultation;
use crate::engine::held::Held;

/// Default operator of a decision.
const OPERATOR: &str = "operator";

impl ScenarioEngine {
    /// Approves a held request, with answers.
    pub(super) fn pass(&mut self, pass: &ApprovalStep, noted: &mut StepOutcome) {
        let Some(held) = self.named(&pass.gate, noted) else {
            return;
        };
        noted.fault = stray_answer(&held, &pass.answers);
        let answers = answers_for(&held, &pass.answers);
        let decide = DecisionRequest {
            justification: pass.justification.clone(),
            ..decision(&held, pass.operator.as_ref(), Ruling::Pass { answers })
        };
        self.run_request(|reply_id| EngineCommand::Decide(reply_id, decide), noted);
    }

    /// Denies a held request, with a reason.
    pub(super) fn deny(&mut self, deny: &DenialStep, noted: &mut StepOutcome) {
        let Some(held) = self.named(&deny.gate, noted) else {
            return;
        };
        let reason = deny.reason.clone();
        let decide = decision(&held, deny.operator.as_ref(), Ruling::Deny { reason });
        self.run_request(|reply_id| EngineCommand::Decide(reply_id, decide), noted);
    }

    /// Plays an error that an agent reports, and keeps its event for a later recovery.
    pub(super) fn report_error(&mut self, report: &ErrorReport, noted: &mut StepOutcome) {
        self.play_call(&report.session, noted, |reply_id| {
            EngineCommand::ReportError(reply_id, report.clone())
        });
        if let Some(Reply::Agent(AgentReply::Accepted(accepted))) = &noted.reply
            && let Some(error) = &accepted.error
        {
            self.errors.insert(report.session.clone(), error.clone());
        }
    }

    /// Plays the recovery from the last error of a session.
    pub(super) fn recover(&mut self, recovered: &ErrorRecovery, noted: &mut StepOutcome) {
        let Some(error) = self.errors.get(&recovered.session).cloned() else {
            noted.fault = Some(StepFault {
                what: "no such error",
                wanted: format!("an error of {}", recovered.session),
                actual: "no error was reported".to_owned(),
            });
            return;
        };
        let recovery = Recovery {
            session: recovered.session.clone(),
            error,
            method: recovered.method.clone(),
            success: recovered.success,
        };
        self.run_request(
            |reply_id| EngineCommand::Report(reply_id, AgentReport::Recovery(recovery)),
            noted,
        );
    }

    /// Asks for the policy answer about an action, as handlers do. Nothing runs and nothing is recorded.
    pub(super) fn ask_policy(&mut self, asked: &PolicyQuestion, noted: &mut StepOutcome) {
        let consult = Consultation::Policy {
            session: asked.session.clone(),
            action: asked.action.clone(),
            params: asked.params.clone(),
        };
        self.run_request(|reply_id| EngineCommand::Consult(reply_id, consult), noted);
    }

    /// Plays a call of a session that is not about an action.
    pub(super) fn play_call(
        &mut self,
        session: &SessionId,
        noted: &mut StepOutcome,
        command: impl FnOnce(ReplyId) -> EngineCommand,
    ) {
        let request = OpenRequest {
            session: session.clone(),
            action: None,
        };
        self.open_requests.insert(ReplyId(self.asks + 1), request);
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
        let meant = |request: &OpenRequest| {
            request.session == *session && (action.is_none() || request.action.as_deref() == action)
        };
        let waiting = self
            .open_requests
            .iter()
            .filter(|(_, request)| meant(request));
        let waiting: Vec<ReplyId> = waiting.map(|(reply_id, _)| *reply_id).collect();
        if waiting.is_empty() {
            let requests = self.open_requests.values();
            let names = requests.map(|request| {
                request
                    .action
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

fn decision(held: &Held, operator: Option<&String>, ruling: Ruling) -> DecisionRequest {
    DecisionRequest {
        gate: held.id.clone(),
        operator: operator.map_or(OPERATOR, String::as_str).to_owned(),
        method: "scenario".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling,
    }
}
