//! `cra atlas`: what is wrong with a manifest, and what it would do.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use serde_json::json;

use super::args::{Explain, Lint};
use super::atlases::{Known, files_of, load_all};
use super::error::{Failure, verdict};
use super::exit;
use crate::atlas::diagnostic::{Code, Colour, Diagnostic, render};
use crate::atlas::{LoadError, load_file};
use crate::base::clock::{Clock, SystemClock};
use crate::base::text::one_line;
use crate::engine::explain::{CheckpointOutcome, Explanation, Verdict, WhatIf, explain_under};

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
    let mut written = Ok(());
    let mut known = Known::default();
    for file in &files_of(&lint.files)? {
        let (ok, diagnostics, mut text): (bool, Vec<Diagnostic>, String) = match load_file(file) {
            Ok(mut loaded) => {
                let first = known.first_of(&loaded.atlas.id, file);
                let ok = first.is_none();
                loaded
                    .warnings
                    .extend(first.map(|first| taken(&loaded.atlas.id, &first, file)));
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

/// An identifier that another Atlas has: in force together, nobody could say which of them decided.
fn taken(id: &str, first: &Path, second: &Path) -> Diagnostic {
    let first = one_line(&first.to_string_lossy());
    Diagnostic {
        code: Code::DuplicateId,
        severity: Code::DuplicateId.severity(),
        message: format!("atlas id `{}` is also that of `{first}`", one_line(id)),
        file: second.to_string_lossy().into_owned(),
        path: "atlas_id".to_owned(),
        span: None,
        help: Some("name each Atlas once, or give one another `atlas_id`".to_owned()),
    }
}

/// Says what would happen to a request. Denied exits with 5, so that scripts can ask.
pub(super) fn explain(explain: &Explain) -> Result<u8, Failure> {
    let atlases = load_all(&explain.files)?;
    let params = serde_json::from_str(&explain.params).map_err(Failure::Params)?;
    let what_if = WhatIf {
        action: explain.action.clone(),
        params,
        agent: explain.agent.clone(),
        unlocked: explain.unlocked.iter().cloned().collect(),
        locked: std::collections::BTreeSet::new(),
    };
    let told = explain_under(&atlases, &what_if, SystemClock.now());
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if explain.json {
        serde_json::to_writer_pretty(&mut out, &told)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_explanation(&mut out, &told)
    };
    let code = match told.verdict {
        Verdict::Allowed | Verdict::Held { .. } => exit::OK,
        Verdict::Denied(_) => exit::DENIED,
    };
    verdict(code, written.and_then(|()| out.flush()))
}

fn write_explanation(out: &mut impl Write, told: &Explanation) -> io::Result<()> {
    let source = match told.tier_source {
        crate::engine::held::TierSource::Declared => "declared",
        crate::engine::held::TierSource::Detected => "detected",
    };
    writeln!(
        out,
        "{}  tier {} ({source})",
        one_line(&told.action),
        told.tier
    )?;
    match &told.verdict {
        Verdict::Allowed => writeln!(out, "ALLOWED")?,
        Verdict::Held { gates } => writeln!(out, "HELD at {}", gates.join(", "))?,
        Verdict::Denied(denied) => {
            writeln!(out, "DENIED  {}", one_line(&denied.reason))?;
            if let Some(help) = &denied.help {
                writeln!(out, "  help: {}", one_line(help))?;
            }
        }
    }
    for capability in &told.capabilities {
        let state = if capability.locked {
            "locked"
        } else {
            "unlocked"
        };
        writeln!(out, "capability  {:24} {state}", capability.capability_id)?;
    }
    for checkpoint in &told.checkpoints {
        let id = &checkpoint.checkpoint_id;
        match &checkpoint.outcome {
            CheckpointOutcome::Fired { why } => {
                writeln!(out, "checkpoint  {id:24} FIRED      {}", one_line(why))?;
            }
            CheckpointOutcome::NotFired { wanted, actual } => {
                let (wanted, actual) = (one_line(wanted), one_line(actual));
                writeln!(
                    out,
                    "checkpoint  {id:24} not fired  wanted {wanted}, actual {actual}"
                )?;
            }
            CheckpointOutcome::Skipped { why } => {
                writeln!(out, "checkpoint  {id:24} skipped    {why}")?;
            }
        }
        write_leaves(out, &checkpoint.conditions)?;
    }
    for policy in &told.policies {
        let state = if policy.applies {
            "APPLIES"
        } else {
            "does not"
        };
        writeln!(
            out,
            "policy      {:24} {state:10} {}",
            policy.policy_id,
            one_line(&policy.rule)
        )?;
        write_leaves(out, &policy.conditions)?;
    }
    Ok(())
}

fn write_leaves(
    out: &mut impl Write,
    leaves: &[crate::atlas::condition::LeafReport],
) -> io::Result<()> {
    for leaf in leaves {
        let actual = leaf
            .actual
            .as_ref()
            .map_or_else(|| "nothing".to_owned(), ToString::to_string);
        let truth = format!("{:?}", leaf.truth).to_lowercase();
        let (path, wanted) = (one_line(&leaf.path), one_line(&leaf.wanted));
        writeln!(
            out,
            "{:36} when {path}: wanted {wanted}, actual {}: {truth}",
            "",
            one_line(&actual)
        )?;
    }
    Ok(())
}
