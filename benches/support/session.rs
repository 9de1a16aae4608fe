//! One long session, its events nested as an engine nests them.

use cra_core::base::clock::Timestamp;
use cra_core::base::id::{CountedIds, IdSource, SessionId, SpanId};
use cra_core::trace::chain::Chain;
use cra_core::trace::event::{Draft, Durability, Payload};
use cra_core::trace::record::Record;
use serde_json::Value;

use super::recorded_events::story;

/// Index of the parent event within a story; `None` for children of the session's first event.
const ABOVE: [Option<usize>; 9] = [
    None,
    None,
    Some(1),
    Some(1),
    Some(1),
    Some(4),
    Some(4),
    Some(4),
    Some(1),
];

/// The records of a session, without end.
pub(crate) struct Session {
    ids: CountedIds,
    chain: Chain,
    id: SessionId,
    payloads: Vec<Payload>,
    root: Option<SpanId>,
    spans: Vec<SpanId>,
    next: usize,
}

impl Session {
    pub(crate) fn new(name: &str) -> Self {
        let read = |(event_type, fields): (&str, Value)| {
            let Value::Object(fields) = fields else {
                panic!("details are an object");
            };
            Payload::read(event_type, fields).expect("details of the type")
        };
        let session: SessionId = name.parse().expect("a name");
        Self {
            ids: CountedIds::starting_at(1 << 90),
            chain: Chain::new(session.clone()),
            id: session,
            payloads: story().into_iter().map(read).collect(),
            root: None,
            spans: Vec::new(),
            next: 0,
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Vec<Record> {
        (0..count).map(|_| self.record()).collect()
    }

    /// One more, with a text that no other has.
    #[allow(dead_code, reason = "not every bench looks for it")]
    pub(crate) fn last_with(&mut self, text: &str) -> Record {
        let fields = serde_json::json!({
            "action_type": "ticket.delete", "success": true, "duration_ms": 1, "result_summary": text,
        });
        let fields = fields.as_object().cloned().expect("an object");
        let payload = Payload::read("action_completed", fields).expect("details of the type");
        self.payloads = vec![payload];
        self.next = 0;
        self.record()
    }

    fn record(&mut self) -> Record {
        let at = self.next % self.payloads.len();
        if at == 0 {
            self.spans.clear();
        }
        let span: SpanId = self.ids.next().into();
        let above = ABOVE[at].map(|above| self.spans[above].clone());
        let parent = above.or_else(|| self.root.clone());
        self.root.get_or_insert_with(|| span.clone());
        self.spans.push(span.clone());
        self.next += 1;
        let micros = 1_767_225_600_000_000 + 1_700 * i64::try_from(self.next).expect("a time");
        self.chain.seal(&Draft {
            session_id: self.id.clone(),
            event_id: self.ids.next().into(),
            trace_id: self.ids.next().into(),
            span_id: span,
            parent_span_id: parent,
            timestamp: Timestamp::from_micros(micros),
            payload: self.payloads[at].clone(),
            durability: Durability::Sync,
        })
    }
}
