//! A request that became another one while its dialog was open.
//!
//! Contract: what was typed as an approval of the one before is void. The difference is shown, and only
//! looking at the new request from its beginning leads on.

use std::sync::Arc;

use similar::{ChangeTag, TextDiff};

use super::GateDialog;
use super::context::{Context, describe, is_longer};
use super::form::Form;
use super::scroll::Scroll;
use super::step::{Arming, Pane, Step};
use crate::console::screen::queue;
use crate::console::thread;
use crate::engine::held::Held;
use crate::runtime::snapshot::Snapshot;

/// Longest text that is compared line by line: beyond that it takes longer than a frame.
const MOST_COMPARED_BYTES: usize = 256 * 1024;

/// Lines around a difference that are shown with it.
const LINES_AROUND: usize = 2;

/// Why a request cannot be passed that was judged under other Atlases.
pub(super) const ATLAS_CHANGED: &str = "Atlas changed";

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Changed {
    /// How it differs, line by line.
    pub(crate) lines: Vec<(Side, String)>,
    /// The request as it is now.
    pub(crate) now: Arc<Held>,
    /// What had been typed for the one before.
    pub(crate) typed: Form,
    /// The difference, and what had been typed.
    pub(crate) sheet: Scroll,
}

/// Which of the two a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Only the one before had it.
    Before,
    /// Only the one now has it.
    Now,
    /// Both have it.
    Both,
    /// Lines that both have are left out here.
    Gap,
}

impl GateDialog {
    /// Takes in what is true now: the request may be settled, or another one.
    pub(crate) fn on_snapshot(&mut self, snapshot: &Snapshot) {
        if self.is_batch() {
            self.sort_out(snapshot);
            return;
        }
        self.kept = snapshot.drafts.get(&self.held.id).cloned();
        let mut sessions = snapshot.sessions.iter();
        let session = sessions.find(|session| session.id == self.held.session);
        self.events = session.map_or(self.events, |session| session.events);
        if matches!(self.step, Step::Settled(_)) {
            return;
        }
        let writing = matches!(self.step, Step::Writing(_));
        match queue::find(&snapshot.held, &self.held.id) {
            Some(held) if self.form.is_for(held) && self.newer.is_none() => {
                self.held = Arc::clone(held);
            }
            // What was sent gets its own answer; until then it is not known what it was about.
            Some(held) if writing => self.newer = Some(Arc::clone(held)),
            Some(held) => self.change(Arc::clone(held)),
            None if writing => {}
            None => {
                let mut decided = snapshot.decided.iter();
                let decided = decided.find(|decided| decided.gate == self.held.id);
                self.step = Step::Settled(decided.cloned());
            }
        }
        self.session = session.cloned();
        let thread = thread::of_session(snapshot, &self.held.session);
        self.context
            .on_thread(thread.map(|it| thread::told(it).join("\n")));
        self.hold_against(snapshot);
    }

    /// What was judged under other Atlases than those in force cannot be passed, unless they come back.
    fn hold_against(&mut self, snapshot: &Snapshot) {
        match snapshot.in_force.hash {
            Some(hash) if hash != self.held.atlas_hash => {
                self.stale = Some(ATLAS_CHANGED.to_owned());
            }
            Some(_) if self.stale.as_deref() == Some(ATLAS_CHANGED) => self.stale = None,
            Some(_) | None => {}
        }
    }

    /// Voids what was typed, and shows how the request differs.
    pub(super) fn change(&mut self, now: Arc<Held>) {
        self.newer = None;
        self.stale = None;
        self.problems.clear();
        let same = |changed: &Changed| {
            changed.now.request_hash == now.request_hash
                && changed.now.atlas_hash == now.atlas_hash
                && changed.now.answered == now.answered
        };
        if matches!(&self.step, Step::Changed(changed) if same(changed)) {
            return;
        }
        let lines = differences(&self.held, &now);
        let blank = Form::new(&now);
        let typed = match std::mem::replace(&mut self.step, Step::Editing) {
            // What was typed before the first of several changes is what was typed.
            Step::Changed(before) => before.typed,
            Step::Editing
            | Step::Reviewing(_)
            | Step::Denying(_)
            | Step::Claimed(_)
            | Step::Writing(_)
            | Step::Settled(_) => std::mem::replace(&mut self.form, blank),
        };
        self.pane = Pane::Form;
        self.step = Step::Changed(Box::new(Changed {
            lines,
            now,
            typed,
            sheet: Scroll::default(),
        }));
        // Whoever was about to press a key meant the request before.
        self.arming = Arming::Undrawn;
    }

    /// From the difference to the request as it is now, from its beginning.
    pub(super) fn look_again(&mut self) {
        let Step::Changed(changed) = std::mem::replace(&mut self.step, Step::Editing) else {
            return;
        };
        let reason = changed.typed.reason;
        self.held = changed.now;
        self.form = Form::new(&self.held);
        // Why it is denied is no approval, and may still be true.
        self.form.reason = reason;
        let thread = self.context.thread().map(str::to_owned);
        self.context = Context::new(&self.held, self.session.as_ref());
        self.context.on_thread(thread);
        self.arming = Arming::Undrawn;
        self.shown_at = None;
    }
}

/// How two requests differ, line by line, with a little around each difference.
fn differences(before: &Held, now: &Held) -> Vec<(Side, String)> {
    let too_long = || {
        let text = "too long to compare line by line: read it anew, all of it".to_owned();
        vec![(Side::Now, text)]
    };
    // Writing a long one out takes longer than a frame, too.
    if [before, now]
        .iter()
        .any(|it| is_longer(it, MOST_COMPARED_BYTES))
    {
        return too_long();
    }
    let (before, now) = (describe(before), describe(now));
    if before.len().max(now.len()) > MOST_COMPARED_BYTES {
        return too_long();
    }
    let diff = TextDiff::from_lines(&before, &now);
    let mut lines = Vec::new();
    for (at, group) in diff.grouped_ops(LINES_AROUND).iter().enumerate() {
        if at > 0 {
            lines.push((Side::Gap, String::new()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let side = match change.tag() {
                ChangeTag::Delete => Side::Before,
                ChangeTag::Insert => Side::Now,
                ChangeTag::Equal => Side::Both,
            };
            let line = change.value().trim_end_matches('\n').to_owned();
            lines.push((side, line));
        }
    }
    lines
}
