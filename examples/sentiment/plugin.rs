//! A plugin for support agents: a checkpoint type, a handler, a validator, an event type, hooks, and a change to the
//! configuration of every Atlas.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use cra_core::atlas::document::CheckpointConfig;
use cra_core::base::clock::Boxed;
use cra_core::engine::extensions::{
    CheckpointContext, CheckpointResult, PolicyDecisionKind, TraceNote, YesNo,
};
use cra_core::runtime::extension::{
    AnswerValidator, CheckpointHandler, CheckpointPlugin, CheckpointTypeDefinition, EventHook,
    EventTypeDefinition, HandlerContext, HandlerFn, RegisterError, Registry,
};
use cra_core::trace::event::Event;
use serde_json::{Map, Value, json};

/// Refunds above this amount count as large.
const LARGE_REFUND: f64 = 100.0;

/// Everything that this program adds to `cra`. Denied requests are also written to the file `blocked`.
///
/// # Errors
/// When a name is taken.
pub(crate) fn registry(blocked: Option<PathBuf>) -> Result<Registry, RegisterError> {
    let mut registry = Registry::default();
    registry.register_plugin(Arc::new(Support { blocked }))?;
    Ok(registry)
}

struct Support {
    blocked: Option<PathBuf>,
}

impl CheckpointPlugin for Support {
    fn name(&self) -> &'static str {
        "support"
    }

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn checkpoint_types(&self) -> Vec<CheckpointTypeDefinition> {
        vec![sentiment()]
    }

    fn handlers(&self) -> Vec<(String, Arc<dyn CheckpointHandler>)> {
        vec![("action_pre".to_owned(), Arc::new(RefundDesk))]
    }

    fn validators(&self) -> Vec<(String, Arc<dyn AnswerValidator>)> {
        vec![("is-ticket".to_owned(), Arc::new(Tickets))]
    }

    fn event_types(&self) -> Vec<EventTypeDefinition> {
        vec![refund_score()]
    }

    fn event_hooks(&self) -> Vec<(String, Arc<dyn EventHook>)> {
        let mut hooks: Vec<(String, Arc<dyn EventHook>)> =
            vec![("action_attempted".to_owned(), Arc::new(MaskCards))];
        if let Some(file) = &self.blocked {
            let file = file.clone();
            hooks.push(("action_blocked".to_owned(), Arc::new(BlockedFile { file })));
        }
        hooks
    }

    fn configure_checkpoints(&self, mut config: CheckpointConfig) -> CheckpointConfig {
        let start = config.session_start.get_or_insert_default();
        start.inject_contexts.push("house-rules".to_owned());
        config
    }
}

/// A checkpoint type that fires on input which sounds negative.
fn sentiment() -> CheckpointTypeDefinition {
    CheckpointTypeDefinition {
        name: "sentiment_negative".to_owned(),
        description: "input sounds negative".to_owned(),
        evaluator: Arc::new(|context: &CheckpointContext| {
            let input = context.input.as_ref();
            input.is_some_and(|input| score(&input.content) < -0.5)
        }),
        default_handler: Some(Arc::new(HandlerFn(|_: &CheckpointContext| {
            CheckpointResult {
                inject_context: vec!["handling-negative-feedback".to_owned()],
                ..CheckpointResult::proceed()
            }
        }))),
        default_priority: Some(650),
    }
}

/// Sentiment of a text between -1 and 0: the share of its words that are unkind.
fn score(text: &str) -> f64 {
    let (mut words, mut unkind) = (0.0, 0.0);
    for word in text.split_whitespace() {
        words += 1.0;
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        if ["awful", "hate", "terrible", "useless"].contains(&word.to_lowercase().as_str()) {
            unkind += 1.0;
        }
    }
    if words == 0.0 { 0.0 } else { -unkind / words }
}

/// Denies a refund that is large where a policy denies `refund.large`, and records how large it is.
struct RefundDesk;

impl CheckpointHandler for RefundDesk {
    fn handle(&self, context: HandlerContext) -> Boxed<'_, Result<CheckpointResult, String>> {
        Box::pin(async move {
            let action = context.checkpoint.action.as_ref();
            let Some(action) = action.filter(|action| action.action_type == "refund") else {
                return Ok(CheckpointResult::proceed());
            };
            let amount = action.params.get("amount").and_then(Value::as_f64);
            let amount = amount.ok_or("a refund has an `amount`")?;
            let note = TraceNote {
                event_type: "refund_score".to_owned(),
                payload: Map::from_iter([("score".to_owned(), json!(amount / LARGE_REFUND))]),
                fault: None,
            };
            let mut result = CheckpointResult {
                trace_events: vec![note],
                ..CheckpointResult::proceed()
            };
            if amount > LARGE_REFUND {
                let asked = context.client.check_policy("refund.large", &action.params);
                let policy = asked.await.ok_or("the policies cannot be asked")?;
                if policy.decision == PolicyDecisionKind::Deny {
                    let rules = context.client.get_contexts(&["refund-rules"]).await;
                    let rules = rules.first().map(|rules| rules.content.clone());
                    result.proceed = false;
                    result.block_reason = rules.or(Some("too large".to_owned()));
                }
            }
            Ok(result)
        })
    }
}

/// Accepts answers that look like the number of a ticket.
struct Tickets;

impl AnswerValidator for Tickets {
    fn validate<'a>(
        &'a self,
        _: &'a str,
        answer: &'a Value,
        _: &'a CheckpointContext,
    ) -> Boxed<'a, Result<YesNo, String>> {
        let yes = answer.as_str().is_some_and(|text| text.starts_with("T-"));
        let reason = Some("a ticket begins with T-".to_owned());
        Box::pin(async move { Ok(YesNo { yes, reason }) })
    }
}

/// An event of this plugin. One whose score is negative is not recorded as such.
fn refund_score() -> EventTypeDefinition {
    EventTypeDefinition {
        name: "refund_score".to_owned(),
        description: "size of a refund, as a share of a large one".to_owned(),
        sync: false,
        schema: vec![("score".to_owned(), "number".to_owned())],
        validate: Some(Arc::new(|details| {
            let score = details.get("score").and_then(Value::as_f64);
            score.is_some_and(|score| score >= 0.0)
        })),
    }
}

/// Leaves only the last four characters of a card in the record.
struct MaskCards;

impl EventHook for MaskCards {
    fn before_event(&self, _: &str, mut details: Map<String, Value>) -> Map<String, Value> {
        let params = details.get_mut("action_params");
        if let Some(card) = params.and_then(|params| params.get_mut("card"))
            && let Some(digits) = card.as_str()
        {
            let hidden = digits.chars().count().saturating_sub(4);
            let last: String = digits.chars().skip(hidden).collect();
            *card = json!(format!("card ending in {last}"));
        }
        details
    }
}

/// Appends each denied request to a file, for another program to read.
struct BlockedFile {
    file: PathBuf,
}

impl EventHook for BlockedFile {
    fn on_event(&self, event: &Event) {
        let line = json!({
            "session": event.session_id, "sequence": event.sequence,
            "action": event.payload.get("action_type"),
        });
        let mut options = OpenOptions::new();
        if let Ok(mut file) = options.append(true).create(true).open(&self.file) {
            // The record has the event even if this copy is lost.
            let _ = writeln!(file, "{line}");
        }
    }
}
