//! Writes a session as a snapshot file, for the agent that continues it.
//!
//! Contract: the file states only what the record and the memento state. Progress of the work,
//! confidence in decisions and the user's style are not recorded, so they are not in the file: the
//! checklist names them as missing. Names of actions and gates are in backticks, so that no reader
//! changes their spelling.

use serde_json::{Map, Value, json};

use super::glossary::{COMPATIBLE_WITH, PROTOCOL_VERSION};

/// Known facts about a session.
#[derive(Clone, Debug, Default)]
pub struct SessionAccount {
    /// The session.
    pub session: String,
    /// Agent of the session.
    pub agent: String,
    /// Declared purpose of the session.
    pub intent: Option<String>,
    /// Time of writing.
    pub written_at: String,
    /// True if the session has ended.
    pub ended: bool,
    /// Import that brought the session, in words, where it was recorded elsewhere.
    pub imported: Option<String>,
    /// End of the session, as the agent said.
    pub final_status: Option<String>,
    /// Atlases in force for the session.
    pub atlases: Vec<String>,
    /// Direction of the conversation, if a memento states it.
    pub arc: Option<String>,
    /// Active work.
    pub active: Vec<String>,
    /// Work left for later.
    pub parked: Vec<String>,
    /// Decisions made in the conversation.
    pub decisions: Vec<String>,
    /// Next steps.
    pub next: Vec<String>,
    /// Changes of direction: from, to, and their reason.
    pub pivots: Vec<(String, String, String)>,
    /// Freeze of the conversation's summary, if it is frozen.
    pub frozen: Option<AccountFreeze>,
    /// Proposals for the summary that were held back, newest first, as far as they are stored.
    pub held_back: Vec<String>,
    /// Number of all proposals that were held back.
    pub held_back_count: u64,
    /// Requests that wait for an operator.
    pub held: Vec<AccountHeld>,
    /// Decisions of operators, in order.
    pub decided: Vec<AccountDecision>,
    /// Injected contexts that are in force.
    pub contexts: Vec<String>,
    /// Last activity.
    pub last_activity: Option<String>,
    /// Number of recorded events, by type.
    pub events: Vec<(String, u64)>,
}

/// Freeze of a summary.
#[derive(Clone, Debug, Default)]
pub struct AccountFreeze {
    /// Start of the freeze.
    pub since: String,
    /// Condition that ends the freeze.
    pub until: Option<String>,
}

/// A gate that waits for an operator.
#[derive(Clone, Debug, Default)]
pub struct AccountHeld {
    /// The gate.
    pub gate: String,
    /// Subject that waits there.
    pub waits: WaitingSubject,
    /// Questions to the operator.
    pub asked: Vec<String>,
}

/// Subject that waits at a gate.
#[derive(Clone, Debug, Default)]
pub enum WaitingSubject {
    /// The session, before it begins.
    #[default]
    Start,
    /// An action, by its name.
    Action(String),
    /// The session, because of an event in it.
    Session(String),
}

impl WaitingSubject {
    /// Description of the subject.
    fn description(&self) -> String {
        match self {
            Self::Start => "the start of the session".to_owned(),
            Self::Action(action) => as_code(action),
            Self::Session(at) => format!("the session ({at})"),
        }
    }

    /// Question to the operator.
    fn question(&self, agent: &str) -> String {
        match self {
            Self::Start => format!("May {agent} start?"),
            Self::Action(action) => format!("May {agent} run {}?", as_code(action)),
            Self::Session(at) => format!("May {agent} continue ({at})?"),
        }
    }
}

/// Decision of an operator.
#[derive(Clone, Debug, Default)]
pub struct AccountDecision {
    /// The gate.
    pub gate: String,
    /// The action; empty if the session as a whole was stopped.
    pub action: String,
    /// `passed`, `denied`, `expired` and so on.
    pub outcome: String,
    /// The operator.
    pub by: Option<String>,
    /// Reason given.
    pub reason: Option<String>,
}

/// Formats a name as code, to keep its spelling.
fn as_code(name: &str) -> String {
    format!("`{}`", name.replace('`', "'"))
}

/// JSON object with the known fields.
#[derive(Default)]
struct JsonFields(Map<String, Value>);

impl JsonFields {
    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a field unless its value is absent, an empty list or an empty object.
    fn known(self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let is_empty = match &value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        if is_empty {
            return self;
        }
        self.with(name, value)
    }
}

impl From<JsonFields> for Value {
    fn from(fields: JsonFields) -> Self {
        Self::Object(fields.0)
    }
}

/// Builds the snapshot file of a session.
#[must_use]
pub fn snapshot_json(account: &SessionAccount) -> Value {
    let file = JsonFields::default()
        .with("checkpoint_metadata", metadata(account))
        .with("session_state", session_state(account))
        .with("current_position", position(account))
        .known("critical_question", question(account))
        .known("intellectual_journey", journey(account))
        .known("decisions_made", decisions(account))
        .known("open_questions", open_questions(account))
        .with("artifacts_created", json!([artifact(account)]))
        .known("user_profile", person(account))
        .known("next_steps", next_steps(account))
        .known("deferred_items", deferred(account))
        .known("conversation_state", conversation_state(account))
        .with("session_metrics", metrics(account));
    file.into()
}

fn metadata(account: &SessionAccount) -> Value {
    let completed = account.final_status.as_deref() == Some("completed");
    let status = match (&account.final_status, account.ended) {
        (_, true) if completed => "complete".to_owned(),
        (Some(how), true) => format!("ended ({how})"),
        (None, true) => "ended".to_owned(),
        (_, false) => "active".to_owned(),
    };
    let kind = if completed {
        "completion"
    } else {
        "transition"
    };
    let fields = JsonFields::default()
        .with("version", COMPATIBLE_WITH)
        .with("format", "structured")
        .with("created_at", account.written_at.as_str())
        .with("session_id", account.session.as_str())
        .with("checkpoint_type", kind)
        .with("status", status)
        .with("protocol", PROTOCOL_VERSION)
        .known("imported", account.imported.as_deref());
    fields.into()
}

/// Subject of the session: the direction of its conversation, else the agent's declared purpose.
fn subject(account: &SessionAccount) -> Option<&str> {
    account.arc.as_deref().or(account.intent.as_deref())
}

fn session_state(account: &SessionAccount) -> Value {
    let phase = if account.ended {
        "ended"
    } else if account.held.is_empty() {
        "working"
    } else {
        "waiting_for_an_operator"
    };
    let waits = account.held.first().map(|held| {
        let (gate, what) = (as_code(&held.gate), held.waits.description());
        format!("gate {gate} waits for an operator: {what}")
    });
    let fields = JsonFields::default()
        .with("phase", phase)
        .with(
            "blocking_issue",
            waits.map_or(Value::Bool(false), Value::String),
        )
        .known("next_major_step", account.next.first().cloned());
    fields.into()
}

fn position(account: &SessionAccount) -> Value {
    let stage = match account.active.first() {
        _ if account.ended => "ended".to_owned(),
        Some(active) => format!("working on {active}"),
        None => "in progress".to_owned(),
    };
    let fields = JsonFields::default()
        .with("stage", stage)
        .known("subject", subject(account))
        .known("last_major_activity", account.last_activity.clone());
    fields.into()
}

/// Question to the operator at the first gate. If nothing is held, no question is known to be critical.
fn question(account: &SessionAccount) -> Value {
    let Some(held) = account.held.first() else {
        return Value::Null;
    };
    let questions = match held.asked.as_slice() {
        [] => String::new(),
        asked => format!(": {}", asked.join("; ")),
    };
    json!({
        "question": held.waits.question(&account.agent),
        "type": "approval",
        "blocking": format!("waiting at gate {} until an operator answers{questions}", as_code(&held.gate)),
    })
}

fn journey(account: &SessionAccount) -> Value {
    let pivots = account.pivots.iter();
    let pivots = pivots
        .map(|(from, to, insight)| json!({"from": from, "to": to, "insight": insight}))
        .collect::<Vec<_>>();
    let fields = JsonFields::default()
        .known("start_topic", account.intent.clone())
        .known("key_pivots", pivots);
    fields.into()
}

fn decisions(account: &SessionAccount) -> Value {
    let remembered = account.decisions.iter();
    let remembered = remembered.map(|decision| json!({"decision": decision, "source": "memento"}));
    let decided = account.decided.iter().map(|decision| {
        let what = match decision.action.as_str() {
            "" => "session".to_owned(),
            action => as_code(action),
        };
        let by = decision.by.as_deref();
        let rationale = decision.reason.as_deref().map(|reason| match by {
            Some(by) => format!("{by}: {reason}"),
            None => reason.to_owned(),
        });
        let fields = JsonFields::default()
            .with(
                "decision",
                format!("{what} {} ({})", decision.outcome, decision.gate),
            )
            .known("rationale", rationale)
            .known("decided_by", by)
            .with("status", decision.outcome.as_str())
            .with("source", "record");
        fields.into()
    });
    remembered.chain(decided).collect()
}

fn open_questions(account: &SessionAccount) -> Value {
    let questions = account.held.iter().flat_map(|held| {
        let gate = as_code(&held.gate);
        let asked = held.asked.iter();
        asked.map(
            move |question| json!({"question": format!("{gate}: {question}"), "type": "approval"}),
        )
    });
    questions.collect()
}

fn artifact(account: &SessionAccount) -> Value {
    let sections = account.events.iter();
    let sections: Vec<_> = sections
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    json!({
        "id": account.session,
        "title": format!("TRACE of session {}", account.session),
        "type": "trace",
        "status": if account.ended { "closed" } else { "growing" },
        "retrieve_for": ["the events, their order and the decisions"],
        "key_sections": sections,
    })
}

fn person(account: &SessionAccount) -> Value {
    let goals = JsonFields::default()
        .known("primary", account.intent.as_deref())
        .known("key_needs", account.active.clone());
    JsonFields::default().known("goals", goals).into()
}

fn next_steps(account: &SessionAccount) -> Value {
    let gates = account.held.iter().map(|held| {
        json!({
            "step": format!("wait for an operator at gate {}", as_code(&held.gate)),
            "priority": 1,
            "type": "approval",
            "purpose": format!("{} is held at this gate", held.waits.description()),
        })
    });
    let next = account.next.iter().chain(&account.active);
    let next = next.map(|step| json!({"step": step}));
    gates.chain(next).collect()
}

fn deferred(account: &SessionAccount) -> Value {
    let parked = account.parked.iter();
    parked.map(|item| json!({"item": item})).collect()
}

fn conversation_state(account: &SessionAccount) -> Value {
    let frozen = account.frozen.as_ref();
    if frozen.is_none() && account.held_back_count == 0 {
        return Value::Null;
    }
    let fields = JsonFields::default()
        .with("frozen", frozen.is_some())
        .known("frozen_since", frozen.map(|freeze| freeze.since.clone()))
        .known("until", frozen.and_then(|freeze| freeze.until.clone()))
        .with("held_back_count", account.held_back_count)
        .known("held_back", account.held_back.clone());
    fields.into()
}

fn metrics(account: &SessionAccount) -> Value {
    let events: u64 = account.events.iter().map(|(_, count)| count).sum();
    let blocked = account
        .events
        .iter()
        .find(|(name, _)| name == "action_blocked");
    let of = |outcome: &str| {
        let decided = account.decided.iter();
        decided
            .filter(|decision| decision.outcome == outcome)
            .count()
    };
    let fields = JsonFields::default()
        .with("events", events)
        .with("passed", of("passed"))
        .with("denied", of("denied"))
        .with("blocked", blocked.map_or(0, |(_, count)| *count))
        .with("held", account.held.len())
        .known("atlases", account.atlases.clone())
        .known("contexts_given", account.contexts.clone());
    fields.into()
}
