//! The parts of several Atlases that match an action.

use smallvec::SmallVec;

use crate::atlas::model::{Atlas, Capability, Checkpoint, DeclaredAction, InjectionRule, Policy};
use crate::base::pattern::Pattern;

/// Number of hits stored without heap allocation; few actions match more rules.
const USUAL_HITS: usize = 16;

/// All parts of some Atlases that match an action, in the order of the Atlases and their parts.
///
/// Computed once per action and read often.
#[derive(Debug)]
pub struct ActionMatches<'a> {
    atlases: &'a [Atlas],
    /// Sorted, one hit per matching part.
    hits: SmallVec<[PatternHit; USUAL_HITS]>,
}

/// A part that matches, with its pattern.
#[derive(Debug)]
pub struct MatchedPart<'a, T> {
    /// The Atlas of the part.
    pub atlas: &'a Atlas,
    /// Index of the part in its Atlas.
    pub place: usize,
    /// The part that matches.
    pub item: &'a T,
    /// The first matching pattern of the part, in the order written.
    pub pattern: &'a Pattern,
}

/// The kind of part that contains a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PatternOwnerKind {
    /// A declared action, by its name.
    Action,
    /// A capability.
    Capability,
    /// A policy.
    Policy,
    /// A checkpoint before actions.
    Before,
    /// A checkpoint after actions.
    After,
    /// A rule that injects a context.
    Injection,
}

/// An occurrence of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting {
    /// Kind of the part.
    pub(super) kind: PatternOwnerKind,
    /// Index of the part.
    pub(super) item: u32,
    /// Index of the pattern in the part's list.
    pub(super) place: u32,
}

// Hits are sorted in the order of these fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PatternHit {
    kind: PatternOwnerKind,
    atlas: u32,
    item: u32,
    place: u32,
    pattern: u32,
}

impl<'a> ActionMatches<'a> {
    /// Finds the parts of `atlases` that match the action.
    #[must_use]
    pub fn of(atlases: &'a [Atlas], action: &str) -> Self {
        let mut hits: SmallVec<[PatternHit; USUAL_HITS]> = SmallVec::new();
        for (atlas, number) in atlases.iter().zip(0..) {
            atlas.index.each_posting(action, |posting, pattern| {
                hits.push(PatternHit {
                    kind: posting.kind,
                    atlas: number,
                    item: posting.item,
                    place: posting.place,
                    pattern,
                });
            });
        }
        hits.sort_unstable();
        // Hits are sorted by place, so the first of several patterns in one list remains.
        hits.dedup_by_key(|hit| (hit.kind, hit.atlas, hit.item));
        Self { atlases, hits }
    }

    /// Returns the declarations of the action.
    pub fn actions(&self) -> impl Iterator<Item = &'a DeclaredAction> {
        let atlases = self.atlases;
        let hits = self.of_kind(PatternOwnerKind::Action).iter();
        hits.filter_map(move |hit| atlas(atlases, hit)?.index.action(hit.item))
    }

    /// Returns the capabilities that list the action.
    pub fn capabilities(&self) -> impl Iterator<Item = MatchedPart<'a, Capability>> {
        self.matched_parts(PatternOwnerKind::Capability, |atlas| &atlas.capabilities)
    }

    /// Returns the policies about the action.
    pub fn policies(&self) -> impl Iterator<Item = MatchedPart<'a, Policy>> {
        self.matched_parts(PatternOwnerKind::Policy, |atlas| &atlas.policies)
    }

    /// Returns the checkpoints before the action.
    pub fn checkpoints_before(&self) -> impl Iterator<Item = MatchedPart<'a, Checkpoint>> {
        self.matched_parts(PatternOwnerKind::Before, |atlas| &atlas.checkpoints)
    }

    /// Returns the checkpoints after the action.
    pub fn checkpoints_after(&self) -> impl Iterator<Item = MatchedPart<'a, Checkpoint>> {
        self.matched_parts(PatternOwnerKind::After, |atlas| &atlas.checkpoints)
    }

    /// Returns the contexts that the action injects.
    pub fn injections(&self) -> impl Iterator<Item = MatchedPart<'a, InjectionRule>> {
        self.matched_parts(PatternOwnerKind::Injection, |atlas| &atlas.injections)
    }

    /// Returns true if any Atlas declares the action or lists it in a capability.
    #[must_use]
    pub fn is_known(&self) -> bool {
        // Hits of these two kinds are sorted first.
        let first = self.hits.first();
        first.is_some_and(|hit| hit.kind <= PatternOwnerKind::Capability)
    }

    /// Returns true if the given Atlas knows the action.
    #[must_use]
    pub fn is_known_by(&self, knowing: &Atlas) -> bool {
        let known = self
            .hits
            .iter()
            .take_while(|hit| hit.kind <= PatternOwnerKind::Capability);
        let mut atlases = known.filter_map(|hit| atlas(self.atlases, hit));
        atlases.any(|atlas| std::ptr::eq(atlas, knowing))
    }

    /// Returns the number of matching parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hits.len()
    }

    /// Returns true if no part matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// Returns the searched Atlases.
    #[must_use]
    pub fn atlases(&self) -> &'a [Atlas] {
        self.atlases
    }

    fn matched_parts<T>(
        &self,
        kind: PatternOwnerKind,
        items: fn(&'a Atlas) -> &'a [T],
    ) -> impl Iterator<Item = MatchedPart<'a, T>> {
        let atlases = self.atlases;
        self.of_kind(kind).iter().filter_map(move |hit| {
            let atlas = atlas(atlases, hit)?;
            let place = usize::try_from(hit.item).ok()?;
            Some(MatchedPart {
                atlas,
                place,
                item: items(atlas).get(place)?,
                pattern: atlas.index.pattern(hit.pattern)?,
            })
        })
    }

    fn of_kind(&self, kind: PatternOwnerKind) -> &[PatternHit] {
        let start = self.hits.partition_point(|hit| hit.kind < kind);
        let end = self.hits.partition_point(|hit| hit.kind <= kind);
        self.hits.get(start..end).unwrap_or_default()
    }
}

fn atlas<'a>(atlases: &'a [Atlas], hit: &PatternHit) -> Option<&'a Atlas> {
    atlases.get(usize::try_from(hit.atlas).ok()?)
}
