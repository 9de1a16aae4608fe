//! `cra trace head|key|import|prune`: proofs of the record, imports and pruning. Legal holds are in
//! `hold.rs`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::open;
use crate::atlas::recording;
use crate::base::clock::{Clock, SystemClock, Timestamp};
use crate::base::digest::Digest;
use crate::base::id::SessionId;
use crate::base::text::one_line;
use crate::cli::answer_key;
use crate::cli::args::{HeadArgs, ImportArgs, KeyArgs, PruneArgs};
use crate::cli::atlases::load_all;
use crate::cli::connect::load_connections;
use crate::cli::console::signer;
use crate::cli::error::Failure;
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::runtime::lines::{READ_BYTES, each_line};
use crate::runtime::maintenance::{
    Maintenance, MaintenanceMode, PruneRequest, StateKey, UntrustedRows,
};
use crate::runtime::{StartError, witness};
use crate::store;
use crate::store::key;
use crate::store::{Seal, Store};
use crate::trace::event::{Payload, PayloadError, TraceImported, canonical_type};
use crate::trace::hash::Envelope;
use crate::trace::head::KnownHead;
use crate::trace::jsonl::{self, LinesVerifier};
use crate::trace::note::Signer;
use crate::trace::record::Record;
use crate::trace::verification::{TrustAnchors, VerificationReport, check_record};

/// Records imported per batch.
const PAGE: usize = 1024;

/// Largest accepted lead of another machine's clock.
const CLOCK_DIFFERENCE: Duration = Duration::from_mins(10);

/// Prints the newest signed head of the log.
pub(in crate::cli) fn head(settings: &Settings, head: &HeadArgs) -> Result<u8, Failure> {
    let seal = open(settings)?.log()?.seal.ok_or(Failure::Unsigned)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if head.json {
        let known = KnownHead::read(&seal.note);
        let known = known.map_err(|error| Failure::Head(one_line(&seal.note), error))?;
        let json = json!({
            "log": known.head.log, "size": known.head.size, "root": known.head.root,
            "note": seal.note,
        });
        serde_json::to_writer_pretty(&mut out, &json).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", seal.note)?;
    }
    out.flush()?;
    Ok(exit::OK)
}

/// Prints the public key, or changes it.
pub(in crate::cli) fn key(settings: &Settings, args: &KeyArgs) -> Result<u8, Failure> {
    let folder = settings.data_dir()?;
    if args.rotate || args.new {
        settings.may_write("cra trace key")?;
        rotate(settings, &folder, args)?;
    }
    let public = key::load_verifier(&folder).ok_or(Failure::Unsigned)?;
    let answers = || answer_key::read(settings)?.ok_or(Failure::Unsigned);
    let text = if args.json {
        json!({ "key": public.to_string(), "answers": answers()? }).to_string()
    } else if args.answers {
        answers()?.to_string()
    } else {
        public.to_string()
    };
    writeln!(io::stdout().lock(), "{text}")?;
    if args.rotate || args.new {
        warn_connected_agents(&folder)?;
    }
    Ok(exit::OK)
}

/// Warns about state that the next console drops, because no key backs it.
fn warn_dropped_state(dropped: Option<UntrustedRows>) -> io::Result<()> {
    let Some(dropped) = dropped else {
        return Ok(());
    };
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    writeln!(
        io::stderr().lock(),
        "cra: the current key does not verify the state of the store: the next start drops {}, {} and {}; \
         an operator must hand over {}",
        counted(dropped.held, "held request"),
        counted(dropped.permits, "permit"),
        counted(dropped.sessions, "open session"),
        counted(dropped.threads, "thread"),
    )
}

/// Names the agents whose hooks pin the old key: the console denies all their steps from now on.
fn warn_connected_agents(folder: &Path) -> Result<(), Failure> {
    for connection in load_connections(folder)?.connections {
        let (agent, scope) = (connection.agent.as_str(), connection.scope.as_str());
        let file = one_line(&connection.file.to_string_lossy());
        writeln!(
            io::stderr().lock(),
            "cra: hooks in {file} still have the old key: run cra connect {agent} --scope {scope}"
        )?;
    }
    Ok(())
}

fn rotate(settings: &Settings, folder: &Path, args: &KeyArgs) -> Result<(), Failure> {
    open(settings)?;
    let store = store::open(&settings.store_url()?, None)?;
    in_runtime(async {
        let log = store.log().await?.log;
        // Loaded first: this finishes an interrupted rotation. Otherwise the current key would be taken for
        // one that never came into use.
        let old = signer(folder, &*store).await;
        let next = key::prepare_next(folder, &log)?;
        // The old key cannot sign a handover if it is lost: then the new key starts on its own.
        let old = if args.new { old.ok() } else { Some(old?) };
        let (current, state_key) = match &old {
            Some(old) if args.new => (next.clone(), StateKey::Old(old)),
            Some(old) => (old.clone(), StateKey::Signer),
            None => (next.clone(), StateKey::Lost),
        };
        let mut maintenance = take_up_sealed_by(state_key, settings, &store, current).await?;
        warn_dropped_state(maintenance.untrusted_rows().await?)?;
        let seal = maintenance
            .rotate_key(next.clone(), &settings.operator)
            .await?;
        key::finish_rotation(folder, Some(&next.verifier()))?;
        keep_elsewhere(settings, Some(&seal))
    })
}

/// Imports sessions that were recorded elsewhere. They are verified first.
pub(in crate::cli) fn import(settings: &Settings, import: &ImportArgs) -> Result<u8, Failure> {
    settings.may_write("cra trace import")?;
    let (report, sessions) = verify_file(&import.file, SystemClock.now())?;
    let file_hash = file_hash(&import.file)?;
    if let Some((session, verdict)) = report.first_fault() {
        let what = format!("{session}: {verdict}");
        return Err(Failure::Unsound(import.file.clone(), what));
    }
    let url = settings.store_url()?;
    let store = store::open(&url, None)?;
    let taken = in_runtime(async {
        let signer = signer(url.folder(), &*store).await?;
        let mut maintenance = open_maintenance(settings, &store, signer).await?;
        let known = maintenance.count_known_events(&sessions).await?;
        for (session, hashes) in &sessions {
            let there = known.get(session).copied().unwrap_or(0);
            if there < hashes.len() as u64 {
                let imported = import_entry(session, hashes, &import.file);
                maintenance.announce(TraceImported {
                    file_hash: Some(file_hash.clone()),
                    by: Some(settings.operator.clone()),
                    ..imported
                });
            }
        }
        let mut page = Vec::new();
        let mut taken: BTreeMap<SessionId, u64> = BTreeMap::new();
        for record in records(&import.file)? {
            let record = record?;
            let there = known.get(&record.session).copied().unwrap_or(0);
            if record.sequence < there {
                continue;
            }
            // The file may have changed since it was verified.
            if !is_verified(&record, &sessions) {
                let what = "the file changed while cra read it".to_owned();
                return Err(Failure::Unsound(import.file.clone(), what));
            }
            *taken.entry(record.session.clone()).or_default() += 1;
            page.push(record);
            if page.len() >= PAGE {
                maintenance.take_in(std::mem::take(&mut page)).await?;
            }
        }
        maintenance.take_in(page).await?;
        keep_elsewhere(settings, maintenance.seal().await?.as_ref())?;
        Ok(taken)
    })?;
    if import.json {
        return print_json_counts(&taken);
    }
    print_counts(&taken, "imported")
}

/// Opens the log of a store, which must agree with the head that is kept elsewhere.
pub(super) async fn open_maintenance(
    settings: &Settings,
    store: &Arc<dyn Store>,
    signer: Signer,
) -> Result<Maintenance, Failure> {
    take_up_sealed_by(StateKey::Signer, settings, store, signer).await
}

/// Opens the log of a store whose state was sealed with that key.
async fn take_up_sealed_by(
    state_key: StateKey<'_>,
    settings: &Settings,
    store: &Arc<dyn Store>,
    signer: Signer,
) -> Result<Maintenance, Failure> {
    let known = settings
        .head_file
        .as_deref()
        .map(witness::read_head)
        .transpose();
    let known = known.map_err(StartError::HeadFile)?.flatten();
    let clock = Arc::new(SystemClock);
    let opened = Maintenance::open_sealed_by(
        state_key,
        Arc::clone(store),
        signer,
        clock,
        known.as_slice(),
    );
    Ok(opened.await?)
}

pub(super) fn keep_elsewhere(settings: &Settings, seal: Option<&Seal>) -> Result<(), Failure> {
    if let (Some(path), Some(seal)) = (&settings.head_file, seal) {
        witness::write_head(path, &seal.note).map_err(StartError::HeadFile)?;
    }
    Ok(())
}

/// True if a record is the one that was verified at its position.
fn is_verified(record: &Record, sessions: &BTreeMap<SessionId, Vec<Digest>>) -> bool {
    let hashes = sessions.get(&record.session);
    let place = usize::try_from(record.sequence).ok();
    let hash = hashes.and_then(|hashes| hashes.get(place?));
    hash == Some(&record.hash) && check_record(&record.text, &record.hash).is_ok()
}

fn import_entry(session: &SessionId, hashes: &[Digest], file: &Path) -> TraceImported {
    TraceImported {
        imported_session: session.to_string(),
        events: hashes.len() as u64,
        head_hash: hashes.last().copied().unwrap_or(Digest::ZERO).to_string(),
        source: one_line(&file.display().to_string()),
        file_hash: None,
        by: None,
    }
}

/// Digest of a file, as `sha256sum` prints it.
fn file_hash(file: &Path) -> Result<String, Failure> {
    let mut hashed = Sha256::new();
    let mut input = open_file(file)?;
    loop {
        let read = input.fill_buf();
        let read = read.map_err(|error| Failure::Read(file.to_owned(), error))?;
        let count = read.len();
        if count == 0 {
            break;
        }
        hashed.update(read);
        input.consume(count);
    }
    Ok(Digest::from_bytes(hashed.finalize().into()).to_string())
}

/// Verifies a file and notes the hashes of its sessions. Rejects events that no console can have
/// written.
fn verify_file(
    file: &Path,
    now: Timestamp,
) -> Result<(VerificationReport, BTreeMap<SessionId, Vec<Digest>>), Failure> {
    let mut verifier = LinesVerifier::new(TrustAnchors::nothing());
    let mut hashes: BTreeMap<SessionId, Vec<Digest>> = BTreeMap::new();
    let mut fault = None;
    each_line(open_file(file)?, |line| {
        verifier.push(line);
        let text = jsonl::to_canonical_line(std::str::from_utf8(line).unwrap_or_default());
        if let Ok((envelope, hash)) = jsonl::read_line(&text)
            && let Ok(session) = envelope.session_id.parse()
        {
            fault = fault.take().or_else(|| fault_of(&envelope, now));
            hashes.entry(session).or_default().push(hash);
        }
    })
    .map_err(|error| Failure::Read(file.to_owned(), error))?;
    if verifier.lines() == 0 {
        return Err(Failure::EmptyExport(file.to_owned()));
    }
    let report = verifier.finish();
    match fault.filter(|_| report.is_sound()) {
        Some(what) => Err(Failure::Unsound(file.to_owned(), what)),
        None => Ok((report, hashes)),
    }
}

/// Reason why a console cannot have recorded an event, if any: a date in the future, or a payload that
/// does not match its type.
fn fault_of(envelope: &Envelope<'_>, now: Timestamp) -> Option<String> {
    let place = || format!("event {} of {}", envelope.sequence, envelope.session_id);
    let at: Option<Timestamp> = envelope.timestamp.parse().ok();
    if at.is_some_and(|at| at > now.plus(CLOCK_DIFFERENCE)) {
        let at = envelope.timestamp;
        return Some(format!("{} is dated {at}, which is in the future", place()));
    }
    if envelope.is_pruned() || canonical_type(envelope.event_type) != envelope.event_type {
        return None;
    }
    let fields = serde_json::from_str(envelope.payload).ok()?;
    match Payload::read_lenient(envelope.event_type, fields) {
        Err(error @ PayloadError::Fields { .. }) => Some(format!("{}: {error}", place())),
        // Other programs register types of their own.
        Ok(_) | Err(PayloadError::UnknownType { .. }) => None,
    }
}

/// Records of a file, one at a time.
fn records(file: &Path) -> Result<impl Iterator<Item = Result<Record, Failure>>, Failure> {
    let path = file.to_owned();
    let lines = io::BufRead::lines(open_file(file)?);
    Ok(lines.map(move |line| {
        let line = line.map_err(|error| Failure::Read(path.clone(), error))?;
        let line = jsonl::to_canonical_line(&line);
        let read = jsonl::read_line(&line).and_then(|(envelope, hash)| {
            let mut text = String::new();
            envelope.write(&mut text);
            Record::read(text, hash)
        });
        read.map_err(|what| Failure::Unsound(path.clone(), what))
    }))
}

fn open_file(file: &Path) -> Result<BufReader<File>, Failure> {
    let opened = File::open(file).map_err(|error| Failure::Read(file.to_owned(), error))?;
    Ok(BufReader::with_capacity(READ_BYTES, opened))
}

/// Prunes events that are older than their retention.
pub(in crate::cli) fn prune(settings: &Settings, prune: &PruneArgs) -> Result<u8, Failure> {
    if !prune.dry_run {
        settings.may_write("cra trace prune")?;
    }
    // Atlases named here can only lengthen the retention.
    let named = recording::combined_retention(&load_all(&prune.atlas, &settings.configure())?);
    let at_least = (!prune.atlas.is_empty()).then_some(&named);
    open(settings)?;
    let url = settings.store_url()?;
    let store = store::open(&url, None)?;
    let mode = if prune.dry_run {
        MaintenanceMode::Report
    } else {
        MaintenanceMode::Execute
    };
    let pruned = in_runtime(async {
        let signer = signer(url.folder(), &*store).await?;
        let mut maintenance = open_maintenance(settings, &store, signer).await?;
        let order = PruneRequest {
            by: &settings.operator,
            at_least,
            mode,
        };
        let pruned = maintenance.prune(order).await?;
        keep_elsewhere(settings, maintenance.seal().await?.as_ref())?;
        if mode == MaintenanceMode::Execute {
            maintenance.compact().await?;
        }
        Ok(pruned)
    })?;
    if pruned.keeps_all {
        return Err(Failure::KeepsAll);
    }
    for hold in &pruned.held {
        let (session, by) = (&hold.session, one_line(&hold.by));
        writeln!(
            io::stderr().lock(),
            "cra: {session} is under a legal hold by {by} and is not pruned"
        )?;
    }
    let pruned: BTreeMap<_, _> = pruned.sessions.into_iter().collect();
    let done = match mode {
        MaintenanceMode::Execute => "pruned",
        MaintenanceMode::Report => "would be pruned",
    };
    if prune.json {
        return print_json_counts(&pruned);
    }
    print_counts(&pruned, done)
}

/// Prints the number of events per session, with the word for what was done.
fn print_counts(counts: &BTreeMap<SessionId, u64>, done: &str) -> Result<u8, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    for (session, count) in counts {
        writeln!(out, "{session}  {count} events {done}")?;
    }
    let events: u64 = counts.values().sum();
    writeln!(out, "{} sessions, {events} events {done}", counts.len())?;
    out.flush()?;
    Ok(exit::OK)
}

/// Prints the number of events per session as JSON.
fn print_json_counts(counts: &BTreeMap<SessionId, u64>) -> Result<u8, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, counts).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(exit::OK)
}

/// Runs a future that waits for the store.
pub(in crate::cli) fn in_runtime<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(Failure::Tokio)?.block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_changed_after_verification_is_not_imported() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/data/corpus/trace/chain.jsonl"
        );
        let (report, sessions) = verify_file(Path::new(path), SystemClock.now()).unwrap();
        assert!(report.is_sound(), "{report:?}");
        let honest: Result<Vec<_>, _> = records(Path::new(path)).unwrap().collect();
        let honest = honest.unwrap();
        assert!(honest.iter().all(|record| is_verified(record, &sessions)));
        let record = honest.first().unwrap();
        let mut changed = record.clone();
        changed.text = record.text.replacen("00", "11", 1);
        assert!(!is_verified(&changed, &sessions), "another text");
        changed.hash = Digest::of(&changed.text);
        assert!(!is_verified(&changed, &sessions), "with a hash that fits");
        let mut later = record.clone();
        later.sequence = 1_000;
        assert!(!is_verified(&later, &sessions), "one more than there were");
        later.session = "other".parse().unwrap();
        assert!(
            !is_verified(&later, &sessions),
            "a session that was not there"
        );
    }
}
