//! One-line summaries of events for people.

use std::borrow::Cow;

use serde_json::Value;

mod log;

use super::details::Details;
use super::event::{Event, canonical_type};
use crate::base::canonical_json::canonical;
use crate::base::text::one_line;

/// Longest untrusted text in a sentence. The full text is in the event.
const MAX_QUOTED_CHARS: usize = 120;

/// Tone of an event at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Neutral.
    Plain,
    /// An approval or a success.
    Good,
    /// An answer is needed, or an operator should look.
    Care,
    /// A stop or a failure.
    Stop,
}

/// Tone of an event.
#[must_use]
pub fn tone(event: &Event) -> Tone {
    let details = Details::of(event);
    match canonical_type(&event.event_type) {
        "checkpoint_passed" | "policy_override" | "risk_verified" | "error_recovered" => Tone::Good,
        "checkpoint_blocked" | "action_blocked" | "error_occurred" | "alarm_raised"
        | "answer_rejected" => Tone::Stop,
        "action_completed" => match details.flag("success") {
            Some(true) => Tone::Good,
            Some(false) | None => Tone::Stop,
        },
        "wrapper_verified" => match details.flag("verification_passed") {
            Some(true) => Tone::Good,
            Some(false) | None => Tone::Stop,
        },
        "risk_detected"
        | "checkpoint_skipped"
        | "checkpoint_approved"
        | "retention_applied"
        | "trace_imported"
        | "key_rotated"
        | "hold_placed"
        | "hold_released"
        | "store_recovered"
        | "clock_moved"
        | "operator_acknowledged"
        | "memento_edited"
        | "drift_flagged"
        | "thread_handed_over"
        | "thread_dropped" => Tone::Care,
        "breakpoint_decided" if is_frozen(details) => Tone::Care,
        "checkpoint_triggered" if details.text("mode") == Some("blocking") => Tone::Care,
        "checkpoint_response" if details.text("validation_result") == Some("invalid") => Tone::Care,
        "policy_checked" if details.text("decision") != Some("allow") => Tone::Care,
        _ => Tone::Plain,
    }
}

/// Subject of an event: an action, a checkpoint, a policy, or the first other name in it.
#[must_use]
pub fn event_subject(event: &Event) -> Option<&str> {
    let details = Details::of(event);
    let names = [
        "action_type",
        "checkpoint_id",
        "policy_id",
        "agent_type",
        "context_id",
        "error_type",
        "atlas_id",
        "plugin_name",
        "thread_id",
    ];
    let found = names.into_iter().find_map(|name| details.text(name));
    found.or_else(|| details.nested("thread")?.text("thread_id"))
}

/// True if a turn found the summary of its conversation frozen.
pub(super) fn is_frozen(details: Details<'_>) -> bool {
    let metadata = details.nested("metadata");
    metadata.and_then(|metadata| metadata.flag("peakGuardrailActive")) == Some(true)
}

/// Short description of an event that is safe to show: its subject and the main detail.
#[must_use]
pub fn short_description(event: &Event) -> String {
    let details = Details::of(event);
    let outcomes = ["decision", "outcome", "final_status"];
    let by = [
        "passed_by",
        "verified_by",
        "approver",
        "approved_by",
        "answered_by",
        "by",
        "operator",
    ];
    let names = event_subject(event).into_iter();
    let outcome = outcomes.into_iter().find_map(|name| details.text(name));
    let outcome = outcome.or_else(|| details.nested("metadata")?.text("decision"));
    let by = by.into_iter().find_map(|name| details.text(name));
    let words: Vec<_> = names.chain(outcome).chain(by).collect();
    clip_line(&words.join(" "), MAX_QUOTED_CHARS)
}

/// Description of an event in one line that is safe to show.
#[must_use]
pub fn sentence(event: &Event) -> String {
    if event.pruned {
        return "details pruned; the hash still covers them".to_owned();
    }
    let parts = SentenceParts(Details::of(event));
    match canonical_type(&event.event_type) {
        "session_started"
        | "session_ended"
        | "wrapper_constructed"
        | "wrapper_verified"
        | "atlas_loaded"
        | "plugin_loaded" => parts.session(event),
        "context_requested" | "context_injected" | "context_feedback" | "input_received"
        | "output_produced" => parts.exchange(event),
        "action_attempted" | "action_completed" | "action_blocked" | "policy_checked"
        | "policy_override" | "risk_detected" | "risk_verified" => parts.action(event),
        "checkpoint_triggered"
        | "checkpoint_completed"
        | "checkpoint_skipped"
        | "checkpoint_response"
        | "checkpoint_passed"
        | "checkpoint_approved"
        | "checkpoint_blocked" => parts.checkpoint(event),
        "request_claimed" | "operator_acknowledged" | "operator_changed" => parts.operator(event),
        "log_started" | "log_sealed" | "key_rotated" | "clock_moved" | "store_recovered"
        | "trace_imported" | "retention_applied" | "hold_placed" | "hold_released"
        | "alarm_raised" | "answer_rejected" => parts.log(event),
        "error_occurred" | "error_recovered" => parts.error(event),
        "breakpoint_decided" | "memento_edited" | "drift_flagged" | "thread_handed_over"
        | "thread_dropped" => parts.thread(event),
        _ => json(&Value::Object(event.payload.clone())),
    }
}

/// Details of an event, formatted as parts of a sentence.
#[derive(Clone, Copy)]
struct SentenceParts<'e>(Details<'e>);

impl SentenceParts<'_> {
    /// A string field, cut if it is long; `?` if absent.
    fn text(self, name: &str) -> String {
        self.0
            .text(name)
            .map_or_else(|| "?".to_owned(), quote_untrusted)
    }

    /// A string field with a prefix; empty if absent.
    fn with_prefix(self, before: &str, name: &str) -> String {
        let text = self.0.text(name).filter(|text| !text.is_empty());
        text.map_or_else(String::new, |text| {
            format!("{before}{}", quote_untrusted(text))
        })
    }

    /// The justification of an approval, behind what it justifies.
    fn justified(self) -> String {
        let text = self.0.justification();
        text.map_or_else(String::new, |text| format!(": {}", quote_untrusted(&text)))
    }

    /// A recorded identifier in words: `on_match` becomes `on match`.
    fn words(self, name: &str) -> String {
        self.text(name).replace('_', " ")
    }

    fn number(self, name: &str) -> String {
        let number = self.0.number(name);
        number.map_or_else(|| "?".to_owned(), |number| number.to_string())
    }

    fn list(self, name: &str) -> String {
        let listed: Vec<_> = self.0.texts(name).collect();
        quote_untrusted(&listed.join(", "))
    }

    fn json(self, name: &str) -> String {
        self.0.value(name).map(json).unwrap_or_default()
    }

    fn session(self, event: &Event) -> String {
        match canonical_type(&event.event_type) {
            "session_started" => format!(
                "session of {} started{}",
                self.text("agent_type"),
                self.with_prefix(", intent: ", "intent")
            ),
            "session_ended" => format!(
                "session ended: {}, {} actions{}",
                self.text("final_status"),
                self.number("actions_taken"),
                self.with_prefix(", ", "summary")
            ),
            "wrapper_constructed" => format!("wrapper built, transport {}", self.text("transport")),
            "wrapper_verified" => match self.0.flag("verification_passed") {
                Some(true) => "wrapper check passed".to_owned(),
                Some(false) | None => format!("wrapper check FAILED: {}", self.list("failures")),
            },
            "atlas_loaded" => format!(
                "Atlas {} {} loaded{}",
                self.text("atlas_id"),
                self.text("version"),
                self.with_prefix(" by ", "by")
            ),
            _ => format!(
                "plugin {} {} loaded",
                self.text("plugin_name"),
                self.text("plugin_version")
            ),
        }
    }

    fn exchange(self, event: &Event) -> String {
        match canonical_type(&event.event_type) {
            "context_requested" => format!(
                "context requested ({}){}",
                self.text("request_type"),
                self.with_prefix(": ", "query")
            ),
            "context_injected" => format!(
                "gave the agent {} ({} bytes, {})",
                self.list("context_ids"),
                self.number("total_size_bytes"),
                self.words("trigger")
            ),
            "context_feedback" => format!(
                "{} {}{}",
                self.text("context_id"),
                match self.0.flag("helpful") {
                    Some(true) => "helped",
                    Some(false) => "did not help",
                    None => "got feedback",
                },
                self.with_prefix(": ", "reason")
            ),
            "input_received" => format!(
                "input of {} bytes from {}",
                self.number("input_size_bytes"),
                self.text("source")
            ),
            _ => format!(
                "output of {} bytes ({})",
                self.number("output_size_bytes"),
                self.text("output_type")
            ),
        }
    }

    fn action(self, event: &Event) -> String {
        let action = self.text("action_type");
        match canonical_type(&event.event_type) {
            "action_attempted" => format!(
                "asks for {action} {} (risk {})",
                self.json("action_params"),
                self.text("risk_tier")
            ),
            "action_completed" => {
                let took = self.number("duration_ms");
                let error = self.0.value("error").map(json);
                match (self.0.flag("success"), error) {
                    (Some(true), _) => {
                        let result = self.with_prefix(": ", "result_summary");
                        format!("{action} ran in {took} ms{result}")
                    }
                    (_, Some(error)) => format!("{action} FAILED after {took} ms: {error}"),
                    (_, None) => format!("{action} FAILED after {took} ms"),
                }
            }
            "action_blocked" => format!(
                "{action} BLOCKED by {}: {}",
                self.text("policy_id"),
                self.text("reason")
            ),
            "policy_checked" => {
                let policy = self.text("policy_id");
                match self.0.text("decision") {
                    Some("allow") => format!("policy {policy} allows {action}"),
                    Some("deny") => format!("policy {policy} denies {action}"),
                    Some("require_approval") => {
                        format!("policy {policy} requires approval of {action}")
                    }
                    Some(_) | None => {
                        format!(
                            "policy {policy} decided {} on {action}",
                            self.words("decision")
                        )
                    }
                }
            }
            "policy_override" => format!(
                "{} approves {action} under {} ({}){}",
                self.text("approver"),
                self.text("policy_id"),
                self.text("approval_method"),
                self.justified()
            ),
            "risk_detected" => format!(
                "risk {}{}: {}",
                self.text("risk_tier"),
                self.with_prefix(" of ", "action_type"),
                self.text("trigger")
            ),
            _ => format!(
                "{} verified the risk ({}) of {action}{}",
                self.text("verified_by"),
                self.text("risk_tier"),
                self.justified()
            ),
        }
    }

    fn checkpoint(self, event: &Event) -> String {
        let id = self.text("checkpoint_id");
        match canonical_type(&event.event_type) {
            "checkpoint_triggered" => {
                let what = match self.0.text("mode") {
                    Some("blocking") => "gate",
                    Some("advisory") => "advice",
                    Some("observational") => "observation",
                    Some(_) | None => "checkpoint",
                };
                format!("{what} {id}: {}", self.text("trigger_condition"))
            }
            "checkpoint_completed" => {
                let done = self.0.text("action_taken").unwrap_or("continue");
                format!(
                    "{id} done: {}{}",
                    quote_untrusted(done),
                    self.with_prefix(", ", "block_reason")
                )
            }
            "checkpoint_skipped" => format!("{id} skipped: {}", self.text("reason")),
            "checkpoint_response" => {
                let by = self.text("answered_by");
                let answers = self.json("answers");
                match self.0.text("validation_result") {
                    Some("valid") => format!("{by} answers {id}: {answers}"),
                    _ => format!(
                        "{by} gives invalid answers to {id}: {answers} ({})",
                        self.list("problems")
                    ),
                }
            }
            "checkpoint_passed" => {
                let unlocked = self.list("unlocked_capabilities");
                let unlocks = if unlocked.is_empty() {
                    String::new()
                } else {
                    format!(", unlocks {unlocked}")
                };
                let both = self.list("approvers");
                let by = if both.is_empty() {
                    self.text("passed_by")
                } else {
                    both
                };
                format!("{id} passed by {by}{unlocks}{}", self.justified())
            }
            "checkpoint_approved" => format!(
                "{} approves {id} (1 of 2), still held{}",
                self.text("approved_by"),
                self.justified()
            ),
            _ => format!(
                "{id} NOT passed ({}): {}",
                self.text("outcome"),
                self.text("reason")
            ),
        }
    }

    fn operator(self, event: &Event) -> String {
        match canonical_type(&event.event_type) {
            "request_claimed" => {
                let (by, gate) = (self.text("by"), self.text("gate_id"));
                match self.0.text("claim") {
                    Some("released") => format!("{by} no longer claims {gate}"),
                    Some(_) | None => {
                        format!("{by} claims {gate}{}", self.with_prefix(" from ", "before"))
                    }
                }
            }
            "operator_changed" => format!(
                "operator {} replaces {}",
                self.text("operator"),
                self.text("before")
            ),
            _ => format!(
                "{} acknowledges {}: {}",
                self.text("operator"),
                self.words("about"),
                self.text("what")
            ),
        }
    }

    fn thread(self, event: &Event) -> String {
        match canonical_type(&event.event_type) {
            "memento_edited" => self.edit(),
            "drift_flagged" => format!(
                "{} flags drift in {}",
                self.text("by"),
                self.text("thread_id")
            ),
            "thread_handed_over" => format!(
                "{} hands {} over to session {}",
                self.text("by"),
                self.text("thread_id"),
                self.text("to")
            ),
            "thread_dropped" => format!(
                "cra dropped thread {} to make room for session {}: {}",
                self.text("thread_id"),
                self.text("dropped_for"),
                self.text("reason")
            ),
            _ => self.turn(),
        }
    }

    fn turn(self) -> String {
        let none = serde_json::Map::new();
        let part = |name| SentenceParts(self.0.nested(name).unwrap_or(Details::new(&none)));
        let (decided, thread) = (part("metadata"), part("thread"));
        let summary = match thread.0.text("update") {
            Some("updated") => format!("summary updated to version {}", thread.number("version")),
            Some("kept_at_peak") => "proposal saved for later".to_owned(),
            Some("kept_only_acknowledged") => "acknowledgment only".to_owned(),
            Some("kept_before_edit") => "operator's edit not read yet".to_owned(),
            Some("kept_invalid_proposal") => "proposed summary invalid".to_owned(),
            Some(_) | None => "summary unchanged".to_owned(),
        };
        let frozen = if is_frozen(self.0) { ", FROZEN" } else { "" };
        format!(
            "turn {} of {} is {} (rule {}), {}/{}{frozen}: {summary}",
            thread.text("message_id"),
            thread.text("thread_id"),
            decided.text("decision").to_uppercase(),
            thread.number("rule"),
            thread.text("affect_phase"),
            thread.text("intensity"),
        )
    }

    fn error(self, event: &Event) -> String {
        match canonical_type(&event.event_type) {
            "error_occurred" => format!("{}: {}", self.text("error_type"), self.text("message")),
            _ => match self.0.flag("success") {
                Some(true) => format!("recovered by {}", self.text("recovery_method")),
                Some(false) | None => format!("not recovered by {}", self.text("recovery_method")),
            },
        }
    }
}

fn json(value: &Value) -> String {
    quote_untrusted(&canonical(value))
}

/// Untrusted text in one line, cut if it is long.
pub(super) fn quote_untrusted(text: &str) -> String {
    clip_line(text, MAX_QUOTED_CHARS)
}

/// First line of a text, at most `most` characters before hidden characters are written out.
pub(super) fn clip_line(text: &str, most: usize) -> String {
    one_line(&truncate_text(text, most))
}

/// A text cut to at most `most` characters.
pub(super) fn truncate_text(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}
