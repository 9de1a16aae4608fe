//! Shared fixtures: a runtime on a manual clock, and answers that pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cra_core::atlas::document::ResponseType;
use cra_core::atlas::model::CompiledQuestion;
use cra_core::atlas::{Atlas, load_str};
use cra_core::base::clock::{Clock, ManualClock, Timestamp};
use cra_core::base::id::{CountedIds, SessionId};
use cra_core::engine::command::{
    ActionRequest, DecisionRequest, OperatorReply, Ruling, StartSession,
};
use cra_core::engine::held::Held;
use cra_core::gateway::protocol::proof::AnswerSigner;
use cra_core::gateway::transport::gateway_state::GatewayState;
use cra_core::runtime::extension::Registry;
use cra_core::runtime::notices::{NoticesOff, Webhooks};
use cra_core::runtime::snapshot::{ConsoleAccess, RuntimeSnapshot};
use cra_core::runtime::{Runtime, RuntimeParts};
use cra_core::store::sqlite::{FILE_NAME, SqliteStore};
use cra_core::store::{Store, StoreError};
use cra_core::trace::head::LogHead;
use cra_core::trace::note::Signer;
use rusqlite::Connection;
use serde_json::{Value, json};

/// The example Atlas.
pub(crate) const ACME: &str = include_str!("../../assets/atlas/acme-support.yaml");

/// SQL that gives every event of a store its own row, so that a test can change it. The record stays valid.
pub(crate) const SPLIT_ROWS: &str = r#"
    CREATE TEMP TABLE apart AS SELECT e.position + one.key AS position, e.session AS session,
        e.sequence + one.key AS sequence, one.value AS records,
        substr(e.hashes, one.key * 32 + 1, 32) AS hashes
    FROM events e, json_each('["' || replace(replace(replace(
        e.records, '\', '\\'), '"', '\"'), char(10), '","') || '"]') one;
    DELETE FROM events;
    INSERT INTO events SELECT * FROM apart;
    DROP TABLE apart;
"#;

/// The folder of the checkout.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` with this ending.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn acme() -> Vec<Atlas> {
    vec![load_str("acme-support.yaml", ACME).unwrap().atlas]
}

/// A runtime whose time stands still.
pub(crate) struct Bench {
    pub(crate) runtime: Runtime,
    pub(crate) clock: Arc<ManualClock>,
}

impl Bench {
    pub(crate) async fn start(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        Self::with_atlases(acme(), store, clock).await
    }

    pub(crate) async fn with_atlases(
        atlases: Vec<Atlas>,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
    ) -> Self {
        Self::with_extensions(atlases, Registry::default(), store, clock).await
    }

    pub(crate) async fn with_extensions(
        atlases: Vec<Atlas>,
        extensions: Registry,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let signer = signer(store.as_ref()).await;
        Self::with_signer(signer, atlases, extensions, store, clock).await
    }

    pub(crate) async fn with_signer(
        signer: Signer,
        atlases: Vec<Atlas>,
        extensions: Registry,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let runtime = Runtime::start(RuntimeParts {
            store,
            atlases,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            ids: Box::new(CountedIds::starting_at(
                clock.now().micros().unsigned_abs().into(),
            )),
            operator: "op-1".to_owned(),
            access: ConsoleAccess::Write,
            extensions,
            signer,
            head_file: None,
            webhooks: Webhooks::Off(NoticesOff::NoConsole),
        });
        Self {
            runtime: runtime.await.unwrap(),
            clock,
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<RuntimeSnapshot> {
        Arc::clone(&self.runtime.operator_handle().snapshots().borrow())
    }

    /// Waits for a snapshot that satisfies `wanted`.
    pub(crate) async fn wait_until(
        &self,
        wanted: impl Fn(&RuntimeSnapshot) -> bool,
    ) -> Arc<RuntimeSnapshot> {
        let mut snapshots = self.runtime.operator_handle().snapshots();
        let found =
            tokio::time::timeout(Duration::from_secs(20), snapshots.wait_for(|s| wanted(s)));
        Arc::clone(&found.await.expect("the snapshot never came").unwrap())
    }

    pub(crate) async fn begin(&self, session: &str) {
        let start = StartSession {
            delivery: cra_core::engine::command::DeliveryTime::Now,
            session: session.parse().unwrap(),
            agent: "bot".to_owned(),
            agent_version: None,
            intent: None,
            owner: None,
        };
        self.runtime
            .agent_handle()
            .start_session(start)
            .await
            .unwrap();
    }

    pub(crate) async fn pass(&self, held: &Held) -> OperatorReply {
        let answers = good_answers(held);
        self.runtime
            .operator_handle()
            .decide(decide(held, Ruling::Pass { answers }))
            .await
    }
}

/// Parts of a runtime with the example Atlas.
pub(crate) async fn parts(store: Arc<dyn Store>) -> RuntimeParts {
    RuntimeParts {
        signer: signer(store.as_ref()).await,
        head_file: None,
        store,
        atlases: acme(),
        clock: clock() as Arc<dyn Clock>,
        ids: Box::new(CountedIds::default()),
        operator: "op-1".to_owned(),
        access: ConsoleAccess::Write,
        extensions: Registry::default(),
        webhooks: Webhooks::Off(NoticesOff::NoConsole),
    }
}

/// Opens a store that was open a moment ago. A process that another test starts holds its lock, too, until
/// it has become another program.
pub(crate) fn open_store_retrying(folder: &Path) -> Result<SqliteStore, StoreError> {
    loop {
        match SqliteStore::open(folder) {
            Err(StoreError::InUse { .. }) => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

pub(crate) fn reopen_store(folder: &Path) -> SqliteStore {
    open_store_retrying(folder).unwrap()
}

/// Waits until a runtime that was stopped has let go of its store, and until all of it is in the one
/// file: the check that a runtime begins with may still be reading.
pub(crate) async fn close(store: Arc<SqliteStore>, folder: &Path) {
    while Arc::strong_count(&store) > 1 {
        tokio::task::yield_now().await;
    }
    drop(store);
    let file = Connection::open(folder.join(FILE_NAME)).unwrap();
    let busy = || file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    while busy() != Ok(0) {
        tokio::task::yield_now().await;
    }
}

/// Gateway state for a runtime on that store.
pub(crate) async fn gateway_state(bench: &Bench, store: &dyn Store) -> GatewayState {
    GatewayState::new(
        bench.runtime.agent_handle(),
        AnswerSigner::derive(&signer(store).await),
    )
}

/// The key that signs the logs of all tests.
pub(crate) async fn signer(store: &dyn Store) -> Signer {
    signer_with_seed(&store.log().await.unwrap().log, 7)
}

/// A key for a log, made of one number.
pub(crate) fn signer_with_seed(log: &SessionId, number: u8) -> Signer {
    Signer::new(&LogHead::origin(log), &[number; 32]).unwrap()
}

pub(crate) fn clock() -> Arc<ManualClock> {
    let start: Timestamp = "2026-01-01T00:00:00.000000Z".parse().unwrap();
    Arc::new(ManualClock::new(start))
}

pub(crate) fn request(session: &str, action: &str, params: Value) -> ActionRequest {
    ActionRequest {
        delivery: cra_core::engine::command::DeliveryTime::Now,
        on_disconnect: cra_core::engine::command::OnDisconnect::Kept,
        session: session.parse().unwrap(),
        action: action.to_owned(),
        params,
        deadline: None,
        resolution: None,
        call: None,
    }
}

pub(crate) fn decide(held: &Held, ruling: Ruling) -> DecisionRequest {
    DecisionRequest {
        gate: held.id.clone(),
        operator: "op-1".to_owned(),
        method: "console".to_owned(),
        request_hash: held.request_hash,
        atlas_hash: held.atlas_hash,
        justification: None,
        ruling,
    }
}

/// Answers that keep every rule of every question.
pub(crate) fn good_answers(held: &Held) -> Vec<BTreeMap<String, Value>> {
    let answer = |question: &CompiledQuestion| match question.response_type() {
        ResponseType::Boolean => json!(true),
        ResponseType::Acknowledgment => json!("understood"),
        _ => json!("confirmed by the customer in writing"),
    };
    let of_gate = |questions: &[CompiledQuestion]| {
        questions
            .iter()
            .map(|q| (q.id().to_owned(), answer(q)))
            .collect()
    };
    held.gates
        .iter()
        .map(|gate| of_gate(&gate.questions))
        .collect()
}

/// A small generator of its own, so that a seed means the same run for ever.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let sides = items.len() as u64;
        (sides > 0).then(|| &items[usize::try_from(self.roll(sides)).unwrap()])
    }
}

/// Lets everything that can go on go on. One thread, no real time: the order is always the same.
pub(crate) async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}
