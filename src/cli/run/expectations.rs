//! Comparison of a step's expectations with its outcome.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Value, json};

use super::scenario::{ExpectedEnd, ExpectedOutcome, ExpectedTurn};
use super::scenario_engine::{ScenarioEngine, StepOutcome};
use crate::engine::command::{AgentReply, DenialReply, OperatorReply, Reply};
use crate::engine::consultation::ConsultationAnswer;
use crate::engine::resolution::Resolution;
use crate::memento::TurnOutcome;

mod answers;

/// A failed expectation.
#[derive(Serialize)]
pub(super) struct FailedExpectation {
    pub(super) wanted: String,
    pub(super) actual: String,
}

impl FailedExpectation {
    fn new(wanted: impl Into<String>, actual: impl Into<String>) -> Self {
        Self {
            wanted: wanted.into(),
            actual: actual.into(),
        }
    }
}

/// All failed expectations of a step.
pub(super) fn failures(
    expected: &ExpectedOutcome,
    noted: &StepOutcome,
    stage: &ScenarioEngine,
) -> Vec<FailedExpectation> {
    let checks = [
        fault_failure(expected, noted),
        held(expected, noted),
        allowed(expected, noted),
        accepted(expected, noted),
        contexts(expected, noted),
        guidance(expected, noted),
        answers::guidance(expected, noted),
        answers::cached(expected, noted),
        list(
            "withdrawn",
            expected.withdrawn.as_ref(),
            &noted.injected.withdrawn,
        ),
        list("asked", expected.asked.as_ref(), &noted.asked),
        modified_input(expected, noted),
        denied(expected, noted),
        reason(expected, noted),
        help(expected, noted),
        outcome(expected, noted),
        list("released", expected.released.as_ref(), &noted.released),
        records(expected, noted),
        recorded(expected, noted),
        not_recorded(expected, noted),
        synced(expected, noted),
        answers::not_synced(expected, noted),
        refused_contexts(expected, noted),
    ];
    let mut failed: Vec<_> = checks.into_iter().flatten().collect();
    failed.extend(settled(expected, noted, stage));
    failed.extend(resolved(expected, noted));
    failed.extend(answers::verdict(&expected.verdict, noted));
    failed.extend(turn_failures(&expected.turn, noted));
    failed
}

/// Compares the outcome of a turn with its expectations.
fn turn_failures(expected: &ExpectedTurn, noted: &StepOutcome) -> Vec<FailedExpectation> {
    let frozen = |holds| if holds { "frozen" } else { "not frozen" };
    let describe = |outcome: &TurnOutcome| {
        [
            outcome.decided.decision.as_str().to_owned(),
            format!("rule {}", outcome.decided.rule.number()),
            frozen(outcome.freeze.is_frozen()).to_owned(),
            format!("summary {}", outcome.summary.as_str()),
            format!("arc `{}`", outcome.memento.arc.as_str()),
        ]
    };
    let wanted = [
        expected.decision.map(str::to_owned),
        expected.rule.map(|number| format!("rule {number}")),
        expected.frozen.map(|state| frozen(state).to_owned()),
        expected.summary.map(|summary| format!("summary {summary}")),
        expected.arc.as_ref().map(|arc| format!("arc `{arc}`")),
    ];
    let actual = match &noted.turn {
        Some(outcome) => describe(outcome),
        None => std::array::from_fn(|_| decision(noted)),
    };
    let checks = wanted.into_iter().zip(actual);
    let failed = checks.filter_map(|(wanted, actual)| {
        let wanted = wanted?;
        (wanted != actual).then(|| FailedExpectation::new(wanted, actual))
    });
    failed.collect()
}

/// Outcome of a step, in a few words.
pub(super) fn decision(noted: &StepOutcome) -> String {
    if let Some(outcome) = &noted.turn {
        let frozen = if outcome.freeze.is_frozen() {
            ", FROZEN"
        } else {
            ""
        };
        let (worth, summary) = (outcome.decided.decision.as_str(), outcome.summary.as_str());
        return format!("{worth}{frozen}: summary {summary}");
    }
    match &noted.reply {
        None if let Some(misfit) = &noted.fault => format!("refused: {}", misfit.what),
        None if noted.held.is_empty() => "done".to_owned(),
        None | Some(Reply::Agent(AgentReply::Asked(_))) => {
            format!("held at {}", noted.held.join(", "))
        }
        Some(Reply::Agent(AgentReply::Started(_))) if !noted.held.is_empty() => {
            format!("held at {}", noted.held.join(", "))
        }
        Some(Reply::Agent(AgentReply::Started(_))) => "started".to_owned(),
        Some(Reply::Agent(AgentReply::Ended(_))) => "ended".to_owned(),
        Some(Reply::Agent(AgentReply::Accepted(_))) => "accepted".to_owned(),
        Some(Reply::Agent(AgentReply::Allowed(_))) => "allowed".to_owned(),
        Some(Reply::Agent(AgentReply::Denied(denied))) => {
            format!("denied ({}): {}", code(denied), denied.reason)
        }
        Some(Reply::Agent(AgentReply::Completed(_))) if !noted.held.is_empty() => {
            format!("completed, held at {}", noted.held.join(", "))
        }
        Some(Reply::Agent(AgentReply::Completed(_))) => "completed".to_owned(),
        Some(Reply::Agent(AgentReply::Noted(_))) => "noted".to_owned(),
        Some(Reply::Operator(OperatorReply::Approved(held))) => {
            let progress = held.approval_progress().map_or("", |(words, _)| words);
            format!("approved: {progress}")
        }
        Some(Reply::Operator(OperatorReply::Acted)) => "recorded".to_owned(),
        Some(Reply::Operator(OperatorReply::Decided(decided))) => {
            decided.outcome.as_str().to_owned()
        }
        Some(
            Reply::Agent(AgentReply::Invalid(invalid))
            | Reply::Operator(OperatorReply::Invalid(invalid)),
        ) => {
            let rules = invalid.problems.iter().flat_map(|problem| &problem.rules);
            let rules: Vec<_> = rules.map(String::as_str).collect();
            format!("invalid: {}", rules.join(", "))
        }
        Some(Reply::Operator(OperatorReply::Refused(refused))) => format!("refused: {refused}"),
        Some(Reply::Agent(AgentReply::Resolved(resolution))) => {
            let (allowed, denied) = (resolution.allowed.len(), resolution.denied.len());
            format!("resolved: {allowed} allowed, {denied} denied")
        }
        Some(Reply::Agent(AgentReply::Consulted(ConsultationAnswer::Policy(answer)))) => {
            format!("{} by {}", answers::word(answer), answer.policy_id)
        }
        Some(Reply::Agent(AgentReply::Consulted(_))) => "consulted".to_owned(),
    }
}

/// Code of a denial, as agents receive it.
pub(super) fn code(denied: &DenialReply) -> String {
    match json!(denied.code) {
        Value::String(code) => code,
        other => other.to_string(),
    }
}

/// Effect of a decision; `None` if the reply is not about a decision.
pub(super) fn decision_effect(noted: &StepOutcome) -> Option<&'static str> {
    match &noted.reply {
        Some(Reply::Operator(OperatorReply::Decided(decided))) => Some(decided.outcome.as_str()),
        Some(Reply::Operator(OperatorReply::Approved(_))) => Some("approved"),
        Some(Reply::Agent(AgentReply::Invalid(_)) | Reply::Operator(OperatorReply::Invalid(_))) => {
            Some("invalid")
        }
        Some(Reply::Operator(OperatorReply::Refused(_))) => Some("refused"),
        Some(
            Reply::Agent(
                AgentReply::Started(_)
                | AgentReply::Ended(_)
                | AgentReply::Accepted(_)
                | AgentReply::Allowed(_)
                | AgentReply::Denied(_)
                | AgentReply::Asked(_)
                | AgentReply::Resolved(_)
                | AgentReply::Consulted(_)
                | AgentReply::Completed(_)
                | AgentReply::Noted(_),
            )
            | Reply::Operator(OperatorReply::Acted),
        ) => None,
        None => noted.fault.as_ref().map(|_| "refused"),
    }
}

/// A step that names a missing item fails, unless the scenario expects exactly that.
fn fault_failure(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let misfit = noted.fault.as_ref()?;
    if noted.reply.is_none() && expected.outcome == Some("refused") {
        return None;
    }
    Some(FailedExpectation::new(&misfit.wanted, &misfit.actual))
}

fn held(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.held.as_ref()?;
    if same_words(wanted, &noted.held) {
        return None;
    }
    let wanted = if wanted.is_empty() {
        "not held".to_owned()
    } else {
        format!("held at {}", wanted.join(", "))
    };
    let actual = if noted.held.is_empty() {
        decision(noted)
    } else {
        format!("held at {}", noted.held.join(", "))
    };
    Some(FailedExpectation::new(wanted, actual))
}

fn allowed(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.allowed?;
    let actual = matches!(noted.reply, Some(Reply::Agent(AgentReply::Allowed(_))));
    if wanted == actual {
        return None;
    }
    let wanted = if wanted { "allowed" } else { "not allowed" };
    Some(FailedExpectation::new(wanted, decision(noted)))
}

fn accepted(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.accepted?;
    let actual = matches!(noted.reply, Some(Reply::Agent(AgentReply::Accepted(_))));
    if wanted == actual {
        return None;
    }
    let wanted = if wanted { "accepted" } else { "not accepted" };
    Some(FailedExpectation::new(wanted, decision(noted)))
}

fn contexts(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.contexts.as_ref()?;
    let injected = noted.injected.contexts.iter();
    let injected: Vec<_> = injected.map(|context| context.context_id.clone()).collect();
    if same_words(wanted, &injected) {
        return None;
    }
    Some(FailedExpectation::new(
        format!("contexts [{}]", wanted.join(", ")),
        format!("contexts [{}]", injected.join(", ")),
    ))
}

fn guidance(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.guidance_contains.as_ref()?;
    let injected = noted.injected.guidance.iter();
    let injected: Vec<_> = injected
        .map(|guidance| guidance.block.content.as_str())
        .collect();
    if injected.iter().any(|injected| injected.contains(wanted)) {
        return None;
    }
    Some(FailedExpectation::new(
        format!("guidance that contains `{wanted}`"),
        format!("guidance [{}]", injected.join("; ")),
    ))
}

fn denied(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.denied?;
    let codes: Vec<_> = noted.denied.iter().map(code).collect();
    if codes.iter().any(|code| code == wanted) {
        return None;
    }
    let actual = if codes.is_empty() {
        decision(noted)
    } else {
        format!("denied ({})", codes.join(", "))
    };
    Some(FailedExpectation::new(format!("denied ({wanted})"), actual))
}

fn reason(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.reason_contains.as_ref()?;
    let mut reasons: Vec<_> = noted
        .denied
        .iter()
        .map(|denied| denied.reason.clone())
        .collect();
    if reasons.is_empty() {
        reasons.push(decision(noted));
    }
    if reasons.iter().any(|reason| reason.contains(wanted)) {
        return None;
    }
    Some(FailedExpectation::new(
        format!("a reason that contains `{wanted}`"),
        reasons.join("; "),
    ))
}

fn help(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.help_contains.as_ref()?;
    let texts: Vec<_> = noted
        .denied
        .iter()
        .filter_map(|denied| denied.help.clone())
        .collect();
    if texts.iter().any(|text| text.contains(wanted)) {
        return None;
    }
    Some(FailedExpectation::new(
        format!("help that contains `{wanted}`"),
        format!("help [{}]", texts.join("; ")),
    ))
}

fn outcome(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.outcome?;
    // A missing gate is already reported.
    if decision_effect(noted) == Some(wanted) || noted.reply.is_none() {
        return None;
    }
    Some(FailedExpectation::new(wanted, decision(noted)))
}

/// Compares a list with the expected one, in any order.
fn list(noun: &str, wanted: Option<&Vec<String>>, actual: &[String]) -> Option<FailedExpectation> {
    let wanted = wanted?;
    if same_words(wanted, actual) {
        return None;
    }
    Some(FailedExpectation::new(
        format!("{noun} [{}]", wanted.join(", ")),
        format!("{noun} [{}]", actual.join(", ")),
    ))
}

fn modified_input(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.modified_input.as_ref()?;
    if noted.modified_input.as_ref() == Some(wanted) {
        return None;
    }
    let actual = match &noted.modified_input {
        Some(actual) => format!("input `{actual}`"),
        None => "the unchanged input".to_owned(),
    };
    Some(FailedExpectation::new(format!("input `{wanted}`"), actual))
}

/// Resolution that the agent received, if it asked for one.
pub(super) fn resolution(noted: &StepOutcome) -> Option<&Resolution> {
    match &noted.reply {
        Some(Reply::Agent(AgentReply::Resolved(resolution))) => Some(resolution),
        Some(
            Reply::Agent(
                AgentReply::Started(_)
                | AgentReply::Ended(_)
                | AgentReply::Accepted(_)
                | AgentReply::Allowed(_)
                | AgentReply::Denied(_)
                | AgentReply::Asked(_)
                | AgentReply::Consulted(_)
                | AgentReply::Completed(_)
                | AgentReply::Noted(_)
                | AgentReply::Invalid(_),
            )
            | Reply::Operator(_),
        )
        | None => None,
    }
}

fn resolved(expected: &ExpectedOutcome, noted: &StepOutcome) -> Vec<FailedExpectation> {
    let Some(wanted) = &expected.resolved else {
        return Vec::new();
    };
    let Some(resolution) = resolution(noted) else {
        return vec![FailedExpectation::new("resolved", decision(noted))];
    };
    let denied = resolution.denied.iter().map(|denied| denied.action.clone());
    let denied: Vec<_> = denied.collect();
    let checks = [
        list("allowed", wanted.allowed.as_ref(), &resolution.allowed),
        list("denied", wanted.denied.as_ref(), &denied),
    ];
    checks.into_iter().flatten().collect()
}

fn records(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.records.iter();
    let missing: Vec<_> = wanted
        .filter(|name| !noted.records.contains(name))
        .map(String::as_str)
        .collect();
    if missing.is_empty() {
        return None;
    }
    Some(FailedExpectation::new(
        format!("recorded [{}]", missing.join(", ")),
        format!("recorded [{}]", noted.records.join(", ")),
    ))
}

/// First expected event that is not recorded after those before it.
fn recorded(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let mut events = noted.records.iter().zip(&noted.record_fields);
    let missing = expected
        .recorded
        .iter()
        .find(|wanted| !events.any(|(event_type, fields)| wanted.matches(event_type, fields)))?;
    let all = noted.records.iter().zip(&noted.record_fields);
    let same_type = all.filter(|(event_type, _)| *event_type == missing.event_type);
    let fields: Vec<_> = same_type
        .map(|(_, fields)| json!(fields).to_string())
        .collect();
    let actual = if fields.is_empty() {
        format!("recorded [{}]", noted.records.join(", "))
    } else {
        format!("{} [{}]", missing.event_type, fields.join(", "))
    };
    Some(FailedExpectation::new(
        format!("recorded in this order: {}", missing.describe()),
        actual,
    ))
}

fn synced(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let mut wanted = expected.synced.iter();
    let missing = wanted.find(|name| !noted.synced.contains(name))?;
    Some(FailedExpectation::new(
        format!("{missing} on disk before the answer"),
        format!("on disk [{}]", noted.synced.join(", ")),
    ))
}

fn refused_contexts(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let refused_contexts = noted.injected.refused_contexts.iter();
    let refused_contexts: Vec<_> = refused_contexts
        .map(|context| context.context_id.clone())
        .collect();
    list(
        "not given",
        expected.refused_contexts.as_ref(),
        &refused_contexts,
    )
}

fn not_recorded(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let mut unwanted = expected.not_recorded.iter();
    let unwanted = unwanted.find(|name| noted.records.contains(name))?;
    Some(FailedExpectation::new(
        format!("{unwanted} not recorded"),
        format!("recorded [{}]", noted.records.join(", ")),
    ))
}

fn settled(
    expected: &ExpectedOutcome,
    noted: &StepOutcome,
    stage: &ScenarioEngine,
) -> Vec<FailedExpectation> {
    let Some(wanted) = &expected.settled else {
        return Vec::new();
    };
    let ends = noted.settled.iter().map(|decided| {
        let names = stage.gates_of(&decided.gate).join(", ");
        format!("{names} {}", decided.outcome.as_str())
    });
    let ends = ends.collect::<Vec<_>>().join("; ");
    if wanted.is_empty() && !ends.is_empty() {
        return vec![FailedExpectation::new("no request settled", ends)];
    }
    let actual = if ends.is_empty() {
        "no request settled"
    } else {
        &ends
    };
    let came = |end: &ExpectedEnd| {
        noted.settled.iter().any(|decided| {
            decided.outcome.as_str() == end.outcome && stage.is_named(&decided.gate, &end.gate)
        })
    };
    let missing = wanted.iter().filter(|end| !came(end));
    missing
        .map(|end| FailedExpectation::new(format!("{} {}", end.gate, end.outcome), actual))
        .collect()
}

/// True if two lists have the same words, in any order.
fn same_words(a: &[String], b: &[String]) -> bool {
    a.len() == b.len() && a.iter().collect::<BTreeSet<_>>() == b.iter().collect::<BTreeSet<_>>()
}
