//! Two sessions held against each other: where they first part, and what differs after that.
//!
//! Steps are matched by what they are about (a checkpoint, an action, a policy) and compared by what they
//! say about it; who decided, and when, does not make a difference. What is common at the beginning is
//! read and forgotten. After the first difference at most [`MAX_ALIGNED`] steps of each session are
//! aligned; of what comes later only the numbers are compared, and that is said.

use std::collections::VecDeque;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::base::id::SessionId;

use super::details::Details;
use super::event::Event;
use super::filter::ACTORS;
use super::replay::State;
use super::source::{PAGE, Source};
use super::tell::quoted;

mod step;
#[cfg(test)]
mod tests;

use step::Step;
pub use step::{Kind, Told};

/// Most steps of each session that are aligned after the first difference: what two long sessions that
/// have nothing in common take is the square of it.
pub const MAX_ALIGNED: usize = 4000;

/// Most differences that are told; all are counted.
pub const MAX_TOLD: usize = 500;

/// Most people that a sum names.
const MAX_DECIDERS: usize = 20;

/// How two sessions differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Steps that both have in common at the beginning.
    pub common: u64,
    /// Where they part; nothing when they do the same.
    pub first: Option<Divergence>,
    /// Everything that differs, in order; the first [`MAX_TOLD`].
    pub changes: Vec<Change>,
    /// How many there are.
    pub changes_found: u64,
    /// Steps of the two that were not aligned, because there are too many.
    pub not_aligned: (u64, u64),
    /// What each came to.
    pub sums: (Sum, Sum),
}

/// Where two sessions part. One that ends there has no step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// What the first did.
    pub a: Option<Told>,
    /// What the second did.
    pub b: Option<Told>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What kind of step it is.
    pub kind: Kind,
    /// The step of the first; absent when only the second has it.
    pub a: Option<Told>,
    /// The step of the second; absent when only the first has it.
    pub b: Option<Told>,
}

/// What a session came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Its agent.
    pub agent: String,
    /// Events.
    pub events: u64,
    /// How it ended, if it has.
    pub status: Option<String>,
    /// Actions asked for.
    pub attempted: u64,
    /// Actions completed, and how many of these failed.
    pub completed: u64,
    /// Actions that failed.
    pub failed: u64,
    /// Actions blocked.
    pub blocked: u64,
    /// Gates passed.
    pub passed: u64,
    /// Gates not passed.
    pub not_passed: u64,
    /// Approvals under policies.
    pub overrides: u64,
    /// Errors.
    pub errors: u64,
    /// Those who decided, in the order they first did; the first few.
    pub decided_by: Vec<String>,
}

/// One side of a comparison: where a session is read from, and which.
#[derive(Clone, Copy, Debug)]
pub struct Side<'s, S: ?Sized> {
    /// Where it is read from.
    pub source: &'s S,
    /// The session.
    pub session: &'s SessionId,
}

/// Holds two sessions against each other. They need not be in the same record.
///
/// # Errors
/// When a record cannot be read.
pub fn diff<A, B>(a: Side<'_, A>, b: Side<'_, B>) -> Result<Difference, A::Error>
where
    A: Source + ?Sized,
    B: Source<Error = A::Error> + ?Sized,
{
    let mut a = Steps::of(a)?;
    let mut b = Steps::of(b)?;
    let mut common = 0;
    let (mut left, mut right) = loop {
        match (a.next_step()?, b.next_step()?) {
            (Some(one), Some(other)) if one.same(&other) => common += 1,
            (one, other) => break (one, other),
        }
    };
    let first = (left.is_some() || right.is_some()).then(|| Divergence {
        a: left.as_ref().map(|step| step.told.clone()),
        b: right.as_ref().map(|step| step.told.clone()),
    });
    let (rest_a, more_a) = a.rest(left.take())?;
    let (rest_b, more_b) = b.rest(right.take())?;
    let (changes, changes_found) = changes(&rest_a, &rest_b);
    Ok(Difference {
        common,
        first,
        changes,
        changes_found,
        not_aligned: (more_a, more_b),
        sums: (a.sum(), b.sum()),
    })
}

/// What differs between two lists of steps: the first of it, and how much it is.
fn changes(a: &[Step], b: &[Step]) -> (Vec<Change>, u64) {
    let keys = |steps: &'_ [Step]| {
        steps
            .iter()
            .map(|step| step.key.clone())
            .collect::<Vec<_>>()
    };
    let mut found = Found::default();
    for op in capture_diff_slices(Algorithm::Myers, &keys(a), &keys(b)) {
        let (in_a, in_b) = (op.old_range(), op.new_range());
        let of_a = a.get(in_a).unwrap_or_default();
        let of_b = b.get(in_b).unwrap_or_default();
        if let DiffOp::Equal { .. } = op {
            for (one, other) in of_a.iter().zip(of_b) {
                if !one.same(other) {
                    found.add(Some(one), Some(other));
                }
            }
        } else {
            for step in of_a {
                found.add(Some(step), None);
            }
            for step in of_b {
                found.add(None, Some(step));
            }
        }
    }
    (found.changes, found.count)
}

#[derive(Default)]
struct Found {
    changes: Vec<Change>,
    count: u64,
}

impl Found {
    fn add(&mut self, a: Option<&Step>, b: Option<&Step>) {
        let Some(step) = a.or(b) else { return };
        self.count += 1;
        if self.changes.len() < MAX_TOLD {
            self.changes.push(Change {
                kind: step.kind,
                a: a.map(|step| step.told.clone()),
                b: b.map(|step| step.told.clone()),
            });
        }
    }
}

/// The steps of a session, read as they are wanted.
struct Steps<'s, S: ?Sized> {
    side: Side<'s, S>,
    end: u64,
    from: u64,
    page: VecDeque<Event>,
    state: State,
    decided_by: Vec<String>,
}

impl<'s, S: Source + ?Sized> Steps<'s, S> {
    fn of(side: Side<'s, S>) -> Result<Self, S::Error> {
        Ok(Self {
            end: side.source.end(side.session)?,
            side,
            from: 0,
            page: VecDeque::new(),
            state: State::default(),
            decided_by: Vec::new(),
        })
    }

    fn next_step(&mut self) -> Result<Option<Step>, S::Error> {
        while let Some(event) = self.next_event()? {
            self.state.apply(&event);
            self.note_decider(&event);
            if let Some(step) = Step::of(&event) {
                return Ok(Some(step));
            }
        }
        Ok(None)
    }

    fn next_event(&mut self) -> Result<Option<Event>, S::Error> {
        if self.page.is_empty() && self.from < self.end {
            let page = self
                .side
                .source
                .events(self.side.session, self.from, PAGE)?;
            let last = page.last().map(|event| event.sequence);
            self.from = last
                .and_then(|last| last.checked_add(1))
                .filter(|next| *next > self.from)
                .unwrap_or(self.end);
            self.page = page.into();
        }
        let end = self.end;
        Ok(self.page.pop_front().filter(|event| event.sequence < end))
    }

    fn note_decider(&mut self, event: &Event) {
        let details = Details::of(event);
        for by in ACTORS.into_iter().filter_map(|name| details.text(name)) {
            let by = quoted(by);
            if self.decided_by.len() < MAX_DECIDERS && !self.decided_by.contains(&by) {
                self.decided_by.push(by);
            }
        }
    }

    /// The steps from here on that are aligned, `first` before them, and how many more there are.
    fn rest(&mut self, first: Option<Step>) -> Result<(Vec<Step>, u64), S::Error> {
        let mut rest: Vec<Step> = first.into_iter().collect();
        let mut more = 0;
        while let Some(step) = self.next_step()? {
            if rest.len() < MAX_ALIGNED {
                rest.push(step);
            } else {
                more += 1;
            }
        }
        Ok((rest, more))
    }

    fn sum(self) -> Sum {
        let state = self.state;
        Sum {
            agent: quoted(&state.agent.name),
            events: state.events,
            status: state.ended.map(|ended| quoted(&ended.status)),
            attempted: state.actions.attempted,
            completed: state.actions.completed,
            failed: state.actions.failed,
            blocked: state.actions.blocked,
            passed: state.passed.count,
            not_passed: state.blocked.count,
            overrides: state.overrides.count,
            errors: state.errors.count,
            decided_by: self.decided_by,
        }
    }
}
