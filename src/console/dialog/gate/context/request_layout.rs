//! Text of a request that is safe to show, and the offsets of its rows.
//!
//! Contract: a short request is rendered and broken into rows on demand. A long one takes many frames:
//! [`LayoutJob`] runs in the background, and until its result arrives the request has no rows.

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use memchr::memchr_iter;
use serde_json::Value;

use super::request_text::request_text;
use crate::base::id::HeldRequestId;
use crate::console::text_cells::{asker_text, break_exactly};
use crate::engine::held::{Held, HeldSubject};

/// Maximum length of a request that is laid out while a key waits: about a millisecond.
const AT_ONCE_BYTES: usize = 64 * 1024;

/// Text of one request, or of several below each other. It is rendered once, on first use.
#[derive(Debug, PartialEq)]
pub(crate) struct RequestText {
    source: RequestTextSource,
    text: OnceLock<RenderedRequest>,
}

#[derive(Debug, PartialEq)]
enum RequestTextSource {
    One(Arc<Held>),
    /// Several requests, each below a line with its agent.
    Each(Vec<Arc<Held>>),
    #[cfg(test)]
    Text,
}

/// Rendered text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RenderedRequest {
    /// The text, safe to show.
    pub(super) request: String,
    /// Number of hidden characters that are shown escaped.
    pub(super) hidden: usize,
}

/// Job: lay out a long request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LayoutJob {
    /// Request whose dialog needs the layout.
    pub(crate) gate: HeldRequestId,
    pub(super) written: Arc<RequestText>,
    pub(super) cells: usize,
}

/// Result: the layout of a long request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestLayout {
    /// Request whose dialog needs the layout.
    pub(crate) gate: HeldRequestId,
    pub(super) written: Arc<RequestText>,
    pub(super) cells: usize,
    pub(super) starts: Vec<usize>,
}

impl LayoutJob {
    /// Computes the layout. This takes time.
    pub(crate) fn run(self) -> RequestLayout {
        let starts = row_starts(&self.written.render().request, self.cells);
        RequestLayout {
            gate: self.gate,
            written: self.written,
            cells: self.cells,
            starts,
        }
    }
}

impl RequestText {
    pub(super) fn for_request(held: Arc<Held>) -> Self {
        Self::from(RequestTextSource::One(held))
    }

    pub(super) fn for_batch(all: &[Arc<Held>]) -> Self {
        Self::from(RequestTextSource::Each(all.to_vec()))
    }

    #[cfg(test)]
    pub(super) fn text(request: String) -> Self {
        let hidden = 0;
        Self {
            source: RequestTextSource::Text,
            text: OnceLock::from(RenderedRequest { request, hidden }),
        }
    }

    fn from(source: RequestTextSource) -> Self {
        let text = OnceLock::new();
        Self { source, text }
    }

    /// Returns true if the layout takes too long to make a key wait.
    pub(super) fn is_long(&self) -> bool {
        match (&self.source, self.text.get()) {
            (_, Some(text)) => text.request.len() > AT_ONCE_BYTES,
            (RequestTextSource::One(held), None) => is_longer(held, AT_ONCE_BYTES),
            (RequestTextSource::Each(all), None) => {
                let most = AT_ONCE_BYTES / all.len().max(1);
                all.iter().any(|held| is_longer(held, most))
            }
            #[cfg(test)]
            (RequestTextSource::Text, None) => false,
        }
    }

    /// Returns the text if it is already rendered.
    pub(super) fn get(&self) -> Option<&RenderedRequest> {
        self.text.get()
    }

    /// Returns the text; renders it first if needed.
    pub(super) fn render(&self) -> &RenderedRequest {
        self.text.get_or_init(|| match &self.source {
            RequestTextSource::One(held) => {
                let (request, hidden) = request_text(held);
                RenderedRequest { request, hidden }
            }
            RequestTextSource::Each(all) => render_all(all),
            #[cfg(test)]
            RequestTextSource::Text => RenderedRequest {
                request: String::new(),
                hidden: 0,
            },
        })
    }
}

fn render_all(all: &[Arc<Held>]) -> RenderedRequest {
    let mut text = String::new();
    let mut hidden = 0;
    for held in all {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let (request, more) = request_text(held);
        let asker = asker_text(&held.agent, &held.session);
        let hash = held.request_hash.short(4);
        // Writing to a String cannot fail.
        let _ = write!(text, "{}  {asker}  hash {hash}\n{request}", held.id);
        hidden += more;
    }
    let request = text;
    RenderedRequest { request, hidden }
}

/// Returns true if the text of a request is longer than about `most` bytes. It stops counting there.
pub(crate) fn is_longer(held: &Held, most: usize) -> bool {
    let (value, text) = match &held.subject {
        HeldSubject::SessionStart => return false,
        HeldSubject::Moment(moment) => (&moment.data, moment.text.as_ref()),
        HeldSubject::Action(call) => (&call.params, None),
    };
    let text = text.map_or(0, |text| text.text.len());
    let mut left = most.checked_sub(text);
    subtract_size(value, 1, &mut left);
    left.is_none()
}

/// Subtracts the size of a value from `left`. `None` once the value does not fit.
fn subtract_size(value: &Value, depth: usize, left: &mut Option<usize>) {
    let mut pay = |bytes: usize| {
        // Each value has its own indented line.
        *left = left.and_then(|rest| rest.checked_sub(bytes + 2 * depth + 4));
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => pay(4),
        Value::String(text) => pay(text.len()),
        Value::Array(items) => {
            pay(0);
            for item in items {
                if left.is_none() {
                    return;
                }
                subtract_size(item, depth + 1, left);
            }
        }
        Value::Object(fields) => {
            pay(0);
            for (name, field) in fields {
                *left = left.and_then(|rest| rest.checked_sub(name.len()));
                if left.is_none() {
                    return;
                }
                subtract_size(field, depth + 1, left);
            }
        }
    }
}

/// Returns the offset of each row of a text, for rows of `cells` cells.
pub(super) fn row_starts(text: &str, cells: usize) -> Vec<usize> {
    // Two cells are reserved for the mark of a continued line.
    let room = cells.saturating_sub(2).max(2);
    let mut starts = Vec::new();
    let mut line_start = 0;
    let ends = memchr_iter(b'\n', text.as_bytes()).chain(std::iter::once(text.len()));
    for end in ends {
        let line = text.get(line_start..end).unwrap_or_default();
        if line.is_ascii() {
            // One byte is one cell: all characters here are shown as themselves.
            starts.push(line_start);
            starts.extend((room..line.len()).step_by(room).map(|at| line_start + at));
        } else {
            let mut start = line_start;
            for piece in break_exactly(line, room) {
                starts.push(start);
                start += piece.len();
            }
        }
        line_start = end + 1;
    }
    starts
}
