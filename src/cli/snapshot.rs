//! `cra snapshot`: writes the state of a session as a snapshot file for the next agent.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::args::SnapshotArgs;
use super::error::{Failure, verdict};
use super::exit;
use super::queue::held;
use super::settings::Settings;
use super::trace::{SessionSource, recorded, store};
use crate::atlas::{Atlas, load_str};
use crate::base::atomic_file::ExistingFile;
use crate::base::clock::{Clock, SystemClock};
use crate::base::text::one_line;
use crate::engine::command::StateKind;
use crate::reconstruct::SessionAccount;
use crate::runtime::account::{AccountSources, account_of, thread_of};
use crate::runtime::snapshot_file::{snapshot_text, write_snapshot};
use crate::runtime::stored_threads;
use crate::store::StoreReader;
use crate::trace::details::Details;
use crate::trace::source::{EventSource as _, for_each_event};

/// Writes the snapshot file of a session.
pub(super) fn snapshot(settings: &Settings, args: &SnapshotArgs) -> Result<u8, Failure> {
    let account = account(settings, &args.session)?;
    let Some(path) = &args.out else {
        let text = snapshot_text(&account);
        return verdict(exit::OK, io::stdout().lock().write_all(text.as_bytes()));
    };
    write_snapshot(path, &account, ExistingFile::Keep)?;
    let shown = one_line(&path.to_string_lossy());
    let printed = writeln!(
        io::stdout().lock(),
        "written to {shown}; continue with: cra reconstruct {shown}"
    );
    verdict(exit::OK, printed)
}

fn account(settings: &Settings, name: &str) -> Result<SessionAccount, Failure> {
    let (record, reader) = store(settings)?;
    let session = recorded(&*reader, name)?;
    let rows = reader.state()?;
    let live = |kind: StateKind, key: &str| {
        rows.iter()
            .any(|row| row.kind == kind.as_str() && row.key == key)
    };
    // An imported session holds nothing in this store; then its record shows what is held.
    let lives = live(StateKind::Session, session.as_str());
    let threads = stored_threads(rows.clone()).threads;
    let held = held(rows)?;
    let atlases = last_in_force(&record, &*reader)?;
    let sources = AccountSources {
        thread: thread_of(session.as_str(), &threads),
        held: lives.then_some(held.as_slice()),
        atlases: &atlases,
    };
    account_of(&record, &session, sources, SystemClock.now())
}

/// Atlases that were in force last, the newest of each identifier: their redaction rules apply. An
/// Atlas that cannot be read is an error, so that nothing it would redact leaks.
fn last_in_force(record: &SessionSource, reader: &dyn StoreReader) -> Result<Vec<Atlas>, Failure> {
    let log = reader.log()?.log;
    let mut newest = BTreeMap::new();
    let end = record.end(&log)?;
    for_each_event(record, &log, (0, end), |event| {
        if event.event_type == "atlas_loaded" {
            let details = Details::of(&event);
            newest.insert(
                details.text_or_empty("atlas_id"),
                details.text_or_empty("atlas_hash"),
            );
        }
        Ok::<_, Failure>(())
    })?;
    let mut atlases = Vec::new();
    for (id, hash) in newest {
        let stored = reader.atlas(&hash)?;
        let stored = stored.ok_or_else(|| Failure::AtlasGone(one_line(&id)))?;
        atlases.push(load_str(&id, &stored.text)?.atlas);
    }
    Ok(atlases)
}
