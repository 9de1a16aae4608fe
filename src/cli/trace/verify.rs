//! `cra trace verify`: whether chains hold.

use std::fs;
use std::io::{self, BufWriter, Read, Write};

use serde_json::json;

use super::open;
use crate::base::text::one_line;
use crate::cli::args::Verify;
use crate::cli::error::{Failure, verdict};
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::trace::jsonl;
use crate::trace::verify::Checked;

/// Checks chains.
pub(in crate::cli) fn verify(settings: &Settings, verify: &Verify) -> Result<u8, Failure> {
    let checked = match (&verify.file, &verify.session) {
        (Some(file), _) => {
            let checked = jsonl::verify(&read_text(file)?);
            if checked.is_empty() {
                return Err(Failure::EmptyExport(file.clone()));
            }
            checked
        }
        (None, None) => open(settings)?.verify()?,
        (None, Some(name)) => {
            let all = open(settings)?.verify()?;
            let one: Vec<_> = all
                .into_iter()
                .filter(|c| c.session.as_str() == name)
                .collect();
            if one.is_empty() {
                return Err(Failure::NoSession(one_line(name)));
            }
            one
        }
    };
    let sound = checked.iter().all(|checked| checked.verdict.is_sound());
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if verify.json {
        let report = json!({ "sound": sound, "chains": checked });
        serde_json::to_writer_pretty(&mut out, &report)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_verdicts(&mut out, &checked)
    };
    let written = written.and_then(|()| out.flush());
    verdict(if sound { exit::OK } else { exit::BROKEN }, written)
}

fn write_verdicts(out: &mut impl Write, checked: &[Checked]) -> io::Result<()> {
    if checked.is_empty() {
        return writeln!(out, "Nothing is on record, so there is nothing to verify.");
    }
    let width = checked
        .iter()
        .map(|c| c.session.as_str().len())
        .max()
        .unwrap_or(0);
    for Checked {
        session, verdict, ..
    } in checked
    {
        writeln!(out, "{session:width$}  {verdict}")?;
    }
    let bad = checked
        .iter()
        .filter(|checked| !checked.verdict.is_sound())
        .count();
    let events: u64 = checked.iter().map(|checked| checked.events).sum();
    match bad {
        0 => writeln!(out, "{} chains, {events} events: all hold", checked.len()),
        _ => writeln!(out, "{bad} of {} chains do NOT hold", checked.len()),
    }
}

fn read_text(file: &std::path::Path) -> Result<String, Failure> {
    let failed = |error| Failure::Read(file.to_owned(), error);
    if file.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map_err(failed)?;
        return Ok(text);
    }
    fs::read_to_string(file).map_err(failed)
}
