//! The validated manifest, in the form that the engine evaluates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condition::Condition;
use super::document::{
    AnswerValidation, Approvers, Budget, CacheConfig, CheckpointMode, CheckpointQuestion,
    ContextBlockDef, DefaultDecision, ExpectedAnswer, GuidanceBlock, InjectMode,
    InvalidAnswerAction, LimitScope, PolicyKind, Respondent, ResponseType, RiskMode, RiskTier,
    Steward, UnknownActions,
};
use super::index::AtlasIndex;
use super::keyword::Keywords;
use super::origin::AtlasOrigin;
use super::recording::RecordingRules;
use crate::base::digest::Digest;
use crate::base::limits::MAX_REGEX_BYTES;
use crate::base::pattern::Patterns;

/// A validated manifest.
#[derive(Clone, Debug)]
pub struct Atlas {
    /// Identifier of the Atlas.
    pub id: String,
    /// Version of the Atlas.
    pub version: String,
    /// Display name.
    pub name: String,
    /// Description of the governed domain.
    pub description: String,
    /// Digest of the source text; every decision is bound to this digest.
    pub hash: Digest,
    /// The source text, stored with the record of the decisions made under it.
    pub text: std::sync::Arc<str>,
    /// Source file and positions of the parts.
    pub origin: Arc<AtlasOrigin>,
    /// The responsible steward.
    pub steward: Option<Steward>,
    /// Groups of actions, in the order written.
    pub capabilities: Vec<Capability>,
    /// Checkpoints, highest priority first, then in the order written.
    pub checkpoints: Vec<Checkpoint>,
    /// Contexts by identifier.
    pub contexts: BTreeMap<String, ContextBlockDef>,
    /// Keywords and actions that inject contexts without a checkpoint, in the order written.
    pub injections: Vec<InjectionRule>,
    /// Rules, in the order written.
    pub policies: Vec<Policy>,
    /// Declared actions by name.
    pub actions: BTreeMap<String, DeclaredAction>,
    /// Decision for a known action that no policy mentions.
    pub default_decision: DefaultDecision,
    /// Decision for an action that no Atlas knows.
    pub unknown_actions: UnknownActions,
    /// Rule for the risk tier of an action that does not declare one.
    pub risk_mode: RiskMode,
    /// Limits on the effects of one input, if the steward sets them.
    pub budget: Option<Budget>,
    /// Cache lifetimes of results.
    pub cache: CacheConfig,
    /// Settings of the record: detail, durability and retention.
    pub recording: RecordingRules,
    /// Lookup index over the parts.
    pub(crate) index: AtlasIndex,
}

impl Atlas {
    /// Returns true if the Atlas declares `action` or a capability lists it.
    #[must_use]
    pub fn knows(&self, action: &str) -> bool {
        self.actions.contains_key(action) || self.capabilities_of(action).next().is_some()
    }

    /// Returns the capabilities that list `action`.
    pub fn capabilities_of<'a>(&'a self, action: &'a str) -> impl Iterator<Item = &'a Capability> {
        self.capabilities
            .iter()
            .filter(move |capability| capability.actions.matches(action))
    }
}

/// A rule that injects a context without a checkpoint.
#[derive(Clone, Debug)]
pub struct InjectionRule {
    /// The injected context.
    pub context_id: String,
    /// Condition for the injection.
    pub mode: InjectMode,
    /// Keywords in the input that trigger the injection.
    pub keywords: Option<Keywords>,
    /// Actions that trigger the injection.
    pub actions: Patterns,
    /// Order among contexts that are injected together.
    pub priority: i64,
}

/// A group of actions.
#[derive(Clone, Debug)]
pub struct Capability {
    /// Identifier.
    pub id: String,
    /// Display name.
    pub name: String,
    /// The actions in the capability.
    pub actions: Patterns,
    /// True if a new session starts without the capability, because a checkpoint unlocks or gates it.
    pub starts_locked: bool,
}

/// A compiled checkpoint.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// Identifier.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Checkpoint type, as named in TRACE.
    pub kind: &'static str,
    /// The event that fires the checkpoint.
    pub trigger: Trigger,
    /// Mode: stops the agent, advises or only records.
    pub mode: CheckpointMode,
    /// Questions that must be answered.
    pub questions: Vec<CompiledQuestion>,
    /// Guidance text.
    pub guidance: Option<GuidanceBlock>,
    /// Contexts injected into the agent's session.
    pub inject_contexts: Vec<String>,
    /// Capabilities unlocked when the checkpoint is passed.
    pub unlock_capabilities: BTreeSet<String>,
    /// Capabilities locked when the checkpoint is passed.
    pub lock_capabilities: BTreeSet<String>,
    /// Actions allowed when the checkpoint is passed.
    pub allow_actions: Patterns,
    /// Actions denied when the checkpoint is passed.
    pub deny_actions: Patterns,
    /// True if the records of the checkpoint must be durable at once.
    pub force_sync_trace: bool,
    /// Order among checkpoints that fire together.
    pub priority: i64,
    /// Time limit for an answer.
    pub timeout_seconds: u64,
    /// The party that may answer.
    pub respondent: Respondent,
    /// Number of operators that must approve.
    pub approvers: Approvers,
    /// Additional condition for firing.
    pub when: Option<Condition>,
    /// Actions left to another checkpoint of the same kind that names them more precisely.
    pub unless: Patterns,
    /// The extension that is called when the checkpoint fires.
    pub handler: Option<String>,
}

/// The event that fires a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A session starts.
    SessionStart,
    /// An action that matches is about to run.
    ActionPre(Patterns),
    /// An action has at least this risk tier.
    RiskThreshold(RiskTier),
    /// An agent requests an action of one of these capabilities while the capability is locked.
    CapabilityAccess(BTreeSet<String>),
    /// A session ends.
    SessionEnd,
    /// An action that matches has run.
    ActionPost(Patterns),
    /// The input contains keywords.
    Keyword(Keywords),
    /// This much time has passed since the checkpoint last fired, or since the session started.
    TimeInterval(Duration),
    /// This number of actions has run since the checkpoint last fired.
    CountInterval(u64),
    /// An agent requests context.
    ExplicitRequest,
    /// An agent reports an error.
    ErrorOccurred,
    /// An agent requests the checkpoint by its name.
    Interactive,
    /// A condition or an extension decides.
    Custom(CustomTrigger),
}

/// A trigger that a condition or an extension decides.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTrigger {
    /// Trigger name known to the extension.
    pub trigger_id: String,
    /// Parameters passed to the extension.
    pub params: Map<String, Value>,
    /// True if the trigger is evaluated on input.
    pub on_input: bool,
    /// True if the trigger is evaluated when an action is requested.
    pub on_action: bool,
    /// The deciding condition; without one, an extension decides.
    pub when: Option<Condition>,
}

/// A rule about actions.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Identifier.
    pub id: String,
    /// Effect of the policy.
    pub kind: PolicyKind,
    /// The actions that the policy covers.
    pub actions: Patterns,
    /// Reason shown with the decision.
    pub reason: String,
    /// Allowed amount, for a limit policy.
    pub limit: Option<Limit>,
    /// Additional condition for the policy to apply.
    pub when: Option<Condition>,
    /// True if an operator may override a denial by this policy.
    pub overridable: bool,
}

/// The amount that a policy allows.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// A maximum number of runs in any window of the given length.
    Rate {
        /// Maximum number of runs.
        max_calls: u64,
        /// Length of the window.
        window: Duration,
        /// The runs that are counted together.
        scope: LimitScope,
    },
    /// A maximum total cost.
    Budget {
        /// Maximum total.
        limit: f64,
        /// The parameter with the cost of a run; without it, each run costs 1.
        cost: Option<String>,
        /// The runs that are counted together.
        scope: LimitScope,
    },
}

impl Limit {
    /// Returns the scope of the runs that are counted together.
    #[must_use]
    pub fn scope(&self) -> LimitScope {
        match self {
            Self::Rate { scope, .. } | Self::Budget { scope, .. } => *scope,
        }
    }
}

/// A declared action.
#[derive(Clone, Debug)]
pub struct DeclaredAction {
    /// Display name.
    pub name: String,
    /// Risk tier, if the steward declares one.
    pub risk_tier: Option<RiskTier>,
    /// JSON Schema of the parameters.
    pub parameters: Option<Schema>,
}

impl DeclaredAction {
    /// Returns an error message if `params` do not match the schema.
    #[must_use]
    pub fn parameter_error(&self, params: &Value) -> Option<String> {
        self.parameters.as_ref()?.first_error(params)
    }
}

/// A compiled JSON Schema.
#[derive(Clone, Debug)]
pub struct Schema(Arc<jsonschema::Validator>);

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Returns a message when the value is not a valid JSON Schema.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let compiled = jsonschema::validator_for(schema).map_err(|error| error.to_string())?;
        Ok(Self(Arc::new(compiled)))
    }

    /// Returns the first validation error of `value`, with its path.
    #[must_use]
    pub fn first_error(&self, value: &Value) -> Option<String> {
        self.errors(value, 1).pop()
    }

    /// Returns at most `most` validation errors of `value`, each with its path.
    #[must_use]
    pub fn errors(&self, value: &Value, most: usize) -> Vec<String> {
        // Much cheaper than collecting errors, and the usual case.
        if self.0.is_valid(value) {
            return Vec::new();
        }
        let with_path = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            if place.is_empty() {
                error.to_string()
            } else {
                format!("at {place}: {error}")
            }
        };
        self.0
            .iter_errors(value)
            .take(most)
            .map(with_path)
            .collect()
    }
}

/// A question with compiled rules.
///
/// Serialized as its definition and compiled again on reading, so that a held gate is restored with exactly the
/// rules under which it was asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "CheckpointQuestion", into = "CheckpointQuestion")]
pub struct CompiledQuestion {
    definition: CheckpointQuestion,
    pattern: Option<Regex>,
    schema: Option<Schema>,
}

/// The reason why a question cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum QuestionError {
    /// The pattern does not compile.
    #[error("the pattern of question `{question}` does not compile: {source}")]
    Pattern {
        /// The question.
        question: String,
        /// The error of the regex compiler.
        source: Box<regex::Error>,
    },
    /// The schema does not compile.
    #[error("the schema of question `{question}` is not a JSON Schema: {what}")]
    Schema {
        /// The question.
        question: String,
        /// The error of the schema compiler.
        what: String,
    },
}

/// Compiles a regular expression of an Atlas, within the size limit.
///
/// # Errors
/// Fails when the pattern does not compile or is too large.
pub fn compile_regex(pattern: &str) -> Result<Regex, Box<regex::Error>> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build()
        .map_err(Box::new)
}

impl CompiledQuestion {
    /// Identifier, unique in its checkpoint.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.definition.question_id
    }

    /// Text of the question.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.definition.question
    }

    /// Type of the expected answer.
    #[must_use]
    pub fn response_type(&self) -> ResponseType {
        self.definition.response_type
    }

    /// Returns true if an answer is required.
    #[must_use]
    pub fn required(&self) -> bool {
        self.definition.required
    }

    /// Hint shown to the respondent.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.definition.hint.as_deref()
    }

    /// The validation rules as written.
    #[must_use]
    pub fn validation(&self) -> &AnswerValidation {
        &self.definition.validation
    }

    /// The compiled pattern rule.
    #[must_use]
    pub fn pattern(&self) -> Option<&Regex> {
        self.pattern.as_ref()
    }

    /// Action on an invalid answer.
    #[must_use]
    pub fn on_invalid(&self) -> InvalidAnswerAction {
        self.definition.on_invalid
    }

    /// Number of invalid answers accepted before the gate is refused.
    #[must_use]
    pub fn max_retries(&self) -> Option<u32> {
        self.definition.max_retries
    }

    /// The answer to a yes/no question that passes.
    #[must_use]
    pub fn expect(&self) -> ExpectedAnswer {
        self.definition.expect
    }

    /// The available options.
    #[must_use]
    pub fn options(&self) -> &[String] {
        &self.definition.options
    }

    /// Lowest and highest accepted number.
    #[must_use]
    pub fn bounds(&self) -> (Option<f64>, Option<f64>) {
        (self.definition.min, self.definition.max)
    }

    /// The compiled schema of a JSON answer.
    #[must_use]
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    /// The schema of a JSON answer, as written.
    #[must_use]
    pub fn written_schema(&self) -> Option<&Value> {
        self.definition.schema.as_ref()
    }

    /// Returns true if only a hash of the answer is recorded.
    #[must_use]
    pub fn sensitive(&self) -> bool {
        self.definition.sensitive
    }
}

impl PartialEq for CompiledQuestion {
    fn eq(&self, other: &Self) -> bool {
        // The compiled rules are derived from the definition.
        self.definition == other.definition
    }
}

impl TryFrom<CheckpointQuestion> for CompiledQuestion {
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

impl From<CompiledQuestion> for CheckpointQuestion {
    fn from(question: CompiledQuestion) -> Self {
        question.definition
    }
}
