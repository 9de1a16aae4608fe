//! Evaluation of commands for observers: the checkpoints that a command evaluates, without executing it.

use std::collections::{BTreeMap, BTreeSet};

use super::full_explanation::session_gates;
use super::input::{self, condition_fails, fired_evidence, skipped};
use super::{CheckpointEvidence, ExplainedVerdict, FullExplanation};
use crate::atlas::model::{Checkpoint, Trigger};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::engine::Engine;
use crate::engine::command::EngineCommand;
use crate::engine::evaluation::usage::SessionLimitUsage;
use crate::engine::evaluation::{self, TriggerEvent};
use crate::engine::extensions::custom_triggers::CustomTriggers;
use crate::engine::extensions::suspension::ExtensionAnswers;
use crate::engine::gates::held::{ActionCall, SessionEvent};
use crate::engine::sessions::session::Session;

/// Replaces the input in an explanation by its size. Only the hash of input is kept, also for observers.
fn without_input(mut account: FullExplanation, text: &str) -> FullExplanation {
    let size = format!("{} characters", text.chars().count());
    let evidence = account.checkpoints.iter_mut();
    let leaves = evidence.flat_map(|checkpoint| checkpoint.conditions.iter_mut());
    for leaf in leaves.filter(|leaf| leaf.path == "input") {
        leaf.actual = Some(size.clone().into());
    }
    account
}

impl Engine {
    /// Evaluates `command` without executing it. Returns the session, its agent and the explanation.
    ///
    /// `None` if the command evaluates no checkpoint, or the session does not exist.
    #[must_use]
    pub fn preview(
        &self,
        command: &EngineCommand,
        now: Timestamp,
    ) -> Option<(SessionId, String, FullExplanation)> {
        if let EngineCommand::StartSession(_, start) = command {
            if self.state.sessions.contains_key(&start.session) {
                return None;
            }
            let session = Session::hypothetical(
                start.session.clone(),
                start.agent.clone(),
                start.intent.clone(),
                self.atlas_hash,
                now,
            );
            let account = self.explain_start(&session, now);
            return Some((session.id, session.agent, account));
        }
        let session = self.state.sessions.get(command.session()?)?;
        let account = self.preview_in_session(command, session, now)?;
        Some((session.id.clone(), session.agent.clone(), account))
    }

    /// Evaluates a command of a live session.
    fn preview_in_session(
        &self,
        command: &EngineCommand,
        session: &Session,
        now: Timestamp,
    ) -> Option<FullExplanation> {
        let account = match command {
            EngineCommand::RequestAction(_, request) => {
                let call = ActionCall::of(&self.atlases, &request.action, &request.params);
                FullExplanation {
                    session_gates: session_gates(session),
                    ..FullExplanation::of_action(self.explain_case(session, &call, now))
                }
            }
            EngineCommand::Input(_, input) => {
                without_input(self.explain_input(session, &input.text, now), &input.text)
            }
            EngineCommand::CompleteAction(_, completed) => {
                let running = session.running.get(&completed.execution)?;
                let subject = format!("after {}", running.action);
                let occasion = match &completed.result {
                    Ok(_) => TriggerEvent::ActionSucceeded(&running.action),
                    Err(_) => TriggerEvent::ActionFailed(&running.action),
                };
                self.explain_event(session, subject, occasion, now)
            }
            EngineCommand::ReportError(..) => self.explain_event(
                session,
                "error".to_owned(),
                TriggerEvent::ErrorReported,
                now,
            ),
            EngineCommand::RequestContext(_, request) => {
                let named = request.checkpoint.as_deref();
                let subject = format!("asked for {}", named.unwrap_or("context"));
                let occasion = named.map_or(
                    TriggerEvent::ContextRequested,
                    TriggerEvent::CheckpointRequested,
                );
                self.explain_event(session, subject, occasion, now)
            }
            EngineCommand::EndSession(..) => self.explain_event(
                session,
                "session end".to_owned(),
                TriggerEvent::SessionEnd,
                now,
            ),
            EngineCommand::StartSession(..)
            | EngineCommand::Report(..)
            | EngineCommand::CallerDisconnected(_)
            | EngineCommand::Decide(..)
            | EngineCommand::Operate(..)
            | EngineCommand::RecordFinding(..)
            | EngineCommand::RecordIntact
            | EngineCommand::ClockMoved(_)
            | EngineCommand::Answer(..)
            | EngineCommand::Resolve(..)
            | EngineCommand::Consult(..)
            | EngineCommand::DeadlineReached(_)
            | EngineCommand::ExtensionReturned(..) => return None,
        };
        Some(account)
    }

    /// Returns the usage of every limit, by session.
    #[must_use]
    pub fn limit_usage(&self, now: Timestamp) -> BTreeMap<SessionId, Vec<SessionLimitUsage>> {
        let used = |session: &Session| {
            let of = self.atlases.iter().flat_map(|atlas| {
                let policies = atlas.policies.iter();
                policies
                    .filter_map(move |policy| self.state.usage.used(atlas, policy, session, now))
            });
            of.collect::<Vec<_>>()
        };
        let sessions = self.state.sessions.iter();
        let sessions = sessions.map(|(id, session)| (id.clone(), used(session)));
        sessions.collect()
    }

    pub(super) fn custom_triggers<'s>(
        &'s self,
        answers: &'s ExtensionAnswers,
    ) -> CustomTriggers<'s> {
        CustomTriggers {
            extensions: &self.extensions,
            answers,
        }
    }

    fn explain_event(
        &self,
        session: &Session,
        subject: String,
        occasion: TriggerEvent<'_>,
        now: Timestamp,
    ) -> FullExplanation {
        let answers = ExtensionAnswers::default();
        let customs = self.custom_triggers(&answers);
        let found = input::occasion_evidence(&self.atlases, session, occasion, customs, now);
        FullExplanation::of_occasion(subject, found)
    }

    /// Explains the start of a session.
    pub(super) fn explain_start(&self, session: &Session, now: Timestamp) -> FullExplanation {
        let owed = BTreeSet::new();
        let fired =
            evaluation::fired_at_start(&self.atlases, (session, &self.extensions), &owed, now);
        let facts = evaluation::facts_of(session, TriggerEvent::IntervalCheck, now);
        let unfired = |checkpoint: &Checkpoint| match &checkpoint.trigger {
            Trigger::SessionStart => condition_fails(),
            trigger => skipped(trigger),
        };
        let found = fired_evidence(&self.atlases, &fired, &facts, unfired);
        FullExplanation::of_occasion("session start".to_owned(), found)
    }

    /// Returns the checkpoints that a held event does not concern. Others cannot be explained again, because
    /// the input is not kept.
    pub(super) fn explain_held_event(
        &self,
        moment: &SessionEvent,
    ) -> (ExplainedVerdict, Vec<CheckpointEvidence>) {
        let mut found = Vec::new();
        for atlas in self.atlases.iter() {
            let others = atlas.checkpoints.iter();
            found.extend(others.map(|checkpoint| {
                let outcome = if checkpoint.kind == moment.kind {
                    super::CheckpointOutcome::Skipped {
                        why: "did not fire; its input is not stored".to_owned(),
                    }
                } else {
                    skipped(&checkpoint.trigger)
                };
                CheckpointEvidence::new(atlas, checkpoint, outcome, Vec::new())
            }));
        }
        (ExplainedVerdict::Allowed, found)
    }
}
