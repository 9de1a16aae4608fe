//! Replies to agents and the operator of a simulated world, and the checks of the one promise.

use std::collections::BTreeMap;

use cra_core::base::digest::Digest;
use cra_core::engine::command::{ActionCompletion, Injected, RunPermission};
use cra_core::engine::held::HeldSubject;
use cra_core::runtime::{AnswerReply, RequestReply};

use super::extension::ExtensionLog;
use super::{ACTIONS, RequestKey, World, faults, request_key, start_of};

impl World {
    /// Processes replies to the operator and to agents, the operator first, because passes count.
    pub(super) async fn hear(&mut self) {
        for (held, quality, task) in finished(&mut self.deciding, |one| one.2.is_finished()) {
            let reply = task.await.unwrap();
            self.hear_decision(&held, quality, &reply);
        }
        for one in finished(&mut self.starting, |one| one.task.is_finished()) {
            if let Ok(started) = one.task.await.unwrap() {
                // Taking a session up again may change nothing, and then needs no record.
                if one.new || started.injected != Injected::default() {
                    self.hear_good_news("a session began");
                }
                self.check_given(&one.session, &started.injected);
                self.acknowledged.sessions.insert(one.session);
            }
        }
        for (request_key, task) in finished(&mut self.answering, |one| one.1.is_finished()) {
            match task.await.unwrap() {
                Ok(AnswerReply::Allowed(allowed)) => self.run(request_key, allowed),
                Ok(AnswerReply::Accepted(accepted)) => {
                    self.hear_good_news("an answer was taken");
                    self.freed.insert(request_key.0.clone());
                    self.check_given(&request_key.0, &accepted.injected);
                }
                Ok(AnswerReply::Asked(questions)) => self.own.push(questions),
                Ok(AnswerReply::Invalid(_)) | Err(_) => {}
            }
        }
        for saying in finished(&mut self.saying, |one| one.task.is_finished()) {
            if let Ok(accepted) = saying.task.await.unwrap() {
                self.hear_good_news("input was taken");
                self.check_given(&saying.session, &accepted.injected);
                self.check_taken(saying.text);
            }
        }
        for one in finished(&mut self.asking, |one| one.task.is_finished()) {
            match one.task.await {
                Ok(Ok(RequestReply::Allowed(allowed))) => self.run(one.request_key, allowed),
                Ok(Ok(RequestReply::Asked(questions))) => self.own.push(questions),
                Ok(Err(_)) => self.hear_denial(&one.request_key.0),
                Err(_) => {}
            }
        }
        for (session, task) in finished(&mut self.completing, |one| one.1.is_finished()) {
            if task.await.unwrap().is_ok() {
                self.hear_good_news("a result was taken");
                *self.acknowledged.completed.entry(session).or_default() += 1;
            }
        }
    }

    /// Checks that a positive reply is possible: it needs a working record.
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
        let calm = self
            .extension
            .with_log(|output| output.calm.get(&text) == Some(&true));
        let plain = calm && !text.contains("refund");
        let hash = Digest::of(&text).to_string();
        let pass_start_gate = self.pass_start_gate.contains(&hash);
        assert!(plain || pass_start_gate, "`{text}` was taken");
        self.acknowledged.inputs.insert(hash);
    }

    /// A session that a gate stands before is given nothing.
    fn check_given(&mut self, session: &str, injected: &Injected) {
        let nothing = injected.contexts.is_empty() && injected.guidance.is_empty();
        let pass_start_gate = self.passed.contains_key(&start_of(session));
        assert!(
            pass_start_gate || nothing,
            "{session} was given {injected:?} before it was let in"
        );
        let stopped = self.stopped.contains(session) && !self.freed.contains(session);
        assert!(
            !stopped || nothing,
            "{session} was given {injected:?} behind a gate"
        );
        self.counts.kept_back += u64::from(!pass_start_gate);
        self.counts.given += u64::from(!nothing);
    }

    /// An agent runs what it was allowed to.
    fn run(&mut self, request_key: RequestKey, allowed: RunPermission) {
        self.hear_good_news("an action was allowed");
        assert!(
            !self.over.contains(&request_key.0),
            "{request_key:?} ran, and its session is over"
        );
        let free = !self.stopped.contains(&request_key.0) || self.freed.contains(&request_key.0);
        assert!(
            free,
            "{request_key:?} ran past a gate before its whole session"
        );
        self.check_given(&request_key.0, &allowed.injected);
        let completed = ActionCompletion {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: request_key.0.parse().unwrap(),
            execution: allowed.execution.clone(),
            result: Ok(String::new()),
        };
        let session = request_key.0.clone();
        let runs = self.acknowledged.runs.entry(session.clone()).or_default();
        runs.push(allowed.execution);
        *self.allowed.entry(request_key).or_default() += 1;
        // It fails where the session ended or the disk broke meanwhile. Some agents never say it.
        if self.dice.roll(4) > 0 {
            let agents = self.bench.runtime.agent_handle();
            let task = tokio::spawn(async move { agents.complete_action(completed).await });
            self.completing.push((session, task));
        }
    }

    pub(super) fn check(&mut self) {
        for (request_key, count) in &self.allowed {
            assert!(
                self.passed.contains_key(&start_of(&request_key.0)),
                "{request_key:?} ran before its session was let in"
            );
            let gated = ACTIONS
                .iter()
                .any(|(action, gated)| *action == request_key.1 && *gated);
            let times = |of: &BTreeMap<RequestKey, u64>| of.get(request_key).copied().unwrap_or(0);
            let passed = times(&self.passed);
            let most = match request_key.1.as_str() {
                // The extension judges every answer, whichever side gives it.
                "ticket.comment" => self.extension.with_log(|output| times(&output.fair)),
                "ticket.get" => passed + self.extension.with_log(|output| times(&output.cleared)),
                _ if gated => passed,
                _ => u64::MAX,
            };
            assert!(
                *count <= most,
                "{request_key:?} ran {count} times, and might {most} times"
            );
        }
        self.check_deadlines();
        self.check_twins();
    }

    /// Every asker of a gated action that waits has a held request of its own.
    fn check_twins(&mut self) {
        let snapshot = self.bench.snapshot();
        let mut held = BTreeMap::<RequestKey, u64>::new();
        // These wait for an extension, or for a gate before the whole session.
        let mut busy = self.extension.with_log(ExtensionLog::sessions_that_wait);
        for one in &snapshot.held {
            match &one.subject {
                HeldSubject::Action(_) => *held.entry(request_key(one)).or_default() += 1,
                HeldSubject::SessionStart | HeldSubject::Moment(_) => {
                    busy.insert(one.session.to_string());
                }
            }
        }
        let mut waiting = BTreeMap::<&RequestKey, u64>::new();
        for one in &self.asking {
            let gated = ACTIONS.contains(&(&one.request_key.1, true));
            if gated && one.opening == self.opening && !busy.contains(&one.request_key.0) {
                *waiting.entry(&one.request_key).or_default() += 1;
            }
        }
        for (request_key, waiting) in waiting {
            let held = held.get(request_key).copied().unwrap_or(0);
            assert!(
                waiting <= held,
                "{waiting} wait for {request_key:?}, and {held} are held"
            );
            self.counts.twins += u64::from(waiting > 1);
        }
    }
}

/// Takes out what is finished, in order.
fn finished<T>(all: &mut Vec<T>, is_finished: impl Fn(&T) -> bool) -> Vec<T> {
    all.extract_if(.., |one| is_finished(one)).collect()
}
