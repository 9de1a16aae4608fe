//! One connection of an agent, and the sessions that it may act for.
//!
//! A connection may act for a session that it started, or whose secret it presents. The engine knows the
//! owner, also after a restart; a connection only remembers the sessions that it has checked.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::call::{AgentCall, AuthenticatedCall, CallFault, SessionKey};
use super::caller_limits::CallerLimits;
use super::gateway_state::GatewayState;
use crate::base::id::SessionId;
use crate::engine::command::{Caller, DenialReply, DenyCode};

/// One connection of an agent.
#[derive(Debug)]
pub struct AgentConnection {
    hall: GatewayState,
    /// Identity of the caller, as far as the server knows it.
    from: Caller,
    /// Limits of the caller.
    peer: Arc<CallerLimits>,
    /// Sessions that the connection may act for.
    theirs: Mutex<BTreeSet<SessionId>>,
}

impl AgentConnection {
    /// Creates a connection that has sent no call yet.
    #[must_use]
    pub fn new(hall: GatewayState, from: Caller) -> Self {
        Self {
            peer: hall.peers.of(&from),
            hall,
            from,
            theirs: Mutex::new(BTreeSet::new()),
        }
    }

    /// Returns the caller's permits for large messages.
    pub(super) fn large_messages(&self) -> Arc<Semaphore> {
        Arc::clone(&self.peer.large)
    }

    /// Executes a call, if the connection may act for its session. Dropping the future withdraws the call.
    ///
    /// # Errors
    /// Every outcome other than a result, as the caller is to be told.
    pub async fn say(&self, spoken: AuthenticatedCall) -> Result<Value, CallFault> {
        let AuthenticatedCall { call, key } = spoken;
        if call.is_report() {
            self.peer.pace_report().await;
        }
        if let AgentCall::Start(start) = call {
            let begun = start
                .begin(key, Some(self.from.clone()), &self.hall.agents)
                .await?;
            self.remember(begun.session.clone());
            return begun.result();
        }
        if let Some(session) = call.session() {
            self.prove(session, key).await?;
        }
        call.carry_out(&self.hall).await
    }

    async fn prove(&self, session: &SessionId, key: Option<SessionKey>) -> Result<(), CallFault> {
        if self.knows(session) {
            return Ok(());
        }
        let shown = key.map(|key| key.digest());
        let from = Some(self.from.clone());
        let owns = self.hall.agents.owns(session.clone(), shown, from);
        match (owns.await, shown) {
            (Ok(()), _) => {}
            (Err(denied), Some(_)) => return Err(denied.into()),
            // The engine is asked in any case, so that the attempt is on record.
            (Err(_), None) => return Err(no_key(session)),
        }
        self.remember(session.clone());
        Ok(())
    }

    fn knows(&self, session: &SessionId) -> bool {
        let theirs = self.theirs.lock();
        let theirs = theirs.unwrap_or_else(PoisonError::into_inner);
        theirs.contains(session)
    }

    fn remember(&self, session: SessionId) {
        let theirs = self.theirs.lock();
        let mut theirs = theirs.unwrap_or_else(PoisonError::into_inner);
        theirs.insert(session);
    }
}

fn no_key(session: &SessionId) -> CallFault {
    CallFault::from(DenialReply {
        code: DenyCode::Session,
        reason: format!("session `{session}` was not begun here"),
        help: Some("show its `key`, which session.start answers with".to_owned()),
        gate: None,
    })
}
