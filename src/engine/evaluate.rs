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
use crate::atlas::document::{RiskMode, RiskTier};
use crate::base::clock::Timestamp;

use super::customs::{CustomFiring, Customs};
use super::deny::{Denial, bad_parameters, denied_action, locked_capability, unknown_action};

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

/// A checkpoint that fires.
#[derive(Debug)]
pub(super) struct Fired<'a> {
    /// Its Atlas.
    pub(super) atlas: &'a Atlas,
    /// The checkpoint.
    pub(super) checkpoint: &'a Checkpoint,
    /// Why, for people.
    pub(super) why: String,
    /// Whether that is known, or only cannot be ruled out.
    pub(super) certain: bool,
}

/// Keywords of a checkpoint that were found in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeywordFiring {
    /// Index of the Atlas, and of the checkpoint in it.
    pub(super) place: (usize, usize),
    /// What was found, for people.
    pub(super) why: String,
}

/// No denial is overruled.
pub(super) const NOTHING_OVERRIDDEN: &BTreeSet<String> = &BTreeSet::new();

/// What an action is judged by.
#[derive(Clone, Copy)]
pub(super) struct Case<'a, 's> {
    /// The Atlases.
    pub(super) atlases: &'a [Atlas],
    /// What was used of limits.
    pub(super) usage: &'s Usage,
    /// What is known about custom triggers.
    pub(super) customs: Customs<'s>,
    /// Denials that an operator overruled for exactly this request.
    pub(super) overridden: &'s BTreeSet<String>,
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
    // What an operator may overrule comes last: overruling it would not help against the others.
    let (soft, hard) = match denied_by.map(|policy| policy.denial) {
        Some(denial) if denial.overrides.is_some() => (Some(denial), None),
        other => (None, other),
    };
    let denial = unknown_action(atlases, session, &call.action)
        .or(hard)
        .or_else(|| denied_action(session, &call.action))
        .or_else(|| locked_capability(case))
        .or_else(|| not_allowed(case))
        .or_else(|| bad_parameters(atlases, call))
        .or_else(|| spent_limit(case))
        .or(soft);
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
            certain: surely(checkpoint, &facts),
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
    customs: Customs<'_>,
    now: Timestamp,
) -> Vec<Fired<'a>> {
    let facts = occasion_facts(session, occasion, now);
    let mut fired = Vec::new();
    for atlas in atlases {
        for checkpoint in &atlas.checkpoints {
            let found = match (&checkpoint.trigger, occasion) {
                (Trigger::Custom(custom), Occasion::Input(_)) if custom.on_input => {
                    custom_firing(customs.firing(atlas, checkpoint, custom, &facts))
                }
                _ => occasion_firing(atlas, checkpoint, session, occasion, now)
                    .map(|why| (why, true)),
            };
            let Some((why, certain)) = found else {
                continue;
            };
            let when = checkpoint.when.as_ref();
            if when.is_none_or(|when| when.evaluate(&facts) != Truth::False) {
                fired.push(Fired {
                    atlas,
                    checkpoint,
                    why,
                    certain: certain && surely(checkpoint, &facts),
                });
            }
        }
    }
    by_priority(fired)
}

/// What is known on an occasion.
pub(super) fn occasion_facts<'s>(
    session: &'s Session,
    occasion: Occasion<'s>,
    now: Timestamp,
) -> Facts<'s> {
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
    facts
}

/// Whether a checkpoint's own condition is known to hold.
fn surely(checkpoint: &Checkpoint, facts: &Facts<'_>) -> bool {
    let when = checkpoint.when.as_ref();
    when.is_none_or(|when| when.evaluate(facts) == Truth::True)
}

/// Why a custom trigger fires, and whether that is known.
fn custom_firing(firing: CustomFiring) -> Option<(String, bool)> {
    match firing {
        CustomFiring::Fires { why, certain } => Some((why, certain)),
        CustomFiring::Not { .. } => None,
        CustomFiring::Ask => Some(("custom: its extension has to be asked".to_owned(), false)),
    }
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
            if let Firing::Fires { why, certain } = firing(case, atlas, checkpoint) {
                fired.push(Fired {
                    atlas,
                    checkpoint,
                    why,
                    certain: certain && case.surely_holds(checkpoint.when.as_ref()),
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
        /// Whether that is known, or only cannot be ruled out.
        certain: bool,
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
    let fires = |why: String| Firing::Fires { why, certain: true };
    match &checkpoint.trigger {
        Trigger::SessionStart => elsewhere("the start of a session"),
        Trigger::SessionEnd => elsewhere("the end of a session"),
        Trigger::ActionPost(_) => elsewhere("the end of an action"),
        Trigger::Keyword(_) => elsewhere("input"),
        Trigger::TimeInterval(_) | Trigger::CountInterval(_) => elsewhere("intervals"),
        Trigger::ExplicitRequest | Trigger::Interactive => elsewhere("the agent's request"),
        Trigger::ErrorOccurred => elsewhere("errors"),
        Trigger::Custom(custom) if !custom.on_action => elsewhere("input"),
        Trigger::Custom(custom) => {
            match case
                .customs
                .firing(atlas, checkpoint, custom, &case.facts())
            {
                CustomFiring::Not { wanted, actual } => not(wanted, actual),
                CustomFiring::Fires { why, certain } => Firing::Fires { why, certain },
                CustomFiring::Ask => Firing::Fires {
                    why: format!("custom: `{}` has to be asked", custom.trigger_id),
                    certain: false,
                },
            }
        }
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
                fires(why)
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
                return fires(why);
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
