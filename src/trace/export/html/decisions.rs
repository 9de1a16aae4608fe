//! Decisions section: operator, decision, time and reason, the first thing a reviewer looks for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write};

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::text::{VisibleText, format_duration, format_time};
use super::write_markup;
use crate::base::clock::Timestamp;
use crate::base::id::SpanId;
use crate::trace::details::Details;
use crate::trace::event::{Event, canonical_type};
use crate::trace::replay::ReplayState;
use crate::trace::replay::state::{HeldGate, HeldRequest};
use crate::trace::summary::truncate_text;

/// Longest answer or reason in a decision; the full text is in its event.
const MAX_TEXT_CHARS: usize = 2000;

/// Most undecided requests and gates whose parameters and answers are remembered.
const MAX_OPEN: usize = 4096;

/// Writer of decisions; processes events in order.
#[derive(Default)]
pub(super) struct DecisionWriter {
    count: u64,
    answers: HashMap<SpanId, GateAnswers>,
    params: HashMap<SpanId, String>,
    /// Request written last; its parameters are not repeated at its next gate.
    last_request: Option<SpanId>,
}

/// Answers given at a gate.
#[derive(Default)]
struct GateAnswers {
    answers: Map<String, Value>,
    wrong: u64,
}

/// A decision to be written.
struct DecisionEntry<'d> {
    event: &'d Event,
    class: &'static str,
    outcome: &'d str,
    checkpoint: &'d str,
    by: Option<&'d str>,
    reason: Option<&'d str>,
}

/// Position of an entry among the entries about one request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestMention {
    First,
    /// Directly after another entry about the request.
    Repeated,
}

impl DecisionWriter {
    /// Processes the next event with the state before it, and writes the decision if the event is one.
    pub(super) fn process_event(
        &mut self,
        out: &mut impl Write,
        before: &ReplayState,
        event: &Event,
    ) -> fmt::Result {
        let details = Details::of(event);
        let justification = details.justification();
        match canonical_type(&event.event_type) {
            "action_attempted" if self.params.len() < MAX_OPEN => {
                let params = details.value("action_params").map(ToString::to_string);
                let params = params.unwrap_or_default();
                let params = truncate_text(&params, MAX_TEXT_CHARS).into_owned();
                self.params.insert(event.span_id.clone(), params);
            }
            "action_completed" | "action_blocked" => {
                let parent = event.parent_span_id.as_ref();
                parent.and_then(|parent| self.params.remove(parent));
            }
            "checkpoint_response" => self.remember_answers(event, details),
            "checkpoint_approved" => {
                let decision = DecisionEntry {
                    event,
                    class: "care",
                    outcome: "approved, 1 of 2",
                    checkpoint: details.text("checkpoint_id").unwrap_or("?"),
                    by: details.text("approved_by"),
                    reason: justification.as_deref(),
                };
                self.write(out, before, &decision)?;
            }
            "checkpoint_passed" => {
                let both: Vec<_> = details.texts("approvers").collect();
                let both = both.join(" and ");
                let both = Some(both.as_str()).filter(|both| !both.is_empty());
                let decision = DecisionEntry {
                    event,
                    class: "good",
                    outcome: "passed",
                    checkpoint: details.text("checkpoint_id").unwrap_or("?"),
                    by: both.or(details.text("passed_by")),
                    reason: justification.as_deref(),
                };
                self.write(out, before, &decision)?;
            }
            "checkpoint_blocked" => {
                let decision = DecisionEntry {
                    event,
                    class: "stop",
                    outcome: details.text("outcome").unwrap_or("blocked"),
                    checkpoint: details.text("checkpoint_id").unwrap_or("?"),
                    by: details.text("decided_by"),
                    reason: details.text("reason"),
                };
                self.write(out, before, &decision)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the requests that are still held at the end.
    pub(super) fn close(&mut self, out: &mut impl Write, end: &ReplayState) -> fmt::Result {
        for held in &end.held {
            for gate in &held.gates {
                self.begin(out)?;
                let mention = self.mention_request(Some(held));
                let entry = html! {
                    li class=(item_class("care", mention)) {
                        (self.heading("still held", &gate.checkpoint, Some(held), mention))
                        p class="meta" {
                            "since " (format_time(held.since)) " UTC, event " (gate.sequence)
                        }
                        (gate_reason(Some(gate)))
                    }
                };
                write_markup(out, entry)?;
            }
        }
        if self.count == 0 {
            let none = html! { p class="none" { "No gate decisions in this session." } };
            return write_markup(out, none);
        }
        out.write_str("</ol>\n")
    }

    fn begin(&mut self, out: &mut impl Write) -> fmt::Result {
        if self.count == 0 {
            out.write_str("<ol class=\"decisions\">\n")?;
        }
        self.count += 1;
        Ok(())
    }

    fn remember_answers(&mut self, event: &Event, details: Details<'_>) {
        let Some(gate) = &event.parent_span_id else {
            return;
        };
        if self.answers.len() >= MAX_OPEN && !self.answers.contains_key(gate) {
            return;
        }
        let answered = self.answers.entry(gate.clone()).or_default();
        if details.text("validation_result") == Some("invalid") {
            answered.wrong += 1;
        }
        let answers = details.value("answers").and_then(Value::as_object);
        answered
            .answers
            .extend(answers.cloned().unwrap_or_default());
    }

    fn write(
        &mut self,
        out: &mut impl Write,
        before: &ReplayState,
        decision: &DecisionEntry<'_>,
    ) -> fmt::Result {
        let event = decision.event;
        let found = before.gate_of(event);
        let held = found.map(|(held, _)| held);
        let gate = event.parent_span_id.as_ref();
        let answered = gate.and_then(|gate| self.answers.remove(gate));
        self.begin(out)?;
        let mention = self.mention_request(held);
        let entry = html! {
            li class=(item_class(decision.class, mention)) {
                (self.heading(decision.outcome, decision.checkpoint, held, mention))
                p class="meta" {
                    @match decision.by {
                        Some(by) => { "by " strong { (VisibleText(&clip_text(by))) } ", " }
                        None => "no operator decided, ",
                    }
                    (format_time(event.timestamp)) " UTC"
                    @if let Some(held) = held {
                        ", after " (wait_time(held.since, event.timestamp))
                    }
                    ", event " (event.sequence)
                }
                (gate_reason(found.map(|(_, gate)| gate)))
                @if let Some(reason) = decision.reason {
                    p class="said" { (VisibleText(&clip_text(reason))) }
                }
                @if let Some(answered) = &answered { (gate_answers(answered)) }
            }
        };
        write_markup(out, entry)
    }

    /// Returns whether the previous entry was about the same request. `held` becomes the last request.
    fn mention_request(&mut self, held: Option<&HeldRequest>) -> RequestMention {
        let span = held.and_then(|held| held.span_id.as_ref());
        let mention = if span.is_some() && self.last_request.as_ref() == span {
            RequestMention::Repeated
        } else {
            RequestMention::First
        };
        self.last_request = span.cloned();
        mention
    }

    /// Renders the outcome, the checkpoint and the request. The parameters are not repeated.
    fn heading(
        &self,
        outcome: &str,
        checkpoint: &str,
        held: Option<&HeldRequest>,
        mention: RequestMention,
    ) -> Markup {
        let span = held.and_then(|held| held.span_id.as_ref());
        let params = span
            .filter(|_| mention == RequestMention::First)
            .and_then(|span| self.params.get(span));
        html! {
            h4 {
                span class="tag" { (VisibleText(&clip_text(outcome))) }
                " " (VisibleText(&clip_text(checkpoint)))
                @if let Some(held) = held {
                    " " span class="for" { "for " (VisibleText(&clip_text(&held.what))) }
                }
            }
            @if let Some(params) = params {
                p class="params" { code { (VisibleText(params)) } }
            }
        }
    }
}

fn item_class(class: &str, mention: RequestMention) -> String {
    match mention {
        RequestMention::First => class.to_owned(),
        RequestMention::Repeated => format!("{class} again"),
    }
}

impl ReplayState {
    /// Held request and gate that an event refers to.
    fn gate_of(&self, event: &Event) -> Option<(&HeldRequest, &HeldGate)> {
        let parent = event.parent_span_id.as_ref();
        self.held.iter().find_map(|held| {
            let mut gates = held.gates.iter();
            let gate = gates.find(|gate| Some(&gate.span_id) == parent)?;
            Some((held, gate))
        })
    }
}

fn gate_reason(gate: Option<&HeldGate>) -> Markup {
    let reason = gate.map(|gate| gate.why.as_str());
    html! {
        @if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            p class="why" { (VisibleText(&clip_text(reason))) }
        }
    }
}

fn gate_answers(answered: &GateAnswers) -> Markup {
    html! {
        dl class="answers" {
            @for (question, answer) in &answered.answers {
                dt { (VisibleText(&clip_text(question))) }
                dd { (VisibleText(&answer_text(answer))) }
            }
        }
        @if answered.wrong > 0 {
            p class="meta" { "invalid answers before: " (answered.wrong) }
        }
    }
}

fn answer_text(answer: &Value) -> Cow<'_, str> {
    match answer {
        Value::String(text) if text.starts_with("sha256:") => {
            Cow::Borrowed("(sensitive: only a salted hash is recorded)")
        }
        Value::String(text) => clip_text(text),
        other => clip_text(&other.to_string()).into_owned().into(),
    }
}

/// Untrusted text, cut to [`MAX_TEXT_CHARS`].
fn clip_text(text: &str) -> Cow<'_, str> {
    truncate_text(text, MAX_TEXT_CHARS)
}

fn wait_time(since: Timestamp, until: Timestamp) -> String {
    format_duration(until.since(since))
}
