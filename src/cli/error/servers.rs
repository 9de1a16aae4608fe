//! Failures of servers for agents.

use super::Failure;
use crate::gateway::transport::acp::AcpProxyError;
use crate::gateway::transport::http::HttpError;
use crate::gateway::transport::mcp::proxy::ProxyError;
use crate::gateway::transport::mcp::tool_server::ToolServerError;

/// Reason why a server for agents does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum ServerFailure {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error(transparent)]
    AcpProxy(#[from] AcpProxyError),
    #[error(transparent)]
    Tools(#[from] ToolServerError),
}

impl ServerFailure {
    pub(super) fn help(&self) -> Option<&'static str> {
        match self {
            Self::Http(error) => Some(error.help()),
            Self::Proxy(error) => error.help(),
            Self::AcpProxy(error) => error.help(),
            Self::Tools(_) => None,
        }
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Agents(error.into())
    }
}

impl From<ProxyError> for Failure {
    fn from(error: ProxyError) -> Self {
        Self::Agents(error.into())
    }
}

impl From<AcpProxyError> for Failure {
    fn from(error: AcpProxyError) -> Self {
        Self::Agents(error.into())
    }
}

impl From<ToolServerError> for Failure {
    fn from(error: ToolServerError) -> Self {
        Self::Agents(error.into())
    }
}
