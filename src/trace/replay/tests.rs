//! Replay tests on generated sessions.

use std::cell::RefCell;
use std::convert::Infallible;

use serde_json::{Map, Value, json};

use super::state::{HoldScope, ReleaseKind, ReplayPhase};
use super::{Replay, ReplayState, StopCondition};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::pattern::Patterns;
use crate::trace::event::Event;
use crate::trace::source::{EventSource, MemorySource, PAGE};
use crate::trace::verification::ChainVerification;

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("not an object: {other}"),
    }
}

/// An event of operation `t`, in its own span below the root.
pub(crate) fn event(sequence: u64, event_type: &str, payload: Value) -> Event {
    let below = |parent: &str| (sequence > 0).then(|| parent.parse().unwrap());
    Event {
        trace_version: "1.0".to_owned(),
        event_id: format!("e-{sequence}").parse().unwrap(),
        trace_id: "t".parse().unwrap(),
        span_id: format!("span-{sequence}").parse().unwrap(),
        parent_span_id: below("span-0"),
        session_id: session(),
        sequence,
        timestamp: Timestamp::from_micros(i64::try_from(sequence % 1_000_000).unwrap() * 1000),
        event_type: event_type.to_owned(),
        payload: fields(payload),
        pruned: false,
        previous_hash: Digest::ZERO,
        hash: Digest::of(sequence.to_string()),
    }
}

pub(crate) fn session() -> SessionId {
    "s-1".parse().unwrap()
}

/// Source that generates the events of a long session on demand and notes each read.
struct Endless {
    events: u64,
    read: RefCell<Vec<(u64, usize)>>,
}

impl Endless {
    fn new(events: u64) -> Self {
        Self {
            events,
            read: RefCell::new(Vec::new()),
        }
    }

    fn event(sequence: u64) -> Event {
        let action = json!({"action_type": format!("a.{}", sequence / 3)});
        match sequence % 3 {
            _ if sequence == 0 => event(0, "session_started", json!({"agent_type": "bot"})),
            0 => event(sequence, "action_attempted", action),
            1 => event(sequence, "policy_checked", action),
            _ => {
                let mut done = event(sequence, "action_completed", action);
                done.payload.insert("success".to_owned(), json!(true));
                done.parent_span_id = Some(format!("span-{}", sequence - 2).parse().unwrap());
                done
            }
        }
    }
}

impl EventSource for Endless {
    type Error = Infallible;

    fn events(&self, _: &SessionId, from: u64, limit: usize) -> Result<Vec<Event>, Infallible> {
        let to = from.saturating_add(limit as u64).min(self.events);
        self.read.borrow_mut().push((from, limit));
        Ok((from..to).map(Self::event).collect())
    }

    fn end(&self, _: &SessionId) -> Result<u64, Infallible> {
        Ok(self.events)
    }

    fn verify(&self, _: &SessionId) -> Result<Option<ChainVerification>, Infallible> {
        Ok(None)
    }
}

fn replay(events: Vec<Event>) -> Replay<MemorySource> {
    Replay::load(MemorySource::new(events), session())
        .unwrap()
        .unwrap()
}

fn sequence(event: Option<&Event>) -> Option<u64> {
    event.map(|event| event.sequence)
}

// covers T32
#[test]
fn seeking_in_a_million_events_reads_only_one_window() {
    let source = Endless::new(1_000_000);
    let mut replay = Replay::load(&source, session()).unwrap().unwrap();
    for wanted in [999_999, 3, 500_000] {
        let found = replay.seek(wanted).unwrap().unwrap();
        assert_eq!(*found, Endless::event(wanted));
        assert_eq!(replay.at(), Some(wanted));
    }
    assert_eq!(sequence(replay.forward().unwrap()), Some(500_001));
    assert_eq!(sequence(replay.back().unwrap()), Some(500_000));
    assert_eq!(sequence(replay.back().unwrap()), Some(499_999));
    let read = source.read.borrow().clone();
    assert!(read.len() <= 6, "{read:?}");
    assert!(read.iter().all(|(_, limit)| *limit <= PAGE), "{read:?}");
}

// covers T32
#[test]
fn steps_go_forward_and_back_and_stop_at_the_ends() {
    let source = Endless::new(2_500);
    let mut replay = Replay::load(&source, session()).unwrap().unwrap();
    assert_eq!((replay.at(), replay.end()), (None, 2_500));
    assert_eq!(replay.back().unwrap(), None);
    let mut summaries = Vec::new();
    replay.step(|event| summaries.push(event.sequence)).unwrap();
    assert_eq!(summaries, (0..2_500).collect::<Vec<_>>());
    assert_eq!(replay.forward().unwrap(), None);
    assert_eq!(replay.at(), Some(2_499));
    for before in (0..2_499).rev() {
        assert_eq!(sequence(replay.back().unwrap()), Some(before));
    }
    assert_eq!(replay.back().unwrap(), None);
    assert_eq!(replay.at(), Some(0));
    // Each page is read once on the way forward, and about once on the way back.
    let pages = source.read.borrow().len();
    assert!(pages <= 8, "{pages}");
    assert_eq!(replay.seek(2_500).unwrap(), None);
    assert_eq!(replay.at(), Some(0));
}

// covers T32
#[test]
fn a_filter_takes_wildcards_and_holds_in_both_directions() {
    let replay = Replay::load(Endless::new(5_000), session())
        .unwrap()
        .unwrap();
    let mut replay = replay.filter(["*_attempted", "session_*"].into_iter().collect());
    assert_eq!(sequence(replay.forward().unwrap()), Some(0));
    assert_eq!(sequence(replay.forward().unwrap()), Some(3));
    assert_eq!(sequence(replay.seek(1_001).unwrap()), Some(1_002));
    assert_eq!(sequence(replay.back().unwrap()), Some(999));
    let none = Replay::load(Endless::new(5_000), session())
        .unwrap()
        .unwrap();
    let mut none = none.filter(["nothing.*"].into_iter().collect());
    assert_eq!(none.forward().unwrap(), None);
    // Without patterns every event matches.
    let mut all = replay.filter(Patterns::default());
    assert_eq!(sequence(all.forward().unwrap()), Some(1_000));
    // A type with a draft name is found under both names.
    let old = event(0, "risk_checkpoint", json!({}));
    let mut old = self::replay(vec![old]).filter(["risk_detected"].into_iter().collect());
    assert_eq!(sequence(old.forward().unwrap()), Some(0));
}

#[test]
fn a_gap_in_the_numbers_is_crossed_both_ways() {
    let far = u64::MAX - 2;
    let lone = |sequence| event(sequence, "input_received", json!({}));
    let mut replay = replay(vec![lone(0), lone(7), lone(far), lone(far + 1)]);
    let mut there = Vec::new();
    replay.step(|event| there.push(event.sequence)).unwrap();
    assert_eq!(there, [0, 7, far, far + 1]);
    for before in [far, 7, 0] {
        assert_eq!(sequence(replay.back().unwrap()), Some(before));
    }
    assert_eq!(sequence(replay.seek(8).unwrap()), Some(far));
}

#[test]
fn replay_stops_at_matching_events() {
    let story = || {
        let answer = json!({"checkpoint_id": "gate-1", "answers": {"why": {"deep": ["Ünter 42"]}}});
        replay(vec![
            event(0, "session_started", json!({"agent_type": "bot"})),
            event(1, "action_attempted", json!({"action_type": "ticket.get"})),
            event(2, "checkpoint_response", answer),
            event(
                3,
                "checkpoint_blocked",
                json!({"blocked_action": "ticket.delete"}),
            ),
            event(4, "my.own_type", json!({"action_type": 7})),
        ])
    };
    let cases = [
        ("type=action_*", Some(1)),
        ("type=my.own_type", Some(4)),
        ("checkpoint=gate-*", Some(2)),
        ("action=ticket.delete", Some(3)),
        ("action=7", None),
        ("text=ünter", Some(2)),
        ("text=WHY", Some(2)),
        ("text=7", Some(4)),
        ("text=nowhere", None),
    ];
    for (text, wanted) in cases {
        let stop: StopCondition = text.parse().unwrap();
        assert_eq!(sequence(story().run_to(&stop).unwrap()), wanted, "{text}");
    }
    for text in ["", "type", "type=", "colour=red", "=x"] {
        let error = text.parse::<StopCondition>().unwrap_err().to_string();
        assert!(error.contains("is not a stop condition"), "{error}");
    }
}

// covers T32
#[test]
fn state_does_not_depend_on_the_path_to_it() {
    let source = Endless::new(40_000);
    let mut replay = Replay::load(&source, session()).unwrap().unwrap();
    let mut fresh = ReplayState::default();
    let mut wanted = Vec::new();
    for sequence in 0..40_000 {
        fresh.apply(&Endless::event(sequence));
        if sequence % 3_333 == 0 {
            wanted.push((sequence, fresh.clone()));
        }
    }
    for (sequence, state) in wanted.iter().chain(wanted.iter().rev()) {
        assert_eq!(replay.state_at(*sequence).unwrap(), *state, "{sequence}");
    }
    // Beyond the end the state is that of the end.
    assert_eq!(replay.state_at(u64::MAX).unwrap(), fresh);
    // Close to the last query, only the events in between are read.
    replay.state_at(39_000).unwrap();
    source.read.borrow_mut().clear();
    replay.seek(38_998).unwrap();
    replay.state_at(38_998).unwrap();
    let read = source.read.borrow().len();
    assert!(read <= 4, "{read} pages");
}

/// A gate before an action, below the attempt.
fn gate(sequence: u64, attempt: u64, mode: &Value) -> Event {
    let triggered = json!({"checkpoint_id": "g", "checkpoint_type": "action_pre", "mode": mode,
        "trigger_condition": "because", "trigger_data": {"action_id": "ticket.delete"}});
    let mut gate = event(sequence, "checkpoint_triggered", triggered);
    gate.parent_span_id = Some(format!("span-{attempt}").parse().unwrap());
    gate
}

fn below(parent: u64, mut event: Event) -> Event {
    event.parent_span_id = Some(format!("span-{parent}").parse().unwrap());
    event
}

#[test]
fn a_gate_of_unknown_mode_counts_as_held() {
    let mut state = ReplayState::default();
    state.apply(&event(0, "session_started", json!({"agent_type": "bot"})));
    state.apply(&event(
        1,
        "action_attempted",
        json!({"action_type": "ticket.delete"}),
    ));
    assert_eq!(state.actions.going[0].way, ReleaseKind::Open);
    let mut pruned = gate(2, 1, &json!(null));
    pruned.pruned = true;
    pruned.payload = Map::new();
    state.apply(&pruned);
    state.apply(&gate(3, 1, &json!(["blocking"])));
    assert_eq!((state.phase, state.pruned), (ReplayPhase::Held, 1));
    let held = &state.held[0];
    assert_eq!((held.holds, held.gates.len()), (HoldScope::Action, 2));
    assert_eq!(
        (held.what.as_str(), held.gates[0].checkpoint.as_str()),
        ("ticket.delete", "?")
    );
    // One of two approvals is not enough.
    let passed = json!({"checkpoint_id": "g", "passed_by": "op"});
    state.apply(&below(2, event(4, "checkpoint_passed", passed.clone())));
    assert_eq!((state.held.len(), state.actions.going.len()), (1, 0));
    state.apply(&below(3, event(5, "checkpoint_passed", passed)));
    assert_eq!((state.phase, state.held.len()), (ReplayPhase::Working, 0));
    assert_eq!(state.actions.going[0].way, ReleaseKind::Released);
}

#[test]
fn the_end_of_one_gate_is_not_the_end_of_another_of_the_same_name() {
    let mut state = ReplayState::default();
    state.apply(&event(0, "session_started", json!({"agent_type": "bot"})));
    state.apply(&event(
        1,
        "action_attempted",
        json!({"action_type": "ticket.delete"}),
    ));
    state.apply(&gate(2, 1, &json!("blocking")));
    state.apply(&gate(3, 1, &json!("blocking")));
    let passed = json!({"checkpoint_id": "g", "passed_by": "op"});
    state.apply(&below(2, event(4, "checkpoint_passed", passed)));
    let done = json!({"checkpoint_id": "g", "action_taken": "continue"});
    state.apply(&below(2, event(5, "checkpoint_completed", done)));
    assert_eq!(state.held[0].gates.len(), 1);
    assert_eq!(state.held[0].gates[0].span_id.as_str(), "span-3");
}

#[test]
fn locks_stated_by_events_are_in_the_state() {
    let mut state = ReplayState::default();
    let passed = json!({"checkpoint_id": "g", "passed_by": "op", "unlocked_capabilities": ["a", 7],
        "locked_capabilities": ["b"]});
    state.apply(&event(0, "checkpoint_passed", passed));
    let names = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        (names(&state.unlocked), names(&state.locked)),
        (vec!["a".into()], vec!["b".into()])
    );
}

#[test]
fn new_atlases_revoke_unlocked_capabilities() {
    let start = json!({"checkpoint_id": "onboarding", "checkpoint_type": "session_start",
        "mode": "blocking"});
    let mut state = ReplayState::default();
    state.apply(&event(0, "session_started", json!({"agent_type": "bot"})));
    let mut first = event(1, "checkpoint_triggered", start.clone());
    first.timestamp = Timestamp::from_micros(0);
    state.apply(&first);
    assert_eq!(
        (state.phase, state.held[0].holds),
        (ReplayPhase::AtStart, HoldScope::Start)
    );
    let passed = json!({"checkpoint_id": "onboarding", "unlocked_capabilities": ["a"]});
    state.apply(&below(1, event(2, "checkpoint_passed", passed)));
    assert_eq!(
        (state.phase, state.unlocked.len()),
        (ReplayPhase::Working, 1)
    );
    state.apply(&event(3, "checkpoint_triggered", start));
    assert_eq!(
        (state.phase, state.unlocked.len()),
        (ReplayPhase::AtStart, 0)
    );
    for (outcome, phase) in [
        ("expired", ReplayPhase::StartLapsed),
        ("denied", ReplayPhase::StartRefused),
    ] {
        let mut state = state.clone();
        let blocked = json!({"checkpoint_id": "onboarding", "outcome": outcome});
        state.apply(&below(3, event(4, "checkpoint_blocked", blocked)));
        assert_eq!(state.phase, phase);
    }
}

#[test]
fn an_error_is_recovered_by_its_event_id() {
    let mut state = ReplayState::default();
    state.apply(&event(
        0,
        "error_handled",
        json!({"error_type": "x", "message": "m"}),
    ));
    let wrong = json!({"original_error_id": "e-9", "success": true});
    state.apply(&event(1, "error_recovered", wrong));
    assert!(!state.errors.recent[0].recovered);
    let right = json!({"original_error_id": "e-0", "success": true});
    state.apply(&event(2, "error_recovered", right));
    assert!(state.errors.recent[0].recovered);
}

#[test]
fn a_state_stays_small_however_long_the_session_is() {
    let mut state = ReplayState::default();
    for sequence in 0..20_000 {
        let failed = json!({"error_type": "x", "message": "m", "action_type": "a"});
        let name = [
            "error_occurred",
            "action_attempted",
            "policy_override",
            "action_blocked",
        ];
        state.apply(&event(
            sequence,
            name[usize::try_from(sequence % 4).unwrap()],
            failed,
        ));
    }
    assert_eq!(
        (state.events, state.errors.count, state.actions.attempted),
        (20_000, 5_000, 5_000)
    );
    assert!(serde_json::to_string(&state).unwrap().len() < 100_000);
}

#[test]
fn held_requests_show_the_first_approval_and_the_claim() {
    let below = |mut event: Event, parent: &str| {
        event.parent_span_id = Some(parent.parse().unwrap());
        event
    };
    let triggered = json!({
        "checkpoint_id": "two", "checkpoint_type": "risk_threshold", "mode": "blocking",
        "trigger_condition": "t", "trigger_data": {"action_id": "ban"}, "priority": 900,
    });
    let approved = json!({
        "checkpoint_id": "two", "gate_id": "c-1", "approved_by": "op-1", "approval_method": "console",
        "justification": "agreed", "needed": 2, "request_hash": "h",
    });
    let claim = |word: &str| json!({"gate_id": "c-1", "claim": word, "by": "op-2"});
    let answer = json!({
        "checkpoint_id": "two", "answers": {}, "validation_result": "valid", "answered_by": "agent bot",
    });
    let events = [
        event(0, "session_started", json!({"agent_type": "bot"})),
        event(
            1,
            "action_attempted",
            json!({"action_type": "ban", "risk_tier": "critical"}),
        ),
        below(event(2, "checkpoint_triggered", triggered), "span-1"),
        below(event(3, "request_claimed", claim("taken")), "span-1"),
        below(event(4, "checkpoint_approved", approved), "span-2"),
        below(event(5, "request_claimed", claim("released")), "span-1"),
        below(event(6, "checkpoint_response", answer), "span-2"),
    ];
    let mut state = ReplayState::default();
    let mut seen = Vec::new();
    for event in &events {
        state.apply(event);
        let held = state.held.first();
        let by = held.and_then(|held| held.approved.as_ref().map(|approved| approved.by.clone()));
        let claimed = held.and_then(|held| held.claimed_by.clone());
        seen.push((state.held.len(), by, claimed));
    }
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        seen[2..],
        [
            (1, None, None),
            (1, None, text("op-2")),
            (1, text("op-1"), text("op-2")),
            (1, text("op-1"), None),
            // A later answer of the agent voids the approval.
            (1, None, None),
        ]
    );
    assert_eq!(
        state.phase,
        ReplayPhase::Held,
        "nothing is released by any of it"
    );
}
