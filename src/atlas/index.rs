//! What an Atlas is looked up by: built once when it is proven, so that a decision costs what applies
//! to it and not what else is written.
//!
//! Contract: everything here is found as a scan of the Atlas would find it, in the same order. It
//! decides nothing; it only says what has to be looked at.

mod keywords;
mod matches;
mod patterns;
mod trie;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::compiled::{Action, Atlas, Checkpoint, Injection, Trigger};
use super::document::{InjectMode, RiskTier};
use crate::base::pattern::{Pattern, Patterns};

use keywords::KeywordIndex;
use matches::{Kind, Posting};
use patterns::{PatternIndex, Sought};

pub use keywords::Sightings;
pub use matches::{Matched, Matches};

/// The index of an Atlas.
// INVARIANT: an Atlas is not changed once it is proven, so this stays true of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index(Arc<Parts>);

#[derive(Debug, Default)]
struct Parts {
    /// The distinct patterns.
    patterns: Vec<Pattern>,
    lookup: PatternIndex,
    /// Where each pattern stands.
    postings: Vec<Vec<Posting>>,
    /// Declared actions.
    actions: Vec<Action>,
    keywords: KeywordIndex,
    checkpoints: ByTrigger,
    injections: ByMode,
}

/// Contexts that are handed over without a match, each list in their order.
#[derive(Debug, Default)]
struct ByMode {
    always: Vec<u32>,
    risk_based: Vec<u32>,
}

/// Checkpoints by what sets them off, each list in their order. Those about actions are found by
/// pattern, those about words by keyword.
#[derive(Debug, Default)]
struct ByTrigger {
    session_start: Vec<u32>,
    session_end: Vec<u32>,
    intervals: Vec<u32>,
    explicit_request: Vec<u32>,
    errors: Vec<u32>,
    custom_input: Vec<u32>,
    custom_action: Vec<u32>,
    /// By their names.
    interactive: BTreeMap<String, Vec<u32>>,
    /// By the lowest tier that sets them off.
    risk: BTreeMap<RiskTier, Vec<u32>>,
    /// By the capability they gate.
    access: HashMap<String, Vec<u32>>,
}

impl ByTrigger {
    fn new<'a>(of: &'a [Checkpoint], gathered: &mut Gathered<'a>) -> Self {
        let mut by = Self::default();
        for (checkpoint, item) in of.iter().zip(0..) {
            match &checkpoint.trigger {
                Trigger::ActionPre(patterns) => gathered.patterns(Kind::Before, item, patterns),
                Trigger::ActionPost(patterns) => gathered.patterns(Kind::After, item, patterns),
                // Found by their keywords.
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

/// When checkpoints are looked for that no pattern, keyword or tier finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When<'w> {
    /// A session begins.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// It is asked whether an interval is over.
    Interval,
    /// Context is asked for.
    ExplicitRequest,
    /// An error is reported.
    Error,
    /// Input comes, and a custom trigger looks at it.
    CustomInput,
    /// An action is asked for, and a custom trigger looks at it.
    CustomAction,
    /// A checkpoint is asked for by its name.
    Named(&'w str),
    /// A capability is asked for.
    Access(&'w str),
}

impl Index {
    fn new(of: &Atlas) -> Self {
        let mut gathered = Gathered::default();
        for (name, item) in of.actions.keys().zip(0..) {
            gathered.name(name, item);
        }
        for (capability, item) in of.capabilities.iter().zip(0..) {
            gathered.patterns(Kind::Capability, item, &capability.actions);
        }
        for (policy, item) in of.policies.iter().zip(0..) {
            gathered.patterns(Kind::Policy, item, &policy.actions);
        }
        let checkpoints = ByTrigger::new(&of.checkpoints, &mut gathered);
        let mut injections = ByMode::default();
        for (injection, item) in of.injections.iter().zip(0..) {
            match injection.mode {
                InjectMode::Always => injections.always.push(item),
                InjectMode::RiskBased => injections.risk_based.push(item),
                InjectMode::OnMatch => {
                    gathered.patterns(Kind::Injection, item, &injection.actions);
                }
                // Asked for by name.
                InjectMode::OnDemand => {}
            }
        }
        let sought = gathered.sought.iter().copied();
        let patterns = sought.clone().map(|sought| Pattern::new(sought.as_str()));
        Self(Arc::new(Parts {
            patterns: patterns.collect(),
            lookup: PatternIndex::new(sought),
            postings: gathered.postings,
            actions: of.actions.values().cloned().collect(),
            keywords: KeywordIndex::new(&of.checkpoints, &of.injections),
            checkpoints,
            injections,
        }))
    }

    /// Calls `found` with every place of every pattern that `action` matches, and with the pattern.
    fn each_posting(&self, action: &str, mut found: impl FnMut(&Posting, u32)) {
        let ask = |pattern| {
            let pattern = self.pattern(pattern);
            pattern.is_some_and(|pattern| pattern.matches(action))
        };
        self.0.lookup.each(action, ask, |pattern| {
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

    fn action(&self, number: u32) -> Option<&Action> {
        self.0.actions.get(usize::try_from(number).ok()?)
    }
}

impl Atlas {
    /// The same with its index: nothing of it is found without.
    pub(super) fn indexed(mut self) -> Self {
        self.index = Index::new(&self);
        self
    }

    /// The checkpoints that something else than a pattern, a keyword or a tier sets off, with their
    /// places.
    pub(crate) fn checkpoints_when(
        &self,
        when: When<'_>,
    ) -> impl Iterator<Item = (usize, &Checkpoint)> {
        let by = &self.index.0.checkpoints;
        let found = match when {
            When::SessionStart => Some(&by.session_start),
            When::SessionEnd => Some(&by.session_end),
            When::Interval => Some(&by.intervals),
            When::ExplicitRequest => Some(&by.explicit_request),
            When::Error => Some(&by.errors),
            When::CustomInput => Some(&by.custom_input),
            When::CustomAction => Some(&by.custom_action),
            When::Named(name) => by.interactive.get(name),
            When::Access(capability) => by.access.get(capability),
        };
        placed(&self.checkpoints, found.into_iter().flatten())
    }

    /// The checkpoints that an action of this tier sets off, with their places.
    pub(crate) fn checkpoints_at(
        &self,
        tier: RiskTier,
    ) -> impl Iterator<Item = (usize, &Checkpoint)> {
        let reached = self.index.0.checkpoints.risk.range(..=tier);
        placed(&self.checkpoints, reached.flat_map(|(_, places)| places))
    }

    /// The contexts that every session is given, with their places.
    pub(crate) fn injections_always(&self) -> impl Iterator<Item = (usize, &Injection)> {
        placed(&self.injections, &self.index.0.injections.always)
    }

    /// The contexts that risky actions are given, with their places.
    pub(crate) fn injections_by_risk(&self) -> impl Iterator<Item = (usize, &Injection)> {
        placed(&self.injections, &self.index.0.injections.risk_based)
    }
}

fn placed<'a, T>(
    items: &'a [T],
    places: impl IntoIterator<Item = &'a u32>,
) -> impl Iterator<Item = (usize, &'a T)> {
    places.into_iter().filter_map(|place| {
        let place = usize::try_from(*place).ok()?;
        Some((place, items.get(place)?))
    })
}

/// Patterns as they are gathered, each text once.
#[derive(Default)]
struct Gathered<'a> {
    sought: Vec<Sought<'a>>,
    postings: Vec<Vec<Posting>>,
    numbers: HashMap<Sought<'a>, usize>,
}

impl<'a> Gathered<'a> {
    fn name(&mut self, name: &'a str, item: u32) {
        let posting = Posting {
            kind: Kind::Action,
            item,
            place: 0,
        };
        self.add(Sought::Name(name), posting);
    }

    fn patterns(&mut self, kind: Kind, item: u32, patterns: &'a Patterns) {
        for (pattern, place) in patterns.iter().zip(0..) {
            self.add(Sought::Pattern(pattern), Posting { kind, item, place });
        }
    }

    fn add(&mut self, sought: Sought<'a>, posting: Posting) {
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
