//! Stages of a command, in order.
//!
//! [`handle_command`] is the way of every command through the engine, and [`request_action`] the way of a
//! request to run an action. Each stage is a function in the folder of its concern.
//!
//! A request changes its type on the way: `ActionRequest` (as sent), `IdentifiedRequest` (with its digest and risk
//! tier), `JudgedRequest` (with the evaluation and the handlers' answers), `Attempt` (on record), and `Held` if it waits.
//!
//! Contract: a stage either goes on, or ends the command with a [`StageExit`]. A stage can be repeated: what it changed
//! before it asked extensions stays valid when the command is executed again with their answers.

use super::admission::access::deny_if_rate_limited;
use super::admission::misuse::record_due_misuse;
use super::admission::request_admission::admit_request;
use super::command::{ActionRequest, DeliveryTime, EngineCommand, HeldOutcome, ReplyId};
use super::evaluation::attempt_judgement::judge_request;
use super::extensions::consultation::answer_consultation;
use super::extensions::suspension::{
    RequiredCall, drop_suspended, execute_or_queue, handle_call_result,
};
use super::gates::agent_answers::answer_gates;
use super::gates::decision::decide_held;
use super::gates::identical_requests::identify_request;
use super::gates::operator_actions::{apply_operator_action, clear_acknowledged_fault};
use super::gates::session_gates::pass_session_gates;
use super::gates::settlement::{expire_held, withdraw_held};
use super::records::attempts::{abandon_attempt, record_attempt};
use super::requests::attempt::decide_attempt;
use super::requests::completion::complete_action;
use super::requests::context_request::request_context;
use super::requests::events::{receive_input, report_error};
use super::requests::report::{handle_report, record_finding};
use super::requests::resolution::resolve_actions;
use super::sessions::clock_step::move_clock;
use super::sessions::lifecycle::{end_session, start_session};
use super::transaction::Transaction;

/// Result of a stage.
pub(crate) type StageResult<T = ()> = Result<T, StageExit>;

/// Reason why a command goes through no further stage now.
pub(crate) enum StageExit {
    /// The caller has its reply, waits for it in a queue, or its command was executed anew.
    Finished,
    /// Extensions have to answer these calls first. Then the command is executed again.
    Suspended(Vec<RequiredCall>),
}

/// Handles one command.
pub(crate) fn handle_command(tx: &mut Transaction<'_>, command: EngineCommand) {
    record_due_misuse(tx, &command);
    if deny_if_rate_limited(tx, &command) {
        return;
    }
    // Calls `execute_command` below: at once, or after the commands of the session that wait for extensions.
    execute_or_queue(tx, command);
}

/// Executes a command with the answers of extensions so far.
pub(crate) fn execute_command(tx: &mut Transaction<'_>, command: &EngineCommand) -> StageResult {
    match command {
        EngineCommand::StartSession(reply_id, start) => return start_session(tx, *reply_id, start),
        EngineCommand::EndSession(reply_id, end) => return end_session(tx, *reply_id, end),
        EngineCommand::RequestAction(reply_id, request) => {
            return request_action(tx, *reply_id, request);
        }
        EngineCommand::CompleteAction(reply_id, completed) => {
            return complete_action(tx, *reply_id, completed);
        }
        EngineCommand::Input(reply_id, input) => return receive_input(tx, *reply_id, input),
        EngineCommand::ReportError(reply_id, report) => return report_error(tx, *reply_id, report),
        EngineCommand::RequestContext(reply_id, request) => {
            return request_context(tx, *reply_id, request);
        }
        EngineCommand::Answer(reply_id, answer) => return answer_gates(tx, *reply_id, answer),
        EngineCommand::Resolve(reply_id, resolve) => {
            return resolve_actions(tx, *reply_id, resolve);
        }
        EngineCommand::Decide(reply_id, decide) => return decide_held(tx, *reply_id, decide),
        EngineCommand::Report(reply_id, report) => handle_report(tx, *reply_id, report),
        EngineCommand::CallerDisconnected(reply_id) => drop_caller(tx, *reply_id),
        EngineCommand::Operate(reply_id, operate) => apply_operator_action(tx, *reply_id, operate),
        EngineCommand::RecordFinding(reply_id, session, finding) => {
            record_finding(tx, *reply_id, session, finding);
        }
        EngineCommand::RecordIntact => clear_acknowledged_fault(tx),
        EngineCommand::ClockMoved(step) => move_clock(tx, *step),
        EngineCommand::Consult(reply_id, consult) => answer_consultation(tx, *reply_id, consult),
        EngineCommand::DeadlineReached(gate) => expire_held(tx, gate),
        EngineCommand::ExtensionReturned(id, returned) => {
            handle_call_result(tx, *id, returned.clone());
        }
    }
    Ok(())
}

/// Handles a request to run an action, stage by stage.
///
/// 1. Admission: the session is live, the request is well-formed, the session has adopted the loaded Atlases.
/// 2. Gates of the whole session: its start gate, gates that are still required, due intervals that can block or
///    change rights. They come before every request, because their answers can change the session's rights.
/// 3. Identical requests: a repeated call joins its held request instead of running twice. A request whose denial
///    waits to be overruled is judged and denied again here.
/// 4. Evaluation: triggers, policies, limits and handlers. If answers of extensions are missing, the request is
///    suspended, and all stages run again when they are in. The evaluation that misses no answer decides.
/// 5. Record of the attempt and of the policies' verdict, before anything follows from them.
/// 6. Decision: the attempt is denied, held at its gates, or allowed to run, and the agent gets its reply.
fn request_action(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
) -> StageResult {
    if request.delivery == DeliveryTime::Later {
        let session = request.session.clone();
        tx.state().deferred_replies.insert(reply_id, session);
    }
    admit_request(tx, reply_id, request)?;
    pass_session_gates(tx, reply_id, request)?;
    let identified = identify_request(tx, reply_id, request)?;
    let judged = judge_request(tx, request, identified)?;
    let attempt = record_attempt(tx, reply_id, request, judged)?;
    decide_attempt(tx, reply_id, attempt);
    Ok(())
}

/// Drops the waiting commands and requests of a caller that is gone.
fn drop_caller(tx: &mut Transaction<'_>, reply_id: ReplyId) {
    drop_suspended(tx, reply_id);
    abandon_attempt(tx, reply_id);
    let state = tx.state();
    state.deferred_replies.remove(&reply_id);
    state.parked.remove_reply(reply_id);
    let entry = state.held.remove_reply(reply_id);
    let denied = entry.filter(|entry| entry.reply_ids.is_empty() && !entry.on_disconnect.is_kept());
    if let Some(gate) = denied.map(|entry| entry.held.id.clone()) {
        let reason = "the agent stopped waiting, so it was denied";
        withdraw_held(tx, &gate, HeldOutcome::Withdrawn, reason);
    }
}
