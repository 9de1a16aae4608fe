//! Calls of a hook to the console: over the socket, or inside the console's own process.
//!
//! Contract: a call has a result only if the console gave it, before the hook's deadline. Over the socket
//! the console proves each answer; inside its process no other process can answer.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use crate::gateway::protocol::call::{AuthenticatedCall, CallError};
use crate::gateway::protocol::proof::AnswerVerifier;
use crate::gateway::transport::agent_connection::AgentConnection;
use crate::gateway::transport::client::BlockingClient;

/// Socket of a console, and the key that its answers are verified with.
#[derive(Clone, Debug)]
pub struct ConsoleSocket {
    /// Path of the socket.
    pub path: PathBuf,
    /// Key that verifies the console's answers. Without a usable key, the reason; everything is denied
    /// then.
    pub key: Result<AnswerVerifier, String>,
    /// Folder of the store, where a rejected answer is reported.
    pub folder: PathBuf,
}

/// Way in which an agent reaches its hook, and the hook its console.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transport<'a> {
    /// The agent runs the program, which connects to the socket.
    Direct(&'a ConsoleSocket),
    /// The agent posts to the console over HTTP.
    Rest,
}

impl Transport<'_> {
    /// Returns its name in the record.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Direct(_) => "direct",
            Self::Rest => "rest",
        }
    }
}

/// Caller of the console on behalf of one hook.
pub(super) trait ConsoleCalls: Send {
    /// Sends a call, and waits for its result until the hook's deadline.
    ///
    /// # Errors
    /// Every outcome other than a result. Only a result means permission.
    fn call(
        &mut self,
        method: &str,
        params: Value,
    ) -> impl Future<Output = Result<Value, CallError>> + Send;

    /// Returns the way in which the agent reached this hook.
    fn transport(&self) -> Transport<'_>;
}

/// Calls over the socket. They block, so that `cra hook` needs no async runtime.
pub(super) struct SocketCalls<'a> {
    client: BlockingClient,
    socket: &'a ConsoleSocket,
}

impl<'a> SocketCalls<'a> {
    /// Connects to the console.
    ///
    /// # Errors
    /// Fails when there is no usable key, or no process listens.
    pub(super) fn connect(socket: &'a ConsoleSocket, deadline: Instant) -> Result<Self, CallError> {
        let key = socket.key.clone().map_err(CallError::NoKey)?;
        let client = BlockingClient::connect(&socket.path, key, deadline)?;
        Ok(Self { client, socket })
    }
}

impl ConsoleCalls for SocketCalls<'_> {
    async fn call(&mut self, method: &str, params: Value) -> Result<Value, CallError> {
        self.client.call(method, &params)
    }

    fn transport(&self) -> Transport<'_> {
        Transport::Direct(self.socket)
    }
}

/// Calls inside the console's process, for a caller that a server has admitted. Dropping the future of a
/// call withdraws it, as a closed connection does.
pub(super) struct ProcessCalls {
    connection: AgentConnection,
    deadline: Instant,
}

impl ProcessCalls {
    pub(super) fn new(connection: AgentConnection, deadline: Instant) -> Self {
        Self {
            connection,
            deadline,
        }
    }
}

impl ConsoleCalls for ProcessCalls {
    async fn call(&mut self, method: &str, params: Value) -> Result<Value, CallError> {
        if self.deadline <= Instant::now() {
            return Err(CallError::TimedOut);
        }
        let call = AuthenticatedCall::read_params(method, params).map_err(CallError::Fault)?;
        let answered = self.connection.execute_call(call);
        match tokio::time::timeout_at(self.deadline.into(), answered).await {
            Ok(answered) => answered.map_err(CallError::Fault),
            Err(_) => Err(CallError::TimedOut),
        }
    }

    fn transport(&self) -> Transport<'_> {
        Transport::Rest
    }
}
