//! Names of threads that are reserved for one session.
//!
//! A session's own thread has the session's name. If another session already began a thread with that name,
//! the own thread is named `session:` and the session's name. No other session can begin a thread with a
//! live session's name, or with any name that starts with `session:`.

use super::{LiveSessions, ThreadRefusal, ThreadStore};
use crate::base::id::SessionId;
use crate::memento::{ExternalName, ThreadOwner};

/// Prefix of a session's own thread whose plain name is taken. No session name starts with it.
const OWN_PREFIX: &str = "session:";

impl ThreadStore {
    /// Returns the name of the thread that a call is about: the given one, or the session's own.
    pub(super) fn name_for(
        &self,
        named: Option<&ExternalName>,
        by: &ThreadOwner,
    ) -> Result<ExternalName, ThreadRefusal> {
        if let Some(named) = named {
            return Ok(named.clone());
        }
        let session = by.session.as_str();
        let plain: ExternalName = session.parse().map_err(|_| ThreadRefusal::NoThread)?;
        let taken = self.all.get(&plain).is_some_and(|thread| {
            let begun_by = thread.begun_by.as_ref();
            !thread.admits(by) && begun_by.is_some_and(|begun_by| *begun_by != by.session)
        });
        if taken {
            return own_name(session)
                .parse()
                .map_err(|_| ThreadRefusal::NoThread);
        }
        Ok(plain)
    }
}

fn own_name(session: &str) -> String {
    format!("{OWN_PREFIX}{session}")
}

/// Refuses a new thread that has the name of another session's own thread.
pub(super) fn check_reserved_name(
    id: &ExternalName,
    by: &ThreadOwner,
    live: LiveSessions<'_>,
) -> Result<(), ThreadRefusal> {
    let name = id.as_str();
    if name.starts_with(OWN_PREFIX) && name != own_name(by.session.as_str()) {
        return Err(ThreadRefusal::Foreign);
    }
    let Ok(session) = name.parse::<SessionId>() else {
        return Ok(());
    };
    let taken = live.contains(&session) && !live.owner(&session).is_same(by);
    if taken {
        Err(ThreadRefusal::Foreign)
    } else {
        Ok(())
    }
}
