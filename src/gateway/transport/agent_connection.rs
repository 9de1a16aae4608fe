//! One connection of an agent, and the sessions that it may act for.
//!
//! A connection may act for a session that it started, or whose secret it presents. The engine knows the
//! owner, also after a restart; a connection only remembers the sessions that it has checked.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::Semaphore;

use super::caller_limits::CallerLimits;
use super::gateway_state::GatewayState;
use crate::base::id::SessionId;
use crate::engine::command::{Caller, DenialReply, DenyCode};
use crate::gateway::protocol::call::{AgentCall, AuthenticatedCall, CallFault, SessionKey};

/// One connection of an agent.
#[derive(Debug)]
pub struct AgentConnection {
    gateway: GatewayState,
    /// Identity of the caller, as far as the server knows it.
    from: Caller,
    /// Limits of the caller.
    limits: Arc<CallerLimits>,
    /// Sessions that the connection may act for.
    own_sessions: Mutex<BTreeSet<SessionId>>,
}

impl AgentConnection {
    /// Creates a connection that has sent no call yet.
    #[must_use]
    pub fn new(gateway: GatewayState, from: Caller) -> Self {
        Self {
            limits: gateway.peers.limits_of(&from),
            gateway,
            from,
            own_sessions: Mutex::new(BTreeSet::new()),
        }
    }

    /// Returns the caller's permits for large messages.
    pub(super) fn large_messages(&self) -> Arc<Semaphore> {
        Arc::clone(&self.limits.large)
    }

    /// Executes a call, if the connection may act for its session. Dropping the future withdraws the call.
    ///
    /// # Errors
    /// Every outcome other than a result, as the caller is to be told.
    pub async fn execute_call(&self, authenticated: AuthenticatedCall) -> Result<Value, CallFault> {
        let AuthenticatedCall { call, key } = authenticated;
        if call.is_report() {
            self.limits.pace_report().await;
        }
        if let AgentCall::Start(start) = call {
            let begun = start
                .start_session(key, Some(self.from.clone()), &self.gateway.agents)
                .await?;
            self.add_session(begun.session.clone());
            return begun.result();
        }
        if let Some(session) = call.session() {
            self.check_owner(session, key).await?;
        }
        call.execute(&self.gateway).await
    }

    async fn check_owner(
        &self,
        session: &SessionId,
        key: Option<SessionKey>,
    ) -> Result<(), CallFault> {
        if self.owns(session) {
            return Ok(());
        }
        let shown = key.map(|key| key.digest());
        let from = Some(self.from.clone());
        let owns = self
            .gateway
            .agents
            .check_owner(session.clone(), shown, from);
        match (owns.await, shown) {
            (Ok(()), _) => {}
            (Err(denied), Some(_)) => return Err(denied.into()),
            // The engine is asked in any case, so that the attempt is on record.
            (Err(_), None) => return Err(no_key(session)),
        }
        self.add_session(session.clone());
        Ok(())
    }

    fn owns(&self, session: &SessionId) -> bool {
        let theirs = self.own_sessions.lock();
        let theirs = theirs.unwrap_or_else(PoisonError::into_inner);
        theirs.contains(session)
    }

    fn add_session(&self, session: SessionId) {
        let theirs = self.own_sessions.lock();
        let mut theirs = theirs.unwrap_or_else(PoisonError::into_inner);
        theirs.insert(session);
    }
}

fn no_key(session: &SessionId) -> CallFault {
    CallFault::from(DenialReply {
        code: DenyCode::Session,
        reason: format!("session `{session}` was not started on this connection"),
        help: Some("send its `key`, from the result of session.start".to_owned()),
        gate: None,
    })
}
