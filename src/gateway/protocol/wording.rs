//! Texts for agents whose protocol carries only text.

use serde_json::Value;

use super::call::{CallError, CallFault};
use super::questions;
use crate::atlas::document::GuidanceFormat;
use crate::engine::command::{Injected, InjectedGuidance};

/// Step by which a caller gets the console's key.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) enum KeyRemedy {
    /// Connect the agent of that name again.
    Connect(&'static str),
    /// Start the program with the key.
    Key,
}

impl KeyRemedy {
    fn text(self) -> String {
        match self {
            Self::Connect(agent) => format!("run `cra connect {agent}`"),
            Self::Key => {
                "start this cra process with `--key` and the output of `cra trace key --answers`"
                    .to_owned()
            }
        }
    }
}

/// Describes why a call was not permitted, and what to do.
pub(in crate::gateway) fn denial_text(error: &CallError, remedy: KeyRemedy) -> String {
    match error {
        CallError::Fault(fault) => {
            let rules = questions::broken_rules(error).map(|rules| format!("\n{rules}"));
            format!("{}{}", refusal_text(fault), rules.unwrap_or_default())
        }
        CallError::Unreachable(_) => format!(
            "cra: {error}, so nothing is allowed. Start the console with `cra` in another terminal, and try again."
        ),
        CallError::Disconnected | CallError::TimedOut | CallError::Unreadable(_) => {
            format!(
                "cra: {error}, so this is denied. Ask the operator to check the console, and try again."
            )
        }
        CallError::Unproven { .. } => format!(
            "cra: {error}, so this is denied. Another process may listen there: ask the operator to run \
             `cra doctor`. If the console's key was changed, {} again.",
            remedy.text()
        ),
        CallError::NoKey(_) => format!(
            "cra: {error}, so no answer can be verified and this is denied. To fix this, {}.",
            remedy.text()
        ),
        CallError::Refused(_) | CallError::Unwritable(_) | CallError::NoChallenge(_) => {
            format!("cra: {error}, so this is denied. Try again later.")
        }
    }
}

/// Describes a refusal, with the gate and the advice.
fn refusal_text(fault: &CallFault) -> String {
    let gate = fault
        .data
        .as_ref()
        .and_then(|data| data.get("gate")?.as_str());
    let gate = gate.map(|gate| format!(" (held as {gate})"));
    let help = fault.help().map(|help| format!(". {}", capitalized(help)));
    let (gate, help) = (gate.unwrap_or_default(), help.unwrap_or_default());
    format!("cra: {}{gate}{help}", fault.message)
}

/// Returns a sentence that follows another one. Some agents add the final period themselves.
fn capitalized(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// Returns the contexts and guidance that an answer injects.
pub(in crate::gateway) fn injected_in(answer: &Value) -> Injected {
    let injected = answer.get("given").cloned().unwrap_or_default();
    serde_json::from_value(injected).unwrap_or_default()
}

/// Joins injected texts: instructions at system level first, then contexts, then other guidance.
pub(in crate::gateway) fn injected_text(injected: &Injected) -> Option<String> {
    let is_system =
        |guidance: &&InjectedGuidance| guidance.block.format == GuidanceFormat::SystemInstruction;
    let system = injected.guidance.iter().filter(is_system).map(|guidance| {
        let content = guidance.block.content.trim();
        format!("System instruction, with priority over everything below: {content}")
    });
    let contexts = injected
        .contexts
        .iter()
        .map(|context| context.content.trim().to_owned());
    let guidance = injected
        .guidance
        .iter()
        .filter(|guidance| !is_system(guidance));
    let guidance = guidance.map(|guidance| guidance.block.content.trim().to_owned());
    let withdrawn = injected
        .withdrawn
        .iter()
        .map(|context| format!("The guidance of {context} no longer applies."));
    join_texts(
        system
            .chain(contexts)
            .chain(guidance)
            .chain(withdrawn)
            .collect(),
    )
}

/// Joins texts; `None` if all are empty.
pub(in crate::gateway) fn join_texts(texts: Vec<String>) -> Option<String> {
    let texts: Vec<_> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}
