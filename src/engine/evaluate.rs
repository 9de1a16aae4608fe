//! What stands in a request's way. Reads state, changes none.

use std::collections::BTreeSet;

use serde_json::Value;

use super::held::{ActionCall, TierSource};
use super::policy::{
    Approval, PolicyVerdict, approvals, default_for, denying_policy, not_allowed, policy_verdict,
    spent_limit,
};
use super::risk;
use super::session::Session;
use super::usage::Usage;
use crate::atlas::compiled::{Atlas, Checkpoint, Trigger};
use crate::atlas::condition::{Condition, Facts, Truth};
use crate::atlas::document::{RiskMode, RiskTier, UnknownActions};
use crate::base::clock::Timestamp;

use super::command::{Denied, DenyCode};

/// What an evaluation comes to.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    /// Which policy decided what, for the record.
    pub(super) policy: PolicyVerdict<'a>,
    /// A refusal that no answer can lift.
    pub(super) denial: Option<Denial>,
    /// Checkpoints that fire, highest priority first.
    pub(super) fired: Vec<Fired<'a>>,
    /// Policies that want an operator's approval.
    pub(super) approvals: Vec<Approval<'a>>,
}

/// A refusal that no answer can lift.
#[derive(Debug)]
pub(super) struct Denial {
    /// What refuses, for the record.
    pub(super) by: String,
    /// What the agent is told.
    pub(super) denied: Denied,
}

/// A checkpoint that fires.
#[derive(Debug)]
pub(super) struct Fired<'a> {
    /// Its Atlas.
    pub(super) atlas: &'a Atlas,
    /// The checkpoint.
    pub(super) checkpoint: &'a Checkpoint,
    /// Why, for people.
    pub(super) why: String,
}

/// What an action is judged by.
#[derive(Clone, Copy)]
pub(super) struct Case<'a, 's> {
    /// The Atlases.
    pub(super) atlases: &'a [Atlas],
    /// What was used of limits.
    pub(super) usage: &'s Usage,
    /// Who asks.
    pub(super) session: &'s Session,
    /// For what.
    pub(super) call: &'s ActionCall,
    /// When.
    pub(super) now: Timestamp,
}

impl Case<'_, '_> {
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts {
            action: Some(&self.call.action),
            params: Some(&self.call.params),
            ..session_facts(self.session, self.now)
        }
    }

    /// Whether a condition lets a rule that holds agents back apply. What cannot be told does.
    pub(super) fn holds(&self, when: Option<&Condition>) -> bool {
        when.is_none_or(|when| when.evaluate(&self.facts()) != Truth::False)
    }

    /// Whether a condition lets a rule that lets agents go on apply. What cannot be told does not.
    pub(super) fn surely_holds(&self, when: Option<&Condition>) -> bool {
        when.is_none_or(|when| when.evaluate(&self.facts()) == Truth::True)
    }
}

/// Evaluates an action against every Atlas. Deny in any of them wins.
pub(super) fn action<'a>(case: Case<'a, '_>) -> Evaluation<'a> {
    let Case {
        atlases,
        session,
        call,
        ..
    } = case;
    let approvals = approvals(case);
    let denied_by = denying_policy(case);
    let by_default = default_for(case);
    let policy = policy_verdict(case, denied_by.as_ref(), by_default, &approvals);
    let denial = unknown_action(atlases, session, &call.action)
        .or(denied_by.map(|policy| policy.denial))
        .or_else(|| denied_action(session, &call.action))
        .or_else(|| locked_capability(case))
        .or_else(|| not_allowed(case))
        .or_else(|| bad_parameters(atlases, call))
        .or_else(|| spent_limit(case));
    Evaluation {
        policy,
        denial,
        fired: fired(case),
        approvals,
    }
}

/// What is known of a session on its own.
fn session_facts(session: &Session, now: Timestamp) -> Facts<'_> {
    Facts {
        action: None,
        params: None,
        input: None,
        session: session.id.as_str(),
        agent: &session.agent,
        intent: session.intent.as_deref(),
        actions: session.actions,
        started_at: session.started_at,
        now,
    }
}

/// The checkpoints that fire when a session starts, and those that fired before and are `owed`.
pub(super) fn session_start<'a>(
    atlases: &'a [Atlas],
    session: &Session,
    owed: &BTreeSet<String>,
    now: Timestamp,
) -> Vec<Fired<'a>> {
    let facts = session_facts(session, now);
    let mut fired = Vec::new();
    for atlas in atlases {
        let matching = atlas.checkpoints.iter().filter(|checkpoint| {
            let when = checkpoint.when.as_ref();
            matches!(checkpoint.trigger, Trigger::SessionStart)
                && (owed.contains(&checkpoint.id)
                    || when.is_none_or(|when| when.evaluate(&facts) != Truth::False))
        });
        fired.extend(matching.map(|checkpoint| Fired {
            atlas,
            checkpoint,
            why: "session_start: every session begins here".to_owned(),
        }));
    }
    by_priority(fired)
}

/// Something that happens beside actions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occasion<'o> {
    /// Input came.
    Input(&'o str),
    /// An action ran.
    Done(&'o str),
    /// An error was reported.
    Error,
    /// Context was asked for.
    Context,
    /// A checkpoint was asked for by its name.
    Named(&'o str),
    /// The session ends.
    SessionEnd,
    /// The session wants to act: are intervals due?
    Beat,
}

/// The checkpoints that fire on an occasion.
pub(super) fn on<'a>(
    atlases: &'a [Atlas],
    session: &Session,
    occasion: Occasion<'_>,
    now: Timestamp,
) -> Vec<Fired<'a>> {
    let mut facts = session_facts(session, now);
    match occasion {
        Occasion::Input(text) => facts.input = Some(text),
        Occasion::Done(action) => facts.action = Some(action),
        Occasion::Error
        | Occasion::Context
        | Occasion::Named(_)
        | Occasion::SessionEnd
        | Occasion::Beat => {}
    }
    let mut fired = Vec::new();
    for atlas in atlases {
        for checkpoint in &atlas.checkpoints {
            let Some(why) = occasion_firing(atlas, checkpoint, session, occasion, now) else {
                continue;
            };
            let when = checkpoint.when.as_ref();
            if when.is_none_or(|when| when.evaluate(&facts) != Truth::False) {
                fired.push(Fired {
                    atlas,
                    checkpoint,
                    why,
                });
            }
        }
    }
    by_priority(fired)
}

fn occasion_firing(
    atlas: &Atlas,
    checkpoint: &Checkpoint,
    session: &Session,
    occasion: Occasion<'_>,
    now: Timestamp,
) -> Option<String> {
    let beat = || {
        let mut beats = session.beats.iter();
        beats.find(|beat| beat.key.0 == atlas.id && beat.key.1 == checkpoint.id)
    };
    match (&checkpoint.trigger, occasion) {
        (Trigger::Keyword(keywords), Occasion::Input(text)) => {
            let found = keywords.find(text);
            let words: Vec<_> = found.iter().map(|m| format!("`{}`", m.keyword)).collect();
            (!found.is_empty()).then(|| format!("keyword: found {}", words.join(", ")))
        }
        (Trigger::ActionPost(patterns), Occasion::Done(action)) => {
            let pattern = patterns.first_match(action)?;
            Some(format!("action_post: `{action}` matches `{pattern}`"))
        }
        (Trigger::Custom(custom), Occasion::Input(_)) => {
            (custom.on_input).then(|| "custom: it counts as firing".to_owned())
        }
        (Trigger::ErrorOccurred, Occasion::Error) => {
            Some("error_occurred: it was reported".to_owned())
        }
        (Trigger::ExplicitRequest, Occasion::Context) => {
            Some("explicit_request: the agent asked for context".to_owned())
        }
        (Trigger::Interactive, Occasion::Named(name)) => {
            (checkpoint.id == name).then(|| "interactive: the agent asked for it".to_owned())
        }
        (Trigger::SessionEnd, Occasion::SessionEnd) => Some("session_end: it ends".to_owned()),
        (Trigger::TimeInterval(interval), Occasion::Beat) => {
            let last = beat().map_or(session.started_at, |beat| beat.at);
            let seconds = interval.as_secs();
            (now.since(last) >= *interval)
                .then(|| format!("time_interval: {seconds} s have passed"))
        }
        (Trigger::CountInterval(interval), Occasion::Beat) => {
            let last = beat().map_or(0, |beat| beat.actions);
            (session.actions.saturating_sub(last) >= *interval)
                .then(|| format!("count_interval: {interval} actions have run"))
        }
        _ => None,
    }
}

/// How risky an action is. The highest declared tier counts; without one it is detected.
pub(super) fn tier(atlases: &[Atlas], action: &str, params: &Value) -> (RiskTier, TierSource) {
    let declared = atlases
        .iter()
        .filter_map(|atlas| atlas.actions.get(action)?.risk_tier)
        .max();
    if let Some(tier) = declared {
        return (tier, TierSource::Declared);
    }
    let found = atlases.iter().map(|atlas| match atlas.risk_mode {
        RiskMode::Detect => risk::detect(action, params),
        RiskMode::FirstMatch => risk::first_match(action, params),
    });
    // The highest counts, whichever Atlas finds it.
    let tier = found.max().unwrap_or_else(|| risk::detect(action, params));
    (tier, TierSource::Detected)
}

fn fired<'a>(case: Case<'a, '_>) -> Vec<Fired<'a>> {
    let mut fired = Vec::new();
    for atlas in case.atlases {
        for checkpoint in &atlas.checkpoints {
            if let Firing::Fires { why } = firing(case, atlas, checkpoint) {
                fired.push(Fired {
                    atlas,
                    checkpoint,
                    why,
                });
            }
        }
    }
    by_priority(fired)
}

/// Whether a checkpoint fires on an action, with what it wanted and what it found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Firing {
    /// It does.
    Fires {
        /// Why, for people.
        why: String,
    },
    /// It does not.
    Not {
        /// What it wanted.
        wanted: String,
        /// What it found.
        actual: String,
    },
    /// It is not about actions.
    Elsewhere {
        /// When it fires.
        at: &'static str,
    },
}

pub(super) fn firing(case: Case<'_, '_>, atlas: &Atlas, checkpoint: &Checkpoint) -> Firing {
    let firing = trigger_firing(case, atlas, checkpoint);
    if matches!(firing, Firing::Fires { .. }) && !case.holds(checkpoint.when.as_ref()) {
        return Firing::Not {
            wanted: "when".to_owned(),
            actual: "its condition does not hold".to_owned(),
        };
    }
    firing
}

fn trigger_firing(case: Case<'_, '_>, atlas: &Atlas, checkpoint: &Checkpoint) -> Firing {
    let call = case.call;
    let not = |wanted: String, actual: String| Firing::Not { wanted, actual };
    let elsewhere = |at| Firing::Elsewhere { at };
    let fires = |why: String| Firing::Fires { why };
    match &checkpoint.trigger {
        Trigger::SessionStart => elsewhere("the start of a session"),
        Trigger::SessionEnd => elsewhere("the end of a session"),
        Trigger::ActionPost(_) => elsewhere("the end of an action"),
        Trigger::Custom(custom) if custom.on_action => fires("custom: it counts as firing".into()),
        Trigger::Keyword(_) | Trigger::Custom(_) => elsewhere("input"),
        Trigger::TimeInterval(_) | Trigger::CountInterval(_) => elsewhere("intervals"),
        Trigger::ExplicitRequest | Trigger::Interactive => elsewhere("the agent's request"),
        Trigger::ErrorOccurred => elsewhere("errors"),
        Trigger::ActionPre(patterns) => match patterns.first_match(&call.action) {
            Some(pattern) => match checkpoint.unless.first_match(&call.action) {
                Some(closer) => not(
                    format!("no key closer than `{pattern}`"),
                    format!("`{closer}` matches {} as well", call.action),
                ),
                None => fires(format!("action_pre: `{}` matches `{pattern}`", call.action)),
            },
            None => not(
                format!("an action like {}", listed(patterns.iter())),
                call.action.clone(),
            ),
        },
        Trigger::RiskThreshold(min_tier) => {
            let source = match call.tier_source {
                TierSource::Declared => "declared",
                TierSource::Detected => "detected",
            };
            let tier = call.tier;
            if tier >= *min_tier {
                let why = format!("risk_threshold: {source} tier {tier} is at least {min_tier}");
                Firing::Fires { why }
            } else {
                not(
                    format!("tier {min_tier} or higher"),
                    format!("{source} tier {tier}"),
                )
            }
        }
        Trigger::CapabilityAccess(gated) => {
            let mut capabilities = atlas.capabilities_of(&call.action);
            let locked = capabilities.find(|capability| {
                gated.contains(&capability.id) && case.session.lacks(atlas, capability)
            });
            if let Some(capability) = locked {
                let why = format!("capability_access: `{}` is locked", capability.id);
                return Firing::Fires { why };
            }
            let actual: Vec<_> = atlas.capabilities_of(&call.action).map(|c| &c.id).collect();
            not(format!("a locked one of {}", listed(gated)), listed(actual))
        }
    }
}

fn listed<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(", "))
}

fn by_priority(mut fired: Vec<Fired<'_>>) -> Vec<Fired<'_>> {
    // Stable: ties stay in the order of the Atlases, then as written.
    fired.sort_by_key(|fired| std::cmp::Reverse(fired.checkpoint.priority));
    fired
}

pub(super) fn known(atlases: &[Atlas], action: &str) -> bool {
    atlases.iter().any(|atlas| atlas.knows(action))
}

pub(super) fn unknown_action(atlases: &[Atlas], session: &Session, action: &str) -> Option<Denial> {
    if known(atlases, action) || session.allows(action) {
        return None;
    }
    // Deny in any Atlas wins, and no Atlas at all allows nothing.
    let allowed = atlases
        .iter()
        .all(|atlas| atlas.unknown_actions != UnknownActions::Deny);
    if allowed && !atlases.is_empty() {
        return None;
    }
    let (reason, help) = if atlases.is_empty() {
        (
            "no Atlas is loaded, so nothing is allowed".to_owned(),
            "start cra with --atlas FILE",
        )
    } else {
        (
            format!("no loaded Atlas knows the action `{action}`"),
            "a steward can declare it under `actions` or in a capability",
        )
    };
    Some(denial(
        "unknown_actions",
        DenyCode::UnknownAction,
        reason,
        Some(help),
    ))
}

fn denied_action(session: &Session, action: &str) -> Option<Denial> {
    let (gate, pattern) = session.denial_of(action)?;
    let reason = format!("checkpoint `{gate}` denies `{pattern}` in this session");
    Some(denial(gate, DenyCode::DeniedAction, reason, None))
}

fn locked_capability(case: Case<'_, '_>) -> Option<Denial> {
    let session = case.session;
    for atlas in case.atlases {
        for capability in atlas.capabilities_of(&case.call.action) {
            // A gate that stands before it takes over, unless its condition keeps it from firing.
            let gated = !session.locked.contains(&capability.id)
                && gates_of(atlas, &capability.id).any(|gate| case.holds(gate.when.as_ref()));
            if !session.lacks(atlas, capability) || gated {
                continue;
            }
            let unlocking: Vec<_> = atlas
                .checkpoints
                .iter()
                .filter(|checkpoint| checkpoint.unlock_capabilities.contains(&capability.id))
                .map(|checkpoint| format!("`{}`", checkpoint.id))
                .collect();
            let reason = format!("capability `{}` is locked in this session", capability.id);
            let mut denial = denial(&capability.id, DenyCode::CapabilityLocked, reason, None);
            if !unlocking.is_empty() {
                let help = format!("it is unlocked by passing {}", unlocking.join(" or "));
                denial.denied.help = Some(help);
            }
            return Some(denial);
        }
    }
    None
}

/// The checkpoints that gate access to a capability.
fn gates_of<'a>(atlas: &'a Atlas, capability: &'a str) -> impl Iterator<Item = &'a Checkpoint> {
    atlas.checkpoints.iter().filter(move |checkpoint| {
        matches!(&checkpoint.trigger, Trigger::CapabilityAccess(gated) if gated.contains(capability))
            && checkpoint.mode == crate::atlas::document::CheckpointMode::Blocking
    })
}

fn bad_parameters(atlases: &[Atlas], call: &ActionCall) -> Option<Denial> {
    let mut actions = atlases
        .iter()
        .filter_map(|atlas| atlas.actions.get(&call.action));
    let told = actions.find_map(|action| action.parameter_fault(&call.params))?;
    let reason = format!("the parameters of `{}` are wrong: {told}", call.action);
    Some(denial(
        "parameters_schema",
        DenyCode::Parameters,
        reason,
        None,
    ))
}

pub(super) fn denial(by: &str, code: DenyCode, reason: String, help: Option<&str>) -> Denial {
    Denial {
        by: by.to_owned(),
        denied: Denied {
            code,
            reason,
            help: help.map(str::to_owned),
            gate: None,
        },
    }
}
