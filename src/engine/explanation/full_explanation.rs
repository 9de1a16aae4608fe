//! A common form for every explanation: of a request, an input, or the start of a session.

use serde_json::Value;

use super::input::{self, InputExplanation};
use super::{
    CapabilityEvidence, CheckpointEvidence, CheckpointOutcome, ContextEvidence, ExplainedVerdict,
    Explanation, HandlerPreview, HypotheticalRequest, HypotheticalSession, PolicyEvidence,
    handler_previews,
};
use crate::atlas::condition::LeafReport;
use crate::atlas::document::{PolicyKind, RiskTier};
use crate::base::clock::Timestamp;
use crate::base::id::{HeldRequestId, SessionId};
use crate::engine::Engine;
use crate::engine::command::DenyCode;
use crate::engine::gates::held::{ActionCall, Gate, HeldSubject, TierSource};
use crate::engine::sessions::session::{Session, StartState};

/// A subject to explain.
#[derive(Clone, Debug, PartialEq)]
pub enum ExplainQuestion {
    /// A held request.
    Held(HeldRequestId),
    /// A hypothetical request.
    Action {
        /// The action.
        action: String,
        /// Its parameters.
        params: Value,
        /// Session that would request the action.
        asker: ExplainedSession,
    },
    /// Hypothetical input.
    Input {
        /// The text.
        text: String,
        /// Session that would receive the input.
        asker: ExplainedSession,
    },
}

/// Session of a hypothetical request or input.
#[derive(Clone, Debug, PartialEq)]
pub enum ExplainedSession {
    /// A live session, as it is now.
    Session(SessionId),
    /// A hypothetical session.
    Imagined(HypotheticalSession),
}

/// Complete explanation of one request or event.
#[derive(Clone, Debug, PartialEq)]
pub struct FullExplanation {
    /// Subject: an action, `input`, `session start`.
    pub subject: String,
    /// Risk tier of an action, and its source.
    pub tier: Option<(RiskTier, TierSource)>,
    /// The decision.
    pub verdict: ExplainedVerdict,
    /// Gates that the session has to pass first.
    pub session_gates: Option<String>,
    /// Every checkpoint, in the order of evaluation.
    pub checkpoints: Vec<CheckpointEvidence>,
    /// Every policy, in the order written.
    pub policies: Vec<PolicyEvidence>,
    /// Every capability that lists the action.
    pub capabilities: Vec<CapabilityEvidence>,
    /// Evaluation of the contexts' keywords.
    pub contexts: Vec<ContextEvidence>,
    /// Handlers that would be called.
    pub handlers: Vec<HandlerPreview>,
    /// Number of entries that were cut off by [`FullExplanation::bounded`].
    pub left_out: usize,
}

impl FullExplanation {
    pub(super) fn of_action(explanation: Explanation) -> Self {
        Self {
            subject: explanation.action,
            tier: Some((explanation.tier, explanation.tier_source)),
            verdict: explanation.verdict,
            session_gates: None,
            checkpoints: explanation.checkpoints,
            policies: explanation.policies,
            capabilities: explanation.capabilities,
            contexts: explanation.contexts,
            handlers: Vec::new(),
            left_out: 0,
        }
    }

    pub(super) fn of_input(explanation: InputExplanation) -> Self {
        Self {
            contexts: explanation.contexts,
            ..Self::of_occasion(
                "input".to_owned(),
                (explanation.verdict, explanation.checkpoints),
            )
        }
    }

    pub(super) fn of_occasion(
        subject: String,
        (verdict, checkpoints): (ExplainedVerdict, Vec<CheckpointEvidence>),
    ) -> Self {
        Self {
            subject,
            tier: None,
            verdict,
            session_gates: None,
            checkpoints,
            policies: Vec::new(),
            capabilities: Vec::new(),
            contexts: Vec::new(),
            handlers: Vec::new(),
            left_out: 0,
        }
    }

    /// Returns whether this checkpoint is one of the deciding ones.
    #[must_use]
    pub fn is_deciding_checkpoint(&self, checkpoint: &CheckpointEvidence) -> bool {
        match &self.verdict {
            ExplainedVerdict::Held { gates } => {
                matches!(checkpoint.outcome, CheckpointOutcome::Fired { .. })
                    && gates.contains(&checkpoint.checkpoint_id)
            }
            ExplainedVerdict::Allowed | ExplainedVerdict::Denied(_) => false,
        }
    }

    /// Returns whether this policy is one of the deciding ones.
    #[must_use]
    pub fn ruled_by(&self, policy: &PolicyEvidence) -> bool {
        let rules = match (&self.verdict, policy.kind) {
            (ExplainedVerdict::Held { gates }, PolicyKind::RequiresApproval) => {
                gates.contains(&policy.policy_id)
            }
            (ExplainedVerdict::Denied(denied), PolicyKind::Deny) => denied.code == DenyCode::Policy,
            (ExplainedVerdict::Denied(denied), PolicyKind::RateLimit | PolicyKind::Budget) => {
                denied.code == DenyCode::Limit
            }
            (
                ExplainedVerdict::Allowed
                | ExplainedVerdict::Held { .. }
                | ExplainedVerdict::Denied(_),
                PolicyKind::Allow
                | PolicyKind::Deny
                | PolicyKind::RequiresApproval
                | PolicyKind::RateLimit
                | PolicyKind::Budget,
            ) => false,
        };
        rules && policy.applies
    }

    /// Returns whether this capability is one of the deciding ones.
    #[must_use]
    pub fn is_deciding_capability(&self, capability: &CapabilityEvidence) -> bool {
        match &self.verdict {
            ExplainedVerdict::Denied(denied) => {
                capability.locked && denied.code == DenyCode::CapabilityLocked
            }
            ExplainedVerdict::Allowed | ExplainedVerdict::Held { .. } => false,
        }
    }

    /// Returns the number of checkpoints that fired, did not fire, and were skipped.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let mut counts = (0, 0, 0);
        for checkpoint in &self.checkpoints {
            match checkpoint.outcome {
                CheckpointOutcome::Fired { .. } => counts.0 += 1,
                CheckpointOutcome::NotFired { .. } => counts.1 += 1,
                CheckpointOutcome::Skipped { .. } => counts.2 += 1,
            }
        }
        counts
    }

    /// Cuts the explanation to at most `most` entries of each kind and `chars` characters per text, for
    /// callers that keep many.
    ///
    /// The most important entries stay.
    #[must_use]
    pub fn bounded(mut self, most: usize, chars: usize) -> Self {
        self.checkpoints
            .sort_by_key(|checkpoint| match checkpoint.outcome {
                CheckpointOutcome::Fired { .. } => 0,
                CheckpointOutcome::NotFired { .. } => 1,
                CheckpointOutcome::Skipped { .. } => 2,
            });
        self.policies.sort_by_key(|policy| !policy.applies);
        let not_called =
            |context: &ContextEvidence| !matches!(context.outcome, CheckpointOutcome::Fired { .. });
        self.contexts.sort_by_key(not_called);
        let lengths = [
            self.checkpoints.len(),
            self.policies.len(),
            self.capabilities.len(),
            self.contexts.len(),
        ];
        self.left_out += lengths
            .iter()
            .map(|length| length.saturating_sub(most))
            .sum::<usize>();
        self.checkpoints.truncate(most);
        self.policies.truncate(most);
        self.capabilities.truncate(most);
        self.contexts.truncate(most);
        self.handlers.truncate(most);
        cut(&mut self.subject, chars);
        for checkpoint in &mut self.checkpoints {
            cut_outcome(&mut checkpoint.outcome, chars);
            cut_leaves(&mut checkpoint.conditions, most, chars);
        }
        for policy in &mut self.policies {
            cut(&mut policy.rule, chars);
            cut_leaves(&mut policy.conditions, most, chars);
        }
        for context in &mut self.contexts {
            cut_outcome(&mut context.outcome, chars);
        }
        self
    }
}

fn cut_outcome(outcome: &mut CheckpointOutcome, chars: usize) {
    match outcome {
        CheckpointOutcome::Fired { why } | CheckpointOutcome::Skipped { why } => cut(why, chars),
        CheckpointOutcome::NotFired { wanted, actual } => {
            cut(wanted, chars);
            cut(actual, chars);
        }
    }
}

fn cut_leaves(leaves: &mut Vec<LeafReport>, most: usize, chars: usize) {
    leaves.truncate(most);
    for leaf in leaves {
        cut(&mut leaf.wanted, chars);
        // A parameter can be as long as a request may be.
        let text = leaf.actual.as_ref().map(ToString::to_string);
        if let Some(mut text) = text.filter(|text| text.len() > chars) {
            cut(&mut text, chars);
            leaf.actual = Some(text.into());
        }
    }
}

fn cut(text: &mut String, chars: usize) {
    if let Some((at, _)) = text.char_indices().nth(chars) {
        text.truncate(at);
        text.push_str("...");
    }
}

impl Engine {
    /// Explains a subject without changing anything.
    ///
    /// # Errors
    /// A description, if the session does not exist or the request is not held.
    pub fn explain_question(
        &self,
        question: &ExplainQuestion,
        now: Timestamp,
    ) -> Result<FullExplanation, String> {
        match question {
            ExplainQuestion::Held(gate) => self.explain_held_fully(gate),
            ExplainQuestion::Action {
                action,
                params,
                asker,
            } => {
                let explanation = match asker {
                    ExplainedSession::Session(session) => self
                        .explain_request(session, action, params, now)
                        .ok_or_else(|| no_session(session))?,
                    ExplainedSession::Imagined(session) => {
                        let what_if = HypotheticalRequest {
                            action: action.clone(),
                            params: params.clone(),
                            session: session.clone(),
                        };
                        self.explain(&what_if, now)
                    }
                };
                let mut account = self.with_handlers(FullExplanation::of_action(explanation));
                if let ExplainedSession::Session(session) = asker {
                    account.session_gates =
                        self.state.sessions.get(session).and_then(session_gates);
                }
                Ok(account)
            }
            ExplainQuestion::Input { text, asker } => {
                let imagined;
                let session = match asker {
                    ExplainedSession::Session(id) => {
                        let session_state = self.state.sessions.get(id);
                        session_state.ok_or_else(|| no_session(id))?
                    }
                    ExplainedSession::Imagined(session) => {
                        imagined = session.to_session(&self.atlases, now);
                        &imagined
                    }
                };
                Ok(self.with_handlers(self.explain_input(session, text, now)))
            }
        }
    }

    /// Explains a held request, as of the time it was requested.
    fn explain_held_fully(&self, gate: &HeldRequestId) -> Result<FullExplanation, String> {
        let held = self.state.held.get(gate).map(|waiting| &waiting.held);
        let held = held.ok_or_else(|| format!("`{gate}` is no longer held"))?;
        let session = self.state.sessions.get(&held.session);
        let session = session.ok_or_else(|| no_session(&held.session))?;
        let mut account = match &held.subject {
            HeldSubject::Action(ActionCall { .. }) => {
                let explanation = self.explain_held(gate, held.opened_at);
                let explanation =
                    explanation.ok_or_else(|| format!("`{gate}` is no longer held"))?;
                FullExplanation::of_action(explanation)
            }
            HeldSubject::SessionStart => self.explain_start(session, held.opened_at),
            HeldSubject::Moment(moment) => {
                FullExplanation::of_occasion(moment.label.clone(), self.explain_held_event(moment))
            }
        };
        // The gates are known exactly: they are stored with the request, as it was judged then.
        let gates = held.gates.iter().map(Gate::name);
        account.verdict = ExplainedVerdict::Held {
            gates: gates.collect(),
        };
        for gate in &held.gates {
            let mut own = account.checkpoints.iter_mut().filter(|checkpoint| {
                checkpoint.checkpoint_id == gate.origin.id()
                    && checkpoint.atlas_id == gate.origin.atlas_id()
            });
            if let Some(own) = own.next() {
                own.outcome = CheckpointOutcome::Fired {
                    why: gate.why.clone(),
                };
            }
        }
        Ok(account)
    }

    pub(super) fn explain_input(
        &self,
        session: &Session,
        text: &str,
        now: Timestamp,
    ) -> FullExplanation {
        let answers = crate::engine::extensions::suspension::ExtensionAnswers::default();
        let customs = self.custom_triggers(&answers);
        FullExplanation::of_input(input::explain_session_input(
            &self.atlases,
            session,
            text,
            customs,
            now,
        ))
    }

    /// Adds the handlers that would be called, and the denial that a missing handler causes.
    fn with_handlers(&self, mut account: FullExplanation) -> FullExplanation {
        account.handlers = handler_previews::preview_handlers(
            &self.atlases,
            &self.extensions,
            &mut account.checkpoints,
            &mut account.verdict,
        );
        account
    }
}

/// Returns the gates that a session has to pass before any request.
pub(super) fn session_gates(session: &Session) -> Option<String> {
    match &session.entry {
        StartState::Open if session.pending.is_empty() => None,
        StartState::Open => {
            let gates: Vec<_> = session.pending.iter().map(ToString::to_string).collect();
            Some(format!("the session must pass {} first", gates.join(", ")))
        }
        StartState::Held(gate) => {
            Some(format!("the session must pass its start gate {gate} first"))
        }
        StartState::Lapsed { .. } => {
            Some("the session must pass its start gates again first".to_owned())
        }
        StartState::Refused { .. } => {
            Some("the session was denied at its start: it may not act".to_owned())
        }
    }
}

fn no_session(session: &SessionId) -> String {
    format!("session `{session}` no longer exists")
}
