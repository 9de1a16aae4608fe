//! What of some Atlases an action matches.

use smallvec::SmallVec;

use crate::atlas::compiled::{Action, Atlas, Capability, Checkpoint, Injection, Policy};
use crate::base::pattern::Pattern;

/// So many hits are kept without asking for memory: few actions concern more rules.
const USUAL_HITS: usize = 16;

/// Everything of some Atlases that an action matches, in the order of the Atlases, then as they keep
/// it. Found once, looked at often.
#[derive(Debug)]
pub struct Matches<'a> {
    atlases: &'a [Atlas],
    /// Sorted, one for each thing that matches.
    hits: SmallVec<[Hit; USUAL_HITS]>,
}

/// Something that matches, with the pattern that does.
#[derive(Debug)]
pub struct Matched<'a, T> {
    /// Its Atlas.
    pub atlas: &'a Atlas,
    /// Its place among those of its Atlas.
    pub place: usize,
    /// What matches.
    pub item: &'a T,
    /// The first of its patterns, in the order written, that does.
    pub pattern: &'a Pattern,
}

/// What a pattern stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
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
    /// What calls for a context.
    Injection,
}

/// Where a pattern stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting {
    /// In what.
    pub(super) kind: Kind,
    /// In which of them.
    pub(super) item: u32,
    /// At which place in its list.
    pub(super) place: u32,
}

// The order of the fields is the order of the hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    kind: Kind,
    atlas: u32,
    item: u32,
    place: u32,
    pattern: u32,
}

impl<'a> Matches<'a> {
    /// What of `atlases` the action matches.
    #[must_use]
    pub fn of(atlases: &'a [Atlas], action: &str) -> Self {
        let mut hits: SmallVec<[Hit; USUAL_HITS]> = SmallVec::new();
        for (atlas, number) in atlases.iter().zip(0..) {
            atlas.index.each_posting(action, |posting, pattern| {
                hits.push(Hit {
                    kind: posting.kind,
                    atlas: number,
                    item: posting.item,
                    place: posting.place,
                    pattern,
                });
            });
        }
        hits.sort_unstable();
        // Sorted by place: the first of several patterns in one list stays.
        hits.dedup_by_key(|hit| (hit.kind, hit.atlas, hit.item));
        Self { atlases, hits }
    }

    /// The declarations of the action.
    pub fn actions(&self) -> impl Iterator<Item = &'a Action> {
        let atlases = self.atlases;
        let hits = self.of_kind(Kind::Action).iter();
        hits.filter_map(move |hit| atlas(atlases, hit)?.index.action(hit.item))
    }

    /// The capabilities that list the action.
    pub fn capabilities(&self) -> impl Iterator<Item = Matched<'a, Capability>> {
        self.matched(Kind::Capability, |atlas| &atlas.capabilities)
    }

    /// The policies about the action.
    pub fn policies(&self) -> impl Iterator<Item = Matched<'a, Policy>> {
        self.matched(Kind::Policy, |atlas| &atlas.policies)
    }

    /// The checkpoints before the action.
    pub fn before(&self) -> impl Iterator<Item = Matched<'a, Checkpoint>> {
        self.matched(Kind::Before, |atlas| &atlas.checkpoints)
    }

    /// The checkpoints after the action.
    pub fn after(&self) -> impl Iterator<Item = Matched<'a, Checkpoint>> {
        self.matched(Kind::After, |atlas| &atlas.checkpoints)
    }

    /// The contexts that the action calls for.
    pub fn injections(&self) -> impl Iterator<Item = Matched<'a, Injection>> {
        self.matched(Kind::Injection, |atlas| &atlas.injections)
    }

    /// Whether any Atlas knows the action: it declares it, or a capability lists it.
    #[must_use]
    pub fn known(&self) -> bool {
        // The two kinds come first.
        let first = self.hits.first();
        first.is_some_and(|hit| hit.kind <= Kind::Capability)
    }

    /// Whether this one of the Atlases knows the action.
    #[must_use]
    pub fn known_by(&self, knowing: &Atlas) -> bool {
        let known = self
            .hits
            .iter()
            .take_while(|hit| hit.kind <= Kind::Capability);
        let mut atlases = known.filter_map(|hit| atlas(self.atlases, hit));
        atlases.any(|atlas| std::ptr::eq(atlas, knowing))
    }

    /// How many things match.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hits.len()
    }

    /// Whether nothing matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// The Atlases.
    #[must_use]
    pub fn atlases(&self) -> &'a [Atlas] {
        self.atlases
    }

    fn matched<T>(
        &self,
        kind: Kind,
        items: fn(&'a Atlas) -> &'a [T],
    ) -> impl Iterator<Item = Matched<'a, T>> {
        let atlases = self.atlases;
        self.of_kind(kind).iter().filter_map(move |hit| {
            let atlas = atlas(atlases, hit)?;
            let place = usize::try_from(hit.item).ok()?;
            Some(Matched {
                atlas,
                place,
                item: items(atlas).get(place)?,
                pattern: atlas.index.pattern(hit.pattern)?,
            })
        })
    }

    fn of_kind(&self, kind: Kind) -> &[Hit] {
        let start = self.hits.partition_point(|hit| hit.kind < kind);
        let end = self.hits.partition_point(|hit| hit.kind <= kind);
        self.hits.get(start..end).unwrap_or_default()
    }
}

fn atlas<'a>(atlases: &'a [Atlas], hit: &Hit) -> Option<&'a Atlas> {
    atlases.get(usize::try_from(hit.atlas).ok()?)
}
