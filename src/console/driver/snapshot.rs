//! Snapshot files: read and written on a blocking thread.

use std::path::Path;
use std::sync::Arc;

use super::record_reader::{QuitFlag, QuittableRecords, RecordSource};
use crate::base::clock::{Clock, SystemClock, Timestamp};
use crate::console::dialog::snapshot::{
    SnapshotReadFailure, SnapshotRequest, SnapshotResponse, SnapshotWrite, SnapshotWriteFailure,
};
use crate::reconstruct::Reconstruction;
use crate::runtime::OperatorHandle;
use crate::runtime::account::{AccountSources, account_of};
use crate::runtime::snapshot::RuntimeSnapshot as ScreenState;
use crate::runtime::snapshot_file::{artifact_content, read_snapshot, write_snapshot};

/// Executes a request about a snapshot file.
pub(in crate::console) async fn answer(
    operator_handle: &OperatorHandle,
    ask: SnapshotRequest,
    left: QuitFlag,
) -> SnapshotResponse {
    let lost = |what: String| SnapshotReadFailure { what, help: None };
    match ask {
        SnapshotRequest::Open(path) => {
            let file = path.clone();
            let opened = operator_handle.read_record(move |_| open(&file)).await;
            SnapshotResponse::Opened(path, opened.map_err(lost).flatten())
        }
        SnapshotRequest::Load(path, artifact) => {
            let wanted = artifact.clone();
            let content = operator_handle.read_record(move |_| {
                artifact_content(&path, &wanted).map_err(SnapshotReadFailure::from)
            });
            SnapshotResponse::Loaded(artifact, content.await.map_err(lost).flatten())
        }
        SnapshotRequest::Write(writing) => {
            let snapshot = Arc::clone(&operator_handle.snapshots().borrow());
            let wanted = writing.clone();
            let written = operator_handle.read_record(move |records| {
                let records = QuittableRecords {
                    records,
                    quit_flag: left,
                };
                write(&records, &snapshot, &wanted, SystemClock.now())
            });
            let written = written
                .await
                .map_err(SnapshotWriteFailure::Failed)
                .flatten();
            SnapshotResponse::Written(writing, written)
        }
    }
}

fn open(path: &Path) -> Result<Arc<Reconstruction>, SnapshotReadFailure> {
    let snapshot = read_snapshot(path)?;
    Ok(Arc::new(Reconstruction::from_snapshot(&snapshot)))
}

/// Writes a snapshot of a thread's session, as `cra snapshot` does.
fn write(
    records: &impl RecordSource,
    snapshot: &ScreenState,
    writing: &SnapshotWrite,
    now: Timestamp,
) -> Result<(), SnapshotWriteFailure> {
    let session = &writing.session;
    let mut threads = snapshot.threads.iter();
    let thread = threads.find(|thread| thread.id == writing.thread);
    let lives = snapshot
        .sessions
        .iter()
        .any(|summary| summary.id == *session);
    let sources = AccountSources {
        thread: thread.map(AsRef::as_ref),
        // An ended session holds no requests: its record says how it ended.
        held: lives.then_some(&snapshot.held),
        atlases: &snapshot.loaded,
    };
    let known = records.end(session).map_err(SnapshotWriteFailure::Failed)?;
    if known == 0 {
        let what = format!("the record has no events of `{session}`");
        return Err(SnapshotWriteFailure::Failed(what));
    }
    let account =
        account_of(records, session, sources, now).map_err(SnapshotWriteFailure::Failed)?;
    write_snapshot(&writing.path, &account, writing.if_exists).map_err(|error| {
        if error.is_existing_file() {
            return SnapshotWriteFailure::AlreadyExists;
        }
        SnapshotWriteFailure::Failed(error.to_string())
    })
}
