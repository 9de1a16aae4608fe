//! `cra trace diff`: compares two sessions.

use std::io::{self, BufWriter, Write};

use serde_json::json;

use super::session_source::SessionSource;
use crate::base::id::SessionId;
use crate::cli::args::DiffArgs;
use crate::cli::error::{Failure, verdict};
use crate::cli::exit;
use crate::cli::settings::Settings;
use crate::trace::diff::{
    DiffSide, SessionDiff, SessionTotals, StepChange, StepSummary, diff as compare,
};
use crate::trace::source::EventSource;
use crate::trace::verification::ChainVerification;

/// Most differences shown in text output; `--json` has more.
const SHOWN: usize = 40;

/// Compares two sessions.
pub(in crate::cli) fn diff(settings: &Settings, diff: &DiffArgs) -> Result<u8, Failure> {
    let (a, session_a) = SessionSource::named(settings, &diff.a)?;
    let (b, session_b) = SessionSource::named(settings, &diff.b)?;
    let checked = [a.verify(&session_a)?, b.verify(&session_b)?];
    let difference = compare(side(&a, &session_a), side(&b, &session_b))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if diff.json {
        let report = json!({
            "a": session_a,
            "b": session_b,
            "chains": checked,
            "same": difference.first.is_none(),
            "difference": difference,
        });
        serde_json::to_writer_pretty(&mut out, &report)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_difference(&mut out, [&session_a, &session_b], &checked, &difference)
    };
    let sound = checked
        .iter()
        .flatten()
        .all(|checked| checked.verdict.is_sound());
    let code = if sound { exit::OK } else { exit::BROKEN };
    verdict(code, written.and_then(|()| out.flush()))
}

fn side<'s>(source: &'s SessionSource, session: &'s SessionId) -> DiffSide<'s, SessionSource> {
    DiffSide { source, session }
}

fn write_difference(
    out: &mut impl Write,
    sessions: [&SessionId; 2],
    checked: &[Option<ChainVerification>; 2],
    difference: &SessionDiff,
) -> io::Result<()> {
    for (letter, (session, checked)) in ["A", "B"].into_iter().zip(sessions.iter().zip(checked)) {
        let chain = checked.as_ref().map(|checked| checked.verdict.to_string());
        let chain = chain.unwrap_or_else(|| "not checked".to_owned());
        writeln!(out, "{letter}  {session}  {chain}")?;
    }
    writeln!(out)?;
    match &difference.first {
        None => writeln!(out, "No difference in {} steps.", difference.common)?,
        Some(first) => {
            writeln!(out, "They differ after {} common steps:", difference.common)?;
            writeln!(out, "  A  {}", step_text(first.a.as_ref()))?;
            writeln!(out, "  B  {}", step_text(first.b.as_ref()))?;
        }
    }
    writeln!(out)?;
    write_totals(out, &difference.sums)?;
    if difference.changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nDifferences:")?;
    for StepChange { a, b, .. } in difference.changes.iter().take(SHOWN) {
        // Steps in both sessions are marked with `~`, steps in one with a sign.
        let marks = if a.is_some() && b.is_some() {
            ["~A", "~B"]
        } else {
            ["-A", "+B"]
        };
        for (mark, step) in marks.into_iter().zip([a, b]) {
            if step.is_some() {
                writeln!(out, "  {mark}  {}", step_text(step.as_ref()))?;
            }
        }
    }
    let shown = difference.changes.len().min(SHOWN) as u64;
    if difference.changes_found > shown {
        let more = difference.changes_found - shown;
        writeln!(out, "  and {more} more; --json shows them")?;
    }
    let (more_a, more_b) = difference.not_aligned;
    if more_a + more_b > 0 {
        writeln!(
            out,
            "  {more_a} more steps of A and {more_b} of B were counted, not compared"
        )?;
    }
    Ok(())
}

fn step_text(step: Option<&StepSummary>) -> String {
    step.map_or_else(
        || "end of the session".to_owned(),
        |step| format!("{:>6}  {}", step.sequence, step.summary),
    )
}

fn write_totals(out: &mut impl Write, (a, b): &(SessionTotals, SessionTotals)) -> io::Result<()> {
    let text = |sum: &SessionTotals| sum.status.clone().unwrap_or_else(|| "not ended".to_owned());
    let rows = [
        ("agent", a.agent.clone(), b.agent.clone()),
        ("ended", text(a), text(b)),
        (
            "decided by",
            a.decided_by.join(", "),
            b.decided_by.join(", "),
        ),
    ];
    let numbers = [
        ("events", a.events, b.events),
        ("gates passed", a.passed, b.passed),
        ("gates not passed", a.not_passed, b.not_passed),
        ("actions requested", a.attempted, b.attempted),
        ("actions completed", a.completed, b.completed),
        ("actions failed", a.failed, b.failed),
        ("actions blocked", a.blocked, b.blocked),
        ("overrides", a.overrides, b.overrides),
        ("errors", a.errors, b.errors),
    ];
    let numbers = numbers.map(|(name, a, b)| (name, a.to_string(), b.to_string()));
    let rows: Vec<_> = rows.into_iter().chain(numbers).collect();
    let width = rows.iter().map(|(_, a, _)| a.chars().count()).max();
    let width = width.unwrap_or(0).min(40);
    writeln!(out, "  {:18}  {:width$}  B", "", "A")?;
    for (name, a, b) in rows {
        let mark = if a == b { ' ' } else { '*' };
        writeln!(out, "{mark} {name:18}  {a:width$}  {b}")?;
    }
    Ok(())
}
