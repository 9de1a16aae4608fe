//! `kill -9`, again and again: events that were once read from disk stay there.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cra_core::base::digest::Digest;
use cra_core::base::id::SessionId;
use cra_core::store::StoreReader as _;
use cra_core::store::sqlite::{FILE_NAME, SqliteReader};
use serde_json::{Value, json};

use super::workspace::{WIDE, Workspace};

/// Number of kills, on each of two threads with its own store.
const KILLS: u64 = 100;

/// Longest wait, on the slowest machine.
const DEADLINE: Duration = Duration::from_mins(1);

/// Agents that ask without end for what is allowed, and one that stands at a gate.
fn script() -> Value {
    let get = json!({ "action": "ticket.get", "params": { "ticket_id": "T-{n}" } });
    let busy = |name: &str| json!({ "agent": name, "pause_ms": 0, "steps": vec![get.clone(); 20] });
    let delete = json!({ "action": "ticket.delete", "params": { "ticket_ids": ["T-{n}"] } });
    let gated = json!({ "agent": "gated", "pause_ms": 0, "sessions": 1, "steps": [get, delete] });
    json!({ "agents": [busy("one"), busy("other"), gated] })
}

/// Events that an observer has read of each session: their number, and the hash of the last.
type Seen = BTreeMap<SessionId, (u64, Digest)>;

/// Reads the store while the program writes. Events read before must still be there.
fn observe(workspace: &Workspace, seen: &mut Seen) -> u64 {
    let file = workspace.path("data").join(FILE_NAME);
    // Before the first run has made it, there is nothing to see.
    let Ok(reader) = SqliteReader::open(&file) else {
        assert!(seen.is_empty(), "what was there cannot be read");
        return 0;
    };
    let heads = reader.heads().unwrap();
    for head in &heads {
        let before = seen.insert(head.session.clone(), (head.count, head.hash));
        let Some((count, hash)) = before.filter(|before| *before != (head.count, head.hash)) else {
            continue;
        };
        let then = reader.session_records(&head.session, count - 1, 1).unwrap();
        let same = then.first().is_some_and(|record| record.hash == hash);
        assert!(
            same,
            "event {count} of {} is another one or gone",
            head.session
        );
    }
    assert!(heads.len() >= seen.len(), "a session is gone");
    heads.iter().map(|head| head.count).sum()
}

fn kill_often(thread: u64) {
    let workspace = Workspace::new("gates.yaml");
    let mut seen = Seen::new();
    for round in 0..KILLS {
        let before = observe(&workspace, &mut seen);
        // Any number from a few to many, the same in every run of the test.
        let more = 4 + (round * 37 + thread * 11) % 50;
        let mut terminal = workspace.demo(&script(), WIDE);
        let deadline = Instant::now() + DEADLINE;
        while observe(&workspace, &mut seen) < before + more {
            assert!(Instant::now() < deadline, "{}", terminal.text());
            std::thread::yield_now();
        }
        terminal.kill9();
        observe(&workspace, &mut seen);
    }
    let verified = workspace.cra(&["trace", "verify", "--json"]);
    let report: Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(report["sound"], true, "{report}");
    assert!(seen.len() as u64 > KILLS, "{} sessions", seen.len());
}

// covers T25
#[test]
fn console_killed_at_any_time_loses_no_acknowledged_event() {
    std::thread::scope(|scope| {
        scope.spawn(|| kill_often(0));
        scope.spawn(|| kill_often(1));
    });
}
