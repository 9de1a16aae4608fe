//! Answers of agents to gates that their steward lets them answer. An agent never approves.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::atlas::document::Respondent;
use crate::trace::event::{CheckpointResponse, Durability, Redaction};

use super::answer::judge_answer;
use super::answer_validation::{UnansweredTreatment, judge_gates};
use super::approval::{self, Approver};
use super::command::{
    AcceptedEvent, AgentAnswer, AgentGate, AgentQuestions, CallerId, DenialReply, DenyCode,
    Injected, ReleaseTo, Reply, StateKind,
};
use super::decision::{Decider, DeciderSide, InvalidAnswerOutcome};
use super::gate::SESSION_START;
use super::held::{Gate, Held, HeldSubject};
use super::misuse::Misuse;
use super::redacted_records::scrubbed;
use super::session::StartState;
use super::settlement::denied;
use super::suspension::{ExtensionAnswers, RequiredCall};
use super::transaction::Transaction;

/// Method that marks an agent's answers in the record.
const AGENT_METHOD: &str = "agent";

impl Transaction<'_> {
    /// Handles an agent's answers to the gates that it may answer. All other gates stay.
    pub(super) fn answer(&mut self, ask: CallerId, answer: &AgentAnswer) {
        self.deadline_reached(&answer.gate);
        let held = match self.answerable(answer) {
            Ok(held) => held,
            Err(refusal) => {
                self.record_refused_answers(answer, &refusal);
                self.deny(ask, refusal.code, refusal.reason);
                return;
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
        let judged = judge_gates(self, &held, UnansweredTreatment::LeftOpen, own);
        self.record_responses(&held, &judged, by);
        if let Some(wrong) = self.apply_invalid_answers(&held, by, &judged) {
            let reply = match wrong {
                InvalidAnswerOutcome::StillHeld(invalid) => Reply::Invalid(invalid),
                InvalidAnswerOutcome::Refused(over) => {
                    denied(&held, DenyCode::InvalidAnswer, &over.detail)
                }
            };
            self.reply(ask, reply);
            return;
        }
        let mut held = (*held).clone();
        let warnings = judged.warnings.clone();
        self.add_pending_injections(
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
                let (kept, _) = self.agents_recordable(&held, &gate, &judged.answers);
                held.answered.insert(index, kept);
            }
        }
        self.store_answers(ask, held, by, answer.release);
    }

    /// Returns the held request that an agent wants to answer, if it may.
    fn answerable(&self, answer: &AgentAnswer) -> Result<Arc<Held>, AnswerRefusal> {
        let waiting = self.engine.state.held.get(&answer.gate);
        let waiting = waiting.filter(|waiting| waiting.held.session == answer.session);
        let Some(waiting) = waiting else {
            let reason = format!("`{}` is not held for this session", answer.gate);
            return Err(AnswerRefusal::bad(reason));
        };
        let held = &waiting.held;
        if held.atlas_hash != self.engine.atlas_hash {
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
        if let Some(gate) = self.blocking_gate(held) {
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
    fn record_refused_answers(&mut self, answer: &AgentAnswer, refusal: &AnswerRefusal) {
        let Some(waiting) = self.engine.state.held.get(&answer.gate) else {
            return;
        };
        let held = Arc::clone(&waiting.held);
        if held.session != answer.session {
            let what = format!("the agent answered gate `{}` of another session", held.id);
            self.record_misuse(&answer.session, Misuse::Gate, what);
            return;
        }
        let by = Approver {
            name: &format!("agent {}", held.agent),
            method: AGENT_METHOD,
            justification: None,
            first_approver: None,
        };
        let place = self.held_position(&held);
        for at in &refusal.gates {
            let Some(gate) = held.gates.get(*at) else {
                continue;
            };
            let given = answers_for(gate, answer).cloned().unwrap_or_default();
            let answers = gate.questions.iter().filter_map(|question| {
                let raw = given.get(question.id())?;
                let answer = judge_answer(question, raw).recorded_answer(raw)?;
                Some((question.id().to_owned(), answer))
            });
            let (answers, redacted) = self.agents_recordable(&held, gate, &answers.collect());
            let problems = vec![refusal.reason.clone()];
            let record = CheckpointResponse {
                redacted,
                ..approval::response_record(gate, answers, problems, by)
            };
            let here = place.child(gate.span_id.clone());
            let span = self.new_span();
            self.record_as(&here.child(span), record, Durability::Sync);
        }
    }

    /// Answers of an agent as the record and the state may have them: without secrets.
    pub(super) fn agents_recordable(
        &mut self,
        held: &Held,
        gate: &Gate,
        answers: &Map<String, Value>,
    ) -> (Map<String, Value>, Vec<Redaction>) {
        let kept = self.recordable(gate, answers);
        let call = match &held.subject {
            HeldSubject::Action(call) => Some(call),
            HeldSubject::SessionStart | HeldSubject::Moment(_) => None,
        };
        scrubbed(self.redactor(call), "answers", &kept)
    }

    /// The first gate that has to be passed before a held request. The start gate comes before everything. Gates
    /// of moments come before actions, and one before the other: those that need an operator first, then the oldest.
    pub(super) fn blocking_gate(&self, held: &Held) -> Option<String> {
        let session = match held.subject {
            HeldSubject::Action(_) | HeldSubject::Moment(_) => self.live_session(&held.session)?,
            HeldSubject::SessionStart => return None,
        };
        let owed = session.unpassed.iter();
        let owed = owed.flat_map(|unpassed| unpassed.checkpoints.iter().cloned());
        let others = session.pending.iter().filter(|gate| **gate != held.id);
        let others = others.filter_map(|gate| self.engine.state.held.get(gate));
        let earlier = others.filter(|other| match held.subject {
            HeldSubject::Moment(_) => gate_sort_key(&other.held) < gate_sort_key(held),
            HeldSubject::Action(_) | HeldSubject::SessionStart => true,
        });
        let pending = earlier.map(|other| other.held.id.to_string());
        let entry = match &session.entry {
            StartState::Open => None,
            StartState::Held(gate) => Some(gate.to_string()),
            StartState::Lapsed { .. } | StartState::Refused { .. } => {
                Some(SESSION_START.to_owned())
            }
        };
        entry.into_iter().chain(pending).chain(owed).next()
    }

    /// Stores an agent's answers, and passes the request when no gate is open. If the agent left gates open,
    /// it is asked for them.
    fn store_answers(&mut self, ask: CallerId, held: Held, by: Decider<'_>, release: ReleaseTo) {
        let rest = self.agent_questions(&held);
        let complete = held.answered.len() == held.gates.len();
        let repeats =
            release == ReleaseTo::Repeat && matches!(held.subject, HeldSubject::Action(_));
        let waits = !repeats
            && matches!(
                held.subject,
                HeldSubject::Action(_) | HeldSubject::Moment(_)
            );
        let held = Arc::new(held);
        let queue = &mut self.state().held;
        if waits && rest.is_none() {
            queue.add_asker(&held.id, ask);
        }
        let Some(waiting) = queue.replace(Arc::clone(&held)).cloned() else {
            return;
        };
        self.persist(StateKind::Held, held.id.as_str(), Some(&waiting));
        if let Some(rest) = rest {
            self.reply(ask, Reply::Asked(rest));
            return;
        }
        let refused = if complete && repeats {
            self.current_denial(&held)
        } else {
            None
        };
        if complete {
            let judged = judge_gates(self, &held, UnansweredTreatment::LeftOpen, |_, _| None);
            self.pass_or_refuse(&held, by, &judged);
        }
        if let Some((code, reason)) = refused {
            self.reply(ask, denied(&held, code, &reason));
        } else if repeats {
            let permit = self.engine.state.permits.of_gate(&held.id);
            let accepted = AcceptedEvent {
                permit_until: permit.map(|permit| permit.expires_at),
                needs_operator: !complete,
                ..AcceptedEvent::default()
            };
            self.reply(ask, Reply::Accepted(accepted));
        } else if !waits {
            self.reply_accepted(Some(ask), &held.session, Injected::default());
        }
    }

    /// Returns the questions and guidance for the agent, if it may answer some gates of a held request.
    ///
    /// Behind another gate there are none.
    pub(super) fn agent_questions(&self, held: &Held) -> Option<AgentQuestions> {
        let gates: Vec<_> = open_gates(held)
            .map(|(_, gate)| AgentGate {
                atlas_id: gate.origin.atlas_id().to_owned(),
                checkpoint_id: gate.origin.id().to_owned(),
                questions: gate.questions.clone(),
                guidance: gate.guidance.clone(),
            })
            .collect();
        if gates.is_empty() || self.blocking_gate(held).is_some() {
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
    pub(super) fn later_questions_denial(&self, held: &Held) -> Option<DenialReply> {
        open_gates(held).next()?;
        let before = self.blocking_gate(held)?;
        let gate = &held.id;
        Some(DenialReply {
            code: DenyCode::InvalidAnswer,
            reason: format!(
                "this session must pass `{before}` first; then the agent answers `{gate}`"
            ),
            help: Some(format!(
                "request an action: the request waits until `{before}` is passed; then answer `{gate}`"
            )),
            gate: Some(gate.clone()),
        })
    }

    /// Returns the extension calls that validate an agent's answers.
    pub(super) fn calls_for_answer(
        &self,
        answer: &AgentAnswer,
        answers: &ExtensionAnswers,
    ) -> Vec<RequiredCall> {
        let Ok(held) = self.answerable(answer) else {
            return Vec::new();
        };
        let own = own_answers(&held, answer);
        self.validator_calls(&held, answers, own)
    }
}

/// Returns the gates that the agent may answer and has not answered.
fn open_gates(held: &Held) -> impl Iterator<Item = (usize, &Gate)> {
    let gates = held.gates.iter().enumerate();
    gates.filter(|(index, gate)| is_agent_gate(gate) && !held.answered.contains_key(index))
}

/// Returns whether the agent may answer, or has answered, some gates of a held request.
pub(super) fn is_for_agent(held: &Held) -> bool {
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
pub(super) type ByQuestion = BTreeMap<String, serde_json::Value>;
