//! Span tree of a session, reduced to what is needed to draw it.

use std::collections::HashMap;

use uuid::Uuid;

use super::details::Details;
use super::event::{Event, canonical_type};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{SpanId, TraceId};

/// Deepest level that is shown separately; the usual tree of a session has four.
pub(super) const MAX_DEPTH: usize = 8;

/// Most spans whose depth is remembered while a session is read line by line.
const MAX_REMEMBERED: usize = 4096;

/// Depths of spans while a session is streamed; memory use is constant.
#[derive(Debug, Default)]
pub struct SpanDepths {
    new: HashMap<u128, usize>,
    old: HashMap<u128, usize>,
    root: Option<u128>,
}

impl SpanDepths {
    /// Depth of an event. A span with an unknown or forgotten parent is placed below the root.
    pub fn of(&mut self, event: &Event) -> usize {
        let key = span_key(event.span_id.as_str());
        let parent = event.parent_span_id.as_ref();
        let parent = parent.map(|parent| self::span_key(parent.as_str()));
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

/// One span of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanNode {
    /// Parent span, if it is on record.
    parent: Option<usize>,
    /// Index of the operation it belongs to.
    trace: usize,
    /// Number of events.
    pub(super) events: u64,
    /// Time of the first event, and of the last event in or below the span.
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    /// True if the span was stopped or failed.
    pub(super) stopped: bool,
}

/// All spans of a session: some 250 bytes each, so a million spans take a quarter of a gigabyte.
#[derive(Debug, Default)]
pub(super) struct SpanTree {
    places: HashMap<u128, usize>,
    nodes: Vec<SpanNode>,
    parents: Vec<Option<u128>>,
    traces: Vec<TraceId>,
    trace_places: HashMap<u128, usize>,
}

impl SpanTree {
    pub(super) fn add(&mut self, event: &Event) {
        let stopped = is_stop(event);
        let trace = self.trace_place(&event.trace_id);
        let place = *self
            .places
            .entry(span_key(event.span_id.as_str()))
            .or_insert_with(|| {
                self.nodes.push(SpanNode {
                    parent: None,
                    trace,
                    events: 0,
                    start: event.timestamp,
                    end: event.timestamp,
                    stopped: false,
                });
                let parent = event.parent_span_id.as_ref();
                self.parents
                    .push(parent.map(|parent| span_key(parent.as_str())));
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
            .entry(span_key(trace.as_str()))
            .or_insert_with(|| {
                traces.push(trace.clone());
                traces.len() - 1
            })
    }

    /// Operation of a span, if the span is on record.
    pub(super) fn trace(&self, span: &SpanId) -> Option<&TraceId> {
        self.traces.get(self.find(span)?.trace)
    }

    /// Resolves every span's parent and end after all events were added.
    pub(super) fn resolve_parents(&mut self) {
        for (place, parent) in self.parents.iter().enumerate() {
            let parent = parent.and_then(|parent| self.places.get(&parent).copied());
            if let Some(span) = self.nodes.get_mut(place) {
                span.parent = parent.filter(|parent| *parent != place);
            }
        }
        for place in 0..self.nodes.len() {
            self.extend_ancestors(place);
        }
    }

    /// Extends the ancestors of a span until its end. Stops at a cycle.
    fn extend_ancestors(&mut self, place: usize) {
        let Some(span) = self.nodes.get(place).copied() else {
            return;
        };
        let mut above = span.parent;
        for level in 0..MAX_DEPTH {
            let Some(parent) = above.and_then(|above| self.nodes.get_mut(above)) else {
                return;
            };
            parent.end = parent.end.max(span.end);
            // An event that blocks an action or a gate stops the parent span.
            parent.stopped |= span.stopped && level == 0 && parent.parent.is_some();
            above = parent.parent;
        }
    }

    pub(super) fn of(&self, event: &Event) -> Option<&SpanNode> {
        self.find(&event.span_id)
    }

    fn find(&self, span: &SpanId) -> Option<&SpanNode> {
        self.nodes.get(*self.places.get(&span_key(span.as_str()))?)
    }
}

/// True if an event reports a stop or a failure.
pub(super) fn is_stop(event: &Event) -> bool {
    match canonical_type(&event.event_type) {
        "action_blocked" | "checkpoint_blocked" | "error_occurred" => true,
        "action_completed" => Details::of(event).flag("success") == Some(false),
        _ => false,
    }
}

/// Key of a span or an operation in sixteen bytes: a UUID as it is, another name by its digest.
pub(super) fn span_key(name: &str) -> u128 {
    match Uuid::try_parse(name) {
        Ok(id) if id.hyphenated().to_string() == name => id.as_u128(),
        Ok(_) | Err(_) => {
            let digest = Digest::of(name).to_string();
            let half = digest.get(..32).unwrap_or_default();
            u128::from_str_radix(half, 16).unwrap_or_default()
        }
    }
}
