//! Admission of connections: which process may connect, and which connection makes room when all are in use.
//!
//! Contract: a connection with a call that waits for its answer is never closed to make room. Among the others, the
//! process with the most connections gives up the one that has been idle longest. One process never takes all: an
//! eighth is kept free for the others.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::unistd::{Pid, getsid};
use tokio::net::UnixStream;
use tokio::sync::Notify;

use crate::engine::command::Caller;

/// Reciprocal of the share of connections that one process cannot use: one in this many stays free for
/// others.
const RESERVED_FRACTION: usize = 8;

/// Reason why a process may not connect.
#[derive(Debug, thiserror::Error)]
pub(super) enum PeerRefusal {
    /// Another user, the superuser included.
    #[error("the process belongs to user {0}; only the console's user may connect")]
    OtherUser(u32),
    /// The system does not name the user.
    #[error("the user of the process is unknown: {0}")]
    Unknown(io::Error),
}

/// Decides whether a process may connect, by user and process as the kernel names them.
pub(super) fn check_peer(
    peer: io::Result<PeerProcess>,
    own_uid: u32,
) -> Result<Caller, PeerRefusal> {
    match peer {
        Ok(PeerProcess { uid, pid, leader }) if uid == own_uid => {
            Ok(Caller::Socket { uid, pid, leader })
        }
        Ok(PeerProcess { uid, .. }) => Err(PeerRefusal::OtherUser(uid)),
        Err(error) => Err(PeerRefusal::Unknown(error)),
    }
}

/// A process at the other end of a connection, as the kernel names it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerProcess {
    uid: u32,
    pub(super) pid: Option<i32>,
    leader: Option<i32>,
}

impl PeerProcess {
    /// Reads the process of a connection.
    pub(super) fn from_stream(stream: &UnixStream) -> io::Result<Self> {
        let peer = stream.peer_cred()?;
        Ok(Self {
            uid: peer.uid(),
            pid: peer.pid(),
            leader: peer.pid().and_then(session_leader),
        })
    }
}

/// Leader of the process session that a process belongs to. The kernel reports 0 for a leader in another process
/// namespace, as in a container: such a leader has no number here. `rustix` takes that 0 for a process, so this is `nix`.
fn session_leader(pid: i32) -> Option<i32> {
    let pid = Some(pid).filter(|pid| *pid > 0)?;
    let leader = getsid(Some(Pid::from_raw(pid))).ok()?;
    Some(leader.as_raw()).filter(|leader| *leader > 0)
}

/// Number of a connection, in the order of their arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(u64);

/// The answer to a process that wants to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// A connection is free.
    Admit,
    /// A connection becomes free when this idle one is closed.
    Replace(ConnectionId),
    /// Every connection that could be closed waits for an answer.
    Refuse,
}

/// All open connections.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Mutex<ConnectionTable>>);

#[derive(Debug)]
struct ConnectionTable {
    max_connections: usize,
    open: BTreeMap<ConnectionId, ConnectionEntry>,
    /// Counts up with every connection, and with every call that ends.
    events: u64,
}

#[derive(Debug)]
struct ConnectionEntry {
    pid: Option<i32>,
    /// Calls that wait for their answer.
    calls: usize,
    /// Event number at which its last call ended, or at which it was opened if it had no call.
    idle_since: u64,
    close: Arc<Notify>,
}

impl Connections {
    /// Creates an empty table for at most this many connections.
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(ConnectionTable {
            max_connections: most,
            open: BTreeMap::new(),
            events: 0,
        })))
    }

    /// Decides about one more connection of a process. If another connection has to make room, it is told
    /// to close and is no longer counted.
    pub(super) fn admit(&self, pid: Option<i32>) -> Admission {
        let mut table = self.lock();
        let admission = table.decide(pid);
        if let Admission::Replace(id) = admission
            && let Some(entry) = table.open.remove(&id)
        {
            entry.close.notify_one();
        }
        admission
    }

    /// Adds an admitted connection to the table.
    pub(super) fn add(&self, pid: Option<i32>) -> OpenConnection {
        let mut table = self.lock();
        let id = ConnectionId(table.next_event());
        let close = Arc::new(Notify::new());
        table.open.insert(
            id,
            ConnectionEntry {
                pid,
                calls: 0,
                idle_since: id.0,
                close: Arc::clone(&close),
            },
        );
        OpenConnection {
            all: self.clone(),
            id,
            close,
        }
    }

    /// Returns the process with the most connections, and their number.
    pub(super) fn busiest_process(&self) -> Option<(Option<i32>, usize)> {
        let counts = self.lock().counts();
        counts.into_iter().max_by_key(|(_, count)| *count)
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionTable {
    fn next_event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    fn counts(&self) -> BTreeMap<Option<i32>, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.open.values() {
            *counts.entry(entry.pid).or_default() += 1;
        }
        counts
    }

    fn decide(&self, pid: Option<i32>) -> Admission {
        let share = self.max_connections - self.max_connections / RESERVED_FRACTION;
        if self.open.len() < share {
            return Admission::Admit;
        }
        let counts = self.counts();
        let own = counts.get(&pid).copied().unwrap_or(0);
        // If the system does not name processes, all connections look like one process. The share cannot
        // apply then.
        if pid.is_some() && own >= share {
            let idle = self.longest_idle(pid);
            return idle.map_or(Admission::Refuse, Admission::Replace);
        }
        if self.open.len() < self.max_connections {
            return Admission::Admit;
        }
        let mut processes: Vec<_> = counts.into_iter().collect();
        processes.sort_by_key(|(pid, count)| {
            let idle = self.longest_idle(*pid).and_then(|id| self.open.get(&id));
            (
                std::cmp::Reverse(*count),
                idle.map(|entry| entry.idle_since),
            )
        });
        let mut idle = processes
            .iter()
            .filter_map(|(pid, _)| self.longest_idle(*pid));
        idle.next().map_or(Admission::Refuse, Admission::Replace)
    }

    fn longest_idle(&self, pid: Option<i32>) -> Option<ConnectionId> {
        let own = self
            .open
            .iter()
            .filter(|(_, entry)| entry.pid == pid && entry.calls == 0);
        let longest = own.min_by_key(|(_, entry)| entry.idle_since);
        longest.map(|(id, _)| *id)
    }
}

/// A connection, counted for as long as this lives.
#[derive(Debug)]
pub(super) struct OpenConnection {
    all: Connections,
    id: ConnectionId,
    close: Arc<Notify>,
}

impl OpenConnection {
    /// Completes when the connection has to make room for another.
    pub(super) async fn wait_for_close(&self) {
        self.close.notified().await;
    }

    /// Marks a call as waiting for its answer. Returns `None` if the connection was already told to make
    /// room.
    pub(super) fn begin_call(&self) -> Option<WaitingCall> {
        let mut table = self.all.lock();
        table.open.get_mut(&self.id)?.calls += 1;
        Some(WaitingCall(self.all.clone(), self.id))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.all.lock().open.remove(&self.id);
    }
}

/// A call that waits for its answer, until this is dropped.
#[derive(Debug)]
pub(super) struct WaitingCall(Connections, ConnectionId);

impl Drop for WaitingCall {
    fn drop(&mut self) {
        let mut table = self.0.lock();
        let event = table.next_event();
        if let Some(entry) = table.open.get_mut(&self.1) {
            entry.calls -= 1;
            entry.idle_since = event;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 1000;

    #[expect(
        clippy::unnecessary_wraps,
        reason = "matches the argument of `check_peer`"
    )]
    fn process(uid: u32, pid: Option<i32>) -> io::Result<PeerProcess> {
        let leader = pid.map(|_| 5);
        Ok(PeerProcess { uid, pid, leader })
    }

    #[test]
    fn a_process_and_its_children_have_one_session_leader() {
        let own = i32::try_from(std::process::id()).unwrap();
        let leader = session_leader(own);
        // A child that waits until its input is closed.
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_ne!(pid, own);
        assert_eq!(session_leader(pid), leader);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(session_leader(-1), None);
    }

    #[test]
    fn only_processes_of_the_same_user_may_connect() {
        let admitted = check_peer(process(OWN, Some(7)), OWN).unwrap();
        assert_eq!(
            admitted,
            Caller::Socket {
                uid: OWN,
                pid: Some(7),
                leader: Some(5),
            }
        );
        assert!(check_peer(process(OWN, None), OWN).is_ok());
        for uid in [0, OWN - 1, OWN + 1, u32::MAX] {
            let refused = check_peer(process(uid, Some(7)), OWN);
            assert!(
                matches!(refused, Err(PeerRefusal::OtherUser(found)) if found == uid),
                "{uid}"
            );
        }
        let unknown = Err(io::ErrorKind::Unsupported.into());
        assert!(matches!(
            check_peer(unknown, OWN),
            Err(PeerRefusal::Unknown(_))
        ));
        // For the superuser too, every other user is refused.
        assert!(check_peer(process(OWN, None), 0).is_err());
        assert!(check_peer(process(0, None), 0).is_ok());
    }

    fn add(all: &Connections, pid: i32, count: usize) -> Vec<OpenConnection> {
        (0..count)
            .map(|_| {
                assert_ne!(all.admit(Some(pid)), Admission::Refuse);
                all.add(Some(pid))
            })
            .collect()
    }

    #[test]
    fn the_longest_idle_connection_makes_room() {
        let all = Connections::new(3);
        let open = add(&all, 1, 3);
        drop(open[0].begin_call());
        assert_eq!(all.admit(Some(2)), Admission::Replace(open[1].id));
        let _second = all.add(Some(2));
        assert_eq!(all.admit(Some(2)), Admission::Replace(open[2].id));
        let _third = all.add(Some(2));
        // Now process 2 has more connections than process 1.
        assert_ne!(all.admit(Some(3)), Admission::Replace(open[0].id));
    }

    #[test]
    fn a_connection_with_a_waiting_call_never_makes_room() {
        let all = Connections::new(2);
        let open = add(&all, 1, 2);
        let first = open[0].begin_call().unwrap();
        let second = open[1].begin_call().unwrap();
        assert_eq!(all.admit(Some(2)), Admission::Refuse);
        drop(second);
        assert_eq!(all.admit(Some(2)), Admission::Replace(open[1].id));
        // A connection that was told to close accepts no further call.
        assert!(open[1].begin_call().is_none());
        assert!(open[0].begin_call().is_some());
        drop(first);
    }

    #[test]
    fn a_process_with_many_connections_makes_room_before_one_with_few() {
        let all = Connections::new(16);
        let old = add(&all, 1, 1);
        let flood = add(&all, 2, 14);
        let other = add(&all, 3, 1);
        assert_eq!(all.busiest_process(), Some((Some(2), 14)));
        // The connection of process 1 has been idle longest, but its process has few connections.
        assert_eq!(all.admit(Some(4)), Admission::Replace(flood[0].id));
        let newcomer = all.add(Some(4));
        assert!(newcomer.begin_call().is_some());
        assert!(old[0].begin_call().is_some() && other[0].begin_call().is_some());
    }

    #[test]
    fn one_process_cannot_use_the_reserved_eighth_even_if_all_its_connections_are_busy() {
        let all = Connections::new(16);
        let flood = add(&all, 1, 14);
        let calls: Vec<_> = flood.iter().map(OpenConnection::begin_call).collect();
        assert_eq!(all.admit(Some(1)), Admission::Refuse);
        assert_eq!(all.admit(Some(2)), Admission::Admit);
        drop(calls);
        assert_eq!(all.admit(Some(1)), Admission::Replace(flood[0].id));
        drop(flood);
        assert_eq!(all.busiest_process(), None);
    }
}
