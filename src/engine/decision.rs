//! Decisions of operators: judged answers, passed gates, refused requests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::atlas::document::RiskTier;
use crate::base::canonical_json::canonical;
use crate::base::digest::Digest;
use crate::base::id::GateId;
use crate::base::limits::MAX_ANSWER_CHARS;
use crate::trace::event::CheckpointResponse;

use super::HeldEntry;
use super::answer_validation::{JudgedAnswers, UnansweredTreatment, judge_gates};
use super::approval::{self, Approver};
use super::attempt::override_key;
use super::command::{
    AnswerProblem, CallerId, DecisionRefusal, DecisionRequest, DenyCode, HeldOutcome, Injected,
    InvalidAnswers, Reply, Ruling, SettledRequest, StateKind,
};
use super::evaluation;
use super::held::{Gate, GateOrigin, Held, HeldSubject};
use super::session::StartState;
use super::settlement::RequestEnding;
use super::transaction::Transaction;

/// The operator or agent that decides, and the method.
#[derive(Clone, Copy)]
pub(super) struct Decider<'b> {
    pub(super) name: &'b str,
    pub(super) method: &'b str,
    /// The justification, if no question asked for it.
    pub(super) justification: Option<&'b str>,
    /// The first approver, where two operators must approve.
    pub(super) first_approver: Option<&'b str>,
    pub(super) side: DeciderSide,
}

impl<'b> Decider<'b> {
    pub(super) fn approver(self) -> Approver<'b> {
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
pub(super) enum DeciderSide {
    Operator,
    Agent,
}

/// Outcome of a request whose answers broke rules.
pub(super) enum InvalidAnswerOutcome {
    /// The request is still held.
    StillHeld(InvalidAnswers),
    /// The request is refused.
    Refused(SettledRequest),
}

impl Transaction<'_> {
    pub(super) fn decide(&mut self, ask: CallerId, decide: &DecisionRequest) {
        // A deadline that has passed counts, even if its wake-up arrives after this decision.
        self.deadline_reached(&decide.gate);
        let Some(waiting) = self.engine.state.held.get(&decide.gate) else {
            self.refuse_decision(ask, &decide.gate);
            return;
        };
        let held = Arc::clone(&waiting.held);
        if held.request_hash != decide.request_hash || held.atlas_hash != decide.atlas_hash {
            self.reply(ask, Reply::Refused(DecisionRefusal::RequestChanged));
            return;
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
            Ruling::Deny { reason } => self.deny_held(ask, &held, &decide.operator, reason),
            Ruling::Pass { answers } => {
                if held.atlas_hash == self.engine.atlas_hash {
                    self.judge_and_pass(ask, &held, by, answers);
                } else {
                    self.reply(ask, Reply::Refused(DecisionRefusal::AtlasChanged));
                }
            }
            Ruling::Invalid { answers } => self.reject_invalid_answers(ask, &held, by, answers),
            Ruling::WrongConfirmation {
                wanted,
                typed_text: typed,
            } => {
                self.record_wrong_confirmation(&held, by, *wanted, typed);
                self.reply(ask, Reply::Acted);
            }
        }
    }

    fn refuse_decision(&mut self, ask: CallerId, gate: &GateId) {
        let settled = self
            .engine
            .state
            .recent_outcomes
            .iter()
            .find(|decided| decided.gate == *gate);
        let refused = settled.map_or_else(
            || DecisionRefusal::NotHeld(gate.clone()),
            |decided| DecisionRefusal::AlreadySettled(Box::new((**decided).clone())),
        );
        self.reply(ask, Reply::Refused(refused));
    }

    fn deny_held(&mut self, ask: CallerId, held: &Held, operator: &str, reason: &str) {
        let given = reason.trim();
        if given.is_empty() && held.tier() > RiskTier::Low {
            self.reply(ask, Reply::Refused(DecisionRefusal::ReasonMissing));
            return;
        }
        let given: String = given.chars().take(MAX_ANSWER_CHARS).collect();
        let reason = if given.is_empty() {
            format!("denied by {operator}")
        } else {
            format!("denied by {operator}: {given}")
        };
        let decided = self.end_held(
            held,
            RequestEnding {
                outcome: HeldOutcome::Denied,
                by: Some(operator.to_owned()),
                code: DenyCode::Refused,
                reason,
            },
        );
        self.reply(ask, Reply::Decided(decided));
    }

    fn judge_and_pass(
        &mut self,
        ask: CallerId,
        held: &Held,
        by: Decider<'_>,
        answers: &[BTreeMap<String, Value>],
    ) {
        if let Some(refused) = approval::bars(held, by.name) {
            self.reply(ask, Reply::Refused(refused));
            return;
        }
        let judged = judge_gates(self, held, UnansweredTreatment::Judged, |index, _| {
            answers.get(index)
        });
        self.record_responses(held, &judged, by);
        if let Some(wrong) = self.apply_invalid_answers(held, by, &judged) {
            let reply = match wrong {
                InvalidAnswerOutcome::StillHeld(invalid) => Reply::Invalid(invalid),
                InvalidAnswerOutcome::Refused(decided) => Reply::Decided(decided),
            };
            self.reply(ask, reply);
            return;
        }
        let reply = self.approve_or_pass(held, by, &judged);
        self.reply(ask, reply);
    }

    /// Passes a request whose gates are all answered, unless another rule refuses it by now.
    pub(super) fn pass_or_refuse(
        &mut self,
        held: &Held,
        by: Decider<'_>,
        judged: &JudgedAnswers,
    ) -> SettledRequest {
        let Some((code, reason)) = self.current_denial(held) else {
            return self.pass_held(held, by, judged);
        };
        self.refuse_held(held, code, reason)
    }

    /// Returns the denial that applies to a request although its gates were passed, because its session
    /// changed meanwhile.
    pub(super) fn current_denial(&self, held: &Held) -> Option<(DenyCode, String)> {
        let HeldSubject::Action(call) = &held.subject else {
            return None;
        };
        let Some(session) = self.engine.state.sessions.get(&held.session) else {
            let reason = format!("session `{}` does not exist", held.session);
            return Some((DenyCode::Session, reason));
        };
        let overridden = overruled_denials(held);
        let denial = evaluation::evaluate_action(evaluation::EvaluationCase {
            overridden: &overridden,
            ..self.evaluation_case(session, call)
        })
        .denial?;
        Some((denial.denied.code, denial.denied.reason))
    }

    /// Applies the consequence of answers that break rules, if any do.
    pub(super) fn apply_invalid_answers(
        &mut self,
        held: &Held,
        by: Decider<'_>,
        judged: &JudgedAnswers,
    ) -> Option<InvalidAnswerOutcome> {
        if !judged.block.is_empty() {
            return Some(InvalidAnswerOutcome::Refused(self.refuse_for_answers(
                held,
                by,
                &judged.block,
            )));
        }
        (!judged.retry.is_empty()).then(|| self.retry_or_refuse(held, by, judged.retry.clone()))
    }

    /// Keeps a request held whose answers broke rules, or refuses it after too many attempts.
    fn retry_or_refuse(
        &mut self,
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
            return InvalidAnswerOutcome::Refused(self.refuse_for_answers(&held, by, &problems));
        }
        let held = Arc::new(held);
        if let Some(waiting) = self.state().held.replace(Arc::clone(&held)).cloned() {
            self.persist(StateKind::Held, held.id.as_str(), Some(&waiting));
        }
        let held = Box::new((*held).clone());
        InvalidAnswerOutcome::StillHeld(InvalidAnswers { held, problems })
    }

    /// Refuses a request whose answers broke rules.
    fn refuse_for_answers(
        &mut self,
        held: &Held,
        by: Decider<'_>,
        wrong: &[AnswerProblem],
    ) -> SettledRequest {
        let told: Vec<_> = wrong
            .iter()
            .map(|problem| format!("`{}`: {}", problem.question, problem.rules.join(", ")))
            .collect();
        self.end_held(
            held,
            RequestEnding {
                outcome: HeldOutcome::Denied,
                by: Some(by.name.to_owned()),
                code: DenyCode::InvalidAnswer,
                reason: format!("an answer is not valid: {}", told.join("; ")),
            },
        )
    }

    /// Records the answers that were just given.
    pub(super) fn record_responses(
        &mut self,
        held: &Held,
        judged: &JudgedAnswers,
        by: Decider<'_>,
    ) {
        let place = self.held_position(held);
        for (gate, judged) in held.gates.iter().zip(&judged.gates) {
            let Some(judged) = judged else { continue };
            let (answers, left_out) = match by.side {
                DeciderSide::Operator => (self.recordable(gate, &judged.answers), Vec::new()),
                DeciderSide::Agent => self.agents_recordable(held, gate, &judged.answers),
            };
            let (problems, mut redacted) = self.redact_problems(held, &judged.problems);
            redacted.extend(left_out);
            let record = CheckpointResponse {
                redacted,
                ..approval::response_record(gate, answers, problems, by.approver())
            };
            self.record_below(&place.child(gate.span_id.clone()), record);
        }
    }

    /// Returns the answers as they are recorded: a sensitive answer only as a salted hash.
    pub(super) fn recordable(
        &mut self,
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
                let salt = self.engine.ids.next().simple().to_string();
                let text = canonical(answer);
                let digest = Digest::of_parts([salt.as_bytes(), text.as_bytes()]);
                *answer = Value::from(format!("sha256:{salt}:{digest}"));
            }
        }
        kept
    }

    /// Passes a held request: applies effects, writes records, releases the request.
    fn pass_held(
        &mut self,
        held: &Held,
        by: Decider<'_>,
        judged: &JudgedAnswers,
    ) -> SettledRequest {
        let place = self.held_position(held);
        let waiting = self.remove_held(&held.id);
        self.open_session(held);
        self.restart_intervals(held);
        let mut given = waiting
            .as_ref()
            .map(|w| w.given.clone())
            .unwrap_or_default();
        given.warnings.extend(judged.warnings.iter().cloned());
        let locks = combined_locks(held, waiting.as_ref());
        given.extend(self.pass_gates(held, &place, &locks, (judged, by)));
        let (advice, withheld) = waiting
            .as_ref()
            .map(|waiting| (waiting.advice.clone(), waiting.withheld.clone()))
            .unwrap_or_default();
        given.extend(self.inject_withheld(&place, withheld));
        for advice in advice {
            let (atlas_id, from) = (&advice.atlas_id, &advice.checkpoint_id);
            self.apply_effects(&place, atlas_id, from, &advice.effects);
        }
        let words = pass_text(held, judged, by.justification);
        let words = words.unwrap_or_else(|| format!("{} answered", held.gates.len()));
        let mut detail = match by.first_approver {
            Some(first) => format!("with {first}: {words}"),
            None => words,
        };
        if !judged.warnings.is_empty() {
            detail = format!("{detail} (WARNING: {})", judged.warnings.join("; "));
        }
        self.store_overruled(held, by.name);
        let decided =
            self.record_outcome(held, HeldOutcome::Passed, Some(by.name.to_owned()), detail);
        match &held.subject {
            HeldSubject::SessionStart => {
                self.add_pending_injections(&held.session, given);
                self.deliver_withheld(&held.session);
                self.resume_parked(&held.session);
            }
            HeldSubject::Moment(moment) => {
                let (asker, modified) = waiting
                    .map(|waiting| (waiting.askers.last().copied(), waiting.modified_input))
                    .unwrap_or_default();
                let error = moment.event.clone();
                self.add_pending_injections(&held.session, given);
                self.deliver_withheld(&held.session);
                self.reply_accepted_with(
                    asker,
                    &held.session,
                    Injected::default(),
                    modified,
                    error,
                );
                self.resume_parked(&held.session);
            }
            HeldSubject::Action(call) => {
                let askers = waiting.map(|waiting| waiting.askers).unwrap_or_default();
                let approved_by = match by.side {
                    DeciderSide::Operator => Some(by.name.to_owned()),
                    DeciderSide::Agent => None,
                };
                self.release_request(held, &place, call, given, (askers, approved_by));
            }
        }
        decided
    }

    /// Removes a passed gate from its session. Injections of the gate then wait only for the session's other
    /// gates.
    fn open_session(&mut self, held: &Held) {
        if let Some(session) = self.state().sessions.get_mut(&held.session) {
            match held.subject {
                HeldSubject::SessionStart => session.entry = StartState::Open,
                HeldSubject::Moment(_) => drop(session.pending.remove(&held.id)),
                HeldSubject::Action(_) => {}
            }
        }
        self.mark_changed(&held.session);
    }
}

/// Returns the justification for passing a request.
pub(super) fn pass_text(held: &Held, judged: &JudgedAnswers, why: Option<&str>) -> Option<String> {
    let answers = |at: usize| Some(&judged.gates.get(at)?.as_ref()?.answers);
    approval::approval_text(held, answers, why).map(str::to_owned)
}

/// Returns the capabilities that checkpoints of the same request lock. A lock beats an unlock there.
fn combined_locks(held: &Held, waiting: Option<&HeldEntry>) -> BTreeSet<String> {
    let gates = held.gates.iter().map(|gate| &gate.effects);
    let advice = waiting.into_iter().flat_map(|waiting| &waiting.advice);
    let all = gates.chain(advice.map(|advice| &advice.effects));
    all.flat_map(|effects| effects.lock.iter().cloned())
        .collect()
}

/// Returns the denials that passing a held request overrules.
pub(super) fn overruled_denials(held: &Held) -> BTreeSet<String> {
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
