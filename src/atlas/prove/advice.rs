//! What a steward should think about: nothing here keeps an Atlas from being used.

use std::sync::LazyLock;

use regex::Regex;

use super::Prover;
use crate::atlas::diagnostic::{Code, Problem, quoted};
use crate::atlas::document::{
    AtlasManifest, CheckpointMode, CheckpointTrigger, MatchMode, Respondent, StewardCheckpointDef,
};

/// Words for what must not be typed into a form whose answers are recorded.
static CREDENTIALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?i)\b(?:password|passphrase|passcode|api[ _-]?key|access[ _-]?token|private key|secret key|pin code)\b";
    Regex::new(words).ok()
});

/// More gates than people answer with care.
const MANY_GATES: usize = 25;

/// Keywords this short are part of many words.
const SHORT_KEYWORD: usize = 4;

impl Prover<'_, '_> {
    pub(super) fn advise(&mut self, manifest: &AtlasManifest) {
        self.advise_default(manifest);
        self.advise_policy_checks(manifest);
        let blocking =
            |checkpoint: &&StewardCheckpointDef| checkpoint.mode == CheckpointMode::Blocking;
        let gates = manifest.checkpoints.iter().filter(blocking).count();
        if gates > MANY_GATES {
            let message =
                format!("{gates} blocking checkpoints are more than people answer with care");
            let problem = Problem::new(Code::ManyGates, message).help(
                "let advisory checkpoints inform and policies decide what needs no person"
                    .to_owned(),
            );
            self.report("checkpoints", problem);
        }
        for (index, checkpoint) in manifest.checkpoints.iter().enumerate() {
            self.advise_questions(index, checkpoint);
            self.advise_keywords(index, checkpoint);
            self.advise_respondent(index, checkpoint);
        }
    }

    fn advise_respondent(&mut self, index: usize, checkpoint: &StewardCheckpointDef) {
        let blocking = checkpoint.mode == CheckpointMode::Blocking;
        if checkpoint.respondent != Respondent::Operator && !blocking {
            let message = "nobody is asked at a checkpoint that does not block";
            let problem = Problem::new(Code::NoEffect, message)
                .help("write `mode: blocking`, or take `respondent` out".to_owned());
            self.report(&format!("checkpoints[{index}].respondent"), problem);
        }
    }

    fn advise_default(&mut self, manifest: &AtlasManifest) {
        if self.root.has_key("default_decision") || manifest.actions.is_empty() {
            return;
        }
        let message = "known actions that no policy mentions are allowed";
        let problem = Problem::new(Code::ImplicitDefault, message).help(
            "say so with `default_decision: allow`, or write `default_decision: deny`".to_owned(),
        );
        self.report("actions", problem);
    }

    fn advise_questions(&mut self, index: usize, checkpoint: &StewardCheckpointDef) {
        for (number, question) in checkpoint.questions.iter().enumerate() {
            let found = CREDENTIALS
                .as_ref()
                .and_then(|words| words.find(&question.question));
            if let Some(word) = found {
                let path = format!("checkpoints[{index}].questions[{number}].question");
                let message = format!(
                    "asks for {}, and answers are recorded",
                    quoted(word.as_str())
                );
                let problem = Problem::new(Code::AsksForCredentials, message)
                    .help("ask whether it was checked, never for the credential itself".to_owned());
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
            if !pattern.is_empty() && pattern.chars().count() < SHORT_KEYWORD {
                let path = format!("checkpoints[{index}].trigger");
                let path = self.detail(&path, &["patterns", "keywords"]);
                let path = format!("{path}[{number}]");
                let message = format!("{} is found inside other words as well", quoted(pattern));
                let problem = Problem::new(Code::ShortKeyword, message)
                    .help("`match_mode: phrase` finds whole words".to_owned());
                self.report(&path, problem);
            }
        }
    }
}
