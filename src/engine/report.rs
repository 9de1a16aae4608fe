//! Reports of agents that are only recorded: wrappers, feedback, output, recoveries.

use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{MAX_NAME_LEN, MAX_REPORTED_NAMES, MAX_TEXT_BYTES};
use crate::trace::event::{
    ContextFeedback, ErrorRecovered, OutputProduced, Payload, WrapperConstructed, WrapperVerified,
};

use super::command::{
    AgentReport, CallerId, DenyCode, Feedback, OutputReport, Recovery, Reply, ReportReceipt,
    RuntimeFinding, Wrapper, WrapperCheck,
};
use super::context_injection::InjectionCause;
use super::lifecycle::session_position;
use super::misuse::Misuse;
use super::redacted_records::redaction_list;
use super::session::Session;
use super::transaction::{SpanPosition, Transaction};

/// Transports by which an agent can be reached.
const TRANSPORTS: [&str; 3] = ["mcp", "rest", "direct"];

impl Transaction<'_> {
    pub(super) fn report(&mut self, ask: CallerId, report: &AgentReport) {
        if self.live_session(report.session()).is_none() {
            self.deny_unknown_session(ask, report.session());
            return;
        }
        if let Some(fault) = fault(report) {
            self.deny(ask, DenyCode::BadRequest, fault);
            return;
        }
        match report {
            AgentReport::Wrapper(wrapper) => self.wrapper(ask, wrapper),
            AgentReport::WrapperCheck(check) => self.wrapper_check(ask, check),
            AgentReport::Feedback(feedback) => self.feedback(ask, feedback),
            AgentReport::Output(output) => self.output(ask, output),
            AgentReport::Recovery(recovery) => self.recovery(ask, recovery),
        }
    }

    /// Records a finding of the runtime about a session.
    pub(super) fn note(&mut self, ask: CallerId, session: &SessionId, finding: RuntimeFinding) {
        if self.live_session(session).is_none() {
            self.deny_unknown_session(ask, session);
            return;
        }
        if let Some(denied) = self.refused_session_denial(session) {
            self.reply(ask, Reply::Denied(denied));
            return;
        }
        match finding {
            RuntimeFinding::Event(payload) => {
                if let Some(place) = self.new_position(session) {
                    self.record(&place, payload);
                    self.reply(ask, Reply::Noted(ReportReceipt::default()));
                }
            }
            RuntimeFinding::Turn { event, message } => {
                self.note_turn(ask, session, event, &message);
            }
            RuntimeFinding::ThreadRefused { what, denied } => {
                let trick = if denied.code == DenyCode::Limit {
                    Misuse::ThreadLimit
                } else {
                    Misuse::Thread
                };
                self.record_misuse(session, trick, what);
                self.reply(ask, Reply::Denied(denied));
            }
        }
    }

    /// Records a conversation turn, and injects the contexts that its message selects, by the rules for
    /// input.
    fn note_turn(&mut self, ask: CallerId, session: &SessionId, event: Payload, message: &str) {
        let Some(place) = self.new_position(session) else {
            return;
        };
        self.record(&place, event);
        let seen = self.sightings(Digest::of(message), message);
        // A hook reports the same text as input just before, so contexts that it selected are not selected
        // again.
        if self.selects_new_context(session, &seen) {
            self.record_keyword_request(&place, &seen.injecting_keywords());
            let given = self.give_on(&place, InjectionCause::Input(&seen));
            self.add_pending_injections(session, given);
        }
        let given = self.take_pending_injections(session);
        self.mark_changed(session);
        let held = self.live_session(session).map(Session::blocking_gates);
        let noted = ReportReceipt {
            given,
            held: held.unwrap_or_default(),
            ..ReportReceipt::default()
        };
        self.reply(ask, Reply::Noted(noted));
    }

    /// Records the result of a wrapper check. The reply is sent when the record is on disk.
    fn wrapper_check(&mut self, ask: CallerId, check: &WrapperCheck) {
        let Some(root) = self.live_session(&check.session).map(session_position) else {
            return;
        };
        let mut redactor = self.redactor(None);
        let tests_run = redactor.texts("tests_run", &check.tests_run);
        let failures = redactor.texts("failures", &check.failures);
        let verified = WrapperVerified {
            verification_passed: check.verification_passed,
            tests_run,
            failures: Some(failures).filter(|failures| !failures.is_empty()),
            redacted: redaction_list(redactor.into_redactions()),
        };
        let here = root.child(self.new_span());
        self.record(&here, verified);
        self.reply(ask, Reply::Noted(ReportReceipt::default()));
    }

    /// Records the construction of a wrapper, and its verification. The reply is sent when both are on disk.
    fn wrapper(&mut self, ask: CallerId, wrapper: &Wrapper) {
        let Some(root) = self.live_session(&wrapper.session).map(session_position) else {
            return;
        };
        let here = root.child(self.new_span());
        let constructed = self.recordable_wrapper(wrapper);
        self.record(&here, constructed);
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
        self.record_below(&here, verified);
        if let Some(session) = self.state().sessions.get_mut(&wrapper.session) {
            session.wrapper_reported = true;
        }
        self.mark_changed(&wrapper.session);
        let noted = ReportReceipt {
            failures,
            ..ReportReceipt::default()
        };
        self.reply(ask, Reply::Noted(noted));
    }

    /// A wrapper as it is recorded: without secrets in the texts that the agent sent.
    fn recordable_wrapper(&self, wrapper: &Wrapper) -> WrapperConstructed {
        let mut redactor = self.redactor(None);
        let told = WrapperConstructed::from(wrapper.clone());
        WrapperConstructed {
            wrapper_version: redactor.redact_text("wrapper_version", &told.wrapper_version),
            components: redactor.texts("components", &told.components),
            plugins: redactor.texts("plugins", &told.plugins),
            transport: redactor.redact_text("transport", &told.transport),
            cache_backend: redactor.redact_text("cache_backend", &told.cache_backend),
            construction_hash: redactor.redact_text("construction_hash", &told.construction_hash),
            redacted: redaction_list(redactor.into_redactions()),
            ..told
        }
    }

    fn feedback(&mut self, ask: CallerId, feedback: &Feedback) {
        if !self.was_handed(feedback) {
            let id = crate::base::text::one_line(&feedback.context_id);
            let reason = format!("no context `{id}` was given to this session");
            self.deny(ask, DenyCode::BadRequest, reason);
            return;
        }
        let Some(place) = self.new_position(&feedback.session) else {
            return;
        };
        let (reason, redacted) = self.redact_optional_text("reason", feedback.reason.as_deref());
        let record = ContextFeedback {
            context_id: feedback.context_id.clone(),
            helpful: feedback.helpful,
            reason,
            usage_outcome: feedback.usage_outcome,
            redacted,
        };
        self.record(&place, record);
        self.reply(ask, Reply::Noted(ReportReceipt::default()));
    }

    /// Returns whether the session may have received a context: one of an Atlas, or a text of a handler.
    fn was_handed(&self, feedback: &Feedback) -> bool {
        let Some(session) = self.live_session(&feedback.session) else {
            return false;
        };
        let id = feedback.context_id.as_str();
        let of_handler = id.rsplit_once('.').is_some_and(|(handler, number)| {
            number.parse::<u32>().is_ok() && self.engine.extensions.handlers.contains(handler)
        });
        of_handler || session.context_ids().contains(id)
    }

    fn output(&mut self, ask: CallerId, output: &OutputReport) {
        let Some(place) = self.new_position(&output.session) else {
            return;
        };
        let record = OutputProduced {
            output_hash: Digest::of(&output.text).to_string(),
            output_size_bytes: output.text.len() as u64,
            output_type: output.output_type,
            contains_action: output.contains_action,
        };
        self.record(&place, record);
        self.reply(ask, Reply::Noted(ReportReceipt::default()));
    }

    /// Records a recovery below its error. A failed recovery can be reported again.
    fn recovery(&mut self, ask: CallerId, recovery: &Recovery) {
        let sessions = &mut self.engine.state.sessions;
        let Some(session) = sessions.get_mut(&recovery.session) else {
            return;
        };
        let Some(error) = session.errors.get(&recovery.error).cloned() else {
            let reason = format!("this session has no open error `{}`", recovery.error);
            self.deny(ask, DenyCode::BadRequest, reason);
            return;
        };
        if recovery.success {
            session.errors.remove(&recovery.error);
        }
        let place = SpanPosition {
            session: recovery.session.clone(),
            trace_id: error.trace_id,
            span_id: error.span_id,
            parent: None,
        };
        let told = self.redact_text(None, "recovery_method", &recovery.method);
        let record = ErrorRecovered {
            original_error_id: recovery.error.clone(),
            recovery_method: told.text,
            success: recovery.success,
            redacted: told.redacted,
        };
        self.record_below(&place, record);
        self.mark_changed(&recovery.session);
        self.reply(ask, Reply::Noted(ReportReceipt::default()));
    }
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
