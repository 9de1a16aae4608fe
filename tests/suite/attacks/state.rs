//! The engine's state, edited in the file while no console is open: nothing that was not written by the console
//! counts.

use std::path::Path;
use std::sync::Arc;

use cra_core::base::clock::ManualClock;
use cra_core::engine::command::DenyCode;
use cra_core::engine::held::request_hash;
use cra_core::runtime::{RequestReply, SessionTurn, ThreadAction};
use cra_core::store::Store;
use cra_core::store::sqlite::FILE_NAME;
use futures_util::FutureExt;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::super::support::{Bench, clock, close, reopen_store, request};

/// A console with a permit for `T-1` and a held request for `T-2`, stopped.
async fn permit_and_held(folder: &Path, clock: &Arc<ManualClock>) {
    let store = Arc::new(reopen_store(folder));
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(clock)).await;
    bench.begin("s-1").await;
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&held).await;
    let agents = bench.runtime.agent_handle();
    assert!(
        agents
            .request_action(delete("T-1"))
            .now_or_never()
            .is_none()
    );
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&held).await;
    assert!(
        agents
            .request_action(delete("T-2"))
            .now_or_never()
            .is_none()
    );
    bench.wait_until(|s| s.held.len() == 1).await;
    bench.runtime.stop().await;
    close(store, folder).await;
}

fn delete(ticket: &str) -> cra_core::engine::command::ActionRequest {
    let params = json!({"ticket_ids": [ticket], "cascade": true});
    request("s-1", "ticket.delete", params)
}

fn rows(folder: &Path, kind: &str) -> Vec<(String, Value)> {
    let file = Connection::open(folder.join(FILE_NAME)).unwrap();
    let mut statement = file
        .prepare("SELECT key, body FROM state WHERE kind = ?1 ORDER BY key")
        .unwrap();
    let rows = statement.query_map([kind], |row| {
        let (key, body): (String, String) = (row.get(0)?, row.get(1)?);
        Ok((key, serde_json::from_str(&body).unwrap()))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn put(folder: &Path, kind: &str, key: &str, body: &Value) {
    let file = Connection::open(folder.join(FILE_NAME)).unwrap();
    let put = "INSERT OR REPLACE INTO state (kind, key, body) VALUES (?1, ?2, ?3)";
    file.execute(put, [kind, key, &body.to_string()]).unwrap();
}

fn drop_row(folder: &Path, kind: &str, key: &str) {
    let file = Connection::open(folder.join(FILE_NAME)).unwrap();
    let gone = "DELETE FROM state WHERE kind = ?1 AND key = ?2";
    file.execute(gone, [kind, key]).unwrap();
}

async fn again(folder: &Path, clock: &Arc<ManualClock>) -> (Bench, Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(reopen_store(folder));
    let bench = Bench::start(Arc::clone(&store), Arc::clone(clock)).await;
    (bench, store)
}

/// Asks to run; gives the approver of a run that is let through, and nothing for one that is denied or held.
async fn runs(bench: &Bench, ticket: &str) -> Option<Option<String>> {
    let agents = bench.runtime.agent_handle();
    let before = bench.snapshot().held.len();
    tokio::select! {
        answer = agents.request_action(delete(ticket)) => match answer {
            Ok(RequestReply::Allowed(allowed)) => Some(allowed.approved_by),
            Ok(RequestReply::Asked(_)) | Err(_) => None,
        },
        _ = bench.wait_until(|snapshot| snapshot.held.len() > before) => None,
    }
}

#[tokio::test]
async fn permits_and_held_requests_survive_a_restart() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    permit_and_held(folder.path(), &clock).await;
    let (bench, _store) = again(folder.path(), &clock).await;
    assert_eq!(bench.snapshot().distrusted, None);
    assert_eq!(bench.snapshot().held.len(), 1);
    assert_eq!(runs(&bench, "T-1").await, Some(Some("op-1".to_owned())));
    bench.runtime.stop().await;
}

#[tokio::test]
async fn state_left_by_a_killed_console_is_trusted() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store: Arc<dyn Store> = Arc::new(reopen_store(folder.path()));
    let bench = Bench::start(Arc::clone(&store), Arc::clone(&clock)).await;
    bench.begin("s-1").await;
    bench.wait_until(|s| s.held.len() == 1).await;
    let left = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, left.path().join(path.file_name().unwrap())).unwrap();
    }
    bench.runtime.stop().await;
    let (bench, _store) = again(left.path(), &clock).await;
    assert_eq!(bench.snapshot().distrusted, None);
    assert_eq!(bench.snapshot().held.len(), 1);
    bench.runtime.stop().await;
}

/// What is said about state that does not count, in the log and to the operator.
async fn distrusted(bench: &Bench, store: &Arc<dyn Store>) -> String {
    let reply = bench.snapshot().distrusted.clone().expect("it is believed");
    let log = store.log().await.unwrap().log;
    let entries = store.events(log, 0, 100).await.unwrap();
    let mut entries = entries.iter();
    let noted = entries.any(|entry| entry.payload.get("what") == Some(&json!(*reply)));
    assert!(noted, "the log says so, too: {reply}");
    reply.to_string()
}

#[tokio::test]
async fn state_with_a_removed_row_or_seal_is_rejected() {
    for kind in ["held", "session", "counter", "state_seal"] {
        let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
        permit_and_held(folder.path(), &clock).await;
        let (key, _) = rows(folder.path(), kind).remove(0);
        drop_row(folder.path(), kind, &key);
        let (bench, store) = again(folder.path(), &clock).await;
        let reply = distrusted(&bench, &store).await;
        assert!(reply.contains("1 permits"), "{kind}: {reply}");
        assert_eq!(runs(&bench, "T-1").await, None, "{kind}");
        assert_eq!(bench.snapshot().held, [], "{kind}");
        bench.runtime.stop().await;
        drop(store);
        // What is left is the console's own again.
        let (bench, _store) = again(folder.path(), &clock).await;
        assert_eq!(bench.snapshot().distrusted, None, "{kind}");
        bench.runtime.stop().await;
    }
}

#[tokio::test]
async fn permit_forged_in_the_file_allows_no_run() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    permit_and_held(folder.path(), &clock).await;
    let (key, mut permit) = rows(folder.path(), "permit").remove(0);
    let other = delete("T-9");
    let hash = request_hash(&other.session, &other.action, &other.params).to_string();
    permit["request_hash"] = json!(hash);
    permit["approved_by"] = json!("ceo@hq");
    drop_row(folder.path(), "permit", &key);
    put(folder.path(), "permit", &key, &permit);
    let (bench, store) = again(folder.path(), &clock).await;
    distrusted(&bench, &store).await;
    assert_eq!(runs(&bench, "T-9").await, None);
    assert_eq!(
        bench.snapshot().held,
        [],
        "held requests do not count either"
    );
    bench.runtime.stop().await;
}

#[tokio::test]
async fn used_permit_put_back_into_the_file_allows_no_run() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    permit_and_held(folder.path(), &clock).await;
    let before: Vec<_> = [
        "permit",
        "session",
        "held",
        "counter",
        "usage",
        "state_seal",
    ]
    .map(|kind| (kind, rows(folder.path(), kind)))
    .into();
    let (bench, store) = again(folder.path(), &clock).await;
    assert!(runs(&bench, "T-1").await.is_some());
    bench.runtime.stop().await;
    drop(store);
    // Everything in the state is as it was, and the record goes on.
    for (kind, rows) in before {
        for (key, body) in rows {
            put(folder.path(), kind, &key, &body);
        }
    }
    let (bench, store) = again(folder.path(), &clock).await;
    distrusted(&bench, &store).await;
    assert_eq!(runs(&bench, "T-1").await, None);
    bench.runtime.stop().await;
}

/// Takes a turn in the thread `t`: the arc behind it, or the code of the denial.
async fn take_turn(bench: &Bench, session: &str, message: &str) -> Result<String, DenyCode> {
    let turn = json!({"message_id": message, "message": "go on", "proposed": {"arc": session}});
    let take = SessionTurn {
        session: session.parse().unwrap(),
        thread: Some("t".parse().unwrap()),
        turn: serde_json::from_value(turn).unwrap(),
    };
    let taken = bench.runtime.agent_handle().turn(take).await;
    let taken = taken.map(|taken| taken.outcome.memento.arc.as_str().to_owned());
    taken.map_err(|denied| denied.code)
}

#[tokio::test]
async fn thread_changed_in_the_file_waits_until_an_operator_assigns_it() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = Arc::new(reopen_store(folder.path()));
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&clock)).await;
    bench.begin("owner").await;
    bench.begin("mallory").await;
    assert_eq!(take_turn(&bench, "owner", "m-1").await.unwrap(), "owner");
    assert_eq!(
        take_turn(&bench, "mallory", "m-2").await,
        Err(DenyCode::Thread)
    );
    bench.runtime.stop().await;
    close(store, folder.path()).await;
    let (key, mut thread) = rows(folder.path(), "thread").remove(0);
    thread["owner"] = json!({"session": "later"});
    put(folder.path(), "thread", &key, &thread);

    let (bench, store) = again(folder.path(), &clock).await;
    let reply = distrusted(&bench, &store).await;
    assert!(reply.contains("1 threads wait"), "{reply}");
    for session in ["later", "heir"] {
        bench.begin(session).await;
        let taken = take_turn(&bench, session, "m-3").await;
        assert_eq!(taken, Err(DenyCode::Thread), "{session}");
    }
    let to = "heir".parse().unwrap();
    let act = ThreadAction::HandOver { to };
    let operator = bench.runtime.operator_handle();
    let handed = operator.act_on_thread("t".parse().unwrap(), act).await;
    handed.unwrap();
    assert_eq!(take_turn(&bench, "heir", "m-4").await.unwrap(), "heir");
    assert_eq!(
        take_turn(&bench, "later", "m-5").await,
        Err(DenyCode::Thread)
    );
    bench.runtime.stop().await;
}

#[tokio::test]
async fn tampered_early_answer_count_does_not_hide_that_events_may_be_missing() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    permit_and_held(folder.path(), &clock).await;
    let (key, mut note) = rows(folder.path(), "acknowledgement").remove(0);
    note["may_lose"] = json!(1);
    put(folder.path(), "acknowledgement", &key, &note);
    let (bench, store) = again(folder.path(), &clock).await;
    distrusted(&bench, &store).await;
    let log = store.log().await.unwrap().log;
    let entries = store.events(log, 0, 100).await.unwrap();
    let missing = entries.iter().any(|entry| {
        let what = entry.payload.get("what").and_then(Value::as_str);
        what.is_some_and(|what| what.contains("acknowledged events may be missing"))
    });
    assert!(missing, "{entries:?}");
    bench.runtime.stop().await;
}

#[tokio::test]
async fn session_forged_in_the_file_may_not_act() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), clock());
    let store = Arc::new(reopen_store(folder.path()));
    let bench = Bench::start(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&clock)).await;
    bench.begin("s-2").await;
    let held = bench.wait_until(|s| s.held.len() == 1).await.held[0].clone();
    bench.pass(&held).await;
    bench.begin("s-1").await;
    bench.wait_until(|s| s.held.len() == 1).await;
    bench.runtime.stop().await;
    close(store, folder.path()).await;
    // The one session gets what the other one passed a gate for.
    let [(key, mut session), (_, passed)] = rows(folder.path(), "session").try_into().unwrap();
    assert_eq!(key, "s-1");
    for field in ["entry", "unlocked", "allowed"] {
        session[field] = passed[field].clone();
    }
    put(folder.path(), "session", &key, &session);
    let (bench, _store) = again(folder.path(), &clock).await;
    let get = request("s-1", "ticket.get", json!({"ticket_id": "T-1"}));
    let reply = bench.runtime.agent_handle().request_action(get).await;
    assert!(reply.is_err(), "{reply:?}");
    bench.runtime.stop().await;
}
