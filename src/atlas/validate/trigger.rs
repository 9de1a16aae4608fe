//! Validation and compilation of checkpoint triggers.

use std::time::Duration;

use super::ManifestValidator;
use super::checkpoint::regex_error_text;
use super::ids::KnownIds;
use crate::atlas::condition::ConditionDef;
use crate::atlas::diagnostic::{Code, ManifestProblem};
use crate::atlas::document::{CheckpointMode, CheckpointTrigger, CustomTriggerEvent, MatchMode};
use crate::atlas::keyword::{CaseSensitivity, Keywords};
use crate::atlas::model::{CustomTrigger, Trigger};

impl ManifestValidator<'_, '_> {
    /// Compiles a trigger. Returns `None` if the trigger is invalid, after reporting it.
    pub(super) fn trigger(
        &mut self,
        path: &str,
        trigger: &CheckpointTrigger,
        mode: CheckpointMode,
        capabilities: &KnownIds<'_>,
    ) -> Option<Trigger> {
        match trigger {
            CheckpointTrigger::SessionStart => Some(Trigger::SessionStart),
            CheckpointTrigger::ActionPre { patterns } => {
                let path = self.detail_path(path, &["patterns", "actions"]);
                Some(Trigger::ActionPre(self.required_patterns(&path, patterns)))
            }
            CheckpointTrigger::RiskThreshold { min_tier } => {
                Some(Trigger::RiskThreshold(*min_tier))
            }
            CheckpointTrigger::CapabilityAccess { capability_ids } => {
                Some(self.capability_trigger(path, capability_ids, capabilities))
            }
            CheckpointTrigger::SessionEnd => {
                self.check_session_end(path, mode);
                Some(Trigger::SessionEnd)
            }
            CheckpointTrigger::ActionPost { patterns } => {
                let path = self.detail_path(path, &["patterns", "actions"]);
                Some(Trigger::ActionPost(self.required_patterns(&path, patterns)))
            }
            CheckpointTrigger::Keyword {
                patterns,
                case_sensitive,
                match_mode,
                threshold,
            } => {
                let case = case_sensitivity(*case_sensitive);
                self.keywords(path, patterns, *match_mode, case, *threshold)
            }
            CheckpointTrigger::TimeInterval { seconds } => {
                self.check_interval(&self.details_path(path), "seconds", *seconds);
                Some(Trigger::TimeInterval(Duration::from_secs(*seconds)))
            }
            CheckpointTrigger::CountInterval { actions } => {
                self.check_interval(&self.details_path(path), "actions", *actions);
                Some(Trigger::CountInterval(*actions))
            }
            CheckpointTrigger::ExplicitRequest => Some(Trigger::ExplicitRequest),
            CheckpointTrigger::ErrorOccurred => Some(Trigger::ErrorOccurred),
            CheckpointTrigger::Interactive => Some(Trigger::Interactive),
            CheckpointTrigger::Custom {
                trigger_id,
                params,
                on,
                when,
            } => {
                let path = self.details_path(path);
                self.check_name(&format!("{path}.trigger_id"), "trigger id", trigger_id);
                let (on_input, on_action) = evaluation_events(on, when.as_ref());
                Some(Trigger::Custom(CustomTrigger {
                    trigger_id: trigger_id.clone(),
                    params: params.clone(),
                    on_input,
                    on_action,
                    when: self.condition(&format!("{path}.when"), when.as_ref()),
                }))
            }
        }
    }

    /// Rejects a blocking checkpoint at session end, because there is nothing left to hold.
    fn check_session_end(&mut self, path: &str, mode: CheckpointMode) {
        if mode == CheckpointMode::Blocking {
            let message =
                "a `session_end` checkpoint cannot be blocking: an ended session cannot wait";
            let help = "put a gate before the last action, or use `mode: advisory`";
            let problem = ManifestProblem::new(Code::Contradiction, message).help(help.to_owned());
            self.report(&path.replace(".trigger", ".mode"), problem);
        }
    }

    fn capability_trigger(
        &mut self,
        path: &str,
        capability_ids: &[String],
        ids: &KnownIds<'_>,
    ) -> Trigger {
        let path = self.detail_path(path, &["capability_ids"]);
        if capability_ids.is_empty() {
            let message = "an empty list never fires";
            self.report_code(Code::EmptyPattern, &path, message);
        }
        self.check_references(&path, capability_ids, ids);
        Trigger::CapabilityAccess(capability_ids.iter().cloned().collect())
    }

    /// Returns the path of a trigger's details: the trigger itself, or its nested condition.
    fn details_path(&self, path: &str) -> String {
        let nested = format!("{path}.condition");
        if self.root.has(&nested) {
            nested
        } else {
            path.to_owned()
        }
    }

    /// Returns the path of a trigger's detail that has several possible names.
    pub(super) fn detail_path(&self, path: &str, keys: &[&str]) -> String {
        self.first_existing_path(&self.details_path(path), keys)
    }

    fn keywords(
        &mut self,
        path: &str,
        patterns: &[String],
        mode: MatchMode,
        case: CaseSensitivity,
        threshold: Option<usize>,
    ) -> Option<Trigger> {
        if threshold.is_some() && mode != MatchMode::Fuzzy {
            let path = self.detail_path(path, &["threshold"]);
            let message = "`threshold` needs `match_mode: fuzzy`";
            self.report_code(Code::Contradiction, &path, message);
        }
        let path = self.detail_path(path, &["patterns", "keywords", "pattern"]);
        if patterns.is_empty() {
            let message = "an empty list never fires";
            self.report_code(Code::EmptyPattern, &path, message);
        }
        for (index, pattern) in patterns.iter().enumerate() {
            if pattern.trim().is_empty() {
                let message = "an empty keyword matches every text";
                self.report_code(Code::EmptyPattern, &format!("{path}[{index}]"), message);
            }
        }
        match Keywords::compile(patterns, mode, case, threshold) {
            Ok(keywords) => Some(Trigger::Keyword(keywords)),
            Err(error) => {
                let path = if path.ends_with(".pattern") {
                    path
                } else {
                    format!("{path}[{}]", error.index)
                };
                self.report_code(Code::BadRegex, &path, regex_error_text(&error.source));
                None
            }
        }
    }

    pub(super) fn check_interval(&mut self, path: &str, key: &str, number: u64) {
        if number == 0 {
            let message = format!("the interval must be longer than 0 {key}");
            self.report_code(Code::OutOfRange, &format!("{path}.{key}"), message);
        }
    }
}

/// Converts the `case_sensitive` key to a case sensitivity.
pub(super) fn case_sensitivity(case_sensitive: bool) -> CaseSensitivity {
    if case_sensitive {
        CaseSensitivity::Sensitive
    } else {
        CaseSensitivity::Insensitive
    }
}

/// Returns two flags: evaluate a custom trigger on input, and evaluate it on action requests.
fn evaluation_events(on: &[CustomTriggerEvent], when: Option<&ConditionDef>) -> (bool, bool) {
    if !on.is_empty() {
        let named = |moment| on.contains(&moment);
        return (
            named(CustomTriggerEvent::Input),
            named(CustomTriggerEvent::Action),
        );
    }
    when.map_or((true, true), |when| {
        let paths = when.paths();
        let is_input = |path: &&str| *path == "input";
        (paths.iter().any(is_input), !paths.iter().all(is_input))
    })
}
