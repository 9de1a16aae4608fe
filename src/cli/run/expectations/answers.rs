//! Expectations about guidance, answers of policies, cached answers and events without a durable write.

use serde_json::{Map, Value, json};

use super::{FailedExpectation, decision};
use crate::cli::run::scenario::{ExpectedOutcome, ExpectedVerdict, contains_all};
use crate::cli::run::scenario_engine::StepOutcome;
use crate::engine::command::{AgentReply, InjectedGuidance, Reply};
use crate::engine::consultation::{ConsultationAnswer, PolicyAnswer};

/// Checks that exactly the expected guidance was given, in order.
pub(super) fn guidance(
    expected: &ExpectedOutcome,
    noted: &StepOutcome,
) -> Option<FailedExpectation> {
    let wanted = expected.guidance.as_ref()?;
    let injected: Vec<_> = noted.injected.guidance.iter().map(fields).collect();
    let mut pairs = injected.iter().zip(wanted);
    if injected.len() == wanted.len()
        && pairs.all(|(injected, wanted)| contains_all(injected, wanted))
    {
        return None;
    }
    let json_text = |blocks: &[Map<String, Value>]| json!(blocks).to_string();
    Some(FailedExpectation::new(
        format!("guidance {}", json_text(wanted)),
        format!("guidance {}", json_text(&injected)),
    ))
}

/// Fields of a guidance block, and the checkpoint that gave it.
fn fields(guidance: &InjectedGuidance) -> Map<String, Value> {
    let Value::Object(mut fields) = json!(guidance.block) else {
        return Map::new();
    };
    fields.insert("checkpoint_id".to_owned(), json!(guidance.checkpoint_id));
    fields
}

/// Checks that the step was, or was not, answered from a cache.
pub(super) fn cached(expected: &ExpectedOutcome, noted: &StepOutcome) -> Option<FailedExpectation> {
    let wanted = expected.cached?;
    let actual = match policy_answer(noted) {
        Some(answer) => answer.cached,
        None => noted.keywords_cached,
    };
    let word = |cached| if cached { "cached" } else { "not cached" };
    (wanted != actual).then(|| FailedExpectation::new(word(wanted), word(actual)))
}

/// Checks the answer of policies about an action.
pub(super) fn verdict(expected: &ExpectedVerdict, noted: &StepOutcome) -> Vec<FailedExpectation> {
    let answer = policy_answer(noted);
    let wanted = [
        expected.decision.map(str::to_owned),
        expected.policy_id.clone(),
    ];
    let actual = match answer {
        Some(answer) => [word(answer), answer.policy_id.clone()],
        None => [decision(noted), decision(noted)],
    };
    let checks = wanted.into_iter().zip(actual);
    let failed = checks.filter_map(|(wanted, actual)| {
        let wanted = wanted?;
        (wanted != actual).then(|| FailedExpectation::new(wanted, actual))
    });
    failed.collect()
}

/// Checks that events were recorded without the agent waiting for the disk.
pub(super) fn not_synced(
    expected: &ExpectedOutcome,
    noted: &StepOutcome,
) -> Option<FailedExpectation> {
    let in_time = |name: &&String| !noted.records.contains(name) || noted.synced.contains(name);
    let name = expected.not_synced.iter().find(in_time)?;
    let actual = if noted.records.contains(name) {
        format!("on disk [{}]", noted.synced.join(", "))
    } else {
        format!("recorded [{}]", noted.records.join(", "))
    };
    let wanted = format!("{name} recorded without waiting for the disk");
    Some(FailedExpectation::new(wanted, actual))
}

/// Policy answer about a request, in recorded form.
pub(super) fn word(answer: &PolicyAnswer) -> String {
    match json!(answer.decision) {
        Value::String(word) => word,
        other => other.to_string(),
    }
}

fn policy_answer(noted: &StepOutcome) -> Option<&PolicyAnswer> {
    match &noted.reply {
        Some(Reply::Agent(AgentReply::Consulted(ConsultationAnswer::Policy(answer)))) => {
            Some(answer)
        }
        _ => None,
    }
}
