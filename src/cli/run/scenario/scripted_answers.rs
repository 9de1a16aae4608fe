//! Scripted answers of extensions: fixed values, so that no real extension is called.

use std::collections::BTreeMap;

use serde_json::Value;

use super::text;
use crate::atlas::diagnostic::Code;
use crate::atlas::located_values::{FileProblems, LocatedValue};
use crate::base::id::is_restricted;
use crate::engine::extension::{CallQuestion, ExtensionCall, Extensions};

/// Roles in which an extension can be asked.
const ROLES: [&str; 3] = ["trigger", "handler", "validator"];

/// Scripted answers, by role and extension.
#[derive(Default)]
pub(in crate::cli::run) struct ScriptedAnswers(
    BTreeMap<(&'static str, String), Result<Value, String>>,
);

impl ScriptedAnswers {
    /// Parses the list of extensions.
    pub(super) fn read(list: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Self {
        let mut all = Self::default();
        for item in list.items(faults) {
            all.add(&item, faults);
        }
        all
    }

    fn add(&mut self, item: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<()> {
        item.reject_unknown_keys(&["name", "answers", "with", "fails"], faults);
        let answer = answer(item, faults);
        let role = item.require("answers", faults);
        let role = role.and_then(|entry| entry.word("extension role", &ROLES, faults));
        let place = item.require("name", faults)?;
        let name = place.text(faults)?;
        if !is_restricted(&name) {
            let message = "a name may contain only letters, digits, dots, dashes and underscores";
            place.report(Code::BadId, message, faults);
        }
        let (role, answer) = (role?, answer?);
        if self.0.insert((role, name.clone()), answer).is_some() {
            let message = format!("a {role} named `{name}` already exists");
            place.report(Code::DuplicateId, &message, faults);
        }
        Some(())
    }

    /// Adds the scripted extensions to those of this program.
    pub(in crate::cli::run) fn added_to(&self, own: Extensions) -> Extensions {
        let of = |role: &'static str| {
            let names = self.0.keys().filter(move |(scripted, _)| *scripted == role);
            names.map(|(_, name)| name.clone())
        };
        let mut all = own;
        all.triggers.extend(of("trigger"));
        all.handlers.extend(of("handler"));
        all.validators.extend(of("validator"));
        all
    }

    /// Scripted answer of an extension, if there is one.
    pub(in crate::cli::run) fn outcome(
        &self,
        call: &ExtensionCall,
    ) -> Option<Result<Value, String>> {
        let role = match call.question {
            CallQuestion::Trigger { .. } => "trigger",
            CallQuestion::Handler => "handler",
            CallQuestion::Validator { .. } => "validator",
        };
        self.0.get(&(role, call.name.clone())).cloned()
    }
}

/// Answer or failure of an extension: exactly one of the two.
fn answer(item: &LocatedValue<'_>, faults: &mut FileProblems<'_>) -> Option<Result<Value, String>> {
    match (item.get("with"), item.get("fails")) {
        (Some(with), None) => Some(Ok(with.json())),
        (None, Some(_)) => text(item, "fails", faults).map(Err),
        (Some(_), Some(_)) | (None, None) => {
            let message = "an extension must have exactly one of `with` and `fails`";
            item.report(Code::Contradiction, message, faults);
            None
        }
    }
}
