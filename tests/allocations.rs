//! Number of allocations of a decision. Counted, never timed.
//!
//! A binary of its own: what counts takes the place of the allocator.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that is surprised should stop"
)]

use cra_core::atlas::Atlas;
use cra_core::atlas::index::KeywordMatches;
use cra_core::engine::judgement::judge_under;

#[path = "../benches/support/generated_atlas.rs"]
#[expect(dead_code, reason = "the benches use more of it")]
mod generated_atlas;

use generated_atlas::{ALLOWED, DENIED, HELD, atlas, manifest, now, params, prose, session};

/// Counts the allocations of evaluating an action, and tells whether it is allowed.
fn judged(atlases: &[Atlas], action: &str) -> (u64, bool) {
    let (session, params, now) = (session(), params(), now());
    let mut allowed = false;
    let info = allocation_counter::measure(|| {
        let judgement = judge_under(atlases, &session, action, &params, now);
        allowed = judgement.is_allowed();
    });
    (info.count_total, allowed)
}

#[test]
fn allowed_request_is_evaluated_without_allocating() {
    for rules in [10, 1_000] {
        let atlases = [atlas(&manifest(rules))];
        assert_eq!(judged(&atlases, ALLOWED), (0, true), "{rules} rules");
    }
}

#[test]
fn allocations_of_denied_and_held_requests_do_not_grow_with_the_atlas() {
    let few = [atlas(&manifest(10))];
    let many = [atlas(&manifest(1_000))];
    for action in [DENIED, HELD] {
        let (count, allowed) = judged(&few, action);
        assert!(!allowed && count > 0, "{action}: {count}");
        assert_eq!(judged(&many, action), (count, false), "{action}");
    }
}

#[test]
fn allocations_of_input_without_keywords_do_not_grow_with_the_atlas() {
    let count = |rules| {
        let atlases = [atlas(&manifest(rules))];
        let text = prose(10_000);
        allocation_counter::measure(|| drop(KeywordMatches::of(&atlases, &text))).count_total
    };
    assert_eq!((count(10), count(1_000)), (2, 2));
}
