//! Tests of the tables of the specification, and of complete turns.

use serde_json::{Value, json};

use super::*;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;

mod contract;
mod owner;
mod tables;
mod thread;

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + minutes * 60_000_000)
}

fn thread() -> Thread {
    Thread::new("t-1".parse().unwrap(), session())
}

fn session() -> SessionId {
    "s-1".parse().unwrap()
}

/// A turn as received, with these fields in addition to the message.
fn turn(message: &str, fields: &Value) -> Turn {
    let mut whole = json!({"message_id": "m-1", "message": message});
    let (Some(whole_fields), Some(fields)) = (whole.as_object_mut(), fields.as_object()) else {
        panic!("a turn is an object");
    };
    whole_fields.extend(fields.clone());
    Turn::read(whole.to_string().as_bytes()).unwrap()
}

fn owner(session: &str) -> ThreadOwner {
    ThreadOwner {
        session: session.parse().unwrap(),
        secret: None,
        process: None,
    }
}

fn named(number: u32) -> TurnIds {
    TurnIds {
        by: owner("s-1"),
        memento: format!("mm-{number}").parse().unwrap(),
    }
}

fn memento() -> Value {
    json!({
        "mementoId": "mm-0",
        "threadId": "t-1",
        "createdTs": "2026-01-31T23:59:59Z",
        "version": "memento-v0.2",
        "arc": "dedupe tickets",
        "active": ["delete 4411"],
        "parked": ["report format"],
        "decisions": ["keep 4398"],
        "next": ["dry run"],
        "affect": {
            "points": [],
            "rollup": {
                "phase": "settled",
                "intensityBucket": "low",
                "updatedAt": "2026-01-31T23:59:59.123Z"
            }
        }
    })
}

/// The memento with another affect rollup.
fn heated(phase: &str, intensity: &str) -> Value {
    let mut memento = memento();
    memento["affect"]["rollup"]["phase"] = json!(phase);
    memento["affect"]["rollup"]["intensityBucket"] = json!(intensity);
    memento
}

fn proposal() -> Value {
    json!({"arc": "purge all", "active": ["a"], "parked": [], "decisions": [], "next": ["delete 190"]})
}

fn signals(kinds: &[&str]) -> Value {
    let item = |kind: &&str| json!({"endMessageId": "m-1", "kind": kind, "confidence": "high", "source": "model"});
    kinds.iter().map(item).collect()
}
