//! The span tree of a session, as far as it has to be known to draw it.

use std::collections::HashMap;

use uuid::Uuid;

use super::details::Details;
use super::event::{Event, canonical_type};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{SpanId, TraceId};

/// Deepest level that is shown apart; a session's own tree has four.
pub(super) const MAX_DEPTH: usize = 8;

/// Most spans whose depth is remembered while a session is told line by line.
const MAX_REMEMBERED: usize = 4096;

/// How deep spans lie, while a session goes by: memory does not grow with it.
#[derive(Debug, Default)]
pub struct Depths {
    new: HashMap<u128, usize>,
    old: HashMap<u128, usize>,
    root: Option<u128>,
}

impl Depths {
    /// How deep an event lies. A span whose parent is not known, or too long ago, hangs below the root.
    pub fn of(&mut self, event: &Event) -> usize {
        let key = key(event.span_id.as_str());
        let parent = event.parent_span_id.as_ref();
        let parent = parent.map(|parent| self::key(parent.as_str()));
        let root = *self.root.get_or_insert(key);
        let depth = match parent {
            None => 0,
            Some(parent) if parent == root => 1,
            Some(parent) => {
                let known = self.new.get(&parent).or_else(|| self.old.get(&parent));
                known.map_or(1, |depth| depth + 1)
            }
        };
        let depth = depth.min(MAX_DEPTH);
        if self.new.len() >= MAX_REMEMBERED {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(key, depth);
        depth
    }
}

/// One span, as it is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The span above, if it is on record.
    parent: Option<usize>,
    /// The operation it belongs to.
    trace: usize,
    /// How many events it has.
    pub(super) events: u64,
    /// When it began and when the last of what it caused happened.
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    /// Whether what it stands for was stopped, or failed.
    pub(super) stopped: bool,
}

/// Every span of a session: some 250 bytes each, so a million of them take a quarter of a gigabyte.
#[derive(Debug, Default)]
pub(super) struct Spans {
    places: HashMap<u128, usize>,
    nodes: Vec<Span>,
    parents: Vec<Option<u128>>,
    traces: Vec<TraceId>,
    trace_places: HashMap<u128, usize>,
}

impl Spans {
    pub(super) fn add(&mut self, event: &Event) {
        let stopped = stops(event);
        let trace = self.trace_place(&event.trace_id);
        let place = *self
            .places
            .entry(key(event.span_id.as_str()))
            .or_insert_with(|| {
                self.nodes.push(Span {
                    parent: None,
                    trace,
                    events: 0,
                    start: event.timestamp,
                    end: event.timestamp,
                    stopped: false,
                });
                let parent = event.parent_span_id.as_ref();
                self.parents.push(parent.map(|parent| key(parent.as_str())));
                self.nodes.len() - 1
            });
        if let Some(span) = self.nodes.get_mut(place) {
            span.events += 1;
            span.start = span.start.min(event.timestamp);
            span.end = span.end.max(event.timestamp);
            span.stopped |= stopped;
        }
    }

    fn trace_place(&mut self, trace: &TraceId) -> usize {
        let traces = &mut self.traces;
        *self
            .trace_places
            .entry(key(trace.as_str()))
            .or_insert_with(|| {
                traces.push(trace.clone());
                traces.len() - 1
            })
    }

    /// The operation that a span belongs to, if the span is on record.
    pub(super) fn trace(&self, span: &SpanId) -> Option<&TraceId> {
        self.traces.get(self.find(span)?.trace)
    }

    /// Finds every span's parent and end, when all events are in.
    pub(super) fn close(&mut self) {
        for (place, parent) in self.parents.iter().enumerate() {
            let parent = parent.and_then(|parent| self.places.get(&parent).copied());
            if let Some(span) = self.nodes.get_mut(place) {
                span.parent = parent.filter(|parent| *parent != place);
            }
        }
        for place in 0..self.nodes.len() {
            self.raise(place);
        }
    }

    /// Lets the spans above one last as long as it does. Where the tree is a ring, it ends.
    fn raise(&mut self, place: usize) {
        let Some(span) = self.nodes.get(place).copied() else {
            return;
        };
        let mut above = span.parent;
        for level in 0..MAX_DEPTH {
            let Some(parent) = above.and_then(|above| self.nodes.get_mut(above)) else {
                return;
            };
            parent.end = parent.end.max(span.end);
            // What blocks an action, or a gate, stops the span it hangs below.
            parent.stopped |= span.stopped && level == 0 && parent.parent.is_some();
            above = parent.parent;
        }
    }

    pub(super) fn of(&self, event: &Event) -> Option<&Span> {
        self.find(&event.span_id)
    }

    fn find(&self, span: &SpanId) -> Option<&Span> {
        self.nodes.get(*self.places.get(&key(span.as_str()))?)
    }
}

/// Whether an event says that something was stopped, or failed.
pub(super) fn stops(event: &Event) -> bool {
    match canonical_type(&event.event_type) {
        "action_blocked" | "checkpoint_blocked" | "error_occurred" => true,
        "action_completed" => Details::of(event).flag("success") == Some(false),
        _ => false,
    }
}

/// A span or an operation in sixteen bytes: a UUID as it is, any other name by its digest.
pub(super) fn key(name: &str) -> u128 {
    match Uuid::try_parse(name) {
        Ok(id) if id.hyphenated().to_string() == name => id.as_u128(),
        Ok(_) | Err(_) => {
            let digest = Digest::of(name).to_string();
            let half = digest.get(..32).unwrap_or_default();
            u128::from_str_radix(half, 16).unwrap_or_default()
        }
    }
}
