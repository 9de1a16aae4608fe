//! Comparison of all replies to agents and the operator with the record that a crash leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cra_core::base::digest::Digest;
use cra_core::base::id::{ExecutionId, SpanId};
use cra_core::engine::command::HeldOutcome;
use cra_core::engine::held::Held;
use cra_core::store::Store;
use cra_core::trace::event::Event;
use serde_json::Value;

use super::{RequestKey, World};

/// Acknowledged facts: all replies to agents and the operator.
#[derive(Default)]
pub(super) struct Acknowledged {
    /// Sessions that began.
    pub(super) sessions: BTreeSet<String>,
    /// Runs that were allowed, by session.
    pub(super) runs: BTreeMap<String, Vec<ExecutionId>>,
    /// Numbers of results that were taken, by session.
    pub(super) completed: BTreeMap<String, u64>,
    /// Digests of inputs that were taken.
    pub(super) inputs: BTreeSet<String>,
    /// Decisions that were taken.
    pub(super) decisions: Vec<(Arc<Held>, HeldOutcome)>,
    /// Steps of the wall clock that the operator was shown.
    pub(super) clock_steps: u64,
}

/// Contents of the record, as far as it was read.
#[derive(Default)]
pub(super) struct Recorded {
    /// Number of records that were read, and the last of them.
    count: u64,
    last: Option<Digest>,
    sessions: BTreeSet<String>,
    ended: BTreeSet<String>,
    attempted: BTreeMap<RequestKey, u64>,
    blocked: BTreeMap<RequestKey, u64>,
    completed: BTreeMap<String, u64>,
    inputs: BTreeSet<String>,
    /// Spans of gates that were passed, and of those that were not.
    passed: BTreeSet<SpanId>,
    unpassed: BTreeSet<SpanId>,
    clock_steps: u64,
}

impl Recorded {
    /// Tells whether the record has the pass of a held request.
    pub(super) fn has_pass(&self, held: &Held) -> bool {
        let mut gates = held.gates.iter();
        gates.all(|gate| self.passed.contains(&gate.span_id))
    }

    /// Tells whether the record has the end of a held request, passed or not.
    pub(super) fn has_end(&self, held: &Held) -> bool {
        let mut gates = held.gates.iter();
        let all_unpassed = gates.all(|gate| self.unpassed.contains(&gate.span_id));
        all_unpassed || self.has_pass(held)
    }

    fn note(&mut self, event: &Event) {
        let session = event.session_id.to_string();
        let text = |field: &str| {
            let value = event.payload.get(field).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let request_key = || {
            let params = event.payload.get("action_params");
            let params = params.map(ToString::to_string).unwrap_or_default();
            (session.clone(), text("action_type"), params)
        };
        match event.event_type.as_str() {
            "session_started" => drop(self.sessions.insert(session)),
            "session_ended" => drop(self.ended.insert(session)),
            "action_attempted" => *self.attempted.entry(request_key()).or_default() += 1,
            "action_blocked" => *self.blocked.entry(request_key()).or_default() += 1,
            "action_completed" => *self.completed.entry(session).or_default() += 1,
            "input_received" => drop(self.inputs.insert(text("input_hash"))),
            "checkpoint_passed" => self.passed.extend(event.parent_span_id.clone()),
            "checkpoint_blocked" => self.unpassed.extend(event.parent_span_id.clone()),
            "clock_moved" => self.clock_steps += 1,
            _ => {}
        }
    }
}

impl World {
    /// Reads the record after a crash, and finds every acknowledged event in it.
    pub(super) async fn compare_with_record(&mut self) {
        self.read_record().await;
        self.settle_doubts();
        self.find_runs().await;
        let (reply, recorded) = (&mut self.acknowledged, &self.recorded);
        let lost: Vec<_> = reply.sessions.difference(&recorded.sessions).collect();
        assert!(lost.is_empty(), "the starts of {lost:?} are not on record");
        let lost: Vec<_> = reply.inputs.difference(&recorded.inputs).collect();
        assert!(lost.is_empty(), "inputs {lost:?} are not on record");
        for (held, outcome) in std::mem::take(&mut reply.decisions) {
            let found = match outcome {
                HeldOutcome::Passed => recorded.has_pass(&held),
                HeldOutcome::Denied
                | HeldOutcome::Expired
                | HeldOutcome::Withdrawn
                | HeldOutcome::Voided => recorded.has_end(&held),
            };
            assert!(found, "{outcome:?} is not on record: {held:?}");
            self.counts.found_decisions += 1;
        }
        assert!(
            reply.clock_steps <= recorded.clock_steps,
            "{} steps of the clock are on record, and the operator saw {}",
            recorded.clock_steps,
            reply.clock_steps
        );
        for (session, reply) in &reply.completed {
            let found = recorded.completed.get(session).copied().unwrap_or(0);
            assert!(*reply <= found, "{found} of {reply} results of {session}");
        }
    }

    /// Reads the records that are new. Those that were read before are still there.
    async fn read_record(&mut self) {
        let recorded = &mut self.recorded;
        let from = recorded.count.saturating_sub(1);
        let records = self.store.records(from, usize::MAX).await.unwrap();
        let mut records = records.iter();
        if let Some(last) = recorded.last {
            let found = records.next().map(|record| record.hash);
            assert_eq!(found, Some(last), "what was recorded is gone");
        }
        for record in records {
            recorded.note(&record.event_of().unwrap());
            recorded.count += 1;
            recorded.last = Some(record.hash);
        }
    }

    /// Finds every acknowledged run: as an attempt that was not blocked, and in the state of its
    /// session for as long as it is not completed.
    async fn find_runs(&mut self) {
        for (request_key, allowed) in &self.allowed {
            let times = |of: &BTreeMap<RequestKey, u64>| of.get(request_key).copied().unwrap_or(0);
            let attempted = times(&self.recorded.attempted);
            let blocked = times(&self.recorded.blocked);
            assert!(
                *allowed + blocked <= attempted,
                "{request_key:?} ran {allowed} times and was blocked {blocked} times of {attempted}"
            );
        }
        let mut running = BTreeMap::new();
        for row in self.store.state().await.unwrap() {
            if row.kind == "session" {
                let state: Value = serde_json::from_str(&row.body.unwrap()).unwrap();
                running.insert(row.key, state["running"].clone());
            }
        }
        for (session, runs) in &self.acknowledged.runs {
            if self.over.contains(session) || self.recorded.ended.contains(session) {
                continue;
            }
            let state = running
                .get(session)
                .expect("the state of a session is gone");
            let lost = |run: &&ExecutionId| state.get(run.as_str()).is_none();
            let completed = self.recorded.completed.get(session).copied().unwrap_or(0);
            let missing = runs.iter().filter(lost).count() as u64;
            assert!(
                missing <= completed,
                "{missing} runs of {session} are not in its state, and {completed} are completed"
            );
            self.counts.found_runs += runs.len() as u64 - missing;
        }
    }
}
