//! Answers of agents to gates that their steward lets them answer. An agent never approves.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::atlas::document::Respondent;
use crate::trace::event::{CheckpointResponse, Durability, Redaction};

use super::answer::judge_answer;
use super::answer_validation::{UnansweredTreatment, judge_gates};
use super::approval::{self, Approver};
use super::decision::{
    Decider, DeciderSide, InvalidAnswerOutcome, apply_invalid_answers, current_denial,
    pass_or_refuse, record_responses, recordable,
};
use super::held::{Gate, Held, HeldSubject};
use super::holding::SESSION_START;
use super::settlement::{denied, expire_held, held_position};
use crate::engine::admission::misuse::{Misuse, record_misuse};
use crate::engine::command::{
    AcceptedEvent, AgentAnswer, AgentGate, AgentQuestions, AgentReply, DenialReply, DenyCode,
    Injected, ReleaseTo, ReplyId, StateKind,
};
use crate::engine::pipeline::StageResult;
use crate::engine::records::redaction::{new_redactor, redact_object};
use crate::engine::requests::events::reply_accepted;
use crate::engine::sessions::lifecycle::add_pending_injections;
use crate::engine::sessions::session::StartState;
use crate::engine::transaction::Transaction;

/// Method that marks an agent's answers in the record.
const AGENT_METHOD: &str = "agent";

/// Handles an agent's answers to the gates that it may answer. All other gates stay.
pub(crate) fn answer_gates(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    answer: &AgentAnswer,
) -> StageResult {
    expire_held(tx, &answer.gate);
    let held = match answerable_request(tx, answer) {
        Ok(held) => held,
        Err(refusal) => {
            record_refused_answers(tx, answer, &refusal);
            tx.deny(reply_id, refusal.code, refusal.reason);
            return Ok(());
        }
    };
    let name = format!("agent {}", held.agent);
    let by = Decider {
        name: &name,
        method: AGENT_METHOD,
        justification: None,
        first_approver: None,
        side: DeciderSide::Agent,
    };
    let own = own_answers(&held, answer);
    let judged = judge_gates(tx, &held, UnansweredTreatment::LeftOpen, own).require_validators()?;
    record_responses(tx, &held, &judged, by);
    if let Some(wrong) = apply_invalid_answers(tx, &held, by, &judged) {
        let reply = match wrong {
            InvalidAnswerOutcome::StillHeld(invalid) => AgentReply::Invalid(invalid),
            InvalidAnswerOutcome::Refused(over) => {
                denied(&held, DenyCode::InvalidAnswer, &over.detail)
            }
        };
        tx.reply_to_agent(reply_id, reply);
        return Ok(());
    }
    let mut held = (*held).clone();
    let warnings = judged.warnings.clone();
    add_pending_injections(
        tx,
        &held.session,
        Injected {
            warnings,
            ..Injected::default()
        },
    );
    // An earlier approval was given before the agent answered, so it no longer counts.
    held.approval = None;
    for (index, gate) in judged.gates.iter().enumerate() {
        if let (Some(judged), Some(gate)) = (gate, held.gates.get(index).cloned()) {
            let (kept, _) = agents_recordable(tx, &held, &gate, &judged.answers);
            held.answered.insert(index, kept);
        }
    }
    store_answers(tx, reply_id, held, by, answer.release);
    Ok(())
}

/// Returns the held request that an agent wants to answer, if it may.
fn answerable_request(
    tx: &Transaction<'_>,
    answer: &AgentAnswer,
) -> Result<Arc<Held>, AnswerRefusal> {
    let entry = tx.engine.state.held.get(&answer.gate);
    let entry = entry.filter(|entry| entry.held.session == answer.session);
    let Some(entry) = entry else {
        let reason = format!("`{}` is not held for this session", answer.gate);
        return Err(AnswerRefusal::bad(reason));
    };
    let held = &entry.held;
    if held.atlas_hash != tx.engine.atlas_hash {
        return Err(AnswerRefusal {
            code: DenyCode::Changed,
            reason: "the Atlas changed since the question was asked; send the request again"
                .to_owned(),
            gates: Vec::new(),
        });
    }
    for name in answer.answers.keys() {
        check_name(held, name)?;
    }
    if let Some(gate) = blocking_gate(tx, held) {
        let reason = format!("this session must pass `{gate}` first; answer after that");
        return Err(AnswerRefusal::bad(reason));
    }
    if answer.answers.is_empty() {
        let reason = "answers are required, by checkpoint and question".to_owned();
        return Err(AnswerRefusal::bad(reason));
    }
    Ok(Arc::clone(held))
}

/// Records that an agent answered gates that it may not answer.
fn record_refused_answers(tx: &mut Transaction<'_>, answer: &AgentAnswer, refusal: &AnswerRefusal) {
    let Some(entry) = tx.engine.state.held.get(&answer.gate) else {
        return;
    };
    let held = Arc::clone(&entry.held);
    if held.session != answer.session {
        let what = format!("the agent answered gate `{}` of another session", held.id);
        record_misuse(tx, &answer.session, Misuse::Gate, what);
        return;
    }
    let by = Approver {
        name: &format!("agent {}", held.agent),
        method: AGENT_METHOD,
        justification: None,
        first_approver: None,
    };
    let position = held_position(tx, &held);
    for at in &refusal.gates {
        let Some(gate) = held.gates.get(*at) else {
            continue;
        };
        let gate_answers = answers_for(gate, answer).cloned().unwrap_or_default();
        let answers = gate.questions.iter().filter_map(|question| {
            let raw = gate_answers.get(question.id())?;
            let answer = judge_answer(question, raw).recorded_answer(raw)?;
            Some((question.id().to_owned(), answer))
        });
        let (answers, redacted) = agents_recordable(tx, &held, gate, &answers.collect());
        let problems = vec![refusal.reason.clone()];
        let record = CheckpointResponse {
            redacted,
            ..approval::response_record(gate, answers, problems, by)
        };
        let gate_position = position.child(gate.span_id.clone());
        let span = tx.new_span();
        tx.record_as(&gate_position.child(span), record, Durability::Sync);
    }
}

/// Answers of an agent as the record and the state may have them: without secrets.
pub(crate) fn agents_recordable(
    tx: &mut Transaction<'_>,
    held: &Held,
    gate: &Gate,
    answers: &Map<String, Value>,
) -> (Map<String, Value>, Vec<Redaction>) {
    let kept = recordable(tx, gate, answers);
    let call = match &held.subject {
        HeldSubject::Action(call) => Some(call),
        HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
    };
    redact_object(new_redactor(tx, call), "answers", &kept)
}

/// The first gate that has to be passed before a held request. The start gate comes before everything. Gates
/// of moments come before actions, and one before the other: those that need an operator first, then the oldest.
pub(crate) fn blocking_gate(tx: &Transaction<'_>, held: &Held) -> Option<String> {
    let session = match held.subject {
        HeldSubject::Action(_) | HeldSubject::Moment(_) => tx.live_session(&held.session)?,
        HeldSubject::SessionStart => return None,
    };
    let owed = session.unpassed.iter();
    let owed = owed.flat_map(|unpassed| unpassed.checkpoints.iter().cloned());
    let others = session.pending.iter().filter(|gate| **gate != held.id);
    let others = others.filter_map(|gate| tx.engine.state.held.get(gate));
    let earlier = others.filter(|other| match held.subject {
        HeldSubject::Moment(_) => gate_sort_key(&other.held) < gate_sort_key(held),
        HeldSubject::Action(_) | HeldSubject::SessionStart => true,
    });
    let pending = earlier.map(|other| other.held.id.to_string());
    let entry = match &session.entry {
        StartState::Open => None,
        StartState::Held(gate) => Some(gate.to_string()),
        StartState::Lapsed { .. } | StartState::Refused { .. } => Some(SESSION_START.to_owned()),
    };
    entry.into_iter().chain(pending).chain(owed).next()
}

/// Stores an agent's answers, and passes the request when no gate is open. If the agent left gates open,
/// it is asked for them.
fn store_answers(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    held: Held,
    by: Decider<'_>,
    release: ReleaseTo,
) {
    let rest = agent_questions(tx, &held);
    let complete = held.answered.len() == held.gates.len();
    let repeats = release == ReleaseTo::Repeat && matches!(held.subject, HeldSubject::Action(_));
    let waits = !repeats
        && matches!(
            held.subject,
            HeldSubject::Action(_) | HeldSubject::Moment(_)
        );
    let held = Arc::new(held);
    let queue = &mut tx.state().held;
    if waits && rest.is_none() {
        queue.add_reply(&held.id, reply_id);
    }
    let Some(entry) = queue.replace(Arc::clone(&held)).cloned() else {
        return;
    };
    tx.persist(StateKind::Held, held.id.as_str(), Some(&entry));
    if let Some(rest) = rest {
        tx.reply_to_agent(reply_id, AgentReply::Asked(rest));
        return;
    }
    let refused = if complete && repeats {
        current_denial(tx, &held)
    } else {
        None
    };
    if complete {
        let judged = judge_gates(tx, &held, UnansweredTreatment::LeftOpen, |_, _| None);
        pass_or_refuse(tx, &held, by, &judged);
    }
    if let Some((code, reason)) = refused {
        tx.reply_to_agent(reply_id, denied(&held, code, &reason));
    } else if repeats {
        let permit = tx.engine.state.permits.of_held(&held.id);
        let accepted = AcceptedEvent {
            permit_until: permit.map(|permit| permit.expires_at),
            needs_operator: !complete,
            ..AcceptedEvent::default()
        };
        tx.reply_to_agent(reply_id, AgentReply::Accepted(accepted));
    } else if !waits {
        reply_accepted(tx, Some(reply_id), &held.session, Injected::default());
    }
}

/// Returns the questions and guidance for the agent, if it may answer some gates of a held request.
///
/// Behind another gate there are none.
pub(crate) fn agent_questions(tx: &Transaction<'_>, held: &Held) -> Option<AgentQuestions> {
    let gates: Vec<_> = open_gates(held)
        .map(|(_, gate)| AgentGate {
            atlas_id: gate.origin.atlas_id().to_owned(),
            checkpoint_id: gate.origin.id().to_owned(),
            questions: gate.questions.clone(),
            guidance: gate.guidance.clone(),
        })
        .collect();
    if gates.is_empty() || blocking_gate(tx, held).is_some() {
        return None;
    }
    Some(AgentQuestions {
        gate: held.id.clone(),
        gates,
        deadline: held.deadline,
        operator: needs_operator(held),
    })
}

/// Returns the denial for an agent that has to answer a held request, but only after another gate.
pub(crate) fn later_questions_denial(tx: &Transaction<'_>, held: &Held) -> Option<DenialReply> {
    open_gates(held).next()?;
    let before = blocking_gate(tx, held)?;
    let gate = &held.id;
    Some(DenialReply {
        code: DenyCode::InvalidAnswer,
        reason: format!("this session must pass `{before}` first; then the agent answers `{gate}`"),
        help: Some(format!(
            "request an action: the request waits until `{before}` is passed; then answer `{gate}`"
        )),
        gate: Some(gate.clone()),
    })
}

/// Returns the gates that the agent may answer and has not answered.
fn open_gates(held: &Held) -> impl Iterator<Item = (usize, &Gate)> {
    let gates = held.gates.iter().enumerate();
    gates.filter(|(index, gate)| is_agent_gate(gate) && !held.answered.contains_key(index))
}

/// Returns whether the agent may answer, or has answered, some gates of a held request.
pub(crate) fn is_for_agent(held: &Held) -> bool {
    held.gates.iter().any(is_agent_gate)
}

fn is_agent_gate(gate: &Gate) -> bool {
    let agents = match gate.respondent {
        Respondent::Operator => false,
        Respondent::Agent | Respondent::Either => true,
    };
    // Where two operators are required, an agent cannot replace one of them.
    agents && gate.approvers.is_one()
}

/// Returns an agent's answers to the gates that it may answer.
///
/// A gate with the same name that belongs to the operator, a policy or another Atlas is not among them.
fn own_answers<'a>(
    held: &Held,
    answer: &'a AgentAnswer,
) -> impl Fn(usize, &Gate) -> Option<&'a ByQuestion> {
    let open = open_gates(held).map(|(index, gate)| (index, answers_for(gate, answer)));
    let open: BTreeMap<_, _> = open.collect();
    move |index, _| open.get(&index).copied().flatten()
}

/// Returns an agent's answers to a gate, under its full name or its short name.
fn answers_for<'a>(gate: &Gate, answer: &'a AgentAnswer) -> Option<&'a ByQuestion> {
    let full = answer.answers.get(&gate.origin.full_name());
    full.or_else(|| answer.answers.get(gate.origin.id()))
}

/// Checks that a name in an agent's answers denotes exactly one gate that the agent may answer: one answer
/// never passes two gates.
fn check_name(held: &Held, name: &str) -> Result<(), AnswerRefusal> {
    let is_named = |gate: &Gate| gate.origin.id() == name || gate.origin.full_name() == name;
    let open: Vec<_> = open_gates(held)
        .filter(|(_, gate)| is_named(gate))
        .collect();
    let shown = crate::base::text::one_line(name);
    let (reason, gates) = match open.as_slice() {
        [_] => return Ok(()),
        [] => {
            let gates = held.gates.iter().enumerate();
            let gates = gates.filter(|(_, gate)| is_named(gate)).map(|(at, _)| at);
            let reason = format!("the agent may not answer `{shown}` here");
            (reason, gates.collect())
        }
        several => {
            let full = several.iter().map(|(_, gate)| gate.origin.full_name());
            let full: Vec<_> = full.map(|name| format!("`{name}`")).collect();
            let full = full.join(" and ");
            let reason = format!("`{shown}` names several gates here; use the full names {full}");
            (reason, Vec::new())
        }
    };
    Err(AnswerRefusal {
        gates,
        ..AnswerRefusal::bad(reason)
    })
}

/// Reason why an agent's answers are rejected.
struct AnswerRefusal {
    code: DenyCode,
    reason: String,
    /// Indexes of the answered gates that the agent may not answer.
    gates: Vec<usize>,
}

impl AnswerRefusal {
    fn bad(reason: String) -> Self {
        Self {
            code: DenyCode::BadRequest,
            reason,
            gates: Vec::new(),
        }
    }
}

/// Returns whether an operator has to answer some gates of a held request.
fn needs_operator(held: &Held) -> bool {
    open_gates(held).count() + held.answered.len() < held.gates.len()
}

/// Returns the sort key of a held request among the gates of its session.
fn gate_sort_key(held: &Held) -> (bool, usize, &str) {
    let id = held.id.as_str();
    // Numbers have no leading zeros: the longer one is the larger one.
    (!needs_operator(held), id.len(), id)
}

/// Answers by question.
pub(crate) type ByQuestion = BTreeMap<String, serde_json::Value>;
