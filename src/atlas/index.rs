//! The lookup index of an Atlas, built once after validation.
//!
//! The cost of a decision depends on the parts that apply to it, not on the size of the Atlas.
//!
//! Contract: a lookup returns the same parts in the same order as a scan of the Atlas. The index makes no decision;
//! it only returns the parts to evaluate.

mod keywords;
mod matches;
mod patterns;
mod trie;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::document::{InjectMode, RiskTier};
use super::model::{Atlas, Checkpoint, DeclaredAction, InjectionRule, Trigger};
use crate::base::pattern::{Pattern, Patterns};

use keywords::KeywordIndex;
use matches::{PatternOwnerKind, Posting};
use patterns::{PatternIndex, PatternOrName};

pub use keywords::KeywordMatches;
pub use matches::{ActionMatches, MatchedPart};

/// The index of an Atlas.
// INVARIANT: an Atlas is never changed after validation, so the index stays correct.
#[derive(Clone, Debug, Default)]
pub(crate) struct AtlasIndex(Arc<IndexParts>);

#[derive(Debug, Default)]
struct IndexParts {
    /// The distinct patterns.
    patterns: Vec<Pattern>,
    lookup: PatternIndex,
    /// The occurrences of each pattern.
    postings: Vec<Vec<Posting>>,
    /// The declared actions.
    actions: Vec<DeclaredAction>,
    keywords: KeywordIndex,
    checkpoints: CheckpointsByTrigger,
    injections: InjectionsByMode,
}

/// Contexts that are injected without a match, each list in the order of the Atlas.
#[derive(Debug, Default)]
struct InjectionsByMode {
    always: Vec<u32>,
    risk_based: Vec<u32>,
}

/// Checkpoints by trigger, each list in the order of the Atlas.
///
/// Checkpoints on actions are found by pattern, checkpoints on input by keyword.
#[derive(Debug, Default)]
struct CheckpointsByTrigger {
    session_start: Vec<u32>,
    session_end: Vec<u32>,
    intervals: Vec<u32>,
    explicit_request: Vec<u32>,
    errors: Vec<u32>,
    custom_input: Vec<u32>,
    custom_action: Vec<u32>,
    /// Checkpoints by id.
    interactive: BTreeMap<String, Vec<u32>>,
    /// Checkpoints by their lowest risk tier.
    risk: BTreeMap<RiskTier, Vec<u32>>,
    /// Checkpoints by the gated capability.
    access: HashMap<String, Vec<u32>>,
}

impl CheckpointsByTrigger {
    fn new<'a>(of: &'a [Checkpoint], gathered: &mut PatternCollector<'a>) -> Self {
        let mut by = Self::default();
        for (checkpoint, item) in of.iter().zip(0..) {
            match &checkpoint.trigger {
                Trigger::ActionPre(patterns) => {
                    gathered.patterns(PatternOwnerKind::Before, item, patterns);
                }
                Trigger::ActionPost(patterns) => {
                    gathered.patterns(PatternOwnerKind::After, item, patterns);
                }
                // Found through the keyword index.
                Trigger::Keyword(_) => {}
                Trigger::SessionStart => by.session_start.push(item),
                Trigger::SessionEnd => by.session_end.push(item),
                Trigger::TimeInterval(_) | Trigger::CountInterval(_) => by.intervals.push(item),
                Trigger::ExplicitRequest => by.explicit_request.push(item),
                Trigger::ErrorOccurred => by.errors.push(item),
                Trigger::Custom(custom) => {
                    if custom.on_input {
                        by.custom_input.push(item);
                    }
                    if custom.on_action {
                        by.custom_action.push(item);
                    }
                }
                Trigger::Interactive => {
                    let named = by.interactive.entry(checkpoint.id.clone());
                    named.or_default().push(item);
                }
                Trigger::RiskThreshold(tier) => by.risk.entry(*tier).or_default().push(item),
                Trigger::CapabilityAccess(gated) => {
                    for capability in gated {
                        let access = by.access.entry(capability.clone());
                        access.or_default().push(item);
                    }
                }
            }
        }
        by
    }
}

/// An event that fires checkpoints without a pattern, keyword or tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointEvent<'w> {
    /// A session starts.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// An interval may have elapsed.
    Interval,
    /// An agent requests context.
    ExplicitRequest,
    /// An agent reports an error.
    Error,
    /// Input arrives for custom triggers.
    CustomInput,
    /// An action is requested, for custom triggers.
    CustomAction,
    /// An agent requests a checkpoint by name.
    Named(&'w str),
    /// An agent requests a capability.
    Access(&'w str),
}

impl AtlasIndex {
    fn new(of: &Atlas) -> Self {
        let mut gathered = PatternCollector::default();
        for (name, item) in of.actions.keys().zip(0..) {
            gathered.name(name, item);
        }
        for (capability, item) in of.capabilities.iter().zip(0..) {
            gathered.patterns(PatternOwnerKind::Capability, item, &capability.actions);
        }
        for (policy, item) in of.policies.iter().zip(0..) {
            gathered.patterns(PatternOwnerKind::Policy, item, &policy.actions);
        }
        let checkpoints = CheckpointsByTrigger::new(&of.checkpoints, &mut gathered);
        let mut injections = InjectionsByMode::default();
        for (injection, item) in of.injections.iter().zip(0..) {
            match injection.mode {
                InjectMode::Always => injections.always.push(item),
                InjectMode::RiskBased => injections.risk_based.push(item),
                InjectMode::OnMatch => {
                    gathered.patterns(PatternOwnerKind::Injection, item, &injection.actions);
                }
                // Injected only by name.
                InjectMode::OnDemand => {}
            }
        }
        let sought = gathered.sought.iter().copied();
        let patterns = sought.clone().map(|sought| Pattern::new(sought.as_str()));
        Self(Arc::new(IndexParts {
            patterns: patterns.collect(),
            lookup: PatternIndex::new(sought),
            postings: gathered.postings,
            actions: of.actions.values().cloned().collect(),
            keywords: KeywordIndex::new(&of.checkpoints, &of.injections),
            checkpoints,
            injections,
        }))
    }

    /// Calls `found` with every occurrence of every pattern that `action` matches, and with the pattern.
    fn each_posting(&self, action: &str, mut found: impl FnMut(&Posting, u32)) {
        let ask = |pattern| {
            let pattern = self.pattern(pattern);
            pattern.is_some_and(|pattern| pattern.matches(action))
        };
        self.0.lookup.for_each_match(action, ask, |pattern| {
            let postings = usize::try_from(pattern).ok();
            let postings = postings.and_then(|at| self.0.postings.get(at));
            for posting in postings.into_iter().flatten() {
                found(posting, pattern);
            }
        });
    }

    fn pattern(&self, number: u32) -> Option<&Pattern> {
        self.0.patterns.get(usize::try_from(number).ok()?)
    }

    fn action(&self, number: u32) -> Option<&DeclaredAction> {
        self.0.actions.get(usize::try_from(number).ok()?)
    }
}

impl Atlas {
    /// Returns the Atlas with its index. Without the index, lookups find nothing.
    pub(super) fn indexed(mut self) -> Self {
        self.index = AtlasIndex::new(&self);
        self
    }

    /// Returns the checkpoints that fire on `when`, with their indices.
    ///
    /// Covers the triggers that do not depend on a pattern, a keyword or a tier.
    pub(crate) fn checkpoints_for_event(
        &self,
        when: CheckpointEvent<'_>,
    ) -> impl Iterator<Item = (usize, &Checkpoint)> {
        let by = &self.index.0.checkpoints;
        let found = match when {
            CheckpointEvent::SessionStart => Some(&by.session_start),
            CheckpointEvent::SessionEnd => Some(&by.session_end),
            CheckpointEvent::Interval => Some(&by.intervals),
            CheckpointEvent::ExplicitRequest => Some(&by.explicit_request),
            CheckpointEvent::Error => Some(&by.errors),
            CheckpointEvent::CustomInput => Some(&by.custom_input),
            CheckpointEvent::CustomAction => Some(&by.custom_action),
            CheckpointEvent::Named(name) => by.interactive.get(name),
            CheckpointEvent::Access(capability) => by.access.get(capability),
        };
        with_indices(&self.checkpoints, found.into_iter().flatten())
    }

    /// Returns the checkpoints that an action of this tier fires, with their indices.
    pub(crate) fn checkpoints_for_tier(
        &self,
        tier: RiskTier,
    ) -> impl Iterator<Item = (usize, &Checkpoint)> {
        let reached = self.index.0.checkpoints.risk.range(..=tier);
        with_indices(&self.checkpoints, reached.flat_map(|(_, places)| places))
    }

    /// Returns the contexts injected into every session, with their indices.
    pub(crate) fn injections_always(&self) -> impl Iterator<Item = (usize, &InjectionRule)> {
        with_indices(&self.injections, &self.index.0.injections.always)
    }

    /// Returns the contexts injected for risky actions, with their indices.
    pub(crate) fn injections_by_risk(&self) -> impl Iterator<Item = (usize, &InjectionRule)> {
        with_indices(&self.injections, &self.index.0.injections.risk_based)
    }
}

fn with_indices<'a, T>(
    items: &'a [T],
    places: impl IntoIterator<Item = &'a u32>,
) -> impl Iterator<Item = (usize, &'a T)> {
    places.into_iter().filter_map(|place| {
        let place = usize::try_from(*place).ok()?;
        Some((place, items.get(place)?))
    })
}

/// Patterns while the index is built, each text once.
#[derive(Default)]
struct PatternCollector<'a> {
    sought: Vec<PatternOrName<'a>>,
    postings: Vec<Vec<Posting>>,
    numbers: HashMap<PatternOrName<'a>, usize>,
}

impl<'a> PatternCollector<'a> {
    fn name(&mut self, name: &'a str, item: u32) {
        let posting = Posting {
            kind: PatternOwnerKind::Action,
            item,
            place: 0,
        };
        self.add(PatternOrName::Name(name), posting);
    }

    fn patterns(&mut self, kind: PatternOwnerKind, item: u32, patterns: &'a Patterns) {
        for (pattern, place) in patterns.iter().zip(0..) {
            self.add(
                PatternOrName::Pattern(pattern),
                Posting { kind, item, place },
            );
        }
    }

    fn add(&mut self, sought: PatternOrName<'a>, posting: Posting) {
        let number = *self.numbers.entry(sought).or_insert_with(|| {
            self.sought.push(sought);
            self.postings.push(Vec::new());
            self.sought.len() - 1
        });
        if let Some(postings) = self.postings.get_mut(number) {
            postings.push(posting);
        }
    }
}
