//! The time of a simulated world: a wall clock that is set, and deadlines that follow the steady clock.

use std::collections::BTreeMap;
use std::time::Duration;

use cra_core::base::clock::Clock;
use cra_core::base::id::HeldRequestId;
use cra_core::base::limits::DEFAULT_GATE_TIMEOUT;
use cra_core::engine::command::HeldOutcome;
use cra_core::engine::held::HeldSubject;

use super::World;
use crate::support::settle;

const HOUR: u64 = 3600;

/// Moments of the steady clock at which held requests expire.
#[derive(Debug, Default)]
pub(super) struct Deadlines(BTreeMap<HeldRequestId, Duration>);

impl Deadlines {
    /// Forgets all of them: how long no console ran is not known.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

impl World {
    /// Sets the wall clock by hours, and lets some time pass.
    pub(super) async fn set_clock(&mut self) {
        let millis = self.step_wall_clock();
        settle().await;
        self.clock
            .advance(Duration::from_secs(1 + self.dice.roll(60)));
        settle().await;
        let snapshot = self.bench.snapshot();
        if !snapshot.held.is_empty() {
            let moved = snapshot.clock_step.expect("the operator sees no step");
            assert_eq!(moved.step.millis(), millis, "{moved:?} is another step");
            self.acknowledged.clock_steps += 1;
            self.counts.clock_steps += 1;
        }
    }

    /// Sets the wall clock forward or back; gives by how many milliseconds.
    pub(super) fn step_wall_clock(&mut self) -> i64 {
        let span = Duration::from_secs(HOUR / 4 + self.dice.roll(6 * HOUR));
        let millis = i64::try_from(span.as_millis()).unwrap();
        if self.dice.roll(2) == 0 {
            self.clock.set_back(span);
            -millis
        } else {
            self.clock.set_forward(span);
            millis
        }
    }

    /// Compares the deadlines of held requests with the steady clock.
    pub(super) fn check_deadlines(&mut self) {
        let snapshot = self.bench.snapshot();
        let reading = self.clock.parse();
        let before = std::mem::take(&mut self.deadlines.0);
        for held in &snapshot.held {
            let whole = held.deadline.since(held.opened_at);
            let left = held.deadline.since(reading.wall);
            assert!(
                left <= whole && whole <= DEFAULT_GATE_TIMEOUT,
                "{held:?} waits for {left:?} more"
            );
            let ends = reading.steady + left;
            let known = before.get(&held.id).copied().unwrap_or(ends);
            // A caller that waits for a start gate and stops waiting ends the gate earlier, never later.
            let limited = matches!(held.subject, HeldSubject::SessionStart) && ends < known;
            assert!(
                ends == known || limited,
                "{held:?} ends at another time than before: {known:?}"
            );
            assert!(ends > reading.steady, "{held:?} outlives its deadline");
            self.deadlines.0.insert(held.id.clone(), ends);
        }
        for (id, ends) in before {
            let mut decided = snapshot.decided.iter();
            let decided = decided.find(|one| one.gate == id);
            let expired = decided.is_some_and(|one| one.outcome == HeldOutcome::Expired);
            if !self.deadlines.0.contains_key(&id) && expired {
                assert!(ends <= reading.steady, "{id} expired before its time");
                self.counts.expired += 1;
            }
        }
    }
}
