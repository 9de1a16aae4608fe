//! Comparison of two sessions: the first divergence and every difference after it.
//!
//! Steps are matched by their subject (a checkpoint, an action, a policy) and compared by what they say
//! about it. The deciding operator and the time do not count as a difference. The common prefix is read
//! and not kept. After the first difference at most [`MAX_ALIGNED`] steps of each session are aligned.
//! For later steps only the totals are compared, and [`SessionDiff::not_aligned`] reports their number.

use std::collections::VecDeque;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::base::id::SessionId;

use super::details::Details;
use super::event::Event;
use super::filter::ACTORS;
use super::replay::ReplayState;
use super::source::{EventSource, PAGE};
use super::summary::quote_untrusted;

mod step;
#[cfg(test)]
mod tests;

use step::DiffStep;
pub use step::{StepKind, StepSummary};

/// Most steps of each session that are aligned after the first difference. Aligning two long sessions
/// with nothing in common costs the square of this.
pub const MAX_ALIGNED: usize = 4000;

/// Most differences that are reported; all are counted.
pub const MAX_REPORTED: usize = 500;

/// Most deciders that a summary names.
const MAX_DECIDERS: usize = 20;

/// Differences between two sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionDiff {
    /// Number of identical steps at the beginning.
    pub common: u64,
    /// First divergence; `None` if the sessions are the same.
    pub first: Option<Divergence>,
    /// The first [`MAX_REPORTED`] differences, in order.
    pub changes: Vec<StepChange>,
    /// Number of all differences.
    pub changes_found: u64,
    /// Steps of each session that were not aligned because there are too many.
    pub not_aligned: (u64, u64),
    /// Totals of each session.
    pub sums: (SessionTotals, SessionTotals),
}

/// First point at which two sessions differ. A session that ends there has no step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// Step of the first session.
    pub a: Option<StepSummary>,
    /// Step of the second session.
    pub b: Option<StepSummary>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepChange {
    /// Kind of the step.
    pub kind: StepKind,
    /// Step of the first session; absent if only the second has it.
    pub a: Option<StepSummary>,
    /// Step of the second session; absent if only the first has it.
    pub b: Option<StepSummary>,
}

/// Totals of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionTotals {
    /// Agent of the session.
    pub agent: String,
    /// Number of events.
    pub events: u64,
    /// Final status, once the session has ended.
    pub status: Option<String>,
    /// Actions requested.
    pub attempted: u64,
    /// Actions completed, failed ones included.
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
    /// Names of the deciders, in the order of their first decision; at most `MAX_DECIDERS`.
    pub decided_by: Vec<String>,
}

/// One side of a comparison: a session and the source to read it from.
#[derive(Clone, Copy, Debug)]
pub struct DiffSide<'s, S: ?Sized> {
    /// Source of the records.
    pub source: &'s S,
    /// The session.
    pub session: &'s SessionId,
}

/// Compares two sessions, which may come from different sources.
///
/// # Errors
/// When a record cannot be read.
pub fn diff<A, B>(a: DiffSide<'_, A>, b: DiffSide<'_, B>) -> Result<SessionDiff, A::Error>
where
    A: EventSource + ?Sized,
    B: EventSource<Error = A::Error> + ?Sized,
{
    let mut a = StepReader::new(a)?;
    let mut b = StepReader::new(b)?;
    let mut common = 0;
    let (mut left, mut right) = loop {
        match (a.next_step()?, b.next_step()?) {
            (Some(one), Some(other)) if one.is_same(&other) => common += 1,
            (one, other) => break (one, other),
        }
    };
    let first = (left.is_some() || right.is_some()).then(|| Divergence {
        a: left.as_ref().map(|step| step.shown.clone()),
        b: right.as_ref().map(|step| step.shown.clone()),
    });
    let (rest_a, more_a) = a.rest_to_align(left.take())?;
    let (rest_b, more_b) = b.rest_to_align(right.take())?;
    let (changes, changes_found) = changes(&rest_a, &rest_b);
    Ok(SessionDiff {
        common,
        first,
        changes,
        changes_found,
        not_aligned: (more_a, more_b),
        sums: (a.into_totals(), b.into_totals()),
    })
}

/// Differences between two lists of steps: the first [`MAX_REPORTED`] and the total count.
fn changes(a: &[DiffStep], b: &[DiffStep]) -> (Vec<StepChange>, u64) {
    let keys = |steps: &'_ [DiffStep]| {
        steps
            .iter()
            .map(|step| step.key.clone())
            .collect::<Vec<_>>()
    };
    let mut found = ChangeList::default();
    for op in capture_diff_slices(Algorithm::Myers, &keys(a), &keys(b)) {
        let (in_a, in_b) = (op.old_range(), op.new_range());
        let of_a = a.get(in_a).unwrap_or_default();
        let of_b = b.get(in_b).unwrap_or_default();
        if let DiffOp::Equal { .. } = op {
            for (one, other) in of_a.iter().zip(of_b) {
                if !one.is_same(other) {
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
struct ChangeList {
    changes: Vec<StepChange>,
    count: u64,
}

impl ChangeList {
    fn add(&mut self, a: Option<&DiffStep>, b: Option<&DiffStep>) {
        let Some(step) = a.or(b) else { return };
        self.count += 1;
        if self.changes.len() < MAX_REPORTED {
            self.changes.push(StepChange {
                kind: step.kind,
                a: a.map(|step| step.shown.clone()),
                b: b.map(|step| step.shown.clone()),
            });
        }
    }
}

/// Steps of a session, read on demand.
struct StepReader<'s, S: ?Sized> {
    side: DiffSide<'s, S>,
    end: u64,
    from: u64,
    page: VecDeque<Event>,
    state: ReplayState,
    decided_by: Vec<String>,
}

impl<'s, S: EventSource + ?Sized> StepReader<'s, S> {
    fn new(side: DiffSide<'s, S>) -> Result<Self, S::Error> {
        Ok(Self {
            end: side.source.end(side.session)?,
            side,
            from: 0,
            page: VecDeque::new(),
            state: ReplayState::default(),
            decided_by: Vec::new(),
        })
    }

    fn next_step(&mut self) -> Result<Option<DiffStep>, S::Error> {
        while let Some(event) = self.next_event()? {
            self.state.apply(&event);
            self.note_decider(&event);
            if let Some(step) = DiffStep::from_event(&event) {
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
            let by = quote_untrusted(by);
            if self.decided_by.len() < MAX_DECIDERS && !self.decided_by.contains(&by) {
                self.decided_by.push(by);
            }
        }
    }

    /// The remaining steps to align, starting with `first`, and the number of steps beyond the limit.
    fn rest_to_align(&mut self, first: Option<DiffStep>) -> Result<(Vec<DiffStep>, u64), S::Error> {
        let mut rest: Vec<DiffStep> = first.into_iter().collect();
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

    fn into_totals(self) -> SessionTotals {
        let state = self.state;
        SessionTotals {
            agent: quote_untrusted(&state.agent.name),
            events: state.events,
            status: state.ended.map(|ended| quote_untrusted(&ended.status)),
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
