//! Snapshot files: read and written on a blocking thread.

use std::path::Path;
use std::sync::Arc;

use super::record::{Left, Records, Until};
use crate::base::clock::{Clock, SystemClock, Timestamp};
use crate::console::dialog::snapshot::{SnapshotAsk, SnapshotTold, Unusable, Unwritten, Writing};
use crate::reconstruct::Reconstruction;
use crate::runtime::Desk;
use crate::runtime::account::{Beside, account_of};
use crate::runtime::snapshot::Snapshot as Picture;
use crate::runtime::snapshot_file::{artifact_content, read_snapshot, write_snapshot};

/// Executes a request about a snapshot file.
pub(in crate::console) async fn answer(desk: &Desk, ask: SnapshotAsk, left: Left) -> SnapshotTold {
    let lost = |what: String| Unusable { what, help: None };
    match ask {
        SnapshotAsk::Open(path) => {
            let file = path.clone();
            let opened = desk.read(move |_| open(&file)).await;
            SnapshotTold::Opened(path, opened.map_err(lost).flatten())
        }
        SnapshotAsk::Load(path, artifact) => {
            let wanted = artifact.clone();
            let content =
                desk.read(move |_| artifact_content(&path, &wanted).map_err(Unusable::from));
            SnapshotTold::Loaded(artifact, content.await.map_err(lost).flatten())
        }
        SnapshotAsk::Write(writing) => {
            let picture = Arc::clone(&desk.snapshots().borrow());
            let wanted = writing.clone();
            let written = desk.read(move |records| {
                let records = Until { records, left };
                write(&records, &picture, &wanted, SystemClock.now())
            });
            let written = written.await.map_err(Unwritten::Failed).flatten();
            SnapshotTold::Written(writing, written)
        }
    }
}

fn open(path: &Path) -> Result<Arc<Reconstruction>, Unusable> {
    let snapshot = read_snapshot(path)?;
    Ok(Arc::new(Reconstruction::of_snapshot(&snapshot)))
}

/// Writes a snapshot of a thread's session, as `cra snapshot` does.
fn write(
    records: &impl Records,
    picture: &Picture,
    writing: &Writing,
    now: Timestamp,
) -> Result<(), Unwritten> {
    let session = &writing.session;
    let mut threads = picture.threads.iter();
    let thread = threads.find(|thread| thread.id == writing.thread);
    let lives = picture
        .sessions
        .iter()
        .any(|summary| summary.id == *session);
    let beside = Beside {
        thread: thread.map(AsRef::as_ref),
        // An ended session holds no requests: its record says how it ended.
        held: lives.then_some(&picture.held),
        atlases: &picture.loaded,
    };
    let known = records.end(session).map_err(Unwritten::Failed)?;
    if known == 0 {
        let what = format!("the record has no event of `{session}` any more");
        return Err(Unwritten::Failed(what));
    }
    let account = account_of(records, session, beside, now).map_err(Unwritten::Failed)?;
    write_snapshot(&writing.path, &account, writing.there).map_err(|error| {
        if error.is_there_already() {
            return Unwritten::There;
        }
        Unwritten::Failed(error.to_string())
    })
}
