//! Invalid answers and wrong confirmations of operators: recorded, counted, and never a reason to pass.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::answer_validation::{UnansweredTreatment, judge_gates};
use super::approval;
use super::decision::{Decider, InvalidAnswerOutcome, apply_invalid_answers, record_responses};
use super::held::Held;
use super::settlement::held_position;
use crate::engine::command::{Confirmation, DecisionRefusal, OperatorReply, ReplyId};
use crate::engine::records::redaction::redact_problems;
use crate::engine::transaction::Transaction;

/// Maximum number of characters of a wrong confirmation that are recorded.
const MAX_TYPED_CHARS: usize = 120;

/// Handles answers that the console found to break rules.
pub(crate) fn reject_invalid_answers(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    held: &Held,
    by: Decider<'_>,
    answers: &[BTreeMap<String, Value>],
) {
    let refused = if held.atlas_hash == tx.engine.atlas_hash {
        approval::bars(held, by.name)
    } else {
        Some(DecisionRefusal::AtlasChanged)
    };
    if let Some(refused) = refused {
        tx.reply_to_operator(reply_id, OperatorReply::Refused(refused));
        return;
    }
    let judged = judge_gates(tx, held, UnansweredTreatment::Skipped, |at, _| {
        answers.get(at)
    });
    if judged.block.is_empty() && judged.retry.is_empty() {
        // The console showed other questions than these.
        tx.reply_to_operator(
            reply_id,
            OperatorReply::Refused(DecisionRefusal::RequestChanged),
        );
        return;
    }
    record_responses(tx, held, &judged, by);
    let reply = match apply_invalid_answers(tx, held, by, &judged) {
        Some(InvalidAnswerOutcome::StillHeld(invalid)) => OperatorReply::Invalid(invalid),
        Some(InvalidAnswerOutcome::Refused(decided)) => OperatorReply::Decided(decided),
        None => OperatorReply::Refused(DecisionRefusal::RequestChanged),
    };
    tx.reply_to_operator(reply_id, reply);
}

/// Records a wrong text where the operator had to confirm a decision.
pub(crate) fn record_wrong_confirmation(
    tx: &mut Transaction<'_>,
    held: &Held,
    by: Decider<'_>,
    wanted: Confirmation,
    typed: &str,
) {
    let typed: String = typed.trim().chars().take(MAX_TYPED_CHARS).collect();
    let typed = crate::base::text::one_line(&typed);
    let wanted = match wanted {
        Confirmation::RequestHash => "the first characters of the request hash",
        Confirmation::Action => "the name of the action",
        Confirmation::PassWord => "the word that passes the request",
        Confirmation::DenyWord => "the word that denies the request",
    };
    let problem = format!("confirmation: `{typed}` was typed instead of {wanted}");
    let gates = held.gates.iter().enumerate();
    let mut open = gates.filter(|(at, _)| !held.answered.contains_key(at));
    if let Some((_, gate)) = open.next() {
        let (problems, redacted) = redact_problems(tx, held, &[problem]);
        let mut record = approval::response_record(gate, Map::new(), problems, by.approver());
        record.redacted = redacted;
        let gate_position = held_position(tx, held).child(gate.span_id.clone());
        tx.record_below(&gate_position, record);
    }
}
