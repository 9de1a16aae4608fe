//! Timers of hooks.

use super::*;
use crate::gateway::agents::CodingAgent;
use crate::gateway::protocol::proof::AnswerSigner;
use crate::trace::note::Signer;

fn agent(name: &str) -> CodingAgent {
    CodingAgent::from_name(name).unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn hook_event(host: CodingAgent) -> HookEvent {
    let payload = json!({
        "session_id": "s-1", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "ls"}, "tool_use_id": "t-1",
    });
    HookEvent::read(host, payload.to_string().as_bytes()).unwrap()
}

fn socket(path: &std::path::Path) -> ConsoleSocket {
    let log = Signer::new("cra/log-1", &[7; 32]).unwrap();
    ConsoleSocket {
        path: path.to_owned(),
        key: Ok(AnswerSigner::derive(&log).verifier()),
        folder: std::path::PathBuf::new(),
    }
}

fn options(timer: Option<Duration>) -> HookOptions {
    HookOptions {
        agent: agent("claude-code"),
        started_at: Instant::now(),
        timeout: timer,
        offline: OfflineBehavior::Deny,
        secret: Digest::ZERO,
        api_key: None,
        answer_command: crate::gateway::hook::AnswerCommand {
            program: "/usr/bin/cra".into(),
            location_args: Vec::new(),
        },
    }
}

/// Timer of the agent, time for the hook, latest time of an answer: all in milliseconds.
const MARGINS: [(u64, u64, u64); 10] = [
    (0, 0, 0),
    (10, 9, 9),
    (900, 810, 855),
    (1000, 900, 950),
    (30_000, 27_000, 28_500),
    (49_990, 44_991, 47_490),
    (50_000, 45_000, 47_500),
    (50_010, 45_010, 47_510),
    (60_000, 55_000, 57_500),
    (600_000, 595_000, 597_500),
];

#[test]
fn a_tenth_of_the_timer_up_to_five_seconds_is_reserved() {
    for (timer, hook, last) in MARGINS {
        assert_eq!(hook_time(ms(timer)), ms(hook), "{timer}");
        let options = options(Some(ms(timer)));
        let moment =
            answer_deadline(&hook_event(agent("claude-code")), &options) - options.started_at;
        assert_eq!(moment.as_millis(), u128::from(last), "{timer}");
    }
}

#[test]
fn the_console_gives_up_before_the_hook_and_the_hook_before_the_agent() {
    let mut timers: Vec<_> = MARGINS.iter().map(|(timer, ..)| ms(*timer)).collect();
    timers.extend([Duration::from_nanos(1), Duration::from_micros(1), ms(1)]);
    for timer in timers {
        let hook = hook_time(timer);
        let options = options(Some(timer));
        let last =
            answer_deadline(&hook_event(agent("claude-code")), &options) - options.started_at;
        assert!(console_time(hook) <= hook, "{timer:?}");
        assert!(hook <= last && last <= timer, "{timer:?}");
        if timer >= Duration::from_micros(1) {
            assert!(console_time(hook) < hook, "{timer:?}");
            assert!(hook < last && last < timer, "{timer:?}");
        }
    }
    // The console's own margin ends at one second.
    assert_eq!(console_time(ms(19_980)), ms(18_981));
    assert_eq!(console_time(ms(20_000)), ms(19_000));
    assert_eq!(console_time(ms(20_001)), ms(19_001));
    assert_eq!(console_time(Duration::ZERO), Duration::ZERO);
}

#[test]
fn every_agent_has_a_timer_that_leaves_a_margin() {
    for (host, seconds) in [
        (agent("claude-code"), 600),
        (agent("codex"), 600),
        (agent("gemini"), 60),
        (agent("cursor"), 60),
        (agent("qwen"), 60),
        (agent("copilot"), 30),
        (agent("opencode"), 60),
    ] {
        let timer = host.adapter().default_timeout();
        assert_eq!(timer, Duration::from_secs(seconds));
        assert!(hook_time(timer) + Duration::from_secs(3) <= timer);
    }
    let options = options(None);
    let usual = timeout(&hook_event(agent("claude-code")), &options);
    assert_eq!(usual, Duration::from_mins(10));
}

#[test]
fn a_timer_that_is_over_denies_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    // This listener accepts the connection and never answers.
    let _silent = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let verdict = decide_over_socket(
        &hook_event(agent("claude-code")),
        &options(Some(Duration::ZERO)),
        &socket(&path),
    );
    let HookVerdict::Deny { reason } = verdict else {
        panic!("{verdict:?}");
    };
    assert!(reason.contains("did not answer in time"), "{reason}");
}
