//! A scenario as written: the Atlases, the steps, and what is expected of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::atlas::LoadError;
use crate::atlas::diagnostic::Code;
use crate::atlas::written::{Faults, Placed, decode_file};
use crate::base::id::SessionId;
use crate::engine::command::FinalStatus;
use crate::trace::event::Payload;

/// A scripted session with scripted answers.
pub(super) struct Scenario {
    pub(super) atlases: Vec<PathBuf>,
    pub(super) steps: Vec<Step>,
}

/// One thing that happens, and what is expected of it.
pub(super) struct Step {
    pub(super) deed: Deed,
    pub(super) expected: Expected,
}

/// What happens.
pub(super) enum Deed {
    Start {
        session: SessionId,
        agent: String,
        intent: Option<String>,
    },
    Request {
        session: SessionId,
        action: String,
        params: Value,
    },
    Pass {
        gate: String,
        answers: Answers,
    },
    Deny {
        gate: String,
        reason: String,
    },
    /// Seconds go by.
    Wait(u64),
    End {
        session: SessionId,
        status: FinalStatus,
    },
}

/// What an operator answers.
pub(super) enum Answers {
    /// Whatever keeps the rules.
    Good,
    /// These, by question.
    Given(BTreeMap<String, Value>),
}

/// What a step is expected to come to. What is absent may be anything.
#[derive(Default)]
pub(super) struct Expected {
    pub(super) held: Option<Vec<String>>,
    pub(super) allowed: Option<bool>,
    pub(super) denied: Option<&'static str>,
    pub(super) reason_contains: Option<String>,
    pub(super) outcome: Option<&'static str>,
    /// Nothing may end when it is empty.
    pub(super) settled: Option<Vec<ExpectedEnd>>,
    pub(super) released: Option<Vec<String>>,
    pub(super) records: Vec<String>,
}

/// How a held request is expected to end.
pub(super) struct ExpectedEnd {
    pub(super) gate: String,
    pub(super) outcome: &'static str,
}

const DEEDS: [&str; 6] = ["start", "request", "pass", "deny", "wait", "end"];

/// How a decision can be taken up.
const OUTCOMES: [&str; 7] = [
    "passed",
    "denied",
    "expired",
    "withdrawn",
    "voided",
    "invalid",
    "refused",
];

/// How a held request can end.
const ENDS: [&str; 5] = ["passed", "denied", "expired", "withdrawn", "voided"];

/// Why something can be denied, as agents are told.
pub(super) const DENIALS: [&str; 15] = [
    "session",
    "bad_request",
    "unknown_action",
    "policy",
    "denied_action",
    "capability_locked",
    "parameters",
    "limit",
    "refused",
    "invalid_answer",
    "expired",
    "withdrawn",
    "changed",
    "overload",
    "unavailable",
];

const STATUSES: [(&str, FinalStatus); 4] = [
    ("completed", FinalStatus::Completed),
    ("error", FinalStatus::Error),
    ("timeout", FinalStatus::Timeout),
    ("cancelled", FinalStatus::Cancelled),
];

impl Scenario {
    /// Reads a scenario; the Atlases it names are looked for beside it.
    pub(super) fn read(path: &Path) -> Result<Self, LoadError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        decode_file(path, |root, faults| scenario(root, folder, faults))
    }
}

fn scenario(root: &Placed<'_>, folder: &Path, faults: &mut Faults<'_>) -> Option<Scenario> {
    root.only(&["atlas", "steps"], faults);
    let atlas = root.need("atlas", faults);
    let names = atlas.map(|atlas| {
        if atlas.is_list() {
            atlas.texts(faults)
        } else {
            atlas.text(faults).into_iter().collect()
        }
    });
    let steps = root.need("steps", faults)?;
    let items = steps.items(faults);
    if steps.is_list() && items.is_empty() {
        steps.refuse(Code::Empty, "a scenario has at least one step", faults);
    }
    let steps = items.iter().filter_map(|item| step(item, faults)).collect();
    Some(Scenario {
        atlases: names?.iter().map(|name| folder.join(name)).collect(),
        steps,
    })
}

fn step(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Step> {
    let known: Vec<&str> = DEEDS.into_iter().chain(["expect"]).collect();
    value.only(&known, faults);
    let mut named = DEEDS.into_iter().filter(|name| value.get(name).is_some());
    let (kind, second) = (named.next(), named.next());
    let (Some(kind), None) = (kind, second) else {
        let message = format!("a step is exactly one of `{}`", DEEDS.join("`, `"));
        value.refuse(Code::MissingKey, &message, faults);
        return None;
    };
    // Read before the deed is known to be sound: one look shows all faults.
    let expected = value.get("expect").map(|it| expected(&it, kind, faults));
    let deed = deed(kind, &value.get(kind)?, faults)?;
    Some(Step {
        deed,
        expected: expected.unwrap_or_default(),
    })
}

fn deed(kind: &str, value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Deed> {
    match kind {
        "start" => {
            value.only(&["session", "agent", "intent"], faults);
            let session = session(value, faults);
            let agent = optional_text(value, "agent", faults);
            Some(Deed::Start {
                intent: optional_text(value, "intent", faults),
                session: session?,
                agent: agent.unwrap_or_else(|| "agent".to_owned()),
            })
        }
        "request" => {
            value.only(&["session", "action", "params"], faults);
            let session = session(value, faults);
            let action = text(value, "action", faults);
            let params = value.get("params").map(|params| params.json());
            Some(Deed::Request {
                session: session?,
                action: action?,
                params: params.unwrap_or_else(|| json!({})),
            })
        }
        "pass" => {
            value.only(&["gate", "answers"], faults);
            let gate = text(value, "gate", faults);
            let answers = value.need("answers", faults);
            Some(Deed::Pass {
                answers: answers_of(&answers?, faults)?,
                gate: gate?,
            })
        }
        "deny" => {
            value.only(&["gate", "reason"], faults);
            let gate = text(value, "gate", faults);
            let reason = optional_text(value, "reason", faults);
            Some(Deed::Deny {
                gate: gate?,
                reason: reason.unwrap_or_default(),
            })
        }
        "wait" => value.count(faults).map(Deed::Wait),
        _ => {
            value.only(&["session", "status"], faults);
            let session = session(value, faults);
            Some(Deed::End {
                status: status(value, faults),
                session: session?,
            })
        }
    }
}

fn answers_of(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Answers> {
    match value.json() {
        Value::Object(answers) => Some(Answers::Given(answers.into_iter().collect())),
        Value::String(word) if word == "good" => Some(Answers::Good),
        _ => {
            let message = "expected `good`, or a map of answers by question";
            value.refuse(Code::WrongType, message, faults);
            None
        }
    }
}

fn status(value: &Placed<'_>, faults: &mut Faults<'_>) -> FinalStatus {
    let words = STATUSES.map(|(name, _)| name);
    let word = value.get("status");
    let word = word.and_then(|it| it.word("status", &words, faults));
    let found = STATUSES.iter().find(|(name, _)| Some(*name) == word);
    found.map_or(FinalStatus::Completed, |(_, status)| *status)
}

fn expected(value: &Placed<'_>, kind: &str, faults: &mut Faults<'_>) -> Expected {
    let mut known = vec![
        "held",
        "denied",
        "reason_contains",
        "settled",
        "released",
        "records",
    ];
    match kind {
        "request" => known.push("allowed"),
        "pass" | "deny" => known.push("outcome"),
        _ => {}
    }
    value.only(&known, faults);
    let word = |key: &str, noun: &str, words: &[&'static str], faults: &mut Faults<'_>| {
        value.get(key).and_then(|it| it.word(noun, words, faults))
    };
    Expected {
        held: value.get("held").map(|it| it.texts(faults)),
        allowed: value.get("allowed").and_then(|it| it.boolean(faults)),
        denied: word("denied", "denial", &DENIALS, faults),
        reason_contains: optional_text(value, "reason_contains", faults),
        outcome: word("outcome", "outcome", &OUTCOMES, faults),
        settled: settled(value, faults),
        released: value.get("released").map(|it| it.texts(faults)),
        records: records(value, faults),
    }
}

fn settled(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Vec<ExpectedEnd>> {
    let settled = value.get("settled")?;
    let ends = if settled.is_list() {
        settled.items(faults)
    } else {
        vec![settled]
    };
    let end = |end: &Placed<'_>| {
        end.only(&["gate", "outcome"], faults);
        let gate = text(end, "gate", faults);
        let outcome = end.need("outcome", faults);
        let outcome = outcome.and_then(|it| it.word("outcome", &ENDS, faults));
        Some(ExpectedEnd {
            gate: gate?,
            outcome: outcome?,
        })
    };
    Some(ends.iter().filter_map(end).collect())
}

fn records(value: &Placed<'_>, faults: &mut Faults<'_>) -> Vec<String> {
    let Some(records) = value.get("records") else {
        return Vec::new();
    };
    let items = records.items(faults);
    let names = items
        .iter()
        .filter_map(|item| item.word("event type", Payload::TYPES, faults));
    names.map(str::to_owned).collect()
}

fn session(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<SessionId> {
    let place = value.need("session", faults)?;
    let session = place.text(faults)?.parse::<SessionId>();
    session
        .map_err(|error| place.refuse(Code::BadId, &error.to_string(), faults))
        .ok()
}

fn text(value: &Placed<'_>, key: &str, faults: &mut Faults<'_>) -> Option<String> {
    value.need(key, faults)?.text(faults)
}

fn optional_text(value: &Placed<'_>, key: &str, faults: &mut Faults<'_>) -> Option<String> {
    value.get(key)?.text(faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::command::DenyCode;

    #[test]
    fn every_denial_is_one_that_agents_are_told() {
        for name in DENIALS {
            let read = serde_json::from_value::<DenyCode>(json!(name));
            assert!(read.is_ok(), "{name}");
        }
    }
}
