//! A thousand agents at once: what `cargo bench --bench socket` measures, in small, for what must not be lost.

#[expect(dead_code, reason = "the bench uses more of it")]
#[path = "../../benches/support/crowd.rs"]
mod crowd;

use crowd::{Console, Until, check, crowd};

#[tokio::test(flavor = "multi_thread")]
async fn of_a_thousand_agents_nothing_is_lost_and_nothing_is_there_twice() {
    let console = Console::open().await;
    let heard = crowd(&console, 1000, Until::Rounds(3)).await;
    let account = check(&heard, &console.record().await);
    assert_eq!(account.sessions, 1000);
    // Three of ten kinds of request each, in turn. One round of the three has odd numbers.
    assert_eq!((account.ran, account.denied), (2400, 300));
    assert_eq!((account.refused, account.left), (300, 300));
}
