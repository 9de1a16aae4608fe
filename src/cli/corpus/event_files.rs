//! Files of arbitrary events: each event is read or rejected with a reason, and accepted events are
//! replayed, compared and exported without a panic and without a loss.

use super::{MutationRng, folder, mutate_json, mutated};
use crate::base::id::SessionId;
use crate::trace::SpanDepths;
use crate::trace::diff::{DiffSide, diff};
use crate::trace::event::{Event, Payload};
use crate::trace::export::tests::assert_exports;
use crate::trace::replay::{Replay, ReplayState, StopCondition};
use crate::trace::source::MemorySource;
use crate::trace::summary::{event_subject, sentence, tone};

/// Events of a file as a replay reads them; other lines are rejected with a reason.
fn events(bytes: &[u8]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for line in bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        match serde_json::from_slice::<Event>(line) {
            Ok(event) => events.push(event),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    // Of two events with one sequence a replay shows one: an intact chain has no such two.
    events.sort_by_key(|event| (event.session_id.clone(), event.sequence));
    events.dedup_by_key(|event| (event.session_id.clone(), event.sequence));
    events
}

/// Reads events back in every supported way.
fn read_back(events: &[Event]) {
    let mut sessions: Vec<SessionId> = events
        .iter()
        .map(|event| event.session_id.clone())
        .collect();
    sessions.sort();
    sessions.dedup();
    let source = MemorySource::new(events.to_vec());
    for session in &sessions {
        let mine = events
            .iter()
            .filter(|event| event.session_id == *session)
            .count();
        let mut replay = Replay::load(&source, session.clone()).unwrap().unwrap();
        let (mut depths, mut state, mut steps) = (SpanDepths::default(), ReplayState::default(), 0);
        let stop: StopCondition = "text=zzz".parse().unwrap();
        while let Some(event) = replay.forward().unwrap() {
            assert!(!sentence(event).contains('\n'));
            assert!(depths.of(event) <= 8);
            let _ = (tone(event), event_subject(event), stop.stops_at(event));
            state.apply(event);
            steps += 1;
            assert!(steps <= mine, "an endless replay");
        }
        let last = events
            .iter()
            .filter(|event| event.session_id == *session)
            .map(|event| event.sequence)
            .max();
        let reachable = mine - usize::from(last == Some(u64::MAX));
        assert_eq!(steps, reachable);
        assert_eq!(replay.state().unwrap(), state);
        serde_json::to_string(&state).unwrap();
        let mut back = steps;
        while replay.back().unwrap().is_some() {
            back -= 1;
        }
        assert!(back <= 1, "{back} of {steps} are not met on the way back");
        for other in &sessions {
            let of = |session| DiffSide {
                source: &source,
                session,
            };
            let difference = diff(of(session), of(other)).unwrap();
            assert!(session != other || difference.first.is_none());
        }
    }
    let reachable: Vec<Event> = events
        .iter()
        .filter(|event| event.sequence < u64::MAX)
        .cloned()
        .collect();
    assert_exports(&reachable);
}

#[test]
fn event_files_never_panic_replay_diff_or_export() {
    let mut seeds = folder("tests/data/corpus/reading");
    seeds.extend(folder("tests/data/corpus/trace"));
    let mut taken = 0;
    for (_, seed) in &seeds {
        let events = events(seed);
        taken += usize::from(!events.is_empty());
        read_back(&events);
    }
    assert!(taken >= 5, "{taken} of {} had events", seeds.len());
    let bytes: Vec<&[u8]> = seeds.iter().map(|(_, seed)| seed.as_slice()).collect();
    let mut dice = MutationRng::new(33);
    for _ in 0..120 {
        read_back(&events(&mutated(&bytes, &mut dice)));
    }
}

#[test]
fn event_details_never_panic_replay_diff_or_export() {
    let seeds = folder("tests/data/corpus/reading");
    let all: Vec<Event> = seeds.iter().flat_map(|(_, seed)| events(seed)).collect();
    let mut dice = MutationRng::new(34);
    for _ in 0..150 {
        let mut changed: Vec<Event> = Vec::new();
        for at in 0..12 {
            let mut event = all[dice.below(all.len())].clone();
            // Arbitrary details under any type, known types included.
            if dice.below(3) == 0 {
                event.event_type = Payload::TYPES[dice.below(Payload::TYPES.len())].to_owned();
            }
            let value = mutate_json(&serde_json::Value::Object(event.payload), &mut dice);
            event.payload = value.as_object().cloned().unwrap_or_default();
            let parent = &all[dice.below(all.len())];
            if dice.below(2) == 0 {
                event.parent_span_id = Some(parent.span_id.clone());
            }
            event.session_id = "s-1".parse().unwrap();
            event.sequence = at;
            event.pruned = dice.below(10) == 0;
            changed.push(event);
        }
        read_back(&changed);
    }
}

#[test]
fn stop_parser_never_panics() {
    let seeds: Vec<&[u8]> = vec![b"type=a*b", b"checkpoint=g", b"action=**", b"text=\xc3\x84"];
    let mut dice = MutationRng::new(35);
    let mut read = 0;
    for _ in 0..2_000 {
        let text = String::from_utf8_lossy(&mutated(&seeds, &mut dice)).into_owned();
        match text.parse::<StopCondition>() {
            Ok(_) => read += 1,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(read > 100, "{read}");
}
