//! Evaluation of commands for observers: the checkpoints that a command evaluates, without executing it.

use std::collections::{BTreeMap, BTreeSet};

use super::account::waits;
use super::input::{self, condition_fails, fired_evidence, skipped};
use super::{Account, CheckpointEvidence, Verdict};
use crate::atlas::compiled::{Checkpoint, Trigger};
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::engine::Engine;
use crate::engine::command::Command;
use crate::engine::customs::Customs;
use crate::engine::evaluate::{self, Occasion};
use crate::engine::held::{ActionCall, Moment};
use crate::engine::session::Session;
use crate::engine::suspend::Answers;
use crate::engine::usage::LimitUse;

/// Replaces the input in an explanation by its size. Only the hash of input is kept, also for observers.
fn without_input(mut account: Account, text: &str) -> Account {
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
    pub fn looked(
        &self,
        command: &Command,
        now: Timestamp,
    ) -> Option<(SessionId, String, Account)> {
        if let Command::StartSession(_, start) = command {
            if self.state.sessions.contains_key(&start.session) {
                return None;
            }
            let session = Session::imagined(
                start.session.clone(),
                start.agent.clone(),
                start.intent.clone(),
                self.atlas_hash,
                now,
            );
            let account = self.account_of_start(&session, now);
            return Some((session.id, session.agent, account));
        }
        let session = self.state.sessions.get(command.session()?)?;
        let account = match command {
            Command::RequestAction(_, request) => {
                let call = ActionCall::of(&self.atlases, &request.action, &request.params);
                Account {
                    waits: waits(session),
                    ..Account::of_action(self.evidence(session, &call, now))
                }
            }
            Command::Input(_, input) => without_input(
                self.account_of_input(session, &input.text, now),
                &input.text,
            ),
            Command::CompleteAction(_, completed) => {
                let running = session.running.get(&completed.execution)?;
                let subject = format!("after {}", running.action);
                let occasion = match &completed.result {
                    Ok(_) => Occasion::Done(&running.action),
                    Err(_) => Occasion::Failed(&running.action),
                };
                self.account_on(session, subject, occasion, now)
            }
            Command::ReportError(..) => {
                self.account_on(session, "error".to_owned(), Occasion::Error, now)
            }
            Command::RequestContext(_, request) => {
                let named = request.checkpoint.as_deref();
                let subject = format!("asked for {}", named.unwrap_or("context"));
                let occasion = named.map_or(Occasion::Context, Occasion::Named);
                self.account_on(session, subject, occasion, now)
            }
            Command::EndSession(..) => {
                self.account_on(session, "session end".to_owned(), Occasion::SessionEnd, now)
            }
            Command::StartSession(..)
            | Command::Report(..)
            | Command::AskerLeft(_)
            | Command::Decide(..)
            | Command::Operate(..)
            | Command::Note(..)
            | Command::RecordSound
            | Command::ClockMoved(_)
            | Command::Answer(..)
            | Command::Resolve(..)
            | Command::Consult(..)
            | Command::DeadlineReached(_)
            | Command::Returned(..) => return None,
        };
        Some((session.id.clone(), session.agent.clone(), account))
    }

    /// Returns the usage of every limit, by session.
    #[must_use]
    pub fn limits(&self, now: Timestamp) -> BTreeMap<SessionId, Vec<LimitUse>> {
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

    pub(super) fn customs<'s>(&'s self, answers: &'s Answers) -> Customs<'s> {
        Customs {
            extensions: &self.extensions,
            answers,
        }
    }

    fn account_on(
        &self,
        session: &Session,
        subject: String,
        occasion: Occasion<'_>,
        now: Timestamp,
    ) -> Account {
        let answers = Answers::default();
        let customs = self.customs(&answers);
        let found = input::occasion_evidence(&self.atlases, session, occasion, customs, now);
        Account::of_occasion(subject, found)
    }

    /// Explains the start of a session.
    pub(super) fn account_of_start(&self, session: &Session, now: Timestamp) -> Account {
        let owed = BTreeSet::new();
        let fired = evaluate::session_start(&self.atlases, (session, &self.extensions), &owed, now);
        let facts = evaluate::facts_of(session, Occasion::Beat, now);
        let unfired = |checkpoint: &Checkpoint| match &checkpoint.trigger {
            Trigger::SessionStart => condition_fails(),
            trigger => skipped(trigger),
        };
        let found = fired_evidence(&self.atlases, &fired, &facts, unfired);
        Account::of_occasion("session start".to_owned(), found)
    }

    /// Returns the checkpoints that a held event does not concern. Others cannot be explained again, because
    /// the input is not kept.
    pub(super) fn beside(&self, moment: &Moment) -> (Verdict, Vec<CheckpointEvidence>) {
        let mut found = Vec::new();
        for atlas in self.atlases.iter() {
            let others = atlas.checkpoints.iter();
            found.extend(others.map(|checkpoint| {
                let outcome = if checkpoint.kind == moment.kind {
                    super::CheckpointOutcome::Skipped {
                        why: "it did not fire; what it looked at is not kept".to_owned(),
                    }
                } else {
                    skipped(&checkpoint.trigger)
                };
                CheckpointEvidence::new(atlas, checkpoint, outcome, Vec::new())
            }));
        }
        (Verdict::Allowed, found)
    }
}
