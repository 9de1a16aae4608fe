//! One form for everything that can be explained: a request, input, the start of a session.

use serde_json::Value;

use super::input::{self, InputExplanation};
use super::{
    CapabilityEvidence, CheckpointEvidence, CheckpointOutcome, ContextEvidence, Explanation,
    Imagined, Outsider, PolicyEvidence, Verdict, WhatIf, outside,
};
use crate::atlas::condition::LeafReport;
use crate::atlas::document::{PolicyKind, RiskTier};
use crate::base::clock::Timestamp;
use crate::base::id::{GateId, SessionId};
use crate::engine::Engine;
use crate::engine::command::DenyCode;
use crate::engine::held::{ActionCall, Gate, Subject, TierSource};
use crate::engine::session::{Entry, Session};

/// Something that somebody wants explained.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// A request that is held.
    Held(GateId),
    /// A request that is only imagined.
    Action {
        /// The action.
        action: String,
        /// Its parameters.
        params: Value,
        /// Who would ask.
        asker: Asker,
    },
    /// Input that is only imagined.
    Input {
        /// The text.
        text: String,
        /// Who would be given it.
        asker: Asker,
    },
}

/// The session of something that is only imagined.
#[derive(Clone, Debug, PartialEq)]
pub enum Asker {
    /// One that has not ended, as it is now.
    Session(SessionId),
    /// One that is imagined too.
    Imagined(Imagined),
}

/// What everything made of one request or occasion.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// What it is about: an action, `input`, `session start`.
    pub subject: String,
    /// How risky it is, where it is an action, and who says so.
    pub tier: Option<(RiskTier, TierSource)>,
    /// What would happen.
    pub verdict: Verdict,
    /// What the session has to pass before anything it asks for.
    pub waits: Option<String>,
    /// Every checkpoint, in the order they are looked at.
    pub checkpoints: Vec<CheckpointEvidence>,
    /// Every policy, in the order written.
    pub policies: Vec<PolicyEvidence>,
    /// Every capability that lists the action.
    pub capabilities: Vec<CapabilityEvidence>,
    /// What the keywords of contexts made of input.
    pub contexts: Vec<ContextEvidence>,
    /// Handlers that would be asked.
    pub handlers: Vec<Outsider>,
    /// What was left out because there is so much of it.
    pub left_out: usize,
}

impl Account {
    pub(super) fn of_action(told: Explanation) -> Self {
        Self {
            subject: told.action,
            tier: Some((told.tier, told.tier_source)),
            verdict: told.verdict,
            waits: None,
            checkpoints: told.checkpoints,
            policies: told.policies,
            capabilities: told.capabilities,
            contexts: told.contexts,
            handlers: Vec::new(),
            left_out: 0,
        }
    }

    pub(super) fn of_input(told: InputExplanation) -> Self {
        Self {
            contexts: told.contexts,
            ..Self::of_occasion("input".to_owned(), (told.verdict, told.checkpoints))
        }
    }

    pub(super) fn of_occasion(
        subject: String,
        (verdict, checkpoints): (Verdict, Vec<CheckpointEvidence>),
    ) -> Self {
        Self {
            subject,
            tier: None,
            verdict,
            waits: None,
            checkpoints,
            policies: Vec::new(),
            capabilities: Vec::new(),
            contexts: Vec::new(),
            handlers: Vec::new(),
            left_out: 0,
        }
    }

    /// Whether this checkpoint is one of those that decide.
    #[must_use]
    pub fn decided_by(&self, checkpoint: &CheckpointEvidence) -> bool {
        match &self.verdict {
            Verdict::Held { gates } => {
                matches!(checkpoint.outcome, CheckpointOutcome::Fired { .. })
                    && gates.contains(&checkpoint.checkpoint_id)
            }
            Verdict::Allowed | Verdict::Denied(_) => false,
        }
    }

    /// Whether this policy is one of those that decide.
    #[must_use]
    pub fn ruled_by(&self, policy: &PolicyEvidence) -> bool {
        let rules = match (&self.verdict, policy.kind) {
            (Verdict::Held { gates }, PolicyKind::RequiresApproval) => {
                gates.contains(&policy.policy_id)
            }
            (Verdict::Denied(denied), PolicyKind::Deny) => denied.code == DenyCode::Policy,
            (Verdict::Denied(denied), PolicyKind::RateLimit | PolicyKind::Budget) => {
                denied.code == DenyCode::Limit
            }
            (
                Verdict::Allowed | Verdict::Held { .. } | Verdict::Denied(_),
                PolicyKind::Allow
                | PolicyKind::Deny
                | PolicyKind::RequiresApproval
                | PolicyKind::RateLimit
                | PolicyKind::Budget,
            ) => false,
        };
        rules && policy.applies
    }

    /// Whether this capability is one of those that decide.
    #[must_use]
    pub fn barred_by(&self, capability: &CapabilityEvidence) -> bool {
        match &self.verdict {
            Verdict::Denied(denied) => {
                capability.locked && denied.code == DenyCode::CapabilityLocked
            }
            Verdict::Allowed | Verdict::Held { .. } => false,
        }
    }

    /// How many checkpoints fired, did not fire, and were not about it.
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

    /// The same within bounds, for those who keep many: at most so many of each kind, those that
    /// matter most, and no text longer than that.
    #[must_use]
    pub fn bounded(mut self, most: usize, chars: usize) -> Self {
        self.checkpoints.sort_by_key(|it| match it.outcome {
            CheckpointOutcome::Fired { .. } => 0,
            CheckpointOutcome::NotFired { .. } => 1,
            CheckpointOutcome::Skipped { .. } => 2,
        });
        self.policies.sort_by_key(|it| !it.applies);
        let not_called =
            |it: &ContextEvidence| !matches!(it.outcome, CheckpointOutcome::Fired { .. });
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
    /// Explains something, changing nothing.
    ///
    /// # Errors
    /// In words, when there is no such session or nothing of that name is held.
    pub fn account(&self, question: &Question, now: Timestamp) -> Result<Account, String> {
        match question {
            Question::Held(gate) => self.account_of_held(gate),
            Question::Action {
                action,
                params,
                asker,
            } => {
                let told = match asker {
                    Asker::Session(session) => self
                        .explain_request(session, action, params, now)
                        .ok_or_else(|| no_session(session))?,
                    Asker::Imagined(session) => {
                        let what_if = WhatIf {
                            action: action.clone(),
                            params: params.clone(),
                            session: session.clone(),
                        };
                        self.explain(&what_if, now)
                    }
                };
                let mut account = self.with_handlers(Account::of_action(told));
                if let Asker::Session(session) = asker {
                    account.waits = self.state.sessions.get(session).and_then(waits);
                }
                Ok(account)
            }
            Question::Input { text, asker } => {
                let imagined;
                let session = match asker {
                    Asker::Session(id) => {
                        let known = self.state.sessions.get(id);
                        known.ok_or_else(|| no_session(id))?
                    }
                    Asker::Imagined(session) => {
                        imagined = session.session(&self.atlases, now);
                        &imagined
                    }
                };
                Ok(self.with_handlers(self.account_of_input(session, text, now)))
            }
        }
    }

    /// What stood in the way of what is held, at the moment it was asked for.
    fn account_of_held(&self, gate: &GateId) -> Result<Account, String> {
        let held = self.state.held.get(gate).map(|waiting| &waiting.held);
        let held = held.ok_or_else(|| format!("`{gate}` is not held any more"))?;
        let session = self.state.sessions.get(&held.session);
        let session = session.ok_or_else(|| no_session(&held.session))?;
        let mut account = match &held.subject {
            Subject::Action(ActionCall { .. }) => {
                let told = self.explain_held(gate, held.opened_at);
                let told = told.ok_or_else(|| format!("`{gate}` is not held any more"))?;
                Account::of_action(told)
            }
            Subject::SessionStart => self.account_of_start(session, held.opened_at),
            Subject::Moment(moment) => {
                Account::of_occasion(moment.label.clone(), self.beside(moment))
            }
        };
        // What holds it is known exactly: it is kept with the request, as it was judged then.
        let gates = held.gates.iter().map(Gate::name);
        account.verdict = Verdict::Held {
            gates: gates.collect(),
        };
        for gate in &held.gates {
            let mut own = account.checkpoints.iter_mut().filter(|it| {
                it.checkpoint_id == gate.origin.id() && it.atlas_id == gate.origin.atlas_id()
            });
            if let Some(own) = own.next() {
                own.outcome = CheckpointOutcome::Fired {
                    why: gate.why.clone(),
                };
            }
        }
        Ok(account)
    }

    pub(super) fn account_of_input(
        &self,
        session: &Session,
        text: &str,
        now: Timestamp,
    ) -> Account {
        let answers = crate::engine::suspend::Answers::default();
        let customs = self.customs(&answers);
        Account::of_input(input::input(&self.atlases, session, text, customs, now))
    }

    /// Says which handlers would be asked, and what comes of those that cannot be.
    fn with_handlers(&self, mut account: Account) -> Account {
        account.handlers = outside::handlers(
            &self.atlases,
            &self.extensions,
            &mut account.checkpoints,
            &mut account.verdict,
        );
        account
    }
}

/// What a session has to pass before anything it asks for.
pub(super) fn waits(session: &Session) -> Option<String> {
    match &session.entry {
        Entry::Open if session.pending.is_empty() => None,
        Entry::Open => {
            let gates: Vec<_> = session.pending.iter().map(ToString::to_string).collect();
            Some(format!("its session waits for {} first", gates.join(", ")))
        }
        Entry::Held(gate) => Some(format!(
            "its session's start is held at {gate}, that comes first"
        )),
        Entry::Lapsed { .. } => Some("its session's start gates are put up again first".to_owned()),
        Entry::Refused { .. } => Some("its session was refused: it may do nothing".to_owned()),
    }
}

fn no_session(session: &SessionId) -> String {
    format!("there is no session `{session}` any more")
}
