//! Timeline section: every event of a session with its depth, time and summary, and its full details
//! folded.

use maud::{Markup, html};
use serde_json::Value;

use super::text::{VisibleText, format_duration, format_time};
use crate::base::clock::Timestamp;
use crate::trace::event::Event;
use crate::trace::spans::{SpanDepths, SpanTree};
use crate::trace::summary::{Tone, sentence, tone};

/// Time range of a session and its spans.
pub(super) struct Timeline<'t> {
    pub(super) spans: &'t SpanTree,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) depths: SpanDepths,
}

impl Timeline<'_> {
    /// Renders the next event.
    pub(super) fn event(&mut self, event: &Event) -> Markup {
        let depth = self.depths.of(event);
        let class = match tone(event) {
            Tone::Plain => "plain",
            Tone::Good => "good",
            Tone::Care => "care",
            Tone::Stop => "stop",
        };
        let (left, width) = self.bar(event);
        let after = format_duration(event.timestamp.since(self.start));
        html! {
            details class=(class) {
                summary {
                    span class="seq" { (event.sequence) }
                    span class="time" { "+" (after) }
                    span class={ "what d" (depth) } {
                        code { (VisibleText(&event.event_type)) } " " (VisibleText(&sentence(event)))
                    }
                    span class="lane" { i class={ "l" (left) " w" (width) } {} }
                }
                (envelope(event))
                (content(event))
            }
        }
    }

    /// Start and length of a span's bar, in percent of the session.
    fn bar(&self, event: &Event) -> (u64, u64) {
        let whole = self.end.since(self.start).as_micros().max(1);
        let (start, end) = self
            .spans
            .of(event)
            .map_or((event.timestamp, event.timestamp), |span| {
                (span.start, span.end)
            });
        let part = |span: std::time::Duration| {
            let part = span.as_micros().min(whole) * 100 / whole;
            u64::try_from(part).unwrap_or(100)
        };
        let left = part(start.since(self.start)).min(99);
        let width = part(end.since(start)).min(100 - left);
        (left, width)
    }
}

fn envelope(event: &Event) -> Markup {
    let parent = event.parent_span_id.as_ref();
    let previous = event.previous_hash.to_string();
    let hash = event.hash.to_string();
    let time = format!("{} UTC", format_time(event.timestamp));
    let named = [
        ("time", time.as_str()),
        ("event", event.event_id.as_str()),
        ("operation", event.trace_id.as_str()),
        ("span", event.span_id.as_str()),
        (
            "parent span",
            parent.map_or("none", |parent| parent.as_str()),
        ),
        ("previous hash", &previous),
        ("hash", &hash),
    ];
    html! {
        dl {
            @for (name, value) in named {
                dt { (name) }
                dd { code { (VisibleText(value)) } }
            }
        }
    }
}

fn content(event: &Event) -> Markup {
    if event.pruned {
        return html! {
            p class="none" {
                "The details were pruned. The hash still covers them: a reviewer who kept a copy can prove \
                 that it is unchanged."
            }
        };
    }
    let content = Value::Object(event.payload.clone());
    html! { pre { (VisibleText(&format!("{content:#}"))) } }
}
