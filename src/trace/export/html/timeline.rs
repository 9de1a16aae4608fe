//! Timeline section: every event of a session with its depth, time and summary, and its full details
//! folded.

use std::fmt::{self, Write};

use serde_json::Value;

use super::text::{EscapedText, format_duration, format_time};
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
    pub(super) fn write(&mut self, out: &mut impl Write, event: &Event) -> fmt::Result {
        let depth = self.depths.of(event);
        let class = match tone(event) {
            Tone::Plain => "plain",
            Tone::Good => "good",
            Tone::Care => "care",
            Tone::Stop => "stop",
        };
        let (left, width) = self.bar(event);
        let after = format_duration(event.timestamp.since(self.start));
        writeln!(
            out,
            "<details class=\"{class}\"><summary><span class=\"seq\">{}</span>\
             <span class=\"time\">+{after}</span><span class=\"what d{depth}\">\
             <code>{}</code> {}</span>\
             <span class=\"lane\"><i class=\"l{left} w{width}\"></i></span></summary>",
            event.sequence,
            EscapedText(&event.event_type),
            EscapedText(&sentence(event)),
        )?;
        envelope(out, event)?;
        content(out, event)?;
        out.write_str("</details>\n")
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

fn envelope(out: &mut impl Write, event: &Event) -> fmt::Result {
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
    out.write_str("<dl>")?;
    for (name, value) in named {
        write!(
            out,
            "<dt>{name}</dt><dd><code>{}</code></dd>",
            EscapedText(value)
        )?;
    }
    out.write_str("</dl>\n")
}

fn content(out: &mut impl Write, event: &Event) -> fmt::Result {
    if event.pruned {
        return out.write_str(
            "<p class=\"none\">The details were pruned. The hash still covers them: a reviewer who kept \
             a copy can prove that it is unchanged.</p>\n",
        );
    }
    let content = Value::Object(event.payload.clone());
    writeln!(out, "<pre>{}</pre>", EscapedText(&format!("{content:#}")))
}
