//! Who asks, as far as a door can tell.

use std::fmt;

/// Who asks, as far as a door can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A process at the socket.
    Socket {
        /// Its user.
        uid: u32,
        /// Its number, where the system tells.
        pid: Option<i32>,
    },
    /// A connection by HTTP, by where it comes from.
    Http(String),
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket { uid, pid: None } => write!(f, "at the socket (uid {uid})"),
            Self::Socket {
                uid,
                pid: Some(pid),
            } => write!(f, "at the socket (uid {uid}, pid {pid})"),
            Self::Http(address) => write!(f, "by HTTP ({address})"),
        }
    }
}
