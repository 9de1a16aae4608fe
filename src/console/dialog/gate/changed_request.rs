//! Replacement of a request by another version while its dialog is open.
//!
//! Contract: answers typed for the version before are void. The dialog shows the difference, and the
//! only way on is to read the new request from its beginning.

use std::sync::Arc;

use similar::{ChangeTag, TextDiff};

use super::GateDialog;
use super::context::{ContextPane, describe, is_longer};
use super::form::AnswerForm;
use super::scroll::ScrollState;
use super::step::{Arming, DecisionStep, GatePane};
use crate::console::screen::queue;
use crate::console::thread_text;
use crate::engine::held::Held;
use crate::runtime::snapshot::RuntimeSnapshot;

/// Maximum length for a line by line comparison. A longer text takes longer than a frame.
const MOST_COMPARED_BYTES: usize = 256 * 1024;

/// Number of unchanged lines shown around a difference.
const LINES_AROUND: usize = 2;

/// Text shown if the loaded Atlases differ from those that the request was judged under.
pub(super) const ATLAS_CHANGED: &str = "Atlas changed";

/// New version of a request, with its difference from the version before.
#[derive(Debug)]
pub(crate) struct ChangedRequest {
    /// The difference, line by line.
    pub(crate) lines: Vec<(RequestDiffSide, String)>,
    /// The new version of the request.
    pub(crate) now: Arc<Held>,
    /// Answers typed for the version before.
    pub(crate) typed: AnswerForm,
    /// Scroll state of the difference and the earlier answers.
    pub(crate) sheet: ScrollState,
}

/// Version that a line of the difference belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestDiffSide {
    /// Only in the version before.
    Before,
    /// Only in the new version.
    Now,
    /// Contained in both versions.
    Both,
    /// Unchanged lines are left out here.
    Gap,
}

impl GateDialog {
    /// Takes over a snapshot: the request may be settled or replaced.
    pub(crate) fn on_snapshot(&mut self, snapshot: &RuntimeSnapshot) {
        if self.is_batch() {
            self.remove_settled_members(snapshot);
            return;
        }
        self.stored_draft = snapshot.drafts.get(&self.held.id).cloned();
        let mut sessions = snapshot.sessions.iter();
        let session = sessions.find(|session| session.id == self.held.session);
        self.events = session.map_or(self.events, |session| session.events);
        if matches!(self.step, DecisionStep::Settled(_)) {
            return;
        }
        let writing = matches!(self.step, DecisionStep::Writing(_));
        match queue::find(&snapshot.held, &self.held.id) {
            Some(held) if self.form.is_for(held) && self.newer.is_none() => {
                self.held = Arc::clone(held);
            }
            // The decision sent gets its own reply. Until then it is unknown which version it applied
            // to.
            Some(held) if writing => self.newer = Some(Arc::clone(held)),
            Some(held) => self.replace_request(Arc::clone(held)),
            None if writing => {}
            None => {
                let mut decided = snapshot.decided.iter();
                let decided = decided.find(|decided| decided.gate == self.held.id);
                self.step = DecisionStep::Settled(decided.cloned());
            }
        }
        self.session = session.cloned();
        let thread = thread_text::thread_of_session(snapshot, &self.held.session);
        self.context
            .on_thread(thread.map(|thread| thread_text::thread_lines(thread).join("\n")));
        self.check_atlas_hash(snapshot);
    }

    /// Blocks passing while the loaded Atlases differ from those that the request was judged under.
    fn check_atlas_hash(&mut self, snapshot: &RuntimeSnapshot) {
        match snapshot.load_info.hash {
            Some(hash) if hash != self.held.atlas_hash => {
                self.stale = Some(ATLAS_CHANGED.to_owned());
            }
            Some(_) if self.stale.as_deref() == Some(ATLAS_CHANGED) => self.stale = None,
            Some(_) | None => {}
        }
    }

    /// Voids the typed answers and shows how the request differs.
    pub(super) fn replace_request(&mut self, now: Arc<Held>) {
        self.newer = None;
        self.stale = None;
        self.problems.clear();
        let same = |changed: &ChangedRequest| {
            changed.now.request_hash == now.request_hash
                && changed.now.atlas_hash == now.atlas_hash
                && changed.now.answered == now.answered
        };
        if matches!(&self.step, DecisionStep::Changed(changed) if same(changed)) {
            return;
        }
        let lines = diff_requests(&self.held, &now);
        let blank = AnswerForm::new(&now);
        let typed = match std::mem::replace(&mut self.step, DecisionStep::Editing) {
            // After several changes, the answers typed before the first change are kept.
            DecisionStep::Changed(before) => before.typed,
            DecisionStep::Editing
            | DecisionStep::Reviewing(_)
            | DecisionStep::Denying(_)
            | DecisionStep::Claimed(_)
            | DecisionStep::Writing(_)
            | DecisionStep::Settled(_) => std::mem::replace(&mut self.form, blank),
        };
        self.pane = GatePane::Form;
        self.step = DecisionStep::Changed(Box::new(ChangedRequest {
            lines,
            now,
            typed,
            sheet: ScrollState::default(),
        }));
        // A key pressed now was meant for the version before.
        self.arming = Arming::Undrawn;
    }

    /// Leaves the difference and shows the new version from its beginning.
    pub(super) fn show_new_request(&mut self) {
        let DecisionStep::Changed(changed) =
            std::mem::replace(&mut self.step, DecisionStep::Editing)
        else {
            return;
        };
        let reason = changed.typed.reason;
        self.held = changed.now;
        self.form = AnswerForm::new(&self.held);
        // The denial reason is not an approval, and may still apply.
        self.form.reason = reason;
        let thread = self.context.thread().map(str::to_owned);
        self.context = ContextPane::new(&self.held, self.session.as_ref());
        self.context.on_thread(thread);
        self.arming = Arming::Undrawn;
        self.shown_at = None;
    }
}

/// Compares two versions of a request line by line, with some context around each difference.
fn diff_requests(before: &Held, now: &Held) -> Vec<(RequestDiffSide, String)> {
    let too_long = || {
        let text = "too long to compare by line: read the whole request".to_owned();
        vec![(RequestDiffSide::Now, text)]
    };
    // Rendering a long request as text also takes longer than a frame.
    if [before, now]
        .iter()
        .any(|held| is_longer(held, MOST_COMPARED_BYTES))
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
            lines.push((RequestDiffSide::Gap, String::new()));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let side = match change.tag() {
                ChangeTag::Delete => RequestDiffSide::Before,
                ChangeTag::Insert => RequestDiffSide::Now,
                ChangeTag::Equal => RequestDiffSide::Both,
            };
            let line = change.value().trim_end_matches('\n').to_owned();
            lines.push((side, line));
        }
    }
    lines
}
