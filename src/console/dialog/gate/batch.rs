//! Several requests in one dialog: answered once, decided one by one.
//!
//! Contract: what is decided is exactly what the review lists. Each request gets its own decision, bound to
//! its own hashes, and its own record. What changed or ended meanwhile drops out, and that is said.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::context::Context;
use super::form::Spot;
use super::reply::After;
use super::step::{Around, Care, Entry, Step, care};
use super::{DenySpot, GateDialog, Verb};
use crate::base::id::GateId;
use crate::console::cells::counted;
use crate::engine::command::{Decide, Reply};
use crate::engine::held::Held;
use crate::runtime::snapshot::Snapshot;

/// Requests that are decided together.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// All of them, the first one being what the dialog shows; none when one is decided alone.
    members: Vec<Arc<Held>>,
    /// Those whose decision is on its way.
    awaited: BTreeSet<GateId>,
    /// Those that were decided here.
    decided: Vec<GateId>,
    /// What was not taken, in words.
    refused: Vec<String>,
}

impl GateDialog {
    /// Opens several requests that ask the same. Nothing when there are none.
    pub(crate) fn batch(members: Vec<Arc<Held>>, around: Around) -> Option<Self> {
        let first = Arc::clone(members.first()?);
        let mut dialog = Self::new(first, None, None, Entry::Answer, around);
        dialog.together.members = members;
        dialog.show_members();
        Some(dialog)
    }

    /// Whether several requests are decided.
    pub(super) fn is_batch(&self) -> bool {
        !self.together.members.is_empty()
    }

    /// Whether it decides about this request.
    pub(crate) fn is_about(&self, gate: &GateId) -> bool {
        self.held.id == *gate || self.together.awaited.contains(gate)
    }

    /// Every request that is decided together.
    pub(super) fn members(&self) -> &[Arc<Held>] {
        &self.together.members
    }

    /// What was decided here by now.
    pub(crate) fn decided(&self) -> &[GateId] {
        &self.together.decided
    }

    /// How carefully it is passed. Several are never passed without a review that lists them.
    pub(super) fn care(&self) -> Care {
        if self.is_batch() {
            Care::Together
        } else {
            care(&self.held)
        }
    }

    /// The identifiers, in words.
    pub(super) fn ids(&self) -> String {
        let ids: Vec<&str> = self.members().iter().map(|held| held.id.as_str()).collect();
        ids.join(" ")
    }

    /// The same decision for each request that is decided here.
    pub(super) fn for_each(&self, one: &Decide) -> Vec<Decide> {
        if !self.is_batch() {
            return vec![one.clone()];
        }
        let each = self.members().iter().map(|held| Decide {
            gate: held.id.clone(),
            request_hash: held.request_hash,
            atlas_hash: held.atlas_hash,
            ..one.clone()
        });
        each.collect()
    }

    /// One decision for each, whose answers are waited for.
    pub(super) fn decide_each(&mut self, one: &Decide) -> Vec<Decide> {
        let each = self.for_each(one);
        self.together.awaited = each.iter().map(|decide| decide.gate.clone()).collect();
        self.together.refused.clear();
        each
    }

    /// A newer picture: what is not the same any more drops out.
    pub(super) fn sort_out(&mut self, snapshot: &Snapshot) {
        if !matches!(
            self.step,
            Step::Editing | Step::Reviewing(_) | Step::Denying(_)
        ) {
            return;
        }
        let now: BTreeMap<&GateId, &Arc<Held>> = {
            let ids: BTreeSet<&GateId> = self.members().iter().map(|held| &held.id).collect();
            let held = snapshot.held.iter().filter(|held| ids.contains(&held.id));
            held.map(|held| (&held.id, held)).collect()
        };
        let mut gone = Vec::new();
        let mut stay = Vec::new();
        for was in self.members() {
            match now.get(&was.id) {
                Some(is) if same(was, is) => stay.push(Arc::clone(is)),
                Some(_) => gone.push(format!("{} changed", was.id)),
                None => gone.push(format!("{} is no longer held", was.id)),
            }
        }
        if gone.is_empty() {
            return;
        }
        self.together.members = stay;
        let words = format!("dropped out: {}", gone.join(", "));
        self.go_on(Verb::Pass, words);
    }

    /// The answer to one of the decisions.
    pub(super) fn on_reply_of(&mut self, verb: Verb, gate: &GateId, reply: Reply) -> After {
        if !self.together.awaited.remove(gate) {
            return After::Stays;
        }
        let words = match reply {
            Reply::Decided(_) => {
                self.together.decided.push(gate.clone());
                None
            }
            // None that needs two operators is ever marked.
            Reply::Approved(_) => Some("approved, and still held for a second operator".to_owned()),
            Reply::Invalid(_) => Some("the answers were not taken".to_owned()),
            Reply::Refused(refused) => Some(refused.to_string()),
            Reply::Started(_)
            | Reply::Ended(_)
            | Reply::Accepted(_)
            | Reply::Allowed(_)
            | Reply::Denied(_)
            | Reply::Asked(_)
            | Reply::Resolved(_)
            | Reply::Consulted(_)
            | Reply::Completed(_)
            | Reply::Acted
            | Reply::Noted(_) => Some("the answer was not one to a decision".to_owned()),
        };
        let refused = words.map(|words| format!("{gate}: {words}"));
        self.together.refused.extend(refused);
        if !self.together.awaited.is_empty() {
            return After::Stays;
        }
        if self.together.refused.is_empty() {
            return After::Closes;
        }
        let decided = &self.together.decided;
        self.together
            .members
            .retain(|held| !decided.contains(&held.id));
        let done = counted(decided.len(), "request");
        let words = format!("{done} decided; not: {}", self.together.refused.join("; "));
        self.go_on(verb, words);
        After::Stays
    }

    /// On with those that are left.
    fn go_on(&mut self, verb: Verb, words: String) {
        self.notice = Some(words);
        let Some(first) = self.members().first().cloned() else {
            self.step = Step::Settled(None);
            return;
        };
        self.held = first;
        self.step = match (&self.step, verb) {
            (Step::Denying(_), _) | (Step::Writing(_), Verb::Deny) => {
                Step::Denying(DenySpot::Reason)
            }
            (
                Step::Editing
                | Step::Reviewing(_)
                | Step::Claimed(_)
                | Step::Writing(_)
                | Step::Changed(_)
                | Step::Settled(_),
                _,
            ) => Step::Editing,
        };
        // Nobody presses what was focused before it was said.
        self.form.focus = Spot::Back;
        self.show_members();
    }

    /// Every request, one below the other: each has to be seen.
    fn show_members(&mut self) {
        self.context = Context::of_all(&self.together.members);
    }
}

/// Whether a decision about the one is a decision about the other.
fn same(was: &Held, is: &Held) -> bool {
    was.request_hash == is.request_hash
        && was.atlas_hash == is.atlas_hash
        && was.answered.len() == is.answered.len()
}
