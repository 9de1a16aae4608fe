//! Crashes, and faults of the disk of a simulated world.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cra_core::engine::held::Held;
use cra_core::runtime::STALL_TIME;
use cra_core::runtime::snapshot::StoreState;
use cra_core::store::memory::MemoryStore;
use cra_core::store::memory::disk::{Corruption, SimulatedDisk};

use super::{World, open};
use crate::support::settle;

/// The reason why nothing is allowed while the disk hangs.
pub(super) const HANGS: &str = "the disk hangs";

/// The reason why nothing is allowed after the store failed.
const FAILED: &str = "the store has failed";

impl World {
    /// The process dies, or the power goes; sometimes the clock is set before the next start.
    pub(super) async fn crash(&mut self) {
        if self.dice.roll(2) == 0 {
            self.step_wall_clock();
            self.deadlines.forget();
            self.counts.unseen_clock_steps += 1;
        }
        self.restart().await;
    }

    /// The process dies where it stands, and another one opens the store.
    pub(super) async fn restart(&mut self) {
        let held = self.bench.snapshot().held.clone();
        self.store = self.left_store();
        self.compare_with_record().await;
        self.open_again().await;
        let snapshot = self.bench.snapshot();
        assert_eq!(snapshot.distrusted, None, "the state was not tampered with");
        let back = |id| snapshot.held.iter().any(|one| one.id == id);
        let decided = |id| snapshot.decided.iter().any(|one| one.gate == id);
        let on_record = |held: &Held| self.recorded.has_end(held);
        for held in held {
            let id = held.id.clone();
            assert!(
                back(id.clone()) || decided(id) || on_record(&held),
                "{held:?} was lost"
            );
        }
    }

    /// The store as a crash leaves it: of what was not synced a power cut leaves a part.
    fn left_store(&mut self) -> MemoryStore {
        if self.dice.roll(2) == 0 {
            return self.store.reopen();
        }
        self.counts.power_cuts += 1;
        let at_risk = self.store.disk(|disk| disk.unsynced_bytes()) as u64;
        let kept = usize::try_from(self.dice.roll(at_risk + 1)).unwrap();
        let garbled = match self.dice.roll(3) {
            0 => Corruption::LastByte(1),
            _ => Corruption::No,
        };
        self.store.reopen_after_power_cut(kept, garbled)
    }

    /// Opens the store with a new process.
    pub(super) async fn open_again(&mut self) {
        self.opening += 1;
        // Askers at a process that died long ago have noticed.
        self.asking.retain(|one| one.opening + 1 >= self.opening);
        self.watched = false;
        self.closed = None;
        self.bench = open(&self.store, &self.extension, &self.clock, self.opening).await;
        settle().await;
        self.note_stopped();
    }

    /// Agents and the operator go on.
    async fn round(&mut self) {
        self.note_stopped();
        self.ask();
        self.ask_twice();
        self.say();
        self.pass();
        self.start();
        settle().await;
        self.hear().await;
    }

    /// A write fails, and nothing is allowed until the next start.
    pub(super) async fn break_disk(&mut self) {
        let count = self.dice.roll(6);
        let faults = ["full", "no sync", "power", "gone", "gone while idle"];
        let fault = *self.dice.pick(&faults).unwrap();
        self.store.disk(|disk| match fault {
            "full" => disk.full_after(count),
            "no sync" => disk.fail_sync_after(count),
            "power" => disk.cut_after(count),
            _ => disk.remove_file(),
        });
        if fault == "gone while idle" {
            self.watch_store();
            let failed = |state: &StoreState| matches!(state, StoreState::Poisoned { .. });
            self.bench.wait_until(|view| failed(&view.store)).await;
        }
        for _ in 0..4 {
            self.round().await;
            if matches!(self.bench.snapshot().store, StoreState::Poisoned { .. }) {
                // A file that is back does not help: it may be another one.
                self.store.disk(SimulatedDisk::put_back);
                self.closed = Some(FAILED);
            }
        }
        if self.closed.is_some() {
            *self.counts.failed.entry(fault).or_default() += 1;
        }
        self.restart().await;
    }

    /// The disk does not answer for a while: then it does, or the process dies.
    pub(super) async fn hang_disk(&mut self) {
        let since = Instant::now().checked_sub(STALL_TIME).unwrap();
        self.store.hang(since);
        self.closed = Some(HANGS);
        self.round().await;
        self.watch_store();
        let stalled = |state: &StoreState| matches!(state, StoreState::Stalled { .. });
        self.bench.wait_until(|view| stalled(&view.store)).await;
        self.round().await;
        self.clock.advance(Duration::from_secs(self.dice.roll(120)));
        self.round().await;
        self.counts.hangs += 1;
        if self.dice.roll(3) == 0 {
            self.counts.killed_in_hang += 1;
            self.restart().await;
            return;
        }
        self.store.end_hang();
        self.closed = None;
        self.bench
            .wait_until(|view| view.store == StoreState::Ready)
            .await;
        settle().await;
        self.hear().await;
        self.round().await;
    }

    /// Has the console watch over the store, as a console does that agents can reach.
    fn watch_store(&mut self) {
        if !std::mem::replace(&mut self.watched, true) {
            self.bench.runtime.watch_store();
        }
    }

    /// Resolves unconfirmed passes of the operator from the record.
    pub(super) fn settle_doubts(&mut self) {
        for held in std::mem::take(&mut self.doubtful) {
            if self.recorded.has_pass(&held) {
                self.note_passed(&Arc::clone(&held));
            }
        }
    }
}
