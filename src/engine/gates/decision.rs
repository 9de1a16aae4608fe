//! Decisions of operators: judged answers, passed gates, refused requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::atlas::document::RiskTier;
use crate::base::canonical_json::canonical;
use crate::base::digest::Digest;
use crate::base::id::HeldRequestId;
use crate::base::limits::MAX_ANSWER_CHARS;
use crate::trace::event::CheckpointResponse;

use super::agent_answers::agents_recordable;
use super::answer_validation::{JudgedAnswers, UnansweredTreatment, judge_gates};
use super::approval::{self, Approver};
use super::dual_approval::{approve_or_pass, refuse_held};
use super::held::{Gate, GateOrigin, Held, HeldSubject};
use super::intervals::restart_intervals;
use super::invalid_answers::{record_wrong_confirmation, reject_invalid_answers};
use super::operator_actions::store_overruled;
use super::passing::pass_gates;
use super::settlement::{
    RequestEnding, end_held, expire_held, held_position, record_outcome, release_request,
    remove_held,
};
use crate::engine::command::{
    AnswerProblem, DecisionRefusal, DecisionRequest, DenyCode, HeldOutcome, Injected,
    InvalidAnswers, OperatorReply, ReplyId, Ruling, SettledRequest, StateKind,
};
use crate::engine::evaluation;
use crate::engine::gates::permits::override_key;
use crate::engine::gates::queue::HeldEntry;
use crate::engine::injection::withholding::{apply_effects, deliver_withheld, inject_withheld};
use crate::engine::pipeline::StageResult;
use crate::engine::records::redaction::redact_problems;
use crate::engine::requests::events::{reply_accepted_with, resume_parked};
use crate::engine::sessions::lifecycle::add_pending_injections;
use crate::engine::sessions::session::StartState;
use crate::engine::transaction::{SpanPosition, Transaction};

/// The operator or agent that decides, and the method.
#[derive(Clone, Copy)]
pub(crate) struct Decider<'b> {
    pub(crate) name: &'b str,
    pub(crate) method: &'b str,
    /// The justification, if no question asked for it.
    pub(crate) justification: Option<&'b str>,
    /// The first approver, where two operators must approve.
    pub(crate) first_approver: Option<&'b str>,
    pub(crate) side: DeciderSide,
}

impl<'b> Decider<'b> {
    pub(crate) fn approver(self) -> Approver<'b> {
        Approver {
            name: self.name,
            method: self.method,
            justification: self.justification,
            first_approver: self.first_approver,
        }
    }
}

/// The side that decides: the operator, or the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeciderSide {
    Operator,
    Agent,
}

/// Outcome of a request whose answers broke rules.
pub(crate) enum InvalidAnswerOutcome {
    /// The request is still held.
    StillHeld(InvalidAnswers),
    /// The request is refused.
    Refused(SettledRequest),
}

pub(crate) fn decide_held(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    decide: &DecisionRequest,
) -> StageResult {
    // A deadline that has passed counts, even if its wake-up arrives after this decision.
    expire_held(tx, &decide.gate);
    let Some(entry) = tx.engine.state.held.get(&decide.gate) else {
        refuse_decision(tx, reply_id, &decide.gate);
        return Ok(());
    };
    let held = Arc::clone(&entry.held);
    if held.request_hash != decide.request_hash || held.atlas_hash != decide.atlas_hash {
        tx.reply_to_operator(
            reply_id,
            OperatorReply::Refused(DecisionRefusal::RequestChanged),
        );
        return Ok(());
    }
    let why: Option<String> = decide
        .justification
        .as_ref()
        .map(|why| why.trim().chars().take(MAX_ANSWER_CHARS).collect());
    let by = Decider {
        name: &decide.operator,
        method: &decide.method,
        justification: why.as_deref().filter(|why| !why.is_empty()),
        first_approver: held.first_approval().map(|first| first.by.as_str()),
        side: DeciderSide::Operator,
    };
    match &decide.ruling {
        Ruling::Deny { reason } => deny_held(tx, reply_id, &held, &decide.operator, reason),
        Ruling::Pass { answers } => {
            if held.atlas_hash == tx.engine.atlas_hash {
                judge_and_pass(tx, reply_id, &held, by, answers)?;
            } else {
                tx.reply_to_operator(
                    reply_id,
                    OperatorReply::Refused(DecisionRefusal::AtlasChanged),
                );
            }
        }
        Ruling::Invalid { answers } => reject_invalid_answers(tx, reply_id, &held, by, answers),
        Ruling::WrongConfirmation {
            wanted,
            typed_text: typed,
        } => {
            record_wrong_confirmation(tx, &held, by, *wanted, typed);
            tx.reply_to_operator(reply_id, OperatorReply::Acted);
        }
    }
    Ok(())
}

fn refuse_decision(tx: &mut Transaction<'_>, reply_id: ReplyId, gate: &HeldRequestId) {
    let settled = tx
        .engine
        .state
        .recent_outcomes
        .iter()
        .find(|decided| decided.gate == *gate);
    let refused = settled.map_or_else(
        || DecisionRefusal::NotHeld(gate.clone()),
        |decided| DecisionRefusal::AlreadySettled(Box::new((**decided).clone())),
    );
    tx.reply_to_operator(reply_id, OperatorReply::Refused(refused));
}

fn deny_held(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    held: &Held,
    operator: &str,
    reason: &str,
) {
    let trimmed = reason.trim();
    if trimmed.is_empty() && held.tier() > RiskTier::Low {
        tx.reply_to_operator(
            reply_id,
            OperatorReply::Refused(DecisionRefusal::ReasonMissing),
        );
        return;
    }
    let trimmed: String = trimmed.chars().take(MAX_ANSWER_CHARS).collect();
    let reason = if trimmed.is_empty() {
        format!("denied by {operator}")
    } else {
        format!("denied by {operator}: {trimmed}")
    };
    let decided = end_held(
        tx,
        held,
        RequestEnding {
            outcome: HeldOutcome::Denied,
            by: Some(operator.to_owned()),
            code: DenyCode::Refused,
            reason,
        },
    );
    tx.reply_to_operator(reply_id, OperatorReply::Decided(decided));
}

fn judge_and_pass(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    held: &Held,
    by: Decider<'_>,
    answers: &[BTreeMap<String, Value>],
) -> StageResult {
    if let Some(refused) = approval::bars(held, by.name) {
        tx.reply_to_operator(reply_id, OperatorReply::Refused(refused));
        return Ok(());
    }
    let judged = judge_gates(tx, held, UnansweredTreatment::Judged, |index, _| {
        answers.get(index)
    })
    .require_validators()?;
    record_responses(tx, held, &judged, by);
    if let Some(wrong) = apply_invalid_answers(tx, held, by, &judged) {
        let reply = match wrong {
            InvalidAnswerOutcome::StillHeld(invalid) => OperatorReply::Invalid(invalid),
            InvalidAnswerOutcome::Refused(decided) => OperatorReply::Decided(decided),
        };
        tx.reply_to_operator(reply_id, reply);
        return Ok(());
    }
    let reply = approve_or_pass(tx, held, by, &judged);
    tx.reply_to_operator(reply_id, reply);
    Ok(())
}

/// Passes a request whose gates are all answered, unless another rule refuses it by now.
pub(crate) fn pass_or_refuse(
    tx: &mut Transaction<'_>,
    held: &Held,
    by: Decider<'_>,
    judged: &JudgedAnswers,
) -> SettledRequest {
    let Some((code, reason)) = current_denial(tx, held) else {
        return pass_held(tx, held, by, judged);
    };
    refuse_held(tx, held, code, reason)
}

/// Returns the denial that applies to a request although its gates were passed, because its session
/// changed meanwhile.
pub(crate) fn current_denial(tx: &Transaction<'_>, held: &Held) -> Option<(DenyCode, String)> {
    let HeldSubject::Action(call) = &held.subject else {
        return None;
    };
    let Some(session) = tx.engine.state.sessions.get(&held.session) else {
        let reason = format!("session `{}` does not exist", held.session);
        return Some((DenyCode::Session, reason));
    };
    let overridden = overruled_denials(held);
    let denial = evaluation::evaluate_action(evaluation::EvaluationCase {
        overridden: &overridden,
        ..tx.evaluation_case(session, call)
    })
    .denial?;
    Some((denial.denied.code, denial.denied.reason))
}

/// Applies the consequence of answers that break rules, if any do.
pub(crate) fn apply_invalid_answers(
    tx: &mut Transaction<'_>,
    held: &Held,
    by: Decider<'_>,
    judged: &JudgedAnswers,
) -> Option<InvalidAnswerOutcome> {
    if !judged.block.is_empty() {
        return Some(InvalidAnswerOutcome::Refused(refuse_for_answers(
            tx,
            held,
            by,
            &judged.block,
        )));
    }
    (!judged.retry.is_empty()).then(|| retry_or_refuse(tx, held, by, judged.retry.clone()))
}

/// Keeps a request held whose answers broke rules, or refuses it after too many attempts.
fn retry_or_refuse(
    tx: &mut Transaction<'_>,
    held: &Held,
    by: Decider<'_>,
    problems: Vec<AnswerProblem>,
) -> InvalidAnswerOutcome {
    let mut held = held.clone();
    // Failed attempts of an agent must not use up the attempts of the operator.
    let attempts = match by.side {
        DeciderSide::Operator => &mut held.invalid_attempts,
        DeciderSide::Agent => &mut held.agent_attempts,
    };
    *attempts = attempts.saturating_add(1);
    let attempts = *attempts;
    let spent = problems.iter().any(|problem| {
        let question = held.gates.get(problem.gate).and_then(|gate| {
            gate.questions
                .iter()
                .find(|question| question.id() == problem.question)
        });
        let most = question.and_then(crate::atlas::model::CompiledQuestion::max_retries);
        most.is_some_and(|most| attempts > most)
    });
    if spent {
        return InvalidAnswerOutcome::Refused(refuse_for_answers(tx, &held, by, &problems));
    }
    let held = Arc::new(held);
    if let Some(entry) = tx.state().held.replace(Arc::clone(&held)).cloned() {
        tx.persist(StateKind::Held, held.id.as_str(), Some(&entry));
    }
    let held = Box::new((*held).clone());
    InvalidAnswerOutcome::StillHeld(InvalidAnswers { held, problems })
}

/// Refuses a request whose answers broke rules.
fn refuse_for_answers(
    tx: &mut Transaction<'_>,
    held: &Held,
    by: Decider<'_>,
    wrong: &[AnswerProblem],
) -> SettledRequest {
    let problems: Vec<_> = wrong
        .iter()
        .map(|problem| format!("`{}`: {}", problem.question, problem.rules.join(", ")))
        .collect();
    end_held(
        tx,
        held,
        RequestEnding {
            outcome: HeldOutcome::Denied,
            by: Some(by.name.to_owned()),
            code: DenyCode::InvalidAnswer,
            reason: format!("an answer is not valid: {}", problems.join("; ")),
        },
    )
}

/// Records the answers that were just given.
pub(crate) fn record_responses(
    tx: &mut Transaction<'_>,
    held: &Held,
    judged: &JudgedAnswers,
    by: Decider<'_>,
) {
    let position = held_position(tx, held);
    for (gate, judged) in held.gates.iter().zip(&judged.gates) {
        let Some(judged) = judged else { continue };
        let (answers, left_out) = match by.side {
            DeciderSide::Operator => (recordable(tx, gate, &judged.answers), Vec::new()),
            DeciderSide::Agent => agents_recordable(tx, held, gate, &judged.answers),
        };
        let (problems, mut redacted) = redact_problems(tx, held, &judged.problems);
        redacted.extend(left_out);
        let record = CheckpointResponse {
            redacted,
            ..approval::response_record(gate, answers, problems, by.approver())
        };
        tx.record_below(&position.child(gate.span_id.clone()), record);
    }
}

/// Returns the answers as they are recorded: a sensitive answer only as a salted hash.
pub(crate) fn recordable(
    tx: &mut Transaction<'_>,
    gate: &Gate,
    answers: &Map<String, Value>,
) -> Map<String, Value> {
    let mut kept = answers.clone();
    for question in gate
        .questions
        .iter()
        .filter(|question| question.sensitive())
    {
        if let Some(answer) = kept.get_mut(question.id()) {
            let salt = tx.engine.ids.next().simple().to_string();
            let text = canonical(answer);
            let digest = Digest::of_parts([salt.as_bytes(), text.as_bytes()]);
            *answer = Value::from(format!("sha256:{salt}:{digest}"));
        }
    }
    kept
}

/// Passes a held request: applies effects, writes records, releases the request.
fn pass_held(
    tx: &mut Transaction<'_>,
    held: &Held,
    by: Decider<'_>,
    judged: &JudgedAnswers,
) -> SettledRequest {
    let position = held_position(tx, held);
    let entry = remove_held(tx, &held.id);
    open_session(tx, held);
    restart_intervals(tx, held);
    let mut injected = entry
        .as_ref()
        .map(|w| w.injected.clone())
        .unwrap_or_default();
    injected.warnings.extend(judged.warnings.iter().cloned());
    let locks = combined_locks(held, entry.as_ref());
    injected.extend(pass_gates(tx, held, &position, &locks, (judged, by)));
    let (advice, withheld) = entry
        .as_ref()
        .map(|entry| (entry.advice.clone(), entry.withheld.clone()))
        .unwrap_or_default();
    injected.extend(inject_withheld(tx, &position, withheld));
    for advice in advice {
        let (atlas_id, from) = (&advice.atlas_id, &advice.checkpoint_id);
        apply_effects(tx, &position, atlas_id, from, &advice.effects);
    }
    let detail = pass_detail(held, judged, by);
    store_overruled(tx, held, by.name);
    let decided = record_outcome(
        tx,
        held,
        HeldOutcome::Passed,
        Some(by.name.to_owned()),
        detail,
    );
    release_subject(tx, held, &position, by, entry, injected);
    decided
}

/// Lets the subject of a passed request go on: the session acts, the event is accepted, the action runs.
fn release_subject(
    tx: &mut Transaction<'_>,
    held: &Held,
    position: &SpanPosition,
    by: Decider<'_>,
    entry: Option<HeldEntry>,
    injected: Injected,
) {
    match &held.subject {
        HeldSubject::SessionStart => {
            add_pending_injections(tx, &held.session, injected);
            deliver_withheld(tx, &held.session);
            resume_parked(tx, &held.session);
        }
        HeldSubject::Moment(moment) => {
            let (reply_id, modified) = entry
                .map(|entry| (entry.reply_ids.last().copied(), entry.modified_input))
                .unwrap_or_default();
            let error = moment.event.clone();
            add_pending_injections(tx, &held.session, injected);
            deliver_withheld(tx, &held.session);
            reply_accepted_with(
                tx,
                reply_id,
                &held.session,
                Injected::default(),
                modified,
                error,
            );
            resume_parked(tx, &held.session);
        }
        HeldSubject::Action(call) => {
            let reply_ids = entry.map(|entry| entry.reply_ids).unwrap_or_default();
            let approved_by = match by.side {
                DeciderSide::Operator => Some(by.name.to_owned()),
                DeciderSide::Agent => None,
            };
            release_request(tx, held, position, call, injected, (reply_ids, approved_by));
        }
    }
}

/// Removes a passed gate from its session. Injections of the gate then wait only for the session's other
/// gates.
fn open_session(tx: &mut Transaction<'_>, held: &Held) {
    if let Some(session) = tx.state().sessions.get_mut(&held.session) {
        match held.subject {
            HeldSubject::SessionStart => session.entry = StartState::Open,
            HeldSubject::Moment(_) => drop(session.pending.remove(&held.id)),
            HeldSubject::Action(_) => {}
        }
    }
    tx.mark_changed(&held.session);
}

/// Returns the justification for passing a request.
pub(crate) fn pass_text(held: &Held, judged: &JudgedAnswers, why: Option<&str>) -> Option<String> {
    let answers = |at: usize| Some(&judged.gates.get(at)?.as_ref()?.answers);
    approval::approval_text(held, answers, why).map(str::to_owned)
}

/// Returns the recorded detail of a passed request: the justification, both approvers, and warnings.
fn pass_detail(held: &Held, judged: &JudgedAnswers, by: Decider<'_>) -> String {
    let words = pass_text(held, judged, by.justification);
    let words = words.unwrap_or_else(|| format!("{} answered", held.gates.len()));
    let detail = match by.first_approver {
        Some(first) => format!("with {first}: {words}"),
        None => words,
    };
    if judged.warnings.is_empty() {
        return detail;
    }
    format!("{detail} (WARNING: {})", judged.warnings.join("; "))
}

/// Returns the capabilities that checkpoints of the same request lock. A lock beats an unlock there.
fn combined_locks(held: &Held, entry: Option<&HeldEntry>) -> BTreeSet<String> {
    let gates = held.gates.iter().map(|gate| &gate.effects);
    let advice = entry.into_iter().flat_map(|entry| &entry.advice);
    let all = gates.chain(advice.map(|advice| &advice.effects));
    all.flat_map(|effects| effects.lock.iter().cloned())
        .collect()
}

/// Returns the denials that passing a held request overrules.
pub(crate) fn overruled_denials(held: &Held) -> BTreeSet<String> {
    let origins = held.gates.iter().map(|gate| &gate.origin);
    let overrides = origins.filter_map(|origin| match origin {
        GateOrigin::Override {
            atlas_id,
            policy_id,
            ..
        } => Some(override_key(atlas_id, policy_id)),
        GateOrigin::Checkpoint { .. } | GateOrigin::Approval { .. } => None,
    });
    overrides.collect()
}
