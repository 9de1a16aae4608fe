//! `cra notices`: notices that stewards have not received, read without a console.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::args::{NoticeNamesArgs, NoticeSecretArgs, NoticesArgs, NoticesCommand};
use super::error::{Failure, NoticeFailure, verdict};
use super::exit;
use super::settings::{SECRET_VARIABLE, Settings};
use super::trace::{in_runtime, open};
use crate::base::clock::{Clock, SystemClock, Timestamp};
use crate::base::text::one_line;
use crate::runtime::notices::{
    self, DeliveryState, SECRET_FILE, SecretSource, StoredNotice, stored_notices,
};
use crate::store::{self, Store, StoreError};

/// Lists notices, retries or forgets them, or shows their signing secret.
pub(super) fn notices(settings: &Settings, args: &NoticesArgs) -> Result<u8, Failure> {
    match &args.command {
        None => list(settings, args),
        Some(NoticesCommand::Retry(names)) => retry(settings, names),
        Some(NoticesCommand::Forget(names)) => forget(settings, names),
        Some(NoticesCommand::Secret(secret)) => print_secret(settings, secret),
    }
}

fn list(settings: &Settings, args: &NoticesArgs) -> Result<u8, Failure> {
    let (stored, unreadable) = stored_notices(open(settings)?.state()?);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if args.json {
        let all: Vec<_> = stored.iter().map(to_json).collect();
        let written = serde_json::to_writer_pretty(&mut out, &all);
        written
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        table(&mut out, &stored, SystemClock.now())
    };
    let written = written.and_then(|()| {
        let mut lines = unreadable.iter().filter(|_| !args.json);
        lines.try_for_each(|(key, error)| {
            let (key, error) = (one_line(key), one_line(error));
            writeln!(out, "{key}  cannot be read: {error}")
        })
    });
    verdict(exit::OK, written.and_then(|()| out.flush()))
}

fn to_json(notice: &StoredNotice) -> Value {
    let (state, at) = match notice.state {
        DeliveryState::Waiting { next_at } => ("waiting", next_at),
        DeliveryState::Failed { at } => ("failed", at),
    };
    let body: Value = serde_json::from_str(&notice.body).unwrap_or_default();
    json!({
        "id": notice.id, "state": state, "at": at, "since": notice.since,
        "attempts": notice.attempts, "error": notice.error, "address": notice.address,
        "atlas_id": notice.atlas_id, "body": body,
    })
}

fn table(out: &mut impl Write, stored: &[StoredNotice], now: Timestamp) -> io::Result<()> {
    if stored.is_empty() {
        return writeln!(out, "No notices are waiting or failed.");
    }
    writeln!(
        out,
        "{:<36}  {:<16}  {:>5}  ATLAS TO ADDRESS",
        "ID", "STATE", "TRIES"
    )?;
    for notice in stored {
        let state = match notice.state {
            DeliveryState::Failed { .. } => "failed".to_owned(),
            DeliveryState::Waiting { next_at } => match next_at.since(now).as_secs() {
                0 => "waiting".to_owned(),
                left => format!("waiting {}:{:02}", left / 60, left % 60),
            },
        };
        let (id, atlas) = (one_line(&notice.id), one_line(&notice.atlas_id));
        let (address, tries) = (one_line(&notice.address), notice.attempts);
        writeln!(
            out,
            "{id:<36}  {state:<16}  {tries:>5}  {atlas} to {address}"
        )?;
        let body: Value = serde_json::from_str(&notice.body).unwrap_or_default();
        let text = |path: &str| one_line(body.pointer(path).and_then(Value::as_str).unwrap_or("?"));
        let (trigger, action) = (text("/type"), text("/data/action"));
        let (agent, session) = (text("/data/agent"), text("/data/session"));
        let error = notice.error.as_deref().map(one_line);
        let error = error.map(|error| format!(": {error}")).unwrap_or_default();
        writeln!(out, "    {trigger}, {action} of {agent}/{session}{error}")?;
    }
    Ok(())
}

fn retry(settings: &Settings, names: &NoticeNamesArgs) -> Result<u8, Failure> {
    settings.may_write("cra notices retry")?;
    let changed = change_notices(settings, names, async |store, notices| {
        notices::retry_notices(store, notices, SystemClock.now()).await
    })?;
    print_changed(names, changed, "queued for the next start of the console")
}

fn forget(settings: &Settings, names: &NoticeNamesArgs) -> Result<u8, Failure> {
    settings.may_write("cra notices forget")?;
    let changed = change_notices(settings, names, async |store, notices| {
        notices::remove_notices(store, &notices).await
    })?;
    print_changed(names, changed, "deleted")
}

/// Changes the named notices and prints their number. No console may use the store.
fn change_notices(
    settings: &Settings,
    names: &NoticeNamesArgs,
    change: impl AsyncFnOnce(&dyn Store, Vec<StoredNotice>) -> Result<(), StoreError>,
) -> Result<usize, Failure> {
    let (stored, _) = stored_notices(open(settings)?.state()?);
    let chosen = select_notices(stored, names)?;
    let count = chosen.len();
    let store = store::open(&settings.store_url()?, None)?;
    in_runtime(async { Ok(change(&*store, chosen).await?) })?;
    Ok(count)
}

fn select_notices(
    mut stored: Vec<StoredNotice>,
    names: &NoticeNamesArgs,
) -> Result<Vec<StoredNotice>, NoticeFailure> {
    if names.failed {
        stored.retain(StoredNotice::is_failed);
        if stored.is_empty() {
            return Err(NoticeFailure::NoneFailed);
        }
        return Ok(stored);
    }
    let unknown = |id: &&String| stored.iter().all(|notice| notice.id != **id);
    if let Some(unknown) = names.ids.iter().find(unknown) {
        return Err(NoticeFailure::Unknown(one_line(unknown)));
    }
    stored.retain(|notice| names.ids.contains(&notice.id));
    Ok(stored)
}

fn print_changed(names: &NoticeNamesArgs, changed: usize, done: &str) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    let written = match (names.json, changed) {
        (true, _) => writeln!(out, "{}", json!({ "notices": changed })),
        (false, 1) => writeln!(out, "1 notice is {done}."),
        (false, _) => writeln!(out, "{changed} notices are {done}."),
    };
    verdict(exit::OK, written)
}

fn print_secret(settings: &Settings, args: &NoticeSecretArgs) -> Result<u8, Failure> {
    let folder = settings.data_dir()?;
    let source = Settings::webhook_secret(&folder)?;
    let secret = match (&source, args.show) {
        (_, false) => None,
        (SecretSource::Fixed(secret), true) => Some(secret.clone()),
        (SecretSource::Folder(_), true) => {
            if !folder.join(SECRET_FILE).exists() {
                settings.may_write("cra notices secret --show")?;
            }
            Some(source.secret().map_err(NoticeFailure::Secret)?)
        }
    };
    let place = match &source {
        SecretSource::Fixed(_) => format!("the environment variable {SECRET_VARIABLE}"),
        SecretSource::Folder(folder) => path_words(&folder.join(SECRET_FILE)),
    };
    let secret = secret.map(|secret| secret.text());
    let mut out = io::stdout().lock();
    let written = if args.json {
        writeln!(out, "{}", json!({ "place": place, "secret": secret }))
    } else {
        let secret = secret
            .map(|secret| format!("{secret}\n"))
            .unwrap_or_default();
        write!(out, "{place}\n{secret}")
    };
    verdict(exit::OK, written)
}

fn path_words(path: &Path) -> String {
    let there = if path.exists() {
        ""
    } else {
        "  (does not exist yet)"
    };
    format!("{}{there}", one_line(&path.to_string_lossy()))
}
