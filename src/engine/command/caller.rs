//! The caller of an interface, as far as the interface can tell.

use std::fmt;

/// The caller of an interface, as far as the interface can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A process at the socket.
    Socket {
        /// Its user.
        uid: u32,
        /// Its process id, where the system tells.
        pid: Option<i32>,
        /// Leader of its process session (`getsid`), where the system tells: the terminal or service that started it.
        leader: Option<i32>,
    },
    /// A connection by HTTP, with its address.
    Http(String),
}

/// The callers whose use of a limit is counted together.
///
/// A process counts with all processes of its process session, so that neither forking nor one short-lived process for
/// each call gets a caller more than its share. A process that calls `setsid` starts a share of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitGroup {
    /// The processes that one terminal or service of a user started.
    Processes {
        /// Their user.
        uid: u32,
        /// Leader of their process session; the process itself where the system names no leader.
        leader: i32,
    },
    /// All callers by HTTP.
    Http,
}

impl Caller {
    /// The group whose limits hold for the caller. A process that the system does not name has none.
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
            Self::Http(address) => write!(f, "by HTTP ({address})"),
        }
    }
}
