//! Access control: session ownership, the API keys that Atlases require, and request rate limits.
//!
//! Agents that run in the console's own process do not connect through a server. They need no key and have no
//! rate limit.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::atlas::Atlas;
use crate::atlas::document::{AccessKind, AccessRules};
use crate::base::clock::Timestamp;
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::limits::MAX_COUNTED_CALLERS;
use crate::base::pattern::Pattern;

use super::session_limits::peer;
use crate::engine::command::{
    AgentReply, DenialReply, DenyCode, EngineCommand, ReplyId, StartSession,
};
use crate::engine::sessions::session::Session;
use crate::engine::transaction::Transaction;

/// Length of the window in which requests are counted.
const RATE_WINDOW: Duration = Duration::from_mins(1);

/// Request times of the last minute, by caller. They are not persisted.
#[derive(Debug, Default)]
pub(crate) struct RequestRates(BTreeMap<Digest, VecDeque<Timestamp>>);

impl RequestRates {
    /// Applies `adjust` to every counted timestamp.
    pub(crate) fn adjust_timestamps(&mut self, adjust: impl Fn(Timestamp) -> Timestamp) {
        for moment in self.0.values_mut().flatten() {
            *moment = adjust(*moment);
        }
    }

    /// Counts a request unless the caller made `most` in the last minute. The error is the time until the
    /// next one is accepted.
    fn count(&mut self, rate_key: Digest, most: u64, now: Timestamp) -> Result<(), Duration> {
        if self.0.len() >= MAX_COUNTED_CALLERS {
            self.0.retain(|_, times| {
                times
                    .back()
                    .is_some_and(|last| last.plus(RATE_WINDOW) > now)
            });
            // Too many distinct callers at once: most likely one client that invents names.
            if self.0.len() >= MAX_COUNTED_CALLERS && !self.0.contains_key(&rate_key) {
                return Err(RATE_WINDOW);
            }
        }
        let times = self.0.entry(rate_key).or_default();
        while times
            .front()
            .is_some_and(|first| first.plus(RATE_WINDOW) <= now)
        {
            times.pop_front();
        }
        if times.len() as u64 >= most {
            let first = times.front().copied().unwrap_or(now);
            return Err(first.plus(RATE_WINDOW).since(now));
        }
        times.push_back(now);
        Ok(())
    }
}

impl Session {
    /// Returns whether `start` comes from the agent that started the session.
    pub(crate) fn belongs_to(&self, start: &StartSession) -> bool {
        self.agent == start.agent && self.owner == start.owner.as_ref().map(|owner| owner.secret)
    }

    /// Stores the owner of the session.
    pub(crate) fn set_owner(&mut self, start: &StartSession) {
        self.owner = start.owner.as_ref().map(|owner| owner.secret);
        self.rate_key = rate_limit_key(start);
        self.peer = peer(start);
        self.begun_by.clone_from(&self.peer);
    }
}

/// Returns the key under which a caller's requests are counted.
///
/// Callers that show the same API key count together, and so do all callers without a key. The agent's name
/// is not used: the agent chooses it, and a new name would get a new allowance.
fn rate_limit_key(start: &StartSession) -> Option<Digest> {
    let owner = start.owner.as_ref()?;
    Some(match &owner.api_key {
        Some(key) => Digest::of(format!("api key\n{key}")),
        None => Digest::of("no key"),
    })
}

/// Returns the denial for an agent without a valid API key, if any Atlas requires one. Every Atlas has to
/// admit the agent.
pub(crate) fn admission_denial(tx: &Transaction<'_>, start: &StartSession) -> Option<DenialReply> {
    let owner = start.owner.as_ref()?;
    let key = owner.api_key.as_deref();
    let mut atlases = tx.engine.atlases.iter();
    let closed = atlases.find(|atlas| access(atlas).is_some_and(|access| !admits(access, key)))?;
    let reason = match key {
        None => format!(
            "Atlas `{}` requires an API key, and none was sent",
            closed.id
        ),
        Some(_) => format!(
            "Atlas `{}` does not accept the API key that was sent",
            closed.id
        ),
    };
    Some(DenialReply {
        code: DenyCode::Unauthorized,
        reason,
        help: Some(
            "send a key that `steward.access` of the Atlas lists: `api_key`, or --api-key of cra hook"
                .to_owned(),
        ),
        gate: None,
    })
}

/// Denies a command that exceeds the request rate. Returns whether it was denied.
pub(crate) fn deny_if_rate_limited(tx: &mut Transaction<'_>, command: &EngineCommand) -> bool {
    let Some((reply_id, rate_key)) = rate_limited_caller(tx, command) else {
        return false;
    };
    let limits = tx.engine.atlases.iter().filter_map(access);
    let limits = limits.filter_map(|access| Some(access.rate_limit?.requests_per_minute));
    let Some(most) = limits.min() else {
        return false;
    };
    let now = tx.now;
    let Err(wait) = tx.state().request_rates.count(rate_key, most, now) else {
        return false;
    };
    let denied = DenialReply {
        code: DenyCode::Limit,
        reason: format!("the limit of {most} requests per minute is used up"),
        help: Some(format!("try again in {} s", wait.as_secs().max(1))),
        gate: None,
    };
    tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
    true
}

/// Returns the waiting caller and the key it is counted under, for commands that count. Reports of
/// results and resuming a session do not count.
fn rate_limited_caller(tx: &Transaction<'_>, command: &EngineCommand) -> Option<(ReplyId, Digest)> {
    let of = |session: &SessionId| tx.live_session(session)?.rate_key;
    match command {
        EngineCommand::StartSession(reply_id, start)
            if tx.live_session(&start.session).is_none() =>
        {
            Some((*reply_id, rate_limit_key(start)?))
        }
        EngineCommand::RequestAction(..)
        | EngineCommand::Input(..)
        | EngineCommand::RequestContext(..)
        | EngineCommand::Resolve(..) => Some((command.reply_id()?, of(command.session()?)?)),
        EngineCommand::StartSession(..)
        | EngineCommand::EndSession(..)
        | EngineCommand::CompleteAction(..)
        | EngineCommand::ReportError(..)
        | EngineCommand::Report(..)
        | EngineCommand::CallerDisconnected(_)
        | EngineCommand::Decide(..)
        | EngineCommand::Operate(..)
        | EngineCommand::RecordFinding(..)
        | EngineCommand::RecordIntact
        | EngineCommand::ClockMoved(_)
        | EngineCommand::Answer(..)
        | EngineCommand::Consult(..)
        | EngineCommand::DeadlineReached(_)
        | EngineCommand::ExtensionReturned(..) => None,
    }
}

pub(crate) fn deny_unknown_session(
    tx: &mut Transaction<'_>,
    reply_id: ReplyId,
    session: &SessionId,
) {
    let denied = if tx.engine.state.ended.contains(session) {
        DenialReply {
            code: DenyCode::Ended,
            ..session_denied(format!("session `{session}` has ended"))
        }
    } else {
        session_denied(format!("session `{session}` does not exist"))
    };
    tx.reply_to_agent(reply_id, AgentReply::Denied(denied));
}

fn access(atlas: &Atlas) -> Option<&AccessRules> {
    atlas.steward.as_ref()?.access.as_ref()
}

fn admits(access: &AccessRules, key: Option<&str>) -> bool {
    match access.kind {
        AccessKind::Public => true,
        AccessKind::Authenticated => {
            let mut known = access.api_keys.iter();
            key.is_some_and(|key| known.any(|pattern| Pattern::new(pattern).matches(key)))
        }
    }
}

/// Returns the denial for a session that belongs to another agent.
pub(crate) fn foreign_session_denial(session: &SessionId) -> DenialReply {
    DenialReply {
        help: Some(
            "start a session with a new identifier; with a hook, start a new session in the agent, or \
             restore the `hook.key` that started this one"
                .to_owned(),
        ),
        ..session_denied(format!("session `{session}` belongs to another agent"))
    }
}

fn session_denied(reason: String) -> DenialReply {
    DenialReply {
        code: DenyCode::Session,
        reason,
        help: Some("start a session first, with a new identifier".to_owned()),
        gate: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invented_caller_names_do_not_exhaust_memory() {
        let mut askers = RequestRates::default();
        let now = Timestamp::from_micros(0);
        for n in 0..MAX_COUNTED_CALLERS {
            assert_eq!(askers.count(Digest::of(n.to_string()), 9, now), Ok(()));
        }
        assert_eq!(askers.count(Digest::of("more"), 9, now), Err(RATE_WINDOW));
        // Known callers go on, and there is room again when others have been silent.
        assert_eq!(askers.count(Digest::of("7"), 9, now), Ok(()));
        let later = now.plus(RATE_WINDOW);
        assert_eq!(askers.count(Digest::of("more"), 9, later), Ok(()));
        assert!(askers.0.len() < MAX_COUNTED_CALLERS);
    }
}
