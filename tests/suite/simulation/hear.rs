//! Replies to agents and the operator of a simulated world, and the checks of the one promise.

use std::collections::BTreeMap;

use cra_core::base::digest::Digest;
use cra_core::engine::command::{ActionCompletion, Injected, RunPermission};
use cra_core::engine::held::HeldSubject;
use cra_core::runtime::{AnswerReply, RequestReply};

use super::outside::Said;
use super::{ACTIONS, Asked, World, asked, faults, start_of};

impl World {
    /// Takes in what the operator and agents were told, the operator first: what was passed counts.
    pub(super) async fn hear(&mut self) {
        for (held, quality, task) in finished(&mut self.deciding, |one| one.2.is_finished()) {
            let reply = task.await.unwrap();
            self.hear_decision(&held, quality, &reply);
        }
        for one in finished(&mut self.starting, |one| one.task.is_finished()) {
            if let Ok(started) = one.task.await.unwrap() {
                // Taking a session up again may change nothing, and then needs no record.
                if one.new || started.given != Injected::default() {
                    self.hear_good_news("a session began");
                }
                self.check_given(&one.session, &started.given);
                self.told.sessions.insert(one.session);
            }
        }
        for (asked, task) in finished(&mut self.answering, |one| one.1.is_finished()) {
            match task.await.unwrap() {
                Ok(AnswerReply::Allowed(allowed)) => self.run(asked, allowed),
                Ok(AnswerReply::Accepted(accepted)) => {
                    self.hear_good_news("an answer was taken");
                    self.freed.insert(asked.0.clone());
                    self.check_given(&asked.0, &accepted.given);
                }
                Ok(AnswerReply::Asked(questions)) => self.own.push(questions),
                Ok(AnswerReply::Invalid(_)) | Err(_) => {}
            }
        }
        for saying in finished(&mut self.saying, |one| one.task.is_finished()) {
            if let Ok(accepted) = saying.task.await.unwrap() {
                self.hear_good_news("input was taken");
                self.check_given(&saying.session, &accepted.given);
                self.check_taken(saying.text);
            }
        }
        for one in finished(&mut self.asking, |one| one.task.is_finished()) {
            match one.task.await {
                Ok(Ok(RequestReply::Allowed(allowed))) => self.run(one.asked, allowed),
                Ok(Ok(RequestReply::Asked(questions))) => self.own.push(questions),
                Ok(Err(_)) => self.hear_denial(&one.asked.0),
                Err(_) => {}
            }
        }
        for (session, task) in finished(&mut self.completing, |one| one.1.is_finished()) {
            if task.await.unwrap().is_ok() {
                self.hear_good_news("a result was taken");
                *self.told.completed.entry(session).or_default() += 1;
            }
        }
    }

    /// An agent or the operator is told that something counts: then it is on record, so there is a record.
    pub(super) fn hear_good_news(&self, what: &str) {
        assert_eq!(self.closed, None, "{what} all the same");
    }

    fn hear_denial(&mut self, session: &str) {
        match self.closed {
            Some(faults::HANGS) => self.counts.denied_in_hang += 1,
            Some(_) => self.counts.denied_after_failure += 1,
            None if self.over.contains(session) => self.counts.denied_after_tampering += 1,
            None => {}
        }
    }

    fn check_taken(&mut self, text: Option<String>) {
        let Some(text) = text else { return };
        let calm = self.moody.said(|said| said.calm.get(&text) == Some(&true));
        let plain = calm && !text.contains("refund");
        let hash = Digest::of(&text).to_string();
        let let_in = self.let_in.contains(&hash);
        assert!(plain || let_in, "`{text}` was taken");
        self.told.inputs.insert(hash);
    }

    /// A session that a gate stands before is given nothing.
    fn check_given(&mut self, session: &str, given: &Injected) {
        let nothing = given.contexts.is_empty() && given.guidance.is_empty();
        let let_in = self.passed.contains_key(&start_of(session));
        assert!(
            let_in || nothing,
            "{session} was given {given:?} before it was let in"
        );
        let stopped = self.stopped.contains(session) && !self.freed.contains(session);
        assert!(
            !stopped || nothing,
            "{session} was given {given:?} behind a gate"
        );
        self.counts.kept_back += u64::from(!let_in);
        self.counts.given += u64::from(!nothing);
    }

    /// An agent runs what it was allowed to.
    fn run(&mut self, asked: Asked, allowed: RunPermission) {
        self.hear_good_news("an action was allowed");
        assert!(
            !self.over.contains(&asked.0),
            "{asked:?} ran, and its session is over"
        );
        let free = !self.stopped.contains(&asked.0) || self.freed.contains(&asked.0);
        assert!(free, "{asked:?} ran past a gate before its whole session");
        self.check_given(&asked.0, &allowed.given);
        let completed = ActionCompletion {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: asked.0.parse().unwrap(),
            execution: allowed.execution.clone(),
            result: Ok(String::new()),
        };
        let session = asked.0.clone();
        let runs = self.told.runs.entry(session.clone()).or_default();
        runs.push(allowed.execution);
        *self.allowed.entry(asked).or_default() += 1;
        // It fails where the session ended or the disk broke meanwhile. Some agents never say it.
        if self.dice.roll(4) > 0 {
            let agents = self.bench.runtime.agent_handle();
            let task = tokio::spawn(async move { agents.complete_action(completed).await });
            self.completing.push((session, task));
        }
    }

    pub(super) fn check(&mut self) {
        for (asked, count) in &self.allowed {
            assert!(
                self.passed.contains_key(&start_of(&asked.0)),
                "{asked:?} ran before its session was let in"
            );
            let gated = ACTIONS
                .iter()
                .any(|(action, gated)| *action == asked.1 && *gated);
            let times = |of: &BTreeMap<Asked, u64>| of.get(asked).copied().unwrap_or(0);
            let passed = times(&self.passed);
            let most = match asked.1.as_str() {
                // The extension judges every answer, whichever side gives it.
                "ticket.comment" => self.moody.said(|said| times(&said.fair)),
                "ticket.get" => passed + self.moody.said(|said| times(&said.cleared)),
                _ if gated => passed,
                _ => u64::MAX,
            };
            assert!(
                *count <= most,
                "{asked:?} ran {count} times, and might {most} times"
            );
        }
        self.check_deadlines();
        self.check_twins();
    }

    /// Every asker of a gated action that waits has a held request of its own.
    fn check_twins(&mut self) {
        let snapshot = self.bench.snapshot();
        let mut held = BTreeMap::<Asked, u64>::new();
        // These wait for an extension, or for a gate before the whole session.
        let mut busy = self.moody.said(Said::sessions_that_wait);
        for one in &snapshot.held {
            match &one.subject {
                HeldSubject::Action(_) => *held.entry(asked(one)).or_default() += 1,
                HeldSubject::SessionStart | HeldSubject::Moment(_) => {
                    busy.insert(one.session.to_string());
                }
            }
        }
        let mut waiting = BTreeMap::<&Asked, u64>::new();
        for one in &self.asking {
            let gated = ACTIONS.contains(&(&one.asked.1, true));
            if gated && one.opening == self.opening && !busy.contains(&one.asked.0) {
                *waiting.entry(&one.asked).or_default() += 1;
            }
        }
        for (asked, waiting) in waiting {
            let held = held.get(asked).copied().unwrap_or(0);
            assert!(
                waiting <= held,
                "{waiting} wait for {asked:?}, and {held} are held"
            );
            self.counts.twins += u64::from(waiting > 1);
        }
    }
}

/// Takes out what is finished, in order.
fn finished<T>(all: &mut Vec<T>, is_finished: impl Fn(&T) -> bool) -> Vec<T> {
    all.extract_if(.., |one| is_finished(one)).collect()
}
