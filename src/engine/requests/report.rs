//! Reports of agents that are only recorded: wrappers, feedback, output, recoveries.

use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{MAX_NAME_LEN, MAX_REPORTED_NAMES, MAX_TEXT_BYTES};
use crate::trace::event::{
    ContextFeedback, ErrorRecovered, OutputProduced, Payload, WrapperConstructed, WrapperVerified,
};

use super::events::find_keywords;
use crate::engine::admission::access::deny_unknown_session;
use crate::engine::admission::misuse::{Misuse, record_misuse};
use crate::engine::command::{
    AgentReply, AgentReport, DenyCode, Feedback, OutputReport, Recovery, ReplyId, ReportReceipt,
    RuntimeFinding, Wrapper, WrapperCheck,
};
use crate::engine::injection::automatic_contexts::{
    InjectionCause, inject_automatic_contexts, selects_new_context,
};
use crate::engine::injection::contexts::record_keyword_request;
use crate::engine::injection::withholding::{refused_session_denial, take_pending_injections};
use crate::engine::records::redaction::{
    new_redactor, redact_optional_text, redact_text, redaction_list,
};
use crate::engine::sessions::lifecycle::{add_pending_injections, session_position};
use crate::engine::sessions::session::Session;
use crate::engine::transaction::{SpanPosition, Transaction};

/// Transports by which an agent can be reached.
const TRANSPORTS: [&str; 3] = ["mcp", "rest", "direct"];

pub(crate) fn handle_report(tx: &mut Transaction<'_>, reply_id: ReplyId, report: &AgentReport) {
    if tx.live_session(report.session()).is_none() {
        deny_unknown_session(tx, reply_id, report.session());
        return;
    }
    if let Some(fault) = fault(report) {
        tx.deny(reply_id, DenyCode::BadRequest, fault);
        return;
    }
    match report {
        AgentReport::Wrapper(wrapper) => record_wrapper(tx, reply_id, wrapper),
        AgentReport::WrapperCheck(check) => record_wrapper_check(tx, reply_id, check),
        AgentReport::Feedback(feedback) => record_feedback(tx, reply_id, feedback),
        AgentReport::Output(output) => record_output(tx, reply_id, output),
        AgentReport::Recovery(recovery) => record_recovery(tx, reply_id, recovery),
    }
}

/// Records a finding of the runtime about a session.
pub(crate) fn record_finding(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    session: &SessionId,
    finding: &RuntimeFinding,
) {
    if tx.live_session(session).is_none() {
        deny_unknown_session(tx, reply_id, session);
        return;
    }
    if let Some(denied) = refused_session_denial(tx, session) {
        tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
        return;
    }
    match finding {
        RuntimeFinding::Event(payload) => {
            if let Some(position) = tx.new_position(session) {
                tx.record(&position, payload.clone());
                tx.reply_to_agent(reply_id, AgentReply::Noted(ReportReceipt::default()));
            }
        }
        RuntimeFinding::Turn { event, message } => {
            record_turn(tx, reply_id, session, event.clone(), message);
        }
        RuntimeFinding::ThreadRefused { what, denied } => {
            let trick = if denied.code == DenyCode::Limit {
                Misuse::ThreadLimit
            } else {
                Misuse::Thread
            };
            record_misuse(tx, session, trick, what.clone());
            tx.reply_to_agent(reply_id, AgentReply::Denied(denied.clone()));
        }
    }
}

/// Records a conversation turn, and injects the contexts that its message selects, by the rules for
/// input.
fn record_turn(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    session: &SessionId,
    event: Payload,
    message: &str,
) {
    let Some(position) = tx.new_position(session) else {
        return;
    };
    tx.record(&position, event);
    let seen = find_keywords(tx, Digest::of(message), message);
    // A hook reports the same text as input just before, so contexts that it selected are not selected
    // again.
    if selects_new_context(tx, session, &seen) {
        record_keyword_request(tx, &position, &seen.injecting_keywords());
        let injected = inject_automatic_contexts(tx, &position, InjectionCause::Input(&seen));
        add_pending_injections(tx, session, injected);
    }
    let injected = take_pending_injections(tx, session);
    tx.mark_changed(session);
    let held = tx.live_session(session).map(Session::blocking_gates);
    let noted = ReportReceipt {
        injected,
        held: held.unwrap_or_default(),
        ..ReportReceipt::default()
    };
    tx.reply_to_agent(reply_id, AgentReply::Noted(noted));
}

/// Records the result of a wrapper check. The reply is sent when the record is on disk.
fn record_wrapper_check(tx: &mut Transaction<'_>, reply_id: ReplyId, check: &WrapperCheck) {
    let Some(root) = tx.live_session(&check.session).map(session_position) else {
        return;
    };
    let mut redactor = new_redactor(tx, None);
    let tests_run = redactor.texts("tests_run", &check.tests_run);
    let failures = redactor.texts("failures", &check.failures);
    let verified = WrapperVerified {
        verification_passed: check.verification_passed,
        tests_run,
        failures: Some(failures).filter(|failures| !failures.is_empty()),
        redacted: redaction_list(redactor.into_redactions()),
    };
    let child_position = root.child(tx.new_span());
    tx.record(&child_position, verified);
    tx.reply_to_agent(reply_id, AgentReply::Noted(ReportReceipt::default()));
}

/// Records the construction of a wrapper, and its verification. The reply is sent when both are on disk.
fn record_wrapper(tx: &mut Transaction<'_>, reply_id: ReplyId, wrapper: &Wrapper) {
    let Some(root) = tx.live_session(&wrapper.session).map(session_position) else {
        return;
    };
    let child_position = root.child(tx.new_span());
    let constructed = recordable_wrapper(tx, wrapper);
    tx.record(&child_position, constructed);
    let tests = wrapper_tests(wrapper);
    let failures: Vec<_> = tests
        .iter()
        .filter_map(|(_, failure)| failure.clone())
        .collect();
    let verified = WrapperVerified {
        verification_passed: failures.is_empty(),
        tests_run: tests.iter().map(|(name, _)| (*name).to_owned()).collect(),
        failures: Some(failures.clone()).filter(|failures| !failures.is_empty()),
        redacted: Vec::new(),
    };
    tx.record_below(&child_position, verified);
    if let Some(session) = tx.state().sessions.get_mut(&wrapper.session) {
        session.wrapper_reported = true;
    }
    tx.mark_changed(&wrapper.session);
    let noted = ReportReceipt {
        failures,
        ..ReportReceipt::default()
    };
    tx.reply_to_agent(reply_id, AgentReply::Noted(noted));
}

/// A wrapper as it is recorded: without secrets in the texts that the agent sent.
fn recordable_wrapper(tx: &Transaction<'_>, wrapper: &Wrapper) -> WrapperConstructed {
    let mut redactor = new_redactor(tx, None);
    let recorded = WrapperConstructed::from(wrapper.clone());
    WrapperConstructed {
        wrapper_version: redactor.redact_text("wrapper_version", &recorded.wrapper_version),
        components: redactor.texts("components", &recorded.components),
        plugins: redactor.texts("plugins", &recorded.plugins),
        transport: redactor.redact_text("transport", &recorded.transport),
        cache_backend: redactor.redact_text("cache_backend", &recorded.cache_backend),
        construction_hash: redactor.redact_text("construction_hash", &recorded.construction_hash),
        redacted: redaction_list(redactor.into_redactions()),
        ..recorded
    }
}

fn record_feedback(tx: &mut Transaction<'_>, reply_id: ReplyId, feedback: &Feedback) {
    if !was_handed(tx, feedback) {
        let id = crate::base::text::one_line(&feedback.context_id);
        let reason = format!("no context `{id}` was given to this session");
        tx.deny(reply_id, DenyCode::BadRequest, reason);
        return;
    }
    let Some(position) = tx.new_position(&feedback.session) else {
        return;
    };
    let (reason, redacted) = redact_optional_text(tx, "reason", feedback.reason.as_deref());
    let record = ContextFeedback {
        context_id: feedback.context_id.clone(),
        helpful: feedback.helpful,
        reason,
        usage_outcome: feedback.usage_outcome,
        redacted,
    };
    tx.record(&position, record);
    tx.reply_to_agent(reply_id, AgentReply::Noted(ReportReceipt::default()));
}

/// Returns whether the session may have received a context: one of an Atlas, or a text of a handler.
fn was_handed(tx: &Transaction<'_>, feedback: &Feedback) -> bool {
    let Some(session) = tx.live_session(&feedback.session) else {
        return false;
    };
    let id = feedback.context_id.as_str();
    let of_handler = id.rsplit_once('.').is_some_and(|(handler, number)| {
        number.parse::<u32>().is_ok() && tx.engine.extensions.handlers.contains(handler)
    });
    of_handler || session.context_ids().contains(id)
}

fn record_output(tx: &mut Transaction<'_>, reply_id: ReplyId, output: &OutputReport) {
    let Some(position) = tx.new_position(&output.session) else {
        return;
    };
    let record = OutputProduced {
        output_hash: Digest::of(&output.text).to_string(),
        output_size_bytes: output.text.len() as u64,
        output_type: output.output_type,
        contains_action: output.contains_action,
    };
    tx.record(&position, record);
    tx.reply_to_agent(reply_id, AgentReply::Noted(ReportReceipt::default()));
}

/// Records a recovery below its error. A failed recovery can be reported again.
fn record_recovery(tx: &mut Transaction<'_>, reply_id: ReplyId, recovery: &Recovery) {
    let sessions = &mut tx.engine.state.sessions;
    let Some(session) = sessions.get_mut(&recovery.session) else {
        return;
    };
    let Some(error) = session.errors.get(&recovery.error).cloned() else {
        let reason = format!("this session has no open error `{}`", recovery.error);
        tx.deny(reply_id, DenyCode::BadRequest, reason);
        return;
    };
    if recovery.success {
        session.errors.remove(&recovery.error);
    }
    let position = SpanPosition {
        session: recovery.session.clone(),
        trace_id: error.trace_id,
        span_id: error.span_id,
        parent: None,
    };
    let recorded = redact_text(tx, None, "recovery_method", &recovery.method);
    let record = ErrorRecovered {
        original_error_id: recovery.error.clone(),
        recovery_method: recorded.text,
        success: recovery.success,
        redacted: recorded.redacted,
    };
    tx.record_below(&position, record);
    tx.mark_changed(&recovery.session);
    tx.reply_to_agent(reply_id, AgentReply::Noted(ReportReceipt::default()));
}

/// Returns the reason why a report is malformed.
fn fault(report: &AgentReport) -> Option<String> {
    let too_long = |text: &str| {
        (text.len() > MAX_TEXT_BYTES)
            .then(|| format!("a report must have at most {MAX_TEXT_BYTES} bytes of text"))
    };
    match report {
        AgentReport::Wrapper(wrapper) => wrapper_fault(wrapper),
        AgentReport::WrapperCheck(check) => check_fault(check),
        AgentReport::Feedback(feedback) => too_long(feedback.reason.as_deref().unwrap_or_default())
            .or_else(|| too_long(&feedback.context_id)),
        // Only the hash of output is kept.
        AgentReport::Output(_) => None,
        AgentReport::Recovery(recovery) => too_long(&recovery.method),
    }
}

fn wrapper_fault(wrapper: &Wrapper) -> Option<String> {
    let lists = [&wrapper.components, &wrapper.plugins];
    if lists.iter().any(|list| list.len() > MAX_REPORTED_NAMES) {
        return Some(format!(
            "a wrapper must have at most {MAX_REPORTED_NAMES} components and as many plugins"
        ));
    }
    let names = [
        &wrapper.wrapper_version,
        &wrapper.transport,
        &wrapper.cache_backend,
        &wrapper.construction_hash,
    ];
    let mut names = names.into_iter().chain(lists.into_iter().flatten());
    names
        .any(|name| name.len() > MAX_NAME_LEN)
        .then(|| format!("names of a wrapper must have at most {MAX_NAME_LEN} bytes"))
}

fn check_fault(check: &WrapperCheck) -> Option<String> {
    let lists = [&check.tests_run, &check.failures];
    if lists.iter().any(|list| list.len() > MAX_REPORTED_NAMES) {
        return Some(format!(
            "a check must have at most {MAX_REPORTED_NAMES} tests and as many failures"
        ));
    }
    if check.verification_passed && !check.failures.is_empty() {
        return Some("`verification_passed` must be false for a check with `failures`".to_owned());
    }
    if check.verification_passed && check.tests_run.is_empty() {
        return Some("`verification_passed` must be false for a check without tests".to_owned());
    }
    let mut names = lists.into_iter().flatten();
    names.any(|name| name.len() > MAX_NAME_LEN).then(|| {
        format!("tests and failures of a check must have at most {MAX_NAME_LEN} bytes each")
    })
}

/// Runs the tests of a wrapper. Returns each test with its failure, if it failed.
fn wrapper_tests(wrapper: &Wrapper) -> Vec<(&'static str, Option<String>)> {
    let proof = wrapper.proof().to_string();
    let wrong = |failed: bool, what: &str| failed.then(|| what.to_owned());
    vec![
        (
            "construction_hash",
            wrong(
                wrapper.construction_hash != proof,
                "the construction hash does not match the parts that the wrapper declares",
            ),
        ),
        (
            "wrapper_version",
            wrong(
                wrapper.wrapper_version.trim().is_empty(),
                "the wrapper has no version",
            ),
        ),
        (
            "components",
            wrong(
                wrapper.components.is_empty(),
                "the wrapper has no components",
            ),
        ),
        (
            "transport",
            wrong(
                !TRANSPORTS.contains(&wrapper.transport.as_str()),
                "the transport must be `mcp`, `rest` or `direct`",
            ),
        ),
        (
            "intercept_actions",
            wrong(
                !wrapper.capabilities.intercept_actions,
                "the wrapper does not intercept actions, so cra cannot hold requests",
            ),
        ),
    ]
}
