//! Reports of agents, and policy questions of handlers.

use super::{ScenarioEngine, StepFault, StepOutcome};
use crate::cli::run::scenario::{ErrorRecovery, PolicyQuestion};
use crate::engine::command::{
    AgentReply, AgentReport, EngineCommand, ErrorReport, Recovery, Reply,
};
use crate::engine::consultation::Consultation;

impl ScenarioEngine {
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
}
