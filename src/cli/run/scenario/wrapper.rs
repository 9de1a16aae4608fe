//! Steps about the wrapper of an agent.

use serde_json::Value;

use super::deed::Deed;
use crate::atlas::diagnostic::Code;
use crate::atlas::written::{Faults, Placed};
use crate::engine::command::{Report, Wrapper};
use crate::gateway::call::{WrapperConstructed, WrapperVerified};

/// Parses a wrapper. Without a `construction_hash` it gets the correct one.
pub(super) fn constructed(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Deed> {
    let mut fields = value.json();
    let is_proven = fields.get("construction_hash").is_some();
    if let (Some(fields), false) = (fields.as_object_mut(), is_proven) {
        fields.insert("construction_hash".to_owned(), Value::from(""));
    }
    let read = serde_json::from_value::<WrapperConstructed>(fields);
    let call = read.map_err(|error| value.refuse(Code::WrongType, &error.to_string(), faults));
    let mut wrapper = Wrapper::from(call.ok()?);
    if !is_proven {
        wrapper.construction_hash = wrapper.proof().to_string();
    }
    Some(Deed::Report(Report::Wrapper(wrapper)))
}

/// Parses the result of a wrapper check.
pub(super) fn verified(value: &Placed<'_>, faults: &mut Faults<'_>) -> Option<Deed> {
    let read = serde_json::from_value::<WrapperVerified>(value.json());
    let call = read.map_err(|error| value.refuse(Code::WrongType, &error.to_string(), faults));
    Some(Deed::Report(Report::WrapperCheck(call.ok()?.into())))
}
