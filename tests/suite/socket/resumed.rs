//! Sessions at the socket that go on with the conversation of one that has ended.

use super::*;

/// A gate after an action, a denial that an input calls for, and a limit.
const RULES: &str = "atlas_version: '1.0'
atlas_id: own
version: '1'
name: Own
default_decision: allow
actions:
  - {action_id: note.write, name: Write, description: d, risk_tier: low}
  - {action_id: note.read, name: Read, description: d, risk_tier: low}
  - {action_id: note.send, name: Send, description: d, risk_tier: low}
checkpoints:
  - {checkpoint_id: look, trigger: {type: action_post, patterns: [note.write]}, mode: blocking}
  - {checkpoint_id: freeze, trigger: {type: keyword, patterns: [freeze]}, deny_actions: [note.send]}
policies:
  - {policy_id: few, type: rate_limit, max_calls: 2, window_seconds: 3600, actions: [note.read]}
";

fn atlas() -> Vec<Atlas> {
    vec![load_str("own.yaml", RULES).unwrap().atlas]
}

async fn house() -> House {
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    House::with(tempfile::tempdir().unwrap(), atlas(), clock).await
}

async fn restarted(house: House) -> House {
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    House::with(house.close().await, atlas(), clock).await
}

/// Ends `session` with something of every kind owed.
async fn leave_owing(agent: &mut Agent, session: &str) {
    agent.begin(session).await;
    let ask = |action: &str| json!({"session": session, "action": action, "params": {}});
    agent
        .says("input", json!({"session": session, "text": "freeze it"}))
        .await;
    for _ in 0..2 {
        agent.says("action.request", ask("note.read")).await;
    }
    let allowed = agent.says("action.request", ask("note.write")).await;
    let done = json!({"session": session, "execution": allowed["execution"], "result": "ok"});
    agent.says("action.completed", done).await;
    agent.says("session.end", json!({"session": session})).await;
}

/// Shows that `session` owes all of it.
async fn owes(house: &House, agent: &mut Agent, session: &str) {
    let ask = |action: &str| json!({"session": session, "action": action, "params": {}});
    let held = ask("note.read");
    let (told, ()) = tokio::join!(agent.refused("action.request", held), house.deny("not yet"));
    assert!(told.contains("not yet"), "{session}: {told}");
    let held = ask("note.read");
    let (told, ()) = tokio::join!(agent.refused("action.request", held), house.pass());
    assert!(told.contains("2 runs"), "{session}: {told}");
    let told = agent.refused("action.request", ask("note.send")).await;
    assert!(told.contains("freeze"), "{session}: {told}");
    agent.says("action.request", ask("note.write")).await;
}

// covers B28
#[tokio::test]
async fn a_session_of_a_derived_name_owes_what_the_ended_one_owed() {
    for successor in ["s.1", "s.7", "s.01", "s.20261118"] {
        let house = house().await;
        let mut agent = house.agent().await;
        leave_owing(&mut agent, "s").await;
        let start = json!({"session": "s", "agent": "bot"});
        let told = agent.refused("session.start", start).await;
        assert!(told.contains("has ended"), "{told}");
        // Another connection, with a key of its own.
        let mut other = house.agent().await;
        other.begin(successor).await;
        owes(&house, &mut other, successor).await;
    }
}

// covers B28
#[tokio::test]
async fn a_restart_of_the_console_pays_nothing_that_a_conversation_owes() {
    let house = house().await;
    leave_owing(&mut house.agent().await, "s").await;
    let house = restarted(house).await;
    let mut agent = house.agent().await;
    agent.begin("s.1").await;
    agent.says("session.end", json!({"session": "s.1"})).await;
    let house = restarted(house).await;
    let mut agent = house.agent().await;
    agent.begin("s.2").await;
    owes(&house, &mut agent, "s.2").await;
}

#[tokio::test]
async fn a_session_beside_a_live_one_of_its_conversation_owes_the_same() {
    let house = house().await;
    let mut agent = house.agent().await;
    leave_owing(&mut agent, "s").await;
    agent.begin("s.1").await;
    agent.begin("s.2").await;
    owes(&house, &mut agent, "s.2").await;
}

#[tokio::test]
async fn a_conversation_whose_end_is_not_on_record_cannot_go_on() {
    let house = house().await;
    let mut agent = house.agent().await;
    agent.begin("s").await;
    let folder = house.close().await;
    // Its state is lost, its record is not.
    let file = folder.path().join(cra_core::store::sqlite::FILE_NAME);
    let store = rusqlite::Connection::open(&file).unwrap();
    store
        .execute("DELETE FROM state WHERE kind = 'session'", ())
        .unwrap();
    drop(store);
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let house = House::with(folder, atlas(), clock).await;
    let mut agent = house.agent().await;
    let start = json!({"session": "s.1", "agent": "bot"});
    let told = agent.refused("session.start", start).await;
    assert!(
        told.contains("does not say which gates `s` still owes"),
        "{told}"
    );
}
