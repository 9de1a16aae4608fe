//! Reports of agents, and policy questions of handlers.

use super::{Misfit, Noted, Stage};
use crate::cli::run::scenario::{PolicyQuestion, Recovered};
use crate::engine::command::{Command, ErrorReport, Recovery, Reply, Report};
use crate::engine::consult::Consult;

impl Stage {
    /// Plays an error that an agent reports, and keeps its event for a later recovery.
    pub(super) fn report_error(&mut self, report: &ErrorReport, noted: &mut Noted) {
        self.moment(&report.session, noted, |ask| {
            Command::ReportError(ask, report.clone())
        });
        if let Some(Reply::Accepted(accepted)) = &noted.reply
            && let Some(error) = &accepted.error
        {
            self.errors.insert(report.session.clone(), error.clone());
        }
    }

    /// Plays the recovery from the last error of a session.
    pub(super) fn recover(&mut self, recovered: &Recovered, noted: &mut Noted) {
        let Some(error) = self.errors.get(&recovered.session).cloned() else {
            noted.misfit = Some(Misfit {
                what: "no such error",
                wanted: format!("an error of {}", recovered.session),
                actual: "none was reported".to_owned(),
            });
            return;
        };
        let recovery = Recovery {
            session: recovered.session.clone(),
            error,
            method: recovered.method.clone(),
            success: recovered.success,
        };
        self.ask(
            |ask| Command::Report(ask, Report::Recovery(recovery)),
            noted,
        );
    }

    /// Asks for the policy answer about an action, as handlers do. Nothing runs and nothing is recorded.
    pub(super) fn ask_policy(&mut self, asked: &PolicyQuestion, noted: &mut Noted) {
        let consult = Consult::Policy {
            session: asked.session.clone(),
            action: asked.action.clone(),
            params: asked.params.clone(),
        };
        self.ask(|ask| Command::Consult(ask, consult), noted);
    }
}
