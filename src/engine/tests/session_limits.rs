//! Tests of the bounds on live sessions: per caller, and in all.

use super::*;
use crate::base::limits::{IDLE_SESSIONS_PER_EVICTION, MAX_SESSIONS, MAX_SESSIONS_PER_PEER};

fn start_from(bench: &mut EngineBench, session: &str, pid: i32) -> ReplyId {
    start_under(bench, session, pid, None)
}

/// Starts a session from a process with this process session leader.
fn start_under(bench: &mut EngineBench, session: &str, pid: i32, leader: Option<i32>) -> ReplyId {
    let start = StartSession {
        delivery: crate::engine::command::DeliveryTime::Now,
        session: session.parse().unwrap(),
        agent: "bot".to_owned(),
        agent_version: None,
        intent: None,
        owner: Some(SessionOwner {
            secret: Digest::ZERO,
            api_key: None,
            from: Some(Caller::Socket {
                uid: 1,
                pid: Some(pid),
                leader,
            }),
        }),
    };
    bench.reply_id(|reply_id| EngineCommand::StartSession(reply_id, start))
}

fn open_bench() -> EngineBench {
    EngineBench::new(&[&atlas("default_decision: allow\nunknown_actions: allow\n")])
}

/// Adds live sessions to the engine without recording them.
fn fill(bench: &mut EngineBench, count: usize) {
    let (hash, now) = (bench.engine.atlas_hash(), bench.now);
    for n in 0..count {
        let id: SessionId = format!("f-{n}").parse().unwrap();
        let session = Session::hypothetical(id, "bot".to_owned(), None, hash, now);
        bench.engine.state.add_session(session);
    }
}

#[test]
fn the_session_limit_of_one_process_does_not_affect_others() {
    let mut bench = open_bench();
    let started = |bench: &EngineBench, reply_id| {
        matches!(bench.reply(reply_id), Reply::Agent(AgentReply::Started(_)))
    };
    for n in 0..MAX_SESSIONS_PER_PEER {
        let reply_id = start_from(&mut bench, &format!("s-{n}"), 7);
        assert!(started(&bench, reply_id));
    }
    let more = start_from(&mut bench, "more", 7);
    let denied = bench.denied(more);
    assert_eq!(denied.code, DenyCode::Overload);
    assert!(denied.reason.contains("4096 open sessions"), "{denied:?}");
    let other = start_from(&mut bench, "other", 8);
    assert!(started(&bench, other));
    // There is room again once one has ended.
    bench.end("s-0");
    let again = start_from(&mut bench, "again", 7);
    assert!(started(&bench, again));
}

#[test]
fn the_longest_idle_sessions_make_room_and_busy_ones_stay() {
    let gate = "checkpoints:\n  - {checkpoint_id: g, name: G, mode: blocking, \
                trigger: {type: action_pre, patterns: [pay]}}\n";
    let body = format!("default_decision: allow\nunknown_actions: allow\n{gate}");
    let mut bench = EngineBench::new(&[&atlas(&body)]);
    bench.start("works");
    bench.request("works", "look", json!({}));
    bench.start("waits");
    bench.request("waits", "pay", json!({}));
    bench.advance(1);
    fill(&mut bench, MAX_SESSIONS - 3);
    bench.advance(1);
    bench.start("fresh");
    assert_eq!(bench.engine.sessions().len(), MAX_SESSIONS);
    let reply_id = bench.start("new");
    assert!(matches!(
        bench.reply(reply_id),
        Reply::Agent(AgentReply::Started(_))
    ));
    assert_eq!(
        bench.engine.sessions().len(),
        MAX_SESSIONS - IDLE_SESSIONS_PER_EVICTION + 1
    );
    for name in ["works", "waits", "fresh", "new"] {
        let session: SessionId = name.parse().unwrap();
        assert!(bench.engine.session(&session).is_some(), "{name}");
    }
    let ended = bench.payloads("session_ended");
    assert_eq!(ended.len(), IDLE_SESSIONS_PER_EVICTION);
    assert_eq!(ended[0]["final_status"], "timeout");
}

#[test]
fn a_session_is_denied_when_every_other_one_is_busy() {
    let mut bench = open_bench();
    fill(&mut bench, MAX_SESSIONS);
    let running = {
        bench.start("works");
        bench.request("works", "look", json!({}));
        let session: SessionId = "works".parse().unwrap();
        bench.engine.session(&session).unwrap().running.clone()
    };
    fill(&mut bench, MAX_SESSIONS);
    for session in bench.engine.state.sessions.values_mut() {
        session.running.clone_from(&running);
    }
    let reply_id = bench.start("new");
    let denied = bench.denied(reply_id);
    assert_eq!(denied.code, DenyCode::Overload);
    assert!(denied.reason.contains("none is idle"), "{denied:?}");
}

#[test]
fn processes_of_one_terminal_share_one_limit() {
    let mut bench = open_bench();
    let terminal = Some(3);
    for n in 0..MAX_SESSIONS_PER_PEER {
        // Each session comes from another process, as with hooks.
        let pid = 100 + i32::try_from(n).unwrap();
        let reply_id = start_under(&mut bench, &format!("s-{n}"), pid, terminal);
        assert!(
            matches!(bench.reply(reply_id), Reply::Agent(AgentReply::Started(_))),
            "{n}"
        );
    }
    let more = start_under(&mut bench, "more", 9000, terminal);
    assert_eq!(bench.denied(more).code, DenyCode::Overload);
    let other = start_under(&mut bench, "other", 9000, Some(4));
    assert!(matches!(
        bench.reply(other),
        Reply::Agent(AgentReply::Started(_))
    ));
}

#[test]
fn a_caller_with_few_sessions_loses_none_to_a_caller_with_many() {
    let mut bench = open_bench();
    start_from(&mut bench, "quiet", 1);
    bench.advance(60);
    let many = (0..MAX_SESSIONS_PER_PEER).map(|n| format!("m-{n}"));
    for session in many {
        start_from(&mut bench, &session, 2);
    }
    fill(&mut bench, MAX_SESSIONS - MAX_SESSIONS_PER_PEER - 1);
    assert_eq!(bench.engine.sessions().len(), MAX_SESSIONS);
    let reply_id = start_from(&mut bench, "new", 3);
    assert!(matches!(
        bench.reply(reply_id),
        Reply::Agent(AgentReply::Started(_))
    ));
    let quiet: SessionId = "quiet".parse().unwrap();
    assert!(
        bench.engine.session(&quiet).is_some(),
        "idle longest of all"
    );
    assert_eq!(
        bench.payloads("session_ended").len(),
        IDLE_SESSIONS_PER_EVICTION
    );
    let left = bench.engine.sessions().into_iter();
    let of_many = left
        .filter(|session| session.id.as_str().starts_with("m-"))
        .count();
    assert_eq!(of_many, MAX_SESSIONS_PER_PEER - IDLE_SESSIONS_PER_EVICTION);
}
