//! The caller of a server, as far as the server can identify it.

use std::fmt;

/// The caller of a server, as far as the server can identify it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A process that is connected to the socket.
    Socket {
        /// User id of the process.
        uid: u32,
        /// Process id, if the system reports it.
        pid: Option<i32>,
        /// Leader of the process session (`getsid`), if the system reports it: the terminal or service that
        /// started the process.
        leader: Option<i32>,
    },
    /// A client that is connected by HTTP, with its address.
    Http(String),
}

/// The callers whose use of a limit is counted together.
///
/// A process counts with all processes of its process session, so that neither forking nor one short-lived
/// process for each call gets a caller more than its share. A process that calls `setsid` gets its own share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitGroup {
    /// The processes that one terminal or service of a user started.
    Processes {
        /// Their user id.
        uid: u32,
        /// Leader of their process session; the process itself if the system reports no leader.
        leader: i32,
    },
    /// All HTTP clients.
    Http,
}

impl Caller {
    /// Returns the group whose limits apply to the caller. A process without a known id has no group.
    #[must_use]
    pub fn limit_group(&self) -> Option<LimitGroup> {
        match self {
            Self::Socket { uid, pid, leader } => Some(LimitGroup::Processes {
                uid: *uid,
                leader: leader.or(*pid)?,
            }),
            Self::Http(_) => Some(LimitGroup::Http),
        }
    }
}

impl fmt::Display for LimitGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processes { uid, leader } => write!(f, "{uid}/{leader}"),
            Self::Http => f.write_str("http"),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket { uid, pid: None, .. } => write!(f, "at the socket (uid {uid})"),
            Self::Socket {
                uid,
                pid: Some(pid),
                ..
            } => write!(f, "at the socket (uid {uid}, pid {pid})"),
            Self::Http(address) => write!(f, "over HTTP ({address})"),
        }
    }
}
