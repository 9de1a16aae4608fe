//! `cra snapshot`: where a session stands, as a snapshot file for whoever takes it up.

use std::io::{self, Write};

use super::args::SnapshotFile;
use super::error::{Failure, verdict};
use super::exit;
use super::queue::held;
use super::settings::Settings;
use super::trace::{PAGE, open, recorded, write_file};
use crate::base::clock::{Clock, SystemClock};
use crate::base::text::one_line;
use crate::engine::command::StateKind;
use crate::reconstruct::{Account, written};
use crate::runtime::account::{Gathering, thread_of};
use crate::runtime::kept_threads;

/// Writes the snapshot file of a session.
pub(super) fn snapshot(settings: &Settings, args: &SnapshotFile) -> Result<u8, Failure> {
    let account = account(settings, &args.session)?;
    let mut text = serde_json::to_string_pretty(&written(&account)).unwrap_or_default();
    text.push('\n');
    let Some(path) = &args.out else {
        return verdict(exit::OK, io::stdout().lock().write_all(text.as_bytes()));
    };
    write_file(path, |out| Ok(out.write_all(text.as_bytes())?))?;
    let shown = one_line(&path.to_string_lossy());
    let told = writeln!(
        io::stdout().lock(),
        "written to {shown}; go on from it with: cra reconstruct {shown}"
    );
    verdict(exit::OK, told)
}

fn account(settings: &Settings, name: &str) -> Result<Account, Failure> {
    let reader = open(settings)?;
    let session = recorded(&reader, name)?;
    let mut gathering = Gathering::default();
    let mut from = 0;
    loop {
        let page = reader.events(&session, from, PAGE)?;
        for event in &page {
            gathering.apply(event);
        }
        match page.last().and_then(|last| last.sequence.checked_add(1)) {
            Some(next) if next > from => from = next,
            Some(_) | None => break,
        }
    }
    let rows = reader.state()?;
    let live = |kind: StateKind, key: &str| {
        rows.iter()
            .any(|row| row.kind == kind.as_str() && row.key == key)
    };
    // Of a session that came from elsewhere nothing is held here: then its record says what is.
    let lives = live(StateKind::Session, session.as_str());
    let threads = kept_threads(rows.clone()).threads;
    let held = held(rows)?;
    let held = held.iter().filter(|held| held.session == session);
    let held = lives.then(|| held.map(AsRef::as_ref).collect());
    let thread = thread_of(session.as_str(), &threads);
    Ok(gathering.finish(thread, held, SystemClock.now()))
}
