//! The manifest as proven: what the engine decides by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condition::Condition;
use super::document::{
    AnswerValidation, Approvers, Budget, CacheConfig, CheckpointMode, CheckpointQuestion,
    ContextBlockDef, DefaultDecision, Expect, GuidanceBlock, InjectMode, OnInvalid, PolicyKind,
    Respondent, ResponseType, RiskMode, RiskTier, Scope, Steward, UnknownActions,
};
use super::index::Index;
use super::keyword::Keywords;
use super::origin::Origin;
use super::recording::Recording;
use crate::base::digest::Digest;
use crate::base::limits::MAX_REGEX_BYTES;
use crate::base::pattern::Patterns;

/// A proven manifest.
#[derive(Clone, Debug)]
pub struct Atlas {
    /// Who this Atlas is.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Name for people.
    pub name: String,
    /// What it governs.
    pub description: String,
    /// Digest of the text it was loaded from: a decision is bound to it.
    pub hash: Digest,
    /// The text itself, so that it can be kept with the record of what was decided under it.
    pub text: std::sync::Arc<str>,
    /// Where it came from.
    pub origin: Arc<Origin>,
    /// Who is responsible for it.
    pub steward: Option<Steward>,
    /// Groups of actions, in the order written.
    pub capabilities: Vec<Capability>,
    /// Checkpoints, highest priority first, then in the order written.
    pub checkpoints: Vec<Checkpoint>,
    /// Contexts by identifier.
    pub contexts: BTreeMap<String, ContextBlockDef>,
    /// What calls for them beside checkpoints, in the order written.
    pub injections: Vec<Injection>,
    /// Rules, in the order written.
    pub policies: Vec<Policy>,
    /// Declared actions by name.
    pub actions: BTreeMap<String, Action>,
    /// What holds for a known action that no policy mentions.
    pub default_decision: DefaultDecision,
    /// What holds for an action that no Atlas knows.
    pub unknown_actions: UnknownActions,
    /// How the tier of an action is found that does not declare one.
    pub risk_mode: RiskMode,
    /// How much one input may cause, where the steward says so.
    pub budget: Option<Budget>,
    /// How long results are kept.
    pub cache: CacheConfig,
    /// What is recorded, how durably and for how long.
    pub recording: Recording,
    /// What it is looked up by.
    pub(crate) index: Index,
}

impl Atlas {
    /// Whether the Atlas knows `action`: it declares it, or a capability lists it.
    #[must_use]
    pub fn knows(&self, action: &str) -> bool {
        self.actions.contains_key(action) || self.capabilities_of(action).next().is_some()
    }

    /// The capabilities that list `action`.
    pub fn capabilities_of<'a>(&'a self, action: &'a str) -> impl Iterator<Item = &'a Capability> {
        self.capabilities
            .iter()
            .filter(move |capability| capability.actions.matches(action))
    }
}

/// What calls for a context beside checkpoints.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The context.
    pub context_id: String,
    /// When it is handed over.
    pub mode: InjectMode,
    /// Keywords of input that call for it.
    pub keywords: Option<Keywords>,
    /// Actions that call for it.
    pub actions: Patterns,
    /// Order among contexts that are called for together.
    pub priority: i64,
}

/// A group of actions.
#[derive(Clone, Debug)]
pub struct Capability {
    /// Identifier.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// The actions in it.
    pub actions: Patterns,
    /// Whether a session starts without it: a checkpoint unlocks or gates it.
    pub starts_locked: bool,
}

/// A checkpoint, ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Identifier.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Its type, as TRACE names it.
    pub kind: &'static str,
    /// When it fires.
    pub trigger: Trigger,
    /// Whether it stops the agent.
    pub mode: CheckpointMode,
    /// What has to be answered.
    pub questions: Vec<Question>,
    /// What is said.
    pub guidance: Option<GuidanceBlock>,
    /// Contexts handed to the agent.
    pub inject_contexts: Vec<String>,
    /// Capabilities that passing unlocks.
    pub unlock_capabilities: BTreeSet<String>,
    /// Capabilities that passing locks.
    pub lock_capabilities: BTreeSet<String>,
    /// Actions that passing allows.
    pub allow_actions: Patterns,
    /// Actions that passing denies.
    pub deny_actions: Patterns,
    /// Whether its records must be durable at once.
    pub force_sync_trace: bool,
    /// Order among checkpoints that fire together.
    pub priority: i64,
    /// How long an answer is waited for.
    pub timeout_seconds: u64,
    /// Who may answer.
    pub respondent: Respondent,
    /// How many operators have to let it pass.
    pub approvers: Approvers,
    /// What else must hold for it to fire.
    pub when: Option<Condition>,
    /// Actions that it leaves to another of the same kind, which names them more closely.
    pub unless: Patterns,
    /// The extension that is asked when it fires.
    pub handler: Option<String>,
}

/// When a checkpoint fires.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A session begins.
    SessionStart,
    /// An action that matches is about to run.
    ActionPre(Patterns),
    /// An action is at least this risky.
    RiskThreshold(RiskTier),
    /// An action of one of these capabilities is asked for while it is locked.
    CapabilityAccess(BTreeSet<String>),
    /// A session ends.
    SessionEnd,
    /// An action that matches has run.
    ActionPost(Patterns),
    /// Input contains keywords.
    Keyword(Keywords),
    /// So much time has passed since it last fired, or since the session started.
    TimeInterval(Duration),
    /// So many actions have run since it last fired.
    CountInterval(u64),
    /// An agent asks for context.
    ExplicitRequest,
    /// An agent reports an error.
    ErrorOccurred,
    /// An agent asks for it by its name.
    Interactive,
    /// A condition or an extension says so.
    Custom(CustomTrigger),
}

/// A trigger that a condition or an extension decides.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTrigger {
    /// Its name, by which an extension knows it.
    pub trigger_id: String,
    /// What the extension is told.
    pub params: Map<String, Value>,
    /// Whether it is looked at when input comes.
    pub on_input: bool,
    /// Whether it is looked at when an action is asked for.
    pub on_action: bool,
    /// The condition that decides it, where no extension has to.
    pub when: Option<Condition>,
}

/// A rule about actions.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Identifier.
    pub id: String,
    /// What it does.
    pub kind: PolicyKind,
    /// The actions it is about.
    pub actions: Patterns,
    /// Why.
    pub reason: String,
    /// How much it allows, where it is a limit.
    pub limit: Option<Limit>,
    /// What else must hold for it to apply.
    pub when: Option<Condition>,
    /// Whether an operator may let a request through that it refuses.
    pub overridable: bool,
}

/// How much a policy allows.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// So many runs in any window of that length.
    Rate {
        /// Runs.
        max_calls: u64,
        /// Length of the window.
        window: Duration,
        /// Whose runs count together.
        scope: Scope,
    },
    /// So much in all.
    Budget {
        /// How much.
        limit: f64,
        /// The parameter that says what a run costs; each costs 1 when absent.
        cost: Option<String>,
        /// Whose runs count together.
        scope: Scope,
    },
}

impl Limit {
    /// Whose runs count together.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::Rate { scope, .. } | Self::Budget { scope, .. } => *scope,
        }
    }
}

/// A declared action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Name for people.
    pub name: String,
    /// How risky it is, where the steward says so.
    pub risk_tier: Option<RiskTier>,
    /// The shape its parameters must have.
    pub parameters: Option<Schema>,
}

impl Action {
    /// What is wrong with `params`, if anything is.
    #[must_use]
    pub fn parameter_fault(&self, params: &Value) -> Option<String> {
        self.parameters.as_ref()?.fault(params)
    }
}

/// A compiled JSON Schema.
#[derive(Clone, Debug)]
pub struct Schema(Arc<jsonschema::Validator>);

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// In words, when it is not a valid JSON Schema.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let compiled = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(compiled)))
    }

    /// What is wrong with `value`, with its place, if anything is.
    #[must_use]
    pub fn fault(&self, value: &Value) -> Option<String> {
        self.faults(value, 1).pop()
    }

    /// What is wrong with `value`, each with its place, at most so many.
    #[must_use]
    pub fn faults(&self, value: &Value, most: usize) -> Vec<String> {
        // Far cheaper than gathering errors, and the usual case.
        if self.0.is_valid(value) {
            return Vec::new();
        }
        let told = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            if place.is_empty() {
                error.to_string()
            } else {
                format!("at {place}: {error}")
            }
        };
        self.0.iter_errors(value).take(most).map(told).collect()
    }
}

/// A question whose rules are compiled.
///
/// Written as its definition and compiled again when read, so that a held gate comes back with
/// exactly the rules it was asked under.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "CheckpointQuestion", into = "CheckpointQuestion")]
pub struct Question {
    definition: CheckpointQuestion,
    pattern: Option<Regex>,
    schema: Option<Schema>,
}

/// Why a question cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// The pattern does not compile.
    #[error("the pattern of question `{question}` does not compile: {source}")]
    Pattern {
        /// The question.
        question: String,
        /// What is wrong.
        source: Box<regex::Error>,
    },
    /// The schema does not compile.
    #[error("the schema of question `{question}` is not a JSON Schema: {what}")]
    Schema {
        /// The question.
        question: String,
        /// What is wrong.
        what: String,
    },
}

/// Compiles a regular expression of an Atlas, within the size limit.
///
/// # Errors
/// When it does not compile or is too large.
pub fn compile_regex(pattern: &str) -> Result<Regex, Box<regex::Error>> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build()
        .map_err(Box::new)
}

impl Question {
    /// Identifier, unique in its checkpoint.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.definition.question_id
    }

    /// What is asked.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.definition.question
    }

    /// What kind of answer is wanted.
    #[must_use]
    pub fn response_type(&self) -> ResponseType {
        self.definition.response_type
    }

    /// Whether it must be answered.
    #[must_use]
    pub fn required(&self) -> bool {
        self.definition.required
    }

    /// Help for whoever answers.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.definition.hint.as_deref()
    }

    /// The rules as written.
    #[must_use]
    pub fn validation(&self) -> &AnswerValidation {
        &self.definition.validation
    }

    /// The compiled pattern rule.
    #[must_use]
    pub fn pattern(&self) -> Option<&Regex> {
        self.pattern.as_ref()
    }

    /// What happens when an answer breaks a rule.
    #[must_use]
    pub fn on_invalid(&self) -> OnInvalid {
        self.definition.on_invalid
    }

    /// Invalid answers that are taken before the gate is refused.
    #[must_use]
    pub fn max_retries(&self) -> Option<u32> {
        self.definition.max_retries
    }

    /// Which answer to a yes/no question passes.
    #[must_use]
    pub fn expect(&self) -> Expect {
        self.definition.expect
    }

    /// What can be chosen.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.definition.options
    }

    /// Lowest and highest number.
    #[must_use]
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        (self.definition.min, self.definition.max)
    }

    /// The compiled schema of a JSON answer.
    #[must_use]
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// The schema of a JSON answer as it is written.
    #[must_use]
    pub fn written_schema(&self) -> Option<&Value> {
        self.definition.schema.as_ref()
    }

    /// Whether only a hash of the answer is recorded.
    #[must_use]
    pub fn sensitive(&self) -> bool {
        self.definition.sensitive
    }
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        // The compiled rules follow from the definition.
        self.definition == other.definition
    }
}

impl TryFrom<CheckpointQuestion> for Question {
    type Error = QuestionError;

    fn try_from(definition: CheckpointQuestion) -> Result<Self, Self::Error> {
        let pattern = definition
            .validation
            .pattern
            .as_deref()
            .map(compile_regex)
            .transpose()
            .map_err(|source| QuestionError::Pattern {
                question: definition.question_id.clone(),
                source,
            })?;
        let schema = definition
            .schema
            .as_ref()
            .map(Schema::compile)
            .transpose()
            .map_err(|what| QuestionError::Schema {
                question: definition.question_id.clone(),
                what,
            })?;
        Ok(Self {
            definition,
            pattern,
            schema,
        })
    }
}

impl From<Question> for CheckpointQuestion {
    fn from(question: Question) -> Self {
        question.definition
    }
}
