//! A thousand agents at once: what `cargo bench --bench socket` measures, in small, for what must not be lost.

#[expect(dead_code, reason = "the bench uses more of it")]
#[path = "../../benches/support/agent_load.rs"]
mod agent_load;

use agent_load::{Console, Until, check, run_agents};

#[tokio::test(flavor = "multi_thread")]
async fn thousand_agents_lose_no_event_and_record_none_twice() {
    let console = Console::open().await;
    let replies = run_agents(&console, 1000, Until::Rounds(3)).await;
    let account = check(&replies, &console.record().await);
    assert_eq!(account.sessions, 1000);
    // Three of ten kinds of request each, in turn. One round of the three has odd numbers.
    assert_eq!((account.ran, account.denied), (2400, 300));
    assert_eq!((account.refused, account.left), (300, 300));
}
