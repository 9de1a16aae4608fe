//! Turns, mementos and snapshot files: each is read or rejected with a reason, and accepted input is
//! processed completely.

use serde_json::Value;

use super::{MutationRng, folder, mutate_json, run_decoder};
use crate::base::clock::Timestamp;
use crate::memento::{Thread, ThreadMemento, ThreadOwner, TurnIds};
use crate::reconstruct::Reconstruction;
use crate::runtime::SessionTurn;

fn now() -> Timestamp {
    "2026-01-01T00:01:00.000000Z".parse().unwrap()
}

/// True if a file of turns was accepted. Accepted turns are applied in both ways, and the result is
/// stored and read back unchanged.
fn accept_turns(bytes: &[u8]) -> bool {
    let turns = match SessionTurn::read_all(bytes) {
        Ok(turns) => turns,
        Err(error) => {
            assert!(!error.place.is_empty() && !error.what.is_empty());
            assert!(!error.to_string().contains('\n'));
            return false;
        }
    };
    for skip_updates in [false, true] {
        let mut thread: Option<Thread> = None;
        for take in &turns {
            let before = thread.take();
            let id = take.thread().unwrap_or_else(|| "t-1".parse().unwrap());
            let before = before.unwrap_or_else(|| Thread::new(id, take.session.clone()));
            let named = TurnIds {
                by: ThreadOwner {
                    session: take.session.clone(),
                    secret: None,
                    process: None,
                },
                memento: "mem-1".parse().unwrap(),
            };
            let mut turn = take.turn.clone();
            turn.skip_updates = skip_updates;
            let Ok((next, outcome)) = before.process_turn(&turn, named, now()) else {
                thread = Some(before);
                continue;
            };
            assert_eq!(outcome.freeze.is_frozen(), next.is_frozen());
            let written = serde_json::to_string(&next).unwrap();
            assert_eq!(serde_json::from_str::<Thread>(&written).unwrap(), next);
            let memento = serde_json::to_vec(&outcome.memento).unwrap();
            assert_eq!(ThreadMemento::read(&memento).unwrap(), outcome.memento);
            thread = Some(next);
        }
    }
    true
}

#[test]
fn turn_decoder_and_engine_never_panic() {
    let seeds = folder("tests/data/corpus/turns");
    let read = run_decoder(&seeds, 3_000, |bytes| accept_turns(&bytes));
    assert_eq!(read, 3, "of {}", seeds.len());
    // Any value in the place of any other one.
    let whole = seeds.iter().find(|(name, _)| name == "every-field.json");
    let whole: Value = serde_json::from_slice(&whole.unwrap().1).unwrap();
    let mut dice = MutationRng::new(41);
    let mut read = 0;
    for _ in 0..1_000 {
        let changed = mutate_json(&whole, &mut dice).to_string();
        read += usize::from(accept_turns(changed.as_bytes()));
    }
    assert!(read > 50, "{read}");
}

#[test]
fn memento_decoder_never_panics_and_is_unambiguous() {
    let seeds = folder("tests/data/corpus/mementos");
    let read = run_decoder(&seeds, 3_000, |bytes| match ThreadMemento::read(&bytes) {
        Ok(memento) => {
            let again = serde_json::to_vec(&memento).unwrap();
            let again = ThreadMemento::read(&again).unwrap();
            assert_eq!((&again, again.etag()), (&memento, memento.etag()));
            true
        }
        Err(error) => {
            assert!(!error.place.is_empty() && !error.what.is_empty());
            false
        }
    });
    assert_eq!(read, 1, "of {}", seeds.len());
}

#[test]
fn snapshot_decoder_and_reconstruction_never_panic() {
    let mut seeds = folder("tests/data/corpus/snapshots");
    let others = folder("tests/data/snapshots").into_iter();
    // The other files there are expected outputs.
    seeds.extend(others.filter(|(_, seed)| seed.starts_with(b"{")));
    let decode = |bytes: &[u8]| match Reconstruction::from_file(bytes) {
        Ok(whole) => {
            let odd = |c: char| c.is_control() && c != '\n';
            assert!(!whole.confirmation.contains(odd));
            assert_eq!(whole.retrieved.len(), 7);
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.help().is_empty());
            false
        }
    };
    let read = run_decoder(&seeds, 2_000, |bytes| decode(&bytes));
    assert!(read >= 8, "{read} of {}", seeds.len());
    let mut dice = MutationRng::new(43);
    let wholes: Vec<Value> = seeds
        .iter()
        .filter_map(|(_, seed)| serde_json::from_slice(seed).ok())
        .collect();
    for _ in 0..500 {
        let changed = mutate_json(&wholes[dice.below(wholes.len())], &mut dice);
        decode(changed.to_string().as_bytes());
    }
}
