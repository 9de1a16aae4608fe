//! The other way: a session as a snapshot file, for whoever takes it up.

use serde_json::{Value, json};

use super::glossary::{COMPATIBLE_WITH, PROTOCOL_VERSION};

/// What is known of a session.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// The session.
    pub session: String,
    /// Its agent.
    pub agent: String,
    /// What it says it is for.
    pub intent: Option<String>,
    /// When this is written.
    pub written_at: String,
    /// Whether it has ended.
    pub ended: bool,
    /// The Atlases it is held to.
    pub atlases: Vec<String>,
    /// Where the conversation is going, if a memento says so.
    pub arc: Option<String>,
    /// What is worked on.
    pub active: Vec<String>,
    /// What is left for later.
    pub parked: Vec<String>,
    /// What was decided in the conversation.
    pub decisions: Vec<String>,
    /// What comes next.
    pub next: Vec<String>,
    /// Changes of direction: from, to, and what led to it.
    pub pivots: Vec<(String, String, String)>,
    /// What waits for an operator.
    pub held: Vec<AccountHeld>,
    /// What operators decided, in their order.
    pub decided: Vec<AccountDecision>,
    /// What the agent was told to mind.
    pub guidance: Vec<String>,
    /// What happened last.
    pub last_activity: Option<String>,
    /// Events on record, by type.
    pub events: Vec<(String, u64)>,
}

/// A gate at which something waits for an operator.
#[derive(Clone, Debug, Default)]
pub struct AccountHeld {
    /// The gate.
    pub gate: String,
    /// What waits there.
    pub waits: Waits,
    /// What is asked.
    pub asked: Vec<String>,
}

/// What waits at a gate.
#[derive(Clone, Debug, Default)]
pub enum Waits {
    /// The session, before it begins.
    #[default]
    Start,
    /// An action, by its name.
    Action(String),
    /// The session, where something happened in it.
    Session(String),
}

impl Waits {
    /// What it is.
    fn words(&self) -> String {
        match self {
            Self::Start => "the start of the session".to_owned(),
            Self::Action(action) => action.clone(),
            Self::Session(at) => format!("the session ({at})"),
        }
    }

    /// What the operator is asked.
    fn question(&self, agent: &str) -> String {
        match self {
            Self::Start => format!("May {agent} begin?"),
            Self::Action(action) => format!("May {agent} run {action}?"),
            Self::Session(at) => format!("May {agent} go on ({at})?"),
        }
    }
}

/// Something that an operator decided.
#[derive(Clone, Debug, Default)]
pub struct AccountDecision {
    /// The gate.
    pub gate: String,
    /// About which action.
    pub action: String,
    /// `passed`, `denied`, `expired` and so on.
    pub outcome: String,
    /// Who.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// The snapshot file of a session. Reconstructed from, it leaves nothing unclear.
#[must_use]
pub fn written(account: &Account) -> Value {
    json!({
        "checkpoint_metadata": {
            "version": COMPATIBLE_WITH,
            "format": "structured",
            "created_at": account.written_at,
            "session_id": account.session,
            "checkpoint_type": if account.ended { "completion" } else { "transition" },
            "status": if account.ended { "complete" } else { "active" },
            "protocol": PROTOCOL_VERSION,
        },
        "session_state": session_state(account),
        "current_position": position(account),
        "critical_question": question(account),
        "intellectual_journey": journey(account),
        "decisions_made": decisions(account),
        "open_questions": open_questions(account),
        "artifacts_created": [artifact(account)],
        "user_profile": person(account),
        "key_insights": insights(account),
        "next_steps": next_steps(account),
        "deferred_items": deferred(account),
        "conversation_dynamics": {"what_works": account.guidance},
        "session_metrics": metrics(account),
    })
}

fn goal(account: &Account) -> &str {
    let goal = account.arc.as_deref().or(account.intent.as_deref());
    goal.unwrap_or("what the session was started for")
}

fn waits(account: &Account) -> Option<String> {
    let held = account.held.first()?;
    let (gate, what) = (&held.gate, held.waits.words());
    Some(format!("{gate} waits for an operator: {what}"))
}

/// How far it is, by what is decided and what is still open: nobody says it.
fn completion(account: &Account) -> usize {
    if account.ended {
        return 100;
    }
    let done = account.decisions.len();
    let open = account.active.len() + account.next.len() + account.held.len();
    (done * 100).checked_div(done + open).unwrap_or(0)
}

fn session_state(account: &Account) -> Value {
    let phase = if account.ended {
        "completed"
    } else if account.held.is_empty() {
        "working"
    } else {
        "waiting_for_an_operator"
    };
    let next = account.next.first().or(account.active.first());
    json!({
        "phase": phase,
        "completion_percentage": completion(account),
        "blocking_issue": waits(account).map_or(Value::Bool(false), Value::String),
        "next_major_step": next,
    })
}

fn position(account: &Account) -> Value {
    let stage = match account.active.first() {
        Some(active) => format!("working on {active}"),
        None if account.ended => "ended".to_owned(),
        None => "under way".to_owned(),
    };
    let momentum = if account.ended {
        "completed"
    } else if account.held.is_empty() {
        "implementing"
    } else {
        "waiting"
    };
    json!({
        "stage": stage,
        "last_major_activity": account.last_activity,
        "momentum": momentum,
        "readiness_for_implementation": account.held.is_empty(),
    })
}

fn question(account: &Account) -> Value {
    let note = "written from the record, not by the agent";
    let Some(held) = account.held.first() else {
        return json!({
            "question": format!("What comes next for: {}?", goal(account)),
            "type": "direction",
            "priority": "medium",
            "blocking": false,
            "user_framing": account.intent,
            "my_confidence": "medium",
            "confidence_note": note,
        });
    };
    json!({
        "question": held.waits.question(&account.agent),
        "type": "approval",
        "priority": "critical",
        "blocking": format!(
            "{} is held until an operator answers: {}",
            held.gate,
            held.asked.join("; ")
        ),
        "user_framing": account.intent,
        "my_confidence": "medium",
        "confidence_note": note,
    })
}

fn journey(account: &Account) -> Value {
    let topic = account.intent.as_deref().unwrap_or(goal(account));
    let mut pivots: Vec<_> = account
        .pivots
        .iter()
        .map(|(from, to, insight)| json!({"from": from, "to": to, "insight": insight}))
        .collect();
    if pivots.is_empty() {
        let started = format!("{} started", account.agent);
        pivots.push(json!({"from": started, "to": goal(account), "insight": topic}));
    }
    json!({"start_topic": topic, "key_pivots": pivots})
}

fn decisions(account: &Account) -> Value {
    let said = account.decisions.iter().map(|decision| {
        json!({
            "decision": decision,
            "confidence": "high",
            "rationale": "it stands in the memento of the conversation",
        })
    });
    let decided = account.decided.iter().map(|it| {
        let by = it.by.as_deref().unwrap_or("nobody");
        let reason = it.reason.as_deref().unwrap_or("no reason was given");
        json!({
            "decision": format!("{} {} ({})", it.action, it.outcome, it.gate),
            "confidence": "high",
            "rationale": format!("{by}: {reason}"),
            "status": it.outcome,
        })
    });
    let mut all: Vec<_> = said.chain(decided).collect();
    if all.is_empty() {
        all.push(json!({
            "decision": "nothing was decided yet",
            "confidence": "low",
            "rationale": "the record has no decision",
        }));
    }
    Value::Array(all)
}

fn open_questions(account: &Account) -> Value {
    let asked = account.held.iter().flat_map(|held| {
        let gate = &held.gate;
        held.asked.iter().map(move |question| {
            json!({"question": format!("{gate}: {question}"), "priority": "high", "type": "approval"})
        })
    });
    asked.collect()
}

fn artifact(account: &Account) -> Value {
    let sections = account.events.iter();
    let sections: Vec<_> = sections
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    json!({
        "id": account.session,
        "title": format!("TRACE of the session {}", account.session),
        "type": "trace",
        "status": if account.ended { "complete" } else { "growing" },
        "retrieve_for": ["what happened, in which order, and who decided"],
        "key_sections": sections,
    })
}

fn person(account: &Account) -> Value {
    json!({
        "goals": {"primary": goal(account), "key_needs": account.active},
        "approach": {
            "style": "governed",
            "preference": "gates are passed by people",
            "values": account.atlases.iter().map(|it| format!("the rules of {it}")).collect::<Vec<_>>(),
        },
        "communication_calibration": {
            "preferred_depth": "as much as a decision needs",
            "appreciates": ["reasons before actions"],
            "comfortable_with": "waiting for an answer",
            "collaboration_mode": "supervised",
        },
    })
}

fn insights(account: &Account) -> Value {
    let refused = account.decided.iter().filter(|it| it.outcome != "passed");
    let refused = refused.map(|it| {
        let reason = it.reason.as_deref().unwrap_or("no reason was given");
        json!({
            "insight": format!("{} was {}: {reason}", it.action, it.outcome),
            "importance": "high",
        })
    });
    refused.collect()
}

fn next_steps(account: &Account) -> Value {
    let gates = account.held.iter().map(|held| {
        json!({
            "step": format!("wait for the answer at {}", held.gate),
            "priority": 1,
            "type": "approval",
            "purpose": format!("{} is held there", held.waits.words()),
        })
    });
    let rank = |place: usize| {
        if place == 0 && account.held.is_empty() {
            1
        } else {
            2
        }
    };
    let next = account.next.iter().chain(&account.active).enumerate();
    let next =
        next.map(|(place, step)| json!({"step": step, "priority": rank(place), "type": "work"}));
    let mut all: Vec<_> = gates.chain(next).collect();
    if all.is_empty() {
        all.push(json!({
            "step": "ask what to do next",
            "priority": 1,
            "type": "direction",
            "purpose": "the record names no next step",
        }));
    }
    Value::Array(all)
}

fn deferred(account: &Account) -> Value {
    let parked = account.parked.iter();
    parked
        .map(
            |item| json!({"item": item, "reason": "parked", "defer_until": "it is taken up again"}),
        )
        .collect()
}

fn metrics(account: &Account) -> Value {
    let events: u64 = account.events.iter().map(|(_, count)| count).sum();
    let of = |outcome: &str| {
        account
            .decided
            .iter()
            .filter(|it| it.outcome == outcome)
            .count()
    };
    json!({
        "events": events,
        "passed": of("passed"),
        "denied": of("denied"),
        "held": account.held.len(),
    })
}
