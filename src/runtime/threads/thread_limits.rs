//! Limits of threads per owner, per process and in total, and the choice of a thread to drop.
//!
//! An owner at its limit loses its own oldest thread that is not in use. A process at its limit loses the
//! oldest thread of its ended sessions. In total, only abandoned threads are dropped: those of ended
//! sessions, and those without a turn for a long time. Every drop is in the log. If no thread can be
//! dropped, the new thread is refused.

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::{LiveSessions, THREAD_KIND, ThreadRefusal, ThreadStore};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::{ENDED_THREAD_TIME, IDLE_THREAD_TIME};
use crate::base::limits::{MAX_SESSION_THREADS, MAX_THREADS, MAX_THREADS_PER_PEER};
use crate::memento::{ExternalName, Thread, ThreadOwner};
use crate::store::StateRow;
use crate::trace::event::{Payload, ThreadDropped};

/// Thread that is dropped for another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DroppedThread {
    thread: ExternalName,
    reason: &'static str,
}

impl ThreadStore {
    /// Checks the limits for a new thread. Returns the thread to drop for it, if one has to be dropped.
    pub(super) fn room_for(
        &self,
        owner: &ThreadOwner,
        live: LiveSessions<'_>,
        now: Timestamp,
    ) -> Result<Option<DroppedThread>, ThreadRefusal> {
        let victim = match self.check_owner_limit(owner)? {
            None => self.check_process_limit(owner, live)?,
            victim => victim,
        };
        if victim.is_some() || self.all.len() < MAX_THREADS {
            return Ok(victim);
        }
        let abandoned = self.oldest_abandoned(live, now);
        let victim = abandoned.or_else(|| self.oldest_own_thread(owner));
        victim.map(Some).ok_or(ThreadRefusal::Full)
    }

    /// Checks the limits for a thread that an owner takes over from another one.
    pub(super) fn check_limits_for_takeover(
        &self,
        thread: &Thread,
        owner: &ThreadOwner,
        live: LiveSessions<'_>,
    ) -> Result<Option<DroppedThread>, ThreadRefusal> {
        let victim = self.check_owner_limit(owner)?;
        let process = owner.process.as_deref();
        if victim.is_some() || process.is_some_and(|process| thread.is_of_process(process)) {
            return Ok(victim);
        }
        self.check_process_limit(owner, live)
    }

    /// Checks the limit of one owner.
    fn check_owner_limit(
        &self,
        owner: &ThreadOwner,
    ) -> Result<Option<DroppedThread>, ThreadRefusal> {
        if self.owned_by(owner).count() < MAX_SESSION_THREADS {
            return Ok(None);
        }
        let victim = self.oldest_own_thread(owner);
        victim.map(Some).ok_or(ThreadRefusal::OwnLimit)
    }

    /// Checks the limit of the process that started the owner's session. Drops the oldest unused thread of
    /// its ended sessions, or of the owner. Sessions of unknown processes have only their own limits.
    fn check_process_limit(
        &self,
        owner: &ThreadOwner,
        live: LiveSessions<'_>,
    ) -> Result<Option<DroppedThread>, ThreadRefusal> {
        let Some(process) = &owner.process else {
            return Ok(None);
        };
        let threads = self.all.values();
        let own: Vec<_> = threads
            .filter(|thread| thread.is_of_process(process))
            .collect();
        if own.len() < MAX_THREADS_PER_PEER {
            return Ok(None);
        }
        let secrets = LazyCell::new(|| live.secrets());
        let ended = own.into_iter().filter(|thread| {
            let owner = thread.owner.as_ref();
            let is_live = owner.is_some_and(|owner| is_live(owner, live, &secrets));
            !is_live && !self.is_in_use(thread)
        });
        let oldest = ended.min_by_key(|thread| thread.last_turn());
        let victim = oldest.map(|thread| DroppedThread {
            thread: thread.id.clone(),
            reason: "its session has ended, and its process started another thread",
        });
        let victim = victim.or_else(|| self.oldest_own_thread(owner));
        victim.map(Some).ok_or(ThreadRefusal::ProcessLimit)
    }

    fn owned_by(&self, owner: &ThreadOwner) -> impl Iterator<Item = &Arc<Thread>> {
        let threads = self.all.values();
        threads.filter(move |thread| thread.is_owned_by(owner))
    }

    fn oldest_own_thread(&self, owner: &ThreadOwner) -> Option<DroppedThread> {
        let calm = self
            .owned_by(owner)
            .filter(|thread| !self.is_in_use(thread));
        let oldest = calm.min_by_key(|thread| thread.last_turn())?;
        Some(DroppedThread {
            thread: oldest.id.clone(),
            reason: "its owner started another thread",
        })
    }

    /// Returns the oldest abandoned thread. A thread in use is dropped last, and only if its session has
    /// ended.
    fn oldest_abandoned(&self, live: LiveSessions<'_>, now: Timestamp) -> Option<DroppedThread> {
        // Computed only for threads that are old enough: there may be many sessions.
        let secrets = LazyCell::new(|| live.secrets());
        let is_live = |owner: &ThreadOwner| is_live(owner, live, &secrets);
        let idle = |thread: &Thread, time| {
            let last = thread.last_turn();
            last.is_none_or(|last| now.since(last) >= time)
        };
        let reason = |thread: &Thread| {
            if !idle(thread, ENDED_THREAD_TIME) {
                return None;
            }
            if !thread.owner.as_ref().is_some_and(is_live) {
                return Some("its session has ended");
            }
            let forgotten = idle(thread, IDLE_THREAD_TIME) && !self.is_in_use(thread);
            forgotten.then_some("it had no turn for 30 days")
        };
        let abandoned = self.all.values().filter_map(|thread| {
            let reason = reason(thread)?;
            Some((thread, reason))
        });
        let newest = |(thread, _): &(&Arc<Thread>, _)| {
            (!self.is_in_use(thread), Reverse(thread.last_turn()))
        };
        let (thread, reason) = abandoned.max_by_key(newest)?;
        Some(DroppedThread {
            thread: thread.id.clone(),
            reason,
        })
    }

    /// Returns true if the thread has unfinished work, or an operator typed a draft for it.
    fn is_in_use(&self, thread: &Thread) -> bool {
        thread.is_unfinished() || self.drafts.contains_key(&thread.id)
    }

    /// Drops a thread. Returns the rows to write, and the entry for the log.
    pub(super) fn drop_thread(
        &mut self,
        victim: &DroppedThread,
        dropped_for: &SessionId,
    ) -> (Vec<StateRow>, Option<Payload>) {
        self.listed = None;
        let Some(thread) = self.all.remove(&victim.thread) else {
            return (Vec::new(), None);
        };
        let draft = self.drafts.contains_key(&thread.id);
        let draft = draft.then(|| self.store_draft(thread.id.clone(), None));
        let gone = StateRow {
            kind: THREAD_KIND.to_owned(),
            key: thread.id.to_string(),
            body: None,
        };
        let owner = thread.owner.as_ref();
        let entry = ThreadDropped {
            thread_id: thread.id.to_string(),
            owner: owner.map(|owner| owner.session.to_string()),
            dropped_for: dropped_for.to_string(),
            reason: victim.reason.to_owned(),
            etag: thread.etag().unwrap_or_default(),
            by: None,
        };
        let rows = [gone].into_iter().chain(draft.flatten()).collect();
        (rows, Some(entry.into()))
    }
}

/// Returns true if the owner is live, or a live session has its secret. The secrets are looked up only if
/// the name is not live.
fn is_live<F: FnOnce() -> BTreeSet<Digest>>(
    owner: &ThreadOwner,
    live: LiveSessions<'_>,
    secrets: &LazyCell<BTreeSet<Digest>, F>,
) -> bool {
    let is_shown = || owner.secret.is_some_and(|secret| secrets.contains(&secret));
    live.contains(&owner.session) || is_shown()
}
