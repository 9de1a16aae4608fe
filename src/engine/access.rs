//! Who may ask: whose a session is, what an Atlas wants to see at a door, and how often one may ask there.
//!
//! Agents that run in the console's own process do not come in by a door, and are asked for nothing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::atlas::Atlas;
use crate::atlas::document::{Access, AccessKind};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::MAX_ASKERS;
use crate::base::pattern::Pattern;

use super::command::{AskId, Command, Denied, DenyCode, Reply, StartSession};
use super::session::Session;
use super::session_limits::peer;
use super::turn::Turn;

/// The time in which requests count.
const MINUTE: Duration = Duration::from_mins(1);

/// When askers asked in the last minute. It goes with the process.
#[derive(Debug, Default)]
pub(super) struct Askers(BTreeMap<Digest, VecDeque<Timestamp>>);

impl Askers {
    /// Changes every moment that was counted.
    pub(super) fn adjust_moments(&mut self, adjust: impl Fn(Timestamp) -> Timestamp) {
        for moment in self.0.values_mut().flatten() {
            *moment = adjust(*moment);
        }
    }

    /// Counts a request, if there were not `most` of them already; or says how long it is until there is
    /// room for one.
    fn count(&mut self, asker: Digest, most: u64, now: Timestamp) -> Result<(), Duration> {
        if self.0.len() >= MAX_ASKERS {
            self.0
                .retain(|_, times| times.back().is_some_and(|last| last.plus(MINUTE) > now));
            // So many at once is somebody who makes names up.
            if self.0.len() >= MAX_ASKERS && !self.0.contains_key(&asker) {
                return Err(MINUTE);
            }
        }
        let times = self.0.entry(asker).or_default();
        while times.front().is_some_and(|first| first.plus(MINUTE) <= now) {
            times.pop_front();
        }
        if times.len() as u64 >= most {
            let first = times.front().copied().unwrap_or(now);
            return Err(first.plus(MINUTE).since(now));
        }
        times.push_back(now);
        Ok(())
    }
}

impl Session {
    /// Whether whoever wants to take it up again is who began it.
    pub(super) fn belongs_to(&self, start: &StartSession) -> bool {
        self.agent == start.agent && self.owner == start.owner.as_ref().map(|it| it.secret)
    }

    /// Notes whose it is.
    pub(super) fn own(&mut self, start: &StartSession) {
        self.owner = start.owner.as_ref().map(|it| it.secret);
        self.asker = asker(start);
        self.peer = peer(start);
        self.begun_by.clone_from(&self.peer);
    }
}

/// Whose requests count together: those who show the same key, and all who show none. An agent's name is its own
/// word, and a new one would be a new allowance.
fn asker(start: &StartSession) -> Option<Digest> {
    let owner = start.owner.as_ref()?;
    Some(match &owner.api_key {
        Some(key) => Digest::of(format!("api key\n{key}")),
        None => Digest::of("no key"),
    })
}

impl Turn<'_> {
    /// Why an agent at a door is not let in, if it is not. Every Atlas has to let it in.
    pub(super) fn not_admitted(&self, start: &StartSession) -> Option<Denied> {
        let owner = start.owner.as_ref()?;
        let key = owner.api_key.as_deref();
        let mut atlases = self.engine.atlases.iter();
        let closed = atlases.find(|atlas| access(atlas).is_some_and(|it| !admits(it, key)))?;
        let reason = match key {
            None => format!("`{}` lets nobody in who shows no key", closed.id),
            Some(_) => format!("`{}` does not know the key that was shown", closed.id),
        };
        Some(Denied {
            code: DenyCode::Unauthorized,
            reason,
            help: Some(
                "show a key that its `steward.access` names: `api_key`, or --api-key of cra hook"
                    .to_owned(),
            ),
            gate: None,
        })
    }

    /// Denies what is asked too often. Gives whether it was.
    pub(super) fn asked_too_often(&mut self, command: &Command) -> bool {
        let Some((ask, asker)) = self.counted(command) else {
            return false;
        };
        let limits = self.engine.atlases.iter().filter_map(access);
        let limits = limits.filter_map(|it| Some(it.rate_limit?.requests_per_minute));
        let Some(most) = limits.min() else {
            return false;
        };
        let now = self.now;
        let Err(wait) = self.state().asked.count(asker, most, now) else {
            return false;
        };
        let denied = Denied {
            code: DenyCode::Limit,
            reason: format!("{most} requests in a minute are taken, and were made"),
            help: Some(format!("ask again in {} s", wait.as_secs().max(1))),
            gate: None,
        };
        self.reply(ask, Reply::Denied(denied));
        true
    }

    /// Who waits for the answer, and whose it counts for. Telling what came of something is not counted, and
    /// coming back to a session is not either.
    fn counted(&self, command: &Command) -> Option<(AskId, Digest)> {
        let of = |session: &SessionId| self.live(session)?.asker;
        match command {
            Command::StartSession(ask, start) if self.live(&start.session).is_none() => {
                Some((*ask, asker(start)?))
            }
            Command::RequestAction(..)
            | Command::Input(..)
            | Command::RequestContext(..)
            | Command::Resolve(..) => Some((command.ask()?, of(command.session()?)?)),
            Command::StartSession(..)
            | Command::EndSession(..)
            | Command::CompleteAction(..)
            | Command::ReportError(..)
            | Command::Report(..)
            | Command::AskerLeft(_)
            | Command::Decide(..)
            | Command::Operate(..)
            | Command::Note(..)
            | Command::RecordSound
            | Command::ClockMoved(_)
            | Command::Answer(..)
            | Command::Consult(..)
            | Command::DeadlineReached(_)
            | Command::Returned(..) => None,
        }
    }

    pub(super) fn deny_session(&mut self, ask: AskId, session: &SessionId) {
        let denied = if self.engine.state.ended.contains(session) {
            Denied {
                code: DenyCode::Ended,
                ..session_denied(format!("session `{session}` has ended"))
            }
        } else {
            session_denied(format!("there is no session `{session}`"))
        };
        self.reply(ask, Reply::Denied(denied));
    }
}

fn access(atlas: &Atlas) -> Option<&Access> {
    atlas.steward.as_ref()?.access.as_ref()
}

fn admits(access: &Access, key: Option<&str>) -> bool {
    match access.kind {
        AccessKind::Public => true,
        AccessKind::Authenticated => {
            let mut known = access.api_keys.iter();
            key.is_some_and(|key| known.any(|it| Pattern::new(it).matches(key)))
        }
    }
}

/// A session that is somebody else's.
pub(super) fn not_theirs(session: &SessionId) -> Denied {
    Denied {
        help: Some(
            "start a session with an identifier of its own; with a hook, begin a new session in the agent, or bring \
             back the `hook.key` that this one was begun with"
                .to_owned(),
        ),
        ..session_denied(format!("session `{session}` belongs to another agent"))
    }
}

fn session_denied(reason: String) -> Denied {
    Denied {
        code: DenyCode::Session,
        reason,
        help: Some("start a session first, with an identifier of its own".to_owned()),
        gate: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_made_up_do_not_fill_the_memory() {
        let mut askers = Askers::default();
        let now = Timestamp::from_micros(0);
        for n in 0..MAX_ASKERS {
            assert_eq!(askers.count(Digest::of(n.to_string()), 9, now), Ok(()));
        }
        assert_eq!(askers.count(Digest::of("more"), 9, now), Err(MINUTE));
        // Whoever is known goes on, and there is room again when others have been silent.
        assert_eq!(askers.count(Digest::of("7"), 9, now), Ok(()));
        let later = now.plus(MINUTE);
        assert_eq!(askers.count(Digest::of("more"), 9, later), Ok(()));
        assert!(askers.0.len() < MAX_ASKERS);
    }
}
