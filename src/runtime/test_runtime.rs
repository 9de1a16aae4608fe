//! Test runtime on a real store: agents make requests, tests advance the clock, and a separate reader
//! checks the disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::agent_handle::RequestReply;
use super::extension::Registry;
use super::notices::{NoticesOff, Webhooks};
use super::snapshot::{ConsoleAccess, RuntimeSnapshot};
use super::{OperatorHandle, Runtime, RuntimeParts, SessionTurn};
use crate::atlas::load_str;
use crate::base::clock::{Clock, ManualClock, Timestamp};
use crate::base::id::CountedIds;
use crate::engine::command::{ActionRequest, DenialReply, EndSession, FinalStatus, StartSession};
use crate::engine::command::{StateChange, StateKind};
use crate::engine::held::Held;
use crate::engine::held_in;
use crate::memento::Turn;
use crate::store::StoreReader as _;
use crate::store::sqlite::{FILE_NAME, SqliteReader, SqliteStore};
use crate::store::{Store, StoreError};
use crate::trace::event::Event;
use crate::trace::head::LogHead;
use crate::trace::note::Signer;
use crate::trace::verification::TrustAnchors;

/// Pending answer to an agent's request.
pub(crate) type PendingAnswer = JoinHandle<Result<RequestReply, DenialReply>>;

/// More events than any test has in a session.
const MAX_EVENTS: usize = 10_000;

/// Gives every event its own row, so that a test can change it. The record stays valid.
const SPLIT_ROWS_SQL: &str = r#"
    CREATE TEMP TABLE apart AS SELECT e.position + one.key AS position, e.session AS session,
        e.sequence + one.key AS sequence, one.value AS records,
        substr(e.hashes, one.key * 32 + 1, 32) AS hashes
    FROM events e, json_each('["' || replace(replace(replace(
        e.records, '\', '\\'), '"', '\"'), char(10), '","') || '"]') one;
    DELETE FROM events;
    INSERT INTO events SELECT * FROM apart;
    DROP TABLE apart;
"#;

/// A running runtime on a store in a temporary folder.
pub(crate) struct TestRuntime {
    folder: TempDir,
    atlas: String,
    operator: String,
    access: ConsoleAccess,
    pub(crate) clock: Arc<ManualClock>,
    store: Option<Arc<SqliteStore>>,
    runtime: Option<Runtime>,
    runs: u32,
}

impl TestRuntime {
    /// Starts a runtime with one Atlas and a new store.
    pub(crate) async fn start(atlas: &str, operator: &str, now: Timestamp) -> Self {
        let mut runtime_under_test = Self {
            folder: tempfile::tempdir().unwrap(),
            atlas: atlas.to_owned(),
            operator: operator.to_owned(),
            access: ConsoleAccess::Write,
            clock: Arc::new(ManualClock::new(now)),
            store: None,
            runtime: None,
            runs: 0,
        };
        runtime_under_test.open().await;
        runtime_under_test
    }

    /// Stops the runtime, applies a change, and starts it again on the old store.
    pub(crate) async fn restart(&mut self, change: impl FnOnce(&mut RestartChanges<'_>)) {
        if let Some(runtime) = self.runtime.take() {
            runtime.stop().await;
        }
        if let Some(store) = self.store.take() {
            // The verification at the start of a runtime may still be reading.
            while Arc::strong_count(&store) > 1 {
                tokio::task::yield_now().await;
            }
        }
        change(&mut RestartChanges(self));
        self.open().await;
    }

    async fn open(&mut self) {
        let store = loop {
            match SqliteStore::open(self.folder.path()) {
                // A process that another test starts may hold the lock for a moment.
                Err(StoreError::InUse { .. }) => tokio::task::yield_now().await,
                opened => break Arc::new(opened.unwrap()),
            }
        };
        let log = store.log().await.unwrap().log;
        let atlas = load_str("test.yaml", &self.atlas);
        let atlas = atlas.unwrap_or_else(|error| panic!("{error}")).atlas;
        self.runs += 1;
        let runtime = Runtime::start(RuntimeParts {
            store: Arc::clone(&store) as Arc<dyn Store>,
            atlases: vec![atlas],
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            ids: Box::new(CountedIds::starting_at(u128::from(self.runs) << 64)),
            operator: self.operator.clone(),
            access: self.access,
            extensions: Registry::default(),
            signer: Signer::new(&LogHead::origin(&log), &[7; 32]).unwrap(),
            head_file: None,
            webhooks: Webhooks::Off(NoticesOff::NoConsole),
        });
        let runtime = runtime.await.unwrap();
        runtime.operator_handle().verify().await.unwrap();
        self.store = Some(store);
        self.runtime = Some(runtime);
        settle().await;
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    pub(crate) fn operator_handle(&self) -> OperatorHandle {
        self.runtime().operator_handle()
    }

    pub(crate) fn snapshot(&self) -> Arc<RuntimeSnapshot> {
        Arc::clone(&self.operator_handle().snapshots().borrow())
    }

    /// Waits for a snapshot that satisfies `wanted`.
    pub(crate) async fn wait_for(
        &self,
        wanted: impl Fn(&RuntimeSnapshot) -> bool,
    ) -> Arc<RuntimeSnapshot> {
        let mut snapshots = self.operator_handle().snapshots();
        let found =
            tokio::time::timeout(Duration::from_secs(20), snapshots.wait_for(|s| wanted(s)));
        Arc::clone(&found.await.expect("the picture never came").unwrap())
    }

    pub(crate) async fn start_session(&self, session: &str) {
        let start = StartSession {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            agent: "bot".to_owned(),
            agent_version: None,
            intent: None,
            owner: None,
        };
        let started = self.runtime().agent_handle().start_session(start).await;
        started.unwrap();
    }

    pub(crate) async fn end_session(&self, session: &str) {
        let end = EndSession {
            delivery: crate::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            status: FinalStatus::Cancelled,
            summary: None,
        };
        self.runtime()
            .agent_handle()
            .end_session(end)
            .await
            .unwrap();
    }

    /// Reports a turn of an agent's conversation.
    pub(crate) async fn turn(&self, session: &str, turn: &Value) {
        let take = SessionTurn {
            session: session.parse().unwrap(),
            thread: None,
            turn: Turn::read(turn.to_string().as_bytes()).unwrap(),
        };
        self.runtime().agent_handle().turn(take).await.unwrap();
    }

    /// Sends an agent's request, and waits for the answer in another task.
    pub(crate) fn request_action(
        &self,
        session: &str,
        action: &str,
        params: Value,
    ) -> PendingAnswer {
        let request = ActionRequest {
            delivery: crate::engine::command::DeliveryTime::Now,
            on_disconnect: crate::engine::command::OnDisconnect::Kept,
            session: session.parse().unwrap(),
            action: action.to_owned(),
            params,
            deadline: None,
            resolution: None,
            call: None,
        };
        let agents = self.runtime().agent_handle();
        tokio::spawn(async move { agents.request_action(request).await })
    }

    fn reader(&self) -> SqliteReader {
        SqliteReader::open(&self.folder.path().join(FILE_NAME)).unwrap()
    }

    /// Returns all events of a type on disk, including the log's own, as another process reads them.
    pub(crate) fn on_disk(&self, event_type: &str) -> Vec<Value> {
        let reader = self.reader();
        let chains = reader.heads().unwrap().into_iter();
        let events = chains.flat_map(|head| reader.events(&head.session, 0, MAX_EVENTS).unwrap());
        let mut events: Vec<Event> = events.collect();
        events.retain(|event| event.event_type == event_type);
        events.sort_by_key(|event| (event.timestamp, event.sequence));
        events
            .into_iter()
            .map(|event| event.payload.into())
            .collect()
    }

    /// Returns the held requests on disk.
    pub(crate) fn held_on_disk(&self) -> Vec<Arc<Held>> {
        let rows = self.reader().state().unwrap().into_iter();
        let held = rows.filter(|row| row.kind == StateKind::Held.as_str());
        let held = held.map(|row| StateChange {
            kind: StateKind::Held,
            key: row.key,
            body: row.body,
        });
        held_in(held).unwrap()
    }

    /// Returns true if every chain on disk is valid.
    pub(crate) fn is_sound(&self) -> bool {
        let report = self.reader().verify(TrustAnchors::nothing()).unwrap();
        report.is_sound()
    }
}

/// Changes that are possible while no process uses the store.
pub(crate) struct RestartChanges<'r>(&'r mut TestRuntime);

impl RestartChanges<'_> {
    /// Sets another operator for the next start.
    pub(crate) fn operator(&mut self, name: &str) {
        name.clone_into(&mut self.0.operator);
    }

    /// Sets another Atlas for the next start.
    pub(crate) fn atlas(&mut self, text: &str) {
        text.clone_into(&mut self.0.atlas);
    }

    /// Sets the access for the next start.
    pub(crate) fn access(&mut self, access: ConsoleAccess) {
        self.0.access = access;
    }

    /// Changes the file of the store, as another process would.
    pub(crate) fn tamper(&mut self, sql: &str) {
        let path: &Path = self.0.folder.path();
        let file = Connection::open(path.join(FILE_NAME)).unwrap();
        file.execute_batch(SPLIT_ROWS_SQL).unwrap();
        assert_ne!(file.execute(sql, []).unwrap(), 0, "nothing was changed");
    }
}

/// Lets all tasks run that can.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}
