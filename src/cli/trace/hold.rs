//! `cra trace hold|release`: legal holds, which protect a session from pruning.

use std::io::{self, BufWriter, Write};

use super::maintenance::{in_runtime, keep_elsewhere, open_maintenance};
use super::{open, recorded};
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::cli::args::{HoldArgs, ReleaseArgs};
use crate::cli::console::signer;
use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::runtime::maintenance::{Maintenance, MaintenanceError};
use crate::store;

/// Puts a session under a legal hold, or lists the legal holds.
pub(in crate::cli) fn hold(settings: &Settings, hold: &HoldArgs) -> Result<u8, Failure> {
    let (Some(name), Some(reason)) = (&hold.session, &hold.reason) else {
        return list(settings, hold);
    };
    settings.may_write("cra trace hold")?;
    let session = recorded(&*open(settings)?, name)?;
    let by = &settings.operator;
    change_record(settings, async |maintenance| {
        maintenance.place_hold(&session, reason, by).await
    })?;
    print_change(&session, "is under a legal hold and will not be pruned")
}

/// Ends the legal hold of a session.
pub(in crate::cli) fn release(settings: &Settings, release: &ReleaseArgs) -> Result<u8, Failure> {
    settings.may_write("cra trace release")?;
    let session = recorded(&*open(settings)?, &release.session)?;
    let (by, reason) = (&settings.operator, release.reason.as_deref());
    change_record(settings, async |maintenance| {
        maintenance.release_hold(&session, reason, by).await
    })?;
    print_change(&session, "is no longer under a legal hold")
}

/// Opens the store, changes it, and signs the resulting records.
fn change_record(
    settings: &Settings,
    act: impl AsyncFnOnce(&mut Maintenance) -> Result<(), MaintenanceError>,
) -> Result<(), Failure> {
    let url = settings.store_url()?;
    let store = store::open(&url, None)?;
    in_runtime(async {
        let signer = signer(url.folder(), &*store).await?;
        let mut maintenance = open_maintenance(settings, &store, signer).await?;
        act(&mut maintenance).await?;
        keep_elsewhere(settings, maintenance.seal().await?.as_ref())
    })
}

fn print_change(session: &SessionId, what: &str) -> Result<u8, Failure> {
    writeln!(io::stdout().lock(), "{session} {what}")?;
    Ok(exit::OK)
}

fn list(settings: &Settings, hold: &HoldArgs) -> Result<u8, Failure> {
    let notes = open(settings)?.session_notes()?;
    let holds: Vec<_> = notes.holds().collect();
    let mut out = BufWriter::new(io::stdout().lock());
    if hold.json {
        serde_json::to_writer_pretty(&mut out, &holds).map_err(io::Error::from)?;
        writeln!(out)?;
    } else if holds.is_empty() {
        writeln!(out, "No sessions are under a legal hold.")?;
    }
    for held in holds.iter().filter(|_| !hold.json) {
        let (session, since) = (&held.session, &held.since);
        let (by, reason) = (one_line(&held.by), one_line(&held.reason));
        writeln!(out, "{session}  since {since}  by {by}: {reason}")?;
    }
    out.flush()?;
    Ok(exit::OK)
}
