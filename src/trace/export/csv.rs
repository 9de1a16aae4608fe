//! Comma-separated values (RFC 4180): a header row, then one row per event.
//!
//! Spreadsheet programs run a cell that begins with `=`, `+`, `-`, `@`, a tab or a carriage return as a
//! formula. Such a cell gets a leading apostrophe, which makes it text. The columns are therefore for
//! reading only; the exact record is exported as JSON Lines.

use std::borrow::Cow;
use std::fmt::{self, Write};

use csv::{Terminator, WriterBuilder};
use serde_json::Value;

use crate::base::canonical_json::canonical;
use crate::trace::event::Event;
use crate::trace::summary::{event_subject, sentence};

/// The columns, in their order.
pub const COLUMNS: [&str; 15] = [
    "session_id",
    "sequence",
    "timestamp",
    "event_type",
    "about",
    "summary",
    "trace_id",
    "span_id",
    "parent_span_id",
    "event_id",
    "pruned",
    "previous_hash",
    "hash",
    "payload",
    "imported",
];

/// Writes the header row.
///
/// # Errors
/// When the writer fails.
pub fn write_header(out: &mut impl Write) -> fmt::Result {
    write_row(out, &COLUMNS.map(Cow::Borrowed))
}

/// Writes the row of an event. `imported` marks one of a session that was imported.
///
/// # Errors
/// When the writer takes no more.
pub fn write_event(out: &mut impl Write, event: &Event, imported: Option<&str>) -> fmt::Result {
    let payload = if event.pruned {
        String::new()
    } else {
        canonical(&Value::Object(event.payload.clone()))
    };
    let parent = event.parent_span_id.as_ref();
    let cells = [
        Cow::Borrowed(event.session_id.as_str()),
        event.sequence.to_string().into(),
        event.timestamp.to_string().into(),
        event.event_type.as_str().into(),
        event_subject(event).unwrap_or_default().into(),
        sentence(event).into(),
        event.trace_id.as_str().into(),
        event.span_id.as_str().into(),
        parent.map_or("", |parent| parent.as_str()).into(),
        event.event_id.as_str().into(),
        if event.pruned { "true" } else { "false" }.into(),
        event.previous_hash.to_string().into(),
        event.hash.to_string().into(),
        payload.into(),
        imported.unwrap_or_default().into(),
    ];
    write_row(out, &cells)
}

fn write_row(out: &mut impl Write, cells: &[Cow<'_, str>; COLUMNS.len()]) -> fmt::Result {
    let mut row = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .from_writer(Vec::new());
    for text in cells {
        let written = if is_formula(text) {
            row.write_field(format!("'{text}"))
        } else {
            row.write_field(text.as_bytes())
        };
        written.map_err(|_| fmt::Error)?;
    }
    // An empty record ends the row.
    row.write_record(None::<&[u8]>).map_err(|_| fmt::Error)?;
    let row = row.into_inner().map_err(|_| fmt::Error)?;
    out.write_str(str::from_utf8(&row).map_err(|_| fmt::Error)?)
}

/// True if a spreadsheet program would run this text as a formula. Some programs also accept the
/// full-width forms, some skip leading blanks, and some start a new cell at a line feed.
fn is_formula(text: &str) -> bool {
    let first = text.trim_start_matches(' ').chars().next();
    first.is_some_and(|first| {
        matches!(
            first,
            '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '＝' | '＋' | '－' | '＠'
        )
    })
}
