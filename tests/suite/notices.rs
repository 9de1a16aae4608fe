//! Notices for stewards, from the gate to a real server.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::{Clock, ManualClock};
use cra_core::base::id::CountedIds;
use cra_core::engine::command::{DecisionRequest, OperatorReply, Ruling};
use cra_core::engine::held::Held;
use cra_core::runtime::notices::{
    DeliveryState, NoticesOff, SECRET_FILE, Secret, SecretSource, StoredNotice, Webhooks,
    stored_notices,
};
use cra_core::runtime::{Runtime, RuntimeParts};
use cra_core::store::Store;
use cra_core::store::memory::MemoryStore;
use cra_core::store::sqlite::SqliteStore;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::cli::TestHome;
use super::runtime::SlowStore;
use super::support::{Bench, clock, decide, good_answers, parts, reopen_store, request};

mod receiver;

use receiver::{Answer, Receiver};

/// An Atlas with that id whose steward is notified at that address. Paying is denied and may be overruled,
/// cutting is just dangerous.
fn atlas(id: &str, address: &str) -> Atlas {
    let text = format!(
        "atlas_version: '1.0'\natlas_id: {id}\nversion: '2.1'\nname: Test\ndefault_decision: allow\n\
         steward:\n  id: steward\n  notifications:\n    channels: {{ webhook: '{address}' }}\n    \
         triggers: [policy_override, high_risk_action]\n\
         actions:\n- {{ action_id: {id}.pay, risk_tier: medium }}\n- {{ action_id: {id}.cut, risk_tier: high }}\n\
         - {{ action_id: {id}.look, risk_tier: low }}\n\
         policies: [{{ policy_id: no-pay, type: deny, actions: ['{id}.pay'], override: true }}]\n"
    );
    load_str("test.yaml", &text).unwrap().atlas
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn webhooks() -> Webhooks {
    let secret: Secret = SECRET.parse().unwrap();
    Webhooks::On(SecretSource::Fixed(secret))
}

async fn bench(
    atlases: Vec<Atlas>,
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    webhooks: Webhooks,
) -> Bench {
    let ids = clock.now().micros().unsigned_abs();
    let runtime = Runtime::start(RuntimeParts {
        atlases,
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ids: Box::new(CountedIds::starting_at(ids.into())),
        webhooks,
        ..parts(store).await
    });
    Bench {
        runtime: runtime.await.unwrap(),
        clock,
    }
}

fn sqlite() -> (TempDir, Arc<SqliteStore>) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(folder.path()).unwrap());
    (folder, store)
}

async fn kept(store: &dyn Store) -> Vec<StoredNotice> {
    stored_notices(store.state().await.unwrap()).0
}

/// Waits until `wanted` notices are stored, and returns them. A snapshot may be older than the sent notices.
async fn left(store: &dyn Store, wanted: usize) -> Vec<StoredNotice> {
    let found = async {
        loop {
            let kept = kept(store).await;
            if kept.len() == wanted {
                return kept;
            }
            tokio::task::yield_now().await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(20), found);
    found.await.expect("others are kept")
}

/// Texts of an agent and an operator that no notice may contain.
const SECRETS: [&str; 3] = ["s3cret-param", "s3cret-answer", "s3cret-why"];

/// Has an agent ask for what a policy denies, and an operator overrule it.
async fn overrule(bench: &Bench, atlas: &str, number: u64) -> Arc<Held> {
    let pay = request(
        "s-1",
        &format!("{atlas}.pay"),
        json!({"card": SECRETS[0], "n": number}),
    );
    let denied = bench
        .runtime
        .agent_handle()
        .request_action(pay)
        .await
        .unwrap_err();
    let gate = denied.gate.unwrap();
    let held = bench
        .wait_until(|s| s.held.iter().any(|held| held.id == gate))
        .await;
    let held = held
        .held
        .iter()
        .find(|held| held.id == gate)
        .unwrap()
        .clone();
    let mut answers = good_answers(&held);
    for answer in answers.iter_mut().flat_map(|held| held.values_mut()) {
        if answer.is_string() && *answer != json!("understood") {
            *answer = json!(format!("{}, and confirmed in writing", SECRETS[1]));
        }
    }
    let decide = DecisionRequest {
        justification: Some(SECRETS[2].to_owned()),
        ..decide(&held, Ruling::Pass { answers })
    };
    let reply = bench.runtime.operator_handle().decide(decide).await;
    assert!(matches!(reply, OperatorReply::Decided(_)), "{reply:?}");
    held
}

/// The signature as the convention has it, by hand.
fn signature(secret: &str, message: &str) -> String {
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let pad = |with: u8| {
        let mut block = [with; 64];
        for (place, byte) in block.iter_mut().zip(&key) {
            *place ^= byte;
        }
        block.to_vec()
    };
    let inner = Sha256::digest([pad(0x36), message.as_bytes().to_vec()].concat());
    let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
    format!("v1,{}", STANDARD.encode(outer))
}

// covers B16
#[tokio::test]
async fn override_notice_is_signed_and_contains_no_secret() {
    let mut receiver = Receiver::new(&[Answer::Status(204)]);
    let (_folder, store) = sqlite();
    let own = atlas("own", &receiver.address);
    let bench = bench(vec![own], store.clone(), clock(), webhooks()).await;
    bench.begin("s-1").await;
    bench.clock.advance(Duration::from_secs(90));
    let held = overrule(&bench, "own", 1).await;
    let got = receiver.next().await;
    assert!(
        got.head.starts_with("POST /cra-events HTTP/1.1"),
        "{}",
        got.head
    );
    assert_eq!(got.header("content-type"), "application/json");
    let (id, seconds) = (got.header("webhook-id"), got.header("webhook-timestamp"));
    assert_eq!(seconds, "1767225690", "the time of the try, by the clock");
    let message = format!("{id}.{seconds}.{}", got.body);
    assert_eq!(got.header("webhook-signature"), signature(SECRET, &message));
    let records = store
        .session_records("s-1".parse().unwrap(), 0, 100)
        .await
        .unwrap();
    let events = records.iter().map(|record| record.event_of().unwrap());
    let overruled = events.filter(|record| record.event_type == "policy_override");
    let [event] = &overruled.collect::<Vec<_>>()[..] else {
        panic!("no single override is on record");
    };
    let wanted = json!({
        "type": "policy_override",
        "timestamp": event.timestamp,
        "data": {
            "atlas": { "id": "own", "version": "2.1" },
            "session": "s-1", "agent": "bot", "action": "own.pay", "risk": "medium",
            "passed": ["no-pay"], "approver": "op-1", "gate": held.id,
            "event": { "id": event.event_id, "type": "policy_override",
                "sequence": event.sequence, "hash": event.hash },
        },
    });
    assert_eq!(got.json(), wanted);
    for secret in SECRETS {
        assert!(!got.text.contains(secret), "{secret} in {}", got.text);
    }
    let reply = serde_json::to_string(
        &records
            .iter()
            .map(|record| &record.text)
            .collect::<Vec<_>>(),
    );
    assert!(reply.unwrap().contains(SECRETS[0]), "the record has it");
    left(store.as_ref(), 0).await;
    bench.runtime.stop().await;
    receiver.assert_no_request();
}

// covers B16
#[tokio::test]
async fn refused_notice_is_retried_with_the_same_id_after_a_pause() {
    let mut receiver = Receiver::new(&[
        Answer::Status(500),
        Answer::Status(503),
        Answer::Status(200),
    ]);
    let (_folder, store) = sqlite();
    let own = atlas("own", &receiver.address);
    let bench = bench(vec![own], store.clone(), clock(), webhooks()).await;
    bench.begin("s-1").await;
    let cut = request("s-1", "own.cut", json!({"file": SECRETS[0]}));
    bench
        .runtime
        .agent_handle()
        .request_action(cut)
        .await
        .unwrap();
    let first = receiver.next().await;
    let data = &first.json()["data"];
    assert_eq!(
        (&data["risk"], &data["gate"]),
        (&json!("high"), &json!(null))
    );
    assert_eq!(data["event"]["type"], "action_attempted");
    assert!(!first.text.contains(SECRETS[0]), "{}", first.text);
    bench.wait_until(|s| s.notices.error.is_some()).await;
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.notices.waiting, snapshot.notices.failed), (1, 0));
    assert_eq!(
        snapshot.notices.error.as_deref(),
        Some("it returned status 500")
    );
    bench.clock.advance(Duration::from_secs(4));
    let _ = bench.runtime.operator_handle().verify().await;
    receiver.assert_no_request();
    bench.clock.advance(Duration::from_secs(2));
    let second = receiver.next().await;
    bench
        .wait_until(|s| s.notices.error.as_deref() == Some("it returned status 503"))
        .await;
    bench.clock.advance(Duration::from_secs(34));
    let third = receiver.next().await;
    for again in [&second, &third] {
        assert_eq!(again.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(again.body, first.body);
        assert_ne!(
            again.header("webhook-timestamp"),
            first.header("webhook-timestamp")
        );
    }
    left(store.as_ref(), 0).await;
    bench.wait_until(|s| s.notices.error.is_none()).await;
}

// covers B16
#[test]
fn notice_in_flight_at_shutdown_is_sent_after_the_next_start() {
    let mut receiver = Receiver::new(&[Answer::Silence, Answer::Status(200)]);
    let (folder, store) = sqlite();
    let own = atlas("own", &receiver.address);
    let life = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first_life = life();
    let first = first_life.block_on(async {
        let bench = bench(vec![own.clone()], store, clock(), webhooks()).await;
        bench.begin("s-1").await;
        overrule(&bench, "own", 1).await;
        receiver.next().await
    });
    // The runtime is dropped without a shutdown.
    first_life.shutdown_background();
    life().block_on(async {
        let store = Arc::new(reopen_store(folder.path()));
        assert_eq!(kept(store.as_ref()).await.len(), 1);
        let bench = bench(vec![own], store.clone(), clock(), webhooks()).await;
        let second = receiver.next().await;
        assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
        assert_eq!(second.body, first.body);
        left(store.as_ref(), 0).await;
        bench.runtime.stop().await;
    });
}

// covers B16
#[tokio::test]
async fn notice_is_on_disk_exactly_when_its_event_is_after_any_power_cut() {
    let mut cut_short = 0;
    for steps in 0..24 {
        let store = MemoryStore::default();
        let (shared, clock) = (Arc::new(store.clone()), clock());
        // No server listens: stored notices stay.
        let own = atlas("own", "http://127.0.0.1:1/");
        let bench = bench(vec![own], shared, clock, webhooks()).await;
        bench.begin("s-1").await;
        bench.wait_until(|s| s.sessions.len() == 1).await;
        store.disk(|disk| disk.cut_after(steps));
        let agents = bench.runtime.agent_handle();
        for number in 0..3 {
            let cut = request("s-1", "own.cut", json!({ "n": number }));
            if agents.request_action(cut).await.is_err() {
                cut_short += 1;
                break;
            }
        }
        drop(bench);
        let left = store.reopen();
        let records = left
            .session_records("s-1".parse().unwrap(), 0, 100)
            .await
            .unwrap();
        let attempted = records.iter().map(|record| record.event_of().unwrap());
        let attempted = attempted
            .filter(|record| record.event_type == "action_attempted")
            .count();
        assert_eq!(
            kept(&left).await.len(),
            attempted,
            "the power went after {steps} steps"
        );
    }
    assert!(cut_short > 3, "the power never went");
}

// covers B16
#[tokio::test]
async fn notices_are_sent_only_for_durable_events() {
    let mut receiver = Receiver::new(&[Answer::Status(200)]);
    let store = SlowStore::new();
    let own = atlas("own", &receiver.address);
    let bench = bench(vec![own], store.clone(), clock(), webhooks()).await;
    bench.begin("s-1").await;
    bench.wait_until(|s| s.sessions.len() == 1).await;
    store.durable.send_replace(false);
    let agents = bench.runtime.agent_handle();
    let cut = request("s-1", "own.cut", json!({}));
    let pending = tokio::spawn(async move { agents.request_action(cut).await });
    while kept(store.as_ref()).await.is_empty() {
        tokio::task::yield_now().await;
    }
    receiver.assert_no_other_connection().await;
    store.durable.send_replace(true);
    pending.await.unwrap().unwrap();
    let got = receiver.next().await;
    assert_eq!(got.json()["type"], "high_risk_action");
}

// covers B16
#[tokio::test]
async fn unreachable_webhook_is_given_up_reported_and_retried_once_at_the_next_start() {
    let mut receiver = Receiver::new(&[
        Answer::Status(410),
        Answer::Status(500),
        Answer::Status(200),
    ]);
    let (folder, store) = sqlite();
    let (own, clock) = (atlas("own", &receiver.address), clock());
    let start = |store| bench(vec![own.clone()], store, Arc::clone(&clock), webhooks());
    let bench = start(store.clone() as Arc<dyn Store>).await;
    bench.begin("s-1").await;
    overrule(&bench, "own", 1).await;
    let first = receiver.next().await;
    let snapshot = bench.wait_until(|s| s.notices.failed == 1).await;
    assert_eq!(snapshot.notices.waiting, 0);
    assert_eq!(
        snapshot.notices.error.as_deref(),
        Some("the receiver unsubscribed (status 410)")
    );
    assert_eq!(snapshot.notices.by_atlas["own"].failed, 1);
    bench.clock.advance(Duration::from_hours(30));
    let _ = bench.runtime.operator_handle().verify().await;
    receiver.assert_no_request();
    let failed = kept(store.as_ref()).await;
    assert!(
        matches!(failed[0].state, DeliveryState::Failed { .. }),
        "{failed:?}"
    );
    bench.runtime.stop().await;
    // Once, and no more: it still does not want it.
    drop(store);
    let store = Arc::new(reopen_store(folder.path()));
    let bench = start(store.clone() as Arc<dyn Store>).await;
    let second = receiver.next().await;
    assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
    bench
        .wait_until(|s| s.notices.error.as_deref() == Some("it returned status 500"))
        .await;
    assert_eq!(bench.snapshot().notices.failed, 1);
    bench.clock.advance(Duration::from_hours(30));
    let _ = bench.runtime.operator_handle().verify().await;
    receiver.assert_no_request();
    bench.runtime.stop().await;
    drop(store);
    let store = Arc::new(reopen_store(folder.path()));
    let bench = start(store.clone() as Arc<dyn Store>).await;
    receiver.next().await;
    bench.wait_until(|s| s.notices.failed == 0).await;
    left(store.as_ref(), 0).await;
}

// covers B16
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_webhook_delays_neither_agents_nor_other_webhooks() {
    let mut slow = Receiver::new(&[Answer::Silence]);
    let mut quick = Receiver::new(&[Answer::Status(200)]);
    let (_folder, store) = sqlite();
    let atlases = vec![atlas("slow", &slow.address), atlas("quick", &quick.address)];
    let bench = bench(atlases, store.clone(), clock(), webhooks()).await;
    bench.begin("s-1").await;
    overrule(&bench, "slow", 1).await;
    let held_up = slow.next().await;
    let soon = async {
        for number in 0..20 {
            let look = request("s-1", "slow.look", json!({ "n": number }));
            bench
                .runtime
                .agent_handle()
                .request_action(look)
                .await
                .unwrap();
            overrule(&bench, "quick", number).await;
            quick.next().await;
        }
    };
    // Far less than the slow address may take.
    let took = tokio::time::timeout(Duration::from_secs(8), soon).await;
    took.expect("the slow address held up others");
    let waiting = left(store.as_ref(), 1).await;
    assert_eq!(waiting[0].id, held_up.header("webhook-id"));
    slow.assert_no_request();
}

// covers B16
#[tokio::test]
async fn redirects_of_a_webhook_are_not_followed() {
    let mut other = Receiver::new(&[Answer::Status(200)]);
    let mut receiver = Receiver::new(&[Answer::Redirect(other.port)]);
    let (_folder, store) = sqlite();
    let own = atlas("own", &receiver.address);
    let bench = bench(vec![own], store.clone(), clock(), webhooks()).await;
    bench.begin("s-1").await;
    overrule(&bench, "own", 1).await;
    receiver.next().await;
    let snapshot = bench.wait_until(|s| s.notices.error.is_some()).await;
    assert_eq!(
        snapshot.notices.error.as_deref(),
        Some("it returned status 302")
    );
    assert_eq!(snapshot.notices.waiting, 1);
    other.assert_no_request();
}

// covers B16
#[tokio::test]
async fn disabled_notices_are_neither_stored_nor_sent() {
    for off in [NoticesOff::Demo, NoticesOff::Setting, NoticesOff::NoConsole] {
        let mut receiver = Receiver::new(&[Answer::Status(200)]);
        let (_folder, store) = sqlite();
        let own = atlas("own", &receiver.address);
        let bench = bench(vec![own], store.clone(), clock(), Webhooks::Off(off)).await;
        bench.begin("s-1").await;
        overrule(&bench, "own", 1).await;
        let cut = request("s-1", "own.cut", json!({}));
        bench
            .runtime
            .agent_handle()
            .request_action(cut)
            .await
            .unwrap();
        assert_eq!(kept(store.as_ref()).await, []);
        assert_eq!(bench.snapshot().notices.off, Some(off));
        bench.runtime.stop().await;
        receiver.assert_no_request();
    }
}

// covers B16
#[test]
fn notices_can_be_listed_retried_and_discarded_without_a_console() {
    let home = TestHome::of(|store| async move {
        let own = atlas("own", "http://127.0.0.1:1/");
        let bench = bench(vec![own], store, clock(), webhooks()).await;
        bench.begin("s-1").await;
        overrule(&bench, "own", 1).await;
        bench.wait_until(|s| s.notices.error.is_some()).await;
        bench.runtime.stop().await;
    });
    let all = home.run(&["notices", "--json"]).json();
    let id = all[0]["id"].as_str().unwrap();
    assert_eq!(
        (&all[0]["state"], &all[0]["attempts"]),
        (&json!("waiting"), &json!(1))
    );
    assert_eq!(all[0]["body"]["data"]["action"], "own.pay");
    let listed = home.run(&["notices"]);
    listed.succeeds();
    assert!(listed.out.contains(id) && listed.out.contains("own to http://127.0.0.1:1/"));
    assert!(
        listed
            .out
            .contains("    policy_override, own.pay of bot/s-1: "),
        "{}",
        listed.out
    );
    home.run(&["notices", "retry", "--failed"])
        .fails(1, &["there are no failed notices", "cra notices lists"]);
    home.run(&["notices", "retry", "msg_x"])
        .fails(1, &["no waiting or failed notice `msg_x`"]);
    home.run(&["--read-only", "notices", "forget", id])
        .fails(2, &["--read-only"]);
    let again = home.run(&["notices", "retry", id]);
    again.succeeds();
    assert_eq!(
        again.out,
        "1 notice is queued for the next start of the console.\n"
    );
    let all = home.run(&["notices", "--json"]).json();
    assert!(all[0]["since"].as_str().unwrap() > "2026-01-02");
    let gone = home.run(&["notices", "forget", id, "--json"]);
    assert_eq!(gone.json(), json!({"notices": 1}));
    let none = home.run(&["notices"]);
    assert_eq!(none.out, "No notices are waiting or failed.\n");
}

// covers B16
#[test]
fn webhook_secret_is_shown_only_on_request() {
    let home = TestHome::empty();
    let path = home.0.path().join(SECRET_FILE);
    let place = home.run(&["notices", "secret"]);
    place.succeeds();
    assert!(
        place.out.starts_with(path.to_str().unwrap()),
        "{}",
        place.out
    );
    assert!(
        !path.exists() && !place.out.contains("whsec_"),
        "{}",
        place.out
    );
    home.run(&["--read-only", "notices", "secret", "--show"])
        .fails(2, &["--read-only"]);
    let shown = home.run(&["notices", "secret", "--show", "--json"]).json();
    let secret = shown["secret"].as_str().unwrap();
    assert!(secret.parse::<Secret>().is_ok());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), secret);
    let again = home.run(&["notices", "secret", "--show"]);
    assert!(
        again.out.ends_with(&format!("\n{secret}\n")),
        "{}",
        again.out
    );
}
