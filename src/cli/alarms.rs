//! Alarms: a replaced socket, rejected answers of another process, edited or removed hook entries, a
//! missing key or head file, and agents that disconnect while a request is held.
//!
//! Files are checked every few seconds on a separate thread, so that a slow disk blocks nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::base::clock::Timestamp;
use crate::base::limits::{MAX_THREADS, PASSING_ALARM_TIME};
use crate::base::text::one_line;
use crate::console::AlarmReceiver;
use crate::gateway::agents::CodingAgent;
use crate::gateway::connect::registry::{ConnectedAgent, ConnectionRegistry};
use crate::gateway::protocol::proof::{AnswerSigner, AnswerVerifier};
use crate::gateway::protocol::rejected_answers::{self, RejectedAnswer, RejectedAnswerReports};
use crate::gateway::transport::gateway_state::{ConnectionShortage, GatewayState};
use crate::gateway::transport::unix_server::BoundSocket;
use crate::runtime::OperatorHandle;
use crate::runtime::snapshot::{ClockStepAt, RuntimeSnapshot};
use crate::store::key;
use crate::trace::event::AnswerRejected;

mod alarm_log;

use alarm_log::{Alarm, AlarmKind, AlarmLog, unrequested_run_alarm};

/// Interval between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Watches all connections recorded in the folder of a store, until the receiver is dropped.
pub(super) fn watch(
    folder: PathBuf,
    bound: BoundSocket,
    gateway: GatewayState,
    operator: OperatorHandle,
) -> AlarmReceiver {
    let (sender, alarms) = watch::channel(Arc::<[String]>::default());
    let snapshots = operator.snapshots();
    let key = gateway.verifier();
    tokio::spawn(async move {
        let mut watched = ConnectionWatch {
            key: Some(key),
            ..ConnectionWatch::default()
        };
        let mut passing = RecentAlarms::default();
        let mut recorded = AlarmLog::default();
        let mut ticks = interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = sender.closed() => return,
                _ = ticks.tick() => {}
            }
            let (folder, bound) = (folder.clone(), bound.clone());
            let checked = tokio::task::spawn_blocking(move || {
                let mut found = Alarm::of_kind(AlarmKind::Socket, bound.find_problem());
                let new = watched.add_rejected(RejectedAnswerReports::read(&folder));
                found.extend(Alarm::of_kind(
                    AlarmKind::RejectedAnswer,
                    watched.rejected_alarm(),
                ));
                found.extend(Alarm::of_kind(
                    AlarmKind::Connection,
                    watched.find_alarms(&folder),
                ));
                let own = watched.key.as_ref();
                let key = own.and_then(|own| key_problem(&folder, own));
                found.extend(Alarm::of_kind(AlarmKind::Key, key));
                (watched, found, new)
            });
            // The task fails only while the program is ending.
            let Ok((next, mut found, new)) = checked.await else {
                return;
            };
            watched = next;
            for report in new {
                record_rejected(&operator, report).await;
            }
            let snapshot = Arc::clone(&snapshots.borrow());
            found.extend(runtime_alarms(&gateway, &mut passing, &snapshot));
            recorded.record(&operator, &found).await;
            let found: Arc<[String]> = found.into_iter().map(|alarm| alarm.what).collect();
            sender.send_if_modified(|alarms_shown| {
                let changed = **alarms_shown != *found;
                *alarms_shown = found;
                changed
            });
        }
    });
    AlarmReceiver(alarms)
}

/// Alarms about the agents and the state that a snapshot of the runtime shows.
fn runtime_alarms(
    gateway: &GatewayState,
    passing: &mut RecentAlarms,
    snapshot: &RuntimeSnapshot,
) -> Vec<Alarm> {
    let shortage = gateway.recent_shortage(PASSING_ALARM_TIME);
    let mut found = Vec::new();
    let disconnected = disconnected_agents(gateway, snapshot);
    found.extend(Alarm::of_kind(AlarmKind::AgentLeft, disconnected));
    let recent = passing.find_alarms(shortage, snapshot);
    found.extend(Alarm::of_kind(AlarmKind::Passing, recent));
    let untrusted = untrusted_state_alarm(snapshot);
    found.extend(Alarm::of_kind(AlarmKind::State, untrusted));
    let headless = missing_head_alarm(snapshot);
    found.extend(Alarm::of_kind(AlarmKind::Head, headless));
    let unrequested = unrequested_run_alarm(snapshot);
    found.extend(Alarm::of_kind(AlarmKind::UnrequestedRun, unrequested));
    found
}

/// Known connections, kept because a process that removes hooks may also remove them from the list.
#[derive(Default)]
struct ConnectionWatch {
    seen: Vec<ConnectedAgent>,
    /// Key that hook entries should pin.
    key: Option<AnswerVerifier>,
    /// Rejected answers, kept while the console runs: the process that caused them may remove reports.
    rejected: Vec<RejectedAnswer>,
}

/// Most rejected answers that are remembered. The alarm counts them.
const MAX_REJECTED: usize = 1000;

impl ConnectionWatch {
    /// Remembers reports; returns those that are not recorded yet.
    fn add_rejected(
        &mut self,
        reports: RejectedAnswerReports,
    ) -> Vec<rejected_answers::StoredReport> {
        for report in reports.all() {
            if self.rejected.len() < MAX_REJECTED && !self.rejected.contains(report) {
                self.rejected.push(report.clone());
            }
        }
        reports.new
    }

    fn rejected_alarm(&self) -> Option<String> {
        let summary = rejected_answers::summary(self.rejected.iter())?;
        Some(format!("{summary}; see cra doctor"))
    }

    fn find_alarms(&mut self, folder: &Path) -> Vec<String> {
        let known = match ConnectionRegistry::load(folder) {
            Ok(known) => known,
            Err(error) => {
                let mut found = vec![format!("cannot read the list of connections: {error}")];
                found.extend(
                    self.seen
                        .iter()
                        .filter_map(|one| self.connection_alarm(one)),
                );
                return found;
            }
        };
        // A connection that was disconnected with `cra disconnect` is not an alarm.
        self.seen
            .retain(|seen| !known.was_disconnected(seen.agent, &seen.file));
        let mut found = Vec::new();
        for seen in &self.seen {
            if known.find(seen.agent, &seen.file).is_none() {
                let agent = seen.agent.as_str();
                found.push(format!(
                    "{agent}: disconnected while this console ran ({})",
                    seen.file.display()
                ));
            }
        }
        found.extend(
            known
                .connections
                .iter()
                .filter_map(|one| self.connection_alarm(one)),
        );
        for connection in known.connections {
            let same = |seen: &&mut ConnectedAgent| {
                seen.agent == connection.agent && seen.file == connection.file
            };
            match self.seen.iter_mut().find(same) {
                Some(seen) => *seen = connection,
                None => self.seen.push(connection),
            }
        }
        found
    }

    fn connection_alarm(&self, connection: &ConnectedAgent) -> Option<String> {
        let trouble = connection.find_problem(self.key.as_ref())?;
        let (agent, file) = (connection.agent.as_str(), connection.file.display());
        Some(format!("{agent}: {trouble} ({file}); see cra doctor"))
    }
}

/// Records a report in the log. On failure the report stays in place and is tried again.
async fn record_rejected(operator: &OperatorHandle, found: rejected_answers::StoredReport) {
    let report = &found.report;
    let entry = AnswerRejected {
        by: report.by.clone(),
        asking_session: report.session.clone(),
        socket: report.socket.to_string_lossy().into_owned(),
        reason: report.reason.clone(),
        reported_at: report.at.to_string(),
    };
    if let Err(error) = operator.record_rejected_answer(entry).await {
        tracing::error!(?error, "cannot record a rejected answer");
        return;
    }
    let moved = tokio::task::spawn_blocking(move || rejected_answers::mark_recorded(&found)).await;
    if let Ok(Err(error)) = moved {
        tracing::error!(%error, "cannot move the report of a rejected answer");
    }
}

/// Agents that disconnected while a request of theirs is held; their next steps are unknown.
fn disconnected_agents(gateway: &GatewayState, snapshot: &RuntimeSnapshot) -> Vec<String> {
    let held: BTreeSet<_> = snapshot.held.iter().map(|held| &held.session).collect();
    let silent = gateway.disconnected_sessions(|session| held.contains(session));
    let held = snapshot
        .held
        .iter()
        .filter(|held| silent.contains(&held.session));
    held.map(|held| {
        let (session, gate) = (&held.session, &held.id);
        // Only an agent whose hook was stopped may have continued.
        let is_hooked = CodingAgent::from_name(&held.agent).is_some();
        let then = if is_hooked {
            "its hook was stopped: check the agent"
        } else {
            "check what the agent does"
        };
        format!("{session} disconnected while {gate} was waiting; {then}")
    })
    .collect()
}

/// Alarms about one-time events, each shown for [`PASSING_ALARM_TIME`].
#[derive(Default)]
struct RecentAlarms {
    clock_moved: Option<(ClockStepAt, Instant)>,
    threads_full: Option<(Timestamp, Instant)>,
}

impl RecentAlarms {
    fn find_alarms(
        &mut self,
        crowd: Option<ConnectionShortage>,
        snapshot: &RuntimeSnapshot,
    ) -> Vec<String> {
        let clock = recent(&mut self.clock_moved, snapshot.clock_step);
        let clock = clock.map(|ClockStepAt { step, at }| {
            let time = at.time_of_day();
            format!("the system clock was set {step} at {time} UTC; deadlines are unchanged")
        });
        let full = recent(&mut self.threads_full, snapshot.threads_full_at);
        let full = full.map(|at| threads_full_alarm(at, snapshot));
        let crowd = crowd.map(|crowd| crowd.alarm());
        clock.into_iter().chain(crowd).chain(full).collect()
    }
}

/// Notes the newest event of a kind, and returns it while it is to be shown.
fn recent<T: Copy + PartialEq>(noted: &mut Option<(T, Instant)>, newest: Option<T>) -> Option<T> {
    if newest != noted.map(|(noted, _)| noted) {
        *noted = newest.map(|newest| (newest, Instant::now()));
    }
    let recent = noted.filter(|(_, since)| since.elapsed() <= PASSING_ALARM_TIME);
    recent.map(|(newest, _)| newest)
}

/// Alarm text: the thread limit was reached, with the process that has the most threads.
fn threads_full_alarm(at: Timestamp, snapshot: &RuntimeSnapshot) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let owners = snapshot
        .threads
        .iter()
        .filter_map(|thread| thread.owner.as_ref());
    for process in owners.filter_map(|owner| owner.process.as_deref()) {
        *counts.entry(process).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let most = most.map_or_else(String::new, |(process, count)| {
        let process = match process.split_once('/') {
            Some((_, pid)) => format!("process {pid}"),
            None => process.to_uppercase(),
        };
        format!("; {process} has the most ({count})")
    });
    let time = at.time_of_day();
    format!(
        "thread limit of {MAX_THREADS} reached, a new thread was rejected at {time} UTC: threads of ended sessions \
         are removed a day after their last turn{most}"
    )
}

/// Alarm text: the state of the store was not trusted.
fn untrusted_state_alarm(snapshot: &RuntimeSnapshot) -> Option<String> {
    let what = snapshot.distrusted.as_ref()?;
    Some(format!("{what}; agents must send their requests again"))
}

/// Alarm text: the head file next to the store was missing.
fn missing_head_alarm(snapshot: &RuntimeSnapshot) -> Option<String> {
    let text = "`cra.head` was missing at the start, so cra could not detect an older copy of the store: \
                compare with a head that is kept elsewhere";
    snapshot.head_file_missing.then(|| text.to_owned())
}

/// Reason why the key in a folder differs from the key that this console signs with, if it does.
fn key_problem(folder: &Path, own: &AnswerVerifier) -> Option<String> {
    let shown = folder.join(key::FILE_NAME);
    let shown = shown.display();
    let what = match key::existing(folder) {
        Ok(Some(found)) if AnswerSigner::derive(&found).verifier() == *own => return None,
        Ok(Some(_)) => format!("the key `{shown}` was replaced"),
        Ok(None) => format!("the key `{shown}` is missing"),
        Err(error) => one_line(&error.to_string()),
    };
    Some(format!(
        "{what}: this console still records and signs, but cra cannot start again without that key; restore \
         it from a backup"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::base::clock_step::ClockStep;
    use crate::gateway::agents::CodingAgent;
    use crate::gateway::connect::{ConnectScope, HookConfig, connect};
    use crate::gateway::hook::OfflineBehavior;
    use crate::gateway::transport::gateway_state::ShortageOutcome;
    use crate::trace::note::Signer;

    /// Key of the watching console.
    fn cursor() -> CodingAgent {
        CodingAgent::from_name("cursor").unwrap()
    }

    fn key() -> AnswerVerifier {
        let log = Signer::new("cra/log-1", &[7; 32]).unwrap();
        AnswerSigner::derive(&log).verifier()
    }

    /// A folder with a store's list, and settings that are connected as it says.
    fn connected() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hooks.json");
        let program = folder.path().join("cra");
        fs::write(&program, "").unwrap();
        let wiring = HookConfig {
            program,
            timeout: 60,
            offline: OfflineBehavior::Deny,
            place: Vec::new(),
            key: Some(key().to_string()),
        };
        let changed = connect("", cursor(), &wiring).unwrap();
        fs::write(&file, changed.text).unwrap();
        let mut known = ConnectionRegistry::default();
        known.add(ConnectedAgent {
            agent: cursor(),
            scope: ConnectScope::User,
            file: file.clone(),
            wiring,
            made: changed.created,
        });
        known.save(folder.path()).unwrap();
        (folder, file)
    }

    #[track_caller]
    fn says(found: &[String], words: &str) {
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_step_is_shown_for_a_while_and_a_full_socket_while_it_lasts() {
        let mut passing = RecentAlarms::default();
        let mut shown = RuntimeSnapshot::empty();
        assert_eq!(passing.find_alarms(None, &shown), [""; 0]);
        let moved = ClockStepAt {
            step: ClockStep::from_micros(-600_000_000),
            at: "2026-01-31T23:59:59.000000Z".parse().unwrap(),
        };
        let alarm =
            "the system clock was set back by 10 min at 23:59:59 UTC; deadlines are unchanged";
        shown.clock_step = Some(moved);
        assert_eq!(passing.find_alarms(None, &shown), [alarm]);
        tokio::time::advance(PASSING_ALARM_TIME).await;
        assert_eq!(passing.find_alarms(None, &shown), [alarm]);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(passing.find_alarms(None, &shown), [""; 0]);
        // Another clock step is shown again.
        let step = ClockStep::from_micros(600_000_000);
        let again = ClockStepAt { step, ..moved };
        shown.clock_step = Some(again);
        assert_eq!(passing.find_alarms(None, &shown).len(), 1);
        let crowd = ConnectionShortage {
            interface: "socket",
            max_connections: 4096,
            busiest_process: Some(7),
            outcome: ShortageOutcome::IdleClosed,
        };
        let alarms = passing.find_alarms(Some(crowd), &RuntimeSnapshot::empty());
        let wanted = "the socket reached its limit of 4096 connections: idle connections were closed; \
                      process 7 has the most";
        assert_eq!(alarms, [wanted]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_thread_is_shown_for_a_while() {
        let mut passing = RecentAlarms::default();
        let mut shown = RuntimeSnapshot::empty();
        shown.threads_full_at = Some("2026-01-31T23:59:59.000000Z".parse().unwrap());
        let thread = |name: &str, process: &str| {
            let session = "s-1".parse().unwrap();
            let mut thread = crate::memento::Thread::new(name.parse().unwrap(), session);
            let owner = thread.owner.as_mut();
            owner.unwrap().process = Some(process.to_owned());
            Arc::new(thread)
        };
        shown.threads = [thread("a", "http"), thread("b", "1/7"), thread("c", "1/7")].into();
        let alarm = passing.find_alarms(None, &shown).concat();
        assert!(
            alarm.contains("a new thread was rejected at 23:59:59 UTC"),
            "{alarm}"
        );
        assert!(alarm.ends_with("process 7 has the most (2)"), "{alarm}");
        tokio::time::advance(PASSING_ALARM_TIME + Duration::from_millis(1)).await;
        assert_eq!(passing.find_alarms(None, &shown), [""; 0]);
    }

    #[test]
    fn an_edited_or_removed_hook_entry_is_shown_until_it_is_restored() {
        let (folder, file) = connected();
        let mut watched = ConnectionWatch::default();
        assert_eq!(watched.find_alarms(folder.path()), [""; 0]);
        let text = fs::read_to_string(&file).unwrap();
        fs::write(
            &file,
            text.replace("\"failClosed\": true", "\"failClosed\": false"),
        )
        .unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "cursor: beforeSubmitPrompt was edited, and 1 more",
        );
        fs::write(&file, "{}").unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "its hooks were removed",
        );
        fs::remove_file(&file).unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "its hooks were removed",
        );
        fs::write(&file, "{ // no").unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "the settings cannot be read",
        );
        fs::write(&file, &text).unwrap();
        assert_eq!(watched.find_alarms(folder.path()), [""; 0]);
        fs::remove_file(folder.path().join("cra")).unwrap();
        says(&watched.find_alarms(folder.path()), "is gone");
    }

    #[test]
    fn hooks_that_pin_another_key_are_shown() {
        let (folder, _) = connected();
        let mut watched = ConnectionWatch {
            key: Some(key()),
            ..ConnectionWatch::default()
        };
        assert_eq!(watched.find_alarms(folder.path()), [""; 0]);
        let other = Signer::new("cra/log-1", &[8; 32]).unwrap();
        watched.key = Some(AnswerSigner::derive(&other).verifier());
        let alarm = "cursor: its hooks have another key than this console";
        says(&watched.find_alarms(folder.path()), alarm);
    }

    #[test]
    fn a_rejected_answer_is_shown_while_the_console_runs() {
        let folder = tempfile::tempdir().unwrap();
        let mut watched = ConnectionWatch::default();
        assert_eq!(watched.rejected_alarm(), None);
        let socket = Path::new("/run/console.sock");
        let report = RejectedAnswer::new(
            "cra hook codex",
            None,
            socket,
            "the answer has no proof".to_owned(),
        );
        report.write_report(folder.path()).unwrap();
        let new = watched.add_rejected(RejectedAnswerReports::read(folder.path()));
        assert_eq!(new.len(), 1);
        let alarm = watched.rejected_alarm().unwrap();
        assert!(alarm.contains("ANOTHER PROCESS gave an answer"), "{alarm}");
        rejected_answers::mark_recorded(&new[0]).unwrap();
        let new = watched.add_rejected(RejectedAnswerReports::read(folder.path()));
        assert_eq!(new, [], "it is recorded once");
        assert_eq!(watched.rejected_alarm().as_ref(), Some(&alarm));
        // The report files are gone, but the alarm stays.
        fs::remove_dir_all(folder.path().join(rejected_answers::FOLDER_NAME)).unwrap();
        watched.add_rejected(RejectedAnswerReports::read(folder.path()));
        assert_eq!(watched.rejected_alarm(), Some(alarm));
    }

    #[test]
    fn a_connection_removed_from_the_list_is_noticed() {
        let (folder, _) = connected();
        let mut watched = ConnectionWatch::default();
        assert_eq!(watched.find_alarms(folder.path()), [""; 0]);
        let list = folder.path().join("connections.json");
        fs::write(&list, "no list").unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "cannot read the list of connections",
        );
        fs::remove_file(&list).unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "disconnected while this console ran",
        );
    }

    #[test]
    fn a_regular_disconnect_raises_no_alarm_and_ends_an_earlier_one() {
        let (folder, file) = connected();
        let mut watched = ConnectionWatch::default();
        assert_eq!(watched.find_alarms(folder.path()), [""; 0]);
        fs::write(&file, "{}").unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "its hooks were removed",
        );
        let connected = ConnectionRegistry::load(folder.path()).unwrap();
        let mut known = connected.clone();
        known.disconnect(cursor(), &file);
        known.save(folder.path()).unwrap();
        assert_eq!(watched.find_alarms(folder.path()), [""; 0]);
        // After it is connected again, it is watched again.
        let mut known = ConnectionRegistry::load(folder.path()).unwrap();
        known.add(connected.connections[0].clone());
        known.save(folder.path()).unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "its hooks were removed",
        );
        ConnectionRegistry::default().save(folder.path()).unwrap();
        says(
            &watched.find_alarms(folder.path()),
            "disconnected while this console ran",
        );
    }
}
