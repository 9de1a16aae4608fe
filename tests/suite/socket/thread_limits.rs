//! Room for conversations: no process takes all of it, and no session loses a conversation to another.

use std::sync::Arc;
use std::time::Duration;

use cra_core::base::limits::{
    ENDED_THREAD_TIME, MAX_SESSION_THREADS, MAX_THREADS, MAX_THREADS_PER_PEER,
};
use cra_core::engine::command::{DenialReply, EndSession, StartSession};
use cra_core::memento::Thread;
use cra_core::runtime::SessionTurn;
use cra_core::trace::event::FinalStatus;
use serde_json::{Value, json};

use super::threads::{begun, denial, heated, turn};
use super::{Agent, TestConsole};

/// Starts a session in the console's own process: the process of its agent is not known.
async fn begin_inside(console: &TestConsole, session: &str) {
    let start = StartSession {
        delivery: cra_core::engine::command::DeliveryTime::Now,
        session: session.parse().unwrap(),
        agent: "bot".to_owned(),
        agent_version: None,
        intent: None,
        owner: None,
    };
    let agents = console.bench.runtime.agent_handle();
    agents.start_session(start).await.unwrap();
}

async fn turn_inside(
    console: &TestConsole,
    session: &str,
    thread: &str,
) -> Result<(), DenialReply> {
    let text = json!({"session": session, "thread": thread, "message_id": "m-1", "message": "go"});
    let take = SessionTurn::read_all(text.to_string().as_bytes()).unwrap();
    let take = take.into_iter().next().unwrap();
    let agents = console.bench.runtime.agent_handle();
    agents.turn(take).await.map(drop)
}

/// Begins threads in sessions of this process, until one is refused: its session, its name and its reason.
async fn fill(console: &TestConsole, agents: &mut Vec<Agent>) -> (String, String, Value) {
    for number in 0.. {
        let session = format!("s-{number}");
        let (mut agent, _) = begun(console, &session).await;
        for thread in 0..MAX_SESSION_THREADS - 1 {
            console.bench.clock.advance(Duration::from_millis(1));
            let name = format!("{session}.t-{thread}");
            // Every thread is frozen, with a proposal that is held back: none can make room.
            for message in [1, 2] {
                let fields = heated("hot", 0.9);
                let reply = agent.call("turn", turn(&session, &name, message, &fields));
                if let Err(cra_core::gateway::protocol::call::CallError::Fault(fault)) = reply.await
                {
                    agents.push(agent);
                    return (session, name, json!([fault.message, fault.data]));
                }
            }
        }
        agents.push(agent);
    }
    unreachable!("there is a limit");
}

fn of(threads: &[Arc<Thread>], session: &str) -> usize {
    let owned = |thread: &&Arc<Thread>| {
        let owner = thread.owner.as_ref();
        owner.is_some_and(|owner| owner.session.as_str() == session)
    };
    threads.iter().filter(owned).count()
}

// covers D20
#[tokio::test]
async fn one_process_cannot_use_up_the_thread_limit_also_after_a_restart() {
    let console = TestConsole::new().await;
    let mut agents = Vec::new();
    let (session, name, reply) = fill(&console, &mut agents).await;
    let threads = console
        .bench
        .wait_until(|snapshot| !snapshot.threads.is_empty())
        .await;
    assert_eq!(threads.threads.len(), MAX_THREADS_PER_PEER);
    let reply = reply.to_string();
    assert!(reply.contains("this process has 100 threads"), "{reply}");
    assert!(reply.contains("session.end"), "{reply}");
    begin_inside(&console, "innocent").await;
    turn_inside(&console, "innocent", "first").await.unwrap();
    // Ended sessions count as well, while something waits in their threads.
    let mut first = agents.remove(0);
    first
        .call_ok("session.end", json!({"session": "s-0"}))
        .await;
    let last = agents.last_mut().unwrap();
    let again = turn(&session, &name, 3, &json!({}));
    assert_eq!(denial(last.call("turn", again).await), "limit");
    drop(agents);
    let console = console.restart().await;
    let (mut later, _) = begun(&console, "later").await;
    let again = turn("later", "later.t", 1, &json!({}));
    assert_eq!(denial(later.call("turn", again).await), "limit");
    begin_inside(&console, "innocent-2").await;
    turn_inside(&console, "innocent-2", "second").await.unwrap();
}

#[tokio::test]
async fn a_process_at_its_limit_loses_the_oldest_calm_thread_of_its_ended_sessions() {
    let console = TestConsole::new().await;
    let mut agents = [
        begun(&console, "s-0").await.0,
        begun(&console, "s-1").await.0,
    ];
    for number in 0..MAX_THREADS_PER_PEER {
        let agent = &mut agents[number / MAX_SESSION_THREADS];
        let session = format!("s-{}", number / MAX_SESSION_THREADS);
        console.bench.clock.advance(Duration::from_secs(1));
        let name = format!("t-{number}");
        agent
            .call_ok("turn", turn(&session, &name, 1, &json!({})))
            .await;
    }
    let (mut new, _) = begun(&console, "new").await;
    let one_more = || turn("new", "one-more", 1, &json!({}));
    assert_eq!(denial(new.call("turn", one_more()).await), "limit");
    agents[0]
        .call_ok("session.end", json!({"session": "s-0"}))
        .await;
    new.call_ok("turn", one_more()).await;
    let snapshot = console
        .bench
        .wait_until(|snapshot| of(&snapshot.threads, "new") == 1)
        .await;
    assert_eq!(snapshot.threads.len(), MAX_THREADS_PER_PEER);
    let has = |id: &str| {
        snapshot
            .threads
            .iter()
            .any(|thread| thread.id.as_str() == id)
    };
    assert!(!has("t-0") && has("t-1"));
}

#[tokio::test]
async fn a_full_console_refuses_new_threads_until_those_of_ended_sessions_are_a_day_old() {
    let console = TestConsole::new().await;
    for number in 0..MAX_THREADS / MAX_SESSION_THREADS {
        let session = format!("s-{number}");
        begin_inside(&console, &session).await;
        for thread in 0..MAX_SESSION_THREADS {
            let name = format!("{session}.t-{thread}");
            turn_inside(&console, &session, &name).await.unwrap();
        }
    }
    let (mut new, _) = begun(&console, "new").await;
    let one_more = || turn("new", "one-more", 1, &json!({}));
    assert_eq!(denial(new.call("turn", one_more()).await), "limit");
    let snapshot = console
        .bench
        .wait_until(|snapshot| snapshot.threads_full_at.is_some())
        .await;
    assert_eq!(snapshot.threads.len(), MAX_THREADS);
    let end = EndSession {
        delivery: cra_core::engine::command::DeliveryTime::Now,
        session: "s-3".parse().unwrap(),
        status: FinalStatus::Completed,
        summary: None,
    };
    let agents = console.bench.runtime.agent_handle();
    agents.end_session(end).await.unwrap();
    assert_eq!(denial(new.call("turn", one_more()).await), "limit");
    console.bench.clock.advance(ENDED_THREAD_TIME);
    new.call_ok("turn", one_more()).await;
    let snapshot = console
        .bench
        .wait_until(|snapshot| of(&snapshot.threads, "new") == 1)
        .await;
    assert_eq!(snapshot.threads.len(), MAX_THREADS);
    assert_eq!(of(&snapshot.threads, "s-3"), MAX_SESSION_THREADS - 1);
}
