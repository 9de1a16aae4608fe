//! Comparison of an Atlas with its replacement: changed parts, and possible losses of protection.
//!
//! Contract: every change that is not known to be at least as strict as before is reported, even if it looks
//! harmless. A superfluous warning costs less than a gate that disappears unnoticed.

use std::collections::BTreeMap;
use std::fmt;

use super::document::{
    AccessKind, AccessRules, CheckpointMode, DefaultDecision, PolicyKind, Respondent,
    UnknownActions,
};
use super::model::{Atlas, Capability, Checkpoint, DeclaredAction, Policy};
use super::origin::PartKind;
use super::recording::RecordingRules;
use crate::base::pattern::Patterns;

mod atlas_sets;

pub use atlas_sets::{AtlasChange, atlas_changes};

/// The differences between two Atlases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Changed parts: parts of the old Atlas in its order, then the added parts.
    pub parts: Vec<PartChange>,
    /// Descriptions of the changes that may stop agents less often.
    pub weaker: Vec<String>,
}

/// A part that differs between two Atlases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartChange {
    /// Kind of the part.
    pub part: PartKind,
    /// Identifier of the part.
    pub id: String,
    /// Kind of the change.
    pub kind: ChangeKind,
}

/// The kind of change of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The part is new.
    Added,
    /// The part was removed.
    Removed,
    /// The content of the part changed.
    Changed,
}

impl Comparison {
    /// Counts the parts of a kind that changed in the given way.
    #[must_use]
    pub fn count(&self, part: PartKind, how: ChangeKind) -> usize {
        let parts = self.parts.iter();
        parts
            .filter(|change| change.part == part && change.kind == how)
            .count()
    }
}

/// Compares the loaded Atlas with its replacement.
#[must_use]
pub fn compare(before: &Atlas, after: &Atlas) -> Comparison {
    let mut comparison = Comparison::default();
    defaults(before, after, &mut comparison.weaker);
    let by_id = |checkpoint: &Checkpoint| checkpoint.id.clone();
    let pairs = paired(&before.checkpoints, &after.checkpoints, by_id);
    comparison.compare_pairs(
        PartKind::Checkpoint,
        pairs,
        is_same_checkpoint,
        report_weaker_checkpoint,
    );
    let by_id = |policy: &Policy| policy.id.clone();
    let pairs = paired(&before.policies, &after.policies, by_id);
    comparison.compare_pairs(
        PartKind::Policy,
        pairs,
        is_same_policy,
        report_weaker_policy,
    );
    let by_id = |capability: &Capability| capability.id.clone();
    let pairs = paired(&before.capabilities, &after.capabilities, by_id);
    comparison.compare_pairs(
        PartKind::Capability,
        pairs,
        is_same_capability,
        report_weaker_capability,
    );
    let contexts = before.contexts.keys().chain(after.contexts.keys());
    let contexts: Vec<_> = contexts.cloned().collect();
    for id in unique(contexts) {
        let (old, new) = (before.contexts.get(&id), after.contexts.get(&id));
        comparison.add_change(PartKind::Context, id, (old, new), |old, new| old == new);
    }
    let actions = before.actions.keys().chain(after.actions.keys());
    let actions: Vec<_> = actions.cloned().collect();
    for id in unique(actions) {
        let (old, new) = (before.actions.get(&id), after.actions.get(&id));
        let written = if action_source(before, &id) == action_source(after, &id) {
            ActionTextComparison::Same
        } else {
            ActionTextComparison::Different
        };
        let same = |old: &DeclaredAction, new: &DeclaredAction| {
            written == ActionTextComparison::Same
                && old.name == new.name
                && old.risk_tier == new.risk_tier
        };
        report_weaker_action(&id, (old, new), written, &mut comparison.weaker);
        comparison.add_change(PartKind::Action, id, (old, new), same);
    }
    comparison
}

/// The old and the new version of one part.
type PartPair<'a, T> = (Option<&'a T>, Option<&'a T>);

impl Comparison {
    fn add_change<T>(
        &mut self,
        part: PartKind,
        id: String,
        pair: PartPair<'_, T>,
        same: impl FnOnce(&T, &T) -> bool,
    ) {
        let how = match pair {
            (Some(old), Some(new)) if same(old, new) => return,
            (Some(_), Some(_)) => ChangeKind::Changed,
            (Some(_), None) => ChangeKind::Removed,
            (None, Some(_)) => ChangeKind::Added,
            (None, None) => return,
        };
        self.parts.push(PartChange {
            part,
            id,
            kind: how,
        });
    }

    fn compare_pairs<T>(
        &mut self,
        part: PartKind,
        pairs: Vec<(String, PartPair<'_, T>)>,
        same: impl Fn(&T, &T) -> bool,
        weaker: impl Fn(&str, PartPair<'_, T>, &mut Vec<String>),
    ) {
        for (id, pair) in pairs {
            weaker(&id, pair, &mut self.weaker);
            self.add_change(part, id, pair, &same);
        }
    }
}

fn unique(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids.dedup();
    ids
}

/// Pairs old and new parts by identifier: in the old order, then the added parts.
fn paired<'a, T>(
    before: &'a [T],
    after: &'a [T],
    id: impl Fn(&T) -> String,
) -> Vec<(String, PartPair<'a, T>)> {
    let mut new: BTreeMap<String, &T> = after.iter().map(|part| (id(part), part)).collect();
    let mut pairs: Vec<(String, PartPair<'_, T>)> = Vec::new();
    for old in before {
        let id = id(old);
        let now = new.remove(&id);
        pairs.push((id, (Some(old), now)));
    }
    let rest = after.iter().map(&id);
    for id in rest {
        if let Some(now) = new.remove(&id) {
            pairs.push((id, (None, Some(now))));
        }
    }
    pairs
}

fn defaults(before: &Atlas, after: &Atlas, weaker: &mut Vec<String>) {
    if before.id != after.id {
        weaker.push(format!(
            "different Atlas: `{}` instead of `{}`",
            after.id, before.id
        ));
    }
    if before.default_decision == DefaultDecision::Deny
        && after.default_decision == DefaultDecision::Allow
    {
        weaker.push("known actions without a policy are now allowed".to_owned());
    }
    let openness = |policy: UnknownActions| match policy {
        UnknownActions::Deny => 0,
        UnknownActions::Approve => 1,
        UnknownActions::Allow => 2,
    };
    if openness(after.unknown_actions) > openness(before.unknown_actions) {
        let words = match after.unknown_actions {
            UnknownActions::Allow => "unknown actions are now allowed",
            UnknownActions::Approve | UnknownActions::Deny => {
                "unknown actions are now held, not denied"
            }
        };
        weaker.push(words.to_owned());
    }
    if before.risk_mode != after.risk_mode {
        weaker.push("undeclared actions get their risk tier differently".to_owned());
    }
    compare_recording(&before.recording, &after.recording, weaker);
    let access = |atlas: &Atlas| {
        atlas
            .steward
            .as_ref()
            .and_then(|steward| steward.access.clone())
    };
    compare_access(access(before).as_ref(), access(after).as_ref(), weaker);
    let notifications = |atlas: &Atlas| {
        atlas
            .steward
            .as_ref()
            .and_then(|steward| steward.notifications.clone())
    };
    if notifications(before) != notifications(after) {
        weaker.push("notices to the steward changed (events or address)".to_owned());
    }
}

fn compare_recording(before: &RecordingRules, after: &RecordingRules, weaker: &mut Vec<String>) {
    let RecordingRules {
        level,
        acknowledge,
        sync,
        retention,
        redact,
    } = before;
    let differs =
        |old: &dyn fmt::Debug, new: &dyn fmt::Debug| format!("{old:?}") != format!("{new:?}");
    let words = [
        (after.level < *level, "fewer events are recorded"),
        (
            after.acknowledge < *acknowledge,
            "agents get replies before their events are on disk",
        ),
        (
            *sync != after.sync,
            "other events must be on disk before a reply",
        ),
        (
            differs(retention, &after.retention),
            "the retention of records changed",
        ),
        (
            differs(redact, &after.redact),
            "the redaction of records changed",
        ),
    ];
    let changes = words.into_iter().filter(|(applies, _)| *applies);
    weaker.extend(changes.map(|(_, words)| words.to_owned()));
}

/// Compares the access rules for agents. An Atlas without `access` counts as `public` without a rate limit.
fn compare_access(
    before: Option<&AccessRules>,
    after: Option<&AccessRules>,
    weaker: &mut Vec<String>,
) {
    let needs_key = |access: Option<&AccessRules>| {
        access.is_some_and(|access| match access.kind {
            AccessKind::Authenticated => true,
            AccessKind::Public => false,
        })
    };
    if needs_key(before) && !needs_key(after) {
        weaker.push("agents no longer need a key".to_owned());
    } else if needs_key(before)
        && before.map(|access| &access.api_keys) != after.map(|access| &access.api_keys)
    {
        weaker.push("accepted API keys changed".to_owned());
    }
    let rate = |access: Option<&AccessRules>| {
        let rate = access.and_then(|access| access.rate_limit);
        rate.map_or(u64::MAX, |rate| rate.requests_per_minute)
    };
    if rate(after) > rate(before) {
        weaker.push("agents have a higher rate limit".to_owned());
    }
}

fn is_same_checkpoint(old: &Checkpoint, new: &Checkpoint) -> bool {
    // Destructured field by field, so that a new field cannot be forgotten here.
    let Checkpoint {
        id: _,
        name,
        kind: _,
        trigger: _,
        mode: _,
        questions: _,
        guidance,
        inject_contexts,
        unlock_capabilities: _,
        lock_capabilities: _,
        allow_actions: _,
        deny_actions: _,
        force_sync_trace,
        priority,
        timeout_seconds,
        respondent: _,
        approvers: _,
        when: _,
        unless: _,
        handler: _,
    } = old;
    has_same_stops(old, new)
        && has_same_effects(old, new)
        && (name, guidance, inject_contexts) == (&new.name, &new.guidance, &new.inject_contexts)
        && (priority, timeout_seconds, force_sync_trace)
            == (&new.priority, &new.timeout_seconds, &new.force_sync_trace)
}

/// Returns true if two checkpoints stop the same requests in the same way.
fn has_same_stops(old: &Checkpoint, new: &Checkpoint) -> bool {
    has_same_trigger(old, new)
        && old.mode == new.mode
        && old.respondent == new.respondent
        && old.approvers == new.approvers
        && old.questions == new.questions
        && old.handler == new.handler
}

fn has_same_trigger(old: &Checkpoint, new: &Checkpoint) -> bool {
    old.trigger == new.trigger && old.when == new.when && old.unless == new.unless
}

/// Returns true if passing either checkpoint has the same effects.
fn has_same_effects(old: &Checkpoint, new: &Checkpoint) -> bool {
    old.unlock_capabilities == new.unlock_capabilities
        && old.lock_capabilities == new.lock_capabilities
        && old.allow_actions == new.allow_actions
        && old.deny_actions == new.deny_actions
}

fn report_weaker_checkpoint(id: &str, pair: PartPair<'_, Checkpoint>, weaker: &mut Vec<String>) {
    let mut say = |words: String| weaker.push(words);
    let (old, new) = match pair {
        (Some(old), None) => {
            if old.mode == CheckpointMode::Blocking {
                say(format!("checkpoint `{id}` is removed"));
            } else if !(old.lock_capabilities.is_empty() && old.deny_actions.is_empty()) {
                say(format!("`{id}` is removed: its locks and denials end"));
            }
            return;
        }
        (None, Some(new)) => {
            let gives = !(new.unlock_capabilities.is_empty() && new.allow_actions.is_empty());
            if gives && new.mode != CheckpointMode::Blocking {
                say(format!("`{id}` is new and grants rights without a gate"));
            }
            return;
        }
        (Some(old), Some(new)) => (old, new),
        (None, None) => return,
    };
    if old.mode == CheckpointMode::Blocking {
        if new.mode != CheckpointMode::Blocking {
            say(format!("checkpoint `{id}` no longer blocks"));
        }
        if !has_same_trigger(old, new) {
            say(format!("checkpoint `{id}` has another trigger"));
        }
        if old.questions != new.questions {
            say(format!("checkpoint `{id}` asks other questions"));
        }
        if old.respondent == Respondent::Operator && new.respondent != Respondent::Operator {
            say(format!("checkpoint `{id}` lets the agent answer"));
        }
        if new.approvers.count() < old.approvers.count() {
            say(format!("checkpoint `{id}` needs one operator, not two"));
        }
        if old.handler != new.handler {
            say(format!("checkpoint `{id}` changed or lost its handler"));
        }
    }
    if !has_same_effects(old, new) {
        say(format!("passing `{id}` grants or removes other rights"));
    }
}

fn is_same_policy(old: &Policy, new: &Policy) -> bool {
    has_same_rules(old, new) && old.reason == new.reason
}

fn has_same_rules(old: &Policy, new: &Policy) -> bool {
    old.kind == new.kind
        && old.actions == new.actions
        && old.when == new.when
        && old.limit == new.limit
        && old.overridable == new.overridable
}

fn report_weaker_policy(id: &str, pair: PartPair<'_, Policy>, weaker: &mut Vec<String>) {
    let words = match pair {
        (Some(old), None) if old.kind != PolicyKind::Allow => {
            format!("policy `{id}` is removed")
        }
        (None, Some(new)) if new.kind == PolicyKind::Allow => {
            format!("new policy `{id}` allows {}", format_patterns(&new.actions))
        }
        (Some(old), Some(new)) if !old.overridable && new.overridable => {
            format!("policy `{id}` allows an override")
        }
        (Some(old), Some(new)) if !has_same_rules(old, new) => {
            format!("policy `{id}` has different rules")
        }
        (Some(_) | None, Some(_) | None) => return,
    };
    weaker.push(words);
}

fn is_same_capability(old: &Capability, new: &Capability) -> bool {
    old.name == new.name && old.actions == new.actions && old.starts_locked == new.starts_locked
}

fn report_weaker_capability(id: &str, pair: PartPair<'_, Capability>, weaker: &mut Vec<String>) {
    let words = match pair {
        (Some(old), None) if old.starts_locked => {
            format!("capability `{id}` is removed with its lock")
        }
        (Some(old), Some(new)) if old.starts_locked && !new.starts_locked => {
            format!("capability `{id}` no longer starts locked")
        }
        (Some(old), Some(new)) if old.actions != new.actions => {
            format!("capability `{id}` has different actions")
        }
        (None, Some(new)) if !new.starts_locked => {
            format!(
                "new capability `{id}` adds actions {}",
                format_patterns(&new.actions)
            )
        }
        (Some(_) | None, Some(_) | None) => return,
    };
    weaker.push(words);
}

/// Result of comparing the source text of an action in both Atlases.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ActionTextComparison {
    Same,
    Different,
}

fn report_weaker_action(
    id: &str,
    pair: PartPair<'_, DeclaredAction>,
    written: ActionTextComparison,
    weaker: &mut Vec<String>,
) {
    match pair {
        (None, Some(_)) => weaker.push(format!("action `{id}` is now known")),
        (Some(old), Some(new)) => {
            match (&old.parameters, &new.parameters) {
                (Some(_), None) => {
                    weaker.push(format!("parameters of `{id}` are no longer checked"));
                }
                (Some(_), Some(_)) if written == ActionTextComparison::Different => {
                    let words = format!("`{id}` changed: compare its parameter schema");
                    weaker.push(words);
                }
                (Some(_), Some(_)) | (None, _) => {}
            }
            match (old.risk_tier, new.risk_tier) {
                (Some(old), Some(new)) if new < old => {
                    weaker.push(format!("action `{id}` is {new} risk, not {old}"));
                }
                (Some(old), None) => {
                    weaker.push(format!("action `{id}` no longer declares {old} risk"));
                }
                (Some(_) | None, Some(_)) | (None, None) => {}
            }
        }
        (Some(_) | None, None) => {}
    }
}

/// Returns the source lines of an action; its compiled schema cannot be compared.
fn action_source(atlas: &Atlas, id: &str) -> Option<String> {
    let (first, last) = atlas.origin.lines_of(PartKind::Action, id)?;
    let lines = atlas.text.lines().skip(first.saturating_sub(1));
    let lines: Vec<_> = lines.take(last + 1 - first).map(str::trim).collect();
    Some(lines.join("\n"))
}

fn format_patterns(patterns: &Patterns) -> String {
    let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
    format!("[{}]", patterns.join(", "))
}

#[cfg(test)]
mod tests;
