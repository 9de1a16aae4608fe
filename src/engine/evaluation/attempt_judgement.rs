//! Judgement of an attempt: the evaluation of its action, with the permit and the answers of extensions that
//! count for it.

use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::trace::event::{PolicyChecked, PolicyOutcome as Verdict};

use super::fired_checkpoint::{OwnedFiredCheckpoint, OwnedRequiredApproval};
use super::{Evaluation, EvaluationCase, evaluate_action};
use crate::engine::command::ActionRequest;
use crate::engine::extensions::required_calls::{
    CallSubject, HandledCheckpoints, require_handler_answers, require_trigger_answers,
};
use crate::engine::gates::held::ActionCall;
use crate::engine::gates::identical_requests::IdentifiedRequest;
use crate::engine::gates::intervals::add_due_intervals;
use crate::engine::gates::permits::{permitted_overrides, valid_permit};
use crate::engine::injection::delivery::contexts_in_use;
use crate::engine::pipeline::{StageExit, StageResult};
use crate::engine::records::action_records::atlas_ref;
use crate::engine::transaction::Transaction;

/// An evaluation that owns its data.
pub(crate) struct JudgedAttempt {
    pub(crate) checked: PolicyChecked,
    pub(crate) denial: Option<crate::engine::evaluation::denial::Denial>,
    pub(crate) fired: Vec<OwnedFiredCheckpoint>,
    pub(crate) approvals: Vec<OwnedRequiredApproval>,
    /// True when a permit overrules a denial of the attempt.
    pub(crate) overruled: bool,
}

/// A judged request, with the answers of the handlers of its checkpoints.
pub(crate) struct JudgedRequest {
    pub(crate) request: IdentifiedRequest,
    pub(crate) attempt: JudgedAttempt,
    /// Checkpoints that fire, with due intervals. A denied request has no answers of handlers.
    pub(crate) handled: HandledCheckpoints,
}

/// Judges a request whose session may act. Fails with the extension calls that are missing.
pub(crate) fn judge_request(
    tx: &Transaction<'_>,
    request: &ActionRequest,
    identified: IdentifiedRequest,
) -> StageResult<JudgedRequest> {
    let call = &identified.call;
    let session_state = tx.live_session(&request.session);
    let judged = judge_call(tx, &request.session, call, identified.hash);
    let (Some(session), Some(mut attempt)) = (session_state, judged) else {
        return Err(StageExit::Finished);
    };
    let subject = CallSubject {
        action: Some(call),
        ..CallSubject::of_session(session)
    };
    require_trigger_answers(tx, &attempt.fired, subject)?;
    let fired = add_due_intervals(tx, &request.session, std::mem::take(&mut attempt.fired));
    let handled = if attempt.denial.is_none() {
        require_handler_answers(tx, fired, subject)?
    } else {
        HandledCheckpoints {
            fired,
            ..HandledCheckpoints::default()
        }
    };
    Ok(JudgedRequest {
        request: identified,
        attempt,
        handled,
    })
}

/// Judges an action of a session, with the permit that is valid for it.
pub(crate) fn judge_call(
    tx: &Transaction<'_>,
    session: &SessionId,
    call: &ActionCall,
    hash: Digest,
) -> Option<JudgedAttempt> {
    let session_state = tx.live_session(session)?;
    let overridden = permitted_overrides(tx, hash);
    let found = evaluate_action(EvaluationCase {
        overridden: &overridden,
        ..tx.evaluation_case(session_state, call)
    });
    let mut checked = policy_record(tx, session, call, &found);
    let denial = found.denial;
    let fired: Vec<OwnedFiredCheckpoint> = found.fired.into_iter().map(Into::into).collect();
    let approvals: Vec<OwnedRequiredApproval> =
        found.approvals.into_iter().map(Into::into).collect();
    let overruled = !overridden.is_empty();
    let gated =
        overruled || !approvals.is_empty() || fired.iter().any(OwnedFiredCheckpoint::is_gate);
    let permit = valid_permit(tx, hash).filter(|_| gated && denial.is_none());
    match permit {
        Some(permit) if permit.opens(&fired, &approvals) => {
            checked.permit = Some(permit.gate.to_string());
            checked.approved_by.clone_from(&permit.approved_by);
        }
        // The overruled denial is asked about again, together with the gates that stand there now.
        Some(_) if overruled => checked.decision = Verdict::RequireApproval,
        Some(_) | None => {}
    }
    Some(JudgedAttempt {
        checked,
        denial,
        fired,
        approvals,
        overruled,
    })
}

fn policy_record(
    tx: &Transaction<'_>,
    session: &SessionId,
    call: &ActionCall,
    found: &Evaluation<'_>,
) -> PolicyChecked {
    let policy = &found.policy;
    PolicyChecked {
        policy_id: policy.policy_id.clone().into_owned(),
        action_type: call.action.clone(),
        decision: policy.decision,
        conditions_evaluated: policy.looked_at,
        matching_rule: policy.rule.map(str::to_owned),
        context_used: contexts_in_use(tx, session),
        permit: None,
        approved_by: None,
        judged_under: policy.atlas.map(atlas_ref).into_iter().collect(),
    }
}
