//! `cra trace verify`: verifies the record.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde_json::json;

use super::super::args::VerifyArgs;
use super::super::error::{Failure, verdict};
use super::super::exit;
use super::super::settings::Settings;
use super::{LOG_NAME, open, recorded};
use crate::base::id::SessionId;
use crate::base::limits::MAX_LINE_BYTES;
use crate::base::text::one_line;
use crate::runtime::lines::{READ_BYTES, each_line};
use crate::runtime::{StartError, witness};
use crate::store::key;
use crate::trace::head::KnownHead;
use crate::trace::jsonl::LinesVerifier;
use crate::trace::note::Verifier;
use crate::trace::verification::{
    ChainVerification, TrustAnchors, VerificationReport, VerificationVerdict,
};

/// Verifies the record of the store, or an export of one.
pub(in super::super) fn verify(settings: &Settings, verify: &VerifyArgs) -> Result<u8, Failure> {
    if verify.file.is_some() && verify.key.is_some() && verify.known_head.is_empty() {
        return Err(Failure::NoHead);
    }
    let trust = trust(settings, verify)?;
    let mut report = if let Some(file) = &verify.file {
        let named = verify.session.as_deref().filter(|name| *name != LOG_NAME);
        let only = named.map(|name| {
            let session = name.parse::<SessionId>();
            session.map_err(|_| Failure::NoSession(one_line(name)))
        });
        verify_file(file, trust, only.transpose()?)?
    } else {
        let reader = open(settings)?;
        if !trust.has_keys() && reader.log()?.seal.is_some() {
            // Without the key a rewritten record would look intact.
            return Err(Failure::NoKey);
        }
        reader.verify(trust)?
    };
    let log = report.log.as_ref().map(|log| log.log.as_str());
    if let Some(name) = verify.session.as_deref()
        && (name == LOG_NAME || log == Some(name))
    {
        if log.is_none() {
            return Err(Failure::NoSession(one_line(name)));
        }
        report.chains.clear();
    } else if let Some(name) = &verify.session {
        report.chains.retain(|one| one.session.as_str() == name);
        if report.chains.is_empty() {
            if verify.file.is_none() {
                recorded(&*open(settings)?, name)?;
            }
            return Err(Failure::NoSession(one_line(name)));
        }
    }
    let sound = report.is_sound();
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if verify.json {
        let json = json!({ "sound": sound, "log": report.log, "chains": report.chains });
        serde_json::to_writer_pretty(&mut out, &json)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_verdicts(&mut out, &report)
    };
    let written = written.and_then(|()| out.flush());
    verdict(if sound { exit::OK } else { exit::BROKEN }, written)
}

/// Trust anchors for verification: the named key or the key next to the store, and heads that were kept
/// elsewhere.
fn trust(settings: &Settings, verify: &VerifyArgs) -> Result<TrustAnchors, Failure> {
    let mut trust = match (&verify.file, &verify.key) {
        (None, None) => store_trust(settings),
        (Some(_), _) | (_, Some(_)) => TrustAnchors::nothing(),
    };
    let named = verify.key.as_deref().map(|key| {
        let text = text_or_file(key, |text| text.contains('+'))?;
        let key = text.trim().parse::<Verifier>();
        key.map_err(|error| Failure::Key(one_line(&text), error))
    });
    if let Some(key) = named.transpose()? {
        trust = trust.with_key(key);
    }
    if let (Some(path), None) = (&settings.head_file, &verify.file) {
        let known_head = witness::read_head(path).map_err(StartError::HeadFile)?;
        trust = known_head
            .into_iter()
            .fold(trust, TrustAnchors::with_known_head);
    }
    for known in &verify.known_head {
        let text = text_or_file(known, |text| text.contains('\n'))?;
        let head = KnownHead::read(&text);
        let head = head.map_err(|error| Failure::Head(one_line(known), error))?;
        // An export has no other place for a signature.
        if let (Some(note), Some(_)) = (&head.note, &verify.file) {
            trust = trust.with_supplied_head(head.head.clone(), note.clone());
        }
        trust = trust.with_known_head(head);
    }
    Ok(trust)
}

/// Trust in the key next to the store.
pub(super) fn store_trust(settings: &Settings) -> TrustAnchors {
    let folder = settings.data_dir().ok();
    let key = folder.and_then(|folder| key::load_verifier(&folder));
    match key {
        Some(key) => TrustAnchors::nothing().with_key(key),
        None => TrustAnchors::nothing(),
    }
}

/// Pasted text, or the content of the named file; `-` is standard input.
fn text_or_file(given: &str, is_text: impl Fn(&str) -> bool) -> Result<String, Failure> {
    let path = Path::new(given);
    if given == "-" {
        let mut text = String::new();
        let read = io::stdin()
            .lock()
            .take(MAX_LINE_BYTES)
            .read_to_string(&mut text);
        return read
            .map(|_| text)
            .map_err(|error| Failure::Read(path.to_owned(), error));
    }
    if is_text(given) && !path.exists() {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(MAX_LINE_BYTES).read_to_string(&mut text));
    read.map(|_| text)
        .map_err(|error| Failure::Read(path.to_owned(), error))
}

pub(super) fn verify_file(
    file: &Path,
    trust: TrustAnchors,
    only: Option<SessionId>,
) -> Result<VerificationReport, Failure> {
    let failed = |error| Failure::Read(file.to_owned(), error);
    let mut verifier = LinesVerifier::new(trust);
    if let Some(only) = only {
        verifier = verifier.only(only);
    }
    let read = if file.as_os_str() == "-" {
        each_line(io::stdin().lock(), |line| verifier.push(line))
    } else {
        let input = BufReader::with_capacity(READ_BYTES, File::open(file).map_err(failed)?);
        each_line(input, |line| verifier.push(line))
    };
    read.map_err(failed)?;
    if verifier.lines() == 0 {
        return Err(Failure::EmptyExport(file.to_owned()));
    }
    Ok(verifier.finish())
}

fn write_verdicts(out: &mut impl Write, report: &VerificationReport) -> io::Result<()> {
    let names = report.chains.iter().map(|chain| chain.session.as_str());
    let log = report.log.as_ref();
    let names = names.chain(log.map(|log| log.log.as_str()));
    let Some(width) = names.map(str::len).max() else {
        return writeln!(out, "No records to verify.");
    };
    if let Some(log) = log {
        writeln!(out, "{:width$}  {}", log.log, log.verdict)?;
        match &log.key {
            Some(key) => writeln!(out, "{:width$}  signed with {key}", "")?,
            None => writeln!(out, "{:width$}  signatures not verified: no key", "")?,
        }
    }
    for chain in &report.chains {
        writeln!(out, "{:width$}  {chain}", chain.session)?;
    }
    let chains = report.chains.len();
    let bad = report
        .chains
        .iter()
        .filter(|chain| !chain.verdict.is_sound());
    let truncated =
        |chain: &&ChainVerification| matches!(chain.verdict, VerificationVerdict::Truncated { .. });
    if report.chains.iter().any(|chain| truncated(&chain)) {
        writeln!(
            out,
            "If an interrupted import left a session TRUNCATED, import its file again."
        )?;
    }
    let events = report.events();
    match (bad.count(), log.is_none_or(|log| log.verdict.is_sound())) {
        (0, true) if chains == 0 => writeln!(out, "the governance log, {events} entries: verified"),
        (0, true) => writeln!(out, "{chains} chains, {events} events: all verified"),
        (0, false) => writeln!(
            out,
            "{chains} chains verified; the governance log FAILED verification"
        ),
        (bad, _) => writeln!(out, "{bad} of {chains} chains FAILED verification"),
    }
}
