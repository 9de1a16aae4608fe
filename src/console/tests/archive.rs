//! A record in memory, sealed like a real one, and a stage whose reads it answers.

use std::collections::BTreeMap;
use std::time::Duration;

use ratatui::crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::fixture::now;
use super::test_console::TestConsole;
use crate::base::canonical_json::canonical;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::console::driver::record_reader::{RecordSource, read};
use crate::console::request::{ConsoleMessage, ConsoleRequest};
use crate::console::screen::trace::TraceRead;
use crate::runtime::RecordedSession;
use crate::trace::event::Event;
use crate::trace::hash::Envelope;
use crate::trace::record::Record;
use crate::trace::source::EventSource;
use crate::trace::verification::{
    ChainVerification, ProvenCounts, VerificationReport, VerificationVerdict,
};

/// Sessions in memory.
#[derive(Default)]
pub(super) struct Archive {
    chains: BTreeMap<SessionId, Vec<Record>>,
    agents: BTreeMap<SessionId, String>,
    ended: Vec<SessionId>,
}

/// One event as tests write it: offset from the start, type, parent event, details.
pub(super) type EventSpec = (u64, &'static str, Option<u64>, Value);

impl Archive {
    /// The sessions that most tests use.
    pub(super) fn sample() -> Self {
        let mut archive = Self::default();
        archive.add("s-15", "docs-bot", &short("docs-bot"));
        archive.add("s-12", "triage-bot", &hostile());
        archive.add("s-09", "returns-bot", &story());
        archive.ended.push("s-09".parse().unwrap());
        archive
    }

    pub(super) fn add(&mut self, session: &str, agent: &str, output: &[EventSpec]) {
        let session: SessionId = session.parse().unwrap();
        self.agents.insert(session.clone(), agent.to_owned());
        for (after_ms, event_type, parent, payload) in output {
            let at = now().plus(Duration::from_millis(*after_ms));
            self.append(&session, at, event_type, *parent, payload);
        }
    }

    pub(super) fn append(
        &mut self,
        session: &SessionId,
        at: Timestamp,
        event_type: &str,
        parent: Option<u64>,
        payload: &Value,
    ) {
        let chain = self.chains.entry(session.clone()).or_default();
        let sequence = chain.len() as u64;
        let previous = chain.last().map_or(Digest::ZERO, |last| last.hash);
        let mut text = String::new();
        Envelope {
            trace_version: "1.0",
            event_id: &format!("event-{sequence}"),
            trace_id: "trace-1",
            span_id: &format!("span-{sequence}"),
            parent_span_id: &parent.map_or_else(String::new, |parent| format!("span-{parent}")),
            session_id: session.as_str(),
            sequence,
            timestamp: &at.to_string(),
            event_type,
            payload: &canonical(payload),
            previous_hash: &previous.to_string(),
        }
        .write(&mut text);
        let hash = Digest::of(&text);
        chain.push(Record::read(text, hash).unwrap());
    }

    /// Removes an event, or changes its text but not its hash.
    pub(super) fn spoil(&mut self, session: &str, spoil: impl FnOnce(&mut Vec<Record>)) {
        let session: SessionId = session.parse().unwrap();
        spoil(self.chains.get_mut(&session).unwrap());
    }

    pub(super) fn sessions(&self) -> Vec<RecordedSession> {
        let of = |(session, chain): (&SessionId, &Vec<Record>)| RecordedSession {
            session: session.clone(),
            agent: self.agents[session].clone(),
            started_at: chain.first().unwrap().timestamp,
            last_at: chain.last().unwrap().timestamp,
            events: chain.last().unwrap().sequence + 1,
            ended: self.ended.contains(session),
            imports: Vec::new(),
        };
        self.chains.iter().rev().map(of).collect()
    }

    /// Builds the result of a check in which every session is sealed except its last `tail` events.
    pub(super) fn checked(&self, tail: u64) -> ConsoleMessage {
        let chains = self.sessions().into_iter().map(|known| ChainVerification {
            session: known.session,
            events: known.events,
            pruned: 0,
            not_canonical: 0,
            imports: Vec::new(),
            verdict: VerificationVerdict::Holds(ProvenCounts {
                witnessed: 0,
                sealed: known.events - tail,
                count: known.events,
                imported_from: None,
            }),
        });
        ConsoleMessage::Verified(Ok(VerificationReport {
            log: None,
            chains: chains.collect(),
        }))
    }

    /// Answers all read requests until none is left. Returns the other requests.
    pub(super) fn serve(
        &self,
        console: &mut TestConsole,
        requests: Vec<ConsoleRequest>,
    ) -> Vec<ConsoleRequest> {
        let mut left = Vec::new();
        let mut waiting: std::collections::VecDeque<_> = requests.into();
        while let Some(request) = waiting.pop_front() {
            match request {
                ConsoleRequest::Read(ask) => {
                    let output = ConsoleMessage::Read(read(self, ask));
                    waiting.extend(console.app.on_message(output));
                }
                ConsoleRequest::LoadSessions => {
                    let output = ConsoleMessage::Sessions(Ok(self.sessions()));
                    waiting.extend(console.app.on_message(output));
                }
                other => left.push(other),
            }
        }
        console.paint();
        left
    }

    /// Presses a key and answers the read requests.
    pub(super) fn press(&self, console: &mut TestConsole, code: KeyCode) -> Vec<ConsoleRequest> {
        let requests = console.press(code);
        self.serve(console, requests)
    }

    pub(super) fn keys(&self, console: &mut TestConsole, keys: &str) {
        for key in keys.chars() {
            self.press(console, KeyCode::Char(key));
        }
    }

    /// Types a text into the prompt that a key opens, and presses Enter.
    pub(super) fn enter(
        &self,
        console: &mut TestConsole,
        key: char,
        text: &str,
    ) -> Vec<ConsoleRequest> {
        self.press(console, KeyCode::Char(key));
        console.press(KeyCode::Home);
        console.ctrl('u');
        console.type_text(text);
        self.press(console, KeyCode::Enter)
    }

    /// Shows the record with one session open.
    pub(super) fn open(&self, console: &mut TestConsole, session: &str) {
        self.press(console, KeyCode::Char('2'));
        let at = self
            .sessions()
            .iter()
            .position(|recorded| recorded.session.as_str() == session);
        self.press(console, KeyCode::Home);
        for _ in 0..at.unwrap() {
            self.press(console, KeyCode::Down);
        }
        self.press(console, KeyCode::Enter);
    }
}

/// Returns the read requests.
pub(super) fn asks(requests: Vec<ConsoleRequest>) -> Vec<TraceRead> {
    let ask = |request| match request {
        ConsoleRequest::Read(ask) => Some(ask),
        _ => None,
    };
    requests.into_iter().filter_map(ask).collect()
}

impl EventSource for Archive {
    type Error = String;

    fn events(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Event>, String> {
        self.records(session, from, limit)?
            .iter()
            .map(Record::event_of)
            .collect()
    }

    fn end(&self, session: &SessionId) -> Result<u64, String> {
        let last = self.chains.get(session).and_then(|chain| chain.last());
        Ok(last.map_or(0, |last| last.sequence + 1))
    }

    fn verify(&self, _: &SessionId) -> Result<Option<ChainVerification>, String> {
        Ok(None)
    }
}

impl RecordSource for Archive {
    fn records(&self, session: &SessionId, from: u64, limit: usize) -> Result<Vec<Record>, String> {
        let chain = self.chains.get(session).ok_or("no such session")?;
        let first = chain.partition_point(|record| record.sequence < from);
        Ok(chain.iter().skip(first).take(limit).cloned().collect())
    }
}

fn action(name: &str, tier: &str) -> Value {
    json!({ "action_type": name, "risk_tier": tier, "action_params": { "ticket_ids": [4411, 4412], "cascade": true } })
}

/// A deletion that was held, answered wrongly, signed and run, and one that was refused.
fn story() -> Vec<EventSpec> {
    let gate = |id: &str| json!({ "checkpoint_id": id, "mode": "blocking", "checkpoint_type": "risk_threshold", "trigger_condition": "tier high", "priority": 900 });
    let mut output = vec![
        (
            0,
            "session_started",
            None,
            json!({ "agent_type": "returns-bot", "intent": "dedupe tickets", "atlas_ids": ["com.acme.support"] }),
        ),
        (
            4,
            "wrapper_verified",
            Some(0),
            json!({ "verification_passed": true }),
        ),
        (
            9_000,
            "input_received",
            Some(0),
            json!({ "input_size_bytes": 812, "source": "user" }),
        ),
        (
            9_200,
            "context_injected",
            Some(2),
            json!({ "context_ids": ["intro", "policy"], "total_size_bytes": 120, "trigger": "on_match" }),
        ),
        (
            12_000,
            "action_attempted",
            Some(0),
            action("ticket.delete", "high"),
        ),
        (
            12_003,
            "policy_checked",
            Some(4),
            json!({ "policy_id": "p-1", "action_type": "ticket.delete", "decision": "require_approval" }),
        ),
        (
            12_010,
            "checkpoint_triggered",
            Some(4),
            gate("high-risk-gate"),
        ),
    ];
    output.extend(ending());
    output
}

/// The events after `story`.
fn ending() -> Vec<EventSpec> {
    let answer = |result: &str| json!({ "checkpoint_id": "high-risk-gate", "validation_result": result, "answered_by": "o2@ops", "answers": { "justify": "dup of 4398" }, "problems": ["pattern"] });
    vec![
        (20_000, "checkpoint_response", Some(6), answer("invalid")),
        (30_000, "checkpoint_response", Some(6), answer("valid")),
        (
            30_100,
            "risk_verified",
            Some(6),
            json!({ "risk_tier": "high", "action_type": "ticket.delete", "verification_method": "tui+challenge", "verified_by": "o2@ops", "request": { "a": 1, "b": [1, 2], "c": {}, "d": null } }),
        ),
        (
            30_101,
            "checkpoint_passed",
            Some(6),
            json!({ "checkpoint_id": "high-risk-gate", "passed_by": "o2@ops", "unlocked_capabilities": ["basic-support"] }),
        ),
        (
            31_000,
            "action_completed",
            Some(4),
            json!({ "action_type": "ticket.delete", "success": true, "duration_ms": 900 }),
        ),
        (
            33_000,
            "action_attempted",
            Some(0),
            action("user.ban", "critical"),
        ),
        (
            33_005,
            "action_blocked",
            Some(12),
            json!({ "action_type": "user.ban", "policy_id": "no-bans", "reason": "bans are final" }),
        ),
        (
            41_200,
            "session_ended",
            Some(0),
            json!({ "final_status": "completed", "actions_taken": 2 }),
        ),
    ]
}

fn short(agent: &str) -> Vec<EventSpec> {
    vec![
        (0, "session_started", None, json!({ "agent_type": agent })),
        (
            10,
            "input_received",
            Some(0),
            json!({ "source": "user", "input_size_bytes": 3 }),
        ),
    ]
}

/// Text that an agent may put into a record to mislead its reader.
fn hostile() -> Vec<EventSpec> {
    vec![
        (
            0,
            "session_started",
            None,
            json!({ "agent_type": "triage-bot" }),
        ),
        (
            5,
            "action_attempted",
            Some(0),
            json!({ "action_type": "a\u{1b}[2J\u{202e}b", "risk_tier": "low", "action_params": { "日本\u{200b}語": "x\ny", "long": "w".repeat(1_000_000) } }),
        ),
        (
            9,
            "action_completed",
            Some(1),
            json!({ "action_type": "日本語".repeat(40), "success": true }),
        ),
    ]
}
