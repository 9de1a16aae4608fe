//! Resolutions: the answer to "which actions may I run now", with the constraints of each action.
//!
//! A resolution counts against no limit and allows nothing. A request that relies on it is judged when it is
//! made. A resolution that has expired, or that belongs to another session, is never a reason to run
//! anything.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atlas::document::CheckpointMode;
use crate::atlas::model::Limit;
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::{HeldRequestId, SessionId};
use crate::base::limits::{MAX_RESOLUTIONS, RESOLUTION_LIFETIME};

use super::attempt::refuse_action;
use super::events::process_input;
use crate::engine::admission::access::deny_unknown_session;
use crate::engine::admission::request_admission::call_fault;
use crate::engine::command::{
    ActionRequest, AgentReply, DenyCode, InjectedContext, InjectedGuidance, InputReport,
    InputSource, ReplyId, ResolveRequest,
};
use crate::engine::evaluation::{self, Evaluation, EvaluationCase};
use crate::engine::gates::held::ActionCall;
use crate::engine::gates::holding::SESSION_START;
use crate::engine::injection::delivery::deliver_injected;
use crate::engine::injection::withholding::take_pending_injections;
use crate::engine::pipeline::StageResult;
use crate::engine::sessions::lifecycle::{adopt_loaded_atlases, reopen_start_gate};
use crate::engine::transaction::Transaction;

/// The actions that an agent may run now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// Identifier. A request that relies on the resolution names it.
    pub id: String,
    /// The session it is for.
    pub session: SessionId,
    /// Identifiers of the loaded Atlases.
    pub atlas_ids: Vec<String>,
    /// Actions that would run at once.
    pub allowed: Vec<String>,
    /// Actions that would be denied, with reasons.
    pub denied: Vec<DeniedAction>,
    /// Constraints of actions that would be neither allowed at once nor denied.
    pub constraints: Vec<Constraint>,
    /// Contexts that come with the resolution.
    pub contexts: Vec<InjectedContext>,
    /// Guidance that is in force.
    pub guidance: Vec<InjectedGuidance>,
    /// Gates that hold the whole session until an operator passes them.
    pub held: Vec<HeldRequestId>,
    /// Creation time.
    pub issued_at: Timestamp,
    /// Expiry time.
    pub expires_at: Timestamp,
    /// Lifetime in seconds.
    pub ttl_seconds: u64,
}

/// An action that would be denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedAction {
    /// The action.
    pub action: String,
    /// Name of the rule that denies.
    pub policy_id: String,
    /// Reason of the denial.
    pub reason: String,
    /// True when an operator may overrule the denial.
    pub override_available: bool,
}

/// A constraint on an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    /// The action.
    pub action: String,
    /// Kind of the constraint.
    pub kind: ConstraintKind,
    /// The checkpoint or policy.
    pub by: String,
    /// Requirement, for people.
    pub detail: String,
}

/// Kinds of constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConstraintKind {
    /// A gate of the whole session.
    Session,
    /// A gate of the action.
    Gate,
    /// An operator's approval.
    Approval,
    /// A maximum number of runs in a time window.
    RateLimit,
    /// A budget.
    Budget,
    /// A schema of its parameters.
    Parameters,
}

/// An issued resolution, as the engine remembers it.
#[derive(Clone, Debug)]
pub(crate) struct IssuedResolution {
    id: String,
    pub(crate) session: SessionId,
    atlas_hash: Digest,
    expires_at: Timestamp,
    actions: BTreeSet<String>,
}

impl IssuedResolution {
    /// Applies `adjust` to the expiry time.
    pub(crate) fn adjust_timestamps(&mut self, adjust: impl Fn(Timestamp) -> Timestamp) {
        self.expires_at = adjust(self.expires_at);
    }
}

pub(crate) fn resolve_actions(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    resolve: &ResolveRequest,
) -> StageResult {
    if tx.live_session(&resolve.session).is_none() {
        deny_unknown_session(tx, reply_id, &resolve.session);
        return Ok(());
    }
    let mut actions = resolve.actions.iter();
    if let Some(fault) = actions.find_map(|asked| call_fault(&asked.action, &asked.params)) {
        tx.deny(reply_id, DenyCode::BadRequest, fault);
        return Ok(());
    }
    adopt_loaded_atlases(tx, &resolve.session)?;
    reopen_start_gate(tx, &resolve.session);
    if let Some(text) = &resolve.input {
        let input = InputReport {
            session: resolve.session.clone(),
            text: text.clone(),
            source: InputSource::User,
            reaches_asked_agent: false,
            waits_for_start: false,
            deadline: None,
        };
        if let Some((code, reason)) = process_input(tx, None, &input)? {
            tx.deny(reply_id, code, reason);
            return Ok(());
        }
    }
    let Some(mut resolution) = build_resolution(tx, resolve) else {
        return Ok(());
    };
    let mut injected = take_pending_injections(tx, &resolve.session);
    deliver_injected(tx, &mut injected);
    resolution.contexts = injected.contexts;
    let open = tx
        .live_session(&resolve.session)
        .filter(|session| !session.is_blocked());
    resolution.guidance = open
        .map(|session| session.guidance.clone())
        .unwrap_or_default();
    tx.mark_changed(&resolve.session);
    remember_resolution(tx, &resolution);
    tx.reply_to_agent(reply_id, AgentReply::Resolved(Box::new(resolution)));
    Ok(())
}

fn build_resolution(tx: &mut Transaction<'_>, resolve: &ResolveRequest) -> Option<Resolution> {
    let id = tx.new_span().to_string();
    let session = tx.live_session(&resolve.session)?;
    let held = session.blocking_gates();
    let mut resolution = Resolution {
        id,
        session: resolve.session.clone(),
        atlas_ids: tx
            .engine
            .atlases
            .iter()
            .map(|atlas| atlas.id.clone())
            .collect(),
        allowed: Vec::new(),
        denied: Vec::new(),
        constraints: Vec::new(),
        contexts: Vec::new(),
        guidance: Vec::new(),
        held,
        issued_at: tx.now,
        expires_at: tx.now.plus(RESOLUTION_LIFETIME),
        ttl_seconds: RESOLUTION_LIFETIME.as_secs(),
    };
    let asked = resolve.actions.iter();
    let mut actions: Vec<_> = asked
        .map(|asked| (asked.action.clone(), Some(&asked.params)))
        .collect();
    if actions.is_empty() {
        actions = known_actions(tx)
            .into_iter()
            .map(|action| (action, None))
            .collect();
    }
    for (action, params) in actions {
        let params_known = params.is_some();
        let call = ActionCall::of(&tx.engine.atlases, &action, params.unwrap_or(&Value::Null));
        let case = tx.evaluation_case(session, &call);
        let found = evaluation::evaluate_action(case);
        resolution.add(case, &found, params_known);
    }
    Some(resolution)
}

/// Returns every action that the Atlases know by name.
fn known_actions(tx: &Transaction<'_>) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for atlas in tx.engine.atlases.iter() {
        known.extend(atlas.actions.keys().cloned());
        let listed = atlas
            .capabilities
            .iter()
            .flat_map(|capability| capability.actions.iter());
        let literal = listed.filter(|pattern| pattern.is_literal());
        known.extend(literal.map(|pattern| pattern.as_str().to_owned()));
    }
    known
}

fn remember_resolution(tx: &mut Transaction<'_>, resolution: &Resolution) {
    let actions = resolution.allowed.iter().cloned();
    let held = resolution
        .constraints
        .iter()
        .map(|constraint| constraint.action.clone());
    let issued = IssuedResolution {
        id: resolution.id.clone(),
        session: resolution.session.clone(),
        atlas_hash: tx.engine.atlas_hash,
        expires_at: resolution.expires_at,
        actions: actions.chain(held).collect(),
    };
    let now = tx.now;
    let all = &mut tx.state().resolutions;
    all.retain(|earlier| earlier.expires_at > now);
    let own = all
        .iter()
        .filter(|earlier| earlier.session == issued.session)
        .count();
    if own >= MAX_RESOLUTIONS
        && let Some(oldest) = all
            .iter()
            .position(|earlier| earlier.session == issued.session)
    {
        all.remove(oldest);
    }
    all.push(issued);
}

/// Returns the reason why a request may not rely on the resolution that it names.
pub(crate) fn resolution_fault(tx: &Transaction<'_>, request: &ActionRequest) -> Option<String> {
    let id = request.resolution.as_ref()?;
    let shown = crate::base::text::one_line(id);
    let mut all = tx.engine.state.resolutions.iter();
    let own = |issued: &&IssuedResolution| issued.id == *id && issued.session == request.session;
    let Some(issued) = all.find(own) else {
        return Some(format!(
            "resolution `{shown}` does not belong to this session"
        ));
    };
    if issued.expires_at <= tx.now {
        return Some(format!("resolution `{shown}` has expired"));
    }
    if issued.atlas_hash != tx.engine.atlas_hash {
        return Some(format!(
            "resolution `{shown}` was issued under another Atlas"
        ));
    }
    let listed = issued.actions.contains(&request.action);
    (!listed).then(|| format!("resolution `{shown}` does not list `{}`", request.action))
}

/// Refuses a request that relies on an invalid resolution. Returns whether it was refused.
pub(crate) fn refuse_resolution(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    request: &ActionRequest,
) -> bool {
    let Some(reason) = resolution_fault(tx, request) else {
        return false;
    };
    let reason = format!("{reason}; resolve again, or send the request without a resolution");
    refuse_action(
        tx,
        reply_id,
        request,
        DenyCode::Resolution,
        "resolution",
        reason,
    );
    true
}

impl Resolution {
    fn add(&mut self, case: EvaluationCase<'_, '_>, found: &Evaluation<'_>, params_known: bool) {
        let action = case.call.action.to_owned();
        let before = self.constraints.len();
        let mut constrain = |kind, by: &str, detail: &str| {
            self.constraints.push(Constraint {
                action: action.clone(),
                kind,
                by: by.to_owned(),
                detail: detail.to_owned(),
            });
        };
        if let Some(denial) = &found.denial {
            let open = denial.denied.code == DenyCode::Parameters && !params_known;
            if !open {
                self.denied.push(DeniedAction {
                    action,
                    policy_id: denial.by.clone(),
                    reason: denial.denied.reason.clone(),
                    override_available: denial.overrides.is_some(),
                });
                return;
            }
            constrain(
                ConstraintKind::Parameters,
                "parameters_schema",
                "the parameters must match a schema",
            );
        }
        if case.session.is_blocked() {
            constrain(
                ConstraintKind::Session,
                SESSION_START,
                "the session must pass a gate first",
            );
        }
        for fired in &found.fired {
            if fired.checkpoint.mode == CheckpointMode::Blocking {
                constrain(ConstraintKind::Gate, &fired.checkpoint.id, &fired.why);
            }
        }
        for approval in &found.approvals {
            constrain(
                ConstraintKind::Approval,
                approval.policy_id,
                approval.reason,
            );
        }
        if self.constraints.len() == before {
            self.allowed.push(action);
        }
        // An unspent limit prevents nothing now: it is listed, and the action is allowed.
        self.add_limits(case);
    }

    fn add_limits(&mut self, case: EvaluationCase<'_, '_>) {
        for applied in crate::engine::evaluation::policy::limits(case) {
            let (kind, detail) = match &applied.limit {
                Limit::Rate {
                    max_calls, window, ..
                } => (
                    ConstraintKind::RateLimit,
                    format!("{max_calls} runs in {} s", window.as_secs()),
                ),
                Limit::Budget { limit, .. } => {
                    (ConstraintKind::Budget, format!("{limit} in total"))
                }
            };
            let by = applied.key.split('/').nth(1).unwrap_or_default().to_owned();
            self.constraints.push(Constraint {
                action: case.call.action.to_owned(),
                kind,
                by,
                detail,
            });
        }
    }
}
