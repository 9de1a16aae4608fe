//! What the console is alarmed by: a socket that is not ours any more, hook entries that somebody edits or
//! removes, and agents that leave while they are held.
//!
//! Files are looked at every few seconds, in a thread where waiting for a disk holds up nobody.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::console::Alarms;
use crate::gateway::connect::registry::{Connection, Registry};
use crate::gateway::hall::Hall;
use crate::gateway::socket::Bound;
use crate::runtime::snapshot::Snapshot;

/// How often is looked.
const EVERY: Duration = Duration::from_secs(2);

/// Looks after everything that was connected from the folder of a store, for as long as somebody listens.
pub(super) fn watch(
    folder: PathBuf,
    bound: Bound,
    hall: Hall,
    snapshots: watch::Receiver<Arc<Snapshot>>,
) -> Alarms {
    let (sender, alarms) = watch::channel(Arc::<[String]>::default());
    tokio::spawn(async move {
        let mut watched = Watched::default();
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = sender.closed() => return,
                _ = ticks.tick() => {}
            }
            let (folder, bound) = (folder.clone(), bound.clone());
            let looked = tokio::task::spawn_blocking(move || {
                let mut found: Vec<_> = bound.trouble().into_iter().collect();
                found.extend(watched.look(&folder));
                (watched, found)
            });
            // Only a program that is ending looks no further.
            let Ok((next, mut found)) = looked.await else {
                return;
            };
            watched = next;
            found.extend(silent(&hall, &snapshots.borrow()));
            let found: Arc<[String]> = found.into();
            sender.send_if_modified(|told| {
                let news = **told != *found;
                *told = found;
                news
            });
        }
    });
    Alarms(alarms)
}

/// What is known to be connected. It is remembered here too: who takes hooks out may also take them off the list.
#[derive(Default)]
struct Watched {
    seen: Vec<Connection>,
}

impl Watched {
    fn look(&mut self, folder: &Path) -> Vec<String> {
        let known = match Registry::load(folder) {
            Ok(known) => known,
            Err(error) => {
                let mut found = vec![format!("the list of connections cannot be read: {error}")];
                found.extend(self.seen.iter().filter_map(told));
                return found;
            }
        };
        // Who says that it should go is no cause for alarm.
        self.seen
            .retain(|it| !known.was_disconnected(it.agent, &it.file));
        let mut found = Vec::new();
        for seen in &self.seen {
            if known.find(seen.agent, &seen.file).is_none() {
                let agent = seen.agent.as_str();
                found.push(format!(
                    "{agent}: it was disconnected while this console ran ({})",
                    seen.file.display()
                ));
            }
        }
        found.extend(known.connections.iter().filter_map(told));
        for connection in known.connections {
            let same =
                |it: &&mut Connection| it.agent == connection.agent && it.file == connection.file;
            match self.seen.iter_mut().find(same) {
                Some(seen) => *seen = connection,
                None => self.seen.push(connection),
            }
        }
        found
    }
}

fn told(connection: &Connection) -> Option<String> {
    let trouble = connection.trouble()?;
    let (agent, file) = (connection.agent.as_str(), connection.file.display());
    Some(format!("{agent}: {trouble} ({file}); see cra doctor"))
}

/// Agents that left while something of theirs is held: whether they went on, only they know.
fn silent(hall: &Hall, snapshot: &Snapshot) -> Vec<String> {
    let held: BTreeSet<_> = snapshot.held.iter().map(|it| &it.session).collect();
    let silent = hall.silent(|session| held.contains(session));
    let held = snapshot
        .held
        .iter()
        .filter(|it| silent.contains(&it.session));
    held.map(|it| {
        let (session, gate) = (&it.session, &it.id);
        format!(
            "{gate}: {session} left while it was held, so its hook was stopped; look what it does"
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::gateway::connect::{Scope, Wiring, connect};
    use crate::gateway::hook::{Host, Offline};

    /// A folder with a store's list, and settings that are connected as it says.
    fn connected() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hooks.json");
        let program = folder.path().join("cra");
        fs::write(&program, "").unwrap();
        let wiring = Wiring {
            program,
            timeout: 60,
            offline: Offline::Deny,
            place: Vec::new(),
        };
        let changed = connect("", Host::Cursor, &wiring).unwrap();
        fs::write(&file, changed.text).unwrap();
        let mut known = Registry::default();
        known.remember(Connection {
            agent: Host::Cursor,
            scope: Scope::User,
            file: file.clone(),
            wiring,
            made: changed.made,
        });
        known.save(folder.path()).unwrap();
        (folder, file)
    }

    #[track_caller]
    fn says(found: &[String], words: &str) {
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    }

    #[test]
    fn an_entry_that_is_edited_or_removed_is_told_until_it_is_right_again() {
        let (folder, file) = connected();
        let mut watched = Watched::default();
        assert_eq!(watched.look(folder.path()), [""; 0]);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            text.replace("\"failClosed\": true", "\"failClosed\": false"),
        )
        .unwrap();
        says(
            &watched.look(folder.path()),
            "cursor: beforeSubmitPrompt was edited, and 1 more",
        );
        fs::write(&file, "{}").unwrap();
        says(&watched.look(folder.path()), "its hooks were removed");
        fs::remove_file(&file).unwrap();
        says(&watched.look(folder.path()), "its hooks were removed");
        fs::write(&file, "{ // no").unwrap();
        says(&watched.look(folder.path()), "the settings cannot be read");
        fs::write(&file, &text).unwrap();
        assert_eq!(watched.look(folder.path()), [""; 0]);
        fs::remove_file(folder.path().join("cra")).unwrap();
        says(&watched.look(folder.path()), "is gone");
    }

    #[test]
    fn who_takes_a_connection_off_the_list_is_noticed() {
        let (folder, _) = connected();
        let mut watched = Watched::default();
        assert_eq!(watched.look(folder.path()), [""; 0]);
        let list = folder.path().join("connections.json");
        fs::write(&list, "no list").unwrap();
        says(
            &watched.look(folder.path()),
            "the list of connections cannot be read",
        );
        fs::remove_file(&list).unwrap();
        says(
            &watched.look(folder.path()),
            "it was disconnected while this console ran",
        );
    }

    #[test]
    fn who_disconnects_in_order_alarms_nobody_and_ends_the_alarm() {
        let (folder, file) = connected();
        let mut watched = Watched::default();
        assert_eq!(watched.look(folder.path()), [""; 0]);
        fs::write(&file, "{}").unwrap();
        says(&watched.look(folder.path()), "its hooks were removed");
        let connected = Registry::load(folder.path()).unwrap();
        let mut known = connected.clone();
        known.disconnect(Host::Cursor, &file);
        known.save(folder.path()).unwrap();
        assert_eq!(watched.look(folder.path()), [""; 0]);
        // Connected again, it is looked after again.
        let mut known = Registry::load(folder.path()).unwrap();
        known.remember(connected.connections[0].clone());
        known.save(folder.path()).unwrap();
        says(&watched.look(folder.path()), "its hooks were removed");
        Registry::default().save(folder.path()).unwrap();
        says(
            &watched.look(folder.path()),
            "it was disconnected while this console ran",
        );
    }
}
