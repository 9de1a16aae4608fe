//! Numbers of what happened in a simulated world.

use std::collections::BTreeMap;

/// Numbers of what happened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) refused: u64,
    /// Steps of the wall clock while requests were held, and while no console ran.
    pub(super) clock_steps: u64,
    pub(super) unseen_clock_steps: u64,
    pub(super) expired: u64,
    pub(super) hangs: u64,
    pub(super) denied_in_hang: u64,
    pub(super) killed_in_hang: u64,
    /// Stores that failed, by what happened to them.
    pub(super) failed: BTreeMap<&'static str, u64>,
    pub(super) denied_after_failure: u64,
    pub(super) power_cuts: u64,
    pub(super) tampered: BTreeMap<&'static str, u64>,
    pub(super) denied_after_tampering: u64,
    /// Identical requests that were held at the same time.
    pub(super) twins: u64,
    /// Replies to sessions whose start gate was not passed, and texts that others were given.
    pub(super) kept_back: u64,
    pub(super) given: u64,
    /// Acknowledged runs and decisions that were found on record after a crash.
    pub(super) found_runs: u64,
    pub(super) found_decisions: u64,
}

/// A run in which nothing happens proves nothing.
pub(super) fn check_counts(all: &[Counts]) {
    let sum = |count: fn(&Counts) -> u64| all.iter().map(count).sum::<u64>();
    let each = |counts: fn(&Counts) -> &BTreeMap<&'static str, u64>| {
        let mut sums = BTreeMap::new();
        for (name, count) in all.iter().flat_map(counts) {
            *sums.entry(*name).or_insert(0) += count;
        }
        sums
    };
    let sums = [
        ("decisions refused", sum(|one| one.refused), 30),
        ("clock steps", sum(|one| one.clock_steps), 30),
        ("unseen steps", sum(|one| one.unseen_clock_steps), 5),
        ("expired", sum(|one| one.expired), 20),
        ("hangs", sum(|one| one.hangs), 20),
        ("denied in a hang", sum(|one| one.denied_in_hang), 50),
        ("killed in a hang", sum(|one| one.killed_in_hang), 5),
        (
            "denied after a failure",
            sum(|one| one.denied_after_failure),
            50,
        ),
        ("power cuts", sum(|one| one.power_cuts), 30),
        (
            "denied after tampering",
            sum(|one| one.denied_after_tampering),
            50,
        ),
        ("twins", sum(|one| one.twins), 50),
        ("kept back", sum(|one| one.kept_back), 100),
        ("given", sum(|one| one.given), 50),
        ("runs found", sum(|one| one.found_runs), 100),
        ("decisions found", sum(|one| one.found_decisions), 200),
    ];
    for (name, count, least) in sums {
        assert!(count >= least, "{name}: {count} of {least}");
    }
    let failed = each(|one| &one.failed);
    assert!(
        failed.len() == 5 && failed.values().all(|count| *count >= 4),
        "{failed:?}"
    );
    let tampered = each(|one| &one.tampered);
    assert!(
        tampered.len() == 5 && tampered.values().all(|count| *count >= 4),
        "{tampered:?}"
    );
}
