//! Steps about the wrapper of an agent.

use serde_json::Value;

use super::step_action::StepAction;
use crate::atlas::diagnostic::Code;
use crate::atlas::located_values::{FileProblems, LocatedValue};
use crate::engine::command::{AgentReport, Wrapper};
use crate::gateway::protocol::call::{WrapperConstructed, WrapperVerified};

/// Parses a wrapper. Without a `construction_hash` it gets the correct one.
pub(super) fn constructed(
    value: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<StepAction> {
    let mut fields = value.json();
    let is_proven = fields.get("construction_hash").is_some();
    if let (Some(fields), false) = (fields.as_object_mut(), is_proven) {
        fields.insert("construction_hash".to_owned(), Value::from(""));
    }
    let read = serde_json::from_value::<WrapperConstructed>(fields);
    let call = read.map_err(|error| value.report(Code::WrongType, &error.to_string(), faults));
    let mut wrapper = Wrapper::from(call.ok()?);
    if !is_proven {
        wrapper.construction_hash = wrapper.proof().to_string();
    }
    Some(StepAction::Report(AgentReport::Wrapper(wrapper)))
}

/// Parses the result of a wrapper check.
pub(super) fn verified(
    value: &LocatedValue<'_>,
    faults: &mut FileProblems<'_>,
) -> Option<StepAction> {
    let read = serde_json::from_value::<WrapperVerified>(value.json());
    let call = read.map_err(|error| value.report(Code::WrongType, &error.to_string(), faults));
    Some(StepAction::Report(AgentReport::WrapperCheck(
        call.ok()?.into(),
    )))
}
