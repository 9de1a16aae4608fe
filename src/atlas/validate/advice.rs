//! Advice for the steward. These warnings never prevent the use of an Atlas.

use std::sync::LazyLock;

use regex::Regex;

use super::ManifestValidator;
use crate::atlas::diagnostic::{Code, ManifestProblem, quoted};
use crate::atlas::document::{
    AtlasManifest, CheckpointMode, CheckpointQuestion, CheckpointTrigger, DefaultDecision,
    ExpectedAnswer, InvalidAnswerAction, MatchMode, PolicyDef, Respondent, ResponseType, RiskTier,
    StewardCheckpointDef,
};
use crate::base::pattern::Pattern;

/// Words for secrets that must not be typed into a form with recorded answers.
static CREDENTIALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?i)\b(?:password|passphrase|passcode|api[ _-]?key|access[ _-]?token|private key|secret key|pin code)\b";
    Regex::new(words).ok()
});

/// Number of gates above which operators no longer answer with care.
const MANY_GATES: usize = 25;

/// Minimum length of an answer above which people no longer write with care.
const LONG_ANSWER: usize = 200;

/// Maximum number of comparisons between rules and actions; advice is not worth more time.
const MAX_COMPARED: usize = 1_000_000;

/// Keywords shorter than this are part of many words.
const SHORT_KEYWORD: usize = 4;

impl ManifestValidator<'_, '_> {
    pub(super) fn advise(&mut self, manifest: &AtlasManifest) {
        self.advise_default(manifest);
        let rules = manifest.policies.len() + manifest.checkpoints.len();
        let comparable = rules.saturating_mul(manifest.actions.len()) <= MAX_COMPARED;
        if comparable {
            self.advise_policies(manifest);
            self.advise_patterns(manifest);
            self.advise_denied(manifest);
            self.advise_parameters(manifest);
        }
        self.advise_conditions(manifest);
        self.advise_access(manifest);
        self.advise_scopes(manifest);
        self.advise_policy_checks(manifest);
        self.advise_mappings(manifest);
        self.advise_secrets(manifest);
        self.advise_notifications(manifest.steward.as_ref());
        let blocking =
            |checkpoint: &&StewardCheckpointDef| checkpoint.mode == CheckpointMode::Blocking;
        let gates = manifest.checkpoints.iter().filter(blocking).count();
        if gates > MANY_GATES {
            let message = format!("{gates} blocking checkpoints are too many for careful answers");
            let problem = ManifestProblem::new(Code::ManyGates, message).help(
                "use advisory checkpoints to inform, and policies to decide without an operator"
                    .to_owned(),
            );
            self.report("checkpoints", problem);
        }
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            self.advise_questions(index, checkpoint);
            self.advise_mode(index, checkpoint);
            if comparable {
                self.advise_records(index, checkpoint, manifest);
                self.advise_soft_gate(index, checkpoint, manifest);
                self.advise_either_answer(index, checkpoint, manifest);
                self.advise_tier(index, checkpoint, manifest);
            }
            self.advise_timeout(index, checkpoint);
            self.advise_keywords(index, checkpoint);
            self.advise_respondent(index, checkpoint);
        }
    }

    fn advise_respondent(&mut self, index: usize, checkpoint: &StewardCheckpointDef) {
        let blocking = checkpoint.mode == CheckpointMode::Blocking;
        if checkpoint.respondent != Respondent::Operator && !blocking {
            let message = "`respondent` has no effect: this checkpoint does not block";
            let problem = ManifestProblem::new(Code::NoEffect, message)
                .help("write `mode: blocking`, or remove `respondent`".to_owned());
            self.report(&format!("checkpoints[{index}].respondent"), problem);
        }
        if !checkpoint.approvers.is_one() && !blocking {
            let message = "`approvers` has no effect: this checkpoint does not block";
            let problem = ManifestProblem::new(Code::NoEffect, message)
                .help("write `mode: blocking`, or remove `approvers`".to_owned());
            self.report(&format!("checkpoints[{index}].approvers"), problem);
        }
    }

    fn advise_default(&mut self, manifest: &AtlasManifest) {
        if self.root.has_key("default_decision") || manifest.actions.is_empty() {
            return;
        }
        let message = "known actions that no policy mentions are allowed";
        let problem = ManifestProblem::new(Code::ImplicitDefault, message).help(
            "confirm it with `default_decision: allow`, or write `default_decision: deny`"
                .to_owned(),
        );
        self.report("actions", problem);
    }

    /// Advises a policy for critical actions. Gates ask people and policies decide without them; a critical action
    /// needs both.
    fn advise_policies(&mut self, manifest: &AtlasManifest) {
        let mentions = |policy: &PolicyDef, action: &str| matches(&policy.actions, action);
        for (index, action) in manifest.actions.iter().enumerate() {
            let mut policies = manifest.policies.iter();
            if action.risk_tier == Some(RiskTier::Critical)
                && manifest.default_decision == DefaultDecision::Allow
                && !policies.any(|policy| mentions(policy, &action.action_id))
            {
                let id = quoted(&action.action_id);
                let message = format!("no policy covers the critical action {id}");
                let problem = ManifestProblem::new(Code::NoPolicy, message).help(
                    "add a policy of type `requires_approval`, `rate_limit` or `deny`: it applies \
                     even if no checkpoint fires"
                        .to_owned(),
                );
                self.report(&format!("actions[{index}].action_id"), problem);
            }
        }
    }

    /// Advises durable records for a gate before a critical action, so that they survive a crash.
    fn advise_records(
        &mut self,
        index: usize,
        checkpoint: &StewardCheckpointDef,
        manifest: &AtlasManifest,
    ) {
        let critical = match &checkpoint.trigger {
            CheckpointTrigger::RiskThreshold { min_tier } => *min_tier == RiskTier::Critical,
            CheckpointTrigger::ActionPre { patterns } => {
                let mut actions = manifest.actions.iter();
                actions.any(|action| {
                    action.risk_tier == Some(RiskTier::Critical)
                        && matches(patterns, &action.action_id)
                })
            }
            CheckpointTrigger::SessionStart
            | CheckpointTrigger::SessionEnd
            | CheckpointTrigger::ActionPost { .. }
            | CheckpointTrigger::Keyword { .. }
            | CheckpointTrigger::CapabilityAccess { .. }
            | CheckpointTrigger::TimeInterval { .. }
            | CheckpointTrigger::CountInterval { .. }
            | CheckpointTrigger::ExplicitRequest
            | CheckpointTrigger::ErrorOccurred
            | CheckpointTrigger::Interactive
            | CheckpointTrigger::Custom { .. } => false,
        };
        let blocking = checkpoint.mode == CheckpointMode::Blocking;
        if critical && blocking && !checkpoint.force_sync_trace {
            let message = "critical gate without `force_sync_trace`: a crash could lose its record";
            let problem = ManifestProblem::new(Code::AsyncRecord, message)
                .help("write `force_sync_trace: true`".to_owned());
            self.report(&format!("checkpoints[{index}].checkpoint_id"), problem);
        }
    }

    /// Advises about a gate before a critical action that passes with an invalid answer or without one.
    fn advise_soft_gate(
        &mut self,
        index: usize,
        checkpoint: &StewardCheckpointDef,
        manifest: &AtlasManifest,
    ) {
        let is_gate = checkpoint.mode == CheckpointMode::Blocking;
        if !is_gate || !stands_before(RiskTier::Critical, checkpoint, manifest) {
            return;
        }
        let path = format!("checkpoints[{index}].questions");
        for (number, question) in checkpoint.questions.iter().enumerate() {
            let on_invalid = question.on_invalid;
            if matches!(
                on_invalid,
                InvalidAnswerAction::WarnAndContinue | InvalidAnswerAction::LogAndContinue
            ) {
                let word = on_invalid.as_str();
                let message =
                    format!("an invalid answer passes this gate before critical actions: `{word}`");
                let problem = ManifestProblem::new(Code::SoftGate, message)
                    .help("write `on_invalid: retry` or `on_invalid: block`".to_owned());
                self.report(&format!("{path}[{number}].on_invalid"), problem);
            }
        }
        let questions = &checkpoint.questions;
        if !questions.is_empty() && questions.iter().all(|question| !question.required) {
            let message = "this gate before critical actions passes without an answer: all its questions are optional";
            let problem = ManifestProblem::new(Code::SoftGate, message)
                .help("make at least one question `required`".to_owned());
            self.report(&path, problem);
        }
    }

    /// Advises about a gate before something risky that passes with "no" as well as with "yes".
    fn advise_either_answer(
        &mut self,
        index: usize,
        checkpoint: &StewardCheckpointDef,
        manifest: &AtlasManifest,
    ) {
        let is_gate = checkpoint.mode == CheckpointMode::Blocking;
        if !is_gate || !stands_before(RiskTier::High, checkpoint, manifest) {
            return;
        }
        let questions = checkpoint.questions.iter().enumerate();
        let mut required = questions.filter(|(_, question)| question.required);
        let (Some((number, question)), None) = (required.next(), required.next()) else {
            return;
        };
        if question.response_type == ResponseType::Boolean && question.expect == ExpectedAnswer::Any
        {
            let message =
                "the only required question passes with either answer: \"no\" lets the action run";
            let problem = ManifestProblem::new(Code::SoftGate, message)
                .help("write `expect: true`, or ask a question that can fail".to_owned());
            let path = format!("checkpoints[{index}].questions[{number}].expect");
            self.report(&path, problem);
        }
    }

    /// Warns about rules that the operator has to guess, and rules that ask for too much.
    fn advise_rules(&mut self, path: &str, question: &CheckpointQuestion) {
        let rules = &question.validation;
        let hidden = rules.pattern.is_some()
            || rules.custom_validator.is_some()
            || !rules.must_contain.is_empty()
            || !rules.must_not_contain.is_empty();
        if hidden && question.hint.is_none() {
            let message = "the respondent does not see the rules for this answer";
            let problem = ManifestProblem::new(Code::HiddenRules, message)
                .help("describe the rules in a `hint`".to_owned());
            self.report(&format!("{path}.validation"), problem);
        }
        let least = rules.min_length.unwrap_or_default();
        if least > LONG_ANSWER {
            let message = format!("a minimum of {least} characters invites filler text");
            let problem = ManifestProblem::new(Code::TightRules, message)
                .help("ask for less, or split the question".to_owned());
            self.report(&format!("{path}.validation.min_length"), problem);
        }
    }

    fn advise_questions(&mut self, index: usize, checkpoint: &StewardCheckpointDef) {
        for (number, question) in checkpoint.questions.iter().enumerate() {
            let path = format!("checkpoints[{index}].questions[{number}]");
            self.advise_rules(&path, question);
            self.advise_text_rules(&path, question);
            self.advise_unused_keys(&path, question);
            let found = CREDENTIALS
                .as_ref()
                .and_then(|words| words.find(&question.question));
            if let Some(word) = found {
                let path = format!("{path}.question");
                let message = format!(
                    "the question asks for {}, and answers are recorded",
                    quoted(word.as_str())
                );
                let problem = ManifestProblem::new(Code::AsksForCredentials, message)
                    .help("ask for a confirmation, never for the credential itself".to_owned());
                self.report(&path, problem);
            }
        }
    }

    fn advise_keywords(&mut self, index: usize, checkpoint: &StewardCheckpointDef) {
        let CheckpointTrigger::Keyword {
            patterns,
            match_mode: MatchMode::Any | MatchMode::All,
            ..
        } = &checkpoint.trigger
        else {
            return;
        };
        for (number, pattern) in patterns.iter().enumerate() {
            let path = format!("checkpoints[{index}].trigger");
            let path = self.detail_path(&path, &["patterns", "keywords"]);
            self.advise_keyword(&format!("{path}[{number}]"), pattern);
        }
    }

    /// Advises about keywords of the configuration, which are searched in the same way.
    fn advise_mappings(&mut self, manifest: &AtlasManifest) {
        let config = manifest.checkpoint_config.as_ref();
        let Some(part) = config.and_then(|config| config.keyword_match.as_ref()) else {
            return;
        };
        if !part.enabled || !matches!(part.match_mode, MatchMode::Any | MatchMode::All) {
            return;
        }
        let path = "checkpoint_config.keyword_match";
        let path = self.first_existing_path(path, &["mappings", "keywords"]);
        for (index, (key, _)) in part.mappings.iter().enumerate() {
            for keyword in key.split('|').map(str::trim) {
                self.advise_keyword(&format!("{path}[{index}]"), keyword);
            }
        }
    }

    fn advise_keyword(&mut self, path: &str, keyword: &str) {
        if !keyword.is_empty() && keyword.chars().count() < SHORT_KEYWORD {
            let message = format!("{} also matches inside other words", quoted(keyword));
            let problem = ManifestProblem::new(Code::ShortKeyword, message)
                .help("`match_mode: phrase` matches whole words only".to_owned());
            self.report(path, problem);
        }
    }
}

/// Tells whether a checkpoint can stand before an action that is declared to have at least this tier.
fn stands_before(
    least: RiskTier,
    checkpoint: &StewardCheckpointDef,
    manifest: &AtlasManifest,
) -> bool {
    let is_risky = |patterns: &[String]| {
        let mut actions = manifest.actions.iter();
        actions
            .any(|action| action.risk_tier >= Some(least) && matches(patterns, &action.action_id))
    };
    match &checkpoint.trigger {
        // The highest tier reaches every threshold.
        CheckpointTrigger::RiskThreshold { .. } => true,
        CheckpointTrigger::ActionPre { patterns } => is_risky(patterns),
        CheckpointTrigger::CapabilityAccess { capability_ids } => {
            let capabilities = manifest.capabilities.iter();
            let mut gated =
                capabilities.filter(|known| capability_ids.contains(&known.capability_id));
            gated.any(|capability| is_risky(&capability.actions))
        }
        _ => false,
    }
}

fn matches(patterns: &[String], action: &str) -> bool {
    let mut patterns = patterns.iter();
    patterns.any(|pattern| Pattern::new(pattern.as_str()).matches(action))
}
