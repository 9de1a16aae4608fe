//! Validation of checkpoints: references, triggers and questions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::Value;

use super::ids::KnownIds;
use super::{ManifestValidator, text_problem};
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{
    AnswerValidation, Approvers, AtlasManifest, CheckpointQuestion, GuidanceBlock, GuidanceFormat,
    Respondent, ResponseType, StewardCheckpointDef,
};
use crate::atlas::model::{Checkpoint, CompiledQuestion, QuestionError};
use crate::base::json;
use crate::base::limits::{DEFAULT_GATE_TIMEOUT, MAX_GATE_TIMEOUT, MAX_ID_LEN};
use crate::base::pattern::Patterns;

impl ManifestValidator<'_, '_> {
    /// Validates all checkpoints and sorts them by priority: the steward's own, then the configured ones.
    pub(super) fn checkpoints(
        &mut self,
        manifest: &AtlasManifest,
        capabilities: &KnownIds<'_>,
        contexts: &KnownIds<'_>,
    ) -> Vec<Checkpoint> {
        let definitions = manifest.checkpoints.iter().enumerate();
        let mut checkpoints: Vec<_> = definitions
            .filter_map(|(index, definition)| {
                self.checkpoint(index, definition, capabilities, contexts)
            })
            .collect();
        let config = manifest.checkpoint_config.as_ref();
        let configured = config.map_or_else(Vec::new, |config| {
            self.configured_checkpoints(config, contexts)
        });
        self.check_config_ids(manifest, &configured);
        checkpoints.extend(configured);
        self.check_expiry(manifest, &checkpoints);
        // The sort is stable, so that equal priorities keep the order written.
        checkpoints.sort_by_key(|checkpoint| Reverse(checkpoint.priority));
        checkpoints
    }

    /// Validates one checkpoint. Returns `None` if its trigger is invalid, after reporting it.
    fn checkpoint(
        &mut self,
        index: usize,
        definition: &StewardCheckpointDef,
        capabilities: &KnownIds<'_>,
        contexts: &KnownIds<'_>,
    ) -> Option<Checkpoint> {
        let path = format!("checkpoints[{index}]");
        let at = |key: &str| format!("{path}.{key}");
        self.check_references(
            &at("inject_contexts"),
            &definition.inject_contexts,
            contexts,
        );
        self.check_references(
            &at("unlock_capabilities"),
            &definition.unlock_capabilities,
            capabilities,
        );
        self.check_references(
            &at("lock_capabilities"),
            &definition.lock_capabilities,
            capabilities,
        );
        self.check_guidance(&at("guidance"), definition.guidance.as_ref());
        if let Some(handler) = &definition.handler {
            self.check_name(&at("handler"), "handler", handler);
        }
        self.check_approvers(&at("approvers"), definition);
        let timeout_seconds = self.timeout(&at("timeout_seconds"), definition.timeout_seconds);
        let questions = self.questions(&at("questions"), &definition.questions);
        let allow_actions = self.patterns(&at("allow_actions"), &definition.allow_actions);
        let deny_actions = self.patterns(&at("deny_actions"), &definition.deny_actions);
        let when = self.condition(&at("when"), definition.when.as_ref());
        let trigger = self.trigger(
            &at("trigger"),
            &definition.trigger,
            definition.mode,
            capabilities,
        )?;
        Some(Checkpoint {
            id: definition.checkpoint_id.clone(),
            name: definition.name.clone(),
            kind: definition.trigger.checkpoint_type(),
            trigger,
            mode: definition.mode,
            questions,
            guidance: definition.guidance.clone(),
            inject_contexts: definition.inject_contexts.clone(),
            unlock_capabilities: definition.unlock_capabilities.iter().cloned().collect(),
            lock_capabilities: definition.lock_capabilities.iter().cloned().collect(),
            allow_actions,
            deny_actions,
            force_sync_trace: definition.force_sync_trace,
            priority: definition
                .priority
                .unwrap_or_else(|| definition.trigger.default_priority()),
            timeout_seconds,
            respondent: definition.respondent,
            approvers: definition.approvers,
            when,
            unless: Patterns::default(),
            handler: definition.handler.clone(),
        })
    }

    /// Rejects two approvers where an agent may answer alone.
    fn check_approvers(&mut self, path: &str, definition: &StewardCheckpointDef) {
        if definition.approvers == Approvers::Two && definition.respondent != Respondent::Operator {
            let message = "`approvers: 2` requires operators, but the agent may answer";
            let problem = ManifestProblem::new(Code::Contradiction, message)
                .help("remove `respondent`, or write `approvers: 1`".to_owned());
            self.report(path, problem);
        }
    }

    /// Checks that guidance with `format: json` is valid JSON, because readers rely on it.
    fn check_guidance(&mut self, path: &str, guidance: Option<&GuidanceBlock>) {
        let is_json = |block: &&GuidanceBlock| block.format == GuidanceFormat::Json;
        let Some(block) = guidance.filter(is_json) else {
            return;
        };
        if let Err(error) = json::read::<Value>(block.content.as_bytes()) {
            let message = format!(
                "`format: json`, but the content is not JSON: {}",
                error.detail()
            );
            let problem = ManifestProblem::new(Code::BadGuidance, message)
                .help("fix the content, or write `format: text`".to_owned());
            self.report(&format!("{path}.content"), problem);
        }
    }

    fn timeout(&mut self, path: &str, seconds: Option<u64>) -> u64 {
        let seconds = seconds.unwrap_or(DEFAULT_GATE_TIMEOUT.as_secs());
        let most = MAX_GATE_TIMEOUT.as_secs();
        if !(1..=most).contains(&seconds) {
            let message =
                format!("the timeout must be between 1 and {most} seconds, not {seconds}");
            self.report_code(Code::OutOfRange, path, message);
        }
        seconds
    }

    fn questions(
        &mut self,
        path: &str,
        definitions: &[CheckpointQuestion],
    ) -> Vec<CompiledQuestion> {
        let mut first_uses: BTreeMap<&str, usize> = BTreeMap::new();
        let mut questions = Vec::with_capacity(definitions.len());
        for (index, definition) in definitions.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let id_path = format!("{path}.question_id");
            let id = definition.question_id.as_str();
            self.check_id(&id_path, "question id", id, MAX_ID_LEN);
            if let Some(first) = first_uses.insert(id, index) {
                let message = format!(
                    "question id {} is used twice in one checkpoint, first by question {}",
                    quoted(id),
                    first + 1
                );
                self.report_code(Code::DuplicateId, &id_path, message);
            }
            if definition.question.trim().is_empty() {
                let message = format!("question {} has no text", quoted(id));
                self.report_code(Code::EmptyQuestion, &format!("{path}.question"), message);
            }
            let rules = format!("{path}.validation");
            self.check_rules(&rules, &definition.validation);
            if let Some(name) = &definition.validation.custom_validator {
                self.check_name(&format!("{rules}.custom_validator"), "validator", name);
            }
            self.check_type(&path, definition);
            questions.extend(self.question(&path, definition));
        }
        questions
    }

    fn question(
        &mut self,
        path: &str,
        definition: &CheckpointQuestion,
    ) -> Option<CompiledQuestion> {
        match CompiledQuestion::try_from(definition.clone()) {
            Ok(question) => Some(question),
            Err(QuestionError::Pattern { source, .. }) => {
                let path = format!("{path}.validation.pattern");
                self.report_code(Code::BadRegex, &path, regex_error_text(&source));
                None
            }
            Err(QuestionError::Schema { what, .. }) => {
                let path = format!("{path}.schema");
                self.report_code(Code::BadSchema, &path, format!("not a JSON Schema: {what}"));
                None
            }
        }
    }

    /// Checks the fields that belong to one answer type only, and the fields that the type needs.
    fn check_type(&mut self, path: &str, question: &CheckpointQuestion) {
        let kind = question.response_type;
        let foreign = [
            (
                "options",
                ResponseType::Choice,
                !question.options.is_empty(),
            ),
            ("min", ResponseType::Number, question.min.is_some()),
            ("max", ResponseType::Number, question.max.is_some()),
            ("schema", ResponseType::Json, question.schema.is_some()),
        ];
        for (key, belongs_to, present) in foreign {
            if present && kind != belongs_to {
                let message = format!(
                    "`{key}` belongs to answers of type `{}`, but this answer is `{}`",
                    belongs_to.as_str(),
                    kind.as_str()
                );
                self.report_code(Code::Contradiction, &format!("{path}.{key}"), message);
            }
        }
        if kind == ResponseType::Choice {
            self.check_options(path, &question.options);
        }
        if let (Some(min), Some(max)) = (question.min, question.max)
            && min > max
        {
            let message = format!("`min` {min} is greater than `max` {max}");
            self.report_code(Code::Contradiction, &format!("{path}.min"), message);
        }
    }

    fn check_options(&mut self, path: &str, options: &[String]) {
        if options.is_empty() {
            let message = "a choice needs `options`";
            self.report_code(
                Code::Contradiction,
                &format!("{path}.response_type"),
                message,
            );
        }
        for (index, option) in options.iter().enumerate() {
            let path = format!("{path}.options[{index}]");
            if let Some(fault) = text_problem(option, MAX_ID_LEN) {
                self.report_code(Code::EmptyPattern, &path, format!("option {fault}"));
            }
            let earlier = options.iter().take(index);
            if earlier
                .into_iter()
                .any(|other| other.to_lowercase() == option.to_lowercase())
            {
                let message = format!("duplicate option {}", quoted(option));
                self.report_code(Code::DuplicateId, &path, message);
            }
        }
    }

    fn check_rules(&mut self, path: &str, rules: &AnswerValidation) {
        if let (Some(min), Some(max)) = (rules.min_length, rules.max_length)
            && min > max
        {
            let message = format!("`min_length` {min} is greater than `max_length` {max}");
            self.report_code(Code::Contradiction, &format!("{path}.min_length"), message);
        }
        for (key, texts) in [
            ("must_contain", &rules.must_contain),
            ("must_not_contain", &rules.must_not_contain),
        ] {
            for (index, text) in texts.iter().enumerate() {
                if text.is_empty() {
                    let path = format!("{path}.{key}[{index}]");
                    self.report_code(
                        Code::EmptyPattern,
                        &path,
                        "an empty text matches every answer",
                    );
                }
            }
        }
        let forbidden: Vec<String> = rules
            .must_not_contain
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| text.to_lowercase())
            .collect();
        for (index, wanted) in rules.must_contain.iter().enumerate() {
            let folded = wanted.to_lowercase();
            if let Some(text) = forbidden.iter().find(|text| folded.contains(*text)) {
                let message = format!(
                    "an answer with {} contains {}, which `must_not_contain` forbids",
                    quoted(wanted),
                    quoted(text)
                );
                let path = format!("{path}.must_contain[{index}]");
                self.report_code(Code::Contradiction, &path, message);
            }
        }
    }
}

/// Formats a regex error on one line. The last line of the crate's message describes the problem.
pub(super) fn regex_error_text(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("the compiled pattern exceeds the limit of {limit} bytes")
        }
        error => {
            let message = error.to_string();
            let reason = message.lines().last().unwrap_or_default();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            format!("the pattern is not a regular expression: {reason}")
        }
    }
}
