//! `cra atlas`: what is wrong with a manifest.

use std::io::{self, IsTerminal, Write};

use serde_json::json;

use super::args::Lint;
use super::error::Failure;
use super::exit;
use crate::atlas::diagnostic::{Colour, Diagnostic, render};
use crate::atlas::{LoadError, load_file};

/// Reports every problem of every file.
pub(super) fn lint(lint: &Lint) -> Result<u8, Failure> {
    let mut out = io::stdout().lock();
    let colour = if out.is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        Colour::Ansi
    } else {
        Colour::None
    };
    let mut code = exit::OK;
    let mut reports = Vec::new();
    for file in &lint.files {
        let (diagnostics, text): (Vec<Diagnostic>, String) = match load_file(file) {
            Ok(loaded) => {
                let text = render(&loaded.warnings, &loaded.source, colour);
                (loaded.warnings, text)
            }
            Err(error @ LoadError::Io { .. }) => return Err(error.into()),
            Err(error) => {
                code = exit::LINT;
                (error.diagnostics().to_vec(), error.report(colour))
            }
        };
        if lint.json {
            let name = file.to_string_lossy();
            reports
                .push(json!({ "file": name, "ok": code == exit::OK, "diagnostics": diagnostics }));
        } else {
            write!(out, "{text}")?;
            if diagnostics.is_empty() {
                let name = crate::base::text::one_line(&file.to_string_lossy());
                writeln!(out, "{name}: no problems")?;
            }
        }
    }
    if lint.json {
        serde_json::to_writer_pretty(&mut out, &reports).map_err(io::Error::from)?;
        writeln!(out)?;
    }
    Ok(code)
}
