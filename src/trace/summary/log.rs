//! Sentences about entries of the governance log.

use super::{SentenceParts, quote_untrusted};
use crate::base::canonical_json::canonical;
use crate::trace::event::{Event, canonical_type};

impl SentenceParts<'_> {
    pub(super) fn log(self, event: &Event) -> String {
        let by = self
            .0
            .text("by")
            .map_or_else(|| "?".to_owned(), quote_untrusted);
        match canonical_type(&event.event_type) {
            "log_started" => format!("log started, signing key {}", self.text("key")),
            "log_sealed" => {
                let sessions = self.0.value("sessions").and_then(|list| list.as_array());
                let count = sessions.map_or(0, Vec::len);
                format!("log sealed; chains covered: {count}")
            }
            "key_rotated" => format!("{by} changes the key to {}", self.text("key")),
            "clock_moved" | "store_recovered" => self.text("what"),
            "trace_imported" => format!(
                "{by} IMPORTED {}, {} events from {}{}",
                self.text("imported_session"),
                self.number("events"),
                self.text("source"),
                self.with_prefix(", sha256 ", "file_hash")
            ),
            "retention_applied" => format!(
                "{by} pruned {} events of {}: {}",
                self.number("events"),
                self.text("pruned_session"),
                self.text("reason")
            ),
            "hold_placed" => format!(
                "{by} puts {} under a legal hold: {}",
                self.text("held_session"),
                self.text("reason")
            ),
            "hold_released" => format!(
                "{by} ends the legal hold on {}{}",
                self.text("held_session"),
                self.with_prefix(": ", "reason")
            ),
            "answer_rejected" => format!(
                "ANOTHER PROCESS answered `{by}` at {}: {}",
                self.text("socket"),
                self.text("reason")
            ),
            _ => format!("ALARM: {}", self.text("what")),
        }
    }

    /// Sentence about an edit of a memento, with the texts before and after it.
    pub(super) fn edit(self) -> String {
        let shown = |name: &str| {
            let text = self.0.value(name)?;
            Some(quote_untrusted(&canonical(text)))
        };
        let texts = match (shown("text_before"), shown("text_now")) {
            (Some(before), Some(now)) => format!(", from {before} to {now}"),
            (_, Some(now)) => format!(" as {now}"),
            (_, None) => String::new(),
        };
        format!(
            "{} rewrites the summary of {}{texts}",
            self.text("by"),
            self.text("thread_id")
        )
    }
}
