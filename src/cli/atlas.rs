//! `cra atlas lint` reports the problems of a manifest, and `cra atlas schema` prints the format for editors.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use serde_json::json;

use super::args::LintArgs;
use super::atlases::{AtlasIds, files_of};
use super::error::{Failure, verdict};
use super::exit;
use super::settings::Settings;
use crate::atlas::diagnostic::{Code, Diagnostic, ReportColour, render};
use crate::atlas::document::AtlasManifest;
use crate::atlas::{KnownExtensions, LoadError, lint_file_with};
use crate::base::text::one_line;

mod explain;
mod init;
mod types;

pub(super) use explain::explain;
pub(super) use init::init;
pub(super) use types::types;

/// Reports every problem of every file.
pub(super) fn lint(settings: &Settings, lint: &LintArgs) -> Result<u8, Failure> {
    let listed = listed_extensions(settings)?;
    let configure = settings.configure();
    let mut out = io::stdout().lock();
    let colour = if out.is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        ReportColour::Ansi
    } else {
        ReportColour::None
    };
    let mut code = exit::OK;
    let mut reports = Vec::new();
    let mut written = Ok(());
    let mut known = AtlasIds::default();
    for file in &files_of(&lint.files)? {
        let (ok, diagnostics, mut text): (bool, Vec<Diagnostic>, String) =
            match lint_file_with(file, &listed, &configure) {
                Ok(mut loaded) => {
                    let first = known.insert(&loaded.atlas.id, file);
                    let ok = first.is_none();
                    loaded
                        .warnings
                        .extend(first.map(|first| duplicate_id(&loaded.atlas.id, &first, file)));
                    code = if ok { code } else { exit::LINT };
                    let text = render(&loaded.warnings, &loaded.source, colour);
                    (ok, loaded.warnings, text)
                }
                Err(error @ LoadError::Io { .. }) => return Err(error.into()),
                Err(error) => {
                    code = exit::LINT;
                    (false, error.diagnostics().to_vec(), error.report(colour))
                }
            };
        let name = file.to_string_lossy();
        if ok && diagnostics.is_empty() {
            text = format!("{}: no problems\n", crate::base::text::one_line(&name));
        }
        if lint.json {
            reports.push(json!({ "file": name, "ok": ok, "diagnostics": diagnostics }));
        } else {
            written = written.and_then(|()| write!(out, "{text}"));
        }
    }
    if lint.json {
        written = serde_json::to_writer_pretty(&mut out, &reports)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out));
    }
    verdict(code, written)
}

/// Extensions of the operator's list.
fn listed_extensions(settings: &Settings) -> Result<KnownExtensions, Failure> {
    let table = settings.extensions()?.table();
    Ok(KnownExtensions {
        events: table.events.into_keys().collect(),
        triggers: table.triggers,
        handlers: table.handlers,
        validators: table.validators,
    })
}

/// Diagnostic about a duplicate identifier: with both Atlases in force, decisions could not be
/// attributed.
fn duplicate_id(id: &str, first: &Path, second: &Path) -> Diagnostic {
    let first = one_line(&first.to_string_lossy());
    Diagnostic {
        code: Code::DuplicateId,
        severity: Code::DuplicateId.severity(),
        message: format!("atlas id `{}` is already used by `{first}`", one_line(id)),
        file: second.to_string_lossy().into_owned(),
        path: "atlas_id".to_owned(),
        span: None,
        help: Some("load each Atlas once, or change one `atlas_id`".to_owned()),
    }
}

/// Prints the JSON Schema of an Atlas.
pub(super) fn schema() -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    let written = serde_json::to_writer_pretty(&mut out, &AtlasManifest::json_schema())
        .map_err(io::Error::from)
        .and_then(|()| writeln!(out));
    verdict(exit::OK, written)
}
