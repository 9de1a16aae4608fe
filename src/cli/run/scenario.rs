//! Parsed scenario: the Atlases, the steps, and the expectations of each step.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::atlas::LoadError;
use crate::atlas::diagnostic::Code;
#[cfg(test)]
use crate::atlas::located_values::decode_bytes;
use crate::atlas::located_values::{FileProblems, LocatedValue, decode_file};
use crate::memento::TurnDecision;
use crate::trace::event::Payload;

mod expected_records;
mod scripted_answers;
mod step_action;
mod wrapper;

pub(super) use expected_records::{ExpectedRecord, contains_all};
pub(super) use scripted_answers::ScriptedAnswers;
pub(super) use step_action::{
    AgentAnswers, ApprovalStep, DenialStep, ErrorRecovery, OperatorAnswers, PolicyQuestion,
    StepAction,
};
use step_action::{STEP_KEYS, parse_action};

/// A scripted session with scripted answers.
pub(in crate::cli) struct Scenario {
    pub(super) atlases: Vec<PathBuf>,
    pub(super) extensions: ScriptedAnswers,
    pub(super) steps: Vec<ScenarioStep>,
}

/// One action and its expectations.
pub(super) struct ScenarioStep {
    /// Line of the expectations, or of the step.
    pub(super) line: usize,
    pub(super) action: StepAction,
    pub(super) expected: ExpectedOutcome,
}

/// Expectations of a step. An absent one accepts anything.
#[derive(Default)]
pub(super) struct ExpectedOutcome {
    pub(super) held: Option<Vec<String>>,
    pub(super) allowed: Option<bool>,
    pub(super) accepted: Option<bool>,
    /// Injected contexts, exactly these.
    pub(super) contexts: Option<Vec<String>>,
    pub(super) guidance_contains: Option<String>,
    /// Given guidance, in this order, each with at least these fields.
    pub(super) guidance: Option<Vec<Map<String, Value>>>,
    /// Checkpoints whose guidance was withdrawn, exactly these.
    pub(super) withdrawn: Option<Vec<String>>,
    /// Checkpoints that the agent itself must answer, exactly these.
    pub(super) asked: Option<Vec<String>>,
    pub(super) resolved: Option<ExpectedResolution>,
    pub(super) modified_input: Option<String>,
    pub(super) denied: Option<&'static str>,
    pub(super) reason_contains: Option<String>,
    /// Text that the help of a denial contains.
    pub(super) help_contains: Option<String>,
    pub(super) outcome: Option<&'static str>,
    /// Ended requests; an empty list means that none may end.
    pub(super) settled: Option<Vec<ExpectedEnd>>,
    pub(super) released: Option<Vec<String>>,
    pub(super) records: Vec<String>,
    /// Events in this order, possibly with other events between them.
    pub(super) recorded: Vec<ExpectedRecord>,
    /// Event types that are on disk before the agent is answered.
    pub(super) synced: Vec<String>,
    /// Event types that the agent does not wait for.
    pub(super) not_synced: Vec<String>,
    /// Requested contexts that were not given to the agent, exactly these.
    pub(super) refused_contexts: Option<Vec<String>>,
    /// Event types that must not be recorded.
    pub(super) not_recorded: Vec<String>,
    /// True if the answer must come from a cache.
    pub(super) cached: Option<bool>,
    pub(super) verdict: ExpectedVerdict,
    pub(super) turn: ExpectedTurn,
}

/// Expected answer of the policies.
#[derive(Default)]
pub(super) struct ExpectedVerdict {
    pub(super) decision: Option<&'static str>,
    /// Policy that decides.
    pub(super) policy_id: Option<String>,
}

/// Expected outcome of a turn.
#[derive(Default)]
pub(super) struct ExpectedTurn {
    /// Breakpoint decision.
    pub(super) decision: Option<&'static str>,
    /// Number of the rule that decided.
    pub(super) rule: Option<u64>,
    pub(super) frozen: Option<bool>,
    /// Effect on the summary, in recorded form.
    pub(super) summary: Option<&'static str>,
    pub(super) arc: Option<String>,
}

/// Expected end of a held request.
pub(super) struct ExpectedEnd {
    pub(super) gate: String,
    pub(super) outcome: &'static str,
}

/// Expected resolution for an agent: actions, exactly these.
#[derive(Default)]
pub(super) struct ExpectedResolution {
    pub(super) allowed: Option<Vec<String>>,
    pub(super) denied: Option<Vec<String>>,
}

/// Possible effects of a decision.
const OUTCOMES: [&str; 7] = [
    "passed",
    "denied",
    "expired",
    "withdrawn",
    "voided",
    "invalid",
    "refused",
];

/// Possible policy answers about a request.
const VERDICTS: [&str; 3] = ["allow", "deny", "require_approval"];

/// Guidance fields that a scenario can expect.
const GUIDANCE_FIELDS: [&str; 7] = [
    "checkpoint_id",
    "format",
    "content",
    "priority",
    "append",
    "expires_after",
    "labels",
];

/// Possible ends of a held request.
const ENDS: [&str; 5] = ["passed", "denied", "expired", "withdrawn", "voided"];

/// Possible effects on a summary, in recorded form.
const SUMMARIES: [&str; 6] = [
    "updated",
    "kept_nothing_proposed",
    "kept_invalid_proposal",
    "kept_at_peak",
    "kept_only_acknowledged",
    "kept_before_edit",
];

/// Denial codes, as agents receive them.
pub(super) const DENIALS: [&str; 20] = [
    "session",
    "ended",
    "thread",
    "unauthorized",
    "bad_request",
    "unknown_action",
    "policy",
    "extension",
    "resolution",
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

impl Scenario {
    /// Loads a scenario; paths of Atlases are relative to its folder.
    pub(super) fn read(path: &Path) -> Result<Self, LoadError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        decode_file(path, |root, faults| scenario(root, folder, faults))
    }

    /// Decodes a scenario that is not in a file.
    #[cfg(test)]
    pub(in crate::cli) fn decode(bytes: Vec<u8>) -> Result<Self, LoadError> {
        let nowhere = Path::new("");
        decode_bytes("scenario", bytes, |root, faults| {
            scenario(root, nowhere, faults)
        })
    }
}

fn scenario(
    root: &LocatedValue<'_>,
    folder: &Path,
    faults: &mut FileProblems<'_>,
) -> Option<Scenario> {
    if let (Some(version), None) = (root.get("atlas_version"), root.get("steps")) {
        let message =
            "this file is an Atlas; a scenario names its Atlas under `atlas` and has `steps`";
        version.report(Code::UnknownKey, message, faults);
        return None;
    }
    root.reject_unknown_keys(&["atlas", "extensions", "steps"], faults);
    let atlas = root.require("atlas", faults);
    let names = atlas.map(|atlas| {
        if atlas.is_list() {
            atlas.texts(faults)
        } else {
            atlas.text(faults).into_iter().collect()
        }
    });
    let extensions = root.get("extensions");
    let extensions = extensions.map(|list| ScriptedAnswers::read(&list, faults));
    let steps = root.require("steps", faults)?;
    let items = steps.items(faults);
    if steps.is_list() && items.is_empty() {
        steps.report(
            Code::Empty,
            "a scenario must have at least one step",
            faults,
        );
    }
    let steps = items.iter().filter_map(|item| step(item, faults)).collect();
    Some(Scenario {
        atlases: names?.iter().map(|name| folder.join(name)).collect(),
        extensions: extensions.unwrap_or_default(),
        steps,
    })
}

fn step(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<ScenarioStep> {
    let known: Vec<&str> = STEP_KEYS.into_iter().chain(["expect"]).collect();
    value.reject_unknown_keys(&known, faults);
    let mut named = STEP_KEYS
        .into_iter()
        .filter(|name| value.get(name).is_some());
    let (kind, second) = (named.next(), named.next());
    let (Some(kind), None) = (kind, second) else {
        let message = format!(
            "a step must have exactly one of `{}`",
            STEP_KEYS.join("`, `")
        );
        value.report(Code::MissingKey, &message, faults);
        return None;
    };
    // Parsed before the action is known to be valid, so that one run shows all faults.
    let expected = value
        .get("expect")
        .map(|entry| expected(&entry, kind, faults));
    let action = parse_action(kind, &value.get(kind)?, faults)?;
    let line = value.get("expect");
    let line = line.as_ref().unwrap_or(value).line(faults);
    Some(ScenarioStep {
        line,
        action,
        expected: expected.unwrap_or_default(),
    })
}

fn expected(
    value: &LocatedValue<'_>,
    kind: &str,
    faults: &mut FileProblems<'_>,
) -> ExpectedOutcome {
    value.reject_unknown_keys(&known_expectations(kind), faults);
    let word = |key: &str, noun: &str, words: &[&'static str], faults: &mut FileProblems<'_>| {
        value
            .get(key)
            .and_then(|entry| entry.word(noun, words, faults))
    };
    ExpectedOutcome {
        held: value.get("held").map(|list| list.texts(faults)),
        allowed: value.get("allowed").and_then(|flag| flag.boolean(faults)),
        accepted: value.get("accepted").and_then(|flag| flag.boolean(faults)),
        contexts: value.get("contexts").map(|list| list.texts(faults)),
        guidance_contains: optional_text(value, "guidance_contains", faults),
        guidance: guidance(value, faults),
        withdrawn: value.get("withdrawn").map(|list| list.texts(faults)),
        asked: value.get("asked").map(|list| list.texts(faults)),
        resolved: value.get("resolved").map(|entry| resolved(&entry, faults)),
        modified_input: optional_text(value, "modified_input", faults),
        denied: word("denied", "denial", &DENIALS, faults),
        reason_contains: optional_text(value, "reason_contains", faults),
        help_contains: optional_text(value, "help_contains", faults),
        outcome: word("outcome", "outcome", &OUTCOMES, faults),
        settled: settled(value, faults),
        released: value.get("released").map(|list| list.texts(faults)),
        records: event_types(value, "records", faults),
        recorded: expected_records::read(value, faults),
        not_recorded: event_types(value, "not_recorded", faults),
        synced: event_types(value, "synced", faults),
        not_synced: event_types(value, "not_synced", faults),
        refused_contexts: value.get("not_given").map(|list| list.texts(faults)),
        cached: value
            .get("cached")
            .and_then(|cached| cached.boolean(faults)),
        verdict: expected_verdict(value, faults),
        turn: expected_turn(value, faults),
    }
}

/// Keys that an expectation about a step of this kind may have.
fn known_expectations(kind: &str) -> Vec<&'static str> {
    let mut known = vec![
        "held",
        "denied",
        "reason_contains",
        "help_contains",
        "settled",
        "released",
        "records",
        "recorded",
        "not_recorded",
        "synced",
        "not_synced",
        "not_given",
        "contexts",
        "guidance",
        "guidance_contains",
        "withdrawn",
        "modified_input",
    ];
    known.extend(match kind {
        "start" => &["asked"][..],
        "request" => &["allowed", "asked"],
        "answer" => &["allowed", "accepted", "outcome"],
        "resolve" => &["resolved"],
        "input" => &["accepted", "asked", "cached"],
        "context" | "error" => &["accepted", "asked"],
        "policy" => &["verdict", "policy_id", "cached"],
        "turn" => &["decision", "rule", "frozen", "summary", "arc"],
        "pass" | "deny" | "complete" | "leave" => &["outcome"],
        _ => &[],
    });
    known
}

fn expected_verdict(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> ExpectedVerdict {
    let verdict = value.get("verdict");
    ExpectedVerdict {
        decision: verdict.and_then(|word| word.word("verdict", &VERDICTS, faults)),
        policy_id: optional_text(value, "policy_id", faults),
    }
}

fn expected_turn(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> ExpectedTurn {
    let word = |key: &str, words: &[&'static str], faults: &mut FileProblems<'_>| {
        let value = value.get(key)?;
        value.word(key, words, faults)
    };
    let decisions = TurnDecision::ALL.map(TurnDecision::as_str);
    ExpectedTurn {
        decision: word("decision", &decisions, faults),
        rule: value.get("rule").and_then(|rule| rule.count(faults)),
        frozen: value
            .get("frozen")
            .and_then(|frozen| frozen.boolean(faults)),
        summary: word("summary", &SUMMARIES, faults),
        arc: optional_text(value, "arc", faults),
    }
}

/// Parses `guidance`: a list of maps of the fields that the guidance must have.
fn guidance(
    value: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<Vec<Map<String, Value>>> {
    let items = value.get("guidance")?.items(faults);
    let blocks = items.iter().filter_map(|item| {
        item.reject_unknown_keys(&GUIDANCE_FIELDS, faults);
        match item.json() {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    });
    Some(blocks.collect())
}

fn resolved(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> ExpectedResolution {
    value.reject_unknown_keys(&["allowed", "denied"], faults);
    ExpectedResolution {
        allowed: value.get("allowed").map(|list| list.texts(faults)),
        denied: value.get("denied").map(|list| list.texts(faults)),
    }
}

fn settled(value: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<Vec<ExpectedEnd>> {
    let settled = value.get("settled")?;
    let ends = if settled.is_list() {
        settled.items(faults)
    } else {
        vec![settled]
    };
    let end = |end: &LocatedValue<'_>| {
        end.reject_unknown_keys(&["gate", "outcome"], faults);
        let gate = text(end, "gate", faults);
        let outcome = end.require("outcome", faults);
        let outcome = outcome.and_then(|entry| entry.word("outcome", &ENDS, faults));
        Some(ExpectedEnd {
            gate: gate?,
            outcome: outcome?,
        })
    };
    Some(ends.iter().filter_map(end).collect())
}

fn event_types(value: &LocatedValue<'_>, key: &str, faults: &mut FileProblems<'_>) -> Vec<String> {
    let Some(records) = value.get(key) else {
        return Vec::new();
    };
    let items = records.items(faults);
    let names = items
        .iter()
        .filter_map(|item| item.word("event type", Payload::TYPES, faults));
    names.map(str::to_owned).collect()
}

fn text(value: &LocatedValue<'_>, key: &str, faults: &mut FileProblems<'_>) -> Option<String> {
    value.require(key, faults)?.text(faults)
}

fn optional_text(
    value: &LocatedValue<'_>,
    key: &str,
    faults: &mut FileProblems<'_>,
) -> Option<String> {
    value.get(key)?.text(faults)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::command::DenyCode;

    #[test]
    fn summary_words_match_the_recorded_ones() {
        use crate::memento::{KeptReason, SummaryResult};
        let all = [
            SummaryResult::Updated,
            SummaryResult::Kept(KeptReason::NothingProposed),
            SummaryResult::Kept(KeptReason::Invalid(String::new())),
            SummaryResult::Kept(KeptReason::AtPeak),
            SummaryResult::Kept(KeptReason::OnlyAcknowledged),
            SummaryResult::Kept(KeptReason::BeforeEdit),
        ];
        assert_eq!(all.map(|summary| summary.as_str()), SUMMARIES);
    }

    #[test]
    fn denial_codes_match_those_sent_to_agents() {
        let error = serde_json::from_value::<DenyCode>(json!("nothing")).unwrap_err();
        let message = error.to_string();
        let (_, known) = message.split_once("expected one of").unwrap();
        let known: Vec<_> = known.split('`').skip(1).step_by(2).collect();
        assert_eq!(DENIALS.as_slice(), known);
    }
}
