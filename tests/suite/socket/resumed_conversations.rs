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

async fn start_console() -> TestConsole {
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    TestConsole::with(tempfile::tempdir().unwrap(), atlas(), clock).await
}

async fn restarted(console: TestConsole) -> TestConsole {
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    TestConsole::with(console.close().await, atlas(), clock).await
}

/// Ends `session` with something of every kind owed.
async fn leave_owing(agent: &mut Agent, session: &str) {
    agent.begin(session).await;
    let ask = |action: &str| json!({"session": session, "action": action, "params": {}});
    agent
        .call_ok("input", json!({"session": session, "text": "freeze it"}))
        .await;
    for _ in 0..2 {
        agent.call_ok("action.request", ask("note.read")).await;
    }
    let allowed = agent.call_ok("action.request", ask("note.write")).await;
    let done = json!({"session": session, "execution": allowed["execution"], "result": "ok"});
    agent.call_ok("action.completed", done).await;
    agent
        .call_ok("session.end", json!({"session": session}))
        .await;
}

/// Shows that `session` owes all of it.
async fn owes(console: &TestConsole, agent: &mut Agent, session: &str) {
    let ask = |action: &str| json!({"session": session, "action": action, "params": {}});
    let held = ask("note.read");
    let (reply, ()) = tokio::join!(
        agent.call_err("action.request", held),
        console.deny("not yet")
    );
    assert!(reply.contains("not yet"), "{session}: {reply}");
    let held = ask("note.read");
    let (reply, ()) = tokio::join!(agent.call_err("action.request", held), console.pass());
    assert!(reply.contains("2 runs"), "{session}: {reply}");
    let reply = agent.call_err("action.request", ask("note.send")).await;
    assert!(reply.contains("freeze"), "{session}: {reply}");
    agent.call_ok("action.request", ask("note.write")).await;
}

// covers B28
#[tokio::test]
async fn session_with_a_derived_name_inherits_open_gates_of_the_ended_one() {
    for successor in ["s.1", "s.7", "s.01", "s.20261118"] {
        let console = start_console().await;
        let mut agent = console.agent().await;
        leave_owing(&mut agent, "s").await;
        let start = json!({"session": "s", "agent": "bot"});
        let reply = agent.call_err("session.start", start).await;
        assert!(reply.contains("has ended"), "{reply}");
        // Another connection, with a key of its own.
        let mut other = console.agent().await;
        other.begin(successor).await;
        owes(&console, &mut other, successor).await;
    }
}

// covers B28
#[tokio::test]
async fn console_restart_clears_no_open_gate_of_a_conversation() {
    let console = start_console().await;
    leave_owing(&mut console.agent().await, "s").await;
    let console = restarted(console).await;
    let mut agent = console.agent().await;
    agent.begin("s.1").await;
    agent
        .call_ok("session.end", json!({"session": "s.1"}))
        .await;
    let console = restarted(console).await;
    let mut agent = console.agent().await;
    agent.begin("s.2").await;
    owes(&console, &mut agent, "s.2").await;
}

#[tokio::test]
async fn parallel_session_of_a_conversation_has_the_same_open_gates() {
    let console = start_console().await;
    let mut agent = console.agent().await;
    leave_owing(&mut agent, "s").await;
    agent.begin("s.1").await;
    agent.begin("s.2").await;
    owes(&console, &mut agent, "s.2").await;
}

#[tokio::test]
async fn conversation_whose_open_gates_are_not_recorded_cannot_continue() {
    let console = start_console().await;
    let mut agent = console.agent().await;
    agent.begin("s").await;
    let folder = console.close().await;
    // Its state is lost, its record is not.
    let file = folder.path().join(cra_core::store::sqlite::FILE_NAME);
    let store = rusqlite::Connection::open(&file).unwrap();
    store
        .execute("DELETE FROM state WHERE kind = 'session'", ())
        .unwrap();
    drop(store);
    let clock = Arc::new(ManualClock::new(SystemClock.now()));
    let console = TestConsole::with(folder, atlas(), clock).await;
    let mut agent = console.agent().await;
    let start = json!({"session": "s.1", "agent": "bot"});
    let reply = agent.call_err("session.start", start).await;
    assert!(
        reply.contains("does not show which gates session `s` must still pass"),
        "{reply}"
    );
}
